"""Command stage: copy targets and efforts that a policy writes to the control of the simulation.

Reads             joint_target_mode, joint_effort_limit, stage_driven
Reads and writes  the rows of commands, what they were last, and the control

An array of commands and the control hold the same numbers. The one written to since the last step wins; if
both were, the command. A joint without a drive (`JointTargetMode.NONE`) takes no `joint_act`: its efforts go
to `joint_f`, within the effort limit, unless a stage drives it in place of the model.
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Control, Model
from pluriverse.tensors.table import RobotTable
from pluriverse.types import JointTargetMode

_MODULE = "pluriverse.tensors.commands"


@wp.struct
class CommandArrays:
    """Targets and efforts of robots, for kernels; `RobotTensors` describes the arrays."""

    position: wp.array2d[float]
    velocity: wp.array2d[float]
    effort: wp.array2d[float]


@wp.func
def agreed(command: float, before: float, value: float) -> float:
    """Return the command if it is new, else the value in the control."""
    if command == before:
        return value
    return command


@wp.kernel(enable_backward=False, module=_MODULE)
def apply_commands(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    table: RobotTable,
    commands: CommandArrays,  # in and out
    before: CommandArrays,  # in and out: the commands when this was last called
    # model
    target_mode: wp.array[int],  # [dof]
    effort_limit: wp.array[float],  # [dof]
    stage_driven: wp.array[int],  # [dof] 1 where a stage drives in place of the model
    # control, in and out
    joint_target_pos: wp.array[float],  # [dof]
    joint_target_vel: wp.array[float],  # [dof]
    joint_act: wp.array[float],  # [dof]
    joint_f: wp.array[float],  # [dof]
):
    """Make the commands of the robots of one world agree with the control."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= table.world_row.shape[0] - 1:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        first = table.dof_start[row]
        for entry in range(first, table.dof_start[row + 1]):
            dof = table.dof[entry]
            column = entry - first
            value = agreed(
                commands.position[row, column], before.position[row, column], joint_target_pos[dof]
            )
            joint_target_pos[dof] = value
            commands.position[row, column] = value
            before.position[row, column] = value
            value = agreed(
                commands.velocity[row, column], before.velocity[row, column], joint_target_vel[dof]
            )
            joint_target_vel[dof] = value
            commands.velocity[row, column] = value
            before.velocity[row, column] = value
            if target_mode[dof] == JointTargetMode.NONE and stage_driven[dof] == 0:
                value = agreed(commands.effort[row, column], before.effort[row, column], joint_f[dof])
                if wp.abs(value) > effort_limit[dof]:
                    value = wp.sign(value) * effort_limit[dof]
                joint_f[dof] = value
            else:
                value = agreed(commands.effort[row, column], before.effort[row, column], joint_act[dof])
                joint_act[dof] = value
            commands.effort[row, column] = value
            before.effort[row, column] = value


def launch_commands(
    model: Model,
    worlds: wp.array[int],
    mask: wp.array[bool],
    table: Any,
    commands: Any,
    before: Any,
    stage_driven: wp.array[int],
    control: Control,
) -> None:
    """Synchronize commands and the control."""
    launch_kernel(
        apply_commands,
        dim=worlds.size,
        inputs=[
            worlds,
            mask,
            table,
            commands,
            before,
            model.joint_target_mode,
            model.joint_effort_limit,
            stage_driven,
        ],
        outputs=[
            control.joint_target_pos,
            control.joint_target_vel,
            control.joint_act,
            control.joint_f,
        ],
        device=model.device,
    )
