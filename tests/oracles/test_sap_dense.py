"""The oracle itself: its potentials are differentiated by finite differences and checked for convexity."""

import numpy as np
import pytest

from tests.oracles.sap_dense import (
    ContactLaw,
    DenseProblem,
    DriveLaw,
    FrictionLaw,
    LimitLaw,
    contact_frame,
)

DIFFERENCE_STEP = 1e-6
"""Step of central differences [m/s]: truncation step^2, rounding eps / step, both near 1e-10 relative."""


def make_law(rng: np.random.Generator, *, mu: float | None = None) -> ContactLaw:
    return ContactLaw(
        phi0=rng.uniform(-2e-3, 1e-3),
        stiffness=10.0 ** rng.uniform(3, 6),
        tau=rng.uniform(0.0, 0.05),
        mu=rng.uniform(0.1, 1.5) if mu is None else mu,
        weight=10.0 ** rng.uniform(-1, 1),
        dt=rng.choice([1e-3, 5e-3]),
        softening=0.0,  # with a softened norm, impulse and potential agree only to softening^2
    )


def make_velocity_in(law: ContactLaw, region: str, rng: np.random.Generator) -> np.ndarray:
    """A contact velocity whose impulse projects from `region`, away from its boundaries."""
    y_n = 10.0 ** rng.uniform(-2, 1)
    angle = rng.uniform(0.0, 2.0 * np.pi)
    direction = np.array([np.cos(angle), np.sin(angle)])
    if region == "stiction":
        y = np.array([*(rng.uniform(0.1, 0.8) * law.mu * y_n * direction), y_n])
    elif region == "sliding":
        y = np.array([*(rng.uniform(1.2, 5.0) * y_n / law.mu * direction), y_n])
        if law.mu * np.linalg.norm(y[:2]) <= 1.2 * law.mu**2 * y_n:
            y[:2] *= 2.0 * law.mu**2 + 1.0
    elif region == "none":
        y_r = rng.uniform(0.1, 1.0)
        y = np.array([*(y_r * direction), -law.mu_hat * y_r - y_n])
    else:
        y = np.array([*direction, y_n])
    return law.v_hat - law.r * y


def central_difference(function, x: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    steps = np.broadcast_to(step, x.shape)
    columns = []
    for axis in range(x.size):
        offset = np.zeros_like(x)
        offset[axis] = steps[axis]
        columns.append(
            (np.asarray(function(x + offset)) - np.asarray(function(x - offset))) / (2 * steps[axis])
        )
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("region", ["stiction", "sliding", "none", "frictionless"])
def test_contact_hessian_is_minus_the_derivative_of_the_impulse(region):
    rng = np.random.default_rng(1)
    for _ in range(50):
        law = make_law(rng, mu=0.0 if region == "frictionless" else None)
        v_c = make_velocity_in(law, region, rng)
        assert law.region(v_c) == region
        # The law is a function of v / R: the step follows R so that it stays inside the region.
        step = 1e-5 * law.r * np.max(np.abs((law.v_hat - v_c) / law.r))
        numeric = -central_difference(law.impulse, v_c, step)
        hessian = law.hessian(v_c)
        scale = np.sqrt(np.outer(1.0 / law.r, 1.0 / law.r))
        np.testing.assert_allclose(hessian / scale, numeric / scale, atol=1e-8)
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
        assert np.linalg.eigvalsh(hessian / scale).min() > -1e-12


@pytest.mark.parametrize("region", ["stiction", "sliding", "none", "frictionless"])
def test_contact_impulse_is_minus_the_gradient_of_the_potential(region):
    rng = np.random.default_rng(2)
    for _ in range(50):
        law = make_law(rng, mu=0.0 if region == "frictionless" else None)
        v_c = make_velocity_in(law, region, rng)
        size = np.max(np.abs((law.v_hat - v_c) / law.r))
        step = 1e-4 * law.r * size
        numeric = -central_difference(law.cost, v_c, step)
        # Truncation (step / R)^2 of an impulse of this size, and rounding of the cost over the step.
        tolerance = 1e-8 * size + 4.0 * np.finfo(float).eps * law.cost(v_c) / step
        assert np.all(np.abs(law.impulse(v_c) - numeric) <= tolerance)


def test_impulse_lies_in_the_friction_cone_and_is_continuous_across_regions():
    """Along a path through all three regions the impulse never leaves the cone and never jumps."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        law = make_law(rng)
        direction = rng.normal(size=3)
        path = np.linspace(-1.0, 1.0, 4001)
        velocities = law.v_hat + np.outer(path, direction * law.r)
        impulses = np.array([law.impulse(v) for v in velocities])
        assert len({law.region(v) for v in velocities}) >= 2
        tangential = np.linalg.norm(impulses[:, :2], axis=1)
        assert np.all(tangential <= law.mu * impulses[:, 2] + 1e-12)
        # In the R norm the projection onto a convex cone is nonexpansive.
        jump = np.linalg.norm(np.diff(impulses, axis=0) * np.sqrt(law.r), axis=1)
        input_step = np.linalg.norm(direction * np.sqrt(law.r)) * (path[1] - path[0])
        assert jump.max() <= input_step * (1.0 + 1e-9)


def test_regularization_crosses_over_at_the_near_rigid_stiffness():
    """R_n leaves the compliant law exactly where k = 4 pi^2 / (beta^2 w h (h + tau))."""
    dt, tau, weight, beta = 0.005, 0.01, 0.5, 1.0
    crossover = 4.0 * np.pi**2 / (beta**2 * weight * dt * (dt + tau))
    floor = beta**2 / (4.0 * np.pi**2) * weight

    def regularization(stiffness: float) -> float:
        return ContactLaw(0.0, stiffness, tau, 0.5, weight, dt, beta=beta).r_n

    assert regularization(0.5 * crossover) == pytest.approx(2.0 * floor, rel=1e-12)
    assert regularization(crossover) == pytest.approx(floor, rel=1e-12)
    assert regularization(100.0 * crossover) == pytest.approx(floor, rel=1e-12)


def test_golden_regularization_of_a_resting_box():
    """Reference sheet section 13: pair stiffness 5e3, tau 0.02, h 5 ms gives R_n = 1.6."""
    law = ContactLaw(phi0=0.0, stiffness=5e3, tau=0.02, mu=0.5, weight=0.5, dt=0.005)
    assert law.r_n == pytest.approx(1.6, rel=1e-12)
    assert law.r_t == pytest.approx(5e-4, rel=1e-12)


def test_contact_frame_is_a_rotation_onto_the_normal():
    rng = np.random.default_rng(4)
    normals = [*np.eye(3), *-np.eye(3), *(n / np.linalg.norm(n) for n in rng.normal(size=(20, 3)))]
    for normal in normals:
        frame = contact_frame(np.asarray(normal))
        np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-12)
        assert np.linalg.det(frame) == pytest.approx(1.0)
        np.testing.assert_array_equal(frame[:, 2], normal)


def make_problem(seed: int, *, dof_count: int = 9, contact_count: int = 6) -> DenseProblem:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dof_count, dof_count))
    a = root @ root.T + 0.5 * np.eye(dof_count)
    dt = 0.005
    problem = DenseProblem(a=a, v_star=rng.normal(size=dof_count), v0=rng.normal(size=dof_count))
    for _ in range(contact_count):
        problem.jacobians.append(rng.normal(size=(3, dof_count)))
        law = make_law(rng)
        problem.contacts.append(
            ContactLaw(law.phi0, law.stiffness, law.tau, law.mu, law.weight, dt, softening=0.0)
        )
    for dof in range(3):
        effort_limit = [np.inf, 5.0, 0.1][dof]
        problem.joint_terms.append(
            (dof, DriveLaw(10.0 ** rng.uniform(1, 7), 5.0, 0.3, 0.1, 0.2, effort_limit, 0.0, a[dof, dof], dt))
        )
    for dof in range(3, 5):
        problem.joint_terms.append((dof, LimitLaw(-1e-3, 1.0, 1e4, 1e-3, a[dof, dof], dt)))
        problem.joint_terms.append((dof, LimitLaw(2e-3, -1.0, 1e12, dt, a[dof, dof], dt)))
    for dof in range(5, 7):
        problem.joint_terms.append((dof, FrictionLaw(0.5, a[dof, dof], dt)))
    return problem


@pytest.mark.parametrize("seed", range(5))
def test_gradient_and_hessian_follow_from_the_cost_with_all_terms(seed):
    problem = make_problem(seed)
    rng = np.random.default_rng(seed + 100)
    for _ in range(10):
        v = rng.normal(size=problem.v_star.size)
        scale = np.abs(problem.gradient(v)).max()
        numeric = central_difference(problem.cost, v, DIFFERENCE_STEP)
        # The largest term divided by the smallest regularization amplifies rounding of the cost.
        np.testing.assert_allclose(problem.gradient(v), numeric, atol=1e-6 * scale)
        hessian = problem.hessian(v)
        numeric = central_difference(problem.gradient, v, DIFFERENCE_STEP)
        np.testing.assert_allclose(hessian, numeric, atol=1e-6 * np.abs(hessian).max())
        assert np.linalg.eigvalsh(hessian).min() > 0.0


@pytest.mark.parametrize("seed", range(5))
def test_minimizer_is_optimal_and_independent_of_the_guess(seed):
    """The objective is strongly convex, so there is one minimum and every start finds it."""
    problem = make_problem(seed)
    rng = np.random.default_rng(seed + 200)
    solution = problem.minimize()
    other = problem.minimize(guess=rng.normal(size=problem.v_star.size))
    np.testing.assert_allclose(other, solution, atol=1e-10)
    assert problem.optimality(solution) < 1e-10
    for _ in range(20):
        assert problem.cost(solution + 1e-3 * rng.normal(size=solution.size)) > problem.cost(solution)


@pytest.mark.parametrize("ratio", [0.01, 1.0, 100.0])
def test_near_rigid_drive_keeps_the_ratio_of_its_gains(ratio):
    """A drive too stiff for the step is softened to the near-rigid limit, keeping kd / ke."""
    dt, a_ii = 0.005, 2.0
    drive = DriveLaw(1e9, 1e9 * ratio * dt, 0.0, 0.0, 0.0, np.inf, 0.0, a_ii, dt)
    assert drive.kd / drive.ke == pytest.approx(ratio * dt, rel=1e-9)
    assert 1.0 / (dt * drive.gain) == pytest.approx(0.1**2 / (4.0 * np.pi**2) / a_ii, rel=1e-12)
