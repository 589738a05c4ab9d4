"""How many world-steps a second each device makes: `python -m benchmarks.devices [--devices cpu cuda:0]`."""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import warp as wp

import pluriverse as pv
from benchmarks.engines.pluriverse import make_model
from benchmarks.scenes import DT, SCENES, write_scene

SOLVERS = ("sap", "mujoco")
WARM_UP_STEP_COUNT = 20


def main() -> None:
    """Measure and print."""
    here = [str(device) for device in wp.get_devices()]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=__doc__)
    parser.add_argument("--devices", nargs="+", default=here, choices=here)
    parser.add_argument("--scenes", nargs="+", default=["go1", "g1", "arm", "pile8"], choices=list(SCENES))
    parser.add_argument("--worlds", nargs="+", type=int, default=[1024, 4096, 16384])
    parser.add_argument("--solvers", nargs="+", default=["sap"], choices=SOLVERS)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    for device in arguments.devices:
        print(f"{device}: {wp.get_device(device).name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.scenes:
            path = write_scene(name, Path(folder))
            for solver in arguments.solvers:
                for world_count in arguments.worlds:
                    rates = {
                        device: _rate(path, world_count, device, solver, arguments)
                        for device in arguments.devices
                    }
                    told = ", ".join(f"{device} {rate:12,.0f}" for device, rate in rates.items())
                    print(f"{name:8} {solver:6} x {world_count:6}: {told} world-steps/s", flush=True)


def _rate(path: Path, world_count: int, device: str, solver: str, arguments: argparse.Namespace) -> float:
    """Return the median rate of calls of many steps; the work of a GPU is waited for."""
    model = make_model([path], world_count, device)
    chosen = pv.SolverMuJoCo(model) if solver == "mujoco" else pv.SolverSAP(model)
    taken = []
    with pv.Simulation(model, chosen, dt=DT) as simulation:
        simulation.step(WARM_UP_STEP_COUNT)
        for _ in range(arguments.repeats):
            wp.synchronize_device(device)
            begin = time.perf_counter()
            simulation.step(arguments.steps)
            wp.synchronize_device(device)
            taken.append(time.perf_counter() - begin)
    return world_count * arguments.steps / statistics.median(taken)


if __name__ == "__main__":
    main()
