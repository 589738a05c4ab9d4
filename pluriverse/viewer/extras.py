"""Viser: the library that draws in the browser, loaded on first use."""

from typing import Any


def load_viser() -> Any:
    """Return the module `viser`.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import viser
    except ImportError as error:
        raise ImportError(
            "the viewer draws with Viser, which is not installed. Install it with: pip install "
            "'pluriverse[view]'"
        ) from error
    return viser
