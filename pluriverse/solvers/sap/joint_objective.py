"""Drives, limits and dry friction as a term of the objective, one degree of freedom at a time.

Reads   the terms of joints (`joint_terms.py`), velocity and direction
Writes  dof_impulse, dof_curvature

The verbs are those of contacts (`contact_objective.py`); a step along the direction moves `velocity` itself.
They are native loops: most steps evaluate each term twice, for which Warp's code takes half as long as the
factorization of the Hessian.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import vec3_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import (
    DRIVE,
    DRY_FRICTION,
    LIMIT_LOWER,
    LIMIT_UPPER,
    SPEED_LIMIT,
    sap_struct,
)

_BITS = f"""
    constexpr int DRIVE = {DRIVE}, LOWER = {LIMIT_LOWER}, UPPER = {LIMIT_UPPER};
    constexpr int DRY = {DRY_FRICTION}, SPEED = {SPEED_LIMIT};
"""

# Adds cost [J], impulse [N·s or N·m·s] and -d impulse / d v of a degree of freedom at the velocity v.
_OBJECTIVE = """
    const int* bits = terms.data + first;
    const V* speed = velocity.data + first;
    const V* offset = drive_offset.data + first;
    const V* gain = drive_gain.data + first;
    const V* effort_limit = drive_limit.data + first;
    const V* limit_r = limit_regularization.data + first;
    const V* lower_bias = limit_lower_bias.data + first;
    const V* upper_bias = limit_upper_bias.data + first;
    const V* friction_r = friction_regularization.data + first;
    const V* friction_most = friction_impulse.data + first;
    const V* speed_most = speed_limit.data + first;
    const V* speed_r = speed_regularization.data + first;
    const V zero = V(0), half = V(0.5);
    // Of NaN it makes a number; the cost, which has the difference, stays NaN.
    auto clamp = [](const V x, const V most) {
        const V y = x > -most ? x : -most;
        return y < most ? y : most;
    };
    auto size = [](const V x) { return x < V(0) ? -x : x; };
    auto objective = [&](const int d, const V v, V& cost, V& impulse, V& curvature) {
        const int has = bits[d];
        if (has & DRIVE) {
            const V y = offset[d] - gain[d] * v;
            const V effort = clamp(y, effort_limit[d]);
            impulse = dt * effort;
            if (!(gain[d] > zero)) {
                cost = -impulse * v;  // direct effort: a constant impulse
            } else if (effort == y) {
                cost = half * dt / gain[d] * y * y;
                curvature = dt * gain[d];
            } else {
                cost = dt / gain[d] * effort_limit[d] * (size(y) - half * effort_limit[d]);
            }
        }
        if (has & LOWER) {
            const V gamma = (lower_bias[d] - v) / limit_r[d];
            if (gamma > zero) {
                cost += half * limit_r[d] * gamma * gamma;
                impulse += gamma;
                curvature += V(1) / limit_r[d];
            }
        }
        if (has & UPPER) {
            const V gamma = (upper_bias[d] + v) / limit_r[d];
            if (gamma > zero) {
                cost += half * limit_r[d] * gamma * gamma;
                impulse -= gamma;
                curvature += V(1) / limit_r[d];
            }
        }
        if (has & DRY) {
            const V y = -v / friction_r[d], most = friction_most[d];
            const V gamma = clamp(y, most);
            impulse += gamma;
            if (gamma == y) {
                cost += half * friction_r[d] * y * y;
                curvature += V(1) / friction_r[d];
            } else {
                cost += most * size(v) - half * friction_r[d] * most * most;
            }
        }
        if (has & SPEED) {
            const V excess = size(v) - speed_most[d];
            if (excess > zero) {
                const V stiffness = V(1) / speed_r[d];
                cost += half * stiffness * excess * excess;
                impulse += v < zero ? stiffness * excess : -(stiffness * excess);
                curvature += stiffness;
            }
        }
    };
"""

_EVALUATE = """
    V* impulse_out = dof_impulse.data + first;
    V* curvature_out = dof_curvature.data + first;
    V total = zero;
    for (int d = 0; d < count; ++d) {
        V cost = zero, impulse = zero, curvature = zero;
        if (bits[d] > 0) {  // those of free bodies are 0, those of other groups negative
            objective(d, speed[d], cost, impulse, curvature);
            total += cost;
        }
        impulse_out[d] = impulse;
        curvature_out[d] = curvature;
    }
    return total;
"""

_PROBE = """
    const V* rates = direction.data + first;
    V value = zero, slope = zero, bend = zero;
    for (int d = 0; d < count; ++d) {
        if (bits[d] <= 0) continue;
        const V rate = rates[d];
        V cost = zero, impulse = zero, curvature = zero;
        objective(d, speed[d] + alpha * rate, cost, impulse, curvature);
        value += cost;
        slope -= impulse * rate;
        bend += curvature * rate * rate;
    }
    return {value, slope, bend};
"""


@made_once
def joint_objective_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the verbs of terms of one degree of freedom, `evaluate_joints` and `probe_joints`.

    Their loops are `evaluate_dofs` and `probe_dofs`, for the `count` degrees of freedom from `first` on.
    """
    vec3 = vec3_type(real)
    SapData = sap_struct(real, linear)

    types = f"using V = {CTYPE[real]};"

    @wp.func_native(types + _BITS + _OBJECTIVE + _EVALUATE)
    def evaluate_dofs(
        terms: wp.array[int],
        velocity: wp.array[real],
        drive_offset: wp.array[real],
        drive_gain: wp.array[real],
        drive_limit: wp.array[real],
        limit_regularization: wp.array[real],
        limit_lower_bias: wp.array[real],
        limit_upper_bias: wp.array[real],
        friction_regularization: wp.array[real],
        friction_impulse: wp.array[real],
        speed_limit: wp.array[real],
        speed_regularization: wp.array[real],
        dt: real,
        first: int,
        count: int,
        dof_impulse: wp.array[real],
        dof_curvature: wp.array[real],
    ) -> real: ...

    @wp.func_native(types + _BITS + _OBJECTIVE + _PROBE)
    def probe_dofs(
        terms: wp.array[int],
        velocity: wp.array[real],
        drive_offset: wp.array[real],
        drive_gain: wp.array[real],
        drive_limit: wp.array[real],
        limit_regularization: wp.array[real],
        limit_lower_bias: wp.array[real],
        limit_upper_bias: wp.array[real],
        friction_regularization: wp.array[real],
        friction_impulse: wp.array[real],
        speed_limit: wp.array[real],
        speed_regularization: wp.array[real],
        dt: real,
        first: int,
        count: int,
        direction: wp.array[real],
        alpha: real,
    ) -> vec3: ...

    @wp.func(inline=True)
    def evaluate_joints(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real) -> real:
        """Write the impulse and curvature of every degree of freedom; return the cost of its terms."""
        return evaluate_dofs(
            sap.dof_terms,
            sap.velocity,
            sap.drive_offset,
            sap.drive_gain,
            sap.drive_limit,
            sap.limit_regularization,
            sap.limit_lower_bias,
            sap.limit_upper_bias,
            sap.friction_regularization,
            sap.friction_impulse,
            sap.speed_limit,
            sap.speed_regularization,
            dt,
            topology.world_dof[world] + sap.part_dof[world],
            sap.part_dof_end[world] - sap.part_dof[world],
            sap.dof_impulse,
            sap.dof_curvature,
        )

    @wp.func(inline=True)
    def probe_joints(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real, alpha: real
    ) -> vec3:
        """Return cost, slope and curvature of all terms at step alpha along the direction."""
        return probe_dofs(
            sap.dof_terms,
            sap.velocity,
            sap.drive_offset,
            sap.drive_gain,
            sap.drive_limit,
            sap.limit_regularization,
            sap.limit_lower_bias,
            sap.limit_upper_bias,
            sap.friction_regularization,
            sap.friction_impulse,
            sap.speed_limit,
            sap.speed_regularization,
            dt,
            topology.world_dof[world] + sap.part_dof[world],
            sap.part_dof_end[world] - sap.part_dof[world],
            sap.direction,
            alpha,
        )

    return SimpleNamespace(
        evaluate_joints=evaluate_joints,
        probe_joints=probe_joints,
        evaluate_dofs=evaluate_dofs,
        probe_dofs=probe_dofs,
    )
