"""Distances by coal, an independent library of collision algorithms. It is a test dependency."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pluriverse.types import GeoType
from tests.collision.pairs import ShapeSpec

coal = pytest.importorskip("coal", reason="coal is not installed: pip install coal")

# Relative to the size of the shapes; its default of 1e-6 is too coarse for an oracle of 1e-5.
GJK_TOLERANCE = 1e-10


def coal_geometry(shape: ShapeSpec) -> Any:
    """Return a shape as coal has it; meshes and height fields are their triangles."""
    size = shape.scale
    if shape.type in (GeoType.MESH, GeoType.HFIELD):
        return triangle_soup(shape.mesh.vertices * np.asarray(size or (1.0, 1.0, 1.0)), shape.mesh.triangles)
    if shape.type == GeoType.CONVEX_MESH:
        points = coal.StdVec_Vec3s()
        for vertex in shape.mesh.vertices.astype(np.float64) * np.asarray(size or (1.0, 1.0, 1.0)):
            points.append(vertex)
        return coal.Convex.convexHull(points, True, "Qt")
    make = {
        GeoType.SPHERE: lambda: coal.Sphere(size[0]),
        GeoType.CAPSULE: lambda: coal.Capsule(size[0], 2.0 * size[1]),
        GeoType.CYLINDER: lambda: coal.Cylinder(size[0], 2.0 * size[1]),
        GeoType.CONE: lambda: coal.Cone(size[0], 2.0 * size[1]),
        GeoType.BOX: lambda: coal.Box(*(2.0 * np.asarray(size))),
        GeoType.ELLIPSOID: lambda: coal.Ellipsoid(*size),
    }
    return make[shape.type]()


def triangle_soup(vertices: np.ndarray, triangles: np.ndarray) -> Any:
    """Return triangles in a tree of bounding volumes."""
    soup = coal.BVHModelOBBRSS()
    soup.beginModel(len(triangles), len(vertices))
    points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in vertices:
        points.append(np.asarray(vertex, dtype=np.float64))
    for face in triangles:
        faces.append(coal.Triangle(*map(int, face)))
    soup.addSubModel(points, faces)
    soup.endModel()
    return soup


def coal_pose(pose: np.ndarray) -> Any:
    """Return a pose [m, xyzw]."""
    return coal.Transform3s(Rotation.from_quat(pose[3:]).as_matrix(), np.asarray(pose[:3], dtype=np.float64))


def coal_distance(first: Any, pose0: np.ndarray, second: Any, pose1: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the distance [m] of two geometries and the unit normal from the first to the second.

    Of triangles that overlap a shape, the distance is some negative number.
    """
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = GJK_TOLERANCE
    distance = coal.distance(first, coal_pose(pose0), second, coal_pose(pose1), request, result)
    return float(distance), np.array(result.normal)
