"""IK solver: closed forms, least distances, seeds, worlds that differ, recording, and wrong arguments."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import ik
from tests.ik.robots import (
    IDENTITY,
    add_every_joint,
    add_link,
    add_planar_arm,
    body_poses,
    frame,
    planar_tip,
    rotation_distance,
    some_coords,
)

# The distance joint of the tree with all joints has a greatest distance, which is not kept and not reached.
pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.warnings.LoopWarning")
# Single precision at 1 m resolves 6e-8 m; the residuals of a solution are some of these.
REACHED = 2e-6


def planar_model(lengths=(1.0, 1.0)):
    builder = pv.ModelBuilder()
    links = add_planar_arm(builder, lengths)
    return builder.finalize("cpu"), links[-1]


def tip_objective(lengths, link, targets, **options):
    positions = np.zeros((len(targets), 3), dtype=np.float32)
    positions[:, :2] = targets
    return ik.IKObjectivePosition(link, (lengths[-1], 0.0, 0.0), positions, **options)


def solve(solver, start, **options):
    joint_q = wp.array(np.asarray(start, dtype=np.float32), dtype=float, device="cpu")
    solver.step(joint_q, joint_q, **options)
    return joint_q.numpy()


@pytest.mark.parametrize("optimizer", list(ik.IKOptimizer))
def test_two_links_find_the_elbow_that_is_nearer(optimizer):
    """It is at cos q1 = (r^2 - a^2 - b^2) / 2ab: both elbows, each from its side."""
    lengths = (1.0, 0.7)
    model, link = planar_model(lengths)
    targets = np.array([[1.2, 0.6], [0.9, -0.9], [-1.1, 0.3]])
    square = (targets**2).sum(1)
    elbow = np.arccos((square - lengths[0] ** 2 - lengths[1] ** 2) / (2.0 * lengths[0] * lengths[1]))
    solver = ik.IKSolver(model, 3, [tip_objective(lengths, link, targets)], optimizer=optimizer)
    for side in (1.0, -1.0):
        angle = side * elbow
        shoulder = np.arctan2(targets[:, 1], targets[:, 0]) - np.arctan2(
            lengths[1] * np.sin(angle), lengths[0] + lengths[1] * np.cos(angle)
        )
        expected = np.stack([shoulder, angle], axis=1)
        solver.reset()
        result = solve(solver, expected + np.array([0.15, -0.1 * side]), iterations=100)
        assert np.abs(planar_tip(lengths, result) - targets).max() < REACHED
        assert np.abs(np.angle(np.exp(1j * (result - expected)))).max() < 20.0 * REACHED
        assert solver.costs.numpy().max() < REACHED**2


@pytest.mark.parametrize("optimizer", list(ik.IKOptimizer))
def test_targets_out_of_reach_are_missed_by_the_least_distance(optimizer):
    """Beyond a + b the arm is straight; nearer than |a - b| it is folded."""
    lengths = (1.0, 0.4)
    model, link = planar_model(lengths)
    targets = np.array([[2.0, 1.0], [-3.0, 0.5], [0.2, 0.1]])
    reach = np.linalg.norm(targets, axis=1)
    least = np.maximum(reach - 1.4, 0.6 - reach)
    solver = ik.IKSolver(model, 3, [tip_objective(lengths, link, targets)], optimizer=optimizer)
    result = solve(solver, [[0.6, 0.5], [2.5, 0.4], [0.3, 2.6]], iterations=100)
    missed = np.linalg.norm(planar_tip(lengths, result) - targets, axis=1)
    np.testing.assert_allclose(missed, least, rtol=1e-5)
    np.testing.assert_allclose(solver.costs.numpy(), least**2, rtol=1e-5)


def test_three_links_reach_position_and_direction():
    """A planar arm of three links with a given direction of the last is one of two links to its wrist."""
    lengths = (0.8, 0.6, 0.3)
    model, link = planar_model(lengths)
    rng = np.random.default_rng(3)
    wanted = rng.uniform(-1.5, 1.5, (20, 3))
    turn = wanted.sum(1)
    rotations = np.stack([0 * turn, 0 * turn, np.sin(turn / 2), np.cos(turn / 2)], axis=1)
    objectives = [
        tip_objective(lengths, link, planar_tip(lengths, wanted)),
        ik.IKObjectiveRotation(link, IDENTITY, rotations.astype(np.float32)),
    ]
    solver = ik.IKSolver(model, 20, objectives, sampler="roberts", n_seeds=4)
    result = solve(solver, np.zeros((20, 3)))
    # The other elbow mirrors the first two links at the line to the wrist: q1 changes its sign.
    np.testing.assert_allclose(np.abs(result[:, 1]), np.abs(wanted[:, 1]), atol=1e-4)
    np.testing.assert_allclose(np.cos(result.sum(1) - turn), 1.0, atol=1e-6)


def six_axis_model():
    """Return an arm of links 0.5 and 0.4 m with a spherical wrist: three axes through a point."""
    builder = pv.ModelBuilder()
    shapes = [
        ((0.0, 0.0, 1.0), (0.0, 0.0, 0.0)),
        ((0.0, 1.0, 0.0), (0.0, 0.0, 0.3)),
        ((0.0, 1.0, 0.0), (0.5, 0.0, 0.0)),
        ((1.0, 0.0, 0.0), (0.4, 0.0, 0.0)),
        ((0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
        ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ]
    joints, parent = [], -1
    for axis, place in shapes:
        link = add_link(builder)
        joints.append(builder.add_joint_revolute(parent, link, axis=axis, parent_xform=frame(place)))
        parent = link
    builder.add_articulation(joints)
    return builder.finalize("cpu"), parent


def test_a_spherical_wrist_has_the_angles_of_the_closed_form():
    """The wrist is the elbow problem of two links; its middle axis turns by the angle left over."""
    model, hand = six_axis_model()
    rng = np.random.default_rng(5)
    wanted = rng.uniform(-1.2, 1.2, (30, 6)).astype(np.float32)
    poses = body_poses(model, wanted)[:, hand]
    objectives = [
        ik.IKObjectivePosition(hand, (0.0, 0.0, 0.0), poses[:, :3]),
        ik.IKObjectiveRotation(hand, IDENTITY, poses[:, 3:]),
    ]
    solver = ik.IKSolver(model, 30, objectives, sampler="roberts", n_seeds=16)
    result = solve(solver, np.full((30, 6), 0.1))
    assert solver.costs.numpy().reshape(30, 16).min(1).max() < REACHED**2
    rest = poses[:, :3] - [0.0, 0.0, 0.3]
    elbow = np.arccos(((rest**2).sum(1) - 0.5**2 - 0.4**2) / (2.0 * 0.5 * 0.4))
    np.testing.assert_allclose(np.cos(result[:, 2]), np.cos(elbow), atol=2e-5)
    # The hand's x axis is that of the forearm turned by the middle axis of the wrist.
    got = body_poses(model, result)
    for poses_of, joint_q in ((got, result), (body_poses(model, wanted), wanted)):
        x = [
            np.array(
                [
                    1 - 2 * (q[1] ** 2 + q[2] ** 2),
                    2 * (q[0] * q[1] + q[2] * q[3]),
                    2 * (q[0] * q[2] - q[1] * q[3]),
                ]
            )
            for q in np.concatenate([poses_of[:, 2, 3:], poses_of[:, hand, 3:]])
        ]
        forearm, middle = np.array(x[:30]), np.array(x[30:])
        np.testing.assert_allclose((forearm * middle).sum(1), np.cos(joint_q[:, 4]), atol=1e-5)
    assert rotation_distance(got[:, hand, 3:], poses[:, 3:]).max() < 1e-5


@pytest.mark.parametrize("optimizer", list(ik.IKOptimizer))
def test_every_joint_type_reaches_what_it_can(optimizer):
    """Poses taken from coordinates of a tree with all joints are found again from nearby coordinates."""
    builder = pv.ModelBuilder()
    links = add_every_joint(builder)
    model = builder.finalize("cpu")
    rng = np.random.default_rng(11)
    wanted = np.array([some_coords(model, rng) for _ in range(4)])
    start = wanted + 0.1 * rng.standard_normal(wanted.shape).astype(np.float32)
    poses = body_poses(model, wanted)
    objectives = []
    for link in (links[0], links[4], links[7]):
        objectives.append(ik.IKObjectivePosition(link, (0.1, 0.2, 0.3), _points(poses[:, link])))
        objectives.append(ik.IKObjectiveRotation(link, IDENTITY, poses[:, link, 3:]))
    solver = ik.IKSolver(model, 4, objectives, optimizer=optimizer)
    result = solve(solver, start, iterations=150)
    got = body_poses(model, result)
    limit = REACHED if optimizer is ik.IKOptimizer.LM else 1e-3  # gradients alone converge linearly
    for link in (links[0], links[4], links[7]):
        assert np.abs(_points(got[:, link]) - _points(poses[:, link])).max() < 3.0 * limit
        assert rotation_distance(got[:, link, 3:], poses[:, link, 3:]).max() < 3.0 * limit


def test_coordinates_that_were_only_allocated_are_a_start():
    """Quaternions that are 0 mean no turn, as strangers leave them, also where starts are sampled."""
    builder = pv.ModelBuilder()
    links = add_every_joint(builder)
    model = builder.finalize("cpu")
    for options in ({}, {"optimizer": "lbfgs"}, {"sampler": "gauss", "n_seeds": 2}):
        objective = ik.IKObjectivePosition(links[7], (0.0, 0.0, 0.0), np.array([[0.4, 0.9, 0.6]]))
        solver = ik.IKSolver(model, 1, [objective], **options)
        result = solve(solver, np.zeros((1, model.joint_coord_count)), iterations=60)
        np.testing.assert_allclose(body_poses(model, result)[0, links[7], :3], [0.4, 0.9, 0.6], atol=1e-5)


def _points(poses, offset=(0.1, 0.2, 0.3)):
    """Return where a point of a body is."""
    return np.array([wp.transform_point(wp.transform(*pose), wp.vec3(*offset)) for pose in poses])


def test_limits_are_kept_where_the_target_allows_it():
    """Of the two elbows the one within limits is found, whatever the start."""
    lengths = (1.0, 1.0)
    builder = pv.ModelBuilder()
    links = add_planar_arm(builder, lengths)
    builder.joint_limit_lower[:] = [-3.0, 0.1]
    builder.joint_limit_upper[:] = [3.0, 2.5]
    model = builder.finalize("cpu")
    targets = np.array([[1.2, 0.3], [0.4, 1.1], [-0.8, 0.9]])
    objectives = [
        tip_objective(lengths, links[-1], targets),
        ik.IKObjectiveJointLimit(model.joint_limit_lower, model.joint_limit_upper, weight=1.0),
    ]
    solver = ik.IKSolver(model, 3, objectives, sampler="uniform", n_seeds=8)
    result = solve(solver, np.full((3, 2), -0.4))
    assert np.abs(planar_tip(lengths, result) - targets).max() < 2.0 * REACHED
    assert (result > model.joint_limit_lower.numpy() - REACHED).all()
    assert (result < model.joint_limit_upper.numpy() + REACHED).all()


def test_a_joint_that_follows_moves_with_the_one_that_leads():
    """The tip runs along the curve of q1 = 0.2 - 0.5 q0, and the nearest point of it is found."""
    lengths = (1.0, 0.7)
    builder = pv.ModelBuilder()
    links = add_planar_arm(builder, lengths)
    builder.add_constraint_mimic(1, 0, coef0=0.2, coef1=-0.5)
    model = builder.finalize("cpu")
    lead = np.linspace(-np.pi, np.pi, 200001)
    curve = planar_tip(lengths, np.stack([lead, 0.2 - 0.5 * lead], axis=1))
    targets = np.array([curve[130000], [1.3, 0.9], [0.5, -1.0]])
    for optimizer in ik.IKOptimizer:
        solver = ik.IKSolver(model, 3, [tip_objective(lengths, links[-1], targets)], optimizer=optimizer)
        result = solve(solver, [[0.4, 5.0], [0.3, 5.0], [-0.7, 5.0]], iterations=60)
        np.testing.assert_allclose(result[:, 1], 0.2 - 0.5 * result[:, 0], atol=1e-6)
        missed = np.linalg.norm(planar_tip(lengths, result) - targets, axis=1)
        nearest = np.linalg.norm(curve[None] - targets[:, None], axis=2).min(1)
        np.testing.assert_allclose(missed, nearest, atol=1e-4)


def test_masked_dofs_keep_their_bits():
    """What may not move does not, also not a rotation; the rest finds the best that is left."""
    builder = pv.ModelBuilder()
    links = add_every_joint(builder)
    model = builder.finalize("cpu")
    start = np.array([some_coords(model, np.random.default_rng(2))])
    poses = body_poses(model, start)
    target = poses[:, links[7], :3] + 0.05
    mask = np.ones(model.joint_dof_count, dtype=bool)
    mask[:6] = False
    mask[8:11] = False  # the ball
    for optimizer in ik.IKOptimizer:
        solver = ik.IKSolver(
            model,
            1,
            [ik.IKObjectivePosition(links[7], (0.0, 0.0, 0.0), target)],
            optimizer=optimizer,
            joint_dof_mask=wp.array(mask, dtype=wp.bool, device="cpu"),
        )
        result = solve(solver, start, iterations=100)
        np.testing.assert_array_equal(result[0, :7], start[0, :7])
        np.testing.assert_array_equal(result[0, 9:13], start[0, 9:13])
        assert np.abs(body_poses(model, result)[0, links[7], :3] - target[0]).max() < 1e-5


@pytest.mark.parametrize("sampler", ["gauss", "roberts", "uniform"])
def test_starts_are_the_same_for_the_same_seed(sampler):
    """Two solvers agree, reset begins again, other seeds differ; a problem keeps its starts in a batch."""
    lengths = (1.0, 0.7)
    model, link = planar_model(lengths)
    targets = np.array([[1.2, 0.6], [0.9, -0.9], [-1.1, 0.3]])

    def starts(count, seed=7, reset=False):
        objective = tip_objective(lengths, link, targets[:count])
        solver = ik.IKSolver(
            model, count, [objective], sampler=sampler, n_seeds=5, rng_seed=seed, noise_std=0.5
        )
        for _ in range(1 + reset):
            if reset:
                solver.reset()
            solve(solver, np.full((count, 2), 0.3), iterations=0)
        return solver.joint_q.numpy().reshape(count, 5, 2)

    first = starts(3)
    np.testing.assert_array_equal(first[:, 0], np.float32(0.3))
    assert len(np.unique(first[0, :, 0])) == 5
    np.testing.assert_array_equal(starts(3), first)
    np.testing.assert_array_equal(starts(3, reset=True), first)
    np.testing.assert_array_equal(starts(1)[0], first[0])
    if sampler != "roberts":
        assert not np.array_equal(starts(3, seed=8), first)
        assert not np.array_equal(first[0], first[1])
    if sampler != "gauss":
        assert np.abs(first[:, 1:]).max() <= np.pi


def test_roberts_points_fill_a_range_evenly():
    """Of n points every interval of length 3 / n has one: the three-gap theorem of the golden ratio."""
    builder = pv.ModelBuilder()
    links = add_planar_arm(builder, (1.0,))
    builder.joint_limit_lower[:] = [-1.0]
    builder.joint_limit_upper[:] = [2.0]
    model = builder.finalize("cpu")
    solver = ik.IKSolver(
        model, 1, [tip_objective((1.0,), links[0], [[1.0, 0.0]])], sampler="roberts", n_seeds=65
    )
    solve(solver, [[0.0]], iterations=0)
    points = np.sort(solver.joint_q.numpy()[1:, 0])
    assert points[0] >= -1.0
    assert points[-1] <= 2.0
    assert np.diff(points).max() < 3.0 * 3.0 / 64


@pytest.mark.parametrize("optimizer", list(ik.IKOptimizer))
def test_a_problem_has_the_same_bits_in_every_batch(optimizer):
    """Alone, among others, in another place, launched or replayed."""
    lengths = (1.0, 0.7)
    model, link = planar_model(lengths)
    rng = np.random.default_rng(1)
    targets, starts = rng.uniform(-1.5, 1.5, (9, 2)), rng.uniform(-2.0, 2.0, (9, 2))

    def results(order, rounds=1):
        objective = tip_objective(lengths, link, targets[order])
        solver = ik.IKSolver(model, len(order), [objective], optimizer=optimizer)
        for _ in range(rounds):
            solver.reset()
            result = solve(solver, starts[order], iterations=12)
        return result

    together = results(np.arange(9))
    np.testing.assert_array_equal(results(np.arange(9)[::-1])[::-1], together)
    np.testing.assert_array_equal(results(np.arange(9), rounds=3), together)
    np.testing.assert_array_equal(results(np.array([4]))[0], together[4])


def test_worlds_that_differ_are_solved_at_once():
    """A problem per world, with arms of one to three links, from a state or from rows; as each alone."""
    arms = [(1.0, 0.7), (0.5,), (0.8, 0.6, 0.3)]
    builder = pv.ModelBuilder()
    tips = []
    for lengths in arms:
        builder.begin_world()
        tips.append(add_planar_arm(builder, lengths)[-1])
        builder.end_world()
    model = builder.finalize("cpu")
    wanted = [np.array([0.4, 0.8]), np.array([1.1]), np.array([0.2, 0.5, -0.9])]
    targets = np.array(
        [[*planar_tip(arm, q), 0.0] for arm, q in zip(arms, wanted, strict=True)], dtype=np.float32
    )
    # A frame at the joint of each last link, since lengths differ: its target is the point before.
    base = np.array(
        [
            [*planar_tip(arm[:-1], q[:-1]), 0.0] if len(arm) > 1 else [0.0] * 3
            for arm, q in zip(arms, wanted, strict=True)
        ]
    )
    turn = np.array([q.sum() for q in wanted])
    rotations = np.stack([0 * turn, 0 * turn, np.sin(turn / 2), np.cos(turn / 2)], axis=1).astype(np.float32)
    objectives = [
        ik.IKObjectivePosition(tips, (0.0, 0.0, 0.0), base.astype(np.float32)),
        ik.IKObjectiveRotation(np.array(tips), IDENTITY, rotations),
    ]
    solver = ik.IKSolver(model, 3, objectives, problem_worlds=[0, 1, 2])
    start = wp.full(model.joint_coord_count, 0.3, dtype=float, device="cpu")
    flat = wp.zeros_like(start)
    solver.step(start, flat, iterations=60)
    rows = solve(solver, np.full((3, 3), 0.3), iterations=60)
    assert solver.costs.numpy().max() < REACHED**2
    assert targets.shape == (3, 3)
    place = 0
    for world, arm in enumerate(arms):
        mine = flat.numpy()[place : place + len(arm)]
        place += len(arm)
        np.testing.assert_allclose(planar_tip(arm, mine), targets[world, :2], atol=1e-5)
        alone = ik.IKSolver(
            model,
            2,
            [
                ik.IKObjectivePosition(tips[world], (0.0, 0.0, 0.0), np.tile(base[world], (2, 1))),
                ik.IKObjectiveRotation(tips[world], IDENTITY, np.tile(rotations[world], (2, 1))),
            ],
            problem_worlds=[world, world],
        )
        again = solve(alone, np.full((2, len(arm)), 0.3), iterations=60)
        np.testing.assert_array_equal(again[0], mine)
        np.testing.assert_array_equal(again[1], mine)
    # A second solve begins with the damping that the first has left.
    assert np.abs(rows[0, :2] - flat.numpy()[:2]).max() < 1e-4


def test_a_solve_can_be_recorded():
    """What a user records moves with the targets when it is replayed."""
    lengths = (1.0, 0.7)
    model, link = planar_model(lengths)
    objective = tip_objective(lengths, link, [[1.2, 0.6]])
    solver = ik.IKSolver(model, 1, [objective], sampler="gauss", n_seeds=3)
    joint_q = wp.array([[0.3, 0.3]], dtype=float, device="cpu")
    solver.step(joint_q, joint_q, iterations=20)
    with wp.ScopedCapture(device="cpu") as capture:
        solver.step(joint_q, joint_q, iterations=20)
    for target in ([0.9, -0.9], [-0.5, 1.2]):
        objective.set_target_position(0, (*target, 0.0))
        wp.capture_launch(capture.graph)
        np.testing.assert_allclose(planar_tip(lengths, joint_q.numpy())[0], target, atol=REACHED)


def test_the_coordinates_of_a_state_may_be_given_for_one_problem():
    lengths = (1.0, 0.7)
    model, link = planar_model(lengths)
    state = model.state()
    state.joint_q.fill_(0.3)
    solver = ik.IKSolver(model, 1, [tip_objective(lengths, link, [[1.2, 0.6]])])
    solver.step(state.joint_q, state.joint_q)
    np.testing.assert_allclose(planar_tip(lengths, state.joint_q.numpy()), [1.2, 0.6], atol=REACHED)


def test_a_target_that_is_no_number_harms_no_other_problem():
    """The problem keeps its start and has no cost; the others are solved."""
    lengths = (1.0, 0.7)
    model, link = planar_model(lengths)
    targets = wp.array([[1.2, 0.6, 0.0], [np.nan, 0.0, 0.0]], dtype=wp.vec3, device="cpu")
    for optimizer in ik.IKOptimizer:
        solver = ik.IKSolver(
            model, 2, [ik.IKObjectivePosition(link, (0.7, 0.0, 0.0), targets)], optimizer=optimizer
        )
        result = solve(solver, [[0.3, 0.3], [0.3, 0.3]], iterations=40)
        np.testing.assert_allclose(planar_tip(lengths, result[0]), [1.2, 0.6], atol=1e-5)
        np.testing.assert_array_equal(result[1], np.float32(0.3))
        assert np.isnan(solver.costs.numpy()).tolist() == [False, True]


WRONG = [
    ({"n_problems": 0}, ValueError, "n_problems is 0, but must be at least 1"),
    ({"n_problems": 1.5}, TypeError, "n_problems is 1.5, but must be a whole number"),
    ({"objectives": []}, ValueError, "objectives is empty"),
    ({"objectives": ["reach"]}, TypeError, r"objectives\[0\] is a str, but must be an IKObjective"),
    ({"optimizer": "newton"}, ValueError, r"optimizer is 'newton', but must be one of IKOptimizer\.LM"),
    ({"sampler": "sobol"}, ValueError, "sampler is 'sobol'"),
    ({"jacobian_mode": "exact"}, ValueError, "jacobian_mode is 'exact'"),
    ({"n_seeds": 4}, ValueError, "n_seeds is 4, but sampler is NONE"),
    ({"lambda_min": 0.0}, ValueError, "lambda_min is 0.0, but must be finite and greater than 0"),
    ({"lambda_factor": 1.0}, ValueError, "lambda_factor is 1.0"),
    ({"rho_min": 1.0}, ValueError, "rho_min is 1.0, but must be less than 1"),
    ({"optimizer": "lbfgs", "line_search_alphas": []}, ValueError, "line_search_alphas is empty"),
    ({"optimizer": "lbfgs", "wolfe_c1": 0.95}, ValueError, "0 <= wolfe_c1 < wolfe_c2 < 1"),
    ({"optimizer": "lbfgs", "history_len": 0}, ValueError, "history_len is 0"),
    ({"problem_worlds": [3]}, ValueError, r"problem_worlds\[0\] is 3, but the model has the worlds 0 to 0"),
    ({"problem_worlds": [0, 0]}, ValueError, "problem_worlds must be 1 whole numbers"),
    ({"joint_dof_mask": [True]}, ValueError, "dtype wp.bool, not a list"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments_say_what_is_right(arguments, error, message):
    model, link = planar_model()
    arguments = {
        "model": model,
        "n_problems": 1,
        "objectives": [tip_objective((1.0, 1.0), link, [[1.0, 0.5]])],
    } | arguments
    with pytest.raises(error, match=message):
        ik.IKSolver(**arguments)


def test_wrong_objectives_say_what_is_right():
    model, link = planar_model()

    def make(objective, count=2, **options):
        return ik.IKSolver(model, count, [objective], **options)

    targets = np.zeros((2, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="link_index is 7, but the model has the bodies 0 to 1: 'body_0'"):
        make(ik.IKObjectivePosition(7, (0, 0, 0), targets))
    with pytest.raises(TypeError, match="must be the index of a body"):
        make(ik.IKObjectivePosition("hand", (0, 0, 0), targets))
    with pytest.raises(ValueError, match="target_positions has 2 entries, but there are 3 problems"):
        make(ik.IKObjectivePosition(link, (0, 0, 0), targets), count=3)
    with pytest.raises(ValueError, match=r"target_positions\[1\] is .*nan.*, but must be finite"):
        make(ik.IKObjectivePosition(link, (0, 0, 0), np.array([[0, 0, 0], [np.nan, 0, 0]])))
    with pytest.raises(ValueError, match="an array of float32 of shape"):
        make(ik.IKObjectivePosition(link, (0, 0, 0), wp.zeros(2, dtype=float, device="cpu")))
    with pytest.raises(ValueError, match=r"weight is -1.0, but must be finite and at least 0"):
        ik.IKObjectivePosition(link, (0, 0, 0), targets, weight=-1.0)
    with pytest.raises(ValueError, match=r"link_offset_rotation is .* but must be a quaternion"):
        ik.IKObjectiveRotation(link, (0, 0, 0, 0), np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"joint_limit_lower has shape \(3,\), but must have shape \(2,\)"):
        make(ik.IKObjectiveJointLimit(np.zeros(3), np.zeros(3)))
    objective = ik.IKObjectivePosition(link, (0, 0, 0), targets)
    with pytest.raises(RuntimeError, match="belongs to no solver yet"):
        objective.set_target_position(0, (0.0, 0.0, 0.0))
    solver = make(objective)
    with pytest.raises(IndexError, match="problem_idx is 2, but there are the problems 0 to 1"):
        objective.set_target_position(2, (0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="this IKObjectivePosition belongs to a solver of another model"):
        ik.IKSolver(planar_model()[0], 2, [objective])
    joint_q = wp.zeros((2, 2), dtype=float, device="cpu")
    with pytest.raises(ValueError, match=r"joint_q_in has shape \(2,\), but the model needs \(2, 2\)"):
        solver.step(wp.zeros(2, dtype=float, device="cpu"), joint_q)
    with pytest.raises(TypeError, match="joint_q_out is a ndarray"):
        solver.step(joint_q, joint_q.numpy())
    with pytest.raises(ValueError, match="iterations is -1"):
        solver.step(joint_q, joint_q, iterations=-1)
    with pytest.raises(ValueError, match=r"step_size is 0\.0"):
        solver.step(joint_q, joint_q, step_size=0.0)


def test_targets_that_are_set_are_checked_as_those_that_are_given():
    """A quaternion of zeros was taken for the identity, and NaN was solved for, without a word."""
    model, link = planar_model()
    place = ik.IKObjectivePosition(link, (0, 0, 0), np.zeros((2, 3)))
    turn = ik.IKObjectiveRotation(link, (0, 0, 0, 1), np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)))
    ik.IKSolver(model, 2, [place, turn])
    none = ik.IKObjectiveRotation(link, (0, 0, 0, 1), np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"target_rotations\[0\] is .*must be a rotation"):
        ik.IKSolver(model, 2, [none])
    with pytest.raises(ValueError, match=r"set_target_rotation: target\[0\] is .*must be a rotation"):
        turn.set_target_rotation(0, (0, 0, 0, 0))
    with pytest.raises(ValueError, match=r"new_rotations\[1\] is .*must be a rotation"):
        turn.set_target_rotations([[0, 0, 0, 2], [0, 0, 0, 0]])
    with pytest.raises(ValueError, match=r"set_target_rotation: target\[0\] is \[nan.*must be finite"):
        turn.set_target_rotation(0, (np.nan, 0, 0, 1))
    with pytest.raises(ValueError, match=r"set_target_position: target\[0\] is \[nan.*must be finite"):
        place.set_target_position(0, (np.nan, 0, 0))
    with pytest.raises(ValueError, match=r"set_target_position: the target has shape \(2,\).*3 numbers"):
        place.set_target_position(0, (0, 0))
    for weight in (np.nan, -1.0):
        with pytest.raises(ValueError, match=f"IKObjectivePosition: weight is {weight}, but must be finite"):
            place.weight = weight
    np.testing.assert_array_equal(place.target_positions.numpy(), 0.0)


@pytest.mark.parametrize("optimizer", ["lm", "lbfgs"])
def test_a_weight_that_is_changed_holds_from_the_next_solve_on(optimizer):
    """Recorded iterations kept the weight that they were recorded with."""
    model, link = planar_model()
    tips = [tip_objective((1.0, 1.0), link, [target]) for target in ([1.0, 0.5], [0.5, 1.0])]
    solver = ik.IKSolver(model, 1, tips, optimizer=optimizer)

    def solve(solver: ik.IKSolver) -> np.ndarray:
        joint_q = wp.full((1, 2), 0.5, dtype=float, device="cpu")
        solver.reset()
        solver.step(joint_q, joint_q, iterations=20)
        return joint_q.numpy()

    before = [solve(solver) for _ in range(3)]  # launched, recorded, replayed
    tips[0].weight = 10.0
    changed = [solve(solver) for _ in range(3)]
    assert np.abs(changed[0] - before[0]).max() > 0.05
    fresh = [tip_objective((1.0, 1.0), link, [target]) for target in ([1.0, 0.5], [0.5, 1.0])]
    fresh[0].weight = 10.0
    expected = solve(ik.IKSolver(model, 1, fresh, optimizer=optimizer))
    for found in changed:
        np.testing.assert_array_equal(found, expected)


def test_models_that_cannot_be_solved_say_so():
    builder = pv.ModelBuilder()
    builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=1.0)
    objective = ik.IKObjectivePosition(0, (0, 0, 0), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="no joint that can move"):
        ik.IKSolver(builder.finalize("cpu"), 1, [objective])
    with pytest.raises(TypeError, match=r"model is a ModelBuilder, but must be a Model; call finalize\(\)"):
        ik.IKSolver(builder, 1, [objective])
    builder = pv.ModelBuilder()
    add_planar_arm(builder, (1.0, 1.0))
    for _ in range(2):
        builder.add_constraint_mimic(1, 0)
    with pytest.raises(ValueError, match=r"move the same joint. Disable one of them"):
        ik.IKSolver(builder.finalize("cpu"), 1, [objective])
    builder = pv.ModelBuilder()
    links = add_planar_arm(builder, (1.0, 1.0))
    builder.add_equality_constraint_connect(links[1], -1, anchor=(1.0, 0.0, 0.0), label="pin")
    with pytest.warns(
        pv.warnings.PluriverseWarning, match="1 equality constraints between bodies \\('pin'\\)"
    ):
        ik.IKSolver(builder.finalize("cpu"), 1, [objective])


def test_a_body_of_another_world_is_refused():
    builder = pv.ModelBuilder()
    for _ in range(2):
        builder.begin_world()
        link = add_planar_arm(builder, (1.0, 1.0))[-1]
        builder.end_world()
    model = builder.finalize("cpu")
    objective = ik.IKObjectivePosition(link, (0, 0, 0), np.zeros((2, 3)))
    with pytest.raises(
        ValueError, match=r"is in world 1, but problem 0 moves world 0. Give link_index one body"
    ):
        ik.IKSolver(model, 2, [objective], problem_worlds=[0, 1])
