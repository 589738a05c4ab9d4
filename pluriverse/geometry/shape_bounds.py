"""Bounds: box and sphere around every shape, in its own frame, without margin."""

from typing import Any

import numpy as np

from pluriverse.types import GeoType

# Extent of an unbounded shape [m]; finite, so that sums and rotations stay finite in single precision.
UNBOUNDED_EXTENT = 1.0e10


def compute_shape_bounds(
    shape_type: np.ndarray, scale: np.ndarray, mesh_index: np.ndarray, meshes: list[Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lower and upper corners of the boxes and the radii of the spheres about their centres [m].

    A plane is solid below: its box reaches down from z = 0 without bound, and so does its sphere.
    """
    half = np.zeros((len(shape_type), 3))
    lower, upper = np.zeros_like(half), np.zeros_like(half)
    radius = np.zeros(len(shape_type))
    x, y = scale[:, 0], scale[:, 1]

    selected = shape_type == GeoType.SPHERE
    half[selected] = x[selected, None]
    radius[selected] = x[selected]
    selected = shape_type == GeoType.CAPSULE
    half[selected] = np.stack([x, x, y + x], axis=1)[selected]
    radius[selected] = (x + y)[selected]
    selected = (shape_type == GeoType.CYLINDER) | (shape_type == GeoType.CONE)
    half[selected] = np.stack([x, x, y], axis=1)[selected]
    radius[selected] = np.hypot(x, y)[selected]
    selected = shape_type == GeoType.BOX
    half[selected] = scale[selected]
    radius[selected] = np.linalg.norm(scale[selected], axis=1)
    selected = shape_type == GeoType.ELLIPSOID
    half[selected] = scale[selected]
    radius[selected] = scale[selected].max(axis=1, initial=0.0)
    lower, upper = -half, half

    selected = shape_type == GeoType.PLANE
    extent = np.where(scale[:, :2] > 0.0, 0.5 * scale[:, :2], UNBOUNDED_EXTENT)
    lower[selected] = np.column_stack([-extent, np.full(len(scale), -UNBOUNDED_EXTENT)])[selected]
    upper[selected] = np.column_stack([extent, np.zeros(len(scale))])[selected]
    radius[selected] = UNBOUNDED_EXTENT

    meshed = np.flatnonzero(mesh_index >= 0)
    if len(meshed):
        key = np.column_stack([mesh_index[meshed], scale[meshed]])
        kinds, kind_of = np.unique(key, axis=0, return_inverse=True)
        bounds = [_mesh_bounds(meshes[int(kind[0])], kind[1:]) for kind in kinds]
        kind_of = kind_of.reshape(-1)
        lower[meshed] = np.array([bound[0] for bound in bounds])[kind_of]
        upper[meshed] = np.array([bound[1] for bound in bounds])[kind_of]
        radius[meshed] = np.array([bound[2] for bound in bounds])[kind_of]
    return lower, upper, radius


def _mesh_bounds(mesh: Any, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    vertices = np.asarray(mesh.vertices, dtype=np.float64) * scale
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    radius = float(np.linalg.norm(vertices - 0.5 * (lower + upper), axis=1).max())
    return lower, upper, radius
