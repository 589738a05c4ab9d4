"""Copies of equality constraints in worlds made from builders, and constraints that represent joints."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.builder.inputs import copied_labels
from pluriverse.builder.tables import BuilderTables
from pluriverse.model import poses
from pluriverse.types import Entity, EqType


def append_equality_copies(
    target: BuilderTables,
    builder: BuilderTables,
    offsets: np.ndarray,
    worlds: np.ndarray,
    first_body: np.ndarray,
    first_joint: np.ndarray,
    prefixes: Sequence[str | None],
) -> None:
    """Append one copy of all constraints of `builder` per row of `offsets`, in the given worlds."""
    size, count = builder.equality_constraint_count, len(offsets)
    if size == 0 or count == 0:
        return
    added = target.tables[Entity.EQUALITY_CONSTRAINT].extend_copies(
        builder.tables[Entity.EQUALITY_CONSTRAINT], count
    )
    for column, first in (
        ("body1", first_body),
        ("body2", first_body),
        ("joint1", first_joint),
        ("joint2", first_joint),
    ):
        rows = target.column(f"equality_constraint_{column}")[added].reshape(count, size)
        rows[...] = np.where(rows >= 0, rows + first[:, None], rows)
    target.column("equality_constraint_world")[added] = np.repeat(worlds, size)
    target.equality_constraint_label += copied_labels(builder.equality_constraint_label, prefixes)

    # Quantities given in the frame of the world move with the copy.
    move_constraints(target, builder, added, offsets)


def add_constraints_of_joints(target: BuilderTables, joints: np.ndarray, **columns: Any) -> np.ndarray:
    """Add constraints that represent joints, with their labels, each as the last of its world.

    Copies of the builder keep their own table.

    Returns:
        Former index of each constraint, in the new order; added ones come after the others.
    """
    table = target.tables[Entity.EQUALITY_CONSTRAINT].copied()
    added = table.extend(len(joints))
    columns["world"] = target.joint_world[joints]
    for name, values in columns.items():
        table.view(f"equality_constraint_{name}")[added] = values
    labels = target.equality_constraint_label + [target.joint_label[joint] for joint in joints]
    order = np.argsort(table.view("equality_constraint_world"), kind="stable")
    target.tables[Entity.EQUALITY_CONSTRAINT] = table.taken(order)
    target.equality_constraint_label = [labels[index] for index in order]
    return order


def move_constraints(
    target: BuilderTables, builder: BuilderTables, added: slice, offsets: np.ndarray
) -> None:
    """Move the world-fixed parts of copies of `builder`'s constraints, by an offset per copy."""
    size, count = builder.equality_constraint_count, len(offsets)
    kind, body1 = builder.equality_constraint_type, builder.equality_constraint_body1
    of_bodies = kind != EqType.JOINT
    world_first = np.flatnonzero(of_bodies & (body1 < 0))
    world_second = np.flatnonzero(of_bodies & (builder.equality_constraint_body2 < 0))
    offset = np.broadcast_to(offsets[:, None, :], (count, size, 7))
    anchor = target.column("equality_constraint_anchor")[added].reshape(count, size, 3)
    axis = target.column("equality_constraint_axis")[added].reshape(count, size, 3)
    relpose = target.column("equality_constraint_relpose")[added].reshape(count, size, 7)
    for entries, in_world in ((world_first, kind != EqType.WELD), (world_second, kind == EqType.WELD)):
        attached = entries[in_world[entries]]
        frame = offset[:, attached]
        anchor[:, attached] = frame[..., :3] + poses.rotate(frame[..., 3:], anchor[:, attached])
    frame = offset[:, world_first]
    axis[:, world_first] = poses.rotate(frame[..., 3:], axis[:, world_first])
    relpose[:, world_first] = poses.compose(frame, relpose[:, world_first])
    relpose[:, world_second] = poses.compose(relpose[:, world_second], poses.inverse(offset[:, world_second]))
