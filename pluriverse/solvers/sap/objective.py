"""Objective of a world: cost and impulses of all its terms, and the gradient, at given velocities."""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.dense import packed_rows
from pluriverse.math.precision import vec3_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_objective import contact_objective_functions
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.joint_objective import joint_objective_functions
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.workspace import sap_struct


@functools.cache
def objective_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool = False, moments: bool = False
) -> SimpleNamespace:
    """Return the functions of the objective, with or without equalities and contact moments.

    These are `multiply_by_mass`, `begin_momenta`, `evaluate_terms`, `gradient_norms` and `joint_error`.
    """
    vec3 = vec3_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    evaluate_contacts = contact_objective_functions(real, linear, moments).evaluate_contacts
    evaluate_joints = joint_objective_functions(real, linear).evaluate_joints
    evaluate_equalities = equality_functions(real, linear).evaluate_equalities
    evaluate_springs = spring_functions(real, linear).evaluate_springs
    rows_multiply = packed_rows(dynamics_real, real).rows_multiply

    @wp.func(inline=True)
    def multiply_by_mass(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        world: int,
        x: wp.array(dtype=real),
        y: wp.array(dtype=real),
    ):
        """Write A x into y, for all degrees of freedom of the world."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        dof0 = topology.world_dof[world]
        rows_multiply(
            dynamics.mass_row,
            topology.world_row[world],
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            first,
            0,
            topology.template_dof[template + 1] - first,
            x,
            dof0,
            y,
            dof0,
        )

    @wp.func(inline=stages_inline())
    def begin_momenta(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ):
        """Write A (v - v*) and A v*."""
        template = topology.world_template[world]
        dof0 = topology.world_dof[world]
        for dof in range(dof0, dof0 + topology.template_dof[template + 1] - topology.template_dof[template]):
            sap.gradient[dof] = sap.velocity[dof] - sap.velocity_free[dof]
        multiply_by_mass(topology, dynamics, world, sap.gradient, sap.residual)
        multiply_by_mass(topology, dynamics, world, sap.velocity_free, sap.momentum_free)

    @wp.func(inline=True)
    def evaluate_terms(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real, has_contacts: int
    ) -> real:
        """Write the impulse of every term and the curvature of the joint terms; return the total cost.

        Contacts are left out if `has_contacts` is 0.
        """
        cost = evaluate_joints(topology, sap, world, dt)
        if has_contacts != 0:
            cost += evaluate_contacts(sap, world)
        if wp.static(equality):
            cost += evaluate_equalities(sap, world) + evaluate_springs(sap, world)
        return cost

    @wp.func(inline=stages_inline())
    def gradient_norms(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int) -> vec3:
        """Write the gradient; return (|D grad|, |D A v|, |D impulse|), D = diag(A)^-1/2, of active trees."""
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        dof0 = topology.world_dof[world]
        gradient2, momentum2, impulse2 = real(0.0), real(0.0), real(0.0)
        for tree in range(topology.template_tree[template + 1] - first_tree):
            if sap.tree_active[topology.world_tree[world] + tree] != 0:
                for dof in range(
                    topology.tree_dof[first_tree + tree], topology.tree_dof_end[first_tree + tree]
                ):
                    residual = sap.residual[dof0 + dof]
                    impulse = sap.impulse[dof0 + dof]
                    gradient = residual - impulse
                    momentum = residual + sap.momentum_free[dof0 + dof]
                    sap.gradient[dof0 + dof] = gradient
                    scale = sap.dof_scale[dof0 + dof]
                    gradient2 += scale * gradient * gradient
                    momentum2 += scale * momentum * momentum
                    impulse2 += scale * impulse * impulse
        return vec3(wp.sqrt(gradient2), wp.sqrt(momentum2), wp.sqrt(impulse2))

    @wp.func(inline=True)
    def joint_error(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int) -> vec3:
        """Compare the impulses of joints with those expected in `impulse`.

        Returns (|D difference|, |D impulse|, 1/2 (v - v*) . impulse), with D as in `gradient_norms`.
        """
        template = topology.world_template[world]
        first = topology.template_dof[template]
        dof0 = topology.world_dof[world]
        difference2, impulse2, work = real(0.0), real(0.0), real(0.0)
        for dof in range(topology.template_dof[template + 1] - first):
            impulse = sap.dof_impulse[dof0 + dof]
            difference = impulse - sap.impulse[dof0 + dof]
            work += impulse * (sap.velocity[dof0 + dof] - sap.velocity_free[dof0 + dof])
            if impulse != real(0.0) or difference != real(0.0):
                scale = sap.dof_scale[dof0 + dof]
                difference2 += scale * difference * difference
                impulse2 += scale * impulse * impulse
        return vec3(wp.sqrt(difference2), wp.sqrt(impulse2), real(0.5) * work)

    return SimpleNamespace(
        multiply_by_mass=multiply_by_mass,
        begin_momenta=begin_momenta,
        evaluate_terms=evaluate_terms,
        gradient_norms=gradient_norms,
        joint_error=joint_error,
    )
