"""Objective of a world: cost and impulses of all its terms, and the gradient, at given velocities."""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import vec3_type
from pluriverse.math.row_products import multiply_rows_function
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.active_trees import active_dofs_function
from pluriverse.solvers.sap.contact_objective import contact_objective_functions
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.joint_objective import joint_objective_functions
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
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
    multiply_rows = multiply_rows_function(dynamics_real, real)
    active_dofs = active_dofs_function(real, linear)
    numbers = number_functions(real)
    numbers_subtract, numbers_work = numbers.numbers_subtract, numbers.numbers_work
    weighted_errors, weighted_gradient = numbers.weighted_errors, numbers.weighted_gradient

    @wp.func(inline=True)
    def multiply_by_mass(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        x: wp.array(dtype=real),
        y: wp.array(dtype=real),
    ):
        """Write A x into y, for the degrees of freedom of active trees."""
        dof0 = topology.world_dof[world]
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            multiply_rows(
                dynamics.mass_row,
                topology.world_row[world],
                topology.dof_parent,
                topology.dof_depth,
                topology.dof_row,
                topology.template_dof[topology.world_template[world]],
                begin - dof0,
                size,
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
        dof0 = topology.world_dof[world] + sap.part_dof[world]
        dof_count = sap.part_dof_end[world] - sap.part_dof[world]
        numbers_subtract(sap.velocity, sap.velocity_free, dof0, dof_count, sap.gradient)
        multiply_by_mass(topology, dynamics, sap, world, sap.gradient, sap.residual)
        multiply_by_mass(topology, dynamics, sap, world, sap.velocity_free, sap.momentum_free)

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
        """Write the gradient; return (|D grad|, |D A v|, |D impulse|), D = diag(A)^-1/2, of active trees.

        Their squares of each tree are written, too.
        """
        sums = vec3()
        tree0 = topology.world_tree[world]
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            own = weighted_gradient(
                sap.residual, sap.impulse, sap.momentum_free, sap.dof_scale, vec3(), begin, size, sap.gradient
            )
            sap.tree_gradient[tree0 + tree] = own[0]
            sap.tree_momentum[tree0 + tree] = wp.max(own[1], own[2])
            sums += own
        return vec3(wp.sqrt(sums[0]), wp.sqrt(sums[1]), wp.sqrt(sums[2]))

    @wp.func(inline=True)
    def joint_error(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, tolerance: real
    ) -> tuple[real, real]:
        """Compare the impulses of joints with those expected in `impulse`.

        Returns by how much |D difference| exceeds the tolerance times |D impulse| where that is most of all
        trees, and 1/2 (v - v*) . impulse of all, with D as in `gradient_norms`.
        """
        most = real(-wp.inf)
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            if size > 0:
                sums = weighted_errors(sap.dof_impulse, sap.impulse, sap.dof_scale, begin, size)
                excess = wp.sqrt(sums[0]) - tolerance * wp.sqrt(sums[1])
                # NaN is no small error.
                if not excess <= most:
                    most = excess
        dof0 = topology.world_dof[world] + sap.part_dof[world]
        dof_count = sap.part_dof_end[world] - sap.part_dof[world]
        work = numbers_work(sap.dof_impulse, sap.velocity, sap.velocity_free, dof0, dof_count)
        return most, real(0.5) * work

    return SimpleNamespace(
        multiply_by_mass=multiply_by_mass,
        begin_momenta=begin_momenta,
        evaluate_terms=evaluate_terms,
        gradient_norms=gradient_norms,
        joint_error=joint_error,
    )
