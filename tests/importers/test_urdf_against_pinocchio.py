"""Imported URDF robots have the masses, kinematics and mass matrix that Pinocchio gives them."""

import itertools
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pluriverse.model_builder import ModelBuilder
from tests.importers.mechanics import body_poses, mass_matrix, randomize_joints

pinocchio = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")

ROBOTS = {
    "anymal": "anymal_c_simple_description/urdf/anymal.urdf",
    "fr3": "franka_description/urdfs/fr3_franka_hand.urdf",
    "allegro": "allegro_hand_description/allegro_hand_description_right.urdf",
    "cartpole": "newton_examples/cartpole.urdf",
    "quadruped": "newton_examples/quadruped.urdf",
}
ENTRIES = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
POSE_TOLERANCE = 1e-5  # float32 coordinates along chains of up to ten links of some decimetres
MASS_TOLERANCE = 2e-6  # relative to the largest entry


def with_possible_inertias(path):
    """Return the text of a URDF file in which no second moment of mass is negative."""
    root = ElementTree.parse(path).getroot()
    for element in root.iter("inertia"):
        entries = {name: float(element.get(name, 0.0)) for name in ENTRIES}
        inertia = np.array([[entries["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        values, axes = np.linalg.eigh(second)
        if values[0] < -1e-5 * np.abs(inertia).max():
            second = axes @ np.diag(np.maximum(values, 0.0)) @ axes.T
            inertia = np.trace(second) * np.eye(3) - second
            for a, b in itertools.combinations_with_replacement(range(3), 2):
                element.set(f"i{'xyz'[a]}{'xyz'[b]}", repr(float(inertia[a, b])))
    return ElementTree.tostring(root, encoding="unicode")


def configuration(builder, model):
    """Return Pinocchio's q for the builder's joint_q, and the dof of the builder for each of Pinocchio's."""
    q = pinocchio.neutral(model)
    dofs = np.zeros(model.nv, dtype=int)
    by_name = {label.rpartition("/")[2]: index for index, label in enumerate(builder.joint_label)}
    for joint in range(1, model.njoints):
        index = by_name[model.names[joint]]
        value = builder.joint_q[builder.joint_q_start[index]]
        start = model.joints[joint].idx_q
        q[start : start + model.joints[joint].nq] = (
            [value] if model.joints[joint].nq == 1 else [np.cos(value), np.sin(value)]
        )
        dofs[model.joints[joint].idx_v] = builder.joint_qd_start[index]
    return q, dofs


def check_against_pinocchio(builder, model, seed):
    randomize_joints(builder, seed)
    data = model.createData()
    q, dofs = configuration(builder, model)
    expected = pinocchio.crba(model, data, q)
    expected = np.triu(expected) + np.triu(expected, 1).T
    actual = mass_matrix(builder)[np.ix_(dofs, dofs)]
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=MASS_TOLERANCE * np.abs(expected).max())
    pinocchio.framesForwardKinematics(model, data, q)
    for label, pose in body_poses(builder).items():
        frame = data.oMf[model.getFrameId(label.rpartition("/")[2], pinocchio.FrameType.BODY)]
        np.testing.assert_allclose(pose[:3], frame.translation, rtol=0.0, atol=POSE_TOLERANCE)
        quat = pinocchio.Quaternion(*np.roll(pose[3:], 1)).normalized()
        np.testing.assert_allclose(quat.matrix(), frame.rotation, rtol=0.0, atol=POSE_TOLERANCE)


@pytest.mark.parametrize(
    ("robot", "ordering"),
    [(robot, "dfs") for robot in ROBOTS] + [("fr3", "bfs"), ("fr3", None), ("quadruped", None)],
)
def test_robot_has_pinocchios_poses_and_mass_matrix(robot_assets, robot, ordering):
    """Forward kinematics and mass matrix at random joint positions, whatever the order of the joints."""
    path = robot_assets / ROBOTS[robot]
    builder = ModelBuilder()
    builder.add_urdf(path, load_visual_shapes=False, joint_ordering=ordering)
    check_against_pinocchio(builder, pinocchio.buildModelFromXML(with_possible_inertias(path)), seed=3)


@pytest.mark.parametrize("robot", ["anymal", "fr3", "allegro"])
def test_merging_welded_links_keeps_the_mass_matrix(robot_assets, robot):
    """`collapse_fixed_joints` changes the number of bodies, not the mechanics or the place of shapes."""
    kept, merged = ModelBuilder(), ModelBuilder()
    kept.add_urdf(robot_assets / ROBOTS[robot], load_visual_shapes=False)
    report = merged.add_urdf(
        robot_assets / ROBOTS[robot], load_visual_shapes=False, collapse_fixed_joints=True
    )
    assert len(report.merged_links) == kept.body_count - merged.body_count > 0
    assert merged.body_mass.sum() == pytest.approx(kept.body_mass.sum(), rel=1e-12)
    randomize_joints(kept, 6)
    merged.joint_q[:] = kept.joint_q
    expected = mass_matrix(kept)
    np.testing.assert_allclose(
        mass_matrix(merged), expected, rtol=0.0, atol=MASS_TOLERANCE * np.abs(expected).max()
    )
    np.testing.assert_allclose(shape_positions(merged), shape_positions(kept), atol=POSE_TOLERANCE)


def shape_positions(builder):
    """Return the world positions of all shapes, sorted by label."""
    model = builder.finalize("cpu")
    poses, bodies = model.body_q.numpy(), model.shape_body.numpy()
    local = model.shape_transform.numpy()
    positions = {}
    for shape, label in enumerate(model.shape_label):
        x, y, z, w = poses[bodies[shape], 3:]
        axis, point = np.array([x, y, z]), local[shape, :3]
        turned = point + 2.0 * np.cross(axis, np.cross(axis, point) + w * point)
        positions[label] = poses[bodies[shape], :3] + turned
    return np.array([positions[label] for label in sorted(positions)])
