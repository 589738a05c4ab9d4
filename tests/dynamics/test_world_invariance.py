"""A world does not notice its neighbours: all stages of the dynamics, bit by bit."""

import copy

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType
from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics, integrate

from .trees import Tree, build_model, random_joint_state, random_tree, set_joint_state

DT = 0.01
MODE = PositionIntegration.SEMI_IMPLICIT  # the mode with the most stages


def make_cases(count):
    """Return different trees with a state each; every third is a copy of the one before, at another state."""
    rng = np.random.default_rng(33)
    trees = []
    for world in range(count):
        trees.append(trees[-1] if world % 3 == 2 else random_tree(rng, int(rng.integers(1, 10))))
    return [(tree, *random_joint_state(rng, tree)) for tree in trees]


def make_tiles():
    """Return nine and ten worlds of three structures each, with other numbers and states in each world.

    Eight worlds of one structure are computed at once by some stages.
    """
    rng = np.random.default_rng(44)
    plain = [JointType.REVOLUTE, JointType.PRISMATIC, JointType.FIXED]
    kinds = [
        random_tree(rng, 9, root=JointType.FREE, kinds=plain),
        random_tree(rng, 7, root=JointType.FIXED, kinds=plain),
        random_tree(rng, 8, root=JointType.FREE),
    ]
    cases = []
    for count, kind in zip((9, 10, 9), kinds, strict=True):
        for _ in range(count):
            tree = copy.deepcopy(kind)
            for joint in tree.joints:
                scale = np.float32(rng.uniform(0.5, 2.0))
                joint.mass, joint.inertia = float(scale * joint.mass), scale * joint.inertia
                joint.com = joint.com * scale
                joint.parent_frame[:3] *= scale
            cases.append((tree, *random_joint_state(rng, tree)))
    return cases


def run(cases, real, *, chosen=None, record=False, steps=3):
    """Advance the cases as worlds of one model; return the final arrays per world, NaN where unwritten."""
    trees, q, qd = [list(column) for column in zip(*cases, strict=True)]
    model = build_model(trees)
    worlds = model.worlds if chosen is None else wp.array(chosen, dtype=int, device="cpu")
    states, control = [model.state(), model.state()], model.control()
    set_joint_state(states[0], trees, q, qd)
    for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
        getattr(states[1], name).fill_(float("nan"))
    workspace = Workspace(model, real)

    def step():
        for state_in, state_out in (states, states[::-1]):
            eval_kinematics(model, worlds, state_in, workspace)
            eval_free_motion(model, worlds, state_in, control, workspace, DT, mode=MODE)
            wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
            integrate(model, worlds, state_in, state_out, workspace, DT, mode=MODE)

    if record:
        step()  # loads the modules, which a recording cannot
        set_joint_state(states[0], trees, q, qd)
        with wp.ScopedCapture(device="cpu") as capture:
            step()
        for _ in range(steps):
            wp.capture_launch(capture.graph)
    else:
        for _ in range(steps):
            step()
    results = []
    for world in range(model.world_count):
        ranges = {
            "joint_q": model.joint_coord_world_start.numpy(),
            "joint_qd": model.joint_dof_world_start.numpy(),
            "body_q": model.body_world_start.numpy(),
            "body_qd": model.body_world_start.numpy(),
        }
        results.append(
            [
                getattr(states[1], name).numpy()[start[world] : start[world + 1]]
                for name, start in ranges.items()
            ]
        )
    return results


def assert_same_bits(a, b):
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.fixture(scope="module", params=[wp.float32, wp.float64])
def reference(request):
    cases = make_cases(12)
    return cases, request.param, run(cases, request.param)


def test_a_world_alone_gives_the_bits_of_the_batch(reference):
    cases, real, batch = reference
    for world in (0, 4, 11):
        assert_same_bits(run([cases[world]], real)[0], batch[world])


def test_the_place_in_the_batch_does_not_matter(reference):
    cases, real, batch = reference
    order = np.random.default_rng(0).permutation(len(cases))
    for world, result in zip(order, run([cases[world] for world in order], real), strict=True):
        assert_same_bits(result, batch[world])


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_eight_worlds_at_once_give_the_bits_of_single_ones(real):
    """So do worlds that are left over, in any order, and the neighbours of one that holds NaN."""
    cases = make_tiles()
    batch = run(cases, real)
    for world in (0, 7, 8, 9, 16, 18, 19, 27):
        assert_same_bits(run([cases[world]], real)[0], batch[world])
    order = np.random.default_rng(1).permutation(len(cases))
    for result, expected in zip(run(cases, real, chosen=order), batch, strict=True):
        assert_same_bits(result, expected)
    shuffled = run([cases[world] for world in order], real)
    for world, result in zip(order, shuffled, strict=True):
        assert_same_bits(result, batch[world])
    tree, q, qd = cases[3]
    cases[3] = (tree, q, [np.full_like(values, np.nan) for values in qd])
    for world, (result, expected) in enumerate(zip(run(cases, real), batch, strict=True)):
        if world != 3:
            assert_same_bits(result, expected)


def test_a_recorded_step_gives_the_bits_of_a_direct_one(reference):
    cases, real, batch = reference
    for recorded, direct in zip(run(cases, real, record=True), batch, strict=True):
        assert_same_bits(recorded, direct)


def test_worlds_that_are_not_listed_are_not_touched(reference):
    """A launch over some worlds, listed in any order, writes to these alone."""
    cases, real, batch = reference
    chosen = [7, 2, 10]
    results = run(cases, real, chosen=chosen)
    for world, (result, expected) in enumerate(zip(results, batch, strict=True)):
        if world in chosen:
            assert_same_bits(result, expected)
        else:
            assert all(np.isnan(array).all() for array in result)


def test_a_diverged_world_does_not_spread(reference):
    """NaN in the state of one world leaves the bits of all others alone."""
    cases, real, batch = reference
    cases = list(cases)
    victim = next(world for world, case in enumerate(cases) if sum(map(len, case[2])) and world % 3 == 0)
    tree, q, qd = cases[victim]
    cases[victim] = (tree, q, [np.full_like(values, np.nan) for values in qd])
    results = run(cases, real)
    for world, (result, expected) in enumerate(zip(results, batch, strict=True)):
        if world != victim:
            assert_same_bits(result, expected)
    assert all(np.isnan(array).any() for array in results[victim])


def test_worlds_without_anything_that_moves_are_stepped_over():
    """A world may hold nothing, or bodies welded to it; its neighbour falls as if alone."""
    rng = np.random.default_rng(2)
    welded = random_tree(rng, 3, root=JointType.FIXED, single=True)
    for joint in welded.joints:
        joint.kind = JointType.FIXED
    falling = random_tree(rng, 1, root=JointType.FREE)
    cases = [(tree, *random_joint_state(rng, tree)) for tree in (Tree([]), welded, falling, Tree([]))]
    for real in (wp.float32, wp.float64):
        results = run(cases, real)
        assert_same_bits(results[2], run(cases[2:3], real)[0])
        assert np.isfinite(results[1][2]).all()
        assert all(len(array) == 0 for array in results[0])


def test_a_model_without_bodies_is_stepped():
    for real in (wp.float32, wp.float64):
        assert all(len(array) == 0 for array in run([(Tree([]), [], [])], real)[0])
