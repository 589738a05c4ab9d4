"""Layout: positions of the entries of an array that belong to the rows of a view.

The rows of a view are its articulations, bodies, joints, shapes or worlds. Each row owns some entries of an
array: an articulation of 12 joints owns 12 entries of `joint_type`. If all rows own the same number, the
entries form a rectangular array [world, row, entry]. If they are at regular distances in memory, that is a
view of the array itself, and nothing is copied.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import array_of


@dataclass
class Layout:
    """Entries of one frequency, row after row."""

    index: np.ndarray
    """Flat index of each entry in the arrays of the model, shape [entry]."""
    start: np.ndarray
    """First entry of each row and, at the end, the number of entries, shape [row + 1]."""
    row_shape: tuple[int, ...]
    """Shape of the rows: (world, row of the world) if all worlds have the same number, else (row,)."""
    is_own: bool
    """Whether the entries are the rows themselves, one each."""
    device: Any
    """Device that the arrays go to."""

    shape: tuple[int, ...] = field(init=False)
    """Shape of the entries: that of the rows, then the entries of a row; (entry,) if ragged."""
    is_ragged: bool = field(init=False)
    """Whether rows own different numbers of entries."""
    count_max: int = field(init=False)
    """Most entries of a row."""
    strides: tuple[int, ...] | None = field(init=False)
    """Distance in memory along each axis of `shape`, in entries; None if it is not regular."""

    def __post_init__(self) -> None:
        counts = np.diff(self.start)
        self.count_max = int(counts.max(initial=0))
        self.is_ragged = bool((counts != self.count_max).any())
        if self.is_ragged:
            self.shape = (len(self.index),)
        else:
            self.shape = self.row_shape if self.is_own else (*self.row_shape, self.count_max)
        self.strides = _regular_strides(self.index.reshape(self.shape))
        self._arrays: dict[str, wp.array] = {}

    @property
    def index_array(self) -> wp.array[int]:
        """`index` on the device."""
        return self._array("index", lambda: self.index)

    @property
    def entry_row_array(self) -> wp.array[int]:
        """Row of each entry, on the device, shape [entry]."""
        return self._array("entry_row", self._entry_rows)

    @property
    def padded_index_array(self) -> wp.array[int]:
        """Flat index of each entry in an array [row, count_max], on the device, shape [entry]."""
        return self._array("padded_index", self.padded_indices)

    @property
    def in_order(self) -> wp.array[int]:
        """Empty: entry after entry."""
        return self._array("in_order", lambda: np.zeros(0))

    @property
    def padded_shape(self) -> tuple[int, int]:
        """Shape [row, count_max] of padded entries."""
        return (len(self.start) - 1, self.count_max)

    def padded_indices(self) -> np.ndarray:
        """Return the flat index of each entry in an array [row, count_max]."""
        rows = self._entry_rows()
        return np.arange(len(self.index)) + rows * self.count_max - self.start[rows]

    def _entry_rows(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def _array(self, name: str, make: Any) -> wp.array:
        if name not in self._arrays:
            self._arrays[name] = array_of(make().astype(np.int32), wp.int32, self.device)
        return self._arrays[name]


def owned_by(rows: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entities that each row owns, row after row, and the start of each row.

    Args:
        rows: Index of each owner.
        owner: Owner of each entity; -1 for none.
    """
    row_of = np.full(int(max(owner.max(initial=-1), rows.max(initial=-1))) + 2, -1, dtype=np.int64)
    row_of[rows] = np.arange(len(rows))  # the last entry stays -1, which owner -1 addresses
    entity_row = row_of[owner]
    entities = np.flatnonzero(entity_row >= 0)
    order = np.argsort(entity_row[entities], kind="stable")
    counts = np.bincount(entity_row[entities], minlength=len(rows))
    return entities[order], np.concatenate([[0], np.cumsum(counts)])


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the numbers of consecutive ranges, one after the other."""
    total = int(count.sum())
    start = np.cumsum(count) - count
    return np.repeat(first - start, count) + np.arange(total)


def _regular_strides(index: np.ndarray) -> tuple[int, ...] | None:
    """Return the distance between neighbours along each axis, None if it varies or runs backwards."""
    if index.size == 0:
        return None
    strides: list[int] = []
    for axis, size in enumerate(index.shape):
        if size == 1:
            strides.append(0)  # filled in below
            continue
        steps = np.diff(index, axis=axis)
        step = int(steps.flat[0])
        if step <= 0 or (steps != step).any():
            return None
        strides.append(step)
    # The distance along an axis of length 1 has no meaning; use that of a dense array.
    inner = 1
    for axis in range(index.ndim - 1, -1, -1):
        if index.shape[axis] == 1:
            strides[axis] = inner
        inner = strides[axis] * index.shape[axis]
    return tuple(strides)
