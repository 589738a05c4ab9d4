"""Templates: find the worlds of equal structure."""

from collections.abc import Sequence

import numpy as np


def find_equal_worlds(tables: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Number the kinds of worlds in order of first appearance.

    Args:
        tables: Pairs of integers that define the structure, world-local, shape [entity, column], and the
            first entity of each world, shape [world + 1].

    Returns:
        The kind of each world, shape [world]. Two worlds have the same one exactly if all their rows are
        equal.
    """
    counts = np.stack([np.diff(start) for _, start in tables], axis=1)
    world_count = len(counts)
    kind = np.full(world_count, -1, dtype=np.int64)
    kind_count = 0
    _, size_class = np.unique(counts, axis=0, return_inverse=True)
    size_class = size_class.reshape(-1)
    for members in _groups(size_class):
        rows = np.concatenate([_world_rows(values, start, members) for values, start in tables], axis=1)
        pending = np.arange(len(members))
        while len(pending):
            _, first, group = np.unique(_hash_rows(rows[pending]), return_index=True, return_inverse=True)
            group = group.reshape(-1)
            same = np.zeros(len(pending), dtype=bool)
            for block in np.array_split(np.arange(len(pending)), 1 + rows[pending].size // 2**24):
                same[block] = (rows[pending[block]] == rows[pending[first[group[block]]]]).all(axis=1)
            kind[members[pending[same]]] = kind_count + group[same]
            kind_count += len(first)
            pending = pending[~same]  # rows that share a hash without being equal get another round
    _, first_world, compact = np.unique(kind, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first_world))
    return rank[compact.reshape(-1)]


def _groups(labels: np.ndarray) -> list[np.ndarray]:
    """Return the positions of each label, ascending."""
    order = np.argsort(labels, kind="stable")
    bounds = np.flatnonzero(np.diff(labels[order])) + 1
    return np.split(order, bounds) if len(order) else []


def _world_rows(values: np.ndarray, start: np.ndarray, worlds: np.ndarray) -> np.ndarray:
    """Return the entries of worlds with equally many entities as one row per world."""
    count = int(start[worlds[0] + 1] - start[worlds[0]])
    return values[start[worlds][:, None] + np.arange(count)].reshape(len(worlds), -1)


def _hash_rows(rows: np.ndarray) -> np.ndarray:
    """Return a 64-bit linear hash of each row."""
    factors = np.random.default_rng(0).integers(1, 2**63, size=rows.shape[1:], dtype=np.uint64)
    result = np.zeros(len(rows), dtype=np.uint64)
    for column in range(rows.shape[1]):
        result += rows[:, column].astype(np.uint64) * factors[column]
    return result
