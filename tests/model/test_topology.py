"""Topology: bodies and joints in any order make the same trees, numbered so that parents come first."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluriverse import JointType, Model, ModelBuilder
from pluriverse.model import Topology

EYE = np.eye(3)
KINDS = (JointType.FIXED, JointType.REVOLUTE, JointType.PRISMATIC, JointType.BALL, JointType.D6)


def build_tree(parents: list[int], kinds: list[int], body_order: list[int], joint_order: list[int]) -> Model:
    """Return a model of links named by number; link k hangs on `parents[k]`, added in the given orders."""
    builder = ModelBuilder()
    index = {}
    for link in body_order:
        index[link] = builder.add_link(mass=1.0 + link, inertia=EYE * (1.0 + link), label=str(link))
    joints = []
    for link in joint_order:
        parent = index[parents[link]] if parents[link] >= 0 else -1
        kind = KINDS[kinds[link] % len(KINDS)]
        if parent < 0 and kinds[link] >= len(KINDS):
            joints.append(builder.add_joint_free(index[link], label=str(link)))
        elif kind is JointType.FIXED:
            joints.append(builder.add_joint_fixed(parent, index[link], label=str(link)))
        elif kind is JointType.REVOLUTE:
            joints.append(builder.add_joint_revolute(parent, index[link], label=str(link)))
        elif kind is JointType.PRISMATIC:
            joints.append(builder.add_joint_prismatic(parent, index[link], label=str(link)))
        elif kind is JointType.D6:
            axes = {"linear_axes": ["x"], "angular_axes": ["y", "z"]}
            joints.append(builder.add_joint_d6(parent, index[link], **axes, label=str(link)))
        else:
            joints.append(builder.add_joint_ball(parent, index[link], label=str(link)))
    builder.add_articulation(joints)
    return builder.finalize("cpu")


def describe(model: Model) -> dict[str, tuple[object, ...]]:
    """Return for each link: type, parent, tree mates, path of dofs to the root, root of its weld, static."""
    template = model.templates[0]
    label = [model.body_label[body] for body in template.node_body]

    def path(dof: int) -> Iterator[tuple[str, int]]:
        while dof >= 0:
            node = template.dof_node[dof]
            yield label[node], int(dof - template.node_dof[node])
            dof = int(template.dof_parent[dof])

    result = {}
    for node, name in enumerate(label):
        first, count = int(template.node_dof[node]), int(template.node_dof_count[node])
        parent = int(template.node_parent[node])
        tree = int(template.node_tree[node])
        mates = frozenset(label[template.tree_node[tree] : template.tree_node_end[tree]])
        result[name] = (
            int(template.node_type[node]),
            label[parent] if parent >= 0 else None,
            mates,
            tuple(tuple(path(dof)) for dof in range(first, first + count)),
            label[int(template.body_node[template.body_weld[template.node_body[node]]])],
            bool(template.body_static[template.node_body[node]]),
        )
    return result


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], list[int]]:
    """Draw a forest, a joint type per link, and the orders in which links and joints are added."""
    count = draw(st.integers(1, 9))
    parents = [draw(st.integers(-1, link - 1)) for link in range(count)]
    kinds = [draw(st.integers(0, len(KINDS))) for _ in range(count)]
    return parents, kinds, draw(st.permutations(range(count))), draw(st.permutations(range(count)))


@settings(max_examples=60, deadline=None)
@given(trees())
def test_declaration_order_does_not_matter(tree):
    """Links and joints added in any order, tips first if need be, make the same trees."""
    parents, kinds, body_order, joint_order = tree
    natural = list(range(len(parents)))
    assert describe(build_tree(parents, kinds, body_order, joint_order)) == describe(
        build_tree(parents, kinds, natural, natural)
    )


@settings(max_examples=60, deadline=None)
@given(trees())
def test_nodes_and_rows_are_laid_out_as_promised(tree):
    """Parents come first, branches are contiguous, dofs follow the nodes, packed rows follow the dofs."""
    parents, kinds, body_order, joint_order = tree
    model = build_tree(parents, kinds, body_order, joint_order)
    template = model.templates[0]
    count = len(parents)
    assert sorted(template.node_joint) == list(range(count))
    assert (template.node_parent < np.arange(count)).all()
    for node in range(count):
        joint = int(template.node_joint[node])
        assert template.node_body[node] == model.joint_child.numpy()[joint]
        assert template.body_node[template.node_body[node]] == node
        assert template.node_coord[node] == model.joint_q_start.numpy()[joint]
        assert template.node_qd[node] == model.joint_qd_start.numpy()[joint]
        parent = int(template.node_parent[node])
        parent_body = template.node_body[parent] if parent >= 0 else -1
        assert parent_body == model.joint_parent.numpy()[joint]
        if parent >= 0:
            assert template.node_tree[node] == template.node_tree[parent]
    assert (np.diff(template.node_tree) >= 0).all()
    dofs = template.dof_count
    np.testing.assert_array_equal(np.repeat(np.arange(count), template.node_dof_count), template.dof_node)
    assert sorted(template.dof_public) == list(range(dofs)) == list(range(model.joint_dof_count))
    assert (template.dof_parent < np.arange(dofs)).all()
    row = 0
    for dof in range(dofs):
        parent = int(template.dof_parent[dof])
        assert template.dof_depth[dof] == (template.dof_depth[parent] + 1 if parent >= 0 else 0)
        path = dof - 1
        while path >= 0 and path != parent:
            path = int(template.dof_parent[path])
        assert path == parent  # depth first: what is below a dof follows it
        assert template.dof_row[dof] == row
        row += int(template.dof_depth[dof]) + 1
        node = int(template.dof_node[dof])
        has_quaternion = template.node_type[node] in (JointType.BALL, JointType.FREE)
        coord = -1 if has_quaternion else template.node_coord[node] + dof - template.node_dof[node]
        assert template.dof_coord[dof] == coord
        tree_index = int(template.node_tree[template.dof_node[dof]])
        assert template.tree_dof[tree_index] <= dof < template.tree_dof_end[tree_index]
    assert template.row_size == row == model.world_row_count
    assert template.tree_count == sum(parent < 0 for parent in parents) == model.tree_count


def test_worlds_of_different_kinds_find_their_own_ranges():
    """Flat index = first of the world + local index, for worlds of unlike robots side by side."""
    kinds = [([-1, 0, 1], [1, 1, 1]), ([-1], [4]), ([-1, 0, 0, -1], [4, 0, 3, 2])]
    scene = ModelBuilder()
    sequence = [0, 1, 2, 1, 0, 2]
    for kind in sequence:
        parents, joint_kinds = kinds[kind]
        natural = list(range(len(parents)))
        source = ModelBuilder()
        for _ in natural:
            source.add_link(mass=1.0, inertia=EYE)
        joints = []
        for link in natural:
            if joint_kinds[link] == 4:
                joints.append(source.add_joint_free(link))
            elif joint_kinds[link] == 0:
                joints.append(source.add_joint_fixed(parents[link], link))
            else:
                joints.append(source.add_joint_revolute(parents[link], link))
        source.add_articulation(joints)
        scene.add_world(source)
    model = scene.finalize("cpu")
    assert model.world_template.tolist() == sequence
    topology = {name: getattr(model.topology, name).numpy() for name in Topology.vars}
    np.testing.assert_array_equal(topology["world_body"], model.body_world_start.numpy()[:-2])
    np.testing.assert_array_equal(topology["world_dof"], model.joint_dof_world_start.numpy()[:-2])
    np.testing.assert_array_equal(topology["world_coord"], model.joint_coord_world_start.numpy()[:-2])
    row, tree = 0, 0
    for world, kind in enumerate(sequence):
        template = model.templates[kind]
        assert world in template.worlds
        begin, end = topology["template_dof"][kind : kind + 2]
        np.testing.assert_array_equal(topology["dof_parent"][begin:end], template.dof_parent)
        begin, end = topology["template_node"][kind : kind + 2]
        child = model.joint_child.numpy()[topology["world_joint"][world] + topology["node_joint"][begin:end]]
        np.testing.assert_array_equal(child, topology["world_body"][world] + topology["node_body"][begin:end])
        assert topology["world_row"][world] == row
        assert topology["world_tree"][world] == tree
        assert topology["template_row_size"][kind] == template.row_size
        row, tree = row + template.row_size, tree + template.tree_count
    assert (model.world_row_count, model.tree_count) == (row, tree)


def test_batches_hold_every_world_once_by_size():
    """Worlds of about equally many dofs are in one batch, those of one template next to each other."""
    sources = {}
    for links in (1, 3, 20):
        source = ModelBuilder()
        for _ in range(links):
            source.add_body(mass=1.0, inertia=EYE)
        sources[links] = source
    scene = ModelBuilder()
    for links in (20, 1, 3, 1, 20, 3):
        scene.add_world(sources[links])
    model = scene.finalize("cpu")
    worlds = [batch.worlds.numpy().tolist() for batch in model.batches]
    assert sorted(itertools.chain(*worlds)) == list(range(6))
    assert [batch.dof_count_max for batch in model.batches] == [6, 18, 120]
    assert worlds == [[1, 3], [2, 5], [0, 4]]
    assert model.worlds.numpy().tolist() == list(range(6))


@pytest.mark.parametrize("depth", [500])
def test_a_long_chain_is_sorted_without_recursion(depth):
    """A chain far longer than Python's recursion limit would allow, tips first."""
    model = build_tree(
        list(range(-1, depth - 1)), [1] * depth, list(range(depth))[::-1], list(range(depth))[::-1]
    )
    template = model.templates[0]
    assert template.dof_depth.tolist() == list(range(depth))
    assert template.row_size == depth * (depth + 1) // 2
