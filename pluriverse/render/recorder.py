"""Recorder: frames of a simulation while it runs, and the video made of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.render.draw import model_and_state
from pluriverse.render.film import SHAPE_ARRAYS, Film
from pluriverse.render.frame_clock import FrameClock
from pluriverse.render.picture import shown_worlds
from pluriverse.render.visual import SeenGeometry


class Recorder(Film, FrameClock):
    """Stores body poses at regular intervals while a simulation runs, and renders them afterwards.

    Made by `Simulation.recorder`. As a context manager it records from the beginning of the block to its end;
    `save` then renders the video.

    Args:
        simulation: The simulation.
        worlds: The worlds to record; the first if None.
        fps: Frames per second of video.
        speed: Simulated time per second of video.
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
        FrameClock.__init__(self, simulation, fps=fps, speed=speed, what="recorder")
        self._model, _ = model_and_state(simulation, "recorder")
        Film.__init__(self, self._model, self.fps, geometry)
        self._worlds = shown_worlds(self._model, worlds, "recorder")
        self._frames: list[tuple[np.ndarray, int]] = []
        self._appearances: list[dict[str, np.ndarray]] = []
        self._rows = self._recorded_bodies()
        self._body_q = simulation.state.body_q.numpy().reshape(-1, 7).copy()

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

    def capture(self) -> None:
        """Take a frame now."""
        appearance = {name: getattr(self._model, f"shape_{name}").numpy() for name in SHAPE_ARRAYS}
        if not self._appearances or any(
            not np.array_equal(self._appearances[-1][name], appearance[name]) for name in SHAPE_ARRAYS
        ):
            self._appearances.append({name: values.copy() for name, values in appearance.items()})
        poses = self._simulation.state.body_q.numpy().reshape(-1, 7)[self._rows].copy()
        self._frames.append((poses, len(self._appearances) - 1))

    def _worlds_of(self, frame: int) -> list[int]:
        return self._worlds

    def _body_q_of(self, frame: int) -> np.ndarray:
        self._body_q[self._rows] = self._frames[frame][0]
        return self._body_q

    def _appearance_of(self, frame: int) -> dict[str, np.ndarray]:
        return self._appearances[self._frames[frame][1]]
