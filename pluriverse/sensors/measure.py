"""Measuring stage: the values of all sensors of a world except those of rays, contacts and distances.

Reads   poses and velocities of bodies and joints; accelerations and joint wrenches; contacts; drives
Writes  data

Positions and velocities are those of the state after the step, accelerations and forces those of the step, at
the state before it, as in MuJoCo's forward dynamics. Formulas and signs are those of the sensor chapter of
MuJoCo's documentation ([MuJoCo] XML reference, sensor).
"""

import warp as wp

from pluriverse.builder.sensors import SensorType
from pluriverse.launch import launch_kernel
from pluriverse.model import Model, Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.model.drive_effort import DriveArrays, drive_effort, is_stage_driven
from pluriverse.render.raycast.primitives import MISS, ray_primitive
from pluriverse.sensors.contact_wrenches import point_in_world
from pluriverse.types import GeoType, JointTargetMode

_MODULE = "pluriverse.sensors.measure"


@wp.struct
class SensorTable:
    """Of each sensor, sorted by world; see `pluriverse.builder.sensors`."""

    start: wp.array[int]  # [world + 1]
    type: wp.array[int]  # [sensor]
    dim: wp.array[int]  # [sensor]
    column: wp.array[int]  # [sensor] first column of the data of its world
    body: wp.array[int]  # [sensor] -1 for the world
    xform: wp.array[wp.transform]  # [sensor] m, xyzw, in the body
    is_relative: wp.array[int]  # [sensor]
    reference_body: wp.array[int]  # [sensor]
    reference_xform: wp.array[wp.transform]  # [sensor]
    side: wp.array[int]  # [sensor] `SensorSide`
    shape: wp.array[int]  # [sensor] -1 for none
    reference_side: wp.array[int]  # [sensor]
    reference_shape: wp.array[int]  # [sensor]
    fields: wp.array[int]  # [sensor] bits, in the order of `CONTACT_FIELDS`
    reduce: wp.array[int]  # [sensor] place in `CONTACT_REDUCTIONS`
    slots: wp.array[int]  # [sensor]
    zone_type: wp.array[int]  # [sensor]
    zone_size: wp.array[wp.vec3]  # [sensor] m
    coord: wp.array[int]  # [sensor]
    dof: wp.array[int]  # [sensor]
    term: wp.array[int]  # [sensor]
    term_count: wp.array[int]  # [sensor]
    segment: wp.array[int]  # [sensor]
    segment_count: wp.array[int]  # [sensor]
    parameter: wp.array[wp.vec4]  # [sensor]
    cutoff: wp.array[float]  # [sensor] 0 for none
    term_coord: wp.array[int]  # [term]
    term_dof: wp.array[int]  # [term]
    term_coefficient: wp.array[float]  # [term]
    term_offset: wp.array[float]  # [term]
    segment_body: wp.array[int]  # [segment] -1 for the world
    segment_xform: wp.array[wp.transform]  # [segment] m
    segment_reference_body: wp.array[int]  # [segment]
    segment_reference_xform: wp.array[wp.transform]  # [segment]
    segment_weight: wp.array[float]  # [segment]


@wp.struct
class SensedModel:
    """The arrays of a model that sensors read; see `Model`."""

    gravity: wp.array[wp.vec3]
    body_mass: wp.array[float]
    body_inertia: wp.array[wp.mat33]
    body_com: wp.array[wp.vec3]
    shape_body: wp.array[int]
    joint_armature: wp.array[float]
    joint_limit_lower: wp.array[float]
    joint_limit_upper: wp.array[float]


@wp.struct
class SensedMotion:
    """The arrays of a state that sensors read; see `State`."""

    joint_q: wp.array[float]
    joint_qd: wp.array[float]
    body_q: wp.array[wp.transform]
    body_qd: wp.array[wp.spatial_vector]


@wp.struct
class SensedForces:
    """Accelerations, drives and contacts of a step."""

    acceleration: wp.array[wp.spatial_vector]  # [body] of the centre of mass, less gravity; angular
    carried: wp.array[wp.spatial_vector]  # [body] N, N m about the centre of mass
    drives: DriveArrays
    contact_start: wp.array[int]  # [world + 1]
    contact_count: wp.array[int]  # [world]
    shape0: wp.array[int]  # [slot]
    shape1: wp.array[int]  # [slot]
    point0: wp.array[wp.vec3]  # [slot]
    point1: wp.array[wp.vec3]  # [slot]
    normal: wp.array[wp.vec3]  # [slot]
    force: wp.array[wp.vec3]  # [slot]


@wp.func
def frame_pose(body: int, xform: wp.transform, body_q: wp.array[wp.transform]) -> wp.transform:
    """Return the pose of a frame on a body (-1: on the world)."""
    result = xform
    if body >= 0:
        result = wp.transform_multiply(body_q[body], xform)
    return result


@wp.func
def read_quat(values: wp.array[float], first: int) -> wp.quat:
    """Return the unit quaternion (xyzw) of four consecutive entries."""
    return wp.normalize(wp.quat(values[first], values[first + 1], values[first + 2], values[first + 3]))


@wp.func
def frame_velocity(
    body: int, point: wp.vec3, motion: SensedMotion, body_com: wp.array[wp.vec3]
) -> wp.spatial_vector:
    """Return the velocity of a point of a body [m/s] and the angular velocity [rad/s], world axes."""
    result = wp.spatial_vector()
    if body >= 0:
        omega = wp.spatial_bottom(motion.body_qd[body])
        arm = point - wp.transform_point(motion.body_q[body], body_com[body])
        result = wp.spatial_vector(wp.spatial_top(motion.body_qd[body]) + wp.cross(omega, arm), omega)
    return result


@wp.func
def frame_acceleration(
    body: int,
    point: wp.vec3,
    motion: SensedMotion,
    forces: SensedForces,
    body_com: wp.array[wp.vec3],
    gravity: wp.vec3,
) -> wp.spatial_vector:
    """Return the acceleration of a point of a body minus gravity [m/s²] and the angular one, world axes."""
    result = wp.spatial_vector(-gravity, wp.vec3())
    if body >= 0:
        omega = wp.spatial_bottom(motion.body_qd[body])
        alpha = wp.spatial_bottom(forces.acceleration[body])
        arm = point - wp.transform_point(motion.body_q[body], body_com[body])
        linear = wp.spatial_top(forces.acceleration[body]) + wp.cross(alpha, arm)
        result = wp.spatial_vector(linear + wp.cross(omega, wp.cross(omega, arm)), alpha)
    return result


@wp.func
def is_inside(zone_type: int, size: wp.vec3, point: wp.vec3) -> bool:
    """Return whether a point lies in a zone, in the frame of the zone."""
    across = point[0] * point[0] + point[1] * point[1]
    result = bool(False)
    if zone_type == GeoType.SPHERE:
        result = wp.length_sq(point) <= size[0] * size[0]
    elif zone_type == GeoType.ELLIPSOID:
        result = wp.length_sq(wp.cw_div(point, size)) <= 1.0
    elif zone_type == GeoType.BOX:
        result = wp.abs(point[0]) <= size[0] and wp.abs(point[1]) <= size[1] and wp.abs(point[2]) <= size[2]
    elif zone_type == GeoType.CYLINDER:
        result = across <= size[0] * size[0] and wp.abs(point[2]) <= size[1]
    elif zone_type == GeoType.CAPSULE:
        beyond = wp.max(wp.abs(point[2]) - size[1], 0.0)
        result = across + beyond * beyond <= size[0] * size[0]
    return result


@wp.func
def sum_touch(
    world: int,
    body: int,
    zone: wp.transform,  # in the world
    zone_type: int,
    zone_size: wp.vec3,
    model: SensedModel,
    motion: SensedMotion,
    forces: SensedForces,
) -> float:
    """Return the sum of the normal forces on a body where a ray along them, out of the body, meets a zone."""
    total = float(0.0)
    start = forces.contact_start[world]
    back = wp.transform_inverse(zone)
    for slot in range(start, start + stored_contact_count(forces.contact_start, forces.contact_count, world)):
        shape0 = forces.shape0[slot]
        shape1 = forces.shape1[slot]
        last = model.shape_body.shape[0]
        if wp.min(shape0, shape1) < 0 or wp.max(shape0, shape1) >= last:
            continue
        body0 = model.shape_body[shape0]
        body1 = model.shape_body[shape1]
        if body0 != body and body1 != body:
            continue
        normal = forces.normal[slot]
        strength = wp.dot(forces.force[slot], normal)  # on the body of shape 1
        if strength <= 0.0:
            continue
        point = 0.5 * point_in_world(body0, forces.point0[slot], motion.body_q)
        point += 0.5 * point_in_world(body1, forces.point1[slot], motion.body_q)
        way = normal  # out of the body, from shape 0 to shape 1
        if body1 == body:
            way = -normal
        local_point = wp.transform_point(back, point)
        local_way = wp.transform_vector(back, way)
        if ray_primitive(zone_type, local_point, local_way, zone_size) < MISS:
            total += strength
    return total


@wp.func
def in_subtree(topology: Topology, first_node: int, node: int, root: int) -> bool:
    """Return whether a node of a template is below another, or is it; nodes of a subtree are contiguous."""
    current = node
    while current > root:
        current = topology.node_parent[first_node + current]
    return current == root


@wp.func
def sum_segments(
    table: SensorTable, sensor: int, motion: SensedMotion, body_com: wp.array[wp.vec3]
) -> wp.vec2:
    """Return the weighted length of the segments of a sensor [m], and its rate of change [m/s]."""
    total = wp.vec2()
    first = table.segment[sensor]
    for segment in range(first, first + table.segment_count[sensor]):
        body0 = table.segment_body[segment]
        body1 = table.segment_reference_body[segment]
        pose0 = frame_pose(body0, table.segment_xform[segment], motion.body_q)
        pose1 = frame_pose(body1, table.segment_reference_xform[segment], motion.body_q)
        point0 = wp.transform_get_translation(pose0)
        point1 = wp.transform_get_translation(pose1)
        way = point1 - point0
        velocity = wp.spatial_top(frame_velocity(body1, point1, motion, body_com))
        velocity -= wp.spatial_top(frame_velocity(body0, point0, motion, body_com))
        rate = wp.dot(wp.normalize(way), velocity)
        total += table.segment_weight[segment] * wp.vec2(wp.length(way), rate)
    return total


@wp.func
def sensor_of(table: SensorTable, world_frozen: wp.array[int], world: int, index: int) -> int:
    """Return a sensor by its number in a world that is stepped, or -1.

    Sensors of frozen worlds keep their last values, since the state may be no number.
    """
    if world < 0:
        return -1
    sensor = table.start[world] + index
    if sensor >= table.start[world + 1] or world_frozen[world] != 0:
        return -1
    return sensor


@wp.kernel(enable_backward=False, module=_MODULE)
def measure_sensor(
    worlds: wp.array[int],  # [slot]
    # model
    table: SensorTable,
    topology: Topology,
    model: SensedModel,
    # state and step
    before: SensedMotion,
    after: SensedMotion,
    driven: SensedMotion,  # the state that drives act at
    forces: SensedForces,
    world_frozen: wp.array[int],  # [world]
    time: wp.array[wp.float64],  # [world] s
    # out
    data: wp.array2d[float],  # [world, column]
    measured: wp.array2d[float],  # [world, column]
):
    """Measure one sensor of one world."""
    slot, index = wp.tid()
    world = worlds[slot]
    sensor = sensor_of(table, world_frozen, world, index)
    if sensor < 0:
        return
    kind = table.type[sensor]
    if kind == SensorType.RANGEFINDER or (kind >= SensorType.CONTACT and kind <= SensorType.GEOMFROMTO):
        return  # stages of their own
    body = table.body[sensor]
    gravity = model.gravity[world]
    value = wp.vec4(0.0, 0.0, 0.0, 0.0)
    is_bounded = bool(True)
    is_positive = bool(False)

    # Frames, at the state that the sensor belongs to.
    pose = frame_pose(body, table.xform[sensor], after.body_q)
    if (
        kind == SensorType.ACCELEROMETER
        or kind == SensorType.FORCE
        or kind == SensorType.TORQUE
        or kind == SensorType.TOUCH
    ):
        pose = frame_pose(body, table.xform[sensor], before.body_q)
    if kind == SensorType.FRAMELINACC or kind == SensorType.FRAMEANGACC:
        pose = frame_pose(body, table.xform[sensor], before.body_q)
    origin = wp.transform_get_translation(pose)
    body_rotation = wp.transform_get_rotation(pose)
    is_relative = table.is_relative[sensor] != 0
    reference_body = table.reference_body[sensor]
    reference = wp.transform_identity()
    if is_relative:
        reference = frame_pose(reference_body, table.reference_xform[sensor], after.body_q)
    reference_origin = wp.transform_get_translation(reference)
    reference_rotation = wp.transform_get_rotation(reference)
    vector = wp.vec3()

    if kind == SensorType.ACCELEROMETER or kind == SensorType.FRAMELINACC:
        vector = wp.spatial_top(frame_acceleration(body, origin, before, forces, model.body_com, gravity))
        if kind == SensorType.ACCELEROMETER:
            vector = wp.quat_rotate_inv(body_rotation, vector)
    elif kind == SensorType.FRAMEANGACC:
        vector = wp.spatial_bottom(frame_acceleration(body, origin, before, forces, model.body_com, gravity))
    elif kind == SensorType.VELOCIMETER:
        vector = wp.spatial_top(frame_velocity(body, origin, after, model.body_com))
        vector = wp.quat_rotate_inv(body_rotation, vector)
    elif kind == SensorType.GYRO:
        vector = wp.spatial_bottom(frame_velocity(body, origin, after, model.body_com))
        vector = wp.quat_rotate_inv(body_rotation, vector)
    elif kind == SensorType.FORCE or kind == SensorType.TORQUE:
        if body >= 0:
            force = wp.spatial_top(forces.carried[body])
            vector = force
            if kind == SensorType.TORQUE:
                arm = wp.transform_point(before.body_q[body], model.body_com[body]) - origin
                vector = wp.spatial_bottom(forces.carried[body]) + wp.cross(arm, force)
        vector = wp.quat_rotate_inv(body_rotation, vector)
    elif kind == SensorType.MAGNETOMETER:
        field = table.parameter[sensor]
        vector = wp.quat_rotate_inv(body_rotation, wp.vec3(field[0], field[1], field[2]))
    elif kind == SensorType.TOUCH:
        is_positive = True
        vector[0] = sum_touch(
            world, body, pose, table.zone_type[sensor], table.zone_size[sensor], model, before, forces
        )
    elif kind == SensorType.CAMPROJECTION:
        # The reference is the camera, which looks along -z with y up.
        local = wp.quat_rotate_inv(reference_rotation, origin - reference_origin)
        lens = table.parameter[sensor]  # focal length and centre, in pixels
        depth = -local[2]
        if wp.abs(depth) < 1.0e-15:
            depth = wp.where(depth < 0.0, -1.0e-15, 1.0e-15)
        vector = wp.vec3(lens[2] + lens[0] * local[0] / depth, lens[3] - lens[1] * local[1] / depth, 0.0)
    elif kind == SensorType.JOINTPOS or kind == SensorType.JOINTVEL or kind == SensorType.JOINTACTUATORFRC:
        first = table.term[sensor]
        for term in range(first, first + table.term_count[sensor]):
            coord = table.term_coord[term]
            dof = table.term_dof[term]
            share = float(0.0)
            if kind == SensorType.JOINTPOS:
                share = after.joint_q[coord] - table.term_offset[term]
            elif kind == SensorType.JOINTVEL:
                share = after.joint_qd[dof]
            else:
                # Elsewhere `joint_f` is no effort of an actuator.
                if forces.drives.mode[dof] != JointTargetMode.NONE or is_stage_driven(forces.drives, dof):
                    share = drive_effort(forces.drives, dof, driven.joint_q[coord], driven.joint_qd[dof])
            vector[0] = vector[0] + table.term_coefficient[term] * share
        if kind != SensorType.JOINTACTUATORFRC and table.segment_count[sensor] > 0:
            stretch_now = sum_segments(table, sensor, after, model.body_com)
            vector[0] = vector[0] + wp.where(kind == SensorType.JOINTPOS, stretch_now[0], stretch_now[1])
    elif kind == SensorType.TENDONLIMITPOS or kind == SensorType.TENDONLIMITVEL:
        total = sum_segments(table, sensor, after, model.body_com)
        first = table.term[sensor]
        for term in range(first, first + table.term_count[sensor]):
            coefficient = table.term_coefficient[term]
            total += coefficient * wp.vec2(
                after.joint_q[table.term_coord[term]], after.joint_qd[table.term_dof[term]]
            )
        limits = table.parameter[sensor]  # lowest, highest, margin
        under = total[0] - limits[0] - limits[2]
        over = limits[1] - total[0] - limits[2]
        if under < 0.0:
            vector[0] = wp.where(kind == SensorType.TENDONLIMITPOS, under, total[1])
        elif over < 0.0:
            vector[0] = wp.where(kind == SensorType.TENDONLIMITPOS, over, -total[1])
    elif kind == SensorType.JOINTLIMITPOS or kind == SensorType.JOINTLIMITVEL:
        term = table.term[sensor]
        position = after.joint_q[table.term_coord[term]]
        dof = table.term_dof[term]
        margin = table.parameter[sensor][0]
        below = position - model.joint_limit_lower[dof] - margin
        above = model.joint_limit_upper[dof] - position - margin
        if below < 0.0:
            vector[0] = wp.where(kind == SensorType.JOINTLIMITPOS, below, after.joint_qd[dof])
        elif above < 0.0:
            vector[0] = wp.where(kind == SensorType.JOINTLIMITPOS, above, -after.joint_qd[dof])
    elif kind == SensorType.BALLQUAT:
        q = read_quat(after.joint_q, table.coord[sensor])
        value = wp.vec4(q[3], q[0], q[1], q[2])
        is_bounded = False
    elif kind == SensorType.BALLANGVEL:
        dof = table.dof[sensor]
        q = read_quat(after.joint_q, table.coord[sensor])
        vector = wp.quat_rotate_inv(
            q, wp.vec3(after.joint_qd[dof], after.joint_qd[dof + 1], after.joint_qd[dof + 2])
        )
        vector = wp.quat_rotate_inv(wp.transform_get_rotation(table.xform[sensor]), vector)
    elif kind == SensorType.FRAMEPOS:
        vector = wp.quat_rotate_inv(reference_rotation, origin - reference_origin)
    elif kind == SensorType.FRAMEQUAT:
        q = wp.normalize(wp.quat_inverse(reference_rotation) * body_rotation)
        value = wp.vec4(q[3], q[0], q[1], q[2])
        is_bounded = False
    elif kind >= SensorType.FRAMEXAXIS and kind <= SensorType.FRAMEZAXIS:
        axis = wp.vec3()
        axis[kind - SensorType.FRAMEXAXIS] = 1.0
        vector = wp.quat_rotate_inv(reference_rotation, wp.quat_rotate(body_rotation, axis))
        is_bounded = False
    elif kind == SensorType.FRAMELINVEL or kind == SensorType.FRAMEANGVEL:
        own = frame_velocity(body, origin, after, model.body_com)
        vector = wp.spatial_top(own)
        if kind == SensorType.FRAMEANGVEL:
            vector = wp.spatial_bottom(own)
        if is_relative:
            reference_velocity = frame_velocity(reference_body, reference_origin, after, model.body_com)
            if kind == SensorType.FRAMEANGVEL:
                vector -= wp.spatial_bottom(reference_velocity)
            else:
                vector -= wp.spatial_top(reference_velocity)
                vector -= wp.cross(wp.spatial_bottom(reference_velocity), origin - reference_origin)
            vector = wp.quat_rotate_inv(reference_rotation, vector)
    elif kind == SensorType.INSIDESITE:
        inside = is_inside(
            table.zone_type[sensor],
            table.zone_size[sensor],
            wp.transform_point(wp.transform_inverse(reference), origin),
        )
        vector[0] = wp.where(inside, 1.0, 0.0)
    elif kind == SensorType.CLOCK:
        vector[0] = float(time[world])
    elif (
        kind == SensorType.E_POTENTIAL
        or kind == SensorType.E_KINETIC
        or (kind >= SensorType.SUBTREECOM and kind <= SensorType.SUBTREEANGMOM)
    ):
        # Sums over bodies, in double precision.
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        body_base = topology.world_body[world]
        root = int(-1)
        if body >= 0:
            root = topology.body_node[topology.template_body[template] + body - body_base]
        mass = wp.float64(0.0)
        moment = wp.vec3d()
        momentum = wp.vec3d()
        spin = wp.vec3d()  # about the origin of the world
        energy = wp.float64(0.0)
        for node in range(node_count):
            counts = root < 0
            if node >= root and root >= 0:
                counts = in_subtree(topology, first_node, node, root)
            if counts:
                other = body_base + topology.node_body[first_node + node]
                own_mass = wp.float64(model.body_mass[other])
                com = wp.vec3d(wp.transform_point(after.body_q[other], model.body_com[other]))
                velocity = wp.vec3d(wp.spatial_top(after.body_qd[other]))
                rotation = wp.transform_get_rotation(after.body_q[other])
                local = wp.quat_rotate_inv(rotation, wp.spatial_bottom(after.body_qd[other]))
                own_spin = wp.vec3d(wp.quat_rotate(rotation, model.body_inertia[other] * local))
                mass += own_mass
                moment += own_mass * com
                momentum += own_mass * velocity
                spin += own_spin + wp.cross(com, own_mass * velocity)
                if kind == SensorType.E_POTENTIAL:
                    energy -= own_mass * wp.dot(wp.vec3d(gravity), com)
                elif kind == SensorType.E_KINETIC:
                    twice = own_mass * wp.dot(velocity, velocity)
                    twice += wp.dot(own_spin, wp.vec3d(wp.spatial_bottom(after.body_qd[other])))
                    energy += wp.float64(0.5) * twice
                    first_dof = topology.world_dof[world] + topology.node_qd[first_node + node]
                    for dof in range(first_dof, first_dof + topology.node_dof_count[first_node + node]):
                        speed = wp.float64(after.joint_qd[dof])
                        energy += wp.float64(0.5) * wp.float64(model.joint_armature[dof]) * speed * speed
        if kind == SensorType.E_POTENTIAL:
            first = table.term[sensor]
            for term in range(first, first + table.term_count[sensor]):
                stretch = wp.float64(after.joint_q[table.term_coord[term]] - table.term_offset[term])
                energy += wp.float64(0.5) * wp.float64(table.term_coefficient[term]) * stretch * stretch
            vector[0] = float(energy)
        elif kind == SensorType.E_KINETIC:
            vector[0] = float(energy)
        elif mass > wp.float64(0.0):
            centre = moment / mass
            if kind == SensorType.SUBTREECOM:
                vector = wp.vec3(centre)
            elif kind == SensorType.SUBTREELINVEL:
                vector = wp.vec3(momentum / mass)
            else:
                vector = wp.vec3(spin - wp.cross(centre, momentum))
        elif kind == SensorType.SUBTREECOM:
            vector = origin

    dim = table.dim[sensor]
    if dim <= 3:
        value = wp.vec4(vector[0], vector[1], vector[2], 0.0)
    cutoff = table.cutoff[sensor]
    column = table.column[sensor]
    for k in range(dim):
        number = value[k]
        if cutoff > 0.0 and is_bounded:
            number = wp.min(number, cutoff)
            if not is_positive:
                number = wp.max(number, -cutoff)
        data[world, column + k] = number
        measured[world, column + k] = number


def measure_sensors(
    worlds: wp.array[int],
    count_max: int,
    model: Model,
    table: SensorTable,
    sensed: SensedModel,
    motions: tuple[SensedMotion, SensedMotion, SensedMotion],
    forces: SensedForces,
    world_frozen: wp.array[int],
    time: wp.array[wp.float64],
    data: wp.array,
    measured: wp.array,
) -> None:
    """Write what the sensors of worlds measure, at the states before and after a step and that of drives."""
    launch_kernel(
        measure_sensor,
        dim=(worlds.size, count_max),
        inputs=[worlds, table, model.topology, sensed, *motions, forces, world_frozen, time],
        outputs=[data, measured],
        device=model.device,
    )
