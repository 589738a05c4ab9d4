"""Collider of two triangle meshes, or of a height field and a mesh.

Where two polyhedra touch, a corner of one meets a face of the other, or two edges cross. So every sharp
corner of either is looked up in the other (its closest point, and the side of the surface that it is on), and
every pair of sharp edges that pass each other gives a contact along their common perpendicular. Faces that
lie on each other have the corners of their overlap among these.
"""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.collision.surface.contact_reduction import (
    PATCH_COUNT,
    SLOT_COUNT,
    add_kept_contacts,
    candidate_vector,
    deepest_distance,
)
from pluriverse.collision.surface.mesh_data import CLOSED, GROUND, MeshData, is_vertex_free, surface_point
from pluriverse.collision.surface.mesh_depth import (
    is_unresolved,
    note_inside,
    overlap_vector,
    resolve_deep_overlap,
)
from pluriverse.collision.surface.mesh_edges import add_edges, offer_pierced_edges
from pluriverse.collision.surface.mesh_touch import (
    PATCH_SLOPE,
    SHALLOW,
    MeshPlacement,
    SurfaceTouch,
    add_oriented,
    bound_placed,
    place_mesh,
    touch_faces,
    touch_surface,
)

# Depth, relative to the size of the smaller mesh, up to which corners are looked for below the surface.
DEPTH = wp.constant(0.5)
# Sine of the angle by which what is around a corner may rise towards the other mesh, as the grid sees it: its
# direction may be off by 60 degrees where faces meet.
FACING_SLOPE = wp.constant(0.9)


@wp.func
def add_corner(
    data: MeshData,
    placed: MeshPlacement,
    is_second: bool,
    pair: ShapePair,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    overlaps: wp.array[overlap_vector],
    count: int,
    vertex: int,
) -> int:
    """Offer the contact of a sharp corner of a mesh with the other; return the number of patches.

    Args:
        data: The surfaces.
        placed: The mesh.
        is_second: Whether the mesh is the second of the pair.
        pair: The pair.
        normals: Normals of patches.
        slots: Contacts kept.
        overlaps: What is inside the other mesh.
        count: Number of patches so far.
        vertex: The corner.
    """
    local = surface_point(data, vertex, placed.scale)
    if wp.min(local - placed.lower) < 0.0 or wp.min(placed.upper - local) < 0.0:
        return count
    depth = wp.max(pair.reach, DEPTH * pair.extent)
    if data.kind[placed.other] == GROUND:
        depth = depth + wp.length(placed.upper - placed.lower)
    point = placed.rotation * local
    bounds = bound_placed(data, placed, point)
    if bounds.lower > pair.reach:
        return count
    origin = wp.vec3(0.0, 0.0, 0.0)
    if bounds.upper < 0.0 and data.kind[placed.other] == CLOSED:
        note_inside(overlaps, wp.where(is_second, 0, 1), point, bounds.lower, bounds.upper)
    inverse = wp.transpose(placed.rotation)
    if not is_vertex_free(
        data, vertex, placed.scale, origin, -(inverse * bounds.direction), local, FACING_SLOPE
    ):
        return count
    on_faces = SurfaceTouch()
    if bounds.upper > -SHALLOW * pair.extent:
        on_faces = touch_faces(data, placed, vertex, local, pair.reach, pair.extent)
    for turn in range(int(2)):
        touch = on_faces
        if turn == 1:
            if on_faces.is_near:
                break
            touch = touch_surface(data, placed, point, bounds, depth, pair.extent)
        if touch.is_near and touch.distance <= pair.reach:
            back = -(inverse * touch.normal)
            if is_vertex_free(data, vertex, placed.scale, origin, back, local, PATCH_SLOPE):
                count = add_oriented(placed, is_second, pair, normals, slots, count, point, touch)
    return count


@wp.func
def add_corners(
    data: MeshData,
    placed: MeshPlacement,
    is_second: bool,
    pair: ShapePair,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    overlaps: wp.array[overlap_vector],
    count: int,
) -> int:
    """Offer the contacts of the sharp corners of a mesh with the other; return the number of patches."""
    first = wp.cw_div(placed.lower, placed.scale)
    last = wp.cw_div(placed.upper, placed.scale)
    query = wp.mesh_query_aabb(data.id[placed.surface], wp.min(first, last), wp.max(first, last))
    face = int(0)
    while wp.mesh_query_next(query, face):
        triangle = data.first_triangle[placed.surface] + face
        owned = int(data.owned[triangle])
        for corner in range(int(3)):
            if (owned & (8 << corner)) != 0:
                vertex = data.triangle[triangle][corner]
                count = add_corner(data, placed, is_second, pair, normals, slots, overlaps, count, vertex)
    return count


@wp.func
def collide_mesh_mesh(
    output: ContactOutput, model: ShapeModel, data: MeshData, pair: ShapePair, found: int
) -> int:
    """Add the contacts of two meshes."""
    inverse = wp.transpose(pair.rotation)
    second = place_mesh(
        model,
        pair.shape1,
        pair.shape0,
        pair.size1,
        pair.size0,
        pair.rotation,
        pair.position,
        pair.reach,
        data,
    )
    first = place_mesh(
        model,
        pair.shape0,
        pair.shape1,
        pair.size0,
        pair.size1,
        inverse,
        -(inverse * pair.position),
        pair.reach,
        data,
    )
    if first.surface < 0 or second.surface < 0:
        return found
    normals = wp.zeros(shape=PATCH_COUNT, dtype=wp.vec3)
    slots = wp.zeros(shape=SLOT_COUNT, dtype=candidate_vector)
    overlaps = wp.zeros(shape=2, dtype=overlap_vector)
    count = int(0)
    # One call for both, as the compiler writes each of them out.
    for turn in range(int(2)):
        placed = second
        if turn == 1:
            placed = first
        count = add_corners(data, placed, turn == 0, pair, normals, slots, overlaps, count)
    count = add_edges(data, second, pair, normals, slots, count)
    if is_unresolved(overlaps, pair, slots, count):
        count = resolve_deep_overlap(data, first, second, pair, overlaps, normals, slots)
    if deepest_distance(slots, count) >= 0.0:
        for turn in range(int(2)):
            placed = second
            if turn == 1:
                placed = first
            offer_pierced_edges(data, placed, turn == 0, pair, slots)
    return add_kept_contacts(output, model, pair, found, normals, slots, count)


collide_mesh_mesh_pairs = make_pair_kernel("mesh_mesh", collide_mesh_mesh, data_type=MeshData)
