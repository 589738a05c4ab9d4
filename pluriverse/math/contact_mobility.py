"""Linear algebra of a few contacts in native code: their mobility, and Newton's step for their impulses.

For m impulse components with Jacobian J [m, dof] and H = L^T D L in packed rows (`math.dense`), the columns
X = L^-T J^T are found in place, from the leaves to the roots: what a row holds goes to the rows above it, so
columns keep the sparsity of the chains of joints that their contacts act on. The mobility is then
W = J H^-1 J^T = X^T D^-1 X. All matrices are small (m up to some thirty) and every inner loop runs over
contiguous numbers.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import mat33_type, vec3_type

COMPONENTS_MAX = 72
"""Most impulse components m that `contact_step` can take."""

_MOBILITY = """
    const T* rows = H.data + base;
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    V* X = x.data + xbase;
    V* W = w.data + wbase;
    const V* g = y.data + ybase;
    V* v = (V*)(u.data + ubase);
    for (int e = 0; e < m * m; ++e) W[e] = V(0);
    for (int k = count - 1; k >= 0; --k) {
        V* xk = X + k * m;
        bool used = false;
        for (int a = 0; a < m; ++a) used |= xk[a] != V(0);
        if (!used) continue;
        const T* rk = rows + start[k];
        int d = deep[k];
        const V share = V(rk[d]);
        --d;
        for (int j = up[k]; j >= 0; j = up[j], --d) {
            const V l = V(rk[d]);
            V* xj = X + j * m;
            for (int a = 0; a < m; ++a) xj[a] -= l * xk[a];
        }
        const V gk = g[k];
        for (int a = 0; a < m; ++a) {
            const V s = share * xk[a];
            if (s == V(0)) continue;
            V* wa = W + a * m;
            for (int b = 0; b < m; ++b) wa[b] += s * xk[b];
            v[a] += s * gk;
        }
    }
"""

_VELOCITIES = """
    const V* X = x.data + xbase;
    const V* rate = y.data + ybase;
    V* __restrict v = (V*)(u.data + ubase);
    for (int k = 0; k < count; ++k) {
        const V s = rate[k];
        if (s == V(0)) continue;
        const V* xk = X + k * m;
        for (int a = 0; a < m; ++a) v[a] += s * xk[a];
    }
"""

_SPREAD = """
    const V* X = x.data + xbase;
    const V* p = (const V*)(impulse.data + pbase);
    V* out = y.data + ybase;
    for (int k = 0; k < count; ++k) {
        const V* xk = X + k * m;
        V s = out[k];
        for (int a = 0; a < m; ++a) s += xk[a] * p[a];
        out[k] = s;
    }
"""

_STEP = """
    const V* W = w.data + wbase;
    V* S = work.data + workbase;  // 1 + F^T W F, column-major
    V* P = S + m * m;  // W F, column-major
    V* z = P + m * m;
    V* F = (V*)(stiffness.data + cbase);
    const V* r = (const V*)(residual.data + cbase);
    V* step = (V*)(impulse_step.data + cbase);
    V* rate = (V*)(velocity_step.data + cbase);
    const int n = m / 3;
    // G = F F^T by Cholesky's method, normal first. Directions without stiffness have no column in what
    // follows: three are left of a contact that sticks, two of one that slides, none of one that is open.
    short column[LIMIT];
    int k_count = 0;
    for (int c = 0; c < n; ++c) {
        V* f = F + 9 * c;
        const V g00 = f[0], g01 = f[1], g02 = f[2], g11 = f[4], g12 = f[5], g22 = f[8];
        const V normal = g22 > V(0) ? sqrt(g22) : V(0);
        const V n0 = normal > V(0) ? g02 / normal : V(0);
        const V n1 = normal > V(0) ? g12 / normal : V(0);
        const V a = g00 - n0 * n0, b = g01 - n0 * n1, d = g11 - n1 * n1;
        const V first = a > tiny * g00 ? sqrt(a) : V(0);
        const V across = first > V(0) ? b / first : V(0);
        const V rest = d - across * across;
        const V second = rest > tiny * g11 ? sqrt(rest) : V(0);
        f[0] = first;  f[1] = V(0);   f[2] = n0;
        f[3] = across; f[4] = second; f[5] = n1;
        f[6] = V(0);   f[7] = V(0);   f[8] = normal;
        if (first > V(0)) column[k_count++] = 3 * c;
        if (second > V(0)) column[k_count++] = 3 * c + 1;
        if (normal > V(0)) column[k_count++] = 3 * c + 2;
    }
    for (int a = 0; a < m; ++a) rate[a] = V(0);
    for (int b = 0; b < m; ++b) {
        const V s = r[b];
        if (s == V(0)) continue;
        const V* wb = W + b * m;
        for (int a = 0; a < m; ++a) rate[a] += s * wb[a];
    }
    for (int k = 0; k < k_count; ++k) {
        const int c = column[k] / 3;
        const V* f = F + 9 * c + column[k] % 3;
        const V f0 = f[0], f1 = f[3], f2 = f[6];
        const V* w0 = W + 3 * c * m;
        const V* w1 = w0 + m;
        const V* w2 = w1 + m;
        V* p = P + k * m;
        for (int a = 0; a < m; ++a) p[a] = f0 * w0[a] + f1 * w1[a] + f2 * w2[a];
        V* s = S + k * m;
        for (int i = k; i < k_count; ++i) {
            const int at = 3 * (column[i] / 3);
            const V* fi = F + 3 * at + column[i] % 3;
            s[i] = fi[0] * p[at] + fi[3] * p[at + 1] + fi[6] * p[at + 2];
        }
        s[k] += V(1);
        // The right-hand side: z = -F^T W r.
        z[k] = -(f0 * rate[3 * c] + f1 * rate[3 * c + 1] + f2 * rate[3 * c + 2]);
    }
    // S is positive definite, its eigenvalues are 1 and more.
    for (int k = 0; k < k_count; ++k) {
        V* sk = S + k * m;
        const V inverse = V(1) / sqrt(sk[k]);
        for (int a = k + 1; a < k_count; ++a) sk[a] *= inverse;
        sk[k] = inverse;
        for (int j = k + 1; j < k_count; ++j) {
            const V l = sk[j];
            V* sj = S + j * m;
            for (int a = j; a < k_count; ++a) sj[a] -= l * sk[a];
        }
        const V zk = z[k] * inverse;
        z[k] = zk;
        for (int a = k + 1; a < k_count; ++a) z[a] -= zk * sk[a];
    }
    for (int k = k_count - 1; k >= 0; --k) {
        const V* sk = S + k * m;
        V zk = z[k];
        for (int a = k + 1; a < k_count; ++a) zk -= sk[a] * z[a];
        z[k] = zk * sk[k];
    }
    for (int a = 0; a < m; ++a) step[a] = r[a];
    for (int k = 0; k < k_count; ++k) {
        const V zk = z[k];
        const int at = 3 * (column[k] / 3);
        const V* f = F + 3 * at + column[k] % 3;
        for (int i = 0; i < 3; ++i) step[at + i] += f[3 * i] * zk;
        const V* p = P + k * m;
        for (int a = 0; a < m; ++a) rate[a] += zk * p[a];
    }
"""

_ADVANCE = """
    const V* W = w.data + wbase;
    const V* p = (const V*)(impulse.data + cbase);
    V* u = (V*)(velocity.data + cbase);
    for (int b = 0; b < m; ++b) {
        const V s = p[b];
        if (s == V(0)) continue;
        const V* wb = W + b * m;
        for (int a = 0; a < m; ++a) u[a] += s * wb[a];
    }
"""

_BALANCE = """
    const V* W = w.data + wbase;
    const V* E = (const V*)(push.data + cbase);
    const V* F = (const V*)(row.data + cbase);
    const V* D = (const V*)(compliance.data + cbase);
    const V* r = (const V*)(wanted.data + cbase);
    const V* u0 = (const V*)(free.data + cbase);
    V* p = (V*)(impulse.data + cbase);
    V* u = (V*)(velocity.data + cbase);
    V* S = work.data + workbase;  // F^T W E + D, row-major, with the right-hand side as last column
    V* z = S + m * (m + 1);  // W e of a column
    // Contacts that stick come first: theirs is a symmetric and positive definite part of W + D, E = F = 1. A
    // contact that slides has its first and last unknown, or the last only.
    short column[LIMIT];
    int n = 0;
    for (int c = 0; c < m; c += 3)
        if (D[c + 1] >= V(0))
            for (int a = c; a < c + 3; ++a) column[n++] = a;
    const int held = n;
    for (int c = 0; c < m; c += 3)
        if (!(D[c + 1] >= V(0)) && D[c + 2] >= V(0)) {
            if (D[c] >= V(0)) column[n++] = c;
            column[n++] = c + 2;
        }
    const int stride = n + 1;
    // Row by row, f_i^T W E: a sum of rows of W, of which each contact's columns of E make their entries.
    for (int i = 0; i < n; ++i) {
        const int axis = column[i] % 3, at = column[i] - axis;
        const V* f = F + 3 * at + axis;
        const V* y = W + column[i] * m;
        if (i >= held && axis == 0) {
            const V* w0 = W + at * m;
            const V* w1 = w0 + m;
            const V f0 = f[0], f1 = f[3];
            for (int a = 0; a < m; ++a) z[a] = f0 * w0[a] + f1 * w1[a];
            y = z;
        }
        V* si = S + i * stride;
        for (int k = 0; k < held; k += 3) {
            const int c = column[k];
            si[k] = y[c];
            si[k + 1] = y[c + 1];
            si[k + 2] = y[c + 2];
        }
        for (int k = held; k < n; ++k) {
            const int j = column[k] % 3, c = column[k] - j;
            const V* e = E + 3 * c + j;
            si[k] = e[0] * y[c] + e[3] * y[c + 1];
            if (j == 2) si[k] += y[c + 2];
        }
        si[i] += D[column[i]];
        si[n] = r[column[i]];
    }
    // Gaussian elimination. Of what sticks only the upper triangle, without pivots, contact by contact: three
    // rows are subtracted from three others at once, which saves most loads and stores.
    for (int k = 0; k < held; k += 3) {
        V* __restrict s0 = S + k * stride;
        V* __restrict s1 = s0 + stride;
        V* __restrict s2 = s1 + stride;
        if (!(s0[k] > V(0))) return 0;
        const V inverse0 = V(1) / s0[k];
        const V l10 = s0[k + 1] * inverse0, l20 = s0[k + 2] * inverse0;
        for (int j = k + 1; j <= n; ++j) s1[j] -= l10 * s0[j];
        if (!(s1[k + 1] > V(0))) return 0;
        const V inverse1 = V(1) / s1[k + 1];
        const V l21 = s1[k + 2] * inverse1;
        for (int j = k + 2; j <= n; ++j) s2[j] = (s2[j] - l20 * s0[j]) - l21 * s1[j];
        if (!(s2[k + 2] > V(0))) return 0;
        const V inverse2 = V(1) / s2[k + 2];
        for (int i = k + 3; i < held; i += 3) {
            V* __restrict t0 = S + i * stride;
            V* __restrict t1 = t0 + stride;
            V* __restrict t2 = t1 + stride;
            const V a0 = s0[i] * inverse0, a1 = s1[i] * inverse1, a2 = s2[i] * inverse2;
            const V b0 = s0[i + 1] * inverse0, b1 = s1[i + 1] * inverse1, b2 = s2[i + 1] * inverse2;
            const V c0 = s0[i + 2] * inverse0, c1 = s1[i + 2] * inverse1, c2 = s2[i + 2] * inverse2;
            for (int j = i; j <= n; ++j) {
                const V x0 = s0[j], x1 = s1[j], x2 = s2[j];
                t0[j] = ((t0[j] - a0 * x0) - a1 * x1) - a2 * x2;
                t1[j] = ((t1[j] - b0 * x0) - b1 * x1) - b2 * x2;
                t2[j] = ((t2[j] - c0 * x0) - c1 * x1) - c2 * x2;
            }
        }
        for (int i = held; i < n; ++i) {
            V* __restrict t = S + i * stride;
            const V a0 = t[k] * inverse0;
            const V a1 = (t[k + 1] - a0 * s0[k + 1]) * inverse1;
            const V a2 = ((t[k + 2] - a0 * s0[k + 2]) - a1 * s1[k + 2]) * inverse2;
            for (int j = k + 3; j <= n; ++j) t[j] = ((t[j] - a0 * s0[j]) - a1 * s1[j]) - a2 * s2[j];
        }
    }
    // Friction makes the rest unsymmetric: row by row, with pivots.
    for (int k = held; k < n; ++k) {
        int pivot = k;
        V largest = V(0);
        for (int i = k; i < n; ++i) {
            const V s = S[i * stride + k];
            const V size = s < V(0) ? -s : s;
            if (size > largest) {
                largest = size;
                pivot = i;
            }
        }
        if (!(largest > V(0))) return 0;
        V* __restrict sk = S + k * stride;
        if (pivot != k)
            for (int j = k; j <= n; ++j) {
                const V t = sk[j];
                sk[j] = S[pivot * stride + j];
                S[pivot * stride + j] = t;
            }
        const V inverse = V(1) / sk[k];
        for (int i = k + 1; i < n; ++i) {
            V* __restrict si = S + i * stride;
            const V l = si[k] * inverse;
            if (l == V(0)) continue;
            for (int j = k + 1; j <= n; ++j) si[j] -= l * sk[j];
        }
    }
    for (int a = 0; a < m; ++a) {
        p[a] = V(0);
        u[a] = u0[a];
    }
    for (int k = n - 1; k >= 0; --k) {
        const V* sk = S + k * stride;
        // Four sums, none of which waits for the others.
        V x0 = sk[n], x1 = V(0), x2 = V(0), x3 = V(0);
        int j = k + 1;
        for (; j + 3 < n; j += 4) {
            x0 -= sk[j] * z[j];
            x1 -= sk[j + 1] * z[j + 1];
            x2 -= sk[j + 2] * z[j + 2];
            x3 -= sk[j + 3] * z[j + 3];
        }
        for (; j < n; ++j) x0 -= sk[j] * z[j];
        const V x = ((x0 + x1) + (x2 + x3)) / sk[k];
        z[k] = x;
        const int at = 3 * (column[k] / 3);
        const V* e = E + 3 * at + column[k] % 3;
        for (int i = 0; i < 3; ++i) p[at + i] += e[3 * i] * x;
    }
    for (int b = 0; b < m; ++b) {
        const V s = p[b];
        if (s == V(0)) continue;
        const V* wb = W + b * m;
        for (int a = 0; a < m; ++a) u[a] += s * wb[a];
    }
    return 1;
"""


@functools.cache
def contact_mobility_functions(linear: Any, real: Any) -> SimpleNamespace:
    """Return the functions for a factorization in `linear` and contacts in `real`.

    - `contact_mobility(H, base, parent, depth, row, first, count, x, xbase, m, y, ybase, w, wbase, u,
      ubase)`: `x` [dof, m] holds J^T and then X, for the `count` degrees of freedom of a world. Writes the
      mobility W [m, m], and adds J H^-1 g to the m numbers from `u[ubase]` on, where `y` holds L^-T g.
    - `add_velocities(x, xbase, count, m, y, ybase, u, ubase)`: u <- u + J y, where `x` holds J^T.
    - `spread_impulse(x, xbase, count, m, impulse, pbase, y, ybase)`: y <- y + X p.
    - `add_impulses(w, wbase, m, impulse, cbase, velocity)`: u <- u + W p.
    - `contact_step(w, wbase, m, stiffness, residual, cbase, work, workbase, impulse_step, velocity_step)`:
      Newton's step for impulses p whose velocities are u0 + W p, and which are to be what the contacts
      answer to these: (1 + G W) dp = r, du = W dp, with the symmetric `stiffness` G of each contact and the
      `residual` r, answer minus impulse. `stiffness` is overwritten; `work` has 2 m^2 + m numbers. It is
      solved as (1 + F^T W F) z = -F^T W r, dp = r + F z with G = F F^T, which needs no pivots.
    - `balance_contacts(w, wbase, m, push, row, compliance, wanted, free, cbase, work, workbase, impulse,
      velocity)`: impulses p = E x of contacts with the unknowns x, where (F^T W E + D) x = r, and their
      velocities u = u0 + W p. Each contact has up to three unknowns: the columns of `push` E and of `row` F,
      and the entries of `compliance` D (negative: not an unknown) and of `wanted` r. With three, E = F = 1.
      Without the second, the first is a direction along the surface, in E and F, and the row of the last
      is (0, 0, 1). `free` is u0. Returns 0 if the matrix is singular. `work` has m^2 + 2 m numbers.
    """
    vec3, mat33 = vec3_type(real), mat33_type(real)
    limit = f"constexpr int LIMIT = {COMPONENTS_MAX};"
    types = f"using T = {CTYPE[linear]}; using V = {CTYPE[real]};"
    # What is left of a stiffness [relative] that is rounding.
    tiny = "const V tiny = V(1e-13);" if real is wp.float64 else "const V tiny = V(1e-6f);"

    @wp.func_native(types + _MOBILITY)
    def contact_mobility(
        H: wp.array[linear],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        count: int,
        x: wp.array[real],
        xbase: int,
        m: int,
        y: wp.array[real],
        ybase: int,
        w: wp.array[real],
        wbase: int,
        u: wp.array(dtype=vec3),
        ubase: int,
    ): ...

    @wp.func_native(types + _VELOCITIES)
    def add_velocities(
        x: wp.array[real],
        xbase: int,
        count: int,
        m: int,
        y: wp.array[real],
        ybase: int,
        u: wp.array(dtype=vec3),
        ubase: int,
    ): ...

    @wp.func_native(types + _SPREAD)
    def spread_impulse(
        x: wp.array[real],
        xbase: int,
        count: int,
        m: int,
        impulse: wp.array(dtype=vec3),
        pbase: int,
        y: wp.array[real],
        ybase: int,
    ): ...

    @wp.func_native(types + _ADVANCE)
    def add_impulses(
        w: wp.array[real],
        wbase: int,
        m: int,
        impulse: wp.array(dtype=vec3),
        cbase: int,
        velocity: wp.array(dtype=vec3),
    ): ...

    @wp.func_native(types + limit + tiny + _STEP)
    def contact_step(
        w: wp.array[real],
        wbase: int,
        m: int,
        stiffness: wp.array(dtype=mat33),
        residual: wp.array(dtype=vec3),
        cbase: int,
        work: wp.array[real],
        workbase: int,
        impulse_step: wp.array(dtype=vec3),
        velocity_step: wp.array(dtype=vec3),
    ): ...

    @wp.func_native(types + limit + _BALANCE)
    def balance_contacts(
        w: wp.array[real],
        wbase: int,
        m: int,
        push: wp.array(dtype=mat33),
        row: wp.array(dtype=mat33),
        compliance: wp.array(dtype=vec3),
        wanted: wp.array(dtype=vec3),
        free: wp.array(dtype=vec3),
        cbase: int,
        work: wp.array[real],
        workbase: int,
        impulse: wp.array(dtype=vec3),
        velocity: wp.array(dtype=vec3),
    ) -> int: ...

    return SimpleNamespace(
        contact_mobility=contact_mobility,
        add_velocities=add_velocities,
        spread_impulse=spread_impulse,
        add_impulses=add_impulses,
        contact_step=contact_step,
        balance_contacts=balance_contacts,
    )
