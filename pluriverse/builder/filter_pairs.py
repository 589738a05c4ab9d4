"""Filter pairs: pairs of shapes that do not collide, as an editable list."""

from collections.abc import Iterable, Iterator, MutableSequence
from typing import Any

import numpy as np

from pluriverse.builder.shapes import add_shape_collision_filter_pair
from pluriverse.builder.tables import BuilderTables


class FilterPairs(MutableSequence[tuple[int, int]]):
    """The pairs of a builder, in the order in which they were added; `np.asarray` gives shape [pair, 2].

    Args:
        builder: Builder that owns the pairs; changes are written through to it.
    """

    def __init__(self, builder: BuilderTables):
        self._builder = builder

    def __len__(self) -> int:
        return len(self._builder.shape_filters)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._list())

    def __getitem__(self, index: Any) -> Any:
        return self._list()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        pairs = self._list()
        pairs[index] = value
        self.replace(pairs)

    def __delitem__(self, index: Any) -> None:
        pairs = self._list()
        del pairs[index]
        self.replace(pairs)

    def __contains__(self, pair: object) -> bool:
        return self.count(pair) > 0

    def __eq__(self, other: object) -> bool:
        return self._list() == (list(other) if isinstance(other, FilterPairs) else other)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._builder.shape_filters.view("shape"), dtype=dtype)

    def __repr__(self) -> str:
        return repr(self._list())

    def insert(self, index: int, value: Any) -> None:
        """Add a pair before another one.

        Raises:
            IndexError: If there is no such shape.
            ValueError: If it is not a pair of different shapes.
        """
        if index >= len(self):  # what `append` asks for
            add_shape_collision_filter_pair(self._builder, *_pair(value))
            return
        pairs = self._list()
        pairs.insert(index, value)
        self.replace(pairs)

    def count(self, value: object) -> int:
        """Return how often exactly this pair occurs in the list."""
        return self._list().count(value)  # type: ignore[arg-type]

    def replace(self, pairs: Iterable[Any]) -> None:
        """Replace all pairs.

        Raises:
            IndexError: If there is no such shape; then nothing changes.
            ValueError: If one is not a pair of different shapes; then nothing changes.
        """
        checked = [_pair(pair) for pair in pairs]
        table = self._builder.shape_filters
        before = table.copied()
        table.size = 0
        try:
            for pair in checked:
                add_shape_collision_filter_pair(self._builder, *pair)
        except (IndexError, ValueError):
            self._builder.shape_filters = before
            raise

    def _list(self) -> list[tuple[int, int]]:
        return [(a, b) for a, b in self._builder.shape_filters.view("shape").tolist()]


def _pair(value: Any) -> tuple[int, int]:
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ValueError(
            f"shape_collision_filter_pairs: {value!r} is no pair. Give the indices of two shapes, (a, b)."
        ) from None
    return first, second
