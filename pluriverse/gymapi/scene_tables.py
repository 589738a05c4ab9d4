"""Scene tables: what stands in the tables of `pluriverse.gymapi.tables` for a sim whose model was made."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.scene import Actor, Sim
from pluriverse.gymapi.tables import (
    NO_GYROSCOPIC_FORCE,
    ActorTable,
    BodyTable,
    DofTable,
    integers,
    vectors,
)
from pluriverse.types import JointType


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


def body_flags(actor: Actor) -> np.ndarray:
    """Return the flags of the bodies of an actor, as in `BodyTable.flags`."""
    asset = actor.asset
    flags = actor.body_flags
    if flags is None:
        flags = np.full(asset.body_count, int(bool(asset.options.disable_gravity)), dtype=np.int64)
    return flags | (0 if asset.options.enable_gyroscopic_forces else NO_GYROSCOPIC_FORCE)


def _joined(parts: list[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts]) if parts else np.zeros(0)
