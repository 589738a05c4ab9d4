"""Rotations in kernels, besides Warp's own functions of quaternions."""

import math
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import mat33_type, quat_type, vec3_type

# Angle [rad] below which sine and cosine of its half are series in the square of the angle: neither a root
# nor a call. The first terms dropped are 0.125**10 / 11! = 2e-17 and 0.125**12 / 12! = 3e-20, below the
# rounding of float64 (2**-53), and 0 / 0 cannot occur.
ANGLE_SERIES = 0.25


@made_once
def rotation_functions(real: Any) -> SimpleNamespace:
    """Return the functions on rotations for scalars of type `real`.

    The members are `wp.func`s: `quat_from_rotation_vector`, `quat_from_axis_angle`, `quat_normalize`,
    `quat_renormalize`, `matrix_from_quat`, `rotate_sym`.
    """
    vec3 = vec3_type(real)
    mat33 = mat33_type(real)
    quat = quat_type(real)
    vec6 = wp.types.vector(length=6, dtype=real)
    series = wp.constant(real(ANGLE_SERIES))
    # Quotients of numbers in a kernel are rounded to single precision, so these are made here.
    over_3, over_4, over_5, over_6, over_7, over_8, over_9, over_10 = (
        wp.constant(real(1.0 / math.factorial(k))) for k in range(3, 11)
    )

    @wp.func
    def quat_from_rotation_vector(rotation: vec3) -> quat:
        """Return the unit quaternion of a rotation vector [rad] ([Sola2017] eq. 101)."""
        square = real(0.25) * wp.dot(rotation, rotation)
        sinc = real(0.0)
        cosine = real(0.0)
        if square < real(0.25) * series * series:
            sinc = real(1.0) - square * (over_3 - square * (over_5 - square * (over_7 - square * over_9)))
            cosine = over_6 - square * (over_8 - square * over_10)
            cosine = real(1.0) - square * (real(0.5) - square * (over_4 - square * cosine))
        else:
            half = wp.sqrt(square)
            sinc = wp.sin(half) / half
            cosine = wp.cos(half)
        imaginary = real(0.5) * sinc * rotation
        return quat(imaginary[0], imaginary[1], imaginary[2], cosine)

    @wp.func
    def quat_from_axis_angle(axis: vec3, angle: real) -> quat:
        """Return the unit quaternion of a turn by `angle` [rad] about a unit axis."""
        sine = wp.sin(real(0.5) * angle)
        return quat(sine * axis[0], sine * axis[1], sine * axis[2], wp.cos(real(0.5) * angle))

    @wp.func
    def quat_normalize(q: quat) -> quat:
        """Return `q` with length 1, NaN if it has none.

        Warp's own makes the identity of 0 and of NaN, which would hide that a world has failed.
        """
        scale = real(1.0) / wp.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
        return quat(scale * q[0], scale * q[1], scale * q[2], scale * q[3])

    @wp.func
    def quat_renormalize(q: quat) -> quat:
        """Return `q`, whose length is 1 up to a small error e, with length 1 up to 1.5 e**2.

        One Newton step for 1 / sqrt(length**2): neither a root nor a division. It keeps products of unit
        quaternions, which come in with float32 rounding, from drifting along a chain of bodies.
        """
        scale = real(1.5) - real(0.5) * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
        return quat(scale * q[0], scale * q[1], scale * q[2], scale * q[3])

    @wp.func
    def matrix_from_quat(q: quat) -> mat33:
        """Return the rotation matrix of a unit quaternion.

        Warp's own turns three unit vectors, at three times the cost.
        """
        x2 = q[0] + q[0]
        y2 = q[1] + q[1]
        z2 = q[2] + q[2]
        xx = x2 * q[0]
        yy = y2 * q[1]
        zz = z2 * q[2]
        xy = x2 * q[1]
        xz = x2 * q[2]
        yz = y2 * q[2]
        xw = x2 * q[3]
        yw = y2 * q[3]
        zw = z2 * q[3]
        one = real(1.0)
        return mat33(
            one - yy - zz, xy - zw, xz + yw, xy + zw, one - xx - zz, yz - xw, xz - yw, yz + xw, one - xx - yy
        )

    @wp.func
    def rotate_sym(rotation: mat33, tensor: mat33) -> vec6:
        """Return the symmetric R T R^T of a symmetric tensor T as (xx, xy, xz, yy, yz, zz)."""
        left = rotation * tensor
        r0 = vec3(rotation[0, 0], rotation[0, 1], rotation[0, 2])
        r1 = vec3(rotation[1, 0], rotation[1, 1], rotation[1, 2])
        r2 = vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])
        l0 = vec3(left[0, 0], left[0, 1], left[0, 2])
        l1 = vec3(left[1, 0], left[1, 1], left[1, 2])
        l2 = vec3(left[2, 0], left[2, 1], left[2, 2])
        return vec6(
            wp.dot(l0, r0), wp.dot(l0, r1), wp.dot(l0, r2), wp.dot(l1, r1), wp.dot(l1, r2), wp.dot(l2, r2)
        )

    return SimpleNamespace(
        quat_from_rotation_vector=quat_from_rotation_vector,
        quat_from_axis_angle=quat_from_axis_angle,
        quat_normalize=quat_normalize,
        quat_renormalize=quat_renormalize,
        matrix_from_quat=matrix_from_quat,
        rotate_sym=rotate_sym,
    )
