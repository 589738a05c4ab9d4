"""Equality constraints in the Newton iteration: velocities, impulses, cost and Hessian, by bodies and dofs.

A constraint between bodies is like a contact that always sticks: its impulse is a wrench on both bodies, its
stiffness a 6x6 matrix per body and one off the diagonal for the pair. A constraint between two degrees of
freedom, v_c = v_1 - r v_2, adds G (1, -r)^T (1, -r) to their four entries. Impulses are
gamma = G (v_hat - v_c), so that the costs are quadratic and G = R^-1 stays the same during a step. A distance
has one velocity, along the line between its two points, and an impulse for each of its bounds that only
pushes to the side that is allowed: gamma = G max(v_hat - v_c, 0), with a convex cost like a joint limit.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import sap_struct

OFF = wp.constant(0)
BODIES = wp.constant(1)
DOFS = wp.constant(2)
DISTANCE = wp.constant(3)
"""Kinds of terms: not acting; on the relative velocity of two bodies; on that of two degrees of freedom; on
that of two points along their line."""


@made_once
def equality_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return what the Newton iteration needs of equality constraints, for the given precisions."""
    vec3, vec6 = vec3_type(real), vec6_type(real)
    linear3, linear33 = vec3_type(linear), mat33_type(linear)
    SapData = sap_struct(real, linear)

    @wp.func
    def angular_part(x: vec6) -> vec3:
        return vec3(x[0], x[1], x[2])

    @wp.func
    def linear_part(x: vec6) -> vec3:
        return vec3(x[3], x[4], x[5])

    @wp.func(inline=True)
    def stiffness_times(sap: wp.ref[SapData], index: int, x: vec6) -> vec6:
        """Return G x."""
        k = sap.equality[index].stiffness_linear
        result = vec6(k * x[0], real(0.0), real(0.0), real(0.0), real(0.0), real(0.0))
        if sap.equality[index].kind == BODIES:
            torque = sap.equality[index].stiffness_angular * angular_part(x)
            result = vec6(torque[0], torque[1], torque[2], k * x[3], k * x[4], k * x[5])
        return result

    @wp.func(inline=True)
    def span_objective(sap: wp.ref[SapData], index: int, v: real) -> vec3:
        """Return (cost [J], impulse [N·s], -d impulse / d v) of a distance that grows at v."""
        k = sap.equality[index].stiffness_linear
        lack = sap.equality[index].bias[0] - v
        excess = sap.equality[index].bias[1] + v
        curvature = k
        if sap.equality[index].two_sided != 0:
            excess = real(0.0)
        else:
            lack = wp.max(lack, real(0.0))
            excess = wp.max(excess, real(0.0))
            if lack == real(0.0) and excess == real(0.0):
                curvature = real(0.0)
        return vec3(real(0.5) * k * (lack * lack + excess * excess), k * (lack - excess), curvature)

    @wp.func(inline=True)
    def is_inactive(sap: wp.ref[SapData], index: int) -> bool:
        """Return whether a term has no stiffness at `sap.equality_velocity`."""
        if sap.equality[index].kind == DISTANCE:
            return span_objective(sap, index, sap.equality_velocity[index][0])[2] == real(0.0)
        return sap.equality[index].kind == OFF

    @wp.func(inline=True)
    def point_stiffness(sap: wp.ref[SapData], index: int) -> linear33:
        """Return the stiffness against shifts of the two points, world axes, of a term that is not slack."""
        k = linear(sap.equality[index].stiffness_linear)
        if sap.equality[index].kind == DISTANCE:
            axis = linear3(sap.equality[index].axis)
            return k * wp.outer(axis, axis)
        return k * wp.identity(n=3, dtype=linear)

    @wp.func(inline=True)
    def measure_equalities(
        topology: wp.ref[Topology],
        sap: wp.ref[SapData],
        world: int,
        dof_rate: wp.array(dtype=real),
        equality_rate: wp.array(dtype=vec6),
    ):
        """Write J x of every constraint; `sap.node_rate` must hold the body velocities for x = `dof_rate`."""
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            kind = sap.equality[index].kind
            result = vec6()
            if kind == DOFS:
                result[0] = dof_rate[dof0 + sap.equality[index].dof1]
                if sap.equality[index].dof2 >= 0:
                    result[0] -= sap.equality[index].ratio * dof_rate[dof0 + sap.equality[index].dof2]
            elif kind != OFF:
                spin, velocity = vec3(), vec3()
                if sap.equality[index].node2 >= 0:
                    rate = sap.node_rate[node0 + sap.equality[index].node2]
                    spin += angular_part(rate)
                    velocity += linear_part(rate) + wp.cross(angular_part(rate), sap.equality[index].arm2)
                if sap.equality[index].node1 >= 0:
                    rate = sap.node_rate[node0 + sap.equality[index].node1]
                    spin -= angular_part(rate)
                    velocity -= linear_part(rate) + wp.cross(angular_part(rate), sap.equality[index].arm1)
                result = vec6(spin[0], spin[1], spin[2], velocity[0], velocity[1], velocity[2])
                if kind == DISTANCE:
                    result = vec6()
                    result[0] = wp.dot(sap.equality[index].axis, velocity)
            equality_rate[index] = result

    @wp.func(inline=True)
    def evaluate_equalities(sap: wp.ref[SapData], world: int) -> real:
        """Write the impulse of every constraint at `sap.equality_velocity`; return their cost."""
        cost = real(0.0)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            if sap.equality[index].kind == DISTANCE:
                span = span_objective(sap, index, sap.equality_velocity[index][0])
                impulse = vec6()
                impulse[0] = span[1]
                sap.equality_impulse[index] = impulse
                cost += span[0]
            elif sap.equality[index].kind != OFF:
                lack = sap.equality[index].bias - sap.equality_velocity[index]
                impulse = stiffness_times(sap, index, lack)
                sap.equality_impulse[index] = impulse
                cost += real(0.5) * wp.dot(lack, impulse)
        return cost

    @wp.func(inline=True)
    def add_equality_wrenches(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int):
        """Add the impulses to `sap.node_wrench`, and those between dofs to `sap.impulse`."""
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            kind = sap.equality[index].kind
            impulse = sap.equality_impulse[index]
            if kind == DOFS:
                dof = dof0 + sap.equality[index].dof1
                sap.impulse[dof] = sap.impulse[dof] + impulse[0]
                if sap.equality[index].dof2 >= 0:
                    dof = dof0 + sap.equality[index].dof2
                    sap.impulse[dof] = sap.impulse[dof] - sap.equality[index].ratio * impulse[0]
            elif kind != OFF:
                if kind == DISTANCE:
                    pull = impulse[0] * sap.equality[index].axis
                    impulse = vec6(real(0.0), real(0.0), real(0.0), pull[0], pull[1], pull[2])
                force = linear_part(impulse)
                if sap.equality[index].node2 >= 0:
                    node = node0 + sap.equality[index].node2
                    torque = angular_part(impulse) + wp.cross(sap.equality[index].arm2, force)
                    sap.node_wrench[node] = sap.node_wrench[node] + vec6(
                        torque[0], torque[1], torque[2], force[0], force[1], force[2]
                    )
                if sap.equality[index].node1 >= 0:
                    node = node0 + sap.equality[index].node1
                    torque = angular_part(impulse) + wp.cross(sap.equality[index].arm1, force)
                    sap.node_wrench[node] = sap.node_wrench[node] - vec6(
                        torque[0], torque[1], torque[2], force[0], force[1], force[2]
                    )

    @wp.func(inline=True)
    def probe_equalities(sap: wp.ref[SapData], world: int, alpha: real) -> vec3:
        """Return cost, slope and curvature of all constraints at step alpha along the direction."""
        value, slope, curvature = real(0.0), real(0.0), real(0.0)
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            if sap.equality[index].kind == DISTANCE:
                along = sap.equality_slope[index][0]
                span = span_objective(sap, index, sap.equality_velocity[index][0] + alpha * along)
                value += span[0]
                slope -= span[1] * along
                curvature += span[2] * along * along
            elif sap.equality[index].kind != OFF:
                rate = sap.equality_slope[index]
                lack = sap.equality[index].bias - (sap.equality_velocity[index] + alpha * rate)
                impulse = stiffness_times(sap, index, lack)
                value += real(0.5) * wp.dot(lack, impulse)
                slope -= wp.dot(impulse, rate)
                curvature += wp.dot(stiffness_times(sap, index, rate), rate)
        return vec3(value, slope, curvature)

    @wp.func(inline=True)
    def advance_equalities(sap: wp.ref[SapData], world: int, alpha: real):
        """Move `sap.equality_velocity` by alpha along the direction."""
        for index in range(sap.equality_start[world], sap.equality_end[world]):
            sap.equality_velocity[index] = sap.equality_velocity[index] + alpha * sap.equality_slope[index]

    @wp.func(inline=True)
    def add_equality_stiffness(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, index: int):
        """Add the stiffness of a constraint between bodies to the 6x6 matrix of each of them."""
        node0 = topology.world_joint[world]
        W = point_stiffness(sap, index)
        turning = linear33(sap.equality[index].stiffness_angular)
        for side in range(2):
            node = sap.equality[index].node1
            arm = linear3(sap.equality[index].arm1)
            if side == 1:
                node = sap.equality[index].node2
                arm = linear3(sap.equality[index].arm2)
            if node >= 0:
                cross = wp.skew(arm)
                left = cross * W
                sap.node_stiffness_ww[node0 + node] = (
                    sap.node_stiffness_ww[node0 + node] - left * cross + turning
                )
                sap.node_stiffness_wv[node0 + node] = sap.node_stiffness_wv[node0 + node] + left
                sap.node_stiffness_vv[node0 + node] = sap.node_stiffness_vv[node0 + node] + W

    @wp.func(inline=True)
    def add_dof_stiffness(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, index: int):
        """Add the diagonal entries of a constraint between degrees of freedom to the packed rows."""
        first = topology.template_dof[topology.world_template[world]]
        k = linear(sap.equality[index].stiffness_linear)
        dof = sap.equality[index].dof1
        row = topology.world_row[world] + topology.dof_row[first + dof] + topology.dof_depth[first + dof]
        sap.hessian_row[row] = sap.hessian_row[row] + k
        dof = sap.equality[index].dof2
        if dof >= 0:
            ratio = linear(sap.equality[index].ratio)
            row = topology.world_row[world] + topology.dof_row[first + dof] + topology.dof_depth[first + dof]
            sap.hessian_row[row] = sap.hessian_row[row] + k * ratio * ratio

    return SimpleNamespace(
        measure_equalities=measure_equalities,
        evaluate_equalities=evaluate_equalities,
        add_equality_wrenches=add_equality_wrenches,
        probe_equalities=probe_equalities,
        advance_equalities=advance_equalities,
        add_equality_stiffness=add_equality_stiffness,
        add_dof_stiffness=add_dof_stiffness,
        is_inactive=is_inactive,
        point_stiffness=point_stiffness,
    )
