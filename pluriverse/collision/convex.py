"""Collider of any two convex shapes: shortest connection or shortest way out, then the patch where they meet.

The distance and its direction come from support functions in double precision. Where that direction is the
normal of a face of either shape, what the other shows towards it is clipped to that face, and the corners of
the patch become contacts; where two straight sides lie along each other, the ends of the overlap do.
Otherwise the closest points are the contact.

Distances are in the frame of the first shape; patches are relative to the origin of the second.
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.convex_feature import find_feature
from pluriverse.collision.convex_support import ConvexPair, core_radius, support_first, support_second
from pluriverse.collision.epa import find_penetration
from pluriverse.collision.gjk import APART, NEAR, make_closest_points
from pluriverse.collision.hull import HullData
from pluriverse.collision.pair_table import COLLIDER_COUNT, Collider, PairTable
from pluriverse.collision.polygon import POLYGON_CAPACITY, clip_polygon, drop_corner
from pluriverse.collision.shape_pair import ShapePair, bounds_overlap, flat_shape, is_larger, make_shape_pair
from pluriverse.collision.shape_state import ShapeModel, ShapeState

# Cosine (8 degrees) of the angle between normal and face from which the face carries the other shape. The
# normal of two plates tilted by the slightest angle can be that of two crossing edges, but they rest on a
# patch.
FACE_COSINE = wp.constant(0.99)
# Sine (3 degrees) of the angle between two straight sides up to which they lie along each other.
ALONG = wp.constant(0.05)
# Lengths relative to the size of the pair: two corners closer than the first are one; a patch that misses the
# exact distance by the second does not contain the closest points; a corner beside a face by the third is on
# its edge.
MERGE = wp.constant(1.0e-3)
MISSED = wp.constant(1.0e-5)
ON_EDGE = wp.constant(1.0e-6)

# Contacts of a pair at most.
PATCH_CORNER_COUNT = wp.constant(8)


find_closest_points = make_closest_points(ConvexPair, HullData, support_first, support_second)


@wp.struct
class Touch:
    """Closest or deepest points of two shapes, axes of the first, from the origin of the second [m]."""

    is_near: bool
    """Whether they are within reach; else nothing below is set."""
    normal: wp.vec3
    """Unit normal from the first to the second shape."""
    point0: wp.vec3
    """Point of the first shape."""
    point1: wp.vec3
    """Point of the second shape."""
    distance: float
    """normal . (point1 - point0)."""


@wp.func
def to_single(v: wp.vec3d) -> wp.vec3:
    """Return a vector in single precision."""
    return wp.vec3(wp.float32(v[0]), wp.float32(v[1]), wp.float32(v[2]))


@wp.func
def to_double(v: wp.vec3) -> wp.vec3d:
    """Return a vector in double precision."""
    return wp.vec3d(wp.float64(v[0]), wp.float64(v[1]), wp.float64(v[2]))


@wp.func
def column(m: wp.mat33, index: int) -> wp.vec3:
    """Return a column of a matrix."""
    return wp.vec3(m[0, index], m[1, index], m[2, index])


@wp.func
def find_touch(pair: ConvexPair, hulls: HullData, size: float, reach: float) -> Touch:
    """Return the closest points of two shapes, or their deepest points if they overlap.

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        size: Size of the pair [m], for tolerances.
        reach: Distance [m] beyond which they do not matter.
    """
    touch = Touch()
    radius0 = wp.float64(core_radius(pair.type0, pair.size0))
    radius1 = wp.float64(core_radius(pair.type1, pair.size1))
    w = wp.zeros(shape=4, dtype=wp.vec3d)
    a = wp.zeros(shape=4, dtype=wp.vec3d)
    b = wp.zeros(shape=4, dtype=wp.vec3d)
    weight = wp.zeros(shape=4, dtype=wp.float64)
    found = find_closest_points(
        pair,
        hulls,
        pair.position,
        wp.float64(reach) + radius0 + radius1,
        wp.float64(size),
        w,
        a,
        b,
        weight,
    )
    normal = wp.vec3d()
    point0 = wp.vec3d()
    point1 = wp.vec3d()
    if found[0] == APART:
        return touch
    touch.is_near = True
    if found[0] == NEAR:
        for index in range(found[1]):
            point0 += weight[index] * a[index]
            point1 += weight[index] * b[index]
        normal = wp.normalize(point1 - point0)
    else:
        way_out = find_penetration(pair, hulls, wp.float64(size), w, a, b, found[1])
        touch.is_near = way_out.is_found
        normal = way_out.normal
        point0 = way_out.point0
        point1 = way_out.point1
    point0 += radius0 * normal
    point1 -= radius1 * normal
    touch.normal = to_single(normal)
    touch.distance = wp.float32(wp.dot(normal, point1 - point0))
    touch.point0 = to_single(point0 - pair.position)
    touch.point1 = to_single(point1 - pair.position)
    return touch


@wp.func
def clip_to_face(
    face: wp.array[wp.vec3],
    face_count: int,
    normal: wp.vec3,
    tolerance: float,
    polygon: wp.array[wp.vec3],
    count: int,
    scratch: wp.array[wp.vec3],
) -> int:
    """Clip `polygon` to the prism over a face along `normal`; return its new corner count."""
    middle = wp.vec3(0.0, 0.0, 0.0)
    for index in range(face_count):
        middle += face[index]
    middle = middle / float(face_count)
    for index in range(face_count):
        corner = face[index]
        edge = face[(index + 1) % face_count] - corner
        outward = wp.normalize(wp.cross(edge, normal))
        if wp.dot(outward, middle - corner) > 0.0:
            outward = -outward
        count = clip_polygon(polygon, count, outward, wp.dot(outward, corner), tolerance, scratch)
        for copied in range(count):
            polygon[copied] = scratch[copied]
    return count


@wp.func
def find_overlap(line0: wp.array[wp.vec3], line1: wp.array[wp.vec3], points: wp.array[wp.vec3]) -> int:
    """Store the ends of the part of line 0 beside line 1; return their number, 0 unless almost parallel."""
    along = line0[1] - line0[0]
    other = line1[1] - line1[0]
    squared = wp.length_sq(along)
    count = int(0)
    if wp.length_sq(wp.cross(along, other)) < ALONG * ALONG * squared * wp.length_sq(other):
        first = wp.dot(along, line1[0] - line0[0]) / squared
        last = wp.dot(along, line1[1] - line0[0]) / squared
        low = wp.clamp(wp.min(first, last), 0.0, 1.0)
        high = wp.clamp(wp.max(first, last), 0.0, 1.0)
        if high > low:
            points[0] = line0[0] + low * along
            points[1] = line0[0] + high * along
            count = 2
    return count


@wp.func
def collide_convex(
    output: ContactOutput, model: ShapeModel, hulls: HullData, pair: ShapePair, found: int
) -> int:
    """Add the contacts of two convex shapes."""
    size0 = pair.size0
    size1 = pair.size1
    type0 = model.shape_type[pair.shape0]
    type1 = model.shape_type[pair.shape1]
    hull0 = model.shape_hull[pair.shape0]
    hull1 = model.shape_hull[pair.shape1]
    size = pair.extent
    shapes = ConvexPair()
    shapes.type0 = type0
    shapes.type1 = type1
    shapes.size0 = size0
    shapes.size1 = size1
    shapes.hull0 = hull0
    shapes.hull1 = hull1
    shapes.rotation = wp.matrix_from_cols(
        to_double(column(pair.rotation, 0)),
        to_double(column(pair.rotation, 1)),
        to_double(column(pair.rotation, 2)),
    )
    shapes.position = to_double(pair.position)
    touch = find_touch(shapes, hulls, size, pair.reach)
    if not touch.is_near or not touch.distance <= pair.reach:
        return found

    # Features of both, turned into the axes of the first shape and relative to the origin of the second.
    normal = touch.normal
    inverse = wp.transpose(pair.rotation)
    face0 = wp.zeros(shape=8, dtype=wp.vec3)
    face1 = wp.zeros(shape=8, dtype=wp.vec3)
    feature0 = find_feature(type0, size0, hulls, hull0, normal, 8, face0)
    feature1 = find_feature(type1, size1, hulls, hull1, -(inverse * normal), 8, face1)
    is_first = feature0.cosine >= FACE_COSINE and feature0.cosine >= feature1.cosine - 1.0e-6
    is_second = not is_first and feature1.cosine >= FACE_COSINE
    if is_first:
        feature1 = find_feature(type1, size1, hulls, hull1, -(inverse * normal), 4, face1)
    if is_second:
        feature0 = find_feature(type0, size0, hulls, hull0, normal, 4, face0)
    for index in range(feature0.count):
        face0[index] = face0[index] - pair.position
    for index in range(feature1.count):
        face1[index] = pair.rotation * face1[index]
    plane = wp.vec3(0.0, 0.0, 0.0)
    anchor = wp.vec3(0.0, 0.0, 0.0)

    # Corners of the patch on the shape that shows less than the face, or on line 0.
    corners = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
    scratch = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
    count = int(0)
    tolerance = ON_EDGE * size
    if is_first:
        plane = feature0.normal
        anchor = face0[0]
        count = feature1.count
        for index in range(count):
            corners[index] = face1[index]
        count = clip_to_face(face0, feature0.count, normal, tolerance, corners, count, scratch)
    elif is_second:
        plane = pair.rotation * feature1.normal
        anchor = face1[0]
        count = feature0.count
        for index in range(count):
            corners[index] = face0[index]
        count = clip_to_face(face1, feature1.count, normal, tolerance, corners, count, scratch)
    elif feature0.count == 2 and feature1.count == 2:
        count = find_overlap(face0, face1, corners)
        # The plane through line 1 that line 0 meets along the normal.
        along = wp.normalize(face1[1] - face1[0])
        plane = wp.normalize(normal - wp.dot(normal, along) * along)
        anchor = face1[0]
    while count > PATCH_CORNER_COUNT:
        count = drop_corner(corners, count)

    # Distances along the normal. Corners that coincide are one; the closest points replace the nearest corner
    # where the patch does not reach them (a tilted capsule touches with its end, not with its side line).
    distances = wp.zeros(shape=PATCH_CORNER_COUNT, dtype=float)
    slope = 1.0 / wp.dot(plane, normal)
    kept = int(0)
    smallest = float(1.0e30)
    nearest = int(0)
    nearest_squared = float(1.0e30)
    middle = 0.5 * (touch.point0 + touch.point1)
    for index in range(count):
        corner = corners[index]
        distance = wp.dot(plane, anchor - corner) * slope
        if is_first:
            distance = -distance
        is_new = bool(True)
        for other in range(kept):
            is_new = is_new and wp.length_sq(corner - corners[other]) > MERGE * MERGE * size * size
        if is_new:
            corners[kept] = corner
            distances[kept] = distance
            squared = wp.length_sq(wp.cross(corner - middle, normal))
            if squared < nearest_squared:
                nearest_squared = squared
                nearest = kept
            smallest = wp.min(smallest, distance)
            kept += 1
    needs_touch = smallest > touch.distance + MISSED * size
    if kept == 0:
        kept = 1

    world_normal = pair.rotation0 * normal
    for index in range(kept):
        distance = distances[index]
        point0 = corners[index]
        point1 = corners[index] + distance * normal
        if is_first:
            point0 = corners[index] - distance * normal
            point1 = corners[index]
        if needs_touch and index == nearest:
            distance = touch.distance
            point0 = touch.point0
            point1 = touch.point1
        if distance <= pair.reach:
            found = add_contact(
                output,
                model,
                pair.world,
                found,
                pair.shape0,
                pair.shape1,
                point0 + pair.position,
                inverse * point1,
                world_normal,
                distance,
            )
    return found


@wp.kernel(enable_backward=False, module="pluriverse.collision.convex")
def collide_convex_pairs(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: PairTable,
    collider: int,
    model: ShapeModel,
    hulls: HullData,
    state: ShapeState,
    # out
    output: ContactOutput,
):
    """Add the contacts of the near pairs of one world."""
    world = worlds[wp.tid()]
    row = table.world_template[world] * COLLIDER_COUNT + collider
    first_shape = table.world_shape[world]
    found = output.found[world]
    for index in range(table.pair_start[row], table.pair_start[row + 1]):
        shape0 = flat_shape(table.pair_shape0[index], first_shape)
        shape1 = flat_shape(table.pair_shape1[index], first_shape)
        if bounds_overlap(state.bounds[shape0], state.bounds[shape1]):
            if is_larger(state, shape0, shape1):
                shape0, shape1 = shape1, shape0
            pair = make_shape_pair(state, world, shape0, shape1)
            found = collide_convex(output, model, hulls, pair, found)
    output.found[world] = found
    output.count[world] = wp.min(found, output.start[world + 1] - output.start[world])


def collide_convex_shapes(
    hulls: HullData,
    worlds: wp.array[int],
    table: PairTable,
    model: ShapeModel,
    state: ShapeState,
    output: ContactOutput,
    device: Any,
) -> None:
    """Add the contacts of all pairs without a collider of their own."""
    wp.launch(
        collide_convex_pairs,
        dim=worlds.size,
        inputs=[worlds, table, int(Collider.CONVEX), model, hulls, state],
        outputs=[output],
        device=device,
    )
