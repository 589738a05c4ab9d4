"""Exchange of kinematic joints: prescribed joints reach their targets, and attached bodies feel the motion.

Reads   joint_q, joint_qd of the old state; targets and modes of drives
Writes  rows before the step; joint_q, joint_qd of the new state after it

In MuJoCo such a joint has an armature too large for anything in a scene to accelerate. Its velocity at the
end of a step follows from mode and targets as in `SolverSAP`; a force on the armature produces the required
acceleration, so inertial forces act on attached bodies. Its coordinates are then set to the prescribed
values, without rounding. A joint without a target keeps its coordinates and velocity. Ball and free joints
have velocity targets only, and move as a whole, by the velocity at the end of the step, if one of their axes
has one.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import fill_struct, launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import kernel_module
from pluriverse.math.rotations import rotation_functions
from pluriverse.model import Control, Model, State, Topology
from pluriverse.solvers.mujoco.exchange.maps import (
    NV,
    ExchangeMaps,
    ExchangeRows,
    is_prescribed,
    rows_struct,
)
from pluriverse.solvers.mujoco.mapping.group import JointKind
from pluriverse.solvers.mujoco.mapping.joints import KINEMATIC_ARMATURE
from pluriverse.types import JointTargetMode

ARMATURE = wp.constant(wp.float64(KINEMATIC_ARMATURE))


@wp.struct
class Targets:
    """Arrays that prescribe kinematic joints; see `Model`, `State` and `Control`."""

    body_flags: wp.array[int]
    body_com: wp.array[wp.vec3]
    joint_X_p: wp.array[wp.transform]  # noqa: N815
    joint_X_c: wp.array[wp.transform]  # noqa: N815
    joint_target_mode: wp.array[int]
    joint_q: wp.array[float]  # of the old state
    joint_qd: wp.array[float]
    joint_target_pos: wp.array[float]
    joint_target_vel: wp.array[float]


@wp.func
def end_velocity(targets: Targets, coord: int, dof: int, dt: wp.float64) -> wp.float64:
    """Return the velocity of a degree of freedom at the end of the step."""
    mode = targets.joint_target_mode[dof]
    if mode == JointTargetMode.VELOCITY or mode == JointTargetMode.POSITION_VELOCITY:
        return wp.float64(targets.joint_target_vel[dof])
    if mode == JointTargetMode.POSITION:
        return (wp.float64(targets.joint_target_pos[dof]) - wp.float64(targets.joint_q[coord])) / dt
    return wp.float64(targets.joint_qd[dof])


@wp.func
def end_rate(targets: Targets, dof: int) -> wp.float64:
    """Return the velocity of an axis of a ball or free joint at the end of the step."""
    mode = targets.joint_target_mode[dof]
    if mode == JointTargetMode.VELOCITY or mode == JointTargetMode.POSITION_VELOCITY:
        return wp.float64(targets.joint_target_vel[dof])
    return wp.float64(targets.joint_qd[dof])


@made_once
def _rotating_joints() -> SimpleNamespace:
    """Return the functions of ball and free joints, whose axes are prescribed together."""
    convert, rotate = conversion_functions(wp.float64), rotation_functions(wp.float64)
    widen_vec3, widen_rotation = convert.widen_vec3, convert.widen_rotation
    read_vec3, read_rotation = convert.read_vec3, convert.read_rotation
    turned_by, quat_normalize = rotate.quat_from_rotation_vector, rotate.quat_normalize

    @wp.func
    def end_rates(targets: Targets, dof: int) -> wp.vec3d:
        """Return the velocities of three axes at the end of the step."""
        return wp.vec3d(end_rate(targets, dof), end_rate(targets, dof + 1), end_rate(targets, dof + 2))

    @wp.func
    def has_target(targets: Targets, dof: int, count: int) -> bool:
        """Return whether one of some axes has a velocity target."""
        found = int(0)
        for k in range(count):
            mode = targets.joint_target_mode[dof + k]
            if mode == JointTargetMode.VELOCITY or mode == JointTargetMode.POSITION_VELOCITY:
                found = 1
        return found != 0

    @wp.func
    def body_rotation(targets: Targets, joint: int, coord: int) -> wp.quatd:
        """Return the rotation of the body of a free joint."""
        outer = widen_rotation(wp.transform_get_rotation(targets.joint_X_p[joint]))
        inner = widen_rotation(wp.transform_get_rotation(targets.joint_X_c[joint]))
        return outer * read_rotation(targets.joint_q, coord + 3) * wp.quat_inverse(inner)

    @wp.func
    def ball_acceleration(
        targets: Targets, frame: wp.quatd, coord: int, dof: int, dt: wp.float64
    ) -> wp.vec3d:
        """Return the acceleration of MuJoCo's velocities of a ball joint, in axes of the body."""
        change = end_rates(targets, dof) - read_vec3(targets.joint_qd, dof)
        rotation = frame * wp.quat_inverse(read_rotation(targets.joint_q, coord))
        return wp.quat_rotate(rotation, change / dt)

    @wp.func
    def free_acceleration(targets: Targets, joint: int, body: int, coord: int, dof: int, dt: wp.float64):
        """Return the acceleration of the origin, and that of the rotation in axes of the body."""
        rotation = body_rotation(targets, joint, coord)
        arm = wp.quat_rotate(rotation, widen_vec3(targets.body_com[body]))
        spin = read_vec3(targets.joint_qd, dof + 3)
        alpha = (end_rates(targets, dof + 3) - spin) / dt
        origin = (end_rates(targets, dof) - read_vec3(targets.joint_qd, dof)) / dt
        origin -= wp.cross(alpha, arm) + wp.cross(spin, wp.cross(spin, arm))
        return origin, wp.quat_rotate_inv(rotation, alpha)

    @wp.func
    def move_ball(targets: Targets, coord: int, dof: int, dt: wp.float64) -> wp.quatd:
        """Return the coordinates of a ball joint at the end of the step."""
        turned = turned_by(dt * end_rates(targets, dof)) * read_rotation(targets.joint_q, coord)
        return quat_normalize(turned)

    @wp.func
    def move_free(targets: Targets, joint: int, body: int, coord: int, dof: int, dt: wp.float64):
        """Return position and rotation of a free joint at the end of the step."""
        outer, inner = targets.joint_X_p[joint], targets.joint_X_c[joint]
        outer_rotation = widen_rotation(wp.transform_get_rotation(outer))
        inner_rotation = widen_rotation(wp.transform_get_rotation(inner))
        # From the joint's point on the body to its centre of mass, to which the velocity refers.
        lever = widen_vec3(targets.body_com[body]) - widen_vec3(wp.transform_get_translation(inner))
        before = body_rotation(targets, joint, coord)
        after = quat_normalize(turned_by(dt * end_rates(targets, dof + 3)) * before)
        way = dt * end_rates(targets, dof) + wp.quat_rotate(before, lever) - wp.quat_rotate(after, lever)
        position = read_vec3(targets.joint_q, coord) + wp.quat_rotate_inv(outer_rotation, way)
        return position, wp.quat_inverse(outer_rotation) * after * inner_rotation

    return SimpleNamespace(
        has_target=has_target,
        ball_acceleration=ball_acceleration,
        free_acceleration=free_acceleration,
        move_ball=move_ball,
        move_free=move_free,
    )


@made_once
def _push_kernel(real: Any) -> wp.Kernel:
    Rows = rows_struct(real)
    functions, widen_rotation = _rotating_joints(), conversion_functions(wp.float64).widen_rotation
    ball_acceleration, free_acceleration = functions.ball_acceleration, functions.free_acceleration

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.solvers.mujoco.exchange.prescribed", real)
    )
    def push_kinematic(
        worlds: wp.array[int],
        topology: Topology,
        maps: ExchangeMaps,
        targets: Targets,
        dt: wp.float64,
        rows: Rows,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        group = maps.world_group[world]
        first = maps.group_joint[group]
        for local in range(maps.group_joint[group + 1] - first):
            index = first + local
            if is_prescribed(topology, maps, targets.body_flags, world, index):
                kind = maps.joint_kind[index]
                joint = topology.world_joint[world] + local
                body = topology.world_body[world] + maps.joint_child[index]
                coord = topology.world_coord[world] + maps.joint_coord[index]
                dof = topology.world_dof[world] + maps.joint_dof[index]
                qvel = maps.world_start[world, NV] + maps.joint_qvel[index]
                if kind == JointKind.SCALAR:
                    for k in range(maps.joint_dof_count[index]):
                        now = wp.float64(targets.joint_qd[dof + k])
                        change = end_velocity(targets, coord + k, dof + k, dt) - now
                        rows.qfrc_applied[qvel + k] = real(ARMATURE * change / dt)
                elif kind == JointKind.BALL:
                    frame = widen_rotation(maps.joint_rotation[joint])
                    turning = ball_acceleration(targets, frame, coord, dof, dt)
                    for k in range(3):
                        rows.qfrc_applied[qvel + k] = real(ARMATURE * turning[k])
                elif kind == JointKind.FREE:
                    moving, turning_too = free_acceleration(targets, joint, body, coord, dof, dt)
                    for k in range(3):
                        rows.qfrc_applied[qvel + k] = real(ARMATURE * moving[k])
                        rows.qfrc_applied[qvel + 3 + k] = real(ARMATURE * turning_too[k])

    return push_kinematic


@made_once
def _pull_kernel() -> wp.Kernel:
    functions = _rotating_joints()
    has_target, move_ball, move_free = functions.has_target, functions.move_ball, functions.move_free

    @wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.exchange.prescribed.pull")
    def pull_kinematic(
        worlds: wp.array[int],
        topology: Topology,
        maps: ExchangeMaps,
        targets: Targets,
        dt: wp.float64,
        world_stepped: wp.array[int],  # [world] 1: the rows hold a new state
        joint_q: wp.array[float],  # [coord] m, rad
        joint_qd: wp.array[float],  # [dof] m/s, rad/s
    ):
        """Write the prescribed state of the kinematic joints of a world."""
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        if world_stepped[world] == 0:
            return
        group = maps.world_group[world]
        first = maps.group_joint[group]
        for local in range(maps.group_joint[group + 1] - first):
            index = first + local
            if is_prescribed(topology, maps, targets.body_flags, world, index):
                kind = maps.joint_kind[index]
                count = maps.joint_dof_count[index]
                joint = topology.world_joint[world] + local
                body = topology.world_body[world] + maps.joint_child[index]
                coord = topology.world_coord[world] + maps.joint_coord[index]
                dof = topology.world_dof[world] + maps.joint_dof[index]
                if kind == JointKind.SCALAR:
                    for k in range(count):
                        mode = targets.joint_target_mode[dof + k]
                        velocity = end_velocity(targets, coord + k, dof + k, dt)
                        joint_qd[dof + k] = float(velocity)
                        if mode == JointTargetMode.VELOCITY:
                            coordinate = wp.float64(targets.joint_q[coord + k]) + dt * velocity
                            joint_q[coord + k] = float(coordinate)
                        if mode == JointTargetMode.POSITION or mode == JointTargetMode.POSITION_VELOCITY:
                            joint_q[coord + k] = targets.joint_target_pos[dof + k]
                elif (kind == JointKind.BALL or kind == JointKind.FREE) and has_target(targets, dof, count):
                    for k in range(count):
                        joint_qd[dof + k] = float(end_rate(targets, dof + k))
                    if kind == JointKind.BALL:
                        turned = move_ball(targets, coord, dof, dt)
                        for k in range(4):
                            joint_q[coord + k] = float(turned[k])
                    else:
                        position, rotation = move_free(targets, joint, body, coord, dof, dt)
                        for k in range(3):
                            joint_q[coord + k] = float(position[k])
                        for k in range(4):
                            joint_q[coord + 3 + k] = float(rotation[k])

    return pull_kinematic


def push_kinematic_joints(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    rows: ExchangeRows,
    state_in: State,
    control: Control,
    dt: float,
) -> None:
    """Write the forces that accelerate kinematic joints into the rows, after all others."""
    if not model.has_kinematic_bodies:
        return
    launch_kernel(
        _push_kernel(rows.real),
        dim=worlds.size,
        inputs=[worlds, model.topology, maps, fill_struct(Targets, control, state_in, model), wp.float64(dt)],
        outputs=[rows.data],
        device=model.device,
    )


def pull_kinematic_joints(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    state_in: State,
    state_out: State,
    control: Control,
    world_stepped: wp.array,
    dt: float,
) -> None:
    """Write the prescribed state of kinematic joints into the new state, after all others."""
    if not model.has_kinematic_bodies:
        return
    launch_kernel(
        _pull_kernel(),
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            maps,
            fill_struct(Targets, control, state_in, model),
            wp.float64(dt),
            world_stepped,
        ],
        outputs=[state_out.joint_q, state_out.joint_qd],
        device=model.device,
    )
