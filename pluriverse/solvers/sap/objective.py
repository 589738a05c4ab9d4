"""Objective of a world: cost and impulses of all its terms, and the gradient, at given velocities."""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.precision import vec3_type
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
    """Return `evaluate_terms` and `gradient_norms`, with or without equalities and contact moments."""
    vec3 = vec3_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    evaluate_contacts = contact_objective_functions(real, linear, moments).evaluate_contacts
    evaluate_joints = joint_objective_functions(real, linear).evaluate_joints
    evaluate_equalities = equality_functions(real, linear).evaluate_equalities
    evaluate_springs = spring_functions(real, linear).evaluate_springs

    @wp.func(inline=True)
    def evaluate_terms(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real) -> real:
        """Write the impulse of every term, and the curvature of those of joints; return their cost."""
        cost = evaluate_contacts(sap, world) + evaluate_joints(topology, sap, world, dt)
        if wp.static(equality):
            cost += evaluate_equalities(sap, world) + evaluate_springs(sap, world)
        return cost

    @wp.func(inline=True)
    def gradient_norms(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ) -> vec3:
        """Write the gradient; return (|D grad|, |D A v|, |D impulse|), D = diag(A)^-1/2, of active trees."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        first_tree = topology.template_tree[template]
        dof0 = topology.world_dof[world]
        row0 = topology.world_row[world]
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
                    index = row0 + topology.dof_row[first + dof] + topology.dof_depth[first + dof]
                    scale = real(1.0) / real(dynamics.mass_row[index])
                    gradient2 += scale * gradient * gradient
                    momentum2 += scale * momentum * momentum
                    impulse2 += scale * impulse * impulse
        return vec3(wp.sqrt(gradient2), wp.sqrt(momentum2), wp.sqrt(impulse2))

    return SimpleNamespace(evaluate_terms=evaluate_terms, gradient_norms=gradient_norms)
