"""Custom columns: the values of a custom attribute while a model is built.

A column stores rows only up to the last one with a value; missing rows have the default. So an unused
attribute costs nothing, however many entities there are.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any

import numpy as np
import warp as wp


class TypedState:
    """A part with a Warp type in `dtype`, that can be sent to another process.

    Vectors and matrices of other sizes than Warp's own have types that were made at run time, which cannot be
    looked up by name elsewhere. They travel as what they are made of.
    """

    dtype: Any

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        made = getattr(self.dtype, "_wp_generic_type_str_", None)
        if made in _TYPE_MAKERS and "<locals>" in self.dtype.__qualname__:
            state["dtype"] = (made, self.dtype._shape_, self.dtype._wp_scalar_type_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["dtype"], tuple):
            made, shape, scalar = state["dtype"]
            state = {**state, "dtype": _TYPE_MAKERS[made](shape, scalar)}
        self.__dict__.update(state)


_TYPE_MAKERS: dict[str, Callable[[tuple[int, ...], Any], Any]] = {
    "vec_t": lambda shape, scalar: wp.types.vector(shape[0], scalar),
    "mat_t": lambda shape, scalar: wp.types.matrix(shape, scalar),
}


class CustomColumn(TypedState):
    """The values that were given to a custom attribute.

    Args:
        dtype: Warp type of a value, or `str`.
        default: Value of the rows without one.
    """

    def __init__(self, dtype: Any, default: Any):
        self.dtype = dtype
        self.default = default
        self.shape = component_shape(dtype)
        self.size = 0
        """Number of stored rows."""
        self.is_shared = False
        """Whether the declarations of several builders have this column, which stays empty then."""
        self.giving_worlds: list[np.ndarray] | None = None
        """Worlds with parts that give the one value of the whole model; None if all worlds are given it."""
        self._rows = np.empty((0, *self.shape), dtype=number_type(dtype))
        self._given = np.zeros(0, dtype=bool)

    @property
    def rows(self) -> np.ndarray:
        """The stored rows, with defaults where no value was given."""
        return self._rows[: self.size]

    @property
    def given(self) -> np.ndarray:
        """Which of the stored rows were given a value."""
        return self._given[: self.size]

    @property
    def has_first(self) -> bool:
        """Whether the first row was given a value, such as that of the whole model."""
        return bool(self.size and self._given[0])

    def put(self, first: int, values: np.ndarray) -> None:
        """Set the values of consecutive rows, from `first` on."""
        self.grow(first + len(values))
        self._rows[first : first + len(values)] = values
        self._given[first : first + len(values)] = True
        self.giving_worlds = None

    def put_once(self, value: np.ndarray, worlds: np.ndarray) -> None:
        """Set the one value of the whole model, which parts of some worlds (-1: outside of any) give."""
        giving = self.giving_worlds if self.has_first else []
        self.put(0, value[None])
        if giving is not None and (worlds >= 0).all():
            giving.append(worlds)
            self.giving_worlds = giving

    def reset_row(self, row: int) -> None:
        """Reset a row to its default."""
        if row < self.size:
            self._rows[row] = self.default
            self._given[row] = False

    def clear(self) -> None:
        """Remove all values."""
        self.size = 0

    def grow(self, size: int) -> None:
        """Store at least `size` rows."""
        assert not self.is_shared, "values are written to a declaration that other builders share"
        if size > len(self._rows):
            capacity = max(size, 2 * len(self._rows), 16)
            rows = np.empty((capacity, *self.shape), dtype=self._rows.dtype)
            given = np.zeros(capacity, dtype=bool)
            rows[: self.size], given[: self.size] = self.rows, self.given
            self._rows, self._given = rows, given
        if size > self.size:
            self._rows[self.size : size] = self.default
            self._given[self.size : size] = False
            self.size = size

    def resolved(self, count: int) -> np.ndarray:
        """Return the values of `count` rows, shape [count, component]. A copy."""
        result = np.empty((count, *self.shape), dtype=self._rows.dtype)
        kept = min(count, self.size)
        result[:kept] = self._rows[:kept]
        result[kept:] = self.default
        return result

    def emptied(self) -> "CustomColumn":
        """Return a new column of the same type and default, without values."""
        result = object.__new__(CustomColumn)
        result.__dict__.update(self.__dict__)
        # Of no length, so that `grow` allocates memory of its own.
        result.size, result._rows, result._given = 0, self._rows[:0], self._given[:0]
        result.is_shared, result.giving_worlds = False, None
        return result

    def taken(self, rows: np.ndarray, count: int) -> "CustomColumn":
        """Return a new column of the given rows (indices) of `count`, in their order."""
        result = CustomColumn(self.dtype, self.default)
        if self.size:
            result._rows = self.resolved(count)[rows]
            given = np.zeros(count, dtype=bool)
            given[: min(count, self.size)] = self.given[:count]
            result._given = given[rows]
            result.size = len(result._rows)
            result.giving_worlds = None if self.giving_worlds is None else list(self.giving_worlds)
        return result


class EntityValues(MutableMapping[int, Any]):
    """The values given to entities, by their index; like a dictionary."""

    def __init__(self, column: CustomColumn, convert: Callable[[Any], np.ndarray]):
        self._column = column
        self._convert = convert

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self._column.size or not self._column.given[index]:
            raise KeyError(index)
        return as_value(self._column.rows[index])

    def __setitem__(self, index: int, value: Any) -> None:
        if index < 0:
            raise KeyError(index)
        self._column.put(int(index), self._convert(value)[None])

    def __delitem__(self, index: int) -> None:
        self[index]
        self._column.reset_row(int(index))

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._column.given).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._column.given))

    def __repr__(self) -> str:
        return repr(dict(self))


class RowValues(MutableSequence[Any]):
    """The values of the rows of a custom frequency, None where none was given; like a list."""

    def __init__(self, column: CustomColumn, convert: Callable[[Any], np.ndarray]):
        self._column = column
        self._convert = convert

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        index = range(self._column.size)[index]
        return as_value(self._column.rows[index]) if self._column.given[index] else None

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            values = list(self)
            values[index] = value
            self.replace(values)
            return
        index = range(self._column.size)[index]
        if value is None:
            self._column.reset_row(index)
        else:
            self._column.put(index, self._convert(value)[None])

    def __delitem__(self, index: Any) -> None:
        values = list(self)
        del values[index]
        self.replace(values)

    def insert(self, index: int, value: Any) -> None:
        """Insert a value before `index`."""
        values = list(self)
        values.insert(index, value)
        self.replace(values)

    def replace(self, values: Iterable[Any]) -> None:
        """Replace all values."""
        values = list(values)
        rows = [None if value is None else self._convert(value) for value in values]
        self._column.clear()
        self._column.grow(len(rows))
        for index, row in enumerate(rows):
            if row is not None:
                self._column.put(index, row[None])

    def __len__(self) -> int:
        return self._column.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | RowValues) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def as_value(row: Any) -> Any:
    """Return a row as a number, a text, or a tuple of numbers (of tuples for a matrix)."""
    if not isinstance(row, np.ndarray) or row.ndim == 0:
        return row.item() if hasattr(row, "item") else row
    return tuple(as_value(part) for part in row)


def component_shape(dtype: Any) -> tuple[int, ...]:
    """Return the shape of one value."""
    return tuple(getattr(dtype, "_shape_", ()))


def number_type(dtype: Any) -> Any:
    """Return the NumPy type of the components of a value."""
    if dtype is str:
        return np.dtype(object)
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    return np.dtype(bool) if scalar is wp.bool else np.dtype(wp.dtype_to_numpy(scalar))
