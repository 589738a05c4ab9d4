"""Joint coordinates from body poses: the inverse of forward kinematics, and SciPy's angles."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from pluriverse import BodyFlags, JointType, ModelBuilder, eval_fk, eval_ik

from .conftest import random_trees
from .trees import build_model, random_joint_state, set_joint_state

# Poses of a few metres and velocities of up to 30 m/s are kept in float32: 2**-24 relative, magnified by skew
# axes and by differences of neighbouring bodies.
POSITION_ERROR = 1e-5
VELOCITY_ERROR = 1e-4


def random_case(seed: int):
    """Return a model of random trees, and a state whose angles are those that can be told from a pose."""
    rng = np.random.default_rng(seed)
    trees = random_trees()
    states = [random_joint_state(rng, tree) for tree in trees]
    for tree, (q, _) in zip(trees, states, strict=True):
        for joint, values in zip(tree.joints, q, strict=True):
            if joint.kind in (JointType.REVOLUTE, JointType.D6):
                values[:] = np.clip(values, -1.2, 1.2)
    model = build_model(trees)
    state = model.state()
    set_joint_state(state, trees, [case[0] for case in states], [case[1] for case in states])
    eval_fk(model, state.joint_q, state.joint_qd, state)
    return model, state


def test_coordinates_come_back_from_poses():
    """eval_ik after eval_fk gives the joint state again, for all joint types with frames and skew axes."""
    model, state = random_case(3)
    joint_q = wp.full(model.joint_coord_count, float("nan"), dtype=float, device="cpu")
    joint_qd = wp.full(model.joint_dof_count, float("nan"), dtype=float, device="cpu")
    eval_ik(model, state, joint_q, joint_qd)
    found, expected = joint_q.numpy(), state.joint_q.numpy().copy()
    types, start = model.joint_type.numpy(), model.joint_q_start.numpy()
    for joint, kind in enumerate(types):
        if kind in (JointType.BALL, JointType.FREE):
            quat = slice(start[joint + 1] - 4, start[joint + 1])
            expected[quat] *= np.sign(expected[quat] @ found[quat])
    assert set(types) >= {JointType.D6, JointType.BALL, JointType.FREE, JointType.PRISMATIC}
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=POSITION_ERROR)
    np.testing.assert_allclose(joint_qd.numpy(), state.joint_qd.numpy(), rtol=0.0, atol=VELOCITY_ERROR)


@pytest.mark.parametrize("axes", ["xyz", "zyx", "xzy"])
def test_angles_of_successive_axes_are_those_of_scipy(axes):
    """R = R(1) R(2) R(3) about axes that each turn carries along: intrinsic Euler angles."""
    angles = np.random.default_rng(1).uniform([-3.0, -1.5, -3.0], [3.0, 1.5, 3.0])
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_d6(-1, body, angular_axes=list(axes))])
    model = builder.finalize("cpu")
    state = model.state()
    pose = np.zeros(7)
    pose[3:] = Rotation.from_euler(axes.upper(), angles).as_quat()
    state.body_q.assign(pose[None])
    joint_q = wp.zeros(3, dtype=float, device="cpu")
    eval_ik(model, state, joint_q, wp.zeros(3, dtype=float, device="cpu"))
    # float32 rounding of the quaternion, magnified by 1 / cos of the middle angle: at most 14
    np.testing.assert_allclose(joint_q.numpy(), angles, rtol=0.0, atol=14 * 2.0**-23)


@pytest.mark.parametrize("form", ["mask", "indices"])
def test_only_chosen_articulations_are_written(form):
    model, state = random_case(5)
    chosen = np.arange(model.articulation_count) % 2 == 1
    if form == "mask":
        selection = {"mask": wp.array(chosen, dtype=bool, device="cpu")}
    else:
        selection = {"indices": wp.array([*np.flatnonzero(chosen), -1, 99], dtype=int, device="cpu")}
    joint_q = wp.full(model.joint_coord_count, 7.5, dtype=float, device="cpu")
    joint_qd = wp.full(model.joint_dof_count, 7.5, dtype=float, device="cpu")
    eval_ik(model, state, joint_q, joint_qd, **selection)
    articulation = np.repeat(model.joint_articulation.numpy(), np.diff(model.joint_qd_start.numpy()))
    np.testing.assert_array_equal(joint_qd.numpy() == 7.5, ~chosen[articulation])
    with pytest.raises(ValueError, match="both mask and indices"):
        eval_ik(model, state, joint_q, joint_qd, mask=joint_q, indices=joint_q)
    with pytest.raises(ValueError, match=r"joint_q has shape \(2,\)"):
        eval_ik(model, state, wp.zeros(2, dtype=float, device="cpu"), joint_qd)


def test_joints_are_chosen_by_the_flags_of_their_bodies():
    """Filtered by flags, only the joint of the kinematic platform is written, or only that of the box."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3), is_kinematic=True)
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    state = model.state()
    state.body_q = np.tile([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], (2, 1))
    for flags, written in (
        (BodyFlags.KINEMATIC, [True, False]),
        (BodyFlags.DYNAMIC, [False, True]),
        (BodyFlags.ALL, [True, True]),
    ):
        q, qd = wp.full(14, 7.5, dtype=float, device="cpu"), wp.full(12, 7.5, dtype=float, device="cpu")
        eval_ik(model, state, q, qd, None, None, flags)  # by place, where Newton has it
        np.testing.assert_array_equal((q.numpy() != 7.5).reshape(2, 7).all(axis=1), written)
        np.testing.assert_array_equal((qd.numpy() == 0.0).reshape(2, 6).all(axis=1), written)
        np.testing.assert_array_equal(q.numpy().reshape(2, 7)[written, :3], [[1, 2, 3]] * sum(written))
