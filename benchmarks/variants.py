"""What it costs to hold ten kinds of worlds in one batch, and to change them at every reset.

`python -m benchmarks.variants [--worlds 256] [--threads 1] [--solver sap]` compares a step of ten topologies
(two robots, an arm with 1 to 5 objects, three piles) in one batch with the sum of their steps on their own.
`python -m benchmarks.variants --episodes 10000` resets environments with new variants in a recorded loop
instead, and prints how far memory and initial states drift. `--meshes 100` makes a scene of so many meshes
instead, each a ball of 642 vertices of its own shape that collides as its hull, and has MuJoCo compile them.
"""

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import pluriverse as pv
from benchmarks.engines.pluriverse import GAP, RELAXATION_TIME, STIFFNESS
from benchmarks.measure import SETTLING_STEP_COUNT
from benchmarks.scenes import DT, write_scene
from pluriverse.variants import SceneCfg, VariantEntityCfg, VariantScene, make_scene

OBJECT_HALF_SIZE = 0.03  # m
PILE_SIZES = (2, 4, 8)
EPISODE_STEP_COUNT = 2
EPISODE_ENVIRONMENT_COUNT = 16


def empty_builder() -> pv.ModelBuilder:
    """Return a builder with the contacts of the benchmarks."""
    builder = pv.ModelBuilder()
    builder.default_shape_cfg.ke = STIFFNESS
    builder.default_shape_cfg.tau = RELAXATION_TIME
    builder.rigid_gap = GAP
    return builder


def add_boxes(builder: pv.ModelBuilder, count: int, x: float) -> None:
    """Stack some boxes at a place on the ground."""
    for number in range(count):
        height = OBJECT_HALF_SIZE * (1 + 2 * number)
        body = builder.add_body(xform=((x, 0.004 * (number % 3), height), (0.0, 0.0, 0.0, 1.0)))
        builder.add_shape_box(body, hx=OBJECT_HALF_SIZE, hy=OBJECT_HALF_SIZE, hz=OBJECT_HALF_SIZE)


def make_topologies() -> dict[str, pv.ModelBuilder]:
    """Return a world of each of the ten kinds."""
    topologies = {}
    with tempfile.TemporaryDirectory() as folder:
        for robot in ("go1", "g1"):
            topologies[robot] = empty_builder()
            topologies[robot].add_mjcf(write_scene(robot, Path(folder)))
        arm = write_scene("arm", Path(folder))
        for count in range(1, 6):
            name = f"arm + {count}"
            topologies[name] = empty_builder()
            topologies[name].add_mjcf(arm)
            add_boxes(topologies[name], count, 0.6)
    for count in PILE_SIZES:
        topologies[f"pile of {count}"] = empty_builder()
        topologies[f"pile of {count}"].add_shape_plane()
        add_boxes(topologies[f"pile of {count}"], count, 0.0)
    return topologies


def make(topologies: dict[str, pv.ModelBuilder], world_count: int, **options: Any) -> VariantScene:
    """Return a scene with so many worlds of each kind."""
    entity = VariantEntityCfg(
        variants=topologies, assignment=lambda count: np.repeat(np.arange(len(topologies)), world_count)
    )
    config = SceneCfg(
        num_envs=world_count * len(topologies),
        entities={"world": entity},
        ground_height=None,
        share_layouts=False,
        **options,
    )
    return make_scene(config, device="cpu")


def compare(arguments: argparse.Namespace, make_solver: Callable[[pv.Model], Any]) -> None:
    """Print the time of a step of each kind, and of all in one batch."""
    topologies = make_topologies()
    scenes = [make({name: builder}, arguments.worlds) for name, builder in topologies.items()]
    scenes.append(make(topologies, arguments.worlds))
    simulations = [
        scene.simulation(dt=DT, threads=arguments.threads, solver=make_solver(scene.model))
        for scene in scenes
    ]
    for simulation in simulations:
        simulation.step(SETTLING_STEP_COUNT)
    # In turns, so that whatever else the machine does falls on all of them.
    durations: list[list[float]] = [[] for _ in simulations]
    for _ in range(arguments.repeats):
        for simulation, taken in zip(simulations, durations, strict=True):
            begin = time.perf_counter()
            simulation.step(arguments.steps)
            taken.append((time.perf_counter() - begin) / arguments.steps)
    *parts, mixture = (1e6 * statistics.median(taken) for taken in durations)
    for name, part in zip(topologies, parts, strict=True):
        print(f"{name:12} x {arguments.worlds}: {part:10.0f} µs a step")
    print(f"{'sum':12}      {sum(parts):10.0f} µs")
    print(f"{'one batch':12}      {mixture:10.0f} µs, {mixture / sum(parts):.2f} of the sum")


def drift(episode_count: int, make_solver: Callable[[pv.Model], Any]) -> None:
    """Reset environments with new variants in a recorded loop, and print what changes that should not."""
    names = ("arm + 1", "arm + 3", "pile of 2", "pile of 4")
    topologies = {name: builder for name, builder in make_topologies().items() if name in names}
    scene = make(topologies, EPISODE_ENVIRONMENT_COUNT // len(names), reassignable=True)
    simulation = scene.simulation(dt=DT, threads=1, solver=make_solver(scene.model))
    simulation.reassign()
    simulation.step(EPISODE_STEP_COUNT)
    simulation.reassign()
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        simulation.reassign()
    beginnings: dict[int, np.ndarray] = {}
    start = scene.model.joint_coord_world_start.numpy()
    worst, memory = 0.0, 0
    for episode in range(episode_count):
        wp.capture_launch(capture.graph)
        if episode % 100 == 0:
            q = simulation.state.joint_q.numpy()
            variants = simulation.world_to_variant["world"].numpy()
            for variant, world in zip(variants, simulation.environment_world.numpy(), strict=True):
                state = q[start[world] : start[world + 1]]
                beginning = beginnings.setdefault(int(variant), state.copy())
                worst = max(worst, float(np.abs(state - beginning).max()))
        if episode == min(200, episode_count // 2):
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        simulation.step(EPISODE_STEP_COUNT)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    print(f"{episode_count} episodes of {EPISODE_ENVIRONMENT_COUNT} environments, {len(beginnings)} variants")
    print(
        f"largest change of an initial state: {worst:g}; frozen worlds: {simulation.report().frozen_worlds}"
    )
    print(f"memory grown by {grown} kB")


def make_mesh_variants(count: int, repeats: int) -> None:
    """Print the processor time of a scene of different meshes, and of compiling them in MuJoCo."""
    import mujoco
    import trimesh

    ball = trimesh.creation.icosphere(3)
    radii = np.random.default_rng(0).uniform(0.05, 0.1, (count, 3))

    def ours() -> None:
        builders = {}
        for number, stretch in enumerate(radii):
            builder = builders[str(number)] = pv.ModelBuilder()
            mesh = pv.Mesh(ball.vertices * stretch, ball.faces)
            builder.add_shape_convex_hull(builder.add_body(), mesh=mesh)
        entity = VariantEntityCfg(variants=builders)
        make_scene(SceneCfg(num_envs=count, entities={"ball": entity}), device="cpu")

    def specs() -> list[Any]:
        made = []
        for stretch in radii:
            spec = mujoco.MjSpec()
            spec.add_mesh(
                name="ball", uservert=(ball.vertices * stretch).ravel(), userface=ball.faces.ravel()
            )
            body = spec.worldbody.add_body()
            body.add_freejoint()
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="ball")
            made.append(spec)
        return made

    def ours_of_specs() -> None:
        entity = VariantEntityCfg(variants={str(number): spec for number, spec in enumerate(specs())})
        make_scene(SceneCfg(num_envs=count, entities={"ball": entity}), device="cpu")

    def theirs() -> None:
        for spec in specs():
            spec.compile()

    durations: list[list[float]] = []
    for _ in range(repeats + 1):  # the first one imports what it needs
        taken = []
        for make in (ours, ours_of_specs, theirs):
            begin = time.process_time()
            make()
            taken.append(time.process_time() - begin)
        durations.append(taken)
    *taken_here, mujoco_time = (statistics.median(column) for column in zip(*durations[1:], strict=True))
    for kind, seconds in zip(("builders", "specs"), taken_here, strict=True):
        print(
            f"{count} {kind} of meshes of {len(ball.vertices)} vertices: {seconds:.2f} s of CPU, "
            f"MuJoCo {mujoco_time:.2f} s, {seconds / mujoco_time:.2f} of it"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.variants", description=__doc__)
    parser.add_argument("--worlds", type=int, default=256, help="worlds of each kind")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--solver", choices=["sap", "mujoco"], default="sap")
    parser.add_argument("--episodes", type=int, help="reset in a recorded loop instead")
    parser.add_argument("--meshes", type=int, help="make a scene of so many meshes instead")
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    if arguments.meshes:
        make_mesh_variants(arguments.meshes, arguments.repeats)
        return
    solver = pv.SolverSAP
    if arguments.solver == "mujoco":
        from pluriverse.solvers.mujoco import SolverMuJoCo

        solver = SolverMuJoCo
    if arguments.episodes:
        drift(arguments.episodes, solver)
    else:
        compare(arguments, solver)


if __name__ == "__main__":
    main()
