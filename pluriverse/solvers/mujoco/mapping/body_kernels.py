"""Fields of bodies: gravity, mass properties and frames of the worlds of a group, one world per thread.

Reads   gravity; body_mass, body_com, body_inertia; joint_X_p, joint_X_c, joint_axis
Writes  opt.gravity; body_mass, body_ipos, body_iquat, body_inertia; body_pos, body_quat, jnt_pos, jnt_axis,
        mocap poses, rotations of joint frames

The reference pose of a body in MuJoCo is its pose with all its joints at zero, so coordinates are the same
numbers in both. With joints 1 to n between the parent P and the body B,

    X_PB(q) = X_p1 J_1(q_1) X_c1^-1 X_p2 ... J_n(q_n) X_cn^-1,

the frame of joint i in the body is the inverse of the factors to the right of J_i, with all later joints at
zero. Inertias are principal moments and the rotation of their axes.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.mapping.stages import (
    composed,
    field_writers,
    fields_struct,
    inverted,
    rotated,
    selected_world,
    widen,
    widen_pose,
)
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan

# Off-diagonal entries up to this size, relative to the largest moment, are single-precision rounding
# (2**-24); the axes of the body then count as principal.
DIAGONAL_ROUNDING = 2.0**-24
# Moving bodies need mass and moments of inertia, of their own or of what is fixed to them: MuJoCo refuses
# less than 1e-15 kg or kg·m². One without has joints with armature, or carries bodies with mass, else the
# model would have been refused. It gets the least moments, and so much mass that in a fluid it has the drag
# of a small box: MuJoCo's has sides of sqrt(6 I / m) = 3.5 mm, while 1e-12 kg would make it 11 cm.
LEAST = 2e-15
MASS_INSTEAD = 1e-9
# Relative amount by which the largest moment of a thin body stays below the sum of the others: a few
# double-precision roundings, since MuJoCo compares exactly.
THIN_ROUNDING = 1e-14
_OFF_DIAGONAL = wp.constant(wp.float64(DIAGONAL_ROUNDING))
_LEAST = wp.constant(wp.float64(LEAST))
_MASS_INSTEAD = wp.constant(wp.float64(MASS_INSTEAD))
_NAN = wp.constant(wp.float64(float("nan")))
_THIN = wp.constant(wp.float64(1.0 - THIN_ROUNDING))


@wp.struct
class BodyMaps:
    """Sources of MuJoCo's bodies and joints."""

    source: wp.array[int]  # [nbody] world-local body, -1 for none
    moves: wp.array[int]  # [nbody] whether it has joints
    weld: wp.array[int]  # [nbody] first of the bodies welded together with it, 0 for the world
    is_free: wp.array[int]  # [nbody] whether its pose is that of a free joint
    mocap: wp.array[int]  # [nbody] mocap body, -1 for none
    mocap_count: int
    chain_start: wp.array[int]  # [nbody + 1]
    chain: wp.array[int]  # [entry] world-local joints above a body, the first one next to its parent
    joint_start: wp.array[int]  # [world-local joint + 1]
    joint: wp.array[int]  # [entry] MuJoCo's joints of a joint
    joint_dof: wp.array[int]  # [njnt] world-local public degree of freedom
    joint_kind: wp.array[int]  # [njnt]
    joint_count: int


def make_body_maps(plan: StructurePlan, device: Any) -> BodyMaps:
    """Return the maps of a group on a device."""
    bodies = plan.bodies
    moves, free = np.zeros(len(bodies)), np.zeros(len(bodies))
    moves[[joint.body for joint in plan.joints]] = 1
    free[[joint.body for joint in plan.joints if joint.kind is MujocoJoint.FREE]] = 1
    mocap = np.full(len(bodies), -1)
    fixed = [index for index, body in enumerate(bodies) if body is not None and body.is_mocap]
    mocap[fixed] = np.arange(len(fixed))
    chains = [[] if body is None else body.chain for body in bodies]
    joint_count = plan.template.node_count
    by_joint: list[list[int]] = [[] for _ in range(joint_count)]
    for index, joint in enumerate(plan.joints):
        by_joint[joint.joint].append(index)
    maps = BodyMaps()
    maps.mocap_count, maps.joint_count = len(fixed), len(plan.joints)
    for name, values in {
        "source": [-1 if body is None else body.body for body in bodies],
        "moves": moves,
        "weld": plan.body_weld,
        "is_free": free,
        "mocap": mocap,
        "chain_start": _starts(chains),
        "chain": [joint for chain in chains for joint in chain],
        "joint_start": _starts(by_joint),
        "joint": [index for indices in by_joint for index in indices],
        "joint_dof": [joint.dof for joint in plan.joints],
        "joint_kind": [int(joint.kind) for joint in plan.joints],
    }.items():
        setattr(maps, name, to_device(values, device))
    return maps


def to_device(values: Any, device: Any) -> Any:
    """Return whole numbers on a device."""
    return wp.array(np.asarray(values, dtype=np.int32).reshape(-1), dtype=wp.int32, device=device)


def assign_inplace(maps: Any, name: str, values: np.ndarray, dtype: Any, device: Any) -> None:
    """Write an array of a struct in place, since recorded launches hold its memory."""
    before = getattr(maps, name)
    if before is not None and before.size == len(values):
        before.assign(values)
    else:
        setattr(maps, name, wp.array(values, dtype=dtype, device=device))


def _starts(lists: list[list[int]]) -> np.ndarray:
    result: np.ndarray = np.concatenate([[0], np.cumsum([len(entries) for entries in lists])])
    return result


@wp.func
def principal_axes(tensor: wp.mat33d):
    """Return principal moments and the rotation of their axes."""
    axes, moments = wp.eig3(tensor)
    if wp.determinant(axes) < wp.float64(0.0):  # a rotation, not a reflection
        axes = -axes
    return moments, wp.normalize(wp.quat_from_matrix(axes))


@wp.func
def symmetric(given: wp.mat33):
    """Return the symmetric part of an inertia in double precision, and its largest entry."""
    tensor = wp.mat33d()
    largest = wp.float64(0.0)
    for i in range(3):
        for j in range(3):
            tensor[i, j] = wp.float64(0.5) * (wp.float64(given[i, j]) + wp.float64(given[j, i]))
            largest = wp.max(largest, wp.abs(tensor[i, j]))
    return tensor, largest


@wp.func
def carries_mass(
    body: int,
    first_body: int,  # of the world
    maps: BodyMaps,
    body_mass: wp.array[float],  # [body] kg
    body_inertia: wp.array[wp.mat33],  # [body] kg m^2
) -> bool:
    """Return whether a body of MuJoCo that is welded to a moving one has the mass that it needs."""
    found = bool(False)
    for part in range(body + 1, maps.source.shape[0]):
        if maps.weld[part] == body and not found:
            flat = first_body + maps.source[part]
            if wp.float64(body_mass[flat]) > _LEAST:
                tensor, _largest = symmetric(body_inertia[flat])
                moments, _rotation = principal_axes(tensor)
                found = wp.min(moments) > _LEAST
    return found


@made_once
def body_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, to = fields_struct(real), field_writers(real)
    write, write_vec3, write_quat = to.write, to.write_vec3, to.write_quat
    module = kernel_module("pluriverse.solvers.mujoco.mapping.body_kernels", real)

    @wp.kernel(enable_backward=False, module=module)
    def update_gravity(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        gravity: wp.array[wp.vec3],  # [world] m/s^2
        fields: fields_type,
    ):
        """Write the gravity of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world >= 0:
            write_vec3(fields.opt_gravity, row, widen(gravity[world]))

    @wp.kernel(enable_backward=False, module=module)
    def update_inertia(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: BodyMaps,
        body_mass: wp.array[float],  # [body] kg
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        body_inertia: wp.array[wp.mat33],  # [body] kg m^2, body axes
        fields: fields_type,
    ):
        """Write the mass properties of the bodies of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.source.shape[0]
        for body in range(count):
            if maps.source[body] < 0:
                continue
            flat = topology.world_body[world] + maps.source[body]
            mass = wp.float64(body_mass[flat])
            tensor, largest = symmetric(body_inertia[flat])
            given_sum = mass
            for i in range(3):
                for j in range(3):
                    given_sum += tensor[i, j]
            moments = wp.vec3d(tensor[0, 0], tensor[1, 1], tensor[2, 2])
            rotation = wp.quatd(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
            off = wp.max(wp.abs(tensor[0, 1]), wp.max(wp.abs(tensor[0, 2]), wp.abs(tensor[1, 2])))
            if off > _OFF_DIAGONAL * largest:
                moments, rotation = principal_axes(tensor)
            for k in range(3):
                moments[k] = wp.max(moments[k], wp.float64(0.0))
            total = moments[0] + moments[1] + moments[2]
            for k in range(3):
                moments[k] = wp.min(moments[k], _THIN * (total - moments[k]))
            needs = maps.moves[body] != 0 and (mass < _LEAST or wp.min(moments) < _LEAST)
            if needs and not carries_mass(body, topology.world_body[world], maps, body_mass, body_inertia):
                if mass < _LEAST:
                    mass = _MASS_INSTEAD
                for k in range(3):
                    moments[k] = wp.max(moments[k], _LEAST)
            if not wp.isfinite(given_sum):
                mass = _NAN  # bounds hide what is no number; with this MuJoCo stops the world
            entry = row * count + body
            write(fields.body_mass, entry, mass)
            write_vec3(fields.body_ipos, entry, widen(body_com[flat]))
            write_quat(fields.body_iquat, entry, rotation)
            write_vec3(fields.body_inertia, entry, moments)

    @wp.kernel(enable_backward=False, module=module)
    def update_frames(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: BodyMaps,
        joint_X_p: wp.array[wp.transform],  # [joint] m, xyzw
        joint_X_c: wp.array[wp.transform],  # [joint] m, xyzw
        joint_axis: wp.array[wp.vec3],  # [dof]
        joint_rotation: wp.array[wp.quat],  # out, [joint] of the joint's frame in MuJoCo's body; may be empty
        row_rotation: wp.array[wp.quatd],  # out, [row joint] the same
        fields: fields_type,
    ):
        """Write the poses of the bodies and joints of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.source.shape[0]
        first_joint = topology.world_joint[world]
        first_dof = topology.world_dof[world]
        for body in range(1, count):
            pose = wp.transform_identity(dtype=wp.float64)
            start = maps.chain_start[body]
            end = maps.chain_start[body + 1]
            for step in range(end - start):
                local = maps.chain[end - 1 - step]
                joint = first_joint + local
                pose = composed(inverted(widen_pose(joint_X_c[joint])), pose)
                frame = inverted(pose)
                rotation = wp.transform_get_rotation(frame)
                if joint < joint_rotation.shape[0]:
                    joint_rotation[joint] = wp.quat(
                        float(rotation[0]), float(rotation[1]), float(rotation[2]), float(rotation[3])
                    )
                row_rotation[row * (maps.joint_start.shape[0] - 1) + local] = rotation
                for entry in range(maps.joint_start[local], maps.joint_start[local + 1]):
                    mine = maps.joint[entry]
                    kind = maps.joint_kind[mine]
                    target = row * maps.joint_count + mine
                    if kind != MujocoJoint.FREE:
                        write_vec3(fields.jnt_pos, target, wp.transform_get_translation(frame))
                    if kind != MujocoJoint.FREE and kind != MujocoJoint.BALL:
                        axis = widen(joint_axis[first_dof + maps.joint_dof[mine]])
                        write_vec3(fields.jnt_axis, target, rotated(rotation, axis))
                pose = composed(widen_pose(joint_X_p[joint]), pose)
            # A free body has its pose in the coordinates; MuJoCo uses its body pose for qpos0 only.
            if maps.is_free[body] == 0:
                position = wp.transform_get_translation(pose)
                orientation = wp.normalize(wp.transform_get_rotation(pose))
                write_vec3(fields.body_pos, row * count + body, position)
                write_quat(fields.body_quat, row * count + body, orientation)
                if maps.mocap[body] >= 0:
                    entry = row * maps.mocap_count + maps.mocap[body]
                    write_vec3(fields.mocap_pos, entry, position)
                    write_quat(fields.mocap_quat, entry, orientation)

    return SimpleNamespace(
        update_gravity=update_gravity, update_inertia=update_inertia, update_frames=update_frames
    )
