"""Comparing and copying the memory of arrays in kernels, in native code: loops over words that vectorize."""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once

_WORDS = """
    const unsigned int* a = (const unsigned int*)(now.data + first);
    unsigned int* b = (unsigned int*)(kept.data + first);
    const int words = count * (int)(sizeof(*now.data) / sizeof(unsigned int));
"""

_IS_CLEAR = """
    const unsigned int* a = (const unsigned int*)(now.data + first);
    const int words = count * (int)(sizeof(*now.data) / sizeof(unsigned int));
    unsigned int any = 0;
    for (int w = 0; w < words; ++w) any |= a[w];
    return any == 0;
"""

_CLEAR = """
    unsigned int* a = (unsigned int*)(now.data + first);
    const int words = count * (int)(sizeof(*now.data) / sizeof(unsigned int));
    for (int w = 0; w < words; ++w) a[w] = 0;
"""

_IS_KEPT = """
    unsigned int differs = 0;
    for (int w = 0; w < words; ++w) differs |= a[w] ^ b[w];
    return differs == 0;
"""

_SAME_WORDS = """
    const unsigned int* a = (const unsigned int*)(now.data + first);
    const unsigned int* b = (const unsigned int*)(other.data + other_first);
    const int words = count * (int)(sizeof(*now.data) / sizeof(unsigned int));
"""

_KEEP = """
    for (int w = 0; w < words; ++w) b[w] = a[w];
"""


@made_once
def record_functions(dtype: Any) -> SimpleNamespace:
    """Return the functions on ranges of contiguous arrays of a type made of 32-bit words.

    - `is_kept(now, kept, first, count) -> int`: 1 if the range has the same bits in both, else 0. NaN equals
      itself, and 0 differs from -0.
    - `is_same(now, first, other, other_first, count) -> int`: the same for ranges that begin elsewhere.
    - `keep(now, kept, first, count)`: copies the range of `now` to `kept`.
    - `is_clear(now, first, count) -> int`: 1 if all bits of the range are 0, else 0.
    - `clear(now, first, count)`: sets them to 0.
    """

    @wp.func_native(_WORDS + _IS_KEPT)
    def is_kept(now: wp.array(dtype=dtype), kept: wp.array(dtype=dtype), first: int, count: int) -> int: ...

    @wp.func_native(_SAME_WORDS + _IS_KEPT)
    def is_same(
        now: wp.array(dtype=dtype), first: int, other: wp.array(dtype=dtype), other_first: int, count: int
    ) -> int: ...

    @wp.func_native(_WORDS + _KEEP)
    def keep(now: wp.array(dtype=dtype), kept: wp.array(dtype=dtype), first: int, count: int): ...

    @wp.func_native(_IS_CLEAR)
    def is_clear(now: wp.array(dtype=dtype), first: int, count: int) -> int: ...

    @wp.func_native(_CLEAR)
    def clear(now: wp.array(dtype=dtype), first: int, count: int): ...

    return SimpleNamespace(is_kept=is_kept, is_same=is_same, keep=keep, is_clear=is_clear, clear=clear)
