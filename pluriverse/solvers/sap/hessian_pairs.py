"""Off-diagonal part of the Hessian: what contacts and equality constraints add between two bodies.

Reads   dof_motion of the dynamics, block_location and tree_position of the order of elimination
Writes  block_value, or hessian_row for two bodies of one tree
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.dense import CTYPE
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_stiffness import mat66_type
from pluriverse.solvers.sap.workspace import sap_struct
from pluriverse.types import JointType

_ADD_PAIR = f"""
    constexpr int FREE = {int(JointType.FREE)};
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

    // `subtract(i, j, entry)` does so from the entry of two degrees of freedom.
    auto add = [&](const bool free_a, const bool free_b, auto&& subtract) {{
        auto add_row = [&](const int i, const T* w) {{
            if (free_b) {{
                for (int k = 0; k < 6; ++k) subtract(i, dof_b - 5 + k, w[k]);
            }} else {{
                for (int j = dof_b; j >= 0; j = up[j]) {{
                    const D* s = motions + 6 * j;
                    const T angular = w[0] * T(s[0]) + w[1] * T(s[1]) + w[2] * T(s[2]);
                    subtract(i, j, angular + (w[3] * T(s[3]) + w[4] * T(s[4]) + w[5] * T(s[5])));
                }}
            }}
        }};
        if (free_a) {{
            for (int k = 0; k < 6; ++k) add_row(dof_a - 5 + k, pair.data[k]);
        }} else {{
            for (int i = dof_a; i >= 0; i = up[i]) {{
                const D* s = motions + 6 * i;
                T w[6];
                for (int c = 0; c < 6; ++c) w[c] = T(s[0]) * pair.data[0][c];
                for (int r = 1; r < 6; ++r)
                    for (int c = 0; c < 6; ++c) w[c] += T(s[r]) * pair.data[r][c];
                add_row(i, w);
            }}
        }}
    }};
    if (a != b) {{
        // The block has the tree that is eliminated later as rows, and is column-major.
        const bool is_later = place[a] >= place[b];
        const int stride_i = is_later ? 1 : size[b], stride_j = is_later ? size[a] : 1;
        T* const corner = values + block - stride_i * tree_dof[a] - stride_j * tree_dof[b];
        // The motions of a free root are the unit vectors.
        auto is_free = [&](const int node) {{
            return topology.node_type.data[node] == FREE && topology.node_parent.data[node] < 0;
        }};
        if (size[a] == 6 && size[b] == 6 && is_free(node_a) && is_free(node_b)) {{
            T* const to = values + block;
            #pragma unroll
            for (int r = 0; r < 6; ++r) {{
                #pragma unroll
                for (int c = 0; c < 6; ++c) to[is_later ? 6 * c + r : 6 * r + c] -= pair.data[r][c];
            }}
            return;
        }}
        add(is_free(node_a), is_free(node_b), [&](const int i, const int j, const T entry) {{
            corner[i * stride_i + j * stride_j] -= entry;
        }});
        return;
    }}
    const bool in_rows = sap.tree_coupled.data[topology.world_tree.data[world] + a] == 0;
    const int* row_of = topology.dof_row.data + first;
    const int* depth_of = topology.dof_depth.data + first;
    T* const rows = sap.hessian_row.data + topology.world_row.data[world];
    add(false, false, [&](const int i, const int j, const T entry) {{
        const int upper = i < j ? i : j, lower = i < j ? j : i;
        T* to = values + block + (upper - tree_dof[a]) * size[a] + lower - tree_dof[a];
        if (in_rows) to = rows + row_of[lower] + depth_of[upper];
        // (i, j) and (j, i) are the same entry, and both chains may hold both.
        *to -= i == j ? entry + entry : entry;
    }});
"""


@functools.cache
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
        """Subtract S_a^T K_ab S_b on the chains of two bodies; `pair` is K_ab."""
        ...

    return SimpleNamespace(add_pair=add_pair)
