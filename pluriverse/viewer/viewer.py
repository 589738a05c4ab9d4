"""Viewer: a running simulation in the browser, with controls.

The viewer draws in its own thread. It shows the current contents of the simulation's arrays, so a program may
step as it likes. `BrowserViewer.run` steps the simulation itself, in real time. Your own loop calls
`BrowserViewer.sync`, which lets the buttons of the viewer act on it.
"""

import contextlib
import queue
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.recording import RecordedRun
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.base import FRAME_RATE, ViewerBase
from pluriverse.viewer.live_panel import LivePanel
from pluriverse.viewer.pull import Pull
from pluriverse.viewer.recording_viewer import RecordingViewer
from pluriverse.viewer.source import LiveSource, Source

# Checks per second for changed shapes; each copies all their arrays.
REFRESH_RATE = 2.0
# Share of a core that drawing may take if the loop waits for the clock at least half of the time.
IDLE_SHARE, IDLE_MIN = 0.4, 0.5
# Time over which the waiting of the loop is measured [s].
IDLE_TIME = 0.5
# Most simulated time caught up on at once if stepping is slower than real time [s].
CATCH_UP_TIME = 0.1


class BrowserViewer(ViewerBase):
    """Shows worlds of a simulation in a browser.

    Args:
        simulation: The simulation; one with variants is shown by its environments.
        worlds: Worlds (environments) to show; some of all if None.
        host: Address to listen on. Other machines can reach the viewer only if it is not the loopback
            address, for example "0.0.0.0".
        port: Port to listen on; a free one from 8080 on if None.
        geometry: Which shapes are drawn: "visual", "collision" or "all".
        verbose: Whether to print the address.

    Raises:
        ImportError: If Viser is not installed.
        IndexError: If there is no such world.
        OSError: If the port is taken.
        TypeError: If `simulation` is not a simulation.
    """

    def __init__(
        self,
        simulation: Any,
        worlds: Any = None,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        geometry: SeenGeometry | str = SeenGeometry.VISUAL,
        verbose: bool = True,
    ) -> None:
        check_simulation(simulation)
        source = self._make_source(simulation)
        super().__init__(source, worlds, host=host, port=port, geometry=geometry)
        self.simulation = simulation
        """The simulation that is shown."""
        self.pull: Pull | None = None
        """The body that is being pulled, if any."""
        self._requests: queue.Queue[Callable[[], None]] = queue.Queue()
        self._attended = 0.0
        self._requested_steps = 0
        self._step_rate = 0.0
        self._idle = 0.0
        self._begin(self._make_panel(), verbose=verbose)

    @property
    def is_attended(self) -> bool:
        """Whether the buttons act: in `run`, or in a loop that calls `sync`."""
        return time.monotonic() - self._attended < 1.0

    @property
    def step_rate(self) -> float:
        """Recent rate of solver steps [1/s]."""
        return self._step_rate

    def request(self, action: Callable[[], None]) -> None:
        """Queue an action that `run` or `sync` carries out between steps."""
        self._requests.put(action)

    def step_once(self) -> None:
        """Pause, and request one more step."""
        self.is_playing = False
        with self._lock:  # the loop of another thread takes them
            self._requested_steps += 1

    def _take_steps(self, most: int | None = None) -> int:
        """Return how many steps were requested, at most so many; they are no longer requested."""
        if not self._requested_steps:
            return 0  # without waiting for a picture that is being drawn
        with self._lock:
            count = self._requested_steps if most is None else min(most, self._requested_steps)
            self._requested_steps -= count
        return count

    def reset(self) -> None:
        """Request a reset of all worlds to their initial states."""
        self.request(self.simulation.reset)

    def pull_body(self, body: int | None, *, point: np.ndarray | None = None) -> None:
        """Start pulling a body, or stop if it is None.

        Args:
            body: The body.
            point: Pulled point [m], body frame; the centre of mass if None.
        """
        with self._lock:
            if self.pull is not None:
                self.pull.release()
            self.pull = None if body is None else self._make_pull(body, point)

    def run(self, duration: float | None = None, *, step: Callable[[int], None] | None = None) -> None:
        """Step the simulation in real time, as the buttons ask for, until the viewer is closed.

        Args:
            duration: Wall time after which to return [s]; None to run until `close` or Ctrl-C.
            step: Called with a number of steps to make, in place of `Simulation.step`; for example to apply
                recorded control.
        """
        step = step or self.simulation.step
        end = None if duration is None else time.monotonic() + duration
        period = self.simulation.dt * self.simulation.decimation
        last, owed, slept = time.monotonic(), 0.0, 0.0
        with contextlib.suppress(KeyboardInterrupt):
            while self.is_running and (end is None or time.monotonic() < end):
                self._attend()
                now = time.monotonic()
                if self.is_playing:
                    owed = min(owed + (now - last) * self.speed, CATCH_UP_TIME * max(1.0, self.speed))
                else:
                    owed = 0.0
                self._note_idle(slept, now - last)
                last, slept = now, 0.0
                count = int(owed / period)
                owed -= count * period
                count = self._take_steps() or count
                if not count:
                    time.sleep(min(period, 1.0 / FRAME_RATE))
                    slept = time.monotonic() - now
                elif self.pull is None:
                    step(count)
                else:  # the force of the spring follows the body from step to step
                    for _ in range(count):
                        self._pull()
                        step(1)

    def sync(self) -> None:
        """Let the buttons act on your own loop: carry out what was requested, and wait while paused.

        Call it once per iteration. It returns at once while the viewer plays, or has been closed.
        """
        self._attend()
        while not self.is_playing and self.is_running and not self._requested_steps:
            self._idle = 1.0
            time.sleep(1.0 / FRAME_RATE)
            self._attend()
        self._idle = 0.0
        self._take_steps(1)
        self._pull()

    def close(self) -> None:
        """Stop drawing and listening. The simulation continues."""
        if self.is_running and self.pull is not None:
            self.pull.release()
        super().close()

    def _note_idle(self, slept: float, elapsed: float) -> None:
        """Record how long the loop waited for the clock in some time [s]."""
        weight = min(1.0, elapsed / IDLE_TIME)
        self._idle += weight * (min(1.0, slept / max(elapsed, 1e-9)) - self._idle)

    def _frame_share(self) -> float:
        return IDLE_SHARE if self._idle > IDLE_MIN else super()._frame_share()

    def _make_source(self, simulation: Any) -> Source:
        return LiveSource(simulation)

    def _make_panel(self) -> LivePanel:
        return LivePanel(self)

    def _make_pull(self, body: int, point: np.ndarray | None) -> Pull:
        return Pull(self.simulation, body, point)

    def _attend(self) -> None:
        self._attended = time.monotonic()
        while True:
            try:
                action = self._requests.get_nowait()
            except queue.Empty:
                return
            action()

    def _pull(self) -> None:
        pull = self.pull
        if pull is not None:
            pull.apply()

    def _follow(self) -> None:
        refreshed, counted, steps = 0.0, time.monotonic(), self.simulation.step_count
        while not self._closed.wait(self._frame_interval()):
            now = time.monotonic()
            with self._lock:
                if now - refreshed > 1.0 / REFRESH_RATE:
                    self.stage.refresh()
                    refreshed = now
                self._draw(self.source.moment())
            if now - counted > 0.5:
                count = self.simulation.step_count
                self._step_rate = max(0.0, (count - steps) / (now - counted))
                counted, steps = now, count


def check_simulation(simulation: Any) -> None:
    """Check that something is a simulation.

    Raises:
        TypeError: If it is not.
    """
    if not all(hasattr(simulation, name) for name in ("model", "state", "solver", "contacts", "step")):
        raise TypeError(
            f"BrowserViewer: a {type(simulation).__name__} cannot be viewed. Pass a Simulation, such as "
            "pluriverse.Simulation(model, dt=0.005) or that of load_scene(...).simulation(), or a recording."
        )


# File extensions of scenes and robots, which must be loaded before they are shown.
_NO_RECORDINGS = ["yaml", "yml", "json", "xml", "mjcf", "urdf", "xacro", "usd", "usda", "usdc", "usdz"]


def view(what: Any, worlds: Any = None, **options: Any) -> ViewerBase:
    """Show a running simulation or a recording in a browser.

    Args:
        what: A simulation; a `RecordedRun`, or the path of its file.
        worlds: Worlds (environments) to show; some of all if None.
        **options: Those of `BrowserViewer`, or of `RecordingViewer`.

    Returns:
        A `BrowserViewer`, or a `RecordingViewer`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no recording.
    """
    if isinstance(what, str | Path) and Path(what).suffix.lower().removeprefix(".") in _NO_RECORDINGS:
        raise ValueError(
            f"view: '{what}' is no recording. Show scenes and robot files by `pluriverse view {what}`, or "
            "load them and pass the simulation."
        )
    if isinstance(what, str | Path | RecordedRun):
        return RecordingViewer(what, worlds, **options)
    return BrowserViewer(what, worlds, **options)
