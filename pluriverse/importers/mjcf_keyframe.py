"""The initial state of an MJCF document: a keyframe, or the configuration as authored."""

from typing import Any

import numpy as np

from pluriverse.geometry import quat_to_matrix
from pluriverse.importers.description import Placement, RobotDescription
from pluriverse.importers.errors import AssetError
from pluriverse.importers.frames import Frame, quat_from_wxyz
from pluriverse.importers.mjcf_enums import MjJoint
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport, Keyframe

# Names of the keyframes that `keyframe="auto"` prefers, in this order, without regard to case.
PREFERRED = ("home", "stand", "standing")


def select_keyframe(model: Any, keyframe: str | int | None, file: str) -> int | None:
    """Return the index of the keyframe that `keyframe` selects, None for the authored configuration.

    Raises:
        AssetError: If there is no such keyframe.
    """
    names = [model.key(index).name for index in range(model.nkey)]
    if keyframe is None or (keyframe == "auto" and not names):
        return None
    if keyframe == "auto":
        lowered = [name.lower() for name in names]
        return next((lowered.index(name) for name in PREFERRED if name in lowered), 0)
    if isinstance(keyframe, int) and not isinstance(keyframe, bool) and 0 <= keyframe < len(names):
        return keyframe
    if keyframe in names:
        return names.index(keyframe)
    raise AssetError(
        f"keyframe={keyframe!r} asks for a keyframe that does not exist",
        file=file,
        element="<keyframe>",
        value=keyframe,
        remedy=f"The keyframes are {names}; choose one by name or index, 'auto', or None for none."
        if names
        else "The file has no keyframes: leave the option out.",
    )


def controls_of(model: Any, keyframe: int | None) -> np.ndarray:
    """Return the controls of all actuators in the initial state."""
    return np.zeros(model.nu) if keyframe is None else np.array(model.key_ctrl[keyframe])


def set_initial_state(
    robot: RobotDescription, model: Any, link_of_joint: dict[int, int], keyframe: int, options: MjcfSettings
) -> None:
    """Set the initial coordinates and velocities of the joints of `robot` to those of a keyframe.

    MuJoCo's velocities differ from ours: that of a free joint is of the body origin, with the angular
    velocity in body axes; that of a ball joint is in the axes of the child.
    """
    qpos, qvel = model.key_qpos[keyframe], model.key_qvel[keyframe]
    for joint, index in link_of_joint.items():
        link = robot.links[index]
        link.joint.q, link.joint.qd = _joint_state(
            model, joint, qpos, qvel, link.mass_properties.com, options["scale"]
        )


def read_keyframes(
    builder: Any,
    model: Any,
    placement: Placement,
    xform: Frame,
    options: MjcfSettings,
    report: ImportReport,
) -> list[Keyframe]:
    """Return all keyframes of a document, in the coordinates of the joints that were added.

    Joints that the importer added keep their initial state.
    """
    result = []
    for keyframe in range(model.nkey):
        qpos, qvel = model.key_qpos[keyframe], model.key_qvel[keyframe]
        q, qd = np.array(builder.joint_q), np.array(builder.joint_qd)
        for joint in range(model.njnt):
            joint_index = placement.joints.get(("joint", joint))
            if joint_index is None:
                continue
            dof = placement.dofs["joint", joint]
            coord = int(builder.joint_q_start[joint_index] + dof - builder.joint_qd_start[joint_index])
            body = int(builder.joint_child[joint_index])
            own_q, own_qd = _joint_state(model, joint, qpos, qvel, builder.body_com[body], options["scale"])
            if model.jnt_type[joint] == MjJoint.FREE:
                pose = xform @ Frame(np.array(own_q[:3]), np.array(own_q[3:]))
                own_q = [*pose.position, *pose.quat]
                own_qd = [*(xform.matrix @ own_qd[:3]), *(xform.matrix @ own_qd[3:])]
            q[coord : coord + len(own_q)], qd[dof : dof + len(own_qd)] = own_q, own_qd
        result.append(
            Keyframe(
                model.key(keyframe).name,
                float(model.key_time[keyframe]),
                q[list(report.coords)],
                qd[list(report.dofs)],
                np.array(model.key_ctrl[keyframe]),
                np.array(model.key_act[keyframe]),
            )
        )
    return result


def _joint_state(
    model: Any, joint: int, qpos: np.ndarray, qvel: np.ndarray, com: np.ndarray, scale: float
) -> tuple[list[float], list[float]]:
    """Return our coordinates and velocities of a joint; `com` is that of the body it moves."""
    start, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    kind = int(model.jnt_type[joint])
    if kind == MjJoint.FREE:
        position = scale * qpos[start : start + 3]
        quat = quat_from_wxyz(qpos[start + 3 : start + 7])
        rotation = quat_to_matrix(quat)
        angular = rotation @ qvel[dof + 3 : dof + 6]
        linear = scale * qvel[dof : dof + 3] + np.cross(angular, rotation @ com)
        return [*position, *(quat / np.linalg.norm(quat))], [*linear, *angular]
    if kind == MjJoint.BALL:
        quat = quat_from_wxyz(qpos[start : start + 4])
        return list(quat / np.linalg.norm(quat)), list(quat_to_matrix(quat) @ qvel[dof : dof + 3])
    length = scale if kind == MjJoint.SLIDE else 1.0
    return [length * float(qpos[start])], [length * float(qvel[dof])]
