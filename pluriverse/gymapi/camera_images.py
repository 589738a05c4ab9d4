"""Camera images: the measurements of cameras in the formats of the API.

Reads   depths, shapes and colours of the ray caster, body_q now and at the previous picture
Writes  images of the cameras, each in memory of its own
"""

import warp as wp

from pluriverse.launch import launch_kernel

COLOR = wp.constant(0)
DEPTH = wp.constant(1)
SEGMENTATION = wp.constant(2)
FLOW = wp.constant(3)
IMAGE_TYPE_COUNT = 4
"""Number of kinds of images, as in `gymapi.ImageType`."""

# Steps of optical flow: a motion across the whole picture.
FLOW_UNIT = wp.constant(32768.0)
FLOW_MAX = wp.constant(32767.0)


@wp.func
def flow_step(share: float) -> wp.int16:
    """Return a motion, relative to the size of the picture, in steps."""
    return wp.int16(wp.clamp(wp.round(share * FLOW_UNIT), -FLOW_UNIT, FLOW_MAX))


@wp.kernel(enable_backward=False, module="pluriverse.gymapi.camera_images")
def write_pixel(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    camera_start: wp.array[int],  # [world + 1]
    tangent: wp.array[float],  # [camera] of half the vertical field of view
    width: int,
    height: int,
    shape_body: wp.array[int],  # [shape] -1 for the world
    shape_segmentation: wp.array[int],  # [shape]
    # rendered images; empty if not requested
    color: wp.array3d[wp.uint32],  # [camera, row, column]
    depth: wp.array3d[float],  # [camera, row, column] m along the axis of the camera, infinite for nothing
    shape: wp.array3d[int],  # [camera, row, column] -1 for nothing
    # poses now, and at the previous picture
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    last_body_q: wp.array[wp.transform],  # [body] m, xyzw
    position: wp.array[wp.vec3],  # [camera] m
    rotation: wp.array[wp.mat33],  # [camera] right, up, backwards as columns
    last_position: wp.array[wp.vec3],  # [camera] m
    last_rotation: wp.array[wp.mat33],  # [camera]
    # out
    address: wp.array2d[wp.uint64],  # [camera, type] memory of the image, 0 if it is not wanted
):
    """Write one pixel of the images of one camera."""
    slot, index, pixel = wp.tid()
    world = worlds[slot]
    camera = camera_start[world] + index
    if camera >= camera_start[world + 1]:
        return  # this world has fewer cameras than others
    row = pixel / width
    column = pixel - row * width
    if address[camera, COLOR] != wp.uint64(0):
        colors = wp.array(ptr=address[camera, COLOR], shape=(width * height,), dtype=wp.uint32)
        colors[pixel] = color[camera, row, column]
    if address[camera, DEPTH] != wp.uint64(0):
        depths = wp.array(ptr=address[camera, DEPTH], shape=(width * height,), dtype=wp.float32)
        depths[pixel] = -depth[camera, row, column]
    if address[camera, SEGMENTATION] != wp.uint64(0):
        labels = wp.array(ptr=address[camera, SEGMENTATION], shape=(width * height,), dtype=wp.int32)
        label = int(0)
        if shape[camera, row, column] >= 0:
            label = shape_segmentation[shape[camera, row, column]]
        labels[pixel] = label
    if address[camera, FLOW] != wp.uint64(0):
        flows = wp.array(ptr=address[camera, FLOW], shape=(2 * width * height,), dtype=wp.int16)
        slope = tangent[camera]
        aspect = float(width) / float(height)
        across = (2.0 * (float(column) + 0.5) / float(width) - 1.0) * slope * aspect
        up = (1.0 - 2.0 * (float(row) + 0.5) / float(height)) * slope
        way = rotation[camera] * wp.vec3(across, up, -1.0)
        before = way * last_rotation[camera]  # of what is infinitely far away
        hit_shape = shape[camera, row, column]
        if hit_shape >= 0:
            point = position[camera] + depth[camera, row, column] * way
            body = shape_body[hit_shape]
            if body >= 0:
                local = wp.transform_point(wp.transform_inverse(body_q[body]), point)
                point = wp.transform_point(last_body_q[body], local)
            before = (point - last_position[camera]) * last_rotation[camera]
        right = wp.int16(0)
        down = wp.int16(0)
        if before[2] < -1.0e-6:  # what was behind the camera has no place in the picture before
            right = flow_step(0.5 * (across + before[0] / before[2]) / (slope * aspect))
            down = flow_step(-0.5 * (up + before[1] / before[2]) / slope)
        flows[2 * pixel] = right
        flows[2 * pixel + 1] = down


def write_pixels(
    worlds,
    camera_start,
    count_max,
    view,
    shape_body,
    shape_segmentation,
    rendered,
    body_q,
    last,
    address,
) -> None:
    """Write the images of the cameras of worlds; `count_max` is the most cameras of a world.

    `rendered` are colours, depths and shapes; `last` are body poses, and positions and rotations of the
    cameras, at the picture before.
    """
    last_body_q, last_position, last_rotation = last
    launch_kernel(
        write_pixel,
        dim=(worlds.size, count_max, view.width * view.height),
        inputs=[
            worlds,
            camera_start,
            view.tangent,
            view.width,
            view.height,
            shape_body,
            shape_segmentation,
            *rendered,
            body_q,
            last_body_q,
            view.camera_position,
            view.camera_rotation,
            last_position,
            last_rotation,
        ],
        outputs=[address],
        device=address.device,
    )
