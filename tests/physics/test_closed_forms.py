"""Motions whose outcome is known in closed form, under both kinds of preset.

Where the time step shows, the closed form of the discrete motion is the reference; where the regularization
of contact shows, its own size is the tolerance.
"""

import numpy as np
import pytest

from tests.oracles.multibody_dense import rotation_matrix
from tests.oracles.sap_dense import weight_diag_delassus
from tests.physics.experiments import (
    BALL_RADIUS,
    BALL_SPEEDS,
    CUBE_HALF,
    CUBE_MASS,
    EXPERIMENTS,
    FALL_VELOCITY,
    HOLD_GAIN,
    LIMIT_STIFFNESS,
    MU,
    PENDULUM_AMPLITUDE,
    ROD_INERTIA,
    ROD_LENGTH,
    ROD_MASS,
    SLIDE_SPEED,
    SLIP_ANGLE,
    SPIN,
    STICK_ANGLE,
    WEAK_EFFORT,
    rest_height,
)
from tests.physics.laboratory import FLOAT32_ROUNDING, GRAVITY, run

DT = 0.002  # s
DURATION = 2.0  # s
SIGMA = 1e-3
"""Regularization of friction, dimensionless: the default of `contact_sigma`."""


@pytest.fixture(scope="module", params=["drake", "approx32"])
def preset(request):
    return request.param


@pytest.fixture(scope="module")
def records(preset):
    return run(EXPERIMENTS, dt=DT, duration=DURATION, contact_preset_variant=preset)


def rounding(values: np.ndarray) -> float:
    """Largest error that rounding to single precision once a step can have summed up to."""
    return len(values) * FLOAT32_ROUNDING * np.abs(values).max()


def discrete_fall(time: np.ndarray, v0: float, acceleration: float, preset: str) -> np.ndarray:
    """Distance after `time` at constant acceleration, as the preset integrates positions."""
    # `midpoint` averages the velocities of a step, which is exact; `sap_euler` takes the one at its end.
    extra = 0.5 * acceleration * time * DT if preset == "drake" else 0.0
    return v0 * time + 0.5 * acceleration * time**2 + extra


def test_free_fall_is_a_parabola(records, preset):
    record = records["free_fall"]
    velocity = np.array(FALL_VELOCITY) + np.outer(record.time, (0.0, 0.0, -GRAVITY))
    drift = rounding(velocity)
    np.testing.assert_allclose(record.joint_qd[:, :3], velocity, atol=drift)
    np.testing.assert_allclose(record.joint_qd[:, 3:], 0.0, atol=1e-6)
    for axis in range(3):
        acceleration = -GRAVITY if axis == 2 else 0.0
        expected = discrete_fall(record.time, FALL_VELOCITY[axis], acceleration, preset)
        np.testing.assert_allclose(record.joint_q[:, axis], expected, atol=drift * DURATION)


def test_pendulum_has_the_period_of_its_inertia(records):
    """T = 2 pi sqrt(I / (m g l)) (1 + amplitude^2 / 16) for small amplitudes."""
    record = records["pendulum"]
    angle = record.joint_q[:, 0]
    falling = np.flatnonzero((angle[:-1] > 0.0) & (angle[1:] <= 0.0))
    crossings = record.time[falling] + DT * angle[falling] / (angle[falling] - angle[falling + 1])
    inertia = ROD_INERTIA + ROD_MASS * ROD_LENGTH**2
    period = 2.0 * np.pi * np.sqrt(inertia / (ROD_MASS * GRAVITY * ROD_LENGTH))
    period *= 1.0 + PENDULUM_AMPLITUDE**2 / 16.0
    # The step changes the frequency by (omega dt)^2 / 24 = 3e-6; the rest is interpolation at the crossings.
    assert np.diff(crossings) == pytest.approx(period, rel=1e-4)


def test_cone_pendulum_keeps_its_height(records):
    """On the steady cone the weight's moment turns the angular momentum and nothing else happens."""
    record = records["cone"]
    height = -ROD_LENGTH * np.array([rotation_matrix(q)[2, 2] for q in record.body_q[::10, 0, 3:]])
    # Steady motion about an axis of symmetry of the forces: the step introduces no error of its own.
    np.testing.assert_allclose(height, height[0], rtol=1e-5)
    speed = np.linalg.norm(record.body_qd[:, 0, :3], axis=1)
    np.testing.assert_allclose(speed, speed[0], rtol=1e-5)


def creep_speed(preset: str) -> float:
    """Creep of the cube in stiction: R_t times the impulse, which four corners share."""
    inertia = CUBE_MASS * 2.0 / 3.0 * CUBE_HALF**2
    arm = np.full(3, CUBE_HALF)
    cross = np.array([[0.0, -arm[2], arm[1]], [arm[2], 0.0, -arm[0]], [-arm[1], arm[0], 0.0]])
    jacobian = np.hstack([-cross, np.eye(3)])
    diagonal = np.array([inertia] * 3 + [CUBE_MASS] * 3)
    mobility = (jacobian / diagonal) @ jacobian.T
    weight = weight_diag_delassus(jacobian, diagonal) if preset == "drake" else np.trace(mobility) / 3.0
    return SIGMA * weight * CUBE_MASS * GRAVITY * np.sin(STICK_ANGLE) * DT / 4.0


def test_block_below_the_friction_angle_creeps_as_slowly_as_the_regularization(records, preset):
    record = records["stick"]
    start = 3 * len(record.time) // 4  # the rocking of the first impact has died out
    np.testing.assert_allclose(record.joint_qd[start:, 0].mean(), creep_speed(preset), rtol=0.01)
    distance = record.joint_q[-1, 0] - record.joint_q[start, 0]
    assert distance < MU * SIGMA * GRAVITY * DT * (record.time[-1] - record.time[start])
    assert np.abs(record.joint_q[-1, 1]) < 1e-6


def test_block_above_the_friction_angle_slides_with_the_analytic_acceleration(records):
    record = records["slip"]
    start = len(record.time) // 4
    duration = record.time[-1] - record.time[start]
    acceleration = (record.joint_qd[-1, 0] - record.joint_qd[start, 0]) / duration
    expected = GRAVITY * (np.sin(SLIP_ANGLE) - MU * np.cos(SLIP_ANGLE))
    assert acceleration == pytest.approx(expected, rel=0.01)


def test_sliding_block_stops_after_the_analytic_distance(records):
    record = records["stop"]
    assert record.joint_q[-1, 0] == pytest.approx(SLIDE_SPEED**2 / (2.0 * MU * GRAVITY), rel=0.01)
    assert np.abs(record.joint_qd[-1]).max() < 1e-4, "it stands still at the end"


def test_zero_friction_is_frictionless(records):
    record = records["frictionless"]
    np.testing.assert_allclose(record.joint_qd[:, 0], SLIDE_SPEED, rtol=len(record.time) * FLOAT32_ROUNDING)
    np.testing.assert_allclose(record.joint_qd[:, 1], 0.0, atol=1e-6)


def test_resting_block_sinks_by_load_over_stiffness(records):
    record = records["rest"]
    np.testing.assert_allclose(record.joint_q[:, 2], rest_height(1e4), atol=1e-6)


def test_sliding_ball_ends_in_pure_rolling_at_five_sevenths_of_its_speed(records):
    """The angular momentum about the contact line is constant, whatever the friction."""
    record = records["roll"]
    velocity, omega = record.joint_qd[-1, :3], record.joint_qd[-1, 3:]
    np.testing.assert_allclose(velocity[:2], 5.0 / 7.0 * np.array([1.0, 0.5]), rtol=2e-3)
    np.testing.assert_allclose([omega[1], -omega[0]], velocity[:2] / BALL_RADIUS, rtol=2e-3)
    # From when it rolls on, nothing slows it down.
    half = len(record.time) // 2
    np.testing.assert_allclose(record.joint_qd[half:, :2], np.tile(velocity[:2], (half + 1, 1)), rtol=1e-3)


def torque_free_errors(record) -> tuple[float, float]:
    """Largest relative errors of kinetic energy and of angular momentum."""
    inertia = np.diag((0.03, 0.02, 0.01))
    rotations = [rotation_matrix(pose[3:]) for pose in record.body_q[:, 0]]
    omegas = record.body_qd[:, 0, 3:]
    momenta = np.array([r @ inertia @ r.T @ omega for r, omega in zip(rotations, omegas, strict=True)])
    energies = 0.5 * np.sum(momenta * omegas, axis=1)
    momentum_error = np.linalg.norm(momenta - momenta[0], axis=1) / np.linalg.norm(momenta[0])
    return np.abs(energies / energies[0] - 1.0).max(), momentum_error.max()


def test_torque_free_rotation_conserves_energy_and_angular_momentum(records, preset):
    """A tumbling body, over more than six turns.

    Gyroscopic forces are those at the start of the step, so errors are of first order in the angle of a
    step. With the exponential map and the mean angular velocity the energy is conserved to second order.
    """
    energy_error, momentum_error = torque_free_errors(records["torque_free"])
    step_angle = np.linalg.norm(SPIN) * DT
    turned = np.linalg.norm(SPIN) * DURATION
    first_order = 0.2 * step_angle * turned
    assert energy_error < (first_order if preset == "drake" else first_order * step_angle)
    assert momentum_error < first_order
    np.testing.assert_allclose(records["torque_free"].body_q[:, 0, :3], 0.0, atol=1e-6)


def test_torque_free_errors_shrink_with_the_step(records, preset):
    """Half the step, at most half the error (of first order and higher): in the limit both are conserved."""
    finer = run(
        {"torque_free": EXPERIMENTS["torque_free"]},
        dt=0.5 * DT,
        duration=DURATION,
        contact_preset_variant=preset,
    )
    _, coarse_error = torque_free_errors(records["torque_free"])
    _, fine_error = torque_free_errors(finer["torque_free"])
    assert 0.25 * coarse_error < fine_error < 0.55 * coarse_error


def test_colliding_balls_keep_their_momentum(records):
    record = records["collide"]
    masses = 1000.0 * 4.0 / 3.0 * np.pi * np.array([0.1, 0.07]) ** 3
    momentum = record.joint_qd[:, 0] * masses[0] + record.joint_qd[:, 6] * masses[1]
    scale = np.abs(masses * BALL_SPEEDS).sum()
    np.testing.assert_allclose(momentum, masses @ BALL_SPEEDS, atol=1e-5 * scale)
    assert record.joint_qd[-1, 6] - record.joint_qd[-1, 0] >= -1e-5, "they do not pass through each other"
    energy = masses[0] * record.joint_qd[:, 0] ** 2 + masses[1] * record.joint_qd[:, 6] ** 2
    assert np.all(energy <= energy[0] * (1.0 + 1e-5)), "a dissipative contact adds no energy"
    assert energy[-1] < 0.99 * energy[0]


def test_joint_limit_gives_by_load_over_stiffness(records):
    record = records["limit"]
    assert record.joint_q[-1, 0] == pytest.approx(-0.01 - 2.0 * GRAVITY / LIMIT_STIFFNESS, rel=1e-3)
    assert abs(record.joint_qd[-1, 0]) < 1e-5


def test_position_drive_sags_by_load_over_gain(records):
    record = records["hold"]
    assert record.joint_q[-1, 0] == pytest.approx(0.05 - 2.0 * GRAVITY / HOLD_GAIN, rel=1e-3)


def test_position_drive_balances_the_moment_of_the_weight(records):
    """40 (1 - q) = m g l sin q."""
    angle = records["hold_rod"].joint_q[-1, 0]
    assert 40.0 * (1.0 - angle) == pytest.approx(ROD_MASS * GRAVITY * ROD_LENGTH * np.sin(angle), rel=1e-3)


def test_saturated_drive_pushes_with_its_effort_limit(records, preset):
    record = records["saturated"]
    expected = discrete_fall(record.time, 0.0, WEAK_EFFORT / 2.0 - GRAVITY, preset)
    np.testing.assert_allclose(record.joint_q[:, 0], expected, atol=rounding(expected))


def test_effort_limit_of_zero_means_no_effort(records, preset):
    record = records["no_effort"]
    expected = discrete_fall(record.time, 0.0, -GRAVITY, preset)
    np.testing.assert_allclose(record.joint_q[:, 0], expected, atol=rounding(expected))


def test_velocity_drive_lags_by_load_over_gain(records):
    record = records["track_speed"]
    assert record.joint_qd[-1, 0] == pytest.approx(0.3 - 2.0 * GRAVITY / 400.0, rel=1e-3)


def test_damped_fall_reaches_its_terminal_speed(records):
    """V' = -g - (d / m) v, implicit in the damping: v_n = v_inf (1 - (1 + dt d / m)^-n)."""
    record = records["damped"]
    rate = 20.0 / 2.0
    steps = np.arange(len(record.time))
    expected = -GRAVITY / rate * (1.0 - (1.0 + DT * rate) ** -steps)
    np.testing.assert_allclose(record.joint_qd[:, 0], expected, atol=1e-5)


def test_dry_friction_above_the_load_holds(records):
    """In stiction only the regularization moves it: v = R f dt with R = sigma / m."""
    record = records["dry_hold"]
    np.testing.assert_allclose(record.joint_qd[-1, 0], -SIGMA * GRAVITY * DT, rtol=0.01)


def test_dry_friction_below_the_load_takes_its_share(records):
    record = records["dry_slip"]
    expected = -(GRAVITY - 8.0 / 2.0) * record.time
    np.testing.assert_allclose(record.joint_qd[:, 0], expected, atol=rounding(expected))


def test_armature_adds_inertia_but_no_weight(records):
    record = records["armature"]
    expected = -2.0 * GRAVITY / (2.0 + 3.0) * record.time
    np.testing.assert_allclose(record.joint_qd[:, 0], expected, atol=rounding(expected))
