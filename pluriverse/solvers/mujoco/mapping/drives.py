"""Drives as MuJoCo's actuators, for all worlds of a group at once.

| Mode of the degree of freedom | Actuators |
| --- | --- |
| `POSITION` | one: gain `ke`, bias `-ke q - kd qd` |
| `VELOCITY` | one: gain `kd`, bias `-kd qd` |
| `POSITION_VELOCITY` | two: gain `ke`, bias `-ke q`; gain `kd`, bias `-kd qd` |
| `EFFORT` | one: gain 1 |
| `NONE` | none |
"""

from dataclasses import dataclass, field

import numpy as np

from pluriverse.model import poses
from pluriverse.solvers.mujoco.mapping.joints import EFFORT_UNLIMITED
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan
from pluriverse.types import JointTargetMode

POSITION, VELOCITY, EFFORT = range(3)
"""What the control of an actuator is."""


@dataclass
class DrivePlan:
    """The actuators of the drives of a group, in the order of MuJoCo."""

    control: list[int] = field(default_factory=list)
    """`POSITION`, `VELOCITY` or `EFFORT`."""
    dof: list[int] = field(default_factory=list)
    """World-local degree of freedom."""
    joint: list[int] = field(default_factory=list)
    """MuJoCo's joint."""
    place: list[int] = field(default_factory=list)
    """Which axis of that joint, for ball joints; -1 for others."""

    def __len__(self) -> int:
        return len(self.control)

    def controls(self, control: int, dof_count: int) -> np.ndarray:
        """Return the actuator of each degree of freedom that takes a control, -1 for none, shape [dof]."""
        result = np.full(dof_count, -1, dtype=np.int64)
        for actuator, (kind, dof) in enumerate(zip(self.control, self.dof, strict=True)):
            if kind == control:
                result[dof] = actuator
        return result


_CONTROLS = {
    JointTargetMode.NONE: (),
    JointTargetMode.POSITION: (POSITION,),
    JointTargetMode.VELOCITY: (VELOCITY,),
    JointTargetMode.POSITION_VELOCITY: (POSITION, VELOCITY),
    JointTargetMode.EFFORT: (EFFORT,),
}


def plan_drives(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> DrivePlan:
    """Return the actuators of worlds with the same modes."""
    modes = rows.take("joint_target_mode", "dof", worlds[:1])[0]
    result = DrivePlan()
    for number, joint in enumerate(plan.joints):
        if joint.kind is MujocoJoint.FREE:
            continue
        is_ball = joint.kind is MujocoJoint.BALL
        for place in range(3 if is_ball else 1):
            dof = joint.dof + place
            for control in _CONTROLS[JointTargetMode(int(modes[dof]))]:
                result.control.append(control)
                result.dof.append(dof)
                result.joint.append(number)
                result.place.append(place if is_ball else -1)
    return result


@dataclass
class DriveValues:
    """Gains of the actuators of a group, row by row."""

    gain: np.ndarray
    """Force per control, shape [row, actuator]."""
    bias: np.ndarray
    """Constant force, force per position, force per velocity, shape [row, actuator, 3]."""
    force_limited: np.ndarray
    """Whether the actuator itself is limited (that of a ball joint), shape [actuator]."""
    force_range: np.ndarray
    """Range of the force [N·m], shape [row, actuator, 2]."""
    axis: np.ndarray
    """Axis in MuJoCo's body about which an actuator turns a ball joint, shape [row, actuator, 3]."""


def compute_drive_values(
    rows: ModelRows, plan: StructurePlan, drives: DrivePlan, worlds: np.ndarray, joint_rotation: np.ndarray
) -> DriveValues:
    """Return the gains of the actuators; `joint_rotation` as in `Frames`."""
    dofs = np.array(drives.dof, dtype=np.int64)
    control = np.array(drives.control, dtype=np.int64)
    ke = rows.take("joint_target_ke", "dof", worlds)[:, dofs]
    kd = rows.take("joint_target_kd", "dof", worlds)[:, dofs]
    mode = rows.take("joint_target_mode", "dof", worlds)[:, dofs]
    is_ball = np.array(drives.place, dtype=np.int64) >= 0
    # Without a position target that could be told, a ball joint has no stiffness.
    position, velocity = control == POSITION, control == VELOCITY
    gain = np.select([position & ~is_ball, position, velocity], [ke, np.zeros_like(ke), kd], 1.0)
    bias = np.zeros((*ke.shape, 3))
    bias[..., 1] = np.where(position & ~is_ball, -ke, 0.0)
    damps = velocity | (position & (mode == JointTargetMode.POSITION))
    bias[..., 2] = np.where(damps, -kd, 0.0)
    effort = np.minimum(rows.take("joint_effort_limit", "dof", worlds)[:, dofs], EFFORT_UNLIMITED)
    limited = is_ball & (effort < EFFORT_UNLIMITED).any(axis=0)
    joints = np.array([plan.joints[joint].joint for joint in drives.joint], dtype=np.int64)
    unit = np.eye(3)[np.maximum(drives.place, 0)] if len(drives) else np.zeros((0, 3))
    rotation = joint_rotation[:, joints]
    axis = poses.rotate(rotation, np.broadcast_to(unit, (*rotation.shape[:-1], 3)))
    return DriveValues(gain, bias, limited, np.stack([-effort, effort], axis=-1), axis)
