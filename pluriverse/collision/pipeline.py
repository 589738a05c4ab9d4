"""Collision pipeline: from poses to contacts, for any list of worlds, without reading anything back."""

import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import warp as wp

from pluriverse.collision.contact_horizon import ContactHorizon, make_horizon_data
from pluriverse.collision.newton_options import read_newton_options
from pluriverse.collision.pair_table import HostPairs, sort_pairs, upload_pairs
from pluriverse.copying import Uncopied
from pluriverse.geometry import Heightfield
from pluriverse.launch import uninterrupted
from pluriverse.model import Contacts, Model, State
from pluriverse.model.arguments import check_contacts, check_state
from pluriverse.model.entity_names import entity_name
from pluriverse.model.world_list import check_worlds
from pluriverse.newton_names import explain_missing
from pluriverse.scratch import Scratch, zeros_on_demand
from pluriverse.types import Entity, GeoType, ShapeFlags
from pluriverse.warnings import PluriverseWarning

# Patches of contacts that a shape has at once, each shared by two shapes: touching neighbours in a dense pile
# are 6 to 8, those within a large gap twice as many, with smaller patches.
PATCHES_PER_SHAPE = 5
CAPACITY_BASE = 32


class CollisionPipeline(Uncopied):
    """Finds the contacts of all shapes of a model, world by world.

    A world owns its slots of the contacts and is handled by one thread, in the order of its candidate pairs:
    its contacts do not depend on any other world. If they do not fit, the deepest are kept, and
    `rigid_contact_found` tells how many there were.

    Args:
        model: Model whose shapes collide.
        rigid_contact_max: Capacity of a world: a number for all, or one number per world. By default it is
            computed per kind of world: enough for all pairs to touch at once, but at most 32 plus five
            patches for each shape that has a candidate pair (a patch has 1 contact for a sphere or ellipsoid,
            2 for a capsule, up to 16 for meshes and height fields and up to 8 for others and for hydroelastic
            pairs).
        broad_phase: How the pairs near each other are found: `"explicit"` tests every candidate pair, `"nxn"`
            every two shapes, `"sap"` (sweep and prune) sorts the shapes along an axis. By default worlds of
            4000 candidate pairs or more are swept, others test their pairs. The contacts are the same, bit
            for bit.
        requires_grad: Must not be True: contacts are not differentiable.
        deterministic: Changes nothing: contacts are always the same, bit for bit.
        reduce_contacts: Changes nothing: the contacts of two meshes that matter are chosen anyway.
        of_newton: Further arguments of Newton's pipeline. They are taken, with a warning where they ask for
            what cannot be.

    Raises:
        TypeError: If Newton does not have such an argument either.
        ValueError: If `requires_grad` is set, there is no such broad phase, a shape that collides has no
            geometry, all triangles of a mesh are degenerate, a hydroelastic shape has no stiffness, or a
            capacity is not valid.
    """

    copy_remedy = "Make another pipeline of the model."
    pickle_remedy = "Make the pipeline where it is used."
    model: Model
    """Model whose shapes collide."""
    rigid_contact_capacity: np.ndarray
    """Slots of each world, on the host, shape [world]."""

    def __init__(
        self,
        model: Model,
        *,
        rigid_contact_max: int | Sequence[int] | np.ndarray | None = None,
        broad_phase: Literal["explicit", "nxn", "sap"] | None = None,
        requires_grad: bool | None = None,
        deterministic: bool = True,
        reduce_contacts: bool = True,
        **of_newton: Any,
    ):
        if requires_grad:
            raise ValueError(
                "CollisionPipeline: requires_grad is True, but contacts are not differentiable. Leave it out."
            )
        read_newton_options(of_newton)
        # Kernels are parsed when a module that declares them loads: not before a pipeline exists.
        from pluriverse.collision import stages

        self.model = model
        device = model.device
        shape_type = model.shape_type.numpy()
        scale = model.shape_scale.numpy().reshape(-1, 3)
        # A plane of finite size is a slab, see shape_state.is_slab.
        is_slab = (shape_type == GeoType.PLANE) & (scale[:, 0] > 0.0) & (scale[:, 1] > 0.0)
        collision_type = np.where(is_slab, int(GeoType.BOX), shape_type).astype(np.int32)

        first_shape = model.topology.world_shape.numpy()
        _check_planes(model, collision_type, first_shape)
        template_world = np.array([template.worlds[0] for template in model.templates], dtype=np.int64)
        is_solid = _find_solids(model, first_shape)
        is_hydroelastic = find_hydroelastic_shapes(model, is_solid)
        self._pairs = sort_pairs(
            model.topology.template_pair.numpy(),
            model.topology.pair_shape0.numpy(),
            model.topology.pair_shape1.numpy(),
            first_shape[template_world],
            collision_type,
            is_hydroelastic,
            is_solid,
        )
        _warn_of_points(model, self._pairs, first_shape, is_hydroelastic, is_solid)
        _check_types(model, self._pairs, first_shape[template_world])
        self.rigid_contact_capacity = self._capacities(rigid_contact_max)

        shapes = [self._pairs.collider_shapes(template) for template in range(len(model.templates))]
        global_shapes = np.unique(np.concatenate([-1 - some[some < 0] for some in shapes]))
        self._global_shapes = wp.array(global_shapes.astype(np.int32), dtype=int, device=device)
        table = upload_pairs(self._pairs, model.world_template, model.topology, device)
        self._table = table
        self._broad_phase = stages.BroadPhase(model, self._pairs, table, broad_phase)
        self._stages = stages.Stages(
            model,
            collision_type,
            [some[some >= 0] for some in shapes],
            global_shapes,
            self._pairs,
        )
        slot_count = int(self.rigid_contact_capacity.sum())
        self._separation = zeros_on_demand(slot_count, float, device)
        self._heap = zeros_on_demand(slot_count, int, device)

    if not TYPE_CHECKING:
        __getattr__ = explain_missing("CollisionPipeline")

    def contacts(self) -> Contacts:
        """Return new contacts with the capacity of this pipeline."""
        contacts = Contacts(self.model, self.rigid_contact_capacity)
        contacts.pipeline = self
        return contacts

    @uninterrupted
    def collide(
        self,
        state: State,
        contacts: Contacts,
        *,
        dt: float | None = None,
        worlds: wp.array | None = None,
        horizon: ContactHorizon | None = None,
    ) -> None:
        """Write the contacts of `state` into `contacts`. Only launches: a step may be recorded.

        Reads `body_q` of the state, and `body_qd` with a horizon. Two shapes have contacts where their
        distance, less both margins, is at most the sum of their gaps.

        Args:
            state: Poses and velocities.
            contacts: Contacts made by this pipeline.
            dt: Changes nothing: gaps are found for all steps.
            worlds: Worlds concerned, int32; all if None. Other worlds keep their contacts.
            horizon: What `contact_horizon` of the solver returned for its step: contacts that cannot act in
                it are left out. The solver checks what was assumed, and has the rest found where it did not
                hold, so that its result is the same. None for all contacts within the gaps.

        Raises:
            TypeError: If an argument is of another type.
            ValueError: If `state` or `contacts` belong to another model, `contacts` have more slots than this
                pipeline, or an array has another shape or is on another device.
        """
        check_state(self.model, state, "CollisionPipeline.collide: state")
        check_contacts(self.model, contacts, "CollisionPipeline.collide: contacts")
        worlds = check_worlds(self.model, worlds, what="CollisionPipeline.collide")
        if contacts.slot_count > self._separation.size:
            raise ValueError(
                f"collide: the contacts have {contacts.slot_count} slots, this pipeline "
                f"{self._separation.size}. Pass contacts made by contacts() of the same pipeline."
            )
        contacts.pipeline = self
        contacts.culling = None
        if horizon is not None:
            contacts.culling = Culling(self, horizon, state, contacts)
        self._collide(state, contacts, self.model.worlds if worlds is None else worlds, horizon)

    def scratch(self, contacts: Contacts) -> list[Scratch]:
        """Return the arrays in which steps leave nothing that find contacts and solve with them."""
        starts = contacts.slot_start.numpy().astype(np.int64)
        return [
            *self._stages.scratch(),
            *(Scratch(array, starts[:-1], np.diff(starts)) for array in (self._separation, self._heap)),
        ]

    def _collide(
        self,
        state: State,
        contacts: Contacts,
        worlds: wp.array,
        horizon: ContactHorizon | None,
        *,
        is_repeated: bool = False,
    ) -> None:
        self._stages.collide(
            worlds,
            self._global_shapes,
            self._broad_phase,
            state.body_q,
            make_horizon_data(horizon, state.body_qd, self.model.body_com, is_repeated=is_repeated),
            contacts,
            self._separation,
            self._heap,
        )

    def _capacities(self, requested: int | Sequence[int] | np.ndarray | None) -> np.ndarray:
        """Return the slots of each world, shape [world]."""
        if requested is None:
            return self._template_capacities()[self.model.world_template]
        capacities = np.asarray(requested)
        if capacities.ndim == 0:
            capacities = np.full(self.model.world_count, capacities)
        if capacities.shape != (self.model.world_count,) or not np.issubdtype(capacities.dtype, np.integer):
            raise ValueError(
                f"rigid_contact_max: {np.asarray(requested).tolist()} is neither a whole number nor one "
                f"for each of the {self.model.world_count} worlds."
            )
        if (capacities < 0).any():
            world = int(np.argmax(capacities < 0))
            raise ValueError(
                f"rigid_contact_max: the capacity of world {world} is {capacities[world]}, "
                "but it must be >= 0."
            )
        return capacities.astype(np.int64)

    def _template_capacities(self) -> np.ndarray:
        """Return the automatic capacity of a world of each template, shape [template]."""
        pairs = self._pairs
        capacities = np.zeros(len(self.model.templates), dtype=np.int64)
        for template in range(len(capacities)):
            rows = pairs.rows(template)
            contact_max = pairs.contact_max[rows]
            shape0, shape1 = pairs.shape0[rows], pairs.shape1[rows]
            low = min(int(shape0.min(initial=0)), int(shape1.min(initial=0)))
            high = max(int(shape0.max(initial=0)), int(shape1.max(initial=0)))
            # The largest patch of each shape among its pairs.
            largest = np.zeros(high - low + 1, dtype=np.int64)
            for size in np.flatnonzero(np.bincount(contact_max)).tolist():
                of_size = contact_max == size
                largest[shape0[of_size] - low] = size
                largest[shape1[of_size] - low] = size
            some_touch = CAPACITY_BASE + PATCHES_PER_SHAPE * int(largest.sum())
            capacities[template] = min(int(contact_max.sum(dtype=np.int64)), some_touch)
        return capacities


class Culling:
    """What a solver needs to find out whether contacts were left out that it would have needed."""

    horizon: ContactHorizon
    """What was assumed about the solver."""
    stages: Any
    """Where the shapes are, how they move, and by how much that was assumed to change (`Stages`)."""
    pairs: Any
    """The candidate pairs of all templates (`PairTable`)."""
    broad_phase: Any
    """What the search for near pairs needs besides (`BroadPhaseData`)."""
    separation: wp.array
    """Distance of the surfaces less both margins at each contact [m], shape [slot]."""

    def __init__(
        self, pipeline: CollisionPipeline, horizon: ContactHorizon, state: State, contacts: Contacts
    ):
        self.horizon = horizon
        self.stages = pipeline._stages
        self.pairs = pipeline._table
        self.broad_phase = pipeline._broad_phase.data
        self.separation = pipeline._separation
        self._pipeline, self._state = pipeline, state
        # The contacts refer to this: without a cycle, their memory is free as soon as nobody uses them.
        self._contacts = weakref.ref(contacts)

    def collide_again(self, worlds: wp.array) -> None:
        """Find the contacts of `worlds` again, with the changes of velocity in `stages.state.change`."""
        self._pipeline._collide(self._state, self._contacts(), worlds, self.horizon, is_repeated=True)

    def collide_suspects(self, worlds: wp.array) -> None:
        """Add the contacts of the pairs in `pairs.near` behind those of `worlds`, see `Stages`."""
        heap = self._pipeline._heap
        self.stages.collide_suspects(worlds, self.pairs, self._contacts(), self.separation, heap)


def find_hydroelastic_shapes(model: Model, is_solid: np.ndarray) -> np.ndarray:
    """Return which shapes have a pressure field, shape [shape]; warn of those that cannot have one.

    Raises:
        ValueError: If one has no stiffness.
    """
    required = int(ShapeFlags.HYDROELASTIC | ShapeFlags.COLLIDE_SHAPES)
    marked = (model.shape_flags.numpy() & required) == required
    bad = marked & ~(model.shape_material_kh.numpy() > 0.0)
    if bad.any():
        shape = int(np.argmax(bad))
        kh = model.shape_material_kh.numpy()[shape]
        raise ValueError(
            f"{entity_name(model, Entity.SHAPE, shape)}: kh is {kh} N/m³, but a hydroelastic shape "
            "needs kh > 0. Set kh, or is_hydroelastic=False."
        )
    sheets = marked & (model.shape_type.numpy() == GeoType.MESH) & ~is_solid
    if sheets.any():
        shape = int(np.argmax(sheets))
        warnings.warn(
            f"{entity_name(model, Entity.SHAPE, shape)} and {int(sheets.sum()) - 1} others are "
            "hydroelastic triangle meshes that are not closed, which touch in points with the stiffness ke: "
            "only what has an inside has a pressure field. Close the meshes, give them a signed distance "
            "(ShapeConfig.sdf_max_resolution), or approximate them by convex hulls "
            "(ModelBuilder.approximate_meshes).",
            PluriverseWarning,
            stacklevel=3,
        )
    return marked & is_solid & (model.shape_type.numpy() != GeoType.PLANE)


def _find_solids(model: Model, first_shape: np.ndarray) -> np.ndarray:
    """Return which shapes may have pressure patches: all but height fields and open meshes, shape [shape].

    A mesh has to be closed in all worlds of a kind, as one algorithm handles them all.
    """
    shape_type = model.shape_type.numpy()
    solid = shape_type != GeoType.HFIELD
    if not model.has_hydroelastic_shapes or not (shape_type == GeoType.MESH).any():
        return solid
    # The kernels of meshes are parsed when their module loads.
    from pluriverse.collision.surface.mesh_data import has_inside

    source = model.shape_source_index.numpy()
    collides = (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES) != 0
    rows = (shape_type == GeoType.MESH) & collides
    closed = {int(index): has_inside(model.meshes[index]) for index in np.unique(source[rows])}
    # Meshes that no shape uses yet may be brought to any of them later.
    later = [
        mesh
        for index, mesh in enumerate(model.meshes)
        if index not in source and not mesh.is_convex_hull and not isinstance(mesh, Heightfield)
    ]
    is_any_open = not all(has_inside(mesh) for mesh in later)
    solid[rows] = [closed[int(index)] and not is_any_open for index in source[rows]]
    for template in model.templates:
        shapes = first_shape[template.worlds][:, None] + np.arange(template.shape_count)
        solid[shapes] = solid[shapes].all(axis=0)
    return solid


_SURFACE_PARTNERS: dict[str, tuple[GeoType, str]] = {
    "a triangle mesh that is not closed": (
        GeoType.MESH,
        "Close the mesh, or approximate it by convex hulls (ModelBuilder.approximate_meshes)",
    ),
    "a height field": (GeoType.HFIELD, "Build the ground there of planes, boxes or convex hulls"),
}


def _warn_of_points(
    model: Model, pairs: HostPairs, first_shape: np.ndarray, marked: np.ndarray, is_solid: np.ndarray
) -> None:
    """Warn of hydroelastic shapes that can meet a shape with which they have no pressure patch."""
    if not marked.any():
        return
    shape_type = model.shape_type.numpy()
    for partner, (geo_type, remedy) in _SURFACE_PARTNERS.items():
        found = []
        for index, template in enumerate(model.templates):
            rows = pairs.rows(index)
            first = first_shape[template.worlds][:, None]
            shape0, shape1 = (
                np.where(local >= 0, first + local, -1 - local)
                for local in (pairs.shape0[rows], pairs.shape1[rows])
            )
            for one, other in ((shape0, shape1), (shape1, shape0)):
                found.append(one[marked[one] & (shape_type[other] == geo_type) & ~is_solid[other]])
        shapes = np.unique(np.concatenate(found)).astype(np.int64)
        if len(shapes):
            warnings.warn(
                f"{entity_name(model, Entity.SHAPE, shapes[0])} and {len(shapes) - 1} others "
                f"are hydroelastic and can meet {partner}, with which they touch in points with the "
                f"stiffness ke: it has no pressure patch. {remedy}, or set is_hydroelastic=False.",
                PluriverseWarning,
                stacklevel=3,
            )


_UNSUPPORTED: dict[GeoType, str] = {GeoType.NONE: "of no geometry. Clear its COLLIDE_SHAPES flag"}


def _check_planes(model: Model, collision_type: np.ndarray, first_shape: np.ndarray) -> None:
    """Raise if a plane is infinite in one world and finite in another of the same kind."""
    for template in model.templates:
        shapes = first_shape[template.worlds][:, None] + np.arange(template.shape_count)
        differs = np.argwhere(collision_type[shapes] != collision_type[shapes[:1]])
        if len(differs):
            row, slot = differs[0]
            scale = model.shape_scale.numpy()[shapes[[0, row], slot]].tolist()
            raise ValueError(
                f"{entity_name(model, Entity.SHAPE, shapes[row, slot])}: the plane "
                f"has the size {scale[1][:2]} in world {template.worlds[row]} and {scale[0][:2]} in world "
                f"{template.worlds[0]}, but worlds of one kind have the same planes finite and infinite "
                "(size 0). Make both finite or both infinite."
            )


def _check_types(model: Model, pairs: Any, template_first_shape: np.ndarray) -> None:
    """Raise if a shape of a candidate pair has a type that no collider knows, or a mesh without vertices."""
    used = [pairs.collider_shapes(index) for index in range(len(model.templates))]
    flat = [
        np.where(some >= 0, first + some, -1 - some)
        for first, some in zip(template_first_shape, used, strict=True)
    ]
    shapes = np.unique(np.concatenate(flat)).astype(np.int64)
    types = model.shape_type.numpy()
    for geo_type, reason in _UNSUPPORTED.items():
        bad = shapes[types[shapes] == geo_type]
        if len(bad):
            shape = int(bad[0])
            raise ValueError(f"{entity_name(model, Entity.SHAPE, shape)} is {reason}.")
