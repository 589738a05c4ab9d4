"""Random worlds with every term of the objective: all joint types, drives, limits, friction, contacts.

Contacts are made up, not found: `Contacts` says where they are, so the solver is tested without collision.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from pluriverse import (
    Contacts,
    Control,
    JointDofConfig,
    JointTargetMode,
    JointType,
    Model,
    ModelBuilder,
    ShapeConfig,
    State,
)
from tests.oracles.multibody_dense import DenseWorld

SHAPES_PER_BODY = 2


def _frame(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([rng.uniform(-0.3, 0.3, 3), Rotation.random(rng=rng).as_quat()])


def _inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """Inertia of a random cloud of points about its centre."""
    points = 0.15 * rng.normal(size=(6, 3))
    points -= points.mean(axis=0)
    second = mass / 6.0 * points.T @ points
    return np.trace(second) * np.eye(3) - second


def _number_or_none(value: float) -> float | None:
    """None for NaN: not given."""
    return None if np.isnan(value) else float(value)


def _drive(rng: np.random.Generator) -> dict:
    """Drive, limits and losses of one degree of freedom."""
    return {
        "target_ke": float(rng.choice([0.0, 50.0, 1e7])),
        "target_kd": float(rng.choice([0.0, 2.0, 1e5])),
        "target_pos": float(rng.normal()),
        "target_vel": float(rng.normal()),
        "effort_limit": float(rng.choice([0.0, 0.5, 20.0, np.inf])),
        "actuator_mode": JointTargetMode(int(rng.integers(0, 5))),
        "limit_lower": float(rng.choice([-np.inf, -0.3])),
        "limit_upper": float(rng.choice([0.3, np.inf])),
        "limit_ke": _number_or_none(rng.choice([0.0, 1e4, 1e12, np.nan])),
        "limit_kd": _number_or_none(rng.choice([0.0, 10.0, np.nan])),
        "friction": float(rng.choice([0.0, 0.3])),
    }


def _add_joint(
    builder: ModelBuilder, rng: np.random.Generator, kind: JointType, parent: int, child: int
) -> int:
    if kind == JointType.FREE and parent < 0:
        return builder.add_joint_free(child)
    frames = {"parent_xform": _frame(rng), "child_xform": _frame(rng)}
    if kind == JointType.FREE:
        return builder.add_joint_free(child, parent=parent, **frames)
    if kind == JointType.DISTANCE:
        bounds = [(-1.0, 0.8), (0.3, -1.0), (0.4, 0.6), (0.5, 0.5), (-1.0, -1.0), (0.8, 0.9)]
        least, most = bounds[int(rng.integers(len(bounds)))]
        return builder.add_joint_distance(parent, child, min_distance=least, max_distance=most, **frames)
    if kind == JointType.FIXED:
        return builder.add_joint_fixed(parent, child, **frames)
    losses = {"armature": float(rng.uniform(0.0, 0.1)), "damping": float(rng.uniform(0.0, 1.0))}
    if kind == JointType.BALL:
        drive = {
            name: value
            for name, value in _drive(rng).items()
            if name in ("target_kd", "effort_limit", "friction")
        }
        return builder.add_joint_ball(parent, child, **frames, **losses, **drive)
    if kind == JointType.D6:
        counts = rng.integers(0, 4, 2)
        counts[1] = max(counts[1], 1)
        axes = [
            [
                JointDofConfig(axis=axis, **losses, **_drive(rng))
                for axis in Rotation.random(rng=rng).as_matrix()
            ]
            for _ in counts
        ]
        linear, angular = axes[0][: counts[0]], axes[1][: counts[1]]
        return builder.add_joint_d6(parent, child, linear_axes=linear, angular_axes=angular, **frames)
    add = builder.add_joint_revolute if kind == JointType.REVOLUTE else builder.add_joint_prismatic
    return add(parent, child, axis=rng.normal(size=3), **frames, **losses, **_drive(rng))


INNER_KINDS = (
    JointType.REVOLUTE,
    JointType.D6,
    JointType.PRISMATIC,
    JointType.BALL,
    JointType.D6,
    JointType.FREE,
    JointType.FIXED,
)
"""Kinds of joints between bodies; the last one cannot move and is no root."""

CONSTRAINED_KINDS = (JointType.DISTANCE, *INNER_KINDS)
"""The same with the one that brings an equality constraint."""


def random_world(
    rng: np.random.Generator, tree_sizes: tuple[int, ...], kinds: tuple[JointType, ...] = INNER_KINDS
) -> ModelBuilder:
    """A world of trees with the given numbers of bodies; roots are free or hang on the world."""
    builder = ModelBuilder()
    ground = ShapeConfig(ke=1e5, tau=0.01, mu=0.7)
    builder.add_ground_plane(cfg=ground)
    for tree, size in enumerate(tree_sizes):
        links, joints = [], []
        for entry in range(size):
            mass = float(rng.uniform(0.3, 3.0))
            links.append(
                builder.add_link(mass=mass, com=rng.uniform(-0.1, 0.1, 3), inertia=_inertia(rng, mass))
            )
            for _ in range(SHAPES_PER_BODY):
                material = ShapeConfig(
                    density=0.0,
                    ke=float(10.0 ** rng.uniform(3, 9)),
                    tau=float(rng.choice([0.0, 0.02])),
                    mu=float(rng.choice([0.0, 0.4, 1.2])),
                )
                builder.add_shape_sphere(links[-1], radius=0.05, cfg=material)
            kind = JointType(rng.choice(kinds))
            if entry == 0:
                kind = JointType.FREE if tree % 2 == 0 else JointType(rng.choice(kinds[:-1]))
            parent = -1 if entry == 0 else links[int(rng.integers(max(0, entry - 3), entry))]
            joints.append(_add_joint(builder, rng, kind, parent, links[entry]))
        builder.add_articulation(joints)
    return builder


def randomize_state(
    model: Model, state: State, control: Control, rng: np.random.Generator, world: int
) -> None:
    """Write random positions, velocities, forces and commands of one world."""
    q, qd, body_f = state.joint_q.numpy(), state.joint_qd.numpy(), state.body_f.numpy()
    types, q_start, qd_start = (
        model.joint_type.numpy(),
        model.joint_q_start.numpy(),
        model.joint_qd_start.numpy(),
    )
    joint_start, body_start = model.joint_world_start.numpy(), model.body_world_start.numpy()
    for joint in range(joint_start[world], joint_start[world + 1]):
        coord, end = q_start[joint], q_start[joint + 1]
        q[coord:end] = rng.uniform(-0.5, 0.5, end - coord)
        if types[joint] in (JointType.BALL, JointType.FREE, JointType.DISTANCE):
            q[end - 4 : end] = Rotation.random(rng=rng).as_quat()
        dofs = slice(qd_start[joint], qd_start[joint + 1])
        # Every other world moves slowly, so that contacts stick there.
        qd[dofs] = (0.02 if world % 2 else 1.0) * rng.normal(size=dofs.stop - dofs.start)
    bodies = slice(body_start[world], body_start[world + 1])
    body_f[bodies] = rng.normal(size=(bodies.stop - bodies.start, 6))
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)
    state.body_f.assign(body_f)
    joints = slice(qd_start[joint_start[world]], qd_start[joint_start[world + 1]])
    for array, size in ((control.joint_f, 5.0), (control.joint_act, 1.0)):
        values = array.numpy()
        values[joints] = size * rng.normal(size=joints.stop - joints.start)
        array.assign(values)


def copy_world(model: Model, state: State, source: int, target: int) -> None:
    """Give world `target` the positions, velocities and body forces of world `source` of the same kind."""
    starts = {
        "joint_q": model.joint_coord_world_start.numpy(),
        "joint_qd": model.joint_dof_world_start.numpy(),
        "body_f": model.body_world_start.numpy(),
    }
    for name, start in starts.items():
        array = getattr(state, name)
        values = array.numpy()
        values[start[target] : start[target + 1]] = values[start[source] : start[source + 1]]
        array.assign(values)


def _weld_groups(model: Model, world: int) -> dict[int, int]:
    """Map each body to one that it is welded to, and all that are welded to the world, to -1."""
    template = model.templates[model.world_template[world]]
    first = int(model.topology.world_body.numpy()[world])
    weld = np.where(template.body_static, -1, first + template.body_weld)
    return {-1: -1} | {first + body: int(root) for body, root in enumerate(weld)}


def random_contacts(
    model: Model,
    state: State,
    control: Control,
    contacts: Contacts,
    rng: np.random.Generator,
    world: int,
    count: int,
) -> None:
    """Write `count` random contacts of one world: with the ground, inside a tree and between trees."""
    motion = DenseWorld(model, state, control, world, 1.0).motion
    shape_start, body_of = model.shape_world_start.numpy(), model.shape_body.numpy()
    shapes = list(range(shape_start[world], shape_start[world + 1]))
    ground = [shape for shape in shapes if body_of[shape] < 0]
    moving = [shape for shape in shapes if body_of[shape] >= 0]
    weld_of = _weld_groups(model, world)
    first = int(contacts.rigid_contact_start.numpy()[world])
    names = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1", "count", "found")
    arrays = {name: getattr(contacts, f"rigid_contact_{name}").numpy() for name in names}
    for slot in range(first, first + count):
        while True:
            shape0 = int(rng.choice(ground if rng.random() < 0.4 else moving))
            shape1 = int(rng.choice(moving))
            if weld_of[int(body_of[shape0])] != weld_of[int(body_of[shape1])]:
                break
        # The ground pushes roughly upwards, so that weight can hold a body on it.
        normal = (
            rng.normal(size=3)
            if body_of[shape0] >= 0
            else np.array([0.0, 0.0, 1.0]) + 0.2 * rng.normal(size=3)
        )
        normal /= np.linalg.norm(normal)
        phi0, margins = rng.uniform(-4e-3, 1e-3), rng.choice([0.0, 1e-3], size=2)
        surface = rng.uniform(-0.3, 0.3, 3)
        points = (surface, surface + (phi0 + margins.sum()) * normal)
        for side, (shape, point) in enumerate(zip((shape0, shape1), points, strict=True)):
            body = motion[int(body_of[shape])]
            arrays[f"shape{side}"][slot] = shape
            arrays[f"point{side}"][slot] = body.rotation.T @ (point - body.position)
            arrays[f"margin{side}"][slot] = margins[side]
        arrays["normal"][slot] = normal
    arrays["count"][world] = arrays["found"][world] = count
    for name, values in arrays.items():
        getattr(contacts, f"rigid_contact_{name}").assign(values)


def copy_contacts(model: Model, contacts: Contacts, source: int, target: int) -> None:
    """Give world `target` the contacts of world `source` of the same kind."""
    start = contacts.rigid_contact_start.numpy()
    count = contacts.rigid_contact_count.numpy()
    shift = model.shape_world_start.numpy()[target] - model.shape_world_start.numpy()[source]
    for name in ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1"):
        array = getattr(contacts, f"rigid_contact_{name}")
        values = array.numpy()
        values[start[target] : start[target] + count[source]] = values[
            start[source] : start[source] + count[source]
        ]
        if name.startswith("shape"):
            values[start[target] : start[target] + count[source]] += shift
        array.assign(values)
    count[target] = count[source]
    contacts.rigid_contact_count.assign(count)
