"""Signed distance of two convex shapes from their support functions alone, in float64 NumPy.

For convex bodies A and B the signed distance (negative: depth of penetration) is the largest separation over
all directions, max over unit n of min over B of n.x minus max over A of n.x. A dense set of directions finds
the region of the maximum, random steps of shrinking length the maximum itself. Slow, and shares nothing with
the colliders.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from pluriverse.types import GeoType
from tests.collision.pairs import ShapeSpec

DIRECTION_COUNT = 1500
START_COUNT = 6
ROUND_COUNT = 120
STEP_COUNT = 16
# Steps grow by the first factor after a success and shrink by the second after a failure.
STEP_FACTORS = (1.2, 0.7)


def support_heights(shape: ShapeSpec, directions: np.ndarray) -> np.ndarray:
    """Return max over the shape of x . direction, shape frame, for directions [..., 3] of any length."""
    x, y, z = np.moveaxis(directions, -1, 0)
    across = np.hypot(x, y)
    size = shape.scale
    if shape.type == GeoType.SPHERE:
        return size[0] * np.linalg.norm(directions, axis=-1)
    if shape.type == GeoType.CAPSULE:
        return size[0] * np.linalg.norm(directions, axis=-1) + size[1] * np.abs(z)
    if shape.type == GeoType.CYLINDER:
        return size[0] * across + size[1] * np.abs(z)
    if shape.type == GeoType.CONE:
        return np.maximum(size[1] * z, size[0] * across - size[1] * z)
    if shape.type == GeoType.ELLIPSOID:
        return np.linalg.norm(directions * np.asarray(size), axis=-1)
    if shape.type == GeoType.BOX:
        return np.abs(directions) @ np.asarray(size)
    points = shape.mesh.vertices.astype(np.float64) * np.asarray(shape.scale or (1.0, 1.0, 1.0))
    return (directions @ points.T).max(axis=-1)


def _separations(
    first: ShapeSpec,
    second: ShapeSpec,
    rotation0: Rotation,
    rotation1: Rotation,
    offset: np.ndarray,
    n: np.ndarray,
) -> np.ndarray:
    """Return the separation of the shapes along unit directions n [..., 3] from the first to the second."""
    flat = n.reshape(-1, 3)
    heights0 = support_heights(first, rotation0.inv().apply(flat))
    heights1 = support_heights(second, rotation1.inv().apply(-flat))
    return (flat @ offset - heights0 - heights1).reshape(n.shape[:-1])


def separation(
    first: ShapeSpec, second: ShapeSpec, pose0: np.ndarray, pose1: np.ndarray, n: np.ndarray
) -> float:
    """Return the separation [m] of two shapes along the direction n from the first to the second."""
    rotation0, rotation1 = Rotation.from_quat(pose0[3:]), Rotation.from_quat(pose1[3:])
    unit = n / np.linalg.norm(n)
    return float(_separations(first, second, rotation0, rotation1, pose1[:3] - pose0[:3], unit))


def signed_distance(
    first: ShapeSpec, second: ShapeSpec, pose0: np.ndarray, pose1: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the signed distance [m] and its direction from the first to the second shape."""
    rng = np.random.default_rng(7)
    rotation0, rotation1 = Rotation.from_quat(pose0[3:]), Rotation.from_quat(pose1[3:])
    offset = np.asarray(pose1[:3], dtype=np.float64) - np.asarray(pose0[:3], dtype=np.float64)
    index = np.arange(DIRECTION_COUNT)
    z = 1.0 - (2.0 * index + 1.0) / DIRECTION_COUNT
    angle = np.pi * (3.0 - np.sqrt(5.0)) * index
    sphere = np.stack([np.sqrt(1.0 - z * z) * np.cos(angle), np.sqrt(1.0 - z * z) * np.sin(angle), z], axis=1)
    values = _separations(first, second, rotation0, rotation1, offset, sphere)
    order = np.argsort(-values)
    starts: list[np.ndarray] = []
    for candidate in order:
        if all(sphere[candidate] @ other < 0.95 for other in starts):
            starts.append(sphere[candidate])
        if len(starts) == START_COUNT:
            break
    best = np.array(starts)
    value = _separations(first, second, rotation0, rotation1, offset, best)
    step = np.full(len(best), 0.1)
    for _ in range(ROUND_COUNT):
        trials = best[:, None, :] + step[:, None, None] * rng.normal(size=(len(best), STEP_COUNT, 3))
        trials /= np.linalg.norm(trials, axis=-1, keepdims=True)
        found = _separations(first, second, rotation0, rotation1, offset, trials)
        pick = found.argmax(axis=1)
        rows = np.arange(len(best))
        better = found[rows, pick] > value
        best[better] = trials[rows, pick][better]
        value = np.maximum(value, found[rows, pick])
        step *= np.where(better, *STEP_FACTORS)
    winner = int(value.argmax())
    return float(value[winner]), best[winner]
