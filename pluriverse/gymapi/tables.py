"""Tables: where the rows of tensors are in the arrays of the model, on the device, for kernels."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.split_parts import find_origins
from pluriverse.model import Model


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


def integers(values: Any, device: Any) -> wp.array:
    """Return whole numbers as an array on a device."""
    return wp.array(np.asarray(values, dtype=np.int32), dtype=wp.int32, device=device)


def vectors(values: Any, device: Any) -> wp.array:
    """Return vectors as an array on a device."""
    return wp.array(np.asarray(values, dtype=np.float32).reshape(-1, 3), dtype=wp.vec3, device=device)
