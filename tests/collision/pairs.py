"""Many worlds of one pair of shapes each, all at other poses, and their contacts in NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.types import GeoType

FIXED = (GeoType.PLANE, GeoType.HFIELD)
"""Shapes that pairs attach to the world."""


@dataclass
class ShapeSpec:
    """A shape and its size."""

    type: GeoType
    scale: tuple[float, ...] = ()
    mesh: Any = None

    def add(self, builder: pv.ModelBuilder, body: int, xform: Any = None, **config: Any) -> int:
        """Add the shape to a body."""
        return builder.add_shape(
            body=body,
            type=self.type,
            xform=xform,
            scale=self.scale if self.mesh is None else (self.scale or (1.0, 1.0, 1.0)),
            src=self.mesh,
            cfg=pv.ShapeConfig(**config),
        )


def plane() -> ShapeSpec:
    """Return an infinite plane."""
    return ShapeSpec(GeoType.PLANE, (0.0, 0.0, 0.0))


def sphere(radius: float) -> ShapeSpec:
    """Return a sphere."""
    return ShapeSpec(GeoType.SPHERE, (radius, 0.0, 0.0))


def capsule(radius: float, half_height: float) -> ShapeSpec:
    """Return a capsule."""
    return ShapeSpec(GeoType.CAPSULE, (radius, half_height, 0.0))


def cylinder(radius: float, half_height: float) -> ShapeSpec:
    """Return a cylinder."""
    return ShapeSpec(GeoType.CYLINDER, (radius, half_height, 0.0))


def cone(radius: float, half_height: float) -> ShapeSpec:
    """Return a cone."""
    return ShapeSpec(GeoType.CONE, (radius, half_height, 0.0))


def ellipsoid(rx: float, ry: float, rz: float) -> ShapeSpec:
    """Return an ellipsoid."""
    return ShapeSpec(GeoType.ELLIPSOID, (rx, ry, rz))


def box(hx: float, hy: float, hz: float) -> ShapeSpec:
    """Return a box."""
    return ShapeSpec(GeoType.BOX, (hx, hy, hz))


def hull(points: np.ndarray) -> ShapeSpec:
    """Return the convex hull of points."""
    from scipy.spatial import ConvexHull

    qhull = ConvexHull(points)
    triangles = qhull.simplices.copy()
    centre = points[qhull.vertices].mean(axis=0)
    for row, (a, b, c) in enumerate(triangles):
        if np.cross(points[b] - points[a], points[c] - points[a]) @ (points[a] - centre) < 0:
            triangles[row] = (a, c, b)
    return ShapeSpec(GeoType.CONVEX_MESH, mesh=pv.Mesh(points, triangles.reshape(-1)))


@dataclass
class WorldContacts:
    """Contacts of one world, points in the world frame, float64."""

    shape0: np.ndarray
    shape1: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    normal: np.ndarray
    local0: np.ndarray
    """Points in the frames of the bodies, as stored."""
    local1: np.ndarray
    margin: np.ndarray
    """Sum of both margins."""
    found: int

    @property
    def count(self) -> int:
        """Number of contacts stored."""
        return len(self.shape0)

    @property
    def distance(self) -> np.ndarray:
        """Distance of the surfaces along the normal [m], shape [contact]."""
        return np.einsum("ij,ij->i", self.normal, self.point1 - self.point0)


def read_contacts(model: pv.Model, state: pv.State, contacts: pv.Contacts) -> list[WorldContacts]:
    """Return the contacts of each world."""
    start = contacts.rigid_contact_start.numpy()
    count = contacts.rigid_contact_count.numpy()
    found = contacts.rigid_contact_found.numpy()
    body_q = np.concatenate([state.body_q.numpy().reshape(-1, 7), [[0, 0, 0, 0, 0, 0, 1]]]).astype(np.float64)
    shape_body = model.shape_body.numpy()
    arrays = {
        name: getattr(contacts, f"rigid_contact_{name}").numpy()
        for name in ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")
    }
    worlds = []
    for world in range(model.world_count):
        rows = slice(start[world], start[world] + count[world])
        points = []
        for side in "01":
            pose = body_q[shape_body[arrays[f"shape{side}"][rows]]]
            local = arrays[f"point{side}"][rows].astype(np.float64)
            if len(local):
                turned = Rotation.from_quat(pose[:, 3:]).apply(local)
                points.append(turned + pose[:, :3])
            else:
                points.append(np.zeros((0, 3)))
        worlds.append(
            WorldContacts(
                arrays["shape0"][rows],
                arrays["shape1"][rows],
                points[0],
                points[1],
                arrays["normal"][rows].astype(np.float64),
                arrays["point0"][rows].astype(np.float64),
                arrays["point1"][rows].astype(np.float64),
                (arrays["margin0"][rows] + arrays["margin1"][rows]).astype(np.float64),
                int(found[world]),
            )
        )
    return worlds


def collide(model: pv.Model, state: pv.State, **options: Any) -> list[WorldContacts]:
    """Return the contacts of each world of a model, starting from contacts full of NaN."""
    pipeline = pv.CollisionPipeline(model, **options)
    contacts = pipeline.contacts()
    for name in ("point0", "point1", "normal", "margin0", "margin1"):
        getattr(contacts, f"rigid_contact_{name}").fill_(float("nan"))
    pipeline.collide(state, contacts)
    return read_contacts(model, state, contacts)


def random_poses(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    """Return poses in a cube of half width `spread` [m], uniform in orientation, shape [count, 7]."""
    return np.concatenate(
        [rng.uniform(-spread, spread, (count, 3)), Rotation.random(count, random_state=rng).as_quat()], axis=1
    )


def pair_model(
    first: ShapeSpec, second: ShapeSpec, world_count: int, *, gap: float = 0.0, margin: float = 0.0
) -> pv.Model:
    """Return worlds of two shapes on a free body each; a plane as `first` is on the world frame."""
    world = pv.ModelBuilder()
    config = {"gap": gap, "margin": margin}
    if first.type in FIXED:
        first.add(world, -1, **config)
    else:
        first.add(world, world.add_body(mass=1.0, inertia=np.eye(3), lock_inertia=True), **config)
    second.add(world, world.add_body(mass=1.0, inertia=np.eye(3), lock_inertia=True), **config)
    builder = pv.ModelBuilder()
    builder.replicate(world, world_count)
    return builder.finalize("cpu")


def collide_pairs(
    first: ShapeSpec,
    second: ShapeSpec,
    poses0: np.ndarray,
    poses1: np.ndarray,
    *,
    gap: float = 0.0,
    margin: float = 0.0,
) -> list[WorldContacts]:
    """Return the contacts of two shapes at poses [world, 7], a pair per world; a plane is at the origin."""
    model = pair_model(first, second, len(poses1), gap=gap, margin=margin)
    state = model.state()
    if first.type in FIXED:
        state.body_q.assign(poses1.astype(np.float32))
    else:
        state.body_q.assign(np.stack([poses0, poses1], axis=1).reshape(-1, 7).astype(np.float32))
    return collide(model, state)


def surface_height(shape: ShapeSpec, points: np.ndarray) -> np.ndarray:
    """Return about how far points [point, 3], shape frame, are outside its surface [m]; 0 on it."""
    x, y, z = np.asarray(points).T
    across = np.hypot(x, y)
    size = shape.scale
    if shape.type == GeoType.PLANE:
        return z
    if shape.type == GeoType.SPHERE:
        return np.linalg.norm(points, axis=1) - size[0]
    if shape.type == GeoType.CAPSULE:
        return np.hypot(across, np.maximum(np.abs(z) - size[1], 0.0)) - size[0]
    if shape.type == GeoType.CYLINDER:
        return np.maximum(across - size[0], np.abs(z) - size[1])
    if shape.type == GeoType.CONE:
        slant = np.hypot(2.0 * size[1], size[0])
        return np.maximum(-z - size[1], (2.0 * size[1] * across + size[0] * (z - size[1])) / slant)
    if shape.type == GeoType.ELLIPSOID:
        return (np.linalg.norm(points / np.asarray(size), axis=1) - 1.0) * min(size)
    if shape.type == GeoType.BOX:
        return (np.abs(points) - np.asarray(size)).max(axis=1)
    from scipy.spatial import ConvexHull

    equations = ConvexHull(shape.mesh.vertices * np.asarray(shape.scale or (1.0, 1.0, 1.0))).equations
    return (points @ equations[:, :3].T + equations[:, 3]).max(axis=1)


# Convex shapes of every type, thin ones among them.
SHAPES = {
    "sphere": sphere(0.1),
    "capsule": capsule(0.1, 0.2),
    "ellipsoid": ellipsoid(0.1, 0.2, 0.3),
    "cylinder": cylinder(0.1, 0.2),
    "disc": cylinder(0.2, 0.01),
    "box": box(0.1, 0.2, 0.3),
    "plate": box(0.3, 0.3, 0.01),
    "cone": cone(0.15, 0.2),
    "hull": hull(np.random.default_rng(3).normal(size=(60, 3)) * 0.1),
}
