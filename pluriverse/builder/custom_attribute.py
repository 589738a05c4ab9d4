"""Declarations of custom attributes and of custom frequencies."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.custom_columns import (
    CustomColumn,
    EntityValues,
    RowValues,
    TypedState,
    component_shape,
    number_type,
)
from pluriverse.model.attributes import AttributeAssignment
from pluriverse.types import Entity

_PYTHON_TYPES = {float: wp.float32, int: wp.int32, bool: wp.bool}


class CustomAttribute(TypedState):
    """Declaration of a custom attribute: a value per entity, whether or not a solver uses it.

    `ModelBuilder.add_custom_attribute` stores a copy of it, which `ModelBuilder.custom_attributes` shows.

    Args:
        name: Name, an identifier.
        dtype: Type of a value: a Warp scalar, vector, quaternion, transform or matrix, `str`, or a type of
            Python (`float`, `int`, `bool`) for the Warp type of 32 bits.
        frequency: What it has one value per: a kind of entity, or the key of a custom frequency.
        assignment: Object that has the array. Texts belong to the model.
        namespace: Namespace, an identifier; None for an attribute of the object itself.
        references: Kind of entity (such as "body"), "world", or custom frequency that the values index.
            Indices are offset when a builder is added to another; negative ones stay. None for other values.
        default: Value of entities without one; zero, false, the identity of quaternions and
            transforms, or an empty text if None.
        values: Values given so far: a dictionary by index of the entity, or a list of the rows of a custom
            frequency, with None for rows without a value.
        usd_attribute_name: USD attribute that `add_usd` reads, `newton:NAMESPACE:NAME` if None; "*" calls
            `usd_value_transformer` for every prim.
        mjcf_attribute_name: XML attribute that `add_mjcf` reads; `name` if None.
        urdf_attribute_name: XML attribute that `add_urdf` reads; `name` if None.
        usd_value_transformer: Makes the value from that of USD and a context (`prim`, `attr`, `builder`).
        mjcf_value_transformer: Makes the value from the text of MJCF and a context (such as `joint_type`).
        urdf_value_transformer: Makes the value from the text of URDF and a context.
        reference_value_transformer: Makes the values of a copy when a builder is added to another, in place
            of `references`. It is called once per copy with the values of the rows that have one and a
            context: `builder`, `destination_builder`, `entity_offsets`, `custom_frequency_offsets`,
            `row_indices`, `world`, `label_prefix`.
        row_references: Returns, for a builder, what the value of each row refers to, as in `references`, if
            that differs from row to row. Unlike `reference_value_transformer`, it costs nothing per copy.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of another type.
    """

    name: str
    """Name without the namespace."""
    dtype: Any
    """Warp type of a value, or `str`."""
    frequency: Entity | str
    """Kind of entity; there is one value per entity."""
    assignment: AttributeAssignment
    """Object that has the array."""
    namespace: str | None
    """Name of the namespace."""
    references: str | None
    """Kind of entity that the values index."""
    default: Any
    """Value of entities for which none is given."""
    column: CustomColumn
    """The values given so far, as arrays."""

    def __init__(
        self,
        name: str,
        dtype: Any,
        frequency: Entity | str,
        assignment: AttributeAssignment = AttributeAssignment.MODEL,
        namespace: str | None = None,
        references: Entity | str | None = None,
        default: Any = None,
        values: Mapping[int, Any] | Sequence[Any] | None = None,
        usd_attribute_name: str | None = None,
        mjcf_attribute_name: str | None = None,
        urdf_attribute_name: str | None = None,
        usd_value_transformer: Callable[[Any, dict[str, Any]], Any] | None = None,
        mjcf_value_transformer: Callable[[str, dict[str, Any] | None], Any] | None = None,
        urdf_value_transformer: Callable[[str, dict[str, Any] | None], Any] | None = None,
        reference_value_transformer: Callable[[list[Any], dict[str, Any]], list[Any]] | None = None,
        *,
        row_references: Callable[[Any], Sequence[str | None]] | None = None,
    ):
        check_identifier(name, f"custom attribute {name!r}: name")
        if namespace is not None:
            check_identifier(namespace, f"custom attribute {name!r}: namespace")
        self.name = name
        self.namespace = namespace
        self.dtype = _PYTHON_TYPES.get(dtype, dtype)
        if self.dtype is not str and not _is_warp_type(self.dtype):
            raise ValueError(
                f"{self.label}: dtype is {dtype!r}, but it must be a Warp scalar, vector, quaternion, "
                "transform or matrix, float, int, bool or str."
            )
        self.frequency = self._as_frequency(frequency)
        if not isinstance(assignment, AttributeAssignment):
            raise TypeError(
                f"{self.label}: assignment is {assignment!r}, but it must be a Model.AttributeAssignment."
            )
        if self.dtype is str and assignment is not AttributeAssignment.MODEL:
            raise ValueError(
                f"{self.label}: texts cannot be assigned to {assignment.name}, as they do not change on a "
                "device. Assign it to MODEL."
            )
        self.assignment = assignment
        self.references = references.key if isinstance(references, Entity) else references
        if (self.references or row_references) and number_type(self.dtype).kind not in "iu":
            raise ValueError(
                f"{self.label}: its values are indices of {self.references or 'several kinds'}, but dtype is "
                f"{type_name(self.dtype)}. Use wp.int32 or a vector of it."
            )
        if usd_attribute_name == "*" and usd_value_transformer is None:
            raise ValueError(
                f"{self.label}: usd_attribute_name is '*', so that no single USD attribute has the value. "
                "Give a usd_value_transformer."
            )
        self.usd_attribute_name = usd_attribute_name or f"newton:{self.key}"
        self.mjcf_attribute_name = mjcf_attribute_name or name
        self.urdf_attribute_name = urdf_attribute_name or name
        self.usd_value_transformer = usd_value_transformer
        self.mjcf_value_transformer = mjcf_value_transformer
        self.urdf_value_transformer = urdf_value_transformer
        self.reference_value_transformer = reference_value_transformer
        self.row_references = row_references
        self.default = _default_of(self.dtype) if default is None else default
        self.column = CustomColumn(self.dtype, self.convert(self.default, "default"))
        if values is not None:
            self.values = values

    def _as_frequency(self, frequency: Entity | str) -> Entity | str:
        if not isinstance(frequency, Entity | str):
            raise TypeError(
                f"{self.label}: frequency is {frequency!r}, but it must be a Model.AttributeFrequency or the "
                "key of a custom frequency."
            )
        return frequency if isinstance(frequency, Entity) else FREQUENCY_OF_KEY.get(frequency, frequency)

    @property
    def key(self) -> str:
        """Name, after the namespace and a colon if it has one."""
        return self.name if self.namespace is None else f"{self.namespace}:{self.name}"

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"custom attribute '{self.key}'"

    @property
    def is_custom_frequency(self) -> bool:
        """Whether there is one value per row of a custom frequency."""
        return isinstance(self.frequency, str)

    @property
    def frequency_key(self) -> str:
        """Kind of entity with one value each, as a text."""
        return self.frequency if isinstance(self.frequency, str) else self.frequency.key

    @property
    def values(self) -> EntityValues | RowValues:
        """The values given so far.

        They behave like a dictionary by index of the entity or, with a custom frequency, like a list with
        None for rows without a value.
        """
        view = RowValues if self.is_custom_frequency else EntityValues
        return view(self.column, self.convert)

    @values.setter
    def values(self, values: Mapping[int, Any] | Iterable[Any] | None) -> None:
        if isinstance(values, Mapping) and self.is_custom_frequency:
            raise TypeError(
                f"{self.label}: values is a dictionary, but the rows of a custom frequency have no other "
                "index than their place. Give a list."
            )
        items = list(values.items() if isinstance(values, Mapping) else enumerate(values or ()))
        rows = [(int(index), None if value is None else self.convert(value)) for index, value in items]
        self.column.clear()
        for index, row in rows:
            self.column.grow(index + 1 if self.is_custom_frequency else 0)
            if row is not None:
                self.column.put(index, row[None])

    def copied(self) -> "CustomAttribute":
        """Return a copy with values of its own."""
        result = self.declaration()
        result.column = self.column.taken(np.arange(self.column.size), self.column.size)
        return result

    def declaration(self) -> "CustomAttribute":
        """Return a copy without values."""
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__)
        result.column = self.column.emptied()
        return result

    def convert(self, value: Any, what: str = "value") -> np.ndarray:
        """Return a value as an array of the shape and the type of the attribute.

        Raises:
            TypeError: If it is of another type.
            ValueError: If it has another number of components, or is out of range.
        """
        return convert_value(value, self.dtype, f"{self.label}: {what}")

    def same_declaration(self, other: "CustomAttribute") -> bool:
        """Return whether another declaration is equal apart from the default."""
        if self.column.default is other.column.default:
            return True  # a copy of the same declaration
        return _type_identity(self.dtype) == _type_identity(other.dtype) and (
            self.frequency,
            self.assignment,
            self.references,
        ) == (other.frequency, other.assignment, other.references)

    def same_default(self, other: "CustomAttribute") -> bool:
        """Return whether another declaration has the same default, bit for bit."""
        mine, theirs = self.column.default, other.column.default
        if mine is theirs:
            return True
        if self.dtype is str:
            return bool(mine == theirs)
        return bool(mine.tobytes() == theirs.tobytes())

    def __repr__(self) -> str:
        return (
            f"CustomAttribute('{self.key}', {type_name(self.dtype)}, per {self.frequency_key}, "
            f"{self.assignment.name})"
        )


@dataclass(eq=False)
class CustomFrequency:
    """Declaration of a user-defined kind of entity, such as tendons.

    Its entities are rows of custom attributes, added by `ModelBuilder.add_custom_values`.

    Raises:
        ValueError: If a name is not an identifier, or an attribute does not belong to the frequency.
    """

    name: str
    """Name, an identifier."""
    namespace: str | None = None
    """Namespace, an identifier; None for none."""
    usd_prim_filter: Callable[[Any, dict[str, Any]], bool] | None = None
    """Returns, for `add_usd`, whether a prim (second argument: a context) has rows; None if none has."""
    usd_entry_expander: Callable[[Any, dict[str, Any]], Iterable[dict[str, Any]]] | None = None
    """Makes the rows of a prim, as for `add_custom_values_batch`; None for one row of USD attributes."""
    articulation_owner_attribute: str | None = None
    """Key of the attribute that has the articulation each row belongs to, -1 for none."""
    articulation_owner_resolver: Callable[[Any], Sequence[int]] | None = None
    """Returns, for a builder, the articulation of each row whose attribute is -1."""
    label_attribute: str | None = None
    """Key of the attribute that has the name of each row; label prefixes are put before it."""

    def __post_init__(self) -> None:
        check_identifier(self.name, f"custom frequency {self.name!r}: name")
        if self.namespace is not None:
            check_identifier(self.namespace, f"custom frequency {self.name!r}: namespace")
        if self.namespace is None and self.name in FREQUENCY_OF_KEY:
            raise ValueError(
                f"custom frequency '{self.name}': the name is that of a kind of entity. Give it another name "
                "or a namespace."
            )

    @property
    def key(self) -> str:
        """Name, after the namespace and a colon if it has one."""
        return self.name if self.namespace is None else f"{self.namespace}:{self.name}"


FREQUENCY_OF_KEY = {frequency.key: frequency for frequency in Entity}
"""The kinds of entities by their names in small letters."""


def convert_value(value: Any, dtype: Any, what: str) -> np.ndarray:
    """Return a value as an array of the shape and the type of `dtype`.

    Raises:
        TypeError: If it is of another type.
        ValueError: If it has another number of components, or is out of range.
    """
    if dtype is str:
        if not isinstance(value, str):
            raise TypeError(f"{what} is {value!r}, but it must be a text.")
        return np.array(value, dtype=object)
    shape, kind = component_shape(dtype), number_type(dtype)
    try:
        numbers = np.asarray(getattr(value, "value", value))
        if numbers.dtype.kind not in "biuf":
            numbers = np.array([float(part) for part in np.ravel(numbers)]).reshape(numbers.shape)
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {value!r}, but it must be {_description(dtype)}.") from None
    if numbers.shape != shape and numbers.size == int(np.prod(shape)) and (len(shape) == 2 or not shape):
        numbers = numbers.reshape(shape)
    if numbers.shape != shape:
        raise ValueError(
            f"{what} is {value!r}, of shape {numbers.shape}, but it must be {_description(dtype)}."
        )
    if kind.kind in "biu":
        is_integer = np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
        low, high = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        if not is_integer or any(not low <= int(number) <= high for number in np.ravel(numbers)):
            raise ValueError(f"{what} is {value!r}, but it must be {_description(dtype)}.")
    return numbers.astype(kind)


def type_name(dtype: Any) -> str:
    """Return the name of a type."""
    return str(getattr(dtype, "__name__", dtype))


def _description(dtype: Any) -> str:
    shape, kind = component_shape(dtype), number_type(dtype).kind
    number = {"b": "truth value", "i": "whole number", "u": "whole number", "f": "number"}[kind]
    if not shape:
        return f"a {number} ({type_name(dtype)})"
    return f"{' x '.join(map(str, shape))} {number}s ({type_name(dtype)})"


def check_identifier(name: Any, what: str) -> None:
    """Raise unless `name` is an identifier without leading underscore.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise ValueError(
            f"{what} is {name!r}, but it must be an identifier that does not begin with an underscore, such "
            "as 'temperature'."
        )


def _is_warp_type(dtype: Any) -> bool:
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    return isinstance(scalar, type) and (scalar is wp.bool or wp.types.type_is_scalar(scalar))


def _type_identity(dtype: Any) -> tuple[Any, ...]:
    """Return a key that equal types share, such as vectors of five numbers declared in two places."""
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    return scalar, component_shape(dtype), getattr(dtype, "_wp_generic_type_str_", None)


def _default_of(dtype: Any) -> Any:
    if dtype is str:
        return ""
    values = np.zeros(component_shape(dtype))
    if wp.types.type_is_quaternion(dtype) or wp.types.type_is_transformation(dtype):
        values[-1] = 1.0
    return values
