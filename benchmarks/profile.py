"""Where the time of a step goes, kernel by kernel: `python -m benchmarks.profile SCENE [--worlds 256]`.

Every kernel is launched from Python and timed. With many worlds the launch itself, some microseconds, is lost
in the time of the kernel.
"""

import argparse
import collections
import tempfile
import time
from pathlib import Path
from typing import Any

import warp as wp

import pluriverse as pv
from benchmarks.engines.pluriverse import make_model
from benchmarks.measure import SETTLING_STEP_COUNT
from benchmarks.scenes import DT, SCENES, write_scene


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("scene", choices=list(SCENES))
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    with tempfile.TemporaryDirectory() as folder:
        model = make_model([write_scene(arguments.scene, Path(folder))], arguments.worlds)

    durations: dict[str, float] = collections.defaultdict(float)
    launch = wp.launch

    def timed_launch(kernel: Any, *positional: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        result = launch(kernel, *positional, **named)
        durations[kernel.key.split("__locals__")[-1]] += time.perf_counter() - begin
        return result

    simulation = pv.Simulation(model, dt=DT, record=False)
    simulation.step(SETTLING_STEP_COUNT)
    wp.launch = timed_launch
    try:
        simulation.step(arguments.steps)
    finally:
        wp.launch = launch
    world_step_count = arguments.worlds * arguments.steps
    total = sum(durations.values())
    report = simulation.report()
    print(
        f"{arguments.scene} x {arguments.worlds}: {1e6 * total / world_step_count:.2f} µs per world-step, "
        f"{report.contact_count_mean:.1f} contacts, {report.iteration_count_mean:.2f} iterations"
    )
    for name, duration in sorted(durations.items(), key=lambda item: -item[1]):
        print(f"  {name:50} {1e6 * duration / world_step_count:8.2f} µs {100.0 * duration / total:5.1f} %")


if __name__ == "__main__":
    main()
