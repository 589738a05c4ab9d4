"""Columns: the growing tables in which a builder keeps its entities.

A table is one NumPy array per property, with room to grow, so that adding an entity costs amortized constant
time and copying a thousand worlds is a handful of array operations.
"""

import functools
from typing import Any, NamedTuple, overload

import numpy as np
import warp as wp

from pluriverse.builder.column_array import READ_ONLY, ColumnArray
from pluriverse.model.schema import MODEL_ARRAYS, ModelArrays, describe_arrays
from pluriverse.types import Entity

# Storage of a model array's entries in a builder: double precision, poses and matrices as plain numbers.
_TYPES: dict[Any, tuple[Any, tuple[int, ...]]] = {
    wp.int32: (np.int32, ()),
    wp.bool: (np.bool_, ()),
    wp.float32: (np.float64, ()),
    wp.vec3: (np.float64, (3,)),
    wp.transform: (np.float64, (7,)),
    wp.mat33: (np.float64, (3, 3)),
}


class Column(NamedTuple):
    """Type, shape of an entry and default of a column."""

    dtype: Any
    shape: tuple[int, ...] = ()
    default: Any = 0


class Table:
    """Columns of equal length."""

    def __init__(self, columns: dict[str, Column]):
        self.columns = columns
        self.size = 0
        self._capacity = 0
        self._arrays = {
            name: np.empty((0, *column.shape), dtype=column.dtype) for name, column in columns.items()
        }

    def __len__(self) -> int:
        return self.size

    def view(self, name: str) -> np.ndarray:
        """Return the used part of a column, valid until the table grows."""
        return self._arrays[name][: self.size]

    def append(self, **values: Any) -> int:
        """Add an entry and return its index; missing values are the defaults."""
        index = self.size
        self.extend(1)
        for name, value in values.items():
            self._arrays[name][index] = value
        return index

    def extend(self, count: int) -> slice:
        """Add `count` entries of defaults and return their range."""
        added = self._grow(count)
        for name, column in self.columns.items():
            self._arrays[name][added] = column.default
        return added

    def extend_copies(self, source: "Table", count: int) -> slice:
        """Add `count` copies of all entries of `source`, one after the other, and return their range."""
        size = source.size
        added = self._grow(count * size)
        if size:
            for name, column in self.columns.items():
                copies = self._arrays[name][added].reshape(count, size, *column.shape)
                copies[...] = source.view(name)
        return added

    def copied(self) -> "Table":
        """Return a copy."""
        return self.taken(np.arange(self.size))

    def taken(self, entries: np.ndarray) -> "Table":
        """Return a new table of the given entries (indices or a mask), in their order."""
        result = Table(self.columns)
        for name in self.columns:
            result._arrays[name] = self.view(name)[entries].copy()
            result.size = result._capacity = len(result._arrays[name])
        return result

    def _grow(self, count: int) -> slice:
        needed = self.size + count
        if needed > self._capacity:
            self._capacity = max(needed, 2 * self._capacity, 16)
            for name, array in self._arrays.items():
                grown = np.empty((self._capacity, *array.shape[1:]), dtype=array.dtype)
                grown[: self.size] = array[: self.size]
                self._arrays[name] = grown
        added = slice(self.size, needed)
        self.size = needed
        return added


class ColumnView:
    """Attribute of a builder that is a column of one of its tables.

    Reading gives the array itself, so that `builder.body_mass[3] = 2.0` works; the array is outdated as soon
    as an entity is added. Assigning copies the values into the column.

    Args:
        entity: Kind of entity, with one entry each. If None, kind, type, default and meaning are those of the
            array of the model of this name (`pluriverse.model.schema`).
        column: Type, shape of an entry and default of a column that models lack.
        writable: Whether it may be written to.
    """

    def __init__(self, entity: Entity | None, column: Column | None, writable: bool):
        self.name = ""
        self._entity = entity
        self._column = column
        self._writable = writable

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name  # a second name stands for the same column

    @property
    def entity(self) -> Entity:
        """Kind of entity; the column has one entry per entity."""
        entity = self._entity or MODEL_ARRAYS[self.name].entity
        assert entity is not None
        return entity

    @property
    def column(self) -> Column:
        """Type, shape of an entry and default."""
        if self._column is not None:
            return self._column
        spec = MODEL_ARRAYS[self.name]
        dtype, shape = _TYPES[spec.dtype]
        return Column(dtype, (*shape, spec.width) if spec.width else shape, spec.default)

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        """Meaning of the array of the model, for the documentation; None where the builder documents it."""
        if self.name not in MODEL_ARRAYS:
            return None
        text = describe_arrays(ModelArrays)[self.name].meaning
        shape = self.column.shape
        entry = "".join(f", {size}" for size in shape) + "]"
        return text if text.endswith(f"{entry}.") else f"{text.removesuffix('].')}{entry}."

    @overload
    def __get__(self, builder: None, owner: type | None = None) -> "ColumnView": ...

    @overload
    def __get__(self, builder: object, owner: type | None = None) -> ColumnArray: ...

    def __get__(self, builder: Any, owner: type | None = None) -> "ColumnView | ColumnArray":
        if builder is None:
            return self
        view = builder.tables[self.entity].view(self.name).view(ColumnArray)
        view.column_name = self.name
        if not self._writable:
            view.flags.writeable = False
        return view

    def __set__(self, builder: Any, values: Any) -> None:
        if not self._writable:
            raise AttributeError(f"ModelBuilder.{self.name} {READ_ONLY}.")
        view = builder.tables[self.entity].view(self.name)
        array = np.asarray(values)
        if array.shape != view.shape:
            raise ValueError(
                f"ModelBuilder.{self.name} has shape {view.shape}, but the values assigned have shape "
                f"{array.shape}."
            )
        view[...] = array


def column(
    entity: Entity | None = None,
    dtype: Any = None,
    shape: tuple[int, ...] = (),
    default: Any = 0,
    *,
    writable: bool = True,
) -> ColumnView:
    """Return a column of the array of the model that has the name of the attribute.

    With an entity it is a builder-only column of the given type, shape and default.
    """
    return ColumnView(entity, None if entity is None else Column(dtype, shape, default), writable)


def make_tables(holder: type) -> dict[Entity, Table]:
    """Return an empty table per kind of entity, with the columns that are attributes of a class."""
    return {entity: Table(dict(of_entity)) for entity, of_entity in _columns_of(holder).items()}


@functools.cache
def _columns_of(holder: type) -> dict[Entity, dict[str, Column]]:
    columns: dict[Entity, dict[str, Column]] = {}
    for view in vars(holder).values():
        if isinstance(view, ColumnView):
            columns.setdefault(view.entity, {})[view.name] = view.column
    return columns
