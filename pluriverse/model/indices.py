"""Conversion of indices and masks on the device to the types that kernels take.

Reads   indices of 32 or 64 bits; masks of truth values or, from older PyTorch, bytes
Writes  indices of 32 bits, -1 for those that do not fit; truth values; the number of invalid indices

Nothing is read back to the host, so a recorded call uses the contents of the arrays at replay.
"""

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel, same_memory

INDEX_TYPES = (wp.int32, wp.int64, wp.uint32, wp.uint64)
"""Types of indices that are accepted."""
MASK_TYPES = (wp.bool, wp.uint8)
"""Types of masks that are accepted."""


class IndexKind(enum.IntEnum):
    """Kinds of entities that indices on the device name."""

    WORLD = 0
    ENVIRONMENT = 1
    ROW = 2  # of a view
    ARTICULATION = 3


@dataclasses.dataclass(frozen=True)
class WrongIndices:
    """Invalid indices, which were ignored."""

    kind: IndexKind
    """Kind of entity that they should name."""
    count: int
    """Number of invalid indices."""
    example: int
    """One of them."""
    bound: int
    """Number of entities of that kind."""


class IndexErrors:
    """Counters of invalid indices on the device, by kind.

    Args:
        device: Device of the model.
    """

    count: wp.array[int]
    """Number of invalid indices so far, shape [kind]."""
    example: wp.array[wp.int64]
    """One of them, shape [kind]."""
    bound: wp.array[int]
    """Number of entities of the kind, shape [kind]."""

    def __init__(self, device: Any) -> None:
        self.count = wp.zeros(len(IndexKind), dtype=wp.int32, device=device)
        self.example = wp.zeros(len(IndexKind), dtype=wp.int64, device=device)
        self.bound = wp.zeros(len(IndexKind), dtype=wp.int32, device=device)
        self._host_count: np.ndarray | None = None

    @property
    def exist(self) -> bool:
        """Whether there are invalid indices since the last call of `take`."""
        return bool(np.count_nonzero(self._counts()))

    def _counts(self) -> np.ndarray:
        counts = self._host_count
        if counts is None:
            counts = self.count.numpy()
            if self.count.device.is_cpu:
                self._host_count = counts  # a view, which sees what kernels write
        return counts

    def take(self) -> Iterator[WrongIndices]:
        """Yield the kinds with invalid indices since the last call, and restart the counters."""
        if not self.exist:
            return
        counts = self._counts().copy()
        examples, bounds = self.example.numpy().copy(), self.bound.numpy().copy()
        self.count.zero_()
        for kind in IndexKind:
            if counts[kind]:
                yield WrongIndices(kind, int(counts[kind]), int(examples[kind]), int(bounds[kind]))


@wp.kernel(enable_backward=False, module="pluriverse.model.indices")
def count_wrong_index(
    words: wp.array2d[int],  # [entry, 1 or 2] the number in words of 32 bits, the lower one first
    bound: int,
    kind: int,
    count: wp.array[int],  # [kind] out
    example: wp.array[wp.int64],  # [kind] out
    bounds: wp.array[int],  # [kind] out
):
    """Count one index if it is negative or not below `bound`."""
    entry, _ = wp.tid()
    value = wp.int64(words[entry, 0])
    if words.shape[1] > 1:
        value = wp.int64(words[entry, 1]) * wp.int64(4294967296) + wp.int64(wp.uint32(words[entry, 0]))
    if value < wp.int64(0) or value >= wp.int64(bound):
        wp.atomic_add(count, kind, 1)
        example[kind] = value
        bounds[kind] = bound


@wp.kernel(enable_backward=False, module="pluriverse.model.indices")
def narrow_index(
    words: wp.array2d[int],  # [entry, 1 or 2] the number in words of 32 bits, the lower one first
    narrow: wp.array[int],  # [entry]
):
    """Copy one index, as -1 if it is negative or has more than 31 bits."""
    entry, _ = wp.tid()
    value = words[entry, 0]
    if words.shape[1] > 1:
        if words[entry, 1] != 0:
            value = -1
    narrow[entry] = wp.max(value, -1)


@wp.kernel(enable_backward=False, module="pluriverse.model.indices")
def read_byte(
    values: wp.array[wp.uint8],  # [entry]
    mask: wp.array[bool],  # [entry]
):
    """Copy one truth value: every byte but 0 is true."""
    entry, _ = wp.tid()
    mask[entry] = values[entry] != wp.uint8(0)


def device_array(values: Any) -> wp.array | None:
    """Return a device array as a Warp array in the same memory, None for host data."""
    if isinstance(values, wp.array):
        return values
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return None
    values = values.detach() if hasattr(values, "detach") else values
    array: wp.array = wp.from_dlpack(values)
    return array


def narrow_indices(indices: wp.array) -> wp.array[int]:
    """Return indices with one axis, of one of `INDEX_TYPES`, as 32-bit ones; -1 for those that do not fit."""
    if indices.dtype is wp.int32:
        return indices
    narrow = wp.empty(indices.size, dtype=wp.int32, device=indices.device)
    launch_kernel(
        narrow_index, dim=indices.size, inputs=[_as_words(indices)], outputs=[narrow], device=indices.device
    )
    return narrow


def count_wrong_indices(indices: wp.array, bound: int, kind: IndexKind, errors: IndexErrors) -> None:
    """Count the indices that are not in 0..`bound` - 1. They have one axis and one of `INDEX_TYPES`."""
    launch_kernel(
        count_wrong_index,
        dim=indices.size,
        inputs=[_as_words(indices), bound, int(kind)],
        outputs=[errors.count, errors.example, errors.bound],
        device=indices.device,
    )


def _as_words(indices: wp.array) -> wp.array2d[int]:
    """Return indices as words of 32 bits, shape [entry, 1 or 2], in the same memory if that is contiguous."""
    indices = indices if indices.is_contiguous else indices.contiguous()
    return same_memory(indices, wp.int32, (indices.size, wp.types.type_size_in_bytes(indices.dtype) // 4))


def read_mask(mask: wp.array) -> wp.array[bool]:
    """Return a mask of one of `MASK_TYPES` as truth values of the same shape."""
    if mask.dtype is wp.bool:
        return mask
    mask = mask if mask.is_contiguous else mask.contiguous()
    result = wp.empty(mask.shape, dtype=wp.bool, device=mask.device)
    launch_kernel(
        read_byte, dim=mask.size, inputs=[mask.flatten()], outputs=[result.flatten()], device=mask.device
    )
    return result
