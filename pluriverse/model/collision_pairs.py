"""Candidate pairs: which shapes of a world may touch, decided once per template.

Two shapes are a pair if both collide with shapes, their groups agree, at least one of them can move, no
moving joint lies between no bodies but theirs (parent and child are filtered unless asked otherwise), and
the pair is not filtered. Bodies fixed together count as one.
"""

from dataclasses import dataclass

import numpy as np

# Candidate matrix entries looked at in one go, to bound the memory (bytes, a few times over).
PAIR_BLOCK_SIZE = 2**22


@dataclass
class CollisionShapes:
    """Shapes that may touch each other, global ones first."""

    code: np.ndarray
    """How pairs name the shape: its world-local index, or -1 - flat index for a global shape."""
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
        filtered_codes: Codes of the pairs filtered by hand, shape [pair, 2].
    """
    count = len(shapes.code)
    blocked = _keys(joint_welds, _span(shapes.weld, joint_welds))
    filtered = _keys(filtered_codes, _span(shapes.code, filtered_codes))
    firsts, seconds = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    step = max(1, PAIR_BLOCK_SIZE // max(count, 1))
    for begin in range(0, count, step):
        row = np.arange(begin, min(begin + step, count))[:, None]
        column = np.arange(begin, count)[None, :]
        keep = column > row
        keep &= ~(shapes.static[row] & shapes.static[column])
        keep &= (shapes.weld[row] != shapes.weld[column]) | (shapes.weld[row] < 0)
        keep &= groups_collide(shapes.group[row], shapes.group[column])
        first, second = np.nonzero(keep)
        first, second = first + begin, second + begin
        pair = np.stack([first, second], axis=1)
        neighbours = np.isin(_keys(shapes.weld[pair], _span(shapes.weld, joint_welds)), blocked)
        neighbours &= shapes.filter_parent[first] & shapes.filter_parent[second]
        by_hand = np.isin(_keys(shapes.code[pair], _span(shapes.code, filtered_codes)), filtered)
        kept = ~(neighbours | by_hand)
        firsts.append(first[kept])
        seconds.append(second[kept])
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    swap = shapes.type[first] > shapes.type[second]
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    return shapes.code[first], shapes.code[second]


def groups_collide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return whether shapes of two groups collide.

    Group 0 collides with nothing, a positive group with itself and with all negative ones, a negative group
    with all others but itself.
    """
    return (a != 0) & (b != 0) & np.where(a > 0, (b == a) | (b < 0), b != a)


def _span(*arrays: np.ndarray) -> tuple[int, int]:
    """Return offset and factor that make `_keys` of values from `arrays` unique."""
    low = min((int(array.min()) for array in arrays if array.size), default=0)
    high = max((int(array.max()) for array in arrays if array.size), default=0)
    return low, high - low + 1


def _keys(pairs: np.ndarray, span: tuple[int, int]) -> np.ndarray:
    """Return one number per unordered pair of integers."""
    low, factor = span
    return (pairs.min(axis=1) - low) * factor + (pairs.max(axis=1) - low)
