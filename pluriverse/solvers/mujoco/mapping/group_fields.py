"""Writing the values of all worlds of a group into its MuJoCo model and its fields.

Kernels compute the values that depend on arrays of the model (`group_kernels`). Values that come from custom
attributes alone are copied here, and MuJoCo derives the rest (`fields.update_derived`).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pluriverse.solvers.mujoco.attributes.extensions import EXTENSIONS
from pluriverse.solvers.mujoco.attributes.tendons import authored_limit_solref
from pluriverse.solvers.mujoco.mapping.drives import effort_limits
from pluriverse.solvers.mujoco.mapping.equality import authored_constraints
from pluriverse.solvers.mujoco.mapping.fields import (
    FieldTable,
    keep_free_of_trees,
    set_shortcuts,
    update_derived,
)
from pluriverse.solvers.mujoco.mapping.geoms import BOX, MESH, flat_shapes, geom_attributes
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_kernels import GroupKernels, compiled_kernels, update_table
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.joints import (
    joint_attributes,
    kinematic_dofs,
    limited_joints,
)
from pluriverse.solvers.mujoco.mapping.mesh_assets import check_assets
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.pair_kernels import mix_pairs
from pluriverse.solvers.mujoco.mapping.stages import DOF_FLAGS, POSE_FLAGS, STAGES
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.types import ModelFlags

# Least mean of the diagonal of the mass matrix [kg, kg·m²]: MuJoCo's own bound, `mjMINVAL`.
MEAN_INERTIA_MIN = 1e-15

_PLACES = {"body_ipos", "body_iquat", "geom_pos", "geom_quat", "site_pos", "site_quat"}


def write_fields(
    group: MujocoGroup, rows: ModelRows, options: MujocoOptions, flags: ModelFlags = ModelFlags.ALL
) -> set[str]:
    """Write the values of all worlds into a group.

    Args:
        group: Group to write to.
        rows: Arrays of the model.
        options: How MuJoCo solves.
        flags: What may have changed.

    Returns:
        The names of the fields that changed.

    Raises:
        ValueError: If a geom has another mesh than those compiled in.
    """
    plan: GroupPlan = group.plan
    table = FieldTable(group)
    changed = set()
    if flags & DOF_FLAGS:
        changed |= _limit_joints(group, rows)
    _put_attributes(table, rows, options, flags)
    for extension in EXTENSIONS:
        extension.put_fields(table, rows, plan)
    changed |= table.apply()
    if group.kernels is None:
        group.kernels = compiled_kernels(rows, group)
    kernels: GroupKernels = group.kernels
    kernels.assign_group(rows, group, margins=margins_are_kept(options, group))
    extra = update_table(kernels, rows, table, _stages_of_flags(group, flags))
    if flags & ModelFlags.SHAPE_PROPERTIES:
        _keep_compiled_bounds(table)
    changed |= table.apply()
    _keep_extra(group, extra, flags)
    changed |= update_derived(group, changed)
    if changed & _PLACES:
        changed |= set_shortcuts(group)
    if "body_gravcomp" in changed:  # MuJoCo counts the bodies concerned
        group.revision += 1
    if keep_free_of_trees(group, changed):
        group.revision += 1
    changed |= _write_limits(kernels, rows, table, all_joints=bool(flags & DOF_FLAGS), changed=changed)
    set_mean_inertia(group, rows)
    return changed


def margins_are_kept(options: MujocoOptions, group: MujocoGroup) -> bool:
    """Return whether the margins of geoms are passed to MuJoCo.

    MuJoCo Warp before 3.17 refuses them between boxes, and between boxes and meshes with several contacts per
    pair.
    """
    import mujoco

    single = group.model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
    refused = [BOX] if single else [BOX, MESH]
    return options.keep_margins or not np.isin(group.plan.geoms.kind, refused).any()


def _stages_of_flags(group: MujocoGroup, flags: ModelFlags) -> list[str]:
    """Return the stages that run after a notice."""
    stages = [stage for stage, entry in STAGES.items() if entry.flags & flags]
    if "drives" in stages:
        stages.append("frames")  # the axes of drives of ball joints follow from them
    if group.switched:
        stages.append("switches")
    if group.model.npair:  # the attributes of pairs were put before
        stages.append("pairs")
    return stages


def _put_attributes(table: FieldTable, rows: ModelRows, options: MujocoOptions, flags: ModelFlags) -> None:
    """Write the values that come from custom attributes alone."""
    group = table.group
    plan: GroupPlan = group.plan
    if flags & (ModelFlags.BODY_PROPERTIES | ModelFlags.BODY_INERTIAL_PROPERTIES):
        gravcomp = rows.custom("gravcomp", "body", plan.worlds)
        if gravcomp is not None:
            made = [
                (index, body.body) for index, body in enumerate(plan.structure.bodies) if body is not None
            ]
            target, source = ([entry[k] for entry in made] for k in range(2))
            table.edit("body_gravcomp")[:, target] = gravcomp[:, source]
    if flags & DOF_FLAGS:
        attributes = joint_attributes(rows, plan.structure, plan.worlds)
        for name in ("jnt_margin", "jnt_solimp", "jnt_stiffness", "dof_solref", "dof_solimp"):
            table.put(name, attributes[name])
        scalar = np.flatnonzero(group.model.jnt_type >= 2)  # slides and hinges
        springref = attributes["springref"][:, scalar]
        table.edit("qpos_spring")[:, group.model.jnt_qposadr[scalar]] = springref
    if flags & ModelFlags.SHAPE_PROPERTIES:
        check_assets(rows, plan.geoms, plan.worlds, plan.sized, plan.assets)
        attributes = geom_attributes(rows, plan.geoms, plan.worlds)
        table.put("geom_solimp", attributes["solimp"])
        table.put("geom_solmix", attributes["solmix"])
        table.edit("geom_solref")[attributes["is_authored"]] = attributes["solref"][attributes["is_authored"]]
        group.geom_force_space = attributes["force_space"]
        enabled = rows.array("shape_enabled")[flat_shapes(rows, plan.geoms, plan.worlds)] != 0
        # External contacts come from a pipeline that ignores disabled shapes.
        if options.use_mujoco_contacts and not enabled.all():
            group.switched = True
        group.pair_off = ~(enabled[:, group.model.pair_geom1] & enabled[:, group.model.pair_geom2])
        if group.model.npair:
            table.put("pair_solimp", mix_pairs(rows, group)[2])
    if flags & (ModelFlags.CONSTRAINT_PROPERTIES | POSE_FLAGS | DOF_FLAGS):
        for name, values in authored_constraints(rows, plan.equalities, plan.worlds).items():
            if values.shape[1]:
                table.edit(name)[:, : values.shape[1]] = values


def _keep_compiled_bounds(table: FieldTable) -> None:
    """Keep the compiled bounds of meshes where all worlds have the compiled meshes."""
    group = table.group
    if not group.model.ngeom or "geom_dataid" in group.fields or group.plan.sized.any():
        return
    if (table.edit("geom_dataid") != group.model.geom_dataid).any():
        return
    mesh = np.flatnonzero(group.plan.geoms.kind == MESH)
    for name in ("geom_size", "geom_aabb", "geom_rbound"):
        table.edit(name)[:, mesh] = group.value(name)[:, mesh]


def _keep_extra(group: MujocoGroup, extra: dict[str, np.ndarray], flags: ModelFlags) -> None:
    """Store the values that engines need in addition to the fields of MuJoCo's model."""
    if "joint_rotation" in extra:
        group.joint_rotation = extra["joint_rotation"]
        group.mocap_pose = np.concatenate([extra["mocap_pos"], extra["mocap_quat"]], axis=-1)
    if flags & ModelFlags.SHAPE_PROPERTIES:
        group.geom_ke, group.geom_kd = extra["external_ke"], extra["external_kd"]


def _limit_joints(group: MujocoGroup, rows: ModelRows) -> set[str]:
    """Enable limits of joints and drives that had none in any world so far."""
    plan: GroupPlan = group.plan
    bounded_joints, bounded_drives = effort_limits(rows, plan.structure, plan.drives, plan.worlds)
    drives = np.zeros(len(group.model.actuator_forcelimited), dtype=bool)
    drives[: len(plan.drives)] = bounded_drives
    changed = set()
    for name, mask in (
        ("jnt_limited", limited_joints(rows, plan.structure, plan.worlds)),
        ("jnt_actfrclimited", bounded_joints),
        ("actuator_forcelimited", drives),
    ):
        field = getattr(group.model, name)
        if (mask & (field == 0)).any():
            field[mask] = 1
            changed.add(name)
            group.revision += 1
    return changed


def _write_limits(
    kernels: GroupKernels, rows: ModelRows, table: FieldTable, *, all_joints: bool, changed: Iterable[str]
) -> set[str]:
    """Write the `solref` of limits, which may depend on inverse weights that MuJoCo has derived."""
    group, plan = table.group, table.group.plan
    stages = []
    if all_joints or "dof_invweight0" in changed:
        stages.append("limits")
    if rows.custom_array("tendon_type") is not None and group.model.ntendon:
        stages.append("tendon_limits")
        solref = authored_limit_solref(rows, plan.worlds)
        edit = table.edit("tendon_solref_lim")
        edit[:, edit.shape[1] - solref.shape[1] :] = solref
    update_table(kernels, rows, table, stages)
    return table.apply()


def set_mean_inertia(group: MujocoGroup, rows: ModelRows) -> None:
    """Exclude prescribed joints from the mean inertia that scales the tolerance of MuJoCo's solver."""
    prescribed = kinematic_dofs(rows, group.plan.structure, group.worlds[:1])[0]
    if "stat.meaninertia" in group.fields:
        means = group.value("dof_M0")[:, prescribed if prescribed.all() else ~prescribed].mean(axis=1)
        group.fields["stat.meaninertia"][...] = np.maximum(means, MEAN_INERTIA_MIN)
    elif prescribed.any() and not prescribed.all():
        mean = float(group.model.dof_M0[~prescribed].mean())
        if mean != group.model.stat.meaninertia:
            group.model.stat.meaninertia = mean
            group.revision += 1


def reset_extra(group: MujocoGroup) -> None:
    """Allocate the arrays that engines need in addition to the fields of a newly compiled model."""
    model: Any = group.model
    group.mocap_pose = np.zeros((group.world_count, int(model.nmocap), 7))
    group.geom_ke, group.geom_kd = (np.zeros((group.world_count, int(model.ngeom))) for _ in range(2))
