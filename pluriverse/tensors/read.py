"""Reading stage: observations of each robot at the end of a step.

Reads   joint_q, joint_qd, body_q, body_qd of the result; joint_X_p, gravity and shapes of the model
Writes  the rows of `RobotReadings`
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State
from pluriverse.tensors.table import RobotTable
from pluriverse.types import GeoType

_MODULE = "pluriverse.tensors.read"
# Sine of half an angle below which a rotation vector is twice the quaternion's vector: the first term left
# out is a sixth of its square, 1.7e-9 of the value.
_SMALL_SINE = wp.constant(1.0e-4)


@wp.struct
class RobotReadings:
    """The readings, for kernels; `RobotTensors` describes the arrays."""

    joint_positions: wp.array2d[float]
    joint_velocities: wp.array2d[float]
    base_positions: wp.array[wp.vec3]
    base_quaternions: wp.array[wp.quat]
    base_linear_velocities: wp.array[wp.vec3]
    base_angular_velocities: wp.array[wp.vec3]
    projected_gravity: wp.array[wp.vec3]
    body_positions: wp.array2d[wp.vec3]
    body_quaternions: wp.array2d[wp.quat]
    body_linear_velocities: wp.array2d[wp.vec3]
    body_angular_velocities: wp.array2d[wp.vec3]
    foot_positions: wp.array2d[wp.vec3]
    foot_velocities: wp.array2d[wp.vec3]


@wp.struct
class ShapeArrays:
    """Shapes of the model; see `Model`."""

    type: wp.array[int]
    transform: wp.array[wp.transform]
    scale: wp.array[wp.vec3]
    lower: wp.array[wp.vec3]
    upper: wp.array[wp.vec3]
    margin: wp.array[float]


@wp.func
def rotation_vector(q: wp.quat) -> wp.vec3:
    """Return the rotation vector [rad] of a unit quaternion, of length at most pi."""
    axis = wp.vec3(q[0], q[1], q[2])
    w = q[3]
    if w < 0.0:
        axis = -axis
        w = -w
    sine = wp.length(axis)
    factor = float(2.0)
    if sine > _SMALL_SINE:
        factor = 2.0 * wp.atan2(sine, w) / sine
    return factor * axis


@wp.func
def lowest_point(shapes: ShapeArrays, shape: int, pose: wp.transform) -> wp.vec3:
    """Return the lowest point of a shape, world axes [m]; of a mesh, that of its bounding box."""
    world = pose * shapes.transform[shape]
    down = wp.quat_rotate_inv(wp.transform_get_rotation(world), wp.vec3(0.0, 0.0, -1.0))
    kind = shapes.type[shape]
    scale = shapes.scale[shape]
    point = wp.vec3()
    if kind == GeoType.SPHERE:
        point = scale[0] * down
    elif kind == GeoType.CAPSULE:
        point = scale[0] * down + wp.vec3(0.0, 0.0, scale[1] * wp.sign(down[2]))
    elif kind == GeoType.ELLIPSOID:
        stretched = wp.cw_mul(scale, down)
        point = wp.cw_mul(scale, stretched) / wp.max(wp.length(stretched), 1.0e-12)
    elif kind == GeoType.CYLINDER:
        flat = wp.vec3(down[0], down[1], 0.0)
        point = scale[0] * flat / wp.max(wp.length(flat), 1.0e-12)
        point[2] = scale[1] * wp.sign(down[2])
    else:
        for axis in range(3):
            point[axis] = shapes.upper[shape][axis]
            if down[axis] < 0.0:
                point[axis] = shapes.lower[shape][axis]
    return wp.transform_point(world, point + shapes.margin[shape] * down)


@wp.func
def origin_velocity(body_q: wp.transform, velocity: wp.spatial_vector, com: wp.vec3) -> wp.vec3:
    """Return the velocity of the origin of a body [m/s], world axes, from that of its centre of mass."""
    arm = wp.quat_rotate(wp.transform_get_rotation(body_q), com)
    return wp.spatial_top(velocity) - wp.cross(wp.spatial_bottom(velocity), arm)


@wp.kernel(enable_backward=False, module=_MODULE)
def read_robots(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    table: RobotTable,
    # model
    joint_X_p: wp.array[wp.transform],  # [joint]
    gravity: wp.array[wp.vec3],  # [world] m/s²
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    shapes: ShapeArrays,
    # state
    joint_q: wp.array[float],  # [coord]
    joint_qd: wp.array[float],  # [dof]
    body_q: wp.array[wp.transform],  # [body]
    body_qd: wp.array[wp.spatial_vector],  # [body]
    # out
    out: RobotReadings,
):
    """Read the robots of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= table.world_row.shape[0] - 1:
        return  # an index on the device that names no world
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        first = table.dof_start[row]
        for entry in range(first, table.dof_start[row + 1]):
            axis = table.axis[entry]
            coord = table.coord[entry]
            position = joint_q[coord]
            if axis >= 0:
                q = wp.quat(joint_q[coord], joint_q[coord + 1], joint_q[coord + 2], joint_q[coord + 3])
                position = rotation_vector(wp.normalize(q))[axis]
            out.joint_positions[row, entry - first] = position
            out.joint_velocities[row, entry - first] = joint_qd[table.dof[entry]]

        base = table.base_body[row]
        pose = joint_X_p[table.base_joint[row]]
        linear = wp.vec3()
        angular = wp.vec3()
        if base >= 0:
            pose = body_q[base]
            linear = origin_velocity(pose, body_qd[base], body_com[base])
            angular = wp.spatial_bottom(body_qd[base])
        rotation = wp.transform_get_rotation(pose)
        out.base_positions[row] = wp.transform_get_translation(pose)
        out.base_quaternions[row] = rotation
        out.base_linear_velocities[row] = wp.quat_rotate_inv(rotation, linear)
        out.base_angular_velocities[row] = wp.quat_rotate_inv(rotation, angular)
        # Without gravity there is no direction, and normalize gives zero.
        out.projected_gravity[row] = wp.quat_rotate_inv(rotation, wp.normalize(gravity[world]))

        first = table.body_start[row]
        for entry in range(first, table.body_start[row + 1]):
            body = table.body[entry]
            out.body_positions[row, entry - first] = wp.transform_get_translation(body_q[body])
            out.body_quaternions[row, entry - first] = wp.transform_get_rotation(body_q[body])
            out.body_linear_velocities[row, entry - first] = origin_velocity(
                body_q[body], body_qd[body], body_com[body]
            )
            out.body_angular_velocities[row, entry - first] = wp.spatial_bottom(body_qd[body])

        first = table.foot_start[row]
        for entry in range(first, table.foot_start[row + 1]):
            body = table.foot_body[entry]
            point = wp.transform_get_translation(body_q[body])
            for foot_entry in range(table.foot_shape_start[entry], table.foot_shape_start[entry + 1]):
                candidate = lowest_point(shapes, table.foot_shape[foot_entry], body_q[body])
                if foot_entry == table.foot_shape_start[entry] or candidate[2] < point[2]:
                    point = candidate
            com = wp.transform_point(body_q[body], body_com[body])
            out.foot_positions[row, entry - first] = point
            out.foot_velocities[row, entry - first] = wp.spatial_top(body_qd[body]) + wp.cross(
                wp.spatial_bottom(body_qd[body]), point - com
            )


def launch_read(
    model: Model, worlds: wp.array[int], mask: wp.array[bool], table: Any, state: State, readings: Any
) -> None:
    """Read the robots of worlds at a state."""
    shapes = ShapeArrays()
    shapes.type, shapes.transform = model.structure.shape_type, model.shape_transform
    shapes.scale, shapes.margin = model.shape_scale, model.shape_margin
    shapes.lower, shapes.upper = model.shape_aabb_lower, model.shape_aabb_upper
    launch_kernel(
        read_robots,
        dim=worlds.size,
        inputs=[
            worlds,
            mask,
            table,
            model.joint_X_p,
            model.gravity,
            model.body_com,
            shapes,
            state.joint_q,
            state.joint_qd,
            state.body_q,
            state.body_qd,
        ],
        outputs=[readings],
        device=model.device,
    )
