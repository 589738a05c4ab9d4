"""Linear algebra of a few contacts in native code: their mobility, and Newton's step for their impulses.

For m impulse components with Jacobian J [m, dof] and H = L^T D L in packed rows (`math.dense`), the columns
X = L^-T J^T are found in place, from the leaves to the roots: what a row holds goes to the rows above it, so
columns keep the sparsity of the chains of joints that their contacts act on. The mobility is then
W = J H^-1 J^T = X^T D^-1 X. All matrices are small (m up to some thirty) and every inner loop runs over
contiguous numbers, most in blocks of eight: a loop of a dozen numbers would not be vectorized otherwise.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.numbers_at_once import EIGHT_NUMBERS
from pluriverse.math.precision import mat33_type, vec3_type

COMPONENTS_MAX = 72
"""Most impulse components m that `contact_step` can take."""

# Rows of X are sparse: a contact acts on the joints between two bodies. Those rows that have anything in two
# blocks of eight columns are listed, and their products summed in registers, for four rows of W at a time.
_MOBILITY = """
    auto highest = [](const unsigned long long set) {
#ifdef __CUDA_ARCH__
        return 63 - __clzll((long long)set);
#else
        return 63 - __builtin_clzll(set);
#endif
    };
    constexpr int CHUNK = 64;
    const T* rows = H.data + base;
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    V* X = x.data + xbase;
    V* W = w.data + wbase;
    const V* g = y.data + ybase;
    V* v = (V*)(u.data + ubase);
    const int blocks = pad / 8;
    unsigned long long holds[(LIMIT + 7) / 8];  // bits of the rows that have anything in a block
    V shares[CHUNK];
    int list[CHUNK];
    for (int top = end; top > begin; top -= CHUNK) {
        const int bottom = top - begin > CHUNK ? top - CHUNK : begin;
        const bool is_first = top == end;
        for (int b = 0; b < blocks; ++b) holds[b] = 0;
        for (int k = top - 1; k >= bottom; --k) {
            const T* rk = rows + start[k];
            const int dk = deep[k];
            for (int b = 0; b < blocks; ++b) {
                V* xk = X + k * pad + 8 * b;
                const V8 here = load(xk);
                if (!any(here)) continue;
                holds[b] |= 1ull << (k - bottom);
                int d = dk - 1;
                for (int j = up[k]; j >= 0; j = up[j], --d) {
                    V* xj = X + j * pad + 8 * b;
                    store(xj, load(xj) - here * V(rk[d]));
                }
            }
            shares[k - bottom] = V(rk[dk]);
        }
        for (int a = 0; a < blocks; ++a) {
            for (int b = a; b < blocks; ++b) {
                int n = 0;
                for (unsigned long long both = holds[a] & holds[b]; both != 0; ++n) {
                    const int k = highest(both);
                    both ^= 1ull << k;
                    list[n] = bottom + k;
                }
                if (n == 0 && !is_first) continue;
                for (int i = 8 * a; i < 8 * a + 8 && i < m; i += 4) {
                    // Rows behind the last of W are computed from zeros, and not written.
                    const int i1 = i + 1 < m ? i + 1 : i;
                    const int i2 = i + 2 < m ? i + 2 : i;
                    const int i3 = i + 3 < m ? i + 3 : i;
                    V* to = W + 8 * b;
                    const V8 zero = fill(V(0));
                    V8 w0 = is_first ? zero : load(to + i * pad), w1 = is_first ? zero : load(to + i1 * pad);
                    V8 w2 = is_first ? zero : load(to + i2 * pad), w3 = is_first ? zero : load(to + i3 * pad);
                    for (int l = 0; l < n; ++l) {
                        const V share = shares[list[l] - bottom];
                        const V* xk = X + list[l] * pad;
                        const V8 other = load(xk + 8 * b);
                        w0 = w0 + other * (share * xk[i]);
                        w1 = w1 + other * (share * xk[i + 1]);
                        w2 = w2 + other * (share * xk[i + 2]);
                        w3 = w3 + other * (share * xk[i + 3]);
                    }
                    if (i + 3 < m) store(to + i3 * pad, w3);
                    if (i + 2 < m) store(to + i2 * pad, w2);
                    if (i + 1 < m) store(to + i1 * pad, w1);
                    store(to + i * pad, w0);
                    // W is symmetric: the block on the other side of the diagonal is this one, transposed.
                    for (int j = 0; j < 8 && a != b && 8 * b + j < m; ++j) {
                        V* across = W + (8 * b + j) * pad + i;
                        across[0] = w0[j];
                        across[1] = w1[j];
                        across[2] = w2[j];
                        across[3] = w3[j];
                    }
                }
                if (a != b) continue;
                V sum[8];
                const int width = m - 8 * a < 8 ? m - 8 * a : 8;
                for (int i = 0; i < 8; ++i) sum[i] = i < width ? v[8 * a + i] : V(0);
                V8 sums = load(sum);
                for (int l = 0; l < n; ++l) {
                    const V8 scaled = load(X + list[l] * pad + 8 * a) * shares[list[l] - bottom];
                    sums = sums + scaled * g[list[l]];
                }
                store(sum, sums);
                for (int i = 0; i < width; ++i) v[8 * a + i] = sum[i];
            }
        }
    }
"""

_VELOCITIES = """
    const V* X = x.data + xbase;
    const V* rate = y.data + ybase;
    V* v = (V*)(u.data + ubase);
    for (int a = 0; a < m; a += 8) {
        V sum[8];
        const int width = m - a < 8 ? m - a : 8;
        for (int i = 0; i < 8; ++i) sum[i] = i < width ? v[a + i] : V(0);
        V8 sums = load(sum);
        for (int k = 0; k < count; ++k) sums = sums + load(X + k * pad + a) * rate[k];
        store(sum, sums);
        for (int i = 0; i < width; ++i) v[a + i] = sum[i];
    }
"""

_RESPONSES = """
    const T* rows = H.data + base;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    const V* X = x.data + xbase;
    const V* g = y.data + ybase;
    V* v = (V*)(u.data + ubase);
    for (int a = 0; a < m; a += 8) {
        V sum[8];
        const int width = m - a < 8 ? m - a : 8;
        for (int i = 0; i < 8; ++i) sum[i] = i < width ? v[a + i] : V(0);
        V8 sums = load(sum);
        for (int k = 0; k < count; ++k) {
            const V share = V(rows[start[k] + deep[k]]);
            sums = sums + load(X + k * pad + a) * (share * g[k]);
        }
        store(sum, sums);
        for (int i = 0; i < width; ++i) v[a + i] = sum[i];
    }
"""

_SPREAD = """
    const V* X = x.data + xbase;
    const V* p = (const V*)(impulse.data + pbase);
    V* out = y.data + ybase;
    alignas(64) V given[LIMIT];  // with zeros behind the last, as rows of X
    for (int a = 0; a < pad; ++a) given[a] = a < m ? p[a] : V(0);
    for (int k = 0; k < count; ++k) {
        const V* xk = X + k * pad;
        V8 sums = load(xk) * load(given);
        for (int a = 8; a < pad; a += 8) sums = sums + load(xk + a) * load(given + a);
        const V low = (sums[0] + sums[4]) + (sums[1] + sums[5]);
        const V high = (sums[2] + sums[6]) + (sums[3] + sums[7]);
        out[k] += low + high;
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
    for (int a = 0; a < m; ++a) rate[a] = of_velocity ? -r[a] : V(0);
    for (int b = 0; b < m && !of_velocity; ++b) {
        const V s = r[b];
        if (s == V(0)) continue;
        const V* wb = W + b * pad;
        for (int a = 0; a < m; ++a) rate[a] += s * wb[a];
    }
    for (int k = 0; k < k_count; ++k) {
        const int c = column[k] / 3;
        const V* f = F + 9 * c + column[k] % 3;
        const V f0 = f[0], f1 = f[3], f2 = f[6];
        const V* w0 = W + 3 * c * pad;
        const V* w1 = w0 + pad;
        const V* w2 = w1 + pad;
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
    for (int a = 0; a < m; ++a) step[a] = of_velocity ? V(0) : r[a];
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
        const V* wb = W + b * pad;
        for (int a = 0; a < m; ++a) u[a] += s * wb[a];
    }
"""


@made_once
def contact_mobility_functions(linear: Any, real: Any) -> SimpleNamespace:
    """Return the functions for a factorization in `linear` and contacts in `real`.

    - `contact_mobility(H, base, parent, depth, row, first, count, x, xbase, m, y, ybase, w, wbase, u,
      ubase)`: `x` [dof, m] holds J^T and then X, for the `count` degrees of freedom of a world. Writes the
      mobility W [m, m], and adds J H^-1 g to the m numbers from `u[ubase]` on, where `y` holds L^-T g.
    - `add_responses(H, base, depth, row, first, count, x, xbase, m, y, ybase, u, ubase)`: the last of that,
      once `x` holds X.
    - `add_velocities(x, xbase, count, m, y, ybase, u, ubase)`: u <- u + J y, where `x` holds J^T.
    - `spread_impulse(x, xbase, count, m, impulse, pbase, y, ybase)`: y <- y + X p.
    - `add_impulses(w, wbase, m, impulse, cbase, velocity)`: u <- u + W p.
    - `contact_step(w, wbase, m, stiffness, residual, of_velocity, cbase, work, workbase, impulse_step,
      velocity_step)`: Newton's step for impulses p whose velocities are u0 + W p, and which are to be what
      the contacts answer to these: (1 + G W) dp = r, du = W dp, with the symmetric `stiffness` G of each
      contact and the `residual` r, answer minus impulse. `stiffness` is overwritten; `work` has 2 m^2 + m
      numbers. It is solved as (1 + F^T W F) z = -F^T W r, dp = r + F z with G = F F^T, which needs no
      pivots. With `of_velocity`, r holds velocities: (1 + G W) dp = G r, du = W dp - r, without forming G r.

    Rows of W and of `x` are m numbers apart, rounded up to a multiple of 8, with zeros behind the last.
    """
    vec3, mat33 = vec3_type(real), mat33_type(real)
    pad = "const int pad = (m + 7) & ~7;"
    limit = f"constexpr int LIMIT = {COMPONENTS_MAX};"
    types = f"using T = {CTYPE[linear]}; using V = {CTYPE[real]};"
    # What is left of a stiffness [relative] that is rounding.
    tiny = "const V tiny = V(1e-13);" if real is wp.float64 else "const V tiny = V(1e-6f);"

    @wp.func_native(types + EIGHT_NUMBERS + pad + limit + _MOBILITY)
    def contact_mobility(
        H: wp.array[linear],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
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

    @wp.func_native(types + EIGHT_NUMBERS + pad + _RESPONSES)
    def add_responses(
        H: wp.array[linear],
        base: int,
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        count: int,
        x: wp.array[real],
        xbase: int,
        m: int,
        y: wp.array[real],
        ybase: int,
        u: wp.array(dtype=vec3),
        ubase: int,
    ): ...

    @wp.func_native(types + EIGHT_NUMBERS + pad + _VELOCITIES)
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

    @wp.func_native(types + EIGHT_NUMBERS + pad + limit + _SPREAD)
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

    @wp.func_native(types + pad + _ADVANCE)
    def add_impulses(
        w: wp.array[real],
        wbase: int,
        m: int,
        impulse: wp.array(dtype=vec3),
        cbase: int,
        velocity: wp.array(dtype=vec3),
    ): ...

    @wp.func_native(types + pad + limit + tiny + _STEP)
    def contact_step(
        w: wp.array[real],
        wbase: int,
        m: int,
        stiffness: wp.array(dtype=mat33),
        residual: wp.array(dtype=vec3),
        of_velocity: bool,
        cbase: int,
        work: wp.array[real],
        workbase: int,
        impulse_step: wp.array(dtype=vec3),
        velocity_step: wp.array(dtype=vec3),
    ): ...

    return SimpleNamespace(
        contact_mobility=contact_mobility,
        add_responses=add_responses,
        add_velocities=add_velocities,
        spread_impulse=spread_impulse,
        add_impulses=add_impulses,
        contact_step=contact_step,
    )
