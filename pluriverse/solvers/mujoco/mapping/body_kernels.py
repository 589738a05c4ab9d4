"""Following, bodies: gravity, mass properties and frames of the worlds of a group, one world per thread.

Reads   gravity; body_mass, body_com, body_inertia; joint_X_p, joint_X_c, joint_axis
Writes  opt.gravity; body_mass, body_ipos, body_iquat, body_inertia; body_pos, body_quat, jnt_pos, jnt_axis,
        mocap poses, rotations of joint frames

The formulas are those of `inertia` and `frames`, which compute the same on the host.
"""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.mapping.inertia import DIAGONAL_ROUNDING, INERTIA_MIN, MASS_MIN, THIN_ROUNDING
from pluriverse.solvers.mujoco.mapping.stages import (
    chosen_world,
    composed,
    fields_struct,
    inverted,
    putters,
    turned,
    widen,
    widen_pose,
)
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan

_OFF_DIAGONAL = wp.constant(wp.float64(DIAGONAL_ROUNDING))
_MASS_MIN = wp.constant(wp.float64(MASS_MIN))
_INERTIA_MIN = wp.constant(wp.float64(INERTIA_MIN))
_NAN = wp.constant(wp.float64(float("nan")))
_THIN = wp.constant(wp.float64(1.0 - THIN_ROUNDING))
# Sweeps of Jacobi's method over a 3x3 matrix: it converges quadratically, and four or five are enough.
_SWEEPS = wp.constant(8)


@wp.struct
class BodyMaps:
    """Where MuJoCo's bodies and joints come from."""

    source: wp.array[int]  # [nbody] world-local body, -1 for none
    moves: wp.array[int]  # [nbody] whether it has joints
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


FREE = wp.constant(int(MujocoJoint.FREE))
BALL = wp.constant(int(MujocoJoint.BALL))


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
        "is_free": free,
        "mocap": mocap,
        "chain_start": _starts(chains),
        "chain": [joint for chain in chains for joint in chain],
        "joint_start": _starts(by_joint),
        "joint": [index for indices in by_joint for index in indices],
        "joint_dof": [joint.dof for joint in plan.joints],
        "joint_kind": [int(joint.kind) for joint in plan.joints],
    }.items():
        setattr(maps, name, upload(values, device))
    return maps


def upload(values: Any, device: Any) -> Any:
    """Return whole numbers on a device."""
    return wp.array(np.asarray(values, dtype=np.int32).reshape(-1), dtype=wp.int32, device=device)


def renew(maps: Any, name: str, values: np.ndarray, dtype: Any, device: Any) -> None:
    """Write an array of a struct, into the memory that it has, which recorded launches know."""
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
    """Return principal moments, in rising order, and the rotation of their axes (Jacobi's method)."""
    a = tensor
    axes = wp.identity(n=3, dtype=wp.float64)
    for _sweep in range(_SWEEPS):
        for pair in range(3):
            p = int(0)
            q = int(1)
            if pair == 1:
                q = int(2)
            if pair == 2:
                p = int(1)
                q = int(2)
            if a[p, q] != wp.float64(0.0):
                # The rotation that makes a[p, q] vanish ([GolubVanLoan2013] section 8.5.2).
                tau = (a[q, q] - a[p, p]) / (wp.float64(2.0) * a[p, q])
                t = wp.float64(1.0) / (wp.abs(tau) + wp.sqrt(wp.float64(1.0) + tau * tau))
                if tau < wp.float64(0.0):
                    t = -t
                c = wp.float64(1.0) / wp.sqrt(wp.float64(1.0) + t * t)
                turn = wp.identity(n=3, dtype=wp.float64)
                turn[p, p] = c
                turn[q, q] = c
                turn[p, q] = t * c
                turn[q, p] = -t * c
                a = wp.transpose(turn) * a * turn
                a[p, q] = wp.float64(0.0)
                a[q, p] = wp.float64(0.0)
                axes = axes * turn
    moments = wp.vec3d(a[0, 0], a[1, 1], a[2, 2])
    for step in range(3):
        first = step % 2
        if moments[first] > moments[first + 1]:
            larger = moments[first]
            moments[first] = moments[first + 1]
            moments[first + 1] = larger
            for row in range(3):
                entry = axes[row, first]
                axes[row, first] = axes[row, first + 1]
                axes[row, first + 1] = entry
    if wp.determinant(axes) < wp.float64(0.0):  # a rotation, not a reflection
        axes = -axes
    return moments, wp.normalize(wp.quat_from_matrix(axes))


@functools.cache
def body_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, to = fields_struct(real), putters(real)
    put, put_vec3, put_quat = to.put, to.put_vec3, to.put_quat
    module = kernel_module("pluriverse.solvers.mujoco.mapping.body_kernels", real)

    @wp.kernel(enable_backward=False, module=module)
    def follow_gravity(
        worlds: wp.array[int],
        chosen: wp.array[int],
        gravity: wp.array[wp.vec3],
        fields: fields_type,
    ):
        """Write the gravity of one world."""
        row = wp.tid()
        world = chosen_world(worlds, chosen, row)
        if world >= 0:
            put_vec3(fields.opt_gravity, row, widen(gravity[world]))

    @wp.kernel(enable_backward=False, module=module)
    def follow_inertia(
        worlds: wp.array[int],
        chosen: wp.array[int],
        topology: Topology,
        maps: BodyMaps,
        body_mass: wp.array[float],
        body_com: wp.array[wp.vec3],
        body_inertia: wp.array[wp.mat33],
        fields: fields_type,
    ):
        """Write the mass properties of the bodies of one world."""
        row = wp.tid()
        world = chosen_world(worlds, chosen, row)
        if world < 0:
            return
        count = maps.source.shape[0]
        for body in range(count):
            if maps.source[body] < 0:
                continue
            flat = topology.world_body[world] + maps.source[body]
            mass = wp.float64(body_mass[flat])
            given = body_inertia[flat]
            tensor = wp.mat33d()
            largest = wp.float64(0.0)
            given_sum = mass
            for i in range(3):
                for j in range(3):
                    given_sum += wp.float64(given[i, j])
                    tensor[i, j] = wp.float64(0.5) * (wp.float64(given[i, j]) + wp.float64(given[j, i]))
                    largest = wp.max(largest, wp.abs(tensor[i, j]))
            moments = wp.vec3d(tensor[0, 0], tensor[1, 1], tensor[2, 2])
            turn = wp.quatd(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
            off = wp.max(wp.abs(tensor[0, 1]), wp.max(wp.abs(tensor[0, 2]), wp.abs(tensor[1, 2])))
            if off > _OFF_DIAGONAL * largest:
                moments, turn = principal_axes(tensor)
            for k in range(3):
                moments[k] = wp.max(moments[k], wp.float64(0.0))
            total = moments[0] + moments[1] + moments[2]
            for k in range(3):
                moments[k] = wp.min(moments[k], _THIN * (total - moments[k]))
            if maps.moves[body] != 0:
                mass = wp.max(mass, _MASS_MIN)
                for k in range(3):
                    moments[k] = wp.max(moments[k], _INERTIA_MIN)
            if not wp.isfinite(given_sum):
                mass = _NAN  # bounds hide what is no number; with this MuJoCo stops the world
            entry = row * count + body
            put(fields.body_mass, entry, mass)
            put_vec3(fields.body_ipos, entry, widen(body_com[flat]))
            put_quat(fields.body_iquat, entry, turn)
            put_vec3(fields.body_inertia, entry, moments)

    @wp.kernel(enable_backward=False, module=module)
    def follow_frames(
        worlds: wp.array[int],
        chosen: wp.array[int],
        topology: Topology,
        maps: BodyMaps,
        joint_X_p: wp.array[wp.transform],
        joint_X_c: wp.array[wp.transform],
        joint_axis: wp.array[wp.vec3],
        joint_rotation: wp.array[wp.quat],  # out, [joint]
        row_rotation: wp.array[wp.quatd],  # out, [row joint]
        fields: fields_type,
    ):
        """Write the poses of the bodies and joints of one world."""
        row = wp.tid()
        world = chosen_world(worlds, chosen, row)
        if world < 0:
            return
        count = maps.source.shape[0]
        first_joint = topology.world_joint[world]
        first_dof = topology.world_dof[world]
        for body in range(1, count):
            pose = wp.transform_identity(dtype=wp.float64)
            begin = maps.chain_start[body]
            end = maps.chain_start[body + 1]
            for step in range(end - begin):
                local = maps.chain[end - 1 - step]
                joint = first_joint + local
                pose = composed(inverted(widen_pose(joint_X_c[joint])), pose)
                frame = inverted(pose)
                turn = wp.transform_get_rotation(frame)
                joint_rotation[joint] = wp.quat(
                    float(turn[0]), float(turn[1]), float(turn[2]), float(turn[3])
                )
                row_rotation[row * (maps.joint_start.shape[0] - 1) + local] = turn
                for entry in range(maps.joint_start[local], maps.joint_start[local + 1]):
                    mine = maps.joint[entry]
                    kind = maps.joint_kind[mine]
                    target = row * maps.joint_count + mine
                    if kind != FREE:
                        put_vec3(fields.jnt_pos, target, wp.transform_get_translation(frame))
                    if kind != FREE and kind != BALL:
                        axis = widen(joint_axis[first_dof + maps.joint_dof[mine]])
                        put_vec3(fields.jnt_axis, target, turned(turn, axis))
                pose = composed(widen_pose(joint_X_p[joint]), pose)
            # What moves freely has its pose in the coordinates; MuJoCo reads that of the body in qpos0 only.
            if maps.is_free[body] == 0:
                place = wp.transform_get_translation(pose)
                rotation = wp.normalize(wp.transform_get_rotation(pose))
                put_vec3(fields.body_pos, row * count + body, place)
                put_quat(fields.body_quat, row * count + body, rotation)
                if maps.mocap[body] >= 0:
                    entry = row * maps.mocap_count + maps.mocap[body]
                    put_vec3(fields.mocap_pos, entry, place)
                    put_quat(fields.mocap_quat, entry, rotation)

    return SimpleNamespace(
        follow_gravity=follow_gravity, follow_inertia=follow_inertia, follow_frames=follow_frames
    )
