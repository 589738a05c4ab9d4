"""Bounds of the signed distance of a point from a surface: cheap, and right however coarse the grid.

Points that the bounds show to be too far are skipped; where the bounds leave it open, the triangles decide.
"""

import warp as wp

from pluriverse.collision.surface.mesh_data import UNIFORM, MeshData, closest_triangle_point, surface_point
from pluriverse.geometry.signed_distance_grid import sample_signed_distance

# Range of a search without limit [m].
ANY_DISTANCE = wp.constant(1.0e10)
# Part of the way from the origin by which a distance may be rounded.
BOUND_ROUNDING = wp.constant(1.0e-6)


@wp.func
def smallest_factor(scale: wp.vec3) -> float:
    """Return the least factor of a scale."""
    return wp.min(wp.abs(scale[0]), wp.min(wp.abs(scale[1]), wp.abs(scale[2])))


@wp.func
def largest_factor(scale: wp.vec3) -> float:
    """Return the greatest factor of a scale."""
    return wp.max(wp.abs(scale[0]), wp.max(wp.abs(scale[1]), wp.abs(scale[2])))


@wp.func
def is_below(mesh: wp.uint64, point: wp.vec3) -> bool:
    """Return whether a point is below a surface of which no part lies over another."""
    hit = wp.mesh_query_ray(mesh, point, wp.vec3(0.0, 0.0, 1.0), ANY_DISTANCE)
    return hit.result


@wp.struct
class DistanceBounds:
    """What is known of the distance of a point without looking at triangles."""

    lower: float
    """Lower bound of the signed distance [m]."""
    upper: float
    """Upper bound [m]."""
    direction: wp.vec3
    """About where the distance grows, to some 60 degrees where faces meet; 0 if unknown."""


@wp.func
def bound_distance(data: MeshData, surface: int, scale: wp.vec3, point: wp.vec3) -> DistanceBounds:
    """Return bounds of the distance of a point from a surface; without a grid, they bound nothing.

    Args:
        data: The surfaces.
        surface: The surface.
        scale: Factors on the surface.
        point: The point [m] in the frame of the surface as it is stored.
    """
    bounds = DistanceBounds()
    bounds.lower = -ANY_DISTANCE
    bounds.upper = ANY_DISTANCE
    grid = data.grid[surface]
    if grid >= 0:
        smallest = smallest_factor(scale)
        largest = largest_factor(scale)
        sample = sample_signed_distance(data.distance, grid, point)
        # A stretched mesh keeps what is inside, and changes lengths by its factors at most.
        rounding = BOUND_ROUNDING * wp.length(point)
        bounds.lower = (sample.lower - rounding) * wp.where(sample.lower > 0.0, smallest, largest)
        bounds.upper = (sample.upper + rounding) * wp.where(sample.upper > 0.0, largest, smallest)
        if largest <= smallest * (1.0 + UNIFORM):
            bounds.direction = wp.normalize(wp.cw_div(sample.gradient, scale))
    return bounds


@wp.struct
class ClosestPoint:
    """The point of a surface closest to a given one."""

    is_near: bool
    """Whether it is close enough; else nothing below is set."""
    triangle: int
    """Triangle of the closest point."""
    offset: wp.vec3
    """From the closest point to the given one [m], axes of the surface."""


@wp.func
def find_closest_point(
    data: MeshData, surface: int, scale: wp.vec3, position: wp.vec3, point: wp.vec3, max_distance: float
) -> ClosestPoint:
    """Return the closest point of a scaled surface.

    Args:
        data: The surfaces.
        surface: The surface.
        scale: Factors on the surface.
        position: Origin of the point in the frame of the surface [m].
        point: The point [m], axes of the surface.
        max_distance: Largest distance [m].
    """
    found = ClosestPoint()
    smallest = smallest_factor(scale)
    unscaled_point = wp.cw_div(point + position, scale)
    closest = wp.mesh_query_point_no_sign(data.id[surface], unscaled_point, max_distance / smallest)
    if closest.result:
        found.is_near = True
        found.triangle = data.first_triangle[surface] + closest.face
        corners = data.triangle[found.triangle]
        # Relative to the origin of the point: however large the surface is, these are small numbers.
        a = surface_point(data, corners[0], scale) - position
        b = surface_point(data, corners[1], scale) - position
        c = surface_point(data, corners[2], scale) - position
        found.offset = point - (closest.u * a + closest.v * b + (1.0 - closest.u - closest.v) * c)
        if largest_factor(scale) > smallest * (1.0 + UNIFORM):
            # The closest point of the stored mesh is near, but not the closest one of the stretched mesh.
            length = float(wp.length(found.offset))
            ball = wp.vec3(length, length, length)
            low = wp.cw_div(point + position - ball, scale)
            high = wp.cw_div(point + position + ball, scale)
            query = wp.mesh_query_aabb(data.id[surface], wp.min(low, high), wp.max(low, high))
            face = int(0)
            while wp.mesh_query_next(query, face):
                corners = data.triangle[data.first_triangle[surface] + face]
                a = surface_point(data, corners[0], scale) - position
                b = surface_point(data, corners[1], scale) - position
                c = surface_point(data, corners[2], scale) - position
                offset = point - closest_triangle_point(a, b, c, point)
                if wp.length(offset) < length:
                    length = wp.length(offset)
                    found.offset = offset
                    found.triangle = data.first_triangle[surface] + face
    return found
