"""Libraries of learning, which are optional: loaded on first use, with a word on how to get them."""

import importlib
from typing import Any


def import_optional(name: str, *, extra: str, purpose: str) -> Any:
    """Return a library.

    Args:
        name: Name of the module.
        extra: Extra of this package that brings it.
        purpose: What it is needed for, for the message.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{purpose} need {name.partition('.')[0]}: pip install 'pluriverse[{extra}]'"
        ) from error
