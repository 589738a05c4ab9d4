"""The stages of a collision step in order, each with the kernels of the colliders that a model needs."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision.broad_phase import BroadPhase
from pluriverse.collision.contact_horizon import HorizonData
from pluriverse.collision.contact_output import ContactOutput, make_contact_output
from pluriverse.collision.hull import make_hull_data
from pluriverse.collision.idle_contacts import partition_idle_contacts
from pluriverse.collision.pair_table import COLLIDER_COUNT, PATCH_COLLIDERS, Collider, HostPairs, PairTable
from pluriverse.collision.shape_state import ShapeModel, ShapeState, make_shape_state
from pluriverse.collision.shape_update import update_shapes
from pluriverse.dynamics.workspace import scratch_ranges
from pluriverse.geometry import Heightfield
from pluriverse.launch import launch_kernel, world_thread_count
from pluriverse.model import Contacts, Model
from pluriverse.scratch import Scratch
from pluriverse.types import GeoType, ShapeFlags

# Module and kernel of each collider.
COLLIDERS = {
    Collider.HALF_SPACE: ("convex.half_space", "collide_half_space_pairs"),
    Collider.ROUND: ("convex.round", "collide_round_pairs"),
    Collider.ROUND_BOX: ("convex.round_box", "collide_round_box_pairs"),
    Collider.SPHERE_CYLINDER: ("convex.sphere_cylinder", "collide_sphere_cylinder_pairs"),
    Collider.BOX_BOX: ("convex.box_box", "collide_box_box_pairs"),
    Collider.CONVEX: ("convex.convex_pair", "collide_convex_pairs"),
    Collider.HEIGHT_FIELD: ("surface.height_field", "collide_height_field_pairs"),
    Collider.MESH_PLANE: ("surface.mesh_plane", "collide_mesh_plane_pairs"),
    Collider.MESH_CONVEX: ("surface.mesh_convex", "collide_mesh_convex_pairs"),
    Collider.MESH_MESH: ("surface.mesh_mesh", "collide_mesh_mesh_pairs"),
    Collider.HYDROELASTIC_PLANE: ("hydroelastic.convex_pair", "collide_hydroelastic_pairs"),
    Collider.HYDROELASTIC: ("hydroelastic.convex_pair", "collide_hydroelastic_pairs"),
    Collider.HYDROELASTIC_MESH_PLANE: ("hydroelastic.mesh_pair", "collide_hydroelastic_mesh_pairs"),
    Collider.HYDROELASTIC_MESH: ("hydroelastic.mesh_pair", "collide_hydroelastic_mesh_pairs"),
}
# Colliders that take triangle meshes, without and with their signed distance grids.
MESH_COLLIDERS = (Collider.MESH_PLANE,)
GRID_COLLIDERS = (
    Collider.MESH_CONVEX,
    Collider.MESH_MESH,
    Collider.HYDROELASTIC_MESH_PLANE,
    Collider.HYDROELASTIC_MESH,
)


class Stages:
    """Shape stage and colliders of one model.

    Args:
        model: Model whose shapes collide.
        collision_type: `GeoType` that collides, a finite plane being a box, shape [shape].
        collider_shapes: World-local shapes with a candidate pair, for each template.
        global_shapes: Shapes outside of all worlds with a candidate pair.
        pairs: Candidate pairs.
    """

    shapes: ShapeModel
    """What kernels read of the model."""
    state: ShapeState
    """Where the shapes were when `collide` was called last."""
    idle_count: wp.array[int]
    """Contacts behind those of a world that do not act by what was assumed, shape [world]."""
    known: wp.array[int]
    """Contacts of a world and its idle ones, when contacts of suspect pairs are added, shape [world]."""
    added_found: wp.array[int]
    """The same with the added ones, which come behind, shape [world]."""

    def __init__(
        self,
        model: Model,
        collision_type: np.ndarray,
        collider_shapes: Sequence[np.ndarray],
        global_shapes: np.ndarray,
        pairs: HostPairs,
    ):
        device = model.device
        colliders = [collider for collider in Collider if pairs.count(collider)]
        self._device = device
        is_hull = collision_type == GeoType.CONVEX_MESH
        source = model.shape_source_index.numpy()
        # Hulls that no shape uses yet count too: variants may bring them later.
        prepared = [index for index, mesh in enumerate(model.meshes) if mesh.is_convex_hull]
        sources = np.unique(np.concatenate([source[is_hull], np.array(prepared, dtype=np.int32)]))
        hulls, lower, upper = make_hull_data([model.meshes[index] for index in sources], device)

        shapes = ShapeModel()
        shapes.world_template = model.topology.world_template
        shapes.world_shape = model.topology.world_shape
        starts = np.concatenate([[0], np.cumsum([len(some) for some in collider_shapes])])
        shapes.collider_start = wp.array(starts.astype(np.int32), dtype=int, device=device)
        shapes.collider = wp.array(np.concatenate(collider_shapes).astype(np.int32), dtype=int, device=device)
        shapes.world_body = model.topology.world_body
        own = [
            _shape_records(model, collision_type, some, int(template.worlds[0]))
            for template, some in zip(model.templates, collider_shapes, strict=True)
        ]
        shapes.collider_record = wp.array(np.concatenate(own), dtype=wp.vec4i, device=device)
        shared = _shape_records(model, collision_type, global_shapes, None)
        shapes.global_record = wp.array(shared, dtype=wp.vec4i, device=device)
        shapes.shape_body = model.structure.shape_body
        shapes.shape_type = wp.array(collision_type, dtype=int, device=device)
        shapes.shape_geo_type = model.structure.shape_type
        shapes.shape_transform = model.shape_transform
        shapes.shape_scale = model.shape_scale
        shapes.shape_margin = model.shape_margin
        shapes.shape_gap = model.shape_gap
        shapes.shape_enabled = model.shape_enabled
        shapes.shape_source_index = model.structure.shape_source_index
        mesh_hull = np.full(len(model.meshes), -1, dtype=np.int32)
        mesh_hull[sources] = np.arange(len(sources))
        shapes.mesh_hull = wp.array(mesh_hull, dtype=int, device=device)
        shapes.hull_lower = wp.array(lower, dtype=wp.vec3, device=device)
        shapes.hull_upper = wp.array(upper, dtype=wp.vec3, device=device)
        lower = np.array([mesh.vertices.min(axis=0) for mesh in model.meshes], dtype=np.float32)
        upper = np.array([mesh.vertices.max(axis=0) for mesh in model.meshes], dtype=np.float32)
        shapes.mesh_lower = wp.array(lower.reshape(-1, 3), dtype=wp.vec3, device=device)
        shapes.mesh_upper = wp.array(upper.reshape(-1, 3), dtype=wp.vec3, device=device)
        mesh_types = np.where(mesh_hull >= 0, 1 << int(GeoType.CONVEX_MESH), 0)
        self.state = make_shape_state(model.shape_count, device)
        self.idle_count = wp.zeros(model.world_count, dtype=int, device=device)
        self.known = wp.zeros(model.world_count, dtype=int, device=device)
        self.added_found = wp.zeros(model.world_count, dtype=int, device=device)
        self._added_count = wp.zeros(model.world_count, dtype=int, device=device)
        surfaces = _make_surfaces(model, colliders)
        # Warp's meshes live as long as this set.
        self._surfaces = surfaces
        # Where no collider takes meshes, nothing but their bounds is read.
        mesh_types[slice(None) if surfaces is None else surfaces.sources] |= 1 << int(GeoType.MESH)
        fields = [index for index, mesh in enumerate(model.meshes) if isinstance(mesh, Heightfield)]
        mesh_types[fields] |= 1 << int(GeoType.HFIELD)
        shapes.mesh_types = wp.array(mesh_types.astype(np.int32), dtype=int, device=device)
        self.shapes = shapes
        self._model = model
        self._hulls = hulls
        convex_pairs = np.diff(pairs.start)[int(Collider.CONVEX) :: COLLIDER_COUNT]
        self._convex_pairs = convex_pairs[model.world_template]
        # Kernels are parsed when a module that declares them loads, so only those that are needed are.
        self._kernels = {collider: _load_kernel(collider) for collider in colliders}
        self._data = {
            collider: self._collider_data(collider, None)
            for collider in colliders
            if collider not in PATCH_COLLIDERS
        }

    def collide(
        self,
        worlds: wp.array,
        global_shapes: wp.array,
        broad_phase: BroadPhase,
        body_q: wp.array,
        horizon: HorizonData,
        contacts: Contacts,
        separation: wp.array,
        heap: wp.array,
    ) -> None:
        """Write the contacts of `worlds`: place shapes, find near pairs, run one collider after another."""
        output = make_contact_output(contacts, separation, heap)
        update_shapes(
            worlds,
            global_shapes,
            self.shapes,
            body_q,
            horizon,
            self.state,
            output.found,
            output.count,
            self._device,
        )
        broad_phase.find_near_pairs(worlds, self.state)
        stiffness = contacts.rigid_contact_stiffness
        if self._model.has_hydroelastic_shapes:
            from pluriverse.collision.hydroelastic.convex_pair import clear_stiffness

            clear_stiffness(worlds, output, stiffness, self._device)
        self._run_colliders(worlds, broad_phase.table, stiffness, output)
        if horizon.is_limited:
            partition_idle_contacts(
                worlds,
                self.shapes,
                self.state,
                body_q,
                horizon,
                output,
                stiffness,
                self.idle_count,
                self._device,
            )

    def scratch(self) -> list[Scratch]:
        """Return the arrays that steps leave nothing in."""
        shapes = scratch_ranges(self._model)["shape"]
        arrays = (self.state.place, self.state.bounds)
        return [Scratch(array, *shapes, has_common_entries=True) for array in arrays]

    def collide_suspects(
        self, worlds: wp.array, pairs: PairTable, contacts: Contacts, separation: wp.array, heap: wp.array
    ) -> None:
        """Add the contacts of some pairs behind those of `worlds`, as far as `state.change` has them matter.

        Nothing that `collide` wrote changes, and what it found is not added again. `known` and `added_found`
        have to be set to the number of contacts with the idle ones. If `added_found` of a world comes to
        exceed its slots, the rest is not stored.

        Args:
            worlds: Worlds concerned.
            pairs: Candidate pairs, in `near` those that are looked at.
            contacts: Contacts of `collide`.
            separation: Distance of the surfaces less both margins [m], shape [slot].
            heap: Scratch, shape [slot].
        """
        output = make_contact_output(contacts, separation, heap)
        output.found, output.count = self.added_found, self._added_count
        output.is_addition, output.known = 1, self.known
        self._run_colliders(worlds, pairs, contacts.rigid_contact_stiffness, output)

    def _run_colliders(
        self, worlds: wp.array, pairs: PairTable, stiffness: wp.array | None, output: ContactOutput
    ) -> None:
        threads = world_thread_count(worlds)
        for collider, kernel in self._kernels.items():
            data = self._data.get(collider) or self._collider_data(collider, stiffness)
            launch_kernel(
                kernel,
                dim=threads,
                inputs=[worlds, threads, pairs, int(collider), self.shapes, data, self.state],
                outputs=[output],
                device=self._device,
            )

    def _collider_data(self, collider: Collider, stiffness: wp.array | None) -> Any:
        """Return what a collider needs besides the shapes; patches write the stiffness [N/m] of contacts."""
        if collider in (Collider.MESH_PLANE, Collider.MESH_MESH):
            return self._surfaces.data
        data: Any = self._hulls
        if collider == Collider.CONVEX:
            from pluriverse.collision.convex.convex_pair import ConvexPairData
            from pluriverse.collision.convex.kept_directions import make_kept_directions

            data = ConvexPairData()
            data.hulls, data.kept = self._hulls, make_kept_directions(self._convex_pairs, self._device)
        elif collider == Collider.MESH_CONVEX:
            from pluriverse.collision.surface.mesh_convex import MeshConvexData

            data = MeshConvexData()
            data.hulls, data.meshes = self._hulls, self._surfaces.data
        elif collider == Collider.HEIGHT_FIELD:
            from pluriverse.collision.surface.height_field import HeightFieldPairData
            from pluriverse.collision.surface.height_field_data import make_height_field_data

            meshes = self._model.meshes
            fields = [index for index, mesh in enumerate(meshes) if isinstance(mesh, Heightfield)]
            data = HeightFieldPairData()
            data.hulls, data.fields = self._hulls, make_height_field_data(meshes, fields, self._device)
        elif collider in PATCH_COLLIDERS:
            from pluriverse.collision.hydroelastic.convex_pair import PatchData, make_pressure_model

            data = PatchData()
            if collider in GRID_COLLIDERS:
                from pluriverse.collision.hydroelastic.mesh_pair import MeshPatchData

                data = MeshPatchData()
                data.meshes = self._surfaces.data
            data.hulls, data.pressures = self._hulls, make_pressure_model(self._model, stiffness)
        return data


def _make_surfaces(model: Model, colliders: Sequence[Collider]) -> Any:
    """Return the `MeshSet` of all surfaces that collide, None if no collider takes meshes."""
    if not set(colliders) & {*MESH_COLLIDERS, *GRID_COLLIDERS}:
        return None
    from pluriverse.collision.surface.mesh_data import MeshSet

    source = model.shape_source_index.numpy()
    collides = (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES) != 0
    used = set(source[(model.shape_type.numpy() == GeoType.MESH) & collides].tolist())
    prepared = set()
    for index, mesh in enumerate(model.meshes):
        # Meshes that no shape uses yet count too, as hulls do; height fields where they meet meshes.
        is_field = isinstance(mesh, Heightfield)
        if index not in source and not mesh.is_convex_hull and not is_field:
            prepared.add(index)
        if is_field and Collider.MESH_MESH in colliders:
            used.add(index)
    return MeshSet(
        model.meshes,
        sorted(used),
        sorted(prepared),
        model.device,
        with_grids=bool(set(colliders) & set(GRID_COLLIDERS)),
    )


def _shape_records(
    model: Model, collision_type: np.ndarray, shapes: np.ndarray, world: int | None
) -> np.ndarray:
    """Return what `ShapeModel.collider_record` holds of some shapes of a world, or of no world."""
    first_shape, first_body = 0, 0
    if world is not None:
        first_shape = int(model.topology.world_shape.numpy()[world])
        first_body = int(model.topology.world_body.numpy()[world])
    flat = first_shape + np.asarray(shapes, dtype=np.int64)
    body, own_type, type = (
        some[flat] for some in (model.shape_body.numpy(), model.shape_type.numpy(), collision_type)
    )
    is_slab = (own_type == GeoType.PLANE) & (type == GeoType.BOX)
    body = np.where(body >= 0, body - first_body, -1)
    return np.stack([shapes, body, type, is_slab], axis=1).astype(np.int32).reshape(-1, 4)


def _load_kernel(collider: Collider) -> Any:
    """Return the kernel of a collider."""
    module, name = COLLIDERS[collider]
    return getattr(importlib.import_module(f"pluriverse.collision.{module}"), name)
