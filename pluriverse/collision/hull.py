"""Convex hulls as colliders use them: vertices, and faces as polygons.

Each hull is stored once, unscaled, whatever number of shapes and worlds use it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

# Corners of a face that contacts are made from. A face with more is replaced by the eight of its corners that
# lose the least area; the contact patch of a rounder face is smaller than the face by that area.
FACE_CORNER_COUNT = 8
# Angle [rad] between the normals of triangles of one flat face. float32 vertices of a hull of relative edge
# length 1e-3 turn normals by up to 1e-4.
FACE_FLATNESS = 1e-4

# Vertices that are compared at a time. Comparing all 64 of a hull so takes half as long as climbing from
# neighbour to neighbour.
LANE_COUNT = 8


@wp.struct
class HullData:
    """All convex hulls of a model, unscaled."""

    vertex_start: wp.array[int]
    """First vertex of each hull, shape [hull + 1]."""
    vertex: wp.array[wp.vec3]
    """Position [m], frame of the mesh, shape [vertex]."""
    center: wp.array[wp.vec3]
    """Mean of the vertices [m], a point inside, shape [hull]."""
    block_start: wp.array[int]
    """First block of each hull in `block`, shape [hull + 1]."""
    block: wp.array[float]
    """Vertices in blocks of `LANE_COUNT`: their x, then y, then z [m]. The last block of a hull is filled up
    with its first vertex."""
    vertex_face_start: wp.array[int]
    """First adjacent face of each vertex, shape [vertex + 1]."""
    vertex_face: wp.array[int]
    """Faces around the vertices, shape [vertex face]."""
    face_start: wp.array[int]
    """First face of each hull, shape [hull + 1]."""
    face_normal: wp.array[wp.vec3]
    """Outward unit normal of the unscaled face, shape [face]."""
    face_offset: wp.array[float]
    """Height of the unscaled face over the origin along its normal [m], shape [face]."""
    corner_start: wp.array[int]
    """First corner of each face, shape [face + 1]."""
    corner: wp.array[int]
    """Vertices around the face, at most `FACE_CORNER_COUNT`, shape [corner]."""


def make_hull_data(meshes: Sequence[Any], device: Any) -> tuple[HullData, np.ndarray, np.ndarray]:
    """Return the hulls of `meshes` on the device, and their lower and upper corners [m], shape [hull, 3]."""
    vertices: list[np.ndarray] = []
    blocks: list[np.ndarray] = []
    vertex_faces: list[list[int]] = []
    normals: list[np.ndarray] = []
    corners: list[list[int]] = []
    vertex_start, block_start, face_start = [0], [0], [0]
    for mesh in meshes:
        hull = mesh.convex_hull()
        points = np.asarray(hull.vertices, dtype=np.float64)
        base, first_face = vertex_start[-1], len(normals)
        triangles = np.asarray(hull.triangles)
        polygons, polygon_normals, face_of = _faces_of(points, triangles)
        vertices.append(points)
        filled = np.concatenate([points, np.repeat(points[:1], -len(points) % LANE_COUNT, axis=0)])
        blocks.append(filled.reshape(-1, LANE_COUNT, 3).transpose(0, 2, 1).reshape(-1))
        block_start.append(block_start[-1] + len(filled) // LANE_COUNT)
        # Vertices in the middle of a flat face have that face too.
        faces_at: list[set[int]] = [set() for _ in points]
        for triangle, face in zip(triangles.tolist(), face_of, strict=True):
            for vertex in triangle:
                faces_at[vertex].add(first_face + face)
        for face, polygon in enumerate(polygons):
            reduced = _largest_corners(points, polygon, polygon_normals[face])
            corners.append([base + vertex for vertex in reduced])
        vertex_faces.extend(sorted(faces) for faces in faces_at)
        normals.extend(polygon_normals)
        vertex_start.append(base + len(points))
        face_start.append(len(normals))

    def to_device(values: Any, dtype: Any) -> wp.array:
        return wp.array(np.asarray(values), dtype=dtype, device=device)

    data = HullData()
    data.vertex_start = to_device(vertex_start, int)
    data.vertex = to_device(np.concatenate([*vertices, np.zeros((0, 3))]), wp.vec3)
    centers = [points.mean(axis=0) for points in vertices]
    data.center = to_device(np.asarray(centers).reshape(-1, 3), wp.vec3)
    data.block_start = to_device(block_start, int)
    data.block = to_device(np.concatenate([*blocks, np.zeros(0)]), float)
    data.vertex_face_start, data.vertex_face = (to_device(part, int) for part in _ragged(vertex_faces))
    data.face_start = to_device(face_start, int)
    all_vertices = np.concatenate([*vertices, np.zeros((0, 3))])
    offsets = [all_vertices[ring[0]] @ normal for ring, normal in zip(corners, normals, strict=True)]
    data.face_offset = to_device(np.asarray(offsets), float)
    data.face_normal = to_device(np.asarray(normals).reshape(-1, 3), wp.vec3)
    data.corner_start, data.corner = (to_device(part, int) for part in _ragged(corners))
    lower = np.array([points.min(axis=0) for points in vertices]).reshape(-1, 3)
    upper = np.array([points.max(axis=0) for points in vertices]).reshape(-1, 3)
    return data, lower, upper


def _ragged(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return starts [row + 1] and concatenated values of lists of unequal length."""
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    return starts, np.array([value for row in rows for value in row], dtype=np.int32)


def _faces_of(points: np.ndarray, triangles: np.ndarray) -> tuple[list[list[int]], np.ndarray, list[int]]:
    """Merge the triangles of a hull into flat polygons.

    Returns:
        Corners of each face in order, counterclockwise seen from outside; outward unit normals; the
        face of every triangle.
    """
    p0, p1, p2 = (points[triangles[:, k]] for k in range(3))
    area_vectors = np.cross(p1 - p0, p2 - p0)
    areas = np.linalg.norm(area_vectors, axis=1)
    triangle_normals = (area_vectors / np.maximum(areas, np.finfo(float).tiny)[:, None]).tolist()
    # A hull has some hundred triangles, visited one by one: Python numbers are faster than small arrays.
    rows, sizes = triangles.tolist(), areas.tolist()
    owner = {(t[k], t[k - 2]): row for row, t in enumerate(rows) for k in range(3)}

    # Faces grow from the largest triangles, whose normals are the most exact.
    face_of = [-1] * len(rows)
    polygons: list[list[int]] = []
    for seed in np.argsort(-areas, kind="stable").tolist():
        if face_of[seed] >= 0:
            continue
        face = len(polygons)
        face_of[seed] = face
        members, stack = [], [seed]
        while stack:
            row = stack.pop()
            members.append(row)
            for k in range(3):
                other = owner.get((rows[row][k - 2], rows[row][k]), -1)
                if other >= 0 and face_of[other] < 0:
                    is_sliver = sizes[other] <= 1e-12 * sizes[seed]
                    if is_sliver or _are_flat(triangle_normals[seed], triangle_normals[other]):
                        face_of[other] = face
                        stack.append(other)
        boundary: dict[int, int] = {}
        for row in members:
            for k in range(3):
                first, second = rows[row][k], rows[row][k - 2]
                other = owner.get((second, first), -1)
                if other < 0 or face_of[other] != face:
                    boundary[first] = second
        start = next(iter(boundary))
        polygon, vertex = [start], boundary[start]
        while vertex != start and len(polygon) <= len(boundary):
            polygon.append(vertex)
            vertex = boundary[vertex]
        polygons.append(polygon)
    totals = np.zeros((len(polygons), 3))
    np.add.at(totals, face_of, area_vectors)
    normals = totals / np.linalg.norm(totals, axis=1)[:, None]
    return polygons, normals, face_of


def _are_flat(a: list[float], b: list[float]) -> bool:
    """Return whether two unit normals belong to one flat face."""
    x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    is_same_side = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > 0.0
    return is_same_side and x * x + y * y + z * z < FACE_FLATNESS * FACE_FLATNESS


def _largest_corners(points: np.ndarray, polygon: list[int], normal: np.ndarray) -> list[int]:
    """Return at most `FACE_CORNER_COUNT` corners of a convex polygon, those that keep most of its area."""
    polygon = list(polygon)
    while len(polygon) > FACE_CORNER_COUNT:
        ring = points[polygon]
        before, after = np.roll(ring, 1, axis=0), np.roll(ring, -1, axis=0)
        lost = np.cross(ring - before, after - ring) @ normal
        polygon.pop(int(np.argmin(lost)))
    return polygon


# Each lane keeps the farthest of its vertices, and halves of the lanes are compared until one is left. Of
# equals the first vertex of the hull stays.
_FARTHEST = f"""
    constexpr int LANES = {LANE_COUNT};
    const float* at = block.data + 3 * LANES * first;
    float most[LANES];
    int best[LANES];
    for (int l = 0; l < LANES; ++l) {{
        most[l] = at[l] * direction[0] + at[LANES + l] * direction[1] + at[2 * LANES + l] * direction[2];
        best[l] = l;
    }}
    for (int k = 1; k < end - first; ++k) {{
        at += 3 * LANES;
        for (int l = 0; l < LANES; ++l) {{
            const float height =
                at[l] * direction[0] + at[LANES + l] * direction[1] + at[2 * LANES + l] * direction[2];
            const bool is_farther = height > most[l];
            most[l] = is_farther ? height : most[l];
            best[l] = is_farther ? k * LANES + l : best[l];
        }}
    }}
    for (int half = LANES / 2; half > 0; half /= 2) {{
        for (int l = 0; l < half; ++l) {{
            const float other = most[l + half];
            const bool is_farther = other > most[l] || (other == most[l] && best[l + half] < best[l]);
            most[l] = is_farther ? other : most[l];
            best[l] = is_farther ? best[l + half] : best[l];
        }}
    }}
    return best[0];
"""


@wp.func_native(_FARTHEST)
def farthest_in_blocks(block: wp.array[float], first: int, end: int, direction: wp.vec3) -> int:
    """Return which vertex in some blocks is farthest along a direction, counted from the first.

    Args:
        block: See `HullData`.
        first: First block.
        end: One past the last.
        direction: The direction.
    """
    ...


@wp.func
def support_vertex(hulls: wp.ref[HullData], hull: int, direction: wp.vec3) -> int:
    """Return the vertex of a hull farthest along `direction`, given in the unscaled frame of the mesh."""
    first, end = hulls.block_start[hull], hulls.block_start[hull + 1]
    vertex = hulls.vertex_start[hull] + farthest_in_blocks(hulls.block, first, end, direction)
    # What fills up the last block is the first vertex.
    return wp.where(vertex < hulls.vertex_start[hull + 1], vertex, hulls.vertex_start[hull])


@wp.func
def facing_face(hulls: wp.ref[HullData], vertex: int, scale: wp.vec3, direction: wp.vec3) -> int:
    """Return the face around `vertex` whose normal, scaled, is closest to `direction`."""
    best = int(-1)
    best_cosine = float(-2.0)
    inverse = wp.vec3(1.0 / scale[0], 1.0 / scale[1], 1.0 / scale[2])
    for index in range(hulls.vertex_face_start[vertex], hulls.vertex_face_start[vertex + 1]):
        face = hulls.vertex_face[index]
        # Normals transform with the inverse transpose of the scale.
        cosine = wp.dot(wp.normalize(wp.cw_mul(hulls.face_normal[face], inverse)), direction)
        if cosine > best_cosine:
            best_cosine = cosine
            best = face
    return best
