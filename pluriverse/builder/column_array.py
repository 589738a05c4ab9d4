"""Column array: a column as a builder exposes it, a NumPy array with the methods of a list.

Scripts written for list-based builders search entries (`index`, `count`), read the parts of a pose (`p`, `q`)
and write to read-only columns, which must fail with a remedy.
"""

import ctypes
from typing import Any, Never

import numpy as np

READ_ONLY = (
    "follows from the arguments of add_link(), add_joint_*(), add_shape() and add_articulation() and cannot "
    "be assigned; initial poses are set through joint_q"
)
"""Why a column is read-only, for messages."""


class ColumnArray(np.ndarray):
    """Array of a builder, or part of one, with the name of its column for messages."""

    column_name: str = "an array"

    def __array_finalize__(self, source: Any) -> None:
        self.column_name = getattr(source, "column_name", "an array")

    @property
    def p(self) -> np.ndarray:
        """Positions of poses [m], shape [..., 3].

        Raises:
            AttributeError: If the entries are not poses.
        """
        return self._pose_part(slice(0, 3), "p")

    @property
    def q(self) -> np.ndarray:
        """Rotations of poses, quaternions xyzw, shape [..., 4].

        Raises:
            AttributeError: If the entries are not poses.
        """
        return self._pose_part(slice(3, 7), "q")

    def index(self, value: Any) -> int:
        """Return the index of the first entry that is equal to a value.

        Raises:
            ValueError: If it does not occur.
        """
        found = np.flatnonzero(self._matches(value))
        if not len(found):
            raise ValueError(f"ModelBuilder.{self.column_name}: {value!r} is not in it.")
        return int(found[0])

    def count(self, value: Any) -> int:
        """Return how many entries are equal to a value."""
        return int(np.count_nonzero(self._matches(value)))

    def append(self, value: Any) -> Never:
        """Entries are added by the calls that add entities.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(
            f"ModelBuilder.{self.column_name} has one entry per entity, so nothing can be appended to it. "
            "Add entities by add_link(), add_joint_*() or add_shape_*(), and write to their entries."
        )

    extend = insert = append
    """As `append`."""

    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        if isinstance(other, list | tuple) and np.ndim(other) == self.ndim:
            # For a list this would append, for an array add; an error avoids the wrong one of the two.
            raise TypeError(
                f"ModelBuilder.{self.column_name} += a list: columns have one entry per entity, so nothing "
                "can be appended. Write to entries ([-7:] = values), or add an array to add numbers."
            )
        return super().__iadd__(other)

    def __eq__(self, other: Any) -> Any:
        """Compare with a list to a single truth value, as lists do; with anything else entry by entry."""
        if isinstance(other, list | tuple) and self.ndim:
            return np.bool_(self._is_list(other))  # which has all() and any(), as arrays do
        return super().__eq__(other)

    def __ne__(self, other: Any) -> Any:
        """The opposite of `==`."""
        if isinstance(other, list | tuple) and self.ndim:
            return np.bool_(not self._is_list(other))
        return super().__ne__(other)

    __hash__ = None  # as lists and arrays

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise ValueError(f"ModelBuilder.{self.column_name} {READ_ONLY}.")
        shape = getattr(value, "_shape_", ()) if isinstance(value, ctypes.Array) else ()
        if len(shape) == 2:
            value = np.reshape(value, shape)  # NumPy takes the memory of a matrix of Warp for flat
        super().__setitem__(index, value)

    def _is_list(self, values: Any) -> bool:
        """Return whether the entries are those of a list."""
        return len(self) == len(values) and all(
            np.array_equal(np.asarray(own), np.asarray(value))
            for own, value in zip(self, values, strict=True)
        )

    def _matches(self, value: Any) -> np.ndarray:
        same = np.asarray(self) == np.asarray(value)
        return same.reshape(len(self), -1).all(axis=1) if same.size else np.zeros(len(self), dtype=bool)

    def _pose_part(self, part: slice, name: str) -> np.ndarray:
        if not self.ndim or self.shape[-1] != 7:
            raise AttributeError(
                f"ModelBuilder.{self.column_name} has no '{name}': only poses have a position p and a "
                "rotation q."
            )
        return np.asarray(self)[..., part]
