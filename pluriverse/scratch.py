"""Scratch: memory that a step leaves nothing in, so that worlds may use it one after another.

An array of scratch has a place for every world, since kernels index all arrays by world. A thread steps many
chunks of worlds in turn. Each would load its own places into the caches, and the system would have to provide
the memory. So a chunk may *borrow* the places of another one of the same queue: its launches get the
addresses of these arrays moved, such that the place of its first world is that of the first world of the
other chunk. No kernel knows of it. On a CPU only memory that is touched exists, so places that are never used
cost address space alone.

Entries of no world, such as those of shapes that all worlds share, come to lie elsewhere, too, where a chunk
of another queue could be at work. The chunks of a queue then use a *room* in place of such an array: a larger
one, in which nothing else is. Each of them writes the entries of no world anew.

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
    has_common_entries: bool = False
    """Whether steps also use entries of no world, after they have written them."""


class Borrowing:
    """What the launches of a chunk are to change in their arguments, in order to borrow places.

    Args:
        moves: Of each array the first address, the one behind its end, and by how much it is moved [bytes].
        rooms: Arrays that are moved to, to be kept.
    """

    def __init__(self, moves: Iterable[tuple[int, int, int]] = (), rooms: Sequence[wp.array] = ()) -> None:
        self._rooms = rooms
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


def borrow(
    borrower: np.ndarray, lender: np.ndarray, scratches: Sequence[Scratch], rooms: dict[int, wp.array]
) -> Borrowing | None:
    """Return how a chunk borrows the places of another one; None if a world would get too small a place.

    Args:
        borrower: Worlds of the chunk.
        lender: Worlds of the other one.
        scratches: All scratch of a step.
        rooms: The rooms of all chunks of a queue by the addresses of the arrays. Those that lack are made.
    """
    if len(borrower) > len(lender):
        return None
    lender = lender[: len(borrower)]
    moves = []
    for scratch in scratches:
        size, stride, begin = scratch.array.size, scratch.array.strides[0], scratch.array.ptr
        if size == 0 or begin is None:
            continue
        first, place = scratch.first[borrower], scratch.first[lender]
        if scratch.has_common_entries:
            if begin not in rooms:
                rooms[begin] = zeros_on_demand(2 * size, scratch.array.dtype, scratch.array.device)
            # The first world gets the middle of the room, so that all other entries are inside.
            moved_begin = (rooms[begin].ptr or 0) + (size - int(first[0])) * stride
        else:
            shift = int(place[0] - first[0])
            end, place_end = first + scratch.count[borrower], place + scratch.count[lender]
            if (first + shift < place).any() or (end + shift > place_end).any():
                return None
            moved_begin = begin + shift * stride
        moves.append((begin, begin + size * stride, moved_begin - begin))
    return Borrowing(moves, list(rooms.values()))


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
