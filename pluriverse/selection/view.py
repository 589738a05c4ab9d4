"""View: some entities of a model, of any mix of worlds, and what belongs to them as arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import same_memory
from pluriverse.model import Control, Model, State
from pluriverse.model.world_ranges import entity_count
from pluriverse.selection.layout import Layout, owned_by
from pluriverse.selection.patterns import Patterns, match_labels
from pluriverse.selection.row_mask import RowMask
from pluriverse.selection.sources import check_source
from pluriverse.selection.transfer import gather, scatter
from pluriverse.selection.values import as_device_array
from pluriverse.types import Entity


class View:
    """Entities of one kind, the *rows* of the view, sorted by world; made by its subclasses.

    Arrays have the axes [world of the view, row of the world, entry of the row] if all worlds have the same
    number of rows and all rows the same number of entries. Without the former, the first two are one axis
    [row]; without the latter the array is *ragged*: [entry], row after row, as given by `offsets`, or padded
    on request.
    """

    model: Model
    """Model that is looked at."""
    device: Any
    """Device of the model."""
    frequency: Entity
    """Kind of entity that the rows are."""
    count: int
    """Number of rows."""
    row_ids: np.ndarray
    """Index of each row in the model, on the host, shape [row]."""
    row_world: np.ndarray
    """World of each row, -1 for what all worlds share, on the host, shape [row]."""
    world_count: int
    """Number of worlds that have rows."""
    world_ids: wp.array[int]
    """The worlds that have rows, ascending, shape [world of the view]."""
    count_per_world: int | None
    """Rows of each of these worlds; None if they have different numbers."""
    row_shape: tuple[int, ...]
    """Shape of the rows: (world_count, count_per_world), or (count,)."""

    def __init__(self, model: Model, frequency: Entity, row_ids: np.ndarray, row_world: np.ndarray) -> None:
        self.model = model
        self.device = model.device
        self.frequency = frequency
        order = np.lexsort((row_ids, row_world))
        self.row_ids, self.row_world = row_ids[order], row_world[order]
        self.count = len(row_ids)
        worlds, slots, counts = np.unique(self.row_world, return_inverse=True, return_counts=True)
        self.world_count = len(worlds)
        self.world_ids = wp.array(worlds.astype(np.int32), dtype=wp.int32, device=self.device)
        self.count_per_world = int(counts[0]) if (counts == counts[0]).all() else None
        self.row_shape = (
            (self.count,) if self.count_per_world is None else (self.world_count, self.count_per_world)
        )
        self._masks = RowMask(self.row_shape, slots.reshape(-1), self.world_count, model)
        self._layouts: dict[Entity | str, Layout] = {}
        self._add_layout(frequency, self.row_ids, np.arange(self.count + 1))

    def _add_layout(self, frequency: Entity | str, index: np.ndarray, start: np.ndarray) -> None:
        self._layouts[frequency] = Layout(
            index, start, self.row_shape, frequency is self.frequency, self.device
        )

    def layout(self, frequency: Entity | str) -> Layout:
        """Return the layout of the entries of a kind, or of the rows of a custom frequency.

        Raises:
            ValueError: If the rows of the view own no such entries.
        """
        if frequency not in self._layouts and isinstance(frequency, str):
            self._add_layout(frequency, *owned_by(self.row_ids, self._custom_owners(frequency)))
        if frequency not in self._layouts:
            raise self._owns_none(frequency)
        return self._layouts[frequency]

    def _custom_owners(self, frequency: str) -> np.ndarray:
        """Return the world or articulation that each row of a custom frequency belongs to."""
        if self.frequency is Entity.WORLD:
            return simulated_worlds(self.model, self.model.custom_frequency_world[frequency])
        owners = self.model.custom_frequency_articulation.get(frequency)
        if owners is None or self.frequency is not Entity.ARTICULATION:
            raise self._owns_none(frequency)
        return owners

    def _owns_none(self, frequency: Entity | str) -> ValueError:
        kind = frequency if isinstance(frequency, str) else frequency.key
        owned = ", ".join(known if isinstance(known, str) else known.key for known in self._layouts)
        return ValueError(
            f"{type(self).__name__}: no {kind} belongs to the {self.frequency.key}s of this view, only "
            f"{owned}. Use a view of another kind, such as WorldView."
        )

    def offsets(self, frequency: Entity | str) -> np.ndarray:
        """Return the first entry of each row and, at the end, their number, on the host, shape [row + 1]."""
        return self.layout(frequency).start

    def padding_mask(self, frequency: Entity | str) -> wp.array:
        """Return which places of a padded array hold an entry, shape [row, most entries of a row]."""
        layout = self.layout(frequency)
        mask = np.zeros(layout.padded_shape, dtype=bool)
        mask.flat[layout.padded_indices()] = True
        return wp.array(mask, dtype=wp.bool, device=self.device)

    def labels(self, frequency: Entity) -> list[str]:
        """Return the label of each entry of a kind that has labels, row after row."""
        return [
            getattr(self.model, f"{frequency.key}_label")[entity] for entity in self.layout(frequency).index
        ]

    def get_attribute(
        self,
        name: str,
        source: Model | State | Control,
        *,
        copy: bool = False,
        out: wp.array | None = None,
    ) -> wp.array:
        """Return the entries of an array that belong to the view, in the memory of the array itself.

        Writing to the result writes to the array. That requires entries at regular distances in memory, as in
        worlds of one kind. If worlds differ, request a copy and write it back with `set_attribute`, or make a
        view per kind of world.

        Args:
            name: Name of the array, such as `joint_q`, or of a custom attribute, such as `mujoco.condim`.
            source: Model, state or control that has the array.
            copy: Return a copy instead, whatever the layout.
            out: Array to copy into, contiguous, of the type and shape of the result; None for a view or a
                new array.

        Returns:
            Array of the shape of the view (class docstring).

        Raises:
            AttributeError: If there is no such array.
            ValueError: If the array belongs to another model, `out` has another shape, or entries stand at
                irregular distances and no copy is asked for.
        """
        array, layout = self._find(name, source, "get_attribute")
        if out is None and not copy:
            if layout.strides is None and len(layout.index):
                raise ValueError(self.irregular_message(name))
            if layout.strides is not None:
                return _alias(array, layout)
        out = self._output(out, array, layout.shape, "get_attribute")
        gather(layout.index_array, layout.in_order, array, out, len(layout.index))
        return out

    def irregular_message(self, name: str) -> str:
        """Return the message for entries at irregular distances."""
        return (
            f"{type(self).__name__}: {name} of the {self.count} rows of this view stands at irregular "
            "distances in memory, as worlds or rows differ, so no array can share that memory. Pass "
            "copy=True (or out=) for a copy and put it back with the setter, or make a view per kind of "
            "world (worlds=kind.worlds.tolist() for each kind of model.templates)."
        )

    def get_attribute_padded(
        self,
        name: str,
        source: Model | State | Control,
        *,
        fill: float = 0.0,
        out: wp.array | None = None,
    ) -> wp.array:
        """Return a copy padded to the longest row, shape [row, most entries of a row].

        Args:
            name: Name of the array.
            source: Model, state or control that has the array.
            fill: Number for all elements that hold no entry (`padding_mask`).
            out: Array to copy into, contiguous; None for a new one.

        Raises:
            AttributeError: If there is no such array.
            ValueError: If the array belongs to another model, or `out` has another shape.
        """
        array, layout = self._find(name, source, "get_attribute_padded")
        out = self._output(out, array, layout.padded_shape, "get_attribute_padded")
        out.fill_(fill)
        element_count = layout.padded_shape[0] * layout.padded_shape[1]
        gather(layout.index_array, layout.padded_index_array, array, out, element_count)
        return out

    def set_attribute(
        self,
        name: str,
        target: Model | State | Control,
        values: Any,
        mask: Any = None,
        *,
        indices: Any = None,
    ) -> None:
        """Write entries of an array, on the device.

        Arrays on the device are read there, so that the call can be recorded; numbers of the host (NumPy,
        lists) are copied to the device, and broadcast like NumPy's.

        Args:
            name: Name of the array, such as `joint_q`.
            target: Model, state or control that has the array.
            values: Values of the shape of the view, or [row, most entries of a row] as
                `get_attribute_padded` returns them, or [entry]. Warp, DLPack (PyTorch, JAX) or NumPy.
            mask: Which rows to write, True to write, shape [world of the view], [world, row of the world] or
                [row]. All if None.
            indices: Rows to write, in place of a mask. Indices on the device that name no row are ignored.

        Raises:
            AttributeError: If there is no such array.
            IndexError: If an index on the host names no row.
            TypeError: If values or mask have another type.
            ValueError: If a shape or a device is wrong, the array belongs to another model, is fixed since
                `finalize`, or both `mask` and `indices` are given.
        """
        what = f"set_attribute('{name}')"
        array, layout = self._find(name, target, what)
        if isinstance(target, Model) and name in target.guarded_arrays:
            raise ValueError(
                f"{what}: the structure of a model was evaluated in finalize, so a change would have no "
                "effect. Set it on the ModelBuilder and finalize again."
            )
        selected = self._masks.selected(mask, indices, what=what)
        further = tuple(array.shape[1:])
        shapes = [
            (*shape, *further)
            for shape in dict.fromkeys([layout.shape, layout.padded_shape, (len(layout.index),)])
        ]
        device_values, shape = as_device_array(values, array.dtype, shapes, self.device, what=what)
        own = shape[: len(shape) - len(further)]
        padded = own == layout.padded_shape and own != layout.shape
        scatter(
            layout.index_array,
            layout.padded_index_array if padded else layout.in_order,
            layout.entry_row_array,
            selected,
            device_values,
            int(np.prod(own)),
            array,
        )

    def _find(self, name: str, source: Any, what: str) -> tuple[wp.array, Layout]:
        array, frequency = check_source(source, name, self.model, what=what)
        return array, self.layout(frequency)

    def _output(self, out: wp.array | None, array: wp.array, shape: tuple[int, ...], what: str) -> wp.array:
        """Return the array to copy into: contiguous, on the device."""
        shape = (*shape, *array.shape[1:])
        if out is None:
            return wp.empty(shape, dtype=array.dtype, device=self.device)
        if (
            tuple(out.shape) != shape
            or out.dtype is not array.dtype
            or out.device != self.device
            or not out.is_contiguous
        ):
            raise ValueError(
                f"{what}: out has shape {tuple(out.shape)} on {out.device}, but must be a contiguous array "
                f"of shape {shape} and of the type of the attribute on {self.device}."
            )
        return out

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.count} rows of kind {self.frequency.key}, shape {self.row_shape})"
        )


def _alias(array: Any, layout: Layout) -> Any:
    """Return the entries in the memory of the array itself."""
    assert layout.strides is not None
    entry_bytes = array.strides[0]
    return same_memory(
        array,
        array.dtype,
        (*layout.shape, *array.shape[1:]),
        strides=(*(stride * entry_bytes for stride in layout.strides), *array.strides[1:]),
        byte_offset=int(layout.index[0]) * entry_bytes,
    )


def select_rows(
    model: Model,
    frequency: Entity,
    labels: Sequence[str],
    entity_world: np.ndarray,
    pattern: Patterns,
    worlds: Patterns | None,
    *,
    what: str,
) -> np.ndarray:
    """Return the entities that match a pattern, in the worlds that match another.

    Raises:
        KeyError: If a pattern finds nothing, or nothing in these worlds.
    """
    numbers = np.arange(entity_count(model, frequency))
    found = match_labels(labels, numbers, pattern, what=what, kind=frequency.key)
    if worlds is not None:
        found &= np.isin(entity_world, resolve_worlds(model, worlds, what=what))
        if not found.any():
            raise KeyError(f"{what}: no {frequency.key} that matches {pattern!r} is in worlds {worlds!r}.")
    return np.flatnonzero(found)


def resolve_worlds(model: Model, worlds: Patterns, *, what: str) -> np.ndarray:
    """Return the worlds meant by names or indices."""
    labels = model.world_label or ["world_0"]
    return np.flatnonzero(
        match_labels(labels, np.arange(model.world_count), worlds, what=f"{what}: worlds", kind="world")
    )


def simulated_worlds(model: Model, entity_world: np.ndarray) -> np.ndarray:
    """Return the world of each entity; that of a model without authored worlds is 0, not -1."""
    start = model.body_world_start.numpy()
    authored = model.world_count > 1 or (entity_world >= 0).any() or (start[1] > start[0])
    return entity_world if authored else np.zeros_like(entity_world)
