"""Collider of a triangle mesh and a convex shape: the triangles near the shape, one by one.

A closed mesh is solid: triangles push what is before them outwards, and a shape whose middle is inside is
pushed to the closest point of the surface; if it is deep inside and that does not lead out, the signed
distance tells the way. A mesh with holes is a sheet that pushes to the side where the
middle of the shape is.
"""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.hull import HullData
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.collision.surface.contact_reduction import (
    PATCH_COUNT,
    SLOT_COUNT,
    add_candidate,
    add_kept_contacts,
    candidate_vector,
    deepest_distance,
)
from pluriverse.collision.surface.mesh_convex_depth import is_suspect, resolve_deep_shape
from pluriverse.collision.surface.mesh_data import (
    CLOSED,
    OPEN,
    MeshData,
    is_edge_free,
    is_vertex_free,
    mirror_sign,
    surface_point,
)
from pluriverse.collision.surface.triangle_convex import make_triangle_collider
from pluriverse.collision.surface.triangle_pair import TrianglePair, make_triangle_pair, support_surface

# A depth is the minimum translation if no part of the surface is closer than it, less this fraction.
DEPTH_ROUNDING = wp.constant(1.0e-3)
# Range of the search for the separating translation of a solid [m]: any.
ANY_DISTANCE = wp.constant(1.0e10)


@wp.func
def is_free_edge(
    data: MeshData,
    surface: int,
    triangle: int,
    edge: int,
    pair: TrianglePair,
    normal: wp.vec3,
    point: wp.vec3,
    slope: float,
) -> bool:
    """Return whether the triangles beyond an edge lie behind the plane across a normal."""
    return is_edge_free(data, 3 * triangle + edge, pair.scale, pair.position, normal, point, slope)


@wp.struct
class MeshConvexData:
    """What this collider needs besides the shapes."""

    hulls: HullData
    """Convex hulls."""
    meshes: MeshData
    """Surfaces."""


@wp.func
def is_free_corner(
    data: MeshData,
    surface: int,
    triangle: int,
    corner: int,
    pair: TrianglePair,
    normal: wp.vec3,
    point: wp.vec3,
    slope: float,
) -> bool:
    """Return whether the neighbours of a corner lie behind the plane across a normal."""
    vertex = data.triangle[triangle][corner]
    return is_vertex_free(data, vertex, pair.scale, pair.position, normal, point, slope)


@wp.func
def unscaled(point: wp.vec3, scale: wp.vec3) -> wp.vec3:
    """Return a point of the frame of the shape as the mesh is stored."""
    return wp.vec3(point[0] / scale[0], point[1] / scale[1], point[2] / scale[2])


@wp.func
def is_exit_direction(
    data: MeshData, surface: int, pair: TrianglePair, point: wp.vec3, distance: float
) -> bool:
    """Return whether no part of the surface is closer to a point than the depth found.

    Where the scale differs between axes, the closest point is sought in the proportions of the stored mesh.
    """
    depth = -distance * (1.0 - DEPTH_ROUNDING) - 1.0e-5 * pair.extent
    smallest = wp.min(wp.abs(pair.scale[0]), wp.min(wp.abs(pair.scale[1]), wp.abs(pair.scale[2])))
    local_point = unscaled(point + pair.position, pair.scale)
    query = wp.mesh_query_point_no_sign(data.id[surface], local_point, depth / smallest)
    result = bool(True)
    if query.result:
        closest = wp.mesh_eval_position(data.id[surface], query.face, query.u, query.v)
        result = wp.length(wp.cw_mul(pair.scale, closest - local_point)) >= depth
    return result


collide_triangle = make_triangle_collider(MeshData, is_free_edge, is_free_corner, is_exit_direction)


@wp.func
def collide_mesh_convex(
    output: ContactOutput, model: ShapeModel, both: MeshConvexData, shapes: ShapePair, found: int
) -> int:
    """Add the contacts of a mesh (first) and a convex shape (second)."""
    hulls = both.hulls
    data = both.meshes
    surface = data.mesh_surface[model.shape_source_index[shapes.shape0]]
    if surface < 0:
        return found
    pair = make_triangle_pair(model, hulls, shapes)
    normals = wp.zeros(shape=PATCH_COUNT, dtype=wp.vec3)
    slots = wp.zeros(shape=SLOT_COUNT, dtype=candidate_vector)
    count = int(0)

    kind = data.kind[surface]
    outward = mirror_sign(pair.scale)
    first_triangle = data.first_triangle[surface]
    first_corner = unscaled(pair.position + pair.lower, pair.scale)
    last_corner = unscaled(pair.position + pair.upper, pair.scale)
    query = wp.mesh_query_aabb(
        data.id[surface], wp.min(first_corner, last_corner), wp.max(first_corner, last_corner)
    )
    face = int(0)
    while wp.mesh_query_next(query, face):
        triangle = first_triangle + face
        corners = data.triangle[triangle]
        pair.a = surface_point(data, corners[0], pair.scale) - pair.position
        pair.b = surface_point(data, corners[1], pair.scale) - pair.position
        pair.c = surface_point(data, corners[2], pair.scale) - pair.position
        height = wp.dot(wp.cross(pair.b - pair.a, pair.c - pair.a), pair.center - pair.a)
        side = outward
        if kind == OPEN:
            side = wp.where(height < 0.0, -1.0, 1.0)
        if side * height > 0.0:
            sharp = int(data.sharp[triangle])
            count = collide_triangle(data, hulls, pair, surface, triangle, sharp, side, normals, slots, count)

    if kind == CLOSED and deepest_distance(slots, count) >= 0.0:
        local_point = unscaled(pair.center + pair.position, pair.scale)
        closest = wp.mesh_query_point_sign_winding_number(data.id[surface], local_point, ANY_DISTANCE)
        if closest.result and closest.sign < 0.0:
            on_surface = wp.mesh_eval_position(data.id[surface], closest.face, closest.u, closest.v)
            way = wp.cw_mul(pair.scale, on_surface) - (pair.center + pair.position)
            length = wp.length(way)
            if length > 0.0:
                normal = way / length
                point = support_surface(pair, hulls, -normal)
                distance = wp.dot(normal, point - pair.center) - length
                count = add_candidate(normals, slots, count, point, normal, distance)
    if kind == CLOSED and is_suspect(data, surface, pair, slots, count):
        count = resolve_deep_shape(data, hulls, surface, pair, normals, slots, count)
    return add_kept_contacts(output, model, shapes, found, normals, slots, count)


collide_mesh_convex_pairs = make_pair_kernel("mesh_convex", collide_mesh_convex, data_type=MeshConvexData)
