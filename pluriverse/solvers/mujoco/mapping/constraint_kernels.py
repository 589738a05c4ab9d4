"""Following, constraints: sites and coefficients of equality constraints, one world per thread.

Reads   equality_constraint_anchor, _axis, _torquescale, _relpose, _polycoef, _enabled; of distance joints
        joint_X_p, joint_X_c, joint_limit_*; tendon_invweight0
Writes  eq_data, eq_active; site_pos, site_quat; tendon_range; tendon_solref_lim

The formulas are those of `equality` and `tendons`, which compute the same on the host.
"""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.attributes.tendons import force_limits
from pluriverse.solvers.mujoco.exchange.contact_mixing import mixing_functions
from pluriverse.solvers.mujoco.mapping.body_kernels import renew, upload
from pluriverse.solvers.mujoco.mapping.equality import HINGE_LENGTH, JOINT, WELD
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.joints import FAR, RANGE_MIN
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.stages import (
    chosen_world,
    composed,
    fields_struct,
    inverted,
    putters,
    widen,
    widen_pose,
)

_JOINT = wp.constant(JOINT)
_WELD = wp.constant(WELD)
_ARM = wp.constant(wp.float64(0.5 * HINGE_LENGTH))
_FAR = wp.constant(wp.float64(FAR))
_RANGE_MIN = wp.constant(wp.float64(RANGE_MIN))
# Coefficients of a joint constraint, and where a weld has its torque scale.
_POLYNOMIAL = wp.constant(5)
_TORQUE_SCALE = wp.constant(10)

solref_of_gains = mixing_functions(wp.float64).solref_of_gains


@wp.struct
class ConstraintMaps:
    """Where MuJoCo's equality constraints and ropes come from."""

    equality: wp.array[int]  # [constraint] world-local
    kind: wp.array[int]  # [constraint]
    side: wp.array[wp.float64]  # [constraint] of the point on the axis of a hinge, in half lengths
    site1: wp.array[int]  # [constraint] MuJoCo's
    site2: wp.array[int]
    rope_equality: wp.array[int]  # [rope] world-local
    rope_joint: wp.array[int]  # [rope] world-local distance joint, -1 for none
    rope_dof: wp.array[int]  # [rope] its first degree of freedom
    rope_site1: wp.array[int]  # [rope]
    rope_site2: wp.array[int]
    first: wp.array[int]  # [world] first equality constraint
    constraint_count: int  # of MuJoCo
    data_size: int  # numbers of a constraint in eq_data
    tendon_count: int
    site_count: int
    # limits of tendons that are forces, [row tendon]
    limit_is_force: wp.array[int]
    limit_ke: wp.array[float]
    limit_kd: wp.array[float]
    limit_softness: wp.array[wp.float64]  # 1 - dmax


def make_constraint_maps(group: MujocoGroup, first: np.ndarray, device: Any) -> ConstraintMaps:
    """Return the maps of a group on a device; `first` is the first constraint of each world."""
    model, plan = group.model, group.plan.equalities
    dofs = group.plan.structure.joint_dof
    count = len(plan.constraints)
    maps = ConstraintMaps()
    maps.constraint_count, maps.tendon_count = int(model.neq), int(model.ntendon)
    maps.data_size = model.eq_data.shape[1] if model.eq_data.ndim == 2 else 0
    maps.site_count = int(model.nsite)

    def rope_site(index: int, number: int) -> int:
        return int(model.site(f"rope_{index}_site_{number}").id)

    ropes = range(len(plan.ropes))
    for name, values in {
        "equality": [constraint.equality for constraint in plan.constraints],
        "kind": [constraint.kind for constraint in plan.constraints],
        "site1": model.eq_obj1id[:count],
        "site2": model.eq_obj2id[:count],
        "rope_equality": [rope.equality for rope in plan.ropes],
        "rope_joint": [rope.joint for rope in plan.ropes],
        "rope_dof": [dofs[rope.joint] if rope.joint >= 0 else -1 for rope in plan.ropes],
        "rope_site1": [rope_site(index, 0) for index in ropes],
        "rope_site2": [rope_site(index, 1) for index in ropes],
        "first": first,
    }.items():
        setattr(maps, name, upload(values, device))
    side: Any = wp.array([c.side for c in plan.constraints], dtype=wp.float64, device=device)
    maps.side = side
    return maps


def assign_tendon_limits(maps: ConstraintMaps, rows: ModelRows, group: MujocoGroup, device: Any) -> None:
    """Write which limits of tendons are forces, which custom attributes say, into maps."""
    shape = (group.world_count, int(group.model.ntendon))
    is_force, stiffness, damping = (np.zeros(shape) for _ in range(3))
    if group.model.ntendon:
        mask, ke, kd = force_limits(rows, group.worlds)
        first = shape[1] - mask.shape[1]  # ropes come before
        is_force[:, first:], stiffness[:, first:], damping[:, first:] = mask, ke, kd
    renew(maps, "limit_is_force", is_force.reshape(-1).astype(np.int32), wp.int32, device)
    renew(maps, "limit_ke", stiffness.reshape(-1).astype(np.float32), wp.float32, device)
    renew(maps, "limit_kd", damping.reshape(-1).astype(np.float32), wp.float32, device)
    softness = 1.0 - group.value("tendon_solimp_lim")[:, :, 1]
    renew(maps, "limit_softness", softness.reshape(-1), wp.float64, device)


@functools.cache
def constraint_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, to = fields_struct(real), putters(real)
    put, put_vec3, put_quat = to.put, to.put_vec3, to.put_quat
    module = kernel_module("pluriverse.solvers.mujoco.mapping.constraint_kernels", real)

    @wp.kernel(enable_backward=False, module=module)
    def follow_constraints(
        worlds: wp.array[int],
        chosen: wp.array[int],
        maps: ConstraintMaps,
        anchor: wp.array[wp.vec3],
        axis: wp.array[wp.vec3],
        torquescale: wp.array[float],
        relpose: wp.array[wp.transform],
        polycoef: wp.array2d[float],
        enabled: wp.array[bool],
        fields: fields_type,
    ):
        """Write the constraints of one world."""
        row = wp.tid()
        world = chosen_world(worlds, chosen, row)
        if world < 0:
            return
        for index in range(maps.equality.shape[0]):
            flat = maps.first[world] + maps.equality[index]
            entry = row * maps.constraint_count + index
            active = wp.uint8(0)
            if enabled[flat]:
                active = wp.uint8(1)
            if entry < fields.eq_active.shape[0]:
                fields.eq_active[entry] = active
            if maps.kind[index] == _JOINT:
                for k in range(_POLYNOMIAL):
                    put(fields.eq_data, maps.data_size * entry + k, wp.float64(polycoef[flat, k]))
                continue
            weight = wp.float64(torquescale[flat])
            arm = _ARM * maps.side[index] * wp.sqrt(weight)
            point = widen(anchor[flat]) + arm * widen(axis[flat])
            none = wp.quat_identity(dtype=wp.float64)
            other = widen_pose(relpose[flat])
            first = wp.transformd(point, none)
            second = wp.transformd(wp.transform_get_translation(composed(inverted(other), first)), none)
            if maps.kind[index] == _WELD:  # holds a point of the second body, the others one of the first
                put(fields.eq_data, maps.data_size * entry + _TORQUE_SCALE, weight)
                second = first
                first = composed(other, first)
            target = row * maps.site_count + maps.site1[index]
            put_vec3(fields.site_pos, target, wp.transform_get_translation(first))
            put_quat(fields.site_quat, target, wp.transform_get_rotation(first))
            target = row * maps.site_count + maps.site2[index]
            put_vec3(fields.site_pos, target, wp.transform_get_translation(second))
            put_quat(fields.site_quat, target, wp.transform_get_rotation(second))

    @wp.kernel(enable_backward=False, module=module)
    def follow_ropes(
        worlds: wp.array[int],
        chosen: wp.array[int],
        topology: Topology,
        maps: ConstraintMaps,
        anchor: wp.array[wp.vec3],
        relpose: wp.array[wp.transform],
        polycoef: wp.array2d[float],
        enabled: wp.array[bool],
        joint_X_p: wp.array[wp.transform],
        joint_X_c: wp.array[wp.transform],
        joint_limit_lower: wp.array[float],
        joint_limit_upper: wp.array[float],
        fields: fields_type,
    ):
        """Write the ropes of one world."""
        row = wp.tid()
        world = chosen_world(worlds, chosen, row)
        if world < 0:
            return
        for rope in range(maps.rope_equality.shape[0]):
            flat = maps.first[world] + maps.rope_equality[rope]
            point = widen(anchor[flat])
            first = point
            second = wp.transform_get_translation(
                composed(
                    inverted(widen_pose(relpose[flat])),
                    wp.transformd(point, wp.quat_identity(dtype=wp.float64)),
                )
            )
            least = wp.float64(polycoef[flat, 0])
            most = wp.float64(polycoef[flat, 1])
            if maps.rope_joint[rope] >= 0:
                joint = topology.world_joint[world] + maps.rope_joint[rope]
                dof = topology.world_dof[world] + maps.rope_dof[rope]
                first = widen(wp.transform_get_translation(joint_X_p[joint]))
                second = widen(wp.transform_get_translation(joint_X_c[joint]))
                least = wp.float64(joint_limit_lower[dof])
                most = wp.float64(joint_limit_upper[dof])
            slack = not enabled[flat]
            if slack or least < wp.float64(0.0):
                least = -_FAR
            if slack or most < wp.float64(0.0):
                most = _FAR
            most = wp.min(most, _FAR)
            if most - least < _RANGE_MIN:
                least = least - wp.float64(0.5) * _RANGE_MIN
                most = most + wp.float64(0.5) * _RANGE_MIN
            put_vec3(fields.site_pos, row * maps.site_count + maps.rope_site1[rope], first)
            put_vec3(fields.site_pos, row * maps.site_count + maps.rope_site2[rope], second)
            put(fields.tendon_range, 2 * (row * maps.tendon_count + rope), least)
            put(fields.tendon_range, 2 * (row * maps.tendon_count + rope) + 1, most)

    @wp.kernel(enable_backward=False, module=module)
    def follow_tendon_limits(
        worlds: wp.array[int],
        chosen: wp.array[int],
        maps: ConstraintMaps,
        fields: fields_type,
    ):
        """Write how the limits of the tendons of one world pull that are forces."""
        row = wp.tid()
        if chosen_world(worlds, chosen, row) < 0:
            return
        for tendon in range(maps.tendon_count):
            entry = row * maps.tendon_count + tendon
            if maps.limit_is_force[entry] == 0:
                continue
            ke = maps.limit_ke[entry]
            kd = maps.limit_kd[entry]
            factor = wp.float64(fields.tendon_invweight0[entry]) * maps.limit_softness[entry]
            solref = solref_of_gains(wp.float64(ke), wp.float64(kd), factor)
            stiffness = wp.float64(ke) * factor
            if stiffness > wp.float64(0.0) and kd <= 0.0:  # a spring without damping
                solref = wp.vec2d(-stiffness, wp.float64(0.0))
            put(fields.tendon_solref_lim, 2 * entry, solref[0])
            put(fields.tendon_solref_lim, 2 * entry + 1, solref[1])

    return SimpleNamespace(
        follow_constraints=follow_constraints,
        follow_ropes=follow_ropes,
        follow_tendon_limits=follow_tendon_limits,
    )
