"""Loading a scene and making its simulation, as `run` and `bench` do."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluriverse.cli.console import output, quiet_warp
from pluriverse.cli.robot_file import is_robot_file, place_in_robot, scene_of
from pluriverse.cli.solver_choice import SolverChoice, make_solver
from pluriverse.scene import LoadedScene, load_scene


@dataclass(frozen=True)
class Session:
    """A scene and its simulation, with the times to load and prepare them."""

    scene: LoadedScene
    simulation: Any
    threads: int
    """CPU threads that step the worlds."""
    load_time: float
    """Time to read the scene and build the model [s]."""
    prepare_time: float
    """Time to compile kernels, or load them from the cache, and to record the step [s]."""


def open_session(
    name: str,
    *,
    worlds: int | None,
    dt: float | None,
    device: str | None,
    solver: SolverChoice,
    threads: int | None,
    strict: bool | None,
    asset_roots: Sequence[Path] = (),
) -> Session:
    """Load a scene and prepare its simulation.

    Args:
        name: File of a scene or a robot, or name of a bundled scene.
        worlds: Number of worlds, or None for the scene's.
        dt: Time step [s], or None for the scene's.
        device: Device, or None for Warp's default.
        solver: Name of the solver.
        threads: CPU threads, or None for all cores.
        strict: None is strict about the scene and not about the run. It is not strict about a robot file
            either: nearly every robot says something that only the engine it was written for knows.
        asset_roots: Further folders that the scene may read files from.

    Raises:
        ValueError: The scene or an option is wrong.
    """
    if dt is not None and not (dt > 0.0 and math.isfinite(dt)):
        raise ValueError(f"--dt is {dt}, but a time step is a positive number of seconds, for example 0.005")
    quiet_warp()
    start = time.perf_counter()
    with output.status(f"Loading {name}"), scene_of(name, tuple(asset_roots)) as (source, roots):
        scene = load_scene(
            source,
            device=check_device(device),
            num_worlds=worlds,
            strict=not is_robot_file(name) if strict is None else strict,
            asset_roots=roots,
        )
        scene = place_in_robot(name, scene)
    loaded = time.perf_counter()
    # No status line here: the kernels that a first run compiles have a bar of their own.
    simulation = scene.simulation(
        solver=make_solver(solver, scene),
        dt=dt or scene.settings.dt,
        threads=threads,
        strict=bool(strict),
    )
    simulation.prepare()
    prepared = time.perf_counter()
    return Session(scene, simulation, simulation.threads, loaded - start, prepared - loaded)


def check_device(name: str | None) -> str | None:
    """Return the name of a device that exists.

    Raises:
        ValueError: There is no such device.
    """
    import warp as wp

    wp.init()
    if name is None:
        return None
    known = [str(device) for device in wp.get_devices()]
    if name not in known and not (name == "cuda" and any(device.startswith("cuda") for device in known)):
        raise ValueError(f"--device is {name!r}, but this machine has {', '.join(known)}")
    return name
