"""Drives as MuJoCo actuators: their structure. `joint_kernels` computes their gains.

| Mode of the degree of freedom | Actuators |
| --- | --- |
| `POSITION` | one: gain `ke`, bias `-ke q - kd qd` |
| `VELOCITY` | one: gain `kd`, bias `-kd qd` |
| `POSITION_VELOCITY` | two: gain `ke`, bias `-ke q`; gain `kd`, bias `-kd qd` |
| `EFFORT` | one: gain 1 |
| `NONE` | none |

The effort limit bounds the actuator (`forcerange`) where it is the only one on the joint, so that MuJoCo's
implicit integration leaves out its damping while it exerts the limit, as `SolverSAP` does. It bounds the
joint (`actuatorfrcrange`) where actuators share one, and where the document says so.
"""

from dataclasses import dataclass, field

import numpy as np

from pluriverse.solvers.mujoco.attributes.actuators import driven_dofs
from pluriverse.solvers.mujoco.mapping.joints import EFFORT_UNLIMITED, first_dofs, scalar_joints
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
    is_bounded: list[bool] = field(default_factory=list)
    """Whether the effort limit bounds the actuator, and not the joint."""

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
    others, summed = driven_dofs(rows, worlds), _summed_dofs(rows, worlds)
    result = DrivePlan()
    for number, joint in enumerate(plan.joints):
        if joint.kind is MujocoJoint.FREE:
            continue
        is_ball = joint.kind is MujocoJoint.BALL
        for axis_index in range(3 if is_ball else 1):
            dof = joint.dof + axis_index
            controls = _CONTROLS[JointTargetMode(int(modes[dof]))]
            is_alone = len(controls) == 1 and dof not in others and not summed[dof]
            for control in controls:
                result.control.append(control)
                result.dof.append(dof)
                result.joint.append(number)
                result.axis_index.append(axis_index if is_ball else -1)
                # MuJoCo bounds no joint of several axes.
                result.is_bounded.append(is_ball or is_alone)
    return result


def effort_limits(
    rows: ModelRows, structure: StructurePlan, drives: DrivePlan, worlds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which joints, and which actuators of drives, an effort limit of any world bounds.

    Returns:
        Masks of shape [njnt] and [actuator].
    """
    effort = rows.gather("joint_effort_limit", "dof", worlds)
    is_finite = np.any(effort < EFFORT_UNLIMITED, axis=0)
    joints = bounded_joints(rows, structure, drives, worlds) & is_finite[first_dofs(structure)]
    actuators = np.array(drives.is_bounded, dtype=bool) & is_finite[np.array(drives.dof, dtype=np.int64)]
    return joints, actuators


def bounded_joints(
    rows: ModelRows, structure: StructurePlan, drives: DrivePlan, worlds: np.ndarray
) -> np.ndarray:
    """Return which joints an effort limit bounds, be it finite or not, shape [njnt]."""
    sharing = [dof for dof, alone in zip(drives.dof, drives.is_bounded, strict=True) if not alone]
    dofs = first_dofs(structure)
    is_shared = np.isin(dofs, [*sharing, *driven_dofs(rows, worlds)])
    result: np.ndarray = scalar_joints(structure) & (is_shared | _summed_dofs(rows, worlds)[dofs])
    return result


def _summed_dofs(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return where the effort limit is a range of the joint itself in the document, shape [dof]."""
    values = rows.custom("jnt_actfrclimited", "dof", worlds[:1])
    if values is None:
        values = np.zeros_like(rows.gather("joint_target_mode", "dof", worlds[:1]))
    return values[0].reshape(-1) != 0
