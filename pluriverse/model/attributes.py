"""Custom attributes of a model: user-declared arrays in addition to those of every model."""

import dataclasses
import enum
import math
from difflib import get_close_matches
from typing import Any

import numpy as np
import warp as wp

from pluriverse.types import Entity

# How much alike two names are at least of which one is taken to be the other, misspelt.
_MISSPELT = 0.8

GRAVITY_COMPENSATION = "mujoco:gravcomp"
"""Key of the share of each body's weight that does not act, in any solver."""


class AttributeAssignment(enum.Enum):
    """Object that has the array of a custom attribute."""

    MODEL = 0
    STATE = 1
    """Every `State`, which begins with a copy."""
    CONTROL = 2
    """Every `Control`, which begins with a copy."""
    CONTACT = 3
    """Every `Contacts`, which begins with a copy."""


@dataclasses.dataclass(frozen=True)
class AttributeSpec:
    """Declaration of one custom attribute of a model."""

    name: str
    """Name without namespace."""
    namespace: str | None
    """Name of the namespace, None for an attribute of the object itself."""
    frequency: Entity | str
    """Entity of each value: a kind of entity, or the key of a custom frequency."""
    assignment: AttributeAssignment
    """Object that has the array."""
    references: str | None = None
    """Kind of entity that the values index, None for other values."""

    @property
    def key(self) -> str:
        """Name, after the namespace and a colon if it has one."""
        return self.name if self.namespace is None else f"{self.namespace}:{self.name}"

    @property
    def count_name(self) -> str:
        """Key into `Model.custom_frequency_counts` or, with `_count`, name of the count in the model."""
        return self.frequency if isinstance(self.frequency, str) else self.frequency.key


class AttributeNamespace:
    """Holds custom attributes of one namespace: `model.mujoco.condim`."""

    def __init__(self, name: str):
        self._name = name

    def __setattr__(self, name: str, value: Any) -> None:
        set_array(self, name, value, owner=self.__dict__.get("_name", ""))

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(known for known in vars(self) if not known.startswith("_"))
        raise AttributeError(
            f"namespace '{self.__dict__.get('_name', '')}' has no attribute {name!r}; it has "
            f"{known or 'none'}."
        )

    def __repr__(self) -> str:
        names = [name for name in vars(self) if not name.startswith("_")]
        return f"AttributeNamespace('{self._name}', attributes={names})"


def set_array(holder: Any, name: str, value: Any, *, owner: str) -> None:
    """Set an attribute; values assigned to an array are copied into it, since recorded steps hold its memory.

    Raises:
        AttributeError: If there is no such attribute, but an array of nearly this name.
        TypeError: If the array cannot hold such values, for example fractions in an integer array.
        ValueError: If the values have another shape than the array.
    """
    current = holder.__dict__.get(name)
    if name not in holder.__dict__ and not hasattr(type(holder), name):
        _refuse_misspelling(holder, name, value, owner)
    if not isinstance(current, wp.array) or value is current:
        object.__setattr__(holder, name, value)
    else:
        write_array(current, value, what=f"{owner}.{name}")


def _refuse_misspelling(holder: Any, name: str, value: Any, owner: str) -> None:
    """Refuse a new attribute that was most likely meant to be an array; others are the script's own."""
    if name.startswith("_") or any(
        name in vars(kind).get("__annotations__", {}) for kind in type(holder).__mro__
    ):
        return  # declared, and made only now
    arrays = {known: array for known, array in vars(holder).items() if isinstance(array, wp.array)}
    # `joint_q0` or `my_joint_q` hold what a script keeps of an array, whose name is right.
    words = f"_{name.rstrip('0123456789')}_"
    if any(f"_{known}_" in words for known in arrays):
        return
    close = get_close_matches(name, arrays, cutoff=_MISSPELT)
    if close:
        remedy = f"Did you mean {' or '.join(map(repr, close))}?"
    else:
        # Named like those of joints, and of as many values: `joint_stiffness`, as other simulators have it.
        prefix = f"{name.partition('_')[0]}_"
        alike = {known: array for known, array in arrays.items() if known.startswith(prefix)}
        if _number_count(value) not in {array.shape[0] for array in alike.values()}:
            return
        remedy = f"There are {', '.join(alike)}. Name an attribute of your own otherwise, as 'my_{name}'."
    raise AttributeError(f"{owner} has no array {name!r}, so nothing would read what is assigned. {remedy}")


def _number_count(value: Any) -> int | None:
    """Return how many numbers, or rows of numbers, there are; None for anything else."""
    if isinstance(value, list | tuple):
        are_numbers = all(isinstance(entry, int | float | list | tuple | np.ndarray) for entry in value)
        return len(value) if are_numbers else None
    shape = getattr(value, "shape", ())
    return int(shape[0]) if shape else None


def write_array(target: wp.array, value: Any, *, what: str) -> None:
    """Copy values into an array: Warp arrays, tensors of any library by DLPack, or what NumPy understands.

    Raises:
        TypeError: If the array cannot hold such values, for example fractions in an integer array.
        ValueError: If the values have another shape than the array.
    """
    item_shape = tuple(getattr(target.dtype, "_shape_", ()))
    plain_shape = (*target.shape, *item_shape)
    scalar = getattr(target.dtype, "_wp_scalar_type_", target.dtype)
    values = value
    if not isinstance(values, wp.array | np.ndarray) and hasattr(values, "__dlpack__"):
        values = wp.from_dlpack(values.detach() if hasattr(values, "detach") else values)
    if isinstance(values, wp.array):
        if values.dtype is target.dtype and values.shape == target.shape:
            wp.copy(target, values)
            return
        if values.dtype is scalar and values.shape == plain_shape and values.is_contiguous:
            wp.copy(target, values.view(target.dtype))
            return
        values = values.numpy()
    values = np.asarray(values)
    if values.shape != plain_shape:
        remedy = "The sizes of a model are fixed by finalize."
        if not values.shape:
            remedy = "fill_() writes one number to all entries."
        elif values.size == math.prod(plain_shape):
            remedy = f"All worlds are in one row: assign values.reshape({plain_shape})."
        raise ValueError(
            f"{what} has shape {plain_shape}, but the values assigned have {values.shape}. {remedy}"
        )
    number_type = np.dtype(wp.dtype_to_numpy(scalar))
    is_kind = values.dtype.kind in "biuf" and (
        number_type.kind == "b" or np.can_cast(values.dtype, number_type, "same_kind")
    )
    numbers = values.astype(number_type, copy=False) if is_kind else values
    if not is_kind or (number_type.kind != "f" and not np.array_equal(numbers, values)):
        raise TypeError(
            f"{what} holds numbers of type {number_type.name}, which cannot take the {values.dtype.name} "
            "values assigned. Convert them first."
        )
    target.assign(numbers)


def attach(holder: Any, spec: AttributeSpec, value: Any) -> None:
    """Give an object a custom attribute, in its namespace.

    Raises:
        AttributeError: If the object has something of that name already.
    """
    target = holder
    if spec.namespace is not None:
        target = holder.__dict__.get(spec.namespace)
        if target is None:
            if hasattr(type(holder), spec.namespace):
                raise AttributeError(
                    f"{type(holder).__name__} has a {spec.namespace!r} of its own. Give the namespace of "
                    f"attribute '{spec.key}' another name."
                )
            target = AttributeNamespace(spec.namespace)
            object.__setattr__(holder, spec.namespace, target)
        elif not isinstance(target, AttributeNamespace):
            raise AttributeError(
                f"{type(holder).__name__}.{spec.namespace} is no namespace. Give the namespace of attribute "
                f"'{spec.key}' another name."
            )
    if spec.name in target.__dict__ or hasattr(type(target), spec.name):
        raise AttributeError(
            f"{type(holder).__name__} has a {spec.key!r} of its own. Give the attribute another name or a "
            "namespace."
        )
    object.__setattr__(target, spec.name, value)
    holder.custom_arrays[spec.key] = value


def find_attribute(holder: Any, key: str) -> Any:
    """Return the attribute named by `key` ("namespace:name", "namespace.name" or "name"), or None."""
    namespace, _, name = key.replace(":", ".").rpartition(".")
    target = holder.__dict__.get(namespace) if namespace else holder
    return None if target is None else target.__dict__.get(name)


def clone(value: Any) -> Any:
    """Return a copy of an array or of a list of texts."""
    return wp.clone(value) if isinstance(value, wp.array) else list(value)


def assign_custom_arrays(target: Any, source: Any) -> None:
    """Copy the custom attributes of one state, control or contacts into another of the same model."""
    for key, value in target.custom_arrays.items():
        if key in source.custom_arrays:
            _copy(value, source.custom_arrays[key])


def share_custom_arrays(target: Any, source: Any) -> None:
    """Share the memory of the custom attributes of two objects of the same model."""
    for key, value in source.custom_arrays.items():
        namespace, _, name = key.rpartition(":")
        owner = target.__dict__[namespace] if namespace else target
        object.__setattr__(owner, name, value)
        target.custom_arrays[key] = value


def _copy(target: Any, source: Any) -> None:
    if isinstance(target, wp.array):
        wp.copy(target, source)
    else:
        target[:] = source
