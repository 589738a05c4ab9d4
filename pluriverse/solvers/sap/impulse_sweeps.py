"""Start of heaps: sweeps of Gauss and Seidel over the impulses of contacts between free bodies.

Reads   velocity_free, mass_row of the dynamics, terms of the contacts (`contact.py`)
Writes  velocity; `block_value` is scratch

Where dozens of bodies fall on each other, Newton's method spends most of its iterations on which contacts
close, stick and slide, and solves again for the velocity by which convex friction parts those that slide
(`dilation.py`). A sweep takes one contact after the other and gives it the impulse that its own law asks for,
with Coulomb's friction, at the velocities that all others leave ([Jourdan1998]). That costs a quarter of an
iteration of Newton's method, and a few of them find most of these states. They converge slowly where bodies
are stacked, so Newton's method goes on from there to the solution: sweeps change the way to it, not the
solution.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.dense import CTYPE
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import sap_struct
from pluriverse.types import JointType

# Iterations of Newton's method before sweeps: bodies at rest take one, and settling piles two or three.
SWEEP_ITERATION = wp.constant(2)
# Sweeps, forwards and backwards in turns. 64 boxes that fall took 34 iterations without sweeps, 22 after 20,
# 17 after 40, 16 after 60 and 15 after 200.
SWEEP_COUNT = 40

_SWEEP = """
    const int tmpl = topology.world_template.data[world];
    const int first_node = topology.template_node.data[tmpl];
    const int first = topology.template_dof.data[tmpl];
    const int first_tree = topology.template_tree.data[tmpl];
    const int tree_count = topology.template_tree.data[tmpl + 1] - first_tree;
    const int node0 = topology.world_joint.data[world], tree0 = topology.world_tree.data[world];
    const int dof0 = topology.world_dof.data[world], row0 = topology.world_row.data[world];
    const int slot0 = sap.contact_start.data[world], slot_count = sap.contact_count.data[world];

    // A column of six numbers in a register of eight.
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    typedef V column __attribute__((ext_vector_type(8), aligned(sizeof(V))));
    #else
    struct column {
        V v[8];
        __device__ V& operator[](int r) { return v[r]; }
        __device__ const V& operator[](int r) const { return v[r]; }
    };
    #endif
    // Of a body: the inverse of its mass matrix, in six columns of eight, and its velocity. Of a contact: its
    // mobility W, the inverse of W + R, and the inverse of the mean tangential mobility.
    constexpr int BODY = 56, CONTACT = 13;

    long long numbers = 0, squares = 0;
    for (int tree = 0; tree < tree_count; ++tree) {
        const int begin = topology.tree_dof.data[first_tree + tree];
        const int size = topology.tree_dof_end.data[first_tree + tree] - begin;
        numbers += size;
        squares += size * size;
        if (!sap.tree_active.data[tree0 + tree] || dynamics.tree_prescribed.data[tree0 + tree]) continue;
        const int root = first_node + topology.tree_node.data[first_tree + tree];
        if (size != 6 || topology.node_type.data[root] != FREE) return 0;
        for (int k = 0; k < 6; ++k)
            if (sap.dof_terms.data[dof0 + begin + k]) return 0;
    }
    V* inverses = sap.block_value.data + sap.world_block.data[world];
    V* mobilities = inverses + (long long)BODY * tree_count;
    if ((long long)BODY * tree_count + (long long)CONTACT * slot_count > (numbers * numbers + squares) / 2)
        return 0;

    // Inverse mass matrices of the bodies, from A = L D L^T.
    for (int tree = 0; tree < tree_count; ++tree) {
        if (!sap.tree_active.data[tree0 + tree] || dynamics.tree_prescribed.data[tree0 + tree]) continue;
        const int begin = topology.tree_dof.data[first_tree + tree];
        V l[6][6], d[6];
        for (int r = 0; r < 6; ++r) {
            const auto* row = dynamics.mass_row.data + row0 + topology.dof_row.data[first + begin + r];
            for (int c = 0; c <= r; ++c) {
                V sum = V(row[c]);
                for (int k = 0; k < c; ++k) sum -= l[r][k] * l[c][k] * d[k];
                if (c < r) l[r][c] = sum / d[c];
                else d[r] = sum;
            }
        }
        V* inverse = inverses + BODY * tree;
        for (int r = 0; r < 8; ++r)
            inverse[48 + r] = r < 6 ? sap.velocity_free.data[dof0 + begin + r] : V(0);
        for (int c = 0; c < 6; ++c) {
            V x[6] = {};
            x[c] = V(1);
            for (int r = c + 1; r < 6; ++r)
                for (int k = c; k < r; ++k) x[r] -= l[r][k] * x[k];
            for (int r = 5; r >= 0; --r) {
                x[r] /= d[r];
                for (int k = r + 1; k < 6; ++k) x[r] -= l[k][r] * x[k];
            }
            for (int r = 0; r < 8; ++r) inverse[8 * c + r] = r < 6 ? x[r] : V(0);
        }
    }

    const long long stride = sap.contact_rn.strides[0];
    auto numbers_of = [&](const auto& array, int slot) { return (V*)((char*)array.data + stride * slot); };
    auto number = [&](const auto& array, int slot) { return *numbers_of(array, slot); };
    auto index = [&](const auto& array, int slot) { return *(int*)((char*)array.data + stride * slot); };
    auto cross = [](const V* x, const V* y, V* z) {
        z[0] = x[1] * y[2] - x[2] * y[1];
        z[1] = x[2] * y[0] - x[0] * y[2];
        z[2] = x[0] * y[1] - x[1] * y[0];
    };
    // A^-1 w of a body
    auto respond = [&](const V* inverse, const V* w) {
        column sum = {};
        for (int c = 0; c < 6; ++c) {
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
            sum += *(const column*)(inverse + 8 * c) * w[c];
    #else
            for (int r = 0; r < 6; ++r) sum.v[r] += inverse[8 * c + r] * w[c];
    #endif
        }
        return sum;
    };
    auto add = [](V* x, const column& y, V factor) {
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
        *(column*)x += factor * y;
    #else
        for (int r = 0; r < 6; ++r) x[r] += factor * y.v[r];
    #endif
    };
    auto inverse_of = [&](int node) {
        return inverses + BODY * topology.node_tree.data[first_node + node];
    };

    // Mobility W of each contact, and the inverse of W + R.
    for (int s = 0; s < slot_count; ++s) {
        const int slot = slot0 + s;
        V* p = numbers_of(sap.contact_impulse, slot);
        p[0] = p[1] = p[2] = V(0);
        if (!(number(sap.contact_rn, slot) > V(0))) continue;
        const V* R = numbers_of(sap.contact_frame, slot);
        V W[6] = {};  // 00 01 11 02 12 22
        for (int side = 0; side < 2; ++side) {
            if (index(side ? sap.contact_dof1 : sap.contact_dof0, slot) < 0) continue;
            const V* arm = numbers_of(side ? sap.contact_arm1 : sap.contact_arm0, slot);
            const V* inverse = inverse_of(index(side ? sap.contact_node1 : sap.contact_node0, slot));
            V w[3][6];
            int entry = 0;
            for (int k = 0; k < 3; ++k) {
                for (int r = 0; r < 3; ++r) w[k][3 + r] = R[3 * r + k];
                cross(arm, w[k] + 3, w[k]);
                const column x = respond(inverse, w[k]);
                for (int j = 0; j <= k; ++j, ++entry)
                    for (int r = 0; r < 6; ++r) W[entry] += w[j][r] * x[r];
            }
        }
        const V rt = number(sap.contact_rt, slot);
        const V a = W[0] + rt, b = W[1], c = W[2] + rt, d = W[3], e = W[4];
        const V f = W[5] + number(sap.contact_rn, slot);
        const V A = c * f - e * e, B = d * e - b * f, C = b * e - c * d;
        const V share = V(1) / (a * A + b * B + d * C);
        V* kept = mobilities + CONTACT * s;
        for (int k = 0; k < 6; ++k) kept[k] = W[k];
        kept[6] = A * share;
        kept[7] = B * share;
        kept[8] = (a * f - d * d) * share;
        kept[9] = C * share;
        kept[10] = (b * d - a * e) * share;
        kept[11] = (a * c - b * b) * share;
        kept[12] = V(2) / (W[0] + W[2]);
    }

    for (int sweep = 0; sweep < SWEEP_COUNT; ++sweep) {
        for (int i = 0; i < slot_count; ++i) {
            const int s = sweep % 2 ? slot_count - 1 - i : i;
            const int slot = slot0 + s;
            const V rn = number(sap.contact_rn, slot);
            if (!(rn > V(0))) continue;
            const int node_a = index(sap.contact_node0, slot), node_b = index(sap.contact_node1, slot);
            const int dof_a = index(sap.contact_dof0, slot), dof_b = index(sap.contact_dof1, slot);
            const V* arm0 = numbers_of(sap.contact_arm0, slot);
            const V* arm1 = numbers_of(sap.contact_arm1, slot);
            const V* R = numbers_of(sap.contact_frame, slot);
            V* p = numbers_of(sap.contact_impulse, slot);
            V* va = dof_a >= 0 ? inverse_of(node_a) + 48
                : node_a >= 0 ? sap.node_rate.data[node0 + node_a].c : nullptr;
            V* vb = dof_b >= 0 ? inverse_of(node_b) + 48
                : node_b >= 0 ? sap.node_rate.data[node0 + node_b].c : nullptr;
            V relative[3] = {}, turn[3];
            if (vb) {
                cross(vb, arm1, turn);
                for (int k = 0; k < 3; ++k) relative[k] = vb[3 + k] + turn[k];
            }
            if (va) {
                cross(va, arm0, turn);
                for (int k = 0; k < 3; ++k) relative[k] -= va[3 + k] + turn[k];
            }
            V u[3];
            for (int k = 0; k < 3; ++k)
                u[k] = relative[0] * R[k] + relative[1] * R[3 + k] + relative[2] * R[6 + k];
            const V slip[2] = {u[0], u[1]};
            // What the velocity would be without this contact.
            const V* W = mobilities + CONTACT * s;
            u[0] -= W[0] * p[0] + W[1] * p[1] + W[3] * p[2];
            u[1] -= W[1] * p[0] + W[2] * p[1] + W[4] * p[2];
            u[2] -= W[3] * p[0] + W[4] * p[1] + W[5] * p[2];
            const V closing = number(sap.contact_bias, slot) + number(sap.contact_dilation, slot) - u[2];
            V x[3] = {};
            if (closing > V(0)) {
                const V mu = number(sap.contact_mu, slot);
                const V* K = W + 6;
                x[0] = K[3] * closing - K[0] * u[0] - K[1] * u[1];
                x[1] = K[4] * closing - K[1] * u[0] - K[2] * u[1];
                x[2] = K[5] * closing - K[3] * u[0] - K[4] * u[1];
                const V tangential = sqrt(x[0] * x[0] + x[1] * x[1]);
                if (!(x[2] > V(0) && tangential <= mu * x[2])) {
                    // It slides: in the direction of the last sweep, turned by its velocity, or else in
                    // that in which it would be held, or against its velocity.
                    V t0 = -u[0], t1 = -u[1];
                    if (p[2] > V(0)) {
                        t0 = p[0] - W[12] * slip[0];
                        t1 = p[1] - W[12] * slip[1];
                    } else if (x[2] > V(0)) {
                        t0 = x[0];
                        t1 = x[1];
                    }
                    const V length = sqrt(t0 * t0 + t1 * t1);
                    const V scale = length > V(0) ? mu / length : V(0);
                    t0 *= scale;
                    t1 *= scale;
                    const V gives = W[3] * t0 + W[4] * t1 + W[5] + rn;
                    x[2] = gives > V(0) ? closing / gives : V(0);
                    x[0] = x[2] * t0;
                    x[1] = x[2] * t1;
                }
            }
            V change[3], force[3], w[6];
            for (int k = 0; k < 3; ++k) change[k] = x[k] - p[k];
            if (change[0] == V(0) && change[1] == V(0) && change[2] == V(0)) continue;
            for (int k = 0; k < 3; ++k) p[k] = x[k];
            for (int r = 0; r < 3; ++r)
                force[r] = R[3 * r] * change[0] + R[3 * r + 1] * change[1] + R[3 * r + 2] * change[2];
            for (int k = 0; k < 3; ++k) w[3 + k] = force[k];
            if (dof_b >= 0) {
                cross(arm1, force, w);
                add(vb, respond(vb - 48, w), V(1));
            }
            if (dof_a >= 0) {
                cross(arm0, force, w);
                add(va, respond(va - 48, w), V(-1));
            }
        }
    }
    int finite = 1;
    for (int tree = 0; tree < tree_count; ++tree) {
        if (!sap.tree_active.data[tree0 + tree] || dynamics.tree_prescribed.data[tree0 + tree]) continue;
        const V* found = inverses + BODY * tree + 48;
        V* velocity = sap.velocity.data + dof0 + topology.tree_dof.data[first_tree + tree];
        for (int r = 0; r < 6; ++r) {
            velocity[r] = found[r];
            if (!(found[r] - found[r] == V(0))) finite = -1;
        }
    }
    return finite;
"""


@functools.cache
def impulse_sweep_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return `sweep_impulses` for the given precisions; `real` and `linear` are the same.

    `sweep_impulses(topology, dynamics, sap, world)` writes the velocities that sweeps find from no impulses,
    and returns 1, or -1 if one of them is not finite. It writes nothing and returns 0 if the bodies that take
    part are not all free.
    """
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    constants = (
        f"using V = {CTYPE[real]}; constexpr int FREE = {int(JointType.FREE)};"
        f"constexpr int SWEEP_COUNT = {SWEEP_COUNT};"
    )

    @wp.func_native(constants + _SWEEP)
    def sweep_impulses(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ) -> int: ...

    return SimpleNamespace(sweep_impulses=sweep_impulses)
