"""Viewer calls: a viewer without a window, so that scripts run headless and come to an end.

What it would show can be written to a file.
"""

import os
import warnings
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from pluriverse.gymapi.arguments import as_int, vector
from pluriverse.gymapi.camera_records import quaternion_of, up_direction
from pluriverse.gymapi.checks import Checks
from pluriverse.gymapi.enums import KeyboardInput
from pluriverse.gymapi.errors import GymWarning, require
from pluriverse.gymapi.image_files import write_image
from pluriverse.gymapi.structures import CameraProperties
from pluriverse.gymapi.values import Quat, Transform, Vec3

FRAME_BUDGET = 600
"""Frames after which a viewer counts as closed, where nothing else says."""
BUDGET_VARIABLE = "PLURIVERSE_GYM_FRAMES"
"""Environment variable with another number of frames."""


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


class Viewer:
    """A viewer without a window. It is closed once its sim has made `frames` steps since it was created.

    Args:
        sim: Its sim.
        frames: Frame budget.
        properties: Size of its pictures, and field of view.
    """

    def __init__(self, sim: Any, frames: int, properties: CameraProperties):
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

    @property
    def lines(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of all lines [m], shape [line, 2, 3], and their colours, shape [line, 3]."""
        if not self.line_ends:
            return np.zeros((0, 2, 3)), np.zeros((0, 3))
        return np.concatenate(self.line_ends), np.concatenate(self.line_colors)

    @property
    def is_closed(self) -> bool:
        """Whether the budget is spent, in steps or in pictures."""
        return max(self.sim.frame_count - self.first_frame, self.draw_count) >= self.frames


class ViewerCalls(Checks):
    """Graphics: accepted, without effect on physics."""

    def create_viewer(
        self, sim: Any, properties: CameraProperties | None = None, *, frames: int | None = None
    ) -> Viewer:
        """Return a viewer without a window.

        Args:
            sim: Sim.
            properties: Camera; its width and height are those of the viewer.
            frames: Steps after which `query_viewer_has_closed` is true: those of the environment variable
                PLURIVERSE_GYM_FRAMES if None, or 600.
        """
        found = self._sim(sim, "create_viewer")
        require(
            properties is None or isinstance(properties, CameraProperties),
            "create_viewer",
            f"properties is a {type(properties).__name__}, but must be a CameraProperties or None.",
        )
        budget = frames
        if budget is None:
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
                    f"{BUDGET_VARIABLE} for another number.",
                    GymWarning,
                    stacklevel=2,
                )
        require(
            as_int(budget, "frames", "create_viewer") >= 1,
            "create_viewer",
            f"frames is {budget!r}, but must be at least 1.",
        )
        return Viewer(found, int(budget), CameraProperties() if properties is None else properties)

    def query_viewer_has_closed(self, viewer: Any) -> bool:
        """Return whether the frame budget is spent."""
        return self._viewer(viewer, "query_viewer_has_closed").is_closed

    def draw_viewer(self, viewer: Any, sim: Any, render_collision: bool = True) -> None:
        """Count a picture."""
        self._viewer(viewer, "draw_viewer").draw_count += 1

    def destroy_viewer(self, viewer: Any) -> None:
        """Accept a viewer."""
        self._viewer(viewer, "destroy_viewer")

    def step_graphics(self, sim: Any) -> None:
        """Accept a sim."""
        self._sim(sim, "step_graphics")

    def sync_frame_time(self, sim: Any) -> None:
        """Accept a sim; there is nobody to keep pace for."""
        self._sim(sim, "sync_frame_time")

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

    def get_viewer_camera_transform(self, viewer: Any, env: Any = None) -> Transform:
        """Return where the camera is, in an env or in the sim if it is None. It looks along its z axis."""
        call = "get_viewer_camera_transform"
        found = self._viewer(viewer, call)
        origin = np.zeros(3) if env is None else self._env(env, call).origin
        forward = (found.target - found.position) / np.linalg.norm(found.target - found.position)
        left = np.cross(up_direction(found.sim), forward)
        if np.linalg.norm(left) < 1.0e-6:  # straight up or down
            left = np.cross((1.0, 0.0, 0.0), forward)
        left /= np.linalg.norm(left)
        rotation = np.stack([left, np.cross(forward, left), forward], axis=1)
        return Transform(Vec3(*(found.position - origin).tolist()), Quat(*quaternion_of(rotation).tolist()))

    def subscribe_viewer_keyboard_event(self, viewer: Any, key: KeyboardInput | int, name: str) -> None:
        """Accept a key; it is never pressed."""
        self._viewer(viewer, "subscribe_viewer_keyboard_event")

    def subscribe_viewer_mouse_event(self, viewer: Any, event: Any, name: str) -> None:
        """Accept a mouse event; it never happens."""
        self._viewer(viewer, "subscribe_viewer_mouse_event")

    def query_viewer_action_events(self, viewer: Any) -> list[Any]:
        """Return no events."""
        self._viewer(viewer, "query_viewer_action_events")
        return []

    def get_viewer_mouse_position(self, viewer: Any) -> ViewerPoint:
        """Return the middle of the picture, relative to its size; there is no mouse."""
        self._viewer(viewer, "get_viewer_mouse_position")
        return ViewerPoint(0.5, 0.5)

    def get_viewer_size(self, viewer: Any) -> ViewerPoint:
        """Return width and height [pixels], those that the viewer was created with."""
        return self._viewer(viewer, "get_viewer_size").size

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
        found.line_ends.append(origin + ends.reshape(-1, 2, 3))
        found.line_colors.append(shades.reshape(-1, 3))
        found.line_count += number
        while found.line_count > LINE_COUNT_MAX and len(found.line_ends) > 1:
            # A script that never clears would fill the memory.
            found.line_count -= len(found.line_ends.popleft())
            found.line_colors.popleft()

    def clear_lines(self, viewer: Any) -> None:
        """Take all lines away."""
        found = self._viewer(viewer, "clear_lines")
        found.line_ends.clear()
        found.line_colors.clear()
        found.line_count = 0

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
        """Write a picture of the envs next to what is looked at, as they stand, to a file, PNG by default.

        Raises:
            FileNotFoundError: If there is no such folder.
            ValueError: If the name is that of no format of pictures.
        """
        call = "write_viewer_image_to_file"
        found = self._viewer(viewer, call)
        runtime = self._runtime(found.sim, call)  # type: ignore[attr-defined]  # of SimulationCalls
        runtime.place_bodies()
        if found.renderer is None:
            # Both load the ray caster.
            from pluriverse.gymapi.viewer_picture import ViewerRenderer
            from pluriverse.render import SeenGeometry

            cameras = self._camera_set(found.sim)  # type: ignore[attr-defined]  # of CameraCalls
            found.renderer = ViewerRenderer(found.sim, cameras.shapes(SeenGeometry.VISUAL))
        size = (int(found.size.x), int(found.size.y))
        picture = found.renderer.picture(found.position, found.target, size, found.fov, found.lines)
        write_image(call, filename, picture)

    def _viewer(self, viewer: Any, call: str) -> Viewer:
        if not isinstance(viewer, Viewer):
            raise TypeError(f"{call}: viewer is {viewer!r}, but must be what create_viewer() returned.")
        return viewer


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
