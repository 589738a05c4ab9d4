"""Candidate pairs: which shapes of a world may touch, decided once per template.

Two shapes are a pair if both collide with shapes, their groups agree, at least one of them can move, no
moving joint connects their bodies directly (parent and child are filtered by default), and the pair is not
filtered. Bodies fixed together count as one.
"""

from dataclasses import dataclass

import numpy as np

# Entries of the candidate matrix processed at once, which bounds memory (a few bytes each).
PAIR_BLOCK_SIZE = 2**22


@dataclass
class CollisionShapes:
    """Shapes that may touch each other, global ones first."""

    code: np.ndarray
    """Code of the shape in pairs: its world-local index, or -1 - flat index for a global shape."""
    type: np.ndarray
    """`GeoType`."""
    group: np.ndarray
    """Collision group."""
    weld: np.ndarray
    """Body at the root of the bodies fixed together that carry the shape; -1 for the world."""
    static: np.ndarray
    """Whether the shape cannot move."""
    filter_parent: np.ndarray
    """Whether the shape is filtered against those of the parent and child of its body."""


def find_pairs(
    shapes: CollisionShapes, joint_welds: np.ndarray, filtered_codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the shapes of every candidate pair, the lower `GeoType` first.

    Args:
        shapes: Shapes that collide.
        joint_welds: `weld` of parent and child of each joint that filters them, shape [joint, 2].
        filtered_codes: Codes of explicitly filtered pairs, shape [pair, 2].
    """
    count = len(shapes.code)
    groups, group = np.unique(shapes.group, return_inverse=True)
    group = group.reshape(-1)
    agree = groups_collide(groups[:, None], groups[None, :])
    weld, static = shapes.weld.astype(np.int32), shapes.static
    left_out = np.concatenate(
        [_indices_of_welds(shapes, joint_welds), _indices_of_codes(shapes.code, filtered_codes)]
    )
    left_out.sort(axis=1)
    left_out = left_out[np.argsort(left_out[:, 0], kind="stable")]
    # A world of thousands of shapes has tens of millions of pairs, so they are kept in 32 bits.
    firsts, seconds = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)]
    step = max(1, PAIR_BLOCK_SIZE // max(count, 1))
    for start in range(0, count, step):
        row, column = slice(start, min(start + step, count)), slice(start, count)
        keep = np.triu(~(static[row, None] & static[None, column]), 1)
        keep &= (weld[row, None] != weld[None, column]) | (weld[row, None] < 0)
        if not agree.all():
            keep &= agree[group[row]][:, group[column]]
        here = slice(*np.searchsorted(left_out[:, 0], [row.start, row.stop]))
        keep[left_out[here, 0] - start, left_out[here, 1] - start] = False
        first, second = np.nonzero(keep)
        firsts.append((first + start).astype(np.int32))
        seconds.append((second + start).astype(np.int32))
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    swap = shapes.type[first] > shapes.type[second]
    first[swap], second[swap] = second[swap], first[swap]
    code = shapes.code.astype(np.int32)
    return code[first], code[second]


def groups_collide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return whether shapes of two groups collide.

    Group 0 collides with nothing, a positive group with itself and with all negative ones, a negative group
    with all others but itself.
    """
    return (a != 0) & (b != 0) & np.where(a > 0, (b == a) | (b < 0), b != a)


def _indices_of_welds(shapes: CollisionShapes, joint_welds: np.ndarray) -> np.ndarray:
    """Return the indices of shapes that a joint keeps apart, shape [pair, 2].

    Args:
        shapes: Shapes that collide.
        joint_welds: Welds that each joint connects, shape [joint, 2].
    """
    filtered = np.flatnonzero(shapes.filter_parent)
    order = filtered[np.argsort(shapes.weld[filtered], kind="stable")]
    start = np.searchsorted(shapes.weld[order], joint_welds)
    counts = np.searchsorted(shapes.weld[order], joint_welds, side="right") - start
    totals = counts[:, 0] * counts[:, 1]
    joint = np.repeat(np.arange(len(joint_welds)), totals)
    index = np.arange(len(joint)) - np.repeat(np.cumsum(totals) - totals, totals)
    parent, child = np.divmod(index, np.maximum(counts[joint, 1], 1))
    indices = np.stack([order[start[joint, 0] + parent], order[start[joint, 1] + child]], axis=1)
    return indices.reshape(-1, 2)


def _indices_of_codes(codes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return where codes of pairs are, shape [pair, 2]; pairs of codes that are not there are left out."""
    if len(codes) == 0 or len(pairs) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    order = np.argsort(codes)
    positions = np.minimum(np.searchsorted(codes[order], pairs), len(codes) - 1)
    known = (codes[order][positions] == pairs).all(axis=1)
    return order[positions[known]].reshape(-1, 2)
