"""`pluriverse check`: report the errors of scene files, one per line, as compilers do."""

from collections.abc import Sequence
from pathlib import Path

import typer

from pluriverse.cli.console import EXIT_SCENE, quiet_warp


def check_scenes(names: Sequence[str], asset_roots: Sequence[Path], *, strict: bool) -> None:
    """Check scenes, print their problems, and end with an exit code that tells whether there are any."""
    from pluriverse.scene.check import check_scene

    quiet_warp()
    failed = 0
    for name in names:
        result = check_scene(name, asset_roots=asset_roots)
        for text in result.errors:
            typer.echo(text)
        for text in result.unsupported_features:
            typer.echo(f"{text} (not supported)")
        for text in result.warnings:
            typer.echo(f"{result.path}: warning: {text}")
        if not result.is_valid or (strict and result.unsupported_features):
            failed += 1
        else:
            typer.echo(f"{result.path}: valid")
    if failed:
        typer.echo(f"{failed} of {len(names)} scenes {'is' if failed == 1 else 'are'} not valid", err=True)
        raise typer.Exit(EXIT_SCENE)
