"""Factorization stage: A = L^T D L of the mass matrix, in packed rows and without fill.

Reads   workspace: mass_row
Writes  workspace: factor_row

and the solution of A x = b with it ([Featherstone2008] section 6.5).
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.precision import precision_name
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.model import Model, Topology


@made_once
def factorization_functions(real: Any) -> SimpleNamespace:
    """Return `factorize_world_rows`, the factors of one world, for scalars of type `real`."""
    data_struct = workspace_struct(real)
    ltdl_factorize = packed_rows(real).ltdl_factorize
    rows_copy = packed_rows(real).rows_copy

    @wp.func(inline=stage_hint())
    def factorize_world_rows(world: int, topology: wp.ref[Topology], data: wp.ref[data_struct]):
        """Compute the factors of the mass matrix of one world."""
        template = topology.world_template[world]
        first_dof = topology.template_dof[template]
        dof_count = topology.template_dof[template + 1] - first_dof
        row_base = topology.world_row[world]
        rows_copy(data.mass_row, row_base, topology.template_row_size[template], data.factor_row, row_base)
        ltdl_factorize(
            data.factor_row,
            row_base,
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            first_dof,
            0,
            dof_count,
        )

    return SimpleNamespace(factorize_world_rows=factorize_world_rows)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    data_struct = workspace_struct(real)
    ltdl_solve = packed_rows(real).ltdl_solve
    factorize_world_rows = factorization_functions(real).factorize_world_rows

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.factorization.{precision_name(real)}")
    def factorize_mass_rows(
        worlds: wp.array[int],  # [slot]
        topology: Topology,
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world >= 0:
            factorize_world_rows(world, topology, data)

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.factorization.{precision_name(real)}")
    def solve_free_velocity(
        worlds: wp.array[int],  # [slot]
        topology: Topology,
        dt: real,  # s
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_dof = topology.template_dof[template]
        dof_count = topology.template_dof[template + 1] - first_dof
        dof_base = topology.world_dof[world]
        for dof in range(dof_base, dof_base + dof_count):
            data.dof_velocity_free[dof] = dt * data.dof_force[dof]
        ltdl_solve(
            data.factor_row,
            topology.world_row[world],
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            first_dof,
            0,
            dof_count,
            data.dof_velocity_free,
            dof_base,
        )
        for dof in range(dof_base, dof_base + dof_count):
            data.dof_velocity_free[dof] = data.dof_velocity[dof] + data.dof_velocity_free[dof]

    return SimpleNamespace(factorize_mass_rows=factorize_mass_rows, solve_free_velocity=solve_free_velocity)


def factorize_mass_matrix(model: Model, worlds: wp.array, workspace: Workspace) -> None:
    """Compute `workspace.factor_row` from `workspace.mass_row`, after `assemble_mass_matrix`."""
    launch_kernel(
        _kernels(workspace.real).factorize_mass_rows,
        dim=worlds.size,
        inputs=[worlds, model.topology, workspace.data],
        device=model.device,
    )


def solve_free_velocity(model: Model, worlds: wp.array, workspace: Workspace, dt: float) -> None:
    """Compute `workspace.dof_velocity_free` = v0 + dt A^-1 dof_force, after `factorize_mass_matrix`."""
    launch_kernel(
        _kernels(workspace.real).solve_free_velocity,
        dim=worlds.size,
        inputs=[worlds, model.topology, workspace.real(dt), workspace.data],
        device=model.device,
    )
