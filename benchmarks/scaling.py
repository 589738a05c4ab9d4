"""What a world costs with more threads and worlds, in calls of one step and of several.

`python -m benchmarks.scaling [--scenes go1 g1] [--worlds 64 1024 4096 16384] [--threads 1 2] [--calls 1 4]`

Nothing is set. Robots get new random targets every four steps, other scenes stay as they are. All numbers of
threads and steps a call begin at the same state in every round and make the same steps, to the bit, in turns
in one process, so that whatever else the machine does falls on all of them. The processor time of a
world-step tells whether threads are in each other's way (in caches and memory): it is what one thread takes
where they are not. What the rate lacks beyond that is waiting: for the last thread of a call, or for a
processor that another program has.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import mujoco
import numpy as np
import warp as wp

import pluriverse as pv
from benchmarks.motion import driven_dofs, make_model, starts_of
from benchmarks.motion_scenes import DECIMATION, DT, ROBOTS, Motion, MovingScene, write_motion
from benchmarks.scenes import SCENES, write_scene
from pluriverse.warnings import PluriverseWarning

# Control steps before the clock runs: 0.4 s, for robots to land where their targets move them.
SETTLING_CONTROL_STEPS = 20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    names = [*SCENES, *(robot for robot in ROBOTS if robot not in SCENES)]
    parser.add_argument("--scenes", nargs="+", default=["go1", "g1", "pile8"], choices=names)
    parser.add_argument("--worlds", nargs="+", type=int, default=[64])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--calls", nargs="+", type=int, default=[DECIMATION], help="steps in one call")
    parser.add_argument("--steps", type=int, default=100, help="steps of a round with 64 worlds")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    for call in arguments.calls:
        if call < 1 or DECIMATION % call != 0:
            parser.error(f"--calls {call}: a target holds for {DECIMATION} steps; pass a divisor of that.")
    wp.config.log_level = wp.LOG_WARNING
    warnings.simplefilter("ignore", PluriverseWarning)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.scenes:
            first: dict[tuple[int, int], float] = {}
            for world_count in arguments.worlds:
                for cost in _compare(name, Path(folder), world_count, arguments):
                    few = first.setdefault((cost.threads, cost.call), cost.work)
                    print(cost.text(cost.work / few), flush=True)


@dataclasses.dataclass(frozen=True)
class Cost:
    """What steps of one scene cost with some threads and steps a call."""

    name: str
    world_count: int
    threads: int
    call: int
    """Steps in one call."""
    wall: float
    """Median time of a world-step by the clock [s]."""
    work: float
    """Median processor time of a world-step [s]."""
    gain: float
    """How many times the rate of the first number of threads."""

    def text(self, growth: float) -> str:
        """Return a line, with what a world costs over what it cost in the first number of worlds."""
        return (
            f"{self.name} x {self.world_count}, {self.threads} threads, {self.call} steps a call: "
            f"{1.0 / self.wall:10,.0f} world-steps/s, {self.gain:.2f} times the first; "
            f"{1e6 * self.work:.2f} µs of a processor each, {growth:.2f} of the first number of worlds"
        )


def _write(name: str, world_count: int, folder: Path) -> MovingScene:
    """Write the file of a scene and return it with its starts and targets."""
    if name in ROBOTS:
        return write_motion(name, Motion.RANDOM, world_count, folder)
    path = write_scene(name, folder)
    model = mujoco.MjModel.from_xml_path(str(path))
    start = model.key_qpos[0] if model.nkey else model.qpos0
    control = model.key_ctrl[0] if model.nkey else np.zeros(model.nu)
    targets = np.tile(control, (1, world_count, 1))
    return MovingScene(path, np.tile(start, (world_count, 1)), targets, restarts=False)


def _compare(name: str, folder: Path, world_count: int, arguments: argparse.Namespace) -> list[Cost]:
    """Measure a number of worlds of a scene with every number of threads and of steps a call."""
    scene = _write(name, world_count, folder)
    model = make_model(scene, world_count, "sap")
    driven = driven_dofs(scene, model)
    target = np.array(model.joint_target_pos.numpy()).reshape(world_count, -1)
    simulations = [pv.Simulation(model, dt=DT, threads=threads) for threads in arguments.threads]

    def advance(simulation: pv.Simulation, control_step: int, call: int) -> None:
        """Make the steps of one control step, so many a call."""
        if len(driven):
            target[:, driven] = scene.targets[control_step % len(scene.targets)]
            simulation.control.joint_target_pos.assign(target.reshape(-1))
        for _ in range(DECIMATION // call):
            simulation.step(call)

    state = simulations[-1].state
    state.joint_q.assign(starts_of(scene, model))
    pv.eval_fk(model, state.joint_q, state.joint_qd, state)
    for control_step in range(SETTLING_CONTROL_STEPS):
        advance(simulations[-1], control_step, DECIMATION)
    start = simulations[-1].save()

    control_steps = max(1, arguments.steps * 64 // max(world_count, 64) // DECIMATION)
    contestants = [(index, call) for call in arguments.calls for index in range(len(simulations))]
    walls: dict[tuple[int, int], list[float]] = {contestant: [] for contestant in contestants}
    works: dict[tuple[int, int], list[float]] = {contestant: [] for contestant in contestants}
    for round in range(arguments.rounds + 1):
        for index, call in contestants:
            simulation = simulations[index]
            simulation.state.assign(start.state)
            begin, begin_work = time.perf_counter(), time.process_time()
            for control_step in range(control_steps):
                advance(simulation, SETTLING_CONTROL_STEPS + control_step, call)
            if round > 0:  # the first records, and finds everything in other caches
                walls[index, call].append(time.perf_counter() - begin)
                works[index, call].append(time.process_time() - begin_work)
    for simulation in simulations:
        simulation.close()
    count = world_count * control_steps * DECIMATION
    return [
        Cost(
            name,
            world_count,
            arguments.threads[index],
            call,
            wall=statistics.median(walls[index, call]) / count,
            work=statistics.median(works[index, call]) / count,
            gain=statistics.median(walls[0, call]) / statistics.median(walls[index, call]),
        )
        for index, call in contestants
    ]


if __name__ == "__main__":
    main()
