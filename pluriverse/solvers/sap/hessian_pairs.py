"""Off-diagonal part of the Hessian: what contacts and equality constraints add between two bodies.

Reads   dof_motion of the dynamics, block_location and tree_position of the order of elimination
Writes  block_value, or hessian_row for two bodies of one tree
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_stiffness import contact_stiffness_functions, mat66_type
from pluriverse.solvers.sap.hessian_entries import hessian_entry_functions
from pluriverse.solvers.sap.workspace import sap_struct
from pluriverse.types import JointType


@functools.cache
def hessian_pair_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return `add_pair` for the given precisions."""
    vec3, vec6, mat33 = vec3_type(linear), vec6_type(linear), mat33_type(linear)
    mat66 = mat66_type(linear)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    subtract_matrix = contact_stiffness_functions(real, linear).subtract_matrix
    entry_of_tree = hessian_entry_functions(real, linear).entry_of_tree

    @wp.func(inline=True)
    def is_free_root(topology: wp.ref[Topology], template: int, last_dof: int) -> bool:
        """Return whether the chain ending at `last_dof` is a free root: its motions are the unit vectors."""
        first = topology.template_dof[template]
        node = topology.template_node[template] + topology.dof_node[first + last_dof]
        return topology.node_type[node] == JointType.FREE and topology.node_parent[node] < 0

    @wp.func(inline=stages_inline())
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
        template = topology.world_template[world]
        first = topology.template_dof[template]
        node_first = topology.template_node[template]
        first_tree = topology.template_tree[template]
        tree0 = topology.world_tree[world]
        dof0 = topology.world_dof[world]
        tree_a = topology.node_tree[node_first + topology.dof_node[first + dof_a]]
        tree_b = topology.node_tree[node_first + topology.dof_node[first + dof_b]]
        same_tree = tree_a == tree_b
        in_rows = same_tree and sap.tree_coupled[tree0 + tree_a] == 0

        # Between two trees the block has the tree that is eliminated later as rows, and is column-major.
        tree_count = topology.template_tree[template + 1] - first_tree
        corner = (
            sap.world_block[world]
            + sap.block_location[sap.world_location[world] + tree_a * tree_count + tree_b]
        )
        stride_i = int(1)
        stride_j = sap.tree_size[first_tree + tree_a]
        if sap.tree_position[tree0 + tree_a] < sap.tree_position[tree0 + tree_b]:
            stride_i = sap.tree_size[first_tree + tree_b]
            stride_j = int(1)
        corner -= stride_i * topology.tree_dof[first_tree + tree_a]
        corner -= stride_j * topology.tree_dof[first_tree + tree_b]

        free_a = is_free_root(topology, template, dof_a)
        free_b = is_free_root(topology, template, dof_b)
        if free_a and free_b and not same_tree:
            # Both chains are the unit vectors about the two bodies' own origins: the block is K_ab itself.
            corner += (dof_a - 5) * stride_i + (dof_b - 5) * stride_j
            subtract_matrix(pair, sap.block_value, corner, stride_i, stride_j)
            return

        ww, wv, vw, vv = mat33(), mat33(), mat33(), mat33()
        for i in range(3):
            for j in range(3):
                ww[i, j] = pair[i, j]
                wv[i, j] = pair[i, 3 + j]
                vw[i, j] = pair[3 + i, j]
                vv[i, j] = pair[3 + i, 3 + j]

        if free_a and not same_tree:
            # The motions of the first chain are the unit vectors.
            corner += (dof_a - 5) * stride_i
            j = int(dof_b)
            while j >= 0:
                motion = vec6(dynamics.dof_motion[dof0 + j])
                omega = vec3(motion[0], motion[1], motion[2])
                velocity = vec3(motion[3], motion[4], motion[5])
                moment = ww * omega + wv * velocity
                force = vw * omega + vv * velocity
                for k in range(3):
                    index = corner + k * stride_i + j * stride_j
                    sap.block_value[index] = sap.block_value[index] - moment[k]
                    index += 3 * stride_i
                    sap.block_value[index] = sap.block_value[index] - force[k]
                j = topology.dof_parent[first + j]
            return

        i = int(dof_a)
        while i >= 0:
            motion = vec6(dynamics.dof_motion[dof0 + i])
            omega = vec3(motion[0], motion[1], motion[2])
            velocity = vec3(motion[3], motion[4], motion[5])
            moment = omega * ww + velocity * vw
            force = omega * wv + velocity * vv
            j = int(dof_b)
            if free_b and not same_tree:
                # The motions of the second chain are.
                j = int(-1)
                for k in range(3):
                    index = corner + i * stride_i + (dof_b - 5 + k) * stride_j
                    sap.block_value[index] = sap.block_value[index] - moment[k]
                    index += 3 * stride_j
                    sap.block_value[index] = sap.block_value[index] - force[k]
            while j >= 0:
                other = vec6(dynamics.dof_motion[dof0 + j])
                entry = wp.dot(moment, vec3(other[0], other[1], other[2])) + wp.dot(
                    force, vec3(other[3], other[4], other[5])
                )
                if same_tree:
                    # (i, j) and (j, i) are the same entry, and both chains may hold both.
                    if i == j:
                        entry = linear(2.0) * entry
                    index = entry_of_tree(topology, sap, world, tree_a, i, j)
                    if in_rows:
                        sap.hessian_row[index] = sap.hessian_row[index] - entry
                    else:
                        sap.block_value[index] = sap.block_value[index] - entry
                else:
                    index = corner + i * stride_i + j * stride_j
                    sap.block_value[index] = sap.block_value[index] - entry
                j = topology.dof_parent[first + j]
            i = topology.dof_parent[first + i]

    return SimpleNamespace(add_pair=add_pair)
