"""Sources: the arrays that a view gives access to, and their frequencies."""

from typing import Any

import warp as wp

from pluriverse.model import Model
from pluriverse.model.schema import ENTITY_OF_ARRAY
from pluriverse.model.world_ranges import entity_count
from pluriverse.types import Entity


def check_source(source: Any, name: str, model: Model, *, what: str) -> tuple[Any, Entity | str]:
    """Return an array and its frequency; that of a custom attribute may be a custom one.

    Raises:
        AttributeError: If there is no such array, or it has no entry per entity.
        ValueError: If the array belongs to another model.
    """
    key = name.replace(".", ":", 1)
    if key in model.attribute_specs:
        return _check_custom_source(source, key, model, what=what)
    frequency = ENTITY_OF_ARRAY.get(name)
    array = getattr(source, name, None)
    if frequency is None or array is None:
        usable = [known for known in ENTITY_OF_ARRAY if getattr(source, known, None) is not None]
        raise AttributeError(
            f"{what}: {type(source).__name__} has no attribute {name!r} with one entry per entity; it has "
            f"{', '.join(usable)}."
        )
    expected = entity_count(model, frequency)
    if array.shape[0] != expected:
        raise ValueError(
            f"{what}: {name} has {array.shape[0]} entries, but the view's model has {expected} of them. "
            "Pass a model, state or control that belongs to the model of the view."
        )
    return array, frequency


def _check_custom_source(source: Any, key: str, model: Model, *, what: str) -> tuple[Any, Entity | str]:
    """Return the array of a custom attribute and its frequency."""
    spec = model.attribute_specs[key]
    array = source.custom_arrays.get(key)
    if array is None:
        raise AttributeError(
            f"{what}: {type(source).__name__} has no custom attribute '{key}', which is assigned to "
            f"{spec.assignment.name}."
        )
    if not isinstance(array, wp.array):
        raise AttributeError(
            f"{what}: custom attribute '{key}' has texts, which are on the host only. Read the list itself, "
            "with the indices of the view (`layout(frequency).index`)."
        )
    if spec.frequency in (Entity.ONCE, Entity.JOINT_CONSTRAINT):
        raise AttributeError(
            f"{what}: custom attribute '{key}' has one value per {spec.count_name}, which belongs to no "
            "entity of a view. Read the array itself."
        )
    expected = model.get_frequency_count(spec.frequency)
    if array.shape[0] != expected:
        raise ValueError(
            f"{what}: {key} has {array.shape[0]} entries, but the view's model has {expected} of them. Pass "
            "a model, state or control that belongs to the model of the view."
        )
    return array, spec.frequency
