"""CameraSensor: images of cameras in all worlds: depth, segmentation, normals and colour."""

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.inputs import Transform, as_transform
from pluriverse.builder.shapes import GROUND_COLOR
from pluriverse.launch import same_memory
from pluriverse.model import Model
from pluriverse.render import PictureStyle, RayCaster, SeenGeometry
from pluriverse.render.model_camera import ModelCameras
from pluriverse.render.picture import check_size, sky_light
from pluriverse.render.raycast.appearance import AppearanceArrays
from pluriverse.selection.patterns import Patterns, match_labels
from pluriverse.sensors.camera_batch import CameraBatch


class CameraOutput(enum.Enum):
    """Outputs of a camera; each is an attribute of `CameraSensor` of that name."""

    DEPTH = "depth"
    """Distance along the axis of the camera [m], infinite for nothing; float32."""
    DISTANCE = "distance"
    """Distance along the ray [m], infinite for nothing; float32."""
    SHAPE = "shape"
    """Shape that is seen, -1 for nothing; int32."""
    BODY = "body"
    """Body that is seen, -1 for shapes of the world, -2 for nothing; int32."""
    WORLD = "world"
    """World of the visible shape, -1 for global shapes, -2 for nothing; int32."""
    NORMAL = "normal"
    """Unit normal of the surface in the axes of the camera, 0 for nothing; three float32."""
    COLOR = "color"
    """Red, green, blue and alpha; four uint8."""


_GEOMETRIC = (
    CameraOutput.DEPTH,
    CameraOutput.DISTANCE,
    CameraOutput.SHAPE,
    CameraOutput.BODY,
    CameraOutput.WORLD,
    CameraOutput.NORMAL,
)
_TYPES: dict[CameraOutput, Any] = {
    CameraOutput.DEPTH: wp.float32,
    CameraOutput.DISTANCE: wp.float32,
    CameraOutput.NORMAL: wp.vec3,
}


class CameraSensor(CameraBatch):
    """Cameras of one resolution in all worlds of a model.

    A camera sees its own world and global shapes. Images are in arrays that keep their memory from update to
    update, in the order of `camera_world`.

    Args:
        model: The model.
        cameras: Labels (or patterns, or indices) of cameras of the model, from `add_camera` or files; all if
            None and no `bodies` are given.
        bodies: Labels or patterns of bodies that each carry a camera at `xform`, in place of `cameras`.
        xform: Pose of those cameras in their bodies. They look along -z, with y up.
        fov: Vertical field of view [rad]; that of each camera if None.
        width: Columns of the images; those of the cameras if None.
        height: Rows of the images; those of the cameras if None.
        outputs: What is measured, as `CameraOutput` or by name.
        geometry: Which shapes are seen.
        near: Distance along the axis from which something is seen [m].
        far: Distance along the axis up to which something is seen [m].
        samples: Rays per pixel, of the colour.
        style: Light and surroundings, of the colour; without shadows and ambient occlusion if None.
        threads: Threads on a CPU; as many as cores if None.

    Raises:
        KeyError: If there is no such camera or body.
        ValueError: If a value is out of range, or the cameras have several resolutions.
    """

    camera_world: np.ndarray
    """World of each camera, on the host, shape [camera]."""
    camera_label: list[str]
    """Name of each camera, or of the body that carries it."""

    def __init__(
        self,
        model: Model,
        cameras: Patterns | None = None,
        *,
        bodies: Patterns | None = None,
        xform: Transform | None = None,
        fov: float | None = None,
        width: int | None = None,
        height: int | None = None,
        outputs: Sequence[CameraOutput | str] = (CameraOutput.DEPTH,),
        geometry: SeenGeometry | str = SeenGeometry.VISUAL,
        near: float = 0.0,
        far: float = np.inf,
        samples: int = 1,
        style: PictureStyle | None = None,
        threads: int | None = None,
    ):
        mounted = _select(model, cameras, bodies, xform)
        if not 0.0 <= near < far:
            raise ValueError(
                f"CameraSensor: near is {near} and far {far}, but 0 <= near < far is needed (m)."
            )
        if fov is not None:
            if not 0.0 < fov < np.pi:
                raise ValueError(f"CameraSensor: fov is {fov}, but it must be between 0 and pi (rad).")
            mounted.fov[:] = fov
        size = _resolution(mounted, width, height)
        if not isinstance(samples, int | np.integer) or samples < 1:
            raise ValueError(
                f"CameraSensor: samples is {samples!r}, but it must be a whole number, 1 or more."
            )
        super().__init__(
            RayCaster(model, geometry=SeenGeometry(geometry)),
            threads,
            mounted.world,
            np.tan(0.5 * mounted.fov),
            size,
            mounted.mount(),
            near,
            far,
            samples,
        )
        selected_outputs = _outputs(outputs)
        self.camera_world, self.camera_label = mounted.world, mounted.label
        device = model.device
        shape = (len(mounted.world), size[1], size[0])
        self._arrays: dict[CameraOutput, Any] = {}
        for output in selected_outputs:
            dtype = wp.uint32 if output is CameraOutput.COLOR else _TYPES.get(output, wp.int32)
            self._arrays[output] = wp.zeros(shape, dtype=dtype, device=device)
        if any(output in selected_outputs for output in _GEOMETRIC):
            self._geometric = [
                self._arrays.get(
                    output, wp.zeros((0, 0, 0), dtype=_TYPES.get(output, wp.int32), device=device)
                )
                for output in _GEOMETRIC
            ]
        self._color: Any = None
        if CameraOutput.COLOR in selected_outputs:
            self._pixels = self._arrays[CameraOutput.COLOR]
            self._color = same_memory(self._pixels, wp.uint8, (*shape, 4))
            self._appearance = AppearanceArrays(model, self._caster.arrays)
            style = PictureStyle(shadows=False, ambient_occlusion=False) if style is None else style
            self._light = sky_light(style, extent=2.0, distance=50.0, up_axis=model.up_axis)
            self._light.plain_color = wp.vec3(*GROUND_COLOR)

    @property
    def resolution(self) -> tuple[int, int]:
        """Columns and rows of the images."""
        return self._view.width, self._view.height

    def set_light(self, style: PictureStyle) -> None:
        """Change light and surroundings of the colour from the next update on."""
        if self._color is not None:
            self._light = sky_light(style, extent=2.0, distance=50.0, up_axis=self.model.up_axis)
            self._graphs.clear()

    def camera_poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions [m] and axes (right, up, backwards as columns), as of the last update."""
        view = self._view
        return view.camera_position.numpy().reshape(-1, 3), view.camera_rotation.numpy().reshape(-1, 3, 3)

    def _array(self, output: CameraOutput) -> Any:
        if output not in self._arrays:
            raise AttributeError(
                f"CameraSensor: {output.value} is not measured; make the sensor with "
                f'outputs=["{output.value}", ...].'
            )
        return self._arrays[output]

    @property
    def depth(self) -> wp.array:
        """Distance along the axis of the camera [m], infinite for nothing, shape [camera, row, column]."""
        return self._array(CameraOutput.DEPTH)

    @property
    def distance(self) -> wp.array:
        """Distance along the ray [m], infinite for nothing, shape [camera, row, column]."""
        return self._array(CameraOutput.DISTANCE)

    @property
    def shape(self) -> wp.array:
        """Shape that is seen, -1 for nothing, shape [camera, row, column]."""
        return self._array(CameraOutput.SHAPE)

    @property
    def body(self) -> wp.array:
        """Body that is seen, -1 for none, -2 for nothing, shape [camera, row, column]."""
        return self._array(CameraOutput.BODY)

    @property
    def world(self) -> wp.array:
        """World of the visible shape, -1 for global shapes, -2 for nothing, shape [camera, row, column]."""
        return self._array(CameraOutput.WORLD)

    @property
    def normal(self) -> wp.array:
        """Unit normal in the axes of the camera, 0 for nothing, shape [camera, row, column]."""
        return self._array(CameraOutput.NORMAL)

    @property
    def color(self) -> wp.array:
        """Red, green, blue and alpha, shape [camera, row, column, 4], uint8."""
        self._array(CameraOutput.COLOR)
        return self._color


def _select(
    model: Model, cameras: Patterns | None, bodies: Patterns | None, xform: Transform | None
) -> ModelCameras:
    if bodies is not None:
        if cameras is not None:
            raise ValueError("CameraSensor: cameras and bodies are both given. Give one of them.")
        found = match_labels(
            model.body_label,
            np.arange(model.body_count),
            bodies,
            what="CameraSensor: bodies",
            kind="body",
        )
        rows = np.flatnonzero(found)
        if not rows.size:
            raise KeyError("CameraSensor: bodies is an empty list. Name bodies, or leave it out.")
        world = np.maximum(model.body_world.numpy()[rows].astype(np.int64), 0)
        rows, world = rows[np.argsort(world, kind="stable")], np.sort(world, kind="stable")
        result = ModelCameras(model)
        result.world, result.body = world, rows.astype(np.int32)
        result.label = [model.body_label[row] for row in rows.tolist()]
        result.xform = np.tile(as_transform(xform, "CameraSensor: xform"), (len(rows), 1))
        result.fov = np.full(len(rows), np.radians(45.0))
        result.mode = np.zeros(len(rows), dtype=np.int32)
        result.target = np.full(len(rows), -1, dtype=np.int32)
        result.resolution = np.tile([64, 64], (len(rows), 1))
        return result
    known = ModelCameras(model)
    if xform is not None:
        raise ValueError("CameraSensor: xform goes with bodies; cameras of the model have their own poses.")
    if not known.label:
        raise KeyError(
            "CameraSensor: the model has no cameras. Add them with ModelBuilder.add_camera, or pass bodies=."
        )
    if cameras is None:
        return known
    rows = np.flatnonzero(
        match_labels(known.label, known.index, cameras, what="CameraSensor: cameras", kind="camera")
    )
    return known.taken(rows)


def _resolution(mounted: ModelCameras, width: int | None, height: int | None) -> tuple[int, int]:
    sizes = np.unique(mounted.resolution, axis=0)
    if width is None or height is None:
        if len(sizes) > 1:
            raise ValueError(
                f"CameraSensor: the cameras have the resolutions {sizes.tolist()}, but a sensor has one. "
                "Pass width= and height=, or make a sensor for each."
            )
        width = int(sizes[0, 0]) if width is None else width
        height = int(sizes[0, 1]) if height is None else height
    return check_size((width, height), "CameraSensor")


def _outputs(outputs: Sequence[CameraOutput | str]) -> list[CameraOutput]:
    names = [outputs] if isinstance(outputs, CameraOutput | str) else list(outputs)
    if not names:
        raise ValueError("CameraSensor: no output is asked for. Pass outputs=['depth'], or more.")
    try:
        return [CameraOutput(name) for name in names]
    except ValueError:
        known = ", ".join(output.value for output in CameraOutput)
        raise ValueError(f"CameraSensor: outputs is {names}, but there are {known}.") from None
