"""Viewer calls: a viewer without a window, so that scripts run headless and come to an end, or with one.

The window is a page in a browser. What one without a window would show can be written to a file.
"""

import enum
import os
import time
import warnings
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from pluriverse.gymapi.arguments import as_int, vector
from pluriverse.gymapi.camera_records import quaternion_of, up_direction
from pluriverse.gymapi.enums import KeyboardInput, MouseInput
from pluriverse.gymapi.errors import GymWarning, require
from pluriverse.gymapi.image_files import write_image
from pluriverse.gymapi.preparation import PreparingCalls
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.structures import CameraProperties
from pluriverse.gymapi.values import Quat, Transform, Vec3

FRAME_BUDGET = 600
"""Frames after which a viewer counts as closed, where nothing else says."""
BUDGET_VARIABLE = "PLURIVERSE_GYM_FRAMES"
"""Environment variable with another number of frames."""
WINDOW_VARIABLE = "PLURIVERSE_GYM_VIEWER"
"""Environment variable that asks for a window in the browser by its value "browser"."""
LINE_RATE = 30.0
"""Times a second that lines are taken over into a window: to put them together costs as much as a frame."""


DEFAULT_POSITION = (6.0, 6.0, 4.0)
"""Where the camera is until a script moves it [m]."""
DEFAULT_TARGET = (0.0, 0.0, 0.5)
"""What it looks at until then [m]."""


LINE_COUNT_MAX = 100_000
"""Lines that a viewer keeps."""


class ViewerPoint(NamedTuple):
    """A point or size in the picture of a viewer."""

    x: float
    """To the right."""
    y: float
    """Down."""


class ActionEvent(NamedTuple):
    """Something that a script listens to has happened."""

    action: str
    """Name that the script gave it."""
    value: float
    """1 when a key goes down, 0 when it comes up."""


class Viewer:
    """A viewer. It is closed once its sim has made `frames` steps since it was created, or its window is.

    Args:
        sim: Its sim.
        frames: Frame budget; None for no end but that of the window.
        properties: Size of its pictures, and field of view.
        window_options: `host` and `port` of its window in the browser; None for none.
    """

    def __init__(
        self,
        sim: Sim,
        frames: int | None,
        properties: CameraProperties,
        window_options: dict[str, Any] | None = None,
    ):
        self.sim = sim
        self.size = ViewerPoint(int(properties.width), int(properties.height))
        self.frames = frames
        self.first_frame = sim.frame_count
        self.draw_count = 0
        self.position = np.array(DEFAULT_POSITION)
        """Where the camera is in the sim [m]."""
        self.target = np.array(DEFAULT_TARGET)
        """What it looks at [m]."""
        self.fov = 2.0 * float(
            np.arctan(np.tan(0.5 * np.radians(properties.horizontal_fov)) * self.size.y / self.size.x)
        )
        """Vertical field of view [rad]."""
        self.line_ends: deque[np.ndarray] = deque()
        """Ends of lines in the sim [m], each of shape [line, 2, 3]."""
        self.line_colors: deque[np.ndarray] = deque()
        """Their colours, each of shape [line, 3]."""
        self.line_count = 0
        """Number of lines."""
        self.renderer: Any = None
        """`pluriverse.gymapi.viewer_picture.ViewerRenderer`, once it was needed."""
        self.window_options = window_options
        """Arguments of its window, None if it has none."""
        self.window: Any = None
        """`pluriverse.gymapi.viewer_window.ActorWindow`, once the sim is prepared and drawn."""
        self.subscriptions: list[tuple[str, KeyboardInput]] = []
        """Actions and keys that the script listens to."""
        self.click_actions: list[str] = []
        """Actions of the left button of the mouse."""
        self._pressed: deque[str] = deque()
        self._released: list[str] = []
        self._lines_changed, self._lines_taken = False, 0.0

    def press(self, name: str) -> None:
        """Note that the key of an action was pressed. It comes up with the query after the next one."""
        self._pressed.append(name)

    def take_events(self) -> list[ActionEvent]:
        """Return what happened since the last call.

        A key that repeats, as one does that is kept down, stays down in between.
        """
        pressed = []
        while self._pressed:
            pressed.append(self._pressed.popleft())
        events = [ActionEvent(name, 0.0) for name in self._released if name not in pressed]
        self._released = list(dict.fromkeys(pressed))
        return events + [ActionEvent(name, 1.0) for name in self._released]

    def add_lines(self, ends: np.ndarray, colors: np.ndarray) -> None:
        """Draw lines [m], shape [line, 2, 3], in colours of shape [line, 3]; of very many the last."""
        self.line_ends.append(ends)
        self.line_colors.append(colors)
        self.line_count += len(ends)
        self._lines_changed = True
        while self.line_count > LINE_COUNT_MAX and len(self.line_ends) > 1:
            # A script that never clears would fill the memory.
            self.line_count -= len(self.line_ends.popleft())
            self.line_colors.popleft()

    def clear_lines(self) -> None:
        """Take all lines away."""
        self.line_ends.clear()
        self.line_colors.clear()
        self.line_count = 0
        self._lines_changed = True

    def take_lines(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return `lines` if they changed since the last call, and that was long enough ago; else None."""
        now = time.monotonic()
        if not self._lines_changed or now - self._lines_taken < 1.0 / LINE_RATE:
            return None
        self._lines_changed, self._lines_taken = False, now
        return self.lines

    def close(self) -> None:
        """Close the window, if there is one."""
        if self.window is not None:
            self.window.close()

    def keep_pace(self) -> None:
        """Wait until as much time has passed as was simulated, if somebody looks on in a window."""
        if self.window is not None and self.window.is_running:
            self.window.keep_pace()

    @property
    def lines(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of all lines [m], shape [line, 2, 3], and their colours, shape [line, 3]."""
        if not self.line_ends:
            return np.zeros((0, 2, 3)), np.zeros((0, 3))
        return np.concatenate(self.line_ends), np.concatenate(self.line_colors)

    @property
    def is_closed(self) -> bool:
        """Whether the budget is spent, in steps or in pictures, or the window was closed."""
        if self.window is not None and (self.window.is_unwanted or not self.window.is_running):
            return True
        frames = max(self.sim.frame_count - self.first_frame, self.draw_count)
        return self.frames is not None and frames >= self.frames


class ViewerCalls(PreparingCalls):
    """Graphics: without effect on physics, but for what the mouse pulls at in a window."""

    def create_viewer(
        self,
        sim: Any,
        properties: CameraProperties | None = None,
        *,
        frames: int | None = None,
        window: bool | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
    ) -> Viewer:
        """Return a viewer, without a window unless one is asked for.

        Args:
            sim: Sim.
            properties: Camera; its width and height are those of the viewer.
            frames: Steps after which `query_viewer_has_closed` is true: those of the environment variable
                PLURIVERSE_GYM_FRAMES if None. Without that, 600, or no end where there is a window.
            window: Whether to show the envs in a browser, from the first `draw_viewer` on that finds the sim
                prepared. None for a window if the environment variable PLURIVERSE_GYM_VIEWER is "browser".
            host: Address that the window listens on, as for `pluriverse.view`.
            port: Port that it listens on; a free one from 8080 on if None.

        Raises:
            ImportError: If a window is asked for and Viser is not installed.
        """
        found = self._sim(sim, "create_viewer")
        require(
            properties is None or isinstance(properties, CameraProperties),
            "create_viewer",
            f"properties is a {type(properties).__name__}, but must be a CameraProperties or None.",
        )
        has_window = _wants_window() if window is None else bool(window)
        if has_window:
            from pluriverse.viewer.extras import load_viser

            load_viser()  # says now rather than in the first picture that it is not installed
        budget = frames
        if budget is None and not (has_window and BUDGET_VARIABLE not in os.environ):
            text = os.environ.get(BUDGET_VARIABLE, str(FRAME_BUDGET))
            require(
                text.strip().isdigit(),
                "create_viewer",
                f"{BUDGET_VARIABLE} is {text!r}, but must be a number of frames.",
            )
            budget = int(text)
            if BUDGET_VARIABLE not in os.environ:
                warnings.warn(
                    f"create_viewer: there is no window; the viewer closes after {FRAME_BUDGET} frames. Set "
                    f"{BUDGET_VARIABLE} for another number, or {WINDOW_VARIABLE}=browser for a window.",
                    GymWarning,
                    stacklevel=2,
                )
        if budget is not None:
            require(
                as_int(budget, "frames", "create_viewer") >= 1,
                "create_viewer",
                f"frames is {budget!r}, but must be at least 1.",
            )
            budget = int(budget)
        camera = CameraProperties() if properties is None else properties
        viewer = Viewer(found, budget, camera, {"host": host, "port": port} if has_window else None)
        found.viewers.append(viewer)
        return viewer

    def query_viewer_has_closed(self, viewer: Any) -> bool:
        """Return whether the frame budget is spent, or the window was closed."""
        return self._viewer(viewer, "query_viewer_has_closed").is_closed

    def draw_viewer(self, viewer: Any, sim: Any, render_collision: bool = True) -> None:
        """Count a picture, and show the envs in the window, if there is one. Waits while that is paused.

        Raises:
            OSError: If the port of the window is taken.
        """
        found = self._viewer(viewer, "draw_viewer")
        found.draw_count += 1
        runtime = found.sim.runtime
        if found.window_options is None or runtime is None or (found.window and not found.window.is_running):
            return  # before the sim is prepared there is nothing to see yet
        runtime.update_body_poses()
        if found.window is None:
            # Both load what draws.
            from pluriverse.gymapi.cameras import camera_set
            from pluriverse.gymapi.viewer_window import ActorWindow

            found.window = ActorWindow(found, camera_set(found.sim).shapes, **found.window_options)
        found.window.present(found.take_lines())

    def destroy_viewer(self, viewer: Any) -> None:
        """Close the window of a viewer, if it has one."""
        self._viewer(viewer, "destroy_viewer").close()

    def step_graphics(self, sim: Any) -> None:
        """Accept a sim."""
        self._sim(sim, "step_graphics")

    def sync_frame_time(self, sim: Any) -> None:
        """Wait until as much time has passed as was simulated, if somebody looks on in a window."""
        for viewer in self._sim(sim, "sync_frame_time").viewers:
            viewer.keep_pace()

    def poll_viewer_events(self, viewer: Any) -> None:
        """Accept a viewer."""
        self._viewer(viewer, "poll_viewer_events")

    def viewer_camera_look_at(self, viewer: Any, env: Any, position: Vec3, target: Vec3) -> None:
        """Put the camera somewhere, looking at a point [m]: both in an env, or in the sim if it is None."""
        call = "viewer_camera_look_at"
        found = self._viewer(viewer, call)
        origin = np.zeros(3) if env is None else self._env(env, call).origin
        eye, point = (
            origin + np.array(list(vector(value, what, call)), dtype=np.float64)
            for value, what in ((position, "position"), (target, "target"))
        )
        require(
            bool(
                np.isfinite(eye).all() and np.isfinite(point).all() and np.linalg.norm(point - eye) > 1.0e-9
            ),
            call,
            f"position is {position!r} and target {target!r}, but both must be finite, and apart.",
        )
        found.position, found.target = eye, point
        if found.window is not None and found.window.is_running:
            found.window.aim()

    def get_viewer_camera_transform(self, viewer: Any, env: Any = None) -> Transform:
        """Return where the camera is, in an env or in the sim if it is None. It looks along its z axis.

        In a window it is where whoever looks on has turned it.
        """
        call = "get_viewer_camera_transform"
        found = self._viewer(viewer, call)
        origin = np.zeros(3) if env is None else self._env(env, call).origin
        eye, target = found.position, found.target
        client_camera = (
            None if found.window is None or not found.window.is_running else found.window.seen_camera
        )
        if client_camera is not None:
            eye, target = (
                np.array(client_camera.position, dtype=float),
                np.array(client_camera.look_at, dtype=float),
            )
        forward = (target - eye) / max(float(np.linalg.norm(target - eye)), 1.0e-9)
        left = np.cross(up_direction(found.sim), forward)
        if np.linalg.norm(left) < 1.0e-6:  # straight up or down
            left = np.cross((1.0, 0.0, 0.0), forward)
        left /= np.linalg.norm(left)
        rotation = np.stack([left, np.cross(forward, left), forward], axis=1)
        return Transform(Vec3(*(eye - origin).tolist()), Quat(*quaternion_of(rotation).tolist()))

    def subscribe_viewer_keyboard_event(self, viewer: Any, key: KeyboardInput | int, name: str) -> None:
        """Listen to a key of the window, which has a button for it too; without a window it is never pressed.

        Raises:
            ValueError: If there is no such key.
        """
        found = self._viewer(viewer, "subscribe_viewer_keyboard_event")
        known = _member(KeyboardInput, key, "key", "subscribe_viewer_keyboard_event")
        found.subscriptions.append((str(name), known))
        if found.window is not None and found.window.is_running:
            found.window.listen(str(name), known)

    def subscribe_viewer_mouse_event(self, viewer: Any, event: MouseInput | int, name: str) -> None:
        """Listen to a mouse event. Of a window there is the left button, which clicks; others never happen.

        Raises:
            ValueError: If there is no such event.
        """
        found = self._viewer(viewer, "subscribe_viewer_mouse_event")
        known = _member(MouseInput, event, "event", "subscribe_viewer_mouse_event")
        if known.name != "MOUSE_LEFT_BUTTON":
            return
        found.click_actions.append(str(name))
        if found.window is not None and found.window.is_running:
            found.window.listen_to_clicks()

    def query_viewer_action_events(self, viewer: Any) -> list[ActionEvent]:
        """Return the events since the last call: keys and clicks in the window, none without one."""
        return self._viewer(viewer, "query_viewer_action_events").take_events()

    def get_viewer_mouse_position(self, viewer: Any) -> ViewerPoint:
        """Return where the mouse was clicked last, relative to the size; the middle before that."""
        found = self._viewer(viewer, "get_viewer_mouse_position")
        clicked = None if found.window is None else found.window.mouse_position
        return ViewerPoint(0.5, 0.5) if clicked is None else ViewerPoint(*clicked)

    def get_viewer_size(self, viewer: Any) -> ViewerPoint:
        """Return width and height [pixels]: of the browser, else those that the viewer was created with."""
        found = self._viewer(viewer, "get_viewer_size")
        client_camera = (
            None if found.window is None or not found.window.is_running else found.window.seen_camera
        )
        return (
            found.size
            if client_camera is None
            else ViewerPoint(client_camera.image_width, client_camera.image_height)
        )

    def add_lines(self, viewer: Any, env: Any, count: int, vertices: Any, colors: Any) -> None:
        """Draw lines until `clear_lines`; of very many the last 100,000.

        Args:
            viewer: The viewer.
            env: Env in whose frame the lines are; None for that of the sim.
            count: Number of lines.
            vertices: Two ends per line [m]: numbers of any shape, or `gymapi.Vec3.dtype`.
            colors: Red, green and blue of each line, from 0 to 1.
        """
        found = self._viewer(viewer, "add_lines")
        number = as_int(count, "count", "add_lines")
        origin = np.zeros(3) if env is None else self._env(env, "add_lines").origin
        ends = _numbers(vertices, "vertices", 6 * number, f"{count} lines")
        shades = _numbers(colors, "colors", 3 * number, f"{count} lines")
        found.add_lines(origin + ends.reshape(-1, 2, 3), shades.reshape(-1, 3))

    def clear_lines(self, viewer: Any) -> None:
        """Take all lines away."""
        self._viewer(viewer, "clear_lines").clear_lines()

    def draw_env_rigid_contacts(
        self, viewer: Any, env: Any, color: Vec3, scale: float, sqrt_scale: bool
    ) -> None:
        """Accept what to draw."""
        self._viewer(viewer, "draw_env_rigid_contacts")
        self._env(env, "draw_env_rigid_contacts")

    def draw_env_soft_contacts(self, viewer: Any, env: Any, *_: Any) -> None:
        """Accept what to draw."""
        self._viewer(viewer, "draw_env_soft_contacts")

    def write_viewer_image_to_file(self, viewer: Any, filename: str) -> None:
        """Write a picture of the envs next to what is looked at to a file, PNG by default.

        Raises:
            FileNotFoundError: If there is no such folder.
            ValueError: If the name is that of no format of pictures.
        """
        call = "write_viewer_image_to_file"
        found = self._viewer(viewer, call)
        self._runtime(found.sim, call).update_body_poses()
        if found.renderer is None:
            # They load the ray caster.
            from pluriverse.gymapi.cameras import camera_set
            from pluriverse.gymapi.viewer_picture import ViewerRenderer
            from pluriverse.render import SeenGeometry

            found.renderer = ViewerRenderer(found.sim, camera_set(found.sim).shapes(SeenGeometry.VISUAL))
        size = (int(found.size.x), int(found.size.y))
        picture = found.renderer.picture(found.position, found.target, size, found.fov, found.lines)
        write_image(call, filename, picture)

    def _viewer(self, viewer: Any, call: str) -> Viewer:
        if not isinstance(viewer, Viewer):
            raise TypeError(f"{call}: viewer is {viewer!r}, but must be what create_viewer() returned.")
        return viewer


def _wants_window() -> bool:
    """Return whether the environment asks for a window."""
    text = os.environ.get(WINDOW_VARIABLE, "").strip().lower()
    require(
        text in ("", "none", "browser"),
        "create_viewer",
        f"{WINDOW_VARIABLE} is {text!r}, but must be 'browser', or 'none' for no window.",
    )
    return text == "browser"


def _member(kind: type[enum.IntEnum], value: Any, what: str, call: str) -> Any:
    """Return a member of an enumeration."""
    try:
        return kind(int(value))
    except (TypeError, ValueError):
        raise ValueError(
            f"{call}: {what} is {value!r}, but must be one of gymapi.{kind.__name__}, such as "
            f"{next(iter(kind)).name}."
        ) from None


def _numbers(values: Any, what: str, count: int, reason: str) -> np.ndarray:
    """Return the first numbers of an array, of numbers or of vectors."""
    array = np.asarray(values.cpu() if hasattr(values, "cpu") else values)
    try:
        if array.dtype.names:
            array = array.view(np.float32)
        elif array.dtype == object:
            array = np.array([list(value) for value in array.ravel()])
        array = array.reshape(-1).astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"add_lines: {what} is {values!r}, which is not made of numbers.") from None
    require(array.size >= count, "add_lines", f"{what} has {array.size} numbers, but {reason} need {count}.")
    return array[:count]
