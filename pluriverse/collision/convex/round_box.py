"""Collider of a box and a sphere or capsule: the axis of the capsule against the box, plus the radius.

Vectors are in the axes of the box; the surface point of the capsule is relative to its own centre.
"""

import warp as wp

from pluriverse.collision.components import largest_component
from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.hull import HullData
from pluriverse.collision.segment import capsule_direction, closest_segment_points
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.types import GeoType

# Sine of the angle between a capsule and a face (or an edge) of the box up to which it lies on it and needs a
# contact at either end; at larger angles the other end is far away.
ALONG = wp.constant(0.25)
# Sine of the angle up to which it is parallel, so that its closest point is decided by rounding.
PARALLEL = wp.constant(1.0e-4)
# Separation, relative to the box, by which an edge must be the shorter translation than a face.
EDGE_PREFERENCE = wp.constant(1.0e-6)
# Distance of axis and box, relative to the radius, below which the line between their points gives no normal.
COINCIDENT = wp.constant(1.0e-5)


# Contacts of a pair at most.
PLACE_CAPACITY = wp.constant(2)


class place_vector(wp.types.vector(length=7, dtype=wp.float32)):  # noqa: N801 (a Warp type, named like one)
    """Where a capsule and a box may touch: parameter t on the axis, point of the box [m], normal."""


@wp.func
def clamp_to_box(p: wp.vec3, half: wp.vec3) -> wp.vec3:
    """Return the point of the box closest to `p`."""
    return wp.vec3(
        wp.clamp(p[0], -half[0], half[0]),
        wp.clamp(p[1], -half[1], half[1]),
        wp.clamp(p[2], -half[2], half[2]),
    )


@wp.func
def closest_axis_point(center: wp.vec3, along: wp.vec3, half: wp.vec3) -> float:
    """Return the t in [-1, 1] at which center + t along is closest to the box (the middle of several).

    The squared distance is convex and piecewise quadratic in t; half its derivative, sum_i along_i r_i with r
    the part of the point outside the box, is monotone and linear between the crossings of the six face
    planes.
    """
    low = float(-1.0)
    high = float(1.0)
    # Narrow [low, high] by the crossings: the derivative is negative left of the minimum, positive right of
    # it.
    for k in range(6):
        axis = k // 2
        slope = along[axis]
        if wp.abs(slope) > 0.0:
            plane = wp.where(k % 2 == 0, half[axis], -half[axis])
            t = (plane - center[axis]) / slope
            if t > low and t < high:
                p = center + t * along
                derivative = wp.dot(along, p - clamp_to_box(p, half))
                if derivative >= 0.0:
                    high = t
                if derivative <= 0.0:
                    low = t
    p_low = center + low * along
    p_high = center + high * along
    d_low = wp.dot(along, p_low - clamp_to_box(p_low, half))
    d_high = wp.dot(along, p_high - clamp_to_box(p_high, half))
    t = 0.5 * (low + high)
    if d_low >= 0.0 and d_high > 0.0:
        t = low
    elif d_high <= 0.0 and d_low < 0.0:
        t = high
    elif d_high > d_low:
        t = low - d_low * (high - low) / (d_high - d_low)
    return t


@wp.func
def add_axis_contact(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    pair: wp.ref[ShapePair],
    found: int,
    along: wp.vec3,
    t: float,
    on_box: wp.vec3,
    normal: wp.vec3,
) -> int:
    """Add the contact between the capsule at t and a point of the box if they are close enough."""
    surface = t * along + pair.size1[0] * capsule_direction(-normal, along, t)
    distance = wp.dot(normal, (pair.position - on_box) + surface)
    if distance <= pair.threshold:
        found = add_contact(
            output,
            model,
            pair.world,
            found,
            pair.shape0,
            pair.shape1,
            on_box,
            wp.transpose(pair.rotation) * surface,
            pair.rotation0 * normal,
            distance,
        )
    return found


@wp.func
def set_place(places: wp.array[place_vector], count: int, t: float, on_box: wp.vec3, normal: wp.vec3) -> int:
    """Store a place and return the number of them."""
    places[count] = place_vector(t, on_box[0], on_box[1], on_box[2], normal[0], normal[1], normal[2])
    return count + 1


@wp.func
def set_nearest(
    places: wp.array[place_vector], count: int, pair: wp.ref[ShapePair], along: wp.vec3, t: float
) -> int:
    """Store the place of the capsule at t, its axis outside the box, with the closest point of the box."""
    p = pair.position + t * along
    on_box = clamp_to_box(p, pair.size0)
    return set_place(places, count, t, on_box, wp.normalize(p - on_box))


@wp.func
def set_on_face(
    places: wp.array[place_vector],
    count: int,
    pair: wp.ref[ShapePair],
    along: wp.vec3,
    t: float,
    face: int,
    sign: float,
) -> int:
    """Store the place of the capsule at t with a face of the box, below the capsule's surface."""
    half = pair.size0
    normal = wp.vec3(0.0, 0.0, 0.0)
    normal[face] = sign
    surface = t * along + pair.size1[0] * capsule_direction(-normal, along, t)
    on_box = clamp_to_box(pair.position + surface, half)
    on_box[face] = sign * half[face]
    return set_place(places, count, t, on_box, normal)


@wp.func
def clip_to_slab(interval: wp.vec2, center: float, along: float, half: float) -> wp.vec2:
    """Return the part of an interval of t where |center + t along| <= half; first > second means none."""
    if wp.abs(along) > 0.0:
        first = (-half - center) / along
        second = (half - center) / along
        interval = wp.vec2(
            wp.max(interval[0], wp.min(first, second)), wp.min(interval[1], wp.max(first, second))
        )
    elif wp.abs(center) > half:
        interval = wp.vec2(1.0, -1.0)
    return interval


@wp.func
def find_outside(
    places: wp.array[place_vector], pair: wp.ref[ShapePair], along: wp.vec3, t: float, normal: wp.vec3
) -> int:
    """Store the places of a capsule whose axis is closest to the box at t and does not meet it.

    The closest points make the first contact. A capsule that lies on a face or along an edge gets one at the
    other end of the part above it; where that part is parallel to the box, the closest point is any, and both
    ends are taken.
    """
    half = pair.size0
    count = int(0)
    length = wp.length(along)
    face = largest_component(normal)
    j = (face + 1) % 3
    k = (face + 2) % 3
    on_face = clip_to_slab(wp.vec2(-1.0, 1.0), pair.position[j], along[j], half[j])
    on_face = clip_to_slab(on_face, pair.position[k], along[k], half[k])
    edge = largest_component(along)
    on_edge = clip_to_slab(wp.vec2(-1.0, 1.0), pair.position[edge], along[edge], half[edge])
    rise = wp.abs(along[face])
    if length > 0.0 and rise <= ALONG * length and on_face[1] > on_face[0]:
        sign = wp.where(pair.position[face] > 0.0, 1.0, -1.0)
        near = on_face[0]
        far = on_face[1]
        if wp.abs(t - near) > wp.abs(t - far):
            near = on_face[1]
            far = on_face[0]
        if rise <= PARALLEL * length:
            count = set_on_face(places, count, pair, along, near, face, sign)
        else:
            count = set_nearest(places, count, pair, along, t)
        return set_on_face(places, count, pair, along, far, face, sign)
    if length > 0.0 and edge != face and on_edge[1] > on_edge[0]:
        across = wp.sqrt(wp.max(0.0, length * length - along[edge] * along[edge]))
        if across <= PARALLEL * length:
            count = set_nearest(places, count, pair, along, on_edge[0])
            return set_nearest(places, count, pair, along, on_edge[1])
        if across <= ALONG * length:
            far = wp.where(wp.abs(t - on_edge[0]) > wp.abs(t - on_edge[1]), on_edge[0], on_edge[1])
            count = set_nearest(places, count, pair, along, far)
    return set_nearest(places, count, pair, along, t)


@wp.func
def find_inside(places: wp.array[place_vector], pair: wp.ref[ShapePair], along: wp.vec3) -> int:
    """Store the places of a capsule whose axis meets the box: along the direction that frees it soonest.

    Directions that can be the minimum translation: the faces, and across one edge of the box and the axis
    (separating axes of a segment and a box).
    """
    half = pair.size0
    center = pair.position
    face = int(0)
    best = float(-1.0e30)
    for axis in range(3):
        separation = wp.abs(center[axis]) - wp.abs(along[axis]) - half[axis]
        if separation > best:
            best = separation
            face = axis
    # An edge must beat a face by this much: where they are equal, the face has the larger patch.
    best += EDGE_PREFERENCE * (half[0] + half[1] + half[2])
    edge = int(-1)
    edge_normal = wp.vec3(0.0, 0.0, 0.0)
    for axis in range(3):
        unit = wp.vec3(0.0, 0.0, 0.0)
        unit[axis] = 1.0
        cross = wp.cross(unit, along)
        size = wp.length(cross)
        if size > PARALLEL * wp.length(along):
            cross = cross / size
            separation = wp.abs(wp.dot(cross, center)) - (
                half[0] * wp.abs(cross[0]) + half[1] * wp.abs(cross[1]) + half[2] * wp.abs(cross[2])
            )
            if separation > best:
                best = separation
                edge = axis
                edge_normal = wp.where(wp.dot(cross, center) < 0.0, -cross, cross)
    if edge >= 0:
        corner = wp.vec3(
            wp.where(edge_normal[0] < 0.0, -half[0], half[0]),
            wp.where(edge_normal[1] < 0.0, -half[1], half[1]),
            wp.where(edge_normal[2] < 0.0, -half[2], half[2]),
        )
        corner[edge] = 0.0
        unit = wp.vec3(0.0, 0.0, 0.0)
        unit[edge] = half[edge]
        closest = closest_segment_points(unit, center - corner, along)
        return set_place(places, 0, closest[1], corner + closest[0] * unit, edge_normal)
    sign = wp.where(center[face] < 0.0, -1.0, 1.0)
    j = (face + 1) % 3
    k = (face + 2) % 3
    on_face = clip_to_slab(wp.vec2(-1.0, 1.0), center[j], along[j], half[j])
    on_face = clip_to_slab(on_face, center[k], along[k], half[k])
    deep = on_face[0]
    far = on_face[1]
    if sign * along[face] < 0.0:
        deep = on_face[1]
        far = on_face[0]
    length = wp.length(along)
    count = set_on_face(places, 0, pair, along, deep, face, sign)
    if length > 0.0 and wp.abs(along[face]) <= ALONG * length and on_face[1] > on_face[0]:
        count = set_on_face(places, count, pair, along, far, face, sign)
    return count


@wp.func
def collide_round_box(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    hulls: wp.ref[HullData],
    pair: wp.ref[ShapePair],
    found: int,
) -> int:
    """Add the contacts of a box (first) and a sphere or capsule (second)."""
    along = pair.size1[1] * wp.vec3(pair.rotation[0, 2], pair.rotation[1, 2], pair.rotation[2, 2])
    t = float(0.0)
    if model.shape_type[pair.shape1] == GeoType.SPHERE:
        along = wp.vec3(0.0, 0.0, 0.0)
    else:
        t = closest_axis_point(pair.position, along, pair.size0)
    p = pair.position + t * along
    offset = p - clamp_to_box(p, pair.size0)
    distance = wp.length(offset)
    if distance > pair.size1[0] + pair.threshold:
        return found
    places = wp.zeros(shape=PLACE_CAPACITY, dtype=place_vector)
    count = int(0)
    if distance > COINCIDENT * pair.size1[0]:
        count = find_outside(places, pair, along, t, offset / distance)
    else:
        count = find_inside(places, pair, along)
    # One call for all, as the compiler writes each of them out.
    for index in range(count):
        place = places[index]
        on_box = wp.vec3(place[1], place[2], place[3])
        normal = wp.vec3(place[4], place[5], place[6])
        found = add_axis_contact(output, model, pair, found, along, place[0], on_box, normal)
    return found


collide_round_box_pairs = make_pair_kernel("round_box", collide_round_box)
