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


@pytest.mark.parametrize("has_carriage", [False, True])
def test_a_drive_that_overshoots_its_zone_of_limited_effort_takes_few_iterations(has_carriage):
    """At full effort a light wrist would pass its target within the step, and brake at full effort in turn.

    The linear law between both is the answer: h (k_p (target - q) - (h k_p + k_d) v) = A v. A tree whose root
    is driven finds it in the first iteration. On a carriage without a drive the law is changed after it.
    """
    ke, kd, dt, inertia, target = 400.0, 40.0, 0.005, 0.05, 0.1
    builder = pv.ModelBuilder()
    parent, joints = -1, []
    if has_carriage:
        parent = builder.add_link(mass=1.0, inertia=np.eye(3) * inertia)
        joints.append(builder.add_joint_prismatic(-1, parent, axis=(1.0, 0.0, 0.0)))
    link = builder.add_link(mass=1.0, inertia=np.eye(3) * inertia)
    drive = {"target_pos": target, "target_ke": ke, "target_kd": kd, "effort_limit": 36.0}
    joints.append(builder.add_joint_revolute(parent, link, axis=(0.0, 0.0, 1.0), **drive))
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=dt, decimation=1, threads=1)
    simulation.step()
    assert simulation.solver.last_solve_iterations.numpy()[0] == (2 if has_carriage else 1)
    expected = dt * ke * target / (inertia + dt * (dt * ke + kd))
    np.testing.assert_allclose(simulation.state.joint_qd.numpy()[-1], expected, rtol=1e-6)
