"""Line segments as axes of capsules: closest points, and where the surface is."""

import warp as wp

# Squared sine of the angle between two segments below which the crossing of their lines says nothing: in
# float32 the determinant a b sin^2 of the normal equations then consists of rounding errors, of order 1e-7 a
# b.
PARALLEL = wp.constant(1.0e-6)


@wp.func
def closest_segment_points(half0: wp.vec3, position: wp.vec3, half1: wp.vec3) -> wp.vec2:
    """Return s and t in [-1, 1] of the closest points s half0, position + t half1 ([Ericson2005] 5.1.9).

    Of parallel segments the middle of the overlap. A half vector may be zero.
    """
    a = wp.dot(half0, half0)
    b = wp.dot(half1, half1)
    c = wp.dot(half0, half1)
    e = wp.dot(half0, position)
    f = wp.dot(half1, position)
    determinant = a * b - c * c
    s = float(0.0)
    t = float(0.0)
    if determinant > PARALLEL * a * b:
        s = wp.clamp((e * b - c * f) / determinant, -1.0, 1.0)
    elif a > 0.0:
        # The part of segment 0 along segment 1.
        half_overlap = wp.abs(c) / a
        s = 0.5 * (wp.clamp(e / a - half_overlap, -1.0, 1.0) + wp.clamp(e / a + half_overlap, -1.0, 1.0))
    if b > 0.0:
        t = (c * s - f) / b
        if t < -1.0 or t > 1.0:
            t = wp.clamp(t, -1.0, 1.0)
            if a > 0.0:
                s = wp.clamp((e + c * t) / a, -1.0, 1.0)
    return wp.vec2(s, t)


@wp.func
def closest_on_edge(first: wp.vec3, last: wp.vec3) -> wp.vec3:
    """Return the point of a segment closest to the origin."""
    along = last - first
    t = wp.clamp(-wp.dot(first, along) / wp.max(wp.length_sq(along), 1.0e-30), 0.0, 1.0)
    return first + t * along


@wp.func
def any_perpendicular(v: wp.vec3) -> wp.vec3:
    """Return a unit vector perpendicular to `v`, or x for the zero vector."""
    axis = wp.vec3(1.0, 0.0, 0.0)
    if wp.abs(v[0]) > wp.abs(v[1]):
        axis = wp.vec3(0.0, 1.0, 0.0)
    across = wp.cross(axis, v)
    length = wp.length(across)
    perpendicular = wp.vec3(1.0, 0.0, 0.0)
    if length > 0.0:
        perpendicular = across / length
    return perpendicular


@wp.func
def capsule_direction(normal: wp.vec3, half: wp.vec3, parameter: float) -> wp.vec3:
    """Return the unit direction from a point of the axis to the surface on the side of `normal`.

    It is `normal` itself on a cap, and perpendicular to the axis on the side of the capsule. The point is at
    `parameter` times `half` from the centre.
    """
    direction = normal
    along = wp.dot(normal, half)
    if wp.abs(parameter) < 1.0 or parameter * along < 0.0:
        across = normal - half * (along / wp.max(wp.dot(half, half), 1.0e-30))
        length = wp.length(across)
        if length > 1.0e-3:  # else `normal` runs along the axis and there is no side
            direction = across / length
    return direction
