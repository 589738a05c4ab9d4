"""Sliding contacts obey Coulomb's law with `friction_law="coulomb"`, and open where friction is convex."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, ShapeConfig, Simulation, SolverSAP, eval_fk

GRAVITY = 9.81


def _slide(velocities, *, height, mu, dt, seconds, law="coulomb", turns=True):
    """Step cubes of 0.2 m from `velocities` (x, z); return heights over time, positions and velocities."""
    config = ShapeConfig(mu=mu, density=1000.0)
    cube, worlds = ModelBuilder(), ModelBuilder()
    body = cube.add_body(xform=((0.0, 0.0, 0.1 + height), (0.0, 0.0, 0.0, 1.0)))
    cube.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=config)
    if not turns:
        cube.body_inertia[0] = 1e3 * np.eye(3)
    count = len(velocities)
    worlds.replicate(cube, count)
    worlds.add_ground_plane(cfg=config)
    model = worlds.finalize("cpu")
    solver = SolverSAP(model, friction_law=law)
    simulation = Simulation(model, solver, dt=dt, threads=1)
    if height == 0.0:
        simulation.step(50)
    state = simulation.state
    start = state.joint_q.numpy().reshape(count, 7)[:, 0].copy()
    speeds = np.zeros((count, 6), np.float32)
    speeds[:, [0, 2]] = velocities
    state.joint_qd.assign(speeds.ravel())
    eval_fk(model, state.joint_q, state.joint_qd, state)
    heights, sliding = [], []
    for _ in range(round(seconds / dt)):
        simulation.step()
        heights.append(simulation.state.joint_q.numpy().reshape(count, 7)[:, 2] - 0.1)
        sliding.append(simulation.state.joint_qd.numpy().reshape(count, 6)[:, 0].copy())
    assert simulation.solver.unconverged_step_count.numpy().sum() == 0
    way = simulation.state.joint_q.numpy().reshape(count, 7)[:, 0] - start
    return np.array(heights), way, np.array(sliding)


@pytest.mark.parametrize("dt", [0.002, 0.01])
@pytest.mark.parametrize("mu", [0.5, 1.0])
def test_a_box_that_is_pushed_slides_as_far_as_friction_lets_it_and_stays_on_the_ground(dt, mu):
    """The way is v² / (2 mu g), less what one step of dt makes of it."""
    speeds = np.array([0.5, 1.0, 2.0, 3.0])
    heights, way, _ = _slide([(v, 0.0) for v in speeds], height=0.0, mu=mu, dt=dt, seconds=1.0)
    # s is right to 5 %, and lags by the change of mu v in a step; gaps close within two steps.
    assert np.abs(heights).max() < dt * (0.05 * mu * speeds.max() + 4.0 * mu**2 * GRAVITY * dt)
    np.testing.assert_allclose(way, speeds**2 / (2.0 * mu * GRAVITY), atol=speeds.max() * 0.6 * dt)


def test_with_convex_friction_the_box_leaves_the_ground_at_mu_times_its_speed():
    """Convex friction parts the surfaces at mu |v_t|: v_n² / 2g high."""
    heights, _, _ = _slide([(2.0, 0.0)], height=0.0, mu=1.0, dt=0.005, seconds=0.4, law="convex")
    assert 0.04 < heights.max() < 0.06


def test_an_oblique_impact_takes_mu_times_the_normal_velocity_and_does_not_bounce():
    """Of a cube that does not turn, friction takes mu |v_n| of v_t in the impact, then mu g t."""
    velocities = [(1.0, -3.0), (3.0, -1.0), (3.0, -3.0), (5.0, -0.5), (10.0, -2.0)]
    mu, dt, steps = 0.5, 0.005, 8
    heights, _, sliding = _slide(velocities, height=0.002, mu=mu, dt=dt, seconds=steps * dt, turns=False)
    expected = [max(vx + mu * vz - mu * GRAVITY * steps * dt, 0.0) for vx, vz in velocities]
    np.testing.assert_allclose(sliding[-1], expected, atol=mu * GRAVITY * 2.0 * dt)
    assert heights[2:].max() < 1e-3
    assert heights.min() > -1e-3


def test_worlds_that_slide_have_the_bits_they_have_alone():
    """Each world has the friction of its own contacts only."""
    velocities = [(3.0, -1.0), (1.0, -3.0), (5.0, -0.5)]
    options = {"height": 0.002, "mu": 0.7, "dt": 0.005, "seconds": 0.1}
    together = _slide(velocities, **options)
    for index, velocity in enumerate(velocities):
        alone = _slide([velocity], **options)
        for all_worlds, one in zip((together[0], together[2]), (alone[0], alone[2]), strict=True):
            np.testing.assert_array_equal(all_worlds[:, index], one[:, 0])


def test_a_box_slides_alike_in_a_world_of_too_many_contacts_for_contact_space():
    """With twelve more boxes at rest friction is corrected from convex problems; the box stays down, too."""
    config, dt, speed = ShapeConfig(mu=1.0, density=1000.0), 0.005, 2.0
    builder = ModelBuilder()
    for index in range(13):
        body = builder.add_body(xform=((0.0, float(index), 0.1), (0.0, 0.0, 0.0, 1.0)))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=config)
    builder.add_ground_plane(cfg=config)
    model = builder.finalize("cpu")
    simulation = Simulation(model, dt=dt, threads=1)
    simulation.step(60)
    velocity = simulation.state.joint_qd.numpy().copy()
    velocity[0] = speed
    simulation.state.joint_qd.assign(velocity)
    eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
    first = simulation.state.body_q.numpy()[0].copy()
    hop = 0.0
    for _ in range(100):
        simulation.step()
        hop = max(hop, simulation.state.body_q.numpy()[0, 2] - first[2])
    assert simulation.solver.last_contact_count.numpy()[0] > 24
    assert simulation.solver.unconverged_step_count.numpy()[0] == 0
    assert hop < 1e-4
    way = simulation.state.body_q.numpy()[0, 0] - first[0]
    np.testing.assert_allclose(way, speed**2 / (2.0 * GRAVITY), atol=0.6 * speed * dt)


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_steps_with_approximate_friction_are_counted_by_world(law):
    """Nine boxes that strike the ground askew have too many contacts for an exact solution, one box has not.

    Convex friction that was asked for approximates nothing.
    """
    config, builder = ShapeConfig(mu=1.0, density=1000.0), ModelBuilder()
    for count in (1, 9):
        world = ModelBuilder()
        for index in range(count):
            body = world.add_body(xform=((0.0, float(index), 0.102), (0.0, 0.0, 0.0, 1.0)))
            world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=config)
        builder.add_world(world)
    builder.add_ground_plane(cfg=config)
    model = builder.finalize("cpu")
    simulation = Simulation(model, SolverSAP(model, friction_law=law), dt=0.005, threads=1)
    state = simulation.state
    velocity = np.zeros((10, 6), np.float32)
    velocity[:, 0], velocity[:, 2] = np.linspace(1.0, 3.0, 10), -1.0
    state.joint_qd.assign(velocity.ravel())
    eval_fk(model, state.joint_q, state.joint_qd, state)
    simulation.step(10)
    counts = simulation.solver.approximated_step_count.numpy()
    assert counts[0] == 0
    assert (counts[1] > 0) == (law == "coulomb")
    assert simulation.report().approximated_step_count == counts.sum()
    simulation.clear_report()
    assert simulation.report().approximated_step_count == 0
