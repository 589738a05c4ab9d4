"""Recording viewer: play and scrub through a recording in the browser."""

import contextlib
import time
from pathlib import Path
from typing import Any

from pluriverse.recording import RecordedRun
from pluriverse.recording.moment import Moment
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.base import FRAME_RATE, ViewerBase
from pluriverse.viewer.panel import Panel, set_changed
from pluriverse.viewer.source import RecordedSource


class RecordingViewer(ViewerBase):
    """Shows a recording in a browser.

    Args:
        recording: The recording, or the path of its file.
        worlds: Worlds (environments) to show; some of all if None.
        host: Address to listen on. Other machines can reach the viewer only if it is not the loopback
            address, for example "0.0.0.0".
        port: Port to listen on; a free one from 8080 on if None.
        geometry: Which shapes are drawn: "visual", "collision" or "all".
        verbose: Whether to print the address.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If Viser is not installed.
        IndexError: If a world was not recorded.
        OSError: If the port is taken.
        ValueError: If the file is no recording.
    """

    source: RecordedSource

    def __init__(
        self,
        recording: RecordedRun | str | Path,
        worlds: Any = None,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        geometry: SeenGeometry | str = SeenGeometry.VISUAL,
        verbose: bool = True,
    ) -> None:
        self._is_mine = not isinstance(recording, RecordedRun)
        self.recording = recording if isinstance(recording, RecordedRun) else RecordedRun(recording)
        """The recording."""
        super().__init__(RecordedSource(self.recording), worlds, host=host, port=port, geometry=geometry)
        self.is_repeating = True
        """Whether playback starts again at the end."""
        self._position = 0.0
        self._appearance: Any = self.recording.appearance(0)
        self._begin(RecordingPanel(self), verbose=verbose)

    @property
    def frame(self) -> int:
        """The frame that is shown; assign to it to seek.

        Raises:
            IndexError: If there is no such frame.
        """
        return min(int(self._position * self.recording.fps + 0.5), self.recording.frame_count - 1)

    @frame.setter
    def frame(self, frame: int) -> None:
        if not 0 <= frame < self.recording.frame_count:
            raise IndexError(
                f"RecordingViewer: frame {frame} does not exist; there are frames 0 to "
                f"{self.recording.frame_count - 1}."
            )
        self._position = frame / self.recording.fps

    def run(self, duration: float | None = None) -> None:
        """Wait until the viewer is closed.

        Args:
            duration: Wall time after which to return [s]; None to wait for `close` or Ctrl-C.
        """
        with contextlib.suppress(KeyboardInterrupt):
            self._closed.wait(duration)

    def close(self) -> None:
        """Stop drawing and listening."""
        super().close()
        if self._is_mine:
            self.recording.close()

    def _follow(self) -> None:
        last, drawn = time.monotonic(), None
        while not self._closed.wait(1.0 / FRAME_RATE):
            now = time.monotonic()
            if self.is_playing:
                self._advance((now - last) * self.speed)
            last = now
            with self._lock:
                current = (
                    self.frame,
                    self.stage.build_count,
                    self.stage.overlays.shown,
                    self.is_playing,
                )
                if current == drawn:
                    continue
                drawn = current
                self._show(self.frame)

    def _advance(self, seconds: float) -> None:
        self._position += seconds
        if self._position > self.recording.duration:
            goes_on = self.is_repeating  # which another thread may change meanwhile
            self._position = 0.0 if goes_on else self.recording.duration
            self.is_playing = goes_on

    def _show(self, frame: int) -> None:
        self.source.frame = frame
        moment = self.source.moment()
        appearance = self.recording.appearance(frame)
        if appearance is not self._appearance or self.recording.has_environments:
            self._appearance = appearance
            self.stage.refresh()
        self._draw(moment)


class RecordingPanel(Panel):
    """Controls of a viewer of a recording.

    Args:
        viewer: The viewer.
    """

    def _add_playback(self) -> None:
        viewer = self._viewer
        with self._gui.add_folder("Recording"):
            self._play = self._gui.add_button("Pause")
            self._slider = self._gui.add_slider(
                "Frame", min=0, max=max(1, viewer.recording.frame_count - 1), step=1, initial_value=0
            )
            back = self._gui.add_button("Back")
            step = self._gui.add_button("Step")
            speed = self._gui.add_slider("Speed", min=0.05, max=4.0, step=0.05, initial_value=1.0)
            repeat = self._gui.add_checkbox("Repeat", initial_value=True)

        @self._play.on_click
        def _(_: Any) -> None:
            if not viewer.is_playing and viewer.frame == viewer.recording.frame_count - 1:
                viewer.frame = 0
            viewer.is_playing = not viewer.is_playing

        @self._slider.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # else the viewer moved it itself
                viewer.is_playing = False
                viewer.frame = min(int(self._slider.value), viewer.recording.frame_count - 1)

        for button, change in ((back, -1), (step, 1)):

            def move(_: Any, change: int = change) -> None:
                viewer.is_playing = False
                viewer.frame = min(max(viewer.frame + change, 0), viewer.recording.frame_count - 1)

            button.on_click(move)

        @speed.on_update
        def _(_: Any) -> None:
            viewer.speed = float(speed.value)

        @repeat.on_update
        def _(_: Any) -> None:
            viewer.is_repeating = bool(repeat.value)

    def _status_text(self, moment: Moment) -> str:
        recording = self._viewer.recording
        end = "" if recording.is_complete else " · the file was cut off"
        return f"**{moment.time:.2f} s** · step {moment.step_count:,} · {recording.solver}{end}"

    def update(self, moment: Moment) -> None:
        """Show the texts and curves of a moment, and its position in the recording."""
        viewer = self._viewer
        if not viewer.is_playing:
            self._frame = 0  # texts and curves at once
        super().update(moment)
        set_changed(self._play, "label", "Pause" if viewer.is_playing else "Play")
        set_changed(self._slider, "value", viewer.frame)
