"""What it costs to step worlds in many processes: against one process, over workers, and over worlds.

`python -m benchmarks.cluster [--scene quadruped] [--workers 1 2 4] [--worlds 64 1024] [--steps-per-call 1 4]`

Every fleet is measured in turns with one process that steps the same worlds with as many threads as the fleet
has workers, so that whatever else the machine does falls on both. Overhead is the time of a call that the
workers do not spend in stepping, as they report it.
"""

import argparse
import statistics
import time

import warp as wp

import pluriverse as pv
from pluriverse.cluster import Fleet


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--scene", default="quadruped", help="scene file or name of a bundled scene")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--worlds", type=int, nargs="+", default=[64, 1024, 4096])
    parser.add_argument("--steps-per-call", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--observe", nargs="*", default=["joint_q", "joint_qd"])
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_ERROR
    columns = ("worlds", "workers", "steps a call", "one process", "fleet", "ratio", "overhead", "snapshot")
    print("| " + " | ".join(columns) + " |")
    print("|" + " ---: |" * len(columns))
    for worlds in arguments.worlds:
        for workers in arguments.workers:
            for row in _measure(arguments, worlds, workers):
                print(row, flush=True)


def _measure(arguments: argparse.Namespace, worlds: int, workers: int) -> list[str]:
    """Return the rows of the table for so many worlds and workers."""
    rows = []
    loaded = pv.load_scene(arguments.scene, num_worlds=worlds)
    with (
        loaded.simulation(threads=workers) as simulation,
        # No snapshots while calls are timed; they are timed by themselves.
        Fleet(arguments.scene, worlds=worlds, workers=workers, snapshot_interval=10**9) as fleet,
    ):
        simulation.step(50)
        fleet.step(50)
        for count in arguments.steps_per_call:
            alone, together, overhead = [], [], []
            for _ in range(arguments.repeats):
                begin = time.perf_counter()
                for _ in range(arguments.calls):
                    simulation.step(count)
                    for name in arguments.observe:
                        getattr(simulation.state, name).numpy().copy()
                alone.append((time.perf_counter() - begin) / arguments.calls)
                stepping = fleet.report().wall_time
                begin = time.perf_counter()
                for _ in range(arguments.calls):
                    fleet.step(count, observe=arguments.observe)
                together.append((time.perf_counter() - begin) / arguments.calls)
                stepping = (fleet.report().wall_time - stepping) / arguments.calls
                overhead.append(together[-1] - stepping)
            begin = time.perf_counter()
            for part in fleet.parts:
                part.take_snapshot()
            snapshot = time.perf_counter() - begin
            one, many, lost = (statistics.median(each) for each in (alone, together, overhead))
            rows.append(
                f"| {worlds} | {workers} | {count} | {1e3 * one:.2f} ms | {1e3 * many:.2f} ms | "
                f"{many / one:.2f} | "
                f"{1e3 * lost:.2f} ms | {1e3 * snapshot:.0f} ms |"
            )
    return rows


if __name__ == "__main__":
    main()
