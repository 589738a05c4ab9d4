"""Collider of an infinite plane and a triangle mesh: the vertices of its convex hull, reduced to a patch."""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, write_counts
from pluriverse.collision.contact_reduction import (
    PATCH_COUNT,
    SLOT_COUNT,
    add_candidate,
    add_kept_contacts,
    candidate_vector,
)
from pluriverse.collision.mesh_data import MeshData, surface_point
from pluriverse.collision.pair_table import COLLIDER_COUNT, Collider, PairTable
from pluriverse.collision.shape_pair import ShapePair, flat_shape, is_near_plane, make_shape_pair
from pluriverse.collision.shape_state import ShapeModel, ShapeState
from pluriverse.launch import launch_kernel


@wp.func
def collide_mesh_plane(
    output: ContactOutput, model: ShapeModel, data: MeshData, pair: ShapePair, found: int
) -> int:
    """Add the contacts of a plane (first) and a mesh (second)."""
    surface = data.mesh_surface[model.shape_source_index[pair.shape1]]
    if surface < 0:
        return found
    normals = wp.zeros(shape=PATCH_COUNT, dtype=wp.vec3)
    slots = wp.zeros(shape=SLOT_COUNT, dtype=candidate_vector)
    count = int(0)
    for index in range(data.first_hull_point[surface], data.first_hull_point[surface + 1]):
        point = pair.rotation * surface_point(data, data.hull_point[index], pair.size1)
        height = point[2] + pair.position[2]
        if height <= pair.reach:
            count = add_candidate(normals, slots, count, point, wp.vec3(0.0, 0.0, 1.0), height)
    return add_kept_contacts(output, model, pair, found, normals, slots, count)


@wp.kernel(enable_backward=False, module="pluriverse.collision.mesh_plane")
def collide_mesh_plane_pairs(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: PairTable,
    collider: int,
    model: ShapeModel,
    data: MeshData,
    state: ShapeState,
    # out
    output: ContactOutput,
):
    """Add the contacts of the planes of one world with meshes."""
    world = worlds[wp.tid()]
    if world < 0:
        return
    row = table.world_template[world] * COLLIDER_COUNT + collider
    first_shape = table.world_shape[world]
    found = output.found[world]
    for index in range(table.pair_start[row], table.pair_start[row + 1]):
        plane = flat_shape(table.pair_shape0[index], first_shape)
        shape = flat_shape(table.pair_shape1[index], first_shape)
        if is_near_plane(state, plane, shape):
            pair = make_shape_pair(state, world, plane, shape)
            pair.extent = state.extent[shape]
            found = collide_mesh_plane(output, model, data, pair, found)
    write_counts(output, world, found)


def collide_meshes_and_planes(
    data: MeshData,
    worlds: wp.array[int],
    table: PairTable,
    model: ShapeModel,
    state: ShapeState,
    output: ContactOutput,
    device: Any,
) -> None:
    """Add the contacts of triangle meshes with infinite planes."""
    launch_kernel(
        collide_mesh_plane_pairs,
        dim=worlds.size,
        inputs=[worlds, table, int(Collider.MESH_PLANE), model, data, state],
        outputs=[output],
        device=device,
    )
