"""Collider of two boxes: separating axes for the normal, clipped faces for the points.

Of the directions that can separate two boxes (three face normals each, nine products of edges
[Gottschalk1996]) the one of largest separation is the minimum translation that ends a penetration. Where it
runs along a face normal, the face of the other box that looks back is clipped to the first face, and the
corners of the patch become contacts. Of boxes that overlap a face is taken even where edges would be the
shorter translation by a little, so that the normal of a grasp stays where it is while the fingers tilt.

The frame is that of the box whose face is the reference, with points relative to the centre of the other box,
which keeps the precision of a small box on a large one.
"""

import warp as wp

from pluriverse.collision.components import column, largest_component
from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.convex.gjk import NEAR, make_closest_points
from pluriverse.collision.hull import HullData
from pluriverse.collision.segment import closest_segment_points
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel

# Squared sine of the angle between two edges below which they count as parallel: their product has no
# direction, and the face normals separate as well.
PARALLEL = wp.constant(1.0e-6)
# Separation, relative to the boxes, by which edges must be the shorter translation than faces, and the faces
# of the second (smaller) box than those of the first: equals would alternate from step to step by rounding.
TIE = wp.constant(1.0e-6)
# The same for boxes that overlap. Tilted by an angle, a face is a longer translation than the edges across it
# by about the angle times half its side, so a flat grasp or stack is always near a tie, and the choice among
# equals would turn the normal to and fro. Half the side of a cube, a third of the sum of half extents, times
# 8 degrees (as in FACE_COSINE) is 0.047 times the sum.
FACE_PREFERENCE = wp.constant(5.0e-2)
# Cosine (8 degrees) from which a normal across two edges still counts as along a face. Two plates that cross
# touch at their edges if they are tilted by the slightest angle, but they rest on the patch.
FACE_COSINE = wp.constant(0.99)
# Corners of a patch closer than this, relative to the smaller face, are one.
MERGE = wp.constant(1.0e-3)
# Corner beyond the edge of a face by less than this, relative to the face, is on the edge: boxes stacked in
# line.
ON_EDGE = wp.constant(1.0e-6)

# Each of the four clips adds at most one corner to a convex polygon; rounding may make it add another.
POLYGON_CAPACITY = wp.constant(16)


# Cosines (20 and 45 degrees) of the angles between the faces of boxes that overlap, and between the face
# and the minimum translation, up to which the face is preferred. A fingertip that is tilted by 12 degrees and
# sunk in by some millimetres is as deep along two pairs of edges, 5 and 33 degrees off the face of the cube
# that it holds: with these normals in turn the cube is squeezed out.
PREFERRED_FACE_COSINE = wp.constant(0.94)
PREFERRED_NORMAL_COSINE = wp.constant(0.7)

# Distance, relative to the boxes, by which a patch or a pair of edges may be farther apart than the
# separating axis tells before the closest points are taken to lie elsewhere.
MISSED = wp.constant(1.0e-6)


@wp.struct
class BoxPair:
    """Two boxes in the frame of the first."""

    half0: wp.vec3
    """Half extents of the first box [m]."""
    half1: wp.vec3
    """Half extents of the second box [m]."""
    rotation: wp.mat33
    """First from second box axes."""
    position: wp.vec3
    """Centre of the second box [m]."""


@wp.struct
class Connection:
    """Shortest connection of two boxes that are apart, axes of the first."""

    is_near: bool
    """Whether it is close enough; else nothing below is set."""
    normal: wp.vec3
    """Unit normal from the first to the second box."""
    point0: wp.vec3
    """Point of the first box [m], relative to its centre."""
    point1: wp.vec3
    """Point of the second box [m], relative to its centre."""
    distance: float
    """Its length [m]."""


@wp.func
def support_first(pair: wp.ref[BoxPair], _unused: int, direction: wp.vec3d) -> wp.vec3d:
    """Return the corner of the first box farthest along `direction`."""
    zero = wp.float64(0.0)
    return wp.vec3d(
        wp.float64(wp.where(direction[0] < zero, -pair.half0[0], pair.half0[0])),
        wp.float64(wp.where(direction[1] < zero, -pair.half0[1], pair.half0[1])),
        wp.float64(wp.where(direction[2] < zero, -pair.half0[2], pair.half0[2])),
    )


@wp.func
def support_second(pair: wp.ref[BoxPair], _unused: int, direction: wp.vec3d) -> wp.vec3d:
    """Return the corner of the second box farthest along `direction`."""
    r = pair.rotation
    # The signs that pick a corner need no more than single precision.
    d = wp.transpose(r) * wp.vec3(
        wp.float32(direction[0]), wp.float32(direction[1]), wp.float32(direction[2])
    )
    a = wp.float64(wp.where(d[0] < 0.0, -pair.half1[0], pair.half1[0]))
    b = wp.float64(wp.where(d[1] < 0.0, -pair.half1[1], pair.half1[1]))
    c = wp.float64(wp.where(d[2] < 0.0, -pair.half1[2], pair.half1[2]))
    p = pair.position
    return wp.vec3d(
        wp.float64(p[0]) + wp.float64(r[0, 0]) * a + wp.float64(r[0, 1]) * b + wp.float64(r[0, 2]) * c,
        wp.float64(p[1]) + wp.float64(r[1, 0]) * a + wp.float64(r[1, 1]) * b + wp.float64(r[1, 2]) * c,
        wp.float64(p[2]) + wp.float64(r[2, 0]) * a + wp.float64(r[2, 1]) * b + wp.float64(r[2, 2]) * c,
    )


find_closest_points = make_closest_points(BoxPair, int, support_first, support_second)


@wp.func
def clip_corner(inside: float, outside: float, a: wp.vec3, b: wp.vec3) -> wp.vec3:
    """Return the point between a and b where a linear function, `inside` at a and `outside` at b, is zero."""
    return a + (inside / (inside - outside)) * (b - a)


@wp.func
def clip_polygon(
    source: wp.array[wp.vec3],
    count: int,
    axis: int,
    sign: float,
    limit: float,
    tolerance: float,
    target: wp.array[wp.vec3],
) -> int:
    """Store the part of a convex polygon with sign * coordinate <= limit; return its corner count."""
    kept = int(0)
    if count > 0:
        previous = source[count - 1]
        previous_height = limit - sign * previous[axis]
        for index in range(count):
            current = source[index]
            height = limit - sign * current[axis]
            if height >= -tolerance:
                if previous_height < -tolerance and height > tolerance:
                    target[kept] = clip_corner(height, previous_height, current, previous)
                    kept += 1
                target[kept] = current
                kept += 1
            elif previous_height > tolerance:
                target[kept] = clip_corner(previous_height, height, previous, current)
                kept += 1
            previous = current
            previous_height = height
    return kept


@wp.func
def collide_faces(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    pair: wp.ref[ShapePair],
    found: int,
    half: wp.vec3,
    other_half: wp.vec3,
    rotation: wp.mat33,
    position: wp.vec3,
    normal: wp.vec3,
    is_swapped: bool,
    limit: float,
) -> int:
    """Add the corners of the patch between a face of the reference box and the facing one of the other.

    Nothing is added, and -1 returned, if the patch is empty or farther away than `limit`.

    Args:
        output: Where contacts go.
        model: The shapes.
        pair: The pair.
        found: Contacts that the world has already.
        half: Half extents of the reference box [m].
        other_half: Half extents of the other box [m].
        rotation: Reference axes from the other box's axes.
        position: Centre of the other box in the frame of the reference box [m].
        normal: Direction from the reference box to the other, along which distances count, reference axes.
        is_swapped: Whether the reference box is the second of the pair.
        limit: Distance [m] up to which the patch contains the closest points.
    """
    face = largest_component(normal)
    j = (face + 1) % 3
    k = (face + 2) % 3
    sign = wp.where(normal[face] < 0.0, -1.0, 1.0)
    level = sign * half[face] - position[face]

    # The other box's face, as (first, second, distance): coordinates along the reference face relative to the
    # centre of the other box, and distance from the face along the normal.
    other_normal = wp.transpose(rotation) * normal
    other_face = largest_component(other_normal)
    other_sign = wp.where(other_normal[other_face] < 0.0, 1.0, -1.0)
    center = other_sign * other_half[other_face] * column(rotation, other_face)
    first = other_half[(other_face + 1) % 3] * column(rotation, (other_face + 1) % 3)
    second = other_half[(other_face + 2) % 3] * column(rotation, (other_face + 2) % 3)
    inverse = 1.0 / normal[face]
    skew_j = normal[j] * inverse
    skew_k = normal[k] * inverse
    polygon = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
    clipped = wp.zeros(shape=POLYGON_CAPACITY, dtype=wp.vec3)
    for index in range(4):
        a = wp.where(index == 0 or index == 3, -1.0, 1.0)
        b = wp.where(index < 2, -1.0, 1.0)
        corner = center + a * first + b * second
        height = corner[face] - level
        polygon[index] = wp.vec3(corner[j] - height * skew_j, corner[k] - height * skew_k, height * inverse)

    tolerance_j = ON_EDGE * half[j]
    tolerance_k = ON_EDGE * half[k]
    count = clip_polygon(polygon, 4, 0, 1.0, half[j] - position[j], tolerance_j, clipped)
    count = clip_polygon(clipped, count, 0, -1.0, half[j] + position[j], tolerance_j, polygon)
    count = clip_polygon(polygon, count, 1, 1.0, half[k] - position[k], tolerance_k, clipped)
    count = clip_polygon(clipped, count, 1, -1.0, half[k] + position[k], tolerance_k, polygon)

    smallest = float(1.0e30)
    for index in range(count):
        smallest = wp.min(smallest, polygon[index][2])
    if not smallest <= limit:
        return -1

    size = wp.min(half[j] + half[k], other_half[(other_face + 1) % 3] + other_half[(other_face + 2) % 3])
    merge = MERGE * MERGE * size * size
    world_normal = pair.rotation0 * normal
    if is_swapped:
        world_normal = -(pair.rotation0 * (pair.rotation * normal))
    # Of corners that coincide the deeper one stays.
    kept = int(0)
    for index in range(count):
        corner = polygon[index]
        same = int(-1)
        for other in range(kept):
            du = corner[0] - polygon[other][0]
            dv = corner[1] - polygon[other][1]
            if du * du + dv * dv <= merge:
                same = other
        if same < 0:
            polygon[kept] = corner
            kept += 1
        elif corner[2] < polygon[same][2]:
            polygon[same] = corner
    for index in range(kept):
        corner = polygon[index]
        if corner[2] <= pair.threshold:
            # Relative to the centre of the other box, reference axes.
            # Components that are chosen, not stored: a load of all three would wait for such stores.
            on_reference = wp.vec3(
                wp.where(face == 0, level, wp.where(face == 1, corner[1], corner[0])),
                wp.where(face == 1, level, wp.where(face == 2, corner[1], corner[0])),
                wp.where(face == 2, level, wp.where(face == 0, corner[1], corner[0])),
            )
            on_other = wp.transpose(rotation) * (on_reference + corner[2] * normal)
            point0 = on_reference + position
            point1 = on_other
            if is_swapped:
                point0 = on_other
                point1 = on_reference + position
            found = add_contact(
                output,
                model,
                pair.world,
                found,
                pair.shape0,
                pair.shape1,
                point0,
                point1,
                world_normal,
                corner[2],
            )
    return found


@wp.func
def collide_edges(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    pair: wp.ref[ShapePair],
    found: int,
    edge0: int,
    edge1: int,
    normal: wp.vec3,
    limit: float,
) -> int:
    """Add the contact between two crossing edges, `normal` being perpendicular to both.

    Nothing is added, and -1 returned, if the edges do not come closer to each other than `limit`.
    """
    half0 = pair.size0
    half1 = pair.size1
    middle0 = wp.vec3(
        wp.where(normal[0] < 0.0, -half0[0], half0[0]),
        wp.where(normal[1] < 0.0, -half0[1], half0[1]),
        wp.where(normal[2] < 0.0, -half0[2], half0[2]),
    )
    middle0[edge0] = 0.0
    normal1 = wp.transpose(pair.rotation) * normal
    middle1 = wp.vec3(
        wp.where(normal1[0] < 0.0, half1[0], -half1[0]),
        wp.where(normal1[1] < 0.0, half1[1], -half1[1]),
        wp.where(normal1[2] < 0.0, half1[2], -half1[2]),
    )
    middle1[edge1] = 0.0
    along0 = wp.vec3(0.0, 0.0, 0.0)
    along0[edge0] = half0[edge0]
    along1 = half1[edge1] * column(pair.rotation, edge1)
    offset = (pair.position - middle0) + pair.rotation * middle1
    closest = closest_segment_points(along0, offset, along1)
    connection = offset + closest[1] * along1 - closest[0] * along0
    distance = wp.dot(normal, connection)
    if distance > 0.0 and wp.length(connection) > limit:
        return -1
    if distance <= pair.threshold:
        point1 = middle1
        point1[edge1] = closest[1] * half1[edge1]
        found = add_contact(
            output,
            model,
            pair.world,
            found,
            pair.shape0,
            pair.shape1,
            middle0 + closest[0] * along0,
            point1,
            pair.rotation0 * normal,
            distance,
        )
    return found


@wp.func
def is_along_faces(normal: wp.vec3, rotation: wp.mat33, cosine: float) -> bool:
    """Return whether a normal in the axes of the first box is almost that of a face of either box."""
    other = wp.transpose(rotation) * normal
    cosine0 = wp.max(wp.max(wp.abs(normal[0]), wp.abs(normal[1])), wp.abs(normal[2]))
    cosine1 = wp.max(wp.max(wp.abs(other[0]), wp.abs(other[1])), wp.abs(other[2]))
    return wp.min(cosine0, cosine1) >= cosine


@wp.func
def find_connection(pair: wp.ref[ShapePair], guess: wp.vec3) -> Connection:
    """Return the shortest connection of two boxes that are apart.

    Args:
        pair: The boxes.
        guess: About the connection, from the first to the second box [m].
    """
    connection = Connection()
    boxes = BoxPair()
    boxes.half0 = pair.size0
    boxes.half1 = pair.size1
    boxes.rotation = pair.rotation
    boxes.position = pair.position
    w = wp.zeros(shape=4, dtype=wp.vec3d)
    a = wp.zeros(shape=4, dtype=wp.vec3d)
    b = wp.zeros(shape=4, dtype=wp.vec3d)
    weight = wp.zeros(shape=4, dtype=wp.float64)
    result = find_closest_points(
        boxes,
        0,
        wp.vec3d(wp.float64(guess[0]), wp.float64(guess[1]), wp.float64(guess[2])),
        wp.float64(pair.threshold),
        wp.float64(pair.extent),
        w,
        a,
        b,
        weight,
    )
    first = wp.vec3d()
    second = wp.vec3d()
    for index in range(result[1]):
        first += weight[index] * a[index]
        second += weight[index] * b[index]
    length = wp.length(second - first)
    unit = (second - first) / length
    second -= wp.vec3d(
        wp.float64(pair.position[0]), wp.float64(pair.position[1]), wp.float64(pair.position[2])
    )
    connection.normal = wp.vec3(wp.float32(unit[0]), wp.float32(unit[1]), wp.float32(unit[2]))
    connection.point0 = wp.vec3(wp.float32(first[0]), wp.float32(first[1]), wp.float32(first[2]))
    connection.point1 = wp.vec3(wp.float32(second[0]), wp.float32(second[1]), wp.float32(second[2]))
    connection.distance = wp.float32(length)
    connection.is_near = result[0] == NEAR and connection.distance <= pair.threshold
    return connection


@wp.func
def collide_box_box(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    hulls: wp.ref[HullData],
    pair: wp.ref[ShapePair],
    found: int,
) -> int:
    """Add the contacts of two boxes."""
    half0 = pair.size0
    half1 = pair.size1
    r = pair.rotation
    p = pair.position
    size = half1[0] + half1[1] + half1[2]
    tie = TIE * size
    preference = FACE_PREFERENCE * size

    # Separation along the face normals of either box, and the face of largest separation.
    best = float(-1.0e30)
    normal = wp.vec3(0.0, 0.0, 0.0)
    for axis in range(3):
        separation = wp.abs(p[axis]) - (
            half0[axis]
            + half1[0] * wp.abs(r[axis, 0])
            + half1[1] * wp.abs(r[axis, 1])
            + half1[2] * wp.abs(r[axis, 2])
        )
        if separation > best:
            best = separation
            normal = wp.vec3(0.0, 0.0, 0.0)
            normal[axis] = wp.where(p[axis] < 0.0, -1.0, 1.0)
    if best > pair.threshold:
        return found
    kind = int(0)
    q = wp.transpose(r) * p
    limit = best + tie
    # The face that boxes prefer if they overlap: that of the first, or else the one of largest separation.
    face_separation = best
    face_kind = int(0)
    face_normal = normal
    for axis in range(3):
        separation = wp.abs(q[axis]) - (
            half1[axis]
            + half0[0] * wp.abs(r[0, axis])
            + half0[1] * wp.abs(r[1, axis])
            + half0[2] * wp.abs(r[2, axis])
        )
        if separation > limit:
            limit = separation
            best = separation
            kind = 1
            normal = wp.where(q[axis] < 0.0, -1.0, 1.0) * column(r, axis)
    if best > pair.threshold:
        return found
    best_face = best
    best_face_kind = kind
    best_face_normal = normal
    limit = best + tie
    edge0 = int(0)
    edge1 = int(0)
    for i in range(3):
        i1 = (i + 1) % 3
        i2 = (i + 2) % 3
        for j in range(3):
            # e_i x r_j has components -r[i2, j] along i1 and r[i1, j] along i2.
            squared = 1.0 - r[i, j] * r[i, j]
            if squared > PARALLEL:
                j1 = (j + 1) % 3
                j2 = (j + 2) % 3
                along = p[i2] * r[i1, j] - p[i1] * r[i2, j]
                separation = wp.abs(along) - (
                    half0[i1] * wp.abs(r[i2, j])
                    + half0[i2] * wp.abs(r[i1, j])
                    + half1[j1] * wp.abs(r[i, j2])
                    + half1[j2] * wp.abs(r[i, j1])
                )
                length = wp.sqrt(squared)
                if separation > limit * length:
                    limit = separation / length
                    best = limit
                    kind = 2
                    edge0 = i
                    edge1 = j
                    scale = wp.where(along < 0.0, -1.0, 1.0) / length
                    normal = wp.vec3(0.0, 0.0, 0.0)
                    normal[i1] = -scale * r[i2, j]
                    normal[i2] = scale * r[i1, j]
    if best > pair.threshold:
        return found

    # Overlapping boxes first try the patch of the face that they prefer, if faces about lie on each other. No
    # overlap is lost by that, nor made: its deepest column along any direction is at least as long as the
    # minimum translation, and along that of the face by no more than the preference longer. A patch that is
    # less deep has missed it. Then, a penetrating patch of the minimum translation is always taken. Apart,
    # the separating axis gives the distance only if the closest points lie on the face or the edges that it
    # came from; else they are found in a last round.
    strict_kind = kind
    strict_normal = normal
    if face_separation < best - preference:
        face_separation = best_face
        face_kind = best_face_kind
        face_normal = best_face_normal
    limit = best + MISSED * size
    first_round = int(1)
    if (
        best < 0.0
        and kind != face_kind
        and face_separation >= best - preference
        and wp.dot(face_normal, normal) >= PREFERRED_NORMAL_COSINE
        and is_along_faces(face_normal, r, PREFERRED_FACE_COSINE)
    ):
        first_round = 0
    inverse = wp.transpose(r)
    connection = Connection()
    for round in range(first_round, int(3)):
        has_patch = bool(True)
        if round == 0:
            kind = face_kind
            normal = face_normal
        elif round == 1:
            kind = strict_kind
            normal = strict_normal
            if best <= 0.0:
                limit = 1.0e29
            has_patch = kind != 2 or is_along_faces(normal, r, FACE_COSINE)
            if not has_patch:
                added = collide_edges(output, model, pair, found, edge0, edge1, normal, limit)
                if added >= 0:
                    return added
        else:
            connection = find_connection(pair, best * strict_normal)
            if not connection.is_near:
                return found
            kind = 0
            normal = connection.normal
            limit = connection.distance + MISSED * size
            has_patch = is_along_faces(normal, r, FACE_COSINE)
        if has_patch:
            reference_half = half0
            other_half = half1
            rotation = r
            position = p
            direction = normal
            if kind == 1:
                reference_half = half1
                other_half = half0
                rotation = inverse
                position = -q
                direction = -(inverse * normal)
            added = collide_faces(
                output,
                model,
                pair,
                found,
                reference_half,
                other_half,
                rotation,
                position,
                direction,
                kind == 1,
                limit,
            )
            if added >= 0:
                return added
    return add_contact(
        output,
        model,
        pair.world,
        found,
        pair.shape0,
        pair.shape1,
        connection.point0,
        inverse * connection.point1,
        pair.rotation0 * connection.normal,
        connection.distance,
    )


collide_box_box_pairs = make_pair_kernel("box_box", collide_box_box, is_symmetric=True)
