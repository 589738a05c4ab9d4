"""Conversion: from a model to one MuJoCo model per group of worlds.

The steps: sort worlds into groups, plan the structure of each, compute the numbers of all its worlds, write
and compile the description of the first world, write the numbers of all worlds over it, and let MuJoCo
compute what follows from them.
"""

import numpy as np

from pluriverse.model import Model, poses
from pluriverse.solvers.mujoco.caveats import warn_of_caveats
from pluriverse.solvers.mujoco.drives import EFFORT, POSITION, VELOCITY
from pluriverse.solvers.mujoco.equality import JOINT, WELD, site_wxyz
from pluriverse.solvers.mujoco.extensions import EXTENSIONS
from pluriverse.solvers.mujoco.fields import (
    FieldTable,
    keep_free_of_shortcuts,
    keep_free_of_trees,
    update_derived,
)
from pluriverse.solvers.mujoco.frames import as_wxyz, as_xyzw
from pluriverse.solvers.mujoco.geoms import (
    BOX,
    HFIELD,
    MESH,
    PLANE,
    bounding_radius,
    half_extents,
)
from pluriverse.solvers.mujoco.group import NO_SHAPE, JointKind, MujocoGroup
from pluriverse.solvers.mujoco.grouping import compiled_numbers, find_groups
from pluriverse.solvers.mujoco.joints import compute_limit_solref, kinematic_joints
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.solvers.mujoco.rows import ModelRows
from pluriverse.solvers.mujoco.spec import SpecWriter
from pluriverse.solvers.mujoco.values import GroupPlan, GroupValues, compute_values, plan_group
from pluriverse.types import JointType

_KIND = {
    JointType.FIXED: JointKind.NONE,
    JointType.BALL: JointKind.BALL,
    JointType.FREE: JointKind.FREE,
    JointType.DISTANCE: JointKind.FREE,
}


def convert_model(model: Model, options: MujocoOptions) -> list[MujocoGroup]:
    """Return the groups of all worlds of a model.

    Raises:
        ValueError: If MuJoCo cannot represent something; the message names it.
    """
    rows = ModelRows(model)
    groups = []
    for worlds in find_groups(rows, options):
        plan = plan_group(rows, options, worlds)
        values = compute_values(rows, plan)
        group = compile_group(rows, options, plan, values)
        group.compiled = compiled_numbers(rows, worlds[:1])[0]
        warn_of_caveats(rows, options, plan, values, group)
        groups.append(group)
    return groups


def compile_group(
    rows: ModelRows,
    options: MujocoOptions,
    plan: GroupPlan,
    values: GroupValues,
    general_bodies: frozenset[int] = frozenset(),
) -> MujocoGroup:
    """Return a group with its compiled model and the fields of all its worlds."""
    general_bodies |= find_general_bodies(plan, values)
    writer = SpecWriter(rows, options, plan, values, general_bodies=general_bodies)
    spec = writer.write()
    try:
        compiled = spec.compile()
    except ValueError as error:
        raise ValueError(
            f"SolverMuJoCo: MuJoCo does not take world {int(plan.worlds[0])} "
            f"('{rows.model.world_label[int(plan.worlds[0])]}'): {error}"
        ) from error
    group = MujocoGroup(
        worlds=plan.worlds, spec=spec, model=compiled, plan=plan, general_bodies=general_bodies
    )
    _fill_maps(group, rows, plan, [compiled.site(name).id for name in writer.names.site])
    write_fields(group, rows, options, plan, values)
    group.revision = 0
    return group


def find_general_bodies(plan: GroupPlan, values: GroupValues) -> frozenset[int]:
    """Return the bodies of MuJoCo whose inertial frame or joint frames differ between worlds."""
    inertias, frames = values.inertias, values.frames
    differs = np.zeros(len(plan.structure.bodies), dtype=bool)
    for table in (inertias.body_ipos, inertias.body_iquat):
        differs |= (table != table[:1]).any(axis=(0, 2))
    carrier = np.array([joint.body for joint in plan.structure.joints], dtype=np.int64)
    for table in (frames.jnt_pos, frames.jnt_axis):
        differs[carrier[(table != table[:1]).any(axis=(0, 2))]] = True
    return frozenset(np.flatnonzero(differs).tolist())


def write_fields(
    group: MujocoGroup,
    rows: ModelRows,
    options: MujocoOptions,
    plan: GroupPlan,
    values: GroupValues,
) -> set[str]:
    """Write the numbers of all worlds into a group; return the names of the fields that changed."""
    table = FieldTable(group)
    _set_bodies(table, rows, plan, values)
    _set_joints(table, values)
    _set_geoms(table, options, plan, values)
    _set_sites(table, plan, values)
    _set_constraints(table, plan, values)
    _set_drives(table, plan, values)
    for extension in EXTENSIONS:
        extension.put_fields(table, rows, plan)
    for name, entries in options.batched(rows).items():
        table.put(f"opt.{name}", entries[plan.worlds])
    changed = table.apply()
    changed |= update_derived(group, changed)
    keep_free_of_shortcuts(group)
    if keep_free_of_trees(group, changed):
        group.revision += 1
    table.put(
        "jnt_solref",
        compute_limit_solref(
            rows, plan.structure, plan.worlds, group.value("dof_invweight0"), values.joints.jnt_solimp
        ),
    )
    changed |= table.apply()
    for name, mask in (
        ("jnt_limited", values.joints.jnt_limited),
        ("jnt_actfrclimited", values.joints.jnt_actfrclimited),
    ):
        field = getattr(group.model, name)
        if (mask & (field == 0)).any():
            field[mask] = 1
            changed.add(name)
            group.revision += 1
    _set_public(group, rows, plan, values)
    return changed


def _set_bodies(table: FieldTable, rows: ModelRows, plan: GroupPlan, values: GroupValues) -> None:
    frames, inertias = values.frames, values.inertias
    table.put("body_pos", frames.body_pos)
    table.put("body_quat", frames.body_quat)
    table.put("body_mass", inertias.body_mass)
    table.put("body_ipos", inertias.body_ipos)
    table.put("body_iquat", inertias.body_iquat)
    table.put("body_inertia", inertias.body_inertia)
    gravcomp = rows.custom("gravcomp", "body", plan.worlds)
    if gravcomp is not None:
        made = [index for index, body in enumerate(plan.structure.bodies) if body is not None]
        source = [body.body for body in plan.structure.bodies if body is not None]
        table.edit("body_gravcomp")[:, made] = gravcomp[:, source]


def _set_joints(table: FieldTable, values: GroupValues) -> None:
    frames, joints = values.frames, values.joints
    table.put("jnt_pos", frames.jnt_pos)
    table.put("jnt_axis", frames.jnt_axis)
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
    pos, quat = place.pos.copy(), place.quat.copy()
    for geom in np.flatnonzero(kind == MESH):
        # MuJoCo moves the frame of a mesh to its centre, along its principal axes.
        mesh = int(model.geom_dataid[geom])
        own = np.concatenate([model.mesh_pos[mesh], as_xyzw(model.mesh_quat[mesh])])
        pose = np.concatenate([pos[:, geom], as_xyzw(quat[:, geom])], axis=-1)
        pose = poses.compose(pose, np.broadcast_to(own, pose.shape))
        pos[:, geom], quat[:, geom] = pose[:, :3], as_wxyz(pose[:, 3:])
    table.put("geom_pos", pos)
    table.put("geom_quat", quat)
    table.edit("geom_size")[:, primitive] = place.size[:, primitive]
    sized = primitive & (kind != PLANE)
    size = table.edit("geom_size")
    table.edit("geom_rbound")[:, sized] = bounding_radius(kind, size, table.edit("geom_rbound"))[:, sized]
    box = table.edit("geom_aabb").reshape(len(size), len(kind), 6)
    box[:, sized, 3:] = half_extents(kind, size, box[..., 3:])[:, sized]
    table.put("geom_friction", material.friction)
    table.put("geom_solref", material.solref)
    table.put("geom_solimp", material.solimp)
    table.put("geom_solmix", material.solmix)
    margin = material.margin if margins_are_kept(options, plan) else np.zeros_like(material.margin)
    table.put("geom_margin", margin)
    body_margin = table.edit("body_margin")
    for geom, body in enumerate(plan.geoms.body):
        first = geom == 0 or plan.geoms.body[geom - 1] != body
        body_margin[:, body] = margin[:, geom] if first else np.maximum(body_margin[:, body], margin[:, geom])


def margins_are_kept(options: MujocoOptions, plan: GroupPlan) -> bool:
    """Return whether MuJoCo is told the margins of geoms.

    MuJoCo Warp refuses them between boxes, and between boxes and meshes with several contacts per pair.
    """
    boxes = bool((plan.geoms.kind == BOX).any())
    meshes = bool((plan.geoms.kind == MESH).any())
    return options.keep_margins or not (boxes or (meshes and bool(options.enable_multiccd)))


def _set_sites(table: FieldTable, plan: GroupPlan, values: GroupValues) -> None:
    model, group = table.group.model, table.group
    place, equalities = values.sites, values.equalities
    own = np.flatnonzero(group.site_shape != NO_SHAPE)
    if len(own):
        table.edit("site_pos")[:, own] = place.pos
        table.edit("site_quat")[:, own] = place.quat
    for index, constraint in enumerate(plan.equalities.constraints):
        if constraint.kind == JOINT:
            continue
        for site, pose in (
            (int(model.eq_obj1id[index]), equalities.site1),
            (int(model.eq_obj2id[index]), equalities.site2),
        ):
            position, quat = site_wxyz(pose[:, index])
            table.edit("site_pos")[:, site] = position
            table.edit("site_quat")[:, site] = quat


def _set_constraints(table: FieldTable, plan: GroupPlan, values: GroupValues) -> None:
    equalities = values.equalities
    count = len(plan.equalities.constraints)
    if count == 0:
        return
    data = table.edit("eq_data")
    for index, constraint in enumerate(plan.equalities.constraints):
        if constraint.kind == JOINT:
            data[:, index, :5] = equalities.data[:, index]
        elif constraint.kind == WELD:
            data[:, index, 10] = equalities.torquescale[:, index]
    table.edit("eq_active0")[:, :count] = equalities.active
    table.edit("eq_solref")[:, :count] = equalities.solref
    table.edit("eq_solimp")[:, :count] = equalities.solimp


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


def _set_public(group: MujocoGroup, rows: ModelRows, plan: GroupPlan, values: GroupValues) -> None:
    """Set what engines need beside the fields of MuJoCo's model."""
    group.joint_rotation = values.frames.joint_rotation
    mocap = [index for index, body in enumerate(plan.structure.bodies) if body is not None and body.is_mocap]
    group.mocap_pose = np.concatenate(
        [values.frames.body_pos[:, mocap], values.frames.body_quat[:, mocap]], axis=-1
    )
    group.geom_force_space = values.materials.force_space
    group.geom_ke, group.geom_kd = values.materials.stiffness, values.materials.damping
    group.geom_margin_authored = values.materials.margin


def _fill_maps(group: MujocoGroup, rows: ModelRows, plan: GroupPlan, sites: list[int]) -> None:
    """Set where the entities of the worlds are in MuJoCo's model; `sites` are those of `plan.sites`."""
    structure, model = plan.structure, group.model
    template = structure.template
    for kind in ("body", "joint", "coord", "dof", "shape", "equality"):
        setattr(group, f"first_{kind}", rows.first[kind][plan.worlds])
    group.joint_kind = np.array(
        [_KIND.get(JointType(int(kind)), JointKind.SCALAR) for kind in template.joint_type], dtype=np.int64
    )
    group.joint_child = np.asarray(template.joint_child, dtype=np.int64)
    group.joint_coord, group.joint_dof = structure.joint_coord, structure.joint_dof
    group.joint_dof_count = np.asarray(template.joint_dof_dim.sum(axis=1), dtype=np.int64)
    extra = np.where(np.isin(group.joint_kind, [JointKind.BALL, JointKind.FREE]), 1, 0)
    group.joint_coord_count = group.joint_dof_count + extra
    group.joint_qpos = np.full(template.node_count, -1, dtype=np.int64)
    group.joint_qvel = np.full(template.node_count, -1, dtype=np.int64)
    group.dof_qvel = np.full(template.dof_count, -1, dtype=np.int64)
    group.dof_joint = np.full(template.dof_count, -1, dtype=np.int64)
    for index, joint in enumerate(structure.joints):
        assert joint.qpos == model.jnt_qposadr[index]
        assert joint.qvel == model.jnt_dofadr[index]
        if joint.place == 0:
            group.joint_qpos[joint.joint], group.joint_qvel[joint.joint] = joint.qpos, joint.qvel
        size = {0: 6, 1: 3}.get(int(joint.kind), 1)
        group.dof_qvel[joint.dof : joint.dof + size] = joint.qvel + np.arange(size)
        group.dof_joint[joint.dof : joint.dof + size] = index
    group.kinematic = kinematic_joints(rows, structure, plan.worlds)
    group.position_ctrl = plan.drives.controls(POSITION, template.dof_count)
    group.velocity_ctrl = plan.drives.controls(VELOCITY, template.dof_count)
    group.effort_ctrl = plan.drives.controls(EFFORT, template.dof_count)
    group.body_mj = structure.body_mj
    group.mj_body = np.array([-1 if body is None else body.body for body in structure.bodies], dtype=np.int64)
    group.mocap_joint = np.array(
        [body.chain[0] for body in structure.bodies if body is not None and body.is_mocap], dtype=np.int64
    )
    group.geom_shape = plan.geoms.shape.copy()
    group.shape_geom = _inverse(plan.geoms.shape, np.arange(len(plan.geoms)), template.shape_count)
    site_of = np.array(sites, dtype=np.int64)
    group.site_shape = np.full(model.nsite, NO_SHAPE, dtype=np.int64)
    group.site_shape[site_of] = plan.sites.shape
    group.shape_site = _inverse(plan.sites.shape, site_of, template.shape_count)
    group.equality_eq = plan.equalities.by_equality(len(template.equality))


def _inverse(codes: np.ndarray, targets: np.ndarray, count: int) -> np.ndarray:
    """Return the target of each world-local entity, -1 for none."""
    result = np.full(count, -1, dtype=np.int64)
    own = codes >= 0
    result[codes[own]] = targets[own]
    return result
