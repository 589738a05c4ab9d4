"""Joint limits of `SolverSAP` that nobody gave gains: near rigid for the inertia that each feels."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, Simulation, SolverSAP

GRAVITY = 9.81
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
# Mass [kg] and length [m] of a finger, an arm and a machine.
LINKS = ((0.01, 0.04), (3.0, 0.4), (1000.0, 2.0))
RECOVERY_TIME = 0.02  # s


def make_simulation(dt: float, q: float, qd: float, *, gravity: float = -GRAVITY, **limits) -> Simulation:
    """Return a world for each link, on a hinge that lets it turn down (positive angles) to level, 0 rad."""
    builder = ModelBuilder()
    for mass, length in LINKS:
        world = ModelBuilder(gravity=gravity)
        link = world.add_link(mass=mass, inertia=mass * length**2 / 12.0 * np.eye(3))
        joint = world.add_joint_revolute(
            -1,
            link,
            axis=(0.0, 1.0, 0.0),
            child_xform=((-0.5 * length, 0.0, 0.0), UPRIGHT),
            limit_lower=-2.0,
            limit_upper=0.0,
            **limits,
        )
        world.add_articulation([joint])
        world.joint_q[-1], world.joint_qd[-1] = q, qd
        builder.add_world(world)
    model = builder.finalize("cpu")
    return Simulation(model, SolverSAP(model), dt=dt, threads=1)


@pytest.mark.parametrize("dt", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("load", [0.0, 100.0])
def test_limits_hold_a_finger_and_a_machine_alike(dt, load):
    """The sag is R h (h + tau) F, R = beta^2 / (4 pi^2 I): 1.5 g beta^2 h (h + tau) / 4 pi^2 l.

    A load of a hundred times the own weight sags by a hundred times that.
    """
    with make_simulation(dt, -0.2, 0.0) as simulation:
        mass, length = np.array(LINKS).T
        torque = mass * GRAVITY * 0.5 * length
        simulation.control.joint_f.assign((load * torque).astype(np.float32))
        simulation.step(round(2.0 / dt))
        sag = simulation.state.joint_q.numpy()
        speed = simulation.state.joint_qd.numpy()
    compliance = 0.01 / (4.0 * np.pi**2) * dt * (dt + RECOVERY_TIME) / (mass * length**2 / 3.0)
    np.testing.assert_allclose(sag, compliance * (1.0 + load) * torque, rtol=0.02, atol=1e-7)
    np.testing.assert_allclose(speed, 0.0, atol=1e-4)


@pytest.mark.parametrize("dt", [0.002, 0.01])
def test_what_swings_into_a_limit_is_not_slowed_before_it_and_does_not_bounce(dt):
    """At 7 rad/s a link keeps its speed until the step in which it gets there, and has none after it."""
    speed, start = 7.0, -0.5
    with make_simulation(dt, start, speed, gravity=0.0) as simulation:
        arrival = int(-start / (speed * dt))
        simulation.step(arrival - 1)
        np.testing.assert_allclose(simulation.state.joint_qd.numpy(), speed, rtol=1e-5)
        simulation.step(3)
        assert (np.abs(simulation.state.joint_qd.numpy()) < 1e-3 * speed).all()
        assert (simulation.state.joint_q.numpy() < 1e-3 * speed * dt).all()


@pytest.mark.parametrize("dt", [0.002, 0.01])
def test_a_joint_let_go_beyond_its_limit_comes_back_in_the_recovery_time(dt):
    """It returns at d / (h + tau) from the first step on, since a limit does not brake what leaves it."""
    beyond = 0.5
    with make_simulation(dt, beyond, 0.0, gravity=0.0) as simulation:
        speed = beyond / (dt + RECOVERY_TIME)
        for _ in range(2):
            simulation.step(1)
            np.testing.assert_allclose(simulation.state.joint_qd.numpy(), -speed, rtol=2e-3)
            np.testing.assert_allclose(
                simulation.state.joint_q.numpy(), beyond - speed * simulation.time, rtol=2e-3
            )


def test_a_stiffness_that_is_given_without_damping_is_damped_critically():
    """A link of 0.16 kg m², 0.1 rad beyond a limit of 400 N m/rad, comes back as (1 + w t) exp(-w t).

    From t = 1 / w on the damper would hold it back, which a limit does not: the link goes on at its speed.
    Steps of 0.2 ms at w = 50 / s leave 2 % of the start.
    """
    dt, stiffness, deep = 2e-4, 400.0, 0.1
    mass, length = LINKS[1]
    rate = np.sqrt(stiffness / (mass * length**2 / 3.0))
    with make_simulation(dt, deep, 0.0, gravity=0.0, limit_ke=stiffness) as simulation:
        for _ in range(5):
            simulation.step(50)
            wt = rate * simulation.time
            expected = (1.0 + wt) * np.exp(-wt) if wt < 1.0 else (3.0 - wt) / np.e
            assert simulation.state.joint_q.numpy()[1] == pytest.approx(expected * deep, abs=0.02 * deep)
