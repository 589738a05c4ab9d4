"""Drives as MuJoCo actuators: their structure. `joint_kernels` computes their gains.

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

from pluriverse.solvers.mujoco.mapping.joints import EFFORT_UNLIMITED
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan
from pluriverse.types import JointTargetMode

POSITION, VELOCITY, EFFORT = range(3)
"""Meaning of the control of an actuator."""


@dataclass
class DrivePlan:
    """The actuators of the drives of a group, in the order of MuJoCo."""

    control: list[int] = field(default_factory=list)
    """`POSITION`, `VELOCITY` or `EFFORT`."""
    dof: list[int] = field(default_factory=list)
    """World-local degree of freedom."""
    joint: list[int] = field(default_factory=list)
    """MuJoCo's joint."""
    axis_index: list[int] = field(default_factory=list)
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
    modes = rows.gather("joint_target_mode", "dof", worlds[:1])[0]
    result = DrivePlan()
    for number, joint in enumerate(plan.joints):
        if joint.kind is MujocoJoint.FREE:
            continue
        is_ball = joint.kind is MujocoJoint.BALL
        for axis_index in range(3 if is_ball else 1):
            dof = joint.dof + axis_index
            for control in _CONTROLS[JointTargetMode(int(modes[dof]))]:
                result.control.append(control)
                result.dof.append(dof)
                result.joint.append(number)
                result.axis_index.append(axis_index if is_ball else -1)
    return result


def effort_limited_drives(rows: ModelRows, drives: DrivePlan, worlds: np.ndarray) -> np.ndarray:
    """Return which actuators are limited themselves: those of ball joints with a limit, shape [actuator]."""
    effort = rows.gather("joint_effort_limit", "dof", worlds)[:, np.array(drives.dof, dtype=np.int64)]
    is_ball = np.array(drives.axis_index, dtype=np.int64) >= 0
    result: np.ndarray = is_ball & (effort < EFFORT_UNLIMITED).any(axis=0)
    return result
