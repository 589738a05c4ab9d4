"""Collider of hydroelastic pairs with a triangle mesh: as `convex_pair`, by the signed distance of meshes.

Reads   ShapeModel, ShapeState, MeshData; shape_flags and shape_material_kh of the model
Writes  contacts with a stiffness of their own, `rigid_contact_stiffness`

A module of its own: models without such pairs neither parse nor compile it.
"""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_pair import (
    PressureModel,
    is_contained,
    make_patch_pair,
    push_out,
    store_patch,
)
from pluriverse.collision.hydroelastic.mesh_field import level_of_first, level_of_second
from pluriverse.collision.hydroelastic.mesh_patch import find_mesh_patch
from pluriverse.collision.hydroelastic.patch_pair import SECTOR_COUNT
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.collision.surface.mesh_data import MeshData
from pluriverse.types import GeoType


@wp.struct
class MeshPatchData:
    """What this collider needs besides the shapes."""

    hulls: HullData
    """Convex hulls."""
    meshes: MeshData
    """Surfaces."""
    pressures: PressureModel
    """Pressure fields."""


@wp.func
def collide_hydroelastic_mesh(
    output: ContactOutput,
    model: ShapeModel,
    all_data: MeshPatchData,
    shapes: ShapePair,
    found: int,
) -> int:
    """Add the contacts of the patch of two shapes; a half space comes first."""
    pressures = all_data.pressures
    pair = make_patch_pair(model, pressures, shapes)
    if pair.type0 == GeoType.MESH:
        pair.hull0 = all_data.meshes.mesh_surface[model.shape_source_index[shapes.shape0]]
    if pair.type1 == GeoType.MESH:
        pair.hull1 = all_data.meshes.mesh_surface[model.shape_source_index[shapes.shape1]]
    compliance = pair.compliance0 + pair.compliance1
    if not (compliance > 0.0 and compliance < wp.inf):
        return found
    force = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec3)
    moment = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec3)
    weight = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec2)
    total = find_mesh_patch(pair, all_data.hulls, all_data.meshes, force, moment, weight)
    if is_contained(pair, total, weight):
        center = wp.vec3(0.0, 0.0, 0.0)
        first = level_of_first(pair, all_data.hulls, all_data.meshes, center)
        second = level_of_second(pair, all_data.hulls, all_data.meshes, center)
        if first[3] < 0.0 and second[3] < 0.0:
            total = push_out(pair, first, force, moment, weight)
    return store_patch(output, model, pressures, shapes, pair, force, moment, weight, total, found)


collide_hydroelastic_mesh_pairs = make_pair_kernel(
    "hydroelastic_mesh", collide_hydroelastic_mesh, data_type=MeshPatchData, is_symmetric=True
)
