"""The joints between a link and the world, one after the other, and where their dofs are in a row."""

import warp as wp

from pluriverse.ik.rows import Rows
from pluriverse.model import Topology


@wp.func
def row_dof(rows: Rows, topology: Topology, problem: int, world: int, node: int) -> int:
    """Return the column of the first dof of a template-local node of a world."""
    index = topology.template_node[topology.world_template[world]] + node
    shift = topology.world_dof[world] - topology.world_dof[rows.problem_world[problem]]
    return shift + topology.node_qd[index]


@wp.func
def node_dofs(topology: Topology, world: int, node: int) -> int:
    """Return how many dofs a template-local node of a world has."""
    return topology.node_dof_count[topology.template_node[topology.world_template[world]] + node]


@wp.func
def next_above(topology: Topology, world: int, node: int) -> int:
    """Return the node next towards the root, -1 for none."""
    return topology.node_parent[topology.template_node[topology.world_template[world]] + node]
