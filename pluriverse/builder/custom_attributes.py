"""Custom attributes of a builder: properties that users and solvers add to those of every model."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pluriverse.builder.columns import Column, Table
from pluriverse.builder.custom_attribute import FREQUENCY_OF_KEY, CustomAttribute, CustomFrequency
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import Entity

JOINT_CONSTRAINT_COUNT = 6
"""Degrees of freedom of a free body; a joint constrains the others."""


class CustomValue(NamedTuple):
    """A value for an entity that is about to be added, checked."""

    attribute: CustomAttribute
    offset: int
    """Index among the entities of the kind that are added together, such as the axis of a joint."""
    row: np.ndarray
    """The value."""


def add_custom_attribute(builder: BuilderTables, attribute: CustomAttribute) -> None:
    """Declare a custom attribute. Declaring it again in the same way changes nothing.

    Args:
        attribute: Declaration, with or without values. The builder keeps a copy.

    Raises:
        TypeError: If `attribute` is not a declaration.
        ValueError: If it is already declared differently, if its frequency is not declared, or if its name is
            that of a standard attribute.
    """
    if not isinstance(attribute, CustomAttribute):
        raise TypeError(
            f"add_custom_attribute: {attribute!r} is no declaration. Pass a "
            "ModelBuilder.CustomAttribute(...)."
        )
    known = builder.custom_attributes.get(attribute.key)
    if known is not None:
        check_same(known, attribute, "add_custom_attribute")
        if len(attribute.values):
            raise ValueError(
                f"add_custom_attribute: {attribute.label} is declared already, so the values given now "
                "would be lost. Write them to builder.custom_attributes[key].values."
            )
        return
    check_kind(builder, attribute.frequency, f"{attribute.label}: frequency")
    if isinstance(attribute.references, str) and attribute.references != "world":
        # A custom frequency may be declared after the attributes that refer to it; finalize checks it.
        if ":" not in attribute.references and attribute.references not in builder.custom_frequencies:
            check_kind(
                builder,
                FREQUENCY_OF_KEY.get(attribute.references, attribute.references),
                f"{attribute.label}: references",
            )
    builder.custom_attributes[attribute.key] = attribute.copied()


def add_custom_frequency(builder: BuilderTables, frequency: CustomFrequency) -> None:
    """Declare a custom frequency, a kind of entity. Declaring it again changes nothing.

    Raises:
        TypeError: If `frequency` is not a declaration.
        ValueError: If it is already declared differently.
    """
    if not isinstance(frequency, CustomFrequency):
        raise TypeError(
            f"add_custom_frequency: {frequency!r} is no declaration. Pass a "
            "ModelBuilder.CustomFrequency(...)."
        )
    known = builder.custom_frequencies.setdefault(frequency.key, frequency)
    for what in ("label_attribute", "articulation_owner_attribute"):
        if getattr(known, what) != getattr(frequency, what):
            raise ValueError(
                f"add_custom_frequency: '{frequency.key}' is declared already with {what} "
                f"{getattr(known, what)!r}, now with {getattr(frequency, what)!r}. Give it another name."
            )
    builder.custom_rows.setdefault(frequency.key, Table({"world": Column(np.int32, (), -1)}))


def has_custom_attribute(builder: BuilderTables, key: str) -> bool:
    """Return whether an attribute ("namespace:name", or "name") is declared."""
    return key in builder.custom_attributes


def get_custom_attributes_by_frequency(
    builder: BuilderTables, frequencies: Sequence[Entity | str]
) -> list[CustomAttribute]:
    """Return the declared attributes of the given frequencies."""
    table = builder.custom_attributes
    return [table[key] for frequency in dict.fromkeys(frequencies) for key in table.keys_of(frequency)]


def get_custom_frequency_keys(builder: BuilderTables) -> set[str]:
    """Return the keys of all custom frequencies."""
    return set(builder.custom_frequencies)


def custom_frequency_count(builder: BuilderTables, frequency: str) -> int:
    """Return the number of rows of a custom frequency.

    Raises:
        ValueError: If it is not declared.
    """
    check_kind(builder, frequency, "custom_frequency_count: frequency")
    return len(rows_of(builder, frequency))


def add_custom_rows(builder: BuilderTables, given: Mapping[str, Any]) -> dict[str, int]:
    """Add a row to each custom frequency that the given attributes belong to.

    Attributes that refer to worlds (`references="world"`) and are not given get the current world, all
    others their default.

    Args:
        builder: Builder.
        given: Values by keys of attributes.

    Returns:
        Index of the row, for each attribute that got a value.

    Raises:
        AttributeError: If there is no such attribute.
        TypeError: If an attribute does not belong to a custom frequency, or a value is of another type.
        ValueError: If a value is out of range, or no value is given.
    """
    if not given:
        raise ValueError("add_custom_values: no value is given. Pass values by keys of attributes.")
    rows: dict[str, np.ndarray | None] = {}  # None: the default
    for key, value in given.items():
        attribute = declared_attribute(builder, key, "add_custom_values")
        if not attribute.is_custom_frequency:
            raise TypeError(
                f"add_custom_values: {attribute.label} has one value per {attribute.frequency_key}, "
                "which is no custom frequency. Pass it as custom_attributes= where the entity is added."
            )
        rows[key] = None if value is None else attribute.convert(value)
    frequencies = list(dict.fromkeys(builder.custom_attributes[key].frequency_key for key in given))
    for attribute in get_custom_attributes_by_frequency(builder, frequencies):
        if attribute.references == "world" and rows.get(attribute.key) is None:
            rows[attribute.key] = attribute.convert(builder.current_world)
    first = {frequency: len(rows_of(builder, frequency)) for frequency in frequencies}
    for frequency in frequencies:
        builder.custom_rows[frequency].append(world=builder.current_world)
    for key, row in rows.items():
        if row is not None:
            attribute = builder.custom_attributes[key]
            attribute.column.put(first[attribute.frequency_key], row[None])
    return {key: first[builder.custom_attributes[key].frequency_key] for key in rows}


def rows_of(builder: BuilderTables, frequency: str) -> Table:
    """Return the rows of a custom frequency, including those written to `values` directly."""
    table = builder.custom_rows[frequency]
    sizes = (attribute.column.size for attribute in builder.custom_attributes.read_of(frequency))
    missing = max(sizes, default=0) - len(table)
    if missing > 0:
        added = table.extend(missing)
        table.view("world")[added] = builder.current_world
    return table


def declared_attribute(builder: BuilderTables, key: str, what: str) -> CustomAttribute:
    """Return an attribute by its key, or raise, in the name of `what`."""
    attribute = builder.custom_attributes.get(key)
    if attribute is None:
        known = ", ".join(builder.custom_attributes) or "none"
        raise AttributeError(
            f"{what}: custom attribute {key!r} is not declared; declared are {known}. Declare it with "
            "add_custom_attribute() first."
        )
    return attribute


def check_kind(builder: BuilderTables, kind: Entity | str, what: str) -> None:
    """Raise unless `kind` is a kind of entity or a declared custom frequency."""
    if isinstance(kind, str) and kind not in builder.custom_frequencies:
        declared = ", ".join(builder.custom_frequencies) or "none"
        raise ValueError(
            f"{what} is '{kind}', which is no custom frequency; declared are {declared}. Declare it with "
            "add_custom_frequency() first, or use a member of Model.AttributeFrequency."
        )


def custom_entity_count(builder: BuilderTables, kind: Entity | str) -> int:
    """Return how many entities of a kind, or rows of a custom frequency, there are so far."""
    if isinstance(kind, str):
        return custom_frequency_count(builder, kind)
    if kind is Entity.ONCE:
        return 1
    if kind is Entity.WORLD:
        return max(builder.world_count, 1)
    if kind is Entity.JOINT_CONSTRAINT:
        return JOINT_CONSTRAINT_COUNT * builder.joint_count - builder.joint_dof_count
    return int(getattr(builder, f"{kind.key}_count"))


def check_custom_values(
    builder: BuilderTables, given: Mapping[str, Any] | None, counts: Mapping[Entity, int], name: str
) -> list[CustomValue]:
    """Return the values for an entity that is about to be added, checked.

    Args:
        given: Values by keys of attributes.
        counts: How many entities of each kind are added together: one, except for the parts of a joint.
        name: Name of the entity in messages.

    Raises:
        AttributeError: If there is no such attribute.
        TypeError: If a value is of another type.
        ValueError: If an attribute belongs to another kind of entity, or a value does not fit.
    """
    result: list[CustomValue] = []
    for key, value in (given or {}).items():
        attribute = declared_attribute(builder, key, f"{name}: custom_attributes")
        if isinstance(attribute.frequency, str) or attribute.frequency not in counts:
            kinds = ", ".join(kind.key for kind in counts)
            raise ValueError(
                f"{name}: {attribute.label} has one value per {attribute.frequency_key}, but this entity "
                f"has values per {kinds} only."
            )
        if attribute.frequency in _PARTS_OF_JOINT:
            result += _values_of_parts(attribute, value, counts[attribute.frequency], name)
        else:
            result.append(CustomValue(attribute, 0, convert(attribute, value, name)))
    return result


def put_custom_values(builder: BuilderTables, values: list[CustomValue], first: Mapping[Entity, int]) -> None:
    """Store values of entities that were added, the first of each kind at the given index."""
    for attribute, offset, row in values:
        assert isinstance(attribute.frequency, Entity)
        attribute.column.put(first[attribute.frequency] + offset, row[None])


_PARTS_OF_JOINT = (
    Entity.JOINT_DOF,
    Entity.JOINT_COORD,
    Entity.JOINT_CONSTRAINT,
)


def check_same(known: CustomAttribute, other: CustomAttribute, what: str) -> None:
    """Raise unless two declarations of one key agree.

    Raises:
        ValueError: If they do not.
    """
    if not known.same_declaration(other):
        raise ValueError(
            f"{what}: {known.label} is declared already as {known!r}, now as {other!r}. Declare it in one "
            "way only, or use another name or namespace."
        )
    if not known.same_default(other):
        raise ValueError(
            f"{what}: {known.label} is declared already with default {known.default!r}, now with "
            f"{other.default!r}. Declare it with one default only."
        )


def convert(attribute: CustomAttribute, value: Any, name: str) -> np.ndarray:
    """Return a value of an attribute as an array; errors name the entity."""
    try:
        return attribute.convert(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _values_of_parts(attribute: CustomAttribute, value: Any, count: int, name: str) -> list[CustomValue]:
    """Return the values of a joint's axes, coordinates or constraints, given for all, each or some."""
    kind = attribute.frequency_key
    if isinstance(value, Mapping):
        for offset in value:
            if not isinstance(offset, int | np.integer) or not 0 <= offset < count:
                raise ValueError(
                    f"{name}: {attribute.label} has a value for {kind} {offset!r}, but the joint has {count} "
                    "of them."
                )
        return [
            CustomValue(attribute, int(offset), convert(attribute, part, name))
            for offset, part in value.items()
        ]
    if count == 0:
        raise ValueError(
            f"{name}: {attribute.label} has one value per {kind}, but the joint has none of them. Leave it "
            "out."
        )
    one_each = not isinstance(value, str) and np.ndim(value) > len(attribute.column.shape)
    if one_each:
        parts = list(value)
        if len(parts) != count:
            raise ValueError(
                f"{name}: {attribute.label} has {len(parts)} values, but the joint has {count} of kind "
                f"{kind}. Give one value for all, or one for each."
            )
        return [
            CustomValue(attribute, offset, convert(attribute, part, name))
            for offset, part in enumerate(parts)
        ]
    row = convert(attribute, value, name)
    return [CustomValue(attribute, offset, row) for offset in range(count)]
