"""Depth of penetration of two convex shapes: the expanding polytope algorithm ([Bergen2001]).

Where two shapes overlap, the origin lies inside their difference b - a, and the closest point of its boundary
is the minimum translation. A polytope of support points inside the difference is grown at its face closest to
the origin until that face is on the boundary.
"""

from typing import Any

import warp as wp

# Error of the depth, relative to the size of the shapes, at which the search ends. Normals of smooth shapes
# are off by about its square root: 3e-5, which tilts the force of a resting body by less than friction
# regularization creeps.
DEPTH_TOLERANCE = wp.constant(wp.float64(1.0e-9))
# The same at which the translation of curved shapes is refined, the first time and each time by this factor
# later. What the polytope leaves open then, another translation could be shorter by.
REFINEMENT_TOLERANCE = wp.constant(wp.float64(1.0e-4))
REFINEMENT_FACTOR = wp.constant(wp.float64(0.01))
# Thickness, relative to the size, below which the difference counts as flat.
FLATNESS = wp.constant(wp.float64(1.0e-9))
# Height of a point over a face, relative to the size, from which it sees the face: rounding.
VISIBLE = wp.constant(wp.float64(1.0e-14))

# A smooth difference is resolved to DEPTH_TOLERANCE with 30 to 50 points near the closest one; if other
# points of it are almost as close, with up to 120.
POINT_CAPACITY = wp.constant(128)
# A convex polytope of n triangulated points has 2 n - 4 faces.
FACE_CAPACITY = wp.constant(256)
# Edges around the faces that one point can see.
HORIZON_CAPACITY = wp.constant(64)


@wp.struct
class Penetration:
    """The minimum translation that ends an overlap."""

    is_found: bool
    """Whether the difference has a volume."""
    normal: wp.vec3d
    """Unit normal from the first to the second shape."""
    point0: wp.vec3d
    """Point of the first core [m]."""
    point1: wp.vec3d
    """Point of the second core [m]."""


@wp.func
def search_direction(index: int, count: int, w: wp.array[wp.vec3d]) -> wp.vec3d:
    """Return a direction across a simplex of 1, 2 or 3 points, number `index` of six."""
    zero = wp.float64(0.0)
    axis = index % 3
    unit = wp.vec3d(zero, zero, zero)
    unit[axis] = wp.where(index < 3, wp.float64(1.0), wp.float64(-1.0))
    direction = unit
    if count == 2:
        direction = wp.cross(w[1] - w[0], unit)
    elif count == 3:
        direction = wp.cross(w[1] - w[0], w[2] - w[0])
        if index % 2 == 1:
            direction = -direction
    return direction


@wp.func
def spread_of(count: int, w: wp.array[wp.vec3d], point: wp.vec3d) -> wp.float64:
    """Return the distance of a point from the point, line or plane through a simplex of 1, 2 or 3 points."""
    d = point - w[0]
    spread = wp.length(d)
    if count == 2:
        spread = wp.length(wp.cross(wp.normalize(w[1] - w[0]), d))
    elif count == 3:
        spread = wp.abs(wp.dot(wp.normalize(wp.cross(w[1] - w[0], w[2] - w[0])), d))
    return spread


@wp.func
def set_face(
    w: wp.array[wp.vec3d],
    corner: wp.array[wp.vec3i],
    normal: wp.array[wp.vec3d],
    height: wp.array[wp.float64],
    face: int,
    i: int,
    j: int,
    k: int,
) -> bool:
    """Store a face counterclockwise seen from outside; return whether it has an area."""
    cross = wp.cross(w[j] - w[i], w[k] - w[i])
    length = wp.length(cross)
    has_area = length > wp.float64(0.0)
    if has_area:
        unit = cross / length
        corner[face] = wp.vec3i(i, j, k)
        normal[face] = unit
        height[face] = wp.dot(unit, w[i])
    return has_area


def make_penetration(
    pair_type: Any,
    hulls_type: Any,
    support_first: Any,
    support_second: Any,
    refine: Any = None,
    *,
    inline: bool | None = None,
) -> Any:
    """Return the Warp function that finds the minimum translation of an overlap; arguments as in `gjk`."""

    @wp.func(inline=inline)
    def find_penetration(
        pair: wp.ref[pair_type],
        hulls: hulls_type,
        size: wp.float64,
        seed_w: wp.array[wp.vec3d],
        seed_a: wp.array[wp.vec3d],
        seed_b: wp.array[wp.vec3d],
        seed_count: int,
    ) -> Penetration:
        """Return the minimum translation that ends the overlap of two cores.

        Args:
            pair: The shapes.
            hulls: Convex hulls.
            size: Size of the difference [m], for tolerances.
            seed_w: Points b - a of a simplex that contains the origin (or is closest to it), shape [4].
            seed_a: Points of the first core, shape [4]. Later they hold others.
            seed_b: The same of the second core, shape [4].
            seed_count: Number of these points.
        """
        w = wp.zeros(shape=POINT_CAPACITY, dtype=wp.vec3d)
        a = wp.zeros(shape=POINT_CAPACITY, dtype=wp.vec3d)
        b = wp.zeros(shape=POINT_CAPACITY, dtype=wp.vec3d)
        corner = wp.zeros(shape=FACE_CAPACITY, dtype=wp.vec3i)
        normal = wp.zeros(shape=FACE_CAPACITY, dtype=wp.vec3d)
        height = wp.zeros(shape=FACE_CAPACITY, dtype=wp.float64)
        horizon = wp.zeros(shape=HORIZON_CAPACITY, dtype=wp.vec2i)
        result = Penetration()

        point_count = int(0)
        for index in range(seed_count):
            w[index] = seed_w[index]
            a[index] = seed_a[index]
            b[index] = seed_b[index]
            point_count += 1
        # Complete the simplex to a tetrahedron with the support points farthest across it.
        for _round in range(int(4)):
            if point_count < 4:
                best_spread = wp.float64(0.0)
                direction_count = wp.where(point_count == 3, 2, 6)
                for index in range(direction_count):
                    direction = search_direction(index, point_count, w)
                    if wp.length_sq(direction) > wp.float64(0.0):
                        direction = wp.normalize(direction)
                        point_a = support_first(pair, hulls, -direction)
                        point_b = support_second(pair, hulls, direction)
                        spread = size
                        if point_count > 0:
                            spread = spread_of(point_count, w, point_b - point_a)
                        if spread > best_spread:
                            best_spread = spread
                            w[point_count] = point_b - point_a
                            a[point_count] = point_a
                            b[point_count] = point_b
                if best_spread > FLATNESS * size:
                    point_count += 1
        if point_count < 4:
            return result

        # Faces of the tetrahedron, outward.
        volume = wp.dot(wp.cross(w[1] - w[0], w[2] - w[0]), w[3] - w[0])
        second = wp.where(volume > wp.float64(0.0), 2, 1)
        third = 3 - second
        is_solid = set_face(w, corner, normal, height, 0, 0, second, third)
        is_solid = set_face(w, corner, normal, height, 1, 0, third, 3) and is_solid
        is_solid = set_face(w, corner, normal, height, 2, third, second, 3) and is_solid
        is_solid = set_face(w, corner, normal, height, 3, second, 0, 3) and is_solid
        if not is_solid:
            return result
        face_count = int(4)

        # The depth lies between the height of the closest face and the extent of the difference along any
        # direction. Of all directions tried the one of least extent is the answer, whatever rounding does to
        # the polytope.
        best_corner = corner[0]
        best_normal = normal[0]
        best_height = height[0]
        best_extent = wp.float64(1.0e300)
        refinement = REFINEMENT_TOLERANCE * size
        for _round in range(POINT_CAPACITY):
            closest = int(0)
            for face in range(1, face_count):
                if height[face] < height[closest]:
                    closest = face
            direction = normal[closest]
            point_a = support_first(pair, hulls, -direction)
            point_b = support_second(pair, hulls, direction)
            point = point_b - point_a
            extent = wp.dot(direction, point)
            if extent < best_extent:
                best_extent = extent
                best_corner = corner[closest]
                best_normal = direction
                best_height = height[closest]
            if best_extent - height[closest] <= DEPTH_TOLERANCE * size or point_count >= POINT_CAPACITY:
                break
            if wp.static(refine is not None):
                if best_extent - height[closest] <= refinement:
                    refinement *= REFINEMENT_FACTOR
                    for index in range(3):
                        seed_a[index] = a[corner[closest][index]]
                        seed_b[index] = b[corner[closest][index]]
                    refined = refine(pair, hulls, -direction, True, seed_a, seed_b, 3)
                    if refined.is_found and -refined.distance <= best_extent:
                        # The edges that carried the guess need not carry what was found.
                        point_a = support_first(pair, hulls, refined.normal)
                        point_b = support_second(pair, hulls, -refined.normal)
                        beyond = refined.distance - wp.dot(refined.normal, point_b - point_a)
                        result.is_found = beyond <= DEPTH_TOLERANCE * size
                    if result.is_found:
                        result.normal = refined.normal
                        result.point0 = refined.point0
                        result.point1 = refined.point1
                        return result
            w[point_count] = point
            a[point_count] = point_a
            b[point_count] = point_b
            # Take away the faces that the new point sees; keep the directed edges that only one of them has.
            edge_count = int(0)
            is_broken = bool(False)
            face = int(0)
            old_count = face_count
            for _step in range(old_count):
                if wp.dot(normal[face], point) > height[face] + VISIBLE * size:
                    for side in range(3):
                        first = corner[face][side]
                        last = corner[face][(side + 1) % 3]
                        twin = int(-1)
                        for edge in range(edge_count):
                            if horizon[edge][0] == last and horizon[edge][1] == first:
                                twin = edge
                        if twin >= 0:
                            edge_count -= 1
                            horizon[twin] = horizon[edge_count]
                        elif edge_count < HORIZON_CAPACITY:
                            horizon[edge_count] = wp.vec2i(first, last)
                            edge_count += 1
                        else:
                            is_broken = True
                    face_count -= 1
                    corner[face] = corner[face_count]
                    normal[face] = normal[face_count]
                    height[face] = height[face_count]
                else:
                    face += 1
            if is_broken or edge_count < 3 or face_count + edge_count > FACE_CAPACITY:
                break
            for edge in range(edge_count):
                if set_face(
                    w, corner, normal, height, face_count, horizon[edge][0], horizon[edge][1], point_count
                ):
                    face_count += 1
            point_count += 1

        # The point of the closest face closest to the origin, as weights of its corners.
        i = best_corner[0]
        j = best_corner[1]
        k = best_corner[2]
        foot = best_height * best_normal
        area_vector = wp.cross(w[j] - w[i], w[k] - w[i])
        area_squared = wp.dot(area_vector, area_vector)
        u = wp.dot(wp.cross(w[k] - w[j], foot - w[j]), area_vector) / area_squared
        v = wp.dot(wp.cross(w[i] - w[k], foot - w[k]), area_vector) / area_squared
        u = wp.clamp(u, wp.float64(0.0), wp.float64(1.0))
        v = wp.clamp(v, wp.float64(0.0), wp.float64(1.0) - u)
        t = wp.float64(1.0) - u - v
        # Where the search ends early (many directions are almost as good), the shapes reach beyond the face.
        missing = wp.float64(0.5) * (best_extent - best_height)
        result.is_found = True
        result.normal = -best_normal
        result.point0 = u * a[i] + v * a[j] + t * a[k] - missing * best_normal
        result.point1 = u * b[i] + v * b[j] + t * b[k] + missing * best_normal
        return result

    return find_penetration
