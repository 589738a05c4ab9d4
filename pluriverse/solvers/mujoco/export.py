"""Saving a world as an MJCF file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.files import replace_file
from pluriverse.model import Model, poses
from pluriverse.solvers.mujoco.mapping.frames import as_wxyz
from pluriverse.solvers.mujoco.mapping.group import JointKind, MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_kernels import describe_worlds
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.joints import FAR, authored_limits
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.spec import SpecWriter
from pluriverse.solvers.mujoco.options import MujocoOptions


def save_world(model: Model, options: MujocoOptions, group: MujocoGroup, world: int, path: Path) -> None:
    """Write a world of a group into an MJCF file, with its initial state as the keyframe `initial`."""
    rows = ModelRows(model)
    row = int(np.searchsorted(group.worlds, world))
    plan: GroupPlan = replace(group.plan, worlds=np.array([world]))
    writer = SpecWriter(rows, options, plan, describe_worlds(rows, plan))
    spec = writer.write()
    _write_authored_solref(rows, plan, writer, world)
    _write_target_ranges(rows, group, spec, world)
    act = group.start_act[row]
    # MuJoCo 3.14 counts two activations of a motor as one when it checks them; zeros need not be written.
    activations = {"act": act} if act.any() else {}
    spec.add_key(
        name="initial",
        qpos=initial_qpos(rows, group, row),
        qvel=initial_qvel(rows, group, row),
        ctrl=initial_ctrl(rows, group, row),
        **activations,
    )
    spec.compile()
    text = spec.to_xml()
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8")


def initial_qpos(rows: ModelRows, group: MujocoGroup, row: int) -> np.ndarray:
    """Return `qpos` of the initial state of a world."""
    worlds = group.worlds[row : row + 1]
    q = rows.gather("joint_q", "coord", worlds)[0]
    inner = rows.gather("joint_X_p", "joint", worlds)[0]
    outer = rows.gather("joint_X_c", "joint", worlds)[0]
    qpos = group.model.qpos0.copy()
    for joint, kind in enumerate(group.joint_kind):
        coord, count = int(group.joint_coord[joint]), int(group.joint_coord_count[joint])
        target = slice(int(group.joint_qpos[joint]), int(group.joint_qpos[joint]) + count)
        if kind == JointKind.SCALAR:
            qpos[target] = q[coord : coord + count]
        elif kind == JointKind.BALL:
            frame = group.joint_rotation[row, joint]
            inverse = frame * [-1.0, -1.0, -1.0, 1.0]
            turned = poses.quat_multiply(poses.quat_multiply(frame, q[coord : coord + 4]), inverse)
            qpos[target] = as_wxyz(turned)
        elif kind == JointKind.FREE:
            pose = poses.compose(inner[joint], q[coord : coord + 7])
            pose = poses.compose(pose, poses.inverse(outer[joint]))
            qpos[target] = [*pose[:3], *as_wxyz(pose[3:])]
        elif kind == JointKind.FLOAT:
            pose = rows.gather("body_q", "body", worlds)[0, int(group.joint_child[joint])]
            qpos[target] = [*pose[:3], *as_wxyz(pose[3:])]
    return qpos


def initial_qvel(rows: ModelRows, group: MujocoGroup, row: int) -> np.ndarray:
    """Return `qvel` of the initial state of a world."""
    worlds = group.worlds[row : row + 1]
    q, qd = rows.gather("joint_q", "coord", worlds)[0], rows.gather("joint_qd", "dof", worlds)[0]
    com = rows.gather("body_com", "body", worlds)[0]
    qpos = initial_qpos(rows, group, row)
    qvel = np.zeros(group.model.nv)
    for joint, kind in enumerate(group.joint_kind):
        dof, count = int(group.joint_dof[joint]), int(group.joint_dof_count[joint])
        first = int(group.joint_qvel[joint])
        if kind == JointKind.SCALAR:
            qvel[first : first + count] = qd[dof : dof + count]
        elif kind == JointKind.BALL:
            coord = int(group.joint_coord[joint])
            inverse = q[coord : coord + 4] * [-1.0, -1.0, -1.0, 1.0]
            to_body = poses.quat_multiply(group.joint_rotation[row, joint], inverse)
            qvel[first : first + 3] = poses.rotate(to_body, qd[dof : dof + 3])
        elif kind in (JointKind.FREE, JointKind.FLOAT):
            at = int(group.joint_qpos[joint])
            rotation = np.roll(qpos[at + 3 : at + 7], -1)
            velocity = qd[dof : dof + 6]
            if kind == JointKind.FLOAT:
                velocity = rows.gather("body_qd", "body", worlds)[0, int(group.joint_child[joint])]
            linear, angular = velocity[:3], velocity[3:]
            arm = poses.rotate(rotation, com[int(group.joint_child[joint])])
            qvel[first : first + 3] = linear - np.cross(angular, arm)
            qvel[first + 3 : first + 6] = poses.rotate(rotation * [-1.0, -1.0, -1.0, 1.0], angular)
    return qvel


def initial_ctrl(rows: ModelRows, group: MujocoGroup, row: int) -> np.ndarray:
    """Return `ctrl` of the targets of the model."""
    worlds = group.worlds[row : row + 1]
    ctrl = np.zeros(group.model.nu)
    act = rows.gather("joint_act", "dof", worlds)[0]
    ke, kd, lower, upper = (
        rows.gather(f"joint_target_{name}", "dof", worlds)[0] for name in ("ke", "kd", "lower", "upper")
    )
    plan: GroupPlan = group.plan
    # A ball joint has no position target.
    is_scalar = np.append(np.array(plan.drives.axis_index, dtype=np.int64) < 0, False)
    has_stiffness = is_scalar[group.position_ctrl] & (ke > 0.0)
    for dof in np.flatnonzero(group.position_ctrl >= 0):
        target = np.clip(rows.gather("joint_target_pos", "dof", worlds)[0, dof], lower[dof], upper[dof])
        ctrl[group.position_ctrl[dof]] = target + (act[dof] / ke[dof] if has_stiffness[dof] else 0.0)
    for dof in np.flatnonzero(group.velocity_ctrl >= 0):
        extra = act[dof] / kd[dof] if not has_stiffness[dof] and kd[dof] > 0.0 else 0.0
        speed = rows.gather("joint_target_vel", "dof", worlds)[0, dof]
        if group.position_ctrl[dof] < 0:
            speed = np.clip(speed, lower[dof], upper[dof])
        ctrl[group.velocity_ctrl[dof]] = speed + extra
    for dof in np.flatnonzero(group.effort_ctrl >= 0):
        ctrl[group.effort_ctrl[dof]] = act[dof]
    if len(group.direct_ctrl):
        control: Any = rows.model.control()
        ctrl[group.direct_ctrl] = control.mujoco.ctrl.numpy()[group.direct_row[row]]
    return ctrl


def _write_authored_solref(rows: ModelRows, plan: GroupPlan, writer: SpecWriter, world: int) -> None:
    """Write the `solreflimit` of joints that have an authored one; MJCF cannot express the others."""
    worlds = np.array([world])
    is_raw, solref = authored_limits(rows, plan.structure, worlds)
    for index, (name, joint) in enumerate(zip(writer.names.joint, plan.structure.joints, strict=True)):
        element = writer.spec.joint(name)
        gains = [rows.gather(f"joint_limit_{gain}", "dof", worlds)[0, joint.dof] for gain in ("ke", "kd")]
        if is_raw[0, index] == 1 or (is_raw[0, index] == 2 and np.isnan(gains).all()):
            element.solref_limit = solref[0, index]
        if element.limited and max(np.abs(element.range)) >= FAR:
            element.range = np.clip(element.range, -FAR, FAR)


def _write_target_ranges(rows: ModelRows, group: MujocoGroup, spec: Any, world: int) -> None:
    """Write the bounds of targets as the `ctrlrange` of drives; in simulations the exchange clamps them."""
    import mujoco

    lower, upper = (
        rows.gather(f"joint_target_{side}", "dof", np.array([world]))[0] for side in ("lower", "upper")
    )
    actuators = list(spec.actuators)
    bounded = np.isfinite(lower) | np.isfinite(upper)
    for dof in np.flatnonzero(bounded):
        control = int(group.position_ctrl[dof])
        control = control if control >= 0 else int(group.velocity_ctrl[dof])
        if control >= 0:
            actuators[control].ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
            actuators[control].ctrlrange = np.clip([lower[dof], upper[dof]], -FAR, FAR)
