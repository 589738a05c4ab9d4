"""Trees that take part in the solution: those on which a term acts. The others move freely.

Reads   tree_active, the part of the world that is solved
"""

from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.model import Topology
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
def active_dofs_function(real: Any, linear: Any) -> Any:
    """Return `active_dofs(topology, sap, world, tree)` for the given precisions.

    It returns where the degrees of freedom of a tree begin and how many there are, 0 if it moves freely.
    Trees of the part that is solved are those from `sap.part_tree` to `sap.part_tree_end`.
    """
    SapData = sap_struct(real, linear)

    @wp.func(inline=True)
    def active_dofs(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, tree: int
    ) -> tuple[int, int]:
        begin, size = int(0), int(0)
        if sap.tree_active[topology.world_tree[world] + tree] != 0:
            row = topology.template_tree[topology.world_template[world]] + tree
            begin = topology.world_dof[world] + topology.tree_dof[row]
            size = topology.tree_dof_end[row] - topology.tree_dof[row]
        return begin, size

    return active_dofs
