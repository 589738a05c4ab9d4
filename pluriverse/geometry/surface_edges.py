"""Edges of a triangle mesh: which triangles share them, and whether they close the surface.

Meshes of a terrain have millions of edges, so they are sorted once, by one integer each, and what regular
edges have (two triangles) is found without any further search.
"""

import dataclasses

import numpy as np

# Odd multiplier of a 64-bit hash, 2**64 / golden ratio.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclasses.dataclass(frozen=True)
class SurfaceEdges:
    """The edges of triangles. Side 3 t + k is the edge from corner k of triangle t, seen from it."""

    low: np.ndarray
    """Lower vertex of each edge; edges are sorted by it, then by the higher one, shape [edge]."""
    high: np.ndarray
    """Higher vertex, shape [edge]."""
    edge: np.ndarray
    """Edge of each side, shape [side]."""
    order: np.ndarray
    """Sides in the order of their edges, shape [side]."""
    start: np.ndarray
    """First entry of `order` of each edge, shape [edge + 1]."""

    @property
    def share_count(self) -> np.ndarray:
        """Number of sides of each edge, shape [edge]."""
        return np.diff(self.start)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the two sides of each edge that has two."""
        first = self.start[:-1][self.share_count == 2]
        return self.order[first], self.order[first + 1]


def find_edges(triangles: np.ndarray, vertex_count: int) -> SurfaceEdges:
    """Return the edges of triangles, shape [triangle, 3]."""
    tail, head = side_ends(triangles)
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    key = low.astype(np.int64) * vertex_count + high
    order = np.argsort(key)
    key = key[order]
    is_new = np.ones(len(key), dtype=bool)
    is_new[1:] = key[1:] != key[:-1]
    edge = np.empty(len(key), dtype=np.int32)
    edge[order] = np.cumsum(is_new, dtype=np.int32) - 1
    first = np.flatnonzero(is_new)
    return SurfaceEdges(
        low[order[first]], high[order[first]], edge, order, np.append(first, len(key)).astype(np.int64)
    )


def side_ends(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices that each side runs from and to, shape [side]."""
    return triangles.reshape(-1), triangles[:, [1, 2, 0]].reshape(-1)


def is_closed_surface(triangles: np.ndarray, vertex_count: int) -> bool:
    """Return whether triangles run along every edge as often one way as the other."""
    tail, head = side_ends(np.asarray(triangles))
    forward = tail < head
    # Along a closed surface any function of edges, with the sign of the direction, sums to zero. One that
    # does not is told apart without sorting.
    key = np.minimum(tail, head).astype(np.uint64) * np.uint64(vertex_count)
    key += np.maximum(tail, head).astype(np.uint64)
    key *= _MULTIPLIER
    key ^= key >> np.uint64(29)
    key *= _MULTIPLIER
    if key[forward].sum() != key[tail > head].sum():
        return False
    edges = find_edges(triangles, vertex_count)
    balance = np.bincount(edges.edge, weights=np.sign(head.astype(np.int64) - tail))
    return not balance.any()


def rings(edges: SurfaceEdges, vertex_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of each vertex along edges, sorted: starts [vertex + 1], and neighbours."""
    low, high = edges.low, edges.high
    below, above = (np.bincount(ends, minlength=vertex_count) for ends in (high, low))
    start = np.concatenate([[0], np.cumsum(below + above)])
    ring = np.empty(2 * len(low), dtype=np.int32)
    # Lower neighbours stand in front of higher ones; edges are sorted by their lower vertex.
    index = np.arange(len(low))
    ring[start[low] + below[low] + index - (np.cumsum(above) - above)[low]] = high
    by_high = np.argsort(high, kind="stable")
    ends = high[by_high]
    ring[start[ends] + index - (np.cumsum(below) - below)[ends]] = low[by_high]
    return start, ring
