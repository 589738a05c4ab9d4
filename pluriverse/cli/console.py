"""What the commands share on the terminal: consoles, error panels, collected warnings."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel

output = Console()
errors = Console(stderr=True)

EXIT_SCENE = 1
"""Exit code: the scene, or a value given on the command line, is wrong."""
EXIT_SIMULATION = 3
"""Exit code: worlds were in trouble (frozen; in strict mode also truncated or not converged)."""


def fail(message: str, title: str, code: int) -> typer.Exit:
    """Show an error panel and return the exception that ends the command."""
    errors.print(Panel(escape(message), title=title, title_align="left", border_style="red", highlight=False))
    return typer.Exit(code)


@contextmanager
def reported_errors() -> Iterator[None]:
    """Show what users can mend as a panel instead of a traceback."""
    from pluriverse.scene import SapSceneLoaderError
    from pluriverse.warnings import SimulationError

    try:
        yield
    except SapSceneLoaderError as error:
        raise fail(str(error), "The scene cannot be loaded", EXIT_SCENE) from error
    except SimulationError as error:
        raise fail(str(error), "The simulation stopped", EXIT_SIMULATION) from error
    except (ValueError, OSError) as error:
        raise fail(str(error), "Error", EXIT_SCENE) from error


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect warnings instead of printing them, each text once."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield texts
        finally:
            texts += dict.fromkeys(str(warning.message) for warning in caught)


def quiet_warp() -> None:
    """Keep Warp from printing about its devices; of compiling the progress is shown, as one bar."""
    import warp as wp

    from pluriverse.kernel_progress import install

    progress = install()
    if progress is None:
        wp.config.log_level = wp.LOG_ERROR
    else:
        progress.is_muted = True
