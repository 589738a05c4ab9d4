"""Initial forward kinematics on the host: body poses and velocities that agree with the joint coordinates.

X_WB = X_WP * X_p * X_J(q) * X_c^-1, for all joints of one depth and type at a time, in float64. The step
itself uses `pluriverse.dynamics`.
"""

from typing import Protocol

import numpy as np

from pluriverse.model import poses
from pluriverse.types import JointType


class _Joints(Protocol):
    joint_type: np.ndarray
    joint_parent: np.ndarray
    joint_child: np.ndarray
    joint_X_p: np.ndarray  # noqa: N815
    joint_X_c: np.ndarray  # noqa: N815
    joint_q_start: np.ndarray
    joint_qd_start: np.ndarray
    joint_axis: np.ndarray
    joint_q: np.ndarray
    joint_qd: np.ndarray
    body_com: np.ndarray


def eval_initial_kinematics(source: _Joints, joint_depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `body_q` (shape [body, 7]) and `body_qd` (shape [body, 6]) of the joint coordinates of `source`.

    Args:
        source: Joints and bodies with flat indices. Every body is the child of one joint.
        joint_depth: Number of joints between a joint and the world, shape [joint].
    """
    body_count = len(source.body_com)
    body_q = np.zeros((body_count, 7))
    body_qd = np.zeros((body_count, 6))  # of the body origin until the end
    for depth in range(int(joint_depth.max(initial=-1)) + 1):
        level = np.flatnonzero(joint_depth == depth)
        for joint_type in np.unique(source.joint_type[level]):
            joints = level[source.joint_type[level] == joint_type]
            _move_children(source, joints, JointType(joint_type), body_q, body_qd)
    arm = poses.rotate(body_q[:, 3:], source.body_com)
    body_qd[:, :3] += np.cross(body_qd[:, 3:], arm)
    return body_q, body_qd


def _move_children(
    source: _Joints, joints: np.ndarray, joint_type: JointType, body_q: np.ndarray, body_qd: np.ndarray
) -> None:
    """Write pose and velocity of the children of joints of one type whose parents are done."""
    parent, child = source.joint_parent[joints], source.joint_child[joints]
    frame = source.joint_X_p[joints].copy()  # of the joint on the parent's side, in the world
    linear, angular = (
        np.zeros((len(joints), 3)),
        np.zeros((len(joints), 3)),
    )  # of the point at the frame's origin
    held = parent >= 0
    if held.any():
        parent_q, parent_qd = body_q[parent[held]], body_qd[parent[held]]
        frame[held] = poses.compose(parent_q, frame[held])
        angular[held] = parent_qd[:, 3:]
        arm = frame[held, :3] - parent_q[:, :3]
        linear[held] = parent_qd[:, :3] + np.cross(angular[held], arm)

    coord, dof = source.joint_q_start[joints], source.joint_qd_start[joints]
    moved = np.zeros((len(joints), 7))
    moved[:, 6] = 1.0
    if joint_type is JointType.REVOLUTE:
        axis = source.joint_axis[dof]
        moved[:, 3:] = poses.quat_from_axis_angle(axis, source.joint_q[coord])
        angular = angular + poses.rotate(frame[:, 3:], axis * source.joint_qd[dof, None])
    elif joint_type is JointType.PRISMATIC:
        axis = source.joint_axis[dof]
        moved[:, :3] = axis * source.joint_q[coord, None]
        slide = poses.rotate(frame[:, 3:], moved[:, :3])
        linear = linear + np.cross(angular, slide)
        linear = linear + poses.rotate(frame[:, 3:], axis * source.joint_qd[dof, None])
    elif joint_type is JointType.BALL:
        moved[:, 3:] = source.joint_q[coord[:, None] + np.arange(4)]
        spin = source.joint_qd[dof[:, None] + np.arange(3)]
        angular = angular + poses.rotate(frame[:, 3:], spin)
    elif joint_type is JointType.FREE:  # always between the world and a body, frames at identity
        moved = source.joint_q[coord[:, None] + np.arange(7)]
        velocity = source.joint_qd[dof[:, None] + np.arange(6)]
        angular = velocity[:, 3:]
        # joint_qd has the velocity of the centre of mass, this function that of the origin.
        linear = velocity[:, :3] - np.cross(angular, poses.rotate(moved[:, 3:], source.body_com[child]))

    anchor = poses.compose(frame, moved)
    body_q[child] = poses.compose(anchor, poses.inverse(source.joint_X_c[joints]))
    body_qd[child, 3:] = angular
    body_qd[child, :3] = linear + np.cross(angular, body_q[child, :3] - anchor[:, :3])
