"""Patterns: which labels are meant.

A pattern with wildcards (`*`, `?`, `[abc]`) or a regular expression is compared with the whole label and, if
it has no slash, with the last part of the label: `hinge*` finds `robot/leg/hinge_1`. A pattern with slashes
that fits no whole label is compared with as many last parts: names of links may have slashes of their own, so
`left/finger` finds `robot/left/finger`.
"""

import fnmatch
import re
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches

import numpy as np

from pluriverse.warnings import MissingEntityWarning

Pattern = str | re.Pattern[str] | int
Patterns = Pattern | Sequence[Pattern]

# Labels that an error message suggests.
_SUGGESTION_COUNT = 5


def leaf(label: str) -> str:
    """Return the last part of a label: its name without the prefixes of what holds it."""
    return label.rsplit("/", 1)[-1]


def _tail(label: str, count: int) -> str:
    """Return the last `count` parts of a label."""
    return "/".join(label.split("/")[-count:])


def listed(patterns: Patterns) -> list[Pattern]:
    """Return one pattern, or several, as a list.

    Raises:
        TypeError: If a pattern is neither text, nor a regular expression, nor a whole number.
    """
    single = isinstance(patterns, str | re.Pattern | int | np.integer)
    result = [patterns] if single else list(patterns)  # type: ignore[arg-type]
    for pattern in result:
        if isinstance(pattern, bool) or not isinstance(pattern, str | re.Pattern | int | np.integer):
            raise TypeError(
                f"pattern {pattern!r} is a {type(pattern).__name__}, but must be a name with or without "
                "wildcards, a compiled regular expression, or an index."
            )
    return result  # type: ignore[return-value]


def match_labels(
    labels: Sequence[str], numbers: np.ndarray, patterns: Patterns, *, what: str, kind: str
) -> np.ndarray:
    """Return which entities match any of the patterns, as truth values.

    Args:
        labels: Label of each entity.
        numbers: What a whole number among the patterns is compared with, one per entity.
        patterns: Names, wildcards, regular expressions or numbers.
        what: The argument, for messages.
        kind: The entity, for messages.

    Raises:
        KeyError: If one of the patterns finds nothing.
        TypeError: If a pattern is of another type.
    """
    matches = _each_match(labels, numbers, patterns)
    for pattern, found in matches:
        if not found.any():
            raise KeyError(_nothing(labels, pattern, what, kind))
    return np.logical_or.reduce([found for _, found in matches] or [np.zeros(len(labels), dtype=bool)])


def present_patterns(
    labels: Sequence[str], numbers: np.ndarray, patterns: Patterns, *, what: str, kind: str
) -> list[Pattern]:
    """Return the patterns that find something, and warn of the others.

    A part of a batch of different worlds need not have everything that the whole has.

    Args:
        labels: Label of each entity.
        numbers: What a whole number among the patterns is compared with, one per entity.
        patterns: Names, wildcards, regular expressions or numbers.
        what: The argument, for messages.
        kind: The entity, for messages.

    Raises:
        TypeError: If a pattern is of another type.
    """
    present = []
    for pattern, found in _each_match(labels, numbers, patterns):
        if found.any():
            present.append(pattern)
        else:
            warn_of_missing(_nothing(labels, pattern, what, kind))
    return present


def warn_of_missing(text: str) -> None:
    """Warn that a part of a batch has nothing that is meant."""
    warnings.warn(
        f"{text} The pattern means nothing in this part of the batch; another part may have some.",
        MissingEntityWarning,
        stacklevel=2,
    )


def _each_match(
    labels: Sequence[str], numbers: np.ndarray, patterns: Patterns
) -> list[tuple[Pattern, np.ndarray]]:
    """Return which entities match, pattern by pattern."""
    unique, inverse = np.unique(np.array(labels, dtype=object), return_inverse=True)
    matches = []
    for pattern in listed(patterns):
        if isinstance(pattern, int | np.integer):
            found = numbers == int(pattern)
        else:
            accepts = _acceptor(pattern)
            accepted = [accepts(label) for label in unique]
            if isinstance(pattern, str) and "/" in pattern and not any(accepted):
                accepted = [accepts(_tail(label, pattern.count("/") + 1)) for label in unique]
            found = np.array(accepted, dtype=bool)[inverse.reshape(-1)]
        matches.append((pattern, found))
    return matches


def _nothing(labels: Sequence[str], pattern: Pattern, what: str, kind: str) -> str:
    """Return the message about a pattern that finds nothing."""
    return f"{what}: no {kind} matches {_shown(pattern)}; {_known(sorted(set(labels)), pattern)}"


def _acceptor(pattern: str | re.Pattern[str]) -> Callable[[str], bool]:
    """Return the predicate whether a label fits."""
    expression = re.compile(fnmatch.translate(pattern)) if isinstance(pattern, str) else pattern
    if "/" in expression.pattern:
        return lambda label: expression.fullmatch(label) is not None
    return lambda label: (
        expression.fullmatch(label) is not None or expression.fullmatch(leaf(label)) is not None
    )


def _shown(pattern: Pattern) -> str:
    return repr(pattern.pattern if isinstance(pattern, re.Pattern) else pattern)


def _known(labels: list[str], pattern: Pattern) -> str:
    """Return a remark on which labels there are, only the nearest ones if any is near."""
    if not labels:
        return "there are none."
    if isinstance(pattern, str):
        names = {leaf(label): label for label in labels}
        near = [names[name] for name in get_close_matches(leaf(pattern), list(names), n=3)]
        if near:
            return f"did you mean {' or '.join(near)}?"
    rest = f" and {len(labels) - _SUGGESTION_COUNT} more" if len(labels) > _SUGGESTION_COUNT else ""
    return f"there are {', '.join(labels[:_SUGGESTION_COUNT])}{rest}."
