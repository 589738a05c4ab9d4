"""Objective of a world: cost and impulses of all its terms, and the gradient, at given velocities."""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.precision import vec3_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.cone_moments import cone_moment_functions
from pluriverse.solvers.sap.joint_terms import joint_term_functions
from pluriverse.solvers.sap.workspace import SPEED_LIMIT, sap_struct


@functools.cache
def objective_functions(real: Any, linear: Any, dynamics_real: Any, moments: bool = False) -> SimpleNamespace:
    """Return `evaluate_terms` and `gradient_norms` for the given precisions, with or without moments."""
    vec3 = vec3_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    cone = cone_functions(real)
    unprojected, project, cone_cost = cone.unprojected, cone.project, cone.cost
    turning = cone_moment_functions(real)
    project_moments, moment_cost = turning.project, turning.moment_cost
    dof_objective = joint_term_functions(real).dof_objective
    speed_objective = joint_term_functions(real).speed_objective

    @wp.func(inline=True)
    def evaluate_terms(topology: Topology, sap: SapData, world: int, dt: real) -> real:
        """Write the impulse of every term, and the curvature of the one-dof terms; return their cost."""
        cost = real(0.0)
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            rn = sap.contact_rn[slot]
            if rn > real(0.0):
                rt = sap.contact_rt[slot]
                y = unprojected(sap.contact_velocity[slot], sap.contact_bias[slot], rt, rn)
                if wp.static(moments):
                    ra = sap.contact_ra[slot]
                    gamma, tau = project_moments(
                        y,
                        -sap.contact_spin[slot] / ra,
                        sap.contact_mu[slot],
                        sap.contact_mu_moment[slot],
                        rt,
                        ra,
                        rn,
                    )
                    sap.contact_impulse[slot] = gamma
                    sap.contact_moment[slot] = tau
                    cost += cone_cost(gamma, rt, rn) + moment_cost(tau, ra)
                else:
                    gamma = project(y, sap.contact_mu[slot], rt, rn, sap.contact_soft[slot])
                    sap.contact_impulse[slot] = gamma
                    cost += cone_cost(gamma, rt, rn)
        template = topology.world_template[world]
        dof0 = topology.world_dof[world]
        for dof in range(dof0, dof0 + topology.template_dof[template + 1] - topology.template_dof[template]):
            terms = sap.dof_terms[dof]
            impulse, curvature = real(0.0), real(0.0)
            if terms != 0:
                term = dof_objective(
                    terms,
                    sap.velocity[dof],
                    dt,
                    sap.drive_offset[dof],
                    sap.drive_gain[dof],
                    sap.drive_limit[dof],
                    sap.limit_lower_bias[dof],
                    sap.limit_upper_bias[dof],
                    sap.limit_regularization[dof],
                    sap.friction_regularization[dof],
                    sap.friction_impulse[dof],
                )
                if terms & SPEED_LIMIT:
                    term += speed_objective(
                        sap.velocity[dof], sap.speed_limit[dof], sap.speed_regularization[dof]
                    )
                cost += term[0]
                impulse = term[1]
                curvature = term[2]
            sap.dof_impulse[dof] = impulse
            sap.dof_curvature[dof] = curvature
        return cost

    @wp.func(inline=True)
    def gradient_norms(topology: Topology, dynamics: DynamicsData, sap: SapData, world: int) -> vec3:
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
