"""Custom attributes of a model: check the columns of a builder and put them on the device."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.custom_attribute import FREQUENCY_OF_KEY, CustomAttribute
from pluriverse.builder.custom_attributes import get_custom_attributes_by_frequency, rows_of
from pluriverse.builder.custom_merge import kinds_of_rows
from pluriverse.builder.tables import BuilderTables
from pluriverse.model import Model


def put_custom_attributes(model: Model, builder: BuilderTables) -> None:
    """Add the custom attributes of a builder to its model, which has all its other arrays.

    Raises:
        ValueError: If a value belongs or refers to an entity that does not exist.
        AttributeError: If an attribute has the name of a standard attribute.
    """
    for key in builder.custom_frequencies:
        table = rows_of(builder, key)
        model.custom_frequency_counts[key] = len(table)
        model.custom_frequency_world[key] = _worlds_of_rows(builder, key)
    for _, attribute in builder.custom_attributes.read_all():
        count = model.get_frequency_count(attribute.frequency)
        if attribute.column.size > count:
            raise ValueError(
                f"{attribute.label} has a value for {attribute.frequency_key} {attribute.column.size - 1}, "
                f"but there are {count} of them. Write values for entities that exist."
            )
        rows = attribute.column.resolved(count)
        _check_references(model, builder, attribute, rows)
        model.add_attribute(
            attribute.name,
            _as_array(rows, attribute.dtype, model.device),
            attribute.frequency,
            attribute.assignment,
            attribute.namespace,
            attribute.references,
        )
    if "mujoco:eq_solref" in builder.custom_attributes:
        _show_equalities(model)
    for key, frequency in builder.custom_frequencies.items():
        owner = frequency.articulation_owner_attribute
        if owner is None and frequency.articulation_owner_resolver is None:
            continue
        count = model.custom_frequency_counts[key]
        owners = np.full(count, -1, dtype=np.int64)
        if owner is not None and owner in builder.custom_attributes:
            owners = builder.custom_attributes[owner].column.resolved(count).astype(np.int64)
        if frequency.articulation_owner_resolver is not None and (owners < 0).any():
            resolved = np.asarray(frequency.articulation_owner_resolver(builder), dtype=np.int64)
            if resolved.shape != (count,):
                raise ValueError(
                    f"custom frequency '{key}': articulation_owner_resolver returned {resolved.size} "
                    f"articulations, but there are {count} rows."
                )
            owners = np.where(owners < 0, resolved, owners)
        model.custom_frequency_articulation[key] = owners


def _show_equalities(model: Model) -> None:
    """Expose the equality constraints of the model in the namespace `mujoco`, as the same arrays."""
    for name, value in list(vars(model).items()):
        if name.startswith("equality_constraint_"):
            object.__setattr__(vars(model)["mujoco"], name, value)


def _worlds_of_rows(builder: BuilderTables, frequency: str) -> np.ndarray:
    """Return the world of each row: from an attribute that refers to worlds, else where it was added."""
    table = rows_of(builder, frequency)
    for attribute in get_custom_attributes_by_frequency(builder, [frequency]):
        if attribute.references == "world" and not attribute.column.shape:
            return attribute.column.resolved(len(table)).astype(np.int64)
    return table.view("world").astype(np.int64)


def _check_references(
    model: Model, builder: BuilderTables, attribute: CustomAttribute, rows: np.ndarray
) -> None:
    """Check that all values that are indices name an entity, or are negative."""
    if not len(rows) or (attribute.references is None and attribute.row_references is None):
        return
    kinds = kinds_of_rows(builder, attribute, len(rows))
    largest = rows.reshape(len(rows), -1).max(axis=1)
    if attribute.row_references is None:
        bad = _beyond(model, attribute, kinds[0], largest)
    else:
        bad = np.zeros(len(rows), dtype=bool)
        of_row = np.array([kind or "" for kind in kinds])
        for kind in set(kinds):
            mine = of_row == (kind or "")
            bad[mine] = _beyond(model, attribute, kind, largest[mine])
    if bad.any():
        row = int(np.argmax(bad))
        there = _count(model, attribute, str(kinds[row]))
        raise ValueError(
            f"{attribute.label}: the value of {attribute.frequency_key} {row} is {int(largest[row])}, but it "
            f"refers to a {kinds[row]}, of which there are {there}."
        )


def _beyond(model: Model, attribute: CustomAttribute, kind: str | None, values: np.ndarray) -> np.ndarray:
    if kind is None:
        return np.zeros(len(values), dtype=bool)
    return np.asarray(values >= _count(model, attribute, kind))


def _count(model: Model, attribute: CustomAttribute, kind: str) -> int:
    try:
        return model.get_frequency_count(FREQUENCY_OF_KEY.get(kind, kind))
    except KeyError:
        raise ValueError(
            f"{attribute.label}: its values refer to '{kind}', which is neither a kind of entity nor a "
            "declared custom frequency."
        ) from None


def _as_array(rows: np.ndarray, dtype: Any, device: Any) -> Any:
    if dtype is str:
        return rows.tolist()
    return wp.array(rows, dtype=dtype, device=device)
