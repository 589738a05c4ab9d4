"""Loops over the degrees of freedom of a tree, in native code: kicks by forces, and their energies.

In Warp's code each access to an array takes more instructions than the arithmetic of such a loop.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.dense import CTYPE

_SPLIT_KICK = """
    const T* f = force.data + first;
    const T* c = product.data + first;
    T* v = velocity.data + first;
    T* u = kick.data + first;
    int any = 0;
    for (int d = 0; d < count; ++d) {
        const T p = has_products ? c[d] : T(0);
        any |= p != T(0);
        v[d] = dt * (f[d] + p);
        u[d] = dt * p;
    }
    return any;
"""

_JOIN_KICK = """
    const T* v0 = start.data + first;
    T* v = velocity.data + first;
    T* u = kick.data + first;
    for (int d = 0; d < count; ++d) {
        const T k = share * u[d];
        u[d] = k;
        v[d] = v0[d] + v[d] - k;
    }
"""

_SCALAR_PRODUCT = """
    const T* x = a.data + first;
    const T* y = b.data + first;
    T sum = T(0);
    for (int d = 0; d < count; ++d) sum += x[d] * y[d];
    return sum;
"""

_WEIGHTED_SQUARE = """
    const T* x = a.data + first;
    const float* w = weight.data + base;
    const int* at = index.data + first_index;
    T sum = T(0);
    for (int d = 0; d < count; ++d) sum += T(w[at[d]]) * x[d] * x[d];
    return sum;
"""

_ADD = """
    T* x = a.data + first;
    const T* y = b.data + first;
    for (int d = 0; d < count; ++d) x[d] += y[d];
"""

_DIFFERENCE = """
    const T* x = a.data + first;
    const T* y = b.data + first;
    T* to = out.data + first;
    int any = 0;
    for (int d = 0; d < count; ++d) {
        const T change = x[d] - y[d];
        any |= change != T(0);
        to[d] = change;
    }
    return any;
"""


@functools.cache
def dof_loops(real: Any) -> SimpleNamespace:
    """Return the loops over `count` entries of arrays of `real`, all from `first` on.

    - `split_kick(force, product, has_products, dt, velocity, kick, first, count) -> int`: velocity <- dt
      (force + product), kick <- dt product; without products they count as 0. Returns 1 if any product is
      not 0, else 0.
    - `join_kick(start, share, velocity, kick, first, count)`: kick <- share kick, velocity <- start +
      velocity - kick.
    - `scalar_product(a, b, first, count) -> real`.
    - `weighted_square(a, weight, base, index, first_index, first, count) -> real`: the sum of w a^2, with the
      weights at `base + index`.
    - `add_numbers(a, b, first, count)`: a <- a + b.
    - `difference(a, b, out, first, count) -> int`: out <- a - b. Returns 1 if any of them is not 0, else 0.
    """
    types = f"using T = {CTYPE[real]};"

    @wp.func_native(types + _SPLIT_KICK)
    def split_kick(
        force: wp.array[real],
        product: wp.array[real],
        has_products: bool,
        dt: real,
        velocity: wp.array[real],
        kick: wp.array[real],
        first: int,
        count: int,
    ) -> int: ...

    @wp.func_native(types + _JOIN_KICK)
    def join_kick(
        start: wp.array[real],
        share: real,
        velocity: wp.array[real],
        kick: wp.array[real],
        first: int,
        count: int,
    ): ...

    @wp.func_native(types + _SCALAR_PRODUCT)
    def scalar_product(a: wp.array[real], b: wp.array[real], first: int, count: int) -> real: ...

    @wp.func_native(types + _WEIGHTED_SQUARE)
    def weighted_square(
        a: wp.array[real],
        weight: wp.array[float],
        base: int,
        index: wp.array[int],
        first_index: int,
        first: int,
        count: int,
    ) -> real: ...

    @wp.func_native(types + _ADD)
    def add_numbers(a: wp.array[real], b: wp.array[real], first: int, count: int): ...

    @wp.func_native(types + _DIFFERENCE)
    def difference(
        a: wp.array[real], b: wp.array[real], out: wp.array[real], first: int, count: int
    ) -> int: ...

    return SimpleNamespace(
        split_kick=split_kick,
        join_kick=join_kick,
        scalar_product=scalar_product,
        weighted_square=weighted_square,
        add_numbers=add_numbers,
        difference=difference,
    )
