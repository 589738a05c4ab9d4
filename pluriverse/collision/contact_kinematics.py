"""Contact kinematics stage: where the contacts that were found are now, and how far apart.

Reads   body_q; rigid_contact_shape0/1, _point0/1, _normal, _margin0/1
Writes  distance and points in the world of each slot that holds a contact
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Model, State
from pluriverse.model.arguments import check_contacts, check_state
from pluriverse.model.contacts import stored_contact_count


@wp.func
def point_in_world(point: wp.vec3, shape: int, shape_body: wp.array[int], body_q: wp.array[wp.transform]):
    """Return a point of the body of a shape in the world; of the world itself where it has none."""
    body = shape_body[shape]
    if body < 0:
        return point
    return wp.transform_point(body_q[body], point)


@wp.kernel(enable_backward=False, module="pluriverse.collision.contact_kinematics")
def measure_contacts(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    # model
    shape_body: wp.array[int],  # [shape] -1 for none
    # state in
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    # contacts
    start: wp.array[int],  # [world + 1]
    count: wp.array[int],  # [world]
    shape0: wp.array[int],  # [slot]
    shape1: wp.array[int],  # [slot]
    point0: wp.array[wp.vec3],  # [slot] m, frame of the body
    point1: wp.array[wp.vec3],  # [slot] m, frame of the body
    normal: wp.array[wp.vec3],  # [slot] from shape 0 to shape 1, world axes
    margin0: wp.array[float],  # [slot] m
    margin1: wp.array[float],  # [slot] m
    # out; empty: not asked for
    distance: wp.array[float],  # [slot] m
    point0_world: wp.array[wp.vec3],  # [slot] m
    point1_world: wp.array[wp.vec3],  # [slot] m
):
    """Measure the contacts of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    first = start[world]
    for slot in range(first, first + stored_contact_count(start, count, world)):
        a = point_in_world(point0[slot], shape0[slot], shape_body, body_q)
        b = point_in_world(point1[slot], shape1[slot], shape_body, body_q)
        if distance.shape[0] > 0:
            distance[slot] = wp.dot(normal[slot], b - a) - margin0[slot] - margin1[slot]
        if point0_world.shape[0] > 0:
            point0_world[slot] = a + margin0[slot] * normal[slot]
        if point1_world.shape[0] > 0:
            point1_world[slot] = b - margin1[slot] * normal[slot]


def eval_rigid_contact_kinematics(
    model: Model,
    state: State,
    contacts: Contacts,
    *,
    out_distance: wp.array | None = None,
    out_point0_world: wp.array | None = None,
    out_point1_world: wp.array | None = None,
) -> None:
    """Write where contacts found before are in a state. Slots that hold no contact are left alone.

    Args:
        model: Model of the shapes.
        state: State whose `body_q` is read.
        contacts: Contacts that `CollisionPipeline.collide` found; their normals stay as they were.
        out_distance: Distance along the normal, less both margins [m], shape [slot]; negative where shapes
            overlap. None if it is not asked for.
        out_point0_world: Point on the first shape, with its margin, in the world [m], vec3, shape [slot].
        out_point1_world: Point on the second shape, with its margin, in the world [m], vec3, shape [slot].

    Raises:
        TypeError: If an argument is of another type.
        ValueError: If nothing is asked for, an array has another shape, type or device, or the state or the
            contacts belong to another model.
    """
    name = "eval_rigid_contact_kinematics"
    check_state(model, state, f"{name}: state")
    check_contacts(model, contacts, f"{name}: contacts")
    outputs = {
        "out_distance": (out_distance, wp.float32),
        "out_point0_world": (out_point0_world, wp.vec3),
        "out_point1_world": (out_point1_world, wp.vec3),
    }
    if all(array is None for array, _ in outputs.values()):
        raise ValueError(f"{name}: nothing is asked for. Give {', '.join(outputs)} or some of them.")
    arrays = []
    for label, (array, dtype) in outputs.items():
        if array is None:
            array = wp.empty(0, dtype=dtype, device=model.device)
        elif (
            array.dtype is not dtype or array.shape != (contacts.slot_count,) or array.device != model.device
        ):
            raise ValueError(
                f"{name}: {label} has type {array.dtype.__name__} and shape {array.shape} on {array.device}, "
                f"but must have type {dtype.__name__} and shape ({contacts.slot_count},) on {model.device}."
            )
        arrays.append(array)
    launch_kernel(
        measure_contacts,
        dim=model.worlds.size,
        inputs=[
            model.worlds,
            model.shape_body,
            state.body_q,
            contacts.slot_start,
            contacts.rigid_contact_count,
            contacts.rigid_contact_shape0,
            contacts.rigid_contact_shape1,
            contacts.rigid_contact_point0,
            contacts.rigid_contact_point1,
            contacts.rigid_contact_normal,
            contacts.rigid_contact_margin0,
            contacts.rigid_contact_margin1,
        ],
        outputs=arrays,
        device=model.device,
    )
