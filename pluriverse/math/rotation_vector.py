"""Rotation vectors of quaternions, in single precision."""

import warp as wp

# Angle [rad] below which a rotation vector is a series of its quaternion: the first term left out is some
# 1e-9 of the value.
_SMALL_ANGLE = wp.constant(1.0e-4)


@wp.func
def rotation_vector(q: wp.quat) -> wp.vec3:
    """Return the rotation vector [rad] of a unit quaternion, of length at most pi."""
    axis = wp.vec3(q[0], q[1], q[2])
    w = q[3]
    if w < 0.0:
        axis = -axis
        w = -w
    sine = wp.length(axis)
    factor = 2.0 / wp.max(w, _SMALL_ANGLE)
    if sine > _SMALL_ANGLE:
        factor = 2.0 * wp.atan2(sine, w) / sine
    return factor * axis
