"""What it costs that the arrays of a simulation's state keep their addresses.

`python -m benchmarks.public_state` replays steps that end in the public state, and the same steps between two
states that take turns, in short slices one after the other on one thread. It prints the processor time of a
step of one world, and the median of the difference as a share of it.
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
from benchmarks.scenes import DT, write_scene
from pluriverse.solvers import SolverMuJoCo, SolverSAP

SOLVERS = {"sap": SolverSAP, "mujoco": SolverMuJoCo}
LINK = "link"


class _TakingTurns(pv.Simulation):
    """A simulation whose steps can be recorded without their last stage."""

    def record_pair(self, *, publishes: bool) -> wp.Graph:
        """Return a graph of two steps: each into the public state, or there and back between two states."""
        with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
            for step in range(2):
                if publishes:
                    self._launch_steps(self._stepped_worlds, 1)
                else:
                    self._launch_step(step, 1 - step, self._stepped_worlds)
        return capture.graph


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public_state", description=__doc__)
    parser.add_argument(
        "--scenes", nargs="+", default=[LINK, "pile8", "go1"], help=f"{LINK} or scenes of benchmarks.scenes"
    )
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=list(SOLVERS))
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--slices", type=int, default=400)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    print(f"{'scene':8} {'solver':8} {'step [us]':>10} {'state [ns]':>11} {'share':>8}")
    for scene in arguments.scenes:
        for solver in arguments.solvers:
            taken, cost = _measure(scene, solver, arguments.worlds, arguments.slices)
            print(f"{scene:8} {solver:8} {1e6 * taken:10.2f} {1e9 * cost:11.1f} {cost / taken:8.1%}")


def _measure(scene: str, solver: str, world_count: int, slices: int) -> tuple[float, float]:
    """Return how long a step of one world takes, and what of it the public state costs [s]."""
    if scene == LINK:
        model = _link_model(world_count)
    else:
        with tempfile.TemporaryDirectory() as folder:
            model = make_model([write_scene(scene, Path(folder))], world_count)
    simulation = _TakingTurns(model, SOLVERS[solver](model), dt=DT, threads=1)
    simulation.step(SETTLING_STEP_COUNT)
    ways = [simulation.record_pair(publishes=publishes) for publishes in (True, False)]
    replays = max(1, round(0.5e-3 / _duration(ways[1], 1)))
    taken, differences = [], []
    for turn in range(slices):
        order = (0, 1) if turn % 2 else (1, 0)
        times = {way: _duration(ways[way], replays) / (2 * replays * world_count) for way in order}
        taken.append(times[0])
        differences.append(times[0] - times[1])
    return statistics.median(taken), statistics.median(differences)


def _duration(graph: wp.Graph, count: int) -> float:
    """Return the processor time of so many replays [s]."""
    begin = time.thread_time()
    for _ in range(count):
        wp.capture_launch(graph)
    return time.thread_time() - begin


def _link_model(world_count: int) -> pv.Model:
    """Return worlds of a pendulum of one link each: the smallest step that there is."""
    world = pv.ModelBuilder()
    link = world.add_link(mass=1.0, inertia=((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)))
    hinge = ((0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0))
    world.add_articulation([world.add_joint_revolute(-1, link, axis=(0.0, 1.0, 0.0), child_xform=hinge)])
    builder = pv.ModelBuilder()
    builder.replicate(world, world_count)
    return builder.finalize(device="cpu")


if __name__ == "__main__":
    main()
