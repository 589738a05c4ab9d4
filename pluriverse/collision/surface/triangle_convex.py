"""One triangle of a surface against a convex shape: face contacts, then those of sharp edges and corners.

The normal of a contact must be one along which no neighbouring part of the surface lies farther out: else
moving along it frees the shape from this triangle only to push it into the next. So

- a triangle pushes along its own normal what faces it from its front, clipped to the triangle;
- an edge or corner pushes along a direction found by support functions, if it is sharp (convex, or a
  boundary) and its neighbours all lie behind. Edges between triangles in one plane never do: a ball that
  rolls over them sees one plane.
"""

from typing import Any

import warp as wp

from pluriverse.collision.components import to_double, to_single
from pluriverse.collision.convex.feature import find_feature
from pluriverse.collision.convex.polygon import POLYGON_CAPACITY, clip_polygon, clip_to_face
from pluriverse.collision.convex.shortest_way import make_shortest_way
from pluriverse.collision.hull import HullData
from pluriverse.collision.segment import closest_on_edge
from pluriverse.collision.surface.contact_reduction import add_candidate, add_last_resort, candidate_vector
from pluriverse.collision.surface.triangle_pair import (
    TrianglePair,
    support_core,
    support_surface,
    support_triangle,
)
from pluriverse.types import GeoType

# Sine (8 degrees) of the slope, seen from the deepest point, up to which another point of a side belongs to
# the patch on which a shape comes to rest.
PATCH_SLOPE = wp.constant(0.14)
# Cosine of the same angle between a normal and a face that carries a corner of the surface.
FACE_COSINE = wp.constant(0.99)
# Sine by which a neighbour may lie above the plane across a normal, where no face carries the corner: the
# error of normals found by search.
FREE_SLOPE = wp.constant(1.0e-3)
# Lengths relative to the size of the pair: a point outside a triangle by the first is over it, which closes
# the gap over edges that count as flat; corners of a patch that miss the least distance by the second do not
# contain it; a face normal takes the place of the one found if it separates as much to the third.
OVER = wp.constant(2.0e-4)
MISSED = wp.constant(1.0e-5)
ALIGNED = wp.constant(1.0e-5)
ON_EDGE = wp.constant(1.0e-6)
# Part of a triangle by which a point must be inside to be off its edges.
ON_FEATURE = wp.constant(1.0e-4)

find_shortest_way = make_shortest_way(TrianglePair, wp.ref[HullData], support_triangle, support_core)


@wp.struct
class TriangleWitness:
    """Closest or deepest points of a triangle and a shape."""

    is_near: bool
    """Whether they are close enough; else nothing below is set."""
    normal: wp.vec3
    """Unit normal from the triangle to the shape."""
    point0: wp.vec3
    """Point of the triangle [m]."""
    distance: float
    """Distance along the normal [m]."""


@wp.func
def is_outside_box(pair: TrianglePair) -> bool:
    """Return whether a triangle is beyond one side of the box around a shape, in the axes of the shape."""
    inverse = wp.transpose(pair.axes)
    a = inverse * (pair.a - pair.middle)
    b = inverse * (pair.b - pair.middle)
    c = inverse * (pair.c - pair.middle)
    low = wp.min(a, wp.min(b, c))
    high = wp.max(a, wp.max(b, c))
    half = pair.half
    return (
        low[0] > half[0]
        or low[1] > half[1]
        or low[2] > half[2]
        or high[0] < -half[0]
        or high[1] < -half[1]
        or high[2] < -half[2]
    )


@wp.func
def is_over_triangle(pair: TrianglePair, normal: wp.vec3, point: wp.vec3, tolerance: float) -> bool:
    """Return whether the foot of a point on the plane of a triangle is in the triangle.

    The sign of the normal does not matter.
    """
    sign = wp.where(wp.dot(wp.cross(pair.b - pair.a, pair.c - pair.a), normal) < 0.0, -1.0, 1.0)
    axis = sign * normal
    return (
        wp.dot(wp.normalize(wp.cross(pair.b - pair.a, axis)), point - pair.a) <= tolerance
        and wp.dot(wp.normalize(wp.cross(pair.c - pair.b, axis)), point - pair.b) <= tolerance
        and wp.dot(wp.normalize(wp.cross(pair.a - pair.c, axis)), point - pair.c) <= tolerance
    )


@wp.func
def clip_to_triangle(
    pair: TrianglePair,
    normal: wp.vec3,
    tolerance: float,
    polygon: wp.array[wp.vec3],
    count: int,
    scratch: wp.array[wp.vec3],
) -> int:
    """Clip `polygon` to the prism along `normal` over a triangle; return its corner count."""
    sign = wp.where(wp.dot(wp.cross(pair.b - pair.a, pair.c - pair.a), normal) < 0.0, -1.0, 1.0)
    for edge in range(int(3)):
        first = pair.a
        last = pair.b
        if edge == 1:
            first = pair.b
            last = pair.c
        elif edge == 2:
            first = pair.c
            last = pair.a
        outward = wp.normalize(wp.cross(last - first, sign * normal))
        count = clip_polygon(polygon, count, outward, wp.dot(outward, first), tolerance, scratch)
        for copied in range(count):
            polygon[copied] = scratch[copied]
    return count


@wp.func
def find_sphere_witness(pair: TrianglePair) -> TriangleWitness:
    """Return the closest point of the edges of a triangle to a sphere at the origin."""
    witness = TriangleWitness()
    point = closest_on_edge(pair.a, pair.b)
    other = closest_on_edge(pair.b, pair.c)
    if wp.length_sq(other) < wp.length_sq(point):
        point = other
    other = closest_on_edge(pair.c, pair.a)
    if wp.length_sq(other) < wp.length_sq(point):
        point = other
    length = wp.length(point)
    if length > 0.0:
        witness.is_near = True
        witness.normal = -point / length
        witness.point0 = point
        witness.distance = length - pair.radius
    return witness


@wp.func
def find_convex_witness(pair: TrianglePair, hulls: HullData) -> TriangleWitness:
    """Return the closest points of a triangle and a convex shape, or their deepest points if they overlap."""
    witness = TriangleWitness()
    start = wp.float64(-1.0 / 3.0) * to_double(pair.a + pair.b + pair.c)
    max_distance = wp.float64(pair.threshold + pair.radius)
    way = find_shortest_way(pair, hulls, start, max_distance, wp.float64(pair.extent))
    witness.is_near = way.is_near
    witness.normal = to_single(way.normal)
    witness.point0 = to_single(way.point0)
    witness.distance = wp.float32(wp.dot(way.normal, way.point1 - way.point0)) - pair.radius
    return witness


@wp.func
def find_triangle_feature(pair: TrianglePair, point: wp.vec3) -> int:
    """Return what of a triangle a point of it is on: 0 to 2 a corner, 3 to 5 an edge, 6 the inside."""
    cross = wp.cross(pair.b - pair.a, pair.c - pair.a)
    area = wp.max(wp.length_sq(cross), 1.0e-30)
    weight_b = wp.dot(wp.cross(point - pair.a, pair.c - pair.a), cross) / area
    weight_c = wp.dot(wp.cross(pair.b - pair.a, point - pair.a), cross) / area
    weight_a = 1.0 - weight_b - weight_c
    off_a = weight_a < ON_FEATURE
    off_b = weight_b < ON_FEATURE
    off_c = weight_c < ON_FEATURE
    feature = int(6)
    if off_b and off_c:
        feature = 0
    elif off_c and off_a:
        feature = 1
    elif off_a and off_b:
        feature = 2
    elif off_c:
        feature = 3
    elif off_a:
        feature = 4
    elif off_b:
        feature = 5
    return feature


def make_triangle_collider(
    surface_type: Any, is_free_edge: Any, is_free_corner: Any, is_exit_direction: Any
) -> Any:
    """Return the Warp function that adds the contacts of one triangle with a convex shape.

    Args:
        surface_type: Struct that holds the surfaces.
        is_free_edge: Function `(data, surface, triangle, edge, pair, normal, point, slope)` that tells
            whether no triangle at an edge lies farther out along a normal than a point of the edge.
        is_free_corner: The same for a corner of a triangle.
        is_exit_direction: Function `(data, surface, pair, point, distance)` that tells whether no part of the
            surface is closer to a point below it than the one at `distance`.
    """

    @wp.func
    def collide_triangle(
        data: surface_type,
        hulls: HullData,
        pair: TrianglePair,
        surface: int,
        triangle: int,
        sharp: int,
        side: float,
        normals: wp.array[wp.vec3],
        slots: wp.array[candidate_vector],
        count: int,
    ) -> int:
        """Offer the contacts of a triangle; return the number of patches.

        Args:
            data: The surfaces.
            hulls: Convex hulls.
            pair: The triangle and the shape.
            surface: Surface of the triangle.
            triangle: Index of the triangle.
            sharp: Bits 0 to 2: edges that are sharp.
            side: 1 if the front is where the corners run counterclockwise, -1 if it is the other side.
            normals: Normals of patches.
            slots: Contacts kept.
            count: Number of patches so far.
        """
        if is_outside_box(pair):
            return count
        normal = side * wp.normalize(wp.cross(pair.b - pair.a, pair.c - pair.a))
        lowest = support_surface(pair, hulls, -normal)
        distance = wp.dot(normal, lowest - pair.a)
        if not distance <= pair.threshold:
            return count

        # The side of the shape that faces the triangle, clipped to it.
        corners = wp.zeros(shape=8, dtype=wp.vec3)
        polygon = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
        scratch = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
        missed = MISSED * pair.extent
        has_lowest = bool(False)
        # Whether a depth may not be the minimum translation. It says nothing if the two do not overlap.
        is_doubtful = bool(False)
        if pair.shape_type != GeoType.SPHERE:
            feature = find_feature(
                pair.shape_type,
                pair.size,
                hulls,
                pair.hull,
                -(wp.transpose(pair.axes) * normal),
                corners,
                0,
            )
            corner_count = int(feature.count)
            for index in range(corner_count):
                polygon[index] = pair.axes * corners[index]
            corner_count = clip_to_triangle(
                pair, normal, ON_EDGE * pair.extent, polygon, corner_count, scratch
            )
            for index in range(corner_count):
                point = polygon[index]
                height = wp.dot(normal, point - pair.a)
                rise = height - distance - missed
                if height <= pair.threshold and rise <= PATCH_SLOPE * wp.length(point - lowest):
                    if height >= -pair.shallow or is_exit_direction(data, surface, pair, point, height):
                        count = add_candidate(normals, slots, count, point, normal, height)
                    else:
                        is_doubtful = True
                    has_lowest = has_lowest or rise <= 0.0
        is_over = is_over_triangle(pair, normal, lowest, OVER * pair.extent)
        if is_over and not has_lowest:
            if distance >= -pair.shallow or is_exit_direction(data, surface, pair, lowest, distance):
                count = add_candidate(normals, slots, count, lowest, normal, distance)
            else:
                is_doubtful = True
        if not is_doubtful and (is_over or sharp == 0):
            return count

        witness = TriangleWitness()
        if pair.shape_type == GeoType.SPHERE:
            witness = find_sphere_witness(pair)
        else:
            witness = find_convex_witness(pair, hulls)
        if not witness.is_near or not witness.distance <= pair.threshold:
            return count
        # A face of the shape that looks at the edge or corner gives the normal of an overlap if it separates
        # as much: the search for the minimum translation ends a little off, to another side at every step.
        n = witness.normal
        m = witness.normal
        least = witness.distance
        slope = FREE_SLOPE
        face_count = int(0)
        if pair.shape_type != GeoType.SPHERE:
            feature = find_feature(
                pair.shape_type, pair.size, hulls, pair.hull, -(wp.transpose(pair.axes) * n), corners, 0
            )
            if feature.count > 2 and feature.cosine >= FACE_COSINE:
                face_count = feature.count
                for index in range(face_count):
                    corners[index] = pair.axes * corners[index]
                m = -(pair.axes * feature.normal)
                along_face = wp.dot(m, corners[0] - to_single(support_triangle(pair, hulls, to_double(m))))
                slope = PATCH_SLOPE
                if least + pair.radius < 0.0 and along_face >= least - ALIGNED * pair.extent:
                    n = m
                    least = along_face

        # A corner is sharp if an edge at it is.
        where = find_triangle_feature(pair, witness.point0)
        is_free = bool(False)
        if where < 3:
            if (sharp & ((1 << where) | (1 << ((where + 2) % 3)))) != 0:
                is_free = is_free_corner(data, surface, triangle, where, pair, n, witness.point0, slope)
        elif where < 6:
            if (sharp & (1 << (where - 3))) != 0:
                is_free = is_free_edge(data, surface, triangle, where - 3, pair, n, witness.point0, slope)
        if not is_free:
            if witness.distance < 0.0:
                depth = wp.max(witness.distance, -pair.shallow)
                add_last_resort(slots, witness.point0 + depth * normal, normal, depth)
            return count

        # All of the triangle that is as near to that face.
        has_witness = bool(False)
        if face_count > 0:
            polygon[0] = pair.a
            polygon[1] = pair.b
            polygon[2] = pair.c
            corner_count = clip_to_face(corners, 0, face_count, n, ON_EDGE * pair.extent, polygon, 3, scratch)
            stretch = 1.0 / wp.dot(m, n)
            for index in range(corner_count):
                point = polygon[index]
                height = wp.dot(m, corners[0] - point) * stretch
                on_shape = point + height * n
                rise = height - least - missed
                if height <= pair.threshold and rise <= PATCH_SLOPE * wp.length(point - witness.point0):
                    count = add_candidate(normals, slots, count, on_shape, n, height)
                    has_witness = has_witness or rise <= 0.0
        if not has_witness:
            count = add_candidate(normals, slots, count, witness.point0 + least * n, n, least)
        return count

    return collide_triangle
