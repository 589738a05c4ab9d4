"""What the scripts share: a sim with z up and a ground, the moves of an arm, and the loop."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

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


def hold_arm(env: gymapi.Env, actor: int, positions: np.ndarray) -> None:
    """Put the arm of seven joints and its two fingers at positions, and let stiff drives hold them there."""
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"].fill(gymapi.DOF_MODE_POS)
    properties["stiffness"][:7], properties["damping"][:7] = 4000.0, 400.0
    properties["stiffness"][7:], properties["damping"][7:] = 2000.0, 100.0
    properties["effort"][:7] = 500.0
    gym.set_actor_dof_properties(env, actor, properties)
    states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    states["pos"] = positions
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    gym.set_actor_dof_position_targets(env, actor, positions)


def reach_down(hand: np.ndarray, jacobian: np.ndarray, goal: np.ndarray, side: list[float]) -> np.ndarray:
    """Return by how much to move joints so that hands come to goals, pointing down, fingers along `side`."""
    poses = [gymapi.Transform(row[:3], row[3:7]) for row in hand]
    pointing = np.array([list(pose.transform_vector(gymapi.Vec3(0, 0, 1))) for pose in poses])
    across = np.array([list(pose.transform_vector(gymapi.Vec3(0, 1, 0))) for pose in poses])
    sign = np.sign(across @ side + 1e-9)[:, None]
    turn = np.cross(pointing, [0.0, 0.0, -1.0]) + np.cross(across, side) * sign
    error = np.concatenate([np.clip(goal - hand[:, :3], -0.05, 0.05), np.clip(turn, -0.2, 0.2)], axis=1)
    square = jacobian @ jacobian.transpose(0, 2, 1) + 0.05**2 * np.eye(6)
    return np.einsum("eij,ei->ej", jacobian, np.linalg.solve(square, error[..., None])[..., 0])


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
