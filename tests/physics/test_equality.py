"""Equality constraints against closed forms: linkages, gears, welds, and how far a constraint gives way."""

import math

import numpy as np
import pytest

from pluriverse import EqType, ModelBuilder, Simulation, SolverSAP, eval_fk

INERTIA = np.diag([0.02, 0.03, 0.04])
IDENTITY = (0.0, 0.0, 0.0, 1.0)
DT = 0.005
PRESETS = ("approx32", "drake")
LENGTHS = (1.0, 0.4, 1.1, 0.8)
"""Ground, crank, coupler and rocker of a four-bar linkage [m]; the crank can turn around (Grashof)."""
CRANK_SPEED = 2.0


def simulate(model, step_count: int, dt: float = DT, **options):
    """The state after `step_count` steps, and the solver."""
    solver = SolverSAP(model, **options)
    state, other = model.state(), model.state()
    for _ in range(step_count):
        solver.step(state, other, None, None, dt)
        assert solver.last_converged.numpy().all()
        state, other = other, state
    return state, solver


def rocker_angle(crank: float) -> float:
    """Angle of the rocker [rad] for an angle of the crank, by the law of cosines along the diagonal."""
    ground, length, coupler, rocker = LENGTHS
    tip = length * np.array([np.cos(crank), np.sin(crank)])
    diagonal = tip - np.array([ground, 0.0])
    distance = np.linalg.norm(diagonal)
    inner = np.arccos((rocker**2 + distance**2 - coupler**2) / (2.0 * rocker * distance))
    return np.arctan2(diagonal[1], diagonal[0]) - inner


def four_bar(kind: EqType, crank: float = 0.7) -> ModelBuilder:
    """A crank driven at constant speed, with a coupler whose tip is tied to that of the rocker."""
    ground, length, coupler_length, rocker_length = LENGTHS
    builder = ModelBuilder(gravity=0.0)
    links = [
        builder.add_link(mass=1.0, com=(0.5 * size, 0.0, 0.0), inertia=INERTIA)
        for size in (length, coupler_length, rocker_length)
    ]
    drive = {"target_vel": CRANK_SPEED, "target_kd": 1e3, "effort_limit": 1e5}
    joints = [
        builder.add_joint_revolute(-1, links[0], axis="z", **drive),
        builder.add_joint_revolute(links[0], links[1], axis="z", parent_xform=((length, 0, 0), IDENTITY)),
        builder.add_joint_revolute(-1, links[2], axis="z", parent_xform=((ground, 0, 0), IDENTITY)),
    ]
    builder.add_articulation(joints[:2])
    builder.add_articulation(joints[2:])
    rocker = rocker_angle(crank)
    tips = [
        length * np.array([np.cos(crank), np.sin(crank)]),
        [ground, 0.0] + rocker_length * np.array([np.cos(rocker), np.sin(rocker)]),
    ]
    along = tips[1] - tips[0]
    builder.joint_q[:] = [crank, np.arctan2(along[1], along[0]) - crank, rocker]
    builder.add_equality_constraint(kind, links[1], links[2], anchor=(coupler_length, 0.0, 0.0))
    return builder


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", [EqType.CONNECT, EqType.HINGE])
def test_four_bar_linkage_closes_at_every_angle_of_the_crank(kind, preset):
    """The rocker follows the crank as the law of cosines says, over a whole turn."""
    model = four_bar(kind).finalize("cpu")
    solver = SolverSAP(model, contact_preset_variant=preset)
    state, other = model.state(), model.state()
    # Positions follow the velocity of the end of the step: they are off by what the velocity changes in one
    # step, (speed dt)^2 of a length, and the constraint takes it back within a few steps.
    tolerance = 20.0 * (CRANK_SPEED * DT) ** 2
    errors, crank = [], 0.0
    for _ in range(int(np.ceil(2.0 * np.pi / (CRANK_SPEED * DT)))):
        solver.step(state, other, None, None, DT)
        state, other = other, state
        crank, _, rocker = state.joint_q.numpy()
        errors.append(np.angle(np.exp(1j * (rocker - rocker_angle(crank)))))
    assert crank > 0.7 + 1.95 * np.pi, "the drive turns the crank"
    assert np.abs(errors).max() < tolerance
    assert solver.unconverged_step_count.numpy()[0] == 0


@pytest.mark.parametrize("preset", PRESETS)
def test_welded_bodies_move_as_one(preset):
    """Two bodies welded while one of them spins: momenta stay, and the motion is that of one rigid body."""
    masses, spin, distance = (1.0, 2.0), np.array([0.3, -0.4, 1.0]), 0.6
    builder = ModelBuilder(gravity=0.0)
    for index, mass in enumerate(masses):
        builder.add_body(
            mass=mass, inertia=mass * INERTIA, xform=((distance * index, 0.1 * index, 0), IDENTITY)
        )
    offset = np.array([distance, 0.1, 0.0])
    builder.joint_qd[3:6] = spin
    builder.add_equality_constraint_weld(0, 1)
    reduced = masses[0] * masses[1] / sum(masses)
    together = sum(masses) * INERTIA + reduced * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    expected = np.linalg.solve(together, masses[0] * INERTIA @ spin)
    state, _ = simulate(builder.finalize("cpu"), 1, dt=1e-4, contact_preset_variant=preset)
    velocity = state.body_qd.numpy()
    # beta^2 / (4 pi^2) of the velocity that the constraint takes away is left: 2.5e-4.
    tolerance = 2.0 * 2.5e-4 * np.linalg.norm(spin)
    np.testing.assert_allclose(velocity[:, 3:], [expected, expected], rtol=0.0, atol=tolerance)
    momentum = np.array(masses) @ velocity[:, :3]
    assert np.abs(momentum).max() < 1e-5
    np.testing.assert_allclose(velocity[1, :3] - velocity[0, :3], np.cross(expected, offset), atol=tolerance)


@pytest.mark.parametrize("kind", [EqType.CONNECT, EqType.WELD])
def test_held_body_sags_by_the_near_rigid_compliance(kind):
    """At rest gamma = R^-1 g / (2 dt) = m |gravity| dt, so that g = 2 dt^2 R m |gravity|."""
    mass, gravity = 3.0, 9.81
    builder = ModelBuilder(gravity=-gravity)
    body = builder.add_body(mass=mass, inertia=INERTIA)
    builder.add_equality_constraint(kind, -1, body)
    state, _ = simulate(builder.finalize("cpu"), 400, contact_preset_variant="drake")
    weight = np.sqrt(3.0) / (3.0 * mass)
    expected = 2.0 * DT**2 * 0.1**2 / (4.0 * np.pi**2) * weight * mass * gravity
    assert state.joint_q.numpy()[2] == pytest.approx(-expected, rel=1e-3)


def test_weld_without_torque_lets_the_body_turn():
    """A torquescale of 0 leaves the spin about the anchor as it is."""
    builder = ModelBuilder(gravity=0.0)
    body = builder.add_body(mass=1.0, inertia=INERTIA)
    builder.joint_qd[3:6] = (0.0, 0.0, 2.0)
    builder.add_equality_constraint_weld(-1, body, torquescale=0.0)
    state, _ = simulate(builder.finalize("cpu"), 20)
    np.testing.assert_allclose(state.joint_qd.numpy(), [0, 0, 0, 0, 0, 2.0], atol=1e-5)


def geared(ratio: float, offset: float, torque: float, *, chain: bool) -> ModelBuilder:
    """Two rotors about z, one mimicking the other, side by side or one on top of the other."""
    builder = ModelBuilder(gravity=0.0)
    rotors = [builder.add_link(mass=1.0, inertia=INERTIA) for _ in range(2)]
    joints = [
        builder.add_joint_revolute(-1, rotors[0], axis="z"),
        builder.add_joint_revolute(rotors[0] if chain else -1, rotors[1], axis="z"),
    ]
    for group in [joints] if chain else [joints[:1], joints[1:]]:
        builder.add_articulation(group)
    builder.joint_q[:] = [0.0, offset]
    builder.joint_f[0] = torque
    builder.add_constraint_mimic(joints[1], joints[0], coef0=offset, coef1=ratio)
    return builder


@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize("ratio", [-2.0, 0.5, 3.0])
def test_gear_shares_the_torque_by_its_ratio(ratio, chain):
    """A torque on the leader accelerates it against I + r^2 I, or I + (1 + r)^2 I in a chain."""
    torque, inertia, count = 0.5, INERTIA[2, 2], 100
    state, _ = simulate(geared(ratio, 0.3, torque, chain=chain).finalize("cpu"), count)
    lead = 1.0 + ratio if chain else ratio
    expected = torque / (inertia * (1.0 + lead**2)) * DT * count
    speed = state.joint_qd.numpy()
    np.testing.assert_allclose(speed, [expected, ratio * expected], rtol=1e-4)
    q = state.joint_q.numpy()
    assert abs(q[1] - 0.3 - ratio * q[0]) < 1e-5


@pytest.mark.parametrize(("preset", "lag"), [("drake", 2.0), ("approx32", 4.0)])
def test_joint_follows_a_polynomial(preset, lag):
    """q1 = 0.1 + q2^2 at constant speed lags by a few (speed dt)^2, the curvature of the parabola.

    A step takes the slope at its start, which is dt^2 too little (twice that where positions take the mean of
    both velocities), and takes back half of the error.
    """
    builder = geared(1.0, 0.0, 0.0, chain=False)
    builder.equality_constraint_polycoef[0] = [0.1, 0.0, 1.0, 0.0, 0.0]
    builder.joint_q[:] = [-0.5, 0.1 + 0.25]
    builder.joint_qd[:] = [1.0, -1.0]
    builder.joint_target_mode[0], builder.joint_target_vel[0] = 2, 1.0
    builder.joint_target_kd[0] = 1e3
    state, _ = simulate(builder.finalize("cpu"), 200, contact_preset_variant=preset)
    lead, follow = state.joint_q.numpy()
    assert lead == pytest.approx(0.5, abs=0.01)
    assert 0.1 + lead**2 - follow == pytest.approx(lag * DT**2, rel=0.02)


def test_single_joint_is_held_at_a_value():
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, com=(0.5, 0.0, 0.0), inertia=INERTIA)
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis="y")])
    builder.add_equality_constraint_joint(0, polycoef=[0.4])
    state, _ = simulate(builder.finalize("cpu"), 200)
    # As test_held_body_sags: 2 dt^2 R tau, R = beta^2 / (4 pi^2) / I, tau at most m |gravity| / 2.
    assert abs(state.joint_q.numpy()[0] - 0.4) < 2.0 * DT**2 * 2.6e-4 / 0.28 * 0.5 * 9.81 + 1e-6


def test_constraint_can_be_switched_off_between_steps():
    """A body held by a weld falls freely from the step on in which the weld is disabled."""
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=INERTIA)
    builder.add_equality_constraint_weld(-1, body)
    model = builder.finalize("cpu")
    solver = SolverSAP(model)
    state, other = model.state(), model.state()
    speeds = []
    for step in range(20):
        if step == 10:
            model.equality_constraint_enabled.fill_(False)
        solver.step(state, other, None, None, DT)
        state, other = other, state
        speeds.append(state.joint_qd.numpy()[2])
    assert abs(speeds[9]) < 1e-4
    assert speeds[-1] == pytest.approx(-9.81 * DT * 10, abs=1e-4)


def test_violated_weld_closes_without_overshoot():
    """v_hat = -g / (2 dt) halves the error in every step."""
    builder = ModelBuilder(gravity=0.0)
    body = builder.add_body(mass=1.0, inertia=INERTIA, xform=((0.1, -0.2, 0.3), IDENTITY))
    builder.add_equality_constraint_weld(
        -1, body, relpose=((0.0, 0.0, 0.0), (0.0, 0.0, np.sin(0.2), np.cos(0.2)))
    )
    model = builder.finalize("cpu")
    for count in (1, 5):
        state, _ = simulate(model, count, contact_preset_variant="drake")
        q = state.joint_q.numpy()
        # What near rigidity leaves of a velocity, beta^2 / (4 pi^2), adds up over the steps.
        np.testing.assert_allclose(q[:3], np.array([0.1, -0.2, 0.3]) * 0.5**count, rtol=2e-3 * count)
        angle = 0.4 - 2.0 * np.arctan2(q[5], q[6])
        assert angle == pytest.approx(0.4 * 0.5**count, rel=2e-2)


def test_a_weld_far_open_closes_no_faster_than_a_fall():
    """|v| <= sqrt(2 g |error|) + dt |omega| |v|, nearly: shut after twice the time, without overshoot."""
    builder = ModelBuilder(gravity=0.0)
    body = builder.add_body(mass=1.0, inertia=INERTIA, xform=((0.3, 0.0, 0.0), IDENTITY))
    builder.add_equality_constraint_weld(-1, body, relpose=((0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)))
    model = builder.finalize("cpu")
    solver, state, other = SolverSAP(model), model.state(), model.state()
    gap, step_count = 0.3, math.ceil(2.0 * math.sqrt(2.0 * 0.3 / 9.81) / DT)
    swept = 0.0
    for _ in range(step_count):
        solver.step(state, other, None, None, DT)
        state, other = other, state
        velocity = state.joint_qd.numpy()
        assert abs(velocity[0]) <= 1.011 * (math.sqrt(2.0 * 9.81 * gap) + DT * swept)
        swept = abs(velocity[0] * velocity[5])
        moved = state.joint_q.numpy()[0]
        assert -1e-6 <= moved <= gap
        gap = moved
    assert gap < 1e-5
    assert abs(state.joint_q.numpy()[5]) == pytest.approx(1.0, abs=1e-4)


def test_an_arm_welded_out_of_its_reach_comes_to_rest():
    """Its hand never flies faster than a fall from the height of the error, about 0.7 m at first."""
    builder = ModelBuilder(gravity=0.0)
    upper, lower = (builder.add_link(mass=1.0, com=(0.25, 0.0, 0.0), inertia=INERTIA) for _ in range(2))
    elbow = ((0.5, 0.0, 0.0), IDENTITY)
    joints = [
        builder.add_joint_ball(-1, upper, damping=0.5),
        builder.add_joint_ball(upper, lower, damping=0.5, parent_xform=elbow),
    ]
    builder.add_articulation(joints)
    turns = np.array([[0.1, 0.2, 0.1, 0.97], [0.1, -0.3, 0.1, 0.9]])
    builder.joint_q[:] = (turns / np.linalg.norm(turns, axis=1, keepdims=True)).ravel()
    builder.add_equality_constraint_weld(-1, lower, relpose=((0.52, 0.0, 0.0), (0.0, 0.0, 0.38, 0.92)))
    model = builder.finalize("cpu")
    fastest = {}
    for limited in (True, False):
        state, _ = simulate(model, 1, dt=0.002, recovery_limited=limited)
        fastest[limited] = np.abs(state.joint_qd.numpy()).max()
    assert fastest[False] > 50.0, "without the bound it whirls"
    assert fastest[True] < 15.0
    state, _ = simulate(model, 500, dt=0.002)
    assert np.abs(state.joint_qd.numpy()).max() < 1e-3


@pytest.mark.parametrize("dt", [0.0025, 0.01])
@pytest.mark.parametrize("link_count", [3, 6])
def test_a_chain_welded_out_of_its_reach_does_not_fly_to_and_fro(link_count, dt):
    """At the stretched pose the links move the hand by hardly anything, so a stiff weld would throw them."""
    builder = ModelBuilder(gravity=0.0)
    joints, parent = [], -1
    for number in range(link_count):
        link = builder.add_link(mass=1.0, com=(0.2, 0.0, 0.0), inertia=0.1 * np.eye(3))
        frame = ((0.4 if number else 0.0, 0.0, 0.0), IDENTITY)
        joints.append(builder.add_joint_revolute(parent, link, axis="z", parent_xform=frame, damping=2.0))
        parent = link
    builder.add_articulation(joints)
    builder.joint_q[:] = 0.3 * (-1.0) ** np.arange(link_count)
    target = ((0.4 * link_count - 0.35, 0.0, 0.0), (0.0, 0.0, math.sin(0.3), math.cos(0.3)))
    builder.add_equality_constraint_weld(-1, parent, relpose=target)
    state, _ = simulate(builder.finalize("cpu"), round(3.0 / dt), dt=dt)
    assert np.abs(state.joint_qd.numpy()).max() < 1e-2
    # The hand has its orientation, and is as near as it can be.
    angles = np.cumsum(state.joint_q.numpy())
    assert angles[-1] == pytest.approx(0.6, abs=2e-2)
    np.testing.assert_allclose(angles[:-1], 0.0, atol=5e-2)


@pytest.mark.parametrize("speed", [2.0, 10.0])
@pytest.mark.parametrize("kind", [EqType.CONNECT, EqType.HINGE])
def test_the_bound_of_recovery_leaves_fast_mechanisms_alone(kind, speed):
    """What a turning linkage opens in a step is undone as without the bound, to the bit."""
    builder = four_bar(kind)
    builder.joint_target_vel[0] = speed
    model = builder.finalize("cpu")
    states = [simulate(model, 100, recovery_limited=limited)[0] for limited in (True, False)]
    np.testing.assert_array_equal(*(state.joint_q.numpy() for state in states))


@pytest.mark.parametrize("kind", [EqType.CONNECT, EqType.WELD])
def test_a_fast_chain_tied_to_the_world_has_the_same_bits_alone_as_among_others(kind):
    """Nine worlds: eight go in lanes, and one goes alone. The tied body is welded to the last link."""
    chain = ModelBuilder()
    joints, parent = [], -1
    for number in range(4):
        link = chain.add_link(mass=1.0, com=(0.15, 0.0, 0.0), inertia=INERTIA)
        frame = ((0.3, 0.0, 0.0) if number else (0.0, 0.0, 2.0), IDENTITY)
        joints.append(chain.add_joint_revolute(parent, link, axis="y", parent_xform=frame))
        parent = link
    hand = chain.add_link(mass=0.1, inertia=0.1 * INERTIA)
    joints.append(chain.add_joint_fixed(parent, hand, parent_xform=((0.3, 0.0, 0.0), IDENTITY)))
    chain.add_articulation(joints)
    chain.joint_q[:] = (0.3, 0.5, 0.4, -0.2)
    chain.joint_qd[:] = (8.0, -12.0, 10.0, 5.0)
    if kind == EqType.CONNECT:
        chain.add_equality_constraint_connect(hand, -1, anchor=(0.0, 0.0, 0.0))
    else:
        chain.add_equality_constraint_weld(-1, hand, relpose=((0.9, 0.0, 1.5), IDENTITY))
    ends = []
    for count in (1, 9):
        batch = ModelBuilder()
        for _ in range(count):
            batch.add_world(chain)
        state, _ = simulate(batch.finalize("cpu"), 60)
        ends.append(state.joint_q.numpy().reshape(count, -1))
    np.testing.assert_array_equal(ends[1], np.repeat(ends[0], 9, axis=0))


def test_worlds_with_other_constraints_do_not_affect_each_other():
    """A mix of worlds with and without constraints: each bit is that of the world alone."""
    kinds = [four_bar(EqType.CONNECT), geared(2.0, 0.1, 0.3, chain=False), four_bar(EqType.HINGE, crank=1.5)]
    loose = geared(2.0, 0.1, 0.3, chain=False)
    loose.equality_constraint_enabled[0] = False
    free = ModelBuilder()
    free.add_body(mass=1.0, inertia=INERTIA)
    kinds += [loose, free]
    mix = ModelBuilder()
    for kind in (*kinds, *reversed(kinds)):
        mix.add_world(kind)
    model = mix.finalize("cpu")
    assert len(model.templates) == 4, "what is enabled is no matter of structure, what is held is"
    together, _ = simulate(model, 30)
    q, starts = together.joint_q.numpy(), model.joint_coord_world_start.numpy()
    for world, kind in enumerate((*kinds, *reversed(kinds))):
        alone = ModelBuilder()
        alone.add_world(kind)
        single, _ = simulate(alone.finalize("cpu"), 30)
        assert np.array_equal(q[starts[world] : starts[world + 1]], single.joint_q.numpy())


def test_contacts_do_not_depend_on_constraints_of_another_world():
    """A pile computes the same bits in the kernel without constraints and in the one with them."""

    def pile(welded: bool) -> ModelBuilder:
        builder = ModelBuilder()
        builder.add_ground_plane()
        for level in range(3):
            xform = ((0.05 * level, 0.02 * level, 0.19 + 0.39 * level), IDENTITY)
            builder.add_shape_box(builder.add_body(xform=xform), hx=0.2, hy=0.2, hz=0.2)
        if welded:
            builder.add_equality_constraint_weld(1, 2)
        return builder

    results = []
    for kinds in ([pile(False)], [pile(True), pile(False), pile(True)]):
        scene = ModelBuilder()
        for kind in kinds:
            scene.add_world(kind)
        simulation = Simulation(scene.finalize("cpu"), dt=DT)
        simulation.step(60)
        results.append(simulation.state.joint_q.numpy().reshape(len(kinds), -1))
    assert np.array_equal(results[0][0], results[1][1])
    assert np.array_equal(results[1][0], results[1][2])
    assert not np.array_equal(results[1][0], results[1][1]), "the weld acts"


def test_body_poses_agree_with_the_joints_of_a_linkage():
    """Constraints change velocities only: body poses stay forward kinematics of the joints."""
    model = four_bar(EqType.CONNECT).finalize("cpu")
    state, _ = simulate(model, 50)
    poses = state.body_q.numpy().copy()
    eval_fk(model, state.joint_q, state.joint_qd, state)
    np.testing.assert_allclose(state.body_q.numpy(), poses, atol=1e-6)


@pytest.mark.parametrize("preset", PRESETS)
def test_two_axes_of_a_joint_make_a_screw(preset):
    """A nut on a thread, z = c q, falls with g / (1 + I / (m c²)) while it turns."""
    mass, inertia, lead = 2.0, 0.03, 0.1
    builder = ModelBuilder(gravity=-9.81)
    nut = builder.add_link(mass=mass, inertia=np.diag([0.02, 0.02, inertia]))
    joint = builder.add_joint_d6(-1, nut, linear_axes=["x", "z"], angular_axes=["z"])
    builder.add_articulation([joint])
    builder.add_equality_constraint_joint(joint, joint, polycoef=(0.0, lead), joint1_axis=1, joint2_axis=2)
    builder.joint_qd[0] = 0.5
    state, _ = simulate(builder.finalize("cpu"), 100, contact_preset_variant=preset)
    acceleration = 9.81 / (1.0 + inertia / (mass * lead**2))
    time = 100 * DT
    x, z, angle = state.joint_q.numpy()
    # The constraint gives way by 5e-4 h² F / m under its load.
    assert state.joint_qd.numpy()[1] == pytest.approx(-acceleration * time, rel=1e-4)
    assert z == pytest.approx(lead * angle, abs=1e-5)
    assert x == pytest.approx(0.5 * time, rel=1e-5)


def test_axes_of_different_joints_mimic_each_other():
    """The second slide of one joint follows the turn of another, with the mass that it moves."""
    builder = ModelBuilder(gravity=0.0)
    links = [builder.add_link(mass=1.5, inertia=INERTIA) for _ in range(2)]
    table = builder.add_joint_d6(-1, links[0], linear_axes=["x", "y"])
    knob = builder.add_joint_revolute(-1, links[1], axis="z")
    for joint in (table, knob):
        builder.add_articulation([joint])
    builder.add_constraint_mimic(table, knob, coef1=0.2, joint0_axis=1)
    builder.joint_f[2] = 0.5
    state, _ = simulate(builder.finalize("cpu"), 100)
    rate = 0.5 / (INERTIA[2, 2] + 1.5 * 0.2**2) * 100 * DT
    np.testing.assert_allclose(state.joint_qd.numpy(), [0.0, 0.2 * rate, rate], rtol=1e-4, atol=1e-9)


def test_axes_must_be_named_and_be_there():
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=INERTIA) for _ in range(2)]
    several = builder.add_joint_d6(-1, links[0], linear_axes=["x", "y"], label="table")
    one = builder.add_joint_d6(-1, links[1], angular_axes=["z"])
    with pytest.raises(
        ValueError, match=r"joint1: joint 'table' \(index 0\) has 2 axes.*joint1_axis=, 0 to 1"
    ):
        builder.add_equality_constraint_joint(several, one)
    with pytest.raises(
        IndexError, match=r"joint1_axis is 2, but joint 'table' \(index 0\) has the axes 0 to 1"
    ):
        builder.add_equality_constraint_joint(several, one, joint1_axis=2)
    with pytest.raises(ValueError, match="joint1 and joint2 are both joint 'table'"):
        builder.add_equality_constraint_joint(several, several, joint1_axis=1, joint2_axis=1)
    with pytest.raises(ValueError, match="joint2_axis does not belong"):
        builder.add_equality_constraint_joint(one, joint2_axis=0)
    index = builder.add_equality_constraint_joint(one, several, joint2_axis=1)
    assert builder.equality_constraint_joint2_axis[index] == 1
