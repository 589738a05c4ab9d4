"""Distance joints against closed forms: ropes that go taut, rods, struts, weights that hang."""

import numpy as np
import pytest

from pluriverse import EqType, JointType, ModelBuilder, ModelFlags, Simulation, SolverSAP

GRAVITY = 9.81
DT = 0.002
IDENTITY = (0.0, 0.0, 0.0, 1.0)
EXACT = {"contact_preset_variant": "approx64"}
BALL = {"mass": 2.0, "inertia": 0.01 * np.eye(3)}


def simulation_of(builder: ModelBuilder, dt: float = DT, **options) -> Simulation:
    model = builder.finalize("cpu")
    return Simulation(model, SolverSAP(model, **(EXACT | options)), dt=dt)


def tethered(position, *, least: float, most: float, gravity: float = 0.0) -> ModelBuilder:
    """A ball whose centre is tied to a point of the world at (0, 0, 1)."""
    builder = ModelBuilder(gravity=gravity)
    x, y, z = position
    ball = builder.add_link(xform=((x, y, z + 1.0), IDENTITY), **BALL)
    joint = builder.add_joint_distance(
        -1,
        ball,
        parent_xform=((0.0, 0.0, 1.0), IDENTITY),
        min_distance=least,
        max_distance=most,
        label="rope",
    )
    builder.add_articulation([joint])
    return builder


def position_of(simulation: Simulation) -> np.ndarray:
    return simulation.state.body_q.numpy()[0, :3] - [0.0, 0.0, 1.0]


def test_a_ball_flies_straight_until_the_rope_is_taut_and_then_in_a_circle():
    """Slack it feels nothing. Taut it keeps its angular momentum and loses the radial speed for good."""
    speed, miss, length = 3.0, 0.2, 1.0
    builder = tethered((0.0, miss, 0.0), least=-1.0, most=length)
    builder.joint_qd[0] = speed
    with simulation_of(builder) as simulation:
        simulation.step(100)  # the rope begins to brake at 3 h v before its end: not yet
        assert position_of(simulation)[0] == pytest.approx(speed * simulation.time, rel=1e-6)
        assert simulation.solver.workspace.equality_impulse.numpy()[0, 0] == 0.0
        simulation.step(200)
        for _ in range(5):
            simulation.step(50)
            at, velocity = position_of(simulation), simulation.state.body_qd.numpy()[0, :3]
            # The curvature of the path stretches it by v² h² / r a step; a third of it is taken back.
            assert np.linalg.norm(at) == pytest.approx(length, abs=4 * (miss * speed * DT) ** 2)
            # Positions move at the mean velocity of a step: h/2 v x dv of angular momentum while it catches.
            assert np.cross(at, velocity)[2] == pytest.approx(-miss * speed, abs=0.5 * DT * speed**2)
            assert np.linalg.norm(velocity) == pytest.approx(miss * speed / length, abs=0.5 * DT * speed**2)


def test_a_strut_keeps_a_ball_away():
    """A least distance pushes outward only: the ball slides along the sphere and leaves it straight."""
    speed, miss, least = 2.0, 0.3, 0.5
    builder = tethered((-1.0, miss, 0.0), least=least, most=-1.0)
    builder.joint_qd[0] = speed
    with simulation_of(builder) as simulation:
        nearest = 1.0
        for _ in range(300):
            simulation.step()
            nearest = min(nearest, np.linalg.norm(position_of(simulation)))
        assert nearest == pytest.approx(least, abs=1e-3)
        at, velocity = position_of(simulation), simulation.state.body_qd.numpy()[0, :3]
        assert np.linalg.norm(at) > 1.1 * least
        # Central forces keep the angular momentum; at the sphere only the tangential speed is left.
        assert np.cross(at, velocity)[2] == pytest.approx(-miss * speed, abs=0.5 * DT * speed**2)
        assert np.linalg.norm(velocity) == pytest.approx(miss * speed / least, rel=1e-2)


@pytest.mark.parametrize("preset", ["approx32", "approx64"])
def test_a_body_at_rest_at_a_bound_without_load_converges(preset):
    """Pushed out by a strut it comes to rest at the end of the rope, and every step meets its tolerance."""
    builder = tethered((0.0, 0.0, 0.0), least=0.5, most=1.0)
    model = builder.finalize("cpu")
    solver = SolverSAP(model, contact_preset_variant=preset)
    with Simulation(model, solver, dt=0.01, strict=True) as simulation:
        simulation.step(200)
        assert simulation.report().unconverged_step_count == 0
        assert np.linalg.norm(position_of(simulation)) == pytest.approx(1.0, abs=1e-6)


def test_a_rod_swings_with_the_period_of_a_pendulum():
    """T = 2 pi sqrt(l / g) for a small swing, of a point that the rod holds at l from both sides."""
    length, swing = 0.8, 0.05
    start = (length * np.sin(swing), 0.0, -length * np.cos(swing))
    builder = tethered(start, least=length, most=length, gravity=-GRAVITY)
    period = 2.0 * np.pi * np.sqrt(length / GRAVITY)
    with simulation_of(builder, position_integration="semi_implicit") as simulation:
        x = []
        for _ in range(round(1.1 * period / DT)):
            simulation.step()
            at = position_of(simulation)
            assert np.linalg.norm(at) == pytest.approx(length, abs=1e-5)
            x.append(at[0])
        down, up = np.flatnonzero(np.diff(np.signbit(x)))[:2]
        assert 2.0 * (up - down) * DT == pytest.approx(period, rel=4 * DT / period)


@pytest.mark.parametrize("preset", ["approx32", "drake"])
def test_a_weight_hangs_on_its_rope(preset):
    """The impulse is -m g h, along the line, and the rope gives way by 3 h² R m g as documented."""
    builder = tethered((0.0, 0.0, -0.999), least=-1.0, most=1.0, gravity=-GRAVITY)
    with simulation_of(builder, contact_preset_variant=preset) as simulation:
        simulation.step(400)
        weight = BALL["mass"] * GRAVITY
        impulse = simulation.solver.workspace.equality_impulse.numpy()[0]
        assert impulse[0] == pytest.approx(-weight * DT, rel=1e-4)
        regularization = 0.1**2 / (4.0 * np.pi**2) / BALL["mass"]
        stretch = -position_of(simulation)[2] - 1.0
        assert stretch == pytest.approx(3.0 * DT**2 * regularization * weight, abs=2e-7)


def test_a_cut_rope_lets_go_and_a_winch_pulls_in():
    """`equality_constraint_enabled` and `joint_limit_upper` act on steps that are recorded already."""
    builder = tethered((0.0, 0.0, -1.0), least=-1.0, most=1.0, gravity=-GRAVITY)
    with simulation_of(builder) as simulation:
        model = simulation.model
        simulation.step(200)
        upper = model.joint_limit_upper.numpy()
        for _ in range(100):
            upper[0] -= 0.002
            model.joint_limit_upper.assign(upper)
            simulation.step(5)
        simulation.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)
        simulation.step(100)
        assert position_of(simulation)[2] == pytest.approx(-0.8, abs=1e-4)
        model.equality_constraint_enabled.fill_(False)
        simulation.step(50)
        fallen = 0.5 * GRAVITY * (50 * DT) ** 2
        assert position_of(simulation)[2] == pytest.approx(-0.8 - fallen, abs=1e-4)


def test_two_bodies_on_a_rod_keep_their_momenta():
    """A dumbbell, the second body hanging on the first: centre of mass, spin and length stay."""
    builder = ModelBuilder(gravity=0.0)
    links = [
        builder.add_link(mass=mass, inertia=1e-4 * np.eye(3), xform=((x, 0.0, 0.0), IDENTITY))
        for mass, x in ((1.0, 0.0), (3.0, 1.2))
    ]
    joints = [
        builder.add_joint_free(links[0]),
        builder.add_joint_distance(
            *links,
            parent_xform=((0.1, 0.0, 0.0), IDENTITY),
            child_xform=((-0.1, 0.0, 0.0), IDENTITY),
            min_distance=1.0,
            max_distance=1.0,
        ),
    ]
    builder.add_articulation(joints)
    builder.joint_qd[:] = [0.5, -0.9, 0.2, 0.0, 0.0, 1.0, 0.0, 1.2, 0.0, 0.0, 0.0, 0.0]
    masses = np.array([1.0, 3.0])[:, None]
    with simulation_of(builder, dt=5e-4) as simulation:
        body_q, body_qd = simulation.state.body_q.numpy(), simulation.state.body_qd.numpy()
        momentum, com = (masses * body_qd[:, :3]).sum(0), (masses * body_q[:, :3]).sum(0) / 4.0
        spin = np.cross(body_q[:, :3] - com, masses * body_qd[:, :3]).sum(0) + 1e-4 * body_qd[:, 3:].sum(0)
        simulation.step(2000)
        body_q, body_qd = simulation.state.body_q.numpy(), simulation.state.body_qd.numpy()
        # In relative coordinates momenta are kept to first order: h w p, with w = 2 rad/s and p = 4 kg m/s.
        np.testing.assert_allclose((masses * body_qd[:, :3]).sum(0), momentum, atol=1e-2)
        now = (masses * body_q[:, :3]).sum(0) / 4.0
        np.testing.assert_allclose(now, com + momentum / 4.0 * simulation.time, atol=2e-3)
        final = np.cross(body_q[:, :3] - now, masses * body_qd[:, :3]).sum(0) + 1e-4 * body_qd[:, 3:].sum(0)
        np.testing.assert_allclose(final, spin, atol=1e-2)


def test_a_rope_beside_the_joints_closes_a_loop():
    """In no articulation, it ties two bodies that other joints move: the tips of two pendulums."""
    builder = ModelBuilder()
    tips = {}
    for x in (-0.5, 0.5):
        link = builder.add_link(mass=1.0, com=(0.0, 0.0, -1.0), inertia=1e-3 * np.eye(3))
        hinge = builder.add_joint_revolute(-1, link, axis="y", parent_xform=((x, 0.0, 0.0), IDENTITY))
        builder.add_articulation([hinge])
        tips[x] = link
    end = ((0.0, 0.0, -1.0), IDENTITY)
    builder.add_joint_distance(
        *tips.values(), max_distance=0.6, parent_xform=end, child_xform=end, label="tie"
    )
    model = builder.finalize("cpu")
    assert model.joint_count == 2
    assert model.equality_constraint_label == ["tie"]
    with Simulation(model, SolverSAP(model, **EXACT), dt=DT) as simulation:
        model.joint_damping.fill_(1.0)
        simulation.step(2000)
        left, right = simulation.state.joint_q.numpy()
        # Both lean in by the same angle, so that the tips are 1 - 2 sin(q) = 0.6 apart.
        assert -left == pytest.approx(0.2, abs=3e-3) or right == pytest.approx(np.arcsin(0.2), abs=1e-4)
        assert right == pytest.approx(-left, abs=1e-5)


def test_the_constraint_stands_in_the_model():
    """The joint keeps its type; in addition there is a constraint of its label, the last of its world."""
    world = tethered((0.3, 0.0, 0.0), least=0.1, most=1.0)
    weight = world.add_link(**BALL)
    world.add_articulation([world.add_joint_free(weight)])
    world.add_equality_constraint_connect(0, weight)
    builder = ModelBuilder(gravity=0.0)
    builder.replicate(world, 2, spacing=(3.0, 0.0, 0.0))
    model = builder.finalize("cpu")
    assert list(model.joint_type.numpy()) == 2 * [JointType.DISTANCE, JointType.FREE]
    assert list(model.equality_constraint_type.numpy()) == 2 * [EqType.CONNECT, EqType.DISTANCE]
    assert model.equality_constraint_label[1] == "rope"
    assert list(model.equality_constraint_joint1.numpy()) == [-1, 0, -1, 2]
    np.testing.assert_allclose(model.joint_q.numpy()[:3], [0.3, 0.0, 0.0], atol=1e-7)
    # The anchor in the world moves with the copy, the pose relative to it stays.
    np.testing.assert_allclose(
        model.body_q.numpy()[2, :3] - model.body_q.numpy()[0, :3], [3.0, 0.0, 0.0], atol=1e-6
    )


@pytest.mark.parametrize(("least", "most"), [(0.5, 0.4), (0.0, 0.0), (-1.0, 0.0), (np.inf, -1.0)])
def test_distances_that_nothing_meets_are_refused(least, most):
    builder = tethered((0.3, 0.0, 0.0), least=least, most=most)
    with pytest.raises(ValueError, match=r"joint 'rope' \(index 0\): min_distance is .* max_distance"):
        builder.finalize("cpu")


def test_a_distance_constraint_is_made_by_its_joint_only():
    builder = ModelBuilder()
    body = builder.add_body(**BALL)
    with pytest.raises(ValueError, match=r"constraint_type is DISTANCE.*add_joint_distance"):
        builder.add_equality_constraint(EqType.DISTANCE, body)
