"""Camera calls: camera sensors of envs, and their images as arrays, tensors and files."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.arguments import as_float, as_int, transform, vector
from pluriverse.gymapi.camera_records import (
    camera_axes,
    env_pose,
    follow_mode,
    looking_pose,
    rotation_of,
)
from pluriverse.gymapi.enums import CameraFollowMode, ImageType
from pluriverse.gymapi.errors import GymError, require
from pluriverse.gymapi.image_files import as_picture, write_image
from pluriverse.gymapi.preparation import PreparingCalls
from pluriverse.gymapi.scene import CameraRecord, Sim, pose_row
from pluriverse.gymapi.structures import CameraProperties
from pluriverse.gymapi.tensor import Tensor
from pluriverse.gymapi.values import Quat, Transform, Vec3

# Largest side of an image [pixel].
SIZE_MAX = 16384


class CameraCalls(PreparingCalls):
    """Camera sensors: create, place, render, read."""

    def create_camera_sensor(self, env: Any, properties: CameraProperties | None = None) -> int:
        """Add a camera to an env and return its handle. It sees its own env, and those that share its world.

        Args:
            env: The env; also after the sim was prepared.
            properties: Resolution, field of view and range.
        """
        call = "create_camera_sensor"
        found = self._env(env, call)
        checked = CameraProperties() if properties is None else properties
        if not isinstance(checked, CameraProperties):
            raise TypeError(f"{call}: properties is {checked!r}, but must be a gymapi.CameraProperties.")
        _check_properties(checked, call)
        record = CameraRecord(found, len(found.cameras), checked.copy())
        found.cameras.append(record)
        found.sim.cameras.append(record)
        return record.handle

    def destroy_camera_sensor(self, sim: Any, env: Any, camera_handle: int) -> None:
        """Stop rendering a camera. Arrays of its images stay readable."""
        self._sim(sim, "destroy_camera_sensor")
        record = self._camera(env, camera_handle, "destroy_camera_sensor")
        record.is_destroyed = True
        record.images = {}
        if record.batch is not None:
            record.batch.is_outdated = True

    def set_camera_location(self, camera_handle: int, env: Any, position: Vec3, target: Vec3) -> None:
        """Put a camera somewhere in its env [m], looking at a point of it; it leaves the body it was on."""
        call = "set_camera_location"
        record = self._camera(env, camera_handle, call)
        eye, point = (
            np.array(list(vector(value, what, call)), dtype=np.float64)
            for value, what in ((position, "position"), (target, "target"))
        )
        require(
            bool(
                np.isfinite(eye).all() and np.isfinite(point).all() and np.linalg.norm(point - eye) > 1.0e-9
            ),
            call,
            f"position is {position!r} and target {target!r}, but both must be finite, and apart.",
        )
        record.pose = looking_pose(record.env.sim, eye, point)
        record.body = None
        _note_move(record)

    def set_camera_transform(self, camera_handle: int, env: Any, pose: Transform) -> None:
        """Put a camera somewhere in its env; it looks along its x axis and leaves the body it was on."""
        record = self._camera(env, camera_handle, "set_camera_transform")
        record.pose = _pose(pose, "set_camera_transform")
        record.body = None
        _note_move(record)

    def attach_camera_to_body(
        self,
        camera_handle: int,
        env: Any,
        body_handle: int,
        local_transform: Transform,
        mode: CameraFollowMode | int,
    ) -> None:
        """Let a body carry a camera.

        Args:
            camera_handle: The camera.
            env: Its env.
            body_handle: Handle of the body in the env.
            local_transform: Pose of the camera relative to the body; it looks along its x axis.
            mode: FOLLOW_TRANSFORM if it turns with the body; with FOLLOW_POSITION the transform is in the
                axes of the env, with the body as origin.
        """
        call = "attach_camera_to_body"
        record = self._camera(env, camera_handle, call)
        actor, body = self._body(env, body_handle, call)
        record.pose = _pose(local_transform, call)
        record.follows_rotation = follow_mode(mode, call) is CameraFollowMode.FOLLOW_TRANSFORM
        record.body = (actor, body)
        _note_move(record)

    def get_camera_transform(self, sim: Any, env: Any, camera_handle: int) -> Transform:
        """Return where a camera is in its env; it looks along the x axis of the pose."""
        call = "get_camera_transform"
        self._sim(sim, call)
        pose = env_pose(self._camera(env, camera_handle, call))
        return Transform(Vec3(*pose[:3].tolist()), Quat(*pose[3:].tolist()))

    def get_camera_view_matrix(self, sim: Any, env: Any, camera_handle: int) -> np.ndarray:
        """Return the matrix that maps rows (x, y, z, 1) in the sim to the camera, shape [4, 4].

        In the camera x is to the right, y up, and what it sees has negative z.
        """
        call = "get_camera_view_matrix"
        self._sim(sim, call)
        record = self._camera(env, camera_handle, call)
        pose = env_pose(record)
        rotation = rotation_of(pose[3:]) @ camera_axes(record.env.sim)
        position = pose[:3] + record.env.origin
        matrix = np.eye(4)
        matrix[:3, :3] = rotation
        matrix[3, :3] = -position @ rotation
        return matrix.astype(np.float32)

    def get_camera_proj_matrix(self, sim: Any, env: Any, camera_handle: int) -> np.ndarray:
        """Return the matrix that projects rows (x, y, z, 1) in the camera, shape [4, 4].

        Divided by the fourth entry, x and y are from -1 to 1 in the image, and z is 1 at the near plane and 0
        infinitely far away.
        """
        self._sim(sim, "get_camera_proj_matrix")
        properties = self._camera(env, camera_handle, "get_camera_proj_matrix").properties
        scale = 1.0 / np.tan(0.5 * np.radians(properties.horizontal_fov))
        matrix = np.zeros((4, 4), dtype=np.float32)
        matrix[0, 0], matrix[1, 1] = scale, scale * properties.width / properties.height
        matrix[2, 3], matrix[3, 2] = -1.0, properties.near_plane
        return matrix

    def render_all_camera_sensors(self, sim: Any) -> None:
        """Render the images of all cameras that were asked for, as things are now."""
        found = self._prepare_for(sim, "render_all_camera_sensors")
        from pluriverse.gymapi.cameras import camera_set  # loads the ray caster

        camera_set(found).render()

    def get_camera_image(
        self, sim: Any, env: Any, camera_handle: int, image_type: ImageType | int
    ) -> np.ndarray:
        """Return an image as of the last `render_all_camera_sensors`; a copy.

        The first one of its kind is rendered now, and from then on with the others.

        Returns:
            Of colours [row, 4 * column] uint8, red, green, blue and alpha; of depths [row, column] float32,
            the negative distance along the axis [m], -inf for nothing; of segmentation [row, column] uint32,
            0 for nothing; of optical flow [row, 2 * column] int16, the motion to the right and down since the
            last image, in 32768ths of its width and height.
        """
        call = "get_camera_image"
        record, kind = self._image(sim, env, camera_handle, image_type, call)
        image: np.ndarray = np.array(record.image(kind, record.env.sim.device).numpy())
        if kind is ImageType.IMAGE_SEGMENTATION:
            return image.astype(np.uint32)
        return image.reshape(image.shape[0], -1)

    def get_camera_image_gpu_tensor(
        self, sim: Any, env: Any, camera_handle: int, image_type: ImageType | int
    ) -> Tensor:
        """Return the memory of an image, on the device of the sim, which keeps its place.

        `render_all_camera_sensors` fills it, from now on with this kind of image too.

        Returns:
            As `get_camera_image`, but of shape [row, column, 4] for colours, [row, column, 2] for optical
            flow, and of int32 for segmentation.
        """
        call = "get_camera_image_gpu_tensor"
        found = self._sim(sim, call)
        record = self._camera(env, camera_handle, call)
        return Tensor(record.image(_image_type(image_type, call), found.device))

    def start_access_image_tensors(self, sim: Any) -> None:
        """Wait until the images are there."""
        found = self._sim(sim, "start_access_image_tensors")
        if not found.device.is_cpu:
            wp.synchronize_device(found.device)

    def end_access_image_tensors(self, sim: Any) -> None:
        """Accept that the tensors are not read any more."""
        self._sim(sim, "end_access_image_tensors")

    def write_camera_image_to_file(
        self, sim: Any, env: Any, camera_handle: int, image_type: ImageType | int, filename: str
    ) -> None:
        """Write an image to a file to look at, PNG by default. Depths and labels become shades and colours.

        Raises:
            FileNotFoundError: If there is no such folder.
            ValueError: If the name is that of no format of pictures.
        """
        call = "write_camera_image_to_file"
        record, kind = self._image(sim, env, camera_handle, image_type, call)
        image = record.image(kind, record.env.sim.device).numpy()
        write_image(call, filename, as_picture(image, kind))

    def _image(
        self, sim: Any, env: Any, handle: Any, image_type: Any, call: str
    ) -> tuple[CameraRecord, ImageType]:
        """Return the camera and kind of an image, which is rendered if it never was."""
        found = self._prepare_for(sim, call)
        record, kind = self._camera(env, handle, call), _image_type(image_type, call)
        is_new = kind not in record.images
        record.image(kind, found.device)
        if is_new or record.batch is None or record.batch.render_count == 0:
            from pluriverse.gymapi.cameras import camera_set  # loads the ray caster

            found.prepared.update_body_poses()
            camera_set(found).update_batches()
            assert record.batch is not None
            record.batch.render()
        return record, kind

    def _prepare_for(self, sim: Any, call: str) -> Sim:
        """Return a sim, which is prepared if it is not yet."""
        self._runtime(sim, call)
        return self._sim(sim, call)

    def _camera(self, env: Any, handle: Any, call: str) -> CameraRecord:
        """Return the camera of a handle."""
        found = self._env(env, call)
        cameras = found.cameras
        index = as_int(handle, "camera_handle", call)
        if not 0 <= index < len(cameras):
            raise IndexError(
                f"{call}: env {found.index} has no camera {handle}; it has {len(cameras)}. Use the handle "
                "that create_camera_sensor() returned for this env."
            )
        record = cameras[index]
        if record.is_destroyed:
            raise GymError(f"{call}: camera {handle} of env {found.index} was destroyed. Create another one.")
        return record


def _note_move(record: CameraRecord) -> None:
    if record.batch is not None:
        record.batch.is_moved = True


def _pose(value: Any, call: str) -> np.ndarray:
    row = pose_row(transform(value, "transform", call)).astype(np.float64)
    require(bool(np.isfinite(row).all()), call, f"transform is {value!r}, but its numbers must be finite.")
    return row


def _image_type(value: Any, call: str) -> ImageType:
    try:
        return ImageType(int(value))
    except (TypeError, ValueError):
        names = ", ".join(f"gymapi.{kind.name}" for kind in ImageType)
        raise ValueError(f"{call}: the image type is {value!r}, but must be one of {names}.") from None


def _check_properties(properties: CameraProperties, call: str) -> None:
    for name in ("width", "height", "supersampling_horizontal", "supersampling_vertical"):
        value = getattr(properties, name)
        most = SIZE_MAX if name in ("width", "height") else 16
        require(
            1 <= as_int(value, f"properties.{name}", call) <= most,
            call,
            f"properties.{name} is {value!r}, but must be from 1 to {most}.",
        )
    angle = as_float(properties.horizontal_fov, "properties.horizontal_fov", call)
    require(
        0.0 < angle < 180.0,
        call,
        f"properties.horizontal_fov is {angle}, but must be between 0 and 180 degrees.",
    )
    near, far = (
        as_float(getattr(properties, name), f"properties.{name}", call)
        for name in ("near_plane", "far_plane")
    )
    require(
        0.0 <= near < far,
        call,
        f"properties.near_plane is {near} m and far_plane {far} m, but 0 <= near_plane < far_plane "
        "is needed.",
    )
