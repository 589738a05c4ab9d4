"""Whether two convex shapes are surely too far apart, and if not where they may touch, by their widths.

Most near pairs of a robot never touch: boxes around neighbouring links overlap, the links do not. Along any
unit direction d, two shapes are at least |d . c| - w0(d) - w1(d) apart. Here c leads from the middle of one
to that of the other, and w is the half width of a shape, in closed form. Seven directions, the axes of both
shapes and c itself, tell for almost all such pairs, at a fraction of the price of the shortest connection.
Contacts do not depend on this test: a pair that it leaves out has none. Of the others, the flat face along
whose normal they are farthest apart is the one on which they touch, if they touch on any.
"""

import warp as wp

from pluriverse.collision.components import column
from pluriverse.collision.shape_pair import ShapePair
from pluriverse.collision.shape_state import ShapeModel, hull_of
from pluriverse.types import GeoType

NO_FACE = wp.constant(-1)
TOO_FAR = wp.constant(-2)

# Rounding of the sums below, relative to the lengths in them: a dozen roundings of float32 (2**-24 each).
ROUNDING = wp.constant(1.0e-6)


@wp.func
def local_middle(model: wp.ref[ShapeModel], shape: int, size: wp.vec3) -> wp.vec3:
    """Return the middle of a shape in its frame [m]: the origin, but for convex hulls."""
    middle = wp.vec3(0.0, 0.0, 0.0)
    if model.shape_type[shape] == GeoType.CONVEX_MESH:
        hull = hull_of(model, shape)
        middle = 0.5 * wp.cw_mul(model.hull_lower[hull] + model.hull_upper[hull], size)
    return middle


@wp.func
def local_half_extents(model: wp.ref[ShapeModel], shape: int, size: wp.vec3) -> wp.vec3:
    """Return the half extents of a shape along its axes [m]."""
    shape_type = model.shape_type[shape]
    extents = size
    if shape_type == GeoType.SPHERE:
        extents = wp.vec3(size[0], size[0], size[0])
    elif shape_type == GeoType.CAPSULE:
        extents = wp.vec3(size[0], size[0], size[0] + size[1])
    elif shape_type == GeoType.CYLINDER or shape_type == GeoType.CONE:
        extents = wp.vec3(size[0], size[0], size[1])
    elif shape_type == GeoType.CONVEX_MESH:
        hull = hull_of(model, shape)
        extents = 0.5 * wp.cw_mul(model.hull_upper[hull] - model.hull_lower[hull], size)
        extents = wp.vec3(wp.abs(extents[0]), wp.abs(extents[1]), wp.abs(extents[2]))
    return extents


@wp.func
def half_width(shape_type: int, extents: wp.vec3, direction: wp.vec3) -> float:
    """Return the half width of a shape along a unit direction in its frame [m], at least that of its inside.

    Args:
        shape_type: Type of the shape; those not named below are taken as their boxes.
        extents: Half extents along its axes [m].
        direction: Unit vector.
    """
    x, y, z = wp.abs(direction[0]), wp.abs(direction[1]), wp.abs(direction[2])
    width = x * extents[0] + y * extents[1] + z * extents[2]
    if shape_type == GeoType.CYLINDER or shape_type == GeoType.CONE:
        width = wp.sqrt(x * x + y * y) * extents[0] + z * extents[2]
    elif shape_type == GeoType.CAPSULE or shape_type == GeoType.SPHERE:
        width = extents[0] + z * (extents[2] - extents[0])
    elif shape_type == GeoType.ELLIPSOID:
        width = wp.length(wp.vec3(x * extents[0], y * extents[1], z * extents[2]))
    return width


@wp.func
def has_face(shape_type: int, axis: int) -> bool:
    """Return whether a shape has two flat faces across an axis, each around its middle."""
    result = shape_type == GeoType.BOX
    return result or (shape_type == GeoType.CYLINDER and axis == 2)


@wp.func
def find_outermost_face(model: wp.ref[ShapeModel], pair: wp.ref[ShapePair]) -> int:
    """Return the face of two shapes along whose normal they are farthest apart, or overlap least.

    Returns:
        Axis of the first shape (0 to 2) or of the second (3 to 5) across which the face is, `NO_FACE` if no
        shape has one; `TOO_FAR` if the shapes are surely farther from each other than `pair.threshold`.
    """
    type0, type1 = model.shape_type[pair.shape0], model.shape_type[pair.shape1]
    extents0 = local_half_extents(model, pair.shape0, pair.size0)
    extents1 = local_half_extents(model, pair.shape1, pair.size1)
    apart = pair.position + pair.rotation * local_middle(model, pair.shape1, pair.size1)
    apart -= local_middle(model, pair.shape0, pair.size0)
    length = wp.length(apart)
    enough = pair.threshold + ROUNDING * (length + wp.length(extents0) + wp.length(extents1))
    found = int(NO_FACE)
    widest = float(-1.0e30)
    # Along a face normal of a shape first: these tell most often.
    for axis in range(3):
        row = wp.vec3(pair.rotation[axis, 0], pair.rotation[axis, 1], pair.rotation[axis, 2])
        separation = wp.abs(apart[axis]) - extents0[axis] - half_width(type1, extents1, row)
        if separation > enough:
            return TOO_FAR
        if separation > widest and has_face(type0, axis):
            widest = separation
            found = axis
    for axis in range(3):
        normal = column(pair.rotation, axis)
        separation = wp.abs(wp.dot(normal, apart)) - extents1[axis] - half_width(type0, extents0, normal)
        if separation > enough:
            return TOO_FAR
        if separation > widest and has_face(type1, axis):
            widest = separation
            found = 3 + axis
    direction = apart / length
    across = wp.transpose(pair.rotation) * direction
    if length - half_width(type0, extents0, direction) - half_width(type1, extents1, across) > enough:
        return TOO_FAR
    return found
