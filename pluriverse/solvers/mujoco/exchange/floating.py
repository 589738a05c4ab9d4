"""Exchange of free joints below a body: in MuJoCo a body floats relative to the world only.

Reads   body poses and velocities of the old state; rows after the step
Writes  rows before the step; joint_q, joint_qd of the new state after it

The public coordinates of such a joint are relative to the frame F of the joint in its parent, which moves:
with the pose X of the child, q = F^-1 X X_c, and its velocities are relative to F,

    v = R_F^T (v_C - v_P - w_P x (c - p_P)),   w = R_F^T (w_C - w_P),

at the centre of mass c of the child. Its force acts on the child and, reversed, on the parent.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.forward_kinematics import eval_fk_of_worlds
from pluriverse.launch import fill_struct, launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import kernel_module, vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.model import Control, Model, State, Topology
from pluriverse.model.drive_effort import drive_feedforward
from pluriverse.solvers.mujoco.exchange.maps import (
    NBODY,
    NQ,
    NV,
    ExchangeMaps,
    ExchangeRows,
    row_functions,
    rows_struct,
)
from pluriverse.solvers.mujoco.mapping.group import JointKind
from pluriverse.types import BodyFlags


@wp.struct
class FloatingModel:
    """Arrays of the model that the exchange reads; see `Model`."""

    joint_X_p: wp.array[wp.transform]  # noqa: N815
    joint_X_c: wp.array[wp.transform]  # noqa: N815
    body_com: wp.array[wp.vec3]
    body_flags: wp.array[int]
    joint_target_mode: wp.array[int]
    joint_effort_limit: wp.array[float]


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    Rows = rows_struct(real)
    convert, rotate = conversion_functions(real), rotation_functions(real)
    widen_vec3, widen_rotation, read_vec3 = convert.widen_vec3, convert.widen_rotation, convert.read_vec3
    write_vec3, write_rotation = convert.write_vec3, convert.write_rotation
    quat_normalize = rotate.quat_normalize
    in_rows = row_functions(real)
    row_vec3, row_rotation = in_rows.row_vec3, in_rows.row_rotation
    set_row_vec3, set_row_rotation = in_rows.set_row_vec3, in_rows.set_row_rotation
    module = kernel_module("pluriverse.solvers.mujoco.exchange.floating", real)

    @wp.func
    def add_wrench(values: wp.array(dtype=real), first: int, force: vec3, torque: vec3):
        for k in range(3):
            values[first + k] = values[first + k] + force[k]
            values[first + 3 + k] = values[first + 3 + k] + torque[k]

    @wp.func
    def feedforward(model: FloatingModel, joint_act: wp.array[float], dof: int) -> float:
        return drive_feedforward(model.joint_target_mode[dof], model.joint_effort_limit[dof], joint_act[dof])

    @wp.kernel(enable_backward=False, module=module)
    def push_floating(
        worlds: wp.array[int],
        topology: Topology,
        maps: ExchangeMaps,
        model: FloatingModel,
        body_q: wp.array[wp.transform],  # [body] m, xyzw
        body_qd: wp.array[wp.spatial_vectorf],  # [body] m/s, rad/s, world axes
        joint_f: wp.array[float],  # [dof] N, N m
        joint_act: wp.array[float],  # [dof] N, N m
        world_frozen: wp.array[int],  # [world]
        world_age: wp.array[int],  # [world] 0: the state is read
        rows: Rows,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        if world_frozen[world] != 0:
            return
        group = maps.world_group[world]
        body0 = topology.world_body[world]
        joint_first, body_first = maps.group_joint[group], maps.group_body[group]
        xfrc0 = 6 * maps.world_start[world, NBODY]
        for local_joint in range(maps.group_joint[group + 1] - joint_first):
            index = joint_first + local_joint
            if maps.joint_kind[index] == JointKind.FLOAT:
                body = body0 + maps.joint_child[index]
                parent = body0 + maps.joint_parent[index]
                qpos = maps.world_start[world, NQ] + maps.joint_qpos[index]
                qvel = maps.world_start[world, NV] + maps.joint_qvel[index]
                dof = topology.world_dof[world] + maps.joint_dof[index]
                rotation = widen_rotation(wp.transform_get_rotation(body_q[body]))
                arm = wp.quat_rotate(rotation, widen_vec3(model.body_com[body]))
                if world_age[world] == 0:
                    position = widen_vec3(wp.transform_get_translation(body_q[body]))
                    omega = widen_vec3(wp.spatial_bottom(body_qd[body]))
                    origin_velocity = widen_vec3(wp.spatial_top(body_qd[body])) - wp.cross(omega, arm)
                    spin = wp.quat_rotate_inv(rotation, omega)
                    set_row_vec3(rows.qpos, qpos, position)
                    set_row_rotation(rows.qpos, qpos + 3, rotation)
                    set_row_vec3(rows.qvel, qvel, origin_velocity)
                    set_row_vec3(rows.qvel, qvel + 3, spin)
                if model.body_flags[body] & BodyFlags.KINEMATIC == 0:
                    joint = topology.world_joint[world] + local_joint
                    parent_rotation = widen_rotation(
                        wp.transform_get_rotation(body_q[parent])
                    ) * widen_rotation(wp.transform_get_rotation(model.joint_X_p[joint]))
                    force, torque = read_vec3(joint_f, dof), read_vec3(joint_f, dof + 3)
                    for k in range(3):
                        force[k] += real(feedforward(model, joint_act, dof + k))
                        torque[k] += real(feedforward(model, joint_act, dof + 3 + k))
                    force = wp.quat_rotate(parent_rotation, force)
                    torque = wp.quat_rotate(parent_rotation, torque)
                    center = widen_vec3(wp.transform_get_translation(body_q[body])) + arm
                    parent_center = widen_vec3(wp.transform_point(body_q[parent], model.body_com[parent]))
                    add_wrench(
                        rows.xfrc_applied,
                        xfrc0 + 6 * maps.body_mj[body_first + maps.joint_child[index]],
                        force,
                        torque,
                    )
                    if model.body_flags[parent] & BodyFlags.KINEMATIC == 0:
                        add_wrench(
                            rows.xfrc_applied,
                            xfrc0 + 6 * maps.body_mj[body_first + maps.joint_parent[index]],
                            -force,
                            -torque - wp.cross(center - parent_center, force),
                        )

    @wp.kernel(enable_backward=False, module=module)
    def pull_floating(
        worlds: wp.array[int],
        topology: Topology,
        maps: ExchangeMaps,
        model: FloatingModel,
        rows: Rows,
        body_q: wp.array[wp.transform],  # [body] m, xyzw
        body_qd: wp.array[wp.spatial_vectorf],  # [body] m/s, rad/s, world axes
        world_stepped: wp.array[int],  # [world] 1: the rows hold a new state
        joint_q: wp.array[float],  # [coord] m, rad
        joint_qd: wp.array[float],  # [dof] m/s, rad/s
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        if world_stepped[world] == 0:
            return
        group = maps.world_group[world]
        body0 = topology.world_body[world]
        joint_first = maps.group_joint[group]
        for local_joint in range(maps.group_joint[group + 1] - joint_first):
            index = joint_first + local_joint
            body = body0 + maps.joint_child[index]
            if (
                maps.joint_kind[index] == JointKind.FLOAT
                and model.body_flags[body] & BodyFlags.KINEMATIC == 0
            ):
                parent = body0 + maps.joint_parent[index]
                joint = topology.world_joint[world] + local_joint
                qpos = maps.world_start[world, NQ] + maps.joint_qpos[index]
                qvel = maps.world_start[world, NV] + maps.joint_qvel[index]
                coord = topology.world_coord[world] + maps.joint_coord[index]
                dof = topology.world_dof[world] + maps.joint_dof[index]
                frame_p, frame_c = model.joint_X_p[joint], model.joint_X_c[joint]
                parent_rotation = widen_rotation(wp.transform_get_rotation(body_q[parent]))
                parent_position = widen_vec3(wp.transform_get_translation(body_q[parent]))
                frame_rotation = parent_rotation * widen_rotation(wp.transform_get_rotation(frame_p))
                origin = parent_position + wp.quat_rotate(
                    parent_rotation, widen_vec3(wp.transform_get_translation(frame_p))
                )
                rotation = row_rotation(rows.qpos, qpos + 3)
                body_position = row_vec3(rows.qpos, qpos)
                tip = body_position + wp.quat_rotate(
                    rotation, widen_vec3(wp.transform_get_translation(frame_c))
                )
                p = wp.quat_rotate_inv(frame_rotation, tip - origin)
                q = quat_normalize(
                    wp.quat_inverse(frame_rotation)
                    * rotation
                    * widen_rotation(wp.transform_get_rotation(frame_c))
                )
                arm = wp.quat_rotate(rotation, widen_vec3(model.body_com[body]))
                omega = wp.quat_rotate(rotation, row_vec3(rows.qvel, qvel + 3))
                velocity = row_vec3(rows.qvel, qvel) + wp.cross(omega, arm)
                parent_center = parent_position + wp.quat_rotate(
                    parent_rotation, widen_vec3(model.body_com[parent])
                )
                parent_omega = widen_vec3(wp.spatial_bottom(body_qd[parent]))
                carried = widen_vec3(wp.spatial_top(body_qd[parent])) + wp.cross(
                    parent_omega, body_position + arm - parent_center
                )
                v = wp.quat_rotate_inv(frame_rotation, velocity - carried)
                w = wp.quat_rotate_inv(frame_rotation, omega - parent_omega)
                write_vec3(joint_q, coord, p)
                write_rotation(joint_q, coord + 3, q)
                write_vec3(joint_qd, dof, v)
                write_vec3(joint_qd, dof + 3, w)

    return SimpleNamespace(push_floating=push_floating, pull_floating=pull_floating)


def push_floating_joints(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    rows: ExchangeRows,
    state_in: State,
    control: Control,
    world_frozen: wp.array,
    world_age: wp.array,
) -> None:
    """Write free joints below a body into the rows, after all others, and compute the body poses for that."""
    if maps.float_depth == 0:
        return
    eval_fk_of_worlds(model, worlds, state_in)
    launch_kernel(
        _kernels(rows.real).push_floating,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            maps,
            fill_struct(FloatingModel, model),
            state_in.body_q,
            state_in.body_qd,
            control.joint_f,
            control.joint_act,
            world_frozen,
            world_age,
        ],
        outputs=[rows.data],
        device=model.device,
    )


def pull_floating_joints(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    rows: ExchangeRows,
    state_out: State,
    world_stepped: wp.array,
) -> None:
    """Write free joints below a body into the new state, after all others, from the root outwards."""
    for _ in range(maps.float_depth):
        eval_fk_of_worlds(model, worlds, state_out)
        launch_kernel(
            _kernels(rows.real).pull_floating,
            dim=worlds.size,
            inputs=[
                worlds,
                model.topology,
                maps,
                fill_struct(FloatingModel, model),
                rows.data,
                state_out.body_q,
                state_out.body_qd,
                world_stepped,
            ],
            outputs=[state_out.joint_q, state_out.joint_qd],
            device=model.device,
        )
