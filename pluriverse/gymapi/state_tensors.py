"""State tensors: rows of root, body and DOF states from the state, and back.

Positions are in the frame of the env. Velocities are those of centres of mass, in the axes of the env.

Reads   joint_q, joint_qd, body_q, body_qd; joint_X_c
Writes  tensors; or joint_q, joint_qd, joint_X_p, and which articulations are to be placed anew
"""

import warp as wp

from pluriverse.gymapi.tables import ActorTable, BodyTable, DofTable
from pluriverse.math.rotation_vector import rotation_vector

_MODULE = "pluriverse.gymapi.state_tensors"
# Angle [rad] below which a rotation vector is a series of its quaternion: the first term left out is some
# 1e-9 of the value.
_SMALL_ANGLE = wp.constant(1.0e-4)
# Error of the square of a quaternion's length up to which it is taken bit for bit: float32 rounding.
_UNIT_ROUNDING = wp.constant(1.0e-6)


@wp.func
def quat_of_rotation_vector(rotation: wp.vec3) -> wp.quat:
    """Return the unit quaternion of a rotation vector [rad]."""
    angle = wp.length(rotation)
    half_sinc = 0.5 - angle * angle / 48.0
    if angle > _SMALL_ANGLE:
        half_sinc = wp.sin(0.5 * angle) / angle
    return wp.normalize(wp.quat(half_sinc * rotation, wp.cos(0.5 * angle)))


@wp.func
def unit_quat(x: float, y: float, z: float, w: float) -> wp.quat:
    """Return a quaternion of length 1: unchanged if it has that length, the identity for zero."""
    square = x * x + y * y + z * z + w * w
    q = wp.quat(x, y, z, w)
    if wp.abs(square - 1.0) > _UNIT_ROUNDING:
        if square < 1.0e-12:
            q = wp.quat_identity()
        else:
            q = wp.normalize(q)
    return q


@wp.func
def ball_quat(joint_q: wp.array[float], coord: int) -> wp.quat:
    """Return the quaternion that begins at a coordinate."""
    return wp.quat(joint_q[coord], joint_q[coord + 1], joint_q[coord + 2], joint_q[coord + 3])


@wp.func
def write_row(rows: wp.array2d[float], row: int, p: wp.vec3, q: wp.quat, linear: wp.vec3, angular: wp.vec3):
    """Write a pose and a velocity into a row."""
    for k in range(3):
        rows[row, k] = p[k]
        rows[row, 7 + k] = linear[k]
        rows[row, 10 + k] = angular[k]
    for k in range(4):
        rows[row, 3 + k] = q[k]


@wp.kernel(enable_backward=False, module=_MODULE)
def read_root_state(
    actors: ActorTable,
    joint_q: wp.array[float],  # [coord] m, rad
    joint_qd: wp.array[float],  # [dof] m/s, rad/s
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    rows: wp.array2d[float],  # [actor, 13]
):
    """Write the row of one actor."""
    actor, _ = wp.tid()
    coord = actors.root_coord[actor]
    if coord >= 0:
        # From the coordinates, so that what was set comes back to the last bit.
        dof = actors.root_dof[actor]
        p = wp.vec3(joint_q[coord], joint_q[coord + 1], joint_q[coord + 2])
        write_row(
            rows,
            actor,
            p - actors.offset[actor],
            ball_quat(joint_q, coord + 3),
            wp.vec3(joint_qd[dof], joint_qd[dof + 1], joint_qd[dof + 2]),
            wp.vec3(joint_qd[dof + 3], joint_qd[dof + 4], joint_qd[dof + 5]),
        )
    else:
        body = actors.root_body[actor]
        pose, velocity = body_q[body], body_qd[body]
        write_row(
            rows,
            actor,
            wp.transform_get_translation(pose) - actors.offset[actor],
            wp.transform_get_rotation(pose),
            wp.spatial_top(velocity),
            wp.spatial_bottom(velocity),
        )


@wp.kernel(enable_backward=False, module=_MODULE)
def read_body_state(
    bodies: BodyTable,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    rows: wp.array2d[float],  # [body, 13]
):
    """Write the row of one body."""
    row, _ = wp.tid()
    body = bodies.body[row]
    pose, velocity = body_q[body], body_qd[body]
    write_row(
        rows,
        row,
        wp.transform_get_translation(pose) - bodies.offset[row],
        wp.transform_get_rotation(pose),
        wp.spatial_top(velocity),
        wp.spatial_bottom(velocity),
    )


@wp.kernel(enable_backward=False, module=_MODULE)
def read_dof_state(
    dofs: DofTable,
    joint_q: wp.array[float],  # [coord] m, rad
    joint_qd: wp.array[float],  # [dof] m/s, rad/s
    rows: wp.array2d[float],  # [dof, 2]
):
    """Write the row of one degree of freedom."""
    row, _ = wp.tid()
    coord = dofs.coord[row]
    axis = dofs.ball_axis[row]
    position = float(0.0)
    if axis >= 0:
        position = rotation_vector(ball_quat(joint_q, coord))[axis]
    else:
        position = joint_q[coord]
    rows[row, 0] = position
    rows[row, 1] = joint_qd[dofs.dof[row]]


@wp.func
def listed_actor(indices: wp.array[int], slot: int, actor_count: int) -> int:
    """Return the actor of a slot, or -1; without indices the slot itself."""
    actor = slot
    if indices.shape[0] > 0:
        actor = indices[slot]
    if actor < 0 or actor >= actor_count:
        actor = -1
    return actor


@wp.kernel(enable_backward=False, module=_MODULE)
def write_root_state(
    indices: wp.array[int],  # [slot] actors; empty: all
    actors: ActorTable,
    joint_X_c: wp.array[wp.transform],  # [joint] m, xyzw
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    rows: wp.array2d[float],  # [actor, 13]
    joint_X_p: wp.array[wp.transform],  # [joint] m, xyzw
    joint_q: wp.array[float],  # [coord] m, rad
    joint_qd: wp.array[float],  # [dof] m/s, rad/s
    moved: wp.array[bool],  # [articulation]
    world_frozen: wp.array[int],  # [world]
):
    """Put the root of one actor where its row says."""
    thread, _ = wp.tid()
    actor = listed_actor(indices, thread, actors.root_body.shape[0])
    if actor < 0:
        return
    p = wp.vec3(rows[actor, 0], rows[actor, 1], rows[actor, 2]) + actors.offset[actor]
    q = unit_quat(rows[actor, 3], rows[actor, 4], rows[actor, 5], rows[actor, 6])
    coord = actors.root_coord[actor]
    if coord >= 0:
        for k in range(3):
            joint_q[coord + k] = p[k]
        for k in range(4):
            joint_q[coord + 3 + k] = q[k]
        dof = actors.root_dof[actor]
        for k in range(6):
            joint_qd[dof + k] = rows[actor, 7 + k]
    else:
        # The base moves; the velocity of something held to the env is zero.
        joint = actors.root_joint[actor]
        behind = joint_X_c[joint]
        if actors.root_moves[actor] != 0:
            behind = wp.transform_inverse(body_q[actors.root_body[actor]]) * joint_X_p[joint]
        joint_X_p[joint] = wp.transform(p, q) * behind
    moved[actors.articulation[actor]] = True
    world_frozen[actors.world[actor]] = 0


@wp.kernel(enable_backward=False, module=_MODULE)
def write_dof_state(
    indices: wp.array[int],  # [slot] actors; empty: all
    actors: ActorTable,
    dofs: DofTable,
    rows: wp.array2d[float],  # [dof, 2]
    joint_q: wp.array[float],  # [coord] m, rad
    joint_qd: wp.array[float],  # [dof] m/s, rad/s
    moved: wp.array[bool],  # [articulation]
    world_frozen: wp.array[int],  # [world]
):
    """Put the joints of one actor where its rows say."""
    thread, _ = wp.tid()
    actor = listed_actor(indices, thread, actors.root_body.shape[0])
    if actor < 0:
        return
    first, end = actors.dof_start[actor], actors.dof_start[actor + 1]
    for row in range(first, end):
        coord = dofs.coord[row]
        axis = dofs.ball_axis[row]
        if axis < 0:
            joint_q[coord] = rows[row, 0]
        elif axis == 0:
            q = quat_of_rotation_vector(wp.vec3(rows[row, 0], rows[row + 1, 0], rows[row + 2, 0]))
            for k in range(4):
                joint_q[coord + k] = q[k]
        joint_qd[dofs.dof[row]] = rows[row, 1]
    if end > first:
        moved[actors.articulation[actor]] = True
        world_frozen[actors.world[actor]] = 0


@wp.kernel(enable_backward=False, module=_MODULE)
def write_control(
    indices: wp.array[int],  # [slot] actors; empty: all
    actors: ActorTable,
    dofs: DofTable,
    mode: int,  # DofDriveMode that the values are for
    values: wp.array[float],  # [dof]
    control: wp.array[float],  # [dof of the model]
):
    """Write targets or efforts of one actor to the degrees of freedom in the mode that they are for."""
    thread, _ = wp.tid()
    actor = listed_actor(indices, thread, actors.root_body.shape[0])
    if actor < 0:
        return
    for row in range(actors.dof_start[actor], actors.dof_start[actor + 1]):
        if dofs.drive_mode[row] == mode:
            control[dofs.dof[row]] = values[row]
