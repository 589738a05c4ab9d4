"""Viewer that shows nothing: for loops written for Newton's viewers that run headless."""

from collections.abc import Sequence
from typing import Any

from pluriverse.model import Contacts, Model, State


class ViewerNull:
    """Accepts the viewer calls of a loop, and ends it after a number of frames.

    The loop is `while viewer.is_running(): ... viewer.begin_frame(t); viewer.log_state(state);
    viewer.end_frame()`. To see worlds, use `BrowserViewer`, `pluriverse.draw` or `Simulation.record`.

    Args:
        num_frames: Frames after which `is_running` is false.

    Raises:
        ValueError: If it is negative.
    """

    def __init__(self, num_frames: int = 1000):
        if isinstance(num_frames, bool) or not num_frames >= 0:
            raise ValueError(f"ViewerNull: num_frames is {num_frames!r}, but it must be a number >= 0.")
        self.num_frames: float = num_frames
        """Frames after which the loop ends."""
        self.frame_count = 0
        """Frames so far."""
        self.time = 0.0
        """Time of the last frame [s]."""
        self.model: Model | None = None
        """The model that was set."""

    def set_model(self, model: Model | None) -> None:
        """Store the model."""
        self.model = model

    def is_running(self) -> bool:
        """Return whether there are frames left."""
        return self.frame_count < self.num_frames

    def is_paused(self) -> bool:
        """Return False: there is no pause button."""
        return False

    def should_step(self) -> bool:
        """Return True: there is no pause button."""
        return True

    def is_key_down(self, key: str | int) -> bool:
        """Return False: there are no keys."""
        return False

    def begin_frame(self, time: float) -> None:
        """Begin a frame at a time [s]."""
        self.time = float(time)

    def end_frame(self) -> None:
        """End a frame."""
        self.frame_count += 1

    def log_state(self, state: State) -> None:
        """Show nothing of a state."""

    def log_contacts(self, contacts: Contacts, state: State) -> None:
        """Show nothing of contacts."""

    def apply_forces(self, state: State) -> None:
        """Write no forces: there is no mouse."""

    def set_camera(self, pos: Any, pitch: float, yaw: float) -> None:
        """Aim nothing."""

    def set_visible_worlds(self, worlds: Sequence[int] | None) -> None:
        """Show none of them."""

    def set_world_offsets(self, spacing: Any) -> None:
        """Ignore the world offsets."""

    def log_points(self, name: str, *data: Any, **options: Any) -> None:
        """Ignore it, like the calls below."""

    log_lines = log_arrows = log_mesh = log_instances = log_shapes = log_capsules = log_points
    log_image = log_array = log_scalar = log_gizmo = log_points
    log_gaussian = log_geo = log_wireframe_shape = log_hydro_contact_surface = log_points

    def close(self) -> None:
        """End the loop."""
        self.num_frames = self.frame_count
