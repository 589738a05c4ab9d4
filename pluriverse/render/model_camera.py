"""Cameras of a model: those added by `ModelBuilder.add_camera` or imported from a file."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.cameras import FREQUENCY
from pluriverse.model import Model, State
from pluriverse.model.poses import compose, rotate
from pluriverse.render.camera import Camera
from pluriverse.render.raycast.sensing import CameraMount, place_cameras


class ModelCameras:
    """The cameras of a model, sorted by world, and how bodies carry them.

    Args:
        model: The model.
    """

    def __init__(self, model: Model):
        self.model = model
        """The model."""
        has_cameras = FREQUENCY in model.custom_frequency_counts

        def column(name: str, width: int = 0) -> np.ndarray:
            shape = (0, width) if width else (0,)
            return model.custom_arrays[f"render:camera_{name}"].numpy() if has_cameras else np.zeros(shape)

        world = np.maximum(column("world").astype(np.int64), 0)  # without worlds there is one
        order = np.argsort(world, kind="stable")
        labels = model.custom_arrays["render:camera_label"] if has_cameras else []
        self.index: np.ndarray = order
        """Index that `add_camera` returned, in the whole model, shape [camera]."""
        self.world: np.ndarray = world[order]
        """World of each camera, shape [camera]."""
        self.label: list[str] = [labels[row] for row in order.tolist()]
        """Name of each camera."""
        self.body = column("body")[order].astype(np.int32)
        """Body that carries each camera, -1 for the world."""
        self.xform = column("xform", 7).reshape(-1, 7)[order].astype(np.float64)
        """Pose in that body [m, xyzw], shape [camera, 7]."""
        self.fov = column("fov")[order].astype(np.float64)
        """Vertical field of view [rad]."""
        self.mode = column("mode")[order].astype(np.int32)
        """`CameraMode`."""
        self.target = column("target")[order].astype(np.int32)
        """Body that it points at, -1 for none."""
        self.resolution = column("resolution", 2).reshape(-1, 2)[order].astype(np.int64)
        """Columns and rows of its image."""

    def taken(self, rows: np.ndarray) -> "ModelCameras":
        """Return some of the cameras."""
        result = object.__new__(ModelCameras)
        result.model = self.model
        result.label = [self.label[row] for row in rows.tolist()]
        for name in ("index", "world", "body", "xform", "fov", "mode", "target", "resolution"):
            setattr(result, name, getattr(self, name)[rows])
        return result

    def mount(self) -> Any:
        """Return the kernel's arguments for placing the cameras."""
        device, mount = self.model.device, CameraMount()
        poses = self.model.body_q.numpy().reshape(-1, 7).astype(np.float64)
        carrier = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(self.body), 1))
        carrier[self.body >= 0] = poses[self.body[self.body >= 0]]
        initial = compose(carrier, self.xform)
        axes = [rotate(initial[:, 3:], np.tile(axis, (len(initial), 1))) for axis in np.eye(3)]
        mount.body = wp.array(self.body, dtype=wp.int32, device=device)
        mount.xform = wp.array(self.xform.astype(np.float32), dtype=wp.transform, device=device)
        mount.mode = wp.array(self.mode, dtype=wp.int32, device=device)
        mount.target = wp.array(self.target, dtype=wp.int32, device=device)
        offset = (initial[:, :3] - carrier[:, :3]).astype(np.float32)
        mount.track_offset = wp.array(offset, dtype=wp.vec3, device=device)
        rotation = np.stack(axes, axis=2).astype(np.float32)
        mount.track_rotation = wp.array(rotation, dtype=wp.mat33, device=device)
        return mount

    def starts(self) -> np.ndarray:
        """Return the first camera of each world, and their number, shape [world + 1]."""
        counts = np.bincount(self.world, minlength=self.model.world_count)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def poses(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return positions [m] and axes (right, up, backwards as columns) of all cameras in a state."""
        device, count = self.model.device, len(self.body)
        position = wp.zeros(count, dtype=wp.vec3, device=device)
        rotation = wp.zeros(count, dtype=wp.mat33, device=device)
        starts = self.starts()
        start: Any = wp.array(starts, dtype=wp.int32, device=device)
        most = int(np.diff(starts).max(initial=0))
        place_cameras(self.model.worlds, start, most, self.mount(), state.body_q, position, rotation)
        return position.numpy().reshape(-1, 3), rotation.numpy().reshape(-1, 3, 3)


def camera_of_label(model: Model, state: State, label: str, world: int) -> Camera:
    """Return a camera of a world as posed in a state.

    Raises:
        KeyError: If there is no such camera.
    """
    cameras = ModelCameras(model)
    inside = np.flatnonzero(cameras.world == world)
    names = [cameras.label[row] for row in inside]
    found = [row for row, name in zip(inside, names, strict=True) if label in (name, name.rsplit("/", 1)[-1])]
    if not found:
        known = ", ".join(names) or "none; add one with ModelBuilder.add_camera"
        raise KeyError(f"world {world} has no camera '{label}'; it has {known}.")
    camera = cameras.taken(np.array(found[:1]))
    position, rotation = camera.poses(state)
    back, up = rotation[0][:, 2], rotation[0][:, 1]
    return Camera(
        tuple(position[0].tolist()),
        tuple((position[0] - back).tolist()),
        tuple(up.tolist()),
        float(camera.fov[0]),
    )
