"""A nut on a bolt: four worlds of one thread, with friction from none to much, and a torque in two of them.

Nothing but contact guides the nuts: the threads are meshes. Without friction the first screws down by its
weight; the second sticks; the others are turned. `python docs/gallery/nut.py` writes docs/gallery/nut.gif.
"""

import argparse
from pathlib import Path

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse.geometry import bolt_mesh, nut_mesh

HERE = Path(__file__).resolve().parent
DT = 1.0 / 240.0  # s
DIAMETER, PITCH, LENGTH, CLEARANCE = 0.02, 0.0035, 0.036, 1.5e-4  # m
DISTANCE = 0.046  # m between bolts
START_TURNS = 7.0
FRICTION = (0.0, 0.3, 0.01, 0.1)
IS_TURNED = (False, False, True, True)
WANTED_SPEED = -3.0 * np.pi  # rad/s, clockwise seen from above
TORQUE = 3.0e-3  # N·m at standstill
STEEL, COLORS = (
    (0.62, 0.64, 0.67),
    ((0.3, 0.55, 0.85), (0.85, 0.35, 0.3), (0.4, 0.7, 0.45), (0.95, 0.65, 0.25)),
)


def scene() -> pv.Model:
    """Return the four worlds, a nut high on each bolt."""
    bolt = bolt_mesh(DIAMETER, PITCH, LENGTH, head_diameter=0.034, head_height=0.01)
    nut = nut_mesh(DIAMETER, PITCH, 0.01, clearance=CLEARANCE)
    builder = pv.ModelBuilder()
    for friction, color in zip(FRICTION, COLORS, strict=True):
        steel = pv.ShapeConfig(density=7800.0, mu=friction, ke=1e6, tau=0.002, gap=2e-4)
        world = pv.ModelBuilder()
        world.add_shape_mesh(-1, mesh=bolt, cfg=steel, color=STEEL)
        body = world.add_body(xform=(0.0, 0.0, START_TURNS * PITCH, 0.0, 0.0, 0.0, 1.0))
        world.add_shape_mesh(body, mesh=nut, cfg=steel, color=color)
        builder.add_world(world, xform=(DISTANCE * builder.world_count, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    return builder.finalize("cpu")


def main() -> None:
    """Turn the nuts and film them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=480, help="of the film [pixel]")
    parser.add_argument("--samples", type=int, default=8, help="rays per pixel")
    parser.add_argument("--fps", type=float, default=10.0, help="frames per second")
    parser.add_argument("--seconds", type=float, default=2.5, help="length of the film")
    parser.add_argument("--output", type=Path, default=HERE / "nut.gif", help="the film")
    options = parser.parse_args()
    model = scene()
    simulation = pv.Simulation(model, dt=DT)
    force = np.zeros((len(FRICTION), 6), dtype=np.float32)
    with simulation.recorder(worlds=range(len(FRICTION)), fps=options.fps) as film:
        for _ in range(round(options.seconds / DT)):
            speed = simulation.state.body_qd.numpy()[:, 5]
            force[:, 5] = np.where(IS_TURNED, TORQUE * (speed / WANTED_SPEED - 1.0), 0.0)
            simulation.state.body_f.assign(force)
            simulation.step()
    fallen = START_TURNS * PITCH - simulation.state.body_q.numpy()[:, 2]
    for friction, way in zip(FRICTION, fallen, strict=True):
        print(f"friction {friction:g}: down by {1e3 * way:.2f} mm, {way / PITCH:.2f} turns")
    film.save(
        options.output,
        size=(options.width, round(0.42 * options.width)),
        samples=options.samples,
        azimuth=-1.45,
        elevation=0.3,
        spacing=0.0,
    )


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
