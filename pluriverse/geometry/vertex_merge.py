"""Vertices at equal positions, as in files whose triangles share none (STL) or part at texture seams."""

import numpy as np


def merge_vertices(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of `vertices` [vertex, 3] and, per vertex, its index among them."""
    order = np.lexsort(vertices.T)
    ordered = vertices[order]
    is_new = np.ones(len(vertices), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    merged = np.empty(len(vertices), dtype=np.int64)
    merged[order] = np.cumsum(is_new) - 1
    return ordered[is_new], merged
