"""SensorContact: what contacts press on bodies or shapes, in all and apart by what presses.

It takes a loop of one's own. Contact sensors that robots bring along are in `ModelSensors`.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Contacts, Model, State
from pluriverse.model.arguments import check_contacts, check_state
from pluriverse.selection.patterns import Patterns
from pluriverse.sensors.contact_pressure import sum_pressures
from pluriverse.sensors.selected_entities import select_entities, world_of


class SensorContact:
    """Contact forces on bodies or shapes of all worlds, world axes.

    Args:
        model: The model.
        sensing_bodies: Labels, patterns or indices of the bodies that feel.
        sensing_shapes: Those of shapes, instead of bodies.
        counterpart_bodies: Bodies whose forces are told apart.
        counterpart_shapes: Shapes instead, such as those of the ground. Each sensor is about those of its
            world and those of none.
        measure_total: Whether the sums over all contacts are kept.
        verbose: Makes no difference.
        request_contact_attributes: Makes no difference: every `Contacts` has forces.

    Raises:
        IndexError: If an index is out of range.
        KeyError: If a pattern finds nothing.
        TypeError: If both bodies and shapes are given, or neither is to feel.
        ValueError: If what feels belongs to no world, or there is nothing to measure.
    """

    total_force: Any
    """Force [N] on each body or shape, a Warp array of vectors of shape [sensor]; None if not kept."""
    total_force_friction: Any
    """Tangential part of it [N], likewise."""
    force_matrix: Any
    """Force [N] of each counterpart on each sensor, zero behind the last one of its world, a Warp array of
    vectors of shape [sensor, counterpart]; None without counterparts."""
    force_matrix_friction: Any
    """Tangential part of it [N], likewise."""
    position_matrix: Any
    """Middle of the contacts with each counterpart [m], weighted by their forces, zero without, likewise."""
    sensing_indices: list[int]
    """Body or shape of each sensor."""
    counterpart_indices: list[list[int]]
    """Bodies or shapes of the columns of each sensor, global ones first."""

    def __init__(
        self,
        model: Model,
        *,
        sensing_bodies: Patterns | None = None,
        sensing_shapes: Patterns | None = None,
        counterpart_bodies: Patterns | None = None,
        counterpart_shapes: Patterns | None = None,
        measure_total: bool = True,
        verbose: bool | None = None,
        request_contact_attributes: bool = True,
    ):
        self.model = model
        """The model."""
        self.sensing_type = _one_kind(sensing_bodies, sensing_shapes, "sensing", required=True)
        """"body" or "shape"."""
        self.counterpart_type = _one_kind(counterpart_bodies, counterpart_shapes, "counterpart")
        """"body", "shape", or None without counterparts."""
        if not measure_total and self.counterpart_type is None:
            raise ValueError(
                "SensorContact: measure_total is False and there are no counterparts, so nothing is "
                "measured. Name counterpart_bodies or counterpart_shapes, or leave measure_total out."
            )
        sensing = sensing_shapes if sensing_bodies is None else sensing_bodies
        assert sensing is not None
        rows = select_entities(
            model, str(self.sensing_type), sensing, f"SensorContact: {_plural(self.sensing_type)}"
        )
        world = world_of(model, _world(model, self.sensing_type)[rows])
        if (world < 0).any():
            index = int(rows[np.flatnonzero(world < 0)[0]])
            label = getattr(model, f"{self.sensing_type}_label")[index]
            raise ValueError(
                f"SensorContact: {self.sensing_type} '{label}' (index {index}) belongs to no world, and "
                f"touches what is in any of the {model.world_count}. Name bodies or shapes of worlds, and "
                "this one as a counterpart."
            )
        self.sensing_indices = rows.tolist()
        row_of = np.full(getattr(model, f"{self.sensing_type}_count"), -1, dtype=np.int32)
        row_of[rows] = np.arange(len(rows))
        self._row = self._by_shape(row_of, self.sensing_type)
        columns = np.full(model.shape_count, -1, dtype=np.int32)
        width = 0
        self.counterpart_indices = [[] for _ in rows]
        if self.counterpart_type is not None:
            selected = counterpart_shapes if counterpart_bodies is None else counterpart_bodies
            column_of, width = self._columns(selected, world)
            columns = self._by_shape(column_of, self.counterpart_type)
        device, count = model.device, len(rows)
        everywhere = np.arange(model.world_count, dtype=np.int32)
        self._worlds: Any = wp.array(everywhere, dtype=wp.int32, device=device)
        self._row_of_shape: Any = wp.array(self._row, dtype=wp.int32, device=device)
        self._column_of_shape: Any = wp.array(columns, dtype=wp.int32, device=device)
        self.total_force = self.total_force_friction = None
        if measure_total:
            self.total_force = wp.zeros(count, dtype=wp.vec3, device=device)
            self.total_force_friction = wp.zeros(count, dtype=wp.vec3, device=device)
        self.force_matrix = self.force_matrix_friction = self.position_matrix = self._weight = None
        if self.counterpart_type is not None:
            self.force_matrix = wp.zeros((count, width), dtype=wp.vec3, device=device)
            self.force_matrix_friction = wp.zeros((count, width), dtype=wp.vec3, device=device)
            self.position_matrix = wp.zeros((count, width), dtype=wp.vec3, device=device)
            self._weight = wp.zeros((count, width), dtype=wp.float32, device=device)

    def update(self, state: State | None, contacts: Contacts) -> None:
        """Sum the forces of the contacts of a step. Only launches.

        Args:
            state: State that the contacts were found in; None for that of the model, which matters for
                `position_matrix` only.
            contacts: Contacts of the step, with the forces that the solver wrote.

        Raises:
            ValueError: If something belongs to another model.
        """
        model = self.model
        check_contacts(model, contacts, "SensorContact.update: contacts")
        if state is not None:
            check_state(model, state, "SensorContact.update: state")
        results = [
            self.total_force,
            self.total_force_friction,
            self.force_matrix,
            self.force_matrix_friction,
            self.position_matrix,
            self._weight,
        ]
        for array in results:
            if array is not None:
                array.zero_()
        sum_pressures(
            model,
            self._worlds,
            self._row_of_shape,
            self._column_of_shape,
            model.body_q if state is None else state.body_q,
            contacts,
            results,
        )

    def _by_shape(self, values: np.ndarray, kind: str | None) -> np.ndarray:
        """Return numbers given per body (or shape) for each shape, -1 for shapes of none."""
        if kind == "shape":
            return values
        body = self.model.shape_body.numpy()
        return np.append(values, -1)[body].astype(np.int32)

    def _columns(self, patterns: Any, row_world: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the column of each counterpart, -1 for others, and the number of columns."""
        kind = str(self.counterpart_type)
        selected = np.sort(
            select_entities(self.model, kind, patterns, f"SensorContact: {_plural(kind, 'counterpart')}")
        )
        world = _world(self.model, kind)[selected]
        shared = selected[world < 0]
        column_of = np.full(getattr(self.model, f"{kind}_count"), -1, dtype=np.int32)
        column_of[shared] = np.arange(len(shared))
        order = np.argsort(world, kind="stable")
        order = order[world[order] >= 0]
        own, own_world = selected[order], world[order]
        begins = np.searchsorted(own_world, own_world, side="left")
        column_of[own] = len(shared) + np.arange(len(own)) - begins
        local = np.split(own, np.flatnonzero(np.diff(own_world)) + 1) if len(own) else []
        by_world = {int(_world(self.model, kind)[part[0]]): part.tolist() for part in local}
        self.counterpart_indices = [shared.tolist() + by_world.get(int(where), []) for where in row_world]
        return column_of, max(1, max((len(part) for part in self.counterpart_indices), default=1))


def _world(model: Model, kind: str | None) -> np.ndarray:
    worlds: np.ndarray = (model.body_world if kind == "body" else model.shape_world).numpy()
    return worlds


def _plural(kind: str | None, role: str = "sensing") -> str:
    return f"{role}_bodies" if kind == "body" else f"{role}_shapes"


def _one_kind(bodies: Any, shapes: Any, role: str, *, required: bool = False) -> str | None:
    """Return whether bodies or shapes are given, None for neither.

    Raises:
        TypeError: If both are, or if neither is and one is required.
    """
    if bodies is not None and shapes is not None:
        raise TypeError(f"SensorContact: both {role}_bodies and {role}_shapes are given; give one of them.")
    if bodies is None and shapes is None:
        if required:
            raise TypeError(f"SensorContact: give {role}_bodies or {role}_shapes, which are to feel forces.")
        return None
    return "shape" if bodies is None else "body"
