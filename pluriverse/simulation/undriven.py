"""Undriven joints: warn of targets that no drive follows."""

import warnings
from collections.abc import Iterable

import numpy as np

from pluriverse.model import Control, Model
from pluriverse.types import BodyFlags, EqType, JointTargetMode, JointType
from pluriverse.warnings import UndrivenJointWarning

# Calls of `Simulation.step` after which targets are checked: scripts set them before the first step, or in
# the first loop. A check in every step would cost host time.
LOOK_AFTER_CALLS = (1, 10, 100)
NAMES_SHOWN = 4


def targets_without_drive(model: Model, control: Control, driven: Iterable[np.ndarray] = ()) -> list[str]:
    """Return the labels of joints with a target, or `joint_act`, not of the model, and no drive for it.

    `driven` has the degrees of freedom of stages that drive joints in place of the model.
    Joints that follow others by an equality constraint need none. Joints of the same label count once.
    """
    if model.joint_dof_count == 0:
        return []
    start = model.joint_qd_start.numpy()
    owner = np.repeat(np.arange(model.joint_count), np.diff(start))
    kind = model.joint_type.numpy()[owner]
    scalar = np.isin(kind, (JointType.REVOLUTE, JointType.PRISMATIC, JointType.D6))
    mode = model.joint_target_mode.numpy()
    idle = (model.joint_target_ke.numpy() == 0.0) & (model.joint_target_kd.numpy() == 0.0)
    # A kinematic body moves as its targets say, whatever the gains.
    is_kinematic = model.body_flags.numpy()[model.joint_child.numpy()[owner]] == BodyFlags.KINEMATIC
    idle = (mode == JointTargetMode.NONE) | (idle & (mode != JointTargetMode.EFFORT) & ~is_kinematic)
    # Those of the model are where it begins, such as a keyframe, and nobody's wish.
    aimed = control.joint_target_pos.numpy() != model.joint_target_pos.numpy()
    aimed |= control.joint_target_vel.numpy() != model.joint_target_vel.numpy()
    found = scalar & idle & aimed
    pushed = control.joint_act.numpy() != model.joint_act.numpy()
    found |= pushed & (mode == JointTargetMode.NONE) & ~is_kinematic
    for dofs in driven:
        found[dofs] = False
    if not found.any():
        return []
    joints = np.unique(owner[found])
    if model.equality_constraint_count:
        coupled = model.equality_constraint_type.numpy() == EqType.JOINT
        joints = joints[~np.isin(joints, model.equality_constraint_joint1.numpy()[coupled])]
    return list(dict.fromkeys(model.joint_label[joint] for joint in joints))


def undriven_message(labels: list[str]) -> str:
    """Return the warning about undriven joints."""
    shown = ", ".join(f"'{label}'" for label in labels[:NAMES_SHOWN])
    more = f" and {len(labels) - NAMES_SHOWN} more" if len(labels) > NAMES_SHOWN else ""
    return (
        f"joint {shown}{more}: a target or joint_act is set, but the joint has no drive for it: no "
        "actuator in the asset, or neither stiffness nor damping. Give it gains before finalize(): "
        "drive_gains=(ke, kd) of the importer, or builder.joint_target_ke and joint_target_kd; or push it "
        "with joint_f, or with joint_act of a joint made with actuator_mode=JointTargetMode.EFFORT."
    )


def report_undriven(model: Model, control: Control, driven: Iterable[np.ndarray]) -> bool:
    """Warn of targets that no drive follows; return whether there are any."""
    labels = targets_without_drive(model, control, driven)
    if labels:
        warnings.warn(UndrivenJointWarning(undriven_message(labels)), stacklevel=5)
    return bool(labels)
