"""Checks of options that several importers share."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pluriverse.geometry import HULL_VERTEX_COUNT_MIN


def check_hull_limit(importer: str, mesh_maxhullvert: int) -> None:
    """Check the option `mesh_maxhullvert` of an importer.

    Raises:
        ValueError: If it is below the fewest vertices that a reduced hull has.
    """
    if not mesh_maxhullvert >= HULL_VERTEX_COUNT_MIN:
        raise ValueError(
            f"{importer}: mesh_maxhullvert is {mesh_maxhullvert}, but it must be {HULL_VERTEX_COUNT_MIN} or "
            "more."
        )


def check_factor(importer: str, options: Mapping[str, Any], name: str, *, may_be_zero: bool = False) -> None:
    """Check an option that is a factor.

    Raises:
        ValueError: If it is not finite, or not positive; with `may_be_zero`, if it is negative.
    """
    factor = options[name]
    if not 0.0 <= factor < np.inf or (factor == 0.0 and not may_be_zero):
        raise ValueError(
            f"{importer}: {name} is {factor}, but it must be finite and {'>= 0' if may_be_zero else '> 0'}."
        )


def check_joint_ordering(importer: str, options: Mapping[str, Any], *orders: str) -> None:
    """Check the option `joint_ordering`.

    Raises:
        ValueError: If it is none of `orders`, and not None.
    """
    ordering = options["joint_ordering"]
    if ordering is not None and ordering not in orders:
        known = ", ".join(map(repr, orders))
        raise ValueError(f"{importer}: joint_ordering is {ordering!r}, but it is {known} or None.")


def read_patterns(importer: str, name: str, patterns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the regular expressions of an option, which may be one alone, or None.

    Raises:
        ValueError: If one of them is not a regular expression.
    """
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns or ())
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"{importer}: {name} holds {pattern!r}, which is no regular expression: {error}."
            ) from error
    return patterns
