"""Scratch: memory that a step leaves nothing in, so that worlds may use it one after another.

An array of scratch has a place for every world, since kernels index all arrays by world. A thread steps many
chunks of worlds in turn. Each would load its own places into the caches, and the system would have to provide
the memory. So a chunk may *borrow* the places of another one of the same queue: its launches get the
addresses of these arrays moved, such that the place of its first world is that of the first world of the
other chunk. No kernel knows of it. On a CPU only memory that is touched exists, so places that are never used
cost address space alone.

What a kernel reads of scratch has to be written in the same solver step, and nothing may be read of it later.
"""

import contextlib
import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

# Size [bytes] from which memory is asked of the system, which provides a page when it is touched. Below, it
# is not worth a page of its own.
ON_DEMAND_MIN = 1 << 16


@dataclass(frozen=True)
class Scratch:
    """An array of scratch, and where the places of the worlds are."""

    array: wp.array
    first: np.ndarray
    """First entry of each world, shape [world]."""
    count: np.ndarray
    """Entries of each world, shape [world]."""


class Borrowing:
    """What the launches of a chunk are to change in their arguments, in order to borrow places.

    Args:
        moves: Of each array the first address, the one behind its end, and by how much it is moved [bytes].
    """

    def __init__(self, moves: Iterable[tuple[int, int, int]] = ()) -> None:
        rows = np.array(sorted(moves), dtype=np.int64).reshape(-1, 3)
        # Arrays that are interleaved overlap. None of them is moved otherwise than the one that it is in.
        self._begin, self._end, self._shift = rows.T.copy()

    def move(self, addresses: np.ndarray) -> np.ndarray:
        """Return addresses in arrays that are moved as they are to be, and others as they are."""
        if not len(self._begin):
            return addresses
        row = np.maximum(np.searchsorted(self._begin, addresses, side="right") - 1, 0)
        is_inside = (addresses >= self._begin[row]) & (addresses < self._end[row])
        return np.where(is_inside, addresses + self._shift[row], addresses)


def borrow(borrower: np.ndarray, lender: np.ndarray, scratches: Sequence[Scratch]) -> Borrowing | None:
    """Return how a chunk borrows the places of another one; None if a world would get too small a place.

    Args:
        borrower: Worlds of the chunk.
        lender: Worlds of the other one.
        scratches: All scratch of a step.
    """
    if len(borrower) > len(lender):
        return None
    lender = lender[: len(borrower)]
    moves = []
    for scratch in scratches:
        if scratch.array.size == 0:
            continue
        first, place = scratch.first[borrower], scratch.first[lender]
        shift = int(place[0] - first[0])
        end, place_end = first + scratch.count[borrower], place + scratch.count[lender]
        if (first + shift < place).any() or (end + shift > place_end).any():
            return None
        stride, begin = scratch.array.strides[0], scratch.array.ptr
        moves.append((begin, begin + scratch.array.size * stride, shift * stride))
    return Borrowing(moves)


def zeros_on_demand(size: int, dtype: Any, device: Any) -> wp.array:
    """Return zeros; on a CPU the system provides the memory of a large array where it is touched."""
    byte_count = size * wp.types.type_size_in_bytes(dtype)
    if not wp.get_device(device).is_cpu or byte_count < ON_DEMAND_MIN:
        return wp.zeros(size, dtype=dtype, device=device)
    if hasattr(mmap, "MAP_PRIVATE"):
        # By default the processes that fork would share it.
        memory = mmap.mmap(-1, byte_count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            with contextlib.suppress(OSError):  # a system without huge pages does not know it
                memory.madvise(mmap.MADV_NOHUGEPAGE)
        numbers = np.frombuffer(memory, dtype=np.uint8)
    else:
        numbers = np.zeros(byte_count, dtype=np.uint8)
    result: Any = wp.array(ptr=numbers.ctypes.data, dtype=dtype, shape=(size,), device=device)
    result._ref = numbers  # keeps the memory alive
    return result
