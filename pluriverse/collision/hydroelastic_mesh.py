"""Collider of hydroelastic pairs with a triangle mesh: as `hydroelastic`, by the signed distance of meshes.

Reads   ShapeModel, ShapeState, MeshData; shape_flags and shape_material_kh of the model
Writes  contacts with a stiffness of their own, `rigid_contact_stiffness`

A module of its own: models without such pairs neither parse nor compile it.
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, write_counts
from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic import (
    PressureModel,
    is_swallowed,
    make_patch_pair,
    push_out,
    store_patch,
)
from pluriverse.collision.hydroelastic_mesh_field import MeshPatchPair, levels_at
from pluriverse.collision.hydroelastic_mesh_patch import find_mesh_patch
from pluriverse.collision.hydroelastic_pair import SECTOR_COUNT
from pluriverse.collision.mesh_data import MeshData
from pluriverse.collision.pair_table import COLLIDER_COUNT, Collider, PairTable
from pluriverse.collision.shape_pair import (
    ShapePair,
    flat_shape,
    is_larger,
    is_near,
    is_near_plane,
    make_shape_pair,
)
from pluriverse.collision.shape_state import MESH, ShapeModel, ShapeState
from pluriverse.launch import launch_kernel


@wp.func
def collide_hydroelastic_mesh(
    output: ContactOutput,
    model: ShapeModel,
    hulls: HullData,
    data: MeshData,
    pressures: PressureModel,
    shapes: ShapePair,
    found: int,
) -> int:
    """Add the contacts of the patch of two shapes; a half space comes first."""
    patch = MeshPatchPair()
    patch.hulls = hulls
    patch.data = data
    pair = make_patch_pair(model, pressures, shapes)
    if pair.type0 == MESH:
        pair.hull0 = data.mesh_surface[model.shape_source_index[shapes.shape0]]
    if pair.type1 == MESH:
        pair.hull1 = data.mesh_surface[model.shape_source_index[shapes.shape1]]
    patch.pair = pair
    compliance = pair.compliance0 + pair.compliance1
    if not (compliance > 0.0 and compliance < wp.inf):
        return found
    force = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec3)
    moment = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec3)
    weight = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec2)
    total = find_mesh_patch(patch, force, moment, weight)
    if is_swallowed(pair, total, weight):
        both = levels_at(patch, wp.vec3(0.0, 0.0, 0.0))
        if both.first[3] < 0.0 and both.second[3] < 0.0:
            total = push_out(pair, both.first, force, moment, weight)
    return store_patch(output, model, pressures, shapes, pair, force, moment, weight, total, found)


@wp.kernel(enable_backward=False, module="pluriverse.collision.hydroelastic_mesh")
def collide_hydroelastic_mesh_pairs(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: PairTable,
    collider: int,
    is_plane: bool,
    model: ShapeModel,
    hulls: HullData,
    data: MeshData,
    pressures: PressureModel,
    state: ShapeState,
    # out
    output: ContactOutput,
):
    """Add the contacts of the hydroelastic pairs with a mesh of one world."""
    world = worlds[wp.tid()]
    if world < 0:
        return
    row = table.world_template[world] * COLLIDER_COUNT + collider
    first_shape = table.world_shape[world]
    found = output.found[world]
    for index in range(table.pair_start[row], table.pair_start[row + 1]):
        shape0 = flat_shape(table.pair_shape0[index], first_shape)
        shape1 = flat_shape(table.pair_shape1[index], first_shape)
        touches = bool(False)
        if is_plane:
            touches = is_near_plane(state, shape0, shape1)
        else:
            touches = is_near(state, shape0, shape1)
            if is_larger(state, shape0, shape1):
                shape0, shape1 = shape1, shape0
        if touches:
            pair = make_shape_pair(state, world, shape0, shape1)
            found = collide_hydroelastic_mesh(output, model, hulls, data, pressures, pair, found)
    write_counts(output, world, found)


def collide_hydroelastic_meshes(
    worlds: wp.array[int],
    table: PairTable,
    collider: Collider,
    model: ShapeModel,
    hulls: HullData,
    data: MeshData,
    pressures: PressureModel,
    state: ShapeState,
    output: ContactOutput,
    device: Any,
) -> None:
    """Add the contacts of the hydroelastic pairs with a mesh."""
    launch_kernel(
        collide_hydroelastic_mesh_pairs,
        dim=worlds.size,
        inputs=[
            worlds,
            table,
            int(collider),
            collider == Collider.HYDROELASTIC_MESH_PLANE,
            model,
            hulls,
            data,
            pressures,
            state,
        ],
        outputs=[output],
        device=device,
    )
