"""Bounds stage: boxes and spheres around shapes whose size was drawn.

Reads   shape_type, shape_scale, shape_source_index; bounds of the meshes
Writes  shape_aabb_lower, shape_aabb_upper, shape_collision_radius
"""

import warp as wp

from pluriverse.geometry.shape_bounds import UNBOUNDED_EXTENT
from pluriverse.randomization.write import Episode, Targets, selected_environment
from pluriverse.types import GeoType

UNBOUNDED = wp.constant(wp.float32(UNBOUNDED_EXTENT))


@wp.kernel(enable_backward=False, module="pluriverse.randomization.bounds")
def update_bounds(
    episode: Episode,
    targets: Targets,
    # model
    shape_type: wp.array[int],  # [shape]
    shape_scale: wp.array[wp.vec3],  # [shape] m
    shape_source_index: wp.array[int],  # [shape]
    mesh_lower: wp.array[wp.vec3],  # [mesh] m, unscaled
    mesh_upper: wp.array[wp.vec3],  # [mesh] m, unscaled
    mesh_radius: wp.array[float],  # [mesh] m about the centre of the box, unscaled
    # out
    shape_aabb_lower: wp.array[wp.vec3],  # [shape] m
    shape_aabb_upper: wp.array[wp.vec3],  # [shape] m
    shape_collision_radius: wp.array[float],  # [shape] m
):
    """Bound the shapes of one world."""
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment < 0:
        return
    world = episode.world[environment]
    for target in range(targets.start[world], targets.start[world + 1]):
        shape = targets.entity[target]
        kind = shape_type[shape]
        size = shape_scale[shape]
        half = wp.vec3(size[0], size[1], size[2])
        radius = wp.length(size)
        if kind == GeoType.SPHERE:
            half = wp.vec3(size[0], size[0], size[0])
            radius = size[0]
        elif kind == GeoType.CAPSULE:
            half = wp.vec3(size[0], size[0], size[1] + size[0])
            radius = size[0] + size[1]
        elif kind == GeoType.CYLINDER or kind == GeoType.CONE:
            half = wp.vec3(size[0], size[0], size[1])
            radius = wp.length(wp.vec2(size[0], size[1]))
        elif kind == GeoType.ELLIPSOID:
            radius = wp.max(size[0], wp.max(size[1], size[2]))
        lower = -half
        upper = half
        mesh = shape_source_index[shape]
        if mesh >= 0:
            a = wp.cw_mul(mesh_lower[mesh], size)
            b = wp.cw_mul(mesh_upper[mesh], size)
            lower = wp.min(a, b)
            upper = wp.max(a, b)
            # Scaling moves no vertex further from the centre than its largest factor says.
            largest = wp.max(wp.abs(size[0]), wp.max(wp.abs(size[1]), wp.abs(size[2])))
            radius = wp.min(largest * mesh_radius[mesh], 0.5 * wp.length(upper - lower))
        if kind == GeoType.PLANE:
            x = wp.where(size[0] > 0.0, 0.5 * size[0], UNBOUNDED)
            y = wp.where(size[1] > 0.0, 0.5 * size[1], UNBOUNDED)
            lower = wp.vec3(-x, -y, -UNBOUNDED)
            upper = wp.vec3(x, y, 0.0)
            radius = UNBOUNDED
        shape_aabb_lower[shape] = lower
        shape_aabb_upper[shape] = upper
        shape_collision_radius[shape] = radius
