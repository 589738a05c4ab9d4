"""Frames: poses of bodies, joints and axes of an actor in its env, on the host."""

import numpy as np

from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.store import prototype, read
from pluriverse.gymapi.values import DofFrame, Transform
from pluriverse.model import poses
from pluriverse.types import JointType


def body_rows(actor: Actor) -> tuple[np.ndarray, np.ndarray]:
    """Return poses (in the env) and velocities of the bodies of an actor, shapes [body, 7] and [body, 6]."""
    runtime = actor.env.sim.runtime
    if runtime is None:
        body_q, body_qd = prototype(actor.asset).place(actor)
        return body_q.copy(), body_qd.copy()
    runtime.update_body_poses()
    body_q = read(actor, "body_q").reshape(-1, 7)
    body_q[:, :3] -= actor.env.offset.astype(np.float32)
    return body_q, read(actor, "body_qd").reshape(-1, 6)


def joint_frames(actor: Actor) -> np.ndarray:
    """Return the poses of the builder's joint parent frames in the env, shape [joint, 7]."""
    builder = actor.asset.builder
    body_q = body_rows(actor)[0].astype(np.float64)
    frames = read(actor, "joint_X_p").reshape(-1, 7).astype(np.float64)
    parent = builder.joint_parent
    has_parent = parent >= 0
    frames[has_parent] = poses.compose(body_q[parent[has_parent]], frames[has_parent])
    if actor.env.sim.is_prepared:
        frames[~has_parent, :3] -= actor.env.offset
    return frames


def joint_transforms(actor: Actor) -> np.ndarray:
    """Return the poses of the API's joint frames in the env, as `Transform` records."""
    rows = joint_frames(actor)[[joint.joint for joint in actor.asset.joints]]
    return np.ascontiguousarray(rows, dtype=np.float32).view(Transform.dtype).reshape(-1)


def dof_frames(actor: Actor) -> np.ndarray:
    """Return point and unit axis of each degree of freedom in the env, as `DofFrame` records."""
    asset = actor.asset
    frames = joint_frames(actor)
    joint_q = read(actor, "joint_q").astype(np.float64)
    rows = np.zeros((asset.dof_count, 6))
    for number, dof in enumerate(asset.dofs):
        frame = frames[dof.joint]
        if dof.ball_axis >= 0:
            axis = np.eye(3)[dof.ball_axis]
        else:
            axis = asset.builder.joint_axis[dof.dof]
        if JointType(asset.builder.joint_type[dof.joint]) is JointType.D6:
            frame = _carried(asset.builder, dof.joint, dof.dof, frame, joint_q)
        rows[number, :3] = frame[:3]
        rows[number, 3:] = poses.rotate(frame[3:], axis)
    return np.ascontiguousarray(rows, dtype=np.float32).view(DofFrame.dtype).reshape(-1)


def _carried(builder: object, joint: int, dof: int, frame: np.ndarray, joint_q: np.ndarray) -> np.ndarray:
    """Return the frame of an axis of a D6 joint behind the axes before it."""
    first_dof, first_coord = int(builder.joint_qd_start[joint]), int(builder.joint_q_start[joint])  # type: ignore
    linear = int(builder.joint_dof_dim[joint, 0])  # type: ignore[attr-defined]
    for k in range(dof - first_dof):
        axis, position = builder.joint_axis[first_dof + k], joint_q[first_coord + k]  # type: ignore[attr-defined]
        step = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        if k < linear:
            step[:3] = position * axis
        else:
            step[3:] = poses.quat_from_axis_angle(axis, np.asarray(position))
        frame = poses.compose(frame, step)
    return frame
