"""Support functions of convex shapes: the farthest point in a direction, in double precision.

A sphere is a point and a capsule a segment with a radius around it ("core" and "radius"). The distance of two
cores is positive as long as shapes overlap by less than their radii, so round shapes seldom need a
penetration search.
"""

import warp as wp

from pluriverse.collision.hull import HullData, support_vertex
from pluriverse.types import GeoType


@wp.struct
class ConvexPair:
    """Two convex shapes and their relative pose, in the frame of the first."""

    type0: int
    """`GeoType` of the first shape."""
    type1: int
    """`GeoType` of the second shape."""
    size0: wp.vec3
    """Sizes of the first shape [m]."""
    size1: wp.vec3
    """Sizes of the second shape [m]."""
    hull0: int
    """Hull of the first shape, -1 for none."""
    hull1: int
    """Hull of the second shape, -1 for none."""
    rotation: wp.mat33d
    """First from second shape axes."""
    position: wp.vec3d
    """Origin of the second shape [m]."""


@wp.func
def core_radius(shape_type: int, size: wp.vec3) -> float:
    """Return the radius around the core of a shape [m]."""
    radius = wp.where(shape_type == GeoType.SPHERE, size[0], 0.0)
    return wp.where(shape_type == GeoType.CAPSULE, size[0], radius)


@wp.func
def support_point(
    shape_type: int, size: wp.vec3, hulls: wp.ref[HullData], hull: int, direction: wp.vec3d
) -> wp.vec3d:
    """Return the point of the core of a shape farthest along `direction`, in the frame of the shape [m].

    The direction has any length but zero.
    """
    x = wp.float64(size[0])
    y = wp.float64(size[1])
    z = wp.float64(size[2])
    zero = wp.float64(0.0)
    point = wp.vec3d(zero, zero, zero)
    if shape_type == GeoType.CONVEX_MESH:
        # A float32 direction picks a vertex whose height is the largest to a relative 1e-7.
        scaled = wp.vec3d(direction[0] * x, direction[1] * y, direction[2] * z)
        unit = wp.normalize(scaled)
        vertex = support_vertex(
            hulls, hull, wp.vec3(wp.float32(unit[0]), wp.float32(unit[1]), wp.float32(unit[2]))
        )
        v = hulls.vertex[vertex]
        point = wp.vec3d(wp.float64(v[0]) * x, wp.float64(v[1]) * y, wp.float64(v[2]) * z)
    elif shape_type == GeoType.BOX:
        point = wp.vec3d(
            wp.where(direction[0] < zero, -x, x),
            wp.where(direction[1] < zero, -y, y),
            wp.where(direction[2] < zero, -z, z),
        )
    elif shape_type == GeoType.ELLIPSOID:
        scaled = wp.vec3d(direction[0] * x, direction[1] * y, direction[2] * z)
        length = wp.length(scaled)
        point = wp.vec3d(scaled[0] * x / length, scaled[1] * y / length, scaled[2] * z / length)
    elif shape_type == GeoType.CAPSULE:
        point = wp.vec3d(zero, zero, wp.where(direction[2] < zero, -y, y))
    elif shape_type == GeoType.CYLINDER or shape_type == GeoType.CONE:
        across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
        rim_x = x
        rim_y = zero
        if across > zero:
            rim_x = x * direction[0] / across
            rim_y = x * direction[1] / across
        point = wp.vec3d(rim_x, rim_y, wp.where(direction[2] < zero, -y, y))
        if shape_type == GeoType.CONE:
            point[2] = -y
            if y * direction[2] > x * across - y * direction[2]:
                point = wp.vec3d(zero, zero, y)
    return point


@wp.func
def support_first(pair: wp.ref[ConvexPair], hulls: wp.ref[HullData], direction: wp.vec3d) -> wp.vec3d:
    """Return the farthest point of the core of the first shape along `direction`."""
    return support_point(pair.type0, pair.size0, hulls, pair.hull0, direction)


@wp.func
def support_second(pair: wp.ref[ConvexPair], hulls: wp.ref[HullData], direction: wp.vec3d) -> wp.vec3d:
    """Return the farthest point of the core of the second shape along `direction`."""
    local = wp.transpose(pair.rotation) * direction
    return pair.position + pair.rotation * support_point(pair.type1, pair.size1, hulls, pair.hull1, local)
