"""Normals of the corners of triangles, for smooth shading of curved surfaces."""

import numpy as np

# Angle [rad] between two triangles from which their common edge is sharp.
CREASE = np.radians(35.0)
# Largest number of neighbours around a vertex whose normals are averaged.
NEIGHBOUR_COUNT_MAX = 64


def compute_corner_normals(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return unit normals of the corners of triangles, shape [triangle, 3, 3].

    At a vertex the normals of the triangles there are averaged by their angle, of those that differ from the
    triangle's own by less than `CREASE`; across sharper edges each side keeps its own.
    """
    points = np.asarray(vertices, dtype=np.float64)
    # Vertices at the same position count as one: files repeat them for every colour and texture.
    _, vertex_index = np.unique(np.asarray(vertices, dtype=np.float32), axis=0, return_inverse=True)
    vertex_index = vertex_index.reshape(-1)
    corners = points[triangles]
    edges = np.roll(corners, -1, axis=1) - corners
    normal = np.cross(edges[:, 0], edges[:, 1])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0.0)
    lengths = np.linalg.norm(edges, axis=2, keepdims=True)
    unit = np.divide(edges, lengths, out=np.zeros_like(edges), where=lengths > 0.0)
    angle = np.arccos(np.clip(-np.einsum("tij,tij->ti", unit, np.roll(unit, 1, axis=1)), -1.0, 1.0))
    # All pairs of corners that meet at a vertex, each corner with every other by its rank around the vertex.
    corner_index = vertex_index[triangles].reshape(-1)
    order = np.argsort(corner_index, kind="stable")
    counts = np.bincount(corner_index, minlength=int(vertex_index.max(initial=-1)) + 1)
    starts = np.cumsum(counts) - counts
    weighted = normal.repeat(3, axis=0) * angle.reshape(-1, 1)
    flat_normal = normal.repeat(3, axis=0)
    result = weighted.copy()
    own = corner_index
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - starts[corner_index[order]]
    cosine = np.cos(CREASE)
    active = np.arange(len(corner_index))
    for step in range(1, min(int(counts.max(initial=1)), NEIGHBOUR_COUNT_MAX)):
        active = active[counts[own[active]] > step]
        if not len(active):
            break
        here = own[active]
        other = order[starts[here] + (rank[active] + step) % counts[here]]
        near = np.einsum("ij,ij->i", flat_normal[active], flat_normal[other]) > cosine
        result[active[near]] += weighted[other[near]]
    size = np.linalg.norm(result, axis=1, keepdims=True)
    result = np.where(size > 1.0e-12, result / np.maximum(size, 1.0e-12), flat_normal)
    return result.reshape(-1, 3, 3).astype(np.float32)
