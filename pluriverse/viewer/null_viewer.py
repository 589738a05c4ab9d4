"""Viewer that shows nothing: for loops written for Newton's viewers that run headless."""

import math
import time as clock
from collections.abc import Sequence
from typing import Any

from pluriverse.model import Contacts, Model, State


class ViewerNull:
    """Accepts the viewer calls of a loop, and ends it after a number of frames.

    The loop is `while viewer.is_running(): ... viewer.begin_frame(t); viewer.log_state(state);
    viewer.end_frame()`. To see worlds, use `BrowserViewer`, `pluriverse.draw` or `Simulation.record`.

    Args:
        num_frames: Frames after which `is_running` is false.
        benchmark: Whether to measure the frame rate (`benchmark_result`).
        benchmark_timeout: Time of measuring after which `is_running` is false, too [s]; None for no limit.
        benchmark_start_frame: Frames before the measurement begins, in which kernels are compiled.

    Raises:
        ValueError: If a number is negative.
    """

    def __init__(
        self,
        num_frames: int = 1000,
        benchmark: bool = False,
        benchmark_timeout: float | None = None,
        benchmark_start_frame: int = 3,
    ):
        if isinstance(num_frames, bool) or not num_frames >= 0:
            raise ValueError(
                f"{type(self).__name__}: num_frames is {num_frames!r}, but it must be a number >= 0."
            )
        if benchmark_timeout is not None and not benchmark_timeout >= 0.0:
            raise ValueError(
                f"ViewerNull: benchmark_timeout is {benchmark_timeout!r}, but it must be a time >= 0 s, "
                "or None."
            )
        if not benchmark_start_frame >= 0:
            raise ValueError(
                f"ViewerNull: benchmark_start_frame is {benchmark_start_frame!r}, but it must be a number "
                ">= 0."
            )
        self.num_frames: float = num_frames
        """Frames after which the loop ends."""
        self.frame_count = 0
        """Frames so far."""
        self.time = 0.0
        """Time of the last frame [s]."""
        self.model: Model | None = None
        """The model that was set."""
        self._measures = bool(benchmark)
        self._timeout = math.inf if benchmark_timeout is None else float(benchmark_timeout)
        self._start_frame = benchmark_start_frame
        self._started: float | None = None
        self._last = 0.0

    def set_model(self, model: Model | None) -> None:
        """Store the model."""
        self.model = model

    def is_running(self) -> bool:
        """Return whether there are frames left, and time where the measurement has a limit."""
        if self._measures and self._started is None and self.frame_count >= self._start_frame:
            self._started = self._last = clock.perf_counter()  # the loop asks at the top of a frame
        if self._started is not None and self._last - self._started >= self._timeout:
            return False
        return self.frame_count < self.num_frames

    def benchmark_result(self) -> dict[str, float | int] | None:
        """Return the frame rate `fps` [1/s], and the `frames` and the time `elapsed` [s] of its measurement.

        None if nothing was measured: it was not asked for, or there were too few frames.
        """
        frames = self.frame_count - self._start_frame
        if self._started is None or frames <= 0:
            return None
        elapsed = self._last - self._started
        return {"fps": frames / elapsed if elapsed > 0.0 else 0.0, "frames": frames, "elapsed": elapsed}

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
        if self._measures:
            self._last = clock.perf_counter()
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
