"""Hydroelastic contact: four soft bodies on a rigid floor, and the pressure that carries each.

The bodies come to rest in a simulation, the box pushed sideways all the while. Then their pressure fields are
evaluated on the floor, where they are the pressure of the patch, and painted on it; arrows are the contact
forces of the simulation. What both carry is printed. `python docs/gallery/patches.py` writes
docs/gallery/patches.jpg.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse.recording.moment import contacts_of, rotated

HERE = Path(__file__).resolve().parent
KH = 4.0e5  # N/m³, as soft as a sponge
PUSH = 0.22  # of the weight of the box
TILE = 0.5  # m, side of the painted floor under a body
PIXELS = 256  # along that side
ARROW = 0.012  # m/N
ARROW_RADIUS = 0.004  # m
WHITE, BODY_COLOR, ARROW_COLOR = (1.0, 1.0, 1.0), (0.55, 0.68, 0.85), (0.12, 0.14, 0.2)
# Colours of no pressure and of the highest, and between them (from blue to yellow, rising in lightness).
RAMP = (
    np.array([[38, 24, 92], [94, 30, 128], [170, 46, 112], [232, 92, 66], [250, 164, 48], [252, 246, 150]])
    / 255.0
)
FLOOR_COLOR = np.array([0.80, 0.82, 0.85])


@dataclass(frozen=True)
class Shape:
    """A soft body: its kind, its size [m], its density [kg/m³] and the turn it starts with (xyzw)."""

    kind: str
    size: tuple[float, ...]
    density: float
    turn: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)

    def add(self, builder: pv.ModelBuilder, body: int, **options: object) -> int:
        """Add it to a body and return the shape."""
        if self.kind == "ball":
            return builder.add_shape_sphere(body, radius=self.size[0], **options)
        elif self.kind == "capsule":
            return builder.add_shape_capsule(body, radius=self.size[0], half_height=self.size[1], **options)
        elif self.kind == "wheel":
            return builder.add_shape_cylinder(body, radius=self.size[0], half_height=self.size[1], **options)
        return builder.add_shape_box(body, hx=self.size[0], hy=self.size[1], hz=self.size[2], **options)

    def depth(self, points: np.ndarray) -> np.ndarray:
        """Return the depth below the surface [m] of points of its frame [point, 3]; negative outside."""
        if self.kind == "ball":
            return self.size[0] - np.linalg.norm(points, axis=1)
        if self.kind == "capsule":
            along = np.clip(points[:, 2], -self.size[1], self.size[1])
            return self.size[0] - np.linalg.norm(points - along[:, None] * [0.0, 0.0, 1.0], axis=1)
        if self.kind == "wheel":
            radius = np.hypot(points[:, 0], points[:, 1])
            return np.minimum(self.size[0] - radius, self.size[1] - np.abs(points[:, 2]))
        return (np.array(self.size) - np.abs(points)).min(axis=1)


ON_ITS_SIDE = (np.sin(0.25 * np.pi), 0.0, 0.0, np.cos(0.25 * np.pi))
SHAPES = (
    Shape("ball", (0.15,), 1000.0),
    Shape("capsule", (0.09, 0.12), 1700.0, ON_ITS_SIDE),
    Shape("box", (0.09, 0.11, 0.07), 3000.0),
    Shape("wheel", (0.15, 0.06), 1600.0, ON_ITS_SIDE),
)


def come_to_rest(seconds: float) -> pv.Simulation:
    """Return a simulation of a world per body after some time."""
    builder = pv.ModelBuilder()
    for shape in SHAPES:
        soft = pv.ShapeConfig(is_hydroelastic=True, kh=KH, mu=0.9, density=shape.density, tau=0.05)
        world = pv.ModelBuilder()
        world.add_ground_plane()
        height = shape.size[2] if shape.kind == "box" else shape.size[0]
        shape.add(world, world.add_body(xform=(0.0, 0.0, height, *shape.turn)), cfg=soft)
        builder.add_world(world)
    model = builder.finalize("cpu")
    solver = pv.SolverSAP(model, resting_depth_limit=0.1)  # they are meant to be soft
    simulation = pv.Simulation(model, solver, dt=0.005)
    force = np.zeros((len(SHAPES), 6), dtype=np.float32)
    box = [shape.kind for shape in SHAPES].index("box")
    force[box, 0] = PUSH * 9.81 * model.body_mass.numpy()[box]
    simulation.state.body_f.assign(force)
    simulation.step(round(seconds / simulation.dt))
    return simulation


def pressure_on_floor(shape: Shape, pose: np.ndarray) -> np.ndarray:
    """Return the pressure [Pa] at the points of the tile under a body, rows along -y, shape [row, column]."""
    side = (np.arange(PIXELS) + 0.5) / PIXELS * TILE - 0.5 * TILE
    x, y = np.meshgrid(side, side[::-1])
    points = np.stack([x.ravel(), y.ravel(), np.full(x.size, -pose[2])], axis=1)
    turn = np.tile(pose[3:] * [-1.0, -1.0, -1.0, 1.0], (len(points), 1))
    return (KH * np.maximum(shape.depth(rotated(turn, points)), 0.0)).reshape(PIXELS, PIXELS)


def painted(pressure: np.ndarray, highest: float) -> pv.Texture:
    """Return the picture of a pressure."""
    level = np.clip(pressure / highest, 0.0, 1.0) * (len(RAMP) - 1)
    color = np.stack([np.interp(level, np.arange(len(RAMP)), RAMP[:, band]) for band in range(3)], axis=2)
    return pv.Texture(np.where((pressure > 0.0)[..., None], color, FLOOR_COLOR), name="pressure")


def add_arrow(builder: pv.ModelBuilder, body: int, start: np.ndarray, vector: np.ndarray) -> None:
    """Add an arrow from a point along a vector [m]."""
    length = float(np.linalg.norm(vector))
    if length < 3.0 * ARROW_RADIUS:
        return
    along = vector / length
    turn = np.array([-along[1], along[0], 0.0, 1.0 + along[2]])
    turn /= np.linalg.norm(turn)
    tip = 5.0 * ARROW_RADIUS
    for middle, half, add, radius in (
        (0.5 * (length - tip), 0.5 * (length - tip), builder.add_shape_cylinder, ARROW_RADIUS),
        (length - 0.5 * tip, 0.5 * tip, builder.add_shape_cone, 2.5 * ARROW_RADIUS),
    ):
        place = (*(start + middle * along).tolist(), *turn.tolist())
        add(body, xform=place, radius=radius, half_height=half, color=ARROW_COLOR)


def main() -> None:
    """Simulate, compare, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=1400, help="of the picture [pixel]")
    parser.add_argument("--samples", type=int, default=32, help="rays per pixel")
    parser.add_argument("--seconds", type=float, default=3.0, help="of simulation")
    parser.add_argument("--output", type=Path, default=HERE / "patches.jpg", help="the picture")
    options = parser.parse_args()
    simulation = come_to_rest(options.seconds)
    contacts = contacts_of(simulation, np.arange(len(SHAPES)))
    poses = simulation.state.body_q.numpy().reshape(-1, 7).astype(float)
    poses[:, :2] = 0.0
    fields = [pressure_on_floor(shape, pose) for shape, pose in zip(SHAPES, poses, strict=True)]
    highest = max(field.max() for field in fields)
    area = (TILE / PIXELS) ** 2
    origin = simulation.state.body_q.numpy().reshape(-1, 7)[:, :3]
    scene = pv.ModelBuilder()
    for index, (shape, pose, field) in enumerate(zip(SHAPES, poses, fields, strict=True)):
        own = contacts.world == index
        # Contacts store forces on the second shape, which is the floor or the body.
        force = contacts.force[own]
        force = force if force[:, 2].sum() > 0.0 else -force
        weight = 9.81 * simulation.model.body_mass.numpy()[index]
        print(
            f"{shape.kind}: {force[:, 2].sum():.1f} N of contact, "
            f"{field.sum() * area:.1f} N of painted pressure, {weight:.1f} N of weight"
        )
        world = pv.ModelBuilder()
        body = world.add_body(xform=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        below = (0.0, 0.0, -0.005, 0.0, 0.0, 0.0, 1.0)
        tile = world.add_shape_box(body, xform=below, hx=0.5 * TILE, hy=0.5 * TILE, hz=0.005, color=WHITE)
        world.set_appearance(tile, pv.Appearance(texture=painted(field, highest)))
        solid = shape.add(world, world.add_body(xform=tuple(pose.tolist())), color=BODY_COLOR)
        world.set_appearance(solid, pv.Appearance(alpha=0.3))
        for point, vector in zip(contacts.point[own], force, strict=True):
            add_arrow(world, body, (point - origin[index]) * [1.0, 1.0, 0.0], ARROW * vector)
        scene.add_world(world, xform=(1.12 * TILE * index, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    model = scene.finalize("cpu")
    pv.draw(
        model,
        worlds=list(range(model.world_count)),
        path=options.output,
        size=(options.width, round(0.34 * options.width)),
        samples=options.samples,
        spacing=0.0,
        camera=pv.render.Camera((0.95, -2.6, 2.0), (0.84, 0.0, 0.08), fov=0.25),
    )


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
