"""Which shape pairs may collide in each template, ordered by the algorithm that handles them."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pluriverse.math.bit_sets import LANE_COUNT
from pluriverse.types import GeoType


class Collider(enum.IntEnum):
    """The algorithms of the narrow phase, in the order in which they add the contacts of a world."""

    HALF_SPACE = 0
    """An infinite plane and anything else."""
    ROUND = 1
    """Spheres and capsules among each other."""
    ROUND_BOX = 2
    """A box and a sphere or capsule."""
    SPHERE_CYLINDER = 3
    """A sphere and a cylinder."""
    BOX_BOX = 4
    """Two boxes."""
    CONVEX = 5
    """Two convex shapes of any other types, by support functions."""
    HEIGHT_FIELD = 6
    """A height field and a convex shape."""
    MESH_PLANE = 7
    """An infinite plane and a triangle mesh."""
    MESH_CONVEX = 8
    """A triangle mesh and a convex shape."""
    MESH_MESH = 9
    """Two triangle meshes, or one and a height field."""
    HYDROELASTIC_PLANE = 10
    """An infinite plane and a hydroelastic shape."""
    HYDROELASTIC = 11
    """Two shapes, one or both of them hydroelastic."""
    HYDROELASTIC_MESH_PLANE = 12
    """An infinite plane and a hydroelastic triangle mesh."""
    HYDROELASTIC_MESH = 13
    """Two shapes, one or both of them triangle meshes, one or both hydroelastic."""


COLLIDER_COUNT = len(Collider)

PATCH_COLLIDERS = (
    Collider.HYDROELASTIC_PLANE,
    Collider.HYDROELASTIC,
    Collider.HYDROELASTIC_MESH_PLANE,
    Collider.HYDROELASTIC_MESH,
)
"""Colliders of pressure patches."""
PLANE_COLLIDERS = (
    Collider.HALF_SPACE,
    Collider.MESH_PLANE,
    Collider.HYDROELASTIC_PLANE,
    Collider.HYDROELASTIC_MESH_PLANE,
)
"""Colliders of pairs of an infinite plane, which has no bounds, and another shape."""
WITH_PLANE = wp.constant(sum(1 << int(collider) for collider in PLANE_COLLIDERS))
"""The same as bits."""

_ROUND = (GeoType.SPHERE, GeoType.CAPSULE)
_SURFACES = (GeoType.HFIELD, GeoType.MESH)
# Contacts that a surface has with another shape, see `contact_reduction`.
_SURFACE_CONTACT_COUNT = 16
# Contacts of a pressure patch, see `hydroelastic.convex_patch`.
_PATCH_CONTACT_COUNT = 8


def collider_of(type0: GeoType, type1: GeoType) -> tuple[Collider, bool]:
    """Return the algorithm of a pair of types (a finite plane is a box) and whether it wants them swapped."""
    low, high = sorted((type0, type1))
    if GeoType.MESH in (type0, type1):
        if low == GeoType.PLANE:
            return Collider.MESH_PLANE, type0 != GeoType.PLANE
        if low in _SURFACES and high in _SURFACES:
            return Collider.MESH_MESH, type0 > type1
        # The mesh comes first.
        return Collider.MESH_CONVEX, type0 != GeoType.MESH
    if low == GeoType.HFIELD:
        # The height field comes first.
        return Collider.HEIGHT_FIELD, type0 != GeoType.HFIELD
    if low == GeoType.PLANE:
        # The plane comes first.
        return Collider.HALF_SPACE, type0 != GeoType.PLANE
    if low in _ROUND and high in _ROUND:
        return Collider.ROUND, type0 > type1
    if low in _ROUND and high == GeoType.BOX:
        # The box comes first: it may be large, and points are computed near the second shape.
        return Collider.ROUND_BOX, type0 != GeoType.BOX
    if low == GeoType.SPHERE and high == GeoType.CYLINDER:
        return Collider.SPHERE_CYLINDER, type0 != GeoType.CYLINDER
    if low == high == GeoType.BOX:
        return Collider.BOX_BOX, False
    return Collider.CONVEX, type0 > type1


def contact_max_of(type0: GeoType, type1: GeoType) -> int:
    """Return the largest number of contacts that shapes of two types can have."""
    types = {type0, type1}
    if types & set(_SURFACES):
        return _SURFACE_CONTACT_COUNT
    if types & {GeoType.SPHERE, GeoType.ELLIPSOID}:
        return 1
    if GeoType.CAPSULE in types:
        return 2
    # Eight corners of a box below a plane, eight corners of a patch, or those of a face of a hull and its
    # lowest vertex.
    return 9 if types == {GeoType.PLANE, GeoType.CONVEX_MESH} else 8


@wp.struct
class PairTable:
    """Candidate pairs of all templates on the device."""

    world_template: wp.array[int]
    """Template of each world, shape [world]."""
    world_shape: wp.array[int]
    """First flat shape index of each world, shape [world]."""
    pair_start: wp.array[int]
    """First pair of each template and collider, shape [template * COLLIDER_COUNT + 1]."""
    pair_shape0: wp.array[int]
    """First shape: world-local index, or -1 - flat index of a global shape, shape [pair]."""
    pair_shape1: wp.array[int]
    """Second shape, likewise, shape [pair]."""
    near_start: wp.array[int]
    """First word of each world in `near`, shape [world]."""
    near: wp.array[wp.uint32]
    """A bit for each candidate pair of each world, in their order: whether it is near (`broad_phase`)."""


@dataclass(frozen=True)
class HostPairs:
    """Candidate pairs of all templates, sorted by template, then collider."""

    shape0: np.ndarray
    """First shape: world-local index, or -1 - flat index of a global shape, shape [pair]."""
    shape1: np.ndarray
    """Second shape, likewise, shape [pair]."""
    contact_max: np.ndarray
    """Largest number of contacts of the pair, shape [pair]."""
    start: np.ndarray
    """First pair of each template and collider, shape [template * COLLIDER_COUNT + 1]."""

    def collider_shapes(self, template: int) -> np.ndarray:
        """Return the shapes of a template that have a pair, as the pairs name them, ascending."""
        return named_shapes([(self.shape0[rows], self.shape1[rows]) for rows in [self.rows(template)]])

    def rows(self, template: int) -> slice:
        """Return where the pairs of a template are."""
        return slice(self.start[template * COLLIDER_COUNT], self.start[(template + 1) * COLLIDER_COUNT])

    def count(self, collider: Collider) -> int:
        """Return how many pairs all templates have for `collider`."""
        return int(np.diff(self.start)[int(collider) :: COLLIDER_COUNT].sum())


def sort_pairs(
    template_pair: np.ndarray,
    pair_shape0: np.ndarray,
    pair_shape1: np.ndarray,
    template_first_shape: np.ndarray,
    shape_type: np.ndarray,
    is_hydroelastic: np.ndarray,
    is_solid: np.ndarray,
) -> HostPairs:
    """Order the candidate pairs of each template by collider, and the shapes of each pair as it wants them.

    Args:
        template_pair: First pair of each template, shape [template + 1].
        pair_shape0: First shape: world-local index, or -1 - flat index of a global shape, shape [pair].
        pair_shape1: Second shape, likewise, shape [pair].
        template_first_shape: First flat shape index of one world of each template, shape [template].
        shape_type: `GeoType` that collides, a finite plane being a box, shape [shape].
        is_hydroelastic: Whether a shape has a pressure field, shape [shape].
        is_solid: Whether a shape may have pressure patches, be it as a rigid one, shape [shape].
    """
    template_count = len(template_pair) - 1
    # A world of thousands of shapes has tens of millions of pairs, so all that is kept for each is small.
    index_type = np.min_scalar_type(template_count * COLLIDER_COUNT)
    template = np.repeat(np.arange(template_count, dtype=index_type), np.diff(template_pair))
    shape0, shape1 = pair_shape0.astype(np.int32), pair_shape1.astype(np.int32)
    flat0, flat1 = (flat_shapes(some, template, template_first_shape) for some in (shape0, shape1))
    small = shape_type.astype(np.uint8)
    kind_count = int(small.max(initial=0)) + 1
    type0, type1 = small[flat0], small[flat1]
    kind = type0.astype(np.uint16) * np.uint16(kind_count) + type1

    collider_of_kind = np.zeros(kind_count**2, dtype=index_type)
    swapped_of_kind = np.zeros(kind_count**2, dtype=bool)
    contact_max_of_kind = np.zeros(kind_count**2, dtype=np.uint8)
    for one in np.flatnonzero(np.bincount(kind, minlength=kind_count**2)).tolist():
        first, second = GeoType(one // kind_count), GeoType(one % kind_count)
        collider_of_kind[one], swapped_of_kind[one] = collider_of(first, second)
        contact_max_of_kind[one] = contact_max_of(first, second)
    collider, swapped = collider_of_kind[kind], swapped_of_kind[kind]
    contact_max = contact_max_of_kind[kind]
    if is_hydroelastic.any():
        patches = (is_hydroelastic[flat0] | is_hydroelastic[flat1]) & is_solid[flat0] & is_solid[flat1]
        with_plane = (type0 == GeoType.PLANE) | (type1 == GeoType.PLANE)
        with_mesh = (type0 == GeoType.MESH) | (type1 == GeoType.MESH)
        for rows, of_shapes, of_meshes in (
            (patches & with_plane, Collider.HYDROELASTIC_PLANE, Collider.HYDROELASTIC_MESH_PLANE),
            (patches & ~with_plane, Collider.HYDROELASTIC, Collider.HYDROELASTIC_MESH),
        ):
            collider[rows] = np.where(with_mesh[rows], of_meshes, of_shapes)
            swapped[rows] = type1[rows] == GeoType.PLANE
            contact_max[rows] = _PATCH_CONTACT_COUNT

    key = template * index_type.type(COLLIDER_COUNT) + collider
    order = np.argsort(key, kind="stable")
    start = np.zeros(template_count * COLLIDER_COUNT + 1, dtype=np.int32)
    start[1:] = np.cumsum(np.bincount(key, minlength=template_count * COLLIDER_COUNT))
    shape0[swapped], shape1[swapped] = shape1[swapped], shape0[swapped]
    return HostPairs(shape0=shape0[order], shape1=shape1[order], contact_max=contact_max[order], start=start)


def flat_shapes(local: np.ndarray, template: np.ndarray, template_first_shape: np.ndarray) -> np.ndarray:
    """Return the flat indices of shapes as pairs name them, in one world of each pair's template."""
    flat = template_first_shape.astype(np.int32)[template]
    flat += local
    is_global = local < 0
    flat[is_global] = -1 - local[is_global]
    return flat


def named_shapes(columns: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the shapes that pairs name, ascending. A mark for each shape is quicker than sorting pairs.

    Args:
        columns: First and second shapes of some pairs.
    """
    parts = [part for pair in columns for part in pair if len(part)]
    if not parts:
        return np.zeros(0, dtype=np.int32)
    low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
    is_named = np.zeros(high - low + 1, dtype=bool)
    for part in parts:
        is_named[part - low] = True
    return (np.flatnonzero(is_named) + low).astype(np.int32)


def upload_pairs(pairs: HostPairs, world_template: np.ndarray, topology: Any, device: Any) -> PairTable:
    """Return `pairs` as arrays on the device, and room for the near pairs of each world.

    Args:
        pairs: Candidate pairs of all templates.
        world_template: Template of each world, shape [world].
        topology: `Topology` of the model.
        device: Device of the arrays.
    """
    table = PairTable()
    table.world_template = topology.world_template
    table.world_shape = topology.world_shape
    table.pair_start = wp.array(pairs.start, dtype=int, device=device)
    table.pair_shape0 = wp.array(pairs.shape0, dtype=int, device=device)
    table.pair_shape1 = wp.array(pairs.shape1, dtype=int, device=device)
    pair_count = np.diff(pairs.start[::COLLIDER_COUNT].astype(np.int64))
    words = -(-pair_count // LANE_COUNT)[world_template]
    starts = np.concatenate([[0], np.cumsum(words)])
    table.near_start = wp.array(starts[:-1].astype(np.int32), dtype=int, device=device)
    table.near = wp.zeros(int(starts[-1]), dtype=wp.uint32, device=device)
    return table
