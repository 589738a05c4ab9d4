"""How a collider hands over a contact: into the slots of its world, the deepest ones if they do not all fit.

Reads   ShapeModel, the contact found by a collider
Writes  rigid_contact_shape0/1, _point0/1, _normal, _margin0/1 of the next slot of the world, `separation`

One thread writes all contacts of a world, in the order of its candidate pairs, so their order is always the
same.
"""

from typing import Any

import warp as wp

from pluriverse.collision.shape_state import ShapeModel, is_slab, slab_half_extents

# Instead of a slot: the contact is stored already, and is none that was found.
KNOWN = wp.constant(-2)


@wp.struct
class ContactOutput:
    """The arrays of `Contacts`, and the separation of each stored contact."""

    start: wp.array[int]
    """First slot of each world, shape [world + 1]."""
    count: wp.array[int]
    """Contacts stored, shape [world]."""
    found: wp.array[int]
    """Contacts found, more than `count` when the slots were too few, shape [world]."""
    shape0: wp.array[int]
    """First shape of the contact, shape [slot]."""
    shape1: wp.array[int]
    """Second shape of the contact, shape [slot]."""
    point0: wp.array[wp.vec3]
    """Surface point of the first shape [m], frame of its body, shape [slot]."""
    point1: wp.array[wp.vec3]
    """Surface point of the second shape [m], frame of its body, shape [slot]."""
    normal: wp.array[wp.vec3]
    """Unit normal from the first to the second shape, world axes, shape [slot]."""
    margin0: wp.array[float]
    """Margin of the first shape [m], shape [slot]."""
    margin1: wp.array[float]
    """Margin of the second shape [m], shape [slot]."""
    separation: wp.array[float]
    """Distance of the surfaces less both margins [m], shape [slot]."""
    heap: wp.array[int]
    """Slots of a full world as a binary heap, the shallowest contact on top, shape [slot]."""
    is_addition: int
    """Whether contacts come behind known ones of the world, which make no room for them."""
    known: wp.array[int]
    """How many known contacts a world has, if others are added, shape [world]."""


def make_contact_output(contacts: Any, separation: wp.array, heap: wp.array) -> ContactOutput:
    """Return the struct over the arrays of `contacts` and of scratch, `separation` and `heap` [slot]."""
    output = ContactOutput()
    output.start = contacts.slot_start
    output.count = contacts.rigid_contact_count
    output.found = contacts.rigid_contact_found
    output.shape0 = contacts.rigid_contact_shape0
    output.shape1 = contacts.rigid_contact_shape1
    output.point0 = contacts.rigid_contact_point0
    output.point1 = contacts.rigid_contact_point1
    output.normal = contacts.rigid_contact_normal
    output.margin0 = contacts.rigid_contact_margin0
    output.margin1 = contacts.rigid_contact_margin1
    output.separation = separation
    output.heap = heap
    return output


@wp.func
def sift_down(output: wp.ref[ContactOutput], start: int, count: int, position: int, slot: int) -> None:
    """Let `slot` sink from `position` of the heap of a world to where no slot below it is shallower."""
    separation = output.separation[slot]
    node = int(position)
    child = int(2 * position + 1)
    while child < count:
        if child + 1 < count:
            left = output.separation[output.heap[start + child]]
            right = output.separation[output.heap[start + child + 1]]
            if right > left:
                child += 1
        child_slot = output.heap[start + child]
        if separation >= output.separation[child_slot]:
            child = count
        else:
            output.heap[start + node] = child_slot
            node = child
            child = 2 * node + 1
    output.heap[start + node] = slot


@wp.func
def replace_shallowest(
    output: wp.ref[ContactOutput], start: int, count: int, is_first: bool, separation: float
) -> int:
    """Return the slot of the shallowest contact of a full world, or -1 if `separation` is not deeper.

    The slots are kept in a heap by separation, which is made when the first contact does not fit.
    """
    slot = int(-1)
    if count > 0:
        if is_first:
            for index in range(count):
                output.heap[start + index] = start + index
            for index in range(count // 2):
                position = count // 2 - 1 - index
                sift_down(output, start, count, position, output.heap[start + position])
        top = output.heap[start]
        if output.separation[top] > separation:
            slot = top
            output.separation[slot] = separation
            sift_down(output, start, count, 0, slot)
    return slot


@wp.func
def write_counts(output: wp.ref[ContactOutput], world: int, found: int):
    """Write how many contacts a world has so far, -1 where its shapes have no places."""
    output.found[world] = found
    output.count[world] = wp.clamp(found, 0, output.start[world + 1] - output.start[world])


@wp.func
def find_slot(output: wp.ref[ContactOutput], world: int, found: int, separation: float) -> int:
    """Return the slot for the next contact of a world that has `found` already, or -1 if it is not kept.

    When the slots are used up, the shallowest contact makes room for a deeper one (of equals the first
    stays), unless there are others before.
    """
    start = output.start[world]
    count = output.start[world + 1] - start
    slot = int(start + found)
    if found >= count:
        slot = -1
        if output.is_addition == 0:
            slot = replace_shallowest(output, start, count, found == count, separation)
    return slot


@wp.func
def body_point(model: wp.ref[ShapeModel], shape: int, point: wp.vec3) -> wp.vec3:
    """Return a point given in the frame that a shape collides in [m] in the frame of its body."""
    if is_slab(model, shape):
        point = point - wp.vec3(0.0, 0.0, slab_half_extents(model.shape_scale[shape])[2])
    local = model.shape_transform[shape]
    q = wp.transform_get_rotation(local)
    # Most primitives are not turned in their body; leaving that out saves a twentieth of the time of a pile.
    # (The scalar part does not tell: it rounds to 1 for turns of up to 5e-4 rad.)
    if q[0] != 0.0 or q[1] != 0.0 or q[2] != 0.0:
        point = wp.quat_rotate(q, point)
    return point + wp.transform_get_translation(local)


@wp.func
def is_known(
    output: wp.ref[ContactOutput], world: int, shape0: int, shape1: int, point0: wp.vec3, point1: wp.vec3
) -> bool:
    """Return whether a contact is among the known ones of its world: the same pair gives the same bits."""
    start = output.start[world]
    for slot in range(start, wp.min(start + output.known[world], output.start[world + 1])):
        if output.shape0[slot] == shape0 and output.shape1[slot] == shape1:
            if output.point0[slot] == point0 and output.point1[slot] == point1:
                return True
    return False


@wp.func
def store_contact(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    world: int,
    found: int,
    shape0: int,
    shape1: int,
    point0: wp.vec3,
    point1: wp.vec3,
    normal: wp.vec3,
    distance: float,
) -> int:
    """Store one contact and return its slot, -1 if it is not kept, `KNOWN` if it is there already.

    Args:
        output: Where contacts go.
        model: The shapes.
        world: World of the contact.
        found: Contacts that this world has already.
        shape0: First shape.
        shape1: Second shape.
        point0: Surface point of the first shape [m], frame of that shape.
        point1: Surface point of the second shape [m], frame of that shape.
        normal: Unit normal from the first to the second shape, world axes.
        distance: normal . (point1 - point0) [m].
    """
    margin0 = model.shape_margin[shape0]
    margin1 = model.shape_margin[shape1]
    separation = distance - margin0 - margin1
    if model.shape_geo_type[shape0] > model.shape_geo_type[shape1]:
        # Contacts name the lower type first, whatever order suits the collider.
        shape0, shape1 = shape1, shape0
        point0, point1 = point1, point0
        margin0, margin1 = margin1, margin0
        normal = -normal
    point0 = body_point(model, shape0, point0)
    point1 = body_point(model, shape1, point1)
    if output.is_addition != 0:
        if is_known(output, world, shape0, shape1, point0, point1):
            return KNOWN
    slot = find_slot(output, world, found, separation)
    if slot >= 0:
        output.shape0[slot] = shape0
        output.shape1[slot] = shape1
        output.point0[slot] = point0
        output.point1[slot] = point1
        output.normal[slot] = normal
        output.margin0[slot] = margin0
        output.margin1[slot] = margin1
        output.separation[slot] = separation
    return slot


@wp.func
def add_contact(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    world: int,
    found: int,
    shape0: int,
    shape1: int,
    point0: wp.vec3,
    point1: wp.vec3,
    normal: wp.vec3,
    distance: float,
) -> int:
    """Store one contact (see `store_contact`) and return the number of contacts found so far."""
    slot = store_contact(output, model, world, found, shape0, shape1, point0, point1, normal, distance)
    return found + wp.where(slot == KNOWN, 0, 1)
