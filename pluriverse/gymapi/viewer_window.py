"""Viewer window: the envs of a sim in a browser, at their places, with keys and lines of the script."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pluriverse.gymapi.camera_records import up_direction
from pluriverse.gymapi.drawn_shapes import DrawnShapes
from pluriverse.gymapi.enums import KeyboardInput
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.viewer_picture import world_origins
from pluriverse.model import Model
from pluriverse.recording.moment import Moment
from pluriverse.render import SeenGeometry
from pluriverse.viewer import BrowserViewer
from pluriverse.viewer.live_panel import LivePanel
from pluriverse.viewer.pull import Pull
from pluriverse.viewer.source import LiveSource

# Worlds that are shown at most, those next to what is looked at: what browsers draw and networks carry.
WORLD_COUNT_MAX = 256
# Longest pause [s] by which a script is held back in one frame to keep the pace.
PACE_PAUSE_MAX = 0.25

# What the browser calls keys that are no letters or digits.
_KEY_NAMES = {
    **{
        name: name.lower()
        for name in ("SPACE", "ENTER", "ESCAPE", "TAB", "BACKSPACE", "INSERT", "HOME", "END")
    },
    **{name: "arrow" + name.lower() for name in ("UP", "DOWN", "LEFT", "RIGHT")},
    **{"DEL": "delete", "PAGE_UP": "pageup", "PAGE_DOWN": "pagedown"},
}


def browser_key(key: int) -> str | None:
    """Return what the browser calls a key of `KeyboardInput`; None for one that it does not report."""
    name = KeyboardInput(int(key)).name.removeprefix("KEY_")
    return name if len(name) == 1 else _KEY_NAMES.get(name)


class CurrentSimulation:
    """The simulation of a prepared sim, also after another one has taken its place.

    Args:
        sim: The sim.
    """

    def __init__(self, sim: Sim) -> None:
        self._sim = sim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sim.prepared.simulation, name)


class ActorSource(LiveSource):
    """A sim as it is now: its visual geometry, each env at its place.

    Args:
        sim: The sim, prepared.
        shapes: Returns the shapes of a kind of geometry.
    """

    def __init__(self, sim: Sim, shapes: Callable[[SeenGeometry], DrawnShapes]) -> None:
        super().__init__(CurrentSimulation(sim))
        self._sim, self._shapes = sim, shapes

    @property
    def geometries(self) -> tuple[SeenGeometry, ...]:
        """Those that have a model."""
        return (SeenGeometry.VISUAL, SeenGeometry.COLLISION)

    @property
    def up(self) -> tuple[float, float, float]:
        """The axis that points up in the sim."""
        return up_direction(self._sim)

    def drawn(self, geometry: SeenGeometry) -> Model:
        """Return the model of what files show, or of what collides."""
        return self._shapes(geometry).model

    def offsets(self, body_q: np.ndarray, worlds: np.ndarray) -> np.ndarray:
        """Return where worlds stand in the sim [m], shape [world, 3]."""
        return world_origins(self._sim)[worlds]


class ActorPull(Pull):
    """Pulls a body by a force that acts in the next `simulate`, next to those of the script.

    Args:
        sim: The sim.
        simulation: Its simulation.
        body: The body.
        point: Point that is pulled at [m], body frame; the centre of mass if None.
    """

    def __init__(self, sim: Sim, simulation: Any, body: int, point: np.ndarray | None) -> None:
        super().__init__(simulation, body, point)
        self._sim = sim
        row = int(sim.prepared.body_row.numpy()[body])
        self._row = row if row >= 0 else -2 - row
        self._frame = -1

    def _exert(self, force: np.ndarray) -> None:
        runtime = self._sim.runtime
        if runtime is None or self._frame == self._sim.frame_count or not force.any():
            return  # forces of a frame add up
        self._frame = self._sim.frame_count
        for array, part in ((runtime.applied_force, force[:3]), (runtime.applied_torque, force[3:])):
            entry = array[self._row : self._row + 1]
            entry.assign(entry.numpy() + part)
        runtime.has_applied = True


class ActorPanel(LivePanel):
    """Controls of a window: as those of other simulations, with the keys of the script.

    Args:
        viewer: The window.
    """

    def _add_ending(self) -> None:
        close = self._gui.add_button(
            "Close", hint="Let query_viewer_has_closed() be true, which ends the script."
        )

        @close.on_click
        def _(_: Any) -> None:
            self._viewer.ask_to_close()

    def add_action(self, name: str, key: str | None, shown: str, press: Callable[[], None]) -> None:
        """Add a button for what a script listens to, and its key."""
        if not hasattr(self, "_actions"):
            self._actions = self._gui.add_folder("Keys of the script")
        with self._actions:
            button = self._gui.add_button(f"{name}  ({shown})")
        button.on_click(lambda _: press())
        if key is not None:
            self._gui.add_command(name, hotkey=key).on_trigger(lambda _: press())


class ActorWindow(BrowserViewer):
    """Shows the envs of a sim in a browser.

    Args:
        viewer: `pluriverse.gymapi.Viewer` of the script.
        shapes: Returns the shapes of a kind of geometry.
        options: `host` and `port`, as those of `BrowserViewer`.

    Raises:
        ImportError: If Viser is not installed.
        OSError: If the port is taken.
    """

    def __init__(self, viewer: Any, shapes: Callable[[SeenGeometry], DrawnShapes], **options: Any) -> None:
        self._viewer, self._sim, self._shapes = viewer, viewer.sim, shapes
        self.is_unwanted = False
        """Whether somebody asked to close it."""
        self._lines: tuple[np.ndarray, np.ndarray] | None = None
        self._drawn_lines: Any = None
        self._pace = (time.monotonic(), viewer.sim.time)
        self._lines_lock = threading.Lock()
        super().__init__(CurrentSimulation(viewer.sim), self._near_worlds(), **options)
        for name, key in viewer.subscriptions:
            self.listen(name, key)
        if viewer.click_actions:
            self.listen_to_clicks()

    @property
    def mouse_position(self) -> tuple[float, float] | None:
        """Where the mouse was clicked last, relative to the size of the window; None before."""
        return getattr(self, "_mouse", None)

    @property
    def seen_camera(self) -> Any:
        """Camera of a browser that is connected, None without."""
        clients = list(self.server.get_clients().values())
        return clients[-1].camera if clients else None

    def ask_to_close(self) -> None:
        """Tell the script that the window was closed."""
        self.is_unwanted, self.is_playing = True, True  # a script that is held must go on to see it

    def aim(self) -> None:
        """Move the camera of all browsers."""
        self._aim_camera()
        for client in self.server.get_clients().values():
            with client.atomic():
                client.camera.position = tuple(self._viewer.position.tolist())
                client.camera.look_at = tuple(self._viewer.target.tolist())
        near = self._near_worlds()
        if not np.array_equal(near, self.stage.environments) and len(near) == WORLD_COUNT_MAX:
            with self._lock:
                self.stage.choose(near)

    def listen(self, name: str, key: int) -> None:
        """Tell the script of a key."""
        shown = KeyboardInput(int(key)).name.removeprefix("KEY_").replace("_", " ").capitalize()
        self.panel.add_action(name, browser_key(key), shown, lambda: self._viewer.press(name))

    def listen_to_clicks(self) -> None:
        """Tell the script of clicks into the scene."""
        if hasattr(self, "_mouse"):
            return
        self._mouse: tuple[float, float] | None = None

        @self.server.scene.on_click()
        def _(event: Any) -> None:
            self._mouse = float(event.screen_pos[0]), float(event.screen_pos[1])
            for name in list(self._viewer.click_actions):
                self._viewer.press(name)

    def present(self, lines: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Show the state of now with lines (those of before if None); hold the script while it is paused.

        Args:
            lines: Ends [m], shape [line, 2, 3], and colours from 0 to 1, shape [line, 3].
        """
        if lines is not None:
            with self._lines_lock:
                self._lines = lines
        self.sync()

    def keep_pace(self) -> None:
        """Wait until as much time has passed as was simulated since the last call."""
        wall, simulated = self._pace
        due = wall + (self._sim.time - simulated) / self.speed
        now = time.monotonic()
        if due - now > 0.0:
            time.sleep(min(due - now, PACE_PAUSE_MAX))
        # What is late is not made up for: a script that loads for a while would race afterwards.
        self._pace = (max(due, now) if due - now < PACE_PAUSE_MAX else time.monotonic(), self._sim.time)

    def _near_worlds(self) -> np.ndarray:
        distance = np.linalg.norm(world_origins(self._sim) - self._viewer.target, axis=1)
        return np.sort(np.argsort(distance, kind="stable")[:WORLD_COUNT_MAX])

    def _make_source(self, simulation: Any) -> ActorSource:
        return ActorSource(self._sim, self._shapes)

    def _make_panel(self) -> ActorPanel:
        return ActorPanel(self)

    def _make_pull(self, body: int, point: np.ndarray | None) -> ActorPull:
        return ActorPull(self._sim, self.simulation, body, point)

    def _draw(self, moment: Moment) -> None:
        super()._draw(moment)
        with self._lines_lock:
            lines, self._lines = self._lines, None
        if lines is not None:
            self._draw_lines(*lines)

    def _draw_lines(self, ends: np.ndarray, colors: np.ndarray) -> None:
        sound = np.isfinite(ends).all(axis=(1, 2))
        points = ends[sound].astype(np.float32)
        shades = np.clip(255.0 * np.nan_to_num(colors[sound]), 0.0, 255.0).astype(np.uint8)
        if self._drawn_lines is not None:
            self._drawn_lines.remove()
            self._drawn_lines = None
        if len(points):
            self._drawn_lines = self.server.scene.add_line_segments(
                "/lines",
                points,
                np.repeat(shades[:, None], 2, axis=1),
                thickness=2.0,
                thickness_units="screen",
            )

    def _aim_camera(self) -> None:
        camera = self.server.initial_camera
        camera.position = tuple(self._viewer.position.tolist())
        camera.look_at = tuple(self._viewer.target.tolist())
        camera.fov = self._viewer.fov
