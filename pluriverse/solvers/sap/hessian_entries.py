"""Entries of the Hessian: where that of two degrees of freedom lies, and which trees it couples."""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
def hessian_entry_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `couple_trees`, `entry_of_tree` and `add_dof_entry`."""
    SapData = sap_struct(real, linear)

    @wp.func(inline=True)
    def is_ancestor(topology: wp.ref[Topology], first: int, upper: int, lower: int) -> int:
        """Return whether dof `upper` is on the path from dof `lower` to the root."""
        dof = int(lower)
        while dof > upper:
            dof = topology.dof_parent[first + dof]
        return int(dof == upper)

    @wp.func(inline=True)
    def couple_trees(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, a: int, b: int) -> int:
        """Mark the trees of two dofs as coupled if they differ; return how many were not marked before."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        first_node = topology.template_node[template]
        tree_count = topology.template_tree[template + 1] - topology.template_tree[template]
        tree0 = topology.world_tree[world]
        words = (tree_count + 63) / 64
        bits = sap.world_adjacency[world]
        tree_a = topology.node_tree[first_node + topology.dof_node[first + a]]
        tree_b = topology.node_tree[first_node + topology.dof_node[first + b]]
        added = int(0)
        if tree_a != tree_b:
            word_a = bits + tree_a * words + tree_b / 64
            word_b = bits + tree_b * words + tree_a / 64
            sap.coupling[word_a] = sap.coupling[word_a] | (wp.uint64(1) << wp.uint64(tree_b % 64))
            sap.coupling[word_b] = sap.coupling[word_b] | (wp.uint64(1) << wp.uint64(tree_a % 64))
        if tree_a != tree_b or is_ancestor(topology, first, wp.min(a, b), wp.max(a, b)) == 0:
            if sap.tree_coupled[tree0 + tree_a] == 0:
                added += 1
            sap.tree_coupled[tree0 + tree_a] = 1
            if sap.tree_coupled[tree0 + tree_b] == 0:
                added += 1
            sap.tree_coupled[tree0 + tree_b] = 1
        return added

    @wp.func(inline=True)
    def entry_of_tree(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, tree: int, i: int, j: int
    ) -> int:
        """Return where H[i, j] of a tree is stored: in its dense block if coupled, else in packed rows."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        upper = wp.min(i, j)
        lower = wp.max(i, j)
        index = (
            topology.world_row[world] + topology.dof_row[first + lower] + topology.dof_depth[first + upper]
        )
        if sap.tree_coupled[topology.world_tree[world] + tree] != 0:
            first_tree = topology.template_tree[template]
            tree_count = topology.template_tree[template + 1] - first_tree
            begin = topology.tree_dof[first_tree + tree]
            block = sap.block_location[sap.world_location[world] + tree * tree_count + tree]
            column = (upper - begin) * sap.tree_size[first_tree + tree]
            index = sap.world_block[world] + block + column + lower - begin
        return index

    @wp.func(inline=True)
    def add_dof_entry(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, i: int, j: int, entry: linear
    ):
        """Add to H[i, j] = H[j, i] of two different dofs."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        first_node = topology.template_node[template]
        first_tree = topology.template_tree[template]
        tree_count = topology.template_tree[template + 1] - first_tree
        tree0 = topology.world_tree[world]
        tree_i = topology.node_tree[first_node + topology.dof_node[first + i]]
        tree_j = topology.node_tree[first_node + topology.dof_node[first + j]]
        if tree_i == tree_j:
            index = entry_of_tree(topology, sap, world, tree_i, i, j)
            if sap.tree_coupled[tree0 + tree_i] == 0:
                sap.hessian_row[index] = sap.hessian_row[index] + entry
            else:
                sap.block_value[index] = sap.block_value[index] + entry
        else:
            row = i - topology.tree_dof[first_tree + tree_i]
            column = j - topology.tree_dof[first_tree + tree_j]
            size = sap.tree_size[first_tree + tree_i]
            if sap.tree_position[tree0 + tree_i] < sap.tree_position[tree0 + tree_j]:
                row = j - topology.tree_dof[first_tree + tree_j]
                column = i - topology.tree_dof[first_tree + tree_i]
                size = sap.tree_size[first_tree + tree_j]
            block = sap.block_location[sap.world_location[world] + tree_i * tree_count + tree_j]
            index = sap.world_block[world] + block + column * size + row
            sap.block_value[index] = sap.block_value[index] + entry

    return SimpleNamespace(
        is_ancestor=is_ancestor,
        couple_trees=couple_trees,
        entry_of_tree=entry_of_tree,
        add_dof_entry=add_dof_entry,
    )
