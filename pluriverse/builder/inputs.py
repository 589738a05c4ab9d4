"""Inputs: convert user arguments (transforms, vectors, axes) into arrays, or raise a clear error."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.types import Axis

Vector = Sequence[float] | np.ndarray
"""Three numbers: a sequence, an array or a `wp.vec3`."""
Transform = Any
"""A pose: `wp.transform`, seven numbers (position, quaternion xyzw), or a pair (position, quaternion)."""
AxisLike = Axis | int | str | Sequence[float] | np.ndarray
"""An axis: `Axis`, 0 to 2, "x", "y" or "z", or a vector of any length but zero."""

# A quaternion whose length is off by less than this [relative] is normalized; it covers values written with
# two digits, such as (0.7, 0, 0, 0.7). One further off is more likely something else, such as an axis and an
# angle.
QUATERNION_LENGTH_TOLERANCE = 0.02

IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def as_vector(value: Any, what: str) -> np.ndarray:
    """Return three finite numbers.

    Raises:
        ValueError: If `value` is anything else; `what` says whose value it is.
    """
    try:
        vector = np.array([float(component) for component in value])
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ValueError(f"{what} is {value}, but it must be three finite numbers.")
    return vector


def as_transform(value: Transform | None, what: str) -> np.ndarray:
    """Return a pose as position and unit quaternion xyzw, shape [7].

    Raises:
        ValueError: If `value` is not a pose, or its quaternion does not have unit length; `what` names the
            value.
    """
    if value is None:
        return IDENTITY.copy()
    try:
        parts = list(value)
        if len(parts) == 2:
            parts = [*parts[0], *parts[1]]
        pose = np.array([float(part) for part in parts])
    except (TypeError, ValueError):
        pose = np.empty(0)
    if pose.shape != (7,):
        raise ValueError(
            f"{what} is {value}, but a transform is seven numbers (position, quaternion xyzw) or a pair "
            "of both."
        )
    if not (np.abs(pose) <= np.finfo(np.float32).max).all():  # NaN too
        raise ValueError(
            f"{what} is {pose.tolist()}, but all numbers of a transform must be finite in single precision."
        )
    length = float(np.linalg.norm(pose[3:]))
    if not abs(length - 1.0) <= QUATERNION_LENGTH_TOLERANCE:
        raise ValueError(
            f"{what}: quaternion {pose[3:].tolist()} has length {length:.6g}, but a rotation has length 1. "
            "Pass a unit quaternion in the order x, y, z, w; (0, 0, 0, 1) is no rotation."
        )
    if length != 1.0:
        pose[3:] /= length
    return pose


def number_or_not_given(value: float | None) -> float:
    """Return a number, with NaN for None: arrays store it for values that are not given."""
    return math.nan if value is None else float(value)


def as_matrix(value: Any, what: str) -> np.ndarray:
    """Return a finite 3x3 matrix.

    Raises:
        ValueError: If `value` is anything else; `what` says whose value it is.
    """
    try:
        matrix = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.size == 9:
        matrix = matrix.reshape(3, 3)
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
        raise ValueError(f"{what} is {value}, but it must be a 3x3 matrix of finite numbers.")
    return matrix


def as_axis(value: AxisLike, what: str) -> np.ndarray:
    """Return a unit vector.

    Raises:
        ValueError: If `value` names no axis or is zero; `what` names the value.
    """
    if isinstance(value, str):
        name = value.strip().lower()
        if name in ("x", "y", "z"):
            return np.array(Axis[name.upper()].vector)
        raise ValueError(f"{what} is '{value}', but an axis is 'x', 'y', 'z' or three numbers.")
    if isinstance(value, int | np.integer):
        if value in (0, 1, 2):
            return np.array(Axis(int(value)).vector)
        raise ValueError(f"{what} is {value}, but the number of an axis is 0 (x), 1 (y) or 2 (z).")
    vector = as_vector(value, what)
    length = float(np.linalg.norm(vector))
    if not length > 0.0:
        raise ValueError(
            f"{what} is {vector.tolist()}, which has no direction. Pass a vector that is not zero."
        )
    return vector / length


def as_gravity(value: float | Vector, up_axis: Axis = Axis.Z) -> np.ndarray:
    """Return gravity [m/s²] as a vector, from a vector or its component along the up axis.

    Raises:
        ValueError: If `value` is neither.
    """
    array = np.asarray(value, dtype=np.float64)
    vector = float(array) * np.array(up_axis.vector) + 0.0 if array.ndim == 0 else array
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ValueError(
            f"gravity is {value}, but it must be a finite number (the component along the up axis) or a "
            "vector of three, in m/s²."
        )
    return vector


def upright_rotation(axis: Axis, up_axis: Axis) -> tuple[float, float, float, float]:
    """Return the shortest rotation from `axis` to `up_axis`, xyzw."""
    if axis is up_axis:
        return (0.0, 0.0, 0.0, 1.0)
    x, y, z = np.sqrt(0.5) * np.cross(axis.vector, up_axis.vector)
    return (float(x), float(y), float(z), float(np.sqrt(0.5)))


def copied_labels(labels: list[str], prefixes: Sequence[str | None]) -> list[str]:
    """Return the labels of all copies, one copy per prefix; a prefix is followed by a slash."""
    of_prefix = {
        prefix: labels if prefix is None else [f"{prefix}/{label}" for label in labels]
        for prefix in set(prefixes)
    }
    if len(of_prefix) == 1:
        return next(iter(of_prefix.values())) * len(prefixes)
    return list(itertools.chain.from_iterable(of_prefix[prefix] for prefix in prefixes))
