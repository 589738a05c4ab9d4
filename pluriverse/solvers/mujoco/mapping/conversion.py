"""Conversion: from a model to one MuJoCo model per group of worlds.

The steps: sort worlds into groups, plan the structure of each, compute the values of its worlds in kernels,
write and compile the description of the first world, write the fields of all worlds with the same kernels,
and let MuJoCo compute the derived fields.
"""

from collections.abc import Mapping

import numpy as np

from pluriverse.model import Model
from pluriverse.solvers.mujoco.caveats import warn_of_caveats
from pluriverse.solvers.mujoco.mapping.drives import EFFORT, POSITION, VELOCITY
from pluriverse.solvers.mujoco.mapping.fields import SPECIAL_FRAME, FieldTable, update_derived
from pluriverse.solvers.mujoco.mapping.group import NO_SHAPE, JointKind, MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_fields import reset_extra, write_fields
from pluriverse.solvers.mujoco.mapping.group_kernels import describe_worlds
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan, plan_group
from pluriverse.solvers.mujoco.mapping.grouping import compiled_numbers, find_groups
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.spec import SpecWriter
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.solvers.mujoco.versions import check_version
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
        ImportError: If the installed MuJoCo is faulty.
        ValueError: If MuJoCo cannot represent something; the message names it.
    """
    check_version()
    rows = ModelRows(model)
    groups = []
    for worlds in find_groups(rows, options):
        plan = plan_group(rows, options, worlds)
        group = compile_group(rows, options, plan)
        group.compiled = compiled_numbers(rows, worlds[:1])[0]
        warn_of_caveats(rows, options, plan, group)
        groups.append(group)
    return groups


def compile_group(
    rows: ModelRows,
    options: MujocoOptions,
    plan: GroupPlan,
    general_bodies: frozenset[int] = frozenset(),
) -> MujocoGroup:
    """Return a group with its compiled model and the fields of all its worlds."""
    described = describe_worlds(rows, plan)
    general_bodies |= find_general_bodies(plan, described)
    writer = SpecWriter(rows, options, plan, described, general_bodies=general_bodies)
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
    table = FieldTable(group)
    for name, entries in options.batched(rows).items():
        table.put(f"opt.{name}", entries[plan.worlds])
    table.apply()
    update_derived(group, {"qpos0"})  # MuJoCo has derived fields at the poses of the first world
    reset_extra(group)
    write_fields(group, rows, options)
    group.revision = 0
    return group


def find_general_bodies(plan: GroupPlan, fields: Mapping[str, np.ndarray]) -> frozenset[int]:
    """Return the bodies of MuJoCo whose inertial frame or joint frames differ between worlds.

    Args:
        plan: Structure of the group.
        fields: Those of `SPECIAL_FRAME`, shape [row, body or joint, ...].
    """
    differs = np.zeros(len(plan.structure.bodies), dtype=bool)
    carrier = np.array([joint.body for joint in plan.structure.joints], dtype=np.int64)
    for name in SPECIAL_FRAME:
        moved = np.flatnonzero((fields[name] != fields[name][:1]).any(axis=(0, 2)))
        differs[moved if name.startswith("body") else carrier[moved]] = True
    return frozenset(np.flatnonzero(differs).tolist())


def _fill_maps(group: MujocoGroup, rows: ModelRows, plan: GroupPlan, sites: list[int]) -> None:
    """Set the indices of the worlds' entities in MuJoCo's model; `sites` are those of `plan.sites`."""
    structure, model = plan.structure, group.model
    template = structure.template
    for kind in ("body", "joint", "coord", "dof", "shape", "equality"):
        setattr(group, f"first_{kind}", rows.first[kind][plan.worlds])
    group.joint_kind = np.array(
        [_KIND.get(JointType(int(kind)), JointKind.SCALAR) for kind in template.joint_type], dtype=np.int64
    )
    group.joint_child = np.asarray(template.joint_child, dtype=np.int64)
    group.joint_parent = np.asarray(template.joint_parent, dtype=np.int64)
    group.joint_kind[(group.joint_kind == JointKind.FREE) & (group.joint_parent >= 0)] = JointKind.FLOAT
    group.joint_coord, group.joint_dof = structure.joint_coord, structure.joint_dof
    group.joint_dof_count = np.asarray(template.joint_dof_dim.sum(axis=1), dtype=np.int64)
    extra = np.where(np.isin(group.joint_kind, [JointKind.BALL, JointKind.FREE, JointKind.FLOAT]), 1, 0)
    group.joint_coord_count = group.joint_dof_count + extra
    group.joint_qpos = np.full(template.node_count, -1, dtype=np.int64)
    group.joint_qvel = np.full(template.node_count, -1, dtype=np.int64)
    group.dof_qvel = np.full(template.dof_count, -1, dtype=np.int64)
    group.dof_joint = np.full(template.dof_count, -1, dtype=np.int64)
    for index, joint in enumerate(structure.joints):
        assert joint.qpos == model.jnt_qposadr[index]
        assert joint.qvel == model.jnt_dofadr[index]
        if joint.part == 0:
            group.joint_qpos[joint.joint], group.joint_qvel[joint.joint] = joint.qpos, joint.qvel
        size = {0: 6, 1: 3}.get(int(joint.kind), 1)
        group.dof_qvel[joint.dof : joint.dof + size] = joint.qvel + np.arange(size)
        group.dof_joint[joint.dof : joint.dof + size] = index
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
