"""Cameras: the batches in which images of camera sensors are rendered.

Cameras of equal resolution, range and geometry are rendered together, all worlds at once; each camera has its
images in its own memory, at a fixed address. Only requested kinds of images are rendered.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.camera_images import IMAGE_TYPE_COUNT, write_pixels
from pluriverse.gymapi.camera_records import (
    batch_key,
    camera_axes,
    quaternion_of,
    rotation_of,
    up_axis_of,
)
from pluriverse.gymapi.drawn_shapes import DrawnShapes
from pluriverse.gymapi.enums import ImageType
from pluriverse.gymapi.lighting import make_light
from pluriverse.gymapi.scene import CameraRecord, Sim
from pluriverse.model import State, poses
from pluriverse.render import SeenGeometry
from pluriverse.render.raycast.sensing import CameraMount
from pluriverse.sensors.camera_batch import CameraBatch

# Modes of `CameraMount`.
_FIXED, _TRACK = 0, 1


class ActorCameras(CameraBatch):
    """Cameras that are rendered together.

    Args:
        shapes: The shapes that they see.
        records: The cameras.
    """

    def __init__(self, shapes: DrawnShapes, records: list[CameraRecord]):
        self.shapes = shapes
        self.sim: Sim = shapes.sim
        self.records = sorted(records, key=lambda record: record.env.world)
        """Cameras, in the order of their worlds."""
        self.is_outdated = True
        """Whether the requested images differ from those that are rendered."""
        self.is_moved = True
        """Whether calls moved cameras."""
        self._light_version = -1
        self._has_flow = False
        width, height, samples, _, near, far = batch_key(records[0].properties)
        device, count = self.sim.device, len(self.records)
        fov = np.radians([float(record.properties.horizontal_fov) for record in self.records])
        mount: Any = CameraMount()
        mount.body = wp.zeros(count, dtype=wp.int32, device=device)
        mount.xform = wp.zeros(count, dtype=wp.transform, device=device)
        mount.mode = wp.zeros(count, dtype=wp.int32, device=device)
        mount.target = wp.full(count, -1, dtype=wp.int32, device=device)
        mount.track_offset = wp.zeros(count, dtype=wp.vec3, device=device)
        mount.track_rotation = wp.zeros(count, dtype=wp.mat33, device=device)
        super().__init__(
            shapes.caster,
            None,
            np.array([record.env.world for record in self.records]),
            np.tan(0.5 * fov) * height / width,
            (width, height),
            mount,
            near,
            far,
            samples,
        )
        self._address: Any = wp.zeros((count, IMAGE_TYPE_COUNT), dtype=wp.uint64, device=device)
        self._last_position: Any = wp.zeros(count, dtype=wp.vec3, device=device)
        self._last_rotation: Any = wp.zeros(count, dtype=wp.mat33, device=device)
        self._last_body_q: Any = None
        for record in self.records:
            record.batch = self
        self.render_count = 0
        """How often the batch was rendered."""

    def render(self) -> None:
        """Render all requested images."""
        state: State = self.sim.prepared.simulation.state
        if self.is_outdated:
            self._make_outputs()
        if self._appearance is not None and self._appearance is not self.shapes.appearance:
            self._appearance = self.shapes.appearance
            self._graphs.clear()
        if self._light_version != self.sim.lights.version:
            self._light_version = self.sim.lights.version
            self._light = make_light(self.sim.lights, up_axis=up_axis_of(self.sim), extent=2.0, distance=50.0)
            self._graphs.clear()
        if self.is_moved:
            self._carry()
        self.shapes.to_device()
        first = self.render_count == 0 or self._last_body_q is None
        if self._last_body_q is None:
            self._last_body_q = wp.empty_like(state.body_q)
        if first and self._has_flow:
            # Without a previous picture nothing has moved: it equals this one.
            self._place(state, self.model.worlds)
            self._keep(state)
        self.update(state)
        if self._has_flow:
            self._keep(state)
        self.render_count += 1

    def _keep(self, state: State) -> None:
        """Store the poses at this picture."""
        wp.copy(self._last_body_q, state.body_q)
        wp.copy(self._last_position, self._view.camera_position)
        wp.copy(self._last_rotation, self._view.camera_rotation)

    def _make_outputs(self) -> None:
        """Allocate memory for the images, and store their addresses."""
        device, view = self.sim.device, self._view
        kinds_needed = {kind for record in self.records for kind in record.images}
        address = np.zeros((len(self.records), IMAGE_TYPE_COUNT), dtype=np.uint64)
        for index, record in enumerate(self.records):
            for kind, image in record.images.items():
                address[index, int(kind)] = image.ptr
        self._address.assign(address)

        def made(dtype: Any, *kinds: ImageType) -> Any:
            size = (len(self.records), view.height, view.width) if kinds_needed & set(kinds) else (0, 0, 0)
            return wp.zeros(size, dtype=dtype, device=device)

        flow = ImageType.IMAGE_OPTICAL_FLOW
        self._color = made(wp.uint32, ImageType.IMAGE_COLOR)
        self._depth = made(wp.float32, ImageType.IMAGE_DEPTH, flow)
        self._shape = made(wp.int32, ImageType.IMAGE_SEGMENTATION, flow)
        nothing = {dtype: wp.zeros((0, 0, 0), dtype=dtype, device=device) for dtype in (float, int, wp.vec3)}
        images = [
            self._depth,
            nothing[float],
            self._shape,
            nothing[int],
            nothing[int],
            nothing[wp.vec3],
        ]
        self._geometric = images if self._depth.size or self._shape.size else None
        self._pixels = self._color if self._color.size else None
        self._appearance = self.shapes.appearance if self._color.size else None
        if flow in kinds_needed and not self._has_flow:
            self.render_count = 0
        self._has_flow = flow in kinds_needed
        self._graphs.clear()
        self.is_outdated = False

    def _carry(self) -> None:
        """Write the mounts of the cameras, in place."""
        count, axes = len(self.records), camera_axes(self.sim)
        turned = quaternion_of(axes)
        body, mode = np.full(count, -1, dtype=np.int32), np.full(count, _FIXED, dtype=np.int32)
        local = np.tile([0.0] * 6 + [1.0], (count, 1))
        for index, record in enumerate(self.records):
            local[index] = record.pose
            if record.body is None:
                local[index, :3] += record.env.offset
            else:
                actor, actor_body = record.body
                body[index] = actor.starts["body"] + actor_body
                mode[index] = _FIXED if record.follows_rotation else _TRACK
        pose = np.asarray(poses.compose(local, np.tile([0.0, 0.0, 0.0, *turned], (count, 1))))
        mount = self._mount
        mount.body.assign(body)
        mount.mode.assign(mode)
        mount.xform.assign(pose.astype(np.float32))
        mount.track_offset.assign(local[:, :3].astype(np.float32))
        mount.track_rotation.assign(rotation_of(pose[:, 3:]).astype(np.float32))
        self.is_moved = False

    def _sense(self, state: State, worlds: wp.array[int]) -> None:
        super()._sense(state, worlds)
        write_pixels(
            worlds,
            self._start,
            self._count_max,
            self._view,
            self._caster.arrays.scene.shape_body,
            self.shapes.segmentation,
            (self._color, self._depth, self._shape),
            state.body_q,
            (self._last_body_q, self._last_position, self._last_rotation),
            self._address,
        )


class CameraSet:
    """All cameras of a prepared sim, and the shapes that they see.

    Args:
        sim: The sim.
    """

    def __init__(self, sim: Sim):
        self.sim = sim
        self.batches: list[ActorCameras] = []
        self._shapes: dict[SeenGeometry, DrawnShapes] = {}

    def shapes(self, geometry: SeenGeometry) -> DrawnShapes:
        """Return the visible shapes, made when they are needed."""
        if geometry not in self._shapes:
            shapes = self._shapes[geometry] = DrawnShapes(self.sim, geometry)
            self.sim.shape_watchers.append(shapes)
        return self._shapes[geometry]

    def update_batches(self) -> None:
        """Put cameras without a batch into batches."""
        fresh = [record for record in self.sim.cameras if record.batch is None and not record.is_destroyed]
        groups: dict[Any, list[CameraRecord]] = {}
        for record in fresh:
            groups.setdefault(batch_key(record.properties), []).append(record)
        for records in groups.values():
            geometry = (
                SeenGeometry.COLLISION
                if records[0].properties.use_collision_geometry
                else SeenGeometry.VISUAL
            )
            self.batches.append(ActorCameras(self.shapes(geometry), records))

    def render(self) -> None:
        """Render all cameras."""
        self.sim.prepared.update_body_poses()
        self.update_batches()
        for batch in self.batches:
            if any(record.images for record in batch.records):
                batch.render()


def camera_set(sim: Sim) -> CameraSet:
    """Return the renderer of the cameras of a prepared sim, made when it is needed."""
    return sim.part(CameraSet) or sim.add_part(CameraSet(sim))
