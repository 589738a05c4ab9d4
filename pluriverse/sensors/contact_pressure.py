"""Contact pressure stage: sum the forces of contacts on bodies or shapes, also by what presses.

Reads   contacts of a step with their forces; body_q of the state that they were found in
Writes  total_force, total_friction, force_matrix, friction_matrix, position_matrix
"""

from collections.abc import Sequence
from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Model
from pluriverse.model.contacts import stored_contact_count
from pluriverse.sensors.contact_wrenches import point_in_world

_MODULE = "pluriverse.sensors.contact_pressure"


@wp.func
def add_pressure(
    row: int,
    column: int,
    force: wp.vec3,
    friction: wp.vec3,
    point: wp.vec3,
    total_force: wp.array[wp.vec3],
    total_friction: wp.array[wp.vec3],
    force_matrix: wp.array2d[wp.vec3],
    friction_matrix: wp.array2d[wp.vec3],
    position_matrix: wp.array2d[wp.vec3],
    weight: wp.array2d[float],
) -> None:
    """Add the force of one contact to one sensor, if it is about it."""
    if row < 0:
        return
    if total_force:
        total_force[row] = total_force[row] + force
        total_friction[row] = total_friction[row] + friction
    if force_matrix and column >= 0:
        force_matrix[row, column] = force_matrix[row, column] + force
        friction_matrix[row, column] = friction_matrix[row, column] + friction
        strength = wp.length(force)
        weight[row, column] = weight[row, column] + strength
        if weight[row, column] > 0.0:  # the mean so far, moved by the share of this contact
            share = strength / weight[row, column]
            mean = position_matrix[row, column]
            position_matrix[row, column] = mean + share * (point - mean)


@wp.kernel(enable_backward=False, module=_MODULE)
def sum_pressure(
    worlds: wp.array[int],  # [slot]
    # model
    shape_body: wp.array[int],  # [shape]
    row_of_shape: wp.array[int],  # [shape] sensor that the shape belongs to, -1 for none
    column_of_shape: wp.array[int],  # [shape] counterpart that the shape belongs to, -1 for none
    # state
    body_q: wp.array[wp.transform],  # [body]
    # contacts
    contact_start: wp.array[int],  # [world + 1]
    contact_count: wp.array[int],  # [world]
    shape0: wp.array[int],  # [slot]
    shape1: wp.array[int],  # [slot]
    point0: wp.array[wp.vec3],  # [slot] m, in the frame of the body
    point1: wp.array[wp.vec3],  # [slot] m
    normal: wp.array[wp.vec3],  # [slot]
    contact_force: wp.array[wp.vec3],  # [slot] N, on the body of shape1
    # out
    total_force: wp.array[wp.vec3],  # [sensor] N
    total_friction: wp.array[wp.vec3],  # [sensor] N
    force_matrix: wp.array2d[wp.vec3],  # [sensor, counterpart] N
    friction_matrix: wp.array2d[wp.vec3],  # [sensor, counterpart] N
    position_matrix: wp.array2d[wp.vec3],  # [sensor, counterpart] m
    weight: wp.array2d[float],  # [sensor, counterpart] N
):
    """Sum the contact forces of one world on its sensors."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    start = contact_start[world]
    for slot in range(start, start + stored_contact_count(contact_start, contact_count, world)):
        first = shape0[slot]
        second = shape1[slot]
        if wp.min(first, second) >= 0 and wp.max(first, second) < shape_body.shape[0]:
            force = contact_force[slot]
            friction = force - wp.dot(force, normal[slot]) * normal[slot]
            point = 0.5 * point_in_world(shape_body[first], point0[slot], body_q)
            point += 0.5 * point_in_world(shape_body[second], point1[slot], body_q)
            add_pressure(
                row_of_shape[second],
                column_of_shape[first],
                force,
                friction,
                point,
                total_force,
                total_friction,
                force_matrix,
                friction_matrix,
                position_matrix,
                weight,
            )
            add_pressure(
                row_of_shape[first],
                column_of_shape[second],
                -force,
                -friction,
                point,
                total_force,
                total_friction,
                force_matrix,
                friction_matrix,
                position_matrix,
                weight,
            )


def sum_pressures(
    model: Model,
    worlds: wp.array[int],
    row_of_shape: Any,
    column_of_shape: Any,
    body_q: Any,
    contacts: Contacts,
    results: Sequence[Any],
) -> None:
    """Write forces [N] and points [m] of the sensors of worlds; `results` as the kernel lists them."""
    launch_kernel(
        sum_pressure,
        dim=worlds.size,
        inputs=[
            worlds,
            model.structure.shape_body,
            row_of_shape,
            column_of_shape,
            body_q,
            contacts.slot_start,
            contacts.rigid_contact_count,
            contacts.rigid_contact_shape0,
            contacts.rigid_contact_shape1,
            contacts.rigid_contact_point0,
            contacts.rigid_contact_point1,
            contacts.rigid_contact_normal,
            contacts.rigid_contact_force,
        ],
        outputs=results,
        device=model.device,
    )
