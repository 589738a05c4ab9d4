"""Pluriverse with `SolverMuJoCo`, recorded, on all threads asked for."""

from pathlib import Path

import numpy as np
import warp as wp

import pluriverse as pv
from benchmarks.measure import measure, parse_arguments
from benchmarks.scenes import DT


def make_model(paths: list[Path], world_count: int) -> pv.Model:
    """Return so many worlds of each of some scenes, with all that MJCF says about MuJoCo."""
    builder = pv.ModelBuilder()
    pv.SolverMuJoCo.register_custom_attributes(builder)
    for path in paths:
        robot = pv.ModelBuilder()
        pv.SolverMuJoCo.register_custom_attributes(robot)
        robot.add_mjcf(path)
        builder.replicate(robot, world_count)
    return builder.finalize("cpu")


def make_simulation(paths: list[Path], world_count: int, *, threads: int) -> pv.Simulation:
    """Return a simulation of so many worlds of each of some scenes."""
    model = make_model(paths, world_count)
    return pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT, threads=threads)


def main() -> None:
    """Measure one scene."""
    arguments = parse_arguments("pluriverse_mujoco")
    wp.config.log_level = wp.LOG_WARNING
    with make_simulation([arguments.model], arguments.worlds, threads=arguments.threads) as simulation:

        def largest_speed() -> float:
            return float(np.abs(simulation.state.joint_qd.numpy()).max())

        measure(arguments, simulation.step, largest_speed, pv.__version__)


if __name__ == "__main__":
    main()
