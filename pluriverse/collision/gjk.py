"""Distance of two convex shapes: the Gilbert-Johnson-Keerthi algorithm ([Gilbert1988]) in double precision.

The difference of two convex shapes, all b - a with a in the first and b in the second, is convex, and its point
closest to the origin is the shortest connection. It is found as the closest point of a simplex of support points that
moves towards the origin. In double precision nothing needs special care: distances come out to 1e-9 of the shapes.
"""

import warp as wp

from pluriverse.collision.convex_support import ConvexPair, support_first, support_second
from pluriverse.collision.hull import HullData

# Error of a distance [relative to the size of the difference] at which the search ends. Normals of smooth shapes are
# then off by its square root, 3e-5.
DISTANCE_TOLERANCE = wp.constant(wp.float64(1.0e-9))
# Distance [relative likewise] below which cores count as overlapping.
OVERLAP_DISTANCE = wp.constant(wp.float64(1.0e-8))
# Polytopes need about 10 rounds, smooth shapes up to 40; the limit guards against NaN.
ROUND_LIMIT = 64

APART = wp.constant(0)
"""The cores are farther apart than asked for."""
NEAR = wp.constant(1)
"""The cores are apart, with a shortest connection."""
OVERLAPPING = wp.constant(2)
"""The cores overlap or touch."""


@wp.func
def closest_on_segment(a: wp.vec3d, b: wp.vec3d) -> wp.vec2d:
    """Return the barycentric coordinates of the point of a segment closest to the origin."""
    ab = b - a
    t = -wp.dot(a, ab) / wp.max(wp.dot(ab, ab), wp.float64(1.0e-300))
    t = wp.clamp(t, wp.float64(0.0), wp.float64(1.0))
    return wp.vec2d(wp.float64(1.0) - t, t)


@wp.func
def closest_on_triangle(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec3d:
    """Return the barycentric coordinates of the point of a triangle closest to the origin ([Ericson2005] 5.1.5)."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    ab = b - a
    ac = c - a
    d1 = -wp.dot(ab, a)
    d2 = -wp.dot(ac, a)
    if d1 <= zero and d2 <= zero:
        return wp.vec3d(one, zero, zero)
    d3 = -wp.dot(ab, b)
    d4 = -wp.dot(ac, b)
    if d3 >= zero and d4 <= d3:
        return wp.vec3d(zero, one, zero)
    vc = d1 * d4 - d3 * d2
    if vc <= zero and d1 >= zero and d3 <= zero:
        t = d1 / (d1 - d3)
        return wp.vec3d(one - t, t, zero)
    d5 = -wp.dot(ab, c)
    d6 = -wp.dot(ac, c)
    if d6 >= zero and d5 <= d6:
        return wp.vec3d(zero, zero, one)
    vb = d5 * d2 - d1 * d6
    if vb <= zero and d2 >= zero and d6 <= zero:
        t = d2 / (d2 - d6)
        return wp.vec3d(one - t, zero, t)
    va = d3 * d6 - d5 * d4
    if va <= zero and d4 >= d3 and d5 >= d6:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return wp.vec3d(zero, one - t, t)
    inverse = one / (va + vb + vc)
    return wp.vec3d(va * inverse, vb * inverse, vc * inverse)


@wp.func
def closest_weights(w: wp.array[wp.vec3d], count: int) -> wp.vec4d:
    """Return the barycentric coordinates of the point of a simplex closest to the origin.

    All four are positive if the origin lies in a tetrahedron. The last point is the newest, so the face opposite to it
    cannot be the closest.
    """
    zero = wp.float64(0.0)
    weight = wp.vec4d(wp.float64(1.0), zero, zero, zero)
    if count == 2:
        segment = closest_on_segment(w[0], w[1])
        weight = wp.vec4d(segment[0], segment[1], zero, zero)
    elif count == 3:
        triangle = closest_on_triangle(w[0], w[1], w[2])
        weight = wp.vec4d(triangle[0], triangle[1], triangle[2], zero)
    elif count == 4:
        best = wp.float64(1.0e300)
        is_inside = bool(True)
        for face in range(int(3)):
            # Faces (0 1 3), (1 2 3), (2 0 3), each opposite to the point `other`.
            i = face
            j = (face + 1) % 3
            other = (face + 2) % 3
            normal = wp.cross(w[j] - w[i], w[3] - w[i])
            side_origin = -wp.dot(normal, w[i])
            side_other = wp.dot(normal, w[other] - w[i])
            if side_origin * side_other <= zero:
                is_inside = False
                triangle = closest_on_triangle(w[i], w[j], w[3])
                point = triangle[0] * w[i] + triangle[1] * w[j] + triangle[2] * w[3]
                squared = wp.dot(point, point)
                if squared < best:
                    best = squared
                    weight = wp.vec4d(zero, zero, zero, triangle[2])
                    weight[i] = triangle[0]
                    weight[j] = triangle[1]
        if is_inside:
            weight = wp.vec4d(wp.float64(0.25), wp.float64(0.25), wp.float64(0.25), wp.float64(0.25))
    return weight


@wp.func
def find_closest_points(
    pair: ConvexPair,
    hulls: HullData,
    reach: wp.float64,
    size: wp.float64,
    w: wp.array[wp.vec3d],
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    weight: wp.array[wp.float64],
) -> wp.vec2i:
    """Find the shortest connection of two cores.

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        reach: Distance [m] beyond which the answer is just `APART`.
        size: Size of the difference [m], for tolerances.
        w: Points b - a of the last simplex, shape [4], written.
        a: Points of the first core, shape [4], written.
        b: Points of the second core, shape [4], written.
        weight: Barycentric coordinates of the closest point, shape [4], written.

    Returns:
        `APART`, `NEAR` or `OVERLAPPING`, and the number of points.
    """
    zero = wp.float64(0.0)
    v = pair.position
    if wp.dot(v, v) <= zero:
        v = wp.vec3d(wp.float64(1.0), zero, zero)
    count = int(0)
    squared = wp.float64(1.0e300)
    result = int(NEAR)
    for _round in range(ROUND_LIMIT):
        point_b = support_second(pair, hulls, -v)
        point_a = support_first(pair, hulls, v)
        point = point_b - point_a
        height = wp.dot(v, point)
        length = wp.length(v)
        if height > reach * length:
            result = APART
            break
        if count > 0 and squared - height <= DISTANCE_TOLERANCE * size * length:
            break
        w[count] = point
        a[count] = point_a
        b[count] = point_b
        count += 1
        all_weights = closest_weights(w, count)
        if count == 4 and wp.min(all_weights) > zero:
            result = OVERLAPPING
            break
        # Keep the points that carry the closest point.
        kept = int(0)
        v = wp.vec3d(zero, zero, zero)
        for index in range(count):
            if all_weights[index] > zero:
                w[kept] = w[index]
                a[kept] = a[index]
                b[kept] = b[index]
                weight[kept] = all_weights[index]
                v += all_weights[index] * w[kept]
                kept += 1
        count = kept
        next_squared = wp.dot(v, v)
        if next_squared <= OVERLAP_DISTANCE * OVERLAP_DISTANCE * size * size:
            result = OVERLAPPING
            break
        if next_squared >= squared:
            break  # rounding ends the descent
        squared = next_squared
    return wp.vec2i(result, count)
