"""Rays per second of depth images in many worlds, against MuJoCo's rays on the same scene.

`python -m benchmarks.rays [--worlds 256] [--size 64] [--mjcf FILE]` measures a camera of 64 x 64 pixels in
each world: ours by one `CameraSensor` of all worlds, and by `RayCaster` with the very rays, MuJoCo by
`mj_multiRay` world by world. All run on one thread, in turns; printed is the median of the rays per second of
CPU time, with what placing the shapes costs. The ranges are compared first. On a GPU (`--device cuda`)
only ours are measured.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse.render import RayCaster, SeenGeometry
from pluriverse.sensors import CameraSensor


def room(count: int, seed: int = 0) -> str:
    """Return MJCF of a ground with primitives of all kinds above it, and a camera that sees them."""
    random = np.random.default_rng(seed)
    kinds = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}
    geoms = []
    for number in range(count):
        kind, sizes = list(kinds.items())[number % len(kinds)]
        size = " ".join(f"{value:.3f}" for value in random.uniform(0.05, 0.25, sizes))
        x, y, z = random.uniform([-1.5, -1.5, 0.2], [1.5, 1.5, 1.8])
        angles = " ".join(f"{value:.1f}" for value in random.uniform(-180.0, 180.0, 3))
        geoms.append(f'<geom type="{kind}" size="{size}" pos="{x:.3f} {y:.3f} {z:.3f}" euler="{angles}"/>')
    return (
        '<mujoco><worldbody><geom type="plane" size="0 0 1"/>'
        '<camera name="eye" pos="0 -4 2" xyaxes="1 0 0 0 .3 1" fovy="50"/>'
        + "".join(geoms)
        + "</worldbody></mujoco>"
    )


def camera_rays(size: int, fov: float) -> np.ndarray:
    """Return the directions of the pixels of a camera in its own axes, shape [ray, 3]."""
    slope = np.tan(0.5 * fov)
    x = (2.0 * (np.arange(size) + 0.5) / size - 1.0) * slope
    up, across = np.meshgrid(-x, x, indexing="ij")
    rays = np.stack([across, up, np.full_like(up, -1.0)], axis=-1).reshape(-1, 3)
    return rays / np.linalg.norm(rays, axis=1)[:, None]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rays", description=__doc__)
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--size", type=int, default=64, help="columns and rows of an image")
    parser.add_argument("--shapes", type=int, default=30, help="shapes of the room")
    parser.add_argument("--mjcf", type=Path, help="a robot, instead of the room; seen from the side")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    wp.config.quiet = True
    source = room(arguments.shapes) if arguments.mjcf is None else arguments.mjcf
    part = pv.ModelBuilder()
    part.add_mjcf(source)
    fov = np.radians(50.0)
    if arguments.mjcf is not None:
        part.add_camera(-1, xform=(0.8, 0.0, 0.4, 0.5, 0.5, 0.5, 0.5), fov=fov, label="eye")
    builder = pv.ModelBuilder()
    builder.replicate(part, arguments.worlds)
    model = builder.finalize(arguments.device)
    state = model.state()
    sensor = CameraSensor(
        model,
        "*eye",
        width=arguments.size,
        height=arguments.size,
        outputs=["distance"],
        geometry="all",
        threads=1,
    )
    sensor.update(state)
    position, rotation = sensor.camera_poses()
    rays = np.ascontiguousarray(camera_rays(arguments.size, fov) @ rotation[0].astype(np.float64).T)
    count = len(rays)
    runs: dict[str, Callable[[], None]] = {}

    def measure_ours() -> None:
        sensor.update(state)
        wp.synchronize_device(model.device)

    runs["CameraSensor"] = measure_ours
    caster = RayCaster(model, geometry=SeenGeometry.ALL)
    origin = np.repeat(position, count, axis=0)
    arrays = (
        wp.array(np.repeat(np.arange(arguments.worlds, dtype=np.int32), count), device=model.device),
        wp.array(origin, dtype=wp.vec3, device=model.device),
        wp.array(np.tile(rays, (arguments.worlds, 1)).astype(np.float32), dtype=wp.vec3, device=model.device),
    )
    found = tuple(
        wp.empty(count * arguments.worlds, dtype=dtype, device=model.device)
        for dtype in (wp.float32, wp.int32, wp.vec3)
    )

    def cast_ours() -> None:
        caster.update(state)
        caster.launch(*arrays, *found)
        wp.synchronize_device(model.device)

    runs["RayCaster"] = cast_ours
    if arguments.device == "cpu":
        runs["MuJoCo mj_multiRay"] = mujoco_runner(source, position[0], rays, arguments.worlds, sensor, state)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(arguments.repeats):
        for name, run in runs.items():
            begin = time.process_time() if arguments.device == "cpu" else time.perf_counter()
            run()
            end = time.process_time() if arguments.device == "cpu" else time.perf_counter()
            times[name].append(end - begin)
    print(
        f"{arguments.worlds} worlds of {part.shape_count} shapes, {arguments.size} x {arguments.size} pixels"
    )
    best = count * arguments.worlds / statistics.median(times[next(reversed(times))])
    for name, values in times.items():
        rate = count * arguments.worlds / statistics.median(values)
        print(f"{name:20s} {rate / 1.0e6:8.3f} million rays/s/core  {rate / best:6.2f} of the last")


def mujoco_runner(
    source: str | Path,
    position: np.ndarray,
    rays: np.ndarray,
    worlds: int,
    sensor: CameraSensor,
    state: pv.State,
) -> Callable[[], None]:
    """Return what casts the rays of all worlds in MuJoCo; compare the ranges of the first."""
    text = source if isinstance(source, str) else None
    model = (
        mujoco.MjModel.from_xml_path(str(source)) if text is None else mujoco.MjModel.from_xml_string(text)
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    count = len(rays)
    geom, distance = np.zeros(count, dtype=np.int32), np.zeros(count)
    point, flat = position.astype(np.float64), rays.reshape(-1)
    arguments = (model, data, point, flat, None, 1, -1, geom, distance)

    def cast() -> None:
        mujoco.mj_kinematics(model, data)
        try:
            mujoco.mj_multiRay(*arguments, None, count, mujoco.mjMAXVAL)
        except TypeError:  # before the normals came
            mujoco.mj_multiRay(*arguments, count, mujoco.mjMAXVAL)

    cast()
    expected = np.where(distance < 0.0, np.inf, distance)
    mine = sensor.distance.numpy()[0].reshape(-1)
    both = np.isfinite(expected) & np.isfinite(mine)
    error = np.abs(mine[both] - expected[both]) / np.maximum(1.0, expected[both])
    print(
        f"{both.sum()} of {count} rays hit in both, {(np.isfinite(expected) != np.isfinite(mine)).sum()} "
        f"in one; 99 % of the ranges differ by less than {np.quantile(error, 0.99):.1e}"
    )

    def run() -> None:
        for _ in range(worlds):
            cast()

    return run


if __name__ == "__main__":
    main()
