"""Constraints between degrees of freedom in the space of contacts.

Reads   equality terms, velocity of the iteration, mobility of `contact_space`
Writes  columns of its Jacobian, laws and impulses of these constraints, equality_slope

A finger that mirrors another one obeys u + G^-1 p = v_hat in every step, whatever contacts do: its impulse is
linear in theirs. So constraints take a component each behind those of the contacts, and are eliminated from
the mobility before the contacts' states are looked for (`math.mobility_elimination`). As terms of the whole
objective they would keep a world out of contact space: an arm with such a gripper took eight iterations in a
step with random targets, and takes two to three with its fingers unconnected.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.mobility_elimination import mobility_elimination_functions
from pluriverse.solvers.sap.equality import DOFS, OFF
from pluriverse.solvers.sap.workspace import SPACE_COUPLINGS_MAX, sap_struct

COUPLINGS_MAX = wp.constant(SPACE_COUPLINGS_MAX)


@functools.cache
def joint_coupling_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the functions of this stage for the given precisions.

    These are `only_couples_joints`, `count_couplings`, `list_couplings`, `measure_couplings`,
    `couplings_work`, `eliminate_couplings` and `restore_couplings`.
    """
    SapData = sap_struct(real, linear)
    elimination = mobility_elimination_functions(real)
    eliminate_last, restore_last = elimination.eliminate_last, elimination.restore_last

    @wp.func(inline=True)
    def count_couplings(sap: wp.ref[SapData], world: int) -> int:
        """Return the number of acting constraints of a world."""
        count = int(0)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            count += int(sap.equality[index].kind != OFF)
        return count

    @wp.func(inline=True)
    def only_couples_joints(sap: wp.ref[SapData], world: int) -> bool:
        """Return whether a world has no springs and no constraints but a few between degrees of freedom."""
        if sap.spring_start[world] != sap.spring_start[world + 1]:
            return False
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            kind = sap.equality[index].kind
            if kind != OFF and kind != DOFS:
                return False
        return count_couplings(sap, world) <= COUPLINGS_MAX

    @wp.func(inline=True)
    def list_couplings(sap: wp.ref[SapData], world: int, contact0: int, count: int, basis: int, stride: int):
        """Write the Jacobian, velocity and law of constraints behind the components of `count` contacts."""
        component = int(3 * count)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            if sap.equality[index].kind != OFF:
                entry = basis + component
                sap.space_basis[entry + sap.equality[index].dof1 * stride] = real(1.0)
                if sap.equality[index].dof2 >= 0:
                    sap.space_basis[entry + sap.equality[index].dof2 * stride] = -sap.equality[index].ratio
                c = contact0 + component / 3
                axis = component % 3
                velocity, wanted = sap.space_velocity[c], sap.space_wanted[c]
                compliance = sap.space_compliance[c]
                velocity[axis] = sap.equality_velocity[index][0]
                wanted[axis] = sap.equality[index].bias[0]
                compliance[axis] = real(1.0) / sap.equality[index].stiffness_linear
                sap.space_velocity[c] = velocity
                sap.space_wanted[c] = wanted
                sap.space_compliance[c] = compliance
                component += 1

    @wp.func(inline=True)
    def measure_couplings(sap: wp.ref[SapData], world: int, contact0: int, count: int):
        """Write by how much the velocities of constraints differ from those of the iteration."""
        component = int(3 * count)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            if sap.equality[index].kind != OFF:
                slope = sap.equality_slope[index]
                velocity = sap.space_velocity[contact0 + component / 3]
                slope[0] = velocity[component % 3] - sap.equality_velocity[index][0]
                sap.equality_slope[index] = slope
                component += 1

    @wp.func(inline=True)
    def couplings_work(sap: wp.ref[SapData], world: int, contact0: int, count: int) -> real:
        """Return p (u - u*) of the constraints behind `count` contacts, where u* is v + `equality_slope`."""
        work = real(0.0)
        component = int(3 * count)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            if sap.equality[index].kind != OFF:
                impulse, velocity = (
                    sap.space_impulse[contact0 + component / 3],
                    sap.space_velocity[contact0 + component / 3],
                )
                free = sap.equality_velocity[index][0] + sap.equality_slope[index][0]
                work += impulse[component % 3] * (velocity[component % 3] - free)
                component += 1
        return work

    @wp.func(inline=True)
    def eliminate_couplings(
        sap: wp.ref[SapData], contact0: int, count: int, coupled: int, mobility0: int
    ) -> int:
        """Replace the mobility of contacts by that with constraints; return 0 if it was not definite."""
        return eliminate_last(
            sap.space_mobility,
            mobility0,
            3 * count,
            coupled,
            sap.space_compliance,
            sap.space_wanted,
            contact0,
            sap.space_velocity,
        )

    @wp.func(inline=True)
    def restore_couplings(sap: wp.ref[SapData], contact0: int, count: int, coupled: int, mobility0: int):
        """Write the impulses and velocities of constraints for those of the contacts."""
        restore_last(
            sap.space_mobility,
            mobility0,
            3 * count,
            coupled,
            sap.space_compliance,
            sap.space_wanted,
            contact0,
            sap.space_velocity,
            sap.space_impulse,
        )

    return SimpleNamespace(
        only_couples_joints=only_couples_joints,
        count_couplings=count_couplings,
        list_couplings=list_couplings,
        measure_couplings=measure_couplings,
        couplings_work=couplings_work,
        eliminate_couplings=eliminate_couplings,
        restore_couplings=restore_couplings,
    )
