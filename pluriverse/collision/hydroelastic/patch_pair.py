"""Two overlapping shapes as their pressure patch is sought: levels, the deepest point, and a direction.

All lengths are relative to the middle of the second shape, in the axes of the first.
"""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import direction_of, shape_level_set

# Sectors of a patch, each of which becomes one contact.
SECTOR_COUNT = wp.constant(8)
# Least cosine between the patch and the direction of its lines.
STEEPEST = wp.constant(0.1)
# Steps towards the deepest point of the overlap, those after the first one inside, and how far around it
# gradients are taken, relative to its depth.
DEEP_STEPS = wp.constant(80)
DEEP_STEPS_INSIDE = wp.constant(12)
DEEP_RADIUS = wp.constant(1.5)
# Size of an ellipsoid, relative to the smaller shape, at which the search ends.
DEEP_TOLERANCE = wp.constant(1.0e-7)


@wp.struct
class PatchPair:
    """Two shapes that overlap, and the directions across and along which their patch is sought."""

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
    margin0: float
    """Thickness added to the first shape [m]."""
    margin1: float
    """Thickness added to the second shape [m]."""
    compliance0: float
    """Depth per pressure of the first shape [m³/N], 0 if it is rigid."""
    compliance1: float
    """Depth per pressure of the second shape [m³/N], 0 if it is rigid."""
    rotation: wp.mat33
    """First from second shape axes."""
    position: wp.vec3
    """Middle of the second shape in the frame of the first [m]."""
    middle: wp.vec3
    """Middle of the second shape in its own frame [m]."""
    half0: wp.vec3
    """Half extents of the first shape along its axes, margin included [m]."""
    middle0: wp.vec3
    """Middle of the first shape in its frame [m]."""
    half1: wp.vec3
    """Half extents of the second shape along its axes, margin included [m]."""
    extent: float
    """How large the smaller shape is [m]."""
    normal: wp.vec3
    """Direction n of the lines, out of the first shape."""
    axis_u: wp.vec3
    """First axis across the lines."""
    axis_v: wp.vec3
    """Second axis across the lines."""


@wp.struct
class LevelPair:
    """Gradients and levels of both shapes at a point, axes of the first shape."""

    first: wp.vec4
    """Of the first shape."""
    second: wp.vec4
    """Of the second shape."""


@wp.func
def levels_of(pair: wp.ref[PatchPair], hulls: wp.ref[HullData], point: wp.vec3) -> LevelPair:
    """Return gradients and levels of both shapes: one call for both, as compilers write each of them out."""
    both = LevelPair()
    for side in range(int(2)):
        shape_type = pair.type0
        size = pair.size0
        hull = pair.hull0
        local_point = point + pair.position
        if side == 1:
            shape_type = pair.type1
            size = pair.size1
            hull = pair.hull1
            local_point = wp.transpose(pair.rotation) * point + pair.middle
        level = shape_level_set(shape_type, size, hulls, hull, local_point)
        if side == 1:
            out = pair.rotation * wp.vec3(level[0], level[1], level[2])
            both.second = wp.vec4(out[0], out[1], out[2], level[3] - pair.margin1)
        else:
            both.first = wp.vec4(level[0], level[1], level[2], level[3] - pair.margin0)
    return both


@wp.func
def half_along(half: wp.vec3, direction: wp.vec3) -> float:
    """Return how far a box reaches along a direction given in its axes [m]."""
    return wp.abs(direction[0]) * half[0] + wp.abs(direction[1]) * half[1] + wp.abs(direction[2]) * half[2]


@wp.func
def range_along(pair: wp.ref[PatchPair], direction: wp.vec3) -> wp.vec2:
    """Return where the boxes of both shapes overlap along a direction [m]."""
    middle = wp.dot(pair.middle0 - pair.position, direction)
    half0 = half_along(pair.half0, direction)
    half1 = half_along(pair.half1, wp.transpose(pair.rotation) * direction)
    return wp.vec2(wp.max(middle - half0, -half1), wp.min(middle + half0, half1))


@wp.func
def find_deep_point(pair: PatchPair, hulls: HullData) -> wp.vec4:
    """Return a point deep in the overlap (x, y, z) and how deep it is in both shapes [m], negative outside.

    By the ellipsoid method: an ellipsoid that holds all points deeper than the best so far is cut through its
    middle, and replaced by the smallest ellipsoid around the half that remains.
    """
    x = range_along(pair, wp.vec3(1.0, 0.0, 0.0))
    y = range_along(pair, wp.vec3(0.0, 1.0, 0.0))
    z = range_along(pair, wp.vec3(0.0, 0.0, 1.0))
    if not (x[0] < x[1] and y[0] < y[1] and z[0] < z[1]):
        return wp.vec4(0.0, 0.0, 0.0, -1.0)
    center = 0.5 * wp.vec3(x[0] + x[1], y[0] + y[1], z[0] + z[1])
    # The ellipsoid through the corners of a box reaches sqrt(3) times as far along its axes.
    spread = wp.diag(0.75 * wp.vec3((x[1] - x[0]) ** 2.0, (y[1] - y[0]) ** 2.0, (z[1] - z[0]) ** 2.0))
    best = wp.vec4(center[0], center[1], center[2], -1.0e30)
    inside = int(0)
    for _step in range(DEEP_STEPS):
        both = levels_of(pair, hulls, center)
        first = both.first
        second = both.second
        gradient = direction_of(first)
        depth = -wp.max(first[3], second[3])
        if second[3] > first[3]:
            gradient = direction_of(second)
        if depth > best[3]:
            best = wp.vec4(center[0], center[1], center[2], depth)
        if best[3] > 0.0:
            inside += 1
        side = spread * gradient
        rate = wp.sqrt(wp.dot(gradient, side))
        # Where the cut passes the middle, in half widths of the ellipsoid.
        cut = (best[3] - depth) / rate
        if not cut < 1.0 or inside > DEEP_STEPS_INSIDE or rate < DEEP_TOLERANCE * pair.extent:
            break
        side = side / rate
        center = center - (1.0 + 3.0 * cut) / 4.0 * side
        share = 0.5 * (1.0 + 3.0 * cut) / (1.0 + cut)
        spread = (9.0 / 8.0) * (1.0 - cut * cut) * (spread - share * wp.outer(side, side))
    return best


@wp.func
def approach_direction(pair: PatchPair, hulls: HullData, deep: wp.vec4) -> wp.vec3:
    """Return a direction out of the first shape and into the second, from the gradients around a deep point.

    On all sides of the point, as far off as it is deep: at the corner of a box each of the faces counts.
    """
    point = wp.vec3(deep[0], deep[1], deep[2])
    radius = DEEP_RADIUS * deep[3]
    out0 = wp.vec3()
    out1 = wp.vec3()
    for sample in range(int(14)):
        offset = wp.vec3()
        if sample < 6:
            offset[sample // 2] = wp.where(sample % 2 == 0, 1.0, -1.0)
        else:
            offset = 0.57735 * wp.vec3(
                wp.where(sample % 2 == 0, 1.0, -1.0),
                wp.where((sample // 2) % 2 == 0, 1.0, -1.0),
                wp.where(sample < 10, 1.0, -1.0),
            )
        both = levels_of(pair, hulls, point + radius * offset)
        out0 += direction_of(both.first)
        out1 += direction_of(both.second)
    return direction_between(pair, out0, out1)


@wp.func
def direction_between(pair: PatchPair, out0: wp.vec3, out1: wp.vec3) -> wp.vec3:
    """Return the direction halfway between that out of the first and that into the second shape."""
    between = wp.normalize(out0) - wp.normalize(out1)
    if wp.length(between) < 0.1:
        # One shape lies well inside the other.
        between = pair.position - pair.middle0
    if wp.length(between) == 0.0:
        between = wp.vec3(0.0, 0.0, 1.0)
    return wp.normalize(between)


@wp.func
def turn_lines(pair: PatchPair, normal: wp.vec3) -> PatchPair:
    """Return the pair with lines along another direction."""
    pair.normal = normal
    # The same side of the switch for all directions near an axis: faces in line stay as they are divided.
    axis = wp.vec3(1.0, 0.0, 0.0)
    if wp.abs(normal[0]) > 0.8:
        axis = wp.vec3(0.0, 1.0, 0.0)
    pair.axis_u = wp.normalize(wp.cross(axis, normal))
    pair.axis_v = wp.cross(normal, pair.axis_u)
    return pair


@wp.func
def effective_stiffness(pair: wp.ref[PatchPair], out0: wp.vec3, out1: wp.vec3, normal: wp.vec3) -> float:
    """Return how much the pressure rises as the shapes approach along the normal of the patch [N/m³].

    A shape yields by its compliance where its pressure rises towards its inside; where it does not, at the
    side of a flat shape, the pressure does not depend on how far the shapes approach.
    """
    yields0 = wp.dot(out0, normal)
    yields1 = -wp.dot(out1, normal)
    result = float(0.0)
    if (yields0 > STEEPEST or pair.compliance0 == 0.0) and (yields1 > STEEPEST or pair.compliance1 == 0.0):
        compliance = pair.compliance0 / wp.max(yields0, STEEPEST)
        result = 1.0 / (compliance + pair.compliance1 / wp.max(yields1, STEEPEST))
    return result
