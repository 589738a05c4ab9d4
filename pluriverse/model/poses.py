"""Rigid transforms on the host, many at a time, in float64.

A pose is a row (position [m], quaternion xyzw) of an array of shape [..., 7].
"""

import numpy as np


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross products of vectors; for many of them faster than `numpy.cross`."""
    (ax, ay, az), (bx, by, bz) = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate vectors by unit quaternions."""
    axis, w = quat[..., :3], quat[..., 3:]
    twice_cross = 2.0 * cross(axis, vector)
    return vector + w * twice_cross + cross(axis, twice_cross)


def quat_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the quaternions of rotating by `b`, then by `a`."""
    xyz = a[..., 3:] * b[..., :3] + b[..., 3:] * a[..., :3] + cross(a[..., :3], b[..., :3])
    w = a[..., 3:] * b[..., 3:] - np.sum(a[..., :3] * b[..., :3], axis=-1, keepdims=True)
    return np.concatenate([xyz, w], axis=-1)


def quat_from_axis_angle(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return the quaternions of rotating by angles [rad] about unit axes."""
    half = 0.5 * angle[..., None]
    return np.concatenate([np.sin(half) * axis, np.cos(half)], axis=-1)


def quat_to_matrix(quat: np.ndarray) -> np.ndarray:
    """Return the rotation matrices of unit quaternions, shape [..., 3, 3]."""
    columns = [rotate(quat, np.broadcast_to(unit, (*quat.shape[:-1], 3))) for unit in np.eye(3)]
    return np.stack(columns, axis=-1)


def compose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the poses `a * b`: `b` given in the frame `a`."""
    position = a[..., :3] + rotate(a[..., 3:], b[..., :3])
    return np.concatenate([position, quat_multiply(a[..., 3:], b[..., 3:])], axis=-1)


def inverse(pose: np.ndarray) -> np.ndarray:
    """Return the inverse poses."""
    quat = pose[..., 3:] * np.array([-1.0, -1.0, -1.0, 1.0])
    return np.concatenate([-rotate(quat, pose[..., :3]), quat], axis=-1)
