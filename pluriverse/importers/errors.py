"""The errors and the warning of asset importers."""

from pathlib import Path
from typing import Any


class AssetError(ValueError):
    """An asset cannot be imported: says which file and element, the value and the way out."""

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
        """What is wrong, in words."""
        self.file = None if file is None else str(file)
        """The asset file, or the name of the text it was read from."""
        self.element = element
        """The element of the file, with its name."""
        self.value = value
        """The value that is wrong, or None."""
        self.remedy = remedy
        """What to do about it."""
        place = ": ".join(part for part in (self.file, element) if part)
        super().__init__(f"{place + ': ' if place else ''}{problem.rstrip('.')}. {remedy}")


class AssetFileError(AssetError):
    """A file of an asset is missing or cannot be read."""


class AssetLimitError(AssetError):
    """An asset asks for more than anybody builds: counts, nesting, references."""


class UnsupportedAssetError(AssetError):
    """An asset uses a feature that is not supported, and `strict=True` asked for an error."""


class AssetWarning(UserWarning):
    """Parts of an asset were not imported as authored."""
