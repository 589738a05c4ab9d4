"""Rigid transforms of the host in float64, for composing the frames of an asset."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pluriverse.builder.inputs import as_transform
from pluriverse.geometry import quat_to_matrix


class Frame(NamedTuple):
    """Pose of a frame in another: a point x of the frame is at `position + rotation(x)` in the other."""

    position: np.ndarray
    """Origin [m], shape [3]."""
    quat: np.ndarray
    """Rotation, unit quaternion xyzw."""

    @property
    def matrix(self) -> np.ndarray:
        """Rotation as a 3x3 matrix."""
        return quat_to_matrix(self.quat)

    def __matmul__(self, other: "Frame") -> "Frame":
        """Return the pose of `other`, which is given in this frame, in the frame this one is given in."""
        return Frame(self.apply(other.position), quat_multiply(self.quat, other.quat))

    def apply(self, point: Any) -> np.ndarray:
        """Return the point [m] given in this frame in the frame this one is given in."""
        return self.position + self.matrix @ np.asarray(point, dtype=np.float64)

    def inverse(self) -> "Frame":
        """Return the pose of the other frame in this one."""
        quat = self.quat * np.array([-1.0, -1.0, -1.0, 1.0])
        return Frame(-(self.matrix.T @ self.position), quat)

    def scaled(self, scale: float) -> "Frame":
        """Return the frame with its origin moved by the factor `scale`."""
        return Frame(scale * self.position, self.quat)


IDENTITY = Frame(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))


def make_frame(position: Any = (0.0, 0.0, 0.0), quat: Any = (0.0, 0.0, 0.0, 1.0)) -> Frame:
    """Return a frame in float64 with a normalized quaternion (xyzw).

    Raises:
        ValueError: If the quaternion is zero or not finite.
    """
    q = np.asarray(quat, dtype=np.float64)
    norm = float(np.linalg.norm(q))
    if not 0.0 < norm < np.inf:
        raise ValueError(
            f"quaternion {q.tolist()} is not a rotation: pass four finite numbers, not all zero."
        )
    return Frame(np.asarray(position, dtype=np.float64).copy(), q / norm)


def frame_from_transform(transform: Any) -> Frame:
    """Return the frame of an option `xform` in any of its forms; None is the identity.

    Raises:
        ValueError: If it has another form.
    """
    pose = as_transform(transform, "xform")
    return Frame(pose[:3], pose[3:])


def quat_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the normalized quaternion (xyzw) of the rotation `b` followed by `a`."""
    # In numbers of Python, since importing a robot multiplies single quaternions by the thousand.
    ax, ay, az, aw = np.asarray(a).tolist()
    bx, by, bz, bw = np.asarray(b).tolist()
    product = np.array(
        [
            aw * bx + bw * ax + (ay * bz - az * by),
            aw * by + bw * ay + (az * bx - ax * bz),
            aw * bz + bw * az + (ax * by - ay * bx),
            aw * bw - (ax * bx + ay * by + az * bz),
        ]
    )
    return product / np.linalg.norm(product)


def quat_from_axis_angle(axis: Any, angle: float) -> np.ndarray:
    """Return the quaternion (xyzw) of a rotation by `angle` [rad] about the unit vector `axis`."""
    return np.array([*(np.sin(0.5 * angle) * np.asarray(axis, dtype=np.float64)), np.cos(0.5 * angle)])


def quat_from_wxyz(quat: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the quaternion xyzw of one that starts with its scalar part."""
    w, x, y, z = quat
    return np.array([x, y, z, w], dtype=np.float64)


def quat_from_matrix(matrix: np.ndarray) -> np.ndarray:
    """Return the quaternion (xyzw) of a rotation matrix, by its largest component."""
    m = np.asarray(matrix, dtype=np.float64)
    squares = np.array(  # 4 x², 4 y², 4 z², 4 w²
        [
            1.0 + m[0, 0] - m[1, 1] - m[2, 2],
            1.0 - m[0, 0] + m[1, 1] - m[2, 2],
            1.0 - m[0, 0] - m[1, 1] + m[2, 2],
            1.0 + m[0, 0] + m[1, 1] + m[2, 2],
        ]
    )
    rows = [
        [squares[0], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]],
        [m[0, 1] + m[1, 0], squares[1], m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]],
        [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], squares[2], m[1, 0] - m[0, 1]],
        [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], squares[3]],
    ]
    quat = np.array(rows[int(squares.argmax())])
    return quat / np.linalg.norm(quat)
