"""Velocity limits of both engines: joints reach their limits, pass them never, and momentum is kept."""

import warnings

import numpy as np
import pytest

from pluriverse import JointTargetMode, Model, ModelBuilder, SolverMuJoCo
from pluriverse.solvers.mujoco import MujocoCaveatWarning

DT = 0.002
# Rounding of a public velocity.
SPEED_ROUNDING = 1e-6


def simulate(model, solver, forces: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return coordinates and velocities after each step."""
    states, control = [model.state(), model.state()], model.control()
    control.joint_f.assign(forces.astype(np.float32))
    result = []
    for _ in range(count):
        solver.step(*states, control, None, DT)
        states.reverse()
        result.append((states[0].joint_q.numpy().copy(), states[0].joint_qd.numpy().copy()))
    solver.report(strict=True)
    return result


def test_a_pushed_slide_moves_at_its_limit():
    """v(t) = min(a t, limit), and the position is its sum, in worlds of different limits."""
    builder = ModelBuilder(gravity=0.0)
    limits, acceleration = [0.5, 1.0, np.inf], 5.0
    for limit in limits:
        builder.begin_world()
        body = builder.add_link(mass=2.0, inertia=np.eye(3))
        joint = builder.add_joint_prismatic(-1, body, axis=(1.0, 0.0, 0.0), velocity_limit=limit)
        builder.add_articulation([joint])
        builder.end_world()
    model = builder.finalize(device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error", MujocoCaveatWarning)
        solver = SolverMuJoCo(model, enforce_velocity_limit=True)
    assert len(solver.groups) == 1
    moved = simulate(model, solver, np.full(3, 2.0 * acceleration), 200)
    speeds = np.minimum(np.arange(1, 201)[:, None] * acceleration * DT, limits)
    np.testing.assert_allclose([qd for _, qd in moved], speeds, rtol=SPEED_ROUNDING)
    np.testing.assert_allclose([q for q, _ in moved], np.cumsum(speeds, axis=0) * DT, rtol=1e-5)


def make_chain() -> Model:
    """Return a floating chain of four links, with limited hinges and, at its end, a ball joint."""
    builder = ModelBuilder(gravity=0.0)
    links, joints = [], []
    for index in range(5):
        links.append(builder.add_link(mass=1.0 + index, inertia=0.1 * np.eye(3), com=(0.1, 0.0, 0.05)))
        frame = ((0.3, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        if index == 0:
            joints.append(builder.add_joint_free(links[0]))
        elif index < 4:
            joints.append(
                builder.add_joint_revolute(
                    links[-2], links[-1], axis=(0.0, index % 2, 1.0), parent_xform=frame, velocity_limit=2.0
                )
            )
        else:
            joints.append(builder.add_joint_ball(links[1], links[-1], parent_xform=frame))
    builder.add_articulation(joints)
    return builder.finalize(device="cpu")


CHAIN_FORCES = np.array([0.0] * 6 + [3.0, -2.0, 1.0] + [0.0] * 3)


def test_limits_of_a_floating_chain_keep_its_momentum():
    """Limits act inside the mechanism: a chain that drives itself to all its limits stays where it is."""
    model = make_chain()
    solver = SolverMuJoCo(model, enforce_velocity_limit=True)
    states, control = [model.state(), model.state()], model.control()
    control.joint_f.assign(CHAIN_FORCES.astype(np.float32))
    mass = model.body_mass.numpy()
    fastest = 0.0
    for _ in range(300):
        solver.step(*states, control, None, DT)
        states.reverse()
        speeds = np.abs(states[0].joint_qd.numpy()[6:9])
        assert speeds.max() <= 2.0 * (1.0 + SPEED_ROUNDING)
        fastest = max(fastest, speeds.min())
        momentum = mass @ states[0].body_qd.numpy()[:, :3]
        # Euler's method keeps momentum to the order of its step.
        np.testing.assert_allclose(momentum, 0.0, atol=5e-2)
    assert fastest > 1.5
    solver.report(strict=True)


def test_mujoco_warp_limits_speeds_as_the_c_engine_does():
    """Impulses, and where they lead joints of all kinds, are the same to single precision."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed")
    model = make_chain()
    moved = [
        simulate(
            model,
            SolverMuJoCo(model, enforce_velocity_limit=True, use_mujoco_cpu=on_cpu),
            CHAIN_FORCES,
            200,
        )
        for on_cpu in (True, False)
    ]
    # One rounding of float32 per step, grown by what the chain makes of it.
    for place, error in ((50, 1e-5), (200, 1e-4)):
        for ours, expected in zip(moved[1][place - 1], moved[0][place - 1], strict=True):
            np.testing.assert_allclose(ours, expected, atol=error)
    speeds = np.abs([qd[6:9] for _, qd in moved[1]])
    assert speeds.max() <= 2.0 * (1.0 + SPEED_ROUNDING)
    assert (speeds > 2.0 * (1.0 - SPEED_ROUNDING)).any(axis=1).sum() > 50


@pytest.mark.parametrize("on_cpu", [True, False], ids=["C", "Warp"])
def test_prescribed_motion_has_no_velocity_limit(on_cpu):
    """A cart with a prescribed speed above its limit reaches it, and a bob on it feels only that motion."""
    if not on_cpu:
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed")
    swings = []
    for limit in (np.inf, 0.5):
        builder = ModelBuilder()
        cart = builder.add_link(is_kinematic=True)
        bob = builder.add_link(mass=1.0, com=(0.1, 0.0, -1.0), inertia=0.01 * np.eye(3))
        rail = builder.add_joint_prismatic(
            -1, cart, axis="x", actuator_mode=JointTargetMode.VELOCITY, velocity_limit=limit
        )
        builder.add_articulation([rail, builder.add_joint_revolute(cart, bob, axis="y")])
        model = builder.finalize(device="cpu")
        solver = SolverMuJoCo(model, enforce_velocity_limit=True, use_mujoco_cpu=on_cpu)
        states, control = [model.state(), model.state()], model.control()
        for step in range(1, 101):
            control.joint_target_vel.assign([3.0 * step * DT * 5.0, 0.0])
            solver.step(*states, control, None, DT)
            states.reverse()
        assert states[0].joint_qd.numpy()[0] == np.float32(3.0 * 100 * DT * 5.0)
        swings.append(states[0].joint_q.numpy()[1])
    np.testing.assert_array_equal(*swings)
