"""Off-diagonal part of the Hessian: what contacts and equality constraints add between two bodies.

Reads   dof_motion of the dynamics, block_location and tree_position of the order of elimination
Writes  block_value, or hessian_row for two bodies of one tree; node_stiffness of what both move with
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_stiffness import mat66_type
from pluriverse.solvers.sap.workspace import VISITED, sap_struct
from pluriverse.types import JointType

_ADD_PAIR = f"""
    constexpr int FREE = {int(JointType.FREE)}, VISITED = {int(VISITED)};
    const int kind = topology.world_template.data[world];
    const int first = topology.template_dof.data[kind], node_first = topology.template_node.data[kind];
    const int first_tree = topology.template_tree.data[kind];
    const int tree_count = topology.template_tree.data[kind + 1] - first_tree;
    const int* up = topology.dof_parent.data + first;
    const int* tree_dof = topology.tree_dof.data + first_tree;
    const int* size = sap.tree_size.data + first_tree;
    const int* place = sap.tree_position.data + topology.world_tree.data[world];
    const D* motions = (const D*)(dynamics.dof_motion.data + topology.world_dof.data[world]);
    const int node_a = node_first + topology.dof_node.data[first + dof_a];
    const int node_b = node_first + topology.dof_node.data[first + dof_b];
    const int a = topology.node_tree.data[node_a], b = topology.node_tree.data[node_b];
    const int block = sap.block_location.data[sap.world_location.data[world] + a * tree_count + b];
    T* const values = sap.block_value.data + sap.world_block.data[world];

    // The motions of a free root are the unit vectors.
    auto is_free = [&](const int node) {{
        return topology.node_type.data[node] == FREE && topology.node_parent.data[node] < 0;
    }};
    // Rows K^T s and K s of a degree of freedom, and an entry of one with another.
    auto row_from_first = [&](const int i, T* w) {{
        const D* s = motions + 6 * i;
        for (int c = 0; c < 6; ++c) w[c] = T(s[0]) * pair.data[0][c];
        for (int r = 1; r < 6; ++r)
            for (int c = 0; c < 6; ++c) w[c] += T(s[r]) * pair.data[r][c];
    }};
    auto row_from_second = [&](const int j, T* w) {{
        const D* s = motions + 6 * j;
        for (int r = 0; r < 6; ++r) {{
            w[r] = T(s[0]) * pair.data[r][0];
            for (int c = 1; c < 6; ++c) w[r] += T(s[c]) * pair.data[r][c];
        }}
    }};
    auto entry_of = [&](const T* w, const int j) {{
        const D* s = motions + 6 * j;
        const T angular = w[0] * T(s[0]) + w[1] * T(s[1]) + w[2] * T(s[2]);
        return angular + (w[3] * T(s[3]) + w[4] * T(s[4]) + w[5] * T(s[5]));
    }};
    if (a != b) {{
        // The block has the tree that is eliminated later as rows, and is column-major.
        const bool is_later = place[a] >= place[b];
        const int stride_i = is_later ? 1 : size[b], stride_j = is_later ? size[a] : 1;
        T* const corner = values + block - stride_i * tree_dof[a] - stride_j * tree_dof[b];
        if (size[a] == 6 && size[b] == 6 && is_free(node_a) && is_free(node_b)) {{
            T* const to = values + block;
            #pragma unroll
            for (int r = 0; r < 6; ++r) {{
                #pragma unroll
                for (int c = 0; c < 6; ++c) to[is_later ? 6 * c + r : 6 * r + c] -= pair.data[r][c];
            }}
            return;
        }}
        const bool free_a = is_free(node_a), free_b = is_free(node_b);
        auto subtract_row = [&](const int i, const T* w) {{
            T* const to = corner + i * stride_i;
            if (free_b) {{
                for (int k = 0; k < 6; ++k) to[(dof_b - 5 + k) * stride_j] -= w[k];
            }} else {{
                for (int j = dof_b; j >= 0; j = up[j]) to[j * stride_j] -= entry_of(w, j);
            }}
        }};
        if (free_a) {{
            for (int k = 0; k < 6; ++k) subtract_row(dof_a - 5 + k, pair.data[k]);
        }} else {{
            for (int i = dof_a; i >= 0; i = up[i]) {{
                T w[6];
                row_from_first(i, w);
                subtract_row(i, w);
            }}
        }}
        return;
    }}
    // Two branches of a tree, and the part of the tree that both have below them.
    int shared = dof_a;
    for (int other = dof_b; shared != other;) {{
        if (shared > other) shared = up[shared];
        else other = up[other];
    }}
    const int root = topology.tree_node.data[first_tree + a], node0 = topology.world_joint.data[world];
    // The motions of a prescribed root are zero.
    const bool has_units = is_free(node_first + root) && sap.node_contact.data[node0 + root] == VISITED;
    const int unit_end = has_units ? tree_dof[a] + 6 : 0;
    const bool in_rows = sap.tree_coupled.data[topology.world_tree.data[world] + a] == 0;
    const int* row_of = topology.dof_row.data + first;
    const int* depth_of = topology.dof_depth.data + first;
    T* const rows = sap.hessian_row.data + topology.world_row.data[world];
    auto subtract = [&](const int i, const int j, const T entry) {{
        const int upper = i < j ? i : j, lower = i < j ? j : i;
        T* to = values + block + (upper - tree_dof[a]) * size[a] + lower - tree_dof[a];
        if (in_rows) to = rows + row_of[lower] + depth_of[upper];
        *to -= entry;
    }};
    auto subtract_shared = [&](const int i, const T* w) {{
        int j = shared;
        for (; j >= unit_end; j = up[j]) subtract(i, j, entry_of(w, j));
        for (; j >= 0; j = up[j]) subtract(i, j, w[j - tree_dof[a]]);
    }};
    for (int i = dof_a; i > shared; i = up[i]) {{
        T w[6];
        row_from_first(i, w);
        for (int j = dof_b; j > shared; j = up[j]) subtract(i, j, entry_of(w, j));
        subtract_shared(i, w);
    }}
    for (int j = dof_b; j > shared; j = up[j]) {{
        T w[6];
        row_from_second(j, w);
        subtract_shared(j, w);
    }}
    if (shared < 0) return;
    // What both move with goes into the sweep over the tree, which comes later: K + K^T.
    const int node = node0 + topology.dof_node.data[first + shared];
    auto& ww = sap.node_stiffness_ww.data[node];
    auto& wv = sap.node_stiffness_wv.data[node];
    auto& vv = sap.node_stiffness_vv.data[node];
    for (int r = 0; r < 3; ++r) {{
        for (int c = 0; c < 3; ++c) {{
            ww.data[r][c] -= pair.data[r][c] + pair.data[c][r];
            wv.data[r][c] -= pair.data[r][3 + c] + pair.data[3 + c][r];
            vv.data[r][c] -= pair.data[3 + r][3 + c] + pair.data[3 + c][3 + r];
        }}
    }}
"""


@made_once
def hessian_pair_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return `add_pair` for the given precisions."""
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    mat66 = mat66_type(linear)
    types = f"using T = {CTYPE[linear]}; using D = {CTYPE[dynamics_real]};"

    @wp.func_native(types + _ADD_PAIR)
    def add_pair(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        dof_a: int,
        dof_b: int,
        pair: mat66,
    ):
        """Subtract S_a^T K_ab S_b and its transpose on the chains of two bodies; `pair` is K_ab.

        Of two bodies of one tree, the part for joints that move both is left to the sweep of the stiffness.
        """
        ...

    return SimpleNamespace(add_pair=add_pair)
