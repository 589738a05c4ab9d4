"""Tables: where the rows of tensors are in the arrays of the model, on the device, for kernels."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.split_parts import find_origins
from pluriverse.model import Model
from pluriverse.types import JointType


@wp.struct
class ActorTable:
    """Of each actor, in the order of the sim."""

    root_body: wp.array[int]
    """Root body."""
    root_joint: wp.array[int]
    """Joint of the root."""
    root_coord: wp.array[int]
    """First coordinate of a free root, -1 for others."""
    root_dof: wp.array[int]
    """First degree of freedom of a free root, -1 for others."""
    root_moves: wp.array[int]
    """Whether the joint of a root that is not free lets it move."""
    articulation: wp.array[int]
    """Articulation."""
    world: wp.array[int]
    """World."""
    offset: wp.array[wp.vec3]
    """Origin of the env in its world [m]."""
    dof_start: wp.array[int]
    """First row of degrees of freedom, and at the end their number, shape [actor + 1]."""


@wp.struct
class DofTable:
    """Of each degree of freedom, in the order of the sim."""

    coord: wp.array[int]
    """Coordinate; the first of four for a ball joint."""
    dof: wp.array[int]
    """Degree of freedom of the model."""
    ball_axis: wp.array[int]
    """Component of the rotation vector of a ball joint, -1 elsewhere."""
    drive_mode: wp.array[int]
    """`DofDriveMode`."""
    stiffness: wp.array[float]
    """Stiffness of the drive [N/m or N·m/rad]."""


@wp.struct
class BodyTable:
    """Of each body, in the order of the sim."""

    body: wp.array[int]
    """Body of the model."""
    offset: wp.array[wp.vec3]
    """Origin of the env in its world [m]."""
    world_origin: wp.array[wp.vec3]
    """Origin of the world in the sim [m]."""
    world: wp.array[int]
    """World."""
    linear_damping: wp.array[float]
    """Rate at which linear velocity decays [1/s]."""
    angular_damping: wp.array[float]
    """Rate at which angular velocity decays [1/s]."""
    linear_limit: wp.array[float]
    """Largest linear velocity [m/s]."""
    angular_limit: wp.array[float]
    """Largest angular velocity [rad/s]."""
    flags: wp.array[int]
    """`RigidBodyFlags`, and `NO_GYROSCOPIC_FORCE`."""


# Bit beyond `RigidBodyFlags`: the body does not precess.
NO_GYROSCOPIC_FORCE = 4


def make_actor_table(sim: Sim, device: Any) -> ActorTable:
    """Return the table of the actors of a sim whose model was made."""
    actors = sim.actors
    free = np.array([actor.asset.is_free for actor in actors], dtype=bool)

    def first(kind: str, local: Any) -> np.ndarray:
        return np.array([actor.starts[kind] + local(actor.asset) for actor in actors], dtype=np.int64)

    table = ActorTable()
    table.root_body = integers(first("body", lambda asset: asset.root_body), device)
    table.root_joint = integers(first("joint", lambda asset: asset.root_joint), device)
    coord = first("coord", lambda asset: int(asset.builder.joint_q_start[asset.root_joint]))
    dof = first("dof", lambda asset: int(asset.builder.joint_qd_start[asset.root_joint]))
    table.root_coord = integers(np.where(free, coord, -1), device)
    table.root_dof = integers(np.where(free, dof, -1), device)
    moves = [actor.asset.root_type not in (JointType.FREE, JointType.FIXED) for actor in actors]
    table.root_moves = integers(moves, device)
    table.articulation = integers(first("articulation", lambda asset: 0), device)
    table.world = integers(np.array([actor.env.world for actor in actors]), device)
    table.offset = vectors([actor.env.offset for actor in actors], device)
    counts = [actor.asset.dof_count for actor in actors]
    table.dof_start = integers(np.concatenate([[0], np.cumsum(counts)]), device)
    return table


def make_dof_table(sim: Sim, device: Any) -> DofTable:
    """Return the table of the degrees of freedom of a sim whose model was made."""
    table = DofTable()
    coord = [actor.starts["coord"] + actor.asset.dof_coord for actor in sim.actors]
    dof = [actor.starts["dof"] + actor.asset.dof_index for actor in sim.actors]
    table.coord = integers(_joined(coord), device)
    table.dof = integers(_joined(dof), device)
    table.ball_axis = integers(_joined([actor.asset.dof_ball_axis for actor in sim.actors]), device)
    table.drive_mode = integers(_joined([actor.dof_properties["driveMode"] for actor in sim.actors]), device)
    stiffness = [np.zeros(0), *(actor.dof_properties["stiffness"] for actor in sim.actors)]
    table.stiffness = wp.array(np.concatenate(stiffness).astype(np.float32), dtype=float, device=device)
    return table


def make_body_table(sim: Sim, device: Any) -> BodyTable:
    """Return the table of the bodies of a sim whose model was made."""
    table = BodyTable()
    actors = sim.actors
    counts = np.array([actor.asset.body_count for actor in actors], dtype=np.int64)
    body = [actor.starts["body"] + np.arange(actor.asset.body_count) for actor in actors]
    table.body = integers(_joined(body), device)
    offset = np.array([actor.env.offset for actor in actors]).reshape(-1, 3)
    origin = np.array([actor.env.origin - actor.env.offset for actor in actors]).reshape(-1, 3)
    table.offset = vectors(np.repeat(offset, counts, axis=0), device)
    table.world_origin = vectors(np.repeat(origin, counts, axis=0), device)
    table.world = integers(np.repeat([actor.env.world for actor in actors], counts), device)
    for name, option in (
        ("linear_damping", "linear_damping"),
        ("angular_damping", "angular_damping"),
        ("linear_limit", "max_linear_velocity"),
        ("angular_limit", "max_angular_velocity"),
    ):
        values = np.repeat([getattr(actor.asset.options, option) for actor in actors], counts)
        setattr(table, name, wp.array(values.astype(np.float32), dtype=float, device=device))
    table.flags = integers(_joined([body_flags(actor) for actor in actors]), device)
    return table


def find_body_rows(model: Model, bodies: BodyTable) -> np.ndarray:
    """Return the place in the sim of each body of the model.

    Of a part of a body, which a joint that closes a loop moves (`pluriverse.builder.split_bodies`), it is -2
    less the place of that body.
    """
    own = bodies.body.numpy()
    row = np.full(model.body_count, -1, dtype=np.int64)
    row[own] = np.arange(len(own))
    if len(own) < model.body_count:
        parts = np.flatnonzero(row < 0)
        row[parts] = -2 - row[find_origins(model, row >= 0)[parts]]
    return row


def find_split_parts(model: Model, bodies: BodyTable) -> dict[int, list[int]]:
    """Return the parts that were cut from bodies of the model, by body."""
    rows, own = find_body_rows(model, bodies), bodies.body.numpy()
    parts: dict[int, list[int]] = {}
    for part in np.flatnonzero(rows < 0).tolist():
        parts.setdefault(int(own[-2 - rows[part]]), []).append(part)
    return parts


def body_flags(actor: Any) -> np.ndarray:
    """Return the flags of the bodies of an actor, as in `BodyTable.flags`."""
    asset = actor.asset
    flags = actor.body_flags
    if flags is None:
        flags = np.full(asset.body_count, int(bool(asset.options.disable_gravity)), dtype=np.int64)
    return flags | (0 if asset.options.enable_gyroscopic_forces else NO_GYROSCOPIC_FORCE)


def integers(values: Any, device: Any) -> wp.array:
    """Return whole numbers as an array on a device."""
    return wp.array(np.asarray(values, dtype=np.int32), dtype=wp.int32, device=device)


def vectors(values: Any, device: Any) -> wp.array:
    """Return vectors as an array on a device."""
    return wp.array(np.asarray(values, dtype=np.float32).reshape(-1, 3), dtype=wp.vec3, device=device)


def _joined(parts: list[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts]) if parts else np.zeros(0)
