"""Viewer calls: a viewer without a window, so that scripts run headless and come to an end."""

import os
import warnings
from typing import Any, NamedTuple

import numpy as np

from pluriverse.gymapi.arguments import as_int, vector
from pluriverse.gymapi.checks import Checks
from pluriverse.gymapi.enums import KeyboardInput, MeshType
from pluriverse.gymapi.errors import GymWarning, require
from pluriverse.gymapi.structures import CameraProperties
from pluriverse.gymapi.values import Transform, Vec3

FRAME_BUDGET = 600
"""Frames after which a viewer counts as closed, where nothing else says."""
BUDGET_VARIABLE = "PLURIVERSE_GYM_FRAMES"
"""Environment variable with another number of frames."""


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
        properties: Camera, of which the size is known.
    """

    def __init__(self, sim: Any, frames: int, properties: CameraProperties):
        self.sim = sim
        self.size = ViewerPoint(int(properties.width), int(properties.height))
        self.frames = frames
        self.first_frame = sim.frame_count
        self.draw_count = 0
        self.camera = Transform()

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
        """Note where the camera is."""
        call = "viewer_camera_look_at"
        found = self._viewer(viewer, call)
        if env is not None:
            self._env(env, call)
        vector(target, "target", call)
        found.camera = Transform(vector(position, "position", call))

    def get_viewer_camera_transform(self, viewer: Any, env: Any = None) -> Transform:
        """Return where the camera was put."""
        return self._viewer(viewer, "get_viewer_camera_transform").camera

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
        """Accept lines, given as `count` pairs of points."""
        self._viewer(viewer, "add_lines")
        points = np.asarray(vertices)
        size = points.view(np.float32).size if points.dtype.names else points.size
        require(
            size >= 6 * as_int(count, "count", "add_lines"),
            "add_lines",
            f"vertices has {size} numbers, but {count} lines need {6 * count}.",
        )

    def clear_lines(self, viewer: Any) -> None:
        """Accept a viewer."""
        self._viewer(viewer, "clear_lines")

    def draw_env_rigid_contacts(
        self, viewer: Any, env: Any, color: Vec3, scale: float, sqrt_scale: bool
    ) -> None:
        """Accept what to draw."""
        self._viewer(viewer, "draw_env_rigid_contacts")
        self._env(env, "draw_env_rigid_contacts")

    def draw_env_soft_contacts(self, viewer: Any, env: Any, *_: Any) -> None:
        """Accept what to draw."""
        self._viewer(viewer, "draw_env_soft_contacts")

    def set_rigid_body_color(
        self, env: Any, actor_handle: int, body: int, mesh_type: MeshType | int, color: Vec3
    ) -> None:
        """Note the colour of a body."""
        call = "set_rigid_body_color"
        actor = self._actor(env, actor_handle, call)
        index = self._entry(body, actor.asset.body_names, "body", str(actor), call)
        actor.colors[index] = vector(color, "color", call)

    def get_rigid_body_color(self, env: Any, actor_handle: int, body: int, mesh_type: MeshType | int) -> Vec3:
        """Return the colour of a body; white where none was set."""
        call = "get_rigid_body_color"
        actor = self._actor(env, actor_handle, call)
        index = self._entry(body, actor.asset.body_names, "body", str(actor), call)
        return actor.colors.get(index, Vec3(1.0, 1.0, 1.0))

    def reset_actor_materials(self, env: Any, actor_handle: int, mesh_type: MeshType | int) -> None:
        """Forget the colours of an actor."""
        self._actor(env, actor_handle, "reset_actor_materials").colors.clear()

    def set_rigid_body_segmentation_id(
        self, env: Any, actor_handle: int, body: int, segmentation_id: int
    ) -> None:
        """Note the segmentation id of a body."""
        call = "set_rigid_body_segmentation_id"
        actor = self._actor(env, actor_handle, call)
        index = self._entry(body, actor.asset.body_names, "body", str(actor), call)
        actor.segmentation_ids[index] = as_int(segmentation_id, "segmentation_id", call)

    def get_rigid_body_segmentation_id(self, env: Any, actor_handle: int, body: int) -> int:
        """Return the segmentation id of a body."""
        call = "get_rigid_body_segmentation_id"
        actor = self._actor(env, actor_handle, call)
        index = self._entry(body, actor.asset.body_names, "body", str(actor), call)
        return actor.segmentation_ids.get(index, actor.segmentation_id)

    def set_light_parameters(
        self, sim: Any, light: int, intensity: Vec3, ambient: Vec3, direction: Vec3
    ) -> None:
        """Accept a light."""
        self._sim(sim, "set_light_parameters")

    def write_viewer_image_to_file(self, viewer: Any, filename: str) -> None:
        """Accept a name; there is no picture to write, which a warning says."""
        self._viewer(viewer, "write_viewer_image_to_file")
        warnings.warn(
            f"write_viewer_image_to_file: there is no window, so '{filename}' is not written.",
            GymWarning,
            stacklevel=2,
        )

    def _viewer(self, viewer: Any, call: str) -> Viewer:
        if not isinstance(viewer, Viewer):
            raise TypeError(f"{call}: viewer is {viewer!r}, but must be what create_viewer() returned.")
        return viewer
