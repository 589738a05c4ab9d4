"""Following: MuJoCo's models go along with the arrays of the model on the device, by kernels only.

What is followed is decided on the host, once: `Following.add` lets the fields concerned have a row per world,
compiles what worlds may come to have, and undoes the shortcuts that MuJoCo takes for fixed numbers. After
that `Following.launch` brings worlds up to date, and can be recorded into a graph together with what writes
to the arrays.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model
from pluriverse.model.world_selection import WorldSelection
from pluriverse.solvers.mujoco.attributes.actuators import driven_dofs
from pluriverse.solvers.mujoco.engine import Engine
from pluriverse.solvers.mujoco.mapping.body_kernels import BodyMaps, body_kernels, make_body_maps, upload
from pluriverse.solvers.mujoco.mapping.constraint_kernels import (
    ConstraintMaps,
    assign_tendon_limits,
    constraint_kernels,
    make_constraint_maps,
)
from pluriverse.solvers.mujoco.mapping.conversion import compile_group
from pluriverse.solvers.mujoco.mapping.fields import keep_free_of_trees, set_shortcuts
from pluriverse.solvers.mujoco.mapping.geoms import MESH, flat_shapes
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_fields import margins_are_kept
from pluriverse.solvers.mujoco.mapping.joint_kernels import (
    JointMaps,
    assign_limits,
    joint_kernels,
    make_joint_maps,
)
from pluriverse.solvers.mujoco.mapping.joints import public_dofs
from pluriverse.solvers.mujoco.mapping.mesh_assets import MeshAsset, find_assets
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.pair_kernels import (
    PairMaps,
    assign_pairs,
    make_pair_maps,
    pair_kernels,
)
from pluriverse.solvers.mujoco.mapping.refresh import replace_model
from pluriverse.solvers.mujoco.mapping.shape_kernels import (
    ShapeMaps,
    assign_assets,
    assign_materials,
    make_shape_maps,
    shape_kernels,
)
from pluriverse.solvers.mujoco.mapping.stages import (
    BESIDE_FIELDS,
    FRAME_ARRAYS,
    KNOWN_ARRAYS,
    MESH_FIELDS,
    STAGES,
    TENDON_ARRAYS,
    WITHOUT_EFFECT,
    attribute_of,
    choose_world,
    field_names,
    fields_struct,
)
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint
from pluriverse.solvers.mujoco.mapping.values import GroupValues
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.types import GeoType

# Fields that stages read, whether they are followed or not.
_READ_FIELDS = ("dof_invweight0", "geom_friction", "geom_solref")
_INERTIAL = STAGES["inertia"].reads | frozenset(FRAME_ARRAYS)

VariantRows = Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Meshes that shapes may come to have: flat shapes of a world, and sources and sizes, shape [variant, shape]
and [variant, shape, 3]."""


class Following:
    """Brings MuJoCo's models up to date on the device.

    Args:
        model: Model that the groups are of.
        options: How MuJoCo solves.
        groups: Its groups.
        engine: What steps them.
    """

    def __init__(self, model: Model, options: MujocoOptions, groups: Sequence[MujocoGroup], engine: Engine):
        self._model, self._options, self._groups, self._engine = model, options, groups, engine
        self._names: frozenset[str] = frozenset()
        self._chosen: Any = wp.zeros(model.world_count, dtype=wp.int32, device=model.device)
        self._followers: list[_Follower] = []
        self._meshes: list[Any] = []
        self._dropped: list[np.ndarray] = []
        self._retired: list[_Follower] = []  # recorded launches know their memory

    def add(self, names: Mapping[str, np.ndarray | None], meshes: VariantRows = ()) -> None:
        """Follow arrays of the model from now on, next to those followed before.

        Args:
            names: Arrays by name, each with a mask of the entries that may take any value, or None.
            meshes: Meshes that shapes may come to have.

        Raises:
            ValueError: If MuJoCo has something compiled in; the message names it.
        """
        for name, mask in names.items():
            if not hasattr(self._model, name):
                raise ValueError(
                    f"SolverMuJoCo.track_model: the model has no array {name!r}. Pass a list of names of "
                    "arrays of Model, such as ['body_mass']."
                )
            if mask is not None and len(mask) != len(getattr(self._model, name)):
                raise ValueError(
                    f"SolverMuJoCo.track_model: the mask of {name} has {len(mask)} entries, but the array "
                    f"{len(getattr(self._model, name))}. Pass one truth value per entry, or None."
                )
            if name not in KNOWN_ARRAYS | WITHOUT_EFFECT:
                raise ValueError(
                    f"SolverMuJoCo: {name} cannot change on the device, for MuJoCo has it compiled in. Write "
                    "to it on the host and call notify_model_changed(), or make a new solver."
                )
        wanted = self._names | (frozenset(names) & KNOWN_ARRAYS)
        if not wanted:
            return
        rows = ModelRows(self._model)
        drawn = names.get("shape_scale")
        self._check_sizes(rows, drawn)
        if wanted == self._names and not meshes and (drawn is None or not drawn.any()):
            return  # followed already
        self._names = wanted
        self._meshes += meshes
        self._engine.on_renewal = None
        for index, group in enumerate(self._groups):
            self._prepare_group(rows, index, group, drawn)
        self._retired += self._followers
        self._followers = [
            _Follower(self._model, self._options, rows, self._groups, index, self._engine, self._names)
            for index in range(len(self._groups))
        ]
        self.launch_all()
        self._engine.on_renewal = self.launch_all

    def sync_from_host(self) -> None:
        """Go on after the groups were brought up to date on the host."""
        if self._followers:
            rows = ModelRows(self._model)
            for follower in self._followers:
                follower.assign(rows)
            self.launch_all()

    def launch_all(self) -> None:
        """Bring all worlds up to date. Only launches."""
        everywhere: Any = wp.zeros(0, dtype=wp.bool, device=self._model.device)
        self.launch(WorldSelection(self._model.structure.worlds, everywhere, None))

    def launch(self, choice: WorldSelection) -> None:
        """Bring worlds up to date. Only launches."""
        if not self._followers:
            return
        self._chosen.zero_()
        launch_kernel(
            choose_world,
            dim=choice.worlds.size,
            inputs=[choice.worlds, choice.mask],
            outputs=[self._chosen],
            device=self._model.device,
        )
        for follower in self._followers:
            follower.launch(self._chosen)

    def _check_sizes(self, rows: ModelRows, drawn: np.ndarray | None) -> None:
        """Raise if shapes are to take any size whose geometry MuJoCo compiles."""
        if drawn is None:
            return
        fixed = [GeoType.HFIELD]
        if not self._engine.knows_field("mesh_vert"):
            fixed += [GeoType.MESH, GeoType.CONVEX_MESH, GeoType.CONE]
        kinds = rows.array("shape_type")
        used = np.zeros(len(kinds), dtype=bool)
        for group in self._groups:
            used[flat_shapes(rows, group.plan.geoms, group.worlds)] = True
        bad = np.flatnonzero(drawn & used & np.isin(kinds, fixed))
        if len(bad):
            shape = int(bad[0])
            raise ValueError(
                f"SolverMuJoCo: shape '{self._model.shape_label[shape]}' (index {shape}) is a "
                f"{GeoType(int(kinds[shape])).name.lower()}, whose size MuJoCo has compiled in, so it cannot "
                "be drawn. Leave it out with entities=, use variants of several sizes, step meshes and "
                "cones in MuJoCo's C engine, or use SolverSAP."
            )

    def _prepare_group(
        self,
        rows: ModelRows,
        index: int,
        group: MujocoGroup,
        drawn: np.ndarray | None,
    ) -> None:
        """Let a group have all that may come, and a row per world for what changes."""
        names, model = self._names, group.model
        plan = group.plan
        if drawn is not None:
            plan.sized |= drawn[flat_shapes(rows, plan.geoms, group.worlds)].any(axis=0) & (
                plan.geoms.kind == MESH
            )
        known = {asset.key for asset in plan.assets}
        needed = {
            asset.key: asset
            for asset in (
                *_assets(rows, group, self._meshes),
                *find_assets(rows, plan.geoms, group.worlds, plan.sized)[0],
            )
        }
        fresh = [asset for key, asset in needed.items() if key not in known]
        if plan.sized.any():  # geoms have other meshes now than those of a fixed size
            plan.assets = [asset for asset in plan.assets if asset.key in needed]
        plan.assets.extend(fresh)
        bodies = range(1, model.nbody)
        general = frozenset(bodies) if names & _INERTIAL else frozenset()
        if fresh or not general <= group.general_bodies:
            # There will be other vertices; recorded launches may know the memory of those that there were.
            self._dropped += [group.fields.pop(name) for name in MESH_FIELDS if name in group.fields]
            values = GroupValues(rows, group.plan)
            compiled = compile_group(rows, self._options, group.plan, values, group.general_bodies | general)
            replace_model(group, compiled)
        _open_ranges(rows, group, names)
        if "shape_enabled" in names:
            group.switched = True
        followed = {
            name
            for stage in active_stages(group, names)
            for name in STAGES[stage].fields
            if self._engine.knows_field(name) and _has_field(group, name)
        }
        if plan.sized.any():
            followed |= set(MESH_FIELDS)
        for name in sorted(followed):
            group.fields.setdefault(name, np.array(group.value(name), order="C"))
        group.followed = frozenset(followed | (group.followed & group.fields.keys()))
        changed = set_shortcuts(group)
        keep_free_of_trees(group, set())
        group.revision += 1
        self._engine.fields_changed(index, followed | changed)


class _Follower:
    """Brings the worlds of one group up to date."""

    def __init__(
        self,
        model: Model,
        options: MujocoOptions,
        rows: ModelRows,
        groups: Sequence[MujocoGroup],
        index: int,
        engine: Engine,
        names: frozenset[str],
    ):
        group = groups[index]
        self._model, self._options, self._index = model, options, index
        self._group, self._engine = group, engine
        self._stages = active_stages(group, names)
        device, plan = model.device, group.plan
        self._worlds: Any = upload(group.worlds, device)
        self._bodies: BodyMaps = make_body_maps(plan.structure, device)
        actuator_count = len(group.model.actuator_gainprm)
        self._joints: JointMaps = make_joint_maps(plan.structure, plan.drives, actuator_count, device)
        self._shapes: ShapeMaps = make_shape_maps(group, device)
        self._pairs: PairMaps = make_pair_maps(group, device)
        self._constraints: ConstraintMaps = make_constraint_maps(group, rows.first["equality"], device)
        self._memory: dict[str, Any] = {}
        # Rotations of joint frames in double precision, which axes of drives of ball joints follow from.
        count = group.world_count * plan.structure.template.node_count if "frames" in self._stages else 0
        self._rotation: Any = wp.zeros(count, dtype=wp.quatd, device=device)
        self._fixed: dict[str, Any] = {}
        self._shapes.gain_first = sum(g.world_count * g.model.ngeom for g in groups[:index])
        assign_assets(self._shapes, rows, group, plan.assets)
        self.assign(rows)

    def assign(self, rows: ModelRows) -> None:
        """Take in what only the host changes."""
        group, device = self._group, self._model.device
        assign_limits(self._joints, rows, group.plan.structure, group, device)
        assign_tendon_limits(self._constraints, rows, group, device)
        if group.model.npair:
            assign_pairs(self._pairs, rows, group, device)
        assign_materials(self._shapes, rows, group, margins=margins_are_kept(self._options, group))
        for name in _READ_FIELDS:
            values = np.ascontiguousarray(group.value(name)).reshape(-1)
            kind = wp.dtype_to_numpy(self._engine.real)
            if name in self._fixed:
                self._fixed[name].assign(values.astype(kind))
            else:
                self._fixed[name] = wp.array(values, dtype=self._engine.real, device=device)

    def launch(self, chosen: wp.array[int]) -> None:
        """Bring the worlds that are chosen up to date. Only launches."""
        memory = self._engine.tracked_memory(self._index)
        fields = fields_struct(self._engine.real)()
        for name in (*field_names(), *MESH_FIELDS, *BESIDE_FIELDS):
            if name in memory:
                setattr(fields, attribute_of(name), memory[name])
        self._memory = memory  # a struct keeps addresses only
        for kernel, inputs in self._launches(fields):
            if kernel is None:
                self._engine.derive_fields(self._index, chosen)
                continue
            launch_kernel(
                kernel,
                dim=self._group.world_count,
                inputs=[self._worlds, chosen, *inputs],
                device=self._model.device,
            )

    def _launches(self, fields: Any) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the kernels to launch with their arguments; None for what the engine derives."""
        model, stages, real = self._model, self._stages, self._engine.real
        topology = model.topology
        if "gravity" in stages:
            yield body_kernels(real).follow_gravity, [model.gravity, fields]
        if "inertia" in stages:
            arrays = [model.body_mass, model.body_com, model.body_inertia]
            yield body_kernels(real).follow_inertia, [topology, self._bodies, *arrays, fields]
        if "frames" in stages:
            arrays = [model.joint_X_p, model.joint_X_c, model.joint_axis]
            arrays += [self._engine.joint_rotation, self._rotation]
            yield body_kernels(real).follow_frames, [topology, self._bodies, *arrays, fields]
        if "dofs" in stages:
            arrays = [
                model.structure.body_flags,
                model.joint_armature,
                model.joint_damping,
                model.joint_friction,
            ]
            yield joint_kernels(real).follow_dofs, [topology, self._joints, *arrays, fields]
        if "ranges" in stages:
            arrays = [model.joint_limit_lower, model.joint_limit_upper, model.joint_effort_limit]
            yield joint_kernels(real).follow_ranges, [topology, self._joints, *arrays, fields]
        if "drives" in stages:
            arrays = [model.joint_target_mode, model.joint_target_ke, model.joint_target_kd]
            arrays += [model.joint_effort_limit, self._rotation]
            yield joint_kernels(real).follow_drives, [topology, self._joints, *arrays, fields]
        if "placement" in stages:
            arrays = [model.shape_transform, model.shape_scale, model.structure.shape_source_index]
            yield shape_kernels(real).follow_placement, [topology, self._shapes, *arrays, fields]
        if "materials" in stages:
            arrays = [model.shape_material_ke, model.shape_material_tau, model.shape_material_mu]
            arrays += [model.shape_material_mu_torsional, model.shape_material_mu_rolling]
            yield (
                shape_kernels(real).follow_materials,
                [topology, self._shapes, *arrays, model.shape_margin, fields],
            )
        if "switches" in stages:
            arrays = [model.shape_enabled]
            yield shape_kernels(real).follow_switches, [topology, self._shapes, *arrays, fields]
        if "pairs" in stages:
            arrays = [model.shape_margin, model.shape_enabled]
            arrays += [self._field("geom_friction"), self._field("geom_solref")]
            yield (
                pair_kernels(real).follow_pairs,
                [topology, self._shapes, self._pairs, *arrays, fields],
            )
        if "constraints" in stages:
            yield from self._constraint_launches(fields)
        if "derived" in stages:
            yield None, []
        if "limits" in stages:
            arrays = [model.joint_limit_ke, model.joint_limit_kd, self._field("dof_invweight0")]
            yield joint_kernels(real).follow_limits, [topology, self._joints, *arrays, fields]
        if "tendon_limits" in stages:
            yield constraint_kernels(real).follow_tendon_limits, [self._constraints, fields]

    def _constraint_launches(self, fields: Any) -> Iterator[tuple[Any, list[Any]]]:
        model, plan = self._model, self._group.plan.equalities
        kernels = constraint_kernels(self._engine.real)
        anchor, relpose = model.equality_constraint_anchor, model.equality_constraint_relpose
        polycoef, enabled = model.equality_constraint_polycoef, model.equality_constraint_enabled
        if plan.constraints:
            weight, axis = model.equality_constraint_torquescale, model.equality_constraint_axis
            arrays = [anchor, axis, weight, relpose, polycoef, enabled]
            yield kernels.follow_constraints, [self._constraints, *arrays, fields]
        if plan.ropes:
            arrays = [anchor, relpose, polycoef, enabled, model.joint_X_p, model.joint_X_c]
            arrays += [model.joint_limit_lower, model.joint_limit_upper]
            yield kernels.follow_ropes, [model.topology, self._constraints, *arrays, fields]

    def _field(self, name: str) -> Any:
        """Return a field of all worlds, flat, whether it is followed or not."""
        if name in self._memory:
            return self._memory[name]
        return self._fixed[name]


def active_stages(group: MujocoGroup, names: frozenset[str]) -> list[str]:
    """Return the stages that a group needs to follow arrays, in their order."""
    plan, model = group.plan, group.model
    result = []
    for stage, entry in STAGES.items():
        reads = entry.reads
        if stage == "drives" and not any(place >= 0 for place in plan.drives.place):
            reads = reads - frozenset(FRAME_ARRAYS)
        if stage == "constraints":
            if not any(rope.joint >= 0 for rope in plan.equalities.ropes):
                reads = frozenset(name for name in reads if name.startswith("equality"))
            if not (plan.equalities.constraints or plan.equalities.ropes):
                reads = frozenset()
        if stage in ("derived", "limits", "tendon_limits") and (model.ntendon or _uses_sites(model)):
            reads = reads | TENDON_ARRAYS
        if reads & names and any(_has_field(group, name) for name in entry.fields):
            result.append(stage)
    return result


def _uses_sites(model: Any) -> bool:
    """Return whether actuators act on sites or bodies, so that where these are counts."""
    joints = (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
    return bool((~np.isin(model.actuator_trntype, joints)).any())


def _has_field(group: MujocoGroup, name: str) -> bool:
    if name == "stat.meaninertia" and group.model.nv == 0:
        return False  # nothing moves
    try:
        return group.shared(name).size > 0
    except AttributeError:
        return False  # another version of MuJoCo


def _assets(rows: ModelRows, group: MujocoGroup, meshes: VariantRows) -> Iterator[MeshAsset]:
    """Yield the meshes that the geoms of a group may come to have."""
    first = rows.first["shape"][group.worlds[0]]
    template = rows.model.world_template[group.worlds[0]]
    entries = {
        int(code): index
        for index, code in enumerate(group.plan.geoms.shape)
        if code >= 0 and group.plan.geoms.kind[index] == MESH
    }
    starts = rows.first["shape"]
    for shapes, sources, scales in meshes:
        world = int(np.searchsorted(starts, shapes[0], side="right")) - 1
        if rows.model.world_template[world] != template:
            continue
        for column, shape in enumerate((shapes - starts[world]).tolist()):
            if shape not in entries:
                continue
            flat = int(first) + shape
            kind = int(rows.array("shape_type")[flat])
            pairs = np.concatenate([sources[:, column, None], scales[:, column]], axis=1)
            for source, *scale in np.unique(pairs, axis=0).tolist():
                if source >= 0 or kind == GeoType.CONE:
                    chosen = -1 if kind == GeoType.CONE else int(source)
                    geom = entries[shape] if group.plan.sized[entries[shape]] else -1
                    yield MeshAsset(kind, chosen, (scale[0], scale[1], scale[2]), flat, geom)


def _open_ranges(rows: ModelRows, group: MujocoGroup, names: frozenset[str]) -> None:
    """Let all joints and drives have ranges whose limits may come."""
    plan, model = group.plan.structure, group.model
    scalar = np.array([j.kind in (MujocoJoint.SLIDE, MujocoJoint.HINGE) for j in plan.joints], dtype=bool)
    if not len(scalar):
        return
    if names & {"joint_limit_lower", "joint_limit_upper"}:
        model.jnt_limited[scalar] = 1
    if "joint_effort_limit" in names:
        dofs = public_dofs(plan)[[joint.qvel for joint in plan.joints]]
        driven = np.isin(dofs, [*group.plan.drives.dof, *driven_dofs(rows, group.worlds)])
        model.jnt_actfrclimited[scalar & driven] = 1
        ball = np.flatnonzero(np.array(group.plan.drives.place, dtype=np.int64) >= 0)
        model.actuator_forcelimited[ball] = 1
