"""What it costs to step worlds in many processes: against one process, over workers, and over worlds.

`python -m benchmarks.cluster [--scene quadruped] [--workers 1 2 4] [--worlds 64 1024] [--steps-per-call 1 4]
[--nodes 2]`

Every fleet is measured in turns with one process that steps the same worlds with as many threads as the fleet
has workers, so that whatever else the machine does falls on both. Overhead is the time of a call that the
workers do not spend in stepping, as they report it. The cost of a world is the time of a call of the fleet
over worlds and steps. With `--nodes 2` workers are spread over two Ray nodes on this machine, between whose
object stores arrays are copied.
"""

import argparse
import os
import statistics
import time
from typing import Any

import warp as wp

import pluriverse as pv
from pluriverse.cluster import Fleet


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--scene", default="quadruped", help="scene file or name of a bundled scene")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--worlds", type=int, nargs="+", default=[64, 1024, 4096, 16384, 65536])
    parser.add_argument("--steps-per-call", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seconds", type=float, default=0.5, help="time of a turn, of one call at least")
    parser.add_argument("--nodes", type=int, default=1, help="Ray nodes on this machine")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--observe", nargs="*", default=["joint_q", "joint_qd"])
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_ERROR
    # Ray gives workers a lower priority, so other programs would fall on them alone.
    os.environ.setdefault("RAY_worker_niceness", "0")
    cluster = _start_nodes(arguments.nodes, max(arguments.workers)) if arguments.nodes > 1 else None
    columns = (
        "worlds",
        "workers",
        "steps a call",
        "one process",
        "fleet",
        "ratio",
        "overhead",
        "a world and step",
        "snapshot",
    )
    print("| " + " | ".join(columns) + " |")
    print("|" + " ---: |" * len(columns))
    for worlds in arguments.worlds:
        for workers in arguments.workers:
            for row in _measure(arguments, worlds, workers):
                print(row, flush=True)
    if cluster is not None:
        import ray

        ray.shutdown()
        cluster.shutdown()


def _start_nodes(count: int, workers: int) -> Any:
    """Start Ray nodes that only together have room for so many workers, and connect to them."""
    import ray
    from ray.cluster_utils import Cluster

    cores = -(-workers // count)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cores, "include_dashboard": False})
    for _ in range(count - 1):
        cluster.add_node(num_cpus=cores)
    ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
    cluster.wait_for_nodes()
    return cluster


def _measure(arguments: argparse.Namespace, worlds: int, workers: int) -> list[str]:
    """Return the rows of the table for so many worlds and workers."""
    rows = []
    loaded = pv.load_scene(arguments.scene, num_worlds=worlds)
    with (
        loaded.simulation(threads=workers) as simulation,
        # No snapshots while calls are timed; they are timed by themselves.
        Fleet(arguments.scene, worlds=worlds, workers=workers, snapshot_interval=10**9) as fleet,
    ):
        simulation.step(10)
        fleet.step(10)
        for count in arguments.steps_per_call:
            alone, together, overhead = [], [], []

            def step_alone(count: int = count) -> None:
                simulation.step(count)
                for name in arguments.observe:
                    getattr(simulation.state, name).numpy().copy()

            def step_fleet(count: int = count) -> None:
                fleet.step(count, observe=arguments.observe)

            calls = max(1, round(arguments.seconds / max(_time(step_alone, 2), 1e-6)))
            for _ in range(arguments.repeats):
                alone.append(_time(step_alone, calls))
                stepping = fleet.report().wall_time
                together.append(_time(step_fleet, calls))
                overhead.append(together[-1] - (fleet.report().wall_time - stepping) / calls)
            begin = time.perf_counter()
            for part in fleet.parts:
                part.take_snapshot()
            snapshot = time.perf_counter() - begin
            one, many, lost = (statistics.median(each) for each in (alone, together, overhead))
            rows.append(
                f"| {worlds:,} | {workers} | {count} | {1e3 * one:.2f} ms | {1e3 * many:.2f} ms | "
                f"{many / one:.2f} | {1e3 * lost:.2f} ms | {1e6 * many / worlds / count:.2f} µs | "
                f"{1e3 * snapshot:.0f} ms |"
            )
    return rows


def _time(call: Any, count: int) -> float:
    """Return the time of a call [s], a mean over so many of them."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


if __name__ == "__main__":
    main()
