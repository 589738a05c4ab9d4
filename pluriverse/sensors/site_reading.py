"""Site reading stage: what inertial units feel at sites, and poses of shapes in the frames of sites.

Reads   body_q, body_qd, body_qdd of a state; shape_transform
Writes  accelerometer, gyroscope; transforms
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State

_MODULE = "pluriverse.sensors.site_reading"


@wp.func
def shape_pose(
    shape: int,
    shape_body: wp.array[int],
    shape_transform: wp.array[wp.transform],
    body_q: wp.array[wp.transform],
) -> wp.transform:
    """Return the pose of a shape in the world [m, xyzw]."""
    pose = shape_transform[shape]
    if shape_body[shape] >= 0:
        pose = body_q[shape_body[shape]] * pose
    return pose


@wp.kernel(enable_backward=False, module=_MODULE)
def measure_site(
    site: wp.array[int],  # [sensor] shape
    site_world: wp.array[int],  # [sensor]
    # model
    shape_body: wp.array[int],  # [shape]
    shape_transform: wp.array[wp.transform],  # [shape] m, body frame
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    gravity: wp.array[wp.vec3],  # [world] m/s^2
    # state
    body_q: wp.array[wp.transform],  # [body]
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_qdd: wp.array[wp.spatial_vector],  # [body] m/s^2, rad/s^2, world axes
    # out
    accelerometer: wp.array[wp.vec3],  # [sensor] m/s^2, axes of the site
    gyroscope: wp.array[wp.vec3],  # [sensor] rad/s, axes of the site
):
    """Write the specific force and the angular velocity at one site."""
    sensor, _ = wp.tid()
    shape = site[sensor]
    body = shape_body[shape]
    pose = shape_pose(shape, shape_body, shape_transform, body_q)
    acceleration = -gravity[site_world[sensor]]
    omega = wp.vec3()
    if body >= 0:
        omega = wp.spatial_bottom(body_qd[body])
        arm = wp.transform_get_translation(pose) - wp.transform_point(body_q[body], body_com[body])
        acceleration += wp.spatial_top(body_qdd[body])
        acceleration += wp.cross(wp.spatial_bottom(body_qdd[body]), arm)
        acceleration += wp.cross(omega, wp.cross(omega, arm))
    rotation = wp.transform_get_rotation(pose)
    accelerometer[sensor] = wp.quat_rotate_inv(rotation, acceleration)
    gyroscope[sensor] = wp.quat_rotate_inv(rotation, omega)


def measure_sites(
    model: Model, site: Any, site_world: Any, state: State, accelerometer: Any, gyroscope: Any
) -> None:
    """Write the specific force [m/s²] and the angular velocity [rad/s] at sites, in their axes."""
    launch_kernel(
        measure_site,
        dim=site.size,
        inputs=[
            site,
            site_world,
            model.structure.shape_body,
            model.shape_transform,
            model.body_com,
            model.gravity,
            state.body_q,
            state.body_qd,
            state.body_qdd,
        ],
        outputs=[accelerometer, gyroscope],
        device=model.device,
    )


@wp.kernel(enable_backward=False, module=_MODULE)
def relate_shape(
    shape: wp.array[int],  # [sensor]
    reference: wp.array[int],  # [sensor] shape
    # model
    shape_body: wp.array[int],  # [shape]
    shape_transform: wp.array[wp.transform],  # [shape] m, body frame
    # state
    body_q: wp.array[wp.transform],  # [body]
    # out
    transforms: wp.array[wp.transform],  # [sensor] m, xyzw
):
    """Write the pose of one shape in the frame of another."""
    sensor, _ = wp.tid()
    own = shape_pose(shape[sensor], shape_body, shape_transform, body_q)
    other = shape_pose(reference[sensor], shape_body, shape_transform, body_q)
    transforms[sensor] = wp.transform_inverse(other) * own


def relate_shapes(model: Model, shape: Any, reference: Any, state: State, transforms: Any) -> None:
    """Write the pose of each shape in the frame of another [m, xyzw]."""
    launch_kernel(
        relate_shape,
        dim=shape.size,
        inputs=[shape, reference, model.structure.shape_body, model.shape_transform, state.body_q],
        outputs=[transforms],
        device=model.device,
    )
