"""Contacts of the sharp edges of two meshes: where they pass each other, and where one pierces the other.

An edge is followed through the distance of the other mesh, as a ray is through that of what it may hit: where
the surface is too far, it is so for a known distance ahead. What remains are parts near the surface. There a
tree of boxes finds the edges that this one may pass.
"""

import warp as wp

from pluriverse.collision.segment import closest_segment_points
from pluriverse.collision.shape_pair import ShapePair
from pluriverse.collision.surface.contact_reduction import add_candidate, add_last_resort, candidate_vector
from pluriverse.collision.surface.mesh_bounds import ANY_DISTANCE, DistanceBounds
from pluriverse.collision.surface.mesh_data import (
    CLOSED,
    GROUND,
    OPEN,
    MeshData,
    edge_outward,
    has_angles,
    is_edge_free,
    surface_point,
)
from pluriverse.collision.surface.mesh_witness import (
    PATCH_SLOPE,
    TOUCHING,
    MeshPlacement,
    bound_placed,
    find_surface_witness,
    is_deeper,
)

# Depth, relative to the size of the smaller mesh, up to which the deepest point of an edge is looked for.
DEPTH = wp.constant(0.5)
# Depth, relative likewise, up to which crossing edges count.
EDGE_DEPTH = wp.constant(0.25)
# Length, relative likewise, of the parts of an edge near the surface that are looked at one by one.
PART = wp.constant(5.0e-2)
# Height of one edge over another, relative to the depth of the other: edges of 60 degrees or more.
RISE = wp.constant(2.0)
# Angle [rad] by which the direction from the grid may be off where faces meet; and twice the slope up to
# which what is next to an edge counts as behind it.
FACING = wp.constant(1.2)
FACE_SLACK = wp.constant(0.3)
PI = wp.constant(3.14159265)
# Sine of the angle of two edges up to which their corners tell all.
PARALLEL = wp.constant(0.01)
# Distance along an edge, relative to the size or to the depth if that is more, from a crossing to where it is
# asked what the edge runs into; factor on it for a second look; and the part of the depth by which the edge
# must be inside there: the sine of half the angle of a sharp edge, 36 degrees.
NEXT_TO = wp.constant(1.0e-3)
ASIDE = wp.constant(0.4)
FARTHER = wp.constant(4.0)
SHARE = wp.constant(0.3)


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
def is_pierced(data: MeshData, surface: int, scale: wp.vec3, start: wp.vec3, along: wp.vec3) -> bool:
    """Return whether the way from a point `along` a vector [m], frame of a mesh, meets its surface."""
    low = wp.cw_div(start, scale)
    way = wp.cw_div(along, scale)
    length = wp.length(way)
    return wp.mesh_query_ray(data.id[surface], low, way / length, length).result


@wp.func
def is_crossing(
    data: MeshData,
    pair: ShapePair,
    surface0: int,
    surface1: int,
    on_first: wp.vec3,
    on_second: wp.vec3,
    along0: wp.vec3,
    along1: wp.vec3,
    depth: float,
) -> bool:
    """Return whether each of two edges goes into the other solid where they pass each other.

    Edges that pass each other on the outside look like a penetration along the wrong normal, and so do edges
    on two sides of a wall: the translation is much shorter for them. What goes in is inside at the closest
    points or on one side of them, and as deep as the edge is behind the other, but for a factor that is the
    sine of half the angle of the other.

    Args:
        data: The surfaces.
        pair: The pair.
        surface0: The first surface.
        surface1: The second surface.
        on_first: Point of the first edge [m], axes of the first, relative to the origin of the second.
        on_second: Point of the second edge [m], frame of the second.
        along0: Unit vector along the first edge, axes of the first.
        along1: The same along the second edge.
        depth: How far the second edge is behind the first [m].
    """
    inverse = wp.transpose(pair.rotation)
    step = wp.max(NEXT_TO * pair.extent, ASIDE * depth)
    goes_into_first = bool(False)
    goes_into_second = bool(False)
    # One call for all ten, as the compiler writes each of them out.
    for sample in range(int(10)):
        other = sample // 5
        position = sample % 5 - 2
        aside = step * float(position)
        if wp.abs(position) == 2:
            aside = (0.5 * FARTHER) * aside
        surface = surface0
        scale = pair.size0
        point = pair.rotation * on_second + aside * along1 + pair.position
        if other == 1:
            surface = surface1
            scale = pair.size1
            point = inverse * (on_first + aside * along0)
        is_open = not goes_into_first
        if other == 1:
            is_open = goes_into_first and not goes_into_second
        if is_open and is_deeper(data, surface, scale, point, SHARE * depth, pair.extent):
            goes_into_first = True
            goes_into_second = goes_into_second or other == 1
    return goes_into_second


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
    start: float,
    end: float,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
) -> int:
    """Offer the contact of two edges, given by their ends in axes of the first, relative to the second.

    Those that pass each other beyond the part of the second from `start` to `end` (all: 0 to 1) are left out.
    """
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
    along_second = 0.5 * (where[1] + 1.0)
    if along_second < start or along_second >= end:
        return count
    point0 = middle0 + where[0] * half0
    point1 = middle1 + where[1] * half1
    normal = cross / sine
    if wp.length(point1 - point0) > TOUCHING * pair.extent:
        normal = wp.normalize(point1 - point0)
    height = wp.dot(normal, point1 - point0)
    if wp.abs(height) > pair.threshold and wp.abs(height) > EDGE_DEPTH * pair.extent:
        return count
    inverse = wp.transpose(pair.rotation)
    origin = wp.vec3(0.0, 0.0, 0.0)
    on_first = point0
    on_second = inverse * point1
    for attempt in range(int(2)):
        sign = wp.where(attempt == 0, 1.0, -1.0)
        n = sign * normal
        distance = sign * height
        if distance <= pair.threshold and distance >= -EDGE_DEPTH * pair.extent:
            back = -(inverse * n)
            # Sheets have no inside that tells whether an edge went in: one of both must go through the other,
            # or what continues it as far as it is deep, where edges are short.
            is_apart = bool(False)
            if distance < 0.0 and data.kind[surface0] == OPEN and data.kind[surface1] == OPEN:
                longer0 = wp.max(1.0, -distance / wp.length(half0)) * half0
                longer1 = wp.max(1.0, -distance / wp.length(half1)) * half1
                start0 = inverse * (middle0 - longer0)
                start1 = middle1 - longer1 + pair.position
                is_apart = not (
                    is_pierced(data, surface0, pair.size0, start1, 2.0 * longer1)
                    or is_pierced(data, surface1, pair.size1, start0, 2.0 * (inverse * longer0))
                )
            if (
                not is_apart
                and is_edge_free(data, row0, pair.size0, pair.position, n, on_first, PATCH_SLOPE)
                and is_third_behind(data, row0, pair.size0, pair.position, n, on_first)
                and is_edge_free(data, row1, pair.size1, origin, back, on_second, PATCH_SLOPE)
                and is_third_behind(data, row1, pair.size1, origin, back, on_second)
            ):
                if distance >= 0.0 or is_crossing(
                    data,
                    pair,
                    surface0,
                    surface1,
                    on_first,
                    on_second,
                    wp.normalize(along0),
                    wp.normalize(along1),
                    -distance,
                ):
                    count = add_candidate(normals, slots, count, point1, n, distance)
    return count


@wp.struct
class EdgePart:
    """Part of an edge that may be near the other mesh."""

    start: float
    """Where it begins, 0 to 1; 1 or more if there is none."""
    end: float
    """Where it ends, at most 1."""
    depth: float
    """Upper bound of the depth of its points inside the other mesh [m]."""
    may_be_inside: bool
    """Whether its middle may be inside the other mesh."""
    direction: wp.vec3
    """About where the distance grows, axes of the other mesh; 0 if unknown."""


@wp.func
def may_oppose(cosine: float, spread: float) -> bool:
    """Return whether two directions are opposite to within an angle, given their cosine."""
    return spread >= PI or cosine <= -wp.cos(spread)


@wp.func
def next_part(
    data: MeshData,
    placed: MeshPlacement,
    start: wp.vec3,
    along: wp.vec3,
    t: float,
    size: float,
    max_distance: float,
    depth: float,
) -> EdgePart:
    """Return the next part of an edge that may be near the other mesh.

    Args:
        data: The surfaces.
        placed: The mesh of the edge.
        start: First end of the edge [m], axes of the other mesh, relative to the origin of the mesh.
        along: To its last end [m].
        t: Where to start, 0 to 1.
        size: Length of a part [m].
        max_distance: Distance outside up to which the surface is near [m].
        depth: Depth inside up to which it is near [m].
    """
    length = wp.length(along)
    part = EdgePart()
    t0 = float(t)
    is_far = bool(True)
    while is_far and t0 < 1.0:
        part.end = wp.min(t0 + size / length, 1.0)
        middle = 0.5 * (t0 + part.end)
        half = 0.5 * (part.end - t0) * length
        bounds = bound_placed(data, placed, start + middle * along)
        # Nothing is near at this distance from the middle.
        way = wp.max(bounds.lower - max_distance, -bounds.upper - depth)
        part.depth = half - bounds.lower
        part.direction = bounds.direction
        part.may_be_inside = bounds.lower < half
        is_far = way > half
        if is_far:
            t0 = middle + way / length
    part.start = t0
    return part


@wp.func
def add_crossings(
    data: MeshData,
    placed: MeshPlacement,
    pair: ShapePair,
    row1: int,
    outward1: wp.vec3,
    is_uniform: bool,
    a1: wp.vec3,
    b1: wp.vec3,
    start: float,
    end: float,
    radius: float,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
    count: int,
) -> int:
    """Offer the contacts of a part of an edge of the second mesh with the edges of the first near to it.

    Args:
        data: The surfaces.
        placed: The second mesh.
        pair: The pair.
        row1: Three times the triangle of the edge plus its place there.
        outward1: Mean normal of the faces at the edge, axes of the first mesh.
        is_uniform: Whether the angles of both meshes are as stored.
        a1: First end of the edge [m], axes of the first mesh, relative to the origin of the second.
        b1: Last end [m].
        start: Where the part begins, 0 to 1.
        end: Where it ends.
        radius: Distance up to which edges may be near [m].
        normals: Normals of patches.
        slots: Contacts kept.
        count: Number of patches so far.
    """
    inflation = wp.vec3(radius, radius, radius)
    first = a1 + start * (b1 - a1)
    last = a1 + end * (b1 - a1)
    low = wp.cw_div(wp.min(first, last) - inflation + pair.position, pair.size0)
    high = wp.cw_div(wp.max(first, last) + inflation + pair.position, pair.size0)
    query = wp.mesh_query_aabb(data.id[placed.other], wp.min(low, high), wp.max(low, high))
    face = int(0)
    while wp.mesh_query_next(query, face):
        triangle0 = data.first_triangle[placed.other] + face
        owned0 = int(data.owned[triangle0])
        corners0 = data.triangle[triangle0]
        for edge0 in range(int(3)):
            row0 = 3 * triangle0 + edge0
            faces = bool(False)
            if (owned0 & (1 << edge0)) != 0:
                spread = data.edge_spread[row0] + data.edge_spread[row1] + FACE_SLACK
                cosine = wp.dot(edge_outward(data, row0, pair.size0), outward1)
                faces = not is_uniform or may_oppose(cosine, spread)
            if faces:
                a0 = surface_point(data, corners0[edge0], pair.size0) - pair.position
                b0 = surface_point(data, corners0[(edge0 + 1) % 3], pair.size0) - pair.position
                count = add_edge_pair(
                    data,
                    pair,
                    placed.other,
                    placed.surface,
                    row0,
                    row1,
                    a0,
                    b0,
                    a1,
                    b1,
                    start,
                    end,
                    normals,
                    slots,
                    count,
                )
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
    depth = EDGE_DEPTH * pair.extent
    size = wp.max(PART * pair.extent, pair.threshold)
    if data.grid[placed.other] < 0:
        size = ANY_DISTANCE
    is_uniform = has_angles(data, placed.surface, pair.size1) and has_angles(data, placed.other, pair.size0)
    if data.kind[placed.other] != CLOSED and data.kind[placed.other] != GROUND:
        depth = wp.max(depth, pair.threshold)
    first = wp.cw_div(placed.lower, pair.size1)
    last = wp.cw_div(placed.upper, pair.size1)
    query = wp.mesh_query_aabb(data.id[placed.surface], wp.min(first, last), wp.max(first, last))
    face = int(0)
    while wp.mesh_query_next(query, face):
        triangle = data.first_triangle[placed.surface] + face
        owned = int(data.owned[triangle])
        corners = data.triangle[triangle]
        for edge in range(int(3)):
            if (owned & (1 << edge)) != 0:
                a1 = pair.rotation * surface_point(data, corners[edge], pair.size1)
                b1 = pair.rotation * surface_point(data, corners[(edge + 1) % 3], pair.size1)
                along = b1 - a1
                row = 3 * triangle + edge
                outward = pair.rotation * edge_outward(data, row, pair.size1)
                spread = data.edge_spread[row] + FACING
                if not is_uniform or data.grid[placed.other] < 0:
                    spread = PI
                t = float(0.0)
                while t < 1.0:
                    part = next_part(data, placed, a1, along, t, size, pair.threshold, depth)
                    # What is inside may be closest to another face than the one that it came through.
                    if part.start < 1.0 and (
                        part.may_be_inside or may_oppose(wp.dot(outward, part.direction), spread)
                    ):
                        radius = wp.max(pair.threshold, wp.min(RISE * part.depth, depth))
                        count = add_crossings(
                            data,
                            placed,
                            pair,
                            row,
                            outward,
                            is_uniform,
                            a1,
                            b1,
                            part.start,
                            part.end,
                            radius,
                            normals,
                            slots,
                            count,
                        )
                    t = wp.max(part.start, part.end)
    return count


@wp.func
def offer_pierced_edges(
    data: MeshData, placed: MeshPlacement, is_second: bool, pair: ShapePair, slots: wp.array[candidate_vector]
) -> None:
    """Offer points within the sharp edges of a mesh as a last resort where they are inside the other."""
    if data.kind[placed.other] != CLOSED and data.kind[placed.other] != GROUND:
        return
    inflation = wp.vec3(pair.threshold, pair.threshold, pair.threshold)
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
                start = placed.rotation * surface_point(data, corners[edge], placed.scale)
                along = placed.rotation * surface_point(data, corners[(edge + 1) % 3], placed.scale) - start
                depth = DEPTH * pair.extent
                part = next_part(data, placed, start, along, 0.0, PART * pair.extent, 0.0, depth)
                if part.start < 1.0:
                    # The part of the edge between where it enters and leaves the other mesh.
                    low = wp.cw_div(start + placed.position, placed.other_scale)
                    high = wp.cw_div(start + along + placed.position, placed.other_scale)
                    way = high - low
                    length = wp.length(way)
                    forth = wp.mesh_query_ray(data.id[placed.other], low, way / length, length)
                    back = wp.mesh_query_ray(data.id[placed.other], high, -way / length, length)
                    if forth.result and back.result:
                        t = 0.5 * (forth.t + length - back.t) / length
                        point = start + t * along
                        bounds = DistanceBounds()
                        bounds.lower = -depth
                        bounds.upper = depth
                        witness = find_surface_witness(data, placed, point, bounds, depth, pair.extent)
                        if witness.is_near and witness.distance < 0.0:
                            normal = witness.normal
                            if not is_second:
                                # The point of the second shape, relative to its origin, axes of the first.
                                point = pair.rotation * (point - witness.distance * normal + placed.position)
                                normal = -(pair.rotation * normal)
                            add_last_resort(slots, point, normal, witness.distance)
