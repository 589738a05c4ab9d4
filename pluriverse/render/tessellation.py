"""Tessellation: the triangles of a shape of any geometry, with smooth normals and texture coordinates."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.geometry.mesh_normals import compute_corner_normals
from pluriverse.types import GeoType

# Sides of a circle; a round shape of 32 sides is off by 0.5 % of its radius.
SIDES = 32


@dataclass(frozen=True, eq=False)
class Tessellation:
    """Triangles of a shape."""

    vertices: np.ndarray
    """Vertex positions [m], shape [vertex, 3], float32."""
    triangles: np.ndarray
    """Vertex indices, counterclockwise seen from outside, shape [triangle, 3], int32."""
    corner_normals: np.ndarray
    """Unit normals of the corners, shape [triangle, 3, 3], float32."""
    corner_uv: np.ndarray | None
    """Texture coordinates of the corners, shape [triangle, 3, 2], or None."""
    source: Any
    """The mesh, or None for primitives."""
    is_double_sided: bool
    """Whether the surface is open."""


def tessellate(geometry: GeoType, scale: np.ndarray, mesh: Any, plane_half_size: float) -> Tessellation:
    """Return the triangles of a shape in its own frame.

    Args:
        geometry: Kind of shape.
        scale: Its size, as `GeoType` says.
        mesh: Its `Mesh` or `Heightfield`, or None.
        plane_half_size: Half side of the square that stands for an endless plane [m].
    """
    if geometry in (GeoType.MESH, GeoType.CONVEX_MESH, GeoType.HFIELD):
        return _of_mesh(geometry, scale, mesh)
    if geometry is GeoType.PLANE:
        half = np.where(scale[:2] > 0.0, 0.5 * scale[:2], plane_half_size)
        vertices = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        vertices[:, :2] *= half
        return _finish(vertices, np.array([[0, 1, 2], [0, 2, 3]]), is_double_sided=True)
    if geometry is GeoType.BOX:
        return _finish(_BOX * scale, _BOX_TRIANGLES)
    if geometry in (GeoType.SPHERE, GeoType.ELLIPSOID):
        radii = scale if geometry is GeoType.ELLIPSOID else np.full(3, scale[0])
        profile = [(np.sin(angle), -np.cos(angle)) for angle in np.linspace(0.0, np.pi, SIDES // 2 + 1)]
        vertices, triangles = _turned(profile)
        return _finish(vertices * radii, triangles)
    radius = float(scale[0])
    length = float(scale[1])
    if geometry is GeoType.CAPSULE:
        quarter = np.linspace(0.0, 0.5 * np.pi, SIDES // 4 + 1)
        lower = [(radius * np.sin(a), -length - radius * np.cos(a)) for a in quarter]
        upper = [(radius * np.cos(a), length + radius * np.sin(a)) for a in quarter]
        return _finish(*_turned(lower + upper))
    if geometry is GeoType.CYLINDER:
        outline = [(0.0, -length), (radius, -length), (radius, length), (0.0, length)]
        return _finish(*_turned(outline))
    assert geometry is GeoType.CONE
    return _finish(*_turned([(0.0, -length), (radius, -length), (0.0, length)]))


_BOX = np.array([[x, y, z] for z in (-1.0, 1.0) for y in (-1.0, 1.0) for x in (-1.0, 1.0)])
_BOX_TRIANGLES = np.array(
    [
        [0, 2, 3],
        [0, 3, 1],
        [4, 5, 7],
        [4, 7, 6],
        [0, 1, 5],
        [0, 5, 4],
        [2, 6, 7],
        [2, 7, 3],
        [0, 4, 6],
        [0, 6, 2],
        [1, 3, 7],
        [1, 7, 5],
    ]
)


def _of_mesh(geometry: GeoType, scale: np.ndarray, mesh: Any) -> Tessellation:
    source = mesh.convex_hull() if geometry is GeoType.CONVEX_MESH else mesh
    vertices = np.asarray(source.vertices, dtype=np.float64) * scale
    triangles = np.asarray(source.triangles)
    skin = getattr(source, "skin", None)
    uv = None if skin is None else skin.corner_uv
    if np.prod(scale) < 0.0:
        triangles = triangles[:, ::-1]
        uv = None if uv is None else uv[:, ::-1]
    normals = source.corner_normals if (scale == scale[0]).all() and scale[0] > 0.0 else None
    is_open = geometry is GeoType.HFIELD or not source.is_closed
    return _finish(vertices, triangles, normals=normals, uv=uv, source=source, is_double_sided=is_open)


def _finish(
    vertices: np.ndarray,
    triangles: np.ndarray,
    *,
    normals: np.ndarray | None = None,
    uv: np.ndarray | None = None,
    source: Any = None,
    is_double_sided: bool = False,
) -> Tessellation:
    vertices = np.ascontiguousarray(vertices, dtype=np.float32)
    triangles = np.ascontiguousarray(triangles, dtype=np.int32)
    if normals is None:
        normals = compute_corner_normals(vertices, triangles)
    return Tessellation(vertices, triangles, normals, uv, source, is_double_sided)


def _turned(profile: Sequence[tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the surface that a profile of (radius, height), from below to above, sweeps around z."""
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    rings: list[np.ndarray] = []
    vertices: list[tuple[Any, Any, Any]] = []
    for radius, height in profile:
        start = len(vertices)
        if radius <= 1.0e-9:
            vertices.append((0.0, 0.0, height))
            rings.append(np.full(SIDES, start))
        else:
            vertices += [(radius * np.cos(a), radius * np.sin(a), height) for a in angles]
            rings.append(start + np.arange(SIDES))
    triangles = []
    for lower, upper in itertools.pairwise(rings):
        for side in range(SIDES):
            following = (side + 1) % SIDES
            a, b, c, d = lower[side], lower[following], upper[following], upper[side]
            triangles += [corner for corner in ((a, b, c), (a, c, d)) if len(set(corner)) == 3]
    return np.array(vertices), np.array(triangles)
