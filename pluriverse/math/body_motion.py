"""Velocities, wrenches and rotations of bodies in kernels, in the order of the model: linear part first."""

import itertools
import math
from typing import Any

import warp as wp

from pluriverse.types import Axis

# Cosine of a rotation below which two directions are opposite: within the rounding of single precision.
OPPOSITE = wp.constant(-1.0 + 1.0e-6)


@wp.func
def velocity_at_point(qd: wp.spatial_vector, r: wp.vec3) -> wp.vec3:
    """Return the velocity [m/s] of a point of a body.

    Args:
        qd: Velocity of the body: linear [m/s] at its reference point, angular [rad/s].
        r: The point, from the reference point [m], in the axes of the velocity.
    """
    return wp.spatial_top(qd) + wp.cross(wp.spatial_bottom(qd), r)


@wp.func
def transform_twist(t: wp.transform, x: wp.spatial_vector) -> wp.spatial_vector:
    """Return a velocity (linear, angular) in another frame and at its origin ([Featherstone2008] 2.8).

    Args:
        t: Pose of the frame of the velocity in the other frame.
        x: Velocity at the origin of its frame: linear [m/s], angular [rad/s].
    """
    rotation = wp.transform_get_rotation(t)
    angular = wp.quat_rotate(rotation, wp.spatial_bottom(x))
    moved = wp.cross(wp.transform_get_translation(t), angular)
    return wp.spatial_vector(wp.quat_rotate(rotation, wp.spatial_top(x)) + moved, angular)


@wp.func
def transform_wrench(t: wp.transform, x: wp.spatial_vector) -> wp.spatial_vector:
    """Return a wrench (force, torque) in another frame and about its origin ([Featherstone2008] 2.8).

    Args:
        t: Pose of the frame of the wrench in the other frame.
        x: Wrench: force [N], torque about the origin of its frame [N·m].
    """
    rotation = wp.transform_get_rotation(t)
    force = wp.quat_rotate(rotation, wp.spatial_top(x))
    moment = wp.cross(wp.transform_get_translation(t), force)
    return wp.spatial_vector(force, wp.quat_rotate(rotation, wp.spatial_bottom(x)) + moment)


@wp.func
def quat_velocity(q_now: wp.quat, q_prev: wp.quat, dt: float) -> wp.vec3:
    """Return the constant angular velocity [rad/s], in world axes, that turns one rotation into the next.

    Args:
        q_now: Rotation after the time step.
        q_prev: Rotation before it.
        dt: Time step [s].
    """
    rotation = q_now * wp.quat_inverse(q_prev)
    if rotation[3] < 0.0:
        rotation = -rotation  # both are the same rotation; this one is the shorter way
    sine = wp.vec3(rotation[0], rotation[1], rotation[2])
    length = wp.length(sine)
    # 2 atan2(s, c) / s, whose limit for small angles is 2.
    factor = 2.0
    if length > 1.0e-6:
        factor = 2.0 * wp.atan2(length, rotation[3]) / length
    return sine * (factor / dt)


@wp.func
def quat_decompose(q: wp.quat) -> wp.vec3:
    """Return the angles [rad] about x, y and z, one after the other about moving axes, of a rotation.

    The rotation is R_x(angle 0) R_y(angle 1) R_z(angle 2); the angle about y is within ±pi / 2, the others
    are within ±pi. Where y is at its end only the sum or the difference of the others is defined, and that
    about z is zero.
    """
    matrix = wp.quat_to_matrix(q)
    sine = wp.clamp(matrix[0, 2], -1.0, 1.0)
    if wp.abs(sine) > 0.9999995:  # 1 mrad off the end, where the other entries are of the size of rounding
        return wp.vec3(wp.atan2(matrix[2, 1], matrix[1, 1]), wp.asin(sine), 0.0)
    return wp.vec3(
        wp.atan2(-matrix[1, 2], matrix[2, 2]), wp.asin(sine), wp.atan2(-matrix[0, 1], matrix[0, 0])
    )


@wp.func
def quat_between_vectors_robust(from_vec: wp.vec3, to_vec: wp.vec3, eps: float = 1.0e-8) -> wp.quat:
    """Return the shortest rotation from one unit vector to another, also where they are opposite.

    Args:
        from_vec: Unit vector.
        to_vec: Unit vector.
        eps: How far the cosine of the angle may be from -1 for opposite vectors, if more than rounding.
    """
    cosine = wp.dot(from_vec, to_vec)
    if cosine <= wp.max(OPPOSITE, -1.0 + eps):
        axis = wp.cross(wp.vec3(1.0, 0.0, 0.0), from_vec)
        if wp.abs(from_vec[0]) > 0.6:
            axis = wp.cross(wp.vec3(0.0, 1.0, 0.0), from_vec)
        axis = wp.normalize(axis)
        return wp.quat(axis[0], axis[1], axis[2], 0.0)
    axis = wp.cross(from_vec, to_vec)
    return wp.normalize(wp.quat(axis[0], axis[1], axis[2], 1.0 + cosine))


def quat_between_axes(*axes: Any) -> wp.quat:
    """Return the rotation from the first of several axes to the last, by way of those between.

    Args:
        axes: Axes: `Axis`, a letter or a number (`Axis.from_any`).

    Raises:
        ValueError: If one of them is no axis.
    """
    total = wp.quat_identity()
    known = [Axis.from_any(axis) for axis in axes]
    for start, end in itertools.pairwise(known):
        if start is end:
            continue
        # The third axis; to the next axis it turns forwards, to the one before backwards.
        sign = 1.0 if (end - start) % 3 == 1 else -1.0
        about = [0.0, 0.0, 0.0]
        about[3 - start - end] = sign
        total = wp.quat_from_axis_angle(wp.vec3(*about), 0.5 * math.pi) * total
    return total
