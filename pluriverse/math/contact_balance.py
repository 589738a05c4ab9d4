"""Impulses of a few contacts that stick, slide or are open, in native code: a linear system for each guess.

Contacts that stick are eliminated once, with the mobility W of `math.contact_mobility`. What is left is
solved anew for each guess of which of the others slide, and where to.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.contact_mobility import COMPONENTS_MAX
from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import vec3_type

# y <- y + a x on the columns from `begin` to `end`, multiples of 8, in blocks that fill vector registers.
_ADD = """
    auto add = [](V* __restrict y, const V a, const V* __restrict x, const int begin, const int end) {
        _Pragma("clang loop vectorize_width(4) interleave_count(2)")
        for (int j = begin; j < end; ++j) y[j] += a * x[j];
    };
    const int pad = (m + 7) & ~7;
"""

# Rows of `hold_contacts` in `work`: columns of the held components, and of the others from `begin` on.
_ROWS = """
    const int begin = (held + 7) & ~7;
    const int stride = begin + ((m - held + 8) & ~7);
"""

_HOLD = """
    const V* W = w.data + wbase;
    const V* D = (const V*)(compliance.data + cbase);
    const V* wish = (const V*)(wanted.data + cbase);
    const V* u0 = (const V*)(free.data + cbase);
    const int* place = order.data + cbase;
    V* S = work.data + workbase;
    // Contacts in their order, with the right-hand side behind.
    const int last = begin + m - held;
    for (int a = 0; a < m; a += 3) {
        const int at = 3 * place[a / 3];
        V* __restrict s0 = S + a * stride;
        V* __restrict s1 = s0 + stride;
        V* __restrict s2 = s1 + stride;
        const int from = a < held ? (a & ~7) / 3 * 3 : held + ((a - held) & ~7) / 3 * 3;
        for (int b = from; b < m; b += 3) {
            const V* y = W + at * pad + 3 * place[b / 3];
            const int to = b < held ? b : begin + b - held;
            for (int k = 0; k < 3; ++k) {
                s0[to + k] = y[k];
                s1[to + k] = y[pad + k];
                s2[to + k] = y[2 * pad + k];
            }
        }
        for (int b = held; b < begin; ++b) s0[b] = s1[b] = s2[b] = V(0);
        for (int b = last; b < stride; ++b) s0[b] = s1[b] = s2[b] = V(0);
        s0[last] = -u0[at];
        s1[last] = -u0[at + 1];
        s2[last] = -u0[at + 2];
        if (a < held) {
            s0[a] += D[at];
            s1[a + 1] += D[at + 1];
            s2[a + 2] += D[at + 2];
            s0[last] += wish[at];
            s1[last] += wish[at + 1];
            s2[last] += wish[at + 2];
        }
    }
    // Of the upper triangle, three rows are subtracted from three others at once, which saves most loads and
    // stores. What is in front of the diagonal is rubbish that nothing reads.
    for (int k = 0; k < held; k += 3) {
        V* __restrict s0 = S + k * stride;
        V* __restrict s1 = s0 + stride;
        V* __restrict s2 = s1 + stride;
        if (!(s0[k] > V(0))) return 0;
        const V inverse0 = V(1) / s0[k];
        const V l10 = s0[k + 1] * inverse0, l20 = s0[k + 2] * inverse0;
        add(s1, -l10, s0, k & ~7, stride);
        if (!(s1[k + 1] > V(0))) return 0;
        const V inverse1 = V(1) / s1[k + 1];
        const V l21 = s1[k + 2] * inverse1;
        add(s2, -l20, s0, k & ~7, stride);
        add(s2, -l21, s1, k & ~7, stride);
        if (!(s2[k + 2] > V(0))) return 0;
        const V inverse2 = V(1) / s2[k + 2];
        for (int i = k + 3; i < m; i += 3) {
            const int at = i < held ? i : begin + i - held;
            V* __restrict t0 = S + i * stride;
            V* __restrict t1 = t0 + stride;
            V* __restrict t2 = t1 + stride;
            const V a0 = s0[at] * inverse0, a1 = s1[at] * inverse1, a2 = s2[at] * inverse2;
            const V b0 = s0[at + 1] * inverse0, b1 = s1[at + 1] * inverse1, b2 = s2[at + 1] * inverse2;
            const V c0 = s0[at + 2] * inverse0, c1 = s1[at + 2] * inverse1, c2 = s2[at + 2] * inverse2;
            _Pragma("clang loop vectorize_width(4) interleave_count(2)")
            for (int j = at & ~7; j < stride; ++j) {
                const V x0 = s0[j], x1 = s1[j], x2 = s2[j];
                t0[j] = ((t0[j] - a0 * x0) - a1 * x1) - a2 * x2;
                t1[j] = ((t1[j] - b0 * x0) - b1 * x1) - b2 * x2;
                t2[j] = ((t2[j] - c0 * x0) - c1 * x1) - c2 * x2;
            }
        }
        s0[k] = inverse0;
        s1[k + 1] = inverse1;
        s2[k + 2] = inverse2;
    }
    for (int k = held - 3; k >= 0; k -= 3) {
        V* __restrict s0 = S + k * stride;
        V* __restrict s1 = s0 + stride;
        V* __restrict s2 = s1 + stride;
        const V inverse0 = s0[k], inverse1 = s1[k + 1], inverse2 = s2[k + 2];
        const V l01 = s0[k + 1], l02 = s0[k + 2], l12 = s1[k + 2];
        _Pragma("clang loop vectorize_width(4) interleave_count(2)")
        for (int j = begin; j < stride; ++j) {
            const V x2 = s2[j] * inverse2;
            const V x1 = (s1[j] - l12 * x2) * inverse1;
            s0[j] = (s0[j] - l01 * x1 - l02 * x2) * inverse0;
            s1[j] = x1;
            s2[j] = x2;
        }
        for (int i = 0; i < k; ++i) {
            V* __restrict t = S + i * stride;
            const V a0 = t[k], a1 = t[k + 1], a2 = t[k + 2];
            _Pragma("clang loop vectorize_width(4) interleave_count(2)")
            for (int j = begin; j < stride; ++j) t[j] = ((t[j] - a0 * s0[j]) - a1 * s1[j]) - a2 * s2[j];
        }
    }
    // What a component of the others does to the held ones goes to its own row, what is there without to
    // the last one.
    for (int i = held; i < m; ++i) {
        V* si = S + i * stride;
        const int at = begin + i - held;
        for (int k = 0; k < held; ++k) si[k] = S[k * stride + at];
        for (int k = held; k < begin; ++k) si[k] = V(0);
        for (int j = i + 1; j < m; ++j) S[j * stride + at] = si[begin + j - held];
    }
    V* rest = S + m * stride;
    for (int k = 0; k < stride; ++k) rest[k] = V(0);
    for (int k = 0; k < held; ++k) rest[k] = -S[k * stride + last];
    for (int i = held; i < m; ++i) rest[begin + i - held] = -S[i * stride + last];
    return 1;
"""

_BALANCE = """
    const V* slip = (const V*)(slide.data + cbase);
    const V* D = (const V*)(compliance.data + cbase);
    const V* wish = (const V*)(wanted.data + cbase);
    const int* place = order.data + cbase;
    V* p = (V*)(impulse.data + cbase);
    V* u = (V*)(velocity.data + cbase);
    const V* H = work.data + workbase;  // from `hold_contacts`
    const V* rest = H + m * stride;
    V* z = work.data + workbase + (m + 1) * stride;  // f^T W of a row, later -p of the held ones and u
    V* S = z + stride;  // F^T W E + D of the others, with the right-hand side
    // Contacts that stick come first: theirs is a symmetric and positive definite part of W + D. A contact
    // that slides has a direction across that in which it slides, if that turns, and the normal.
    short column[LIMIT];
    V x[LIMIT];
    int n = 0;
    for (int a = held; a < m; a += 3)
        if (D[3 * place[a / 3] + 1] >= V(0))
            for (int k = a; k < a + 3; ++k) column[n++] = k;
    const int sticking = n;
    for (int a = held; a < m; a += 3) {
        const V* d = D + 3 * place[a / 3];
        if (!(d[1] >= V(0)) && d[2] >= V(0)) {
            if (d[0] >= V(0)) column[n++] = a;
            column[n++] = a + 2;
        }
    }
    const int width = (n + 8) & ~7;
    // Row by row, f_i^T W E: a sum of rows of W, of which each contact's columns of E make their entries.
    const int shift = begin - held;
    for (int i = 0; i < n; ++i) {
        const int axis = column[i] % 3, a = column[i] - axis, at = 3 * place[a / 3];
        const V* y = H + column[i] * stride;
        V free_rate = rest[shift + column[i]];
        if (i >= sticking && axis == 0) {
            const V* w0 = H + a * stride;
            const V* w1 = w0 + stride;
            const V f0 = -slip[at + 1], f1 = slip[at];
            for (int b = begin; b < stride; ++b) z[b] = f0 * w0[b] + f1 * w1[b];
            y = z;
            free_rate = f0 * rest[shift + a] + f1 * rest[shift + a + 1];
        }
        V* si = S + i * width;
        for (int k = 0; k < sticking; ++k) si[k] = y[shift + column[k]];
        for (int k = sticking; k < n; ++k) {
            const int j = column[k] % 3, c = column[k] - j;
            const V* t = slip + 3 * place[c / 3];
            const V* yc = y + shift + c;
            if (j == 2)
                si[k] = t[2] * (t[0] * yc[0] + t[1] * yc[1]) + yc[2];
            else
                si[k] = t[0] * yc[1] - t[1] * yc[0];
        }
        si[i] += D[at + axis];
        si[n] = wish[at + axis] - free_rate;
        for (int k = n + 1; k < width; ++k) si[k] = V(0);
    }
    // Gaussian elimination: of what sticks without pivots, of the upper triangle only. What is in front of a
    // block's first column is rubbish.
    for (int k = 0; k < sticking; ++k) {
        const V* sk = S + k * width;
        if (!(sk[k] > V(0))) return 0;
        const V inverse = V(1) / sk[k];
        for (int i = k + 1; i < sticking; ++i) add(S + i * width, -sk[i] * inverse, sk, i & ~7, width);
        for (int i = sticking; i < n; ++i) add(S + i * width, -S[i * width + k] * inverse, sk, k & ~7, width);
    }
    // Friction makes the rest unsymmetric: row by row, with pivots.
    for (int k = sticking; k < n; ++k) {
        int pivot = k;
        V largest = V(0);
        for (int i = k; i < n; ++i) {
            const V s = S[i * width + k];
            const V size = s < V(0) ? -s : s;
            if (size > largest) {
                largest = size;
                pivot = i;
            }
        }
        if (!(largest > V(0))) return 0;
        V* sk = S + k * width;
        if (pivot != k)
            for (int j = k; j <= n; ++j) {
                const V t = sk[j];
                sk[j] = S[pivot * width + j];
                S[pivot * width + j] = t;
            }
        const V inverse = V(1) / sk[k];
        for (int i = k + 1; i < n; ++i) {
            const V l = S[i * width + k] * inverse;
            if (l != V(0)) add(S + i * width, -l, sk, k & ~7, width);
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        const V* sk = S + k * width;
        V sum = sk[n];
        for (int j = k + 1; j < n; ++j) sum -= sk[j] * z[j];
        z[k] = sum / sk[k];
    }
    for (int a = held; a < m; ++a) x[a] = V(0);
    for (int k = 0; k < n; ++k) {
        const int axis = column[k] % 3, a = column[k] - axis;
        const V* t = slip + 3 * place[a / 3];
        if (k < sticking) {
            x[column[k]] = z[k];
        } else if (axis == 2) {
            x[a] += t[2] * t[0] * z[k];
            x[a + 1] += t[2] * t[1] * z[k];
            x[a + 2] = z[k];
        } else {
            x[a] -= t[1] * z[k];
            x[a + 1] += t[0] * z[k];
        }
    }
    for (int k = 0; k < stride; ++k) z[k] = rest[k];
    for (int a = held; a < m; ++a)
        if (x[a] != V(0)) add(z, x[a], H + a * stride, 0, stride);
    for (int a = 0; a < m; ++a) {
        const int at = 3 * place[a / 3] + a % 3;
        if (a < held) {
            p[at] = -z[a];
            u[at] = wish[at] + D[at] * z[a];
        } else {
            p[at] = x[a];
            u[at] = z[shift + a];
        }
    }
    return 1;
"""


@functools.cache
def contact_balance_functions(real: Any) -> SimpleNamespace:
    """Return the functions for contacts in `real`.

    - `hold_contacts(w, wbase, m, held, free, compliance, wanted, order, cbase, work, workbase)`: eliminates
      the impulses p of the first `held` components, in the `order` of contacts, from the velocities
      u = u0 + W p, where u + D p = g of these. What is left in `work` is u of the others as a function of
      their impulses, and the rows of the held ones. `free` is u0, `compliance` D, `wanted` g. Returns 0 if
      W + D of them is not positive definite.
    - `balance_contacts(m, held, slide, compliance, wanted, order, cbase, work, workbase, impulse,
      velocity)`: the impulses and velocities of all contacts, where the others stick, u + D p = g, if
      D_1 >= 0, or slide, if D_2 >= 0, or else have no impulse. `slide` holds (t_0, t_1, mu) of those that
      slide: u_n + D_2 p_n = g_n, p_t = mu p_n t + x q with q = (-t_1, t_0), where x = 0, or if D_0 >= 0
      q . u_t + D_0 x = 0. Returns 0 if the matrix of these equations is singular.

    `work` has 2 (m + 16)^2 numbers. Rows of W are m numbers apart, rounded up to a multiple of 8, with zeros
    behind the last.
    """
    vec3 = vec3_type(real)
    limit = f"constexpr int LIMIT = {COMPONENTS_MAX};"
    types = f"using V = {CTYPE[real]};"

    @wp.func_native(types + _ADD + _ROWS + _HOLD)
    def hold_contacts(
        w: wp.array[real],
        wbase: int,
        m: int,
        held: int,
        free: wp.array(dtype=vec3),
        compliance: wp.array(dtype=vec3),
        wanted: wp.array(dtype=vec3),
        order: wp.array[int],
        cbase: int,
        work: wp.array[real],
        workbase: int,
    ) -> int: ...

    @wp.func_native(types + limit + _ADD + _ROWS + _BALANCE)
    def balance_contacts(
        m: int,
        held: int,
        slide: wp.array(dtype=vec3),
        compliance: wp.array(dtype=vec3),
        wanted: wp.array(dtype=vec3),
        order: wp.array[int],
        cbase: int,
        work: wp.array[real],
        workbase: int,
        impulse: wp.array(dtype=vec3),
        velocity: wp.array(dtype=vec3),
    ) -> int: ...

    return SimpleNamespace(hold_contacts=hold_contacts, balance_contacts=balance_contacts)
