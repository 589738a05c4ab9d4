"""Contact wrenches: the contact forces of a step, summed per body of a list of worlds.

Reads   contacts with their forces; body_q of the state that they were found in
Writes  an array of wrenches [body]
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Model, State, Topology
from pluriverse.model.contacts import stored_contact_count

_MODULE = "pluriverse.sensors.contact_wrenches"


@wp.func
def point_in_world(body: int, point: wp.vec3, body_q: wp.array[wp.transform]) -> wp.vec3:
    """Return a point in the frame of a body (-1: the world) in the frame of the world."""
    result = point
    if body >= 0:
        result = wp.transform_point(body_q[body], point)
    return result


@wp.func
def add_force(
    body: int,
    point: wp.vec3,
    force: wp.vec3,
    body_com: wp.array[wp.vec3],
    body_q: wp.array[wp.transform],
    wrench: wp.array[wp.spatial_vector],
):
    """Add a force at a point of the world to the wrench of a body, if it is one."""
    if body >= 0:
        arm = point - wp.transform_point(body_q[body], body_com[body])
        wrench[body] = wrench[body] + wp.spatial_vector(force, wp.cross(arm, force))


@wp.kernel(enable_backward=False, module=_MODULE)
def sum_contact_wrench(
    worlds: wp.array[int],  # [slot]
    topology: Topology,
    shape_body: wp.array[int],  # [shape]
    body_com: wp.array[wp.vec3],  # [body] m
    body_q: wp.array[wp.transform],  # [body]
    contact_start: wp.array[int],  # [world + 1]
    contact_count: wp.array[int],  # [world]
    shape0: wp.array[int],  # [slot]
    shape1: wp.array[int],  # [slot]
    point0: wp.array[wp.vec3],  # [slot] m, in the frame of the body
    point1: wp.array[wp.vec3],  # [slot]
    contact_force: wp.array[wp.vec3],  # [slot] N, on the body of shape1
    wrench: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
):
    """Sum the contact forces on the bodies of one world; they act in the middle between both surfaces."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    template = topology.world_template[world]
    first = topology.world_body[world]
    for body in range(first, first + topology.template_body[template + 1] - topology.template_body[template]):
        wrench[body] = wp.spatial_vector()
    start = contact_start[world]
    for slot in range(start, start + stored_contact_count(contact_start, contact_count, world)):
        lower = wp.min(shape0[slot], shape1[slot])
        upper = wp.max(shape0[slot], shape1[slot])
        if lower >= 0 and upper < shape_body.shape[0]:
            body0 = shape_body[shape0[slot]]
            body1 = shape_body[shape1[slot]]
            point = 0.5 * point_in_world(body0, point0[slot], body_q)
            point += 0.5 * point_in_world(body1, point1[slot], body_q)
            add_force(body0, point, -contact_force[slot], body_com, body_q, wrench)
            add_force(body1, point, contact_force[slot], body_com, body_q, wrench)


def sum_contact_wrenches(
    model: Model, worlds: wp.array[int], state: State, contacts: Contacts, wrench: wp.array
) -> None:
    """Write force [N] and torque about the centre of mass [N·m] of the contacts of each body of worlds."""
    launch_kernel(
        sum_contact_wrench,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.structure.shape_body,
            model.body_com,
            state.body_q,
            contacts.slot_start,
            contacts.rigid_contact_count,
            contacts.rigid_contact_shape0,
            contacts.rigid_contact_shape1,
            contacts.rigid_contact_point0,
            contacts.rigid_contact_point1,
            contacts.rigid_contact_force,
        ],
        outputs=[wrench],
        device=model.device,
    )
