"""A triangle of a surface and a convex shape, with the support functions of both.

All points are in the axes of the surface, relative to the origin of the convex shape: however large the
surface is, what is near the shape has small numbers.
"""

import warp as wp

from pluriverse.collision.components import column, to_double, to_single
from pluriverse.collision.convex.support import core_radius, support_point
from pluriverse.collision.hull import HullData
from pluriverse.collision.shape_pair import ShapePair
from pluriverse.collision.shape_state import ShapeModel, half_extents, hull_of
from pluriverse.types import GeoType

# Depth, relative to half the thickness of the convex shape, up to which a face pushes it out without asking
# whether there is a shorter way. Thin walls hold what presses on them up to that depth.
SHALLOW = wp.constant(0.5)


@wp.struct
class TrianglePair:
    """A triangle and a convex shape."""

    a: wp.vec3
    """First corner of the triangle [m]."""
    b: wp.vec3
    """Second corner, counterclockwise seen from outside [m]."""
    c: wp.vec3
    """Third corner [m]."""
    scale: wp.vec3
    """Factors on the surface as it is stored."""
    position: wp.vec3
    """Origin of the convex shape in the frame of the surface [m]."""
    shape_type: int
    """`GeoType` of the convex shape."""
    size: wp.vec3
    """Sizes of the convex shape [m]."""
    hull: int
    """Hull of the convex shape, -1 for none."""
    axes: wp.mat33
    """Surface from convex shape axes."""
    axes_double: wp.mat33d
    """The same in double precision."""
    radius: float
    """Radius around the core of the convex shape [m]."""
    center: wp.vec3
    """Point inside the convex shape [m]."""
    middle: wp.vec3
    """Middle of the box around the convex shape in its own axes [m]."""
    half: wp.vec3
    """Half extents of that box, extended by `threshold` [m], axes of the convex shape."""
    lower: wp.vec3
    """Lower corner of the box around the convex shape, extended by `threshold` [m], axes of the surface."""
    upper: wp.vec3
    """Upper corner of that box [m]."""
    shallow: float
    """Depth up to which a face pushes out unasked [m]."""
    extent: float
    """Size of the pair [m], for tolerances."""
    threshold: float
    """Largest distance of a contact [m]."""


@wp.func
def support_triangle(pair: TrianglePair, hulls: HullData, direction: wp.vec3d) -> wp.vec3d:
    """Return the corner of the triangle farthest along `direction`."""
    a = to_double(pair.a)
    b = to_double(pair.b)
    c = to_double(pair.c)
    height_a = wp.dot(a, direction)
    height_b = wp.dot(b, direction)
    point = a
    if height_b > height_a:
        point = b
        height_a = height_b
    if wp.dot(c, direction) > height_a:
        point = c
    return point


@wp.func
def support_core(pair: TrianglePair, hulls: HullData, direction: wp.vec3d) -> wp.vec3d:
    """Return the farthest point of the core of the convex shape along `direction`."""
    local = wp.transpose(pair.axes_double) * direction
    return pair.axes_double * support_point(pair.shape_type, pair.size, hulls, pair.hull, local)


@wp.func
def support_surface(pair: TrianglePair, hulls: HullData, direction: wp.vec3) -> wp.vec3:
    """Return the farthest point of the convex shape along a unit vector."""
    return to_single(support_core(pair, hulls, to_double(direction))) + pair.radius * direction


@wp.func
def half_thickness(shape_type: int, size: wp.vec3) -> float:
    """Return half of the least extent of a shape [m], of a hull: that of its box."""
    half = wp.min(size[0], wp.min(size[1], size[2]))
    if shape_type == GeoType.SPHERE or shape_type == GeoType.CAPSULE:
        half = size[0]
    elif shape_type == GeoType.CYLINDER or shape_type == GeoType.CONE:
        half = wp.min(size[0], size[1])
    return half


@wp.func
def make_triangle_pair(model: ShapeModel, hulls: HullData, shapes: ShapePair) -> TrianglePair:
    """Return what stays the same for all triangles of a surface (first) near a convex shape (second)."""
    pair = TrianglePair()
    shape_type = model.shape_type[shapes.shape1]
    pair.shape_type = shape_type
    pair.scale = shapes.size0
    pair.position = shapes.position
    pair.size = shapes.size1
    pair.hull = hull_of(model, shapes.shape1)
    pair.axes = shapes.rotation
    pair.axes_double = wp.matrix_from_cols(
        to_double(column(shapes.rotation, 0)),
        to_double(column(shapes.rotation, 1)),
        to_double(column(shapes.rotation, 2)),
    )
    pair.radius = core_radius(shape_type, shapes.size1)
    extent = shapes.size1
    middle = wp.vec3(0.0, 0.0, 0.0)
    if shape_type == GeoType.CONVEX_MESH:
        lower = wp.cw_mul(model.hull_lower[pair.hull], shapes.size1)
        upper = wp.cw_mul(model.hull_upper[pair.hull], shapes.size1)
        middle = shapes.rotation * (0.5 * (lower + upper))
        pair.center = shapes.rotation * wp.cw_mul(hulls.center[pair.hull], shapes.size1)
        extent = 0.5 * (upper - lower)
        extent = wp.vec3(wp.abs(extent[0]), wp.abs(extent[1]), wp.abs(extent[2]))
    half = half_extents(shape_type, extent, shapes.rotation)
    pair.extent = shapes.extent
    pair.threshold = shapes.threshold
    inflation = shapes.threshold + 1.0e-6 * shapes.extent
    pair.lower = middle - half - wp.vec3(inflation, inflation, inflation)
    pair.upper = middle + half + wp.vec3(inflation, inflation, inflation)
    # The middle of a sphere tells all about which triangles are before it.
    pair.shallow = wp.where(
        shape_type == GeoType.SPHERE, extent[0], SHALLOW * half_thickness(shape_type, extent)
    )
    pair.middle = middle
    pair.half = half_extents(shape_type, extent, wp.identity(n=3, dtype=float)) + wp.vec3(
        inflation, inflation, inflation
    )
    return pair
