"""Pressure fields of triangle meshes: levels from the signed distance grid of a closed mesh.

The level (minus the depth, see `convex_field`) of a mesh is its signed distance, interpolated on a
grid. It need not be convex. Of a mesh that is stretched, the level is the distance in the stored mesh times
the least factor of the scale: it still vanishes on the surface and changes by no more than the way.
"""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import direction_of, shape_level_set, with_level
from pluriverse.collision.hydroelastic.patch_pair import PatchPair
from pluriverse.collision.surface.mesh_bounds import smallest_factor
from pluriverse.collision.surface.mesh_data import MeshData
from pluriverse.geometry.signed_distance_grid import interpolate_signed_distance
from pluriverse.types import GeoType

# Level of a mesh that encloses nothing [m]: no point is inside.
NOWHERE = wp.constant(1.0e15)


@wp.func
def mesh_level_set(meshes: wp.ref[MeshData], surface: int, scale: wp.vec3, point: wp.vec3) -> wp.vec4:
    """Return gradient and level of a mesh at a point in its frame."""
    grid = int(-1)
    if surface >= 0:
        grid = meshes.grid[surface]
    result = wp.vec4(0.0, 0.0, 1.0, NOWHERE)
    if grid >= 0:
        sample = interpolate_signed_distance(meshes.distance, grid, wp.cw_div(point, scale))
        factor = smallest_factor(scale)
        gradient = wp.vec3(sample[0], sample[1], sample[2])
        result = with_level(factor * wp.cw_div(gradient, scale), factor * sample[3])
    return result


@wp.func(inline=False)
def level_in_frame(
    hulls: wp.ref[HullData],
    meshes: wp.ref[MeshData],
    shape_type: int,
    size: wp.vec3,
    source: int,
    point: wp.vec3,
) -> wp.vec4:
    """Return gradient and level of either kind of shape at a point in its frame."""
    level = wp.vec4()
    if shape_type == GeoType.MESH:
        level = mesh_level_set(meshes, source, size, point)
    else:
        level = shape_level_set(shape_type, size, hulls, source, point)
    return level


@wp.func
def level_of_first(
    pair: wp.ref[PatchPair], hulls: wp.ref[HullData], meshes: wp.ref[MeshData], point: wp.vec3
) -> wp.vec4:
    """Return gradient and level of the first shape at a point relative to the middle of the second."""
    level = level_in_frame(hulls, meshes, pair.type0, pair.size0, pair.hull0, point + pair.position)
    return with_level(direction_of(level), level[3] - pair.margin0)


@wp.func
def level_of_second(
    pair: wp.ref[PatchPair], hulls: wp.ref[HullData], meshes: wp.ref[MeshData], point: wp.vec3
) -> wp.vec4:
    """Return gradient and level of the second shape at a point relative to its middle."""
    local_point = wp.transpose(pair.rotation) * point + pair.middle
    level = level_in_frame(hulls, meshes, pair.type1, pair.size1, pair.hull1, local_point)
    return with_level(pair.rotation * direction_of(level), level[3] - pair.margin1)
