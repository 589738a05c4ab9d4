"""Where Newton's method over all joints begins: a little closer to free motion than the last velocities."""

import numpy as np

import pluriverse as pv

DT = 0.005
PLATE_COUNT = 7


def _slide(speeds: list[float], step_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Let plates at rest slide at `speeds` [m/s]; return iterations by step and world, and velocities.

    A world has seven plates on four corners each, more than the space of contacts has room for, which turn.
    """
    material = pv.ShapeConfig(mu=0.4, density=1000.0)
    plates = pv.ModelBuilder()
    for place in range(PLATE_COUNT):
        body = plates.add_body(xform=((0.0, 0.5 * place, 0.05), (0.0, 0.0, 0.0, 1.0)))
        plates.add_shape_box(body, hx=0.2, hy=0.15, hz=0.05, cfg=material)
    builder = pv.ModelBuilder()
    builder.replicate(plates, len(speeds))
    builder.add_ground_plane(cfg=material)
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=DT, threads=1)
    simulation.step(40)
    state = simulation.state
    joint_qd = state.joint_qd.numpy().reshape(len(speeds), PLATE_COUNT, 6)
    joint_qd[:, :, 0] = np.array(speeds)[:, None]
    rng = np.random.default_rng(1)
    joint_qd[:, :, 1] = rng.uniform(-0.5, 0.5, PLATE_COUNT)
    joint_qd[:, :, 5] = rng.uniform(-2.0, 2.0, PLATE_COUNT)
    state.joint_qd.assign(joint_qd.reshape(-1))
    pv.eval_fk(model, state.joint_q, state.joint_qd, state)
    iterations = []
    for _ in range(step_count):
        simulation.step()
        iterations.append(simulation.solver.last_solve_iterations.numpy().copy())
    assert not simulation.solver.unconverged_step_count.numpy().any()
    return np.array(iterations), simulation.state.joint_qd.numpy().reshape(len(speeds), -1)


def test_what_slides_on_many_contacts_begins_with_those_that_carry():
    """All corners carry, though rounding leaves half of them open at the velocities of the last step.

    From there Newton's method took six iterations.
    """
    iterations, _ = _slide([1.0], 6)
    assert iterations.mean() < 4.5


def test_worlds_begin_as_they_do_alone():
    """Whether a world begins closer to free motion depends on its own gradient only."""
    speeds = [1.0, 0.0, 0.4]
    _, together = _slide(speeds, 4)
    for index, speed in enumerate(speeds):
        _, alone = _slide([speed], 4)
        np.testing.assert_array_equal(together[index], alone[0])
