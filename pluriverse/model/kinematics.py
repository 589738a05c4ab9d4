"""Initial forward kinematics on the host: body poses and velocities that agree with the joint coordinates.

X_WB = X_WP * X_p * X_J(q) * X_c^-1, for all joints of one depth and type at a time, in float64. The step
itself uses `pluriverse.dynamics`.
"""

import numpy as np

from pluriverse.model import poses
from pluriverse.types import FLOATING_JOINTS, JointType

IDENTITY_ROTATION = np.array([0.0, 0.0, 0.0, 1.0])


class JointColumns:
    """Inputs of initial kinematics, one entry per joint, degree of freedom, coordinate or body."""

    joint_type: np.ndarray
    joint_parent: np.ndarray
    joint_child: np.ndarray
    joint_X_p: np.ndarray  # noqa: N815
    joint_X_c: np.ndarray  # noqa: N815
    joint_q_start: np.ndarray
    joint_qd_start: np.ndarray
    joint_dof_dim: np.ndarray
    joint_axis: np.ndarray
    joint_q: np.ndarray
    joint_qd: np.ndarray
    body_com: np.ndarray


def eval_initial_kinematics(source: JointColumns, joint_depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
        for joints in group_joints(source, level):
            _move_children(source, joints, JointType(source.joint_type[joints[0]]), body_q, body_qd)
    arm = poses.rotate(body_q[:, 3:], source.body_com)
    body_qd[:, :3] += np.cross(body_qd[:, 3:], arm)
    return body_q, body_qd


def group_joints(source: JointColumns, joints: np.ndarray) -> list[np.ndarray]:
    """Return the joints grouped by type and by numbers of linear and angular axes."""
    kinds = np.column_stack([source.joint_type[joints], source.joint_dof_dim[joints]])
    _, kind = np.unique(kinds, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    return [joints[kind == index] for index in range(int(kind.max(initial=-1)) + 1)]


def rotate_axes(source: JointColumns, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint transforms of D6 joints with equal numbers of axes, and the resulting axis directions.

    Returns:
        Pose of the child's joint frame in the parent's, shape [joint, 7], and the direction of each axis in
        the parent's, shape [joint, axis, 3]. Each axis has been carried by those before it.
    """
    linear_count, angular_count = source.joint_dof_dim[joints[0]]
    moved = np.zeros((len(joints), 7))
    moved[:, 6] = 1.0
    axes = []
    for index in range(linear_count + angular_count):
        axis = poses.rotate(moved[:, 3:], source.joint_axis[source.joint_qd_start[joints] + index])
        q = source.joint_q[source.joint_q_start[joints] + index]
        if index < linear_count:
            moved[:, :3] += axis * q[:, None]
        else:
            moved[:, 3:] = poses.quat_multiply(poses.quat_from_axis_angle(axis, q), moved[:, 3:])
        axes.append(axis)
    return moved, np.stack(axes, axis=1)


def world_axes(source: JointColumns, joints: np.ndarray, child_frame: np.ndarray) -> np.ndarray:
    """Return the axes of D6 joints with equal numbers of axes at the current coordinates, world axes.

    Args:
        source: Joints and bodies with flat indices.
        joints: The joints.
        child_frame: Pose of the child's joint frame in the world, shape [joint, 7].

    Returns:
        Unit vectors, shape [joint, axis, 3].
    """
    moved, axes = rotate_axes(source, joints)
    back = poses.compose(child_frame, poses.inverse(moved))[:, None, 3:]
    return poses.rotate(np.broadcast_to(back, (*axes.shape[:2], 4)), axes)


def _move_children(
    source: JointColumns, joints: np.ndarray, joint_type: JointType, body_q: np.ndarray, body_qd: np.ndarray
) -> None:
    """Write pose and velocity of the children of joints of one type whose parents are done."""
    parent, child = source.joint_parent[joints], source.joint_child[joints]
    frame = source.joint_X_p[joints].copy()  # of the joint on the parent's side, in the world
    linear, angular = (
        np.zeros((len(joints), 3)),
        np.zeros((len(joints), 3)),
    )  # of the point at the frame's origin
    has_parent = parent >= 0
    if has_parent.any():
        parent_q, parent_qd = body_q[parent[has_parent]], body_qd[parent[has_parent]]
        frame[has_parent] = poses.compose(parent_q, frame[has_parent])
        angular[has_parent] = parent_qd[:, 3:]
        arm = frame[has_parent, :3] - parent_q[:, :3]
        linear[has_parent] = parent_qd[:, :3] + np.cross(angular[has_parent], arm)

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
    elif joint_type is JointType.D6:
        moved, axes = rotate_axes(source, joints)
        linear = linear + np.cross(angular, poses.rotate(frame[:, 3:], moved[:, :3]))
        for index in range(axes.shape[1]):
            rate = poses.rotate(frame[:, 3:], axes[:, index] * source.joint_qd[dof + index, None])
            if index < source.joint_dof_dim[joints[0], 0]:
                linear = linear + rate
            else:
                angular = angular + rate
    elif joint_type in FLOATING_JOINTS:
        moved = source.joint_q[coord[:, None] + np.arange(7)]
        velocity = source.joint_qd[dof[:, None] + np.arange(6)]
        # World axes at a root, those of the joint frame and relative to it below a body.
        basis = np.where(has_parent[:, None], frame[:, 3:], IDENTITY_ROTATION)
        slide = np.where(has_parent[:, None], poses.rotate(frame[:, 3:], moved[:, :3]), 0.0)
        linear = linear + np.cross(angular, slide) + poses.rotate(basis, velocity[:, :3])
        spin = poses.rotate(basis, velocity[:, 3:])
        angular = angular + spin
        # joint_qd has the velocity of the centre of mass, `linear` is that of the child's joint frame.
        body = poses.inverse(source.joint_X_c[joints])  # in that frame
        arm = body[:, :3] + poses.rotate(body[:, 3:], source.body_com[child])
        rotation = poses.quat_multiply(frame[:, 3:], moved[:, 3:])
        linear = linear - np.cross(spin, poses.rotate(rotation, arm))

    anchor = poses.compose(frame, moved)
    body_q[child] = poses.compose(anchor, poses.inverse(source.joint_X_c[joints]))
    body_qd[child, 3:] = angular
    body_qd[child, :3] = linear + np.cross(angular, body_q[child, :3] - anchor[:, :3])
