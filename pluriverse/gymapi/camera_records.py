"""Camera records: poses of camera sensors, and which of them are rendered together."""

from typing import Any

import numpy as np

from pluriverse.gymapi.enums import CameraFollowMode, UpAxis
from pluriverse.gymapi.frames import body_rows
from pluriverse.gymapi.scene import CameraRecord, Sim
from pluriverse.gymapi.structures import CameraProperties
from pluriverse.model import poses
from pluriverse.types import Axis


def camera_axes(sim: Sim) -> np.ndarray:
    """Return the axes of pictures (right, up, backwards as columns) of a camera at the identity pose."""
    if int(sim.params.up_axis) == UpAxis.UP_AXIS_Y:
        return np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    return np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def up_direction(sim: Sim) -> tuple[float, float, float]:
    """Return the up axis of a sim."""
    return up_axis_of(sim).vector


def up_axis_of(sim: Sim) -> Axis:
    """Return which axis of a sim points up."""
    return Axis.Y if int(sim.params.up_axis) == UpAxis.UP_AXIS_Y else Axis.Z


def looking_pose(sim: Sim, position: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the pose of a camera [m, xyzw] that looks from one point at another."""
    from pluriverse.render.camera import look_rotation  # loads the ray caster

    rotation = look_rotation(target - position, up_direction(sim)) @ camera_axes(sim).T
    return np.concatenate([position, quaternion_of(rotation)])


def quaternion_of(rotation: np.ndarray) -> np.ndarray:
    """Return the quaternion xyzw of a rotation matrix."""
    from scipy.spatial.transform import Rotation

    quaternion: np.ndarray = Rotation.from_matrix(rotation).as_quat()
    return quaternion


def rotation_of(quaternion: np.ndarray) -> np.ndarray:
    """Return the matrix of a quaternion xyzw."""
    from scipy.spatial.transform import Rotation

    rotation: np.ndarray = Rotation.from_quat(quaternion).as_matrix()
    return rotation


def env_pose(record: CameraRecord) -> np.ndarray:
    """Return the present pose of a camera in its env [m, xyzw], before and after the sim is prepared."""
    if record.body is None:
        return record.pose.copy()
    actor, body = record.body
    carrier = body_rows(actor)[0][body].astype(np.float64)
    if record.follows_rotation:
        return np.asarray(poses.compose(carrier.reshape(1, 7), record.pose.reshape(1, 7))).reshape(7)
    return np.concatenate([carrier[:3] + record.pose[:3], record.pose[3:]])


def batch_key(properties: CameraProperties) -> tuple[Any, ...]:
    """Return what cameras that are rendered together have in common."""
    samples = max(1, int(properties.supersampling_horizontal) * int(properties.supersampling_vertical))
    return (
        int(properties.width),
        int(properties.height),
        samples,
        bool(properties.use_collision_geometry),
        float(properties.near_plane),
        float(properties.far_plane),
    )


def follow_mode(value: Any, call: str) -> CameraFollowMode:
    """Return how a camera follows a body.

    Raises:
        ValueError: If it is not such a mode.
    """
    try:
        return CameraFollowMode(int(value))
    except (TypeError, ValueError):
        raise ValueError(
            f"{call}: the follow mode is {value!r}, but must be gymapi.FOLLOW_POSITION or "
            "gymapi.FOLLOW_TRANSFORM."
        ) from None
