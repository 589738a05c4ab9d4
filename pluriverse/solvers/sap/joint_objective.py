"""Drives, limits and dry friction as a term of the objective, one degree of freedom at a time.

Reads   the terms of joints (`joint_terms.py`), velocity and direction
Writes  dof_impulse, dof_curvature

The verbs are those of contacts (`contact_objective.py`); a step along the direction moves `velocity` itself.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

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


@functools.cache
def joint_objective_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the verbs of terms of one degree of freedom: `evaluate_joints` and `probe_joints`."""
    vec3 = vec3_type(real)
    SapData = sap_struct(real, linear)

    @wp.func
    def dof_objective(sap: wp.ref[SapData], dof: int, terms: int, v: real, dt: real) -> vec3:
        """Return (cost [J], impulse [N·s or N·m·s], -d impulse / d v) at the velocity v."""
        zero, half = real(0.0), real(0.5)
        cost = real(0.0)
        impulse = real(0.0)
        curvature = real(0.0)
        if terms & DRIVE:
            drive_offset, drive_gain, drive_limit = (
                sap.drive_offset[dof],
                sap.drive_gain[dof],
                sap.drive_limit[dof],
            )
            y = drive_offset - drive_gain * v
            effort = wp.clamp(y, -drive_limit, drive_limit)
            impulse = dt * effort
            if drive_gain > zero:
                if effort == y:
                    cost = half * dt / drive_gain * y * y
                    curvature = dt * drive_gain
                else:
                    cost = dt / drive_gain * drive_limit * (wp.abs(y) - half * drive_limit)
            else:
                cost = -impulse * v  # direct effort: a constant impulse
        if terms & LIMIT_LOWER:
            limit_regularization = sap.limit_regularization[dof]
            gamma = (sap.limit_lower_bias[dof] - v) / limit_regularization
            if gamma > zero:
                cost += half * limit_regularization * gamma * gamma
                impulse += gamma
                curvature += real(1.0) / limit_regularization
        if terms & LIMIT_UPPER:
            limit_regularization = sap.limit_regularization[dof]
            gamma = (sap.limit_upper_bias[dof] + v) / limit_regularization
            if gamma > zero:
                cost += half * limit_regularization * gamma * gamma
                impulse -= gamma
                curvature += real(1.0) / limit_regularization
        if terms & DRY_FRICTION:
            friction_regularization, friction_impulse = (
                sap.friction_regularization[dof],
                sap.friction_impulse[dof],
            )
            y = -v / friction_regularization
            gamma = wp.clamp(y, -friction_impulse, friction_impulse)
            impulse += gamma
            if gamma == y:
                cost += half * friction_regularization * y * y
                curvature += real(1.0) / friction_regularization
            else:
                cost += (
                    friction_impulse * wp.abs(v)
                    - half * friction_regularization * friction_impulse * friction_impulse
                )
        return vec3(cost, impulse, curvature)

    @wp.func
    def speed_objective(v: real, limit: real, regularization: real) -> vec3:
        """Return (cost [J], impulse [N·s or N·m·s], -d impulse / d v) of a speed limit at the velocity v."""
        excess = wp.abs(v) - limit
        result = vec3()
        if excess > real(0.0):
            stiffness = real(1.0) / regularization
            result = vec3(
                real(0.5) * stiffness * excess * excess, -wp.sign(v) * stiffness * excess, stiffness
            )
        return result

    @wp.func(inline=True)
    def joint_objective(sap: wp.ref[SapData], dof: int, terms: int, velocity: real, dt: real) -> vec3:
        """Return (cost [J], impulse, curvature) of all terms of a degree of freedom at a velocity."""
        term = dof_objective(sap, dof, terms, velocity, dt)
        if terms & SPEED_LIMIT:
            term += speed_objective(velocity, sap.speed_limit[dof], sap.speed_regularization[dof])
        return term

    @wp.func(inline=True)
    def evaluate_joints(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real) -> real:
        """Write the impulse and curvature of every degree of freedom; return the cost of its terms."""
        cost = real(0.0)
        template = topology.world_template[world]
        dof0 = topology.world_dof[world]
        for dof in range(dof0, dof0 + topology.template_dof[template + 1] - topology.template_dof[template]):
            terms = sap.dof_terms[dof]
            term = vec3()
            if terms != 0:
                term = joint_objective(sap, dof, terms, sap.velocity[dof], dt)
                cost += term[0]
            sap.dof_impulse[dof] = term[1]
            sap.dof_curvature[dof] = term[2]
        return cost

    @wp.func(inline=True)
    def probe_joints(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real, alpha: real
    ) -> vec3:
        """Return cost, slope and curvature of all terms at step alpha along the direction."""
        value, slope, curvature = real(0.0), real(0.0), real(0.0)
        template = topology.world_template[world]
        dof0 = topology.world_dof[world]
        for dof in range(dof0, dof0 + topology.template_dof[template + 1] - topology.template_dof[template]):
            terms = sap.dof_terms[dof]
            if terms != 0:
                rate = sap.direction[dof]
                term = joint_objective(sap, dof, terms, sap.velocity[dof] + alpha * rate, dt)
                value += term[0]
                slope -= term[1] * rate
                curvature += term[2] * rate * rate
        return vec3(value, slope, curvature)

    return SimpleNamespace(evaluate_joints=evaluate_joints, probe_joints=probe_joints)
