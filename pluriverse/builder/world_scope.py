"""World scope: which world new entities belong to."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluriverse.builder.columns import Column, Table
from pluriverse.builder.custom_attributes import CustomAttributeBuilder
from pluriverse.builder.inputs import Vector, as_gravity
from pluriverse.types import Axis, Entity

GRAVITY = -9.81
"""Gravity along the up axis of a builder that sets none [m/s²]."""


class WorldScope(CustomAttributeBuilder):
    """The part of a builder that opens and closes worlds."""

    def __init__(self) -> None:
        super().__init__()
        self._worlds = Table({"gravity": Column(np.float64, (3,), np.nan)})  # NaN: that of the builder
        self._gravity: float | np.ndarray | None = None
        self._up_axis = Axis.Z
        self._current_world = -1
        self.world_label: list[str] = []
        """Name, shape [world]."""

    @property
    def world_count(self) -> int:
        """Number of worlds."""
        return len(self._worlds)

    @property
    def current_world(self) -> int:
        """World that new entities belong to, -1 outside of any. Changed by `begin_world` and `end_world`."""
        return self._current_world

    @property
    def up_axis(self) -> Axis:
        """Axis that points up: that of gravity given as a number, of the ground plane and of imported assets.

        Assign an axis, its name ("y") or its number before anything is added; what was added stays as it is.
        """
        return self._up_axis

    @up_axis.setter
    def up_axis(self, value: Axis | str | int) -> None:
        self._up_axis = Axis.from_any(value)

    @property
    def gravity(self) -> float | np.ndarray:
        """Gravity [m/s²] of worlds that have none of their own: a vector, or its component along `up_axis`.

        It is -9.81 if not set. `add_world` and `replicate` give the copies the gravity of the builder they
        copy, if that was set.
        """
        return GRAVITY if self._gravity is None else self._gravity

    @gravity.setter
    def gravity(self, value: float | Vector) -> None:
        vector = as_gravity(value)
        self._gravity = float(np.asarray(value)) if np.ndim(value) == 0 else vector

    def begin_world(
        self,
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
        if self._current_world >= 0:
            raise RuntimeError(
                f"begin_world: world {self._current_world} ('{self.world_label[self._current_world]}') is "
                "still open. Call end_world() first; worlds do not nest."
            )
        row = np.full(3, np.nan) if gravity is None else as_gravity(gravity, self.up_axis)
        label = f"world_{self.world_count}" if label is None else label
        custom = self._check_custom(attributes, {Entity.WORLD: 1}, f"world '{label}'")
        self._current_world = self._worlds.append(gravity=row)
        self.world_label.append(label)
        self._put_custom(custom, {Entity.WORLD: self._current_world})

    def end_world(self) -> None:
        """Close the world that is open; further entities are global.

        Raises:
            RuntimeError: If no world is open.
        """
        if self._current_world < 0:
            raise RuntimeError("end_world: no world is open. Call begin_world() first.")
        self._current_world = -1

    def _world_of_rows(self) -> int:
        return self._current_world

    def _check_body(self, body: int, what: str) -> None:
        """Raise unless `body` is -1 or a body of the current world."""
        if not isinstance(body, int | np.integer) or isinstance(body, bool):
            raise TypeError(
                f"{what}: body is {body!r}, but it must be the index that add_link() returned, or -1."
            )
        if not -1 <= body < self.body_count:
            raise IndexError(
                f"{what}: body {body} does not exist; there are {self.body_count} bodies. Use an index that "
                "add_link() or add_body() returned, or -1 for the world."
            )
        if body >= 0 and self.body_world[body] != self._current_world:
            place = f"world {self._current_world}" if self._current_world >= 0 else "the global world (-1)"
            raise ValueError(
                f"{what}: {self._body_name(body)} is in world {self.body_world[body]}, but the entity is "
                f"being added to {place}. Add it between the same begin_world() and end_world() as the "
                "body."
            )
