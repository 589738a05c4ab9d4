"""Scenes full of contacts: `SolverSAP` against MuJoCo on the same scene, and what a pile costs per box.

`python -m benchmarks.contact_rich [--scenes go1_rough hand bin20 pile64] [--worlds 16] [--threads 1]`

All engines read the same MJCF file and take turns in one process, so that whatever else the machine does
falls on all of them. How deep shapes are in each other is measured by the same collision pipeline for all.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import warp as wp
from rich.console import Console
from rich.table import Table

import pluriverse as pv
from benchmarks.engines import pluriverse, pluriverse_mujoco
from benchmarks.measure import SETTLING_STEP_COUNT
from benchmarks.scenes import DT, SCENES, PileScene, write_mjcf, write_scene
from benchmarks.solver_mujoco import make_rollout
from pluriverse.solvers.mujoco.cpu.clock import clock_pointer

# Newton iterations are those of every so many steps.
SAMPLE_STEP_COUNT = 10
# Columns of the terminal, so that no name is cut off.
TABLE_WIDTH = 130


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contact_rich", description=__doc__)
    parser.add_argument(
        "--scenes",
        nargs="*",
        default=["go1_rough", "hand", "bin8", "bin20", "pile64"],
        choices=list(SCENES),
        metavar="SCENE",
    )
    parser.add_argument("--sides", nargs="*", type=int, default=[1, 2, 3, 4], help="boxes along a pile")
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40, help="steps of a repeat")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    console = Console(width=TABLE_WIDTH)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.scenes:
            console.print(_compare_scenes(arguments, Path(folder)))
        if arguments.sides:
            console.print(_compare_piles(arguments, Path(folder)))


def _compare_scenes(arguments: argparse.Namespace, folder: Path) -> Table:
    """Return the table of engines by scene."""
    table = Table(title=f"{arguments.worlds} worlds, {arguments.threads} threads, steps of {1e3 * DT:g} ms")
    for title in (
        "scene",
        "engine",
        "world-steps/s",
        "touching",
        "deepest, mm",
        "iterations",
        "most",
        "unconverged",
        "fastest",
    ):
        table.add_column(title, justify="left" if title in ("scene", "engine") else "right")
    pointer = clock_pointer()
    clock = None if pointer is None else pointer.value  # what MuJoCo reads the time with by itself
    for scene in arguments.scenes:
        path = write_scene(scene, folder)
        simulations = _make_simulations(path, arguments)
        bare = make_rollout(path, arguments.worlds, arguments.threads, clock)
        rates = _measure(
            [*(simulation.step for simulation in simulations.values()), _repeated(bare)], arguments
        )
        for (engine, simulation), rate in zip(simulations.items(), rates, strict=False):
            table.add_row(scene, engine, f"{rate:,.0f}", *_quality(simulation, arguments.steps))
            simulation.close()
        table.add_row(scene, "mujoco.rollout", f"{rates[-1]:,.0f}", *[""] * 6)
    return table


def _compare_piles(arguments: argparse.Namespace, folder: Path) -> Table:
    """Return the table of what a step costs per box, in piles of several sizes."""
    table = Table(title="piles: µs per step and box, and times that of a single box")
    for title in ("boxes", "contacts", "SolverSAP", "times", "SolverMuJoCo", "times"):
        table.add_column(title, justify="right")
    single: list[float] = []
    for side in arguments.sides:
        path = folder / f"pile_of_{side}.xml"
        write_mjcf(PileScene(side_count=side), path)
        simulations = _make_simulations(path, arguments)
        rates = _measure([simulation.step for simulation in simulations.values()], arguments)
        costs = [1e6 / (rate * side**3) for rate in rates]
        single = single or costs
        distance = contact_distances(simulations["SolverSAP"])
        cells = [f"{cost:.2f}|{cost / first:.2f}" for cost, first in zip(costs, single, strict=True)]
        table.add_row(str(side**3), f"{len(distance) / arguments.worlds:.0f}", *"|".join(cells).split("|"))
        for simulation in simulations.values():
            simulation.close()
    return table


def _make_simulations(path: Path, arguments: argparse.Namespace) -> dict[str, pv.Simulation]:
    """Return a simulation per solver."""
    model = pluriverse.make_model([path], arguments.worlds)
    return {
        "SolverSAP": pv.Simulation(model, dt=DT, threads=arguments.threads),
        "SolverMuJoCo": pluriverse_mujoco.make_simulation(
            [path], arguments.worlds, threads=arguments.threads
        ),
    }


def _repeated(step: Callable[[], None]) -> Callable[[int], None]:
    """Return a function that makes so many steps of one that makes one."""

    def work(count: int) -> None:
        for _ in range(count):
            step()

    return work


def _measure(works: list[Callable[[int], None]], arguments: argparse.Namespace) -> list[float]:
    """Return the world-steps per second of each function, median of repeats."""
    for work in works:
        work(SETTLING_STEP_COUNT)
    rates: list[list[float]] = [[] for _ in works]
    for _ in range(arguments.repeats):
        for work, measured in zip(works, rates, strict=True):
            begin = time.perf_counter()
            work(arguments.steps)
            measured.append(arguments.worlds * arguments.steps / (time.perf_counter() - begin))
    return [statistics.median(measured) for measured in rates]


def _quality(simulation: pv.Simulation, step_count: int) -> list[str]:
    """Return how well a simulation goes on, as cells of the table."""
    solver = simulation.solver
    before = solver.unconverged_step_count.numpy().sum()
    iterations = []
    for _ in range(0, step_count, SAMPLE_STEP_COUNT):
        simulation.step(SAMPLE_STEP_COUNT)
        iterations.append(solver.last_solve_iterations.numpy())
    unconverged = solver.unconverged_step_count.numpy().sum() - before
    distance = contact_distances(simulation)
    touching = distance[distance < 0.0]
    return [
        f"{len(touching) / simulation.model.world_count:.0f}",
        f"{1e3 * -touching.min():.3f}" if len(touching) else "0",
        f"{np.mean(iterations):.1f}",
        f"{np.max(iterations)}",
        f"{unconverged}",
        f"{np.abs(simulation.state.joint_qd.numpy()).max():.3f}",
    ]


def contact_distances(simulation: pv.Simulation) -> np.ndarray:
    """Return the distance of the shapes at every contact of a state [m], as our own pipeline finds them."""
    model = simulation.model
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    pipeline.collide(simulation.state, contacts)
    begin, count = contacts.rigid_contact_start.numpy(), contacts.rigid_contact_count.numpy()
    slots = np.concatenate(
        [np.arange(first, first + size) for first, size in zip(begin, count, strict=False)]
    )
    body_q = np.concatenate([simulation.state.body_q.numpy(), [[0, 0, 0, 0, 0, 0, 1]]]).astype(np.float64)
    body_of, places = model.shape_body.numpy(), []
    for side in "01":
        pose = body_q[body_of[getattr(contacts, f"rigid_contact_shape{side}").numpy()[slots]]]
        point = getattr(contacts, f"rigid_contact_point{side}").numpy()[slots].astype(np.float64)
        axis, w = pose[:, 3:6], pose[:, 6:]
        turned = point + 2.0 * np.cross(axis, np.cross(axis, point) + w * point)
        places.append(pose[:, :3] + turned)
    normal = contacts.rigid_contact_normal.numpy()[slots]
    distance: np.ndarray = np.einsum("ij,ij->i", normal, places[1] - places[0])
    return distance


if __name__ == "__main__":
    main()
