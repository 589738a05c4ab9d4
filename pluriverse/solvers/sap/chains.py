"""Chains: the degrees of freedom between a body and the root of its tree that the solver may change."""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.model import Topology


@made_once
def chain_functions(dynamics_real: Any) -> SimpleNamespace:
    """Return `last_free_dof` for dynamics of the given precision."""
    DynamicsData = workspace_struct(dynamics_real)

    @wp.func(inline=True)
    def last_free_dof(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], world: int, body_node: int
    ) -> int:
        """Return the last dof on the path from the root to a node that is not prescribed, -1 for none."""
        first_node = topology.template_node[topology.world_template[world]]
        dof = int(-1)
        node = int(body_node)
        while node >= 0 and dof < 0:
            parent = topology.node_parent[first_node + node]
            count = topology.node_dof_count[first_node + node]
            if count > 0:
                dof = topology.node_dof[first_node + node] + count - 1
                if parent < 0:
                    tree = topology.world_tree[world] + topology.node_tree[first_node + node]
                    if dynamics.tree_prescribed[tree] != 0:
                        dof = -1
            node = parent
        return dof

    return SimpleNamespace(last_free_dof=last_free_dof)
