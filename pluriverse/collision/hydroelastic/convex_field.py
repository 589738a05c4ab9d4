"""Pressure fields of hydroelastic shapes: how deep a point lies in a shape, and where that changes fastest.

The pressure in a hydroelastic shape is `kh * depth` ([Elandt2019]). For a shape bounded by flat faces, a
sphere or a capsule, depth is the distance to the surface; in an ellipsoid, where that has no closed form, it
falls evenly from the least semi-axis in the middle to zero on the surface. Outside the depth is negative. The
functions return minus the depth, the *level*: it is convex for each of these shapes, on which
`convex_patch` relies.
"""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.types import GeoType

# Length [m] below which a vector has no direction; its square is still a float32 number.
TINY = wp.constant(1.0e-18)


@wp.func
def with_level(gradient: wp.vec3, level: float) -> wp.vec4:
    """Return gradient and level in one vector."""
    return wp.vec4(gradient[0], gradient[1], gradient[2], level)


@wp.func
def direction_of(level: wp.vec4) -> wp.vec3:
    """Return the gradient part of a level."""
    return wp.vec3(level[0], level[1], level[2])


@wp.func
def ball_level_set(offset: wp.vec3, radius: float) -> wp.vec4:
    """Return gradient and level at an offset from the closest point of a core of some radius."""
    length = wp.length(offset)
    gradient = wp.vec3(0.0, 0.0, 1.0)
    if length > TINY:
        gradient = offset / length
    return with_level(gradient, length - radius)


@wp.func
def box_level_set(half: wp.vec3, point: wp.vec3) -> wp.vec4:
    """Return gradient and level of a box: the largest of the distances from its six planes."""
    level = wp.abs(point[0]) - half[0]
    gradient = wp.vec3(wp.where(point[0] < 0.0, -1.0, 1.0), 0.0, 0.0)
    if wp.abs(point[1]) - half[1] > level:
        level = wp.abs(point[1]) - half[1]
        gradient = wp.vec3(0.0, wp.where(point[1] < 0.0, -1.0, 1.0), 0.0)
    if wp.abs(point[2]) - half[2] > level:
        level = wp.abs(point[2]) - half[2]
        gradient = wp.vec3(0.0, 0.0, wp.where(point[2] < 0.0, -1.0, 1.0))
    return with_level(gradient, level)


@wp.func
def cylinder_level_set(radius: float, half_height: float, point: wp.vec3) -> wp.vec4:
    """Return gradient and level of a cylinder: the larger of the distances from side and end."""
    side = ball_level_set(wp.vec3(point[0], point[1], 0.0), radius)
    end = wp.abs(point[2]) - half_height
    if end > side[3]:
        side = wp.vec4(0.0, 0.0, wp.where(point[2] < 0.0, -1.0, 1.0), end)
    return side


@wp.func
def cone_level_set(radius: float, half_height: float, point: wp.vec3) -> wp.vec4:
    """Return gradient and level of a cone: the larger of the distances from side and base."""
    across = ball_level_set(wp.vec3(point[0], point[1], 0.0), 0.0)
    slant = wp.sqrt(radius * radius + 4.0 * half_height * half_height)
    out = 2.0 * half_height / slant
    up = radius / slant
    level = out * across[3] + up * (point[2] - half_height)
    result = wp.vec4(out * across[0], out * across[1], up, level)
    if -point[2] - half_height > level:
        result = wp.vec4(0.0, 0.0, -1.0, -point[2] - half_height)
    return result


@wp.func
def ellipsoid_level_set(axes: wp.vec3, point: wp.vec3) -> wp.vec4:
    """Return gradient and level of an ellipsoid, whose level surfaces are similar to it."""
    least = wp.min(axes[0], wp.min(axes[1], axes[2]))
    scaled = wp.cw_div(point, axes)
    length = wp.length(scaled)
    gradient = wp.vec3(0.0, 0.0, least / axes[2])
    if length > TINY:
        gradient = least / length * wp.cw_div(scaled, axes)
    return with_level(gradient, least * (length - 1.0))


@wp.func
def hull_level_set(hulls: wp.ref[HullData], hull: int, scale: wp.vec3, point: wp.vec3) -> wp.vec4:
    """Return gradient and level of a convex hull: the largest of the distances from its planes."""
    # Heights over the unscaled faces; normals transform with the inverse transpose of the scale.
    unscaled = wp.cw_div(point, scale)
    is_even = wp.abs(scale[0]) == wp.abs(scale[1]) and wp.abs(scale[1]) == wp.abs(scale[2])
    level = float(-1.0e30)
    best = int(0)
    for face in range(hulls.face_start[hull], hulls.face_start[hull + 1]):
        normal = hulls.face_normal[face]
        height = wp.dot(normal, unscaled) - hulls.face_offset[face]
        if not is_even:
            height = height / wp.length(wp.cw_div(normal, scale))
        if height > level:
            level = height
            best = face
    if is_even:
        level = level * wp.abs(scale[0])
    return with_level(wp.normalize(wp.cw_div(hulls.face_normal[best], scale)), level)


@wp.func
def shape_level_set(
    shape_type: int, size: wp.vec3, hulls: wp.ref[HullData], hull: int, point: wp.vec3
) -> wp.vec4:
    """Return the gradient of the level (x, y, z) and the level [m] at a point in the frame of a shape."""
    result = wp.vec4(0.0, 0.0, 1.0, point[2])
    if shape_type == GeoType.SPHERE:
        result = ball_level_set(point, size[0])
    elif shape_type == GeoType.CAPSULE:
        along = wp.clamp(point[2], -size[1], size[1])
        result = ball_level_set(point - wp.vec3(0.0, 0.0, along), size[0])
    elif shape_type == GeoType.BOX:
        result = box_level_set(size, point)
    elif shape_type == GeoType.CYLINDER:
        result = cylinder_level_set(size[0], size[1], point)
    elif shape_type == GeoType.CONE:
        result = cone_level_set(size[0], size[1], point)
    elif shape_type == GeoType.ELLIPSOID:
        result = ellipsoid_level_set(size, point)
    elif shape_type == GeoType.CONVEX_MESH:
        result = hull_level_set(hulls, hull, size, point)
    return result
