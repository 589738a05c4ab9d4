"""What the default contact gap costs in a mix: Go1, G1, hand and boxes in one batch, made in four ways.

`python -m benchmarks.default_gap [--worlds 8] [--rounds 7] [--ways replicate scene variants actors]`

The same files become worlds of one batch by `replicate`, a scene file with several kinds of world, variants,
and the actor API (without the hand: an actor is one tree, and its file holds objects, too). All drives get
new random targets in every control step. Nothing set is compared with the least gap of all shapes that still
gives the right result (`motion`), in turns in one process, by processor time. The program exits with 1 if
nothing set is below 0.95 of it.
"""

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import pluriverse as pv
from benchmarks.motion import (
    GOAL_DEFAULTS,
    SETTLING_CONTROL_STEPS,
    TUNED_ERROR,
    TUNED_GAPS,
    TUNING_CONTROL_STEPS,
    exact_solver,
    step_error,
)
from benchmarks.motion_scenes import AMPLITUDE, DECIMATION, DT
from benchmarks.scenes import ASSETS, SCENES, write_scene
from pluriverse.warnings import PluriverseWarning

KINDS = ("go1", "g1", "hand", "pile8")
# Robots that are an actor: the file of the hand holds its objects, too.
ACTOR_ROBOTS = ("go1", "g1")


def by_replicate(files: dict[str, Path], count: int) -> pv.Model:
    """Return so many worlds of each file, by the builder."""
    builder = pv.ModelBuilder()
    for file in files.values():
        world = pv.ModelBuilder()
        world.add_mjcf(file)
        builder.replicate(world, count)
    return builder.finalize("cpu")


def by_scene_file(files: dict[str, Path], count: int) -> pv.Model:
    """Return the same by a scene file."""
    lines = ["schema_version: 1", "ground: {enabled: false}", "worlds:"]
    for kind, file in files.items():
        lines += [f"  - {{name: {kind}, count: {count},", f"     assets: [{{type: mjcf, source: {file}}}]}}"]
    path = next(iter(files.values())).parent / "mix.yaml"
    path.write_text("\n".join(lines) + "\n")
    return pv.load_scene(path, device="cpu", asset_roots=[str(ASSETS)]).model


def by_variants(files: dict[str, Path], count: int) -> pv.Model:
    """Return the same by an entity that is something else in other environments."""
    from pluriverse.entity import VariantEntityCfg
    from pluriverse.scene import SceneCfg
    from pluriverse.variants import make_scene

    entity = VariantEntityCfg(variants={kind: str(file) for kind, file in files.items()})
    config = SceneCfg(num_envs=count * len(files), entities={"robot": entity}, ground_height=None)
    return make_scene(config, device="cpu").model


def by_actors(files: dict[str, Path], count: int) -> pv.Model:
    """Return the same, without the hand, by the actor API."""
    from pluriverse import gymapi

    gym = gymapi.acquire_gym()
    params = gymapi.SimParams()
    params.up_axis, params.gravity = gymapi.UP_AXIS_Z, gymapi.Vec3(0.0, 0.0, -9.81)
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    params.physx.num_threads = 1
    ground = gymapi.PlaneParams()
    ground.normal = gymapi.Vec3(0.0, 0.0, 1.0)  # along y by default, whatever the up axis is
    gym.add_ground(sim, ground)
    actors: dict[str, list[tuple[Any, Any]]] = {kind: [] for kind in (*ACTOR_ROBOTS, "pile8")}
    for kind in ACTOR_ROBOTS:
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = gymapi.DOF_MODE_POS
        asset = gym.load_asset(sim, str(files[kind].parent), files[kind].name, options)
        actors[kind].append((asset, gymapi.Transform(gymapi.Vec3(0.0, 0.0, 0.4 if kind == "go1" else 0.8))))
    pile = SCENES["pile8"]
    side = 2.0 * pile.half_size
    options = gymapi.AssetOptions()
    options.density = pile.density
    box = gym.create_box(sim, side, side, side, options)
    for place, angle in pile.boxes():
        turn = gymapi.Quat.from_axis_angle(gymapi.Vec3(0.0, 0.0, 1.0), angle)
        actors["pile8"].append((box, gymapi.Transform(gymapi.Vec3(*place), turn)))
    for row, (kind, parts) in enumerate(actors.items()):
        # An env is a world of its own if no other env has actors of its collision group.
        for group in range(row * count, (row + 1) * count):
            env = gym.create_env(sim, gymapi.Vec3(-1, -1, 0), gymapi.Vec3(1, 1, 1), 8)
            for asset, pose in parts:
                gym.create_actor(env, asset, pose, kind, group, 0)
    gym.prepare_sim(sim)
    return sim.runtime.model


WAYS: dict[str, Callable[[dict[str, Path], int], pv.Model]] = {
    "replicate": by_replicate,
    "scene": by_scene_file,
    "variants": by_variants,
    "actors": by_actors,
}


class Mix:
    """A simulation of a mix, with nothing set or a gap [m]."""

    def __init__(self, make: Callable[[], pv.Model], gap: float | None):
        model = make()
        if gap is not None:
            model.shape_gap.fill_(gap)
        self.simulation = pv.Simulation(model, dt=DT, decimation=DECIMATION, threads=1)
        exact = make()
        self._singles = (
            pv.Simulation(exact, exact_solver(exact), dt=DT, threads=1, cull_contacts=False),
            pv.Simulation(model, dt=DT, threads=1),
        )
        self._rest = model.joint_target_pos.numpy()
        noise = np.random.default_rng(1).uniform(-AMPLITUDE, AMPLITUDE, (64, len(self._rest)))
        self._noise = np.where(model.joint_target_ke.numpy() > 0.0, noise, 0.0)
        self._control_step = 0
        self.advance(SETTLING_CONTROL_STEPS)

    def advance(self, count: int) -> None:
        """Make so many control steps."""
        for _ in range(count):
            target = self._rest + self._noise[self._control_step % len(self._noise)]
            self.simulation.control.joint_target_pos.assign(target.astype(np.float32))
            self.simulation.step()
            self._control_step += 1

    def error(self) -> float:
        """Return how far the next step's change of velocity is from that of an exact solver, relative."""
        return step_error(self.simulation, *self._singles)


def worst_error(mix: Mix) -> float:
    """Return the largest error in some control steps."""
    errors = []
    for _ in range(TUNING_CONTROL_STEPS):
        mix.advance(1)
        errors.append(mix.error())
    return max(errors)


def least_right_mix(make: Callable[[], pv.Model], most_error: float) -> tuple[float, float, Mix]:
    """Return the least right gap [m] (the largest tried if none is), its error, and its mix."""
    for gap in TUNED_GAPS:
        mix = Mix(make, gap)
        error = worst_error(mix)
        if error < most_error:
            break
    return gap, error, mix


def measure(way: str, files: dict[str, Path], worlds: int, rounds: int, control_steps: int) -> float:
    """Print and return the rate of nothing set over that of the least right gap."""

    def make() -> pv.Model:
        return WAYS[way](files, worlds)

    plain = Mix(make, None)
    error = worst_error(plain)
    # The tolerance of the solver is an error, too.
    gap, tuned_error, tuned = least_right_mix(make, max(TUNED_ERROR, 2.0 * error))
    for mix in (plain, tuned):
        mix.simulation.clear_report()
    ratios, taken = [], {}
    turns = [("nothing set", plain), ("tuned", tuned)]
    for _ in range(rounds):
        turns.reverse()
        for name, mix in turns:
            begin = time.process_time()
            mix.advance(control_steps)
            taken[name] = time.process_time() - begin
        ratios.append(taken["tuned"] / taken["nothing set"])
    report = plain.simulation.report()
    other = tuned.simulation.report()
    again = 100.0 * report.readmitted_step_count / (report.step_count * report.world_count)
    step = 1e6 * taken["nothing set"] / (control_steps * DECIMATION * report.world_count)
    ratio = statistics.median(ratios)
    low, high = np.quantile(ratios, [0.25, 0.75])
    print(
        f"{way}: {report.world_count} worlds, {step:.0f} µs a world-step, solved again {again:.2f} %, "
        f"{ratio:.2f} ({low:.2f} to {high:.2f}) of a gap of {1e3 * gap:g} mm, error {error:.0e} and "
        f"{tuned_error:.0e}, contacts {report.contact_count_mean:.1f} and {other.contact_count_mean:.1f}, "
        f"iterations {report.iteration_count_mean:.2f} and {other.iteration_count_mean:.2f}",
        flush=True,
    )
    return ratio


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.default_gap", description=__doc__)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--worlds", type=int, default=8, help="worlds of each kind")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--control-steps", type=int, default=10, help="control steps of a round")
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    warnings.simplefilter("ignore", PluriverseWarning)
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: write_scene(kind, Path(folder)) for kind in KINDS}
        ratios = [
            measure(way, files, arguments.worlds, arguments.rounds, arguments.control_steps)
            for way in arguments.ways
        ]
    sys.exit(int(min(ratios) < GOAL_DEFAULTS))


if __name__ == "__main__":
    main()
