"""Merging custom attributes when a builder is added to another, or when entities are removed.

Copies are made column by column, whatever the number of worlds. Indices are offset with the entities that
they refer to.
"""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from pluriverse.builder.custom_attribute import FREQUENCY_OF_KEY, CustomAttribute
from pluriverse.builder.custom_attribute_table import CustomAttributeTable
from pluriverse.builder.custom_attributes import (
    add_custom_frequency,
    check_same,
    custom_entity_count,
    custom_frequency_count,
    rows_of,
)
from pluriverse.builder.custom_columns import CustomColumn, as_value
from pluriverse.builder.inputs import copied_labels
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import Entity

_WORLD = Entity.WORLD.key
_ONCE = Entity.ONCE.key


def append_custom_copies(
    target: BuilderTables,
    source: BuilderTables,
    worlds: np.ndarray,
    first: Mapping[str, np.ndarray],
    prefixes: Sequence[str | None],
) -> None:
    """Append the values of `source` once per world in `worlds`.

    Args:
        target: Builder that the copies are added to.
        source: Builder that is copied.
        worlds: World of each copy, -1 outside of any.
        first: Index of the first entity of each kind in each copy, by the name of the kind.
        prefixes: Prefix of the names of rows in each copy, followed by a slash; None for none.

    Raises:
        ValueError: If both builders declare an attribute or a custom frequency in different ways.
    """
    declare_custom_attributes(target, source, "add_builder")
    begins = dict(first)
    for key in source.custom_frequencies:
        size = custom_frequency_count(source, key)
        added = rows_of(target, key).extend(size * len(worlds))
        target.custom_rows[key].view("world")[added] = np.repeat(worlds, size)
        begins[key] = added.start + size * np.arange(len(worlds))
    for key, attribute in source.custom_attributes.read_all():
        if not attribute.column.size and _stays_default(attribute):
            continue
        column = target.custom_attributes[key].column
        kind = attribute.frequency_key
        if kind == _ONCE:
            _adopt_once(column, attribute, worlds)
        elif kind == _WORLD:
            if attribute.column.size:
                _put_sparse(column, attribute.column, np.maximum(worlds, 0), 1)
        else:
            size = custom_entity_count(source, attribute.frequency)
            _append(target, source, column, attribute, worlds, begins, size, prefixes)


def declare_custom_attributes(target: BuilderTables, source: BuilderTables, what: str) -> None:
    """Declare the attributes and frequencies of `source`, without values.

    Raises:
        ValueError: If both declare an attribute or a custom frequency in different ways.
    """
    target.is_for_mujoco |= source.is_for_mujoco
    for frequency in source.custom_frequencies.values():
        add_custom_frequency(target, frequency)
    shared = {}
    for key, attribute in source.custom_attributes.read_all():
        known = target.custom_attributes.read(key)
        if known is not None:
            check_same(known, attribute, what)
        elif attribute.column.is_shared:
            shared[key] = attribute
        else:
            target.custom_attributes[key] = attribute.declaration()
    target.custom_attributes.share(shared)


def _stays_default(attribute: CustomAttribute) -> bool:
    """Return whether copies of entities without a value have none either."""
    if attribute.references == _WORLD or attribute.reference_value_transformer is not None:
        return False
    refers = attribute.references is not None or attribute.row_references is not None
    return not (refers and bool((np.asarray(attribute.column.default) >= 0).any()))


def _adopt_once(column: CustomColumn, attribute: CustomAttribute, worlds: np.ndarray) -> None:
    """Copy a value of the whole model, which parts of some worlds give; the last one wins."""
    if not attribute.column.has_first or not len(worlds):
        return
    theirs = attribute.column.rows[:1]
    if column.has_first and not np.array_equal(column.rows[:1], theirs):
        warnings.warn(
            f"add_builder: {attribute.label} has one value for the whole model, {as_value(column.rows[0])} "
            f"so far and {as_value(theirs[0])} in the added builder, which is used. Give all builders the "
            "same.",
            stacklevel=5,
        )
    column.put_once(theirs[0], worlds)


def _append(
    target: BuilderTables,
    source: BuilderTables,
    column: CustomColumn,
    attribute: CustomAttribute,
    worlds: np.ndarray,
    first: Mapping[str, np.ndarray],
    size: int,
    prefixes: Sequence[str | None],
) -> None:
    """Append one copy per world of the values of an attribute."""
    starts, count = first[attribute.frequency_key], len(worlds)
    if size == 0 or count == 0:
        return
    kinds = kinds_of_rows(source, attribute, size)
    own = attribute.column
    refers = any(kind is not None for kind in kinds)
    moves = attribute.references == _WORLD or (refers and bool((np.asarray(own.default) >= 0).any()))
    if not moves and not own.given.any():
        return
    values = own.resolved(size)
    rows = np.broadcast_to(values, (count, *values.shape)).copy()
    if attribute.reference_value_transformer is not None:
        _transform(target, source, attribute, rows, worlds, first, prefixes)
    elif refers:
        _move_references(rows, attribute, kinds, worlds, first)
    frequency = source.custom_frequencies.get(attribute.frequency_key)
    if frequency is not None and frequency.label_attribute == attribute.key:
        rows = np.array(copied_labels(values.tolist(), prefixes), dtype=object).reshape(count, size)
    given = np.ones(size, dtype=bool) if moves else np.zeros(size, dtype=bool)
    if not moves:
        given[: own.size] = own.given[:size]
    start = int(starts[0])  # copies of a kind lie one after the other
    column.grow(start + count * size)
    column._rows[start : start + count * size] = rows.reshape(count * size, *values.shape[1:])
    column._given[start : start + count * size] = np.tile(given, count)


def _put_sparse(column: CustomColumn, source: CustomColumn, row_ranges: np.ndarray, size: int) -> None:
    """Set rows of `column` to the first value of `source`."""
    if size and source.given[0]:
        for rows in _ranges(row_ranges):
            column.put(int(rows[0]), np.repeat(source.rows[:1], len(rows), axis=0))


def _ranges(indices: np.ndarray) -> list[np.ndarray]:
    """Return runs of consecutive numbers."""
    return np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1) if len(indices) else []


def kinds_of_rows(source: BuilderTables, attribute: CustomAttribute, size: int) -> list[str | None]:
    """Return the kind of entity that the value of each row refers to, or None."""
    if attribute.row_references is None:
        return [attribute.references] * size
    kinds = list(attribute.row_references(source))
    if len(kinds) != size:
        raise ValueError(
            f"{attribute.label}: row_references returned {len(kinds)} kinds, but there are {size} rows."
        )
    return kinds


def _move_references(
    rows: np.ndarray,
    attribute: CustomAttribute,
    kinds: list[str | None],
    worlds: np.ndarray,
    first: Mapping[str, np.ndarray],
) -> None:
    """Move the indices of each copy, shape [copy, row, component], in place."""
    of_row = np.array([kind or "" for kind in kinds])
    for kind in {kind for kind in kinds if kind is not None}:
        indices = np.flatnonzero(of_row == kind)
        part = rows[:, indices]
        extra = (slice(None), None, *([None] * (rows.ndim - 2)))
        if kind == _WORLD:
            rows[:, indices] = worlds[extra]
        elif kind not in first:
            raise ValueError(
                f"{attribute.label}: its values refer to '{kind}', which is neither a kind of entity nor a "
                "declared custom frequency."
            )
        else:
            rows[:, indices] = np.where(part >= 0, part + first[kind][extra], part)


def _transform(
    target: BuilderTables,
    source: BuilderTables,
    attribute: CustomAttribute,
    rows: np.ndarray,
    worlds: np.ndarray,
    first: Mapping[str, np.ndarray],
    prefixes: Sequence[str | None],
) -> None:
    """Compute the values of each copy by the transformer of an attribute, in place."""
    assert attribute.reference_value_transformer is not None
    given = np.flatnonzero(attribute.column.given)
    for copy, world in enumerate(worlds):
        offsets = {kind: int(begin[copy]) for kind, begin in first.items()}
        values = attribute.reference_value_transformer(
            [as_value(row) for row in rows[copy, given]],
            {
                "builder": source,
                "destination_builder": target,
                "entity_offsets": {k: v for k, v in offsets.items() if k not in source.custom_frequencies},
                "custom_frequency_offsets": {
                    k: v for k, v in offsets.items() if k in source.custom_frequencies
                },
                "row_indices": given.tolist(),
                "world": int(world),
                "label_prefix": prefixes[copy],
            },
        )
        if len(values) != len(given):
            raise ValueError(
                f"{attribute.label}: reference_value_transformer returned {len(values)} values, but was "
                f"given {len(given)}."
            )
        for entry, value in zip(given, values, strict=True):
            rows[copy, entry] = attribute.convert(value)


def taken_custom_attributes(
    builder: BuilderTables, kept: Mapping[str, np.ndarray], became: Mapping[str, np.ndarray] | None = None
) -> CustomAttributeTable:
    """Return the attributes of a builder after entities were removed or reordered.

    Args:
        builder: Builder before that.
        kept: For each kind concerned, the former index of each entity in the new order. Entities with the
            same former index share its values, and references go to the first of them.
        became: For each kind whose entities became part of others, the former index of the entity that
            references go to instead, -1 for none.
    """
    result = CustomAttributeTable()
    new_indices: dict[str, np.ndarray] = {}
    for kind, indices in kept.items():
        count = max(custom_entity_count(builder, FREQUENCY_OF_KEY[kind]), int(indices.max(initial=-1)) + 1)
        new_index = np.full(count + 1, -1, dtype=np.int64)  # the last entry is that of index -1
        new_index[indices[::-1]] = np.arange(len(indices))[
            ::-1
        ]  # where an index stands twice, the first counts
        if became is not None and kind in became:
            new_index[:-1] = new_index[became[kind]]
        new_indices[kind] = new_index
    for key, attribute in builder.custom_attributes.read_all():
        if attribute.column.is_shared:
            result[key] = attribute
            continue
        own = attribute.copied()
        size = custom_entity_count(builder, attribute.frequency)
        kinds = kinds_of_rows(builder, attribute, size)
        for kind, new_index in new_indices.items():
            rows = np.array([row_kind == kind for row_kind in kinds[: own.column.size]])
            if rows.any():
                own.column.rows[rows] = new_index[np.maximum(own.column.rows[rows], -1)]
        if attribute.frequency_key in kept:
            indices = kept[attribute.frequency_key]
            own.column = own.column.taken(indices, max(size, int(indices.max(initial=-1)) + 1))
        result[key] = own
    return result


def given_entities(builder: BuilderTables, kind: str, entities: np.ndarray) -> list[tuple[str, int]]:
    """Return the custom attributes (by key) with a value for any of some entities, and those entities."""
    found: list[tuple[str, int]] = []
    for key, attribute in builder.custom_attributes.read_all():
        if attribute.frequency_key == kind:
            given = entities[entities < attribute.column.size]
            found += [(key, int(entity)) for entity in given[attribute.column.given[given]]]
    return found
