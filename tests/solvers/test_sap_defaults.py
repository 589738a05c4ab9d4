"""What `SolverSAP` does with nothing set: no sinking, slip, explosion, loss of spin or precision."""

import warnings

import numpy as np
import pytest

from pluriverse import JointTargetMode, ModelBuilder, ModelFlags, ShapeConfig, Simulation, SolverSAP, eval_fk
from pluriverse.warnings import DeepContactError, DeepContactWarning

GRAVITY = 9.81
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
FLOAT32_ROUNDING = 2.0**-24


def simulate(
    builder: ModelBuilder,
    dt: float,
    duration: float,
    *,
    joint_q=None,
    joint_qd=None,
    reported: bool = False,
    **options,
):
    """Simulate so long, and return the simulation."""
    model = builder.finalize("cpu")
    simulation = Simulation(model, SolverSAP(model, **options), dt=dt, threads=1)
    if joint_q is not None:
        simulation.state.joint_q.assign(np.asarray(joint_q, np.float32))
    if joint_qd is not None:
        simulation.state.joint_qd.assign(np.asarray(joint_qd, np.float32))
    eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
    simulation.step(round(duration / dt))
    if reported:
        simulation.report()
    return simulation


def add_boxes(builder: ModelBuilder, masses, half: float | None = None) -> list[float]:
    """Stack boxes of given masses, of water's density unless a size is given, and return their heights."""
    heights, top = [], 0.0
    for mass in masses:
        side = 0.5 * (mass / 1000.0) ** (1.0 / 3.0) if half is None else half
        body = builder.add_body(xform=((0.0, 0.0, top + side), UPRIGHT))
        config = ShapeConfig(density=mass / (8.0 * side**3), gap=0.002)
        builder.add_shape_box(body, hx=side, hy=side, hz=side, cfg=config)
        heights.append(top + side)
        top += 2.0 * side
    return heights


@pytest.mark.parametrize("dt", [0.002, 0.02])
def test_nothing_sinks_whatever_it_weighs(dt):
    """Boxes of 1 g to 1e9 kg rest within 10 µm of where they touch, a stack of 1, 100 and 1 kg in 0.5 mm.

    Near rigid, w F beta^2 h (h + tau) / 4 pi^2 is 1 µm for a load of its own weight, 200 µm for a hundred
    times it.
    """
    builder, heights = ModelBuilder(), []
    for exponent in range(-3, 10):
        world = ModelBuilder()
        heights += add_boxes(world, (10.0**exponent,), half=None if exponent < 3 else 0.5)
        builder.add_world(world)
    world = ModelBuilder()
    stack = add_boxes(world, (1.0, 100.0, 1.0), half=0.1)
    builder.add_world(world)
    builder.add_ground_plane()
    with simulate(builder, dt, 1.0) as simulation:
        z = simulation.state.body_q.numpy()[:, 2]
        np.testing.assert_allclose(z[: len(heights)], heights, rtol=0.0, atol=1e-5)
        np.testing.assert_allclose(z[len(heights) :], stack, rtol=0.0, atol=5e-4)
        assert not simulation.solver.unconverged_step_count.numpy().any()


def test_a_fallback_stiffness_that_is_given_acts():
    """Where no stiffness is given a box rests on four springs, half as stiff each as one surface."""
    builder = ModelBuilder()
    heights = add_boxes(builder, (100.0,), half=0.5)
    builder.add_ground_plane()
    with simulate(builder, 0.005, 1.0, fallback_stiffness=1e6) as simulation:
        depth = heights[0] - simulation.state.body_q.numpy()[0, 2]
    assert depth == pytest.approx(100.0 * GRAVITY / (4.0 * 5e5), rel=0.02)


def test_a_stiffness_that_is_given_is_the_one_that_acts_under_a_heavy_load():
    """A cube of 1 kg below 101 kg sinks by load / stiffness: the near-rigid bound does not soften it."""
    builder = ModelBuilder()
    builder.default_shape_cfg.ke = 2e7
    heights = add_boxes(builder, (1.0, 100.0, 1.0), half=0.1)
    for shape in range(3):
        builder.shape_material_ke[shape] = 2e7
    builder.add_ground_plane(cfg=ShapeConfig(ke=2e7))
    with simulate(builder, 0.002, 1.0) as simulation:
        depth = heights[0] - simulation.state.body_q.numpy()[0, 2]
    # Four corners, each of half the stiffness of one surface.
    assert depth == pytest.approx(102.0 * GRAVITY / (4.0 * 1e7), rel=0.02)


@pytest.mark.parametrize(("solref", "dt"), [("0.015 1", 0.002), ("0.1 1", 0.005), ("-5000 -100", 0.005)])
def test_a_solref_means_the_same_depth_for_every_mass(solref, dt):
    """Boxes of 10 g to 1000 kg from MJCF sink by g / ke_per_mass, ke_per_mass = k / (1 - dmax).

    A stiffness for 1 kg, as once, let a humanoid's feet of `solref=".015 1"` sink by 22 mm, and a ton by
    half a metre. MuJoCo itself takes the mass of the body for each of the four contacts, and the mean of both
    solrefs.
    """
    builder = ModelBuilder()
    for mass in (0.01, 1.0, 100.0, 1000.0):
        world, half = ModelBuilder(), 0.5 * (mass / 1000.0) ** (1.0 / 3.0)
        world.add_mjcf(
            f"""<mujoco><worldbody><body pos="0 0 {half}"><freejoint/>
            <geom type="box" size="{half} {half} {half}" mass="{mass}" solref="{solref}"/>
            </body></worldbody></mujoco>"""
        )
        builder.add_world(world)
    builder.add_ground_plane()
    start = [0.5 * (mass / 1000.0) ** (1.0 / 3.0) for mass in (0.01, 1.0, 100.0, 1000.0)]
    with simulate(builder, dt, 2.0) as simulation:
        depth = np.array(start) - simulation.state.body_q.numpy()[:, 2]
    first, second = (float(number) for number in solref.split())
    stiffness = -first if first < 0.0 else 1.0 / (first * second) ** 2
    np.testing.assert_allclose(depth, GRAVITY / (20.0 * stiffness), rtol=0.03, atol=3e-6)


def test_worlds_that_rest_deep_are_named():
    """A box on soft ground sinks by 10 mm: a warning says so once, an error in strict mode."""
    builder = ModelBuilder()
    for stiffness in (None, 2e3):
        world = ModelBuilder()
        add_boxes(world, (8.0,), half=0.1)
        if stiffness is not None:
            world.shape_material_ke[0] = stiffness
        builder.add_world(world)
    builder.add_ground_plane()
    with pytest.warns(DeepContactWarning, match="world 1: shapes rest deeper") as caught:
        simulation = simulate(builder, 0.005, 1.0, reported=True)
    assert [warning.message.worlds for warning in caught] == [(1,)]
    pair = {int(found.numpy()[1]) for found in (simulation.solver.deep_shape0, simulation.solver.deep_shape1)}
    assert pair == {1, 2}, "the box of that world and the ground"
    assert all(name in str(caught[0].message) for name in ("(index 1, world 1)", "(index 2)"))
    load = 8.0 * GRAVITY / (4.0 * 2e3)  # the ground is near rigid, the box is the softer spring
    assert simulation.solver.last_resting_depth.numpy()[1] == pytest.approx(load, rel=0.02)
    with simulation:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            simulation.step(10)  # each world is named once
        simulation.solver.reset_runtime_state()
        simulation.solver.report(strict=True)
        with pytest.warns(DeepContactWarning):
            simulation.step(100)
        simulation.solver.reset_runtime_state()
        simulation.solver.rested_deep.fill_(1)
        with pytest.raises(DeepContactError, match="resting_depth_limit"):
            simulation.solver.report(strict=True)


def make_pressed_card(half_thickness: float) -> ModelBuilder:
    """Return a builder of a card of 5 g on the ground, below a block of 20 kg."""
    builder, top = ModelBuilder(), 0.0
    builder.add_ground_plane()
    for half, mass in ((half_thickness, 0.005), (0.05, 20.0)):
        body = builder.add_body(xform=((0.0, 0.0, top + half), UPRIGHT))
        config = ShapeConfig(density=mass / (8.0 * 0.05 * 0.05 * half))
        builder.add_shape_box(body, hx=0.05, hy=0.05, hz=half, cfg=config)
        top += 2.0 * half
    return builder


def test_what_is_crushed_is_named_however_thin_it_is():
    """A block presses a card of 2 mm flat: 1 mm in the ground and 1 mm in itself. One of 20 mm holds."""
    builder = ModelBuilder()
    for half in (0.01, 0.001):
        builder.add_world(make_pressed_card(half))
    model = builder.finalize("cpu")
    simulation = Simulation(model, SolverSAP(model), dt=0.005)
    with pytest.warns(DeepContactWarning, match=r"world 1: .* 0\.005 m or 0\.3 of the thickness") as caught:
        simulation.step(100)
    assert [warning.message.worlds for warning in caught] == [(1,)]
    assert "shape 'shape_1' (index 4, world 1)" in str(caught[0].message)
    # The size that counts is that of the moment.
    simulation.reset()
    model.shape_scale.assign(np.array([[0, 0, 0], [0.05, 0.05, 0.001], [0.05] * 3] * 2, dtype=np.float32))
    simulation.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    with pytest.warns(DeepContactWarning, match="world 0:"):
        simulation.step(100)
    # A depth that is given holds alone.
    model = make_pressed_card(0.001).finalize("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulation(model, SolverSAP(model, resting_depth_limit=0.01), dt=0.005).step(100)


def test_dissipation_does_not_act_before_surfaces_touch():
    """A box falls freely until it touches, however far off its contacts are found: v = g t."""
    builder = ModelBuilder()
    builder.rigid_gap = 0.1
    body = builder.add_body(xform=((0.0, 0.0, 0.15), UPRIGHT))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    builder.add_ground_plane()
    dt, step_count = 0.002, 45  # 0.05 m take 101 ms
    with simulate(builder, dt, dt * step_count) as simulation:
        speed = simulation.state.joint_qd.numpy()[2]
    assert speed == pytest.approx(-GRAVITY * dt * step_count, rel=step_count * FLOAT32_ROUNDING)


@pytest.mark.parametrize("dt", [0.001, 0.005, 0.02])
def test_a_light_link_with_a_load_does_not_explode(dt):
    """Two links of 0.1 and 5 kg that hang 0.05 rad off: the energy of the start allows 0.6 rad/s at most."""
    builder = ModelBuilder()
    light = builder.add_link(mass=0.1, inertia=1e-4 * np.eye(3))
    heavy = builder.add_link(mass=5.0, inertia=5e-3 * np.eye(3))
    up, down = ((0.0, 0.0, 0.2), UPRIGHT), ((0.0, 0.0, -0.2), UPRIGHT)
    joints = [
        builder.add_joint_revolute(-1, light, axis=(0.0, 1.0, 0.0), child_xform=up),
        builder.add_joint_revolute(light, heavy, axis=(0.0, 1.0, 0.0), parent_xform=down, child_xform=up),
    ]
    builder.add_articulation(joints)
    with simulate(builder, dt, 0.0, joint_q=[0.05, 0.0]) as simulation:
        largest = 0.0
        for _ in range(50):
            simulation.step(round(0.2 / dt))
            largest = max(largest, float(np.abs(simulation.state.joint_qd.numpy()).max()))
    assert largest < 0.6


def make_gripper(finger_mass: float, load: float) -> ModelBuilder:
    """Two fingers on a heavy hand that a stiff drive holds, and a box between them."""
    builder = ModelBuilder()
    hand = builder.add_link(mass=2.0, inertia=0.01 * np.eye(3))
    slide = builder.add_joint_prismatic(
        -1,
        hand,
        axis=(0.0, 0.0, 1.0),
        target_ke=1e5,
        target_kd=1e3,
        actuator_mode=JointTargetMode.POSITION,
    )
    config = ShapeConfig(density=0.0, mu=0.8, gap=0.002)
    joints = [slide]
    for side in (1.0, -1.0):
        finger = builder.add_link(mass=finger_mass, inertia=1e-4 * finger_mass * np.eye(3))
        place = ((0.0, 0.0, 0.5), UPRIGHT)
        joints.append(builder.add_joint_prismatic(hand, finger, axis=(side, 0.0, 0.0), parent_xform=place))
        pad = ((0.06 * side, 0.0, 0.0), UPRIGHT)
        builder.add_shape_box(finger, xform=pad, hx=0.01, hy=0.01, hz=0.02, cfg=config)
    builder.add_articulation(joints)
    box = builder.add_body(mass=load, inertia=load * 0.01 / 6.0 * np.eye(3), xform=((0.0, 0.0, 0.5), UPRIGHT))
    builder.add_shape_box(box, hx=0.0499, hy=0.05, hz=0.05, cfg=config)
    return builder


@pytest.mark.parametrize(("finger_mass", "load"), [(0.015, 1.0), (0.072, 200.0)])
def test_light_fingers_hold_a_heavy_load(finger_mass, load):
    """At twice the force that friction needs a load slips by less than a millimetre in two seconds.

    The weight of a contact along the pads is that of the hand and the load: the creep is sigma w gamma, 0.5
    mm here for the heavy load, and not what the mobility of a finger alone would make of it.
    """
    model = make_gripper(finger_mass, load).finalize("cpu")
    with Simulation(model, SolverSAP(model), dt=0.002, threads=1) as simulation:
        force = simulation.control.joint_f.numpy()
        force[1:3] = -load * GRAVITY / 0.8  # two fingers, each with half the load at half the friction
        simulation.control.joint_f.assign(force)
        simulation.step(250)

        def height() -> float:
            z = simulation.state.body_q.numpy()[:, 2]
            return float(z[3] - z[0])

        before = height()
        simulation.step(1000)
        assert abs(height() - before) < 1e-3


def angular_momentum(simulation: Simulation, body: int) -> np.ndarray:
    """Return the angular momentum about the centre of mass [kg·m²/s], world axes."""
    inertia = simulation.model.body_inertia.numpy()[body].astype(float)
    x, y, z, w = simulation.state.body_q.numpy()[body, 3:].astype(float)
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rotation = np.eye(3) + 2.0 * w * skew + 2.0 * skew @ skew
    return rotation @ inertia @ rotation.T @ simulation.state.body_qd.numpy()[body, 3:].astype(float)


def euler_equations(inertia: np.ndarray, spin: np.ndarray, duration: float) -> np.ndarray:
    """Return the angular velocity in body axes after so long, by Runge and Kutta's method in small steps."""
    omega, step_count = spin.copy(), round(duration / 2e-4)
    h = duration / step_count

    def rate(w: np.ndarray) -> np.ndarray:
        return np.cross(inertia * w, w) / inertia

    for _ in range(step_count):
        a = rate(omega)
        b = rate(omega + 0.5 * h * a)
        c = rate(omega + 0.5 * h * b)
        omega = omega + h / 6.0 * (a + 2.0 * b + 2.0 * c + rate(omega + h * c))
    return omega


SPIN = np.array([0.01, 5.0, 0.01])
INERTIA = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(("dt", "duration"), [(0.001, 10.0), (0.02, 60.0)])
def test_a_body_that_tumbles_about_its_middle_axis_keeps_its_angular_momentum(dt, duration):
    """|L| and its direction stay to 1e-4 wherever the origin of the body is, and the centre moves straight.

    Rounding alone would make step_count * 2^-24 = 6e-4 if all of it added up in 10 s.
    """
    builder = ModelBuilder(gravity=0.0)
    builder.add_body(mass=1.0, inertia=np.diag(INERTIA))
    builder.add_body(mass=1.0, inertia=np.diag(INERTIA))
    builder.body_com[1] = (0.3, 0.2, -0.1)
    start = [0.0, 0.0, 0.0, *SPIN, 1.0, 0.0, 0.0, *SPIN]
    with simulate(builder, dt, 0.0, joint_qd=start) as simulation:
        before = [angular_momentum(simulation, body) for body in range(2)]
        simulation.step(round(duration / dt))
        for body in range(2):
            error = np.linalg.norm(angular_momentum(simulation, body) - before[body])
            assert error < 1e-4 * np.linalg.norm(before[body])
        np.testing.assert_allclose(simulation.state.joint_qd.numpy()[6:9], [1.0, 0.0, 0.0], atol=1e-5)


def test_the_middle_axis_turns_over_when_euler_s_equations_say():
    """The spin in body axes follows Euler's equations through the first turn-over, at a step of 5 ms.

    The phase error of the midpoint rule, (omega h)^2 / 24 = 3e-5 of the time, and rounding at the start,
    which the unstable axis multiplies, leave a percent.
    """
    builder = ModelBuilder(gravity=0.0)
    builder.add_body(mass=1.0, inertia=np.diag(INERTIA))
    spin = np.array([0.2, 5.0, 0.2])
    duration = 3.0
    with simulate(builder, 0.005, duration, joint_qd=[0.0, 0.0, 0.0, *spin]) as simulation:
        x, y, z, w = simulation.state.body_q.numpy()[0, 3:].astype(float)
        omega = simulation.state.body_qd.numpy()[0, 3:].astype(float)
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rotation = np.eye(3) + 2.0 * w * skew + 2.0 * skew @ skew
    expected = euler_equations(INERTIA, spin, duration)
    np.testing.assert_allclose(rotation.T @ omega, expected, rtol=0.0, atol=0.05)


@pytest.mark.parametrize("dt", [0.001, 0.02])
def test_a_top_precesses_as_gravity_turns_its_angular_momentum(dt):
    """Mean rate of a fast top on a ball joint, also where it turns by four radians in a step.

    A steady precession of rate W has m g l = W (I_3 w_3 - I_1 W cos(tilt)); released at rest it nods about
    that.
    """
    mass, length, spin, tilt = 1.0, 0.2, 200.0, 0.5
    axial, across = 0.005, 0.01 + mass * length**2
    builder = ModelBuilder()
    top = builder.add_link(mass=mass, inertia=np.diag([0.01, 0.01, axial]))
    builder.add_articulation([builder.add_joint_ball(-1, top, child_xform=((0.0, 0.0, -length), UPRIGHT))])
    start = [np.sin(tilt / 2.0), 0.0, 0.0, np.cos(tilt / 2.0)]
    turn = spin * np.array([0.0, -np.sin(tilt), np.cos(tilt)])
    azimuth = []
    with simulate(builder, dt, 0.0, joint_q=start, joint_qd=turn) as simulation:
        for _ in range(200):
            simulation.step(round(0.02 / dt))
            centre = simulation.state.body_q.numpy()[0]
            x, y, z, w = centre[3:].astype(float)
            azimuth.append(np.arctan2(2.0 * (y * z - x * w), 2.0 * (x * z + y * w)))
    angle = np.unwrap(azimuth)
    rate = (angle[-1] - angle[0]) / (0.02 * (len(angle) - 1))
    load, momentum = mass * GRAVITY * length, axial * spin
    steady = (momentum - np.sqrt(momentum**2 - 4.0 * across * np.cos(tilt) * load)) / (
        2.0 * across * np.cos(tilt)
    )
    assert rate == pytest.approx(steady, rel=0.015)


@pytest.mark.parametrize("link_count", [40, 80])
def test_a_long_chain_accelerates_as_its_forces_say(link_count):
    """The default's free motion agrees with that of all stages in double precision; half of it did not."""
    builder, joints, parent = ModelBuilder(), [], -1
    for link in range(link_count):
        body = builder.add_link(mass=0.1, inertia=1e-4 * np.eye(3))
        joints.append(
            builder.add_joint_revolute(
                parent,
                body,
                axis=(0.0, 1.0, 0.0),
                parent_xform=((0.0, 0.0, -0.05 if link else 0.0), UPRIGHT),
                child_xform=((0.0, 0.0, 0.05), UPRIGHT),
            )
        )
        parent = body
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    rng = np.random.default_rng(0)
    state = model.state()
    state.joint_q.assign(rng.uniform(-0.5, 0.5, link_count).astype(np.float32))
    eval_fk(model, state.joint_q, state.joint_qd, state)
    changes = []
    for options in ({}, {"contact_preset_variant": "approx64"}):
        following = model.state()
        SolverSAP(model, **options).step(state, following, None, None, 0.002)
        changes.append(following.joint_qd.numpy().astype(float))
    assert np.abs(changes[0] - changes[1]).max() < 1e-6 * np.abs(changes[1]).max()


def test_a_search_that_runs_out_of_trials_falls_back():
    """Arms thrown into rigid stops converge in every step; backtracking alone gave up in a tenth of them.

    Six worlds of eight links from 10 g to 10 kg, with stops of 1e12 N m/rad.
    """
    dt, builder = 0.005, ModelBuilder()
    for seed in range(6):
        rng, world, parent, joints = np.random.default_rng(seed), ModelBuilder(), -1, []
        for _link in range(8):
            body = world.add_link(mass=float(10.0 ** rng.uniform(-2.0, 1.0)), inertia=1e-3 * np.eye(3))
            joint = world.add_joint_revolute(
                parent,
                body,
                axis=tuple(np.eye(3)[rng.integers(3)]),
                child_xform=((0.0, 0.0, 0.2), UPRIGHT),
                limit_lower=-0.1,
                limit_upper=0.1,
                limit_ke=1e12,
                limit_kd=1e12 * dt,
            )
            joints.append(joint)
            parent = body
        world.add_articulation(joints)
        builder.add_world(world)
    start = np.random.default_rng(1).uniform(-15.0, 15.0, 48)
    with simulate(builder, dt, 1.5, joint_qd=start) as simulation:
        np.testing.assert_array_equal(simulation.solver.unconverged_step_count.numpy(), 0)
