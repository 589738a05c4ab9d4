"""Collider of two boxes: separating axes for the normal, clipped faces for the points.

Of the directions that can separate two boxes (three face normals each, nine products of edges [Gottschalk1996]) the
one of largest separation is the shortest way out of a penetration. Where it runs along a face normal, the face of the
other box that looks back is clipped to the first face, and the corners of the patch become contacts.

The frame is that of the box whose face is the reference, with points relative to the centre of the other box, which
keeps the precision of a small box on a large one.
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.pair_table import Collider, PairTable
from pluriverse.collision.segment import closest_segment_points
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel, ShapeState

# Squared sine of the angle between two edges below which they count as parallel: their product has no direction, and
# the face normals separate as well.
PARALLEL = wp.constant(1.0e-6)
# Separation, relative to the boxes, by which edges must be the shorter way out than faces, and the faces of the second
# (smaller) box than those of the first: equals would alternate from step to step by rounding.
PREFERENCE = wp.constant(1.0e-6)
# Cosine (8 degrees) from which a normal across two edges still counts as along a face. Two plates that cross touch at
# their edges if they are tilted by the slightest angle, but they rest on the patch.
FACE_COSINE = wp.constant(0.99)
# Corners of a patch closer than this, relative to the smaller face, are one.
MERGE = wp.constant(1.0e-3)
# Corner beyond the edge of a face by less than this, relative to the face, is on the edge: boxes stacked in line.
ON_EDGE = wp.constant(1.0e-6)

# Each of the four clips adds at most one corner to a convex polygon; rounding may make it add another.
POLYGON_CAPACITY = wp.constant(16)


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
    """Write to `target` the part of a convex polygon with sign * coordinate <= limit; return its corner count."""
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
def largest_component(v: wp.vec3) -> int:
    """Return the index of the component of largest magnitude."""
    index = int(0)
    if wp.abs(v[1]) > wp.abs(v[0]):
        index = 1
    if wp.abs(v[2]) > wp.max(wp.abs(v[0]), wp.abs(v[1])):
        index = 2
    return index


@wp.func
def column(m: wp.mat33, index: int) -> wp.vec3:
    """Return a column of a matrix."""
    return wp.vec3(m[0, index], m[1, index], m[2, index])


@wp.func
def collide_faces(
    output: ContactOutput,
    model: ShapeModel,
    pair: ShapePair,
    found: int,
    half: wp.vec3,
    other_half: wp.vec3,
    rotation: wp.mat33,
    position: wp.vec3,
    normal: wp.vec3,
    is_swapped: bool,
) -> int:
    """Add the corners of the patch between a face of the reference box and the face of the other that looks at it.

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
    """
    face = largest_component(normal)
    j = (face + 1) % 3
    k = (face + 2) % 3
    sign = wp.where(normal[face] < 0.0, -1.0, 1.0)
    level = sign * half[face] - position[face]

    # The other box's face, as (first, second, distance): coordinates along the reference face relative to the centre
    # of the other box, and distance from the face along the normal.
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

    size = wp.min(half[j] + half[k], other_half[(other_face + 1) % 3] + other_half[(other_face + 2) % 3])
    merge = MERGE * MERGE * size * size
    world_normal = pair.rotation0 * normal
    if is_swapped:
        world_normal = -(pair.rotation0 * (pair.rotation * normal))
    first_kept = int(-1)
    last_kept = int(-1)
    for index in range(count):
        corner = polygon[index]
        is_new = corner[2] <= pair.reach
        if is_new and last_kept >= 0:
            from_last = corner - polygon[last_kept]
            from_first = corner - polygon[first_kept]
            is_new = (
                from_last[0] * from_last[0] + from_last[1] * from_last[1] > merge
                and from_first[0] * from_first[0] + from_first[1] * from_first[1] > merge
            )
        if is_new:
            if first_kept < 0:
                first_kept = index
            last_kept = index
            # Relative to the centre of the other box, reference axes.
            on_reference = wp.vec3(0.0, 0.0, 0.0)
            on_reference[face] = level
            on_reference[j] = corner[0]
            on_reference[k] = corner[1]
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
    output: ContactOutput,
    model: ShapeModel,
    pair: ShapePair,
    found: int,
    edge0: int,
    edge1: int,
    normal: wp.vec3,
) -> int:
    """Add the contact between two crossing edges, `normal` being perpendicular to both."""
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
    distance = wp.dot(normal, offset + closest[1] * along1 - closest[0] * along0)
    if distance <= pair.reach:
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
def collide_box_box(output: ContactOutput, model: ShapeModel, pair: ShapePair, found: int) -> int:
    """Add the contacts of two boxes."""
    half0 = pair.size0
    half1 = pair.size1
    r = pair.rotation
    p = pair.position
    preference = PREFERENCE * (half1[0] + half1[1] + half1[2])

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
    if best > pair.reach:
        return found
    kind = int(0)
    q = wp.transpose(r) * p
    limit = best + preference
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
    if best > pair.reach:
        return found
    limit = best + preference
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
    if best > pair.reach:
        return found

    inverse = wp.transpose(r)
    normal1 = inverse * normal
    cosine0 = wp.max(wp.max(wp.abs(normal[0]), wp.abs(normal[1])), wp.abs(normal[2]))
    cosine1 = wp.max(wp.max(wp.abs(normal1[0]), wp.abs(normal1[1])), wp.abs(normal1[2]))
    if kind == 2 and wp.min(cosine0, cosine1) < FACE_COSINE:
        return collide_edges(output, model, pair, found, edge0, edge1, normal)
    if kind == 1:
        return collide_faces(output, model, pair, found, half1, half0, inverse, -q, -normal1, True)
    return collide_faces(output, model, pair, found, half0, half1, r, p, normal, False)


collide_box_box_pairs = make_pair_kernel("box_box", collide_box_box)


def collide_boxes(
    worlds: wp.array[int],
    table: PairTable,
    model: ShapeModel,
    state: ShapeState,
    output: ContactOutput,
    device: Any,
) -> None:
    """Add the contacts of boxes among each other."""
    wp.launch(
        collide_box_box_pairs,
        dim=worlds.size,
        inputs=[worlds, table, int(Collider.BOX_BOX), model, state],
        outputs=[output],
        device=device,
    )
