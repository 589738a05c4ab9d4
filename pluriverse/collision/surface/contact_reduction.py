"""Which of the many contacts of a surface and a shape are kept.

A surface of many triangles gives contacts by the hundred. Those with about the same normal are a patch. A
contact is implied by others of its patch if it lies between them and is no deeper than they are there, so
only the corners of the lower convex hull of (x, y, distance) matter, x and y being across the normal. They
are found as the extremes along fixed directions of that space: eight level ones, four steep ones, and
straight down. A box on a floor of any number of triangles keeps exactly its four corners.

Contacts come one after the other and each slot keeps the best so far, so that nothing depends on how many
there are.
"""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.segment import any_perpendicular
from pluriverse.collision.shape_pair import ShapePair
from pluriverse.collision.shape_state import ShapeModel

# Patches of one pair. Normals beyond them join the patch whose normal is closest.
PATCH_COUNT = wp.constant(8)
# Directions in which a patch keeps its extreme contact.
DIRECTION_COUNT = wp.constant(13)
SLOT_COUNT = wp.constant(8 * 13 + 1)
# Slot of the contact that is used if there is no other that pushes.
LAST_RESORT = wp.constant(8 * 13)
# Cosine (25 degrees) of the angle between normals of one patch.
PATCH_COSINE = wp.constant(0.9)
# Contacts of a pair at most: four boxes' worth of corners, or a ring of 16 around a peg.
SURFACE_CONTACT_COUNT = wp.constant(16)

# Depth that outweighs a length across the patch, for the level, the steep and the downward directions.
LEVEL_SLOPE = wp.constant(1.0)
STEEP_SLOPE = wp.constant(20.0)
DEEPEST_SLOPE = wp.constant(1000.0)
# The level directions start at this angle [rad] from the tangent axes: a box in line with them has no two
# corners equally far out in a direction, between which rounding would choose.
DIRECTION_COSINE = wp.constant(0.9800666)
DIRECTION_SINE = wp.constant(0.1986693)
DIAGONAL = wp.constant(0.70710678)

# Contacts closer than this, relative to the size of the pair, with normals closer than the cosine (8
# degrees), are one.
MERGE = wp.constant(1.0e-3)
MERGE_COSINE = wp.constant(0.99)
# A contact is implied by two others if it is off the line between them by less than the first length, and
# deeper than they are there by less than the second, both relative to the size of the pair.
BETWEEN = wp.constant(2.0e-3)
IMPLIED = wp.constant(1.0e-4)
# Score of an empty slot.
EMPTY = wp.constant(-1.0e30)


class candidate_vector(wp.types.vector(length=8, dtype=wp.float32)):  # noqa: N801 (a Warp type)
    """A contact: point of the second shape [m], normal, distance [m], and its score in the slot."""


@wp.func
def keep_if_better(
    slots: wp.array[candidate_vector], slot: int, candidate: candidate_vector, score: float
) -> None:
    """Store a candidate in a slot if its score is higher than what is there; of equals the first stays."""
    if score > slots[slot][7]:
        candidate[7] = score
        slots[slot] = candidate


@wp.func
def add_candidate(
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
    point: wp.vec3,
    normal: wp.vec3,
    distance: float,
) -> int:
    """Offer a contact to its patch and return the number of patches.

    Args:
        normals: Normal of each patch, shape [PATCH_COUNT].
        slots: Contacts kept, shape [SLOT_COUNT].
        count: Number of patches so far.
        point: Surface point of the second shape [m].
        normal: Unit normal from the first to the second shape.
        distance: Distance along the normal [m].
    """
    patch = int(-1)
    best = float(-2.0)
    for index in range(count):
        cosine = wp.dot(normal, normals[index])
        if cosine > best:
            best = cosine
            patch = index
    if best < PATCH_COSINE and count < PATCH_COUNT:
        patch = count
        normals[patch] = normal
        for slot in range(patch * DIRECTION_COUNT, (patch + 1) * DIRECTION_COUNT):
            slots[slot] = candidate_vector(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, EMPTY)
        count += 1
    axis = any_perpendicular(normals[patch])
    x = wp.dot(point, axis)
    y = wp.dot(point, wp.cross(normals[patch], axis))
    u = DIRECTION_COSINE * x + DIRECTION_SINE * y
    v = DIRECTION_COSINE * y - DIRECTION_SINE * x
    first = patch * DIRECTION_COUNT
    candidate = candidate_vector(point[0], point[1], point[2], normal[0], normal[1], normal[2], distance, 0.0)
    level = LEVEL_SLOPE * distance
    steep = STEEP_SLOPE * distance
    keep_if_better(slots, first, candidate, u - level)
    keep_if_better(slots, first + 1, candidate, v - level)
    keep_if_better(slots, first + 2, candidate, -u - level)
    keep_if_better(slots, first + 3, candidate, -v - level)
    keep_if_better(slots, first + 4, candidate, DIAGONAL * (u + v) - level)
    keep_if_better(slots, first + 5, candidate, DIAGONAL * (v - u) - level)
    keep_if_better(slots, first + 6, candidate, DIAGONAL * (-u - v) - level)
    keep_if_better(slots, first + 7, candidate, DIAGONAL * (u - v) - level)
    keep_if_better(slots, first + 8, candidate, u - steep)
    keep_if_better(slots, first + 9, candidate, v - steep)
    keep_if_better(slots, first + 10, candidate, -u - steep)
    keep_if_better(slots, first + 11, candidate, -v - steep)
    keep_if_better(slots, first + 12, candidate, u - DEEPEST_SLOPE * distance)
    return count


@wp.func
def add_last_resort(
    slots: wp.array[candidate_vector], point: wp.vec3, normal: wp.vec3, distance: float
) -> None:
    """Offer a contact of an overlap with an unclear direction: the deepest counts if nothing else pushes."""
    candidate = candidate_vector(point[0], point[1], point[2], normal[0], normal[1], normal[2], distance, 0.0)
    keep_if_better(slots, LAST_RESORT, candidate, -distance)


@wp.func
def deepest_distance(slots: wp.array[candidate_vector], count: int) -> float:
    """Return the least distance [m] of the contacts kept, large without any."""
    least = float(1.0e30)
    for patch in range(count):
        least = wp.min(least, slots[patch * DIRECTION_COUNT + 12][6])
    return least


@wp.func
def is_between(
    candidate: candidate_vector, first: candidate_vector, last: candidate_vector, size: float
) -> bool:
    """Return whether a contact lies on the line between two others of its patch and is no deeper."""
    point = wp.vec3(candidate[0], candidate[1], candidate[2])
    start = wp.vec3(first[0], first[1], first[2])
    along = wp.vec3(last[0], last[1], last[2]) - start
    squared = wp.length_sq(along)
    t = wp.dot(point - start, along) / wp.max(squared, 1.0e-30)
    off = (point - start) - t * along
    expected = first[6] + t * (last[6] - first[6])
    # Both ends must be some way off, else two copies of one contact would imply each other.
    gap = 2.0 * BETWEEN * size
    return (
        t > 0.0
        and t < 1.0
        and t * t * squared > gap * gap
        and (1.0 - t) * (1.0 - t) * squared > gap * gap
        and wp.length_sq(off) < BETWEEN * BETWEEN * size * size
        and candidate[6] > expected - IMPLIED * size
    )


@wp.func
def without_score(candidate: candidate_vector) -> candidate_vector:
    """Return a contact that does not count."""
    candidate[7] = EMPTY
    return candidate


@wp.func
def drop_implied(slots: wp.array[candidate_vector], first: int, size: float) -> None:
    """Empty the slots of a patch whose contact another slot has too, or that lies between two others.

    Where a direction is across a side of the patch, rounding picks any contact of that side: it must not come
    and go while a body rests.
    """
    kept = wp.zeros(shape=DIRECTION_COUNT, dtype=int)
    kept_count = int(0)
    for step in range(DIRECTION_COUNT):
        # The deepest one first.
        slot = first + (step + 12) % DIRECTION_COUNT
        candidate = slots[slot]
        is_new = bool(True)
        for index in range(kept_count):
            other = slots[kept[index]]
            if candidate[0] == other[0] and candidate[1] == other[1] and candidate[2] == other[2]:
                is_new = False
        if is_new:
            kept[kept_count] = slot
            kept_count += 1
        else:
            slots[slot] = without_score(candidate)
    for index in range(kept_count):
        candidate = slots[kept[index]]
        for one in range(kept_count):
            if slots[kept[one]][7] > EMPTY and one != index:
                for two in range(one):
                    if slots[kept[two]][7] > EMPTY and two != index and slots[kept[index]][7] > EMPTY:
                        if is_between(candidate, slots[kept[one]], slots[kept[two]], size):
                            slots[kept[index]] = without_score(candidate)


@wp.func
def add_kept_contacts(
    output: ContactOutput,
    model: ShapeModel,
    pair: ShapePair,
    found: int,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
) -> int:
    """Store the contacts kept, the deepest of each patch first, each place once.

    If none of them pushes although the shapes overlap, a last resort does that leads out in the end.
    Points of candidates are in the axes of the first shape, relative to the origin of the second.
    """
    points = wp.zeros(shape=SURFACE_CONTACT_COUNT, dtype=wp.vec3)
    directions = wp.zeros(shape=SURFACE_CONTACT_COUNT, dtype=wp.vec3)
    stored = int(0)
    last = slots[LAST_RESORT]
    if last[7] > 0.0 and deepest_distance(slots, count) >= 0.0:
        point = wp.vec3(last[0], last[1], last[2])
        count = add_candidate(normals, slots, count, point, wp.vec3(last[3], last[4], last[5]), last[6])
    for patch in range(count):
        drop_implied(slots, patch * DIRECTION_COUNT, pair.extent)
    inverse = wp.transpose(pair.rotation)
    merge_squared = MERGE * MERGE * pair.extent * pair.extent
    for step in range(DIRECTION_COUNT):
        direction = (step + 12) % DIRECTION_COUNT
        for patch in range(count):
            candidate = slots[patch * DIRECTION_COUNT + direction]
            point = wp.vec3(candidate[0], candidate[1], candidate[2])
            normal = wp.vec3(candidate[3], candidate[4], candidate[5])
            is_new = candidate[7] > EMPTY and stored < SURFACE_CONTACT_COUNT
            for other in range(stored):
                if (
                    wp.length_sq(point - points[other]) <= merge_squared
                    and wp.dot(normal, directions[other]) > MERGE_COSINE
                ):
                    is_new = False
            if is_new:
                points[stored] = point
                directions[stored] = normal
                stored += 1
                found = add_contact(
                    output,
                    model,
                    pair.world,
                    found,
                    pair.shape0,
                    pair.shape1,
                    (point - candidate[6] * normal) + pair.position,
                    inverse * point,
                    pair.rotation0 * normal,
                    candidate[6],
                )
    return found
