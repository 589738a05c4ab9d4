"""Body poses and velocities from joint coordinates, against MuJoCo."""

import numpy as np
import pytest
import warp as wp

from pluriverse import BodyFlags, ModelBuilder, eval_fk
from pluriverse.dynamics.forward_kinematics import eval_fk_of_articulations

from .trees import random_joint_state, set_joint_state

# One rounding to float32 of numbers up to 4 m or 8 m/s.
PUBLIC_ERROR = 4.0 * 2.0**-23


def body_places(worlds):
    """Yield (world, body, joint in tree order) of all bodies."""
    first = worlds.model.topology.world_body.numpy()
    for world, tree in enumerate(worlds.trees):
        for place, entry in enumerate(tree.body_order):
            yield world, first[world] + place, entry


def test_body_poses_and_velocities_are_those_of_mujoco(worlds):
    """The pose is that of the origin, the velocity that of the centre of mass and the angular velocity."""
    state = worlds.model.state()
    state.body_q.fill_(float("nan"))
    state.body_qd.fill_(float("nan"))
    eval_fk(worlds.model, worlds.state.joint_q, worlds.state.joint_qd, state)
    poses, velocities = state.body_q.numpy(), state.body_qd.numpy()
    for world, body, entry in body_places(worlds):
        oracle = worlds.oracles[world]
        index = oracle.body(entry)
        np.testing.assert_allclose(poses[body, :3], oracle.data.xpos[index], rtol=0.0, atol=PUBLIC_ERROR)
        quat = np.roll(oracle.data.xquat[index], -1)
        quat *= np.sign(quat @ poses[body, 3:])
        np.testing.assert_allclose(poses[body, 3:], quat, rtol=0.0, atol=PUBLIC_ERROR)
        expected = oracle.body_velocity(entry)
        scale = max(1.0, np.abs(expected).max() / 8.0)
        np.testing.assert_allclose(velocities[body], expected, rtol=0.0, atol=scale * PUBLIC_ERROR)


def test_joint_arrays_of_the_state_are_not_touched(random_worlds):
    """eval_fk reads the joint arrays that it is given, whatever the state holds."""
    state = random_worlds.model.state()
    before = state.joint_q.numpy().copy(), state.joint_qd.numpy().copy()
    eval_fk(random_worlds.model, random_worlds.state.joint_q, random_worlds.state.joint_qd, state)
    np.testing.assert_array_equal(state.joint_q.numpy(), before[0])
    np.testing.assert_array_equal(state.joint_qd.numpy(), before[1])


@pytest.mark.parametrize("form", ["mask", "indices"])
def test_only_chosen_articulations_move(random_worlds, form):
    """Bodies of the others keep pose and velocity bit by bit; the chosen ones agree with a full update."""
    model, source = random_worlds.model, random_worlds.state
    chosen = np.arange(model.articulation_count) % 3 == 1
    full, state = model.state(), model.state()
    eval_fk(model, source.joint_q, source.joint_qd, full)
    before = state.body_q.numpy().copy(), state.body_qd.numpy().copy()
    if form == "mask":
        selection = {"mask": wp.array(chosen, dtype=bool, device="cpu")}
    else:
        selection = {"indices": wp.array(np.flatnonzero(chosen), dtype=int, device="cpu")}
    eval_fk(model, source.joint_q, source.joint_qd, state, **selection)
    articulation = np.zeros(model.body_count, dtype=int)
    articulation[model.joint_child.numpy()] = model.joint_articulation.numpy()
    moved = chosen[articulation]
    assert moved.any()
    assert not moved.all()
    for array, all_updated, untouched in (
        (state.body_q.numpy(), full.body_q.numpy(), before[0]),
        (state.body_qd.numpy(), full.body_qd.numpy(), before[1]),
    ):
        np.testing.assert_array_equal(array[moved], all_updated[moved])
        np.testing.assert_array_equal(array[~moved], untouched[~moved])


def test_articulations_are_placed_in_the_worlds_listed(random_worlds):
    """The bits are those of `eval_fk` with the same mask, whether worlds without any are left out or not."""
    model, source = random_worlds.model, random_worlds.state
    chosen = np.arange(model.articulation_count) % 3 == 1
    mask = wp.array(chosen, dtype=wp.bool, device="cpu")
    worlds = np.maximum(model.articulation_world.numpy(), 0)
    listed = np.full(model.world_count, -1, dtype=np.int32)
    listed[worlds[chosen]] = worlds[chosen]
    assert (listed < 0).any()
    assert (listed >= 0).any()
    expected, *states = (model.state() for _ in range(3))
    for state in (expected, *states):
        state.joint_q.assign(source.joint_q)
        state.joint_qd.assign(source.joint_qd)
    eval_fk(model, expected.joint_q, expected.joint_qd, expected, mask=mask)
    for state, which in zip(states, (model.worlds, wp.array(listed, device="cpu")), strict=True):
        eval_fk_of_articulations(model, which, state, mask)
        np.testing.assert_array_equal(state.body_q.numpy(), expected.body_q.numpy())
        np.testing.assert_array_equal(state.body_qd.numpy(), expected.body_qd.numpy())


def two_articulations_in_one_tree():
    """Return a model of an arm and, on its link, a tool that is an articulation of its own."""
    builder = ModelBuilder()
    arm = builder.add_link(mass=1.0, com=(0.1, 0.0, 0.0), inertia=np.eye(3))
    tool = builder.add_link(mass=1.0, com=(0.0, 0.2, 0.0), inertia=np.eye(3))
    shoulder = builder.add_joint_revolute(-1, arm, axis=(0.0, 0.0, 1.0))
    wrist = builder.add_joint_revolute(
        arm, tool, parent_xform=((1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)), axis="z"
    )
    builder.add_articulation([shoulder])
    builder.add_articulation([wrist])
    return builder.finalize(device="cpu")


def test_a_chosen_articulation_follows_the_body_that_carries_it():
    """The tool is placed on the arm where the arm is, not where its joint says, and moves along with it."""
    model = two_articulations_in_one_tree()
    state = model.state()
    arm_pose = np.array([0.5, -0.3, 0.2, 0.0, 0.0, np.sin(0.3), np.cos(0.3)])
    arm_velocity = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 2.0])
    state.body_q.assign(np.stack([arm_pose, np.full(7, np.nan)]))
    state.body_qd.assign(np.stack([arm_velocity, np.full(6, np.nan)]))
    q, qd = wp.array([9.0, 0.4], dtype=float, device="cpu"), wp.array([9.0, -0.5], dtype=float, device="cpu")
    eval_fk(model, q, qd, state, mask=wp.array([False, True], dtype=bool, device="cpu"))

    heading = 0.6  # of the arm, in the plane
    x, up = np.array([np.cos(heading), np.sin(heading), 0.0]), np.array([0.0, 0.0, 1.0])
    origin = arm_pose[:3] + x
    origin_velocity = arm_velocity[:3] + np.cross(2.0 * up, 0.9 * x)  # from the arm's com at 0.1 x
    tool_heading = heading + 0.4
    com = 0.2 * np.array([-np.sin(tool_heading), np.cos(tool_heading), 0.0])
    expected_velocity = np.concatenate([origin_velocity + np.cross(1.5 * up, com), 1.5 * up])
    np.testing.assert_allclose(state.body_q.numpy()[1, :3], origin, rtol=0.0, atol=PUBLIC_ERROR)
    np.testing.assert_allclose(
        state.body_q.numpy()[1, 3:],
        [0.0, 0.0, np.sin(tool_heading / 2), np.cos(tool_heading / 2)],
        rtol=0.0,
        atol=PUBLIC_ERROR,
    )
    np.testing.assert_allclose(state.body_qd.numpy()[1], expected_velocity, rtol=0.0, atol=PUBLIC_ERROR)
    np.testing.assert_array_equal(state.body_q.numpy()[0], arm_pose.astype(np.float32))


def test_only_chosen_joints_move_their_bodies(random_worlds):
    """A branch, which is a joint and all beyond it, moves as in a full update; all else keeps its bits."""
    model, source = random_worlds.model, random_worlds.state
    full, state = model.state(), model.state()
    eval_fk(model, source.joint_q, source.joint_qd, full)
    # As if simulated: at the new pose but for the branch.
    ancestor = model.joint_ancestor.numpy()
    branch = np.zeros(model.joint_count, dtype=bool)
    branch[np.flatnonzero(ancestor >= 0)[::7]] = True
    for joint in np.argsort(joint_depth(ancestor)):
        branch[joint] |= ancestor[joint] >= 0 and branch[ancestor[joint]]
    moved = np.zeros(model.body_count, dtype=bool)
    moved[model.joint_child.numpy()] = branch
    poses, velocities = full.body_q.numpy().copy(), full.body_qd.numpy().copy()
    poses[moved], velocities[moved] = np.nan, np.nan
    state.body_q.assign(poses)
    state.body_qd.assign(velocities)
    eval_fk(
        model,
        source.joint_q,
        source.joint_qd,
        state,
        joint_mask=wp.array(branch, dtype=bool, device="cpu"),
    )
    assert moved.any()
    assert not moved.all()
    np.testing.assert_array_equal(state.body_q.numpy()[~moved], full.body_q.numpy()[~moved])
    np.testing.assert_array_equal(state.body_qd.numpy()[~moved], full.body_qd.numpy()[~moved])
    # The parents' poses are read back from single precision.
    np.testing.assert_allclose(state.body_q.numpy(), full.body_q.numpy(), rtol=0.0, atol=4 * PUBLIC_ERROR)
    speed = np.abs(full.body_qd.numpy()).max()
    np.testing.assert_allclose(
        state.body_qd.numpy(), full.body_qd.numpy(), rtol=0.0, atol=4 * PUBLIC_ERROR * max(1.0, speed / 8.0)
    )


@pytest.mark.parametrize("side", ["parent_xform", "child_xform"])
def test_frames_turned_by_less_than_the_scalar_part_shows_count(side):
    """A body behind a joint frame turned by 1e-4 rad is turned by that, though cos(5e-5) rounds to 1."""
    angle = 1.0e-4
    frame = ((0.0, 0.0, 0.0), (0.5 * angle, 0.0, 0.0, 1.0))
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    hinges = [builder.add_joint_revolute(-1, links[0]), builder.add_joint_revolute(*links, **{side: frame})]
    builder.add_articulation(hinges)
    model = builder.finalize(device="cpu")
    state = model.state()
    eval_fk(model, model.joint_q, model.joint_qd, state)
    turn = state.body_q.numpy()[1, 3:]
    expected = 0.5 * angle if side == "parent_xform" else -0.5 * angle
    np.testing.assert_allclose(turn, [expected, 0.0, 0.0, 1.0], rtol=0.0, atol=1e-8)


def joint_depth(ancestor: np.ndarray) -> np.ndarray:
    """Return how many joints lie between each one and the world."""
    depth = np.zeros(len(ancestor), dtype=int)
    for joint in range(len(ancestor)):
        above = ancestor[joint]
        while above >= 0:
            depth[joint] += 1
            above = ancestor[above]
    return depth


def test_bodies_are_chosen_by_their_flags():
    """Filtered by flags, only the kinematic platform moves; the box next to it keeps its bits."""
    builder = ModelBuilder()
    platform = builder.add_body(mass=1.0, inertia=np.eye(3), is_kinematic=True)
    box = builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize(device="cpu")
    q = wp.clone(model.joint_q)
    q.assign(np.tile([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], 2))
    for flags, moves in ((BodyFlags.KINEMATIC, [True, False]), (BodyFlags.DYNAMIC, [False, True])):
        state = model.state()
        eval_fk(model, q, model.joint_qd, state, body_flag_filter=flags)
        assert [state.body_q.numpy()[body, 0] == 1.0 for body in (platform, box)] == moves


def test_a_recorded_call_gives_the_bits_of_a_direct_one(random_worlds):
    """eval_fk allocates nothing that a recording would lose."""
    model = random_worlds.model
    q, qd = wp.clone(random_worlds.state.joint_q), wp.clone(random_worlds.state.joint_qd)
    state, direct = model.state(), model.state()
    eval_fk(model, q, qd, state)
    with wp.ScopedCapture(device="cpu") as capture:
        eval_fk(model, q, qd, state)
    rng = np.random.default_rng(3)
    states = [random_joint_state(rng, tree) for tree in random_worlds.trees]
    moved = model.state()
    set_joint_state(moved, random_worlds.trees, [case[0] for case in states], [case[1] for case in states])
    q.assign(moved.joint_q)
    qd.assign(moved.joint_qd)
    wp.capture_launch(capture.graph)
    eval_fk(model, q, qd, direct)
    np.testing.assert_array_equal(state.body_q.numpy(), direct.body_q.numpy())
    np.testing.assert_array_equal(state.body_qd.numpy(), direct.body_qd.numpy())


def test_bad_selections_are_refused_with_what_to_pass(random_worlds):
    model, state = random_worlds.model, random_worlds.model.state()
    mask = wp.zeros(model.articulation_count, dtype=bool, device="cpu")
    indices = wp.zeros(1, dtype=int, device="cpu")
    with pytest.raises(ValueError, match="both mask and indices"):
        eval_fk(model, state.joint_q, state.joint_qd, state, mask=mask, indices=indices)
    with pytest.raises(ValueError, match=r"mask has shape \(3,\).*one entry per articulation"):
        eval_fk(model, state.joint_q, state.joint_qd, state, mask=wp.zeros(3, dtype=bool, device="cpu"))
    with pytest.raises(ValueError, match=r"joint_mask has shape \(3,\).*one entry per joint"):
        eval_fk(model, state.joint_q, state.joint_qd, state, joint_mask=wp.zeros(3, dtype=bool, device="cpu"))
    numbers = wp.zeros(model.joint_count, dtype=int, device="cpu")
    with pytest.raises(ValueError, match=r"joint_mask has type int32 .*truth values"):
        eval_fk(model, state.joint_q, state.joint_qd, state, joint_mask=numbers)
