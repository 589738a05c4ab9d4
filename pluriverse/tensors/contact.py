"""Contact stage: forces on the bodies of robots as means over a step, and their contact times.

Reads   contacts with their forces after each solver step
Writes  contact_forces, the four times of bodies, and the same of feet
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Model
from pluriverse.model.contacts import stored_contact_count
from pluriverse.tensors.table import RobotTable

_MODULE = "pluriverse.tensors.contact"


@wp.struct
class ContactTimes:
    """Contact and air times of bodies, for kernels; `RobotTensors` describes the arrays."""

    contact: wp.array2d[float]
    air: wp.array2d[float]
    last_contact: wp.array2d[float]
    last_air: wp.array2d[float]


@wp.struct
class FootContacts:
    """Contact forces and times of feet, for kernels; `RobotTensors` describes the arrays."""

    forces: wp.array2d[wp.vec3]
    times: ContactTimes


@wp.func
def copy_to_feet(
    table: RobotTable, row: int, forces: wp.array2d[wp.vec3], times: ContactTimes, feet: FootContacts
):
    """Copy what the bodies of a robot feel to those that are its feet."""
    first = table.foot_start[row]
    for entry in range(first, table.foot_start[row + 1]):
        foot = entry - first
        body = table.foot_index[entry]
        feet.forces[row, foot] = forces[row, body]
        feet.times.contact[row, foot] = times.contact[row, body]
        feet.times.air[row, foot] = times.air[row, body]
        feet.times.last_contact[row, foot] = times.last_contact[row, body]
        feet.times.last_air[row, foot] = times.last_air[row, body]


@wp.kernel(enable_backward=False, module=_MODULE)
def add_contact_forces(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: RobotTable,
    shape_body: wp.array[int],  # [shape]
    contact_start: wp.array[int],  # [world + 1]
    contact_count: wp.array[int],  # [world]
    contact_shape0: wp.array[int],  # [slot]
    contact_shape1: wp.array[int],  # [slot]
    contact_force: wp.array[wp.vec3],  # [slot] N, on the body of shape 1
    weight: float,
    forces: wp.array2d[wp.vec3],  # [row, body] N, world axes
):
    """Add the contacts of one world to the forces on the bodies of its robots."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    start = contact_start[world]
    for slot in range(start, start + stored_contact_count(contact_start, contact_count, world)):
        force = weight * contact_force[slot]
        if wp.length_sq(force) == 0.0:
            continue  # most contacts are near ones that do not push
        for side in range(2):
            shape = contact_shape0[slot]
            push = -force
            if side == 1:
                shape = contact_shape1[slot]
                push = force
            if shape < 0 or shape >= shape_body.shape[0]:
                continue  # somebody wrote there
            body = shape_body[shape]
            if body < 0:
                continue
            row = table.body_row[body]
            if row >= 0:
                column = table.body_index[body]
                forces[row, column] = forces[row, column] + push


@wp.kernel(enable_backward=False, module=_MODULE)
def count_times(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: RobotTable,
    forces: wp.array2d[wp.vec3],  # [row, body] N
    threshold: float,  # N
    dt: float,  # s, of the whole step
    times: ContactTimes,  # out
    feet: FootContacts,  # out
):
    """Update the contact and air times of the bodies of one world, and what its feet feel."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        for column in range(table.body_start[row + 1] - table.body_start[row]):
            if wp.length(forces[row, column]) > threshold:
                if times.air[row, column] > 0.0:
                    times.last_air[row, column] = times.air[row, column]
                    times.air[row, column] = 0.0
                times.contact[row, column] = times.contact[row, column] + dt
            else:
                if times.contact[row, column] > 0.0:
                    times.last_contact[row, column] = times.contact[row, column]
                    times.contact[row, column] = 0.0
                times.air[row, column] = times.air[row, column] + dt
        copy_to_feet(table, row, forces, times, feet)


@wp.kernel(enable_backward=False, module=_MODULE)
def clear_robots(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    table: RobotTable,
    joint_torques: wp.array2d[float],  # [row, dof] out
    forces: wp.array2d[wp.vec3],  # [row, body] out
    with_times: int,
    with_feet: int,
    times: ContactTimes,  # out
    feet: FootContacts,  # out
):
    """Clear the sums over a step, and also the times if a world was reset."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= table.world_row.shape[0] - 1:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        for column in range(table.dof_start[row + 1] - table.dof_start[row]):
            joint_torques[row, column] = 0.0
        for column in range(table.body_start[row + 1] - table.body_start[row]):
            forces[row, column] = wp.vec3()
            if with_times != 0:
                times.contact[row, column] = 0.0
                times.air[row, column] = 0.0
                times.last_contact[row, column] = 0.0
                times.last_air[row, column] = 0.0
        if with_feet != 0:
            copy_to_feet(table, row, forces, times, feet)


def launch_add_forces(
    model: Model, worlds: wp.array[int], table: Any, contacts: Contacts, weight: float, forces: Any
) -> None:
    """Add the contact forces of a solver step, each times `weight`."""
    launch_kernel(
        add_contact_forces,
        dim=worlds.size,
        inputs=[
            worlds,
            table,
            model.structure.shape_body,
            contacts.slot_start,
            contacts.rigid_contact_count,
            contacts.rigid_contact_shape0,
            contacts.rigid_contact_shape1,
            contacts.rigid_contact_force,
            weight,
        ],
        outputs=[forces],
        device=model.device,
    )


def launch_count_times(
    model: Model,
    worlds: wp.array[int],
    table: Any,
    forces: Any,
    threshold: float,
    dt: float,
    times: Any,
    feet: Any,
) -> None:
    """Update contact times after a step of `dt` [s]."""
    launch_kernel(
        count_times,
        dim=worlds.size,
        inputs=[worlds, table, forces, threshold, dt],
        outputs=[times, feet],
        device=model.device,
    )


def launch_clear(
    model: Model,
    worlds: wp.array[int],
    mask: wp.array[bool],
    table: Any,
    joint_torques: Any,
    forces: Any,
    times: Any,
    feet: Any,
    *,
    with_times: bool,
    with_feet: bool,
) -> None:
    """Clear sums, and times if a world was reset; feet follow on request, and by themselves after a step."""
    launch_kernel(
        clear_robots,
        dim=worlds.size,
        inputs=[worlds, mask, table],
        outputs=[joint_torques, forces, int(with_times), int(with_feet), times, feet],
        device=model.device,
    )
