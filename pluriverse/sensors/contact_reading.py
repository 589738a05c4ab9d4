"""Contact reading stage: the values of sensors of contacts.

Reads   contacts of a step with their forces; body_q of the state that they were found in
Writes  data

The rules are those of MuJoCo's `<contact>` sensor ([MuJoCo] XML reference, sensor/contact).
"""

import warp as wp

from pluriverse.builder.sensor_sides import SensorSide
from pluriverse.builder.sensors import SensorType
from pluriverse.launch import launch_kernel
from pluriverse.model import Model, Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.sensors.contact_wrenches import point_in_world
from pluriverse.sensors.measure import SensedForces, SensorTable, frame_pose, is_inside, sensor_of
from pluriverse.sensors.sides import is_of_side

MINDIST = wp.constant(1)
MAXFORCE = wp.constant(2)
NETFORCE = wp.constant(3)

# Largest part of the normal along y [1] at which the first tangent comes from the y axis, as with MuJoCo.
_TANGENT_FROM_Y = wp.constant(0.5)


@wp.struct
class ReadContact:
    """A contact as seen by a sensor, from its first side to its second."""

    counts: bool
    """Whether it concerns the sensor, and touches or pushes."""
    normal: wp.vec3
    tangent: wp.vec3
    force: wp.vec3
    """On the second side [N], world axes."""
    point: wp.vec3
    """Middle between the surfaces [m], world axes."""
    distance: float
    """Of the surfaces [m]."""


@wp.func
def tangent_of(normal: wp.vec3) -> wp.vec3:
    """Return the first tangent of a contact: the y axis, or z where that is too close to the normal."""
    axis = wp.vec3(0.0, 1.0, 0.0)
    if wp.abs(normal[1]) >= _TANGENT_FROM_Y:
        axis = wp.vec3(0.0, 0.0, 1.0)
    return wp.normalize(axis - wp.dot(axis, normal) * normal)


@wp.func
def read_contact(
    world: int,
    slot: int,
    sensor: int,
    table: SensorTable,
    topology: Topology,
    shape_body: wp.array[int],
    body_q: wp.array[wp.transform],
    forces: SensedForces,
) -> ReadContact:
    """Return a contact if a sensor is about it."""
    result = ReadContact()
    shape0 = forces.shape0[slot]
    shape1 = forces.shape1[slot]
    if wp.min(shape0, shape1) < 0 or wp.max(shape0, shape1) >= shape_body.shape[0]:
        return result  # somebody wrote there
    body0 = shape_body[shape0]
    body1 = shape_body[shape1]
    point0 = point_in_world(body0, forces.point0[slot], body_q)
    point1 = point_in_world(body1, forces.point1[slot], body_q)
    normal = forces.normal[slot]
    force = forces.force[slot]
    distance = wp.dot(normal, point1 - point0)
    if distance > 0.0 and wp.length_sq(force) == 0.0:
        return result  # near, but does not touch
    side = table.side[sensor]
    other = table.reference_side[sensor]
    body = table.body[sensor]
    first0 = is_of_side(topology, world, side, table.shape[sensor], body, shape0, body0)
    first1 = is_of_side(topology, world, side, table.shape[sensor], body, shape1, body1)
    reference_shape = table.reference_shape[sensor]
    reference_body = table.reference_body[sensor]
    second0 = is_of_side(topology, world, other, reference_shape, reference_body, shape0, body0)
    second1 = is_of_side(topology, world, other, reference_shape, reference_body, shape1, body1)
    is_straight = first0 and second1
    if not is_straight and not (first1 and second0):
        return result
    point = 0.5 * (point0 + point1)
    if side == SensorSide.ZONE:
        zone = wp.transform_inverse(frame_pose(body, table.xform[sensor], body_q))
        if not is_inside(table.zone_type[sensor], table.zone_size[sensor], wp.transform_point(zone, point)):
            return result
    result.counts = True
    result.normal = normal
    result.tangent = tangent_of(normal)
    result.force = force
    result.point = point
    result.distance = distance
    if not is_straight:
        result.normal = -normal
        result.tangent = -result.tangent
        result.force = -force
    return result


@wp.func
def write_number(
    data: wp.array2d[float], measured: wp.array2d[float], world: int, column: int, value: float
) -> int:
    """Write a number, and return the next column."""
    data[world, column] = value
    measured[world, column] = value
    return column + 1


@wp.func
def write_vector(
    data: wp.array2d[float], measured: wp.array2d[float], world: int, column: int, value: wp.vec3
) -> int:
    """Write a vector, and return the next column."""
    for k in range(3):
        data[world, column + k] = value[k]
        measured[world, column + k] = value[k]
    return column + 3


@wp.func
def write_contact(
    data: wp.array2d[float],
    measured: wp.array2d[float],
    world: int,
    first_column: int,
    fields: int,
    found: int,
    force: wp.vec3,
    torque: wp.vec3,
    distance: float,
    point: wp.vec3,
    normal: wp.vec3,
    tangent: wp.vec3,
) -> int:
    """Write the fields of a slot, and return the next column."""
    column = int(first_column)
    if (fields & 1) != 0:
        column = write_number(data, measured, world, column, float(found))
    if (fields & 2) != 0:
        column = write_vector(data, measured, world, column, force)
    if (fields & 4) != 0:
        column = write_vector(data, measured, world, column, torque)
    if (fields & 8) != 0:
        column = write_number(data, measured, world, column, distance)
    if (fields & 16) != 0:
        column = write_vector(data, measured, world, column, point)
    if (fields & 32) != 0:
        column = write_vector(data, measured, world, column, normal)
    if (fields & 64) != 0:
        column = write_vector(data, measured, world, column, tangent)
    return column


@wp.kernel(enable_backward=False, module="pluriverse.sensors.contact_reading")
def read_contacts_of_sensor(
    worlds: wp.array[int],  # [slot]
    # model
    table: SensorTable,
    topology: Topology,
    shape_body: wp.array[int],  # [shape]
    # state and step
    body_q: wp.array[wp.transform],  # [body]
    forces: SensedForces,
    world_frozen: wp.array[int],  # [world]
    # out
    data: wp.array2d[float],  # [world, column]
    measured: wp.array2d[float],  # [world, column]
):
    """Measure one contact sensor of one world."""
    slot, index = wp.tid()
    world = worlds[slot]
    sensor = sensor_of(table, world_frozen, world, index)
    if sensor < 0:
        return
    if table.type[sensor] != SensorType.CONTACT:
        return
    column = table.column[sensor]
    for k in range(table.dim[sensor]):
        data[world, column + k] = 0.0
        measured[world, column + k] = 0.0
    start = forces.contact_start[world]
    end = start + stored_contact_count(forces.contact_start, forces.contact_count, world)
    reduce = table.reduce[sensor]
    found = int(0)
    weight = float(0.0)
    net = wp.vec3()
    moment = wp.vec3()  # of the forces about the origin of the world
    centre = wp.vec3()
    for contact in range(start, end):
        read = read_contact(world, contact, sensor, table, topology, shape_body, body_q, forces)
        if read.counts:
            found += 1
            strength = wp.length(read.force)
            weight += strength
            centre += strength * read.point
            net += read.force
            moment += wp.cross(read.point, read.force)
    if found == 0:
        return
    fields = table.fields[sensor]
    if reduce == NETFORCE:
        if weight > 0.0:
            centre = centre / weight
        torque = moment - wp.cross(centre, net)
        x = wp.vec3(1.0, 0.0, 0.0)
        y = wp.vec3(0.0, 1.0, 0.0)
        write_contact(data, measured, world, column, fields, found, net, torque, 0.0, centre, x, y)
        return
    # One contact after the other, in the order of their keys and then of their slots.
    last_key = float(-wp.inf)
    last = int(-1)
    for _ in range(wp.min(table.slots[sensor], found)):
        best_key = float(wp.inf)
        best = int(-1)
        for contact in range(start, end):
            read = read_contact(world, contact, sensor, table, topology, shape_body, body_q, forces)
            if read.counts:
                key = float(0.0)
                if reduce == MINDIST:
                    key = read.distance
                elif reduce == MAXFORCE:
                    key = -wp.length(read.force)
                is_later = key > last_key or (key == last_key and contact > last)
                if is_later and key < best_key:
                    best_key = key
                    best = contact
        if best < 0:
            return
        last_key = best_key
        last = best
        read = read_contact(world, best, sensor, table, topology, shape_body, body_q, forces)
        third = wp.cross(read.normal, read.tangent)
        force = wp.vec3(
            wp.dot(read.normal, read.force), wp.dot(read.tangent, read.force), wp.dot(third, read.force)
        )
        column = write_contact(
            data,
            measured,
            world,
            column,
            fields,
            found,
            force,
            wp.vec3(),
            read.distance,
            read.point,
            read.normal,
            read.tangent,
        )


def read_contacts_of_sensors(
    worlds: wp.array[int],
    count_max: int,
    model: Model,
    table: SensorTable,
    body_q: wp.array[wp.transform],
    forces: SensedForces,
    world_frozen: wp.array[int],
    data: wp.array,
    measured: wp.array,
) -> None:
    """Write the values of the contact sensors of worlds."""
    launch_kernel(
        read_contacts_of_sensor,
        dim=(worlds.size, count_max),
        inputs=[
            worlds,
            table,
            model.topology,
            model.structure.shape_body,
            body_q,
            forces,
            world_frozen,
        ],
        outputs=[data, measured],
        device=model.device,
    )
