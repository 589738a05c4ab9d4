"""Effort stage: efforts of the drives on each degree of freedom, as means over the solver steps of a step.

Reads   joint_q and joint_qd around a solver step, targets, gains, efforts
Writes  joint_torques

`SolverSAP` evaluates the drive at the end of the solver step, stiffness (target - q) + damping (target
velocity - v) + effort; MuJoCo at its beginning. Both clamp it to the effort limit. It excludes losses, limits
of the joint and external forces (`joint_f`). For joints without a drive, and for those that a stage drives in
place of the model, such as `JointActuators`, `joint_f` is the effort. Drives stiffer than a step resolves are
softened by `SolverSAP`; the effort is that of the gains of the model.
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Control, Model, State
from pluriverse.model.drive_effort import DriveArrays, drive_arrays, drive_effort
from pluriverse.tensors.table import RobotTable

_MODULE = "pluriverse.tensors.efforts"


@wp.kernel(enable_backward=False, module=_MODULE)
def add_efforts(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: RobotTable,
    drives: DriveArrays,
    joint_q: wp.array[float],  # [coord]
    joint_qd: wp.array[float],  # [dof]
    weight: float,
    joint_torques: wp.array2d[float],  # [row, dof] N or N·m
):
    """Add the efforts of the robots of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        first = table.dof_start[row]
        for entry in range(first, table.dof_start[row + 1]):
            dof = table.dof[entry]
            q = float(0.0)
            if table.axis[entry] < 0:
                q = joint_q[table.coord[entry]]
            effort = drive_effort(drives, dof, q, joint_qd[dof])
            joint_torques[row, entry - first] = joint_torques[row, entry - first] + weight * effort


def launch_add_efforts(
    model: Model,
    worlds: wp.array[int],
    table: Any,
    control: Control,
    stage_driven: wp.array[int],
    state: State,
    weight: float,
    joint_torques: Any,
) -> None:
    """Add the efforts at a state, each times `weight`."""
    drives = drive_arrays(model, control, stage_driven)
    launch_kernel(
        add_efforts,
        dim=worlds.size,
        inputs=[worlds, table, drives, state.joint_q, state.joint_qd, weight],
        outputs=[joint_torques],
        device=model.device,
    )
