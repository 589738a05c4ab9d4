"""Writing the numbers of all worlds of a group into its MuJoCo model and its fields."""

import numpy as np

from pluriverse.solvers.mujoco.attributes.extensions import EXTENSIONS
from pluriverse.solvers.mujoco.attributes.pairs import mix_materials, places_of_pairs
from pluriverse.solvers.mujoco.attributes.tendons import compute_limit_solref as compute_tendon_solref
from pluriverse.solvers.mujoco.mapping.equality import JOINT, WELD, site_wxyz
from pluriverse.solvers.mujoco.mapping.fields import (
    FieldTable,
    keep_free_of_trees,
    set_shortcuts,
    update_derived,
)
from pluriverse.solvers.mujoco.mapping.geoms import (
    BOX,
    HFIELD,
    MESH,
    PLANE,
    bounding_radius,
    flat_shapes,
    half_extents,
)
from pluriverse.solvers.mujoco.mapping.group import NO_SHAPE, MujocoGroup
from pluriverse.solvers.mujoco.mapping.joints import compute_limit_solref, dof_joints, kinematic_joints
from pluriverse.solvers.mujoco.mapping.mesh_assets import mesh_bounds, place_meshes
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.values import GroupPlan, GroupValues
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.types import ModelFlags

# Margin [m] below which no two geoms overlap.
FAR_APART = 1e10
# Least mean of the diagonal of the mass matrix [kg, kg·m²]: MuJoCo's own bound, `mjMINVAL`.
MEAN_INERTIA_MIN = 1e-15

_PLACES = {"body_ipos", "body_iquat", "geom_pos", "geom_quat", "site_pos", "site_quat"}
_POSES = ModelFlags.JOINT_PROPERTIES | ModelFlags.BODY_PROPERTIES | ModelFlags.JOINT_REFERENCE_POSE_PROPERTIES
_DOFS = (
    ModelFlags.JOINT_DOF_PROPERTIES
    | ModelFlags.JOINT_DOF_FORCE_PROPERTIES
    | ModelFlags.JOINT_DOF_INERTIAL_PROPERTIES
    | ModelFlags.BODY_PROPERTIES
)


def write_fields(
    group: MujocoGroup,
    rows: ModelRows,
    options: MujocoOptions,
    plan: GroupPlan,
    values: GroupValues,
    flags: ModelFlags = ModelFlags.ALL,
) -> set[str]:
    """Write the numbers of all worlds into a group.

    Args:
        group: Group to write to.
        rows: Arrays of the model.
        options: How MuJoCo solves.
        plan: Structure of the group.
        values: Its numbers.
        flags: What may have changed.

    Returns:
        The names of the fields that changed.
    """
    table = FieldTable(group)
    if flags & _POSES:
        _set_frames(table, values)
    if flags & ModelFlags.BODY_INERTIAL_PROPERTIES:
        _set_inertias(table, values)
    if flags & (ModelFlags.BODY_PROPERTIES | ModelFlags.BODY_INERTIAL_PROPERTIES):
        _set_gravity_compensation(table, rows, plan)
    if flags & _DOFS:
        _set_joints(table, values)
    if flags & (_DOFS | _POSES | ModelFlags.ACTUATOR_PROPERTIES):
        _set_drives(table, plan, values)
    if flags & ModelFlags.SHAPE_PROPERTIES:
        _set_geoms(table, options, plan, values)
        _set_sites(table, values)
        _set_named_pairs(table, options, plan, values)
    if flags & (ModelFlags.CONSTRAINT_PROPERTIES | _POSES | _DOFS):
        _set_constraints(table, plan, values)
        _set_ropes(table, plan, values)
    for extension in EXTENSIONS:
        extension.put_fields(table, rows, plan)
    if group.switched:
        _switch_pairs(table)
    if flags & ModelFlags.MODEL_PROPERTIES:
        table.put("opt.gravity", rows.array("gravity")[plan.worlds])
    changed = table.apply()
    changed |= update_derived(group, changed)
    if changed & _PLACES:
        changed |= set_shortcuts(group)
    if "body_gravcomp" in changed:  # MuJoCo counts the bodies concerned
        group.revision += 1
    if keep_free_of_trees(group, changed):
        group.revision += 1
    if flags & _DOFS or "dof_invweight0" in changed:
        weight, solimp = group.value("dof_invweight0"), group.value("jnt_solimp")
        table.put("jnt_solref", compute_limit_solref(rows, plan.structure, plan.worlds, weight, solimp))
        changed |= table.apply()
    if rows.custom_array("tendon_type") is not None and group.model.ntendon:
        _set_tendon_limits(table, rows, plan)
        changed |= table.apply()
    if flags & _DOFS:
        changed |= _limit_joints(group, values)
    _set_mean_inertia(group, rows, plan)
    _set_public(group, plan, values, flags)
    return changed


def _set_tendon_limits(table: FieldTable, rows: ModelRows, plan: GroupPlan) -> None:
    """Set how the limits of tendons pull, which may depend on the weight that MuJoCo has derived."""
    group = table.group
    solref = compute_tendon_solref(
        rows, plan.worlds, group.value("tendon_invweight0"), group.value("tendon_solimp_lim")
    )
    edit = table.edit("tendon_solref_lim")
    edit[:, edit.shape[1] - solref.shape[1] :] = solref


def _set_mean_inertia(group: MujocoGroup, rows: ModelRows, plan: GroupPlan) -> None:
    """Leave kinematic joints out of the mean that MuJoCo measures the progress of its solver against."""
    told = kinematic_joints(rows, plan.structure, plan.worlds[:1])[0, dof_joints(plan.structure)]
    if "stat.meaninertia" in group.fields:
        means = group.value("dof_M0")[:, told if told.all() else ~told].mean(axis=1)
        group.fields["stat.meaninertia"][...] = np.maximum(means, MEAN_INERTIA_MIN)
    elif told.any() and not told.all():
        mean = float(group.model.dof_M0[~told].mean())
        if mean != group.model.stat.meaninertia:
            group.model.stat.meaninertia = mean
            group.revision += 1


def _limit_joints(group: MujocoGroup, values: GroupValues) -> set[str]:
    """Let joints have limits that had none in any world so far."""
    changed = set()
    for name, mask in (
        ("jnt_limited", values.joints.jnt_limited),
        ("jnt_actfrclimited", values.joints.jnt_actfrclimited),
    ):
        field = getattr(group.model, name)
        if (mask & (field == 0)).any():
            field[mask] = 1
            changed.add(name)
            group.revision += 1
    return changed


def _set_frames(table: FieldTable, values: GroupValues) -> None:
    for name in ("body_pos", "body_quat", "jnt_pos", "jnt_axis"):
        table.put(name, getattr(values.frames, name))


def _set_inertias(table: FieldTable, values: GroupValues) -> None:
    for name in ("body_mass", "body_ipos", "body_iquat", "body_inertia"):
        table.put(name, getattr(values.inertias, name))


def _set_gravity_compensation(table: FieldTable, rows: ModelRows, plan: GroupPlan) -> None:
    gravcomp = rows.custom("gravcomp", "body", plan.worlds)
    if gravcomp is not None:
        made = [index for index, body in enumerate(plan.structure.bodies) if body is not None]
        source = [body.body for body in plan.structure.bodies if body is not None]
        table.edit("body_gravcomp")[:, made] = gravcomp[:, source]


def _set_joints(table: FieldTable, values: GroupValues) -> None:
    joints = values.joints
    table.put("jnt_margin", joints.jnt_margin)
    table.put("jnt_solimp", joints.jnt_solimp)
    table.put("jnt_stiffness", joints.jnt_stiffness)
    table.edit("jnt_range")[:, joints.jnt_limited] = joints.jnt_range[:, joints.jnt_limited]
    table.edit("jnt_actfrcrange")[:, joints.jnt_actfrclimited] = joints.jnt_actfrcrange[
        :, joints.jnt_actfrclimited
    ]
    for name in ("armature", "damping", "frictionloss", "solref", "solimp"):
        table.put(f"dof_{name}", getattr(joints, f"dof_{name}"))
    model = table.group.model
    scalar = np.flatnonzero(model.jnt_type >= 2)
    table.edit("qpos_spring")[:, model.jnt_qposadr[scalar]] = joints.spring_rest[:, scalar]


def _set_geoms(table: FieldTable, options: MujocoOptions, plan: GroupPlan, values: GroupValues) -> None:
    model, place, material = table.group.model, values.geoms, values.materials
    if model.ngeom == 0:
        return
    kind = plan.geoms.kind
    primitive = ~np.isin(kind, [MESH, HFIELD])
    pos, quat, dataid = place_meshes(model, plan.assets, values.meshes, place.pos, place.quat)
    table.put("geom_pos", pos)
    table.put("geom_quat", quat)
    table.edit("geom_size")[:, primitive] = place.size[:, primitive]
    changing = np.flatnonzero((dataid != model.geom_dataid).any(axis=0))
    if len(changing) or "geom_dataid" in table.group.fields:
        table.put("geom_dataid", dataid)
        changing = np.flatnonzero(kind == MESH)
        size, box, radius = mesh_bounds(model)
        chosen = dataid[:, changing]
        table.edit("geom_size")[:, changing] = size[chosen]
        table.edit("geom_aabb")[:, changing] = box[chosen]
        table.edit("geom_rbound")[:, changing] = radius[chosen]
    sized = primitive & (kind != PLANE)
    size = table.edit("geom_size")
    table.edit("geom_rbound")[:, sized] = bounding_radius(kind, size, table.edit("geom_rbound"))[:, sized]
    box = table.edit("geom_aabb").reshape(len(size), len(kind), 6)
    box[:, sized, 3:] = half_extents(kind, size, box[..., 3:])[:, sized]
    table.put("geom_friction", material.friction)
    table.put("geom_solref", material.solref)
    table.put("geom_solimp", material.solimp)
    table.put("geom_solmix", material.solmix)
    _switch_geoms(table, options, plan, values)
    margin = material.margin if margins_are_kept(options, table.group) else np.zeros_like(material.margin)
    table.put("geom_margin", margin)
    body_margin = table.edit("body_margin")
    for index, body in enumerate(plan.geoms.body.tolist()):
        first = index == 0 or plan.geoms.body[index - 1] != body
        own = margin[:, index]
        body_margin[:, body] = own if first else np.maximum(body_margin[:, body], own)


def _switch_geoms(table: FieldTable, options: MujocoOptions, plan: GroupPlan, values: GroupValues) -> None:
    """Take the contact bits from geoms that are switched off, and give them back.

    MuJoCo Warp knows bits when it starts only; `WarpGroup.write_field` has other means there.
    """
    group, masks = table.group, plan.masks
    enabled = values.rows.array("shape_enabled")[flat_shapes(values.rows, plan.geoms, plan.worlds)] != 0
    # Contacts that are fed in come from a pipeline that leaves such shapes out.
    if not options.use_mujoco_contacts or (enabled.all() and not group.switched):
        return
    group.switched = True
    table.put("geom_contype", np.where(enabled, masks.contype, 0))
    table.put("geom_conaffinity", np.where(enabled, masks.conaffinity, 0))
    model = group.model
    group.pair_off = ~(enabled[:, model.pair_geom1] & enabled[:, model.pair_geom2])


def _set_named_pairs(table: FieldTable, options: MujocoOptions, plan: GroupPlan, values: GroupValues) -> None:
    """Give the pairs that filters have to name the properties that MuJoCo would mix for them."""
    places = places_of_pairs(table.group.model)
    for first, second in plan.masks.pairs:
        place = places[frozenset((first, second))]
        for name, mixed in mix_materials(values.materials, first, second).items():
            if name == "margin" and not margins_are_kept(options, table.group):
                mixed = np.zeros_like(mixed)
            table.edit(f"pair_{name}")[:, place] = mixed


def _switch_pairs(table: FieldTable) -> None:
    """Let pairs of geoms that are switched off find contacts as ever, of which none acts."""
    off = table.group.pair_off
    if off.any():
        table.edit("pair_margin")[off] = -FAR_APART
        table.edit("pair_gap")[off] = FAR_APART


def margins_are_kept(options: MujocoOptions, group: MujocoGroup) -> bool:
    """Return whether MuJoCo is told the margins of geoms.

    MuJoCo Warp before 3.17 refuses them between boxes, and between boxes and meshes with several contacts per
    pair.
    """
    import mujoco

    single = group.model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
    refused = [BOX] if single else [BOX, MESH]
    return options.keep_margins or not np.isin(group.plan.geoms.kind, refused).any()


def _set_sites(table: FieldTable, values: GroupValues) -> None:
    own = np.flatnonzero(table.group.site_shape != NO_SHAPE)
    if len(own):
        table.edit("site_pos")[:, own] = values.sites.pos
        table.edit("site_quat")[:, own] = values.sites.quat


def _set_constraints(table: FieldTable, plan: GroupPlan, values: GroupValues) -> None:
    model, equalities = table.group.model, values.equalities
    count = len(plan.equalities.constraints)
    if count == 0:
        return
    data = table.edit("eq_data")
    for index, constraint in enumerate(plan.equalities.constraints):
        if constraint.kind == JOINT:
            data[:, index, :5] = equalities.data[:, index]
            continue
        if constraint.kind == WELD:
            data[:, index, 10] = equalities.torquescale[:, index]
        for site, pose in (
            (int(model.eq_obj1id[index]), equalities.site1),
            (int(model.eq_obj2id[index]), equalities.site2),
        ):
            position, quat = site_wxyz(pose[:, index])
            table.edit("site_pos")[:, site] = position
            table.edit("site_quat")[:, site] = quat
    table.edit("eq_active0")[:, :count] = equalities.active
    table.edit("eq_solref")[:, :count] = equalities.solref
    table.edit("eq_solimp")[:, :count] = equalities.solimp


def _set_ropes(table: FieldTable, plan: GroupPlan, values: GroupValues) -> None:
    model, count = table.group.model, len(plan.equalities.ropes)
    if count == 0:
        return
    table.edit("tendon_range")[:, :count] = values.ropes.range
    table.edit("tendon_solref_lim")[:, :count] = values.ropes.solref
    table.edit("tendon_solimp_lim")[:, :count] = values.ropes.solimp
    for index in range(count):
        for number, position in enumerate((values.ropes.site1, values.ropes.site2)):
            table.edit("site_pos")[:, model.site(f"rope_{index}_site_{number}").id] = position[:, index]


def _set_drives(table: FieldTable, plan: GroupPlan, values: GroupValues) -> None:
    count, drives = len(plan.drives), values.drives
    if count == 0:
        return
    table.edit("actuator_gainprm")[:, :count, 0] = drives.gain
    table.edit("actuator_biasprm")[:, :count, :3] = drives.bias
    ball = np.flatnonzero(np.array(plan.drives.place) >= 0)
    table.edit("actuator_gear")[:, ball, :3] = drives.axis[:, ball]
    limited = np.flatnonzero(drives.force_limited)
    table.edit("actuator_forcerange")[:, limited] = drives.force_range[:, limited]


def _set_public(group: MujocoGroup, plan: GroupPlan, values: GroupValues, flags: ModelFlags) -> None:
    """Set what engines need beside the fields of MuJoCo's model."""
    if flags & _POSES:
        bodies = plan.structure.bodies
        mocap = [index for index, body in enumerate(bodies) if body is not None and body.is_mocap]
        frames = values.frames
        group.joint_rotation = frames.joint_rotation
        group.mocap_pose = np.concatenate([frames.body_pos[:, mocap], frames.body_quat[:, mocap]], axis=-1)
    if flags & ModelFlags.SHAPE_PROPERTIES:
        material = values.materials
        group.geom_force_space = material.force_space
        group.geom_ke, group.geom_kd = material.stiffness, material.damping
        group.geom_margin_authored = material.margin
