"""Loops over rows of numbers in native code, such as those of the degrees of freedom of a tree.

Warp's own loop takes some 3 ns an entry, of which most is array indexing; these take a tenth of it.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import vec3_type

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

_SUBTRACT = """
    const V* a = x.data + first;
    const V* b = y.data + first;
    V* to = out.data + first;
    int any = 0;
    for (int e = 0; e < count; ++e) {
        const V change = a[e] - b[e];
        any |= change != V(0);
        to[e] = change;
    }
    return any;
"""

_DOT = """
    const V* a = x.data + first;
    const V* b = y.data + first;
    V sum = V(0);
    for (int e = 0; e < count; ++e) sum += a[e] * b[e];
    return sum;
"""

_ANY = """
    const V* a = x.data + first;
    int any = 0;
    for (int e = 0; e < count; ++e) any |= a[e] != V(0);
    return any;
"""

_WORK = """
    const V* f = x.data + first;
    const V* a = y.data + first;
    const V* b = z.data + first;
    V sum = V(0);
    for (int e = 0; e < count; ++e) sum += f[e] * (a[e] - b[e]);
    return sum;
"""

_ERRORS = """
    const V* a = x.data + first;
    const V* b = expected.data + first;
    const V* w = weight.data + first;
    V error = V(0), norm = V(0);
    for (int e = 0; e < count; ++e) {
        const V difference = a[e] - b[e];
        error += w[e] * difference * difference;
        norm += w[e] * a[e] * a[e];
    }
    return {error, norm, V(0)};
"""

_GRADIENT = """
    const V* r = residual.data + first;
    const V* p = impulse.data + first;
    const V* m = momentum.data + first;
    const V* w = weight.data + first;
    V* to = out.data + first;
    V sum0 = sums[0], sum1 = sums[1], sum2 = sums[2];
    for (int e = 0; e < count; ++e) {
        const V gradient = r[e] - p[e], total = r[e] + m[e];
        to[e] = gradient;
        sum0 += w[e] * gradient * gradient;
        sum1 += w[e] * total * total;
        sum2 += w[e] * p[e] * p[e];
    }
    return {sum0, sum1, sum2};
"""

_PRODUCTS = """
    const V* a = x.data + first;
    const V* b = y.data + first;
    const V* c = z.data + first;
    const V* d = direction.data + first;
    V sum0 = sums[0], sum1 = sums[1], sum2 = sums[2];
    for (int e = 0; e < count; ++e) {
        sum0 += a[e] * d[e];
        sum1 += b[e] * d[e];
        sum2 += c[e] * d[e];
    }
    return {sum0, sum1, sum2};
"""

_WEIGHTED_SQUARE = """
    const V* a = x.data + first;
    const float* w = weight.data + base;
    const int* at = index.data + first_index;
    V sum = V(0);
    for (int e = 0; e < count; ++e) sum += V(w[at[e]]) * a[e] * a[e];
    return sum;
"""

_SPLIT_KICK = """
    const V* f = force.data + first;
    const V* p = product.data + first;
    V* v = velocity.data + first;
    V* u = kick.data + first;
    int any = 0;
    for (int e = 0; e < count; ++e) {
        const V part = has_products ? p[e] : V(0);
        any |= part != V(0);
        v[e] = dt * (f[e] + part);
        u[e] = dt * part;
    }
    return any;
"""

_JOIN_KICK = """
    const V* v0 = start.data + first;
    V* v = velocity.data + first;
    V* u = kick.data + first;
    for (int e = 0; e < count; ++e) {
        const V part = share * u[e];
        u[e] = part;
        v[e] = v0[e] + v[e] - part;
    }
"""


@made_once
def number_functions(real: Any) -> SimpleNamespace:
    """Return functions on `count` entries of arrays of `real`, all from `first` on.

    - `numbers_add(x, first, count, factor, y)`: y <- y + factor x.
    - `numbers_linear(value, slope, shift, x, first, count, out)`: out <- value - (slope + shift) x.
    - `numbers_subtract(x, y, first, count, out) -> int`: out <- x - y. Returns 1 if any of them is not 0,
      else 0.
    - `numbers_dot(x, y, first, count) -> real`: the sum of x y.
    - `numbers_any(x, first, count) -> int`: 1 if any of them is not 0, else 0.
    - `numbers_work(x, y, z, first, count) -> real`: the sum of x (y - z).
    - `weighted_errors(x, expected, weight, first, count) -> vec3`: the sums of w (x - expected)^2 and w x^2.
    - `weighted_gradient(residual, impulse, momentum, weight, sums, first, count, out) -> vec3`: out <-
      residual - impulse. Returns `sums` with those of w out^2, w (residual + momentum)^2 and w impulse^2.
    - `direction_products(x, y, z, direction, sums, first, count) -> vec3`: `sums` with the sums of the
      products of x, y and z with the direction.
    - `weighted_square(x, weight, base, index, first_index, first, count) -> real`: the sum of w x^2, with the
      weights at `base + index`.
    - `split_kick(force, product, has_products, dt, velocity, kick, first, count) -> int`: velocity <- dt
      (force + product), kick <- dt product; without products they count as 0. Returns 1 if any product is
      not 0, else 0.
    - `join_kick(start, share, velocity, kick, first, count)`: kick <- share kick, velocity <- start +
      velocity - kick.
    """
    vec3 = vec3_type(real)
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

    @wp.func_native(types + _SUBTRACT)
    def numbers_subtract(
        x: wp.array[real], y: wp.array[real], first: int, count: int, out: wp.array[real]
    ) -> int: ...

    @wp.func_native(types + _DOT)
    def numbers_dot(x: wp.array[real], y: wp.array[real], first: int, count: int) -> real: ...

    @wp.func_native(types + _ANY)
    def numbers_any(x: wp.array[real], first: int, count: int) -> int: ...

    @wp.func_native(types + _WORK)
    def numbers_work(
        x: wp.array[real], y: wp.array[real], z: wp.array[real], first: int, count: int
    ) -> real: ...

    @wp.func_native(types + _ERRORS)
    def weighted_errors(
        x: wp.array[real], expected: wp.array[real], weight: wp.array[real], first: int, count: int
    ) -> vec3: ...

    @wp.func_native(types + _GRADIENT)
    def weighted_gradient(
        residual: wp.array[real],
        impulse: wp.array[real],
        momentum: wp.array[real],
        weight: wp.array[real],
        sums: vec3,
        first: int,
        count: int,
        out: wp.array[real],
    ) -> vec3: ...

    @wp.func_native(types + _PRODUCTS)
    def direction_products(
        x: wp.array[real],
        y: wp.array[real],
        z: wp.array[real],
        direction: wp.array[real],
        sums: vec3,
        first: int,
        count: int,
    ) -> vec3: ...

    @wp.func_native(types + _WEIGHTED_SQUARE)
    def weighted_square(
        x: wp.array[real],
        weight: wp.array[float],
        base: int,
        index: wp.array[int],
        first_index: int,
        first: int,
        count: int,
    ) -> real: ...

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

    return SimpleNamespace(
        numbers_add=numbers_add,
        numbers_linear=numbers_linear,
        numbers_subtract=numbers_subtract,
        numbers_dot=numbers_dot,
        numbers_any=numbers_any,
        numbers_work=numbers_work,
        weighted_errors=weighted_errors,
        weighted_gradient=weighted_gradient,
        direction_products=direction_products,
        weighted_square=weighted_square,
        split_kick=split_kick,
        join_kick=join_kick,
    )


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
