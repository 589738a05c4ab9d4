"""State exchange: write State and Control into the rows of MuJoCo, and its results back.

Reads   joint_q, joint_qd, body_f of the old state; control; joint frames, body_com, drive gains
Writes  rows before the step; joint_q, joint_qd of the new state after it

Rows keep the engine's precision from step to step; a State holds them rounded. So a joint whose public
coordinates are unchanged since the last step keeps its rows; any other restarts from the public coordinates.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import fill_struct, launch_kernel, made_once
from pluriverse.math.bounds import bounded
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.dense import has_wrench, packed_rows
from pluriverse.math.precision import kernel_module, quat_type, vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.model import Control, Model, State, Topology
from pluriverse.model.drive_effort import drive_feedforward
from pluriverse.solvers.mujoco.exchange.floating import pull_floating_joints, push_floating_joints
from pluriverse.solvers.mujoco.exchange.maps import (
    NA,
    NBODY,
    NQ,
    NU,
    NV,
    ExchangeMaps,
    ExchangeRows,
    row_functions,
    rows_struct,
)
from pluriverse.solvers.mujoco.mapping.group import JointKind
from pluriverse.types import BodyFlags


@wp.struct
class JointArrays:
    """Arrays of the model that the exchange reads; see `Model`."""

    joint_X_p: wp.array[wp.transform]  # noqa: N815
    joint_X_c: wp.array[wp.transform]  # noqa: N815
    body_com: wp.array[wp.vec3]
    body_flags: wp.array[int]
    joint_target_lower: wp.array[float]
    joint_target_upper: wp.array[float]
    joint_target_ke: wp.array[float]
    joint_target_kd: wp.array[float]
    joint_target_mode: wp.array[int]
    joint_effort_limit: wp.array[float]


@wp.struct
class InputArrays:
    """Arrays of the old state and the control; see `State` and `Control`."""

    joint_q: wp.array[float]
    joint_qd: wp.array[float]
    body_f: wp.array[wp.spatial_vector]
    joint_f: wp.array[float]
    joint_target_pos: wp.array[float]
    joint_target_vel: wp.array[float]
    joint_act: wp.array[float]
    direct_ctrl: wp.array[float]  # [actuator] control.mujoco.ctrl


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    vec3, quat = vec3_type(real), quat_type(real)
    Rows = rows_struct(real)
    convert, rotate = conversion_functions(real), rotation_functions(real)
    widen_vec3, widen_rotation = convert.widen_vec3, convert.widen_rotation
    read_vec3, read_rotation = convert.read_vec3, convert.read_rotation
    write_vec3, write_rotation = convert.write_vec3, convert.write_rotation
    quat_normalize = rotate.quat_normalize
    in_rows = row_functions(real)
    row_vec3, row_rotation = in_rows.row_vec3, in_rows.row_rotation
    set_row_vec3, set_row_rotation = in_rows.set_row_vec3, in_rows.set_row_rotation
    numbers_clear = packed_rows(real).numbers_clear
    module = kernel_module("pluriverse.solvers.mujoco.exchange.joints", real)

    @wp.func
    def same_vec3(values: wp.array[float], first: int, a: vec3) -> bool:
        return (
            values[first] == float(a[0])
            and values[first + 1] == float(a[1])
            and values[first + 2] == float(a[2])
        )

    @wp.func
    def same_rotation(values: wp.array[float], first: int, q: quat) -> bool:
        return same_vec3(values, first, vec3(q[0], q[1], q[2])) and values[first + 3] == float(q[3])

    @wp.func
    def public_pose(position: vec3, rotation: quat, frame_p: wp.transform, frame_c: wp.transform):
        """Return q = X_p^-1 X X_c of the pose X of the body."""
        back = wp.quat_inverse(widen_rotation(wp.transform_get_rotation(frame_p)))
        child = position + wp.quat_rotate(rotation, widen_vec3(wp.transform_get_translation(frame_c)))
        p = wp.quat_rotate(back, child - widen_vec3(wp.transform_get_translation(frame_p)))
        return p, back * rotation * widen_rotation(wp.transform_get_rotation(frame_c))

    @wp.func
    def effort_taker(maps: ExchangeMaps, model: JointArrays, index: int, kind: int, dof: int) -> int:
        """Return the actuator that exerts `joint_act` within its limit, -1 where the drive has no gain."""
        if maps.effort_ctrl[index] >= 0:
            return maps.effort_ctrl[index]
        has_stiffness = kind != JointKind.BALL and model.joint_target_ke[dof] > 0.0
        if maps.position_ctrl[index] >= 0 and has_stiffness:
            return maps.position_ctrl[index]
        if maps.velocity_ctrl[index] >= 0 and model.joint_target_kd[dof] > 0.0:
            return maps.velocity_ctrl[index]
        return -1

    @wp.kernel(enable_backward=False, module=module)
    def push_world(
        worlds: wp.array[int],
        topology: Topology,
        maps: ExchangeMaps,
        model: JointArrays,
        inputs: InputArrays,
        world_frozen: wp.array[int],  # [world]
        world_known: wp.array[int],  # [world] 1: the rows are what the last step left
        world_age: wp.array[int],  # [world] steps since the state was last read
        interval: int,  # take it in every so many steps; 0: only where rows are not known
        is_kept: int,  # 1: rows that are known hold this state and control already
        rows: Rows,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        if world_frozen[world] != 0:
            world_known[world] = 0
            return
        group = maps.world_group[world]
        if is_kept != 0 and maps.keeps_inputs[group] != 0 and world_known[world] != 0:
            return
        qpos0 = maps.world_start[world, NQ]
        qvel0 = maps.world_start[world, NV]
        ctrl0 = maps.world_start[world, NU]
        xfrc0 = 6 * maps.world_start[world, NBODY]
        coord0 = topology.world_coord[world]
        dof0 = topology.world_dof[world]
        joint0 = topology.world_joint[world]
        body0 = topology.world_body[world]

        numbers_clear(rows.xfrc_applied, xfrc0, 6 * maps.count[group, NBODY])
        numbers_clear(rows.qfrc_applied, qvel0, maps.count[group, NV])
        known = world_known[world] != 0
        age = world_age[world] + 1
        take = not known
        if interval > 0 and age >= interval:
            take = True
        if take:
            age = 0
        world_age[world] = age
        if not known:
            for k in range(maps.count[group, NV]):
                rows.qacc_warmstart[qvel0 + k] = real(0.0)
            act0 = maps.world_start[world, NA]
            for k in range(maps.count[group, NA]):
                rows.act[act0 + k] = real(maps.start_act[act0 + k])
            rows.time[world] = real(0.0)

        body_first = maps.group_body[group]
        pushed_count = maps.group_body[group + 1] - body_first
        if not has_wrench(inputs.body_f, body0, pushed_count):
            pushed_count = 0  # as nearly always, and reading all would take as long as the rest
        for local_body in range(pushed_count):
            mj = maps.body_mj[body_first + local_body]
            if mj >= 0 and model.body_flags[body0 + local_body] & BodyFlags.KINEMATIC == 0:
                force = inputs.body_f[body0 + local_body]
                for k in range(6):
                    rows.xfrc_applied[xfrc0 + 6 * mj + k] = real(force[k])

        joint_first = maps.group_joint[group]
        for local_joint in range(maps.group_joint[group + 1] - joint_first):
            index = joint_first + local_joint
            if maps.joint_dof_count[index] == 0:
                continue
            kind = maps.joint_kind[index]
            joint = joint0 + local_joint
            coord = coord0 + maps.joint_coord[index]
            dof = dof0 + maps.joint_dof[index]
            qpos = qpos0 + maps.joint_qpos[index]
            qvel = qvel0 + maps.joint_qvel[index]
            if kind == JointKind.SCALAR:
                if take:
                    for k in range(maps.joint_dof_count[index]):
                        if not known or float(rows.qpos[qpos + k]) != inputs.joint_q[coord + k]:
                            rows.qpos[qpos + k] = real(inputs.joint_q[coord + k])
                        if not known or float(rows.qvel[qvel + k]) != inputs.joint_qd[dof + k]:
                            rows.qvel[qvel + k] = real(inputs.joint_qd[dof + k])
            elif kind == JointKind.BALL:
                frame = widen_rotation(maps.joint_rotation[joint])
                inner = wp.quat_inverse(frame) * row_rotation(rows.qpos, qpos) * frame
                same = known and same_rotation(inputs.joint_q, coord, inner)
                if take and not same:
                    inner = read_rotation(inputs.joint_q, coord)
                    set_row_rotation(rows.qpos, qpos, frame * inner * wp.quat_inverse(frame))
                to_mujoco = frame * wp.quat_inverse(inner)
                rate = wp.quat_rotate(wp.quat_inverse(to_mujoco), row_vec3(rows.qvel, qvel))
                if take and not (same and same_vec3(inputs.joint_qd, dof, rate)):
                    set_row_vec3(rows.qvel, qvel, wp.quat_rotate(to_mujoco, read_vec3(inputs.joint_qd, dof)))
                if model.body_flags[body0 + maps.joint_child[index]] & BodyFlags.KINEMATIC == 0:
                    torque = read_vec3(inputs.joint_f, dof)
                    drive = maps.group_dof[group] + maps.joint_dof[index]
                    for k in range(3):
                        if effort_taker(maps, model, drive + k, kind, dof + k) < 0:
                            torque[k] += real(
                                drive_feedforward(
                                    model.joint_target_mode[dof + k],
                                    model.joint_effort_limit[dof + k],
                                    inputs.joint_act[dof + k],
                                )
                            )
                    set_row_vec3(rows.qfrc_applied, qvel, wp.quat_rotate(to_mujoco, torque))
            elif kind == JointKind.FREE:
                body = body0 + maps.joint_child[index]
                frame_p, frame_c = model.joint_X_p[joint], model.joint_X_c[joint]
                rotation = row_rotation(rows.qpos, qpos + 3)
                p, q = public_pose(row_vec3(rows.qpos, qpos), rotation, frame_p, frame_c)
                same = known and same_vec3(inputs.joint_q, coord, p)
                same = same and same_rotation(inputs.joint_q, coord + 3, q)
                if take and not same:
                    rotation_p = widen_rotation(wp.transform_get_rotation(frame_p))
                    rotation = rotation_p * read_rotation(inputs.joint_q, coord + 3)
                    rotation = quat_normalize(
                        rotation * wp.quat_inverse(widen_rotation(wp.transform_get_rotation(frame_c)))
                    )
                    position = widen_vec3(wp.transform_get_translation(frame_p))
                    position += wp.quat_rotate(rotation_p, read_vec3(inputs.joint_q, coord))
                    position -= wp.quat_rotate(rotation, widen_vec3(wp.transform_get_translation(frame_c)))
                    set_row_vec3(rows.qpos, qpos, position)
                    set_row_rotation(rows.qpos, qpos + 3, rotation)
                arm = wp.quat_rotate(rotation, widen_vec3(model.body_com[body]))
                omega = wp.quat_rotate(rotation, row_vec3(rows.qvel, qvel + 3))
                v = row_vec3(rows.qvel, qvel) + wp.cross(omega, arm)
                same = same and same_vec3(inputs.joint_qd, dof, v)
                if take and not (same and same_vec3(inputs.joint_qd, dof + 3, omega)):
                    omega = read_vec3(inputs.joint_qd, dof + 3)
                    set_row_vec3(rows.qvel, qvel, read_vec3(inputs.joint_qd, dof) - wp.cross(omega, arm))
                    set_row_vec3(rows.qvel, qvel + 3, wp.quat_rotate(wp.quat_inverse(rotation), omega))
                mj = maps.body_mj[body_first + maps.joint_child[index]]
                if model.body_flags[body] & BodyFlags.KINEMATIC == 0:
                    for k in range(6):
                        force_index = xfrc0 + 6 * mj + k
                        rows.xfrc_applied[force_index] = rows.xfrc_applied[force_index] + real(
                            inputs.joint_f[dof + k]
                            + drive_feedforward(
                                model.joint_target_mode[dof + k],
                                model.joint_effort_limit[dof + k],
                                inputs.joint_act[dof + k],
                            )
                        )

        dof_first = maps.group_dof[group]
        for local_dof in range(maps.group_dof[group + 1] - dof_first):
            index = dof_first + local_dof
            dof = dof0 + local_dof
            local_joint = maps.dof_joint[index]
            joint_index = joint_first + local_joint
            kind = maps.joint_kind[joint_index]
            effort = inputs.joint_act[dof]
            position_ctrl = maps.position_ctrl[index]
            velocity_ctrl = maps.velocity_ctrl[index]
            effort_ctrl = maps.effort_ctrl[index]
            taker = effort_taker(maps, model, index, kind, dof)
            if effort_ctrl >= 0:
                rows.ctrl[ctrl0 + effort_ctrl] = real(effort)
            if position_ctrl >= 0:
                target = real(
                    bounded(
                        inputs.joint_target_pos[dof],
                        model.joint_target_lower[dof],
                        model.joint_target_upper[dof],
                    )
                )
                if taker == position_ctrl:
                    target += real(effort) / real(model.joint_target_ke[dof])
                rows.ctrl[ctrl0 + position_ctrl] = target
            if velocity_ctrl >= 0:
                speed = inputs.joint_target_vel[dof]
                if position_ctrl < 0:
                    speed = bounded(speed, model.joint_target_lower[dof], model.joint_target_upper[dof])
                target = real(speed)
                if taker == velocity_ctrl:
                    target += real(effort) / real(model.joint_target_kd[dof])
                rows.ctrl[ctrl0 + velocity_ctrl] = target
            if model.body_flags[body0 + maps.joint_child[joint_index]] & BodyFlags.KINEMATIC == 0:
                qvel = qvel0 + maps.dof_qvel[index]
                if kind == JointKind.SCALAR:
                    if taker >= 0:
                        effort = float(0.0)
                    rows.qfrc_applied[qvel] = real(inputs.joint_f[dof]) + real(
                        drive_feedforward(model.joint_target_mode[dof], model.joint_effort_limit[dof], effort)
                    )

        for entry in range(maps.direct_start[world], maps.direct_start[world + 1]):
            rows.ctrl[ctrl0 + maps.direct_ctrl[entry]] = real(inputs.direct_ctrl[maps.direct_row[entry]])

    @wp.kernel(enable_backward=False, module=module)
    def pull_world(
        worlds: wp.array[int],
        topology: Topology,
        maps: ExchangeMaps,
        model: JointArrays,
        rows: Rows,
        joint_q_in: wp.array[float],  # [coord] m, rad
        joint_qd_in: wp.array[float],  # [dof] m/s, rad/s
        world_stepped: wp.array[int],  # [world] 1: the rows hold a new, finite state
        joint_q: wp.array[float],  # [coord] m, rad
        joint_qd: wp.array[float],  # [dof] m/s, rad/s
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        group = maps.world_group[world]
        qpos0 = maps.world_start[world, NQ]
        qvel0 = maps.world_start[world, NV]
        coord0 = topology.world_coord[world]
        dof0 = topology.world_dof[world]
        joint_first = maps.group_joint[group]
        stepped = world_stepped[world] != 0
        for local_joint in range(maps.group_joint[group + 1] - joint_first):
            index = joint_first + local_joint
            if maps.joint_dof_count[index] == 0:
                continue
            kind = maps.joint_kind[index]
            joint = topology.world_joint[world] + local_joint
            coord = coord0 + maps.joint_coord[index]
            dof = dof0 + maps.joint_dof[index]
            qpos = qpos0 + maps.joint_qpos[index]
            qvel = qvel0 + maps.joint_qvel[index]
            coord_count = maps.joint_dof_count[index]
            if kind == JointKind.BALL or kind == JointKind.FREE or kind == JointKind.FLOAT:
                coord_count += 1
            child = topology.world_body[world] + maps.joint_child[index]
            if not stepped or kind == JointKind.FLOAT or model.body_flags[child] & BodyFlags.KINEMATIC != 0:
                for k in range(coord_count):
                    joint_q[coord + k] = joint_q_in[coord + k]
                for k in range(maps.joint_dof_count[index]):
                    joint_qd[dof + k] = joint_qd_in[dof + k]
            elif kind == JointKind.SCALAR:
                for k in range(coord_count):
                    joint_q[coord + k] = float(rows.qpos[qpos + k])
                    joint_qd[dof + k] = float(rows.qvel[qvel + k])
            elif kind == JointKind.BALL:
                frame = widen_rotation(maps.joint_rotation[joint])
                inner = wp.quat_inverse(frame) * row_rotation(rows.qpos, qpos) * frame
                to_mujoco = frame * wp.quat_inverse(inner)
                rate = wp.quat_rotate(wp.quat_inverse(to_mujoco), row_vec3(rows.qvel, qvel))
                write_rotation(joint_q, coord, inner)
                write_vec3(joint_qd, dof, rate)
            elif kind == JointKind.FREE:
                body = topology.world_body[world] + maps.joint_child[index]
                rotation = row_rotation(rows.qpos, qpos + 3)
                p, q = public_pose(
                    row_vec3(rows.qpos, qpos), rotation, model.joint_X_p[joint], model.joint_X_c[joint]
                )
                arm = wp.quat_rotate(rotation, widen_vec3(model.body_com[body]))
                omega = wp.quat_rotate(rotation, row_vec3(rows.qvel, qvel + 3))
                v = row_vec3(rows.qvel, qvel) + wp.cross(omega, arm)
                write_vec3(joint_q, coord, p)
                write_rotation(joint_q, coord + 3, q)
                write_vec3(joint_qd, dof, v)
                write_vec3(joint_qd, dof + 3, omega)

    return SimpleNamespace(push_world=push_world, pull_world=pull_world)


def push_worlds(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    rows: ExchangeRows,
    state_in: State,
    control: Control,
    world_frozen: wp.array,
    world_known: wp.array,
    world_age: wp.array,
    *,
    interval: int,
    is_kept: bool,
) -> None:
    """Write the inputs of a step into the rows; frozen worlds are skipped.

    With `is_kept`, so are worlds whose rows are those that the last step left.
    """
    direct = control.custom_arrays.get("mujoco:ctrl")
    # Of no actuator: not read.
    other = SimpleNamespace(direct_ctrl=control.joint_act if direct is None else direct)
    inputs = fill_struct(InputArrays, other, control, state_in)
    launch_kernel(
        _kernels(rows.real).push_world,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            maps,
            fill_struct(JointArrays, model),
            inputs,
            world_frozen,
            world_known,
            world_age,
            interval,
            int(is_kept),
        ],
        outputs=[rows.data],
        device=model.device,
    )
    push_floating_joints(model, worlds, maps, rows, state_in, control, world_frozen, world_age)


def pull_worlds(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    rows: ExchangeRows,
    state_in: State,
    state_out: State,
    world_stepped: wp.array,
) -> None:
    """Write the joint state of `state_out` from the rows; worlds that were not stepped keep `state_in`."""
    launch_kernel(
        _kernels(rows.real).pull_world,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            maps,
            fill_struct(JointArrays, model),
            rows.data,
            state_in.joint_q,
            state_in.joint_qd,
            world_stepped,
        ],
        outputs=[state_out.joint_q, state_out.joint_qd],
        device=model.device,
    )
    pull_floating_joints(model, worlds, maps, rows, state_out, world_stepped)
