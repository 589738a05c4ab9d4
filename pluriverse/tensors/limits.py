"""Limits stage: what bounds the joints of each robot, and where they begin, at a reset.

Reads   limits, effort and velocity limits of the model; effort limits of stages that drive joints instead
Writes  joint_lower, joint_upper, joint_effort_limits, joint_velocity_limits; default_joint_positions

These change where an environment gets another variant or random limits. Both come before its reset.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model
from pluriverse.stages import StagedSimulation
from pluriverse.tensors.table import SCALAR, RobotTable

_MODULE = "pluriverse.tensors.limits"


@wp.func
def is_selected(table: RobotTable, mask: wp.array[bool], world: int) -> bool:
    """Return whether a world of the list is meant and there."""
    selected = world >= 0 and world < table.world_row.shape[0] - 1
    if selected and mask.shape[0] > 0:
        selected = mask[world]
    return selected


@wp.kernel(enable_backward=False, module=_MODULE)
def read_limits(
    worlds: wp.array[int],
    mask: wp.array[bool],  # [world]; empty: all of `worlds`
    table: RobotTable,
    limit_lower: wp.array[float],  # [dof]
    limit_upper: wp.array[float],  # [dof]
    effort_limit: wp.array[float],  # [dof]
    velocity_limit: wp.array[float],  # [dof]
    # out
    joint_lower: wp.array2d[float],  # [row, column]
    joint_upper: wp.array2d[float],  # [row, column]
    joint_effort_limits: wp.array2d[float],  # [row, column]
    joint_velocity_limits: wp.array2d[float],  # [row, column]
):
    """Read the limits of the robots of a world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if not is_selected(table, mask, world):
        return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        first = table.dof_start[row]
        for entry in range(first, table.dof_start[row + 1]):
            dof = table.dof[entry]
            joint_lower[row, entry - first] = limit_lower[dof]
            joint_upper[row, entry - first] = limit_upper[dof]
            joint_effort_limits[row, entry - first] = effort_limit[dof]
            joint_velocity_limits[row, entry - first] = velocity_limit[dof]


@wp.kernel(enable_backward=False, module=_MODULE)
def read_stage_limits(
    worlds: wp.array[int],
    mask: wp.array[bool],  # [world]; empty: all of `worlds`
    table: RobotTable,
    driven: wp.array[int],  # [entry of the table] which of the stage's limits, -1 for none
    limits: wp.array[float],  # [driven degree of freedom]
    # out
    joint_effort_limits: wp.array2d[float],  # [row, column]
):
    """Read the effort limits of a stage, where it drives robots of a world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if not is_selected(table, mask, world):
        return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        first = table.dof_start[row]
        for entry in range(first, table.dof_start[row + 1]):
            if driven[entry] >= 0:
                joint_effort_limits[row, entry - first] = limits[driven[entry]]


@wp.kernel(enable_backward=False, module=_MODULE)
def read_default_positions(
    worlds: wp.array[int],
    mask: wp.array[bool],  # [world]; empty: all of `worlds`
    table: RobotTable,
    joint_q: wp.array[float],  # [coordinate]
    # out
    default_joint_positions: wp.array2d[float],  # [row, column]
):
    """Read the initial positions of the robots of a world; 0 for axes of ball joints."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if not is_selected(table, mask, world):
        return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        first = table.dof_start[row]
        for entry in range(first, table.dof_start[row + 1]):
            if table.axis[entry] == SCALAR:
                default_joint_positions[row, entry - first] = joint_q[table.coord[entry]]


class Limits:
    """Limits and initial positions of the joints of robots.

    Args:
        model: Model.
        table: `RobotTable` of the robots.
        dofs: Degree of freedom of each entry of the table.
        out: Has the arrays that are written, as `RobotTensors` does.
    """

    def __init__(self, model: Model, table: Any, dofs: np.ndarray, out: Any) -> None:
        self._model, self._table, self._dofs = model, table, dofs
        self._effort_limits = out.joint_effort_limits
        self._outputs = [
            out.joint_lower,
            out.joint_upper,
            out.joint_effort_limits,
            out.joint_velocity_limits,
        ]
        self._default_positions = out.default_joint_positions
        self._driven: list[list[wp.array]] = []

    def find_stages(self, simulation: StagedSimulation) -> None:
        """Look which stages drive joints in place of the model."""
        self._driven = []
        for stage in simulation.stages:
            limits = stage.drive_parameters.get("joint_effort_limit")
            if limits is None:
                continue
            number = np.full(self._model.joint_dof_count, -1, dtype=np.int32)
            number[stage.driven_dofs] = np.arange(len(stage.driven_dofs))
            entries = wp.array(number[self._dofs], dtype=wp.int32, device=self._model.device)
            self._driven.append([entries, limits])

    def read(self, worlds: wp.array[int], mask: wp.array[bool]) -> None:
        """Read the limits of worlds."""
        model = self._model
        limits = [
            model.joint_limit_lower,
            model.joint_limit_upper,
            model.joint_effort_limit,
            model.joint_velocity_limit,
        ]
        self._launch(read_limits, worlds, mask, limits, self._outputs)
        for inputs in self._driven:
            self._launch(read_stage_limits, worlds, mask, inputs, [self._effort_limits])

    def read_defaults(self, worlds: wp.array[int], mask: wp.array[bool], joint_q: wp.array[float]) -> None:
        """Read where the joints of worlds begin."""
        self._launch(read_default_positions, worlds, mask, [joint_q], [self._default_positions])

    def _launch(
        self,
        kernel: Any,
        worlds: wp.array[int],
        mask: wp.array[bool],
        inputs: list[Any],
        outputs: list[Any],
    ) -> None:
        inputs = [worlds, mask, self._table, *inputs]
        launch_kernel(kernel, dim=worlds.size, inputs=inputs, outputs=outputs, device=self._model.device)
