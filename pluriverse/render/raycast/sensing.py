"""Sensing: what cameras and ray sensors measure.

Reads   body_q of the state, the placed shapes of a ray scene
Writes  poses of cameras; depth, distance, segmentation and normals
"""

import warp as wp

from pluriverse.collision.shape_state import rotation_of
from pluriverse.launch import launch_kernel
from pluriverse.render.raycast.scene import RayScene
from pluriverse.render.raycast.trace import Excluded, hit_normal, trace_world

TRACK = wp.constant(1)
TARGET = wp.constant(2)

ALIGN_BODY = wp.constant(0)
ALIGN_YAW = wp.constant(1)
ALIGN_WORLD = wp.constant(2)


@wp.struct
class CameraMount:
    """How cameras are carried."""

    body: wp.array[int]  # [camera] -1 for the world
    xform: wp.array[wp.transform]  # [camera] m, xyzw, in the body
    mode: wp.array[int]  # [camera] `CameraMode`
    target: wp.array[int]  # [camera] body
    track_offset: wp.array[wp.vec3]  # [camera] m, from the body, world axes
    track_rotation: wp.array[wp.mat33]  # [camera]


@wp.struct
class RayMount:
    """How ray sensors are carried."""

    body: wp.array[int]  # [sensor] -1 for the world
    xform: wp.array[wp.transform]  # [sensor] m, xyzw
    alignment: int
    """Axes of the rays: those of the body, those of the body's rotation about z, or the world's."""
    excluded: int
    """0: rays hit all shapes; 1: not those of the body; 2: not those of its tree."""


@wp.kernel(enable_backward=False, module="pluriverse.render.raycast.sensing")
def place_camera(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    camera_start: wp.array[int],  # [world + 1]
    mount: CameraMount,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    # out
    position: wp.array[wp.vec3],  # [camera] m
    rotation: wp.array[wp.mat33],  # [camera]
):
    """Write the pose of one camera."""
    slot, index = wp.tid()
    world = worlds[slot]
    if world < 0:
        return
    camera = camera_start[world] + index
    if camera >= camera_start[world + 1]:
        return
    body = mount.body[camera]
    local = mount.xform[camera]
    origin = wp.vec3(0.0, 0.0, 0.0)
    body_rotation = wp.identity(n=3, dtype=float)
    if body >= 0:
        origin = wp.transform_get_translation(body_q[body])
        body_rotation = rotation_of(wp.transform_get_rotation(body_q[body]))
    position_now = origin + body_rotation * wp.transform_get_translation(local)
    axes = body_rotation * rotation_of(wp.transform_get_rotation(local))
    if mount.mode[camera] == TRACK:
        position_now = origin + mount.track_offset[camera]
        axes = mount.track_rotation[camera]
    elif mount.mode[camera] == TARGET:
        back = position_now - wp.transform_get_translation(body_q[mount.target[camera]])
        if wp.length(back) > 1.0e-6:
            back = wp.normalize(back)
            right = wp.cross(wp.vec3(0.0, 0.0, 1.0), back)
            if wp.length(right) < 1.0e-4:
                right = wp.cross(wp.vec3(0.0, 1.0, 0.0), back)
            right = wp.normalize(right)
            up = wp.cross(back, right)
            axes = wp.matrix_from_cols(right, up, back)
    position[camera] = position_now
    rotation[camera] = axes


@wp.kernel(enable_backward=False, module="pluriverse.render.raycast.sensing")
def sense_pixel(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    camera_start: wp.array[int],  # [world + 1]
    scene: RayScene,
    body_root: wp.array[int],  # [body]
    position: wp.array[wp.vec3],  # [camera] m
    rotation: wp.array[wp.mat33],  # [camera]
    tangent: wp.array[float],  # [camera] of half the vertical field of view
    width: int,
    height: int,
    near: float,  # m
    far: float,  # m
    shape_world: wp.array[int],  # [shape]
    # out, each empty if it is not wanted
    depth: wp.array3d[float],  # [camera, row, column] m along the axis of the camera, infinite for nothing
    distance: wp.array3d[float],  # [camera, row, column] m along the ray
    shape: wp.array3d[int],  # [camera, row, column] -1 for nothing
    body: wp.array3d[int],  # [camera, row, column] -1 for the world, -2 for nothing
    seen_world: wp.array3d[int],  # [camera, row, column] -1 for what is shared, -2 for nothing
    normal: wp.array3d[wp.vec3],  # [camera, row, column] axes of the camera, 0 for nothing
):
    """Measure one pixel of one camera."""
    slot, index, pixel = wp.tid()
    world = worlds[slot]
    if world < 0:
        return
    camera = camera_start[world] + index
    if camera >= camera_start[world + 1]:
        return
    row = pixel / width
    column = pixel - row * width
    slope = tangent[camera]
    across = (2.0 * (float(column) + 0.5) / float(width) - 1.0) * slope * float(width) / float(height)
    up = (1.0 - 2.0 * (float(row) + 0.5) / float(height)) * slope
    stretch = wp.sqrt(1.0 + across * across + up * up)
    direction = wp.normalize(rotation[camera] * wp.vec3(across, up, -1.0))
    start = position[camera] + (near * stretch) * direction
    excluded = Excluded()
    excluded.body = -1
    excluded.root = -1
    hit = trace_world(scene, world, start, direction, (far - near) * stretch, excluded, body_root)
    found = hit.shape
    along = wp.inf
    if found >= 0:
        along = hit.distance + near * stretch
    if depth.shape[0] > 0:
        depth[camera, row, column] = along / stretch
    if distance.shape[0] > 0:
        distance[camera, row, column] = along
    if shape.shape[0] > 0:
        shape[camera, row, column] = found
    if body.shape[0] > 0:
        label = int(-2)
        if found >= 0:
            label = scene.shape_body[found]
        body[camera, row, column] = label
    if seen_world.shape[0] > 0:
        owner = int(-2)
        if found >= 0:
            owner = shape_world[found]
        seen_world[camera, row, column] = owner
    if normal.shape[0] > 0:
        facing = wp.vec3(0.0, 0.0, 0.0)
        if found >= 0:
            facing = hit_normal(scene, hit, start, direction) * rotation[camera]
        normal[camera, row, column] = facing


@wp.kernel(enable_backward=False, module="pluriverse.render.raycast.sensing")
def sense_ray(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    sensor_start: wp.array[int],  # [world + 1]
    scene: RayScene,
    body_root: wp.array[int],  # [body]
    mount: RayMount,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    origin: wp.array[wp.vec3],  # [ray] m, axes of the sensor
    direction: wp.array[wp.vec3],  # [ray] unit, axes of the sensor
    max_distance: float,  # m
    # out
    distance: wp.array2d[float],  # [sensor, ray] m, infinite for nothing
    point: wp.array2d[wp.vec3],  # [sensor, ray] m, world axes; the end of the ray for nothing
    normal: wp.array2d[wp.vec3],  # [sensor, ray] world axes, 0 for nothing
    shape: wp.array2d[int],  # [sensor, ray] -1 for nothing
):
    """Measure one ray of one sensor."""
    slot, index, ray = wp.tid()
    world = worlds[slot]
    if world < 0:
        return
    sensor = sensor_start[world] + index
    if sensor >= sensor_start[world + 1]:
        return
    body = mount.body[sensor]
    local = mount.xform[sensor]
    base = wp.vec3(0.0, 0.0, 0.0)
    base_rotation = wp.identity(n=3, dtype=float)
    excluded = Excluded()
    excluded.body = -1
    excluded.root = -1
    if body >= 0:
        base = wp.transform_get_translation(body_q[body])
        if mount.alignment == ALIGN_BODY:
            base_rotation = rotation_of(wp.transform_get_rotation(body_q[body]))
        elif mount.alignment == ALIGN_YAW:
            forward = rotation_of(wp.transform_get_rotation(body_q[body])) * wp.vec3(1.0, 0.0, 0.0)
            angle = wp.atan2(forward[1], forward[0])
            base_rotation = rotation_of(wp.quat(0.0, 0.0, wp.sin(0.5 * angle), wp.cos(0.5 * angle)))
        if mount.excluded >= 1:
            excluded.body = body
        if mount.excluded == 2:
            excluded.root = body_root[body]
    axes = base_rotation * rotation_of(wp.transform_get_rotation(local))
    start = base + base_rotation * wp.transform_get_translation(local) + axes * origin[ray]
    way = wp.normalize(axes * direction[ray])
    hit = trace_world(scene, world, start, way, max_distance, excluded, body_root)
    shape[sensor, ray] = hit.shape
    if hit.shape >= 0:
        distance[sensor, ray] = hit.distance
        point[sensor, ray] = start + hit.distance * way
        normal[sensor, ray] = hit_normal(scene, hit, start, way)
    else:
        distance[sensor, ray] = wp.inf
        point[sensor, ray] = start + max_distance * way
        normal[sensor, ray] = wp.vec3(0.0, 0.0, 0.0)


def place_cameras(worlds, camera_start, count_max, mount, body_q, position, rotation) -> None:
    """Write the poses of the cameras of worlds; `count_max` is the largest number of cameras in a world."""
    launch_kernel(
        place_camera,
        dim=(worlds.size, count_max),
        inputs=[worlds, camera_start, mount, body_q],
        outputs=[position, rotation],
        device=position.device,
    )


def sense_pixels(worlds, camera_start, count_max, caster, view, near, far, outputs) -> None:
    """Measure the pixels of the cameras of worlds."""
    launch_kernel(
        sense_pixel,
        dim=(worlds.size, count_max, view.width * view.height),
        inputs=[
            worlds,
            camera_start,
            caster.arrays.scene,
            caster.body_root,
            view.camera_position,
            view.camera_rotation,
            view.tangent,
            view.width,
            view.height,
            near,
            far,
            caster.model.shape_world,
        ],
        outputs=list(outputs),
        device=caster.model.device,
    )


def sense_rays(worlds, sensor_start, count_max, caster, mount, body_q, rays, max_distance, outputs) -> None:
    """Measure the rays of the ray sensors of worlds."""
    origin, direction = rays
    launch_kernel(
        sense_ray,
        dim=(worlds.size, count_max, origin.size),
        inputs=[
            worlds,
            sensor_start,
            caster.arrays.scene,
            caster.body_root,
            mount,
            body_q,
            origin,
            direction,
            max_distance,
        ],
        outputs=list(outputs),
        device=caster.model.device,
    )
