"""What a world costs with more threads and worlds, in calls of one step and of several.

`python -m benchmarks.scaling [--scenes go1 g1] [--worlds 64 1024 4096 16384] [--threads 1 2] [--calls 1 4]`

Nothing is set. Robots get new random targets every four steps, other scenes stay as they are. All numbers of
threads and steps a call begin at the same state in every round and make the same steps, to the bit. They and
all numbers of worlds take turns in one process, so that whatever else the machine does falls on all of them.
The processor time of a world-step tells whether threads are in each other's way (in caches and memory): it is
what one thread takes where they are not. What the rate lacks beyond that is waiting: for the last thread of a
call, or for a processor that another program has.
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
            for cost in _compare(name, Path(folder), arguments):
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


class _Batch:
    """Some worlds of a scene, with a simulation for every number of threads."""

    def __init__(self, name: str, folder: Path, world_count: int, arguments: argparse.Namespace):
        self.world_count = world_count
        self._scene = _write(name, world_count, folder)
        model = make_model(self._scene, world_count, "sap")
        self._driven = driven_dofs(self._scene, model)
        self._target = np.array(model.joint_target_pos.numpy()).reshape(world_count, -1)
        self._simulations = [pv.Simulation(model, dt=DT, threads=threads) for threads in arguments.threads]
        state = self._simulations[-1].state
        state.joint_q.assign(starts_of(self._scene, model))
        pv.eval_fk(model, state.joint_q, state.joint_qd, state)
        for control_step in range(SETTLING_CONTROL_STEPS):
            self._advance(self._simulations[-1], control_step, DECIMATION)
        self._start = self._simulations[-1].save()
        self._control_steps = max(1, arguments.steps * 64 // max(world_count, 64) // DECIMATION)
        self._walls: dict[tuple[int, int], list[float]] = {}
        self._works: dict[tuple[int, int], list[float]] = {}

    def _advance(self, simulation: pv.Simulation, control_step: int, call: int) -> None:
        """Make the steps of one control step, so many a call."""
        if len(self._driven):
            self._target[:, self._driven] = self._scene.targets[control_step % len(self._scene.targets)]
            simulation.control.joint_target_pos.assign(self._target.reshape(-1))
        for _ in range(DECIMATION // call):
            simulation.step(call)

    def measure(self, index: int, call: int, *, is_warmup: bool) -> None:
        """Make the steps of a round with one of the simulations, so many a call."""
        simulation = self._simulations[index]
        simulation.state.assign(self._start.state)
        begin, begin_work = time.perf_counter(), time.process_time()
        for control_step in range(self._control_steps):
            self._advance(simulation, SETTLING_CONTROL_STEPS + control_step, call)
        if not is_warmup:
            self._walls.setdefault((index, call), []).append(time.perf_counter() - begin)
            self._works.setdefault((index, call), []).append(time.process_time() - begin_work)

    def cost(self, name: str, index: int, call: int, threads: int) -> Cost:
        """Return the medians of the rounds."""
        count = self.world_count * self._control_steps * DECIMATION
        wall = statistics.median(self._walls[index, call])
        return Cost(
            name,
            self.world_count,
            threads,
            call,
            wall=wall / count,
            work=statistics.median(self._works[index, call]) / count,
            gain=statistics.median(self._walls[0, call]) / wall,
        )

    def close(self) -> None:
        """End the threads."""
        for simulation in self._simulations:
            simulation.close()


def _compare(name: str, folder: Path, arguments: argparse.Namespace) -> list[Cost]:
    """Measure a scene with every number of worlds, of threads and of steps a call, in turns."""
    batches = [_Batch(name, folder, world_count, arguments) for world_count in arguments.worlds]
    contestants = [(index, call) for call in arguments.calls for index in range(len(arguments.threads))]
    for round in range(arguments.rounds + 1):
        for index, call in contestants:
            for batch in batches:
                # The first round records, and finds everything in other caches.
                batch.measure(index, call, is_warmup=round == 0)
    for batch in batches:
        batch.close()
    return [
        batch.cost(name, index, call, arguments.threads[index])
        for batch in batches
        for index, call in contestants
    ]


if __name__ == "__main__":
    main()
