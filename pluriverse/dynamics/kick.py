"""Kick stage: the velocity after a step without constraints, and the part of it that velocity products take.

Reads   joint_armature; workspace: dof_force, dof_product, factor_row, dof_velocity, tree_energy
Writes  workspace: dof_velocity_free, dof_kick, tree_regime

    v* = v0 + dt A^-1 (dof_force + c) - u,    u = dt A^-1 c

with the velocity products c, shortened where the step does not resolve them (`balance.py`).
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.balance import CALM, DRIFTING, SWINGING, SWINGING_DOFS
from pluriverse.dynamics.spin import spin_functions
from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import precision_name
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.model import Model, Topology
from pluriverse.types import JointType

# |u|_M / |v|_M beyond which u is shortened. A rigid body that rotates freely by an angle a in a step has a.
PRODUCT_LIMIT = wp.constant(0.5)
# (|u|_M / |v|_M)^2 up to which nothing is corrected. The square is also the error of a step relative to v: a
# million steps change 1e-6 of v, which is the rounding of the state. Robots at rest stay below.
CALM_RATIO = wp.constant(1e-12)


@made_once
def kick_functions(real: Any) -> SimpleNamespace:
    """Return `solve_world_velocity`, the stage for one world, for scalars of type `real`."""
    data_struct = workspace_struct(real)
    ltdl_solve, ltdl_solve_pair = packed_rows(real).ltdl_solve, packed_rows(real).ltdl_solve_pair
    numbers = number_functions(real)
    split_kick, join_kick = numbers.split_kick, numbers.join_kick
    numbers_dot, weighted_square = numbers.numbers_dot, numbers.weighted_square
    does_spin = spin_functions(real).does_spin

    @wp.func
    def is_balanced(topology: Topology, data: data_struct, world: int, tree: int) -> bool:
        """Return whether a tree, counted from the first of its template, is kept in balance."""
        index = topology.template_tree[topology.world_template[world]] + tree
        if topology.tree_dof_end[index] == topology.tree_dof[index]:
            return False
        if data.tree_prescribed[topology.world_tree[world] + tree] != 0:
            return False
        return not does_spin(topology, data, world, tree)

    @wp.func(inline=stage_hint())
    def solve_world_velocity(
        world: int,
        topology: wp.ref[Topology],
        joint_armature: wp.array[float],
        dt: real,
        data: wp.ref[data_struct],
    ):
        """Compute what the kick stage writes of one world."""
        template = topology.world_template[world]
        first_dof = topology.template_dof[template]
        first_tree = topology.template_tree[template]
        tree_base = topology.world_tree[world]
        dof_base = topology.world_dof[world]
        row_base = topology.world_row[world]
        for tree in range(topology.template_tree[template + 1] - first_tree):
            begin = topology.tree_dof[first_tree + tree]
            end = topology.tree_dof_end[first_tree + tree]
            balanced = is_balanced(topology, data, world, tree)
            energy = data.tree_energy[tree_base + tree]
            first = dof_base + begin
            kicked = split_kick(
                data.dof_force,
                data.dof_product,
                balanced,
                dt,
                data.dof_velocity_free,
                data.dof_kick,
                first,
                end - begin,
            )
            regime = int(CALM)
            share = real(0.0)
            if kicked != 0:
                ltdl_solve_pair(
                    data.factor_row,
                    row_base,
                    topology.dof_parent,
                    topology.dof_depth,
                    topology.dof_row,
                    first_dof,
                    begin,
                    end,
                    data.dof_velocity_free,
                    data.dof_kick,
                    dof_base,
                )
                energy += real(0.5) * weighted_square(
                    data.dof_velocity,
                    joint_armature,
                    dof_base,
                    topology.dof_public,
                    first_dof + begin,
                    first,
                    end - begin,
                )
                products = numbers_dot(data.dof_kick, data.dof_product, first, end - begin)
                products *= real(0.5) * dt
                share = real(1.0)
                limit = real(PRODUCT_LIMIT) * real(PRODUCT_LIMIT) * energy
                if products > limit:
                    share = wp.sqrt(limit / products)
                if products > real(CALM_RATIO) * energy:
                    root = topology.template_node[template] + topology.tree_node[first_tree + tree]
                    is_free = topology.node_type[root] == JointType.FREE
                    regime = int(DRIFTING)
                    if end - begin > SWINGING_DOFS and not is_free:
                        regime = int(SWINGING)
            else:
                ltdl_solve(
                    data.factor_row,
                    row_base,
                    topology.dof_parent,
                    topology.dof_depth,
                    topology.dof_row,
                    first_dof,
                    begin,
                    end,
                    data.dof_velocity_free,
                    dof_base,
                )
            data.tree_regime[tree_base + tree] = regime
            join_kick(data.dof_velocity, share, data.dof_velocity_free, data.dof_kick, first, end - begin)

    return SimpleNamespace(solve_world_velocity=solve_world_velocity)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    data_struct = workspace_struct(real)
    solve_world_velocity = kick_functions(real).solve_world_velocity

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.kick.{precision_name(real)}")
    def solve_free_velocity(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        dt: real,  # s
        # workspace
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world >= 0:
            solve_world_velocity(world, topology, joint_armature, dt, data)

    return SimpleNamespace(solve_free_velocity=solve_free_velocity)


def solve_free_velocities(model: Model, worlds: wp.array, workspace: Workspace, dt: float) -> None:
    """Compute `dof_velocity_free` and `dof_kick` for a step of `dt` [s], after `factorize_mass_matrix`."""
    launch_kernel(
        _kernels(workspace.real).solve_free_velocity,
        dim=worlds.size,
        inputs=[worlds, model.topology, model.joint_armature, workspace.real(dt), workspace.data],
        device=model.device,
    )
