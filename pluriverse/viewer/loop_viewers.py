"""Viewers for loops of one's own: what was logged goes into a file, or can be fetched as pictures.

They take the calls of `ViewerNull`. Each frame shows the state of the last `log_state`.
"""

import abc
import math
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Contacts, Model, State
from pluriverse.recording import RecordedRun, RecordingWriter, export_usd
from pluriverse.render import Camera, draw
from pluriverse.types import Axis
from pluriverse.viewer.null_viewer import ViewerNull
from pluriverse.warnings import PluriverseWarning


def aimed_along(up: Axis, pitch: float, yaw: float) -> np.ndarray:
    """Return the unit vector in which a camera looks, shape [3].

    Args:
        up: The axis that points up.
        pitch: Angle above the horizon [degree].
        yaw: Angle about the up axis [degree]; at 0 it looks along x (along z where x points up).
    """
    ahead = {Axis.Z: (0, 1), Axis.Y: (0, 2), Axis.X: (2, 1)}[up]
    azimuth, rise = math.radians(float(yaw)), math.radians(float(np.clip(pitch, -89.0, 89.0)))
    direction = np.zeros(3)
    direction[ahead[0]] = math.cos(azimuth) * math.cos(rise)
    direction[ahead[1]] = math.sin(azimuth) * math.cos(rise)
    direction[int(up)] = math.sin(rise)
    return direction


class LoopScene:
    """What a recording asks a simulation for, of a loop of one's own.

    Args:
        model: The model.
        dt: Time between frames [s].
    """

    def __init__(self, model: Model, dt: float):
        self.model = model
        self.dt = dt
        self.decimation = 1
        self.time = 0.0
        self.step_count = 0
        self.state: State | None = None
        self.contacts: Any = None
        counts = SimpleNamespace(numpy=lambda: np.zeros(max(model.world_count, 1), dtype=np.int32))
        # Without a known solver there are no counters.
        self.solver = SimpleNamespace(
            world_frozen=counts,
            unconverged_step_count=counts,
            truncated_step_count=counts,
            last_contact_count=counts,
            last_solve_iterations=counts,
        )


class _LoggingViewer(ViewerNull):
    """Takes note of the state of each frame, for those that make something of it."""

    def __init__(self, num_frames: int | None) -> None:
        super().__init__(0 if num_frames is None else num_frames)
        self.num_frames = math.inf if num_frames is None else num_frames
        self._state: State | None = None

    def log_state(self, state: State) -> None:
        """Take a state as that of the frame.

        Raises:
            RuntimeError: If no model was set.
        """
        if self.model is None:
            raise RuntimeError(f"{type(self).__name__}: no model was set. Call set_model(model) first.")
        self._state = state


class _WritingViewer(_LoggingViewer, abc.ABC):
    """Writes a recording of the frames."""

    def __init__(self, num_frames: int | None, fps: float) -> None:
        super().__init__(num_frames)
        self._fps = fps
        self._scene: LoopScene | None = None
        self._writer: RecordingWriter | None = None
        self._contacts: Contacts | None = None

    def set_model(self, model: Model | None) -> None:
        """Begin a recording of a model; another one must be given to a viewer of its own.

        Raises:
            RuntimeError: If frames of another model were written.
        """
        if self._writer is not None and model is not self.model:
            raise RuntimeError(
                f"{type(self).__name__}: '{self._writer.path}' has frames of another model. Make a viewer "
                "with another file for each model."
            )
        super().set_model(model)

    def log_contacts(self, contacts: Contacts, state: State) -> None:
        """Add contacts to the frame, with their forces in the last step."""
        self._contacts = contacts

    def end_frame(self) -> None:
        """Write the frame, if a state was logged."""
        super().end_frame()
        if self._state is None or self.model is None:
            return
        if self._scene is None:
            self._scene = LoopScene(self.model, 1.0 / self._fps)
        self._scene.time, self._scene.state = self.time, self._state
        self._scene.contacts = self._contacts
        self._scene.step_count = self.frame_count
        if self._writer is None:
            with_contacts = self._contacts is not None
            self._writer = RecordingWriter(self._scene, self._path(), fps=self._fps, contacts=with_contacts)
        self._writer.capture()
        self._state = None

    def close(self) -> None:
        """End the loop and the recording."""
        super().close()
        if self._writer is not None:
            self._writer.close(with_report=False)

    @abc.abstractmethod
    def _path(self) -> Path:
        """Return the file of the recording."""


class ViewerFile(_WritingViewer):
    """Writes each frame to a recording, for `pluriverse view FILE`, `RecordedRun` and `load_recording`.

    Args:
        output_path: File to write, such as "run.pvr"; an old one of that name is replaced by the first frame.
        auto_save: Makes no difference: a frame is in the file as soon as it ends.
        save_interval: Likewise.
        max_history_size: Must be None: all frames are kept.
        num_frames: Frames after which `is_running` is false; None for no end.

    Raises:
        ValueError: If fewer frames are to be kept.
    """

    def __init__(
        self,
        output_path: str | Path,
        auto_save: bool = True,
        save_interval: int = 100,
        max_history_size: int | None = None,
        num_frames: int | None = None,
    ) -> None:
        super().__init__(num_frames, fps=60.0)
        if max_history_size is not None:
            raise ValueError(
                f"ViewerFile: max_history_size is {max_history_size!r}, but all frames are kept. Leave it "
                "out, and log the frames you want."
            )
        self.output_path = Path(output_path)
        """The file."""
        self._run: RecordedRun | None = None

    def get_frame_count(self) -> int:
        """Return how many frames were written, or are in the recording that was loaded."""
        if self._run is not None:
            return self._run.frame_count
        return 0 if self._writer is None else self._writer.frame_count

    def has_model(self) -> bool:
        """Return whether a model was set, or loaded with a recording."""
        return self.model is not None or self._run is not None

    def save_recording(self, file_path: str | Path | None = None, verbose: bool = False) -> None:
        """End the recording, which is in the file already; copy it if another file is named."""
        self.close()
        if file_path is not None and Path(file_path) != self.output_path:
            Path(file_path).write_bytes(self.output_path.read_bytes())
        if verbose:
            print(f"{file_path or self.output_path}: {self.get_frame_count()} frames")

    def load_recording(self, file_path: str | Path | None = None, verbose: bool = False) -> None:
        """Open a recording, that of this viewer if None is named, for `load_state`."""
        if self._writer is not None:
            self._writer.close(with_report=False)
        self._run = RecordedRun(self.output_path if file_path is None else file_path)
        if verbose:
            print(f"{file_path or self.output_path}: {self._run.frame_count} frames")

    def load_state(self, state: State, frame_id: int) -> None:
        """Write the coordinates, velocities and poses of a frame of the loaded recording into a state.

        Raises:
            IndexError: If there is no such frame.
            RuntimeError: If no recording was loaded.
            ValueError: If the recording is of another model.
        """
        if self._run is None:
            raise RuntimeError("ViewerFile: no recording was loaded. Call load_recording() first.")
        if not 0 <= frame_id < self._run.frame_count:
            raise IndexError(
                f"ViewerFile: frame {frame_id} does not exist; there are {self._run.frame_count}."
            )
        moment = self._run.moment(frame_id)
        for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
            array, values = getattr(state, name), getattr(moment, name)
            if array.numpy().size != values.size:
                raise ValueError(
                    f"ViewerFile: the recording has {values.size} numbers of {name}, the state has "
                    f"{array.numpy().size}. Give a state of the model that was recorded."
                )
            array.assign(np.ascontiguousarray(values, dtype=np.float32).reshape(array.numpy().shape))

    playback = load_state

    def _path(self) -> Path:
        return self.output_path


class ViewerUSD(_WritingViewer):
    """Writes the frames to an animated USD stage, when it is closed.

    Args:
        output_path: File to write: .usd or .usdc (binary) or .usda (text).
        fps: Frames per second of the stage.
        up_axis: Makes no difference: the stage has the up axis of the model.
        num_frames: Frames after which `is_running` is false; None for no end.
        scaling: Must be 1: lengths of the stage are in metres.
        points_as_spheres: Makes no difference: points are not written.

    Raises:
        ValueError: If `scaling` is another one, or `fps` is out of range.
    """

    def __init__(
        self,
        output_path: str | Path,
        fps: float = 60,
        up_axis: Axis | str | int = "Z",
        num_frames: int | None = 100,
        scaling: float = 1.0,
        points_as_spheres: bool = True,
    ) -> None:
        if not 0.0 < fps < math.inf:
            raise ValueError(f"ViewerUSD: fps is {fps!r}, but it must be a finite number > 0.")
        super().__init__(num_frames, fps=fps)
        if scaling != 1.0:
            raise ValueError(
                f"ViewerUSD: scaling is {scaling!r}, but lengths of the stage are in metres. Leave it out, "
                "and scale the stage where it is used."
            )
        self.output_path = Path(output_path)
        """The file."""
        self._up_axis = Axis.from_any(up_axis)
        self._folder = tempfile.TemporaryDirectory(prefix="pluriverse_usd_")

    def close(self) -> None:
        """End the loop and write the stage."""
        super().close()
        if self._writer is not None:
            self._writer = None
            with RecordedRun(self._path()) as recording:
                export_usd(recording, self.output_path)
        self._folder.cleanup()

    def _path(self) -> Path:
        return Path(self._folder.name) / "frames.pvr"


class ViewerGL(_LoggingViewer):
    """Draws pictures of a loop on request, without a window: `get_frame` after `end_frame`.

    The name is that of Newton's viewer, which has a window. To look at worlds, use `ViewerViser`, or write
    them with `ViewerFile` and see them by `pluriverse view FILE`.

    Args:
        width: Width of the pictures [pixel].
        height: Height of the pictures [pixel].
        vsync: Makes no difference.
        headless: Must be True.
        paused: Must be False: nothing could end the pause.
        num_frames: Frames after which `is_running` is false; None for no end.

    Raises:
        RuntimeError: If a window or a pause is asked for.
    """

    def __init__(
        self,
        width: int = 640,
        height: int = 360,
        vsync: bool = False,
        headless: bool = False,
        paused: bool = False,
        num_frames: int | None = None,
    ):
        if not headless or paused:
            raise RuntimeError(
                "ViewerGL: there is no window to draw in, and no button to end a pause. Pass headless=True "
                "and fetch pictures by get_frame(), watch the loop in the browser by ViewerViser(), or use "
                "ViewerNull(num_frames=...)."
            )
        super().__init__(num_frames)
        self.width, self.height = int(width), int(height)
        self._camera: Camera | None = None
        self._worlds: list[int] | None = None
        self._shown: State | None = None

    def set_camera(self, pos: Any, pitch: float, yaw: float) -> None:
        """Place the camera of the pictures.

        Args:
            pos: Position [m].
            pitch: Angle above the horizon [degree].
            yaw: Angle about the up axis [degree]; at 0 it looks along x (along z where x points up).
        """
        up = Axis.Z if self.model is None else self.model.up_axis
        eye = np.array([float(part) for part in pos])
        self._camera = Camera(tuple(eye), tuple(eye + aimed_along(up, pitch, yaw)), up=up.vector)

    def set_visible_worlds(self, worlds: Any) -> None:
        """Choose the worlds of the pictures; the first ones if None."""
        self._worlds = None if worlds is None else [int(world) for world in worlds]

    def end_frame(self) -> None:
        """End a frame."""
        super().end_frame()
        self._shown = self._state

    def get_frame(self, target_image: Any = None, render_ui: bool = False) -> wp.array:
        """Return a picture of the last frame: red, green and blue, shape [row, column, 3], uint8.

        Args:
            target_image: Array to write it into, of this shape; a new one if None.
            render_ui: Makes no difference: there is no user interface.

        Raises:
            RuntimeError: If no state was logged.
        """
        if self._shown is None or self.model is None:
            raise RuntimeError("ViewerGL: no state was logged. Call log_state(state) and end_frame() first.")
        if self.model.world_count and self._worlds is None:
            self._worlds = list(range(min(self.model.world_count, 16)))
        picture = draw(
            self.model,
            state=self._shown,
            worlds=self._worlds,
            camera=self._camera,
            size=(self.width, self.height),
            samples=1,
        )
        if target_image is None:
            target_image = wp.empty(picture.shape, dtype=wp.uint8, device=self.model.device)
        target_image.assign(picture)
        return target_image

    def register_ui_callback(self, callback: Any, position: str = "side") -> None:
        """Do nothing but warn: there is no user interface."""
        warnings.warn(
            "ViewerGL: callbacks of a user interface are never called, as there is none. Call them yourself.",
            PluriverseWarning,
            stacklevel=2,
        )
