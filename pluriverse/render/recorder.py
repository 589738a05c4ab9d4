"""Recorder: frames of a simulation while it runs, and the video made of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import warp as wp

from pluriverse.model import State
from pluriverse.render.camera import fitting_camera
from pluriverse.render.draw import as_camera, model_and_state
from pluriverse.render.picture import PictureRenderer, PictureStyle, check_size
from pluriverse.render.video import VideoFile, check_video_path
from pluriverse.render.visual import SeenGeometry

# What may change in how shapes look and where bodies carry them.
SHAPE_ARRAYS = ("flags", "enabled", "transform", "scale", "source_index", "color", "appearance")
# Frames that are looked at to place a camera that sees the whole motion.
CAMERA_FRAME_COUNT = 40


class Recorder:
    """Keeps the poses of bodies at even times while a simulation runs, and renders them afterwards.

    Made by `Simulation.recorder`. As a context manager it records from the beginning of the block to its end;
    `save` then renders the video.

    Args:
        simulation: The simulation.
        worlds: The worlds to record; the first if None.
        fps: Frames per second of video.
        speed: How many seconds of simulated time a second of video shows.
        geometry: Which shapes are drawn.

    Raises:
        IndexError: If there is no such world.
        ValueError: If `fps` or `speed` are not positive.
    """

    def __init__(
        self,
        simulation: Any,
        *,
        worlds: Sequence[int] | int | None = None,
        fps: float = 30.0,
        speed: float = 1.0,
        geometry: SeenGeometry | str = SeenGeometry.VISUAL,
    ):
        for name, value in (("fps", fps), ("speed", speed)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"recorder: {name} is {value}, but it must be a finite number > 0.")
        self._simulation = simulation
        self._model, _ = model_and_state(simulation, "recorder")
        chosen = [0] if worlds is None else [int(world) for world in np.atleast_1d(np.asarray(worlds))]
        for world in chosen:
            if not 0 <= world < self._model.world_count:
                raise IndexError(
                    f"recorder: world {world} does not exist; the model has worlds 0 to "
                    f"{self._model.world_count - 1}."
                )
        if not chosen:
            raise ValueError("recorder: no world is chosen. Pass worlds=[0], or more.")
        self._worlds = chosen
        self.fps = float(fps)
        """Frames per second of video."""
        self._interval = float(speed) / float(fps)
        self._geometry = SeenGeometry(geometry)
        self._begin = 0.0
        self._frames: list[tuple[np.ndarray, int]] = []
        self._looks: list[dict[str, np.ndarray]] = []
        self._rows = self._recorded_bodies()

    def _recorded_bodies(self) -> np.ndarray:
        first = self._model.topology.world_body.numpy()
        counts = [
            self._model.templates[self._model.world_template[world]].body_count for world in self._worlds
        ]
        blocks = [first[world] + np.arange(count) for world, count in zip(self._worlds, counts, strict=True)]
        return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.int64)

    @property
    def frame_count(self) -> int:
        """Number of frames so far."""
        return len(self._frames)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Record from now on: a frame at once, and one whenever its time has come in `step`."""
        self._begin = self._simulation.time - len(self._frames) * self._interval
        self.capture()
        self._simulation.add_observer(self)

    def stop(self) -> None:
        """Record no more."""
        self._simulation.remove_observer(self)

    def steps_to_next(self) -> int:
        """Return after how many calls of `step(1)` the next frame is due; the simulation asks."""
        step_time = self._simulation.dt * self._simulation.decimation
        due = self._begin + len(self._frames) * self._interval - self._simulation.time
        return max(1, int(np.ceil(due / step_time - 1.0e-6)))

    def observe(self) -> None:
        """Take the frames that are due; the simulation calls this."""
        step_time = self._simulation.dt * self._simulation.decimation
        while self._begin + len(self._frames) * self._interval <= self._simulation.time + 1.0e-6 * step_time:
            self.capture()

    def capture(self) -> None:
        """Take a frame now."""
        looks = {name: getattr(self._model, f"shape_{name}").numpy() for name in SHAPE_ARRAYS}
        if not self._looks or any(
            not np.array_equal(self._looks[-1][name], looks[name]) for name in SHAPE_ARRAYS
        ):
            self._looks.append({name: values.copy() for name, values in looks.items()})
        poses = self._simulation.state.body_q.numpy().reshape(-1, 7)[self._rows].copy()
        self._frames.append((poses, len(self._looks) - 1))

    def render(
        self,
        *,
        camera: Any = None,
        size: tuple[int, int] = (960, 600),
        samples: int = 4,
        style: PictureStyle | None = None,
        spacing: float | None = None,
        azimuth: float = -0.9,
        elevation: float = 0.32,
    ) -> Any:
        """Yield the pictures of all frames, shape [row, column, 3], uint8. The arguments are those of `draw`.

        Raises:
            ValueError: If nothing was recorded, or an argument is out of range.
        """
        check_size(size, "recorder")
        if not self._frames:
            raise ValueError(
                "recorder: there are no frames. Step the simulation inside `with simulation.recorder() as "
                "r:`, or call r.capture(), before saving."
            )
        return self._render(camera, size, samples, style, spacing, azimuth, elevation)

    def _render(
        self,
        camera: Any,
        size: tuple[int, int],
        samples: int,
        style: PictureStyle | None,
        spacing: float | None,
        azimuth: float,
        elevation: float,
    ) -> Any:
        model = self._model
        renderer = PictureRenderer(model, geometry=self._geometry)
        scene, looks = renderer.caster.arrays.scene, renderer.looks.looks
        # The past is rendered from copies: the model itself may look otherwise by now.
        copies = {name: wp.clone(getattr(model, f"shape_{name}")) for name in SHAPE_ARRAYS}
        for name, array in copies.items():
            setattr(looks if name in ("color", "appearance") else scene, f"shape_{name}", array)
        state = model.state()
        body_q = self._simulation.state.body_q.numpy().reshape(-1, 7).copy()

        def place(frame: int) -> State:
            poses, look = self._frames[frame]
            body_q[self._rows] = poses
            state.body_q.assign(body_q)
            for name, array in copies.items():
                array.assign(self._looks[look][name])
            return state

        layout = renderer.layout(place(0), self._worlds, spacing=spacing, style=style)
        fixed = None if isinstance(camera, str) else as_camera(camera, model, state, self._worlds[0])
        if camera is None:
            step = max(1, len(self._frames) // CAMERA_FRAME_COUNT)
            shown = range(0, len(self._frames), step)
            corners = np.concatenate([renderer.corners(place(f), self._worlds, layout) for f in shown])
            fixed = fitting_camera(corners, aspect=size[0] / size[1], azimuth=azimuth, elevation=elevation)
        for frame in range(len(self._frames)):
            now = place(frame)
            yield renderer.render(
                now,
                worlds=self._worlds,
                camera=as_camera(camera, model, now, self._worlds[0]) if fixed is None else fixed,
                size=size,
                samples=samples,
                style=style,
                layout=layout,
            )

    def save(self, path: str | Path, **options: Any) -> Path:
        """Render all frames and write them as a video (.mp4, .webm, .mov, .mkv) or as .gif.

        Args:
            path: The file.
            **options: Those of `render`: camera, size, samples, style and so on.

        Returns:
            The path.

        Raises:
            ValueError: If nothing was recorded, an argument is out of range, or the name is that of no
                format.
            ImportError: If PyAV is missing (`pip install pluriverse[video]`).
        """
        path = check_video_path(path)
        frames = self.render(**options)
        with VideoFile(path, self.fps) as file:
            for picture in frames:
                file.write(picture)
        return path
