"""A soak: millions of world-steps with random actions, resets, draws, snapshots and restores.

`python -m benchmarks.soak [--world-steps 10000000]` runs the same random programme twice for each solver, on
one thread and on all cores, and fails if the two end with different bits, if a world freezes, or if memory
grows after the first tenth.
"""

import argparse
import dataclasses
import gc
import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse.randomization import InitialState, PseudoInertia, Randomizer, Uniform, friction, gravity
from pluriverse.solvers import SolverMuJoCo, SolverSAP

SOLVERS = {"SolverSAP": SolverSAP, "SolverMuJoCo": SolverMuJoCo}
DT = 0.005  # s
ROUND_STEPS_MAX = 24
# Memory that may come and go after the first tenth [B]: some megabytes in the allocator of C are no leak, and
# eight bytes a world-step would be twenty.
GROWTH_MAX = 8 << 20


@dataclasses.dataclass(frozen=True)
class Result:
    """What one run of the programme came to."""

    digest: str
    """Hash of all that a snapshot holds, after every round."""
    world_steps: int
    """Steps times worlds."""
    seconds: float
    """Wall time."""
    resets: int
    """Worlds that were reset."""
    draws: int
    """Worlds whose properties were drawn."""
    restores: int
    """Snapshots that were restored, every fourth from a file."""
    memory: list[int]
    """Resident memory after each tenth [B]."""


def make_model(world_count: int) -> pv.Model:
    """Return worlds of two kinds: a box that is thrown about, and an arm with drives over the ground."""
    thrown = pv.ModelBuilder()
    body = thrown.add_body(xform=((0.0, 0.0, 0.3), (0.0, 0.0, 0.0, 1.0)), label="box")
    thrown.add_shape_box(body, hx=0.1, hy=0.08, hz=0.06)
    arm = pv.ModelBuilder()
    parent, joints = -1, []
    for level in range(2):
        link = arm.add_link(label=f"link_{level}")
        arm.add_shape_capsule(
            link, xform=((0.0, 0.0, -0.15), (0.0, 0.0, 0.0, 1.0)), radius=0.03, half_height=0.12
        )
        height = 0.5 if level == 0 else -0.3
        joints.append(
            arm.add_joint_revolute(
                parent, link, parent_xform=((0.0, 0.0, height), (0.0, 0.0, 0.0, 1.0)), axis=(0.0, 1.0, 0.0)
            )
        )
        parent = link
    arm.add_articulation(joints)
    builder = pv.ModelBuilder()
    for kind in (thrown, arm):
        builder.replicate(kind, world_count // 2)
    builder.add_ground_plane()
    return builder.finalize(device="cpu")


def resident_memory() -> int:
    """Return the memory that this process has in use [B]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def run(solver: str, world_count: int, world_steps: int, seed: int, threads: int, folder: Path) -> Result:
    """Run the programme that the seed says, and return what it came to."""
    model = make_model(world_count)
    simulation = pv.Simulation(model, SOLVERS[solver](model), dt=DT, threads=threads)
    terms = [
        friction(Uniform(0.3, 1.2)),
        gravity(Uniform((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))),
        PseudoInertia(alpha=Uniform(-0.1, 0.1)),
        InitialState(joint_velocity=Uniform(-1.0, 1.0)),
    ]
    randomizer = Randomizer(simulation, terms, seed=seed)
    rng = np.random.default_rng(seed)
    digest = hashlib.blake2b(digest_size=16)
    snapshot, path = simulation.save(), folder / f"{solver}-{threads}.npz"
    done = resets = draws = restores = 0
    memory: list[int] = []
    begin = time.perf_counter()
    while done < world_steps:
        act(simulation, rng)
        steps = int(rng.integers(1, ROUND_STEPS_MAX + 1))
        simulation.step(steps)
        done += steps * world_count
        event = rng.random()
        if event < 0.3:
            mask = rng.random(world_count) < 0.2
            chosen: Any = (
                np.flatnonzero(mask) if event < 0.15 else wp.array(mask, dtype=wp.bool, device="cpu")
            )
            if event < 0.2:
                randomizer.apply(chosen)
                draws += int(mask.sum())
            simulation.reset(chosen)
            resets += int(mask.sum())
        elif event < 0.33:
            snapshot = simulation.save(path)
        elif event < 0.36:
            restores += 1
            simulation.restore(path if restores % 4 == 0 and path.exists() else snapshot)
        for array in simulation.state.arrays().values():
            digest.update(array.numpy().tobytes())
        if done * 10 >= (len(memory) + 1) * world_steps:
            gc.collect()
            memory.append(resident_memory())
    report = simulation.report()
    if report.frozen_worlds:
        sys.exit(f"{solver}: worlds {report.frozen_worlds} are frozen, but no input was wrong.")
    simulation.close()
    return Result(digest.hexdigest(), done, time.perf_counter() - begin, resets, draws, restores, memory)


def act(simulation: pv.Simulation, rng: np.random.Generator) -> None:
    """Write random efforts, targets and pushes."""
    control, model = simulation.control, simulation.model
    control.joint_f.assign(rng.uniform(-0.5, 0.5, model.joint_dof_count).astype(np.float32))
    control.joint_target_vel.assign(rng.uniform(-1.0, 1.0, model.joint_dof_count).astype(np.float32))
    simulation.state.body_f.assign(rng.uniform(-0.3, 0.3, (model.body_count, 6)).astype(np.float32))


def main() -> None:
    """Run the programme for both solvers, twice each, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--world-steps", type=int, default=10_000_000, help="of all runs together")
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    wp.config.quiet = True
    cores = len(os.sched_getaffinity(0))
    failures = []
    for solver in SOLVERS:
        with tempfile.TemporaryDirectory() as folder:
            results = [
                run(
                    solver,
                    arguments.worlds,
                    arguments.world_steps // 4,
                    arguments.seed,
                    threads,
                    Path(folder),
                )
                for threads in (1, max(cores, 2))
            ]
        for threads, result in zip((1, max(cores, 2)), results, strict=True):
            growth = result.memory[-1] - result.memory[0]
            before, after = result.memory[0] / 2**20, result.memory[-1] / 2**20
            print(
                f"{solver}, {threads} thread(s): {result.world_steps:,} world-steps, {result.seconds:.0f} s, "
                f"{result.resets:,} resets, {result.draws:,} draws, {result.restores:,} restores, "
                f"memory {before:.1f} to {after:.1f} MiB, bits {result.digest}",
                flush=True,
            )
            if growth > GROWTH_MAX:
                failures.append(f"{solver}: memory grew by {growth / 2**20:.1f} MiB")
        if results[0].digest != results[1].digest:
            failures.append(f"{solver}: the bits of the two runs differ")
    if failures:
        sys.exit("; ".join(failures))


if __name__ == "__main__":
    main()
