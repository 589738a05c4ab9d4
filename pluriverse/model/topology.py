"""Topology: how bodies are connected and which shapes may touch, stored once per kind of world.

Worlds of equal structure share one *template*. A *node* is a joint with the body that it moves; the nodes of
a template are sorted depth first: parents come first, and every branch is contiguous, as is every *tree* (the
descendants of one joint to the world). Degrees of freedom are numbered node by node in this order ("internal"
order); those of one joint keep the order of `joint_qd`.

A symmetric matrix with the sparsity of the trees (mass matrix, its factors) is kept in *packed rows*: the row
of a dof holds the entries for the dofs on its path from the root, by depth, so `dof_depth + 1` of them with
the diagonal last ([Featherstone2008] ch. 6). Indices inside a template are relative to its world: a kernel
adds `world_dof[world]` and the like.
"""

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from pluriverse.types import FLOATING_JOINTS, JointType

FREE_BELOW = wp.constant(7)
"""`node_type` of a free or distance joint below a body, whose dofs are not those of `JointType.FREE`."""


@wp.struct
class Topology:
    """Structure of all worlds, for kernels."""

    # [world]
    world_template: wp.array[int]  # template of the world
    world_body: wp.array[int]  # first flat body
    world_joint: wp.array[int]  # first flat joint, and first node
    world_coord: wp.array[int]  # first flat coordinate
    world_dof: wp.array[int]  # first flat dof, public and internal
    world_shape: wp.array[int]  # first flat shape
    world_row: wp.array[int]  # first entry of packed rows
    world_tree: wp.array[int]  # first tree

    # [template + 1] where each template begins in the arrays below
    template_node: wp.array[int]
    template_dof: wp.array[int]
    template_tree: wp.array[int]
    template_body: wp.array[int]
    template_shape: wp.array[int]
    template_pair: wp.array[int]
    # [template]
    template_row_size: wp.array[int]  # packed row entries of a world

    # [template node]
    node_joint: wp.array[int]  # world-local joint
    node_body: wp.array[int]  # world-local body that the joint moves
    node_parent: wp.array[int]  # template-local node, -1 at the root
    node_carrier: wp.array[int]  # template-local node whose rigid group the parent belongs to, -1 at the root
    node_type: wp.array[
        int
    ]  # JointType; free and distance joints are FREE at a root and FREE_BELOW elsewhere
    node_tree: wp.array[int]  # template-local tree
    node_coord: wp.array[int]  # world-local first coordinate in joint_q
    node_qd: wp.array[int]  # world-local first public dof in joint_qd
    node_dof: wp.array[int]  # template-local first internal dof
    node_dof_count: wp.array[int]
    node_linear_count: wp.array[int]  # public dofs that are linear; they come first

    # [template dof], internal order
    dof_node: wp.array[int]  # template-local node
    dof_parent: wp.array[int]  # template-local previous dof towards the root, -1 for none
    dof_depth: wp.array[int]  # number of dofs above
    dof_row: wp.array[int]  # world-local first entry of the packed row
    dof_public: wp.array[int]  # world-local public dof of the same place in the same joint
    dof_coord: wp.array[int]  # world-local coordinate that is the position of this dof alone, -1 for none

    # [template tree]
    tree_node: wp.array[int]  # template-local range of nodes
    tree_node_end: wp.array[int]
    tree_dof: wp.array[int]  # template-local range of dofs
    tree_dof_end: wp.array[int]

    # [template body]
    body_node: wp.array[int]  # template-local node that moves the body

    # [template pair] shapes that may touch, lower GeoType first: world-local shape, or -1 - flat global shape
    pair_shape0: wp.array[int]
    pair_shape1: wp.array[int]


@dataclass
class Template:
    """Structure of one kind of world, on the host. The arrays are those of `Topology` for this template."""

    joint_type: np.ndarray
    """`JointType`, world-local, shape [joint]."""
    joint_parent: np.ndarray
    """World-local parent body or -1, shape [joint]."""
    joint_child: np.ndarray
    """World-local child body, shape [joint]."""
    joint_dof_dim: np.ndarray
    """Number of linear and of angular degrees of freedom, shape [joint, 2]."""
    body_count: int
    """Number of bodies in a world."""
    shape_count: int
    """Number of shapes in a world."""
    worlds: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """Worlds of this kind, ascending."""

    node_joint: np.ndarray = field(init=False)
    node_body: np.ndarray = field(init=False)
    node_parent: np.ndarray = field(init=False)
    node_carrier: np.ndarray = field(init=False)
    node_type: np.ndarray = field(init=False)
    node_tree: np.ndarray = field(init=False)
    node_coord: np.ndarray = field(init=False)
    node_qd: np.ndarray = field(init=False)
    node_dof: np.ndarray = field(init=False)
    node_dof_count: np.ndarray = field(init=False)
    node_linear_count: np.ndarray = field(init=False)
    node_depth: np.ndarray = field(init=False)
    """Number of nodes above, shape [node]."""
    dof_node: np.ndarray = field(init=False)
    dof_parent: np.ndarray = field(init=False)
    dof_depth: np.ndarray = field(init=False)
    dof_row: np.ndarray = field(init=False)
    dof_public: np.ndarray = field(init=False)
    dof_coord: np.ndarray = field(init=False)
    tree_node: np.ndarray = field(init=False)
    tree_node_end: np.ndarray = field(init=False)
    tree_dof: np.ndarray = field(init=False)
    tree_dof_end: np.ndarray = field(init=False)
    body_node: np.ndarray = field(init=False)
    pair_shape0: np.ndarray = field(init=False)
    pair_shape1: np.ndarray = field(init=False)
    equality: np.ndarray = field(init=False)
    """Type, two bodies and two joints (world-local or -1) of each equality constraint, shape [equality
    constraint, 5]."""
    equality_axis: np.ndarray = field(init=False)
    """Axes of the two joints of each equality constraint, by their place in the joint, shape [equality
    constraint, 2]."""
    row_size: int = field(init=False, default=0)
    """Packed row entries of a world."""
    body_weld: np.ndarray = field(init=False)
    """World-local body at the root of the bodies fixed together that this one belongs to, shape [body]."""
    body_static: np.ndarray = field(init=False)
    """Whether no joint between the body and the world can move, shape [body]."""

    @property
    def dof_count(self) -> int:
        """Number of degrees of freedom of a world."""
        return len(self.dof_node)

    @property
    def coord_count(self) -> int:
        """Number of joint coordinates of a world."""
        return int(joint_coord_counts(self.joint_type, self.joint_dof_dim).sum())

    @property
    def node_count(self) -> int:
        """Number of nodes (joints) of a world."""
        return len(self.node_joint)

    @property
    def tree_count(self) -> int:
        """Number of trees of a world."""
        return len(self.tree_node)

    def sort(self) -> np.ndarray:
        """Sort joints into nodes and number the degrees of freedom.

        Every body must be the child of exactly one joint.

        Returns:
            The world-local joints that belong to a cycle and are not connected to the world; empty for valid
            structures.
        """
        joint_count = len(self.joint_type)
        body_joint = np.full(self.body_count, -1, dtype=np.int64)
        body_joint[self.joint_child] = np.arange(joint_count)
        parent_joint = np.where(self.joint_parent >= 0, body_joint[self.joint_parent], -1)
        order = _depth_first(parent_joint)
        if len(order) < joint_count:
            return np.setdiff1d(np.arange(joint_count), order)

        rank = np.empty(joint_count, dtype=np.int64)
        rank[order] = np.arange(joint_count)
        types = self.joint_type[order]
        parent = np.where(parent_joint[order] >= 0, rank[parent_joint[order]], -1)
        types = np.where(
            np.isin(types, FLOATING_JOINTS), np.where(parent < 0, JointType.FREE, FREE_BELOW), types
        )
        self.node_joint, self.node_type, self.node_parent = order, types, parent
        self.node_body = self.joint_child[order]
        self.body_node = rank[body_joint]
        self.node_tree = np.cumsum(parent < 0) - 1

        dof_counts = self.joint_dof_dim.sum(axis=1)
        coord_counts = joint_coord_counts(self.joint_type, self.joint_dof_dim)
        self.node_coord = _starts(coord_counts)[order]
        self.node_qd = _starts(dof_counts)[order]
        self.node_dof_count = dof_counts[order]
        self.node_linear_count = self.joint_dof_dim[order, 0]
        self.node_dof = _starts(self.node_dof_count)
        self.dof_node = np.repeat(np.arange(joint_count), self.node_dof_count)
        offset = np.arange(len(self.dof_node)) - self.node_dof[self.dof_node]
        self.dof_public = self.node_qd[self.dof_node] + offset
        # The coordinates of ball and free joints hold a quaternion and are more than their dofs.
        scalar = (coord_counts == dof_counts)[order][self.dof_node]
        self.dof_coord = np.where(scalar, self.node_coord[self.dof_node] + offset, -1)

        self.tree_node = np.flatnonzero(parent < 0)
        self.tree_node_end = np.append(self.tree_node[1:], joint_count)[: len(self.tree_node)]
        dof_bound = np.append(self.node_dof, len(self.dof_node))
        self.tree_dof, self.tree_dof_end = dof_bound[self.tree_node], dof_bound[self.tree_node_end]

        self._walk_from_roots()
        self.dof_row = _starts(self.dof_depth + 1)
        self.row_size = int((self.dof_depth + 1).sum())
        return order[:0]

    def _walk_from_roots(self) -> None:
        """Fill the columns that each node inherits from its parent."""
        depth: list[int] = []
        group: list[int] = []  # node at the root of the rigid group of each node
        carrier: list[int] = []
        last_dof: list[int] = []
        weld: list[int] = []
        static: list[bool] = []
        dof_parent: list[int] = []
        dof_depth: list[int] = []
        for node, parent in enumerate(self.node_parent.tolist()):
            depth.append(depth[parent] + 1 if parent >= 0 else 0)
            last = last_dof[parent] if parent >= 0 else -1
            first, count = int(self.node_dof[node]), int(self.node_dof_count[node])
            for dof in range(first, first + count):
                dof_parent.append(last)
                dof_depth.append(dof_depth[last] + 1 if last >= 0 else 0)
                last = dof
            last_dof.append(last)
            carrier.append(group[parent] if parent >= 0 else -1)
            group.append(carrier[node] if count == 0 and parent >= 0 else node)
            body = int(self.node_body[node])
            weld.append(weld[parent] if count == 0 and parent >= 0 else body)
            static.append(last < 0)
        self.node_carrier = np.array(carrier, dtype=np.int64)
        self.node_depth = np.array(depth, dtype=np.int64)
        self.dof_parent = np.array(dof_parent, dtype=np.int64)
        self.dof_depth = np.array(dof_depth, dtype=np.int64)
        self.body_weld = np.array(weld, dtype=np.int64)[self.body_node]
        self.body_static = np.array(static, dtype=bool)[self.body_node]


_TYPE_COORD_COUNT = np.array([joint_type.coord_count for joint_type in JointType])


def joint_coord_counts(joint_type: np.ndarray, joint_dof_dim: np.ndarray) -> np.ndarray:
    """Return how many coordinates each joint has, from types and `joint_dof_dim`."""
    return np.where(joint_type == JointType.D6, joint_dof_dim.sum(axis=1), _TYPE_COORD_COUNT[joint_type])


def _starts(counts: np.ndarray) -> np.ndarray:
    """Return the starts of consecutive ranges of the given sizes."""
    return np.cumsum(counts) - counts


def _depth_first(parent: np.ndarray) -> np.ndarray:
    """Return the entries connected to a root (parent -1), each tree contiguous and parents first."""
    children: list[list[int]] = [[] for _ in range(len(parent) + 1)]
    for entry in range(len(parent) - 1, -1, -1):
        children[parent[entry]].append(entry)  # -1 addresses the last list, that of the roots
    order: list[int] = []
    stack = children[-1]
    while stack:
        entry = stack.pop()
        order.append(entry)
        stack.extend(children[entry])
    return np.array(order, dtype=np.int64)


_NODE_FIELDS = (
    "node_joint",
    "node_body",
    "node_parent",
    "node_carrier",
    "node_type",
    "node_tree",
    "node_coord",
    "node_qd",
    "node_dof",
    "node_dof_count",
    "node_linear_count",
)
_DOF_FIELDS = ("dof_node", "dof_parent", "dof_depth", "dof_row", "dof_public", "dof_coord")
_TREE_FIELDS = ("tree_node", "tree_node_end", "tree_dof", "tree_dof_end")
_PAIR_FIELDS = ("pair_shape0", "pair_shape1")


def make_topology(
    templates: list[Template],
    world_template: np.ndarray,
    world_first: dict[str, np.ndarray],
    device: wp.Device,
) -> tuple[Topology, int, int]:
    """Copy templates to a device.

    Args:
        templates: All templates.
        world_template: Template of each world.
        world_first: First flat `body`, `joint`, `coord`, `dof` and `shape` of each world.
        device: Where the arrays go.

    Returns:
        The topology, the number of packed row entries and the number of trees of all worlds.

    Raises:
        ValueError: If the worlds are too large for 32-bit indices.
    """
    row_counts = np.array([template.row_size for template in templates], dtype=np.int64)[world_template]
    tree_counts = np.array([template.tree_count for template in templates], dtype=np.int64)[world_template]
    row_count, tree_count = int(row_counts.sum()), int(tree_counts.sum())
    if row_count > np.iinfo(np.int32).max:
        raise ValueError(
            f"the mass matrices of all worlds have {row_count} entries, more than 32-bit indices can "
            "address. Use fewer worlds per model."
        )
    arrays = {f"world_{name}": first for name, first in world_first.items()}
    arrays["world_template"] = world_template
    arrays["world_row"], arrays["world_tree"] = _starts(row_counts), _starts(tree_counts)
    arrays["template_row_size"] = np.array([template.row_size for template in templates])
    for kind, counts in {
        "node": [template.node_count for template in templates],
        "dof": [template.dof_count for template in templates],
        "tree": [template.tree_count for template in templates],
        "body": [template.body_count for template in templates],
        "shape": [template.shape_count for template in templates],
        "pair": [len(template.pair_shape0) for template in templates],
    }.items():
        arrays[f"template_{kind}"] = np.concatenate([[0], np.cumsum(counts)])
    for name in (*_NODE_FIELDS, *_DOF_FIELDS, *_TREE_FIELDS, "body_node", *_PAIR_FIELDS):
        arrays[name] = np.concatenate([getattr(template, name) for template in templates])

    topology = Topology()
    for name, array in arrays.items():
        setattr(topology, name, wp.array(array.astype(np.int32, copy=False), dtype=wp.int32, device=device))
    return topology, row_count, tree_count
