"""Where MuJoCo's bodies, joints and constraint sites are, for all worlds of a group at once.

A body stands in MuJoCo as it stands when all its joints are at zero, so coordinates are the same numbers in
both. With joints 1 to n between the parent P and the body B,

    X_PB(q) = X_p1 J_1(q_1) X_c1^-1 X_p2 ... J_n(q_n) X_cn^-1,

the frame of joint i in the body is the inverse of what stands to the right of J_i, with all later joints at
zero.
"""

from dataclasses import dataclass

import numpy as np

from pluriverse.model import poses
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan


@dataclass
class Frames:
    """Poses of one group, row by row."""

    body_pos: np.ndarray
    """Origin in the parent body [m], shape [row, nbody, 3]."""
    body_quat: np.ndarray
    """Rotation in the parent body (wxyz), shape [row, nbody, 4]."""
    jnt_pos: np.ndarray
    """Anchor in the body [m], shape [row, njnt, 3]."""
    jnt_axis: np.ndarray
    """Axis in the body, shape [row, njnt, 3]."""
    joint_rotation: np.ndarray
    """Rotation (xyzw) of the joint frame in MuJoCo's body, shape [row, joint, 4]."""


def compute_frames(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> Frames:
    """Return the poses of bodies and joints."""
    count = len(worlds)
    inner = rows.take("joint_X_p", "joint", worlds)
    outer_inverse = poses.inverse(rows.take("joint_X_c", "joint", worlds))
    axis = rows.take("joint_axis", "dof", worlds)
    coordinates = rows.take("joint_q", "coord", worlds)
    identity = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (count, 1))
    joint_frame = np.tile(identity[:, None, :], (1, plan.template.node_count, 1))
    body_pose = np.tile(identity[:, None, :], (1, len(plan.bodies), 1))
    free = {joint.body: joint.joint for joint in plan.joints if joint.kind is MujocoJoint.FREE}
    initial = rows.take("body_q", "body", worlds[:1])
    for index, body in enumerate(plan.bodies):
        if body is None:
            continue
        pose = identity
        for joint in reversed(body.chain):
            pose = poses.compose(outer_inverse[:, joint], pose)
            joint_frame[:, joint] = poses.inverse(pose)
            if index in free:
                # What moves freely starts where the first world has it; MuJoCo reads its pose in qpos0 only.
                coord = int(plan.joint_coord[free[index]])
                start = np.broadcast_to(coordinates[:1, coord : coord + 7], (count, 7))
                pose = poses.compose(start, pose)
            pose = poses.compose(inner[:, joint], pose)
        if index in free and plan.template.joint_parent[free[index]] >= 0:
            pose = np.broadcast_to(initial[:, body.body], (count, 7))
        body_pose[:, index] = pose
    jnt_pos = np.zeros((count, len(plan.joints), 3))
    jnt_axis = np.tile([0.0, 0.0, 1.0], (count, len(plan.joints), 1))
    for number, entry in enumerate(plan.joints):
        frame = joint_frame[:, entry.joint]
        if entry.kind is not MujocoJoint.FREE:
            jnt_pos[:, number] = frame[:, :3]
        if entry.kind in (MujocoJoint.SLIDE, MujocoJoint.HINGE):
            jnt_axis[:, number] = poses.rotate(frame[:, 3:], axis[:, entry.dof])
    quat = body_pose[..., 3:] / np.linalg.norm(body_pose[..., 3:], axis=-1, keepdims=True)
    return Frames(body_pose[..., :3], as_wxyz(quat), jnt_pos, jnt_axis, joint_frame[..., 3:])


def as_wxyz(quat: np.ndarray) -> np.ndarray:
    """Return quaternions xyzw in MuJoCo's order."""
    return np.roll(quat, 1, axis=-1)


def as_xyzw(quat: np.ndarray) -> np.ndarray:
    """Return quaternions of MuJoCo in ours."""
    return np.roll(quat, -1, axis=-1)
