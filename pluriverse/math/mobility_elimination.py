"""Elimination of impulses with a linear law from a mobility, in native code.

Of m + e impulse components with velocities u = u0 + W p, the last e obey u + D p = g at all times, as those
of equality constraints do. So they are a function of the others,

    p_e = y - Y p,    Y = (W_ee + D)^-1 W_em,    y = (W_ee + D)^-1 (g - u0_e),

and what is left for the others is a problem of the same kind, with the mobility W_mm - W_me Y and the
velocities u0_m + W_me y without impulses. Its size does not grow with e.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.numbers_at_once import EIGHT_NUMBERS
from pluriverse.math.precision import vec3_type

ELIMINATED_MAX = 24
"""Most components e that can be eliminated."""

_LAYOUT = """
    const int wide = (m + e + 7) & ~7;  // from row to row of the whole mobility
    V* W = w.data + wbase;
    V* u = (V*)(velocity.data + cbase);
    const V* D = (const V*)(compliance.data + cbase);
    const V* g = (const V*)(wanted.data + cbase);
"""

# Whole blocks of eight numbers are computed: a dozen would not be vectorized otherwise. What is behind the
# first m numbers of a row is of no use then.
_ELIMINATE = """
    const int narrow = (m + 7) & ~7;  // from row to row of what is left
    // Rows m to m + e hold W_em and W_ee. They become Y, by the factor of W_ee + D = L L^T.
    V* E = W + m * wide;
    V* y = u + m;
    V L[LIMIT * LIMIT];
    for (int i = 0; i < e; ++i) y[i] = g[m + i] - y[i];
    for (int i = 0; i < e; ++i) {
        V* li = L + i * LIMIT;
        const V* ei = E + i * wide + m;
        for (int k = 0; k < i; ++k) {
            const V* lk = L + k * LIMIT;
            V s = ei[k];
            for (int j = 0; j < k; ++j) s -= li[j] * lk[j];
            li[k] = s * lk[k];  // the diagonal holds 1 / L_kk
        }
        V s = ei[i] + D[m + i];
        for (int j = 0; j < i; ++j) s -= li[j] * li[j];
        if (!(s > V(0))) return 0;
        li[i] = V(1) / sqrt(s);
    }
    auto subtract = [&](V* to, const V* from, const V share) {
        for (int a = 0; a < narrow; a += 8) store(to + a, load(to + a) - load(from + a) * share);
    };
    auto scale = [&](V* row, const V share) {
        for (int a = 0; a < narrow; a += 8) store(row + a, load(row + a) * share);
    };
    for (int i = 0; i < e; ++i) {
        const V* li = L + i * LIMIT;
        for (int k = 0; k < i; ++k) {
            subtract(E + i * wide, E + k * wide, li[k]);
            y[i] -= li[k] * y[k];
        }
        scale(E + i * wide, li[i]);
        y[i] *= li[i];
    }
    for (int i = e - 1; i >= 0; --i) {
        for (int k = i + 1; k < e; ++k) {
            const V l = L[k * LIMIT + i];
            subtract(E + i * wide, E + k * wide, l);
            y[i] -= l * y[k];
        }
        scale(E + i * wide, L[i * LIMIT + i]);
        y[i] *= L[i * LIMIT + i];
    }
    // What is left moves to the front, row by row: no row is written over one that is still to be read.
    V kept[LIMIT];
    for (int a = 0; a < m; ++a) {
        const V* from = W + a * wide;
        V* to = W + a * narrow;
        V rate = u[a];
        for (int i = 0; i < e; ++i) {
            kept[i] = from[m + i];
            rate += kept[i] * y[i];
        }
        u[a] = rate;
        for (int b = 0; b < narrow; b += 8) {
            auto sums = load(from + b);
            for (int i = 0; i < e; ++i)
                if (kept[i] != V(0)) sums = sums - load(E + i * wide + b) * kept[i];
            store(to + b, sums);
        }
        for (int b = m; b < narrow; ++b) to[b] = V(0);
    }
    return 1;
"""

_RESTORE = """
    const V* E = W + m * wide;
    V* p = (V*)(impulse.data + cbase);
    for (int i = 0; i < e; ++i) {
        const V* ei = E + i * wide;
        V s = u[m + i];
        for (int a = 0; a < m; ++a) s -= ei[a] * p[a];
        p[m + i] = s;
        u[m + i] = g[m + i] - D[m + i] * s;
    }
"""


@made_once
def mobility_elimination_functions(real: Any) -> SimpleNamespace:
    """Return the functions for impulses in `real`.

    - `eliminate_last(w, wbase, m, e, compliance, wanted, cbase, velocity)`: replaces the mobility W of m + e
      components, and their velocities u0, by those of the first m with the law of the last e. `compliance` is
      D, `wanted` g. Leaves y where u0 of the last ones was, and Y behind what is left of W. Returns 0 if
      W + D of the last ones is not positive definite.
    - `restore_last(w, wbase, m, e, compliance, wanted, cbase, velocity, impulse)`: the impulses and
      velocities of the last ones for the `impulse` of the first m.

    Rows of W are as many numbers apart as it has columns, rounded up to a multiple of 8, with zeros behind
    the last. The others are arrays of vectors whose numbers are taken one after the other.
    """
    vec3 = vec3_type(real)
    head = f"using V = {CTYPE[real]}; constexpr int LIMIT = {ELIMINATED_MAX};"

    @wp.func_native(head + EIGHT_NUMBERS + _LAYOUT + _ELIMINATE)
    def eliminate_last(
        w: wp.array[real],
        wbase: int,
        m: int,
        e: int,
        compliance: wp.array(dtype=vec3),
        wanted: wp.array(dtype=vec3),
        cbase: int,
        velocity: wp.array(dtype=vec3),
    ) -> int: ...

    @wp.func_native(head + _LAYOUT + _RESTORE)
    def restore_last(
        w: wp.array[real],
        wbase: int,
        m: int,
        e: int,
        compliance: wp.array(dtype=vec3),
        wanted: wp.array(dtype=vec3),
        cbase: int,
        velocity: wp.array(dtype=vec3),
        impulse: wp.array(dtype=vec3),
    ): ...

    return SimpleNamespace(eliminate_last=eliminate_last, restore_last=restore_last)
