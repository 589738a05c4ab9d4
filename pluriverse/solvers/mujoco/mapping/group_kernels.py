"""GroupKernels: the one mapping from arrays of the model to fields of MuJoCo's models, for a group of worlds.

The same kernels serve three times: for the description of the first world, before there is a compiled model
(`describe_worlds`); for the fields of all worlds on the host, at conversion and after a notice
(`update_table`); and on the device, for arrays that are tracked (`field_sync`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.solvers.mujoco.mapping.body_kernels import body_kernels, make_body_maps, to_device
from pluriverse.solvers.mujoco.mapping.constraint_kernels import (
    assign_tendon_limits,
    constraint_kernels,
    make_constraint_maps,
)
from pluriverse.solvers.mujoco.mapping.drives import effort_limits
from pluriverse.solvers.mujoco.mapping.fields import FieldTable
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.joint_kernels import (
    assign_limited,
    assign_limits,
    joint_kernels,
    make_joint_maps,
)
from pluriverse.solvers.mujoco.mapping.joints import limited_joints
from pluriverse.solvers.mujoco.mapping.layout import (
    EQUALITY_DATA,
    FieldLayout,
    compiled_layout,
    planned_layout,
)
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.pair_kernels import assign_pairs, make_pair_maps, pair_kernels
from pluriverse.solvers.mujoco.mapping.shape_kernels import (
    assign_assets,
    assign_height_fields,
    assign_materials,
    make_shape_maps,
    shape_kernels,
)
from pluriverse.solvers.mujoco.mapping.stages import EXTRA_FIELDS, STAGES, attribute_of, fields_struct

DESCRIBED = ("inertia", "frames", "dofs", "ranges", "drives", "placement", "materials", "constraints")
"""Stages whose results the description is written from."""
_READS = {
    "limits": ("dof_invweight0",),
    "tendon_limits": ("tendon_invweight0",),
    "pairs": ("geom_friction", "geom_solref"),
}
READ_FIELDS = tuple(name for names in _READS.values() for name in names)
"""Fields that stages read."""


class GroupKernels:
    """The kernels of a group with their maps.

    Args:
        rows: Arrays of the model.
        plan: Structure of the group.
        layout: Where its entities are in the fields.
        real: Type of the numbers in the fields.
        stages: Stages that are launched.
    """

    def __init__(
        self, rows: ModelRows, plan: GroupPlan, layout: FieldLayout, real: Any, stages: Iterable[str]
    ):
        self._model, self._plan, self._real = rows.model, plan, real
        self.stages = [stage for stage in STAGES if stage in set(stages)]
        """Stages that are launched, in their order."""
        device = rows.model.device
        self._worlds: Any = to_device(plan.worlds, device)
        self._bodies = make_body_maps(plan.structure, device)
        self._joints = make_joint_maps(plan.structure, plan.drives, layout.actuator_count, device)
        self.shapes = make_shape_maps(plan, layout, device)
        """Sources of geoms and sites."""
        assign_height_fields(self.shapes, rows)
        self._constraints = make_constraint_maps(plan, layout, rows.first["equality"], device)
        self._pairs: Any = None
        # Axes of drives of ball joints depend on joint frames; if these are constant there is nothing to
        # update.
        count = len(plan.worlds) * plan.structure.template.node_count if "frames" in self.stages else 0
        self.joint_rotation: Any = wp.zeros(count, dtype=wp.quatd, device=device)
        """Rotation of the frame of each joint in MuJoCo's body, flat, shape [row joint]."""

    def assign_plan(self, rows: ModelRows) -> None:
        """Copy the inputs of a group that is not compiled yet."""
        plan, device = self._plan, self._model.device
        limited = limited_joints(rows, plan.structure, plan.worlds)
        bounded, _ = effort_limits(rows, plan.structure, plan.drives, plan.worlds)
        assign_limited(self._joints, limited, bounded, device)
        assign_materials(self.shapes, rows, plan, margins=False)

    def assign_group(self, rows: ModelRows, group: MujocoGroup, *, margins: bool) -> None:
        """Copy the values that only the host changes: custom attributes, and which joints have limits."""
        device = self._model.device
        assign_limits(self._joints, rows, group, device)
        assign_tendon_limits(self._constraints, rows, group, device)
        assign_materials(self.shapes, rows, self._plan, margins=margins)
        if group.model.npair:
            self._pairs = self._pairs or make_pair_maps(group, device)
            assign_pairs(self._pairs, rows, group, device)

    def launch(
        self,
        memory: Mapping[str, Any],
        selected: Any,
        joint_rotation: Any,
        fixed: Mapping[str, Any],
        stages: Iterable[str] | None = None,
    ) -> Iterator[str]:
        """Launch the stages one after the other; yield "derived" where MuJoCo has to compute.

        Args:
            memory: Flat arrays of the fields to write, by name. Others are left out.
            selected: 1 for the selected worlds, shape [world].
            joint_rotation: Rotation of the frame of each joint in MuJoCo's body, shape [joint], which is
                written; may be empty.
            fixed: Flat arrays of the fields that stages only read.
            stages: Which stages; None for all.
        """
        fields = fields_struct(self._real)()
        for name, array in memory.items():
            setattr(fields, attribute_of(name), array)
        run = self.stages if stages is None else [stage for stage in self.stages if stage in set(stages)]
        for stage in run:
            if stage == "derived":
                yield stage
                continue
            known = {**fixed, **memory}
            if not known.keys() >= set(_READS.get(stage, ())):
                continue  # the group has no such entity
            for kernel, inputs in self._launches(stage, known, joint_rotation):
                launch_kernel(
                    kernel,
                    dim=len(self._plan.worlds),
                    inputs=[self._worlds, selected, *inputs, fields],
                    device=self._model.device,
                )

    def _launches(
        self, stage: str, memory: Mapping[str, Any], joint_rotation: Any
    ) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the kernels of a stage with their arguments, without the fields."""
        model, real = self._model, self._real
        topology, bodies, joints, shapes = model.topology, self._bodies, self._joints, self.shapes

        def arrays(*names: str) -> list[Any]:
            return [getattr(model, name) for name in names]

        if stage == "gravity":
            yield body_kernels(real).update_gravity, [model.gravity]
        elif stage == "inertia":
            given = arrays("body_mass", "body_com", "body_inertia")
            yield body_kernels(real).update_inertia, [topology, bodies, *given]
        elif stage == "frames":
            given = [*arrays("joint_X_p", "joint_X_c", "joint_axis"), joint_rotation, self.joint_rotation]
            yield body_kernels(real).update_frames, [topology, bodies, *given]
        elif stage == "dofs":
            given = arrays("joint_armature", "joint_damping", "joint_friction")
            yield joint_kernels(real).update_dofs, [topology, joints, model.structure.body_flags, *given]
        elif stage == "ranges":
            given = arrays("joint_limit_lower", "joint_limit_upper", "joint_effort_limit")
            yield joint_kernels(real).update_ranges, [topology, joints, *given]
        elif stage == "drives":
            given = arrays("joint_target_mode", "joint_target_ke", "joint_target_kd", "joint_effort_limit")
            yield joint_kernels(real).update_drives, [topology, joints, *given, self.joint_rotation]
        elif stage == "placement":
            given = [*arrays("shape_transform", "shape_scale"), model.structure.shape_source_index]
            yield shape_kernels(real).update_placement, [topology, shapes, *given]
        elif stage == "materials":
            gains = (f"shape_material_{gain}" for gain in ("ke", "ke_per_mass", "tau"))
            friction = (f"shape_material_mu{kind}" for kind in ("", "_torsional", "_rolling"))
            given = arrays(*gains, *friction, "shape_margin")
            yield shape_kernels(real).update_materials, [topology, shapes, *given]
        elif stage == "switches":
            yield shape_kernels(real).update_switches, [topology, shapes, model.shape_enabled]
        elif stage == "pairs":
            given = [*arrays("shape_margin", "shape_enabled"), memory["geom_friction"], memory["geom_solref"]]
            yield pair_kernels(real).update_pairs, [topology, shapes, self._pairs, *given]
        elif stage == "constraints":
            yield from self._constraint_launches()
        elif stage == "limits":
            given = [*arrays("joint_limit_ke", "joint_limit_kd"), memory["dof_invweight0"]]
            yield joint_kernels(real).update_limits, [topology, joints, *given]
        elif stage == "tendon_limits":
            weight = memory["tendon_invweight0"]
            yield constraint_kernels(real).update_tendon_limits, [self._constraints, weight]

    def _constraint_launches(self) -> Iterator[tuple[Any, list[Any]]]:
        model, plan, kernels = self._model, self._plan.equalities, constraint_kernels(self._real)

        def arrays(*names: str) -> list[Any]:
            return [getattr(model, f"equality_constraint_{name}") for name in names]

        if plan.constraints:
            given = arrays("anchor", "axis", "torquescale", "relpose", "polycoef", "enabled")
            yield kernels.update_constraints, [self._constraints, *given]
        if plan.distances:
            given = arrays("anchor", "relpose", "polycoef", "enabled")
            given += [model.joint_X_p, model.joint_X_c, model.joint_limit_lower, model.joint_limit_upper]
            yield kernels.update_distances, [model.topology, self._constraints, *given]


def describe_worlds(rows: ModelRows, plan: GroupPlan) -> dict[str, np.ndarray]:
    """Return the fields of worlds for a description, in the order of the plan.

    Poses of meshes are those of their shapes; MuJoCo's compiler moves them to the centres of the meshes.

    Returns:
        Fields by name, shape [row, entity, ...].
    """
    structure, drives, layout = plan.structure, len(plan.drives), planned_layout(plan)
    body, joint, dof, geom = (
        len(structure.bodies),
        len(structure.joints),
        structure.qvel_count,
        len(plan.geoms),
    )
    site = layout.site_count
    shapes: dict[str, tuple[int, ...]] = {
        **{"body_mass": (body,), "body_ipos": (body, 3), "body_iquat": (body, 4), "body_inertia": (body, 3)},
        **{"body_pos": (body, 3), "body_quat": (body, 4), "jnt_pos": (joint, 3), "jnt_axis": (joint, 3)},
        **{"jnt_range": (joint, 2), "jnt_actfrcrange": (joint, 2)},
        **dict.fromkeys(("dof_armature", "dof_damping", "dof_frictionloss"), (dof,)),
        **{"actuator_gainprm": (drives, 10), "actuator_biasprm": (drives, 10)},
        **{"actuator_gear": (drives, 6), "actuator_forcerange": (drives, 2)},
        **{"geom_pos": (geom, 3), "geom_quat": (geom, 4), "geom_size": (geom, 3)},
        **{"geom_friction": (geom, 3), "geom_solref": (geom, 2)},
        **{"site_pos": (site, 3), "site_quat": (site, 4)},
        "eq_data": (layout.constraint_count, EQUALITY_DATA),
        "eq_active": (layout.constraint_count,),
        "tendon_range": (layout.tendon_count, 2),
    }
    kernels = GroupKernels(rows, plan, layout, wp.float64, DESCRIBED)
    kernels.assign_plan(rows)
    result = {
        name: np.zeros((len(plan.worlds), *shape), dtype=np.uint8 if name == "eq_active" else np.float64)
        for name, shape in shapes.items()
    }
    _launch_on_host(kernels, rows, result, DESCRIBED)
    return result


def compiled_kernels(rows: ModelRows, group: MujocoGroup) -> GroupKernels:
    """Return the kernels that compute the fields of a compiled group, in double precision."""
    stages = [stage for stage in STAGES if stage != "derived" and (stage != "pairs" or group.model.npair)]
    kernels = GroupKernels(rows, group.plan, compiled_layout(group), wp.float64, stages)
    assign_assets(kernels.shapes, rows, group, group.plan.assets)
    return kernels


def update_table(
    kernels: GroupKernels, rows: ModelRows, table: FieldTable, stages: Iterable[str]
) -> dict[str, np.ndarray]:
    """Write the fields of all worlds of a group into a table.

    Returns:
        What goes along with them (`EXTRA_FIELDS`), as far as the group has it, shape [row, ...].
    """
    group, selected = table.group, set(stages)
    names = {name for stage in selected for name in STAGES[stage].fields}
    values = {name: table.edit(name) for name in sorted(names | set(READ_FIELDS)) if group.has_field(name)}
    count, model = group.world_count, group.model
    extra = {
        "mocap_pos": np.array(group.mocap_pose[..., :3]),
        "mocap_quat": np.array(group.mocap_pose[..., 3:]),
        "external_ke": np.array(group.geom_ke),
        "external_kd": np.array(group.geom_kd),
    }
    if model.neq:
        extra["eq_active"] = table.edit("eq_active0").view(np.uint8)
    assert set(extra) <= set(EXTRA_FIELDS)
    _launch_on_host(kernels, rows, {**values, **extra}, selected)
    if "frames" in selected:
        extra["joint_rotation"] = kernels.joint_rotation.numpy().reshape(count, -1, 4)
    return extra


def _launch_on_host(
    kernels: GroupKernels, rows: ModelRows, values: dict[str, np.ndarray], stages: Iterable[str]
) -> None:
    """Launch stages for all worlds of a group, and write the results into arrays on the host."""
    device = rows.model.device
    memory: dict[str, Any] = {}
    for name, array in values.items():
        memory[name] = wp.array(array.reshape(-1), device=device, copy=not shares_memory(device))
    selected: Any = wp.full(rows.model.world_count, 1, dtype=wp.int32, device=device)
    nowhere: Any = wp.zeros(0, dtype=wp.quat, device=device)
    for _ in kernels.launch(memory, selected, nowhere, {}, stages):
        raise AssertionError("MuJoCo derives fields on the host by itself")
    if not shares_memory(device):
        for name, array in values.items():
            array[...] = memory[name].numpy().reshape(array.shape)


def shares_memory(device: Any) -> bool:
    """Return whether kernels on a device can write directly into arrays on the host."""
    return bool(device.is_cpu)
