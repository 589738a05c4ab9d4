"""The `pluriverse` command."""

from pluriverse.cli.app import main

__all__ = ["main"]
