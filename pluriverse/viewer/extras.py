"""Viser: the library that draws in the browser, loaded on first use."""

import contextlib
from collections.abc import Iterator
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


@contextlib.contextmanager
def quiet_viser() -> Iterator[None]:
    """Keep Viser from printing when it starts and stops listening, which it does whatever its settings."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
