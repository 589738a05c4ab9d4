"""Collider of any two convex shapes: shortest connection or minimum translation, then the contact patch.

The distance and its direction come from `witness_points`. Where that direction is the
normal of a face of either shape, what the other shows towards it is clipped to that face, and the corners of
the patch become contacts; where two straight sides lie along each other, the ends of the overlap do.
Otherwise the closest points are the contact.

Distances are in the frame of the first shape; patches are relative to the origin of the second.
"""

import warp as wp

from pluriverse.collision.components import column, to_double
from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.convex.feature import Feature, find_feature
from pluriverse.collision.convex.kept_directions import KeptDirections, does_kept_separate, keep_direction
from pluriverse.collision.convex.polygon import POLYGON_CAPACITY, clip_to_face, drop_corner
from pluriverse.collision.convex.separation import ROUNDING, TOO_FAR, find_outermost_face
from pluriverse.collision.convex.support import ConvexPair
from pluriverse.collision.convex.witness_points import Witness, align_to_face, find_face_witness, find_witness
from pluriverse.collision.hull import HullData
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel, hull_of

# Cosine (8 degrees) of the angle between normal and face from which the face carries the other shape. The
# normal of two plates tilted by the slightest angle can be that of two crossing edges, but they rest on a
# patch.
FACE_COSINE = wp.constant(0.99)
# Sine (3 degrees) of the angle between two straight sides up to which they lie along each other.
ALONG = wp.constant(0.05)
# Lengths relative to the size of the pair: two corners closer than the first are one; a patch that misses the
# exact distance by the second does not contain the closest points; a corner outside a face by the third is on
# its edge.
MERGE = wp.constant(1.0e-3)
MISSED = wp.constant(1.0e-5)
ON_EDGE = wp.constant(1.0e-6)
# Of two faces along the normal to this difference of cosines, that of the first (larger) shape is the
# reference.
EQUAL_COSINE = wp.constant(1.0e-6)

# Contacts of a pair at most.
PATCH_CORNER_COUNT = wp.constant(8)


@wp.struct
class ConvexPairData:
    """What the collider needs besides the shapes."""

    hulls: HullData
    """Convex hulls."""
    kept: KeptDirections
    """Directions that told pairs apart."""


@wp.func
def find_overlap(points: wp.array[wp.vec3], corners: wp.array[wp.vec3]) -> int:
    """Store the ends of the part of line 0 along line 1; return their number, 0 unless almost parallel.

    The ends of the lines are points 0, 1 and 8, 9.
    """
    along = points[1] - points[0]
    other = points[9] - points[8]
    squared = wp.length_sq(along)
    count = int(0)
    if wp.length_sq(wp.cross(along, other)) < ALONG * ALONG * squared * wp.length_sq(other):
        first = wp.dot(along, points[8] - points[0]) / squared
        last = wp.dot(along, points[9] - points[0]) / squared
        low = wp.clamp(wp.min(first, last), 0.0, 1.0)
        high = wp.clamp(wp.max(first, last), 0.0, 1.0)
        if high > low:
            corners[0] = points[0] + low * along
            corners[1] = points[0] + high * along
            count = 2
    return count


@wp.func
def make_convex_pair(model: wp.ref[ShapeModel], pair: wp.ref[ShapePair]) -> ConvexPair:
    """Return the pair as the support functions take it."""
    shapes = ConvexPair()
    shapes.type0 = model.shape_type[pair.shape0]
    shapes.type1 = model.shape_type[pair.shape1]
    shapes.size0 = pair.size0
    shapes.size1 = pair.size1
    shapes.hull0 = hull_of(model, pair.shape0)
    shapes.hull1 = hull_of(model, pair.shape1)
    shapes.rotation = wp.matrix_from_cols(
        to_double(column(pair.rotation, 0)),
        to_double(column(pair.rotation, 1)),
        to_double(column(pair.rotation, 2)),
    )
    shapes.position = to_double(pair.position)
    return shapes


@wp.func
def add_patch(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    pair: wp.ref[ShapePair],
    found: int,
    witness: wp.ref[Witness],
    reference: int,
    plane: wp.vec3,
    anchor: wp.vec3,
    corners: wp.array[wp.vec3],
    count: int,
) -> int:
    """Add the contacts at the corners of a patch, or at the closest points if there is no patch.

    Of corners that coincide the deeper one stays. The closest points replace the nearest corner where the
    patch does not reach them: a tilted capsule touches with its end, not with its side.

    Args:
        output: Where contacts go.
        model: The shapes.
        pair: The pair.
        found: Contacts that the world has already.
        witness: Closest or deepest points.
        reference: Shape that the plane belongs to, 0 or 1.
        plane: Normal of the plane that the corners face, axes of the first shape.
        anchor: Point of that plane [m].
        corners: Corners on the other shape [m], shape [`POLYGON_CAPACITY`].
        count: Number of corners.
    """
    normal = witness.normal
    size = pair.extent
    distances = wp.zeros(shape=PATCH_CORNER_COUNT, dtype=float)
    slope = 1.0 / wp.dot(plane, normal)
    kept = int(0)
    smallest = float(1.0e30)
    nearest = int(0)
    nearest_squared = float(1.0e30)
    middle = 0.5 * (witness.point0 + witness.point1)
    for index in range(count):
        corner = corners[index]
        distance = wp.dot(plane, anchor - corner) * slope
        if reference == 0:
            distance = -distance
        smallest = wp.min(smallest, distance)
        squared = wp.length_sq(wp.cross(corner - middle, normal))
        slot = int(kept)
        for other in range(kept):
            if wp.length_sq(corner - corners[other]) <= MERGE * MERGE * size * size:
                slot = other
        if squared < nearest_squared:
            nearest_squared = squared
            nearest = slot
        if slot == kept or distance < distances[slot]:
            corners[slot] = corner
            distances[slot] = distance
        if slot == kept:
            kept += 1
    needs_witness = smallest > witness.distance + MISSED * size
    kept = wp.max(kept, 1)

    inverse = wp.transpose(pair.rotation)
    world_normal = pair.rotation0 * normal
    for index in range(kept):
        distance = distances[index]
        point0 = corners[index]
        point1 = corners[index] + distance * normal
        if reference == 0:
            point0 = corners[index] - distance * normal
            point1 = corners[index]
        if needs_witness and index == nearest:
            distance = witness.distance
            point0 = witness.point0
            point1 = witness.point1
        if distance <= pair.threshold:
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


@wp.func
def collide_convex(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    data: wp.ref[ConvexPairData],
    pair: wp.ref[ShapePair],
    found: int,
) -> int:
    """Add the contacts of two convex shapes."""
    shapes = make_convex_pair(model, pair)
    if does_kept_separate(data.kept, data.hulls, pair, shapes):
        return found
    face_axis = find_outermost_face(model, pair)
    if face_axis == TOO_FAR:
        return found
    witness = find_face_witness(shapes, data.hulls, face_axis)
    is_on_face = witness.is_near
    # Along the normal of a face the farthest points are known. No connection is shorter than they are apart.
    if face_axis >= 0 and witness.distance > pair.threshold + ROUNDING * (pair.extent + pair.threshold):
        return found
    if not is_on_face:
        witness = find_witness(shapes, data.hulls, pair.extent, pair.threshold)
        if not witness.is_near:
            keep_direction(data.kept, pair, witness.normal)
    if not witness.is_near or not witness.distance <= pair.threshold:
        return found

    # What both shapes show each other, in the axes of the first and relative to the origin of the second; the
    # corners of the second begin at 8.
    normal = witness.normal
    points = wp.zeros(shape=16, dtype=wp.vec3)
    feature0 = Feature()
    feature1 = Feature()
    for side in range(int(2)):
        shape_type = shapes.type0
        size = shapes.size0
        hull = shapes.hull0
        direction = normal
        if side == 1:
            shape_type = shapes.type1
            size = shapes.size1
            hull = shapes.hull1
            direction = -(wp.transpose(pair.rotation) * normal)
        feature = find_feature(shape_type, size, data.hulls, hull, direction, points, 8 * side)
        if side == 0:
            feature0 = feature
        else:
            feature1 = feature
            feature1.normal = pair.rotation * feature.normal
    # Beside a round surface there is no patch, and nobody asks for its corners.
    if feature0.count > 0 and feature1.count > 0:
        for index in range(feature0.count):
            points[index] = points[index] - pair.position
        for index in range(8, 8 + feature1.count):
            points[index] = pair.rotation * points[index]

    # The shape with the face that the other one is clipped to.
    reference = int(-1)
    if feature0.cosine >= FACE_COSINE and feature0.cosine >= feature1.cosine - EQUAL_COSINE:
        reference = 0
    elif feature1.cosine >= FACE_COSINE:
        reference = 1

    corners = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
    scratch = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
    count = int(0)
    plane = wp.vec3(0.0, 0.0, 0.0)
    anchor = wp.vec3(0.0, 0.0, 0.0)
    if reference >= 0:
        face = feature0
        other = feature1
        sign = float(1.0)
        if reference == 1:
            face = feature1
            other = feature0
            sign = -1.0
        plane = face.normal
        anchor = points[8 * reference]
        if other.cosine < FACE_COSINE and not is_on_face:
            witness = align_to_face(shapes, data.hulls, witness, reference, sign * plane, pair.extent)
        # Four of the eight points of a rim do.
        stride = wp.where(other.is_circle, 2, 1)
        for index in range(0, other.count, stride):
            corners[count] = points[8 - 8 * reference + index]
            count += 1
        if count > 0:
            tolerance = ON_EDGE * pair.extent
            count = clip_to_face(
                points, 8 * reference, face.count, witness.normal, tolerance, corners, count, scratch
            )
    elif feature0.count == 2 and feature1.count == 2:
        count = find_overlap(points, corners)
        # The plane through line 1 that line 0 faces along the normal.
        along = wp.normalize(points[9] - points[8])
        plane = wp.normalize(normal - wp.dot(normal, along) * along)
        anchor = points[8]
        reference = 1
    while count > PATCH_CORNER_COUNT:
        count = drop_corner(corners, count)
    return add_patch(output, model, pair, found, witness, reference, plane, anchor, corners, count)


collide_convex_pairs = make_pair_kernel("convex", collide_convex, data_type=ConvexPairData, is_symmetric=True)
