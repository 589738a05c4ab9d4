"""Distance of two convex shapes: the Gilbert-Johnson-Keerthi algorithm ([Gilbert1988]) in double precision.

The difference of two convex shapes, all b - a with a in the first and b in the second, is convex, and its
point closest to the origin is the shortest connection. It is found as the closest point of a simplex of
support points that moves towards the origin. In double precision nothing needs special care: distances come
out to 1e-9 of the shapes.
"""

from typing import Any

import warp as wp

# Error of a distance [relative to the size of the shapes] at which the search ends. Normals of smooth shapes
# are off by about its square root: 1e-6.
DISTANCE_TOLERANCE = wp.constant(wp.float64(1.0e-12))
# Distance [relative likewise] below which cores count as overlapping.
OVERLAP_DISTANCE = wp.constant(wp.float64(1.0e-8))
# Height of a tetrahedron over a face, relative to its edge, below which it is flat.
FLATNESS = wp.constant(wp.float64(1.0e-12))
# Keeps quotients of simplices without extent finite.
TINY = wp.constant(wp.float64(1.0e-290))
# Polytopes need about 10 rounds, smooth shapes up to 40; the limit guards against NaN.
ROUND_LIMIT = 64
# Rounds after which a connection of curved shapes is refined, each time that these have passed.
REFINEMENT_ROUNDS = wp.constant(4)

APART = wp.constant(0)
"""The cores are farther apart than asked for."""
NEAR = wp.constant(1)
"""The cores are apart, with a shortest connection."""
OVERLAPPING = wp.constant(2)
"""The cores overlap or touch."""


@wp.func
def closest_weights(w: wp.array[wp.vec3d], count: int) -> wp.vec4d:
    """Return the barycentric coordinates of the point of a simplex closest to the origin.

    All four are positive if the origin lies in a tetrahedron. The newest point is the last one, and only
    edges and faces with it can hold the closest point. All of them are tried: tests of regions ([Ericson2005]
    5.1) save some, but fail on the slivers that smooth shapes end with.
    """
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    weight = wp.vec4d(one, zero, zero, zero)
    newest = count - 1
    last = w[newest]
    best = wp.float64(1.0e300)
    if count == 1:
        return weight
    for i in range(newest):
        edge = w[i] - last
        t = wp.clamp(-wp.dot(last, edge) / wp.max(wp.dot(edge, edge), TINY), zero, one)
        point = last + t * edge
        squared = wp.dot(point, point)
        if squared < best:
            best = squared
            weight = wp.vec4d(zero, zero, zero, zero)
            weight[i] = t
            weight[newest] = one - t
    for i in range(newest):
        for j in range(i + 1, newest):
            edge_i = w[i] - last
            edge_j = w[j] - last
            normal = wp.cross(edge_i, edge_j)
            area = wp.max(wp.dot(normal, normal), TINY)
            # The projection of the origin is last + u edge_i + v edge_j.
            u = wp.dot(normal, wp.cross(edge_j, last)) / area
            v = wp.dot(normal, wp.cross(last, edge_i)) / area
            height = wp.dot(normal, last)
            squared = height * height / area
            if u > zero and v > zero and u + v < one and squared < best:
                best = squared
                weight = wp.vec4d(zero, zero, zero, zero)
                weight[i] = u
                weight[j] = v
                weight[newest] = one - u - v
    if count == 4:
        # The origin is inside if it is on the inner side of each face with the newest point; it is on that
        # side of the fourth, which the newest point was sought across.
        is_inside = bool(True)
        for i in range(newest):
            j = (i + 1) % 3
            k = (i + 2) % 3
            normal = wp.cross(w[i] - last, w[j] - last)
            across = w[k] - last
            side = wp.dot(normal, across)
            # The sign of the volume of a flat tetrahedron is noise.
            is_flat = wp.abs(side) <= FLATNESS * wp.length(normal) * wp.length(across)
            is_inside = is_inside and not is_flat and side * wp.dot(normal, last) < zero
        if is_inside:
            quarter = wp.float64(0.25)
            weight = wp.vec4d(quarter, quarter, quarter, quarter)
    return weight


def make_closest_points(
    pair_type: Any,
    hulls_type: Any,
    support_first: Any,
    support_second: Any,
    refine: Any = None,
    *,
    inline: bool | None = None,
) -> Any:
    """Return the Warp function that finds the shortest connection of two convex shapes.

    Args:
        pair_type: Struct of two shapes and their relative pose.
        hulls_type: Type of what else the support functions need.
        support_first: Function `(pair, hulls, direction)` to the farthest point of the first core.
        support_second: The same for the second shape.
        refine: Function `(pair, hulls, guess, is_overlap, a, b, count)` to a `curved.Connection`, if there is
            one: points of both shapes that may be closer to each other than those of the simplex.
        inline: Whether the function is copied into its callers, see `wp.func`.
    """

    @wp.func(inline=inline)
    def find_closest_points(
        pair: wp.ref[pair_type],
        hulls: hulls_type,
        start: wp.vec3d,
        max_distance: wp.float64,
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
            start: Guess of the connection, from the first to the second core [m].
            max_distance: Distance [m] beyond which the answer is just `APART`.
            size: Size of the difference [m], for tolerances.
            w: Points b - a of the last simplex, shape [4], written. If the cores are `APART`, the first is a
                direction that separates them, from the first to the second.
            a: Points of the first core, shape [4], written.
            b: Points of the second core, shape [4], written.
            weight: Barycentric coordinates of the closest point, shape [4], written.

        Returns:
            `APART`, `NEAR` or `OVERLAPPING`, and the number of points.
        """
        zero = wp.float64(0.0)
        v = start
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
            if height > max_distance * length:
                result = APART
                w[0] = v
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
            closest = wp.vec3d(zero, zero, zero)
            for index in range(count):
                closest += all_weights[index] * w[index]
            next_squared = wp.dot(closest, closest)
            if next_squared >= squared:
                count -= 1  # rounding ends the descent
                break
            # Keep the points that carry the closest point.
            v = closest
            squared = next_squared
            kept = int(0)
            for index in range(count):
                if all_weights[index] > zero:
                    w[kept] = w[index]
                    a[kept] = a[index]
                    b[kept] = b[index]
                    weight[kept] = all_weights[index]
                    kept += 1
            count = kept
            if squared <= OVERLAP_DISTANCE * OVERLAP_DISTANCE * size * size:
                result = OVERLAPPING
                break
            if wp.static(refine is not None):
                if (_round + 1) % REFINEMENT_ROUNDS == 0:
                    refined = refine(pair, hulls, v, False, a, b, count)
                    closer = refined.point1 - refined.point0
                    if refined.is_found and wp.dot(closer, closer) < squared:
                        # A point of the difference as any other: what follows tells if it is the closest.
                        v = closer
                        squared = wp.dot(closer, closer)
                        w[0] = closer
                        a[0] = refined.point0
                        b[0] = refined.point1
                        weight[0] = wp.float64(1.0)
                        count = 1
        return wp.vec2i(result, count)

    return find_closest_points
