"""Fields of constraints: sites and coefficients of equality constraints, one world per thread.

Reads   equality_constraint_anchor, _axis, _torquescale, _relpose, _polycoef, _enabled; of distance joints
        joint_X_p, joint_X_c, joint_limit_*; tendon_invweight0
Writes  eq_data, eq_active; site_pos, site_quat; tendon_range; tendon_solref_lim

A weld constrains a point of the second body, other constraints a point of the first. The rotational stiffness
of a hinge grows with the square of the distance of its two points. Gains of tendon limits are in force space,
like those of joint limits (`solref`), but a limit without damping is an undamped spring.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.attributes.tendons import force_limits
from pluriverse.solvers.mujoco.exchange.contact_mixing import mixing_functions
from pluriverse.solvers.mujoco.mapping.body_kernels import assign_inplace, to_device
from pluriverse.solvers.mujoco.mapping.equality import HINGE_LENGTH, JOINT, WELD
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.joints import FAR, RANGE_MIN
from pluriverse.solvers.mujoco.mapping.layout import FieldLayout
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.stages import (
    composed,
    field_writers,
    fields_struct,
    inverted,
    selected_world,
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
    """Sources of MuJoCo's equality constraints and distance constraints."""

    equality: wp.array[int]  # [constraint] world-local
    kind: wp.array[int]  # [constraint]
    side: wp.array[wp.float64]  # [constraint] of the point on the axis of a hinge, in half lengths
    site1: wp.array[int]  # [constraint] MuJoCo's
    site2: wp.array[int]
    distance_equality: wp.array[int]  # [distance constraint] world-local
    distance_joint: wp.array[int]  # [distance constraint] world-local distance joint, -1 for none
    distance_dof: wp.array[int]  # [distance constraint] its first degree of freedom
    distance_site1: wp.array[int]  # [distance constraint]
    distance_site2: wp.array[int]
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


def make_constraint_maps(
    plan: GroupPlan, layout: FieldLayout, first: np.ndarray, device: Any
) -> ConstraintMaps:
    """Return the maps of a group on a device; `first` is the first constraint of each world."""
    constraints, distances = plan.equalities.constraints, plan.equalities.distances
    dofs = plan.structure.joint_dof
    maps = ConstraintMaps()
    maps.constraint_count, maps.tendon_count = layout.constraint_count, layout.tendon_count
    maps.data_size, maps.site_count = layout.constraint_data, layout.site_count
    for name, values in {
        "equality": [constraint.equality for constraint in constraints],
        "kind": [constraint.kind for constraint in constraints],
        "site1": layout.constraint_site[:, 0],
        "site2": layout.constraint_site[:, 1],
        "distance_equality": [distance.equality for distance in distances],
        "distance_joint": [distance.joint for distance in distances],
        "distance_dof": [dofs[distance.joint] if distance.joint >= 0 else -1 for distance in distances],
        "distance_site1": layout.distance_site[:, 0],
        "distance_site2": layout.distance_site[:, 1],
        "first": first,
    }.items():
        setattr(maps, name, to_device(values, device))
    maps.side = wp.array([c.side for c in constraints], dtype=wp.float64, device=device)
    return maps


def assign_tendon_limits(maps: ConstraintMaps, rows: ModelRows, group: MujocoGroup, device: Any) -> None:
    """Write which tendon limits have force-space gains, from custom attributes, into maps."""
    shape = (group.world_count, int(group.model.ntendon))
    is_force, stiffness, damping = (np.zeros(shape) for _ in range(3))
    if group.model.ntendon:
        mask, ke, kd = force_limits(rows, group.worlds)
        first = shape[1] - mask.shape[1]  # distance constraints come before
        is_force[:, first:], stiffness[:, first:], damping[:, first:] = mask, ke, kd
    assign_inplace(maps, "limit_is_force", is_force.reshape(-1).astype(np.int32), wp.int32, device)
    assign_inplace(maps, "limit_ke", stiffness.reshape(-1).astype(np.float32), wp.float32, device)
    assign_inplace(maps, "limit_kd", damping.reshape(-1).astype(np.float32), wp.float32, device)
    softness = 1.0 - group.value("tendon_solimp_lim")[:, :, 1]
    assign_inplace(maps, "limit_softness", softness.reshape(-1), wp.float64, device)


@made_once
def constraint_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, to = fields_struct(real), field_writers(real)
    write, write_vec3, write_quat = to.write, to.write_vec3, to.write_quat
    module = kernel_module("pluriverse.solvers.mujoco.mapping.constraint_kernels", real)

    @wp.kernel(enable_backward=False, module=module)
    def update_constraints(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        maps: ConstraintMaps,
        anchor: wp.array[wp.vec3],  # [equality] m, first body
        axis: wp.array[wp.vec3],  # [equality] first body
        torquescale: wp.array[float],  # [equality] m^2
        relpose: wp.array[wp.transform],  # [equality] m, xyzw, second body in the first
        polycoef: wp.array2d[float],  # [equality, coefficient] m, rad
        enabled: wp.array[bool],  # [equality]
        fields: fields_type,
    ):
        """Write the constraints of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
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
                    write(fields.eq_data, maps.data_size * entry + k, wp.float64(polycoef[flat, k]))
                continue
            weight = wp.float64(torquescale[flat])
            arm = _ARM * maps.side[index] * wp.sqrt(weight)
            point = widen(anchor[flat]) + arm * widen(axis[flat])
            none = wp.quat_identity(dtype=wp.float64)
            other = widen_pose(relpose[flat])
            first = wp.transformd(point, none)
            second = wp.transformd(wp.transform_get_translation(composed(inverted(other), first)), none)
            if maps.kind[index] == _WELD:  # holds a point of the second body, the others one of the first
                write(fields.eq_data, maps.data_size * entry + _TORQUE_SCALE, weight)
                second = first
                first = composed(other, first)
            target = row * maps.site_count + maps.site1[index]
            write_vec3(fields.site_pos, target, wp.transform_get_translation(first))
            write_quat(fields.site_quat, target, wp.transform_get_rotation(first))
            target = row * maps.site_count + maps.site2[index]
            write_vec3(fields.site_pos, target, wp.transform_get_translation(second))
            write_quat(fields.site_quat, target, wp.transform_get_rotation(second))

    @wp.kernel(enable_backward=False, module=module)
    def update_distances(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: ConstraintMaps,
        anchor: wp.array[wp.vec3],  # [equality] m, first body
        relpose: wp.array[wp.transform],  # [equality] m, xyzw, second body in the first
        polycoef: wp.array2d[float],  # [equality, coefficient] m, rad
        enabled: wp.array[bool],  # [equality]
        joint_X_p: wp.array[wp.transform],  # [joint] m, xyzw
        joint_X_c: wp.array[wp.transform],  # [joint] m, xyzw
        joint_limit_lower: wp.array[float],  # [dof] m
        joint_limit_upper: wp.array[float],  # [dof] m
        fields: fields_type,
    ):
        """Write the distance constraints of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        for index in range(maps.distance_equality.shape[0]):
            flat = maps.first[world] + maps.distance_equality[index]
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
            if maps.distance_joint[index] >= 0:
                joint = topology.world_joint[world] + maps.distance_joint[index]
                dof = topology.world_dof[world] + maps.distance_dof[index]
                first = widen(wp.transform_get_translation(joint_X_p[joint]))
                second = widen(wp.transform_get_translation(joint_X_c[joint]))
                least = wp.float64(joint_limit_lower[dof])
                most = wp.float64(joint_limit_upper[dof])
            inactive = not enabled[flat]
            if inactive or least < wp.float64(0.0):
                least = -_FAR
            if inactive or most < wp.float64(0.0):
                most = _FAR
            most = wp.min(most, _FAR)
            if most - least < _RANGE_MIN:
                least = least - wp.float64(0.5) * _RANGE_MIN
                most = most + wp.float64(0.5) * _RANGE_MIN
            write_vec3(fields.site_pos, row * maps.site_count + maps.distance_site1[index], first)
            write_vec3(fields.site_pos, row * maps.site_count + maps.distance_site2[index], second)
            write(fields.tendon_range, 2 * (row * maps.tendon_count + index), least)
            write(fields.tendon_range, 2 * (row * maps.tendon_count + index) + 1, most)

    @wp.kernel(enable_backward=False, module=module)
    def update_tendon_limits(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        maps: ConstraintMaps,
        inverse_weight: wp.array[real],  # [row tendon] 1/kg
        fields: fields_type,
    ):
        """Write the `solref` of the tendon limits of one world with force-space gains."""
        row, _ = wp.tid()
        if selected_world(worlds, selected, row) < 0:
            return
        for tendon in range(maps.tendon_count):
            entry = row * maps.tendon_count + tendon
            if maps.limit_is_force[entry] == 0:
                continue
            ke = maps.limit_ke[entry]
            kd = maps.limit_kd[entry]
            factor = wp.float64(inverse_weight[entry]) * maps.limit_softness[entry]
            solref = solref_of_gains(wp.float64(ke), wp.float64(kd), factor)
            stiffness = wp.float64(ke) * factor
            if stiffness > wp.float64(0.0) and kd <= 0.0:  # a spring without damping
                solref = wp.vec2d(-stiffness, wp.float64(0.0))
            write(fields.tendon_solref_lim, 2 * entry, solref[0])
            write(fields.tendon_solref_lim, 2 * entry + 1, solref[1])

    return SimpleNamespace(
        update_constraints=update_constraints,
        update_distances=update_distances,
        update_tendon_limits=update_tendon_limits,
    )
