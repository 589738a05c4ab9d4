"""Real robots: poses that they can have are found."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import ik
from tests.ik.robots import IDENTITY, body_poses, rotation_distance


def test_an_arm_of_seven_axes_finds_poses_that_it_can_have(robot_assets):
    """Of 100 poses from random coordinates 99 are found, within limits, from the middle."""
    builder = pv.ModelBuilder()
    builder.add_urdf(robot_assets / "franka_description" / "urdfs" / "fr3_franka_hand.urdf")
    model = builder.finalize("cpu")
    hand = next(body for body, label in enumerate(model.body_label) if label.endswith("hand_tcp"))
    lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    rng = np.random.default_rng(0)
    wanted = (lower + (upper - lower) * rng.random((100, 9))).astype(np.float32)
    targets = body_poses(model, wanted)[:, hand]
    objectives = [
        ik.IKObjectivePosition(hand, (0.0, 0.0, 0.0), targets[:, :3]),
        ik.IKObjectiveRotation(hand, IDENTITY, targets[:, 3:]),
        ik.IKObjectiveJointLimit(model.joint_limit_lower, model.joint_limit_upper, weight=1.0),
    ]
    solver = ik.IKSolver(model, 100, objectives, sampler="roberts", n_seeds=16)
    joint_q = wp.array(np.tile(0.5 * (lower + upper), (100, 1)), dtype=float, device="cpu")
    solver.step(joint_q, joint_q)
    result = joint_q.numpy()
    poses = body_poses(model, result)[:, hand]
    found = np.linalg.norm(poses[:, :3] - targets[:, :3], axis=1) < 1e-5
    found &= rotation_distance(poses[:, 3:], targets[:, 3:]) < 1e-5
    found &= (result > lower - 1e-5).all(1) & (result < upper + 1e-5).all(1)
    assert found.sum() >= 99
    assert np.median(solver.iteration_counts.numpy()) <= 12


@pytest.mark.filterwarnings("ignore::pluriverse.warnings.PluriverseWarning")
def test_a_floating_humanoid_keeps_its_feet_and_moves_its_hands(robot_assets):
    """Both feet stay, a hand goes 10 cm up and forward: the base and all joints take part."""
    builder = pv.ModelBuilder()
    builder.add_mjcf(next(robot_assets.glob("unitree_g1/**/g1*.xml")))
    model = builder.finalize("cpu")
    labels = list(model.body_label)
    feet = [labels.index(label) for label in labels if label.endswith("ankle_roll_link")]
    hand = next(labels.index(label) for label in labels if "right" in label and "elbow" in label)
    start = model.joint_q.numpy()[None]
    poses = body_poses(model, start)[0]
    aim = poses[hand, :3] + [0.1, 0.0, 0.1]
    objectives = [ik.IKObjectivePosition(hand, (0.0, 0.0, 0.0), aim[None])]
    for foot in feet:
        objectives.append(ik.IKObjectivePosition(foot, (0.0, 0.0, 0.0), poses[foot, None, :3]))
        objectives.append(ik.IKObjectiveRotation(foot, IDENTITY, poses[foot, None, 3:]))
    assert len(feet) == 2
    solver = ik.IKSolver(model, 1, objectives)
    joint_q = wp.array(start, dtype=float, device="cpu")
    solver.step(joint_q, joint_q, iterations=60)
    got = body_poses(model, joint_q.numpy())[0]
    assert np.linalg.norm(got[hand, :3] - aim) < 1e-5
    for foot in feet:
        assert np.linalg.norm(got[foot, :3] - poses[foot, :3]) < 1e-5
        assert rotation_distance(got[foot, 3:], poses[foot, 3:]) < 1e-5
