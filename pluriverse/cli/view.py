"""`pluriverse view`: a scene or a robot in the browser, stepped in real time."""

import contextlib
import math
import sys
from typing import Any

from rich.markup import escape

from pluriverse.cli.console import collected_warnings, fail, output, quiet_warp, reported_errors
from pluriverse.cli.options import ViewOptions
from pluriverse.cli.recording import is_recording
from pluriverse.cli.session import Session, open_session

EXIT_MISSING = 5
"""Exit code: an optional library is not installed."""


class Watch:
    """`run --view`: shows the worlds while they are stepped at full speed.

    Args:
        session: What is shown.
    """

    IS_ASKED_EVERY_STEP = True

    def __init__(self, session: Session):
        self._viewer = _viewer_class()(session.simulation, verbose=False)
        output.print(f"viewer: [link={self._viewer.url}]{self._viewer.url}[/link]")

    def observe(self) -> None:
        """Apply the buttons of the page."""
        self._viewer.sync()

    def finish(self) -> str:
        """Keep the last state on the page until Ctrl-C or a click ends it, if there is a terminal."""
        if sys.stdin.isatty():
            output.print("The run has ended; Ctrl-C closes the viewer.")
            with contextlib.suppress(KeyboardInterrupt):
                self._viewer.run()
        self._viewer.close()
        return "viewer closed"


def view_scene(name: str, options: ViewOptions) -> None:
    """Show a scene or a robot until the user ends it."""
    with collected_warnings() as warning_texts, reported_errors():
        shown = None if options.show is None else parse_worlds(options.show, "--show")
        if options.duration is not None and not (options.duration > 0.0 and math.isfinite(options.duration)):
            raise ValueError(f"--duration is {options.duration}, but it is a positive number of seconds")
        if options.geometry not in ("visual", "collision", "all"):
            raise ValueError(f"--geometry is {options.geometry!r}, but it is visual, collision or all")
        if is_recording(name):
            _view_recording(name, shown, options)
            return
        viewer_class = _viewer_class()
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
            viewer = viewer_class(
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
            if options.duration is None:
                # The simulation starts when a page is open; otherwise an uncontrolled robot would have fallen
                # before.
                viewer.wait_for_client()
            viewer.run(options.duration, step=lambda count: session.scene.play(session.simulation, count))
            if options.html is not None:
                viewer.save_html(options.html)
                output.print(f"page: {options.html}", highlight=False)
    for text in warning_texts:
        output.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)


def _viewer_class() -> Any:
    """Return the class of viewers, or end the command where its library is missing."""
    try:
        from pluriverse.viewer import BrowserViewer
        from pluriverse.viewer.extras import load_viser

        load_viser()
    except ImportError as error:
        raise fail(str(error), "A library is missing", EXIT_MISSING) from error
    return BrowserViewer


def _view_recording(name: str, shown: list[int] | None, options: ViewOptions) -> None:
    """Play a recording until the user ends it."""
    from pluriverse.recording import RecordedRun

    quiet_warp()
    _viewer_class()
    from pluriverse.viewer import RecordingViewer

    with RecordedRun(name) as recording:
        if not recording.is_complete:
            output.print(f"[yellow]warning:[/yellow] '{escape(name)}' was cut off, or is still being written")
        try:
            viewer = RecordingViewer(
                recording,
                shown,
                host=options.host,
                port=options.port,
                geometry=options.geometry,
                verbose=False,
            )
        except IndexError as error:
            raise ValueError(str(error)) from error
        with viewer:
            seconds = f"{recording.frame_count} frames, {recording.duration:.6g} s"
            output.print(f"{escape(name)}, {seconds}: [link={viewer.url}]{viewer.url}[/link]   (Ctrl-C ends)")
            viewer.run(options.duration)
            if options.html is not None:
                viewer.save_html(options.html)
                output.print(f"page: {options.html}", highlight=False)


def parse_worlds(text: str, option: str) -> list[int]:
    """Return worlds from a text such as 0,3,7 of an option.

    Raises:
        ValueError: It is no list of worlds.
    """
    try:
        return [int(number) for number in text.split(",")]
    except ValueError as error:
        raise ValueError(f"{option} is {text!r}, but it is a list of worlds such as 0,3,7") from error
