"""Mobility of points of bodies that joints carry, in native code, from the factors of the mass matrix.

With A = L^T D L in packed rows (`math.dense`) and the motions S of the joints above a body, one spatial
velocity [angular; linear] per degree of freedom, the mobility of the body is S^T A^-1 S = X^T D^-1 X for
X = L^-T S. L has entries between a degree of freedom and its ancestors only, so X is zero off the chain of
joints above the body, and as long as that. It is found once for all points of a body: a row of X gives the
velocity of any of them. The sums are of squares, so they lose no digits where a point can hardly move.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import vec3_type, vec6_type

LANES = wp.constant(8)
"""Rows of X that are processed together; the length of a chain is rounded up to a multiple of it."""
CHAIN_SIZE = wp.constant(7)
"""Numbers of a chain per row: six of X, and 1 / D."""
WORK_SIZE = wp.constant(8)
"""Numbers of scratch per row."""

_VELOCITIES = """
    constexpr int LANES = 8;
    const T* rows = H.data + base;
    const T* S = (const T*)(motion.data + motionbase);
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    V* X = out.data + outbase;  // [component][depth]
    V* Y = work.data + workbase;  // [depth][component], padded to whole vectors
    const int last = deep[leaf];
    for (int k = leaf, d = last; d >= 0; k = up[k], --d) {
        for (int c = 0; c < 6; ++c) Y[LANES * d + c] = V(S[6 * k + c]);
        Y[LANES * d + 6] = V(0);
        Y[LANES * d + 7] = V(0);
    }
    for (int k = leaf, dk = last; dk >= 0; k = up[k], --dk) {
        const T* rk = rows + start[k];
        V y[LANES];
        for (int c = 0; c < LANES; ++c) y[c] = Y[LANES * dk + c];
#ifdef __clang__
#pragma clang loop vectorize(disable) interleave(disable)
#endif
        for (int d = 0; d < dk; ++d) {
            const V l = V(rk[d]);
            V* yd = Y + LANES * d;
            for (int c = 0; c < LANES; ++c) yd[c] -= l * y[c];
        }
        for (int c = 0; c < 6; ++c) X[stride * c + dk] = y[c];
        X[stride * 6 + dk] = V(rk[dk]);
    }
    for (int d = last + 1; d % LANES != 0; ++d)
        for (int c = 0; c < 7; ++c) X[stride * c + d] = V(0);
"""

_POINT = """
    constexpr int LANES = 8;
    V across[LANES], along[LANES];
    for (int i = 0; i < LANES; ++i) across[i] = along[i] = V(0);
    const V n0 = normal[0], n1 = normal[1], n2 = normal[2];
    for (int side = 0; side < 2; ++side) {
        const V* X = x.data + (side == 0 ? base1 : base0);
        const V* other = x.data + base0;
        const int count = side == 0 ? count1 : count0;
        const V r0 = side == 0 ? arm1[0] : arm0[0];
        const V r1 = side == 0 ? arm1[1] : arm0[1];
        const V r2 = side == 0 ? arm1[2] : arm0[2];
        const V q0 = arm0[0], q1 = arm0[1], q2 = arm0[2];
        for (int d = side == 0 ? 0 : shared / LANES * LANES; d < count; d += LANES) {
            const V* w0 = X + d;
            const V* w1 = w0 + stride;
            const V* w2 = w1 + stride;
            const V* v0 = w2 + stride;
            const V* v1 = v0 + stride;
            const V* v2 = v1 + stride;
            const V* inverse = v2 + stride;
            V a[LANES], b[LANES], c[LANES], share[LANES];
            for (int i = 0; i < LANES; ++i) {
                a[i] = v0[i] + (w1[i] * r2 - w2[i] * r1);
                b[i] = v1[i] + (w2[i] * r0 - w0[i] * r2);
                c[i] = v2[i] + (w0[i] * r1 - w1[i] * r0);
                share[i] = inverse[i];
            }
            if (d < shared) {
                // Joints that move both bodies move the points apart by the difference only.
                const V* y = other + d;
                for (int i = 0; i < LANES; ++i) {
                    const bool both = d + i < shared;
                    const V p0 = y[i], p1 = y[i + stride], p2 = y[i + 2 * stride];
                    const V a0 = y[i + 3 * stride] + (p1 * q2 - p2 * q1);
                    const V b0 = y[i + 4 * stride] + (p2 * q0 - p0 * q2);
                    const V c0 = y[i + 5 * stride] + (p0 * q1 - p1 * q0);
                    if (side == 1) {
                        share[i] = both ? V(0) : share[i];
                    } else {
                        a[i] -= both ? a0 : V(0);
                        b[i] -= both ? b0 : V(0);
                        c[i] -= both ? c0 : V(0);
                    }
                }
            }
            for (int i = 0; i < LANES; ++i) {
                const V e = n1 * c[i] - n2 * b[i];
                const V f = n2 * a[i] - n0 * c[i];
                const V g = n0 * b[i] - n1 * a[i];
                const V n = n0 * a[i] + n1 * b[i] + n2 * c[i];
                across[i] += share[i] * (e * e + f * f + g * g);
                along[i] += share[i] * (n * n);
            }
        }
    }
    V t = V(0), s = V(0);
    for (int i = 0; i < LANES; ++i) {
        t += across[i];
        s += along[i];
    }
    return {V(0.5) * t, s, V(0)};
"""


@functools.cache
def chain_mobility_functions(real: Any, real_vector: Any) -> SimpleNamespace:
    """Return the functions for factors and motions in `real` and mobilities in `real_vector`.

    - `chain_velocities(H, base, parent, depth, row, first, leaf, motion, motionbase, work, workbase, out,
      outbase, stride)`: X and 1 / D of the bodies that the degree of freedom `leaf` moves, by component and
      depth, `stride` numbers from one component to the next. The template arrays are those of `packed_rows`;
      `stride` is a multiple of `LANES` and at least the length of the chain. `out` gets `CHAIN_SIZE * stride`
      numbers; `work` has `WORK_SIZE * stride`.
    - `point_mobility(x, base0, count0, base1, count1, shared, stride, arm0, arm1, normal)`: (w_t, w_n, 0) of
      the velocity of a point of the second body against one of the first, for two such chains of `count0` and
      `count1` degrees of freedom (0: none), of which the first `shared` are the same. w_n is the entry of the
      mobility along the unit vector `normal`, w_t the mean of the two across it [1/kg].
    """
    vec3, vec6 = vec3_type(real_vector), vec6_type(real)
    types = f"using T = {CTYPE[real]}; using V = {CTYPE[real_vector]};"

    @wp.func_native(types + _VELOCITIES)
    def chain_velocities(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        leaf: int,
        motion: wp.array(dtype=vec6),
        motionbase: int,
        work: wp.array[real_vector],
        workbase: int,
        out: wp.array[real_vector],
        outbase: int,
        stride: int,
    ): ...

    @wp.func_native(types + _POINT)
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
