"""Rows of numbers in native code, entry by entry; `math.dof_loops` has those of the dynamics.

Warp's own loop takes some 3 ns an entry, of which most is array indexing; these take a tenth of it.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.dense import CTYPE

# Products are rounded before they are added, as everywhere else.
_ADD = """
    const V* from = x.data + first;
    V* to = y.data + first;
    for (int e = 0; e < count; ++e) { const V step = factor * from[e]; to[e] += step; }
"""

_LINEAR = """
    const V* a = value.data + first;
    const V* k = slope.data + first;
    const V* b = x.data + first;
    V* to = out.data + first;
    for (int e = 0; e < count; ++e) { const V fall = (k[e] + shift) * b[e]; to[e] = a[e] - fall; }
"""


@functools.cache
def number_functions(real: Any) -> SimpleNamespace:
    """Return functions on the same range of arrays of `real`, entry by entry.

    - `numbers_add(x, first, count, factor, y)`: y <- y + factor x.
    - `numbers_linear(value, slope, shift, x, first, count, out)`: out <- value - (slope + shift) x.
    """
    types = f"using V = {CTYPE[real]};"

    @wp.func_native(types + _ADD)
    def numbers_add(x: wp.array[real], first: int, count: int, factor: real, y: wp.array[real]): ...

    @wp.func_native(types + _LINEAR)
    def numbers_linear(
        value: wp.array[real],
        slope: wp.array[real],
        shift: real,
        x: wp.array[real],
        first: int,
        count: int,
        out: wp.array[real],
    ): ...

    return SimpleNamespace(numbers_add=numbers_add, numbers_linear=numbers_linear)


@wp.func_native("""
    int* to = out.data + outbase;
    for (int e = 0; e < count; ++e) to[e] = 0;
""")
def integers_clear(out: wp.array[int], outbase: int, count: int):
    """Set a range of integers to 0."""
    ...


@wp.func_native("""
    const float* x = values.data + first;
    int outside = 0;
    for (int e = 0; e < count; ++e) outside |= !(x[e] < limit) | !(-x[e] < limit);
    return outside == 0;
""")
def are_below(values: wp.array[float], first: int, count: int, limit: float) -> bool:
    """Return whether the magnitudes of a range of numbers are below a limit; NaN is not."""
    ...
