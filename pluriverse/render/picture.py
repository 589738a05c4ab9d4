"""Pictures of worlds, rendered by our own ray caster: no display, no graphics driver."""

import math
import os
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
import warp as wp

from pluriverse.builder.shapes import GROUND_COLOR
from pluriverse.launch import record
from pluriverse.model import Model, State
from pluriverse.options import completed, with_options
from pluriverse.render.camera import Camera, fitting_camera
from pluriverse.render.raycast.appearance import AppearanceArrays
from pluriverse.render.raycast.caster import RayCaster
from pluriverse.render.raycast.shading import Light, View, render_pixels
from pluriverse.render.visual import SeenGeometry
from pluriverse.types import Axis

# Largest side of a picture [pixel].
SIZE_MAX = 16384
# Pixels that one thread renders at a time: enough to be worth a wake-up, few enough to balance the load.
BLOCK_PIXELS = 8192
# Distance between the worlds of a picture, relative to the largest of them.
WORLD_SPACING = 1.25


@dataclass(frozen=True)
class PictureStyle:
    """Light and surroundings of pictures."""

    sun_direction: tuple[float, float, float] = (-0.35, -0.55, 0.9)
    """Direction of the sun; for an automatically placed camera it shines from behind and above."""
    sun: float = 0.85
    """Brightness of the sun."""
    sun_spread: float = 0.045
    """Tangent of half the angular diameter of the sun, which sets how soft shadows are."""
    sky: float = 0.80
    """Brightness of the sky."""
    shadows: bool = True
    """Whether things cast shadows."""
    ambient_occlusion: bool = True
    """Whether corners are darker."""
    background: tuple[tuple[float, float, float], tuple[float, float, float]] = (
        (0.93, 0.945, 0.96),
        (0.70, 0.78, 0.88),
    )
    """Colours at the horizon and above, from 0 to 1."""
    floor: bool | None = None
    """Whether a floor is drawn below the worlds; None draws one where they have no ground of their own."""
    floor_color: tuple[float, float, float] = (0.80, 0.815, 0.83)
    """Colour of that floor, and of ground planes that were given no colour."""
    grid: bool = True
    """Whether endless planes have grid lines, a metre and a decimetre apart."""


class PictureOptions(TypedDict, total=False):
    """Options of pictures and films."""

    size: Annotated[tuple[int, int], (960, 600)]
    """Width and height [pixel]."""
    style: PictureStyle | None
    """Light and surroundings."""
    spacing: float | None
    """Distance of worlds on a grid [m]; 0 leaves them where they are; None decides by their sizes."""
    azimuth: Annotated[float, -0.9]
    """Direction of an automatically placed camera, from x towards y [rad]."""
    elevation: Annotated[float, 0.32]
    """Its angle above the horizon [rad]."""


@dataclass(frozen=True)
class WorldLayout:
    """Positions of the worlds of a picture."""

    offsets: np.ndarray
    """Drawing offset of each world [m], shape [world, 3]."""
    floor: float | None
    """Height of the floor of the picture [m], None without one."""
    extent: float
    """Longest side of the moving part of a world [m]."""


def shown_worlds(model: Model, worlds: Any, what: str) -> list[int]:
    """Return the worlds to show as a list, the first if None.

    Raises:
        IndexError: If there is no such world.
        TypeError: If they are not whole numbers.
        ValueError: If the list is empty.
    """
    array = np.atleast_1d(np.asarray(0 if worlds is None else worlds))
    if not array.size:
        raise ValueError(f"{what}: the list of worlds is empty. Pass worlds=[0], or more.")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"{what}: worlds are {worlds!r}, but they must be a list of whole numbers.")
    shown = [int(world) for world in array]
    for world in shown:
        if not 0 <= world < model.world_count:
            raise IndexError(
                f"{what}: world {world} does not exist; the model has worlds 0 to {model.world_count - 1}."
            )
    return shown


class PictureRenderer:
    """Renders pictures of a model, and prepares once what pictures share.

    Args:
        model: The model.
        geometry: Which of its shapes are drawn.
        threads: Threads on a CPU; as many as cores if None.
        caster: An existing ray caster of these shapes, to reuse.
        appearance: Their existing colours and textures, to reuse.
    """

    def __init__(
        self,
        model: Model,
        *,
        geometry: SeenGeometry = SeenGeometry.VISUAL,
        threads: int | None = None,
        caster: RayCaster | None = None,
        appearance: AppearanceArrays | None = None,
    ):
        self.model = model
        self.caster = RayCaster(model, geometry=geometry) if caster is None else caster
        self.appearance = AppearanceArrays(model, self.caster.arrays) if appearance is None else appearance
        if threads is not None and threads < 1:
            raise ValueError(f"PictureRenderer: threads is {threads}, but it must be at least 1.")
        self._threads = threads or _core_count()

    @with_options(PictureOptions)
    def render(
        self,
        state: State,
        *,
        worlds: Sequence[int] | None = None,
        camera: Camera | Any = None,
        samples: int = 12,
        layout: "WorldLayout | None" = None,
        **options: Unpack[PictureOptions],
    ) -> np.ndarray:
        """Return a picture of some worlds in a state.

        Several worlds stand side by side: in place if they do not overlap, else on a grid.

        Args:
            state: State of the model.
            worlds: The worlds; the first if None.
            camera: A `Camera`, or None for one that sees them all.
            samples: Rays per pixel: 1 is quick, 12 is smooth, 64 is for print.
            layout: Placement of worlds and floor, as `layout` returned it; None to compute it.

        Returns:
            Red, green and blue, top row first, shape [row, column, 3], uint8.

        Raises:
            IndexError: If there is no such world.
            ValueError: If the size, the samples or the camera are out of range.
        """
        given: PictureOptions = completed(PictureOptions, options)
        width, height = check_size(given["size"], "picture")
        if not isinstance(samples, int | np.integer) or not 1 <= samples <= 4096:
            raise ValueError(
                f"picture: samples is {samples!r}, but it must be a whole number from 1 to 4096."
            )
        selected = shown_worlds(self.model, worlds, "picture")
        style = given["style"] or PictureStyle()
        self.caster.update(state, selected)
        layout = self._layout(selected, given["spacing"], style) if layout is None else layout
        corners = self._corners(selected, layout)
        if camera is None:
            camera = fitting_camera(
                corners,
                aspect=width / height,
                azimuth=given["azimuth"],
                elevation=given["elevation"],
                up_axis=self.model.up_axis,
            )
        elif not isinstance(camera, Camera):
            raise TypeError(
                f"picture: camera is {camera!r}, but it must be a pluriverse.render.Camera, or None for one "
                "that sees all worlds."
            )
        light = self._light(style, camera, corners, layout)
        view = self._view(camera, selected, layout.offsets, width, height)
        image = wp.zeros((1, height, width), dtype=wp.uint32, device=self.model.device)
        self._launch(view, light, image, int(samples))
        pixels = image.numpy()[0].view(np.uint8).reshape(height, width, 4)
        return np.ascontiguousarray(pixels[:, :, :3])

    def layout(
        self,
        state: State,
        worlds: Sequence[int] | None = None,
        *,
        spacing: float | None = None,
        style: PictureStyle | None = None,
    ) -> "WorldLayout":
        """Return where `render` places worlds in a state, to place them there in other states too."""
        selected = shown_worlds(self.model, worlds, "picture")
        self.caster.update(state, selected)
        return self._layout(selected, spacing, PictureStyle() if style is None else style)

    def corners(self, state: State, worlds: Sequence[int], layout: "WorldLayout") -> np.ndarray:
        """Return corners of boxes around the moving parts of worlds [m], for `fitting_camera`."""
        self.caster.update(state, list(worlds))
        return self._corners(list(worlds), layout)

    def _layout(self, worlds: list[int], spacing: float | None, style: PictureStyle) -> "WorldLayout":
        if spacing is not None and not (isinstance(spacing, float | int) and math.isfinite(spacing)):
            raise ValueError(
                f"picture: spacing is {spacing!r} m, but it must be a finite number, or None to place worlds "
                "by their size."
            )
        boxes, all_boxes = self._bounds(worlds)
        offsets = world_offsets(boxes, spacing, self.model.up_axis)
        up = int(self.model.up_axis)
        has_floor = not self._has_ground(worlds) if style.floor is None else style.floor
        if has_floor and len(worlds) > 1:
            offsets[:, up] = -all_boxes[:, 0, up]  # all stand on the one floor
        floor = float((all_boxes[:, 0, up] + offsets[:, up]).min()) if has_floor else None
        return WorldLayout(offsets, floor, float((boxes[:, 1] - boxes[:, 0]).max()))

    def _corners(self, worlds: list[int], layout: "WorldLayout") -> np.ndarray:
        boxes, _ = self._bounds(worlds)
        return _corners(boxes + np.repeat(layout.offsets[:, None, :], 2, axis=1))

    def _bounds(self, worlds: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the boxes around the moving part of each world, and everything visible, [world, 2, 3]."""
        scene = self.caster.arrays.scene
        start, entry_shape = scene.entry_start.numpy(), scene.entry_shape.numpy()
        lower, upper = scene.entry_lower.numpy().reshape(-1, 3), scene.entry_upper.numpy().reshape(-1, 3)
        visible = scene.shape_visible.numpy()[entry_shape] == 1
        carried = self.model.shape_body.numpy()[entry_shape] >= 0
        boxes, everything = [], []
        shared = np.arange(start[-2], start[-1])
        for world in worlds:
            own = np.arange(start[world], start[world + 1])
            own = own[visible[own]]
            everyone = np.concatenate([own, shared[visible[shared]]])
            moving = own[carried[own]]
            selected = moving if len(moving) else everyone
            boxes.append(_box(lower[selected], upper[selected]))
            everything.append(_box(lower[everyone], upper[everyone]))
        return np.array(boxes), np.array(everything)

    def _light(
        self, style: PictureStyle, camera: Camera, corners: np.ndarray, layout: "WorldLayout"
    ) -> Light:
        extent = float(np.linalg.norm(corners.max(axis=0) - corners.min(axis=0)))
        distance = float(np.linalg.norm(np.subtract(camera.position, corners.mean(axis=0)))) + extent
        light = sky_light(style, extent=layout.extent, distance=distance, up_axis=self.model.up_axis)
        light.has_floor = int(layout.floor is not None)
        light.floor_height = 0.0 if layout.floor is None else layout.floor
        return light

    def _has_ground(self, worlds: list[int]) -> bool:
        """Return whether a world has its own ground: an endless plane, or wide scenery."""
        level = _level_axes(self.model.up_axis)
        scene = self.caster.arrays.scene
        start, planes = scene.plane_start.numpy(), scene.plane_shape.numpy()
        visible = scene.shape_visible.numpy()
        groups = [*worlds, self.model.world_count]
        if any(visible[planes[start[group] : start[group + 1]]].any() for group in groups):
            return True
        entry_start, entry_shape = scene.entry_start.numpy(), scene.entry_shape.numpy()
        lower, upper = scene.entry_lower.numpy().reshape(-1, 3), scene.entry_upper.numpy().reshape(-1, 3)
        fixed = self.model.shape_body.numpy()[entry_shape] < 0
        shared = np.arange(entry_start[-2], entry_start[-1])
        for group in worlds:  # a robot of a world may stand on scenery that all worlds share
            entries = np.concatenate([np.arange(entry_start[group], entry_start[group + 1]), shared])
            still = entries[fixed[entries] & (visible[entry_shape[entries]] == 1)]
            moving = entries[~fixed[entries] & (visible[entry_shape[entries]] == 1)]
            if len(still) and len(moving):
                wide = (upper[still] - lower[still])[:, level].min(axis=1).max()
                if wide > 1.5 * (upper[moving].max(axis=0) - lower[moving].min(axis=0))[level].max():
                    return True
        return False

    def _view(self, camera: Camera, worlds: list[int], offsets: np.ndarray, width: int, height: int) -> View:
        device = self.model.device
        view = View()
        view.camera_position = wp.array([wp.vec3(*camera.position)], dtype=wp.vec3, device=device)
        rotation = camera.rotation.astype(np.float32)[None]
        view.camera_rotation = wp.array(rotation, dtype=wp.mat33, device=device)
        view.tangent = wp.array([float(np.tan(0.5 * camera.fov))], dtype=wp.float32, device=device)
        view.view_start = wp.array([0, len(worlds)], dtype=wp.int32, device=device)
        view.view_world = wp.array(worlds, dtype=wp.int32, device=device)
        view.view_offset = wp.array(offsets.astype(np.float32), dtype=wp.vec3, device=device)
        view.width, view.height = width, height
        return view

    def _launch(self, view: View, light: Light, image: Any, samples: int) -> None:
        """Render all pixels, in blocks on several threads where the device is a CPU."""
        device = self.model.device
        slots = wp.zeros(1, dtype=wp.int32, device=device)
        camera_start: Any = wp.array([0, 1], dtype=wp.int32, device=device)

        def launch(first: int, count: int) -> None:
            render_pixels(
                slots,
                camera_start,
                1,
                self.caster.arrays.scene,
                self.appearance.arrays,
                view,
                light,
                image,
                samples=samples,
                first_pixel=first,
                pixel_count=count,
            )

        total = view.width * view.height
        if not device.is_cpu or self._threads == 1 or total <= BLOCK_PIXELS:
            launch(0, total)
            return
        launch(0, 0)  # compiles the kernel
        graphs = []
        for first in range(0, total, BLOCK_PIXELS):
            graphs.append(record(device, partial(launch, first, min(BLOCK_PIXELS, total - first))))

        # Warp releases the interpreter's lock while it replays a graph.
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(wp.capture_launch, graphs))


def sky_light(style: PictureStyle, *, extent: float, distance: float, up_axis: Axis = Axis.Z) -> Any:
    """Return light and surroundings for kernels, without a floor.

    Args:
        style: Style options.
        extent: Size of the viewed region [m].
        distance: Its distance [m].
        up_axis: Axis that points up; the direction of the sun rotates with it.
    """
    light = Light()
    light.up = wp.vec3(*up_axis.vector)
    # A cyclic exchange of axes is a rotation.
    sun = np.roll(np.asarray(style.sun_direction, dtype=np.float64), int(up_axis) + 1)
    light.sun_direction = wp.vec3(*(sun / np.maximum(np.linalg.norm(sun), 1.0e-9)).tolist())
    light.sun_color = wp.vec3(*(style.sun * np.array([1.0, 0.97, 0.92])).tolist())
    light.sun_spread = style.sun_spread
    light.sky_color = wp.vec3(*(style.sky * np.array([0.52, 0.56, 0.62])).tolist())
    light.bounce_color = wp.vec3(*(style.sky * np.array([0.30, 0.29, 0.28])).tolist())
    light.horizon_color = wp.vec3(*style.background[0])
    light.zenith_color = wp.vec3(*style.background[1])
    light.shadows = int(style.shadows)
    light.occlusion_distance = float(np.clip(0.35 * extent, 0.02, 2.0)) if style.ambient_occlusion else 0.0
    light.has_floor = 0
    light.floor_color = wp.vec3(*style.floor_color)
    light.plain_color = wp.vec3(*GROUND_COLOR)
    light.grid_spacing = _grid_spacing(extent) if style.grid else 0.0
    light.fade_distance = 4.0 * distance
    return light


_RENDERERS: weakref.WeakKeyDictionary[Model, dict[SeenGeometry, PictureRenderer]] = (
    weakref.WeakKeyDictionary()
)


def renderer_of(model: Model, geometry: SeenGeometry = SeenGeometry.VISUAL) -> PictureRenderer:
    """Return the renderer of a model, made once."""
    made = _RENDERERS.setdefault(model, {})
    if geometry not in made:
        # Kept for the model, it must not keep the model.
        made[geometry] = PictureRenderer(weakref.proxy(model), geometry=geometry)
    return made[geometry]


def check_size(size: Any, what: str) -> tuple[int, int]:
    """Return width and height.

    Raises:
        ValueError: If they are no size of a picture.
    """
    values = list(size) if isinstance(size, Sequence | np.ndarray) else []
    if len(values) != 2 or not all(
        isinstance(value, int | np.integer) and 1 <= value <= SIZE_MAX for value in values
    ):
        raise ValueError(
            f"{what}: size is {size!r}, but it must be width and height, whole numbers of pixels from 1 to "
            f"{SIZE_MAX}."
        )
    return int(values[0]), int(values[1])


def world_offsets(boxes: np.ndarray, spacing: float | None, up_axis: Axis = Axis.Z) -> np.ndarray:
    """Return the offsets that place worlds side by side [m], from the boxes around them, shape [world, 3]."""
    level = _level_axes(up_axis)
    count = len(boxes)
    offsets = np.zeros((count, 3))
    if count == 1 or spacing == 0.0:
        return offsets
    if spacing is not None and not 0.0 < spacing < np.inf:
        raise ValueError(f"picture: spacing is {spacing}, but it must be a finite number >= 0 (m), or None.")
    centre = 0.5 * (boxes[:, 0] + boxes[:, 1])[:, level]
    extent = (boxes[:, 1] - boxes[:, 0])[:, level]
    if spacing is None:
        gap = np.abs(centre[:, None] - centre[None]) - 0.5 * (extent[:, None] + extent[None])
        apart = (gap > 0.0).any(axis=2) | np.eye(count, dtype=bool)
        if apart.all():
            return offsets
        spacing = WORLD_SPACING * float(extent.max())
    columns = int(np.ceil(np.sqrt(count)))
    cell = np.stack([np.arange(count) % columns, np.arange(count) // columns], axis=1).astype(np.float64)
    offsets[:, level] = spacing * (cell - 0.5 * (cell.max(axis=0))) - centre
    return offsets


def _level_axes(up_axis: Axis) -> list[int]:
    """Return the two ground axes, ordered so that they are right-handed with the up axis."""
    return [(int(up_axis) + 1) % 3, (int(up_axis) + 2) % 3]


def write_picture(path: str | Path, pixels: np.ndarray) -> None:
    """Write a picture to a file; the format follows from its name (PNG, JPEG, WebP, ...).

    Raises:
        ValueError: If the name is that of no format of pictures.
        OSError: If the file cannot be written.
    """
    from PIL import Image

    path = Path(path)
    if path.suffix.lower() not in Image.registered_extensions():
        raise ValueError(
            f"picture '{path}': '{path.suffix}' is no format of pictures. Name it .png, .jpg or .webp."
        )
    Image.fromarray(pixels).save(path)


def _box(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    if not len(lower):
        return np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]])
    return np.array([lower.min(axis=0), upper.max(axis=0)])


def _corners(boxes: np.ndarray) -> np.ndarray:
    pick = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    return np.concatenate([box[pick, np.arange(3)] for box in boxes])


def _grid_spacing(extent: float) -> float:
    """Return the distance of grid lines [m]: a power of ten that fits the view."""
    return float(10.0 ** np.round(np.log10(max(extent, 1.0e-3) / 2.0)))


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
