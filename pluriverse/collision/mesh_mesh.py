"""Collider of two triangle meshes, or of a height field and a mesh.

Where two polyhedra touch, a corner of one meets a face of the other, or two edges cross. So every sharp
corner of either is looked up in the other (its closest point, and the side of the surface that it is on), and
every pair of sharp edges that pass each other gives a contact along their common perpendicular. Faces that
lie on each other have the corners of their overlap among these.
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.contact_reduction import (
    PATCH_COUNT,
    SLOT_COUNT,
    add_candidate,
    add_kept_contacts,
    add_last_resort,
    candidate_vector,
    deepest_distance,
)
from pluriverse.collision.mesh_data import (
    CLOSED,
    GROUND,
    MeshData,
    is_edge_free,
    is_vertex_free,
    surface_point,
)
from pluriverse.collision.mesh_touch import (
    PATCH_SLOPE,
    TOUCHING,
    MeshPlacement,
    SurfaceTouch,
    is_inside,
    place_mesh,
    touch_faces,
    touch_surface,
)
from pluriverse.collision.pair_table import COLLIDER_COUNT, Collider, PairTable
from pluriverse.collision.segment import closest_segment_points
from pluriverse.collision.shape_pair import ShapePair, bounds_overlap, flat_shape, make_shape_pair
from pluriverse.collision.shape_state import ShapeModel, ShapeState

# Depth, relative to the size of the smaller mesh, up to which corners are looked for below the surface.
DEPTH = wp.constant(0.5)
# Depth, relative likewise, up to which crossing edges count.
EDGE_DEPTH = wp.constant(0.25)
# Sine of the angle of two edges up to which their corners tell all.
PARALLEL = wp.constant(0.01)
# Distance along an edge, relative to the size, from a crossing to where it is asked what it runs into.
NEXT_TO = wp.constant(1.0e-3)


@wp.func
def add_oriented(
    placed: MeshPlacement,
    is_second: bool,
    pair: ShapePair,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
    point: wp.vec3,
    touch: SurfaceTouch,
) -> int:
    """Offer the contact of a point of a mesh with the other, whichever of them is the second of the pair."""
    if is_second:
        return add_candidate(normals, slots, count, point, touch.normal, touch.distance)
    # The point of the second shape, relative to its origin, axes of the first.
    on_second = point - touch.distance * touch.normal + placed.position
    return add_candidate(
        normals, slots, count, pair.rotation * on_second, -(pair.rotation * touch.normal), touch.distance
    )


@wp.func
def add_corners(
    data: MeshData,
    placed: MeshPlacement,
    is_second: bool,
    pair: ShapePair,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
) -> int:
    """Offer the contacts of the sharp corners of a mesh with the other; return the number of patches.

    Args:
        data: The surfaces.
        placed: The mesh.
        is_second: Whether the mesh is the second of the pair.
        pair: The pair.
        normals: Normals of patches.
        slots: Contacts kept.
        count: Number of patches so far.
    """
    surface = placed.surface
    scale = placed.scale
    origin = wp.vec3(0.0, 0.0, 0.0)
    inverse = wp.transpose(placed.rotation)
    depth = wp.max(pair.reach, DEPTH * pair.extent)
    if data.kind[placed.other] == GROUND:
        depth = depth + wp.length(placed.upper - placed.lower)
    first = wp.cw_div(placed.lower, scale)
    last = wp.cw_div(placed.upper, scale)
    query = wp.mesh_query_aabb(data.id[surface], wp.min(first, last), wp.max(first, last))
    face = int(0)
    while wp.mesh_query_next(query, face):
        triangle = data.first_triangle[surface] + face
        owned = int(data.owned[triangle])
        for corner in range(int(3)):
            if (owned & (8 << corner)) != 0:
                vertex = data.triangle[triangle][corner]
                local = surface_point(data, vertex, scale)
                if wp.min(local - placed.lower) >= 0.0 and wp.min(placed.upper - local) >= 0.0:
                    point = placed.rotation * local
                    on_faces = touch_faces(data, placed, vertex, local, pair.reach, pair.extent)
                    for turn in range(int(2)):
                        touch = on_faces
                        if turn == 1:
                            if on_faces.is_near:
                                break
                            touch = touch_surface(data, placed, point, depth, pair.extent)
                        if touch.is_near and touch.distance <= pair.reach:
                            back = -(inverse * touch.normal)
                            if is_vertex_free(data, vertex, scale, origin, back, local, PATCH_SLOPE):
                                count = add_oriented(
                                    placed, is_second, pair, normals, slots, count, point, touch
                                )
    return count


@wp.func
def is_third_behind(
    data: MeshData, row: int, scale: wp.vec3, position: wp.vec3, normal: wp.vec3, point: wp.vec3
) -> bool:
    """Return whether the third corner of the triangle of an edge lies behind the plane across a normal."""
    vertex = int(0)
    if row % 3 == 1:
        vertex = data.triangle[row // 3][0]
    elif row % 3 == 0:
        vertex = data.triangle[row // 3][2]
    else:
        vertex = data.triangle[row // 3][1]
    offset = (surface_point(data, vertex, scale) - position) - point
    return wp.dot(normal, offset) <= PATCH_SLOPE * wp.length(offset)


@wp.func
def add_edge_pair(
    data: MeshData,
    pair: ShapePair,
    surface0: int,
    surface1: int,
    row0: int,
    row1: int,
    a0: wp.vec3,
    b0: wp.vec3,
    a1: wp.vec3,
    b1: wp.vec3,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
) -> int:
    """Offer the contact of two edges, given by their ends in axes of the first, relative to the second."""
    along0 = b0 - a0
    along1 = b1 - a1
    cross = wp.cross(along0, along1)
    sine = wp.length(cross)
    if sine <= PARALLEL * wp.length(along0) * wp.length(along1):
        return count
    half0 = 0.5 * along0
    half1 = 0.5 * along1
    middle0 = a0 + half0
    middle1 = a1 + half1
    where = closest_segment_points(half0, middle1 - middle0, half1)
    if wp.abs(where[0]) >= 1.0 or wp.abs(where[1]) >= 1.0:
        return count
    point0 = middle0 + where[0] * half0
    point1 = middle1 + where[1] * half1
    normal = cross / sine
    if wp.length(point1 - point0) > TOUCHING * pair.extent:
        normal = wp.normalize(point1 - point0)
    height = wp.dot(normal, point1 - point0)
    if wp.abs(height) > pair.reach and wp.abs(height) > EDGE_DEPTH * pair.extent:
        return count
    inverse = wp.transpose(pair.rotation)
    origin = wp.vec3(0.0, 0.0, 0.0)
    on_first = point0
    on_second = inverse * point1
    for turn in range(int(2)):
        sign = wp.where(turn == 0, 1.0, -1.0)
        n = sign * normal
        distance = sign * height
        if distance <= pair.reach and distance >= -EDGE_DEPTH * pair.extent:
            back = -(inverse * n)
            if (
                is_edge_free(data, row0, pair.size0, pair.position, n, on_first, PATCH_SLOPE)
                and is_third_behind(data, row0, pair.size0, pair.position, n, on_first)
                and is_edge_free(data, row1, pair.size1, origin, back, on_second, PATCH_SLOPE)
                and is_third_behind(data, row1, pair.size1, origin, back, on_second)
            ):
                # Edges that pass each other on the outside look like a penetration along the wrong normal. Of
                # edges that cross, each goes into the other solid, on one side of the crossing.
                step0 = (NEXT_TO * pair.extent) * wp.normalize(along0)
                step1 = (NEXT_TO * pair.extent) * wp.normalize(along1)
                if distance >= 0.0 or (
                    (
                        is_inside(data, surface0, pair.size0, point1 + step1 + pair.position)
                        or is_inside(data, surface0, pair.size0, point1 - step1 + pair.position)
                    )
                    and (
                        is_inside(data, surface1, pair.size1, inverse * (point0 + step0))
                        or is_inside(data, surface1, pair.size1, inverse * (point0 - step0))
                    )
                ):
                    count = add_candidate(normals, slots, count, point1, n, distance)
    return count


@wp.func
def add_edges(
    data: MeshData,
    placed: MeshPlacement,
    pair: ShapePair,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
) -> int:
    """Offer the contacts of the sharp edges of the second mesh with those of the first."""
    reach = wp.max(pair.reach, EDGE_DEPTH * pair.extent)
    inflation = wp.vec3(reach, reach, reach)
    first = wp.cw_div(placed.lower, pair.size1)
    last = wp.cw_div(placed.upper, pair.size1)
    query = wp.mesh_query_aabb(data.id[placed.surface], wp.min(first, last), wp.max(first, last))
    face1 = int(0)
    while wp.mesh_query_next(query, face1):
        triangle1 = data.first_triangle[placed.surface] + face1
        owned1 = int(data.owned[triangle1])
        corners1 = data.triangle[triangle1]
        for edge1 in range(int(3)):
            if (owned1 & (1 << edge1)) != 0:
                a1 = pair.rotation * surface_point(data, corners1[edge1], pair.size1)
                b1 = pair.rotation * surface_point(data, corners1[(edge1 + 1) % 3], pair.size1)
                low = wp.cw_div(wp.min(a1, b1) - inflation + pair.position, pair.size0)
                high = wp.cw_div(wp.max(a1, b1) + inflation + pair.position, pair.size0)
                inner = wp.mesh_query_aabb(data.id[placed.other], wp.min(low, high), wp.max(low, high))
                face0 = int(0)
                while wp.mesh_query_next(inner, face0):
                    triangle0 = data.first_triangle[placed.other] + face0
                    owned0 = int(data.owned[triangle0])
                    corners0 = data.triangle[triangle0]
                    for edge0 in range(int(3)):
                        if (owned0 & (1 << edge0)) != 0:
                            a0 = surface_point(data, corners0[edge0], pair.size0) - pair.position
                            b0 = surface_point(data, corners0[(edge0 + 1) % 3], pair.size0) - pair.position
                            count = add_edge_pair(
                                data,
                                pair,
                                placed.other,
                                placed.surface,
                                3 * triangle0 + edge0,
                                3 * triangle1 + edge1,
                                a0,
                                b0,
                                a1,
                                b1,
                                normals,
                                slots,
                                count,
                            )
    return count


@wp.func
def offer_pierced_edges(
    data: MeshData, placed: MeshPlacement, is_second: bool, pair: ShapePair, slots: wp.array[candidate_vector]
) -> None:
    """Offer points within the sharp edges of a mesh as a last resort where they are inside the other."""
    if data.kind[placed.other] != CLOSED and data.kind[placed.other] != GROUND:
        return
    inflation = wp.vec3(pair.reach, pair.reach, pair.reach)
    first = wp.cw_div(placed.lower + inflation, placed.scale)
    last = wp.cw_div(placed.upper - inflation, placed.scale)
    query = wp.mesh_query_aabb(data.id[placed.surface], wp.min(first, last), wp.max(first, last))
    face = int(0)
    while wp.mesh_query_next(query, face):
        triangle = data.first_triangle[placed.surface] + face
        owned = int(data.owned[triangle])
        corners = data.triangle[triangle]
        for edge in range(int(3)):
            if (owned & (1 << edge)) != 0:
                start = surface_point(data, corners[edge], placed.scale)
                end = surface_point(data, corners[(edge + 1) % 3], placed.scale)
                # The part of the edge between where it enters and leaves the other mesh.
                low = wp.cw_div(placed.rotation * start + placed.position, placed.other_scale)
                high = wp.cw_div(placed.rotation * end + placed.position, placed.other_scale)
                along = high - low
                length = wp.length(along)
                forth = wp.mesh_query_ray(data.id[placed.other], low, along / length, length)
                back = wp.mesh_query_ray(data.id[placed.other], high, -along / length, length)
                if forth.result and back.result:
                    t = 0.5 * (forth.t + length - back.t) / length
                    point = placed.rotation * (start + t * (end - start))
                    touch = touch_surface(data, placed, point, DEPTH * pair.extent, pair.extent)
                    if touch.is_near and touch.distance < 0.0:
                        normal = touch.normal
                        if not is_second:
                            # The point of the second shape, relative to its origin, axes of the first.
                            point = pair.rotation * (point - touch.distance * normal + placed.position)
                            normal = -(pair.rotation * normal)
                        add_last_resort(slots, point, normal, touch.distance)


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
    count = int(0)
    count = add_corners(data, second, True, pair, normals, slots, count)
    count = add_corners(data, first, False, pair, normals, slots, count)
    count = add_edges(data, second, pair, normals, slots, count)
    if deepest_distance(slots, count) >= 0.0:
        offer_pierced_edges(data, second, True, pair, slots)
        offer_pierced_edges(data, first, False, pair, slots)
    return add_kept_contacts(output, model, pair, found, normals, slots, count)


@wp.kernel(enable_backward=False, module="pluriverse.collision.mesh_mesh")
def collide_mesh_mesh_pairs(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: PairTable,
    collider: int,
    model: ShapeModel,
    data: MeshData,
    state: ShapeState,
    # out
    output: ContactOutput,
):
    """Add the contacts among the meshes of one world."""
    world = worlds[wp.tid()]
    row = table.world_template[world] * COLLIDER_COUNT + collider
    first_shape = table.world_shape[world]
    found = output.found[world]
    for index in range(table.pair_start[row], table.pair_start[row + 1]):
        shape0 = flat_shape(table.pair_shape0[index], first_shape)
        shape1 = flat_shape(table.pair_shape1[index], first_shape)
        if bounds_overlap(state.bounds[shape0], state.bounds[shape1]):
            pair = make_shape_pair(state, world, shape0, shape1)
            found = collide_mesh_mesh(output, model, data, pair, found)
    output.found[world] = found
    output.count[world] = wp.min(found, output.start[world + 1] - output.start[world])


def collide_meshes(
    data: MeshData,
    worlds: wp.array[int],
    table: PairTable,
    model: ShapeModel,
    state: ShapeState,
    output: ContactOutput,
    device: Any,
) -> None:
    """Add the contacts of triangle meshes with each other and with height fields."""
    wp.launch(
        collide_mesh_mesh_pairs,
        dim=worlds.size,
        inputs=[worlds, table, int(Collider.MESH_MESH), model, data, state],
        outputs=[output],
        device=device,
    )
