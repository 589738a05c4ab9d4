"""Torsional and rolling friction of contact: balls that spin, roll, stand on slopes and slide."""

import numpy as np
import pytest
import warp as wp

from pluriverse import ModelBuilder, ShapeConfig, Simulation, SolverSAP

GRAVITY = 9.81
RADIUS = 0.1
MASS = 4.0
INERTIA = 0.4 * MASS * RADIUS**2
DT = 0.002
PRESETS = ("approx32", "drake")
SETTLED = 40
"""Steps after which a contact that slips or turns carries the weight: four times h + tau. At first it lifts
the ball by mu times its slip times h + tau, as all contacts of the convex problem do."""


def scene(velocity, *, mu=0.5, torsional=0.0, rolling=0.0, slope=0.0, ground=None) -> ModelBuilder:
    """A ball on a plane, with gravity turned by the slope."""
    builder = ModelBuilder()
    values = {"density": 0.0, "mu": mu, "ke": 1e7}
    cfg = ShapeConfig(mu_torsional=torsional, mu_rolling=rolling, **values)
    builder.add_ground_plane(cfg=cfg if ground is None else ShapeConfig(**ground, **values))
    place = wp.transform((0.0, 0.0, RADIUS), wp.quat_identity())
    body = builder.add_body(xform=place, mass=MASS, inertia=INERTIA * np.eye(3))
    builder.add_shape_sphere(body, radius=RADIUS, cfg=cfg)
    builder.joint_qd[:] = velocity
    builder.gravity = GRAVITY * np.array([np.sin(slope), 0.0, -np.cos(slope)])
    return builder


def run(builder: ModelBuilder, steps: int, **options) -> tuple[np.ndarray, np.ndarray, SolverSAP]:
    """Return coordinates [step, 7] and velocities [step, 6]."""
    model = builder.finalize("cpu")
    solver = SolverSAP(model, **({"torsional_friction": True} | options))
    q, qd = [], []
    with Simulation(model, solver, dt=DT, threads=1, strict=True) as simulation:
        for _ in range(steps):
            simulation.step()
            q.append(simulation.state.joint_q.numpy().copy())
            qd.append(simulation.state.joint_qd.numpy().copy())
        wrench = solver.body_contact_force(simulation.contacts).numpy()
    return np.array(q, dtype=float), np.array(qd, dtype=float), wrench[0]


@pytest.mark.parametrize("preset", PRESETS)
def test_spinning_ball_slows_by_the_torsional_moment(preset):
    """The rate falls by mu_torsional m g / I, and stays zero once it is; the moment can be read."""
    torsional, rate = 0.005, 5.0
    slowing = torsional * MASS * GRAVITY / INERTIA
    builder = scene((0, 0, 0, 0, 0, rate), torsional=torsional)
    _, qd, wrench = run(builder, 160, contact_preset_variant=preset)
    lost = qd[SETTLED, 5] - qd[SETTLED:, 5]
    time = DT * np.arange(160 - SETTLED)
    np.testing.assert_allclose(lost, slowing * time, atol=0.01 * slowing * time[-1])
    # The lift subsides with the spin, at mu_torsional d omega / dt: a force of m mu_torsional (h + tau) times
    # the rate at which that changes, which is zero here.
    expected = [0, 0, MASS * GRAVITY, 0, 0, -INERTIA * slowing]
    np.testing.assert_allclose(wrench, expected, atol=1e-3 * MASS * GRAVITY)
    _, qd, _ = run(builder, 400, contact_preset_variant=preset)
    assert np.abs(qd[-1]).max() < 1e-3


@pytest.mark.parametrize("preset", PRESETS)
def test_rolling_ball_comes_to_rest_after_a_known_distance(preset):
    """It slows by 5/7 mu_rolling g / r, rolls v^2 / (2 a) far, and stays where it is."""
    rolling, speed = 0.01, 0.5
    slowing = 5.0 / 7.0 * rolling * GRAVITY / RADIUS
    builder = scene((speed, 0, 0, 0, speed / RADIUS, 0), rolling=rolling)
    q, qd, _ = run(builder, 500, contact_preset_variant=preset)
    way = q[-1, 0] - q[SETTLED, 0]
    np.testing.assert_allclose(way, 0.5 * qd[SETTLED, 0] ** 2 / slowing, rtol=0.01)
    assert np.abs(qd[-1]).max() < 1e-3
    # Sharing the cone, friction gives way by (mu_rolling / (mu r))^2 of the speed, and by stiction's creep.
    slip = qd[:200, 0] - RADIUS * qd[:200, 4]
    assert np.abs(slip).max() < (2.0 * (rolling / (0.5 * RADIUS)) ** 2 + 0.01) * speed


def test_ball_stands_on_a_slope_up_to_a_known_one():
    """Force and moment that hold it share the cone: tan(a)^2 (1 / mu^2 + r^2 / mu_rolling^2) <= 1.

    Beyond, the moment that the force F leaves slows it: (I + m r^2) acceleration = m g r sin(a) - M.
    """
    mu, rolling = 0.5, 0.01
    steepest = 1.0 / np.hypot(1.0 / mu, RADIUS / rolling)
    for share in (0.97, 1.2):
        slope = np.arctan(share * steepest)
        _, qd, _ = run(scene((0.0,) * 6, mu=mu, rolling=rolling, slope=slope), 200)
        weight, push = GRAVITY * np.cos(slope), GRAVITY * np.sin(slope)  # per mass
        acceleration = 0.0
        for _ in range(50 if share > 1.0 else 0):
            held = rolling * weight * np.sqrt(1.0 - ((push - acceleration) / (mu * weight)) ** 2)
            acceleration = (push - held / RADIUS) / 1.4
        gained = qd[-1, 0] - qd[SETTLED, 0]
        np.testing.assert_allclose(gained, acceleration * (199 - SETTLED) * DT, rtol=0.02, atol=5e-4)


def test_sliding_ball_turns_more_easily():
    """On the ellipsoid of the limit surface force and moment share the load: (F/mu N)^2 + (M/mu_s N)^2 = 1.

    They oppose slip v and spin w as F : M = mu^2 v : mu_s^2 w.
    """
    mu, torsional, slip, rate = 0.5, 0.02, 2.0, 40.0
    builder = scene((slip, 0, 0, 0, 0, rate), mu=mu, torsional=torsional)
    _, qd, wrench = run(builder, SETTLED)
    share = np.array([mu * (qd[-1, 0] - RADIUS * qd[-1, 4]), torsional * qd[-1, 5]])
    share /= np.linalg.norm(share)
    np.testing.assert_allclose(wrench[0], -mu * share[0] * wrench[2], rtol=0.02)
    np.testing.assert_allclose(wrench[5], -torsional * share[1] * wrench[2], rtol=0.02)


def test_two_balls_wind_each_other_down():
    """One ball spins on another in space, pressed together: what one loses in spin the other gains."""
    builder = ModelBuilder(gravity=0.0)
    cfg = ShapeConfig(density=0.0, mu=0.5, mu_torsional=0.01, mu_rolling=0.0, ke=1e6)
    for height in (0.0, 2.0 * RADIUS):
        place = wp.transform((0.0, 0.0, height), wp.quat_identity())
        body = builder.add_body(xform=place, mass=MASS, inertia=INERTIA * np.eye(3))
        builder.add_shape_sphere(body, radius=RADIUS, cfg=cfg)
    builder.joint_qd[11] = 6.0
    builder.joint_f[[2, 8]] = 30.0, -30.0
    _, qd, _ = run(builder, 200)
    spins = qd[:, [5, 11]]
    np.testing.assert_allclose(spins.sum(axis=1), 6.0, rtol=1e-4)
    gained = spins[SETTLED:, 0] - spins[SETTLED, 0]
    expected = np.minimum(0.01 * 30.0 / INERTIA * DT * np.arange(200 - SETTLED), 3.0 - spins[SETTLED, 0])
    np.testing.assert_allclose(gained, expected, atol=0.05)


def test_friction_of_a_pair_follows_that_of_sliding():
    """Harmonic mean by default, so against a ground without any there is none; the mean on request."""
    ground = {"mu_torsional": 0.0, "mu_rolling": 0.0}
    builder = scene((0, 0, 0, 0, 0, 5.0), torsional=0.01, ground=ground)
    slowing = 0.005 * MASS * GRAVITY / INERTIA
    _, qd, _ = run(builder, 50, friction_combination="arithmetic_mean")
    np.testing.assert_allclose(5.0 - qd[-1, 5], slowing * 50 * DT, rtol=0.01)
    _, qd, _ = run(builder, 50)
    np.testing.assert_allclose(qd[-1, 5], 5.0, rtol=1e-6)


def test_nothing_turns_more_slowly_unless_asked():
    """Off by default: coefficients change no bit."""
    results = []
    for torsional, rolling in ((0.0, 0.0), (0.1, 0.1)):
        builder = scene((1.0, 0, 0, 0, 3.0, 5.0), torsional=torsional, rolling=rolling)
        results.append(run(builder, 30, torsional_friction=False)[1])
    np.testing.assert_array_equal(*results)
    with pytest.raises(ValueError, match="torsional_friction is 1, but must be True or False"):
        SolverSAP(scene((0.0,) * 6).finalize("cpu"), torsional_friction=1)


def test_spinning_ball_bounces_and_is_braked_by_the_blow():
    """With restitution: the blow (1 + e) v_n takes mu_torsional (1 + e) m v_n of the spin's momentum."""
    builder = scene((0, 0, -2.0, 0, 0, 20.0), torsional=0.005)
    builder.shape_material_restitution[:] = 0.5
    _, qd, _ = run(builder, 10)
    blow = 1.5 * 2.0 * MASS
    np.testing.assert_allclose(qd[-1, 2], 1.0 - 9 * GRAVITY * DT, atol=0.02 + 0.005 * 20.0)
    np.testing.assert_allclose(20.0 - qd[-1, 5], 0.005 * blow / INERTIA, rtol=0.05)
