"""Poses, inertias, velocities and motion subspaces of bodies, against MuJoCo."""

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType, eval_fk
from pluriverse.dynamics import Workspace, eval_kinematics
from pluriverse.dynamics.mass_matrix import assemble_mass_matrix

from .conftest import DT
from .trees import build_model, random_joint_state, random_tree, set_joint_state, tree_vector, world_range

# Poses of chains of up to 15 joints within a few metres: some tens of roundings of float64 each.
POSE_ERROR = 1e-13


def test_node_poses_and_inertias_are_those_of_mujoco(worlds):
    """Orientation, origin and centre of mass of every body, and the inertia of every group, in world axes."""
    model, workspace = worlds.model, worlds.workspace
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        template = model.templates[model.world_template[world]]
        data = oracle.data
        rotations = world_range(model, world, workspace.node_rotation, "joint")
        offsets = world_range(model, world, workspace.node_offset, "joint")
        coms = world_range(model, world, workspace.node_com, "joint")
        group_coms = world_range(model, world, workspace.group_com, "joint")
        inertias = world_range(model, world, workspace.group_inertia, "joint")
        groups: dict[int, list[int]] = {}
        references = world_range(model, world, workspace.tree_ref, "tree")
        for node in range(template.node_count):
            entry = tree.joint_order[template.node_joint[node]]
            body = oracle.body(entry)
            reference = references[template.node_tree[node]]
            orientation = data.xmat[body].reshape(3, 3)
            np.testing.assert_allclose(rotations[node], orientation, rtol=0.0, atol=POSE_ERROR)
            np.testing.assert_allclose(reference + offsets[node], data.xpos[body], rtol=0.0, atol=POSE_ERROR)
            np.testing.assert_allclose(reference + coms[node], data.xipos[body], rtol=0.0, atol=POSE_ERROR)
            weld = template.body_node[template.body_weld[template.node_body[node]]]
            groups.setdefault(int(weld), []).append(node)
        for carrier, nodes in groups.items():
            masses, centres, tensors = [], [], []
            for node in nodes:
                entry = tree.joint_order[template.node_joint[node]]
                orientation = data.xmat[oracle.body(entry)].reshape(3, 3)
                masses.append(tree.joints[entry].mass)
                centres.append(data.xipos[oracle.body(entry)])
                tensors.append(orientation @ tree.joints[entry].inertia @ orientation.T)
            centre = np.average(centres, axis=0, weights=masses)
            reference = references[template.node_tree[carrier]]
            np.testing.assert_allclose(reference + group_coms[carrier], centre, rtol=0.0, atol=POSE_ERROR)
            inertia = sum(tensors)
            for mass, place in zip(masses, centres, strict=True):
                arm = place - centre
                inertia = inertia + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
            np.testing.assert_allclose(
                inertias[carrier],
                inertia[np.triu_indices(3)],
                rtol=0.0,
                atol=POSE_ERROR * np.abs(inertia).max(),
            )


def test_node_velocities_are_those_of_mujoco_and_of_the_motion_subspaces(worlds):
    """V about the reference point; the dofs' columns add up to it along the path from the root."""
    model, workspace = worlds.model, worlds.workspace
    for world, (tree, oracle) in enumerate(zip(worlds.trees, worlds.oracles, strict=True)):
        template = model.templates[model.world_template[world]]
        velocities = world_range(model, world, workspace.node_velocity, "joint")
        coms = world_range(model, world, workspace.node_com, "joint")
        motions = world_range(model, world, workspace.dof_motion, "dof")
        speeds = world_range(model, world, workspace.dof_velocity, "dof")
        np.testing.assert_allclose(
            tree_vector(model, world, tree, workspace.dof_velocity),
            oracle.velocity,
            rtol=0.0,
            atol=POSE_ERROR,
        )
        for node in range(template.node_count):
            omega, linear = velocities[node][:3], velocities[node][3:]
            public = np.concatenate([linear + np.cross(omega, coms[node]), omega])
            expected = oracle.body_velocity(tree.joint_order[template.node_joint[node]])
            np.testing.assert_allclose(public, expected, rtol=0.0, atol=100.0 * POSE_ERROR)
            total, place = np.zeros(6), node
            while place >= 0:
                first = template.node_dof[place]
                for dof in range(first, first + template.node_dof_count[place]):
                    total += speeds[dof] * motions[dof]
                place = template.node_parent[place]
            np.testing.assert_allclose(velocities[node], total, rtol=0.0, atol=100.0 * POSE_ERROR)


def test_a_robot_far_from_the_origin_has_the_same_single_precision_mass_matrix():
    """Everything is relative to the tree's root, so 10 km away from the origin no digit is lost."""
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 12, root=JointType.FIXED)
    q, qd = random_joint_state(rng, tree)
    rows = []
    for distance in (0.0, 1.0e4):
        tree.joints[0].parent_frame[:3] = distance, -distance, 0.0
        model = build_model([tree])
        state = model.state()
        set_joint_state(state, [tree], [q], [qd])
        workspace = Workspace(model, wp.float32)
        eval_kinematics(model, model.worlds, state, workspace)
        assemble_mass_matrix(model, model.worlds, workspace, DT)
        rows.append(workspace.mass_row.numpy())
    np.testing.assert_array_equal(rows[0], rows[1])


def test_a_quaternion_of_any_length_is_the_rotation_that_it_stands_for():
    """Users write quaternions by hand: those of ball and free joints are normalized when read."""
    rng = np.random.default_rng(6)
    trees = [random_tree(rng, 1, root=kind) for kind in (JointType.BALL, JointType.FREE)]
    states = [random_joint_state(rng, tree) for tree in trees]
    model = build_model(trees)
    rotations = []
    for scale in (1.0, 4.0):
        for q, _ in states:
            q[0][-4:] *= scale
        state = model.state()
        set_joint_state(state, trees, [q for q, _ in states], [qd for _, qd in states])
        workspace = Workspace(model, wp.float64)
        eval_kinematics(model, model.worlds, state, workspace)
        rotations.append(workspace.node_rotation.numpy())
    np.testing.assert_allclose(rotations[0], rotations[1], rtol=0.0, atol=POSE_ERROR)


def test_a_quaternion_of_length_zero_is_no_rotation():
    """It gives NaN, which is noticed, and not some rotation, which is not."""
    rng = np.random.default_rng(6)
    trees = [random_tree(rng, 1, root=kind) for kind in (JointType.BALL, JointType.FREE, JointType.FREE)]
    states = [random_joint_state(rng, tree) for tree in trees]
    for q, _ in states[:2]:
        q[0][-4:] = 0.0
    model = build_model(trees)
    state = model.state()
    set_joint_state(state, trees, [q for q, _ in states], [qd for _, qd in states])
    eval_fk(model, state.joint_q, state.joint_qd, state)
    assert np.isnan(state.body_q.numpy()[:2, 3:]).all()
    assert np.isfinite(state.body_q.numpy()[2]).all()


def test_workspace_refuses_a_precision_that_does_not_exist():
    model = build_model([random_tree(np.random.default_rng(0), 1)])
    with pytest.raises(ValueError, match=r"pass wp\.float32 or wp\.float64"):
        Workspace(model, wp.float16)
