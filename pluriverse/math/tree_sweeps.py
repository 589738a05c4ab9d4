"""Sweeps over trees in native code: velocities from roots to leaves, wrenches on points, and back.

Velocities of bodies and wrenches on them are six numbers [angular; linear] about the reference point of their
tree. Of the nodes of a world only those that are marked take part, which include those above them. The root
of a tree whose mark is `plain` may be free; its motions are the unit vectors then.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type
from pluriverse.types import JointType

_TREE = f"""
    const int* marks = mark.data + node0;
    const int* up = parent.data + first;
    const int* begin = node_dof.data + first;
    const int* size = node_dof_count.data + first;
    const int* kind = node_type.data + first;
    const T* motions = (const T*)(motion.data + dof0);
    auto is_free_root = [&](const int node) {{
        return kind[node] == {int(JointType.FREE)} && up[node] < 0 && marks[node] == plain;
    }};
"""

_VELOCITIES = """
    const V* x = dof_rate.data + dof0;
    V* rates = (V*)(rate.data + node0);
    for (int node = node_begin; node < node_end; ++node) {
        if (marks[node] <= 0) continue;
        V r[6] = {};
        if (up[node] >= 0) {
            const V* carrier = rates + 6 * up[node];
            for (int c = 0; c < 6; ++c) r[c] = carrier[c];
        } else if (drifting != 0) {
            const T* drift = (const T*)(tree_drift.data + tree0 + node_tree.data[first + node]);
            for (int c = 0; c < 6; ++c) r[c] = V(drift[c]);
        }
        const int from = begin[node];
        if (is_free_root(node)) {
            for (int c = 0; c < 6; ++c) r[c] += x[from + c];
        } else {
            for (int d = from; d < from + size[node]; ++d) {
                const T* s = motions + 6 * d;
                for (int c = 0; c < 6; ++c) r[c] += x[d] * V(s[c]);
            }
        }
        V* to = rates + 6 * node;
        for (int c = 0; c < 6; ++c) to[c] = r[c];
    }
"""

_WRENCHES = """
    V* wrenches = (V*)(wrench.data + node0);
    V* out = dof_impulse.data + dof0;
    for (int node = node_end - 1; node >= node_begin; --node) {
        if (marks[node] <= 0) continue;
        const V* w = wrenches + 6 * node;
        const int from = begin[node];
        if (is_free_root(node)) {
            for (int c = 0; c < 6; ++c) out[from + c] += w[c];
        } else {
            for (int d = from; d < from + size[node]; ++d) {
                const T* s = motions + 6 * d;
                V sum = V(s[0]) * w[0];
                for (int c = 1; c < 6; ++c) sum += V(s[c]) * w[c];
                out[d] += sum;
            }
        }
        if (up[node] >= 0) {
            V* carrier = wrenches + 6 * up[node];
            for (int c = 0; c < 6; ++c) carrier[c] += w[c];
        }
    }
"""

# Numbers of entry e of an array that need not be contiguous: `SapWorkspace` interleaves those of contacts.
_AT = """
    auto at = [](const auto& from, const int e) {
        return (V*)((char*)from.data + (long long)e * from.strides[0]);
    };
    auto index_at = [](const auto& from, const int e) {
        return *(const int*)((const char*)from.data + (long long)e * from.strides[0]);
    };
"""

_FORCES = """
    V* wrenches = (V*)(wrench.data + node0);
    // Contacts of two bodies follow each other: their sums stay in registers up to the next pair.
    int nodes[2] = {-1, -1};
    V sums[2][6] = {};
    auto store = [&](const int side) {
        if (nodes[side] < 0) return;
        V* w = wrenches + 6 * nodes[side];
        for (int c = 0; c < 6; ++c) w[c] = sums[side][c];
    };
    auto begin = [&](const int side, const int node) {
        nodes[side] = node;
        if (node < 0) return;
        const V* w = wrenches + 6 * node;
        for (int c = 0; c < 6; ++c) sums[side][c] = w[c];
    };
    auto add = [](V* w, const V* r, const V f0, const V f1, const V f2) {
        w[0] += r[1] * f2 - r[2] * f1;
        w[1] += r[2] * f0 - r[0] * f2;
        w[2] += r[0] * f1 - r[1] * f0;
        w[3] += f0;
        w[4] += f1;
        w[5] += f2;
    };
    for (int e = start; e < start + count; ++e) {
        const V* p = at(impulse, e);
        if (!(p[2] != V(0) || *at(bound, e) > V(0))) continue;
        const int node_a = index_at(body0, e), node_b = index_at(body1, e);
        const V* f = at(frame, e);
        const V f0 = f[0] * p[0] + f[1] * p[1] + f[2] * p[2];
        const V f1 = f[3] * p[0] + f[4] * p[1] + f[5] * p[2];
        const V f2 = f[6] * p[0] + f[7] * p[1] + f[8] * p[2];
        if (node_a != nodes[0] || node_b != nodes[1] || node_a == node_b) {
            // Both are stored before one is read: they may change sides, or be the same.
            store(0);
            store(1);
            begin(0, node_a == node_b ? -1 : node_a);
            begin(1, node_b);
        }
        if (node_b >= 0) add(sums[1], at(arm1, e), f0, f1, f2);
        if (node_a >= 0 && node_a != node_b) add(sums[0], at(arm0, e), -f0, -f1, -f2);
        if (node_a >= 0 && node_a == node_b) add(sums[1], at(arm0, e), -f0, -f1, -f2);
    }
    store(0);
    store(1);
"""


@made_once
def tree_sweep_functions(motion_real: Any, real: Any) -> SimpleNamespace:
    """Return the sweeps for motions of joints in `motion_real` and velocities and wrenches in `real`.

    Arrays of the template are read from `first` on, those of the world from `node0`, `tree0` and `dof0` on.

    - `sweep_velocities(mark, plain, parent, node_dof, node_dof_count, node_type, node_tree, first,
      node_begin, node_end, node0, motion, dof0, tree_drift, tree0, drifting, dof_rate, rate)`: the velocity
      of each node with a positive mark, with the drift of its tree if `drifting` is 1.
    - `sweep_wrenches(mark, plain, parent, node_dof, node_dof_count, node_type, first, node_begin,
      node_end, node0, motion, dof0, wrench, dof_impulse)`: adds what the wrenches do to each degree of
      freedom to `dof_impulse`, and to each node's wrench those of the nodes below.

    - `vectors_clear(vectors, first, count)`: sets a range of vectors to 0.

    And for the points `start <= e < start + count`, each at `arm0` of the node `body0` and at `arm1` of the
    node `body1`, or of nothing that moves where that is -1. Arrays of points may have any stride.

    - `add_point_wrenches(impulse, bound, frame, body0, body1, arm0, arm1, start, count, node0, wrench)`: adds
      the impulses in these frames to the second body and subtracts them from the first. Those without a
      normal part, the third number, count only where `bound` is positive.
    """
    vec3, mat33, vec6 = vec3_type(real), mat33_type(real), vec6_type(real)
    motion6 = vec6_type(motion_real)
    types = f"using T = {CTYPE[motion_real]}; using V = {CTYPE[real]};"

    @wp.func_native(types + _TREE + _VELOCITIES)
    def sweep_velocities(
        mark: wp.array[int],
        plain: int,
        parent: wp.array[int],
        node_dof: wp.array[int],
        node_dof_count: wp.array[int],
        node_type: wp.array[int],
        node_tree: wp.array[int],
        first: int,
        node_begin: int,
        node_end: int,
        node0: int,
        motion: wp.array(dtype=motion6),
        dof0: int,
        tree_drift: wp.array(dtype=motion6),
        tree0: int,
        drifting: int,
        dof_rate: wp.array[real],
        rate: wp.array(dtype=vec6),
    ): ...

    @wp.func_native(types + _TREE + _WRENCHES)
    def sweep_wrenches(
        mark: wp.array[int],
        plain: int,
        parent: wp.array[int],
        node_dof: wp.array[int],
        node_dof_count: wp.array[int],
        node_type: wp.array[int],
        first: int,
        node_begin: int,
        node_end: int,
        node0: int,
        motion: wp.array(dtype=motion6),
        dof0: int,
        wrench: wp.array(dtype=vec6),
        dof_impulse: wp.array[real],
    ): ...

    @wp.func_native(f"""
        {CTYPE[real]}* to = ({CTYPE[real]}*)(vectors.data + first);
        for (int e = 0; e < 6 * count; ++e) to[e] = 0;
    """)
    def vectors_clear(vectors: wp.array(dtype=vec6), first: int, count: int): ...

    @wp.func_native(types + _AT + _FORCES)
    def add_point_wrenches(
        impulse: wp.array(dtype=vec3),
        bound: wp.array[real],
        frame: wp.array(dtype=mat33),
        body0: wp.array[int],
        body1: wp.array[int],
        arm0: wp.array(dtype=vec3),
        arm1: wp.array(dtype=vec3),
        start: int,
        count: int,
        node0: int,
        wrench: wp.array(dtype=vec6),
    ): ...

    return SimpleNamespace(
        sweep_velocities=sweep_velocities,
        sweep_wrenches=sweep_wrenches,
        vectors_clear=vectors_clear,
        add_point_wrenches=add_point_wrenches,
    )
