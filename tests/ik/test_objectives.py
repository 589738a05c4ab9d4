"""Objectives: Jacobians against finite differences per joint type, and objectives that users write."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import ik
from pluriverse.ik.evaluation import Evaluation
from pluriverse.ik.problems import Problems
from pluriverse.ik.retraction import move_rows
from tests.ik.robots import IDENTITY, add_every_joint, add_planar_arm, planar_tip, some_coords

pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.warnings.LoopWarning")


@wp.kernel
def write_sphere_gap(
    body_q: wp.array2d[wp.transform],  # [row, body]
    joint_q: wp.array2d[float],  # [row, coord]
    centre: wp.array[wp.vec3],  # [problem]
    link: int,
    start: int,
    problem_idx: wp.array[int],  # [row]
    residuals: wp.array2d[float],  # [row, residual]
):
    row = wp.tid()
    point = wp.transform_point(body_q[row, link], wp.vec3(0.1, 0.2, -0.1))
    distance = wp.length(point - centre[problem_idx[row]])
    residuals[row, start] = wp.log(1.0 + wp.exp(1.0 - distance))
    total = float(0.0)
    for coord in range(joint_q.shape[1]):
        total = total + float(coord + 1) * wp.sin(joint_q[row, coord])
    residuals[row, start + 1] = 0.1 * total


class SphereGap(ik.IKObjective):
    """A stranger's objective: stay away from a sphere, and something of all coordinates. By autodiff only."""

    def __init__(self, link, centre):
        super().__init__()
        self.link, self.centre = link, centre

    def residual_dim(self):
        return 2

    def compute_residuals(self, body_q, joint_q, model, residuals, start_idx, problem_idx):
        wp.launch(
            write_sphere_gap,
            dim=body_q.shape[0],
            inputs=[body_q, joint_q, self.centre, self.link, start_idx, problem_idx],
            outputs=[residuals],
            device=self.device,
        )


class Posture(ik.IKObjective):
    """A stranger's objective with a formula of its own: coordinates of an arm are near 0. On the host."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def residual_dim(self):
        return 2

    def compute_residuals(self, body_q, joint_q, model, residuals, start_idx, problem_idx):
        values = residuals.numpy()
        values[:, start_idx : start_idx + 2] = self.weight * joint_q.numpy()
        residuals.assign(values)

    def compute_jacobian_analytic(self, body_q, joint_q, model, jacobian, joint_S_s, start_idx):
        values = jacobian.numpy()
        assert not values[:, start_idx : start_idx + 2].any()
        values[:, start_idx, 0] = values[:, start_idx + 1, 1] = self.weight
        jacobian.assign(values)


@pytest.fixture(scope="module")
def tree():
    """A tree with every joint type, in three rows of two problems, and objectives on several links."""
    builder = pv.ModelBuilder()
    links = add_every_joint(builder)
    dofs = builder.joint_dof_count
    builder.joint_limit_lower[:] = [-0.2] * dofs
    builder.joint_limit_upper[:] = [0.3] * dofs
    builder.add_constraint_mimic(7, 2, coef0=0.1, coef1=-0.6)
    model = builder.finalize("cpu")
    rng = np.random.default_rng(8)
    rotations = rng.standard_normal((2, 4)).astype(np.float32)

    def objectives():
        positions = rng.uniform(-1.0, 1.0, (2, 3)).astype(np.float32)
        return [
            ik.IKObjectivePosition(links[7], (0.1, 0.2, 0.3), positions, weight=2.0),
            ik.IKObjectiveRotation(links[5], (0.5, 0.1, 0.2, 0.8), rotations, weight=0.7),
            ik.IKObjectiveRotation(links[7], IDENTITY, -rotations, canonicalize_quat_err=False),
            ik.IKObjectiveJointLimit(model.joint_limit_lower, model.joint_limit_upper, weight=0.5),
        ]

    centre = wp.array([[0.3, 0.2, 0.1], [-0.2, 0.1, 0.6]], dtype=wp.vec3, device="cpu")
    # Coordinates away from limits, where the slopes of residuals jump; the follower's is 0.1 - 0.6 q.
    near_limit = True
    while near_limit:
        coords = np.array([some_coords(model, rng) for _ in range(3)])
        coords[:, -1] = 0.1 - 0.6 * coords[:, model.joint_q_start.numpy()[2]]
        near_limit = min(np.abs(coords + 0.2).min(), np.abs(coords - 0.3).min()) < 0.022
    return model, links, objectives, centre, coords


def evaluation_of(model, objectives, mode):
    problems = Problems(model, 2, what="test")
    rows = wp.array([0, 1, 1], dtype=wp.int32, device="cpu")
    return Evaluation(problems, objectives, rows, mode)


def jacobian_at(evaluation, coords):
    joint_q = evaluation.new_coords()
    joint_q.assign(coords)
    evaluation.place(joint_q)
    evaluation.differentiate(joint_q)
    return joint_q, evaluation.jacobian.numpy().astype(np.float64)


@pytest.mark.parametrize("mode", list(ik.IKJacobianType))
def test_jacobians_are_the_derivatives_of_the_residuals(tree, mode):
    """Central differences along each dof, by the retraction; those of followers are in their leaders'."""
    model, links, objectives, centre, coords = tree
    listed = objectives()
    if mode is not ik.IKJacobianType.ANALYTIC:
        listed.append(SphereGap(links[6], centre))
    evaluation = evaluation_of(model, listed, mode)
    joint_q, jacobian = jacobian_at(evaluation, coords)
    step = 1e-2
    moved, residuals = evaluation.new_coords(), {}
    follower = int(model.joint_qd_start.numpy()[7])
    for dof in range(model.joint_dof_count):
        direction = np.zeros((3, model.joint_dof_count))
        direction[:, dof] = 1.0
        direction = wp.array(direction, dtype=wp.float64, device="cpu")
        for scale in (step, -step, 2 * step, -2 * step):
            move_rows(model, evaluation.rows, joint_q, direction, moved, scale=scale)
            evaluation.place(moved)
            residuals[scale] = evaluation.residuals.numpy().astype(np.float64)
        near = (residuals[step] - residuals[-step]) / (2.0 * step)
        far = (residuals[2 * step] - residuals[-2 * step]) / (4.0 * step)
        # Of fourth order; rounding 2e-7 of residuals of order 2 over the step. Limits have kinks, which no
        # coordinate is near.
        slope = (4.0 * near - far) / 3.0
        if dof == follower:
            assert not jacobian[:, :, dof].any()
            continue
        np.testing.assert_allclose(jacobian[:, :, dof], slope, atol=3e-4, err_msg=f"dof {dof}")


def test_modes_agree(tree):
    """Tape and formula give the same Jacobian, to single precision."""
    model, _, objectives, _, coords = tree
    listed = objectives()
    _, exact = jacobian_at(evaluation_of(model, listed, ik.IKJacobianType.ANALYTIC), coords)
    _, taped = jacobian_at(evaluation_of(model, listed, ik.IKJacobianType.AUTODIFF), coords)
    assert np.abs(exact).max() > 1.0
    np.testing.assert_allclose(taped, exact, atol=2e-5)


@pytest.mark.parametrize("optimizer", list(ik.IKOptimizer))
def test_objectives_of_users_are_solved_with_ours(optimizer):
    """The least of |x - x_t|^2 + w^2 |q|^2 of an arm has no slope there, computed from the closed form."""
    lengths, weight = (1.0, 0.7), 0.4
    builder = pv.ModelBuilder()
    links = add_planar_arm(builder, lengths)
    model = builder.finalize("cpu")
    target = np.array([0.3, 1.1])
    objectives = [
        ik.IKObjectivePosition(links[1], (0.7, 0.0, 0.0), np.array([[*target, 0.0]])),
        Posture(weight),
    ]
    solver = ik.IKSolver(model, 1, objectives, optimizer=optimizer)
    joint_q = wp.array([[0.5, 0.5]], dtype=float, device="cpu")
    solver.step(joint_q, joint_q, iterations=60)

    def cost(q):
        return ((planar_tip(lengths, q) - target) ** 2).sum() + weight**2 * (q**2).sum()

    best = joint_q.numpy()[0].astype(np.float64)
    slope = [(cost(best + d) - cost(best - d)) / 2e-5 for d in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(slope, 0.0, atol=2e-3)
    np.testing.assert_allclose(solver.costs.numpy()[0], cost(best), rtol=1e-5)


def test_an_objective_by_tape_is_minimized(tree):
    """A stranger's objective alone: its cost falls, with several starts per problem."""
    model, links, _, centre, coords = tree
    solver = ik.IKSolver(
        model,
        2,
        [SphereGap(links[6], centre)],
        sampler="gauss",
        n_seeds=2,
    )
    joint_q = wp.array(coords[:2], dtype=float, device="cpu")
    solver.step(joint_q, joint_q, iterations=0)
    before = solver.costs.numpy().copy()
    solver.reset()
    solver.step(joint_q, joint_q, iterations=8)
    assert (solver.costs.numpy() < 0.5 * before).all()


def test_an_objective_by_tape_can_be_recorded(tree):
    """What a user records around tapes gives the bits of launches."""
    model, links, _, centre, coords = tree
    solver = ik.IKSolver(model, 2, [SphereGap(links[6], centre)], optimizer="lbfgs")
    start = wp.array(coords[:2], dtype=float, device="cpu")
    launched, replayed = wp.zeros_like(start), wp.zeros_like(start)
    solver.step(start, launched, iterations=3)
    with wp.ScopedCapture(device="cpu") as capture:
        solver.reset()
        solver.step(start, replayed, iterations=3)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(replayed.numpy(), launched.numpy())


def test_limits_of_many_copies_fit_a_model_of_one():
    """Scripts solve for one robot with the limits of the scene that has many."""
    builder = pv.ModelBuilder()
    links = add_planar_arm(builder, (1.0, 0.7))
    model = builder.finalize("cpu")
    lower = wp.array([-0.1, -0.2, 9.0, 9.0], dtype=float, device="cpu")
    upper = wp.full(4, 0.5, dtype=float, device="cpu")
    objective = ik.IKObjectiveJointLimit(lower, upper, weight=1.0)
    solver = ik.IKSolver(model, 1, [objective])
    joint_q = wp.array([[-1.0, 2.0]], dtype=float, device="cpu")
    solver.step(joint_q, joint_q)
    np.testing.assert_allclose(joint_q.numpy(), [[-0.1, 0.5]], atol=1e-4)
    assert len(links) == 2


def test_what_a_users_objective_lacks_is_named(tree):
    model, links, _, centre, _ = tree
    with pytest.raises(ValueError, match=r"a SphereGap, has no analytic Jacobian. Take\s+jacobian_mode"):
        ik.IKSolver(model, 2, [SphereGap(links[6], centre)], jacobian_mode="analytic")

    class Nothing(ik.IKObjective):
        pass

    with pytest.raises(NotImplementedError, match=r"Nothing must give residual_dim\(\)"):
        ik.IKSolver(model, 2, [Nothing()])
    Nothing.residual_dim = lambda self: 0
    with pytest.raises(ValueError, match=r"Nothing.residual_dim\(\) is 0, but must be a whole number"):
        ik.IKSolver(model, 2, [Nothing()])
