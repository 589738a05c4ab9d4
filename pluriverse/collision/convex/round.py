"""Collider of spheres and capsules among each other: closest points of two segments, plus two radii.

Vectors are in the axes of the first shape, each surface point relative to the centre of its own shape.
"""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.hull import HullData
from pluriverse.collision.segment import any_perpendicular, capsule_direction, closest_segment_points
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.types import GeoType

# Sine of the angle between two capsules (3 degrees) up to which one lies along the other and needs a contact
# at either end of the overlap. Their closest points, the contact at larger angles, then lie anywhere between.
ALONG = wp.constant(0.05)
# Distance of two axes, relative to the radii, below which the line between their points gives no normal.
COINCIDENT = wp.constant(1.0e-6)

# Rounding of a distance relative to the lengths in it: a dozen roundings of float32 (2**-24 each).
ROUNDING = wp.constant(1.0e-6)


@wp.func
def add_segment_contact(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    pair: wp.ref[ShapePair],
    found: int,
    half0: wp.vec3,
    half1: wp.vec3,
    s: float,
    t: float,
) -> int:
    """Add the contact between the points s half0 and t half1 of two segments if they are close enough."""
    radius0 = pair.size0[0]
    radius1 = pair.size1[0]
    offset = pair.position + (t * half1 - s * half0)
    distance = wp.length(offset)
    # Most near pairs end here. The surfaces are no closer than this, but for rounding.
    if distance - (radius0 + radius1) > pair.threshold + ROUNDING * (distance + radius0 + radius1):
        return found
    normal = offset / distance
    if distance <= COINCIDENT * (radius0 + radius1):
        # Axes that cross are pushed apart along their common perpendicular, coinciding centres anyhow.
        normal = wp.cross(half0, half1)
        if wp.length_sq(normal) > 0.0:
            normal = wp.normalize(normal)
        elif wp.length_sq(half0) > 0.0:
            normal = any_perpendicular(half0)
        else:
            normal = any_perpendicular(half1)
    direction0 = capsule_direction(normal, half0, s)
    direction1 = capsule_direction(-normal, half1, t)
    distance = wp.dot(normal, offset + (radius1 * direction1 - radius0 * direction0))
    if distance <= pair.threshold:
        found = add_contact(
            output,
            model,
            pair.world,
            found,
            pair.shape0,
            pair.shape1,
            s * half0 + radius0 * direction0,
            wp.transpose(pair.rotation) * (t * half1 + radius1 * direction1),
            pair.rotation0 * normal,
            distance,
        )
    return found


@wp.func
def collide_round(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    hulls: wp.ref[HullData],
    pair: wp.ref[ShapePair],
    found: int,
) -> int:
    """Add the contact of two spheres or capsules, or two contacts if one capsule lies along the other."""
    half0 = wp.vec3(0.0, 0.0, pair.size0[1])
    half1 = pair.size1[1] * wp.vec3(pair.rotation[0, 2], pair.rotation[1, 2], pair.rotation[2, 2])
    if model.shape_type[pair.shape0] == GeoType.SPHERE:
        half0 = wp.vec3(0.0, 0.0, 0.0)
    if model.shape_type[pair.shape1] == GeoType.SPHERE:
        half1 = wp.vec3(0.0, 0.0, 0.0)
    a = wp.dot(half0, half0)
    b = wp.dot(half1, half1)
    crossing = wp.cross(half0, half1)
    # s and t of the first contact and of the last one.
    first = wp.vec2()
    last = wp.vec2()
    count = int(0)
    if a > 0.0 and b > 0.0 and wp.length_sq(crossing) < ALONG * ALONG * a * b:
        # The part of segment 0 along segment 1, and the points of segment 1 across from its ends.
        middle = wp.dot(half0, pair.position) / a
        half_overlap = wp.abs(wp.dot(half0, half1)) / a
        low = wp.clamp(middle - half_overlap, -1.0, 1.0)
        high = wp.clamp(middle + half_overlap, -1.0, 1.0)
        if high > low:
            t_low = wp.clamp(wp.dot(half1, low * half0 - pair.position) / b, -1.0, 1.0)
            t_high = wp.clamp(wp.dot(half1, high * half0 - pair.position) / b, -1.0, 1.0)
            first = wp.vec2(low, t_low)
            last = wp.vec2(high, t_high)
            count = 2
    if count == 0:
        first = closest_segment_points(half0, pair.position, half1)
        count = 1
    # One call for all, as the compiler writes each of them out.
    for index in range(count):
        parameters = first
        if index == 1:
            parameters = last
        found = add_segment_contact(output, model, pair, found, half0, half1, parameters[0], parameters[1])
    return found


collide_round_pairs = make_pair_kernel("round", collide_round)
