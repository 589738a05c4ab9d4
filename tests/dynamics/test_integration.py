"""Integration of coordinates: closed forms, and the order of convergence of each mode."""

import numpy as np
import pytest
import warp as wp
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from pluriverse import JointType, Model, State, eval_fk
from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics, integrate

from .trees import (
    Tree,
    TreeJoint,
    build_model,
    random_frame,
    random_joint_state,
    random_tree,
    set_joint_state,
)

FLOAT32_ROUNDING = 2.0**-24
IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
MODES = list(PositionIntegration)


def single_joint(
    kind, *, parent_frame=IDENTITY, child_frame=IDENTITY, com=(0.0, 0.0, 0.0), inertia=(0.1, 0.2, 0.25)
):
    """Return one body behind one joint, without gravity."""
    joint = TreeJoint(
        kind=kind,
        parent=-1,
        parent_frame=np.asarray(parent_frame),
        child_frame=np.asarray(child_frame),
        axis=np.array([0.6, 0.0, 0.8]),
        mass=2.0,
        com=np.asarray(com),
        inertia=np.diag(inertia),
    )
    return Tree([joint], gravity=np.zeros(3))


def take_free_steps(model: Model, state: State, dt: float, count: int, mode: PositionIntegration) -> State:
    """Advance a state by steps of the dynamics alone: the new velocity is that of the free motion."""
    workspace, control, states = Workspace(model, wp.float64), model.control(), [state, model.state()]
    for _ in range(count):
        eval_kinematics(model, model.worlds, states[0], workspace)
        eval_free_motion(model, model.worlds, states[0], control, workspace, dt)
        wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
        integrate(model, model.worlds, states[0], states[1], workspace, dt, mode=mode)
        states.reverse()
    return states[0]


def follow(model: Model, state: State, velocity, dt: float, count: int, mode: PositionIntegration) -> State:
    """Advance a state along a given internal velocity(time), as if a solver had found it."""
    workspace, states = Workspace(model, wp.float64), [state, model.state()]
    for step in range(count):
        eval_kinematics(model, model.worlds, states[0], workspace)
        workspace.dof_velocity.assign(velocity(step * dt))
        workspace.dof_velocity_next.assign(velocity((step + 1) * dt))
        integrate(model, model.worlds, states[0], states[1], workspace, dt, mode=mode)
        states.reverse()
    return states[0]


def wobble(time):
    """Return an angular velocity whose axis moves [rad/s]."""
    return np.array([2.0 * np.cos(3.0 * time), 1.5 * np.sin(2.0 * time), 1.0 + time])


def rotation_after(omega, end):
    """Return the rotation vector of a frame that has turned at omega(time), given in fixed axes."""

    def rate(time, q):
        x, y, z = omega(time)
        return 0.5 * np.array([[0, -z, y, x], [z, 0, -x, y], [-y, x, 0, z], [-x, -y, -z, 0]]) @ q

    solution = solve_ivp(rate, (0.0, end), [0.0, 0.0, 0.0, 1.0], rtol=1e-12, atol=1e-12, method="DOP853")
    return Rotation.from_quat(solution.y[:, -1])


@pytest.mark.parametrize(
    ("mode", "order"), [(PositionIntegration.MIDPOINT, 2), (PositionIntegration.SAP_EULER, 1)]
)
@pytest.mark.parametrize("kind", [JointType.FREE, JointType.BALL])
def test_rotation_converges_with_the_order_of_the_mode(mode, order, kind):
    """Half the step, a quarter of the error with the midpoint rule, half of it with the first-order step."""
    model = build_model([single_joint(kind)])
    end, expected = 0.8, rotation_after(wobble, 0.8)
    errors = []
    for count in (20, 40):
        state = follow(
            model,
            model.state(),
            lambda time: np.concatenate([wobble(time), np.zeros(model.joint_dof_count - 3)]),
            end / count,
            count,
            mode,
        )
        errors.append((Rotation.from_quat(state.joint_q.numpy()[-4:]) * expected.inv()).magnitude())
    assert errors[1] > 100.0 * FLOAT32_ROUNDING  # else the ratio below is noise
    np.testing.assert_allclose(errors[0] / errors[1], 2.0**order, rtol=0.1)


@pytest.mark.parametrize("kind", [JointType.FREE, JointType.BALL])
def test_constant_spin_follows_the_exponential_map(kind):
    """With `midpoint` a body at a constant rate turns by rate * time exactly, however large the step."""
    model = build_model([single_joint(kind)])
    omega, dt, count = np.array([3.0, -4.0, 12.0]), 0.05, 40
    velocity = np.concatenate([omega, np.zeros(model.joint_dof_count - 3)])
    state = follow(model, model.state(), lambda time: velocity, dt, count, PositionIntegration.MIDPOINT)
    expected = Rotation.from_rotvec(omega * dt * count)
    error = (Rotation.from_quat(state.joint_q.numpy()[-4:]) * expected.inv()).magnitude()
    assert error < 4.0 * count * FLOAT32_ROUNDING  # four rounded entries a step


@pytest.mark.parametrize(
    ("mode", "share"), [(PositionIntegration.MIDPOINT, 0.5), (PositionIntegration.SAP_EULER, 0.0)]
)
@pytest.mark.parametrize("kind", [JointType.REVOLUTE, JointType.PRISMATIC])
def test_scalar_joints_move_with_the_velocity_of_the_mode(mode, share, kind):
    """The coordinate is q + dt times the mean of old and new velocity, or q + dt times the new one."""
    model = build_model([single_joint(kind)])
    state = follow(model, model.state(), lambda time: np.array([1.0 + 100.0 * time]), 0.01, 1, mode)
    np.testing.assert_allclose(state.joint_q.numpy(), 0.01 * (1.0 * share + 2.0 * (1.0 - share)), rtol=1e-6)
    np.testing.assert_allclose(state.joint_qd.numpy(), 2.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("mode", "tail"), [(PositionIntegration.MIDPOINT, 0.0), (PositionIntegration.SAP_EULER, 0.5)]
)
def test_free_fall_follows_the_parabola_of_the_mode(mode, tail):
    """The height is -g t^2 / 2, exact with the midpoint rule and off by g t dt / 2 with the new velocity."""
    tree = single_joint(JointType.FREE, com=(0.3, 0.0, 0.0))
    tree.gravity = np.array([0.0, 0.0, -9.81])
    model = build_model([tree])
    dt, count = 0.01, 50
    state = take_free_steps(model, model.state(), dt, count, mode)
    height = -0.5 * 9.81 * (dt * count) ** 2 - tail * 9.81 * dt * (dt * count)
    # Each step rounds a position and a velocity of up to 8 m/s, whose error then acts for the rest of the
    # time.
    tolerance = count * FLOAT32_ROUNDING * (2.0 + 8.0 * dt * count)
    np.testing.assert_allclose(state.body_q.numpy()[0, 2], height, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(state.body_qd.numpy()[0, 2], -9.81 * dt * count, rtol=count * FLOAT32_ROUNDING)


def energy_and_momentum(model: Model, state: State, tree: Tree):
    """Return kinetic energy [J], linear momentum [N s], angular momentum about the origin [N m s]."""
    poses = model.state()
    eval_fk(model, state.joint_q, state.joint_qd, poses)
    body_q, body_qd = poses.body_q.numpy().astype(np.float64), poses.body_qd.numpy().astype(np.float64)
    energy, linear, angular = 0.0, np.zeros(3), np.zeros(3)
    for place, entry in enumerate(tree.body_order):
        joint, rotation = tree.joints[entry], Rotation.from_quat(body_q[place, 3:])
        v, omega = body_qd[place, :3], body_qd[place, 3:]
        spin = rotation.apply(joint.inertia @ rotation.inv().apply(omega))
        com = body_q[place, :3] + rotation.apply(joint.com)
        energy += 0.5 * joint.mass * v @ v + 0.5 * omega @ spin
        linear += joint.mass * v
        angular += spin + joint.mass * np.cross(com, v)
    return energy, linear, angular


def tumbling_drifts(mode: PositionIntegration, dts) -> list[tuple[float, float]]:
    """Return the drifts of energy and angular momentum, relative, of a box tumbling about its middle axis."""
    tree = single_joint(JointType.FREE, inertia=(0.06, 0.1, 0.13))
    model, drifts = build_model([tree]), []
    for dt in dts:
        state = model.state()
        state.joint_qd.assign([0.0, 0.0, 0.0, 0.1, 10.0, 0.1])
        energy, _, momentum = energy_and_momentum(model, state, tree)
        state = take_free_steps(model, state, dt, round(2.0 / dt), mode)
        energy_end, _, momentum_end = energy_and_momentum(model, state, tree)
        drift = np.linalg.norm(momentum_end - momentum) / np.linalg.norm(momentum)
        drifts.append((energy_end / energy - 1.0, drift))
    return drifts


def test_torque_free_rotation_conserves_energy_and_momentum():
    """With `midpoint` a tumbling box keeps its energy to second order of the step, its momentum to first."""
    (energy, momentum), (energy_half, momentum_half) = tumbling_drifts(
        PositionIntegration.MIDPOINT, (0.005, 0.0025)
    )
    assert abs(energy) < 1e-4
    np.testing.assert_allclose(energy / energy_half, 4.0, rtol=0.2)
    np.testing.assert_allclose(momentum / momentum_half, 2.0, rtol=0.2)


def test_first_order_rotation_gains_energy():
    """The price of `sap_euler`, stated in `docs/dynamics.md`: a fast spin gains energy, to first order."""
    (energy, _), (energy_half, _) = tumbling_drifts(PositionIntegration.SAP_EULER, (0.005, 0.0025))
    assert 0.01 < energy < 0.1
    assert 0.3 < energy_half / energy < 0.6


def test_a_floating_tree_conserves_energy_and_momentum_to_first_order():
    """Joints and base in fast motion without gravity, losses and contact: drifts halve with the step."""
    rng = np.random.default_rng(21)
    tree = random_tree(rng, 8, root=JointType.FREE, losses=False, gravity=np.zeros(3), single=True)
    q, qd = random_joint_state(rng, tree)
    model, drifts = build_model([tree]), []
    for dt in (0.002, 0.001):
        state = model.state()
        set_joint_state(state, [tree], [q], [qd])
        before = energy_and_momentum(model, state, tree)
        after = energy_and_momentum(
            model, take_free_steps(model, state, dt, round(0.2 / dt), PositionIntegration.MIDPOINT), tree
        )
        scales = before[0], np.linalg.norm(before[1]), np.linalg.norm(before[2])
        drifts.append([np.linalg.norm(b - a) / s for a, b, s in zip(before, after, scales, strict=True)])
    drifts = np.array(drifts)
    assert (drifts[0] < 0.01).all()
    np.testing.assert_allclose(drifts[0] / drifts[1], 2.0, rtol=0.2)


@pytest.mark.parametrize("mode", MODES)
def test_frames_of_a_free_joint_do_not_change_the_motion(mode):
    """The coordinates depend on where the joint frames are; the motion of the body does not."""
    rng = np.random.default_rng(4)
    com, twist = rng.uniform(-0.3, 0.3, 3), rng.normal(size=6)
    plain = single_joint(JointType.FREE, com=com)
    framed = single_joint(
        JointType.FREE, com=com, parent_frame=random_frame(rng), child_frame=random_frame(rng)
    )
    joint_q = random_joint_state(rng, framed)[0][0]
    models = [build_model([framed]), build_model([plain])]
    states = [model.state() for model in models]
    states[0].joint_q.assign(joint_q)
    states[0].joint_qd.assign(twist)
    eval_fk(models[0], states[0].joint_q, states[0].joint_qd, states[0])
    states[1].joint_q.assign(states[0].body_q.numpy()[0])
    states[1].joint_qd.assign(twist)
    count = 50
    ends = [
        take_free_steps(model, state, 0.02, count, mode) for model, state in zip(models, states, strict=True)
    ]
    tolerance = 8.0 * count * FLOAT32_ROUNDING
    pose, other = ends[0].body_q.numpy()[0], ends[1].body_q.numpy()[0]
    np.testing.assert_allclose(pose[:3], other[:3], rtol=0.0, atol=tolerance)
    turn = Rotation.from_quat(pose[3:]) * Rotation.from_quat(other[3:]).inv()
    assert turn.magnitude() < tolerance
    np.testing.assert_allclose(
        ends[0].body_qd.numpy(), ends[1].body_qd.numpy(), rtol=0.0, atol=10.0 * tolerance
    )


def test_an_offset_centre_of_mass_moves_straight():
    """A spinning body with its origin off the centre of mass: the centre moves uniformly, to O(dt)."""
    com = np.array([0.2, -0.1, 0.3])
    tree = single_joint(JointType.FREE, com=com)
    model, velocity, errors = build_model([tree]), np.array([0.5, 0.2, -0.3]), []
    for dt in (0.004, 0.002):
        state = model.state()
        state.joint_qd.assign([*velocity, 1.0, 3.0, -2.0])
        state = take_free_steps(model, state, dt, round(0.4 / dt), PositionIntegration.MIDPOINT)
        pose = state.body_q.numpy()[0]
        errors.append(
            np.linalg.norm(pose[:3] + Rotation.from_quat(pose[3:]).apply(com) - com - 0.4 * velocity)
        )
    assert errors[0] < 0.01
    assert errors[1] < 0.6 * errors[0]


@pytest.mark.parametrize("mode", MODES)
def test_body_state_is_the_forward_kinematics_of_the_joint_state(mode):
    """The new body poses and velocities have the bits that `eval_fk` gives for the new coordinates."""
    rng = np.random.default_rng(12)
    trees = [random_tree(rng, 8) for _ in range(4)]
    states = [random_joint_state(rng, tree) for tree in trees]
    model = build_model(trees)
    state = model.state()
    set_joint_state(state, trees, [case[0] for case in states], [case[1] for case in states])
    end, expected = take_free_steps(model, state, 0.01, 3, mode), model.state()
    eval_fk(model, end.joint_q, end.joint_qd, expected)
    np.testing.assert_array_equal(end.body_q.numpy(), expected.body_q.numpy())
    np.testing.assert_array_equal(end.body_qd.numpy(), expected.body_qd.numpy())


def test_a_state_may_be_advanced_in_place():
    """Every joint reads its old coordinates before it writes the new ones."""
    rng = np.random.default_rng(13)
    trees = [random_tree(rng, 8) for _ in range(4)]
    states = [random_joint_state(rng, tree) for tree in trees]
    model = build_model(trees)
    results = []
    for in_place in (False, True):
        state = model.state()
        set_joint_state(state, trees, [case[0] for case in states], [case[1] for case in states])
        workspace, out = Workspace(model, wp.float64), state if in_place else model.state()
        eval_kinematics(model, model.worlds, state, workspace)
        eval_free_motion(model, model.worlds, state, model.control(), workspace, 0.01)
        wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
        integrate(model, model.worlds, state, out, workspace, 0.01)
        results.append((out.joint_q.numpy(), out.joint_qd.numpy(), out.body_q.numpy()))
    for separate, in_place in zip(*results, strict=True):
        np.testing.assert_array_equal(separate, in_place)


def test_a_pendulum_swings_with_its_period():
    """A small swing of a physical pendulum returns after 2 pi sqrt(I / (m g l))."""
    length, mass, inertia = 0.7, 2.0, 0.05
    tree = single_joint(JointType.REVOLUTE, com=(0.0, 0.0, -length), inertia=(inertia, inertia, inertia))
    tree.joints[0].axis = np.array([0.0, 1.0, 0.0])
    tree.gravity = np.array([0.0, 0.0, -9.81])
    model = build_model([tree])
    state, dt, amplitude = model.state(), 1e-3, 0.02
    state.joint_q.assign([amplitude])
    period = 2.0 * np.pi * np.sqrt((inertia + mass * length**2) / (mass * 9.81 * length))
    state = take_free_steps(model, state, dt, round(period / dt), PositionIntegration.SAP_EULER)
    # Symplectic Euler: the phase is off by up to dt / 2 of the period, the amplitude's own correction is
    # 1e-5 of it.
    phase_error = 2.0 * np.pi / period * dt
    np.testing.assert_allclose(state.joint_q.numpy(), amplitude, rtol=2.0 * phase_error)
    np.testing.assert_allclose(
        state.joint_qd.numpy() * period / (2.0 * np.pi * amplitude), 0.0, atol=2.0 * phase_error
    )


def swing_growth(mode: PositionIntegration) -> float:
    """Growth of a small undamped swing over ten periods, from the energies at its start and end."""
    length, mass, inertia = 0.7, 2.0, 0.05
    tree = single_joint(JointType.REVOLUTE, com=(0.0, 0.0, -length), inertia=(inertia, inertia, inertia))
    tree.joints[0].axis = np.array([0.0, 1.0, 0.0])
    tree.gravity = np.array([0.0, 0.0, -9.81])
    model = build_model([tree])
    state, dt, amplitude = model.state(), 5e-3, 0.02
    omega = np.sqrt(mass * 9.81 * length / (inertia + mass * length**2))
    state.joint_q.assign([amplitude])
    state = take_free_steps(model, state, dt, round(20.0 * np.pi / omega / dt), mode)
    q, qd = state.joint_q.numpy()[0], state.joint_qd.numpy()[0] / omega
    if mode is not PositionIntegration.MIDPOINT:
        # What symplectic Euler conserves is this quadratic form, not q^2 + (qd / omega)^2 itself.
        return np.sqrt(q**2 + qd**2 - omega * dt * q * qd) / amplitude
    return np.hypot(q, qd) / amplitude


def test_an_undamped_swing_keeps_its_amplitude_with_the_new_velocity():
    """The step q' = q + h v', v' = v - h omega^2 q has determinant 1: the swing neither grows nor fades."""
    # sin(q) < q slows the swing by amplitude^2 / 16; the rest is rounding of 1000 steps in single precision.
    assert swing_growth(PositionIntegration.SEMI_IMPLICIT) == pytest.approx(1.0, abs=1e-4)


def test_midpoint_lets_an_undamped_swing_grow_as_documented():
    """With the mean velocity the determinant is 1 + (omega h)^2 / 2: (omega h)^2 / 4 of growth a step."""
    length, mass, inertia, dt = 0.7, 2.0, 0.05, 5e-3
    omega = np.sqrt(mass * 9.81 * length / (inertia + mass * length**2))
    steps = round(20.0 * np.pi / omega / dt)
    expected = (1.0 + (omega * dt) ** 2 / 2.0) ** (steps / 2.0)
    assert swing_growth(PositionIntegration.MIDPOINT) == pytest.approx(expected, rel=5e-3)
