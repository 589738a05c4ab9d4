"""Product of packed rows (`math.dense`) and a vector, in whole vectors of eight numbers in native code.

A row holds the entries of a degree of freedom and of those above it, by depth. So the numbers of the vector
on the way from the root to the present row are kept by depth as well, and so are the sums that the rows below
add to those above: a row costs a few operations, however many entries it has. Where the rows go on in another
branch, the sums of the branch before are complete. Newton's method multiplies by the mass matrix once an
iteration, which took 5 % of the step of a robot that lies on the ground one number at a time.
"""

from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.numbers_at_once import EIGHT_NUMBERS

_MULTIPLY = """
    const int* up = parent.data + first + begin;
    const int* deep = depth.data + first + begin;
    const int* start = row.data + first + begin;
    const T* rows = H.data + base;
    const V* given = x.data + xbase + begin;
    V* out = y.data + ybase + begin;
#if defined(__clang__) && !defined(__CUDA_ARCH__)
    constexpr int DEEP = 16;
    typedef T row8 __attribute__((ext_vector_type(8), aligned(sizeof(T))));
    int deepest = 0;
    for (int k = 0; k < count; ++k) deepest = deep[k] > deepest ? deep[k] : deepest;
    if (deepest < DEEP) {
        const V8 zero = fill(V(0)), eight = fill(V(8));
        const V8 lanes = {V(0), V(1), V(2), V(3), V(4), V(5), V(6), V(7)};
        V8 x0 = zero, x1 = zero, y0 = zero, y1 = zero;
        V sums[DEEP];
        int path[DEEP], last = -1;
        auto finish = [&](const int from) {
            store(sums, y0);
            store(sums + 8, y1);
            for (int d = from; d <= last; ++d) out[path[d]] += sums[d];
        };
        for (int k = 0; k < count; ++k) {
            const int own = deep[k];
            const V8 here0 = fill(V(own)), here1 = here0 - eight;
            const M8 above0 = here0 > lanes, above1 = here1 > lanes;
            if (own <= last) {
                finish(own);
                y0 = select(above0, y0, zero);
                y1 = select(above1, y1, zero);
            }
            const T* entry = rows + start[k];
            const V xk = given[k];
            V8 h0, h1;
            if (base + start[k] + DEEP <= H.shape[0]) {
                h0 = __builtin_convertvector(*(const row8*)entry, V8);
                h1 = __builtin_convertvector(*(const row8*)(entry + 8), V8);
            } else {
                V rest[DEEP] = {};
                for (int d = 0; d < own; ++d) rest[d] = V(entry[d]);
                h0 = load(rest);
                h1 = load(rest + 8);
            }
            // What is behind the row or on the way to another one may be NaN.
            const V8 part = select(above0, h0 * x0, zero) + select(above1, h1 * x1, zero);
            y0 = y0 + select(above0, h0 * xk, zero);
            y1 = y1 + select(above1, h1 * xk, zero);
            const V low = (part[0] + part[4]) + (part[1] + part[5]);
            const V high = (part[2] + part[6]) + (part[3] + part[7]);
            out[k] = V(entry[own]) * xk + (low + high);
            x0 = select(here0 == lanes, fill(xk), x0);
            x1 = select(here1 == lanes, fill(xk), x1);
            path[own] = k;
            last = own;
        }
        finish(0);
        return;
    }
#endif
    for (int k = 0; k < count; ++k) {
        const T* entry = rows + start[k];
        int d = deep[k];
        V sum = V(entry[d]) * given[k];
        --d;
        for (int j = up[k] - begin; j >= 0; j = up[j] - begin, --d) {
            sum += V(entry[d]) * given[j];
            out[j] += V(entry[d]) * given[k];
        }
        out[k] = sum;
    }
"""


@made_once
def multiply_rows_function(real: Any, real_vector: Any) -> Any:
    """Return `multiply_rows` for rows of `real` and vectors of `real_vector`.

    `multiply_rows(H, base, parent, depth, row, first, begin, count, x, xbase, y, ybase)`: y <- H x, for
    `count` degrees of freedom of a world from its `begin` on, made of whole trees, numbered depth first.
    """
    types = f"using T = {CTYPE[real]}; using V = {CTYPE[real_vector]};"

    @wp.func_native(types + EIGHT_NUMBERS + _MULTIPLY)
    def multiply_rows(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        count: int,
        x: wp.array[real_vector],
        xbase: int,
        y: wp.array[real_vector],
        ybase: int,
    ): ...

    return multiply_rows
