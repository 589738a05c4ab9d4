"""Viewer for loops of one's own that shows what they log in the browser, while they run."""

import math
import time
import warnings
from typing import Any

import numpy as np

from pluriverse.model import Contacts, Model, State
from pluriverse.recording.moment import ContactPoints
from pluriverse.types import Axis
from pluriverse.viewer.live_panel import LivePanel
from pluriverse.viewer.loop_viewers import LoopScene, aimed_along
from pluriverse.viewer.null_viewer import ViewerNull
from pluriverse.viewer.pull import Pull
from pluriverse.viewer.source import LiveSource, Source
from pluriverse.viewer.viewer import BrowserViewer
from pluriverse.warnings import PluriverseWarning

# Time between frames that a script does not say [s].
FRAME_TIME = 1.0 / 60.0
# Pause between two looks at the buttons while paused [s].
PAUSE_TIME = 1.0 / 30.0
# Delay behind the clock from which it is given up to catch up [s].
LATE = 0.1
# Length of a camera's line of sight [m]: the point that the mouse turns the view about.
SIGHT = 3.0
_WHITE = (230, 230, 230)


class _LiveScene(LoopScene):
    """What the browser's view asks a simulation for; the loop makes the steps itself."""

    def step(self, count: int = 1) -> None:
        """Refuse: only the loop can step."""
        raise RuntimeError("ViewerViser: a loop of one's own makes its steps itself.")


class _LoopPull(Pull):
    """A spring whose force comes on top of those of the loop, which clears them before each step."""

    def _exert(self, force: np.ndarray) -> None:
        row = self._simulation.state.body_f[self.body : self.body + 1]
        row.assign(row.numpy() + force.reshape(1, 6))


class _LoopSource(LiveSource):
    """The state that a loop logged last."""

    def contacts(self, worlds: np.ndarray) -> ContactPoints:
        """Return the contacts of worlds that were logged last; none if there were none."""
        if self._simulation.contacts is None:
            return ContactPoints(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
        return super().contacts(worlds)


class _LoopPanel(LivePanel):
    """Controls of a loop: it cannot be reset from here, and its joints and targets are its own."""

    def _add_ending(self) -> None:
        pass

    def _add_world_controls(self) -> None:
        self._pull = self._gui.add_dropdown(
            "Pull", ["nothing", *self._body_names()], hint="Or hold Ctrl and drag a body with the mouse."
        )

        @self._pull.on_update
        def _(_: Any) -> None:
            self._begin_pull(self._pull.value)

    def _make_sliders(self) -> None:
        pass


class _LoopWindow(BrowserViewer):
    """The browser's view of a loop."""

    def _make_source(self, simulation: Any) -> Source:
        return _LoopSource(simulation)

    def _make_panel(self) -> LivePanel:
        return _LoopPanel(self)

    def attend(self) -> bool:
        """Carry out what was requested; return whether the loop is to make a step."""
        self._attend()
        return self.is_playing or self._take_steps(1) > 0

    def exert(self) -> None:
        """Add the force of the spring, if any, to the state of the scene."""
        self._pull()

    def _make_pull(self, body: int, point: np.ndarray | None) -> Pull:
        return _LoopPull(self.simulation, body, point)


class ViewerViser(ViewerNull):
    """Shows a loop in the browser while it runs, on Viser.

    The loop is that of `ViewerNull`. It runs at most in real time, as far as the times of `begin_frame` say;
    the speed can be changed in the browser. Pause and single steps act on loops that ask `should_step`, the
    pull of the mouse on loops that call `apply_forces`. To show a `Simulation`, use `BrowserViewer`.

    Args:
        port: Port to listen on; a free one from 8080 on if None.
        host: Address to listen on; "0.0.0.0" for other machines, too.
        num_frames: Frames after which `is_running` is false; None for no end.
        paused: Whether to begin with a pause.
        verbose: Whether to print the address.

    Raises:
        ImportError: If Viser is not installed, at the first state.
        OSError: If the port is taken, at the first state.
        ValueError: If `num_frames` is negative.
    """

    def __init__(
        self,
        port: int | None = None,
        host: str = "127.0.0.1",
        num_frames: int | None = None,
        paused: bool = False,
        verbose: bool = True,
    ) -> None:
        super().__init__(0 if num_frames is None else num_frames)
        self.num_frames = math.inf if num_frames is None else num_frames
        self._port, self._host = port, host
        self._paused, self._verbose = paused, verbose
        self.window: _LoopWindow | None = None
        """The browser's view, from the first state on: its `server` takes drawings of one's own."""
        self._scene: _LiveScene | None = None
        self._worlds: Any = None
        self._camera: tuple[np.ndarray, float, float] | None = None
        self._clock: tuple[float, float] | None = None
        self._told: set[str] = set()

    @property
    def url(self) -> str | None:
        """Address to open in a browser; None before the first state."""
        return None if self.window is None else self.window.url

    def set_model(self, model: Model | None) -> None:
        """Store the model; the view of another one is closed."""
        if self.window is not None and model is not self.model:
            self.window.close()
            self.window = self._scene = None
        super().set_model(model)

    def is_running(self) -> bool:
        """Return whether there are frames left and the viewer has not been closed."""
        return super().is_running() and (self.window is None or self.window.is_running)

    def is_paused(self) -> bool:
        """Return whether the loop is paused."""
        return self._paused if self.window is None else not self.window.is_playing

    def should_step(self) -> bool:
        """Return whether the loop is to make a step now: not while paused, but for single steps."""
        if self.window is None:
            return True  # the first state is needed to show anything
        return self.window.attend()

    def begin_frame(self, time: float) -> None:
        """Begin a frame at a time of the simulation [s]."""
        if self._scene is not None and time > self.time:
            self._scene.dt = time - self.time
        super().begin_frame(time)

    def log_state(self, state: State) -> None:
        """Show a state.

        Raises:
            RuntimeError: If no model was set.
        """
        if self.model is None:
            raise RuntimeError("ViewerViser: no model was set. Call set_model(model) first.")
        if self._scene is None:
            self._scene = _LiveScene(self.model, FRAME_TIME)
        self._scene.state = state
        if self.window is None:
            self._open()

    def log_contacts(self, contacts: Contacts, state: State) -> None:
        """Show contacts with their forces in the last step, where the browser asks for them."""
        if self._scene is not None:
            self._scene.contacts = contacts

    def apply_forces(self, state: State) -> None:
        """Add the force with which the mouse pulls a body to `state.body_f`."""
        if self.window is None or self._scene is None:
            return
        self._scene.state = state
        self.window.exert()

    def end_frame(self) -> None:
        """End a frame; wait for the clock where the loop is faster than it, and while paused."""
        super().end_frame()
        if self._scene is None or self.window is None:
            return
        self._scene.time, self._scene.step_count = self.time, self.frame_count
        if not self.window.is_playing:
            self._clock = None
            time.sleep(PAUSE_TIME)
            return
        now = time.monotonic()
        if self._clock is not None:
            last_time, due = self._clock
            due += max(self.time - last_time, 0.0) / self.window.speed
            if due > now:
                time.sleep(min(due - now, 1.0))
            elif now - due > LATE:
                due = now
            self._clock = self.time, due
        else:
            self._clock = self.time, now

    def set_camera(self, pos: Any, pitch: float, yaw: float) -> None:
        """Place the camera.

        Args:
            pos: Position [m].
            pitch: Angle above the horizon [degree].
            yaw: Angle about the up axis [degree]; at 0 it looks along x (along z where x points up).
        """
        self._camera = np.array([float(part) for part in pos]), float(pitch), float(yaw)
        self._aim()

    def set_visible_worlds(self, worlds: Any) -> None:
        """Choose the worlds to show; some of all if None.

        Raises:
            IndexError: If there is no such world; at the first state if there is none yet.
        """
        self._worlds = None if worlds is None else [int(world) for world in worlds]
        if self.window is not None:
            self.window.show(self._worlds)

    def log_lines(
        self, name: str, starts: Any, ends: Any, colors: Any = None, width: float = 0.01, hidden: bool = False
    ) -> None:
        """Draw line segments in world axes until a call of the same name replaces or removes them.

        Args:
            name: Name of the drawing.
            starts: Starts [m], shape [line, 3]; None removes them.
            ends: Ends [m], of the same shape.
            colors: Colour of each line, or of all, of components from 0 to 1; white if None.
            width: Makes no difference: lines are two pixels wide.
            hidden: Whether to remove the drawing.
        """
        path = f"/logged/{name.strip('/')}"
        first = _rows(starts)
        if self._is_removed(path, first, hidden) or self.window is None:
            return
        points = np.stack([first, _rows(ends)], axis=1).astype(np.float32)
        shades = np.repeat(_shades(colors, len(first))[:, None], 2, axis=1)
        self.window.server.scene.add_line_segments(
            path, points, shades, thickness=2.0, thickness_units="screen"
        )

    log_arrows = log_lines

    def log_points(
        self, name: str, points: Any, radii: Any = None, colors: Any = None, hidden: bool = False
    ) -> None:
        """Draw points in world axes until a call of the same name replaces or removes them.

        Args:
            name: Name of the drawing.
            points: Positions [m], shape [point, 3]; None removes them.
            radii: Radius of each point, or of all [m]; the largest is drawn; 0.01 if None.
            colors: Colour of each point, or of all, of components from 0 to 1; white if None.
            hidden: Whether to remove the drawing.
        """
        path = f"/logged/{name.strip('/')}"
        rows = _rows(points)
        if self._is_removed(path, rows, hidden) or self.window is None:
            return
        size = 0.01 if radii is None else float(np.max(radii.numpy() if hasattr(radii, "numpy") else radii))
        self.window.server.scene.add_point_cloud(
            path, rows.astype(np.float32), _shades(colors, len(rows)), point_size=size
        )

    def _log_other(self, name: str, *data: Any, **options: Any) -> None:
        """Draw nothing, and say so once."""
        if name not in self._told:
            self._told.add(name)
            warnings.warn(
                f"ViewerViser: '{name}' is not drawn. Shapes of the model, log_lines, log_arrows and "
                "log_points are; add other drawings to viewer.window.server.",
                PluriverseWarning,
                stacklevel=2,
            )

    log_mesh = log_instances = log_shapes = log_capsules = log_image = log_array = log_scalar = _log_other
    log_gizmo = log_gaussian = log_geo = log_wireframe_shape = log_hydro_contact_surface = _log_other

    def register_ui_callback(self, callback: Any, position: str = "side") -> None:
        """Do nothing but warn: callbacks draw with another library."""
        warnings.warn(
            "ViewerViser: callbacks of a user interface are never called. Add controls of Viser to "
            "viewer.window.server.gui.",
            PluriverseWarning,
            stacklevel=2,
        )

    def close(self) -> None:
        """End the loop and stop listening."""
        super().close()
        if self.window is not None:
            self.window.close()

    def _open(self) -> None:
        self.window = _LoopWindow(
            self._scene, self._worlds, host=self._host, port=self._port, verbose=self._verbose
        )
        self.window.is_playing = not self._paused
        self._aim()

    def _aim(self) -> None:
        if self.window is None or self._camera is None:
            return
        position, pitch, yaw = self._camera
        up = Axis.Z if self.model is None else self.model.up_axis
        target = position + SIGHT * aimed_along(up, pitch, yaw)
        server = self.window.server
        for camera in (server.initial_camera, *(client.camera for client in server.get_clients().values())):
            camera.position, camera.look_at = tuple(position.tolist()), tuple(target.tolist())

    def _is_removed(self, path: str, rows: np.ndarray, hidden: bool) -> bool:
        """Return whether there is nothing to draw, and remove what was drawn."""
        if len(rows) and not hidden:
            return False
        if self.window is not None:
            self.window.server.scene.remove_by_name(path)
        return True


def _rows(points: Any) -> np.ndarray:
    """Return points as an array of shape [point, 3]."""
    if points is None:
        return np.zeros((0, 3))
    return np.asarray(points.numpy() if hasattr(points, "numpy") else points, dtype=np.float64).reshape(-1, 3)


def _shades(colors: Any, count: int) -> np.ndarray:
    """Return colours as numbers from 0 to 255, shape [count, 3]."""
    if colors is None:
        return np.tile(np.array(_WHITE, dtype=np.uint8), (count, 1))
    rows = np.atleast_2d(_rows(colors))
    return (255.0 * np.clip(np.broadcast_to(rows, (count, 3)), 0.0, 1.0)).astype(np.uint8)
