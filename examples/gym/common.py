"""What the scripts share: a sim with z up and a ground, and the loop."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pluriverse import gymapi, gymutil

ASSETS = str(Path(__file__).resolve().parent / "assets")
gym = gymapi.acquire_gym()


def parse(description: str, frames: int, words: list[str] | None, *custom: dict[str, Any]) -> Any:
    """Return the options of a script, with `--frames` and `--num_envs`."""
    parameters = [
        {"name": "--frames", "type": int, "default": frames, "help": "frames to simulate"},
        {"name": "--num_envs", "type": int, "default": 4, "help": "number of envs"},
        *custom,
    ]
    return gymutil.parse_arguments(description, custom_parameters=parameters, args=words)


def make_sim(args: Any, *, ground: bool = True, gravity: float = -9.81, substeps: int = 2) -> gymapi.Sim:
    """Return a sim with z up."""
    params = gymapi.SimParams()
    params.up_axis = gymapi.UP_AXIS_Z
    params.gravity = gymapi.Vec3(0.0, 0.0, gravity)
    params.dt = 1.0 / 60.0
    params.substeps = substeps
    params.use_gpu_pipeline = args.use_gpu_pipeline
    params.physx.num_threads = args.num_threads
    sim = gym.create_sim(args.compute_device_id, args.graphics_device_id, args.physics_engine, params)
    if sim is None:
        raise SystemExit("no sim: see the warning above")
    if ground:
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        gym.add_ground(sim, plane)
    return sim


def make_envs(sim: gymapi.Sim, count: int, spacing: float = 2.0) -> Iterator[gymapi.Env]:
    """Yield envs on a square grid; each takes actors until the next one is asked for."""
    lower = gymapi.Vec3(-0.5 * spacing, -0.5 * spacing, 0.0)
    upper = gymapi.Vec3(0.5 * spacing, 0.5 * spacing, spacing)
    for _ in range(count):
        yield gym.create_env(sim, lower, upper, max(int(count**0.5), 1))


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> gymapi.Transform:
    """Return a pose without turn."""
    return gymapi.Transform(gymapi.Vec3(x, y, z))


def run(sim: gymapi.Sim, frames: int, act: Callable[[int], None] | None = None) -> None:
    """Simulate with a viewer that closes after so many frames; `act(frame)` comes before each."""
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(), frames=frames)
    frame = 0
    while not gym.query_viewer_has_closed(viewer):
        if act is not None:
            act(frame)
        gym.simulate(sim)
        gym.fetch_results(sim, True)
        gym.step_graphics(sim)
        gym.draw_viewer(viewer, sim, True)
        gym.sync_frame_time(sim)
        frame += 1
    gym.destroy_viewer(viewer)
