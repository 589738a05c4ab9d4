"""Pressure patches of many pairs of shapes, a pair per world, and what they add up to."""

from dataclasses import dataclass

import numpy as np

import pluriverse as pv
from tests.collision.pairs import FIXED, ShapeSpec, WorldContacts, read_contacts

IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class PatchPair:
    """Two shapes with `kh` [N/m³], None for rigid, at poses (position, xyzw); a plane is at the origin."""

    first: ShapeSpec
    second: ShapeSpec
    kh0: float | None
    kh1: float | None
    pose0: np.ndarray
    pose1: np.ndarray
    margin: float = 0.0


@dataclass
class PatchContacts:
    """Contacts of one pair, as an undeformed step would feel them."""

    force: np.ndarray
    """Elastic force on the second shape [N], world axes."""
    moment: np.ndarray
    """Its moment about the origin of the world [N·m]."""
    centre: np.ndarray
    """Pressure centre [m]."""
    stiffness: np.ndarray
    """Stiffness of each contact [N/m], shape [contact]."""
    contacts: WorldContacts


def pair_model(pairs: list[PatchPair]) -> tuple[pv.Model, pv.State]:
    """Return a model with a world per pair, and its state with the pairs at their poses."""
    builder = pv.ModelBuilder()
    poses = []
    for pair in pairs:
        world = pv.ModelBuilder()
        sides = ((pair.first, pair.kh0, pair.pose0), (pair.second, pair.kh1, pair.pose1))
        for shape, kh, pose in sides:
            body = -1
            if shape.type not in FIXED:
                body = world.add_body(mass=1.0, inertia=np.eye(3), lock_inertia=True)
                poses.append(pose)
            shape.add(world, body, gap=0.0, margin=pair.margin, is_hydroelastic=kh is not None, kh=kh or 1.0)
        builder.add_world(world)
    model = builder.finalize("cpu")
    state = model.state()
    state.body_q.assign(np.array(poses, dtype=np.float32))
    return model, state


def find_patches(pairs: list[PatchPair]) -> list[PatchContacts]:
    """Return the contacts of each pair, starting from contacts full of NaN."""
    model, state = pair_model(pairs)
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    for name in ("point0", "point1", "normal", "margin0", "margin1", "stiffness"):
        getattr(contacts, f"rigid_contact_{name}").fill_(float("nan"))
    pipeline.collide(state, contacts)
    start = contacts.rigid_contact_start.numpy()
    stiffnesses = contacts.rigid_contact_stiffness.numpy().astype(np.float64)
    first_shapes = model.shape_world_start.numpy()
    patches = []
    for world, found in enumerate(read_contacts(model, state, contacts)):
        stiffness = stiffnesses[start[world] : start[world] + found.count]
        force = (stiffness * (found.margin - found.distance))[:, None] * found.normal
        # The second shape of the pair may be the first of the contact.
        force[found.shape1 == first_shapes[world]] *= -1.0
        points = 0.5 * (found.point0 + found.point1)
        size = np.linalg.norm(force, axis=1)
        centre = size @ points / max(size.sum(), 1e-30)
        moment = np.cross(points, force).sum(axis=0)
        patches.append(PatchContacts(force.sum(axis=0), moment, centre, stiffness, found))
    return patches
