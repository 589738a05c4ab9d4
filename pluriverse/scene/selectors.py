"""Selecting entries of the arrays of one world, and its joints."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AliasChoices, Field, PlainValidator, WithJsonSchema, model_validator

from pluriverse.scene.errors import FieldError
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.values import Index, Name, Reference, reported, shown

_RANGE_GRAMMAR = "write all, head:N, tail:N, from:N or [start, end] (end may be null)"


def _parse_range(value: Any) -> str | tuple[int, int | None]:
    if isinstance(value, str):
        word, colon, number = value.partition(":")
        if value == "all":
            return value
        if colon and word in ("head", "tail", "from"):
            try:
                count = int(number)
            except ValueError as error:
                raise FieldError(f"{shown(value)}: {number.strip()!r} is not an integer") from error
            if word != "from" and count < 0:
                raise FieldError(f"{shown(value)}: a negative number of entries; write {word}:{-count}")
            return f"{word}:{count}"
    elif isinstance(value, list | tuple) and len(value) == 2:
        start, end = value
        if all(
            isinstance(bound, int) and not isinstance(bound, bool)
            for bound in (start, 0 if end is None else end)
        ):
            return (start, end)
    raise FieldError(f"{shown(value)} is not a range; {_RANGE_GRAMMAR}")


Range = Annotated[
    Any,
    PlainValidator(reported(_parse_range)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": "^(all|head:[0-9]+|tail:[0-9]+|from:-?[0-9]+)$"},
                {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": ["integer", "null"]}],
                    "minItems": 2,
                    "maxItems": 2,
                },
            ]
        }
    ),
]


class Selection(SceneMapping):
    """Entries of an array: one index, or a range (all of them when neither is given)."""

    index: Index | None = None
    range: Range | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "Selection":
        if self.index is not None and self.range is not None:
            raise ValueError("'index' and 'range' exclude each other; keep one")
        return self

    def indices(self, length: int) -> list[int]:
        """Return the selected indices of an array of `length` entries.

        Raises:
            FieldError: Nothing is selected.
        """
        if self.index is not None:
            if not -length <= self.index < length:
                raise FieldError(
                    f"index {self.index} is out of range; the array has {length} entries in this world",
                    "index",
                )
            return [self.index % length]
        selected = _range_indices(self.range if self.range is not None else "all", length)
        if not selected:
            field = ("range",) if self.range is not None else ()
            raise FieldError(
                f"{shown(self.range or 'all')} selects nothing; the array has {length} entries in this world",
                *field,
            )
        return selected


def _range_indices(range_text: str | tuple[int, int | None], length: int) -> list[int]:
    """Return the indices of a range; bounds beyond the array are moved to its ends."""
    entries = list(range(length))
    if isinstance(range_text, tuple):
        return entries[slice(*range_text)]
    if range_text == "all":
        return entries
    word, number = range_text.split(":")
    count = int(number)
    if word == "from":
        return entries[count:]
    return entries[:count] if word == "head" else entries[max(length - count, 0) :]


class JointSelection(Selection):
    """Joints by label, or degrees of freedom by index or range."""

    joint: Reference | None = Field(default=None, validation_alias=AliasChoices("joint", "joint_label"))
    joints: list[Reference] | None = Field(
        default=None, min_length=1, validation_alias=AliasChoices("joints", "joint_labels")
    )
    label_prefix: Name | None = None
    match: Name | None = None

    @model_validator(mode="after")
    def _one_selector(self) -> "JointSelection":
        used = [name for name in (*_JOINT_SELECTORS, "index", "range") if getattr(self, name) is not None]
        if len(used) > 1:
            raise ValueError(f"'{used[0]}' and '{used[1]}' exclude each other; keep one")
        return self

    @property
    def selects_joints(self) -> bool:
        """Whether joints are selected, rather than entries of an array."""
        return any(getattr(self, name) is not None for name in _JOINT_SELECTORS)

    def joint_indices(self, labels: Sequence[str], ids: dict[str, int]) -> list[int]:
        """Return the selected joints.

        Raises:
            FieldError: A reference is unknown or ambiguous, or nothing is selected.
        """
        if self.joint is not None:
            return [find_joint(self.joint, labels, ids, "joint")]
        if self.joints is not None:
            return [
                find_joint(joint, labels, ids, "joints", index) for index, joint in enumerate(self.joints)
            ]
        if self.label_prefix is not None:
            prefix = self.label_prefix
            found = [joint for joint, label in enumerate(labels) if label.startswith(prefix)]
            if not found:
                raise FieldError(
                    f"no joint label starts with {prefix!r}; {_known(labels, prefix)}", "label_prefix"
                )
            return found
        text = self.match or ""
        found = [joint for joint, label in enumerate(labels) if text in label]
        if not found:
            raise FieldError(f"no joint label contains {text!r}; {_known(labels, text)}", "match")
        return found


_JOINT_SELECTORS = ("joint", "joints", "label_prefix", "match")


def find_joint(reference: str | int, labels: Sequence[str], ids: dict[str, int], *path: str | int) -> int:
    """Return the index of a joint named by index, inline id, label, or the end of its label after a `/`.

    Raises:
        FieldError: No joint, or more than one, is meant.
    """
    if isinstance(reference, int):
        if not -len(labels) <= reference < len(labels):
            raise FieldError(f"there is no joint {reference}; this world has {len(labels)} joints", *path)
        return reference % len(labels)
    if reference in ids:
        return ids[reference]
    for matches in (
        [joint for joint, label in enumerate(labels) if label == reference],
        [joint for joint, label in enumerate(labels) if label.endswith(f"/{reference}")],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = ", ".join(f"{labels[joint]} (index {joint})" for joint in matches[:5])
            raise FieldError(
                f"{reference!r} is ambiguous, it fits {names}; give more of the label or an index", *path
            )
    raise FieldError(f"there is no joint {reference!r}; {_known([*ids, *labels], reference)}", *path)


def _known(labels: Sequence[str], name: str) -> str:
    return suggestion(name, labels) if labels else "this world has no joints"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a hint on the existing names, only the closest ones if there are any."""
    unique = list(dict.fromkeys(names))
    tails = {label.rsplit("/", 1)[-1]: label for label in unique}
    near = [tails[tail] for tail in get_close_matches(name.rsplit("/", 1)[-1], list(tails), n=3)]
    if near:
        return f"did you mean {' or '.join(near)}?"
    rest = f" and {len(unique) - 12} more" if len(unique) > 12 else ""
    return f"there are {', '.join(unique[:12])}{rest}"
