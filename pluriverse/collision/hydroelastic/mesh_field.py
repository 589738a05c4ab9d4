"""Pressure fields of triangle meshes: levels from the signed distance grid of a closed mesh.

The level (minus the depth, see `convex_field`) of a mesh is its signed distance, interpolated on a
grid. It need not be convex. Of a mesh that is stretched, the level is the distance in the stored mesh times
the least factor of the scale: it still vanishes on the surface and changes by no more than the way.
"""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import shape_level_set, with_level
from pluriverse.collision.hydroelastic.patch_pair import LevelPair, PatchPair
from pluriverse.collision.surface.mesh_bounds import smallest_factor
from pluriverse.collision.surface.mesh_data import MeshData
from pluriverse.geometry.signed_distance_grid import sample_signed_distance
from pluriverse.types import GeoType

# Level of a mesh that encloses nothing [m]: no point is inside.
NOWHERE = wp.constant(1.0e15)


@wp.struct
class MeshPatchPair:
    """Two shapes, one or both of which are meshes."""

    pair: PatchPair
    """The shapes; `hull0` and `hull1` of a mesh are its surface."""
    hulls: HullData
    """Convex hulls."""
    data: MeshData
    """The meshes."""


@wp.func
def mesh_level_set(data: MeshData, surface: int, scale: wp.vec3, point: wp.vec3) -> wp.vec4:
    """Return gradient and level of a mesh at a point in its frame."""
    grid = int(-1)
    if surface >= 0:
        grid = data.grid[surface]
    result = wp.vec4(0.0, 0.0, 1.0, NOWHERE)
    if grid >= 0:
        sample = sample_signed_distance(data.distance, grid, wp.cw_div(point, scale))
        factor = smallest_factor(scale)
        result = with_level(factor * wp.cw_div(sample.gradient, scale), factor * sample.value)
    return result


@wp.func(inline=False)
def level_in_frame(
    shapes: MeshPatchPair, shape_type: int, size: wp.vec3, source: int, point: wp.vec3
) -> wp.vec4:
    """Return gradient and level of either kind of shape at a point in its frame."""
    level = wp.vec4()
    if shape_type == GeoType.MESH:
        level = mesh_level_set(shapes.data, source, size, point)
    else:
        level = shape_level_set(shape_type, size, shapes.hulls, source, point)
    return level


@wp.func
def levels_at(shapes: MeshPatchPair, point: wp.vec3) -> LevelPair:
    """Return gradients and levels of both shapes at a point relative to the middle of the second."""
    pair = shapes.pair
    both = LevelPair()
    for side in range(int(2)):
        shape_type = pair.type0
        size = pair.size0
        source = pair.hull0
        local_point = point + pair.position
        margin = pair.margin0
        if side == 1:
            shape_type = pair.type1
            size = pair.size1
            source = pair.hull1
            local_point = wp.transpose(pair.rotation) * point + pair.middle
            margin = pair.margin1
        level = level_in_frame(shapes, shape_type, size, source, local_point)
        gradient = wp.vec3(level[0], level[1], level[2])
        if side == 1:
            both.second = with_level(pair.rotation * gradient, level[3] - margin)
        else:
            both.first = with_level(gradient, level[3] - margin)
    return both
