"""Pluriverse: `SolverSAP` with its defaults, recorded, on all threads asked for."""

from pathlib import Path

import numpy as np
import warp as wp

import pluriverse as pv
from benchmarks.measure import measure, parse_arguments
from benchmarks.scenes import DT

# Contact stiffness [N/m] and dissipation time [s] of all shapes: a box of 3 kg sinks in by 0.1 mm.
STIFFNESS, RELAXATION_TIME = 1.0e5, 0.01
# Distance from which contacts are created [m]; MuJoCo creates them when shapes touch.
GAP = 0.002


def make_model(paths: list[Path], world_count: int, device: str = "cpu") -> pv.Model:
    """Return so many worlds of each of some scenes."""
    builder = pv.ModelBuilder()
    for path in paths:
        robot = pv.ModelBuilder()
        robot.default_shape_cfg.ke = STIFFNESS
        robot.default_shape_cfg.tau = RELAXATION_TIME
        robot.rigid_gap = GAP
        robot.add_mjcf(path)
        builder.replicate(robot, world_count)
    return builder.finalize(device)


def main() -> None:
    """Measure one scene."""
    arguments = parse_arguments("pluriverse")
    wp.config.log_level = wp.LOG_WARNING
    model = make_model([arguments.model], arguments.worlds)
    with pv.Simulation(model, dt=DT, threads=arguments.threads) as simulation:

        def largest_speed() -> float:
            return float(np.abs(simulation.state.joint_qd.numpy()).max())

        measure(arguments, simulation.step, largest_speed, pv.__version__)


if __name__ == "__main__":
    main()
