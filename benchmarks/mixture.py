"""What it costs to mix: worlds of several kinds in one batch against the same worlds in batches of their own.

`python -m benchmarks.mixture [--scenes go1 g1 arm pile8] [--worlds 64] [--threads 1]`
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixture", description=__doc__)
    parser.add_argument("--scenes", nargs="+", default=["go1", "g1", "arm", "pile8"], choices=list(SCENES))
    parser.add_argument("--worlds", type=int, default=64, help="worlds of each kind")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    with tempfile.TemporaryDirectory() as folder:
        paths = [write_scene(scene, Path(folder)) for scene in arguments.scenes]
        models = [make_model([path], arguments.worlds) for path in paths]
        models.append(make_model(paths, arguments.worlds))
    simulations = [pv.Simulation(model, dt=DT, threads=arguments.threads) for model in models]
    for simulation in simulations:
        simulation.step(SETTLING_STEP_COUNT)
    # In turns, so that whatever else the machine does falls on all of them.
    durations: list[list[float]] = [[] for _ in simulations]
    for _ in range(arguments.repeats):
        for simulation, taken in zip(simulations, durations, strict=True):
            begin = time.perf_counter()
            simulation.step(arguments.steps)
            taken.append((time.perf_counter() - begin) / arguments.steps)
    *parts, mixture = (1e6 * statistics.median(taken) for taken in durations)
    for scene, part in zip(arguments.scenes, parts, strict=True):
        print(f"{scene:10} x {arguments.worlds}: {part:10.0f} µs a step")
    print(f"{'sum':10}      {sum(parts):10.0f} µs")
    print(f"{'mixture':10}      {mixture:10.0f} µs, {mixture / sum(parts):.2f} of the sum")


if __name__ == "__main__":
    main()
