"""Inspection of one world's convex problem as dense arrays, which the solver itself never forms."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.precision import kernel_module
from pluriverse.model import Model, Topology
from pluriverse.solvers.sap.hessian import hessian_functions
from pluriverse.solvers.sap.objective import objective_functions
from pluriverse.solvers.sap.sweeps import sweep_functions
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions


@dataclass(frozen=True)
class ConvexProblem:
    """The objective of one world at the velocities of its last step; dofs in the solver's internal order."""

    velocity: np.ndarray
    """Velocity at which the rest was evaluated [rad/s or m/s], shape [dof]."""
    velocity_free: np.ndarray
    """Velocity v* of free motion [rad/s or m/s], shape [dof]."""
    dynamics_matrix: np.ndarray
    """A = M + armature + dt damping, shape [dof, dof]."""
    gradient: np.ndarray
    """Gradient of the objective [N·s or N·m·s], shape [dof]."""
    hessian: np.ndarray
    """Hessian of the objective, shape [dof, dof]."""


@made_once
def _kernels(real: Any, linear: Any, dynamics_real: Any, equality: bool, moments: bool) -> SimpleNamespace:
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    objective = objective_functions(real, linear, dynamics_real, equality, moments)
    begin_momenta = objective.begin_momenta
    evaluate_terms, gradient_norms = objective.evaluate_terms, objective.gradient_norms
    measure_velocity = world_motion_functions(real, linear, dynamics_real, equality, moments).measure_velocity
    joint_impulses = sweep_functions(real, linear, dynamics_real, equality, moments).joint_impulses
    hessian = hessian_functions(real, linear, dynamics_real, equality, moments)
    find_coupling, assemble = hessian.find_coupling, hessian.assemble
    names = (real, linear, dynamics_real)
    stage = "pluriverse.solvers.sap.inspection" + ("_equality" if equality else "")
    stage += "_moments" if moments else ""

    @wp.kernel(enable_backward=False, module=kernel_module(stage, *names))
    def assemble_hessian(
        worlds: wp.array[int],
        topology: Topology,
        dt: real,
        dynamics: DynamicsData,
        sap: SapData,
        coupled_count: wp.array[int],  # [slot]
    ):
        slot, _ = wp.tid()
        world = worlds[slot]
        if world < 0:
            return
        measure_velocity(topology, dynamics, sap, world)
        begin_momenta(topology, dynamics, sap, world)
        evaluate_terms(topology, sap, world, dt, 1)
        joint_impulses(topology, dynamics, sap, world)
        gradient_norms(topology, sap, world)
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        dof0 = topology.world_dof[world]
        for tree in range(topology.template_tree[template + 1] - first_tree):
            if sap.tree_active[topology.world_tree[world] + tree] == 0:  # moves freely, at its minimum
                for dof in range(
                    topology.tree_dof[first_tree + tree], topology.tree_dof_end[first_tree + tree]
                ):
                    sap.gradient[dof0 + dof] = real(0.0)
        count = find_coupling(topology, sap, world)
        assemble(topology, dynamics, sap, world, count, 0, world, real(0.0))
        coupled_count[slot] = count

    return SimpleNamespace(assemble_hessian=assemble_hessian)


def convex_problem(
    model: Model, world: int, dynamics: Workspace, sap: SapWorkspace, *, dt: float
) -> ConvexProblem:
    """Return the problem of `world` at `sap.velocity`, for the terms of the last step of `dt` [s]."""
    coupled = wp.zeros(1, dtype=int, device=model.device)
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real, sap.has_equality, sap.has_moments).assemble_hessian,
        dim=1,
        inputs=[
            wp.array([world], dtype=int, device=model.device),
            model.topology,
            dt,
            dynamics.data,
            sap.data,
        ],
        outputs=[coupled],
        device=model.device,
    )
    template = model.templates[model.world_template[world]]
    topology = model.topology
    first = int(topology.world_dof.numpy()[world])
    row_first = int(topology.world_row.numpy()[world])
    dofs = slice(first, first + template.dof_count)
    rows = slice(row_first, row_first + template.row_size)
    hessian = _from_rows(template, sap.hessian_row.numpy()[rows].astype(np.float64))
    if coupled.numpy()[0]:
        tree_first = int(topology.world_tree.numpy()[world])
        trees = slice(tree_first, tree_first + template.tree_count)
        _insert_blocks(template, hessian, world, sap, trees)
    return ConvexProblem(
        velocity=sap.velocity.numpy()[dofs],
        velocity_free=dynamics.dof_velocity_free.numpy()[dofs].astype(np.float64),
        dynamics_matrix=_from_rows(template, dynamics.mass_row.numpy()[rows].astype(np.float64)),
        gradient=sap.gradient.numpy()[dofs],
        hessian=hessian,
    )


def _from_rows(template: Any, rows: np.ndarray) -> np.ndarray:
    """Return the dense symmetric matrix of packed rows."""
    dense = np.zeros((template.dof_count, template.dof_count))
    for dof in range(template.dof_count):
        above = dof
        while above >= 0:
            entry = rows[template.dof_row[dof] + template.dof_depth[above]]
            dense[dof, above] = dense[above, dof] = entry
            above = template.dof_parent[above]
    return dense


def _insert_blocks(template: Any, hessian: np.ndarray, world: int, sap: SapWorkspace, trees: slice) -> None:
    """Overwrite the dense matrix by the blocks of the coupled trees."""
    count = template.tree_count
    location_first = int(sap.world_location.numpy()[world])
    location = sap.block_location.numpy()[location_first : location_first + count**2].reshape(count, count)
    values = sap.block_value.numpy()[int(sap.world_block.numpy()[world]) :]
    words_first = int(sap.world_adjacency.numpy()[world])
    words = (count + 63) // 64
    bits = sap.adjacency.numpy()[words_first : words_first + count * words].reshape(count, words)
    position = sap.tree_position.numpy()[trees]
    coupled = sap.tree_coupled.numpy()[trees]
    for i in range(count):
        rows = slice(template.tree_dof[i], template.tree_dof_end[i])
        for j in range(count):
            columns = slice(template.tree_dof[j], template.tree_dof_end[j])
            linked = (int(bits[j, i // 64]) >> (i % 64)) & 1
            if not (coupled[i] and coupled[j] and position[i] >= position[j] and (i == j or linked)):
                continue
            shape = (columns.stop - columns.start, rows.stop - rows.start)  # column-major
            start = location[i, j]
            block = values[start : start + shape[0] * shape[1]].reshape(shape).T.astype(np.float64)
            if i == j:
                block = np.tril(block) + np.tril(block, -1).T
            hessian[rows, columns] = block
            hessian[columns, rows] = block.T
