"""Directions with the factors of the one before, where friction turns a little."""

import warnings

import numpy as np

import pluriverse as pv
from pluriverse.solvers.sap.inspection import ConvexProblem
from pluriverse.warnings import PluriverseWarning

DT = 0.005
BOX_COUNT = 6


def _scene(world_count: int = 1) -> pv.Model:
    """Six boxes on four corners each, which slide down a slope and are turned by it: 24 contacts a world."""
    world = pv.ModelBuilder()
    material = pv.ShapeConfig(mu=0.3)
    for place in range(BOX_COUNT):
        body = world.add_body(xform=((0.0, 0.5 * place, 0.1), (0.0, 0.0, 0.0, 1.0)))
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=material)
    builder = pv.ModelBuilder(gravity=(3.5, 0.4, -9.0))
    builder.replicate(world, world_count)
    builder.add_ground_plane(cfg=material)
    return builder.finalize("cpu")


def _simulation(model: pv.Model, threads: int = 1, **options: float) -> pv.Simulation:
    solver = pv.SolverSAP(model, friction_law="convex", **options)
    return pv.Simulation(model, solver, dt=DT, threads=threads)


def _spin(simulation: pv.Simulation, speeds: np.ndarray) -> None:
    """Let the boxes of each world turn about the vertical at the `speeds` [rad/s]."""
    joint_qd = simulation.state.joint_qd.numpy().reshape(len(speeds), BOX_COUNT, 6)
    joint_qd[:, :, :] = 0.0
    joint_qd[:, :, 0] = 0.2
    joint_qd[:, :, 5] = speeds[:, None] * np.linspace(0.5, 1.0, BOX_COUNT)
    simulation.state.joint_qd.assign(joint_qd.reshape(-1))


def _problem(model: pv.Model, start: pv.State, iterations: int) -> tuple[ConvexProblem, bool]:
    """Return the problem after so many iterations from `start`, and whether these were made."""
    simulation = _simulation(model, max_iterations=iterations)
    simulation.state.assign(start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluriverseWarning)  # not converged
        simulation.step()
    done = int(simulation.solver.workspace.iterations.numpy()[0])
    return simulation.solver.convex_problem(0, DT), done == iterations


def test_the_last_directions_have_the_factors_of_the_one_before():
    """A direction leaves a small share of the gradient, where its own Hessian would leave rounding.

    The solution is that of a solver with a tolerance that is tighter by four decades.
    """
    model = _scene()
    simulation = _simulation(model)
    _spin(simulation, np.array([0.3]))
    simulation.step()
    start = simulation.save().state
    shares = []
    before, was_made = _problem(model, start, 1)
    while was_made:
        after, was_made = _problem(model, start, len(shares) + 2)
        if was_made:
            left = before.hessian @ (after.velocity - before.velocity) + before.gradient
            shares.append(np.linalg.norm(left) / np.linalg.norm(before.gradient))
            before = after
    assert len(shares) > 1
    assert 1e-4 < shares[-1] < 0.1
    assert min(shares) < 1e-9
    exact = _simulation(model, optimality_rel_tol=1e-10, cost_rel_tol=0.0)
    exact.state.assign(start)
    exact.step()
    wanted = exact.solver.convex_problem(0, DT).velocity
    np.testing.assert_allclose(before.velocity, wanted, rtol=0.0, atol=1e-7)


def test_worlds_have_the_same_bits_alone_and_among_others():
    """What a world keeps does not depend on the others of its launch."""

    def run(speeds: list[float], threads: int) -> np.ndarray:
        simulation = _simulation(_scene(len(speeds)), threads)
        _spin(simulation, np.array(speeds))
        simulation.step(8)
        return simulation.state.joint_qd.numpy().reshape(len(speeds), -1).copy()

    speeds = [0.3, 0.0, 1.0, -2.0, 0.1]
    for threads in (1, 2):
        together = run(speeds, threads)
        for world, speed in enumerate(speeds):
            np.testing.assert_array_equal(together[world], run([speed], 1)[0])
