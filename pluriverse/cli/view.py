"""`pluriverse view`: a scene or a robot in the browser, stepped in real time."""

import math
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from pluriverse.cli.console import collected_warnings, fail, output, reported_errors
from pluriverse.cli.session import open_session
from pluriverse.cli.solver_choice import SolverChoice

EXIT_MISSING = 5
"""Exit code: an optional library is not installed."""


@dataclass(frozen=True)
class ViewOptions:
    """The options of `pluriverse view`; see `pluriverse.cli.app`."""

    worlds: int | None
    show: str | None
    host: str
    port: int | None
    geometry: str
    duration: float | None
    html: Path | None
    dt: float | None
    device: str | None
    solver: SolverChoice
    threads: int | None
    asset_roots: tuple[Path, ...]


def view_scene(name: str, options: ViewOptions) -> None:
    """Show a scene or a robot until somebody ends it."""
    with collected_warnings() as warning_texts, reported_errors():
        shown = None if options.show is None else _worlds(options.show)
        if options.duration is not None and not (options.duration > 0.0 and math.isfinite(options.duration)):
            raise ValueError(f"--duration is {options.duration}, but it is a positive number of seconds")
        if options.geometry not in ("visual", "collision", "all"):
            raise ValueError(f"--geometry is {options.geometry!r}, but it is visual, collision or all")
        try:
            from pluriverse.viewer import BrowserViewer
            from pluriverse.viewer.extras import load_viser

            load_viser()
        except ImportError as error:
            raise fail(str(error), "A library is missing", EXIT_MISSING) from error
        session = open_session(
            name,
            worlds=options.worlds,
            dt=options.dt,
            device=options.device,
            solver=options.solver,
            threads=options.threads,
            strict=None,
            asset_roots=options.asset_roots,
        )
        try:
            viewer = BrowserViewer(
                session.simulation,
                shown,
                host=options.host,
                port=options.port,
                geometry=options.geometry,
                verbose=False,
            )
        except IndexError as error:
            raise ValueError(str(error)) from error
        with session.simulation, viewer:
            output.print(f"{session.scene.name}: [link={viewer.url}]{viewer.url}[/link]   (Ctrl-C ends)")
            viewer.run(options.duration, step=lambda count: session.scene.play(session.simulation, count))
            if options.html is not None:
                viewer.save_html(options.html)
                output.print(f"page: {options.html}", highlight=False)
    for text in warning_texts:
        output.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)


def _worlds(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError as error:
        raise ValueError(f"--show is {text!r}, but it is a list of worlds such as 0,3,7") from error
