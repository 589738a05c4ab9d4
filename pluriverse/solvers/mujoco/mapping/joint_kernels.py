"""Fields of joints: losses, armature, ranges and drives of the worlds of a group, one world per thread.

Reads   joint_armature, _damping, _friction; joint_limit_*, joint_effort_limit; joint_target_*
Writes  dof_armature, _damping, _frictionloss; jnt_range, _actfrcrange, _solref; actuator_gainprm, _biasprm,
        _gear, _forcerange

The actuators of drives are those of the table in `drives`; `solref` of limits is derived in `solref`.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.exchange.contact_mixing import mixing_functions
from pluriverse.solvers.mujoco.mapping.body_kernels import assign_inplace, to_device
from pluriverse.solvers.mujoco.mapping.drives import POSITION, VELOCITY, DrivePlan
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.joints import (
    EFFORT_UNLIMITED,
    FAR,
    KINEMATIC_ARMATURE,
    RANGE_MIN,
    authored_limits,
)
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.stages import field_writers, fields_struct, rotated, selected_world
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan, dof_joints, public_dofs
from pluriverse.types import BodyFlags, JointTargetMode

_FAR = wp.constant(wp.float64(FAR))
_RANGE_MIN = wp.constant(wp.float64(RANGE_MIN))
_UNLIMITED = wp.constant(wp.float64(EFFORT_UNLIMITED))
_PRESCRIBED = wp.constant(wp.float64(KINEMATIC_ARMATURE))
_POSITION = wp.constant(POSITION)
_VELOCITY = wp.constant(VELOCITY)
# Number of gain and bias parameters of an actuator in `mjModel`, and of gear axes.
_PRM = wp.constant(10)
_GEAR = wp.constant(6)

solref_of_gains = mixing_functions(wp.float64).solref_of_gains


@wp.struct
class JointMaps:
    """Sources of MuJoCo's joints, degrees of freedom and drives."""

    joint_dof: wp.array[int]  # [njnt] world-local public degree of freedom
    joint_qvel: wp.array[int]  # [njnt]
    is_scalar: wp.array[int]  # [njnt]
    limited: wp.array[int]  # [njnt] whether it has a range
    force_limited: wp.array[int]  # [njnt] whether an effort limit bounds it
    dof_public: wp.array[int]  # [nv] world-local
    dof_child: wp.array[int]  # [nv] world-local body that moves
    # drives, [drive]
    drive_control: wp.array[int]
    drive_dof: wp.array[int]
    drive_joint: wp.array[int]  # world-local
    drive_axis_index: wp.array[int]  # -1: not of a ball joint
    drive_is_bounded: wp.array[int]  # whether the effort limit bounds it, and not its joint
    actuator_count: int
    public_count: int  # joints of a world
    # limits, [row joint]
    limit_is_raw: wp.array[int]  # 1: its `solref` is `limit_solref`, 2: if it has no gains
    limit_solref: wp.array[wp.float64]  # [2 row joint] what the asset says
    limit_softness: wp.array[wp.float64]  # 1 - dmax


def make_joint_maps(plan: StructurePlan, drives: DrivePlan, actuator_count: int, device: Any) -> JointMaps:
    """Return the maps of a group on a device, without those of limits."""
    scalar = [joint.kind in (MujocoJoint.SLIDE, MujocoJoint.HINGE) for joint in plan.joints]
    maps = JointMaps()
    maps.actuator_count, maps.public_count = actuator_count, plan.template.node_count
    joints = np.array(drives.joint, dtype=np.int64)
    for name, values in {
        "joint_dof": [joint.dof for joint in plan.joints],
        "joint_qvel": [joint.qvel for joint in plan.joints],
        "is_scalar": scalar,
        "dof_public": public_dofs(plan),
        "dof_child": plan.template.joint_child[dof_joints(plan)],
        "drive_control": drives.control,
        "drive_dof": drives.dof,
        "drive_joint": [plan.joints[joint].joint for joint in joints],
        "drive_axis_index": drives.axis_index,
        "drive_is_bounded": drives.is_bounded,
    }.items():
        setattr(maps, name, to_device(values, device))
    return maps


def assign_limited(maps: JointMaps, limited: np.ndarray, force_limited: np.ndarray, device: Any) -> None:
    """Write into maps which joints have limits, and which an effort limit bounds, shape [njnt] each."""
    assign_inplace(maps, "limited", limited.astype(np.int32), wp.int32, device)
    assign_inplace(maps, "force_limited", force_limited.astype(np.int32), wp.int32, device)


def assign_limits(maps: JointMaps, rows: ModelRows, group: MujocoGroup, device: Any) -> None:
    """Write the modes that set the `solref` of limits (custom attributes), and which joints have limits."""
    assign_limited(maps, group.model.jnt_limited, group.model.jnt_actfrclimited, device)
    is_raw, authored = authored_limits(rows, group.plan.structure, group.worlds)
    assign_inplace(maps, "limit_is_raw", is_raw.reshape(-1).astype(np.int32), wp.int32, device)
    assign_inplace(maps, "limit_solref", authored.reshape(-1), wp.float64, device)
    softness = 1.0 - group.value("jnt_solimp")[:, :, 1]
    assign_inplace(maps, "limit_softness", softness.reshape(-1), wp.float64, device)


@made_once
def joint_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, write = fields_struct(real), field_writers(real).write
    module = kernel_module("pluriverse.solvers.mujoco.mapping.joint_kernels", real)

    @wp.kernel(enable_backward=False, module=module)
    def update_dofs(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: JointMaps,
        body_flags: wp.array[int],  # [body]
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        joint_damping: wp.array[float],  # [dof] N s/m or N m s/rad
        joint_friction: wp.array[float],  # [dof] N or N m
        fields: fields_type,
    ):
        """Write losses and armature of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.dof_public.shape[0]
        for dof in range(count):
            flat = topology.world_dof[world] + maps.dof_public[dof]
            armature = wp.float64(joint_armature[flat])
            if (body_flags[topology.world_body[world] + maps.dof_child[dof]] & BodyFlags.KINEMATIC) != 0:
                armature = _PRESCRIBED
            write(fields.dof_armature, row * count + dof, armature)
            write(fields.dof_damping, row * count + dof, wp.float64(joint_damping[flat]))
            write(fields.dof_frictionloss, row * count + dof, wp.float64(joint_friction[flat]))

    @wp.kernel(enable_backward=False, module=module)
    def update_ranges(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: JointMaps,
        joint_limit_lower: wp.array[float],  # [dof] m or rad
        joint_limit_upper: wp.array[float],  # [dof] m or rad
        joint_effort_limit: wp.array[float],  # [dof] N or N m
        fields: fields_type,
    ):
        """Write the ranges of the joints of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.joint_dof.shape[0]
        for joint in range(count):
            flat = topology.world_dof[world] + maps.joint_dof[joint]
            entry = 2 * (row * count + joint)
            if maps.limited[joint] != 0:
                lower = wp.max(wp.float64(joint_limit_lower[flat]), -_FAR)
                upper = wp.min(wp.float64(joint_limit_upper[flat]), _FAR)
                if upper - lower < _RANGE_MIN:
                    middle = wp.float64(0.5) * (lower + upper)
                    lower = middle - wp.float64(0.5) * _RANGE_MIN
                    upper = middle + wp.float64(0.5) * _RANGE_MIN
                write(fields.jnt_range, entry, lower)
                write(fields.jnt_range, entry + 1, upper)
            if maps.force_limited[joint] != 0:
                effort = wp.min(wp.float64(joint_effort_limit[flat]), _UNLIMITED)
                write(fields.jnt_actfrcrange, entry, -effort)
                write(fields.jnt_actfrcrange, entry + 1, effort)

    @wp.kernel(enable_backward=False, module=module)
    def update_drives(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: JointMaps,
        joint_target_mode: wp.array[int],  # [dof] `JointTargetMode`
        joint_target_ke: wp.array[float],  # [dof] N/m or N m/rad
        joint_target_kd: wp.array[float],  # [dof] N s/m or N m s/rad
        joint_effort_limit: wp.array[float],  # [dof] N or N m
        row_rotation: wp.array[wp.quatd],  # [row joint] of its frame; empty where frames stay
        fields: fields_type,
    ):
        """Write the gains of the drives of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        for drive in range(maps.drive_dof.shape[0]):
            flat = topology.world_dof[world] + maps.drive_dof[drive]
            control = maps.drive_control[drive]
            drive_axis_index = maps.drive_axis_index[drive]
            ke = wp.float64(joint_target_ke[flat])
            kd = wp.float64(joint_target_kd[flat])
            if drive_axis_index >= 0:
                ke = wp.float64(0.0)  # a ball joint has no position target
            gain = wp.float64(1.0)
            stiffness = wp.float64(0.0)
            damping = wp.float64(0.0)
            if control == _POSITION:
                gain = ke
                stiffness = -ke
                if joint_target_mode[flat] == JointTargetMode.POSITION:
                    damping = -kd
            elif control == _VELOCITY:
                gain = kd
                damping = -kd
            entry = row * maps.actuator_count + drive
            write(fields.actuator_gainprm, _PRM * entry, gain)
            write(fields.actuator_biasprm, _PRM * entry + 1, stiffness)
            write(fields.actuator_biasprm, _PRM * entry + 2, damping)
            if maps.drive_is_bounded[drive] != 0:
                effort = wp.min(wp.float64(joint_effort_limit[flat]), _UNLIMITED)
                write(fields.actuator_forcerange, 2 * entry, -effort)
                write(fields.actuator_forcerange, 2 * entry + 1, effort)
            if drive_axis_index >= 0 and row_rotation.shape[0] > 0:
                unit = wp.vec3d()
                unit[drive_axis_index] = wp.float64(1.0)
                rotation = row_rotation[row * maps.public_count + maps.drive_joint[drive]]
                axis = rotated(rotation, unit)
                for k in range(3):
                    write(fields.actuator_gear, _GEAR * entry + k, axis[k])

    @wp.kernel(enable_backward=False, module=module)
    def update_limits(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: JointMaps,
        joint_limit_ke: wp.array[float],  # [dof] N/m or N m/rad, NaN: not given
        joint_limit_kd: wp.array[float],  # [dof] N s/m or N m s/rad, NaN: not given
        inverse_weight: wp.array[real],  # [row nv] 1/kg or 1/(kg m^2)
        fields: fields_type,
    ):
        """Write the `solref` of the joint limits of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.joint_dof.shape[0]
        dof_count = maps.dof_public.shape[0]
        for joint in range(count):
            entry = row * count + joint
            flat = topology.world_dof[world] + maps.joint_dof[joint]
            ke = wp.float64(joint_limit_ke[flat])
            kd = wp.float64(joint_limit_kd[flat])
            weight = wp.float64(inverse_weight[row * dof_count + maps.joint_qvel[joint]])
            solref = solref_of_gains(ke, kd, weight * maps.limit_softness[entry])
            is_raw = maps.limit_is_raw[entry]
            if is_raw == 1 or (is_raw == 2 and wp.isnan(ke) and wp.isnan(kd)):
                solref = wp.vec2d(maps.limit_solref[2 * entry], maps.limit_solref[2 * entry + 1])
            write(fields.jnt_solref, 2 * entry, solref[0])
            write(fields.jnt_solref, 2 * entry + 1, solref[1])

    return SimpleNamespace(
        update_dofs=update_dofs,
        update_ranges=update_ranges,
        update_drives=update_drives,
        update_limits=update_limits,
    )
