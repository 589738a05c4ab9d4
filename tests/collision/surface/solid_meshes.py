"""Closed triangle meshes that stand for solids."""

import numpy as np

import pluriverse as pv
from pluriverse.types import GeoType
from tests.collision.pairs import ShapeSpec, hull


def _convex(points: np.ndarray) -> ShapeSpec:
    return ShapeSpec(GeoType.MESH, mesh=hull(points).mesh)


def _directions(count: int) -> np.ndarray:
    """Return directions that are spread evenly, shape [count, 3]."""
    z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    angle = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(count)
    across = np.sqrt(1.0 - z * z)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=-1)


def box_mesh(hx: float, hy: float, hz: float) -> ShapeSpec:
    """Return a box of half extents [m]."""
    return _convex(np.array([[x, y, z] for x in (-hx, hx) for y in (-hy, hy) for z in (-hz, hz)]))


def sphere_mesh(radius: float) -> ShapeSpec:
    """Return a sphere of 3000 vertices."""
    return _convex(radius * _directions(3000))


def capsule_mesh(radius: float, half_height: float) -> ShapeSpec:
    """Return a capsule along z."""
    directions = _directions(3000)
    ends = half_height * np.sign(directions[:, 2:]) * [0.0, 0.0, 1.0]
    return _convex(radius * directions + ends)


def torus_mesh(major: float, minor: float) -> ShapeSpec:
    """Return a torus around z, of 64 by 64 quadrangles."""
    count = 64
    u, v = np.meshgrid(*[np.arange(count) * 2.0 * np.pi / count] * 2, indexing="ij")
    across = major + minor * np.cos(v)
    vertices = np.stack([across * np.cos(u), across * np.sin(u), minor * np.sin(v)], axis=-1).reshape(-1, 3)
    i, j = (index.reshape(-1) for index in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
    a, b = i * count + j, (i + 1) % count * count + j
    c, d = (i + 1) % count * count + (j + 1) % count, i * count + (j + 1) % count
    triangles = np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])
    return ShapeSpec(GeoType.MESH, mesh=pv.Mesh(vertices, triangles))
