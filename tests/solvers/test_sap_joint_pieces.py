"""Joints that stick, slide or reach the limits of their drives are found in these states within few steps."""

import numpy as np
import pytest

import pluriverse as pv


@pytest.mark.parametrize("speed", [1e-3, 1e-2])
def test_a_joint_that_friction_stops_takes_two_iterations(speed):
    """It slides at the start of the step and sticks at its end: no step in between is to be made.

    With the friction of the side that the first step ended on, steps went in circles, and the world was
    solved with a line search after three of them.
    """
    builder = pv.ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3) * 1e-2)
    builder.add_articulation([builder.add_joint_prismatic(-1, link, axis=(1.0, 0.0, 0.0), friction=20.0)])
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.005, decimation=1, threads=1)
    simulation.state.joint_qd.assign(np.array([speed], dtype=np.float32))
    simulation.step()
    solver = simulation.solver
    assert solver.last_solve_iterations.numpy()[0] == 2
    assert abs(simulation.state.joint_qd.numpy()[0]) < 1e-3 * 20.0 * 0.005


def test_a_drive_that_overshoots_its_zone_of_limited_effort_takes_two_iterations():
    """At full effort a light wrist would pass its target within the step, and brake at full effort in turn.

    The linear law between both is the answer: h (k_p (target - q) - (h k_p + k_d) v) = A v.
    """
    ke, kd, dt, inertia, target = 400.0, 40.0, 0.005, 0.05, 0.1
    builder = pv.ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3) * inertia)
    drive = {"target_pos": target, "target_ke": ke, "target_kd": kd, "effort_limit": 36.0}
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=(0.0, 0.0, 1.0), **drive)])
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=dt, decimation=1, threads=1)
    simulation.step()
    assert simulation.solver.last_solve_iterations.numpy()[0] == 2
    expected = dt * ke * target / (inertia + dt * (dt * ke + kd))
    np.testing.assert_allclose(simulation.state.joint_qd.numpy()[0], expected, rtol=1e-6)
