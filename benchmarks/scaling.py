"""What a world costs with more threads and worlds: `python -m benchmarks.scaling [--worlds 64 1024]`.

Simulations with different numbers of threads take turns in one process, so that whatever else the machine
does falls on all of them. The processor time of a world-step tells whether threads are in each other's way
(in caches and memory): it is what one thread takes where they are not. What the rate lacks beyond that is
waiting: for the last thread of a call, or for a processor that another program has.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import warp as wp

import pluriverse as pv
from benchmarks.engines.pluriverse import make_model
from benchmarks.measure import SETTLING_STEP_COUNT
from benchmarks.scenes import DT, SCENES, write_scene


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--scenes", nargs="+", default=["go1", "g1", "pile8"], choices=list(SCENES))
    parser.add_argument("--worlds", nargs="+", type=int, default=[64])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--call", choices=["many", "single"], default="many", help="steps in one call")
    parser.add_argument("--steps", type=int, default=100, help="steps of a repeat with 64 worlds")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    with tempfile.TemporaryDirectory() as folder:
        for scene in arguments.scenes:
            path = write_scene(scene, Path(folder))
            for world_count in arguments.worlds:
                _compare(scene, path, world_count, arguments)


def _compare(scene: str, path: Path, world_count: int, arguments: argparse.Namespace) -> None:
    """Print rate and processor time of a scene for every number of threads."""
    steps = max(1, arguments.steps * 64 // max(world_count, 64))
    simulations = [
        pv.Simulation(make_model([path], world_count), dt=DT, threads=threads)
        for threads in arguments.threads
    ]
    for simulation in simulations:
        simulation.step(SETTLING_STEP_COUNT)
    walls: list[list[float]] = [[] for _ in simulations]
    works: list[list[float]] = [[] for _ in simulations]
    for _ in range(arguments.repeats):
        for simulation, wall, work in zip(simulations, walls, works, strict=True):
            begin, begin_work = time.perf_counter(), time.process_time()
            if arguments.call == "many":
                simulation.step(steps)
            else:
                for _ in range(steps):
                    simulation.step()
            wall.append(time.perf_counter() - begin)
            work.append(time.process_time() - begin_work)
    count = world_count * steps
    first = statistics.median(walls[0])
    for threads, wall, work in zip(arguments.threads, walls, works, strict=True):
        median = statistics.median(wall)
        print(
            f"{scene} x {world_count}, {threads} threads: {count / median:10,.0f} world-steps/s, "
            f"{first / median:.2f} times the first; "
            f"{1e6 * statistics.median(work) / count:.2f} µs of a processor each"
        )
    for simulation in simulations:
        simulation.close()


if __name__ == "__main__":
    main()
