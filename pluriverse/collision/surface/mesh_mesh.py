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
from pluriverse.collision.surface.mesh_data import (
    CLOSED,
    GROUND,
    MeshData,
    is_vertex_free,
    surface_point,
    vertex_inward,
)
from pluriverse.collision.surface.mesh_depth import (
    has_tie,
    is_unresolved,
    note_inside,
    note_tie,
    overlap_vector,
    resolve_deep_overlap,
)
from pluriverse.collision.surface.mesh_edges import add_edges, offer_pierced_edges
from pluriverse.collision.surface.mesh_witness import (
    PATCH_SLOPE,
    SHALLOW,
    MeshPlacement,
    SurfaceWitness,
    add_oriented,
    bound_placed,
    find_facet_witness,
    find_surface_witness,
    is_deeper,
    place_mesh,
)

# Depth, relative to the size of the smaller mesh, up to which corners are looked for below the surface.
DEPTH = wp.constant(0.5)
# Sine of the angle by which what is around a corner may rise towards the other mesh, as the grid sees it: its
# direction may be off by 60 degrees where faces meet.
FACING_SLOPE = wp.constant(0.9)
# How far into its mesh a corner on the surface of another is moved, relative to the size, to see whether it
# goes in; and the part of that by which it must be inside: what lies against a side is as far outside.
NEXT_TO = wp.constant(1.0e-3)
WITHIN = wp.constant(0.1)


@wp.func
def goes_in(data: MeshData, placed: MeshPlacement, vertex: int, local: wp.vec3, size: float) -> bool:
    """Return whether what is next to a corner of a mesh goes into the other.

    The middle between all edges of the corner may lie in a side of the other mesh, as the corner does; what
    is between that and one of the edges does not.

    Args:
        data: The surfaces.
        placed: The mesh of the corner.
        vertex: The corner.
        local: Where it is [m], frame of its mesh.
        size: Size of the pair [m].
    """
    result = bool(False)
    inward = wp.normalize(vertex_inward(data, vertex, placed.scale, local))
    for index in range(data.ring_start[vertex], data.ring_start[vertex + 1]):
        along = wp.normalize(surface_point(data, data.ring[index], placed.scale) - local)
        within = local + NEXT_TO * size * wp.normalize(inward + along)
        point = placed.rotation * within + placed.position
        if not result:
            result = is_deeper(data, placed.other, placed.other_scale, point, WITHIN * NEXT_TO * size, size)
    return result


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
    tie_depth: float,
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
        tie_depth: If positive, it is asked of a corner on the surface of a solid whether the mesh goes in
            there, and through which face: one up to this far above the corner [m].
    """
    local = surface_point(data, vertex, placed.scale)
    if wp.min(local - placed.lower) < 0.0 or wp.min(placed.upper - local) < 0.0:
        return count
    depth = wp.max(pair.threshold, DEPTH * pair.extent)
    if data.kind[placed.other] == GROUND:
        depth = depth + wp.length(placed.upper - placed.lower)
    point = placed.rotation * local
    bounds = bound_placed(data, placed, point)
    if bounds.lower > pair.threshold:
        return count
    origin = wp.vec3(0.0, 0.0, 0.0)
    if tie_depth <= 0.0 and bounds.upper < 0.0 and data.kind[placed.other] == CLOSED:
        note_inside(overlaps, wp.where(is_second, 0, 1), point, bounds.lower, bounds.upper)
    inverse = wp.transpose(placed.rotation)
    is_tie = tie_depth > 0.0
    is_shallow = bounds.upper > -SHALLOW * pair.extent
    # Next to the surface the direction is that of any face nearby: a corner on an edge of the other mesh
    # faces one of the faces there, and has its back to the next.
    if not is_shallow and not is_vertex_free(
        data, vertex, placed.scale, origin, -(inverse * bounds.direction), local, FACING_SLOPE
    ):
        return count
    is_on_solid = is_shallow and bounds.lower < 0.0 and data.kind[placed.other] == CLOSED
    shallow = SHALLOW * pair.extent
    if is_tie:
        if not is_on_solid:
            return count
        if not goes_in(data, placed, vertex, local, pair.extent):
            return count
        shallow = tie_depth
    on_faces = SurfaceWitness()
    if is_shallow:
        on_faces = find_facet_witness(data, placed, vertex, local, pair.threshold, shallow, pair.extent)
    is_offered = bool(False)
    for attempt in range(int(2)):
        witness = on_faces
        if attempt == 1:
            if on_faces.is_near or is_tie:
                break
            witness = find_surface_witness(data, placed, point, bounds, depth, pair.extent)
        if witness.is_near and witness.distance <= pair.threshold:
            back = -(inverse * witness.normal)
            if is_vertex_free(data, vertex, placed.scale, origin, back, local, PATCH_SLOPE):
                count = add_oriented(placed, is_second, pair, normals, slots, count, point, witness)
                is_offered = True
    if is_on_solid and not is_offered:
        note_tie(overlaps, wp.where(is_second, 0, 1))
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
    tie_depth: float,
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
                count = add_corner(
                    data, placed, is_second, pair, normals, slots, overlaps, count, vertex, tie_depth
                )
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
        pair.threshold,
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
        pair.threshold,
        data,
    )
    if first.surface < 0 or second.surface < 0:
        return found
    normals = wp.zeros(shape=PATCH_COUNT, dtype=wp.vec3)
    slots = wp.zeros(shape=SLOT_COUNT, dtype=candidate_vector)
    overlaps = wp.zeros(shape=2, dtype=overlap_vector)
    count = int(0)
    # One call for all, as the compiler writes each of them out. In the end, corners on the surface of a solid
    # are asked again: solids in line with each other, sunk in, have theirs on the sides. They may be as deep
    # as the deepest contact, or up to half the size where nothing pushes.
    tie_depth = float(0.0)
    for stage in range(int(4)):
        is_second = stage % 2 == 0
        placed = second
        if not is_second:
            placed = first
        if stage == 2:
            count = add_edges(data, second, pair, normals, slots, count)
            known = -deepest_distance(slots, count)
            tie_depth = DEPTH * pair.extent
            if known > 0.0:
                tie_depth = known + NEXT_TO * pair.extent
        # Up to the first depth all corners have been asked.
        if stage < 2 or (has_tie(overlaps, stage - 2) and tie_depth > SHALLOW * pair.extent):
            count = add_corners(data, placed, is_second, pair, normals, slots, overlaps, count, tie_depth)
    if is_unresolved(overlaps, pair, slots, count):
        count = resolve_deep_overlap(data, first, second, pair, overlaps, normals, slots)
    if deepest_distance(slots, count) >= 0.0:
        for stage in range(int(2)):
            placed = second
            if stage == 1:
                placed = first
            offer_pierced_edges(data, placed, stage == 0, pair, slots)
    return add_kept_contacts(output, model, pair, found, normals, slots, count)


collide_mesh_mesh_pairs = make_pair_kernel("mesh_mesh", collide_mesh_mesh, data_type=MeshData)
