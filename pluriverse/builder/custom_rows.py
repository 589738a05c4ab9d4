"""Rows of custom attributes given by users: of custom frequencies, or of equality constraints."""

from collections.abc import Mapping, Sequence
from typing import Any

from pluriverse.builder.custom_attributes import add_custom_rows
from pluriverse.builder.equality_rows import add_equality_row, is_equality_row
from pluriverse.builder.tables import BuilderTables


def add_custom_values(
    builder: BuilderTables, values: Mapping[str, Any] | None = None, /, **kwargs: Any
) -> dict[str, int]:
    """Add a row to each custom frequency that the given attributes belong to.

    Attributes that refer to worlds (`references="world"`) and are not given get the current world, all
    others their default. A row of `mujoco:equality_constraint_*` becomes an equality constraint.

    Args:
        values: Values by keys of attributes.
        **kwargs: The same as keyword arguments: `add_custom_values(**{"mujoco:pair_geom1": 0})`.

    Returns:
        Index of the row, for each attribute that got a value.

    Raises:
        AttributeError: If there is no such attribute.
        TypeError: If an attribute does not belong to a custom frequency, or a value is of another type.
        ValueError: If a value is out of range, or no value is given.
    """
    given = {**(values or {}), **kwargs}
    return add_equality_row(builder, given) if is_equality_row(given) else add_custom_rows(builder, given)


def add_custom_values_batch(
    builder: BuilderTables, entries: Sequence[Mapping[str, Any]]
) -> list[dict[str, int]]:
    """Add several rows, each as by `add_custom_values`.

    Returns:
        What `add_custom_values` returned for each.

    Raises:
        AttributeError: If there is no such attribute.
        TypeError: If an attribute does not belong to a custom frequency, or a value is of another type.
        ValueError: If a value is out of range.
    """
    return [add_custom_values(builder, entry) for entry in entries]
