"""Start of heaps: sweeps of Gauss and Seidel over the impulses of contacts between free bodies.

Reads   velocity_free, mass_row of the dynamics, terms of the contacts (`contact.py`)
Writes  velocity; `block_value` is scratch

Where dozens of bodies fall on each other, Newton's method spends most of its iterations on which contacts
close, stick and slide, and solves again for the velocity by which convex friction parts those that slide
(`dilation.py`). A sweep takes one contact after the other and gives it the impulse that its own law asks for,
with Coulomb's friction, at the velocities that all others leave ([Jourdan1998]). That costs a tenth of an
iteration of Newton's method, and a few of them find most of these states. They converge slowly where bodies
are stacked, so Newton's method goes on from there to the solution: sweeps change the way to it, not the
solution.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import SWEEP_NUMBERS, sap_struct
from pluriverse.types import JointType

# Gradient above which sweeps follow, as a share of the momenta. A pile of 64 boxes that settles has at most
# 0.05 by then, and ends within ten iterations; sweeps, which begin from no impulses, made that thirty. Heaps
# that fall have more, up to all.
SWEEP_SHARE = wp.constant(0.05)
# Sweeps, forwards and backwards in turns. 64 boxes that fall took 34 iterations without sweeps, 22 after 20,
# 18 after 40 and after 60, and 15 after 200.
SWEEP_COUNT = 40
# A sweep takes contacts in turns from so many parts of their list, since those that follow each other there
# mostly belong to the same bodies, and would wait for each other's results.
STRANDS = 4

_SWEEP = """
    const int tmpl = topology.world_template.data[world];
    const int first_node = topology.template_node.data[tmpl];
    const int first = topology.template_dof.data[tmpl];
    const int first_tree = topology.template_tree.data[tmpl];
    const int tree_count = topology.template_tree.data[tmpl + 1] - first_tree;
    const int node0 = topology.world_joint.data[world], tree0 = topology.world_tree.data[world];
    const int dof0 = topology.world_dof.data[world], row0 = topology.world_row.data[world];
    const int slot0 = sap.contact_start.data[world], slot_count = sap.contact_count.data[world];

    // Six numbers in a register of eight.
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    typedef V column __attribute__((ext_vector_type(8), aligned(sizeof(V))));
    typedef F wide __attribute__((ext_vector_type(8)));
    #else
    struct column {
        V v[8];
        __device__ V& operator[](int r) { return v[r]; }
        __device__ const V& operator[](int r) const { return v[r]; }
    };
    struct wide {
        F v[8];
        __device__ F& operator[](int r) { return v[r]; }
        __device__ const F& operator[](int r) const { return v[r]; }
    };
    #endif
    // Of a body: the inverse of its mass matrix, in six columns of eight. Of a contact: see below.
    constexpr int BODY = 48;
    struct Contact {
        wide rows[2][3];  // J of the second and, negated, of the first body
        wide gains[2][3];  // A^-1 J^T
        F mobility[6];  // W = J A^-1 J^T: 00 01 11 02 12 22
        F inverse[6];  // of W + R
        F tangential;  // the inverse of its mean tangential mobility
        F rn, mu, bias;
        F free[3];  // its velocity without impulses
        F impulse[3];
        int body[2];  // the second and the first, or that behind the last, which rests
    };

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
    // Everything begins where cache lines do: a velocity in two of them would be stored and loaded in parts.
    char* scratch = (char*)(sap.block_value.data + sap.world_block.data[world]);
    const char* scratch_end = scratch + (numbers * numbers + squares) / 2 * (long long)sizeof(V);
    const long long least = (long long)SWEEP_NUMBERS * tree_count * sizeof(V);
    if (numbers == 6 * tree_count && scratch_end - scratch < least) scratch_end = scratch + least;
    // Twice 63 bytes for where cache lines begin, which must not decide.
    const long long needed = 126 + (long long)sizeof(V) * BODY * tree_count
        + (long long)sizeof(wide) * (tree_count + 1) + (long long)sizeof(Contact) * slot_count;
    if (needed > scratch_end - scratch) return 0;
    scratch += (64 - (long long)scratch % 64) % 64;
    V* inverses = (V*)scratch;
    wide* changes = (wide*)(inverses + (long long)BODY * tree_count);  // of body velocities
    Contact* contacts = (Contact*)(((long long)(changes + tree_count + 1) + 63) / 64 * 64);
    for (int tree = 0; tree <= tree_count; ++tree)
        for (int r = 0; r < 8; ++r) changes[tree][r] = F(0);

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
    // What sweeps read of each contact that takes part, one after the other.
    int count = 0;
    for (int s = 0; s < slot_count; ++s) {
        const int slot = slot0 + s;
        V* p = numbers_of(sap.contact_impulse, slot);
        p[0] = p[1] = p[2] = V(0);
        if (!(number(sap.contact_rn, slot) > V(0))) continue;
        const V* R = numbers_of(sap.contact_frame, slot);
        Contact& contact = contacts[count++];
        V W[6] = {}, free[3] = {};
        for (int side = 0; side < 2; ++side) {
            const int node = index(side ? sap.contact_node0 : sap.contact_node1, slot);
            const bool moves = index(side ? sap.contact_dof0 : sap.contact_dof1, slot) >= 0;
            const V* arm = numbers_of(side ? sap.contact_arm0 : sap.contact_arm1, slot);
            const V sign = side ? V(-1) : V(1);
            const int tree = node >= 0 ? topology.node_tree.data[first_node + node] : -1;
            const V* rate = nullptr;
            if (moves)
                rate = sap.velocity_free.data + dof0 + topology.tree_dof.data[first_tree + tree];
            else if (node >= 0)
                rate = sap.node_rate.data[node0 + node].c;
            contact.body[side] = moves ? tree : tree_count;
            V w[3][6];
            int entry = 0;
            for (int k = 0; k < 3; ++k) {
                for (int r = 0; r < 3; ++r) w[k][3 + r] = R[3 * r + k];
                cross(arm, w[k] + 3, w[k]);
                if (rate)
                    for (int r = 0; r < 6; ++r) free[k] += sign * w[k][r] * rate[r];
                column x = {};
                if (moves) {
                    x = respond(inverses + BODY * tree, w[k]);
                    for (int j = 0; j <= k; ++j, ++entry)
                        for (int r = 0; r < 6; ++r) W[entry] += w[j][r] * x[r];
                }
                for (int r = 0; r < 8; ++r) {
                    contact.rows[side][k][r] = r < 6 && moves ? F(sign * w[k][r]) : F(0);
                    contact.gains[side][k][r] = F(sign * x[r]);
                }
            }
        }
        const V rt = number(sap.contact_rt, slot);
        const V a = W[0] + rt, b = W[1], c = W[2] + rt, d = W[3], e = W[4];
        const V f = W[5] + number(sap.contact_rn, slot);
        const V A = c * f - e * e, B = d * e - b * f, C = b * e - c * d;
        const V share = V(1) / (a * A + b * B + d * C);
        for (int k = 0; k < 6; ++k) contact.mobility[k] = F(W[k]);
        contact.inverse[0] = F(A * share);
        contact.inverse[1] = F(B * share);
        contact.inverse[2] = F((a * f - d * d) * share);
        contact.inverse[3] = F(C * share);
        contact.inverse[4] = F((b * d - a * e) * share);
        contact.inverse[5] = F((a * c - b * b) * share);
        contact.tangential = F(V(2) / (W[0] + W[2]));
        contact.rn = F(number(sap.contact_rn, slot));
        contact.mu = F(number(sap.contact_mu, slot));
        contact.bias = F(number(sap.contact_bias, slot) + number(sap.contact_dilation, slot));
        for (int k = 0; k < 2; ++k) free[k] += numbers_of(sap.contact_chord, slot)[k];
        for (int k = 0; k < 3; ++k) {
            contact.free[k] = F(free[k]);
            contact.impulse[k] = F(0);
        }
    }

    // J x of a contact, at its two bodies.
    auto point_velocity = [](const Contact& contact, const wide& x, const wide& y, F* u) {
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
        #pragma clang fp contract(fast)
        const wide s0 = contact.rows[0][0] * x + contact.rows[1][0] * y;
        const wide s1 = contact.rows[0][1] * x + contact.rows[1][1] * y;
        const wide s2 = contact.rows[0][2] * x + contact.rows[1][2] * y;
        const auto t0 = s0.lo + s0.hi, t1 = s1.lo + s1.hi, t2 = s2.lo + s2.hi;
        const auto both =
            __builtin_shufflevector(t0, t1, 0, 4, 1, 5) + __builtin_shufflevector(t0, t1, 2, 6, 3, 7);
        const auto first = both.lo + both.hi, last = t2.lo + t2.hi;
        u[0] = contact.free[0] + first.x;
        u[1] = contact.free[1] + first.y;
        u[2] = contact.free[2] + (last.x + last.y);
    #else
        for (int k = 0; k < 3; ++k) {
            u[k] = contact.free[k];
            for (int r = 0; r < 6; ++r)
                u[k] += contact.rows[0][k][r] * x[r] + contact.rows[1][k][r] * y[r];
        }
    #endif
    };
    auto add = [](wide& x, const wide* gains, const F* change) {
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
        #pragma clang fp contract(fast)
        x += gains[0] * change[0] + gains[1] * change[1] + gains[2] * change[2];
    #else
        for (int k = 0; k < 3; ++k)
            for (int r = 0; r < 6; ++r) x[r] += gains[k][r] * change[k];
    #endif
    };

    const int strand = (count + STRANDS - 1) / STRANDS;
    for (int sweep = 0; sweep < SWEEP_COUNT; ++sweep) {
        for (int i = 0; i < STRANDS * strand; ++i) {
            const int place = sweep % 2 ? STRANDS * strand - 1 - i : i;
            const int next = place % STRANDS * strand + place / STRANDS;
            if (next >= count) continue;
            Contact& contact = contacts[next];
            wide& vb = changes[contact.body[0]];
            wide& va = changes[contact.body[1]];
            F u[3];
            point_velocity(contact, vb, va, u);
            F* p = contact.impulse;
            const F slip[2] = {u[0], u[1]};
            // What the velocity would be without this contact.
            const F* W = contact.mobility;
            u[0] -= W[0] * p[0] + W[1] * p[1] + W[3] * p[2];
            u[1] -= W[1] * p[0] + W[2] * p[1] + W[4] * p[2];
            u[2] -= W[3] * p[0] + W[4] * p[1] + W[5] * p[2];
            const F closing = contact.bias - u[2];
            F x[3] = {};
            if (closing > F(0)) {
                const F mu = contact.mu;
                const F* K = contact.inverse;
                x[0] = K[3] * closing - K[0] * u[0] - K[1] * u[1];
                x[1] = K[4] * closing - K[1] * u[0] - K[2] * u[1];
                x[2] = K[5] * closing - K[3] * u[0] - K[4] * u[1];
                if (!(x[2] > F(0) && x[0] * x[0] + x[1] * x[1] <= mu * x[2] * (mu * x[2]))) {
                    // It slides: in the direction of the last sweep, turned by its velocity, or else in
                    // that in which it would be held, or against its velocity.
                    F t0 = -u[0], t1 = -u[1];
                    if (p[2] > F(0)) {
                        t0 = p[0] - contact.tangential * slip[0];
                        t1 = p[1] - contact.tangential * slip[1];
                    } else if (x[2] > F(0)) {
                        t0 = x[0];
                        t1 = x[1];
                    }
                    const F length = sqrt(t0 * t0 + t1 * t1);
                    const F scale = length > F(0) ? mu / length : F(0);
                    t0 *= scale;
                    t1 *= scale;
                    const F gives = W[3] * t0 + W[4] * t1 + W[5] + contact.rn;
                    x[2] = gives > F(0) ? closing / gives : F(0);
                    x[0] = x[2] * t0;
                    x[1] = x[2] * t1;
                }
            }
            F change[3];
            for (int k = 0; k < 3; ++k) change[k] = x[k] - p[k];
            if (change[0] == F(0) && change[1] == F(0) && change[2] == F(0)) continue;
            for (int k = 0; k < 3; ++k) p[k] = x[k];
            if (contact.body[0] < tree_count) add(vb, contact.gains[0], change);
            if (contact.body[1] < tree_count) add(va, contact.gains[1], change);
        }
    }
    int finite = 1;
    for (int tree = 0; tree < tree_count; ++tree) {
        if (!sap.tree_active.data[tree0 + tree] || dynamics.tree_prescribed.data[tree0 + tree]) continue;
        const int dof = dof0 + topology.tree_dof.data[first_tree + tree];
        for (int r = 0; r < 6; ++r) {
            const V found = sap.velocity_free.data[dof + r] + V(changes[tree][r]);
            sap.velocity.data[dof + r] = found;
            if (!(found - found == V(0))) finite = -1;
        }
    }
    return finite;
"""


@made_once
def impulse_sweep_functions(
    real: Any, linear: Any, dynamics_real: Any, sweep_real: Any = wp.float32
) -> SimpleNamespace:
    """Return `sweep_impulses` for the given precisions; `real` and `linear` are the same.

    Sweeps themselves compute with numbers of `sweep_real`: they only tell where Newton's method begins.

    `sweep_impulses(topology, dynamics, sap, world)` writes the velocities that sweeps find from no impulses,
    and returns 1, or -1 if one of them is not finite. It writes nothing and returns 0 if the bodies that take
    part are not all free.
    """
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    constants = (
        f"using V = {CTYPE[real]}; using F = {CTYPE[sweep_real]};"
        f"constexpr int FREE = {int(JointType.FREE)}, SWEEP_COUNT = {SWEEP_COUNT};"
        f"constexpr int SWEEP_NUMBERS = {SWEEP_NUMBERS}, STRANDS = {STRANDS};"
    )

    @wp.func_native(constants + _SWEEP)
    def sweep_impulses(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ) -> int: ...

    return SimpleNamespace(sweep_impulses=sweep_impulses)
