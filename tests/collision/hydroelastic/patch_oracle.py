"""Force and moment of a pressure patch as integrals over the volume of the overlap, in float64 NumPy.

On the patch S both pressures are equal. Where the pressure of the first shape is the lower one, in V, it is
zero on the rest of the boundary, so by the divergence theorem the force on the second shape is

    integral over S of p n dA = - integral over V of grad p0 dV,

with n out of the first shape, and likewise for the moment. Nothing is said about where the patch is.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from pluriverse.types import GeoType
from tests.collision.pairs import ShapeSpec


@dataclass
class Patch:
    """Net effect of a pressure patch on the second shape."""

    force: np.ndarray
    """Force [N], world axes."""
    moment: np.ndarray
    """Moment about the origin of the world [N·m]."""


def depths(shape: ShapeSpec, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the depth of points in a shape [m], positive inside, and its gradient, in its frame."""
    x, y, z = points.T
    size = shape.scale
    if shape.type == GeoType.PLANE:
        planes = np.array([[0.0, 0.0, 1.0, 0.0]])
    elif shape.type == GeoType.BOX:
        planes = np.array(
            [[*(sign * axis), h] for h, axis in zip(size, np.eye(3), strict=True) for sign in (1, -1)]
        )
    elif shape.type == GeoType.CONVEX_MESH:
        planes = ConvexHull(np.asarray(shape.mesh.vertices, dtype=np.float64)).equations * [1, 1, 1, -1]
    elif shape.type == GeoType.ELLIPSOID:
        scaled = points / size
        length = np.linalg.norm(scaled, axis=1)
        return min(size) * (1.0 - length), -min(size) * scaled / np.asarray(size) / length[:, None]
    elif shape.type in (GeoType.SPHERE, GeoType.CAPSULE):
        half = size[1] if shape.type == GeoType.CAPSULE else 0.0
        offset = points - np.outer(np.clip(z, -half, half), [0.0, 0.0, 1.0])
        length = np.linalg.norm(offset, axis=1)
        return size[0] - length, -offset / length[:, None]
    else:
        radius, half = size[:2]
        across = np.hypot(x, y)
        radial = np.column_stack([x / across, y / across, 0.0 * z])
        up = np.array([0.0, 0.0, 1.0])
        if shape.type == GeoType.CYLINDER:
            candidates = [
                (radius - across, -radial),
                (half - z, -up + 0 * radial),
                (half + z, up + 0 * radial),
            ]
        else:
            slant = np.hypot(radius, 2.0 * half)
            out = (2.0 * half * radial + radius * up) / slant
            side = (radius * half - radius * z - 2.0 * half * across) / slant
            candidates = [(side, -out), (half + z, up + 0 * radial)]
        values = np.array([value for value, _ in candidates])
        least = values.argmin(axis=0)
        gradients = np.array([gradient for _, gradient in candidates])
        rows = np.arange(len(points))
        return values[least, rows], gradients[least, rows]
    values = planes[:, 3] - points @ planes[:, :3].T
    least = values.argmin(axis=1)
    return values[np.arange(len(points)), least], -planes[least, :3]


def world_depths(shape: ShapeSpec, pose: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return depth and gradient at points of the world; `pose` is (position, xyzw)."""
    turn = Rotation.from_quat(pose[3:])
    depth, gradient = depths(shape, turn.inv().apply(points - pose[:3]))
    return depth, turn.apply(gradient)


def bounds(shape: ShapeSpec, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper corner of a box of the world around a shape [m]."""
    low, high = np.full(3, -10.0), np.array([10.0, 10.0, 0.0])
    if shape.type != GeoType.PLANE:
        half = {
            GeoType.SPHERE: lambda s: (s[0],) * 3,
            GeoType.CAPSULE: lambda s: (s[0], s[0], s[0] + s[1]),
            GeoType.CYLINDER: lambda s: (s[0], s[0], s[1]),
            GeoType.CONE: lambda s: (s[0], s[0], s[1]),
            GeoType.CONVEX_MESH: lambda s: np.abs(shape.mesh.vertices).max(axis=0),
        }.get(shape.type, lambda s: s)(shape.scale)
        half = np.abs(Rotation.from_quat(pose[3:]).as_matrix()) @ np.asarray(half, dtype=np.float64)
        low, high = pose[:3] - half, pose[:3] + half
    return low, high


def pressure_patch(
    first: ShapeSpec,
    second: ShapeSpec,
    pose0: np.ndarray,
    pose1: np.ndarray,
    kh0: float | None,
    kh1: float | None,
    *,
    resolution: int = 48,
) -> Patch:
    """Return force and moment on the second shape; `kh` None is a rigid shape.

    The overlap is found in rounds of cells, each of which fills the box around those that the last found.
    """
    (low0, high0), (low1, high1) = bounds(first, pose0), bounds(second, pose1)
    low, high = np.maximum(low0, low1), np.minimum(high0, high1)
    if (low >= high).any():
        return Patch(np.zeros(3), np.zeros(3))
    for count in (16, 16, 16, resolution):
        cell = (high - low) / count
        axes = [low[k] + (np.arange(count) + 0.5) * cell[k] for k in range(3)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        depth0, gradient0 = world_depths(first, pose0, points)
        depth1, gradient1 = world_depths(second, pose1, points)
        # Depths change by no more than the distance, so that other cells hold nothing.
        near = np.minimum(depth0, depth1) > -0.5 * np.linalg.norm(cell)
        if not near.any():
            return Patch(np.zeros(3), np.zeros(3))
        low, high = points[near].min(axis=0) - 0.5 * cell, points[near].max(axis=0) + 0.5 * cell
    inside = (depth0 > 0.0) & (depth1 > 0.0)
    # The softer side: where the first shape is rigid, the pressure is that of the second.
    pressure0 = np.inf * depth0 if kh0 is None else kh0 * depth0
    pressure1 = np.inf * depth1 if kh1 is None else kh1 * depth1
    if kh0 is None:
        part, density = inside & (pressure1 < pressure0), kh1 * gradient1
    else:
        part, density = inside & (pressure0 < pressure1), -kh0 * gradient0
    force = density[part] * cell.prod()
    return Patch(force.sum(axis=0), np.cross(points[part], force).sum(axis=0))
