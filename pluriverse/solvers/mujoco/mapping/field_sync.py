"""FieldSync: keep the fields of MuJoCo's models up to date with arrays of the model on the device.

The tracked arrays are chosen once, on the host: `FieldSync.add` gives the fields that depend on them a row
per world, compiles the meshes that worlds may later use, and undoes MuJoCo's shortcuts for constant values.
After that `FieldSync.launch` updates worlds. It can be recorded into a graph together with the kernels that
write to the arrays.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model
from pluriverse.model.entity_names import entity_name
from pluriverse.model.world_selection import WorldSelection
from pluriverse.solvers.mujoco.engine import Engine
from pluriverse.solvers.mujoco.mapping.conversion import compile_group
from pluriverse.solvers.mujoco.mapping.drives import bounded_joints
from pluriverse.solvers.mujoco.mapping.fields import keep_free_of_trees, set_shortcuts
from pluriverse.solvers.mujoco.mapping.geoms import MESH, flat_shapes
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_fields import margins_are_kept
from pluriverse.solvers.mujoco.mapping.group_kernels import READ_FIELDS, GroupKernels
from pluriverse.solvers.mujoco.mapping.joints import scalar_joints
from pluriverse.solvers.mujoco.mapping.layout import compiled_layout
from pluriverse.solvers.mujoco.mapping.mesh_assets import MeshAsset, find_assets
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.refresh import replace_model
from pluriverse.solvers.mujoco.mapping.shape_kernels import assign_assets
from pluriverse.solvers.mujoco.mapping.stages import (
    EXTRA_FIELDS,
    FRAME_ARRAYS,
    KNOWN_ARRAYS,
    MESH_FIELDS,
    STAGES,
    TENDON_ARRAYS,
    WITHOUT_EFFECT,
    field_names,
    select_world,
)
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.types import Entity, GeoType

_INERTIAL = STAGES["inertia"].reads | frozenset(FRAME_ARRAYS)

VariantRows = Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Meshes that shapes may be given: flat shapes of a world, and sources and sizes, shape [variant, shape] and
[variant, shape, 3]."""


class FieldSync:
    """Updates MuJoCo's models on the device.

    Args:
        model: Model that the groups are of.
        options: How MuJoCo solves.
        groups: Its groups.
        engine: The engine that steps them.
    """

    def __init__(self, model: Model, options: MujocoOptions, groups: Sequence[MujocoGroup], engine: Engine):
        self._model, self._options, self._groups, self._engine = model, options, groups, engine
        self._names: frozenset[str] = frozenset()
        self._selected: Any = wp.zeros(model.world_count, dtype=wp.int32, device=model.device)
        self._syncs: list[_GroupSync] = []
        self._meshes: list[Any] = []
        self._dropped: list[np.ndarray] = []
        self._retired: list[_GroupSync] = []  # recorded launches know their memory

    def add(self, names: Mapping[str, np.ndarray | None], meshes: VariantRows = ()) -> None:
        """Track arrays of the model from now on, in addition to those tracked before.

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
                    f"SolverMuJoCo: {name} cannot change on the device, since MuJoCo compiles it in. Write "
                    "to it on the host and call notify_model_changed(), or make a new solver."
                )
        tracked = self._names | (frozenset(names) & KNOWN_ARRAYS)
        if not tracked:
            return
        rows = ModelRows(self._model)
        drawn = names.get("shape_scale")
        self._check_sizes(rows, drawn)
        if tracked == self._names and not meshes and (drawn is None or not drawn.any()):
            return  # followed already
        self._names = tracked
        self._meshes += meshes
        self._engine.on_rebuild = None
        for index, group in enumerate(self._groups):
            self._prepare_group(rows, index, group, drawn)
        self._retired += self._syncs
        self._syncs = [
            _GroupSync(self._options, rows, self._groups, index, self._engine, self._names)
            for index in range(len(self._groups))
        ]
        self.launch_all()
        self._engine.on_rebuild = self.launch_all

    def sync_from_host(self) -> None:
        """Continue after the groups were updated on the host."""
        if self._syncs:
            rows = ModelRows(self._model)
            for sync in self._syncs:
                sync.assign(rows)
            self.launch_all()

    def launch_all(self) -> None:
        """Update all worlds. Only launches."""
        everywhere: Any = wp.zeros(0, dtype=wp.bool, device=self._model.device)
        self.launch(WorldSelection(self._model.structure.worlds, everywhere, None))

    def launch(self, selection: WorldSelection) -> None:
        """Update worlds. Only launches."""
        if not self._syncs:
            return
        self._selected.zero_()
        launch_kernel(
            select_world,
            dim=selection.worlds.size,
            inputs=[selection.worlds, selection.mask],
            outputs=[self._selected],
            device=self._model.device,
        )
        for sync in self._syncs:
            sync.launch(self._selected)

    def _check_sizes(self, rows: ModelRows, drawn: np.ndarray | None) -> None:
        """Raise if shapes of compiled geometry are meant to take any size."""
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
                f"SolverMuJoCo: {entity_name(self._model, Entity.SHAPE, shape)} is a "
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
        """Extend a group by all values that may occur, with a row per world for fields that change."""
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
            # The vertices will change; recorded launches may hold the memory of the old ones.
            self._dropped += [group.fields.pop(name) for name in MESH_FIELDS if name in group.fields]
            compiled = compile_group(rows, self._options, group.plan, group.general_bodies | general)
            replace_model(group, compiled)
        _open_ranges(rows, group, names)
        if "shape_enabled" in names:
            group.switched = True
        tracked = {
            name
            for stage in active_stages(group, names)
            for name in STAGES[stage].fields
            if self._engine.knows_field(name) and group.has_field(name)
        }
        if plan.sized.any():
            tracked |= set(MESH_FIELDS)
        for name in sorted(tracked):
            group.fields.setdefault(name, np.array(group.value(name), order="C"))
        group.tracked = frozenset(tracked | (group.tracked & group.fields.keys()))
        changed = set_shortcuts(group)
        keep_free_of_trees(group, set())
        group.revision += 1
        self._engine.fields_changed(index, tracked | changed)


class _GroupSync:
    """Updates the worlds of one group on the device."""

    def __init__(
        self,
        options: MujocoOptions,
        rows: ModelRows,
        groups: Sequence[MujocoGroup],
        index: int,
        engine: Engine,
        names: frozenset[str],
    ):
        group = groups[index]
        self._options, self._index, self._group, self._engine = options, index, group, engine
        stages = active_stages(group, names)
        self._kernels = GroupKernels(rows, group.plan, compiled_layout(group), engine.real, stages)
        shapes = self._kernels.shapes
        shapes.gain_first = sum(g.world_count * g.model.ngeom for g in groups[:index])
        assign_assets(shapes, rows, group, group.plan.assets)
        self._memory: Mapping[str, Any] = {}
        self._fixed: dict[str, Any] = {}
        self.assign(rows)

    def assign(self, rows: ModelRows) -> None:
        """Copy the values that only the host changes."""
        group, device = self._group, rows.model.device
        self._kernels.assign_group(rows, group, margins=margins_are_kept(self._options, group))
        for name in READ_FIELDS:
            values = np.ascontiguousarray(group.value(name)).reshape(-1)
            kind = wp.dtype_to_numpy(self._engine.real)
            if name in self._fixed:
                self._fixed[name].assign(values.astype(kind))
            else:
                self._fixed[name] = wp.array(values, dtype=self._engine.real, device=device)

    def launch(self, selected: wp.array[int]) -> None:
        """Update the selected worlds. Only launches."""
        known = {*field_names(), *MESH_FIELDS, *EXTRA_FIELDS}
        memory = self._engine.tracked_memory(self._index)
        # A struct keeps addresses only.
        self._memory = {name: array for name, array in memory.items() if name in known}
        for _ in self._kernels.launch(self._memory, selected, self._engine.joint_rotation, self._fixed):
            self._engine.derive_fields(self._index, selected)


def active_stages(group: MujocoGroup, names: frozenset[str]) -> list[str]:
    """Return the stages that a group needs to track arrays, in order."""
    plan, model = group.plan, group.model
    result = []
    for stage, entry in STAGES.items():
        reads = entry.reads
        if stage == "drives" and not any(axis_index >= 0 for axis_index in plan.drives.axis_index):
            reads = reads - frozenset(FRAME_ARRAYS)
        if stage == "constraints":
            if not any(distance.joint >= 0 for distance in plan.equalities.distances):
                reads = frozenset(name for name in reads if name.startswith("equality"))
            if not (plan.equalities.constraints or plan.equalities.distances):
                reads = frozenset()
        if stage in ("derived", "limits", "tendon_limits") and (model.ntendon or _uses_sites(model)):
            reads = reads | TENDON_ARRAYS
        if reads & names and any(group.has_field(name) for name in entry.fields):
            result.append(stage)
    return result


def _uses_sites(model: Any) -> bool:
    """Return whether actuators act on sites or bodies, so that their poses matter."""
    joints = (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
    return bool((~np.isin(model.actuator_trntype, joints)).any())


def _assets(rows: ModelRows, group: MujocoGroup, meshes: VariantRows) -> Iterator[MeshAsset]:
    """Yield the meshes that the geoms of a group may be given."""
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
                    mesh_index = -1 if kind == GeoType.CONE else int(source)
                    geom = entries[shape] if group.plan.sized[entries[shape]] else -1
                    yield MeshAsset(kind, mesh_index, (scale[0], scale[1], scale[2]), flat, geom)


def _open_ranges(rows: ModelRows, group: MujocoGroup, names: frozenset[str]) -> None:
    """Enable the ranges of all joints and drives that may receive limits."""
    plan, model = group.plan.structure, group.model
    scalar = scalar_joints(plan)
    if not len(scalar):
        return
    if names & {"joint_limit_lower", "joint_limit_upper"}:
        model.jnt_limited[scalar] = 1
    if "joint_effort_limit" in names:
        drives = group.plan.drives
        model.jnt_actfrclimited[bounded_joints(rows, plan, drives, group.worlds)] = 1
        model.actuator_forcelimited[np.flatnonzero(drives.is_bounded)] = 1
