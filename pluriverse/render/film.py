"""Film: frames of a model, rendered one after the other into pictures or a video."""

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import warp as wp

from pluriverse.model import Model, State
from pluriverse.options import completed, with_options
from pluriverse.render.camera import fitting_camera
from pluriverse.render.draw import as_camera
from pluriverse.render.picture import PictureOptions, PictureRenderer, WorldLayout, check_size
from pluriverse.render.video import VideoFile, check_video_path
from pluriverse.render.visual import SeenGeometry

# Arrays of shapes that affect how they look and where they are.
SHAPE_ARRAYS = ("flags", "enabled", "transform", "scale", "source_index", "color", "appearance")
# Frames used to place a camera that sees the whole motion.
CAMERA_FRAME_COUNT = 40


class Film(abc.ABC):
    """Frames that can be rendered. Subclasses supply their contents.

    Args:
        model: Model to render.
        fps: Frames per second of video.
        geometry: Which shapes are drawn.
    """

    def __init__(self, model: Model, fps: float, geometry: SeenGeometry | str) -> None:
        self._filmed = model
        self._film_fps = fps
        self._geometry = SeenGeometry(geometry)

    @property
    @abc.abstractmethod
    def frame_count(self) -> int:
        """Number of frames."""

    @abc.abstractmethod
    def _worlds_of(self, frame: int) -> list[int]:
        """Return the worlds that a frame shows."""

    @abc.abstractmethod
    def _body_q_of(self, frame: int) -> np.ndarray:
        """Return the poses of all bodies in a frame [m, xyzw], shape [body, 7]."""

    @abc.abstractmethod
    def _appearance_of(self, frame: int) -> dict[str, np.ndarray]:
        """Return the arrays of shapes in `SHAPE_ARRAYS` in a frame."""

    @with_options(PictureOptions)
    def render(self, *, camera: Any = None, samples: int = 4, **options: Unpack[PictureOptions]) -> Any:
        """Yield the pictures of all frames, shape [row, column, 3], uint8.

        Args:
            camera: As of `draw`. A camera of the model is followed; None sees the whole motion.
            samples: Rays per pixel.

        Raises:
            ValueError: If nothing was recorded, or an argument is out of range.
        """
        given: PictureOptions = completed(PictureOptions, options)
        check_size(given["size"], "recorder")
        if not self.frame_count:
            raise ValueError(
                "recorder: there are no frames. Step the simulation inside `with simulation.recorder() as "
                "r:`, or call r.capture(), before saving."
            )
        return self._render(camera, samples, given)

    def _render(self, camera: Any, samples: int, given: PictureOptions) -> Any:
        model = self._filmed
        renderer = PictureRenderer(model, geometry=self._geometry)
        scene, surfaces = renderer.caster.arrays.scene, renderer.appearance.arrays
        # Past frames are rendered from copies: the model itself may have changed since.
        copies = {name: wp.clone(getattr(model, f"shape_{name}")) for name in SHAPE_ARRAYS}
        for name, array in copies.items():
            setattr(surfaces if name in ("color", "appearance") else scene, f"shape_{name}", array)
        state = model.state()

        def state_of(frame: int) -> State:
            state.body_q.assign(self._body_q_of(frame))
            for name, values in self._appearance_of(frame).items():
                copies[name].assign(values)
            return state

        worlds = self._worlds_of(0)
        layout: WorldLayout = renderer.layout(
            state_of(0), worlds, spacing=given["spacing"], style=given["style"]
        )
        fixed = None if isinstance(camera, str) else as_camera(camera, model, state, worlds[0])
        if camera is None:
            step = max(1, self.frame_count // CAMERA_FRAME_COUNT)
            shown = range(0, self.frame_count, step)
            corners = np.concatenate(
                [renderer.corners(state_of(f), self._worlds_of(f), layout) for f in shown]
            )
            fixed = fitting_camera(
                corners,
                aspect=given["size"][0] / given["size"][1],
                azimuth=given["azimuth"],
                elevation=given["elevation"],
                up_axis=model.up_axis,
            )
        for frame in range(self.frame_count):
            now = state_of(frame)
            worlds = self._worlds_of(frame)
            yield renderer.render(
                now,
                worlds=worlds,
                camera=as_camera(camera, model, now, worlds[0]) if fixed is None else fixed,
                samples=samples,
                layout=layout,
                **given,
            )

    def save(
        self, path: str | Path, *, progress: Callable[[int], object] | None = None, **options: Any
    ) -> Path:
        """Render all frames and write them as a video (.mp4, .webm, .mov, .mkv) or as .gif.

        Args:
            path: The file.
            progress: Called after each frame with the number of frames so far.
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
        with VideoFile(path, self._film_fps) as file:
            for count, picture in enumerate(frames, 1):
                file.write(picture)
                if progress is not None:
                    progress(count)
        return path
