"""Deep overlap of a solid mesh and a convex shape: the separating translation where no triangle shows it.

A triangle knows what is before it, but not the rest of the solid: deep inside, the translation out of one may
lead into another. The signed distance of the mesh says how deep the deepest point of the shape is.
No shift shorter than that frees the shape, so going on by it again and again along a direction leads to where
that direction ends outside. The directions of the contacts are tried first, and stay if they lead out; else
the shortest of them, of the slopes of the distance and of the axes of the shape becomes the only contact.
"""

import warp as wp

from pluriverse.collision.components import column
from pluriverse.collision.hull import HullData
from pluriverse.collision.surface.contact_reduction import (
    DIRECTION_COUNT,
    LAST_RESORT,
    add_candidate,
    candidate_vector,
    deepest_distance,
)
from pluriverse.collision.surface.mesh_data import MeshData
from pluriverse.collision.surface.triangle_pair import TrianglePair, support_surface
from pluriverse.geometry.signed_distance_grid import sample_signed_distance

# Part of the depth up to which a face pushes out unasked from which a contact makes an overlap a deep one.
SUSPECT = wp.constant(0.5)
# Depth, relative to the size of the pair, that is never deep.
NEGLIGIBLE = wp.constant(0.02)
# Part of the largest depth that may remain where contacts lead out, and at the end of a way.
REMAINING = wp.constant(0.1)
ENDED = wp.constant(0.02)
# Length of the way that several contacts make together, over the depth of the deepest, up to which they
# push one way. Two at right angles make 1.4 times the way of either.
TOGETHER = wp.constant(1.5)

# Places from which the deepest point is looked for: the last one, the middle, and halfway along each axis.
START_COUNT = wp.constant(8)
DESCENT_COUNT = wp.constant(8)
# Shifts along a direction.
SHIFT_COUNT = wp.constant(24)
# Directions: the deepest contact, all contacts together, the slope at the deepest point, the axes of the
# shape either way, and each patch.
FIRST_AXIS = wp.constant(3)
FIRST_PATCH = wp.constant(9)
# Length of a way that does not end [m].
ENDLESS = wp.constant(1.0e10)


@wp.struct
class DeepestPoint:
    """The point of a convex shape that is deepest inside a solid."""

    point: wp.vec3
    """The point [m], axes of the solid, relative to the origin of the shape."""
    distance: float
    """Its signed distance [m]; in a stretched mesh, the least that it can be."""
    slope: wp.vec3
    """Unit vector along which the distance grows."""


@wp.func
def find_deepest_point(
    data: MeshData, hulls: HullData, surface: int, pair: TrianglePair, shift: wp.vec3, last: wp.vec3
) -> DeepestPoint:
    """Return the deepest point of a shape that is shifted [m], found by descent from several places.

    Args:
        data: The surfaces.
        hulls: Convex hulls.
        surface: The solid.
        pair: The shape.
        shift: How far it is moved [m], axes of the solid.
        last: A point of it [m] from which to look first.
    """
    smallest = wp.min(wp.abs(pair.scale[0]), wp.min(wp.abs(pair.scale[1]), wp.abs(pair.scale[2])))
    deepest = DeepestPoint()
    deepest.distance = ENDLESS
    for start in range(int(START_COUNT)):
        point = last
        direction = wp.vec3(0.0, 0.0, 0.0)
        if start > 0:
            point = pair.center
        if start > 1:
            direction = column(pair.axes, (start - 2) // 2)
            direction = wp.where(start % 2 == 0, direction, -direction)
        # From a point towards the farthest one down the slope, less far as long as that is not deeper.
        far = wp.vec3(point)
        trial = wp.vec3(point)
        least = float(ENDLESS)
        part = float(0.5)
        for step in range(int(DESCENT_COUNT) + 1):
            is_turned = bool(start > 1 and step == 0)
            if step > 0:
                local_point = wp.cw_div(trial + shift + pair.position, pair.scale)
                sample = sample_signed_distance(data.distance, data.grid[surface], local_point)
                value = smallest * sample.value
                part = 0.5 * part
                if value < least:
                    is_turned = True
                    least = value
                    point = trial
                    slope = wp.normalize(wp.cw_div(sample.gradient, pair.scale))
                    direction = -slope
                    part = wp.where(step == 1, 1.0, wp.min(4.0 * part, 1.0))
                    if least < deepest.distance:
                        deepest.distance = least
                        deepest.point = point
                        deepest.slope = slope
            if is_turned:
                far = support_surface(pair, hulls, direction)
            trial = point + part * (far - point)
    return deepest


@wp.func
def contact_depth(slots: wp.array[candidate_vector], patch: int) -> float:
    """Return the depth [m] of the deepest contact of a patch, 0 if it does not push."""
    return wp.max(-slots[patch * DIRECTION_COUNT + 12][6], 0.0)


@wp.func
def contact_normal(slots: wp.array[candidate_vector], slot: int) -> wp.vec3:
    """Return the normal of a contact."""
    return wp.vec3(slots[slot][3], slots[slot][4], slots[slot][5])


@wp.func
def is_suspect(
    data: MeshData, surface: int, pair: TrianglePair, slots: wp.array[candidate_vector], count: int
) -> bool:
    """Return whether a shape may be deep inside a solid: a contact or a last resort is."""
    deepest = deepest_distance(slots, count)
    if slots[LAST_RESORT][7] > 0.0:
        deepest = wp.min(deepest, slots[LAST_RESORT][6])
    return data.grid[surface] >= 0 and deepest <= -SUSPECT * pair.shallow


@wp.func
def resolve_deep_shape(
    data: MeshData,
    hulls: HullData,
    surface: int,
    pair: TrianglePair,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
) -> int:
    """Replace the contacts of a deep overlap that do not lead out by one that does; return the patch count.

    Args:
        data: The surfaces.
        hulls: Convex hulls.
        surface: The solid.
        pair: The shape.
        normals: Normals of patches.
        slots: Contacts kept.
        count: Number of patches.
    """
    # Where the contacts lead: the deepest one alone, and one after the other.
    known = float(0.0)
    known_normal = wp.vec3(0.0, 0.0, 0.0)
    for patch in range(count):
        if contact_depth(slots, patch) > known:
            known = contact_depth(slots, patch)
            known_normal = contact_normal(slots, patch * DIRECTION_COUNT + 12)
    together = known * known_normal
    for patch in range(count):
        normal = contact_normal(slots, patch * DIRECTION_COUNT + 12)
        missing = contact_depth(slots, patch) - wp.dot(together, normal)
        if contact_depth(slots, patch) > 0.0 and missing > 0.0:
            together = together + missing * normal

    depth = float(0.0)
    deepest_slope = wp.vec3(0.0, 0.0, 0.0)
    best = float(ENDLESS)
    best_normal = wp.vec3(0.0, 0.0, 0.0)
    best_point = wp.vec3(0.0, 0.0, 0.0)
    # The first turn finds how deep the shape is, the others go a direction each. One call for all, as the
    # compiler writes each of them out.
    for trial in range(-1, FIRST_PATCH + count):
        direction = wp.vec3(0.0, 0.0, 0.0)
        if trial == 0:
            direction = known_normal
        elif trial == 1:
            direction = wp.normalize(together)
        elif trial == 2:
            direction = deepest_slope
        elif trial >= FIRST_PATCH:
            direction = normals[trial - FIRST_PATCH]
        elif trial >= FIRST_AXIS:
            axis = column(pair.axes, (trial - FIRST_AXIS) // 2)
            direction = wp.where((trial - FIRST_AXIS) % 2 == 0, axis, -axis)
        way = float(0.0)
        point = wp.vec3(pair.center)
        is_out = bool(False)
        for _shift in range(int(SHIFT_COUNT)):
            if is_out or way >= best or (trial >= 0 and wp.length_sq(direction) == 0.0):
                break
            deepest = find_deepest_point(data, hulls, surface, pair, way * direction, point)
            point = deepest.point
            if trial < 0:
                depth = -deepest.distance
                deepest_slope = deepest.slope
                break
            if deepest.distance >= -ENDED * depth:
                is_out = True
            else:
                way += -deepest.distance
        # Thin walls hold what presses on them; a last resort may lead anywhere.
        is_shallow = known > 0.0 and wp.max(depth, known) <= pair.shallow
        if trial < 0 and (is_shallow or depth <= NEGLIGIBLE * pair.extent):
            return count
        if is_out and way < best:
            best = way
            best_normal = direction
            best_point = point
        if trial == 0 and is_out and way <= known + REMAINING * depth:
            return count
        length = wp.length(together)
        if trial == 1 and is_out and way <= length + REMAINING * depth and length <= TOGETHER * known:
            return count
    if best < ENDLESS:
        count = add_candidate(normals, slots, 0, best_point, best_normal, -best)
    return count
