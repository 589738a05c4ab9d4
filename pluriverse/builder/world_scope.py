"""World scope: which world new entities belong to."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluriverse.builder.custom_attributes import check_custom_values, put_custom_values
from pluriverse.builder.inputs import Vector, as_gravity
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import Entity


def begin_world(
    builder: BuilderTables,
    label: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    gravity: float | Vector | None = None,
) -> None:
    """Open a new world; entities belong to it until `end_world`.

    Args:
        label: Name; `world_INDEX` if None.
        attributes: Custom attributes of the world, by key.
        gravity: Gravity [m/s²], a vector or its component along `up_axis`; that of the builder if None.

    Raises:
        RuntimeError: If a world is open already.
        AttributeError: If there is no such custom attribute.
        TypeError: If the value of a custom attribute is of another type.
        ValueError: If gravity is neither a number nor a vector, or a custom attribute does not fit.
    """
    if builder.current_world >= 0:
        raise RuntimeError(
            f"begin_world: world {builder.current_world} ('{builder.world_label[builder.current_world]}') is "
            "still open. Call end_world() first; worlds do not nest."
        )
    row = np.full(3, np.nan) if gravity is None else as_gravity(gravity, builder.up_axis)
    label = f"world_{builder.world_count}" if label is None else label
    custom = check_custom_values(builder, attributes, {Entity.WORLD: 1}, f"world '{label}'")
    builder._current_world = builder.tables[Entity.WORLD].append(gravity=row)
    builder.world_label.append(label)
    put_custom_values(builder, custom, {Entity.WORLD: builder.current_world})


def end_world(builder: BuilderTables) -> None:
    """Close the world that is open; further entities are global.

    Raises:
        RuntimeError: If no world is open.
    """
    if builder.current_world < 0:
        raise RuntimeError("end_world: no world is open. Call begin_world() first.")
    builder._current_world = -1


def check_body(builder: BuilderTables, body: int, what: str) -> None:
    """Raise unless `body` is -1 or a body of the current world."""
    if not isinstance(body, int | np.integer) or isinstance(body, bool):
        raise TypeError(
            f"{what}: body is {body!r}, but it must be the index that add_link() returned, or -1."
        )
    if not -1 <= body < builder.body_count:
        raise IndexError(
            f"{what}: body {body} does not exist; there are {builder.body_count} bodies. Use an index that "
            "add_link() or add_body() returned, or -1 for the world."
        )
    if body >= 0 and builder.body_world[body] != builder.current_world:
        where = f"world {builder.current_world}" if builder.current_world >= 0 else "the global world (-1)"
        raise ValueError(
            f"{what}: {builder.body_name(body)} is in world {builder.body_world[body]}, but the entity is "
            f"being added to {where}. Add it between the same begin_world() and end_world() as the "
            "body."
        )
