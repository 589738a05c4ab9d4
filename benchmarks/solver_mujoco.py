"""`SolverMuJoCo` on a CPU against bare `mujoco.rollout` and Newton, and a mix of robots against its parts.

`python -m benchmarks.solver_mujoco [--scenes go1 g1 arm pile8] [--worlds 1024] [--threads 4]
[--newton-python PYTHON]`

One step a call, as reinforcement learning makes them. Rollout and Pluriverse take turns in one process, so
that whatever else the machine does falls on both; Newton, recorded in a graph, has a process of its own.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import warp as wp
from mujoco import rollout
from rich.console import Console
from rich.table import Table

from benchmarks.engines.pluriverse_mujoco import make_simulation
from benchmarks.measure import SETTLING_STEP_COUNT
from benchmarks.scenes import SCENES, write_scene
from pluriverse.solvers.mujoco.cpu.clock import clock_pointer

REPOSITORY = Path(__file__).resolve().parent.parent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solver_mujoco", description=__doc__)
    parser.add_argument("--scenes", nargs="+", default=["go1", "g1", "arm", "pile8"], choices=list(SCENES))
    parser.add_argument("--worlds", type=int, default=1024, help="worlds of each kind")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=20, help="steps of a repeat")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--newton-python", help="interpreter with newton[sim]; without it Newton is left out")
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    table = Table(title=f"µs per world-step, {arguments.worlds} worlds, {arguments.threads} threads")
    for title in ("scene", "rollout", "Pluriverse", "of rollout", "Newton", "Newton / Pluriverse"):
        table.add_column(title, justify="left" if title == "scene" else "right")
    with tempfile.TemporaryDirectory() as folder:
        paths = [write_scene(scene, Path(folder)) for scene in arguments.scenes]
        for scene, path in zip(arguments.scenes, paths, strict=True):
            bare, ours = _compare(path, arguments)
            newton = _measure_newton(path, arguments)
            table.add_row(
                scene,
                f"{bare:.2f}",
                f"{ours:.2f}",
                f"{ours / bare:.2f}",
                f"{newton:.1f}" if newton else "-",
                f"{newton / ours:.1f}" if newton else "-",
            )
        Console().print(table)
        _print_mixture(paths, arguments)


def _compare(path: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """Return the time of a world-step in `mujoco.rollout` and in Pluriverse [µs], median of repeats."""
    gc.collect()  # the solver of the scene before
    pointer = clock_pointer()
    clock = None if pointer is None else pointer.value
    with make_simulation([path], arguments.worlds, threads=arguments.threads) as simulation:
        bare = make_rollout(path, arguments.worlds, arguments.threads, clock)
        works: list[Callable[[], None]] = [bare, simulation.step]
        for work in works:
            for _ in range(SETTLING_STEP_COUNT):
                work()
        durations = _measure_in_turns(works, arguments.steps, arguments.repeats)
    return durations[0] / arguments.worlds, durations[1] / arguments.worlds


def make_rollout(path: Path, world_count: int, thread_count: int, clock: int | None) -> Callable[[], None]:
    """Return a function that makes one step of all worlds by `mujoco.rollout`, as quickly as it can.

    `clock` is what MuJoCo's Python package reads the time with.
    """
    pointer = clock_pointer()
    model = mujoco.MjModel.from_xml_path(str(path))
    data = [mujoco.MjData(model) for _ in range(thread_count)]
    mujoco.mj_resetDataKeyframe(model, data[0], 0)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data[0], start, full)
    states = np.repeat(start[None], world_count, axis=0)
    control = np.tile(data[0].ctrl, (world_count, 1, 1))
    trajectory = np.empty((world_count, 1, len(start)))
    pool = rollout.Rollout(nthread=thread_count)

    def step() -> None:
        nonlocal states
        if pointer is not None:  # MuJoCo as it is without us, who stop its clock
            pointer.value = clock
        pool.rollout(model, data, states, control=control, nstep=1, state=trajectory)
        if pointer is not None:
            pointer.value = None
        states = trajectory[:, 0].copy()

    return step


def _measure_in_turns(works: list[Callable[[], None]], count: int, repeats: int) -> list[float]:
    """Return the time of one call of each function [µs], median of repeats."""
    durations: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, taken in zip(works, durations, strict=True):
            begin = time.perf_counter()
            for _ in range(count):
                work()
            taken.append(1e6 * (time.perf_counter() - begin) / count)
    return [statistics.median(taken) for taken in durations]


def _measure_newton(path: Path, arguments: argparse.Namespace) -> float | None:
    """Return the time of a world-step in Newton's `SolverMuJoCo` on the CPU [µs]; None without Newton."""
    if not arguments.newton_python:
        return None
    command = [arguments.newton_python, "-m", "benchmarks.engines.newton", str(path)]
    command += ["--worlds", str(arguments.worlds), "--repeats", "3"]
    process = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return 1e6 / float(json.loads(process.stdout.strip().splitlines()[-1])["world_steps_per_second"])


def _print_mixture(paths: list[Path], arguments: argparse.Namespace) -> None:
    """Print what all scenes cost in one batch, against the same worlds in batches of their own."""
    count = max(arguments.worlds // len(paths), 1)
    batches = [*([path] for path in paths), paths]
    simulations = [make_simulation(batch, count, threads=arguments.threads) for batch in batches]
    for simulation in simulations:
        simulation.step(SETTLING_STEP_COUNT)
    *parts, mixture = _measure_in_turns(
        [simulation.step for simulation in simulations], arguments.steps, arguments.repeats
    )
    print(
        f"{count} worlds of each in one batch: {mixture:.0f} µs a step, "
        f"{mixture / sum(parts):.2f} of the sum of {', '.join(f'{part:.0f}' for part in parts)}"
    )


if __name__ == "__main__":
    main()
