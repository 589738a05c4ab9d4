"""Packed rows of the Hessian that every direction begins with: those of joints, and the factors of a tree.

Reads   mass_row and factor_row of the dynamics, dof_curvature
Writes  hessian_row
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
def tree_factor_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return the functions for the given precisions.

    These are `write_joint_hessian`, `factorize_tree`, `factorize_joints`, `solve_tree_up`, `solve_tree_down`.
    """
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    rows = packed_rows(linear, real)
    ltdl_factorize, ltdl_solve_up, ltdl_solve_down = (
        rows.ltdl_factorize,
        rows.ltdl_solve_up,
        rows.ltdl_solve_down,
    )
    diagonal_add, is_diagonal_positive = rows.diagonal_add, rows.is_diagonal_positive
    rows_copy = packed_rows(dynamics_real, linear).rows_copy
    numbers_any = number_functions(real).numbers_any

    @wp.func(inline=True)
    def take_rows(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, source: wp.array(dtype=dynamics_real)
    ):
        """Copy the packed rows of the part that is solved from those of the dynamics."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        begin, end = sap.part_dof[world], sap.part_dof_end[world]
        first_row, end_row = int(0), int(topology.template_row_size[template])
        if begin > 0:
            first_row = topology.dof_row[first + begin]
        if first + end < topology.template_dof[template + 1]:
            end_row = topology.dof_row[first + end]
        row0 = topology.world_row[world] + first_row
        rows_copy(source, row0, end_row - first_row, sap.hessian_row, row0)

    @wp.func(inline=True)
    def write_joint_hessian(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        diag_shift: real,
    ):
        """Write A + diag(h), with the curvature h of the terms of joints."""
        template = topology.world_template[world]
        begin, end = sap.part_dof[world], sap.part_dof_end[world]
        take_rows(topology, sap, world, dynamics.mass_row)
        diagonal_add(
            sap.hessian_row,
            topology.world_row[world],
            topology.dof_depth,
            topology.dof_row,
            topology.template_dof[template] + begin,
            end - begin,
            sap.dof_curvature,
            topology.world_dof[world] + begin,
            diag_shift,
        )

    @wp.func(inline=True)
    def factorize_tree(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, tree: int) -> int:
        """Factorize the rows of a tree; return 0 if they were not positive definite to rounding."""
        template = topology.world_template[world]
        row_tree = topology.template_tree[template] + tree
        return ltdl_factorize(
            sap.hessian_row,
            topology.world_row[world],
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            topology.template_dof[template],
            topology.tree_dof[row_tree],
            topology.tree_dof_end[row_tree],
        )

    @wp.func(inline=True)
    def factorize_joints(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        diag_shift: real,
    ) -> int:
        """Factorize A + diag(h) of the active trees; return 0 if it was not positive definite to rounding.

        Where no term of a joint has a curvature, the factors are those of the mass matrix.
        """
        template = topology.world_template[world]
        tree0 = topology.world_tree[world]
        if wp.static(linear is dynamics_real):
            begin, end = sap.part_dof[world], sap.part_dof_end[world]
            dof0 = topology.world_dof[world] + begin
            if diag_shift == real(0.0) and numbers_any(sap.dof_curvature, dof0, end - begin) == 0:
                take_rows(topology, sap, world, dynamics.factor_row)
                return is_diagonal_positive(
                    sap.hessian_row,
                    topology.world_row[world],
                    topology.dof_depth,
                    topology.dof_row,
                    topology.template_dof[template] + begin,
                    end - begin,
                )
        write_joint_hessian(topology, dynamics, sap, world, diag_shift)
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            if sap.tree_active[tree0 + tree] != 0:
                if factorize_tree(topology, sap, world, tree) == 0:
                    return 0
        return 1

    @wp.func(inline=True)
    def solve_tree_up(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, tree: int):
        """Replace `direction` by L^-T direction, from the factors H = L^T D L."""
        template = topology.world_template[world]
        row_tree = topology.template_tree[template] + tree
        ltdl_solve_up(
            sap.hessian_row,
            topology.world_row[world],
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            topology.template_dof[template],
            topology.tree_dof[row_tree],
            topology.tree_dof_end[row_tree],
            sap.direction,
            topology.world_dof[world],
        )

    @wp.func(inline=True)
    def solve_tree_down(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, tree: int):
        """Replace `direction` by L^-1 D^-1 direction."""
        template = topology.world_template[world]
        row_tree = topology.template_tree[template] + tree
        ltdl_solve_down(
            sap.hessian_row,
            topology.world_row[world],
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            topology.template_dof[template],
            topology.tree_dof[row_tree],
            topology.tree_dof_end[row_tree],
            sap.direction,
            topology.world_dof[world],
        )

    return SimpleNamespace(
        write_joint_hessian=write_joint_hessian,
        factorize_tree=factorize_tree,
        factorize_joints=factorize_joints,
        solve_tree_up=solve_tree_up,
        solve_tree_down=solve_tree_down,
    )
