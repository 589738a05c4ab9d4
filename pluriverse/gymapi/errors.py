"""Errors and warnings of the actor API. Messages begin with the call, then name env, actor and remedy."""

from typing import Any, NoReturn


class GymError(RuntimeError):
    """A call of the actor API came at the wrong time, or cannot be done."""


class GymWarning(UserWarning):
    """A call of the actor API failed as scripts expect (None), or does something other than it may seem."""


def require(condition: bool, call: str, problem: str) -> None:
    """Raise a `ValueError` unless a condition holds."""
    if not condition:
        raise ValueError(f"{call}: {problem}")


def wrong_type(call: str, what: str, expected: str, value: Any) -> NoReturn:
    """Raise for an argument of the wrong type."""
    raise TypeError(f"{call}: {what} is {value!r}, but must be {expected}.")
