"""CameraBatch: cameras of one resolution in all worlds, placed and measured together."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import State
from pluriverse.render import RayCaster
from pluriverse.render.raycast.appearance import AppearanceArrays
from pluriverse.render.raycast.sensing import CameraMount, place_cameras, sense_pixels
from pluriverse.render.raycast.shading import View, render_pixels
from pluriverse.sensors.base import Sensor

# Largest distance that a camera sees [m]; squares of distances stay finite.
FARTHEST = 1.0e29


class CameraBatch(Sensor):
    """Cameras of one resolution; a base class, which says where images go.

    Args:
        caster: The shapes that they see.
        threads: Threads on a CPU; as many as cores if None.
        world: World of each camera, ascending, shape [camera].
        tangent: Tangent of half the vertical field of view, shape [camera].
        size: Columns and rows of the images.
        mount: How cameras are carried.
        near: Distance along the axis from which something is seen [m].
        far: Distance along the axis up to which something is seen [m].
        samples: Rays per pixel, of the colour.
    """

    _geometric: list[Any] | None = None
    """Images of depth, distance, shape, body, world and normal, empty ones for none; None for none at all."""
    _pixels: Any = None
    """Image of the colour, None for none."""
    _appearance: AppearanceArrays | None = None
    _light: Any = None

    def __init__(
        self,
        caster: RayCaster,
        threads: int | None,
        world: np.ndarray,
        tangent: np.ndarray,
        size: tuple[int, int],
        mount: CameraMount,
        near: float,
        far: float,
        samples: int,
    ):
        super().__init__(caster, threads)
        self._near, self._far, self._samples = float(near), min(float(far), FARTHEST), int(samples)
        device, count = caster.model.device, len(world)
        counts = np.bincount(world, minlength=caster.model.world_count)
        self._count_max = int(counts.max(initial=0))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._start: Any = wp.array(starts, dtype=wp.int32, device=device)
        self._mount: Any = mount
        self._view: Any = View()
        view = self._view
        view.camera_position = wp.zeros(count, dtype=wp.vec3, device=device)
        view.camera_rotation = wp.zeros(count, dtype=wp.mat33, device=device)
        view.tangent = wp.array(tangent.astype(np.float32), dtype=wp.float32, device=device)
        view.view_start = wp.array(np.arange(count + 1, dtype=np.int32), dtype=wp.int32, device=device)
        view.view_world = wp.array(world.astype(np.int32), dtype=wp.int32, device=device)
        view.view_offset = wp.zeros(count, dtype=wp.vec3, device=device)
        view.width, view.height = size

    def _ray_count(self) -> int:
        view = self._view
        return view.view_world.size * view.width * view.height * self._samples

    def _place(self, state: State, worlds: wp.array[int]) -> None:
        """Launch what puts the cameras where they are at a state."""
        view = self._view
        position, rotation = view.camera_position, view.camera_rotation
        place_cameras(worlds, self._start, self._count_max, self._mount, state.body_q, position, rotation)

    def _sense(self, state: State, worlds: wp.array[int]) -> None:
        self._place(state, worlds)
        if self._geometric is not None:
            sense_pixels(
                worlds,
                self._start,
                self._count_max,
                self._caster,
                self._view,
                self._near,
                self._far,
                self._geometric,
            )
        if self._pixels is not None:
            assert self._appearance is not None
            render_pixels(
                worlds,
                self._start,
                self._count_max,
                self._caster.arrays.scene,
                self._appearance.arrays,
                self._view,
                self._light,
                self._pixels,
                samples=self._samples,
            )
