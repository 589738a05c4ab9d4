"""How a collider hands over a contact: into the slots of its world, the deepest ones if they do not all fit.

Reads   ShapeModel, the contact found by a collider
Writes  rigid_contact_shape0/1, _point0/1, _normal, _margin0/1 of the next slot of the world, `separation`

One thread writes all contacts of a world, in the order of its candidate pairs, so their order is always the same.
"""

from typing import Any

import warp as wp

from pluriverse.collision.shape_state import ShapeModel, is_slab, slab_half_extents


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


def make_contact_output(contacts: Any, separation: wp.array) -> ContactOutput:
    """Return the struct over the arrays of `contacts` and the scratch array `separation` [slot]."""
    output = ContactOutput()
    output.start = contacts.rigid_contact_start
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
    return output


@wp.func
def find_slot(output: ContactOutput, world: int, found: int, separation: float) -> int:
    """Return the slot for the next contact of a world that has `found` already, or -1 if it is not kept.

    When the slots are used up, the shallowest contact makes room for a deeper one (the first of equals stays).
    """
    start = output.start[world]
    end = output.start[world + 1]
    slot = start + found
    if slot >= end:
        slot = int(-1)
        shallowest = float(separation)
        for candidate in range(start, end):
            if output.separation[candidate] > shallowest:
                shallowest = output.separation[candidate]
                slot = candidate
    return slot


@wp.func
def body_point(model: ShapeModel, shape: int, point: wp.vec3) -> wp.vec3:
    """Return a point given in the frame that a shape collides in [m] in the frame of its body."""
    if is_slab(model, shape):
        point = point - wp.vec3(0.0, 0.0, slab_half_extents(model.shape_scale[shape])[2])
    return wp.transform_point(model.shape_transform[shape], point)


@wp.func
def add_contact(
    output: ContactOutput,
    model: ShapeModel,
    world: int,
    found: int,
    shape0: int,
    shape1: int,
    point0: wp.vec3,
    point1: wp.vec3,
    normal: wp.vec3,
    distance: float,
) -> int:
    """Store one contact and return the number of contacts found so far.

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
    slot = find_slot(output, world, found, separation)
    if slot >= 0:
        if model.shape_geo_type[shape0] > model.shape_geo_type[shape1]:
            # Contacts name the lower type first, whatever order suits the collider.
            shape0, shape1 = shape1, shape0
            point0, point1 = point1, point0
            margin0, margin1 = margin1, margin0
            normal = -normal
        output.shape0[slot] = shape0
        output.shape1[slot] = shape1
        output.point0[slot] = body_point(model, shape0, point0)
        output.point1[slot] = body_point(model, shape1, point1)
        output.normal[slot] = normal
        output.margin0[slot] = margin0
        output.margin1[slot] = margin1
        output.separation[slot] = separation
    return found + 1
