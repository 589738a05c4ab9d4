"""Contact force per body: the forces of the last step summed to one wrench about the centre of mass.

Reads   contacts with their forces; body_q of a state
Writes  an array of wrenches [body]
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Model, State, Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.solvers.mujoco.exchange.contact_copy import ContactArrays, contact_arrays


@wp.func
def in_world(body: int, point: wp.vec3, body_q: wp.array[wp.transform]) -> wp.vec3:
    """Return a point in the frame of a body (-1: the world) in the frame of the world."""
    if body < 0:
        return point
    return wp.transform_point(body_q[body], point)


@wp.func
def add_force(
    body: int,
    point: wp.vec3,  # m, world
    force: wp.vec3,  # N, world axes
    body_com: wp.array[wp.vec3],
    body_q: wp.array[wp.transform],
    body_force: wp.array[wp.spatial_vector],
):
    """Add a force at a point to the wrench of a body, if it is one."""
    if body >= 0:
        arm = point - wp.transform_point(body_q[body], body_com[body])
        body_force[body] = body_force[body] + wp.spatial_vector(force, wp.cross(arm, force))


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.exchange.body_force")
def sum_contact_force(
    worlds: wp.array[int],  # [slot]
    # model
    topology: Topology,
    shape_body: wp.array[int],  # [shape]
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    # state and contacts
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    contacts: ContactArrays,
    # out
    body_force: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
):
    """Sum the contact forces on the bodies of a world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    template = topology.world_template[world]
    first = topology.world_body[world]
    for body in range(first, first + topology.template_body[template + 1] - topology.template_body[template]):
        body_force[body] = wp.spatial_vector()
    start = contacts.start[world]
    for slot in range(start, start + stored_contact_count(contacts.start, contacts.count, world)):
        force = contacts.force[slot]
        last = shape_body.shape[0] - 1
        if wp.min(contacts.shape0[slot], contacts.shape1[slot]) < 0:
            continue  # somebody wrote there
        if wp.max(contacts.shape0[slot], contacts.shape1[slot]) > last:
            continue
        body0 = shape_body[contacts.shape0[slot]]
        body1 = shape_body[contacts.shape1[slot]]
        # In MuJoCo, contact forces act midway between the surfaces.
        point = 0.5 * in_world(body0, contacts.point0[slot], body_q)
        point += 0.5 * in_world(body1, contacts.point1[slot], body_q)
        add_force(body0, point, -force, body_com, body_q, body_force)
        add_force(body1, point, force, body_com, body_q, body_force)


def sum_contact_forces(model: Model, state: State, contacts: Contacts, body_force: wp.array) -> None:
    """Write the contact wrench on every body, with lever arms at the poses of a state."""
    launch_kernel(
        sum_contact_force,
        dim=model.structure.worlds.size,
        inputs=[
            model.structure.worlds,
            model.topology,
            model.structure.shape_body,
            model.body_com,
            state.body_q,
            contact_arrays(contacts),
        ],
        outputs=[body_force],
        device=model.device,
    )
