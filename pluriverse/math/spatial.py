"""Spatial vectors in kernels, in the order [angular; linear] of [Featherstone2008], about one fixed point.

Velocities and accelerations are motion vectors [omega; v], momenta and wrenches force vectors [moment;
force]. The spatial inertia of a body or of several is kept as ten numbers (mass, mass * com, rotational
inertia about the same point): because all are about one fixed point in world axes, composite bodies add up
component by component.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type


@made_once
def vec10_type(real: Any) -> Any:
    """Return the vector type of a spatial inertia (m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)."""
    return wp.types.vector(length=10, dtype=real)


@made_once
def spatial_functions(real: Any) -> SimpleNamespace:
    """Return the functions on spatial vectors for scalars of type `real`.

    The members are `wp.func`s: `angular_part`, `linear_part`, `spatial`, `cross_motion`, `sym_times_vec`,
    `symmetric_matrix`, `inertia_about_reference`, `inertia_times_motion`.
    """
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    vec10 = vec10_type(real)
    mat33 = mat33_type(real)

    @wp.func
    def angular_part(a: vec6) -> vec3:
        """Return the first half: angular velocity, or moment."""
        return vec3(a[0], a[1], a[2])

    @wp.func
    def linear_part(a: vec6) -> vec3:
        """Return the second half: linear velocity of the reference point, or force."""
        return vec3(a[3], a[4], a[5])

    @wp.func
    def spatial(angular: vec3, linear: vec3) -> vec6:
        """Return [angular; linear]."""
        return vec6(angular[0], angular[1], angular[2], linear[0], linear[1], linear[2])

    @wp.func
    def cross_motion(a: vec6, b: vec6) -> vec6:
        """Return a x b of two motion vectors ([Featherstone2008] section 2.9)."""
        omega = angular_part(a)
        linear = wp.cross(omega, linear_part(b)) + wp.cross(linear_part(a), angular_part(b))
        return spatial(wp.cross(omega, angular_part(b)), linear)

    @wp.func
    def sym_times_vec(tensor: vec6, a: vec3) -> vec3:
        """Return T a of a symmetric tensor T given as (xx, xy, xz, yy, yz, zz)."""
        return vec3(
            tensor[0] * a[0] + tensor[1] * a[1] + tensor[2] * a[2],
            tensor[1] * a[0] + tensor[3] * a[1] + tensor[4] * a[2],
            tensor[2] * a[0] + tensor[4] * a[1] + tensor[5] * a[2],
        )

    @wp.func
    def symmetric_matrix(tensor: vec6) -> mat33:
        """Return a symmetric tensor given as (xx, xy, xz, yy, yz, zz)."""
        return mat33(
            tensor[0], tensor[1], tensor[2], tensor[1], tensor[3], tensor[4], tensor[2], tensor[4], tensor[5]
        )

    @wp.func
    def inertia_about_reference(mass: real, com: vec3, inertia: vec6) -> vec10:
        """Return a body's spatial inertia from that about its com ([Featherstone2008] section 2.13)."""
        hx = mass * com[0]
        hy = mass * com[1]
        hz = mass * com[2]
        xx = hx * com[0]
        yy = hy * com[1]
        zz = hz * com[2]
        return vec10(
            mass,
            hx,
            hy,
            hz,
            inertia[0] + yy + zz,
            inertia[1] - hx * com[1],
            inertia[2] - hx * com[2],
            inertia[3] + xx + zz,
            inertia[4] - hy * com[2],
            inertia[5] + xx + yy,
        )

    @wp.func
    def inertia_times_motion(inertia: vec10, motion: vec6) -> vec6:
        """Return the momentum (or wrench) I V of a spatial inertia and a velocity (or acceleration)."""
        w0 = motion[0]
        w1 = motion[1]
        w2 = motion[2]
        v0 = motion[3]
        v1 = motion[4]
        v2 = motion[5]
        h0 = inertia[1]
        h1 = inertia[2]
        h2 = inertia[3]
        return vec6(
            inertia[4] * w0 + inertia[5] * w1 + inertia[6] * w2 + h1 * v2 - h2 * v1,
            inertia[5] * w0 + inertia[7] * w1 + inertia[8] * w2 + h2 * v0 - h0 * v2,
            inertia[6] * w0 + inertia[8] * w1 + inertia[9] * w2 + h0 * v1 - h1 * v0,
            inertia[0] * v0 + w1 * h2 - w2 * h1,
            inertia[0] * v1 + w2 * h0 - w0 * h2,
            inertia[0] * v2 + w0 * h1 - w1 * h0,
        )

    return SimpleNamespace(
        angular_part=angular_part,
        linear_part=linear_part,
        spatial=spatial,
        cross_motion=cross_motion,
        sym_times_vec=sym_times_vec,
        symmetric_matrix=symmetric_matrix,
        inertia_about_reference=inertia_about_reference,
        inertia_times_motion=inertia_times_motion,
    )
