"""Terrain: a quadruped of this package on the ground of each of six worlds, no two of them alike.

They drop onto it and stand, held by the drives of their joints. `python docs/gallery/terrain.py` writes
docs/gallery/terrain.jpg.
"""

import argparse
from pathlib import Path

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse import geometry

HERE = Path(__file__).resolve().parent
ROBOT = Path(pv.__file__).resolve().parent / "scenes" / "robots" / "puli.xml"
SIZE = (3.0, 3.0)  # m
PITCH = 3.25  # m between the middles of two tiles
PLACES = ((-0.75, -0.65, 0.5), (0.7, -0.7, 2.2), (0.1, 0.35, -0.5))  # m, m, rad
CLEARANCE = 0.01  # m between the highest ground below a robot and where its feet would be on a plane
COLORS = (
    (0.72, 0.66, 0.55),
    (0.62, 0.68, 0.58),
    (0.66, 0.68, 0.72),
    (0.58, 0.66, 0.72),
    (0.72, 0.62, 0.58),
    (0.68, 0.66, 0.70),
)


def grounds() -> list[geometry.Heightfield]:
    """Return six kinds of ground."""
    return [
        geometry.random_uniform_terrain(SIZE, min_height=-0.04, max_height=0.04, sample_distance=0.2, seed=3),
        geometry.wave_terrain(SIZE, amplitude=0.07, wave_count=2),
        geometry.stairs_terrain(SIZE, step_width=0.3, step_height=0.04),
        geometry.discrete_obstacles_terrain(
            SIZE, height=0.04, min_width=0.3, max_width=0.7, count=30, seed=5
        ),
        geometry.sloped_terrain(SIZE, slope=0.12),
        geometry.random_uniform_terrain(SIZE, min_height=-0.07, max_height=0.07, sample_distance=0.5, seed=8),
    ]


def height_at(ground: geometry.Heightfield, x: float, y: float, reach: float) -> float:
    """Return the highest point of the ground within a distance of a place [m]."""
    heights = np.asarray(ground.heights)
    rows, columns = heights.shape
    xs, ys = np.linspace(-1.0, 1.0, columns) * 0.5 * SIZE[0], np.linspace(-1.0, 1.0, rows) * 0.5 * SIZE[1]
    near = (np.abs(xs[None, :] - x) < reach) & (np.abs(ys[:, None] - y) < reach)
    return float(heights[near].max())


def main() -> None:
    """Simulate, then draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=1400, help="of the picture [pixel]")
    parser.add_argument("--samples", type=int, default=24, help="rays per pixel")
    parser.add_argument("--seconds", type=float, default=2.0, help="of simulation")
    parser.add_argument("--output", type=Path, default=HERE / "terrain.jpg", help="the picture")
    options = parser.parse_args()
    builder = pv.ModelBuilder()
    for index, ground in enumerate(grounds()):
        world = pv.ModelBuilder()
        world.add_shape_heightfield(heightfield=ground, color=COLORS[index])
        for x, y, yaw in PLACES:
            height = height_at(ground, x, y, 0.22) + CLEARANCE
            world.add_mjcf(ROBOT, xform=(x, y, height, 0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)))
        builder.add_world(world, xform=(PITCH * (index % 3), PITCH * (index // 3), 0.0, 0.0, 0.0, 0.0, 1.0))
    model = builder.finalize("cpu")
    print(model)
    simulation = pv.Simulation(model, dt=0.005)
    simulation.step(round(options.seconds / simulation.dt))
    speed = np.abs(simulation.state.body_qd.numpy()).max()
    print(
        f"{len(PLACES) * model.world_count} robots stand; nothing moves faster than {speed:.2g} m/s or rad/s"
    )
    pv.draw(
        simulation,
        worlds=list(range(model.world_count)),
        path=options.output,
        size=(options.width, round(0.5 * options.width)),
        samples=options.samples,
        azimuth=-1.4,
        elevation=0.62,
        spacing=0.0,
        style=pv.render.PictureStyle(floor=True, grid=False),
    )


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
