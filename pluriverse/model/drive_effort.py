"""Effort of a drive: stiffness (target - q) + damping (target velocity - v) + effort, within its limit."""

import warp as wp

from pluriverse.math.bounds import bounded
from pluriverse.model.control import Control
from pluriverse.model.model import Model
from pluriverse.types import JointTargetMode

EFFORT_LIMIT = "joint_effort_limit"
# Arrays of the model that make a drive. Where all are 0 it is off: the limit removes its effort, including
# `joint_act`. The gains must be zero too, since MuJoCo's implicit integration adds the damping of a drive to
# that of the joint.
DRIVE_ARRAYS = ("joint_target_ke", "joint_target_kd", EFFORT_LIMIT)


@wp.struct
class DriveArrays:
    """Drives of the degrees of freedom; see `Model` and `Control`."""

    mode: wp.array[int]
    ke: wp.array[float]
    kd: wp.array[float]
    limit: wp.array[float]
    lower: wp.array[float]
    upper: wp.array[float]
    target_pos: wp.array[float]
    target_vel: wp.array[float]
    act: wp.array[float]
    force: wp.array[float]
    stage_driven: wp.array[int]
    """1 where a stage drives in place of the model, by `force`; empty for nowhere."""


@wp.func
def drive_feedforward(mode: int, limit: float, act: float) -> float:
    """Return what `joint_act` exerts on its own: nothing without a drive, and at most the effort limit."""
    if mode == JointTargetMode.NONE:
        return 0.0
    return bounded(act, -limit, limit)


@wp.func
def is_stage_driven(drives: DriveArrays, dof: int) -> bool:
    """Return whether a stage drives a degree of freedom in place of the model."""
    if drives.stage_driven.shape[0] == 0:
        return False
    return drives.stage_driven[dof] != 0


@wp.func
def drive_effort(drives: DriveArrays, dof: int, q: float, v: float) -> float:
    """Return what the drive of a degree of freedom exerts at a position and velocity [N or N·m].

    Without a drive, and where a stage drives, it is `force`, that of `Control.joint_f`.
    """
    mode = drives.mode[dof]
    if mode == JointTargetMode.NONE or is_stage_driven(drives, dof):
        return drives.force[dof]
    effort = drives.act[dof]
    if mode != JointTargetMode.EFFORT:
        target_velocity = float(0.0)
        if mode == JointTargetMode.VELOCITY:
            target_velocity = bounded(drives.target_vel[dof], drives.lower[dof], drives.upper[dof])
        elif mode != JointTargetMode.POSITION:
            target_velocity = drives.target_vel[dof]
        effort += drives.kd[dof] * (target_velocity - v)
        if mode != JointTargetMode.VELOCITY:
            target = bounded(drives.target_pos[dof], drives.lower[dof], drives.upper[dof])
            effort += drives.ke[dof] * (target - q)
    return bounded(effort, -drives.limit[dof], drives.limit[dof])


def drive_arrays(model: Model, control: Control, stage_driven: wp.array[int] | None = None) -> DriveArrays:
    """Return the drives of a model with the targets and efforts of a control.

    Args:
        model: The model.
        control: The control.
        stage_driven: 1 where a stage drives in place of the model, shape [dof]; None for nowhere.
    """
    drives = DriveArrays()
    if stage_driven is not None:
        drives.stage_driven = stage_driven
    drives.mode, drives.limit = model.joint_target_mode, model.joint_effort_limit
    drives.ke, drives.kd = model.joint_target_ke, model.joint_target_kd
    drives.lower, drives.upper = model.joint_target_lower, model.joint_target_upper
    drives.target_pos, drives.target_vel = control.joint_target_pos, control.joint_target_vel
    drives.act, drives.force = control.joint_act, control.joint_f
    return drives
