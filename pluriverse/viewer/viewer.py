"""Viewer: a simulation in the browser, with controls, while it goes on.

The viewer draws in a thread of its own. It shows what the arrays of the simulation hold at the moment, so a
program may step as it likes. `BrowserViewer.run` steps the simulation itself, in real time; a loop of one's
own calls `BrowserViewer.sync`, which lets the buttons of the viewer act on it.
"""

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from pluriverse.recording.moment import Moment, moment_of
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.extras import load_viser
from pluriverse.viewer.layout import shown_worlds
from pluriverse.viewer.panel import Panel
from pluriverse.viewer.plots import History
from pluriverse.viewer.pull import Pull
from pluriverse.viewer.stage import Stage

# Pictures a second: smooth to the eye, and below a percent of a core for a few robots.
FRAME_RATE = 30.0
# Looks a second at whether shapes changed: a copy of all their arrays.
REFRESH_RATE = 2.0
# Ports that are tried where none is asked for.
PORT_FIRST, PORT_COUNT = 8080, 100
# Most simulated time [s] made up for in one go where stepping is slower than asked for.
CATCH_UP_TIME = 0.1


class BrowserViewer:
    """Shows worlds of a simulation in a browser.

    Args:
        simulation: The simulation; one with variants is shown by its environments.
        worlds: Worlds (environments) to show; some of all if None.
        host: Address to listen on. Others than this machine see the viewer only if it is another one than the
            loopback address, such as "0.0.0.0".
        port: Port to listen on; a free one from 8080 on if None.
        geometry: Which shapes are drawn: "visual", "collision" or "all".
        verbose: Whether to print the address.

    Raises:
        ImportError: If Viser is not installed.
        IndexError: If there is no such world.
        OSError: If the port is taken.
        TypeError: If `simulation` is none.
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
        from pluriverse.simulation import Simulation

        if not isinstance(simulation, Simulation):
            raise TypeError(
                f"BrowserViewer: a {type(simulation).__name__} cannot be viewed. Pass a Simulation, such as "
                "that of load_scene(...).simulation()."
            )
        geometry = SeenGeometry(geometry)
        count = getattr(simulation, "environment_count", simulation.model.world_count)
        environments = _shown(simulation, worlds, count)
        viser = load_viser()
        self.simulation = simulation
        """The simulation that is shown."""
        self.server = viser.ViserServer(
            host=host, port=free_port(host, port), label="Pluriverse", verbose=False
        )
        """The Viser server, to add drawings and controls of one's own."""
        self.is_playing = True
        """Whether `run` steps, or `sync` returns at once."""
        self.speed = 1.0
        """Simulated time per wall time that `run` aims at."""
        self.history = History(simulation.model)
        """Figures of the chosen world."""
        self.pull: Pull | None = None
        """The body that is pulled at, if any."""
        self._host = host
        self._lock = threading.RLock()
        self._requests: queue.Queue[Callable[[], None]] = queue.Queue()
        self._closed = threading.Event()
        self._attended = 0.0
        self._steps_wanted = 0
        self._step_rate = 0.0
        self.server.scene.set_up_direction("+z")
        _light(self.server.scene)
        self.stage = Stage(self.server.scene, simulation, environments)
        """What is drawn."""
        if geometry is not SeenGeometry.VISUAL:
            self.stage.set_geometry(geometry)
        self.panel = Panel(self)
        self._aim_camera()
        self._draw(moment_of(simulation))
        self._thread = threading.Thread(target=self._follow, name="pluriverse viewer", daemon=True)
        self._thread.start()
        if verbose:
            print(f"Pluriverse viewer: {self.url}")

    @property
    def url(self) -> str:
        """Address to open in a browser."""
        host = "localhost" if self._host in ("127.0.0.1", "0.0.0.0", "") else self._host
        return f"http://{host}:{self.server.get_port()}"

    @property
    def is_running(self) -> bool:
        """Whether the viewer has not been closed."""
        return not self._closed.is_set()

    @property
    def is_attended(self) -> bool:
        """Whether somebody lets the buttons act: `run`, or a loop that calls `sync`."""
        return time.monotonic() - self._attended < 1.0

    @property
    def step_rate(self) -> float:
        """Solver steps a second, lately."""
        return self._step_rate

    def request(self, action: Callable[[], None]) -> None:
        """Have something done between steps, by `run` or `sync`."""
        self._requests.put(action)

    def step_once(self) -> None:
        """Pause, and have one more step made."""
        self.is_playing = False
        self._steps_wanted += 1

    def reset(self) -> None:
        """Have all worlds put back to their initial states."""
        self.request(self.simulation.reset)

    def show(self, worlds: Any) -> None:
        """Show other worlds.

        Raises:
            IndexError: If there is no such world.
        """
        count = getattr(self.simulation, "environment_count", self.simulation.model.world_count)
        environments = _shown(self.simulation, worlds, count)
        with self._lock:
            self.stage.choose(environments)
            self._aim_camera()

    def pull_body(self, body: int | None) -> None:
        """Begin to pull at a body, or end to pull where it is None."""
        with self._lock:
            if self.pull is not None:
                self.pull.release()
            self.pull = None if body is None else Pull(self.simulation, body)

    def run(self, duration: float | None = None, *, step: Callable[[int], None] | None = None) -> None:
        """Step the simulation in real time, as the buttons ask for, until the viewer is closed.

        Args:
            duration: Wall time after which to return [s]; None for no end but `close` or Ctrl-C.
            step: Makes so many steps, in place of `Simulation.step`; such as one that applies recorded
                control.
        """
        step = step or self.simulation.step
        end = None if duration is None else time.monotonic() + duration
        period = self.simulation.dt * self.simulation.decimation
        last, owed = time.monotonic(), 0.0
        with contextlib.suppress(KeyboardInterrupt):
            while self.is_running and (end is None or time.monotonic() < end):
                self._attend()
                now = time.monotonic()
                if self.is_playing:
                    owed = min(owed + (now - last) * self.speed, CATCH_UP_TIME * max(1.0, self.speed))
                else:
                    owed = 0.0
                last = now
                count = int(owed / period)
                owed -= count * period
                if self._steps_wanted:
                    count, self._steps_wanted = self._steps_wanted, 0
                if count:
                    self._pull()
                    step(count)
                else:
                    time.sleep(min(period, 1.0 / FRAME_RATE))

    def sync(self) -> None:
        """Let the buttons act on a loop of one's own: do what was asked for, and wait while it is paused.

        Call it once per iteration. It returns at once while the viewer plays, or has been closed.
        """
        self._attend()
        while not self.is_playing and self.is_running and not self._steps_wanted:
            time.sleep(1.0 / FRAME_RATE)
            self._attend()
        self._steps_wanted = max(0, self._steps_wanted - 1)
        self._pull()

    def save_html(self, path: Any) -> None:
        """Write what is shown now as one page that needs nothing else: turn it in any browser.

        Raises:
            OSError: If the file cannot be written.
        """
        from pluriverse.files import replace_file

        text = self.server.get_scene_serializer().as_html()
        with replace_file(path) as part:
            part.write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Stop drawing and listening. The simulation goes on."""
        if self._closed.is_set():
            return
        self._closed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)
        if self.pull is not None:
            self.pull.release()
        self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" style="width: 100%; height: 500px; border: 0"></iframe>'

    @contextlib.contextmanager
    def changing(self) -> Iterator[Stage]:
        """Yield what is drawn, while nobody else draws."""
        with self._lock:
            yield self.stage

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
        """Draw what the simulation is, again and again."""
        refreshed, counted, steps = 0.0, time.monotonic(), self.simulation.step_count
        while not self._closed.wait(1.0 / FRAME_RATE):
            now = time.monotonic()
            with self._lock:
                if now - refreshed > 1.0 / REFRESH_RATE:
                    self.stage.refresh()
                    refreshed = now
                self._draw(moment_of(self.simulation))
            if now - counted > 0.5:
                count = self.simulation.step_count
                self._step_rate = max(0.0, (count - steps) / (now - counted))
                counted, steps = now, count

    def _draw(self, moment: Moment) -> None:
        self.history.keep(moment)
        with self.server.atomic():
            self.stage.update(moment)
        self.panel.update(moment)

    def _aim_camera(self) -> None:
        """Look at the shown worlds from the front left, from as far as they are large."""
        body_q = self.simulation.state.body_q.numpy().reshape(-1, 7)
        bodies = np.flatnonzero(np.isin(self.simulation.model.body_world.numpy(), self.stage.worlds))
        if self.simulation.model.world_count == 1:
            bodies = np.arange(len(body_q))
        place = np.full(self.simulation.model.world_count + 1, 0)
        place[self.stage.worlds] = np.arange(len(self.stage.worlds))
        world = np.maximum(self.simulation.model.body_world.numpy()[bodies], 0)
        points = body_q[bodies, :3] + self.stage.offsets[place[world]] if len(bodies) else np.zeros((1, 3))
        points = points[np.isfinite(points).all(axis=1)]
        if not len(points):
            points = np.zeros((1, 3))
        centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
        reach = max(1.0, 1.15 * float(np.linalg.norm(points - centre, axis=1).max()))
        camera = self.server.initial_camera
        camera.look_at = tuple(centre)
        camera.position = tuple(centre + reach * np.array([1.0, 0.9, 0.6]))


def view(simulation: Any, worlds: Any = None, **options: Any) -> BrowserViewer:
    """Show a simulation in a browser while it goes on; the options are those of `BrowserViewer`."""
    return BrowserViewer(simulation, worlds, **options)


def _light(scene: Any) -> None:
    """Light the scene as outdoors: a sun from the left, and the sky, so that colours keep their hues."""
    scene.configure_default_lights(enabled=False)
    scene.configure_environment_map(hdri=None)
    scene.add_light_hemisphere(
        "/light/sky", sky_color=(255, 255, 255), ground_color=(120, 120, 115), intensity=1.6
    )
    scene.add_light_directional("/light/sun", color=(255, 247, 235), intensity=2.2, position=(3.0, 4.0, 8.0))


def free_port(host: str, port: int | None) -> int:
    """Return a port to listen on: the one asked for, or the first free one from 8080 on.

    Raises:
        OSError: If it is taken, or none is free.
        ValueError: If it is no port.
    """
    if port is not None and (not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536):
        raise ValueError(
            f"BrowserViewer: port is {port!r}, but must be a whole number from 1 to 65535, or None."
        )
    for candidate in [port] if port is not None else range(PORT_FIRST, PORT_FIRST + PORT_COUNT):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError as error:
                if port is not None:
                    raise OSError(
                        f"BrowserViewer: port {port} of {host} cannot be had: {error.strerror}. Name another "
                        "port, or "
                        "none to get a free one."
                    ) from error
                continue
        return candidate
    raise OSError(
        f"BrowserViewer: no port from {PORT_FIRST} to {PORT_FIRST + PORT_COUNT - 1} of {host} is free."
    )


def _shown(simulation: Any, worlds: Any, count: int) -> np.ndarray:
    """Return the worlds, or environments, to show."""
    if count == simulation.model.world_count:
        return shown_worlds(simulation.model, worlds, "BrowserViewer")
    from types import SimpleNamespace

    counted: Any = SimpleNamespace(world_count=count)  # environments of prepared worlds
    return shown_worlds(counted, worlds, "BrowserViewer")
