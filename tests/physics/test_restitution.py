"""Restitution of contact: bounces, oblique impacts, chains of balls, and energy that never grows.

Contacts are rigid while they bounce up to a regularization of 1e-4 of their mobility along the normal,
which takes as much of the change of velocity.
"""

import numpy as np
import pytest
import warp as wp

from pluriverse import ModelBuilder, ModelFlags, ShapeConfig, Simulation, SolverSAP

GRAVITY = 9.81
RADIUS = 0.1
MASS = 4.0
SHORTFALL = 1e-4
"""Of the speed after a bounce, relative to the change of speed."""


def material(e: float, mu: float = 0.0, **values) -> ShapeConfig:
    return ShapeConfig(density=0.0, restitution=e, mu=mu, ke=1e8, **values)


def add_ball(builder: ModelBuilder, position, cfg: ShapeConfig, velocity=(0.0,) * 6) -> int:
    inertia = 0.4 * MASS * RADIUS**2 * np.eye(3)
    body = builder.add_body(xform=wp.transform(position, wp.quat_identity()), mass=MASS, inertia=inertia)
    builder.add_shape_sphere(body, radius=RADIUS, cfg=cfg)
    builder.joint_qd[-6:] = velocity
    return body


def run(builder: ModelBuilder, dt: float, steps: int, **options) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates [step, body, 7] and velocities [step, body, 6] of free bodies."""
    model = builder.finalize("cpu")
    q, qd = [], []
    with Simulation(model, SolverSAP(model, **options), dt=dt, threads=1) as simulation:
        for _ in range(steps + 1):
            q.append(simulation.state.joint_q.numpy().reshape(-1, 7).copy())
            qd.append(simulation.state.joint_qd.numpy().reshape(-1, 6).copy())
            simulation.step()
        assert not simulation.solver.unconverged_step_count.numpy().any()
    return np.array(q, dtype=float), np.array(qd, dtype=float)


def worlds_of_balls(coefficients, *, mu=0.0, height=1.0, velocity=(0.0,) * 6, ground=None) -> ModelBuilder:
    """A ball over the ground in each world; `ground` is its restitution, by default that of the ball."""
    builder = ModelBuilder()
    for place, e in enumerate(coefficients):
        world = ModelBuilder()
        world.add_ground_plane(cfg=material(e if ground is None else ground[place], mu))
        add_ball(world, (0.0, 0.0, RADIUS + height), material(e, mu), velocity)
        builder.add_world(world)
    return builder


def peaks(height: np.ndarray) -> np.ndarray:
    """Heights at which a ball turned to fall."""
    inner = height[1:-1]
    return inner[(inner >= height[:-2]) & (inner > height[2:])]


@pytest.mark.parametrize("dt", [0.002, 0.01])
def test_bounces_are_e_squared_as_high_each(dt):
    """A ball let go from 1 m comes back to e^2, e^4, ...; the energy per mass never grows.

    It turns up to a step early, at a height of up to h v: on average that is worth h v (1 - e) e / 2 of the
    height, at most three times as much, summed over the bounces.
    """
    coefficients = np.array([1.0, 0.8, 0.5])
    q, qd = run(worlds_of_balls(coefficients), dt, round(2.5 / dt))
    height = q[:, :, 2] - RADIUS
    for world, e in enumerate(coefficients):
        found = peaks(height[:, world])[:3]
        expected = e ** (2.0 * np.arange(1, 4))
        speed = np.sqrt(2.0 * GRAVITY)
        early = 1.5 * dt * speed * (1.0 - e) * e
        lost = 2.0 * SHORTFALL * (1.0 + e) / e * np.arange(1, 4)
        # A peak lies between two frames, at most half a step from one of them.
        between = 0.5 * GRAVITY * (0.5 * dt) ** 2
        count = min(len(found), 3)
        assert count >= 2
        np.testing.assert_allclose(
            found[:count], expected[:count] * (1.0 - lost[:count]), atol=2.0 * early + between + 1e-5
        )
    # The velocity of a step moves the ball through it, so at its end it is that of half a step before.
    now = qd[:, :, 2] - 0.5 * GRAVITY * dt
    energy = GRAVITY * height + 0.5 * now**2
    assert np.diff(energy, axis=0).max() < 1e-5


def test_pair_takes_the_mean_and_without_restitution_nothing_bounces():
    """A ball of 0.8 on ground of 0.4 comes back with 0.6 of its speed; one of 0 on ground of 0 stays.

    What its contact of 5e7 N/m is compressed by when it lands, v sqrt(m / k) at most, is given back at the
    rate of its dissipation time of 20 ms: 0.03 m/s.
    """
    _, qd = run(worlds_of_balls([0.8, 0.0], ground=[0.4, 0.0]), 0.002, 300)
    struck = qd[:, :, 2].min(axis=0)
    assert qd[:, 0, 2].max() == pytest.approx(-0.6 * struck[0], rel=2.0 * SHORTFALL / 0.6)
    assert qd[:, 1, 2].max() < 0.03


@pytest.mark.parametrize(("speed", "spin"), [(3.0, 0.0), (0.3, 30.0), (0.2, 0.0)])
def test_oblique_impact_follows_coulomb(speed, spin):
    """Sliding through the impact the ball takes mu (1 + e) v_n off its slip, else what ends the slip.

    The last of the three ends rolling. The normal velocity is -e v_n whatever the friction does.
    """
    e, mu, dt = 0.7, 0.3, 0.002
    # The ball turns up to a step before it touches; its own surface point then has the lever arm of the
    # touch.
    q, qd = run(
        worlds_of_balls([e], mu=mu, height=0.5, velocity=(speed, 0, 0, 0, spin, 0)),
        dt,
        round(0.45 / dt),
        contact_point_mode="witness_point",
    )
    after = int(np.argmax(qd[:, 0, 2]))
    before = qd[after - 1, 0]
    push = (1.0 + e) * -before[2]
    slip = before[0] - RADIUS * before[4]
    kick = -np.sign(slip) * min(mu * push, abs(slip) / 3.5)
    np.testing.assert_allclose(qd[after, 0, 2], -e * before[2], rtol=5e-3)
    np.testing.assert_allclose(qd[after, 0, 0], before[0] + kick, atol=5e-3)
    np.testing.assert_allclose(qd[after, 0, 4], before[4] - kick * RADIUS / (0.4 * RADIUS**2), atol=0.05)
    assert q[:, 0, 2].min() > RADIUS - 0.5 * dt * abs(before[2])


def row_of_balls(gap: float) -> ModelBuilder:
    builder = ModelBuilder(gravity=0.0)
    add_ball(builder, (-0.5, 0.0, 0.0), material(1.0), (2.0, 0, 0, 0, 0, 0))
    for k in range(3):
        add_ball(builder, (k * (2.0 * RADIUS + gap), 0.0, 0.0), material(1.0))
    return builder


def test_row_of_separate_balls_hands_the_speed_on():
    """Balls that do not touch strike one after the other: only the last one leaves, with all the speed."""
    _, qd = run(row_of_balls(gap=0.02), 0.002, 300)
    np.testing.assert_allclose(qd[-1, :, 0], [0.0, 0.0, 0.0, 2.0], atol=2.0 * 12.0 * SHORTFALL)


def test_row_of_touching_balls_is_one_impact():
    """Newton's law holds for all contacts at once, so balls in contact leave together.

    That is the known limit of one coefficient per contact: a real cradle passes the shock on, from ball to
    ball. With mass ratio 1:3 the striker comes back at half its speed and the three leave with half of it;
    energy and momentum are kept.
    """
    _, qd = run(row_of_balls(gap=0.0), 0.002, 200, contact_beta=0.1)
    np.testing.assert_allclose(qd[-1, :, 0], [-1.0, 1.0, 1.0, 1.0], atol=5e-3)
    np.testing.assert_allclose(qd[-1, :, 0].sum(), 2.0, atol=1e-4)


def test_gas_keeps_its_energy():
    """Twenty elastic balls in a box, often several impacts in one step: no step adds energy, few lose any."""
    rng = np.random.default_rng(4)
    builder = ModelBuilder(gravity=0.0)
    wall = material(1.0)
    for axis in np.vstack([np.eye(3), -np.eye(3)]):
        builder.add_shape_plane(plane=(*axis, 0.5), cfg=wall)
    corner = np.stack(np.meshgrid(*[[-0.3, 0.0, 0.3]] * 3), axis=-1).reshape(-1, 3)
    for place in corner[:20]:
        add_ball(builder, place, material(1.0), (*rng.normal(size=3), 0.0, 0.0, 0.0))
    _, qd = run(builder, 0.002, 500)
    energy = 0.5 * MASS * (qd[:, :, :3] ** 2).sum(axis=(1, 2))
    assert (np.abs(np.diff(qd[:, :, :3], axis=0)).max(axis=(1, 2)) > 0.1).sum() > 100, "there are impacts"
    rounding = 2.0**-20 * energy[0]  # velocities are single precision, and twice squared in a step
    assert np.diff(energy).max() < rounding
    assert energy[-1] > 0.9 * energy[0]


def test_heap_of_boxes_comes_to_rest():
    """Boxes with friction and e = 0.5, dropped on each other, lose energy and then lie still."""
    rng = np.random.default_rng(1)
    builder = ModelBuilder()
    cfg = material(0.5, 0.5)
    builder.add_ground_plane(cfg=cfg)
    half = np.array([0.1, 0.08, 0.06])
    inertia = MASS / 3.0 * np.diag(half @ half - half**2)
    for k in range(6):
        turn = rng.normal(size=4)
        pose = wp.transform((*rng.uniform(-0.1, 0.1, 2), 0.3 + 0.25 * k), turn / np.linalg.norm(turn))
        body = builder.add_body(xform=pose, mass=MASS, inertia=inertia)
        builder.add_shape_box(body, hx=half[0], hy=half[1], hz=half[2], cfg=cfg)
    q, qd = run(builder, 0.005, 700)
    turning = np.zeros(len(q))
    for step, (poses, speeds) in enumerate(zip(q, qd, strict=True)):
        for pose, speed in zip(poses, speeds, strict=True):
            omega = np.array(wp.quat_rotate_inv(wp.quat(*pose[3:]), wp.vec3(*speed[3:])))
            turning[step] += 0.5 * omega @ inertia @ omega
    energy = turning + MASS * (GRAVITY * q[:, :, 2] + 0.5 * (qd[:, :, :3] ** 2).sum(axis=2)).sum(axis=1)
    # Corners that turn into the ground within a step are pushed out, which costs up to 1e-3 of the energy.
    assert np.diff(energy).max() < 1e-3 * energy[0]
    assert np.abs(qd[-1]).max() < 0.02


def test_slow_contact_does_not_bounce():
    """Below the threshold a ball stays down, and a resting one does not stir; the threshold is an option."""
    slow = (0.0, 0.0, -0.15, 0.0, 0.0, 0.0)
    for threshold, bounces in ((0.2, False), (0.1, True)):
        builder = worlds_of_balls([0.9], height=0.001, velocity=slow)
        _, qd = run(builder, 0.002, 100, restitution_threshold=threshold)
        assert bool(qd[:, 0, 2].max() > 0.1) is bounces
    _, qd = run(worlds_of_balls([1.0], height=0.0), 0.002, 100)
    assert np.abs(qd).max() < 0.1 * GRAVITY * 0.002  # of what one step of gravity would give


def test_restitution_set_between_steps_acts_on_the_next_step():
    """Nothing bounces until the model is given restitution and notice of it, also in a recorded step."""
    model = worlds_of_balls([0.0]).finalize("cpu")
    with Simulation(model, dt=0.002, threads=1) as simulation:
        simulation.step(10)
        model.shape_material_restitution.fill_(0.8)
        simulation.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
        fastest = 0.0
        for _ in range(280):
            simulation.step()
            fastest = max(fastest, float(simulation.state.joint_qd.numpy()[2]))
    assert fastest == pytest.approx(0.8 * np.sqrt(2.0 * GRAVITY), rel=5e-3)


def test_threshold_is_checked():
    with pytest.raises(ValueError, match=r"restitution_threshold is -1\.0, but must be a finite number >= 0"):
        SolverSAP(worlds_of_balls([0.5]).finalize("cpu"), restitution_threshold=-1.0)


@pytest.mark.parametrize("preset", ["approx32", "drake"])
def test_paddle_throws_a_ball(preset):
    """A kinematic body that moves at V throws a ball at rest away at (1 + e) V.

    It stays where it is without a target, so the ball begins a millimetre above it.
    """
    e, speed = 0.6, 1.5
    builder = ModelBuilder(gravity=0.0)
    paddle = builder.add_link(xform=wp.transform((0.0, 0.0, -0.151), wp.quat_identity()), is_kinematic=True)
    builder.add_shape_box(paddle, hx=0.3, hy=0.3, hz=0.05, cfg=material(e))
    builder.add_articulation([builder.add_joint_free(paddle)])
    builder.joint_qd[:] = (0.0, 0.0, speed, 0.0, 0.0, 0.0)
    add_ball(builder, (0.0, 0.0, 0.0), material(e))
    _, qd = run(builder, 0.002, 150, contact_preset_variant=preset)
    np.testing.assert_allclose(qd[-1, 0], (0.0, 0.0, speed, 0.0, 0.0, 0.0), atol=1e-6)
    # The weight that approx32 makes of a ball is 8/3 of its mobility along the normal.
    np.testing.assert_allclose(qd[-1, 1, 2], (1.0 + e) * speed, rtol=8.0 / 3.0 * SHORTFALL)


@pytest.mark.parametrize("preset", ["approx32", "drake"])
def test_pendulum_bounces_off_a_wall(preset):
    """The tip of a rod comes back at e times its speed, and so does the joint that holds it."""
    e, length = 0.7, 0.5
    builder = ModelBuilder(gravity=0.0)
    rod = builder.add_link(mass=2.0, com=(0.0, 0.0, -0.25), inertia=np.diag([0.05, 0.05, 0.001]))
    tip = builder.add_link(mass=0.5, inertia=1e-3 * np.eye(3))
    cfg = material(e)
    builder.add_shape_sphere(tip, radius=0.05, cfg=cfg)
    hinge = builder.add_joint_revolute(-1, rod, axis="y", parent_xform=((0, 0, 1.0), (0, 0, 0, 1)))
    weld = builder.add_joint_fixed(rod, tip, parent_xform=((0, 0, -length), (0, 0, 0, 1)))
    builder.add_articulation([hinge, weld])
    builder.add_shape_box(-1, xform=((-0.25, 0, 0.5), (0, 0, 0, 1)), hx=0.2, hy=0.2, hz=0.2, cfg=cfg)
    builder.joint_q[0], builder.joint_qd[0] = -0.5, 2.0  # the tip is at +x and swings towards the wall
    model = builder.finalize("cpu")
    rates = []
    with Simulation(
        model, SolverSAP(model, contact_preset_variant=preset), dt=0.002, threads=1
    ) as simulation:
        for _ in range(400):
            simulation.step()
            rates.append(float(simulation.state.joint_qd.numpy()[0]))
    assert rates[0] == pytest.approx(2.0)
    # The contact's weight is many times the mobility of the rod at its tip, so it gives way more.
    assert rates[-1] == pytest.approx(-2.0 * e, rel=0.01)


def test_box_that_falls_flat_bounces_flat():
    """All four corners strike at once: the box comes back at e, without turning, and loses no more."""
    e, height = 0.6, 0.3
    builder = ModelBuilder()
    cfg = material(e, 0.5)
    builder.add_ground_plane(cfg=cfg)
    place = wp.transform((0.0, 0.0, 0.1 + height), wp.quat_identity())
    body = builder.add_body(xform=place, mass=MASS, inertia=MASS / 150.0 * np.eye(3))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=cfg)
    _, qd = run(builder, 0.002, 200)
    struck = qd[:, 0, 2].min()
    np.testing.assert_allclose(qd[:, 0, 2].max(), -e * struck, rtol=5e-3)
    assert np.abs(qd[:, 0, 3:]).max() < 1e-3
