"""The errors of the scene loader."""

from collections.abc import Sequence

# A broken file can be wrong in hundreds of places for one reason.
ERRORS_SHOWN_MAX = 10


class SapSceneLoaderError(ValueError):
    """A scene file cannot be loaded; the message names file, line, field, value and remedy."""


class SapUnsupportedSceneFeature(SapSceneLoaderError):  # noqa: N818 (the format's name)
    """A scene asks for something that the format knows and this version does not do."""

    def __init__(self, message: str, features: tuple[str, ...]):
        super().__init__(message)
        self.features = features
        """Unsupported features, one text per feature."""


class FieldError(ValueError):
    """A value below a field is wrong; `path` leads from that field to the value."""

    def __init__(self, message: str, *path: str | int):
        super().__init__(message)
        self.path = path


def joined_messages(messages: Sequence[str]) -> str:
    """Return the messages below each other, the first of them where there are many."""
    shown = list(messages[:ERRORS_SHOWN_MAX])
    if len(messages) > ERRORS_SHOWN_MAX:
        shown.append(f"and {len(messages) - ERRORS_SHOWN_MAX} more errors")
    return "\n".join(shown)
