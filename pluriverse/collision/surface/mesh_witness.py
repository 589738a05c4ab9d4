"""Where a point of one mesh is relative to another: its closest point, the faces that it is before."""

import warp as wp

from pluriverse.collision.shape_pair import ShapePair
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.collision.surface.contact_reduction import add_candidate, candidate_vector
from pluriverse.collision.surface.mesh_bounds import (
    ANY_DISTANCE,
    DistanceBounds,
    bound_distance,
    find_closest_point,
    is_below,
    smallest_factor,
)
from pluriverse.collision.surface.mesh_data import (
    CLOSED,
    GROUND,
    OPEN,
    MeshData,
    is_vertex_free,
    mirror_sign,
    surface_point,
)

# Depth, relative to the size of the smaller mesh, up to which a corner over a face belongs to it although it
# may be closer to another.
SHALLOW = wp.constant(0.02)
# Distance, relative likewise, by which a corner may be outside of a triangle and still be over it.
OVER = wp.constant(1.0e-5)
# Slope (8 degrees) up to which a corner or crossing that is not the deepest belongs to the patch.
PATCH_SLOPE = wp.constant(0.14)
# Distance, relative to the size, below which the direction to the closest point is rounding and the normal of
# the triangle is taken; and by which a closest point may be farther than the plane of the triangle to be on
# its inside.
TOUCHING = wp.constant(1.0e-3)
ON_PLANE = wp.constant(1.0e-6)
# `MeshData.edge_spread` [rad] of an edge with one triangle.
BORDER = wp.constant(3.14159265)


@wp.struct
class MeshPlacement:
    """A mesh in the frame of another one, relative to the origin of the first mesh."""

    surface: int
    """Surface of the mesh."""
    other: int
    """Surface of the other."""
    scale: wp.vec3
    """Factors on the mesh."""
    other_scale: wp.vec3
    """Factors on the other."""
    rotation: wp.mat33
    """Other from mesh axes."""
    position: wp.vec3
    """Origin of the mesh in the frame of the other [m]."""
    lower: wp.vec3
    """Lower corner of the box around the other, extended by `max_distance` [m], frame of the mesh."""
    upper: wp.vec3
    """Upper corner of that box [m]."""


@wp.struct
class SurfaceWitness:
    """A point and what of a surface is closest to it."""

    is_near: bool
    """Whether anything is close enough; else nothing below is set."""
    normal: wp.vec3
    """Unit normal away from the surface."""
    distance: float
    """Distance along the normal [m]."""


@wp.func
def place_mesh(
    model: ShapeModel,
    shape: int,
    other: int,
    scale: wp.vec3,
    other_scale: wp.vec3,
    rotation: wp.mat33,
    position: wp.vec3,
    max_distance: float,
    data: MeshData,
) -> MeshPlacement:
    """Return a mesh placed in the frame of another, with the part of it that may matter."""
    placed = MeshPlacement()
    mesh = model.shape_source_index[shape]
    other_mesh = model.shape_source_index[other]
    placed.surface = data.mesh_surface[mesh]
    placed.other = data.mesh_surface[other_mesh]
    placed.scale = scale
    placed.other_scale = other_scale
    placed.rotation = rotation
    placed.position = position
    first = wp.cw_mul(other_scale, model.mesh_lower[other_mesh])
    last = wp.cw_mul(other_scale, model.mesh_upper[other_mesh])
    inverse = wp.transpose(rotation)
    center = inverse * (0.5 * (first + last) - position)
    half = 0.5 * (last - first)
    half = wp.vec3(wp.abs(half[0]), wp.abs(half[1]), wp.abs(half[2]))
    half = wp.vec3(
        wp.abs(inverse[0, 0]) * half[0] + wp.abs(inverse[0, 1]) * half[1] + wp.abs(inverse[0, 2]) * half[2],
        wp.abs(inverse[1, 0]) * half[0] + wp.abs(inverse[1, 1]) * half[1] + wp.abs(inverse[1, 2]) * half[2],
        wp.abs(inverse[2, 0]) * half[0] + wp.abs(inverse[2, 1]) * half[1] + wp.abs(inverse[2, 2]) * half[2],
    )
    if placed.other >= 0 and data.kind[placed.other] == GROUND:
        # What has sunk in is found wherever it is.
        half = (
            half
            + wp.vec3(max_distance, max_distance, max_distance)
            + wp.length(half) * wp.vec3(1.0, 1.0, 1.0)
        )
    else:
        half = half + wp.vec3(max_distance, max_distance, max_distance)
    placed.lower = center - half
    placed.upper = center + half
    return placed


@wp.func
def bound_placed(data: MeshData, placed: MeshPlacement, point: wp.vec3) -> DistanceBounds:
    """Return bounds of the signed distance [m] of a point of a mesh from the other.

    Args:
        data: The surfaces.
        placed: The mesh of the point.
        point: Point of the mesh [m], axes of the other, relative to the origin of the mesh.
    """
    scale = placed.other_scale
    return bound_distance(data, placed.other, scale, wp.cw_div(point + placed.position, scale))


@wp.func
def is_on_border(
    data: MeshData, triangle: int, a: wp.vec3, b: wp.vec3, c: wp.vec3, point: wp.vec3, size: float
) -> bool:
    """Return whether a point of a triangle with these corners lies on an edge that has no other triangle."""
    result = bool(False)
    for edge in range(int(3)):
        start = a
        end = b
        if edge == 1:
            start = b
            end = c
        elif edge == 2:
            start = c
            end = a
        away = wp.cross(wp.normalize(end - start), point - start)
        if data.edge_spread[3 * triangle + edge] >= BORDER and wp.length(away) < ON_PLANE * size:
            result = True
    return result


@wp.func
def find_surface_witness(
    data: MeshData,
    placed: MeshPlacement,
    point: wp.vec3,
    bounds: DistanceBounds,
    max_distance: float,
    size: float,
) -> SurfaceWitness:
    """Return the closest point of the other mesh to a point.

    Args:
        data: The surfaces.
        placed: The mesh of the point.
        point: Point of the mesh [m], axes of the other, relative to the origin of the mesh.
        bounds: Bounds of its signed distance [m].
        max_distance: Largest distance [m] on either side.
        size: Size of the pair [m].
    """
    witness = SurfaceWitness()
    surface = placed.other
    scale = placed.other_scale
    kind = data.kind[surface]
    farthest = wp.min(max_distance, wp.max(wp.abs(bounds.lower), wp.abs(bounds.upper)))
    closest = find_closest_point(data, surface, scale, placed.position, point, farthest)
    if not closest.is_near:
        return witness
    corners = data.triangle[closest.triangle]
    a = surface_point(data, corners[0], scale) - placed.position
    b = surface_point(data, corners[1], scale) - placed.position
    c = surface_point(data, corners[2], scale) - placed.position
    length = wp.length(closest.offset)
    normal = mirror_sign(scale) * wp.normalize(wp.cross(b - a, c - a))
    height = wp.dot(normal, point - a)
    side = float(1.0)
    if kind == OPEN:
        center = placed.rotation * wp.cw_mul(placed.scale, data.center[placed.surface])
        if wp.dot(normal, center - a) < 0.0:
            normal = -normal
            height = -height
        # Behind a sheet is what has gone through it, not what is beyond its border or came from there.
        over = length - wp.abs(height) < ON_PLANE * size
        if height < 0.0:
            passes = not over and is_on_border(data, closest.triangle, a, b, c, point - closest.offset, size)
            if not passes:
                from_point = wp.cw_div(point + placed.position, scale)
                way = wp.cw_div(center + placed.position, scale) - from_point
                far = wp.length(way)
                hit = wp.mesh_query_ray(data.id[surface], from_point, way / far, far)
                passes = not hit.result
            if passes:
                normal = -normal
                height = -height
        side = wp.where(height < 0.0, -1.0, 1.0)
    elif kind == GROUND:
        side = wp.where(is_below(data.id[surface], wp.cw_div(point + placed.position, scale)), -1.0, 1.0)
    elif bounds.lower > 0.0 or bounds.upper < 0.0:
        side = wp.where(bounds.upper < 0.0, -1.0, 1.0)
    else:
        # Over the inside of a triangle its normal tells the side, as far as rounding lets it.
        side = wp.where(height < 0.0, -1.0, 1.0)
        if length - wp.abs(height) >= ON_PLANE * size:
            local_point = wp.cw_div(point + placed.position, scale)
            signed = wp.mesh_query_point_sign_winding_number(
                data.id[surface], local_point, 1.001 * length / smallest_factor(scale)
            )
            side = signed.sign
    witness.is_near = True
    if length < TOUCHING * size or length - wp.abs(height) < ON_PLANE * size:
        witness.normal = normal
        witness.distance = height
    else:
        witness.normal = (side / length) * closest.offset
        witness.distance = side * length
    return witness


@wp.func
def add_oriented(
    placed: MeshPlacement,
    is_second: bool,
    pair: ShapePair,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
    point: wp.vec3,
    witness: SurfaceWitness,
) -> int:
    """Offer the contact of a point of a mesh with the other, whichever of them is the second of the pair."""
    if is_second:
        return add_candidate(normals, slots, count, point, witness.normal, witness.distance)
    # The point of the second shape, relative to its origin, axes of the first.
    on_second = point - witness.distance * witness.normal + placed.position
    return add_candidate(
        normals, slots, count, pair.rotation * on_second, -(pair.rotation * witness.normal), witness.distance
    )


@wp.func
def is_deeper(
    data: MeshData, surface: int, scale: wp.vec3, point: wp.vec3, least: float, size: float
) -> bool:
    """Return whether a point is inside a solid by more than a depth [m]; true of a sheet.

    Where the scale differs between axes, the closest point is sought in the proportions of the stored mesh.

    Args:
        data: The surfaces.
        surface: The surface.
        scale: Factors on it.
        point: The point [m], frame of the mesh.
        least: The depth [m].
        size: Size of the pair [m].
    """
    local_point = wp.cw_div(point, scale)
    kind = data.kind[surface]
    if kind == OPEN:
        return True
    if kind == GROUND:
        return is_below(data.id[surface], local_point)
    bounds = bound_distance(data, surface, scale, local_point)
    if bounds.upper < -least:
        return True
    if bounds.lower > -least:
        return False
    # No farther than that, if inside.
    max_distance = wp.min(-bounds.lower, ANY_DISTANCE) / smallest_factor(scale)
    closest = wp.mesh_query_point_no_sign(data.id[surface], local_point, max_distance)
    if not closest.result:
        return False
    corners = data.triangle[data.first_triangle[surface] + closest.face]
    a = data.vertex[corners[0]]
    b = data.vertex[corners[1]]
    c = data.vertex[corners[2]]
    offset = local_point - (closest.u * a + closest.v * b + (1.0 - closest.u - closest.v) * c)
    length = wp.length(wp.cw_mul(scale, offset))
    if length <= least:
        return False
    # Over the inside of a triangle its normal tells the side, as far as rounding lets it.
    height = wp.dot(wp.normalize(wp.cross(b - a, c - a)), offset)
    side = height
    if (wp.length(offset) - wp.abs(height)) * smallest_factor(scale) >= ON_PLANE * size:
        signed = wp.mesh_query_point_sign_winding_number(data.id[surface], local_point, max_distance)
        side = signed.sign
    return side < 0.0


@wp.func
def find_facet_witness(
    data: MeshData,
    placed: MeshPlacement,
    vertex: int,
    local: wp.vec3,
    max_distance: float,
    shallow: float,
    size: float,
) -> SurfaceWitness:
    """Return the triangle that a corner meets from its front, the nearest of those it is over.

    A corner a little below a face belongs to that face, though the side of the solid next to it may be
    closer: boxes stacked in line have their corners on the sides of each other.

    Args:
        data: The surfaces.
        placed: The mesh of the corner.
        vertex: The corner.
        local: Where it is [m], frame of its mesh.
        max_distance: Largest distance [m] in front of a triangle.
        shallow: Largest depth [m] below it.
        size: Size of the pair [m].
    """
    witness = SurfaceWitness()
    surface = placed.other
    scale = placed.other_scale
    kind = data.kind[surface]
    point = placed.rotation * local
    inverse = wp.transpose(placed.rotation)
    tolerance = OVER * size
    radius = wp.max(max_distance, shallow)
    ball = wp.vec3(radius, radius, radius)
    low = wp.cw_div(point + placed.position - ball, scale)
    high = wp.cw_div(point + placed.position + ball, scale)
    outward = mirror_sign(scale)
    center = placed.rotation * wp.cw_mul(placed.scale, data.center[placed.surface])
    query = wp.mesh_query_aabb(data.id[surface], wp.min(low, high), wp.max(low, high))
    face = int(0)
    while wp.mesh_query_next(query, face):
        corners = data.triangle[data.first_triangle[surface] + face]
        a = surface_point(data, corners[0], scale) - placed.position
        b = surface_point(data, corners[1], scale) - placed.position
        c = surface_point(data, corners[2], scale) - placed.position
        axis = wp.normalize(wp.cross(b - a, c - a))
        normal = outward * axis
        if kind != CLOSED and kind != GROUND and wp.dot(normal, center - a) < 0.0:
            normal = -normal
        height = wp.dot(normal, point - a)
        if (
            height <= max_distance
            and height >= -shallow
            and (not witness.is_near or wp.abs(height) < wp.abs(witness.distance))
            and wp.dot(wp.normalize(wp.cross(b - a, axis)), point - a) <= tolerance
            and wp.dot(wp.normalize(wp.cross(c - b, axis)), point - b) <= tolerance
            and wp.dot(wp.normalize(wp.cross(a - c, axis)), point - c) <= tolerance
        ):
            back = -(inverse * normal)
            if is_vertex_free(data, vertex, placed.scale, wp.vec3(0.0, 0.0, 0.0), back, local, PATCH_SLOPE):
                witness.is_near = True
                witness.normal = normal
                witness.distance = height
    return witness
