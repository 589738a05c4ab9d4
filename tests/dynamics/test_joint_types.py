"""Each joint type by itself against MuJoCo: poses, velocities, mass matrix, forces, free motion."""

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType

from .conftest import DT, Worlds, make_worlds
from .test_bias import joint_force
from .trees import random_tree, tree_damping, tree_matrix, tree_vector, world_range

# Chains of seven bodies within some metres, in float64: some hundred roundings.
RELATIVE_ERROR = 1e-13

KINDS = [
    JointType.FIXED,
    JointType.PRISMATIC,
    JointType.REVOLUTE,
    JointType.BALL,
    JointType.D6,
    JointType.FREE,
]
SEEDS = 3


@pytest.fixture(scope="module")
def worlds() -> Worlds:
    """Return worlds of seven joints of one type: fixed to the world, or behind a free root."""
    rng = np.random.default_rng(11)
    trees = []
    for kind in KINDS:
        floats = kind in (JointType.FIXED, JointType.FREE)
        inner = [kind] if kind is not JointType.FREE else [JointType.REVOLUTE]
        for _ in range(SEEDS):
            root = JointType.FREE if floats else kind
            trees.append(random_tree(rng, 7, root=root, kinds=inner, single=True))
    return make_worlds(trees, wp.float64, seed=12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_joint_type_has_the_mechanics_of_mujoco(worlds, kind):
    """Random frames, centres of mass, axes, armature, damping, forces and velocities."""
    model, workspace = worlds.model, worlds.workspace
    first = SEEDS * KINDS.index(kind)
    for world in range(first, first + SEEDS):
        tree, oracle = worlds.trees[world], worlds.oracles[world]
        template = model.templates[model.world_template[world]]
        references = world_range(model, world, workspace.tree_ref, "tree")
        offsets = world_range(model, world, workspace.node_offset, "joint")
        velocities = world_range(model, world, workspace.node_velocity, "joint")
        coms = world_range(model, world, workspace.node_com, "joint")
        for node in range(template.node_count):
            entry = tree.joint_order[template.node_joint[node]]
            position = references[template.node_tree[node]] + offsets[node]
            np.testing.assert_allclose(position, oracle.data.xpos[oracle.body(entry)], atol=RELATIVE_ERROR)
            omega, linear = velocities[node][:3], velocities[node][3:]
            expected = oracle.body_velocity(entry)
            actual = np.concatenate([linear + np.cross(omega, coms[node]), omega])
            np.testing.assert_allclose(actual, expected, atol=RELATIVE_ERROR * np.abs(expected).max())

        damping = tree_damping(tree)
        matrix = oracle.mass_matrix() + DT * np.diag(damping)
        scale = np.abs(matrix).max()
        actual = tree_matrix(model, world, tree, workspace.mass_row)
        np.testing.assert_allclose(actual, matrix, rtol=0.0, atol=RELATIVE_ERROR * scale)
        force = joint_force(worlds, world) + oracle.applied(worlds.body_f[world].astype(np.float64))
        force -= oracle.bias() + damping * oracle.velocity
        actual = tree_vector(model, world, tree, workspace.dof_force)
        np.testing.assert_allclose(actual, force, rtol=0.0, atol=RELATIVE_ERROR * np.abs(force).max())
        free = oracle.velocity + DT * np.linalg.solve(matrix, force)
        actual = tree_vector(model, world, tree, workspace.dof_velocity_free)
        np.testing.assert_allclose(actual, free, rtol=0.0, atol=RELATIVE_ERROR * np.abs(free).max())
