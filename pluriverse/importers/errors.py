"""Errors of asset importers."""

from pathlib import Path
from typing import Any


class AssetError(ValueError):
    """An asset cannot be imported. The message names the file, the element, the value and the remedy."""

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        element: str | None = None,
        value: Any = None,
        remedy: str,
    ):
        self.problem = problem
        """The problem, as a text."""
        self.file = None if file is None else str(file)
        """The asset file, or the name of the text it was read from."""
        self.element = element
        """The element of the file, with its name."""
        self.value = value
        """The value that is wrong, or None."""
        self.remedy = remedy
        """The remedy."""
        location = ": ".join(part for part in (self.file, element) if part)
        super().__init__(f"{location + ': ' if location else ''}{problem.rstrip('.')}. {remedy}")


class AssetFileError(AssetError):
    """A file of an asset is missing or cannot be read."""


class AssetLimitError(AssetError):
    """An asset exceeds a limit of counts, nesting or references."""


class UnsupportedAssetError(AssetError):
    """An asset uses a feature that is not supported, and `strict=True` asked for an error."""
