"""Deep overlap of two solids: the separating translation where no corner or edge near the surface shows it.

To separate two solids, every point of one that is inside the other must travel its depth at least. If no
contact of corners and edges is as deep as that, they push in directions that do not lead out. Then one plane
does: the middle of what is inside goes to its closest point of the surface, and all that is inside is pushed
beyond the plane there. That is done from either solid, and the shorter way counts, if it leads out.
"""

import warp as wp

from pluriverse.collision.shape_pair import ShapePair
from pluriverse.collision.surface.contact_reduction import candidate_vector, deepest_distance
from pluriverse.collision.surface.mesh_bounds import ANY_DISTANCE, find_closest_point
from pluriverse.collision.surface.mesh_data import MeshData, surface_point
from pluriverse.collision.surface.mesh_witness import (
    MeshPlacement,
    SurfaceWitness,
    add_oriented,
    bound_placed,
)

# Depth, relative to the size of the smaller mesh, by which a corner is deeper than any contact if those do
# not lead out. Contacts of shallow overlaps stay as they are.
UNRESOLVED = wp.constant(0.02)
# Part of the largest depth below the plane from which corners are pushed.
PUSHED = wp.constant(0.5)

# What a depth counts that remains after a separating translation.
REMAINING = wp.constant(10.0)


class overlap_vector(wp.types.vector(length=9, dtype=wp.float32)):  # noqa: N801 (a Warp type)
    """Corners of a mesh in another.

    Sum of depth times point, sum of depths, the deepest one, its depth, and 1 if one lies on the surface
    without a contact.
    """


@wp.func
def note_inside(
    overlaps: wp.array[overlap_vector], side: int, point: wp.vec3, lower: float, upper: float
) -> None:
    """Count a corner that is inside the other mesh.

    Args:
        overlaps: What is inside, shape [2].
        side: Which of the two meshes the corner is of.
        point: The corner [m], axes of the other mesh, relative to the origin of its own.
        lower: Lower bound of its signed distance [m].
        upper: Upper bound [m], negative.
    """
    overlap = overlaps[side]
    weight = -0.5 * (lower + upper)
    for axis in range(3):
        overlap[axis] = overlap[axis] + weight * point[axis]
    overlap[3] = overlap[3] + weight
    if -upper > overlap[7]:
        overlap[4] = point[0]
        overlap[5] = point[1]
        overlap[6] = point[2]
        overlap[7] = -upper
    overlaps[side] = overlap


@wp.func
def note_tie(overlaps: wp.array[overlap_vector], side: int) -> None:
    """Remember that a corner lies on the surface of the other mesh without a contact."""
    overlap = overlaps[side]
    overlap[8] = 1.0
    overlaps[side] = overlap


@wp.func
def has_tie(overlaps: wp.array[overlap_vector], side: int) -> bool:
    """Return whether a corner of a mesh lies on the surface of the other without a contact."""
    return overlaps[side][8] > 0.0


@wp.struct
class ExitDirection:
    """A plane beyond which a mesh is pushed."""

    normal: wp.vec3
    """Outward unit normal, axes of the other mesh; 0 if there is none."""
    offset: float
    """Height of the plane along the normal over the origin of the mesh [m]."""


@wp.func
def find_exit_direction(data: MeshData, placed: MeshPlacement, overlap: overlap_vector) -> ExitDirection:
    """Return the plane at the point of the other mesh that is closest to the middle of what is inside."""
    exit_direction = ExitDirection()
    middle = wp.vec3(overlap[0], overlap[1], overlap[2]) / wp.max(overlap[3], 1.0e-30)
    # What is inside may be hollow, and its middle outside.
    bounds = bound_placed(data, placed, middle)
    if bounds.upper >= 0.0:
        middle = wp.vec3(overlap[4], overlap[5], overlap[6])
    closest = find_closest_point(
        data, placed.other, placed.other_scale, placed.position, middle, ANY_DISTANCE
    )
    length = wp.length(closest.offset)
    if closest.is_near and length > 0.0:
        exit_direction.normal = -closest.offset / length
        exit_direction.offset = wp.dot(exit_direction.normal, middle) + length
    return exit_direction


@wp.func
def push_out(
    data: MeshData,
    placed: MeshPlacement,
    is_second: bool,
    pair: ShapePair,
    exit_direction: ExitDirection,
    limit: float,
    is_offered: bool,
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
) -> float:
    """Return the largest depth below a plane [m] of the corners inside, and offer them if asked to.

    Args:
        data: The surfaces.
        placed: The mesh of the corners.
        is_second: Whether it is the second of the pair.
        pair: The pair.
        exit_direction: The plane.
        limit: Depth that counts [m].
        is_offered: Whether the corners are offered, as the only contacts.
        normals: Normals of patches.
        slots: Contacts kept.
    """
    deepest = float(0.0)
    count = int(0)
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
                point = placed.rotation * surface_point(data, vertex, placed.scale)
                witness = SurfaceWitness()
                witness.is_near = True
                witness.normal = exit_direction.normal
                witness.distance = wp.dot(exit_direction.normal, point) - exit_direction.offset
                if witness.distance < -limit:
                    bounds = bound_placed(data, placed, point)
                    if bounds.upper < 0.0:
                        deepest = wp.max(deepest, -witness.distance)
                        if is_offered:
                            count = add_oriented(
                                placed, is_second, pair, normals, slots, count, point, witness
                            )
    return deepest


@wp.func
def remaining_depth(data: MeshData, placed: MeshPlacement, shift: wp.vec3) -> float:
    """Return how deep the corners of a mesh are inside the other one after a shift [m], axes of the other."""
    deepest = float(0.0)
    back = wp.transpose(placed.rotation) * shift
    first = wp.cw_div(placed.lower - back, placed.scale)
    last = wp.cw_div(placed.upper - back, placed.scale)
    query = wp.mesh_query_aabb(data.id[placed.surface], wp.min(first, last), wp.max(first, last))
    face = int(0)
    while wp.mesh_query_next(query, face):
        triangle = data.first_triangle[placed.surface] + face
        owned = int(data.owned[triangle])
        for corner in range(int(3)):
            if (owned & (8 << corner)) != 0:
                vertex = data.triangle[triangle][corner]
                point = placed.rotation * surface_point(data, vertex, placed.scale) + shift
                bounds = bound_placed(data, placed, point)
                deepest = wp.max(deepest, -bounds.upper)
    return deepest


@wp.func
def is_unresolved(
    overlaps: wp.array[overlap_vector], pair: ShapePair, slots: wp.array[candidate_vector], count: int
) -> bool:
    """Return whether a corner is deeper inside than any contact tells."""
    known = -wp.min(deepest_distance(slots, count), 0.0)
    return wp.max(overlaps[0][7], overlaps[1][7]) > known + UNRESOLVED * pair.extent


@wp.func
def resolve_deep_overlap(
    data: MeshData,
    first: MeshPlacement,
    second: MeshPlacement,
    pair: ShapePair,
    overlaps: wp.array[overlap_vector],
    normals: wp.array[wp.vec3],
    slots: wp.array[candidate_vector],
) -> int:
    """Replace all contacts by those of one plane; return the number of patches.

    Args:
        data: The surfaces.
        first: The first mesh.
        second: The second mesh.
        pair: The pair.
        overlaps: What of the second (0) and of the first (1) is inside the other.
        normals: Normals of patches.
        slots: Contacts kept.
    """
    inverse = wp.transpose(pair.rotation)
    best = float(ANY_DISTANCE)
    least = float(0.0)
    better = int(0)
    count = int(0)
    # Steps 0 and 1 try the two translations, step 2 takes the better. One call for all, as each is inlined.
    for step in range(int(3)):
        way = wp.where(step == 2, better, step)
        placed = second
        if way == 1:
            placed = first
        if overlaps[way][7] > 0.0:
            exit_direction = find_exit_direction(data, placed, overlaps[way])
            limit = wp.where(step == 2, PUSHED * least, 0.0)
            depth = push_out(data, placed, way == 0, pair, exit_direction, limit, step == 2, normals, slots)
            if step < 2 and depth > 0.0:
                # How the second mesh moves, axes of the first.
                shift = depth * exit_direction.normal
                if way == 1:
                    shift = -(pair.rotation * shift)
                remaining = float(0.0)
                for side in range(int(2)):
                    other = second
                    moved = shift
                    if side == 1:
                        other = first
                        moved = -(inverse * shift)
                    remaining = wp.max(remaining, remaining_depth(data, other, moved))
                if depth + REMAINING * remaining < best:
                    best = depth + REMAINING * remaining
                    least = depth
                    better = way
            elif step == 2 and depth > 0.0:
                count = 1
    return count
