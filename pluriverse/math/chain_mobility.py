"""Mobility of points of bodies that joints carry, in native code, from the factors of the mass matrix.

With A = L^T D L in packed rows (`math.dense`) and the motions S of the joints above a body, one spatial
velocity [angular; linear] per degree of freedom, the mobility of the body is S^T A^-1 S = X^T D^-1 X for
X = L^-T S. L has entries between a degree of freedom and its ancestors only, so X is zero off the chain of
joints above the body, and as long as that. It is found once for all points of a body: a row of X gives the
velocity of any of them. The sums are of squares, so they lose no digits where a point can hardly move.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.lanes import LANES, block_types
from pluriverse.math.precision import vec3_type, vec6_type

CHAIN_SIZE = wp.constant(7)
"""Numbers of a chain per row: six of X, and 1 / D."""
WORK_SIZE = wp.constant(LANES)
"""Numbers of scratch per row."""

_VELOCITIES = """
    enum { STEM = 6 };
    // X and 1 / D of the bodies that the degree of freedom `leaf` moves, from the factors `rows` and motions.
    auto find_chain = [&](
        const F* rows, const F* motion, const int* up, const int* deep, const int* start, int leaf,
        S* work, S* X, int stride) {
        const int last = deep[leaf];
        #if LANES_ARE_VECTORS
        TU* const Y = (TU*)work;  // [depth], six components, 1 / D, and one more
        auto begin = [&](int k) {
            const F* s = motion + 6 * k;
            return (T){ S(s[0]), S(s[1]), S(s[2]), S(s[3]), S(s[4]), S(s[5]), S(0), S(0) };
        };
        auto find_row = [&](int k, int d) {
            T y = begin(k);
            for (int j = leaf, e = last; e > d; j = up[j], --e) y -= S(rows[start[j] + d]) * Y[e];
            y[6] = S(rows[start[k] + d]);
            Y[d] = y;
        };
        int k = leaf, d = last;
        for (; d >= STEM; k = up[k], --d) find_row(k, d);
        if (d == STEM - 1) {
            // The first rows of a long chain stay in registers.
            T y[STEM];
            const F* stem[STEM];
            for (int c = STEM - 1; c >= 0; k = up[k], --c) {
                y[c] = begin(k);
                stem[c] = rows + start[k];
            }
            for (int j = leaf, e = last; e >= STEM; j = up[j], --e) {
                const F* row = rows + start[j];
                const T below = Y[e];
                #pragma unroll
                for (int c = 0; c < STEM; ++c) y[c] -= S(row[c]) * below;
            }
            #pragma unroll
            for (int c = STEM - 1; c >= 0; --c) {
                #pragma unroll
                for (int e = STEM - 1; e > c; --e) y[c] -= S(stem[e][c]) * y[e];
            }
            #pragma unroll
            for (int c = 0; c < STEM; ++c) {
                y[c][6] = S(stem[c][c]);
                Y[c] = y[c];
            }
        } else {
            for (; d >= 0; k = up[k], --d) find_row(k, d);
        }
        for (int d = 0; d <= last; d += LANES) {
            // Zeros behind the chain are not stored: the compiler would call `memset` for them.
            T block[LANES], columns[LANES];
            #pragma unroll
            for (int l = 0; l < LANES; ++l) block[l] = d + l <= last ? T(Y[d + l]) : T(0);
            transpose(block, columns);
            #pragma unroll
            for (int c = 0; c < 7; ++c) *(TU*)(X + stride * c + d) = columns[c];
        }
        #else
        struct row { S c[7]; };
        row* Y = (row*)work;
        for (int k = leaf, d = last; d >= 0; k = up[k], --d) {
            row y;
            for (int c = 0; c < 6; ++c) y.c[c] = S(motion[6 * k + c]);
            for (int j = leaf, e = last; e > d; j = up[j], --e)
                for (int c = 0; c < 6; ++c) y.c[c] -= S(rows[start[j] + d]) * Y[e].c[c];
            y.c[6] = S(rows[start[k] + d]);
            Y[d] = y;
        }
        for (int d = 0; d <= last; ++d)
            for (int c = 0; c < 7; ++c) X[stride * c + d] = Y[d].c[c];
        #endif
    };
"""

_POINT = """
    // The parts of the mobility across and along the normal, in lanes.
    auto measure_point = [&](
        const S* X0, int count0, const S* X1, int count1, int shared, int stride,
        S q0, S q1, S q2, S r0, S r1, S r2, S n0, S n1, S n2, T& across, T& along) {
        across = along = T(0);
        for (int side = 0; side < 2; ++side) {
            const S* X = side == 0 ? X1 : X0;
            const int count = side == 0 ? count1 : count0;
            const S p0 = side == 0 ? r0 : q0, p1 = side == 0 ? r1 : q1, p2 = side == 0 ? r2 : q2;
            for (int d = side == 0 ? 0 : shared / LANES * LANES; d < count; d += LANES) {
                auto at = [&](const S* from, int c) { return *(const TU*)(from + d + c * stride); };
                const T w0 = at(X, 0), w1 = at(X, 1), w2 = at(X, 2);
                T a = at(X, 3) + (w1 * p2 - w2 * p1);
                T b = at(X, 4) + (w2 * p0 - w0 * p2);
                T c = at(X, 5) + (w0 * p1 - w1 * p0);
                T share = at(X, 6);
                if (d < shared) {
                    // Joints that move both bodies move the points apart by the difference only.
                    const M both = d + lane < shared;
                    const T v0 = at(X0, 0), v1 = at(X0, 1), v2 = at(X0, 2);
                    const T a0 = at(X0, 3) + (v1 * q2 - v2 * q1);
                    const T b0 = at(X0, 4) + (v2 * q0 - v0 * q2);
                    const T c0 = at(X0, 5) + (v0 * q1 - v1 * q0);
                    if (side == 1) {
                        share = both ? T(0) : share;
                    } else {
                        a -= both ? a0 : T(0);
                        b -= both ? b0 : T(0);
                        c -= both ? c0 : T(0);
                    }
                }
                const T e = n1 * c - n2 * b;
                const T f = n2 * a - n0 * c;
                const T g = n0 * b - n1 * a;
                const T n = n0 * a + n1 * b + n2 * c;
                across += share * (e * e + f * f + g * g);
                along += share * (n * n);
            }
        }
    };
"""


_CALL_CHAIN = """
    find_chain(
        H.data, (const F*)motion.data, parent.data, depth.data, row.data, leaf, x.data, x.data + outbase,
        stride);
"""

_CALL_POINT = """
    T across[LANES] = {}, along[LANES] = {};
    measure_point(
        x.data + base0, count0, x.data + base1, count1, shared, stride, arm0[0], arm0[1], arm0[2],
        arm1[0], arm1[1], arm1[2], normal[0], normal[1], normal[2], across[0], along[0]);
    T t = add_lanes(across), n = add_lanes(along);
    return {S(0.5) * numbers(t)[0], numbers(n)[0], S(0)};
"""


def chain_code(real: Any, real_vector: Any) -> str:
    """Return the beginning of a snippet: `block_types`, and two functions for chains of joints.

    - `find_chain(rows, motion, up, deep, start, leaf, work, X, stride)`: X and 1 / D of the bodies that the
      degree of freedom `leaf` moves, by component and depth, `stride` numbers from one component to the
      next. `up`, `deep` and `start` are the template arrays of `packed_rows`; `stride` is a multiple of
      `LANES` and at least the length of the chain. `X` gets `CHAIN_SIZE * stride` numbers; `work` has
      `WORK_SIZE * stride`.
    - `measure_point(X0, count0, X1, count1, shared, stride, q0, q1, q2, r0, r1, r2, n0, n1, n2, across,
      along)`: parts of twice w_t and of w_n, in lanes that `add_lanes` adds, of the velocity of the point r
      of the second body against q of the first. The chains have `count0` and `count1` degrees of freedom (0:
      none), of which the first `shared` are the same. w_n is the entry of the mobility along the unit vector
      n, w_t the mean of the two across it [1/kg].
    """
    types = (
        f"typedef {CTYPE[real]} F;"
        + """
    #if defined(__CUDA_ARCH__) || !defined(__clang__)
    #define LANES_ARE_VECTORS 0
    typedef S TU;
    #else
    #define LANES_ARE_VECTORS 1
    typedef S TU __attribute__((ext_vector_type(8), aligned(sizeof(S))));
    #endif
    """
    )
    return block_types(real_vector) + types + _VELOCITIES + _POINT


@made_once
def chain_mobility_functions(real: Any, real_vector: Any) -> SimpleNamespace:
    """Return `chain_code` for one pair of points as functions for kernels.

    - `chain_velocities(H, parent, depth, row, leaf, motion, x, outbase, stride)`: `find_chain`. The
      scratch is at the beginning of `x`.
    - `point_mobility(x, base0, count0, base1, count1, shared, stride, arm0, arm1, normal)`: (w_t, w_n, 0).
    """
    vec3, vec6 = vec3_type(real_vector), vec6_type(real)
    chain = chain_code(real, real_vector) + _CALL_CHAIN
    point = chain_code(real, real_vector) + _CALL_POINT

    @wp.func_native(chain)
    def chain_velocities(
        H: wp.array[real],
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        leaf: int,
        motion: wp.array(dtype=vec6),
        x: wp.array[real_vector],
        outbase: int,
        stride: int,
    ): ...

    @wp.func_native(point)
    def point_mobility(
        x: wp.array[real_vector],
        base0: int,
        count0: int,
        base1: int,
        count1: int,
        shared: int,
        stride: int,
        arm0: vec3,
        arm1: vec3,
        normal: vec3,
    ) -> vec3: ...

    return SimpleNamespace(chain_velocities=chain_velocities, point_mobility=point_mobility)
