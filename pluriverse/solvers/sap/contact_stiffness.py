"""Stiffness of contacts between two bodies, summed in native code: K = J^T G J, with J of both bodies.

Reads   frame, arms, velocity and terms of the contacts (`contact.py`)
Writes  node_stiffness_ww, node_stiffness_wv, node_stiffness_vv

G of a contact is a sum of at most three squares, G = sum of f f^T: the two tangents and the normal of one
that sticks; for one that slides the direction across, and that of its impulse, along which velocity changes
it (`cone.py`). With the force f in world axes, its wrenches w_a = (r_a x f, f) and w_b add w_a w_a^T and
w_b w_b^T to the bodies, and w_a w_b^T couples them. Such sums take less time than products of 3x3 matrices,
since columns of six numbers fill vector registers.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.dense import CTYPE
from pluriverse.solvers.sap.cone import FRICTIONLESS
from pluriverse.solvers.sap.workspace import sap_struct

# Part of a tangent in the rounding of its norm (`SOFT_NORM`), squared, below which it is rounding of the
# rest.
SOFT_SHARE_MIN = 1e-15

_VALUE = """
    auto at = [](const auto& array, int index) {
        return (decltype(array.data))((char*)array.data + (long long)array.strides[0] * index);
    };
"""

_RUN_END = (
    _VALUE
    + """
    const int a = *at(sap.contact_node0, first), b = *at(sap.contact_node1, first);
    int slot = first + 1;
    while (slot < end && *at(sap.contact_node0, slot) == a && *at(sap.contact_node1, slot) == b) ++slot;
    return slot;
"""
)

_SUM = (
    _VALUE
    + """
    const int a = *at(sap.contact_node0, first), b = *at(sap.contact_node1, first);
    // A column of six numbers in a register of eight.
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    typedef T column __attribute__((ext_vector_type(8)));
    #else
    struct column {
        T v[8];
        __device__ T& operator[](int r) { return v[r]; }
    };
    #endif
    column aa[6] = {}, bb[6] = {}, ab[6] = {};
    auto add = [&](column (&sum)[6], const column& x, const column& y) {
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
        #pragma clang fp contract(fast)
        for (int c = 0; c < 6; ++c) sum[c] += x * y[c];
    #else
        for (int c = 0; c < 6; ++c)
            for (int r = 0; r < 6; ++r) sum[c].v[r] += x.v[r] * y.v[c];
    #endif
    };
    for (int slot = first; slot < end; ++slot) {
        const V bound = *at(sap.contact_bound, slot);
        if (at(sap.contact_impulse, slot)->c[2] == V(0) && !(bound > V(0))) continue;
        const V mu = *at(sap.contact_mu, slot), soft = *at(sap.contact_soft, slot);
        const V rt = *at(sap.contact_rt, slot), rn = *at(sap.contact_rn, slot);
        const V* velocity = at(sap.contact_velocity, slot)->c;
        const V y0 = -velocity[0] / rt, y1 = -velocity[1] / rt;
        const V y2 = (*at(sap.contact_bias, slot) - velocity[2]) / rn;
        // The squares, in the contact frame.
        V f[3][3] = {};
        int count = 0;
        auto add_across = [&](V stiffness, V norm) {
            // stiffness (1 - t t^T) with t = (y0, y1) / norm, shorter than 1 by the rounding of the norm
            const V square = y0 * y0 + y1 * y1;
            if (square > V(0)) {
                const V s = sqrt(stiffness / square);
                f[count][0] = -s * y1;
                f[count++][1] = s * y0;
                const V rest = (soft / norm) * (soft / norm);
                if (rest > V(SOFT_SHARE_MIN)) {
                    const V r = sqrt(rest) * s;
                    f[count][0] = r * y0;
                    f[count++][1] = r * y1;
                }
            } else {
                const V s = sqrt(stiffness);
                f[count++][0] = s;
                f[count++][1] = s;
            }
        };
        if (mu <= V(FRICTIONLESS)) {
            if (y2 > V(0)) f[count++][2] = V(1) / sqrt(rn);
        } else {
            const V norm = sqrt(y0 * y0 + y1 * y1 + soft * soft);
            const V mu_hat = mu * rt / rn;
            if (bound >= V(0)) {
                if (y2 > V(0)) f[count++][2] = V(1) / sqrt(rn);
                if (norm > mu * bound) {
                    add_across(mu * bound / (rt * norm), norm);
                } else {
                    const V s = V(1) / sqrt(rt);
                    f[count++][0] = s;
                    f[count++][1] = s;
                }
            } else if (norm <= mu * y2) {
                const V s = V(1) / sqrt(rt);
                f[count++][0] = s;
                f[count++][1] = s;
                f[count++][2] = V(1) / sqrt(rn);
            } else if (y2 > -mu_hat * norm) {
                const V share = V(1) / (V(1) + mu * mu_hat);
                const V s = sqrt(share / rn);
                f[count][0] = s * mu * y0 / norm;
                f[count][1] = s * mu * y1 / norm;
                f[count++][2] = s;
                add_across(mu / rt * share * (y2 + mu_hat * norm) / norm, norm);
            }
        }
        const auto& R = at(sap.contact_frame, slot)->data;
        const V* arm0 = at(sap.contact_arm0, slot)->c;
        const V* arm1 = at(sap.contact_arm1, slot)->c;
        auto wrench = [](const V* arm, const V* g) {
            column w = {};
            w[0] = T(arm[1] * g[2] - arm[2] * g[1]);
            w[1] = T(arm[2] * g[0] - arm[0] * g[2]);
            w[2] = T(arm[0] * g[1] - arm[1] * g[0]);
            w[3] = T(g[0]);
            w[4] = T(g[1]);
            w[5] = T(g[2]);
            return w;
        };
        for (int k = 0; k < count; ++k) {
            V g[3];
            for (int r = 0; r < 3; ++r) g[r] = R[r][0] * f[k][0] + R[r][1] * f[k][1] + R[r][2] * f[k][2];
            if (a >= 0 && b >= 0) {
                const column wa = wrench(arm0, g), wb = wrench(arm1, g);
                add(aa, wa, wa);
                add(bb, wb, wb);
                add(ab, wa, wb);
            } else if (a >= 0) {
                const column wa = wrench(arm0, g);
                add(aa, wa, wa);
            } else {
                const column wb = wrench(arm1, g);
                add(bb, wb, wb);
            }
        }
    }
    auto keep = [&](int node, column (&sum)[6]) {
        if (node < 0) return;
        auto& ww = at(sap.node_stiffness_ww, node0 + node)->data;
        auto& wv = at(sap.node_stiffness_wv, node0 + node)->data;
        auto& vv = at(sap.node_stiffness_vv, node0 + node)->data;
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) {
                ww[r][c] += sum[c][r];
                wv[r][c] += sum[3 + c][r];
                vv[r][c] += sum[3 + c][3 + r];
            }
    };
    keep(a, aa);
    keep(b, bb);
    wp::mat_t<6, 6, T> between;
    for (int r = 0; r < 6; ++r)
        for (int c = 0; c < 6; ++c) between.data[r][c] = ab[c][r];
    return between;
"""
)

_SUBTRACT = """
    T* to = out.data + corner;
    for (int c = 0; c < 6; ++c)
        for (int r = 0; r < 6; ++r) to[r * row_stride + c * column_stride] -= matrix.data[r][c];
"""


@functools.cache
def mat66_type(real: Any) -> Any:
    """Return the 6x6 matrix type with scalars of type `real`."""
    return wp.types.matrix(shape=(6, 6), dtype=real)


@functools.cache
def contact_stiffness_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the functions for the given precisions.

    - `run_end(sap, first, end)`: the end of the run of contacts from `first` on that have the same bodies.
    - `sum_stiffness(sap, first, end, node0)`: add J^T G J of a run to the stiffness of both bodies; return
      the part that couples them, without its sign.
    - `subtract_matrix(matrix, out, corner, row_stride, column_stride)`: from a block of `out`.
    """
    SapData, mat66 = sap_struct(real, linear), mat66_type(linear)
    types = f"using T = {CTYPE[linear]}; using V = {CTYPE[real]};"
    limits = f"constexpr double SOFT_SHARE_MIN = {SOFT_SHARE_MIN}, FRICTIONLESS = {FRICTIONLESS};"

    @wp.func_native(_RUN_END)
    def run_end(sap: wp.ref[SapData], first: int, end: int) -> int: ...

    @wp.func_native(types + limits + _SUM)
    def sum_stiffness(sap: wp.ref[SapData], first: int, end: int, node0: int) -> mat66: ...

    @wp.func_native(types + _SUBTRACT)
    def subtract_matrix(
        matrix: mat66, out: wp.array[linear], corner: int, row_stride: int, column_stride: int
    ): ...

    return SimpleNamespace(run_end=run_end, sum_stiffness=sum_stiffness, subtract_matrix=subtract_matrix)
