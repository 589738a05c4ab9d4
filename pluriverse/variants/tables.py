"""Tables: the values of all variants of a layout, and their copy into worlds.

A layout with k variants is finalized once as a model of k worlds, so that all values pass the same checks and
conversions as in any model. Fields that differ between the rows are copied when a world changes its variant.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.shapes import appearance_index, mesh_index
from pluriverse.builder.snapshot import COLUMN_NAMES
from pluriverse.geometry.shape_bounds import compute_shape_bounds
from pluriverse.launch import same_memory
from pluriverse.model import Model
from pluriverse.model.schema import ENTITY_OF_ARRAY, STRUCTURE
from pluriverse.model.world_ranges import world_ranges
from pluriverse.types import Entity, ShapeFlags
from pluriverse.variants.layout import Layout, used_meshes
from pluriverse.variants.row_copy import copy_variant_rows

_NOT_OF_A_VARIANT = ("gravity", "body_f", "body_qdd", "shape_is_solid")

LIVE_STRUCTURE = ("shape_flags", "shape_source_index")
"""Arrays of the structure of a model that nevertheless change with the variant: visibility of shapes, and
meshes."""

VARIANT_DEPENDENT_FIELDS: tuple[str, ...] = (
    *sorted(set(ENTITY_OF_ARRAY) - set(STRUCTURE) - set(_NOT_OF_A_VARIANT)),
    *LIVE_STRUCTURE,
)
"""Arrays of `Model` in which variants of one layout may differ, so that each world has its own defaults."""

VARIANT_ENTITIES = (
    Entity.BODY,
    Entity.JOINT,
    Entity.JOINT_COORD,
    Entity.JOINT_DOF,
    Entity.SHAPE,
    Entity.EQUALITY_CONSTRAINT,
)
"""Kinds of entities of a variant."""


def count_entities(builder: Any) -> dict[Entity, int]:
    """Return how many entities of each kind a builder has."""
    return {entity: getattr(builder, f"{entity.key}_count") for entity in VARIANT_ENTITIES}


class VariantRows:
    """The values of all variants of one layout, on the host.

    Args:
        what: Entity, for messages.
        layout: The layout.
        builders: Builders of its variants, in the order of `layout.variants`.

    Raises:
        ValueError: If a variant is no valid model.
    """

    def __init__(self, what: str, layout: Layout, builders: Sequence[Any]) -> None:
        self.counts = count_entities(layout.builder)
        """Entities of one world of the layout, by kind."""
        catalogue, filled, mesh, appearance = _catalogue(layout, builders)
        try:
            model = catalogue.finalize("cpu")
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from error
        self.arrays: dict[str, np.ndarray] = {}
        """Rows of each field that differs between variants, shape [variant, ...]."""
        row_count = len(layout.variants)
        arrays = {name: getattr(model, name).numpy() for name in VARIANT_DEPENDENT_FIELDS}
        arrays["shape_enabled"] = filled.reshape(-1)
        # A slot that is off is not seen either.
        visible = np.where(filled.reshape(-1), -1, ~int(ShapeFlags.VISIBLE)).astype(np.int32)
        arrays["shape_flags"] = arrays["shape_flags"] & visible
        arrays["shape_source_index"] = mesh.reshape(-1)
        arrays["shape_appearance"] = appearance.reshape(-1)
        lower, upper, radius = compute_shape_bounds(
            model.shape_type.numpy(),
            catalogue.shape_scale,
            arrays["shape_source_index"],
            layout.builder.meshes,
        )
        arrays["shape_aabb_lower"] = lower.astype(np.float32)
        arrays["shape_aabb_upper"] = upper.astype(np.float32)
        arrays["shape_collision_radius"] = radius.astype(np.float32)
        for name, values in arrays.items():
            kind = ENTITY_OF_ARRAY[name]
            if self.counts[kind] == 0:
                continue
            rows = np.ascontiguousarray(values).reshape(row_count, -1)
            if (rows.view(np.uint8) != rows[:1].view(np.uint8)).any() or name == "shape_enabled":
                self.arrays[name] = rows

    def name_sources(self, mesh_index: np.ndarray, appearance_index: np.ndarray) -> None:
        """Replace mesh and appearance indices in the rows by those of the scene's model.

        Args:
            mesh_index: Index in that model of each mesh of the layout.
            appearance_index: Index in that model of each appearance of the layout.
        """
        for name, index in (("shape_source_index", mesh_index), ("shape_appearance", appearance_index)):
            if name in self.arrays:
                indices = np.append(index, -1).astype(np.int32)  # the last one, which -1 addresses, for none
                self.arrays[name] = indices[self.arrays[name]]


def _catalogue(layout: Layout, builders: Sequence[Any]) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return a builder with a world per variant, which slots each fills, their meshes and appearances.

    The shapes of all its worlds have the meshes of the first variant, so that these are all of one kind.
    """
    from pluriverse.model_builder import ModelBuilder

    source, row_count = layout.builder, len(builders)
    catalogue = ModelBuilder()
    catalogue.replicate(source, row_count)
    for name in COLUMN_NAMES:
        if name.startswith("shape_") or name in _STRUCTURE_COLUMNS or not len(getattr(source, name)):
            continue
        rows = [getattr(builder, name) for builder in builders]
        column = getattr(catalogue, name)
        column[...] = np.stack(rows).reshape(column.shape)
    slot_count = source.shape_count
    filled = np.zeros((row_count, slot_count), dtype=bool)
    mesh = np.tile(source.shape_source_index, (row_count, 1))
    appearance = np.tile(source.shape_appearance, (row_count, 1))
    for name in _SHAPE_NUMBERS:
        column = getattr(catalogue, name)
        rows_of = column.reshape(row_count, slot_count, *column.shape[1:])
        for row, (builder, slots) in enumerate(zip(builders, layout.slot_of_shape, strict=True)):
            rows_of[row, slots] = getattr(builder, name)
    for row, (builder, slots) in enumerate(zip(builders, layout.slot_of_shape, strict=True)):
        filled[row, slots] = True
        known = np.full(len(builder.meshes) + 1, -1, dtype=np.int32)  # the last one stands for none
        for index in used_meshes(builder):
            known[index] = mesh_index(source, builder.meshes[index])
        mesh[row, slots] = known[builder.shape_source_index]
        appearances = [
            appearance_index(source, source_appearance, "variant")
            for source_appearance in builder.appearances
        ]
        appearance[row, slots] = np.array([*appearances, -1], dtype=np.int32)[builder.shape_appearance]
    return catalogue, filled, mesh, appearance


_SHAPE_OTHERS = ("shape_collision_filter_parent", "shape_appearance")
_SHAPE_NUMBERS = tuple(
    name
    for name in COLUMN_NAMES
    if name == "shape_flags"
    or (name.startswith("shape_") and name not in STRUCTURE and name not in _SHAPE_OTHERS)
)
_STRUCTURE_COLUMNS = (
    *STRUCTURE,
    "articulation_world",
    "body_q",
    "joint_collision_filter_parent",
    "body_lock_inertia",
)


class VariantTables:
    """The values of all variants of a scene on the device.

    Args:
        model: Model of the scene.
        defaults: Default values of the fields, by name, as `VariantSimulation.per_world_default_fields`.
    """

    def __init__(self, model: Model, defaults: dict[str, Any]) -> None:
        self._model = model
        self._defaults = defaults
        self._launches: list[tuple[str, list[Any], list[Any]]] = []
        self._names: set[str] = set()
        self._world_first: dict[Entity, wp.array[int]] = {
            entity: wp.array(
                world_ranges(model, entity)[0].astype(np.int32), dtype=wp.int32, device=model.device
            )
            for entity in VARIANT_ENTITIES
        }

    def add(
        self,
        entity: str,
        rows: VariantRows,
        variant_row: np.ndarray,
        tuple_offsets: dict[Entity, np.ndarray],
    ) -> None:
        """Add a layout of an entity.

        Args:
            entity: Name of the entity.
            rows: Its numbers.
            variant_row: Row of each variant of the entity, -1 for those of other layouts.
            tuple_offsets: By kind, how many entities of a world come before those of this one, shape [tuple].
        """
        device = self._model.device
        row_of: wp.array[int] = wp.array(variant_row.astype(np.int32), dtype=wp.int32, device=device)
        offsets: dict[Entity, Any] = {
            kind: wp.array(values.astype(np.int32), dtype=wp.int32, device=device)
            for kind, values in tuple_offsets.items()
        }
        for name, values in rows.arrays.items():
            kind = ENTITY_OF_ARRAY[name]
            dtype = wp.bool if values.dtype == np.bool_ else wp.int32
            # Values are copied bitwise, so one kernel serves all types of four bytes.
            table: Any = wp.array(
                values if dtype is wp.bool else values.view(np.int32), dtype=dtype, ndim=2, device=device
            )
            words = table.shape[1] // rows.counts[kind]
            inputs = [row_of, self._world_first[kind], offsets[kind], words, table]
            outputs = [_flat(getattr(self._model, name), dtype), _flat(self._defaults[name], dtype)]
            self._launches.append((entity, inputs, outputs))
            self._names.add(name)

    def world_first(self, kind: Entity, world: int) -> int:
        """Return the first entity of a kind in a world."""
        return int(self._world_first[kind].numpy()[world])

    @property
    def names(self) -> list[str]:
        """Names of the arrays of the model that change with the variant."""
        return sorted(self._names)

    @property
    def is_empty(self) -> bool:
        """Whether no two variants share a layout."""
        return not self._launches

    def apply(
        self,
        environments: wp.array[int],
        mask: wp.array[bool],
        environment_world: wp.array[int],
        environment_tuple: wp.array[int],
        environment_variant: dict[str, wp.array[int]],
    ) -> None:
        """Copy the values of their variants into the worlds of environments. Only launches."""
        for entity, inputs, outputs in self._launches:
            where = [environment_world, environment_tuple, environment_variant[entity]]
            copy_variant_rows(environments, mask, [*where, *inputs], outputs)


def _flat(array: Any, dtype: Any) -> Any:
    """Return the memory of an array of four-byte numbers, or of truth values, as one axis."""
    size = array.capacity // 4 if dtype is wp.int32 else array.size
    return same_memory(array, dtype, (size,))
