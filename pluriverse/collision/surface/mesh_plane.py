"""Collider of an infinite plane and a triangle mesh: the vertices of its convex hull, reduced to a patch."""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.collision.surface.contact_reduction import (
    PATCH_COUNT,
    SLOT_COUNT,
    add_candidate,
    add_kept_contacts,
    candidate_vector,
)
from pluriverse.collision.surface.mesh_data import MeshData, surface_point


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
        if height <= pair.threshold:
            count = add_candidate(normals, slots, count, point, wp.vec3(0.0, 0.0, 1.0), height)
    return add_kept_contacts(output, model, pair, found, normals, slots, count)


collide_mesh_plane_pairs = make_pair_kernel("mesh_plane", collide_mesh_plane, data_type=MeshData)
