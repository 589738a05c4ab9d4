"""Arguments: convert those of calls to numbers, vectors and lists, or raise a clear error."""

from typing import Any

import numpy as np

from pluriverse.gymapi.values import Transform, Vec3


def as_int(value: Any, what: str, call: str) -> int:
    """Return a whole number.

    Raises:
        TypeError: If it cannot be one; the message names the call and the argument.
    """
    try:
        number = int(value)
        if number == value:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"{call}: {what} is {value!r}, but must be a whole number.")


def as_float(value: Any, what: str, call: str) -> float:
    """Return a number that is not NaN.

    Raises:
        TypeError: If it cannot be one; the message names the call and the argument.
    """
    try:
        result = float(value)
        if not np.isnan(result):
            return result
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{call}: {what} is {value!r}, but must be a number.")


def as_list(values: Any, what: str, call: str) -> list[Any]:
    """Return a list.

    Raises:
        TypeError: If `values` cannot be one; the message names the call and the argument.
    """
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{call}: {what} is {values!r}, but must be a list.") from None


def vector(value: Any, what: str, call: str) -> Vec3:
    """Return a vector.

    Raises:
        TypeError: If it cannot be one; the message names the call and the argument.
    """
    try:
        return Vec3._of(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{call}: {what}: {error}") from None


def transform(value: Any, what: str, call: str) -> Transform:
    """Return a pose.

    Raises:
        TypeError: If it cannot be one; the message names the call and the argument.
    """
    try:
        return Transform._of(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{call}: {what}: {error}") from None


def text(value: Any, what: str, call: str) -> str:
    """Return a text.

    Raises:
        TypeError: If it cannot be one; the message names the call and the argument.
    """
    if not isinstance(value, str):
        raise TypeError(f"{call}: {what} is {value!r}, but must be a text.")
    return value


def truth(value: Any) -> bool:
    """Return a truth value, written in one of the usual ways.

    Raises:
        ValueError: If it is written in no such way.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    word = str(value).strip().lower()
    if word in ("1", "1.0", "true", "t", "yes", "y", "on"):
        return True
    if word in ("0", "0.0", "false", "f", "no", "n", "off"):
        return False
    raise ValueError(f"{value!r} is no truth value; write true or false.")
