"""Equality constraints and springs in the space of contacts: rows behind those of the contacts.

Reads   equality and spring terms, velocity of the iteration, mobility of `contact_space`
Writes  columns of its Jacobian, laws and impulses of these rows, equality_slope, spring_slope

A finger that mirrors another one, or a rod that closes a loop, obeys u + G^-1 p = v_hat in every step,
whatever contacts do: its impulse is linear in theirs. So constraints take a component for each velocity that
they act on, behind those of the contacts, and are eliminated from the mobility before the contacts' states
are looked for (`math.mobility_elimination`). As terms of the whole objective they would keep a world out of
contact space: an arm with such a gripper took eight iterations in a step with random targets, and takes two
to three with its fingers unconnected. Distances that only act at their bounds have another law, and do.
A spring, whose impulse is p - g s at the rate s of its length, is a row s + p' / g = p / g.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.body_contacts import body_contact_functions
from pluriverse.math.mobility_elimination import mobility_elimination_functions
from pluriverse.math.precision import vec3_type, vec6_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.equality import BODIES, DISTANCE, DOFS, OFF
from pluriverse.solvers.sap.workspace import SPACE_ROWS_MAX, sap_struct

ROWS_MAX = wp.constant(SPACE_ROWS_MAX)
# Gain [kg or kg·m²] of a spring without any, whose force then varies by rounding.
SOFTEST = 1e-12


@made_once
def constraint_row_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return the functions of this stage for the given precisions.

    These are `has_linear_laws`, `count_rows`, `list_rows`, `measure_rows`, `work_of_rows`, `eliminate_rows`
    and `restore_rows`.
    """
    vec3, vec6 = vec3_type(real), vec6_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    elimination = mobility_elimination_functions(real)
    eliminate_last, restore_last = elimination.eliminate_last, elimination.restore_last
    body_contacts = body_contact_functions(linear, real, dynamics_real)
    add_point_columns, add_wrench_column = body_contacts.add_point_columns, body_contacts.add_wrench_column

    @wp.func(inline=True)
    def row_count(sap: wp.ref[SapData], index: int) -> int:
        """Return how many velocities a constraint acts on."""
        kind = sap.equality[index].kind
        count = int(0)
        if kind == BODIES:
            count = sap.equality[index].turn_count
            if sap.equality[index].stiffness_linear > real(0.0):
                count += 3
        elif kind != OFF:
            count = 1
        return count

    @wp.func
    def row_axis(sap: wp.ref[SapData], index: int, row: int) -> vec6:
        """Return what a row takes of the velocity of its constraint."""
        result = vec6()
        turn_count = sap.equality[index].turn_count
        if sap.equality[index].kind != BODIES:
            result[0] = real(1.0)
        elif row >= turn_count:
            result[3 + row - turn_count] = real(1.0)
        elif turn_count == 3:
            result[row] = real(1.0)
        else:  # across the axis of a hinge
            axis = sap.equality[index].axis
            side = vec3(real(1.0), real(0.0), real(0.0))
            if wp.abs(axis[0]) > real(0.7):
                side = vec3(real(0.0), real(1.0), real(0.0))
            across = wp.normalize(wp.cross(axis, side))
            if row == 1:
                across = wp.cross(axis, across)
            result = vec6(across[0], across[1], across[2], real(0.0), real(0.0), real(0.0))
        return result

    @wp.func(inline=True)
    def add_columns(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        index: int,
        entry: int,
        stride: int,
    ):
        """Write the derivatives of the rows of a constraint, in columns from `entry` on."""
        if sap.equality[index].kind == DOFS:
            sap.space_basis[entry + sap.equality[index].dof1 * stride] = real(1.0)
            if sap.equality[index].dof2 >= 0:
                sap.space_basis[entry + sap.equality[index].dof2 * stride] = -sap.equality[index].ratio
            return
        dof0 = topology.world_dof[world]
        first = topology.template_dof[topology.world_template[world]]
        turn_count = int(0)
        if sap.equality[index].kind == BODIES:
            turn_count = sap.equality[index].turn_count
        for side in range(2):
            last = wp.where(side == 0, sap.equality[index].dof1, sap.equality[index].dof2)
            arm = wp.where(side == 0, sap.equality[index].arm1, sap.equality[index].arm2)
            sign = real(2 * side - 1)
            if sap.equality[index].kind == DISTANCE:
                force = sign * sap.equality[index].axis
                add_wrench_column(
                    dynamics.dof_motion,
                    dof0,
                    topology.dof_parent,
                    first,
                    last,
                    wp.cross(arm, force),
                    force,
                    sap.space_basis,
                    entry,
                    stride,
                )
            elif sap.equality[index].stiffness_linear > real(0.0):
                add_point_columns(
                    dynamics.dof_motion,
                    dof0,
                    topology.dof_parent,
                    first,
                    last,
                    wp.identity(n=3, dtype=real),
                    arm,
                    sign,
                    sap.space_basis,
                    entry + turn_count,
                    stride,
                )
            for row in range(turn_count):
                axis = sign * row_axis(sap, index, row)
                add_wrench_column(
                    dynamics.dof_motion,
                    dof0,
                    topology.dof_parent,
                    first,
                    last,
                    vec3(axis[0], axis[1], axis[2]),
                    vec3(),
                    sap.space_basis,
                    entry + row,
                    stride,
                )

    @wp.func(inline=True)
    def row_compliance(sap: wp.ref[SapData], index: int, row: int) -> real:
        """Return G^-1 of a row."""
        stiffness = sap.equality[index].stiffness_linear
        turn_count = sap.equality[index].turn_count
        if sap.equality[index].kind == BODIES and row < turn_count:
            # The same in all directions in which it acts.
            stiffness = wp.trace(sap.equality[index].stiffness_angular) / real(turn_count)
        return real(1.0) / stiffness

    @wp.func(inline=True)
    def row_gain(sap: wp.ref[SapData], spring: int) -> real:
        """Return g of a spring; a constant force is the law of a very soft one. 0: it exerts nothing."""
        gain = sap.spring_gain[spring]
        if gain == real(0.0) and sap.spring_impulse[spring] != real(0.0):
            gain = real(SOFTEST)
        return gain

    @wp.func(inline=True)
    def count_rows(sap: wp.ref[SapData], world: int) -> int:
        """Return the number of rows of a world."""
        count = int(0)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            count += row_count(sap, index)
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            count += int(row_gain(sap, spring) > real(0.0))
        return count

    @wp.func(inline=True)
    def has_linear_laws(sap: wp.ref[SapData], world: int) -> bool:
        """Return whether all constraints and springs of a world have linear laws, and are few."""
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            if sap.equality[index].kind == DISTANCE and (
                sap.equality[index].two_sided == 0 or sap.equality[index].stiffness_linear == real(0.0)
            ):
                return False
        return count_rows(sap, world) <= ROWS_MAX

    @wp.func(inline=True)
    def set_law(sap: wp.ref[SapData], c: int, k: int, velocity: real, wanted: real, compliance: real):
        """Write velocity and law of component k of an entry of the list."""
        velocities, all_wanted = sap.space_velocity[c], sap.space_wanted[c]
        compliances = sap.space_compliance[c]
        velocities[k] = velocity
        all_wanted[k] = wanted
        compliances[k] = compliance
        sap.space_velocity[c] = velocities
        sap.space_wanted[c] = all_wanted
        sap.space_compliance[c] = compliances

    @wp.func(inline=True)
    def list_rows(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        contact0: int,
        count: int,
        basis: int,
        stride: int,
    ):
        """Write the Jacobian, velocity and law of all rows behind the components of `count` contacts."""
        component = int(3 * count)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            if sap.equality[index].kind != OFF:
                add_columns(topology, dynamics, sap, world, index, basis + component, stride)
            for row in range(row_count(sap, index)):
                axis = row_axis(sap, index, row)
                c, k = contact0 + component / 3, component % 3
                set_law(
                    sap,
                    c,
                    k,
                    wp.dot(axis, sap.equality_velocity[index]),
                    wp.dot(axis, sap.equality[index].bias),
                    row_compliance(sap, index, row),
                )
                component += 1
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            gain = row_gain(sap, spring)
            if gain > real(0.0):
                for entry in range(sap.spring_entry_start[spring], sap.spring_entry_start[spring + 1]):
                    place = basis + component + sap.spring_dof[entry] * stride
                    sap.space_basis[place] = sap.space_basis[place] + sap.spring_coefficient[entry]
                set_law(
                    sap,
                    contact0 + component / 3,
                    component % 3,
                    sap.spring_velocity[spring],
                    sap.spring_impulse[spring] / gain,
                    real(1.0) / gain,
                )
                component += 1

    @wp.func(inline=True)
    def measure_rows(sap: wp.ref[SapData], world: int, contact0: int, count: int):
        """Write by how much the velocities of rows differ from those of the iteration.

        Rotation about the axis of a hinge, on which nothing acts, is left out.
        """
        component = int(3 * count)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            slope = vec6()
            for row in range(row_count(sap, index)):
                axis = row_axis(sap, index, row)
                velocity = sap.space_velocity[contact0 + component / 3]
                slope += (velocity[component % 3] - wp.dot(axis, sap.equality_velocity[index])) * axis
                component += 1
            sap.equality_slope[index] = slope
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            change = real(0.0)
            if row_gain(sap, spring) > real(0.0):
                velocity = sap.space_velocity[contact0 + component / 3]
                change = velocity[component % 3] - sap.spring_velocity[spring]
                component += 1
            sap.spring_slope[spring] = change

    @wp.func(inline=True)
    def work_of_rows(sap: wp.ref[SapData], world: int, contact0: int, count: int) -> real:
        """Return p (u - u*) of the rows behind `count` contacts, where u* is the velocity and its slope."""
        work = real(0.0)
        component = int(3 * count)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            free = sap.equality_velocity[index] + sap.equality_slope[index]
            for row in range(row_count(sap, index)):
                impulse = sap.space_impulse[contact0 + component / 3]
                velocity = sap.space_velocity[contact0 + component / 3]
                gained = velocity[component % 3] - wp.dot(row_axis(sap, index, row), free)
                work += impulse[component % 3] * gained
                component += 1
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            if row_gain(sap, spring) > real(0.0):
                impulse = sap.space_impulse[contact0 + component / 3]
                velocity = sap.space_velocity[contact0 + component / 3]
                rate = sap.spring_velocity[spring] + sap.spring_slope[spring]
                work += impulse[component % 3] * (velocity[component % 3] - rate)
                component += 1
        return work

    @wp.func(inline=True)
    def eliminate_rows(sap: wp.ref[SapData], contact0: int, count: int, rows: int, mobility0: int) -> int:
        """Replace the mobility of contacts by that with all rows; return 0 if it was not definite."""
        return eliminate_last(
            sap.space_mobility,
            mobility0,
            3 * count,
            rows,
            sap.space_compliance,
            sap.space_wanted,
            contact0,
            sap.space_velocity,
        )

    @wp.func(inline=True)
    def restore_rows(sap: wp.ref[SapData], contact0: int, count: int, rows: int, mobility0: int):
        """Write the impulses and velocities of all rows for those of the contacts."""
        restore_last(
            sap.space_mobility,
            mobility0,
            3 * count,
            rows,
            sap.space_compliance,
            sap.space_wanted,
            contact0,
            sap.space_velocity,
            sap.space_impulse,
        )

    return SimpleNamespace(
        has_linear_laws=has_linear_laws,
        count_rows=count_rows,
        list_rows=list_rows,
        measure_rows=measure_rows,
        work_of_rows=work_of_rows,
        eliminate_rows=eliminate_rows,
        restore_rows=restore_rows,
    )
