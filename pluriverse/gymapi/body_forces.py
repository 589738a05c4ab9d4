"""Body forces: external forces on bodies in the next step.

Reads   applied forces and torques, body_q, body_qd, masses, gravity
Writes  body_f: applied forces, damping of velocities, and what takes back gravity or precession
"""

import warp as wp

from pluriverse.gymapi.enums import CoordinateSpace, RigidBodyFlags
from pluriverse.gymapi.tables import NO_GYROSCOPIC_FORCE, BodyTable
from pluriverse.model import Topology

_MODULE = "pluriverse.gymapi.body_forces"
_NO_GYROSCOPIC = wp.constant(NO_GYROSCOPIC_FORCE)


@wp.kernel(enable_backward=False, module=_MODULE)
def add_body_force(
    bodies: BodyTable,
    space: int,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    forces: wp.array[wp.vec3],  # [body] N; empty: none
    torques: wp.array[wp.vec3],  # [body] N m; empty: none
    points: wp.array[wp.vec3],  # [body] m; empty: the centre of mass
    applied_force: wp.array[wp.vec3],  # [body] N, world axes
    applied_torque: wp.array[wp.vec3],  # [body] N m about the centre of mass, world axes
):
    """Add a force on one body, given in one of the spaces, to the applied force."""
    row, _ = wp.tid()
    body = bodies.body[row]
    pose = body_q[body]
    rotation = wp.transform_get_rotation(pose)
    force = wp.vec3()
    torque = wp.vec3()
    if forces.shape[0] > 0:
        force = forces[row]
    if torques.shape[0] > 0:
        torque = torques[row]
    if space == CoordinateSpace.LOCAL_SPACE:
        force = wp.quat_rotate(rotation, force)
        torque = wp.quat_rotate(rotation, torque)
    if points.shape[0] > 0:
        point = points[row]
        if space == CoordinateSpace.LOCAL_SPACE:
            point = wp.transform_point(pose, point)
        elif space == CoordinateSpace.GLOBAL_SPACE:
            point = point - bodies.world_origin[row]
        else:
            point = point + bodies.offset[row]
        torque += wp.cross(point - wp.transform_point(pose, body_com[body]), force)
    applied_force[row] = applied_force[row] + force
    applied_torque[row] = applied_torque[row] + torque


@wp.kernel(enable_backward=False, module=_MODULE)
def sum_body_forces(
    worlds: wp.array[int],
    topology: Topology,
    enabled: wp.array[bool],  # [1] whether to write anything
    body_row: wp.array[int],  # [body of the model]
    bodies: BodyTable,
    gravity: wp.array[wp.vec3],  # [world] m/s^2
    gravcomp: wp.array[float],  # [body] share of the weight that does not act anyway; empty: none
    body_mass: wp.array[float],  # [body] kg
    body_inertia: wp.array[wp.mat33],  # [body] kg m^2, body axes
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    applied_force: wp.array[wp.vec3],  # [body] N, world axes
    applied_torque: wp.array[wp.vec3],  # [body] N m, world axes
    dt: float,  # s
    body_f: wp.array[wp.spatial_vector],  # [body of the model] N, N m
):
    """Write the external forces of the bodies of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    if not enabled[0]:
        return
    template = topology.world_template[world]
    first = topology.world_body[world]
    for body in range(first, first + topology.template_body[template + 1] - topology.template_body[template]):
        row = body_row[body]
        share = float(1.0)
        if row < 0:
            row = -2 - row  # a part of a body, to which forces were applied
            share = 0.0
        mass = body_mass[body]
        velocity = body_qd[body]
        omega = wp.spatial_bottom(velocity)
        rotation = wp.transform_get_rotation(body_q[body])
        momentum = wp.quat_rotate(rotation, body_inertia[body] * wp.quat_rotate_inv(rotation, omega))
        force = share * applied_force[row] - bodies.linear_damping[row] * mass * wp.spatial_top(velocity)
        torque = share * applied_torque[row] - bodies.angular_damping[row] * momentum
        # A body above its speed limit is braked to the limit. Joined bodies can only add to its inertia, so
        # the force never reverses its motion.
        speed = wp.length(wp.spatial_top(velocity))
        if speed > bodies.linear_limit[row]:
            force -= (1.0 - bodies.linear_limit[row] / speed) * mass / dt * wp.spatial_top(velocity)
        spin = wp.length(omega)
        if spin > bodies.angular_limit[row]:
            torque -= (1.0 - bodies.angular_limit[row] / spin) / dt * momentum
        flags = bodies.flags[row]
        if flags & RigidBodyFlags.RIGID_BODY_DISABLE_GRAVITY:
            weight = mass * gravity[world]
            if gravcomp.shape[0] > 0:
                weight = (1.0 - gravcomp[body]) * weight
            force -= weight
        if flags & _NO_GYROSCOPIC:
            torque += wp.cross(omega, momentum)
        body_f[body] = wp.spatial_vector(force, torque)
