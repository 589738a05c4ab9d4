"""Pressure patch of two shapes: the surface inside both on which their pressures are equal.

The patch is a graph over the plane across a direction n that leads out of the first shape into the second:
at each point (u, v) of that plane a *line* along n meets it once. Levels of convex shapes are convex
functions (`convex_field`), so the part of the plane where the pressure is positive is convex, and
everywhere outside of it the gradient of the pressure gives a line with the patch on one side. The patch is
found in four steps:

1. cut a rectangle through its centroid until the centroid has pressure; each cut takes a third of the area
   or more, so a patch of any size is found in few steps, or there is none;
2. cut off corners that stick out: of shapes with flat faces, what is left is the patch, corner by corner;
3. integrate along rays from the centroid, each to where the pressure vanishes and in two parts, divided
   where the pressure bends;
4. if n is not halfway between the gradients of both shapes on the patch, take that direction and begin again.

Where the lines find that the patch is no graph, `volume` takes over.

Pressure times area of each point of a ray goes into the bin of its sector around the centroid: the bins keep
the force and moment of the patch whatever their number. All lengths are relative to the middle of the second
shape, in the axes of the first.
"""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.line_crossing import LineCrossing, find_crossing
from pluriverse.collision.hydroelastic.patch_pair import (
    SECTOR_COUNT,
    STEEPEST,
    PatchPair,
    approach_direction,
    direction_between,
    effective_stiffness,
    find_deep_point,
    range_along,
    turn_lines,
)
from pluriverse.collision.hydroelastic.volume import integrate_volume
from pluriverse.types import GeoType

# Corners of the polygon around a patch; a cut that would give more is left out.
CORNER_COUNT = wp.constant(24)
# Cuts through the centroid: each leaves 1 - 1/e of the area at most (Grünbaum), so that these reach down to
# 1e-8 of it, a patch 1e-4 of the size of the shape across.
CENTER_CUTS = wp.constant(40)
AREA_MIN = wp.constant(1.0e-8)
# Cuts of corners, and the fraction of the way to a corner that must have pressure for it to stay.
CORNER_CUTS = wp.constant(32)
CORNER_FRACTION = wp.constant(0.98)
# Steps to the end of the pressure on a ray, and the fraction of the pressure in the middle that counts as
# none.
RIM_STEPS = wp.constant(8)
RIM_TOLERANCE = wp.constant(1.0e-3)
# Pieces of the patch, two rays each.
PIECE_COUNT = wp.constant(12)
# Least and largest fraction of a ray at which it is divided.
BEND_MIN = wp.constant(0.05)
BEND_MAX = wp.constant(0.99)
# Offset of the two points of Gauss's rule from the middle of a unit interval.
GAUSS = wp.constant(0.28867513)
# What does not belong to a graph: a negative overlap inside the patch, relative to that in the middle, a
# largest overlap below this part of the known depth, and a cosine between the patch and its lines.
DEFECT_OVERLAP = wp.constant(0.02)
DEFECT_DEPTH = wp.constant(0.8)
DEFECT_COSINE = wp.constant(0.25)
# Overlap at a rim where the surface turns away from the lines, relative to the way there: the wall behind.
DEFECT_WALL = wp.constant(0.15)
# Distance by which a polygon may miss a point that it must hold, relative to the size.
DEFECT_DISTANCE = wp.constant(1.0e-4)
# Cosine (15 degrees) between directions that are close enough, and how often to turn.
DIRECTION_COSINE = wp.constant(0.966)
DIRECTION_TURNS = wp.constant(3)


@wp.func
def cut_polygon(polygon: wp.array[wp.vec3], count: int, a: float, b: float, c: float) -> int:
    """Keep the part of a convex polygon where a u + b v + c >= 0; return its corner count.

    The third component of a corner tells whether it was looked at; new corners were not.
    """
    scratch = wp.zeros(shape=CORNER_COUNT, dtype=wp.vec3)
    kept = int(0)
    fits = bool(True)
    previous = polygon[count - 1]
    before = a * previous[0] + b * previous[1] + c
    for index in range(count):
        current = polygon[index]
        value = a * current[0] + b * current[1] + c
        if (value > 0.0 and before < 0.0) or (value < 0.0 and before > 0.0):
            if kept < CORNER_COUNT:
                t = value / (value - before)
                scratch[kept] = wp.vec3(
                    current[0] + t * (previous[0] - current[0]),
                    current[1] + t * (previous[1] - current[1]),
                    0.0,
                )
            else:
                fits = False
            kept += 1
        if value >= 0.0:
            if kept < CORNER_COUNT:
                scratch[kept] = current
            else:
                fits = False
            kept += 1
        previous = current
        before = value
    result = count
    if fits:
        for index in range(kept):
            polygon[index] = scratch[index]
        result = kept
    return result


@wp.func
def polygon_centroid(polygon: wp.array[wp.vec3], count: int) -> wp.vec3:
    """Return the centroid of a convex polygon (u, v) [m] and its area [m²]."""
    origin = polygon[0]
    area = float(0.0)
    u = float(0.0)
    v = float(0.0)
    for index in range(1, count - 1):
        p = polygon[index] - origin
        q = polygon[index + 1] - origin
        twice = p[0] * q[1] - p[1] * q[0]
        area += 0.5 * twice
        u += twice * (p[0] + q[0])
        v += twice * (p[1] + q[1])
    if area > 0.0:
        u = u / (6.0 * area)
        v = v / (6.0 * area)
    return wp.vec3(origin[0] + u, origin[1] + v, area)


@wp.func
def find_rim(
    pair: PatchPair, hulls: HullData, center: wp.vec2, middle: LineCrossing, corner: wp.vec2
) -> wp.vec4:
    """Return the fraction of the way from the centre to a corner at which the pressure ends.

    Newton's method, held between the last places inside and outside. With the end come the slope of the
    overlap along the way, the height [m], and 1 if the surface ends there before its pressure, else 0.
    """
    way = corner - center
    inside = float(0.0)
    outside = float(1.0)
    fraction = float(1.0)
    slope = float(0.0)
    height = 1.0 * middle.height
    missed = float(0.0)
    for _step in range(RIM_STEPS):
        point = center + fraction * way
        crossing = find_crossing(pair, hulls, point[0], point[1], height)
        height = crossing.height
        missed = wp.where(crossing.misses_shape, 1.0, 0.0)
        slope = wp.dot(crossing.slope, way)
        if wp.abs(crossing.overlap) <= RIM_TOLERANCE * middle.overlap:
            break
        if crossing.overlap > 0.0:
            inside = fraction
        else:
            outside = fraction
        if inside == 1.0:
            break
        step = 0.5 * (inside + outside) - fraction
        if slope < 0.0:
            closer = fraction - crossing.overlap / slope
            if closer > inside and closer < outside:
                step = closer - fraction
        fraction += step
    return wp.vec4(fraction, slope, height, missed)


@wp.struct
class PatchCenter:
    """The centroid of a polygon around a patch, where it has pressure."""

    position: wp.vec2
    """Where it is (u, v) [m]."""
    count: int
    """Corners of the polygon, 0 if there is no patch."""
    middle: LineCrossing
    """The crossing there."""


@wp.func
def find_center(
    pair: PatchPair, hulls: HullData, polygon: wp.array[wp.vec3], count: int, defects: wp.array[int]
) -> PatchCenter:
    """Cut a polygon through its centroid until that has pressure; return it.

    `defects` counts what speaks against a graph.
    """
    result = PatchCenter()
    center = polygon_centroid(polygon, count)
    least = AREA_MIN * center[2]
    height = float(0.0)
    is_inside = bool(False)
    for _cut in range(CENTER_CUTS):
        crossing = find_crossing(pair, hulls, center[0], center[1], height)
        if crossing.overlap > 0.0:
            is_inside = True
            result.middle = crossing
            break
        if crossing.is_invalid:
            defects[0] = defects[0] + 1
        height = crossing.height
        offset = crossing.overlap - crossing.slope[0] * center[0] - crossing.slope[1] * center[1]
        count = cut_polygon(polygon, count, crossing.slope[0], crossing.slope[1], offset)
        if count < 3:
            break
        center = polygon_centroid(polygon, count)
        if not center[2] > least:
            break
    if is_inside:
        result.count = count
    result.position = wp.vec2(center[0], center[1])
    return result


@wp.func
def find_polygon(pair: PatchPair, hulls: HullData, polygon: wp.array[wp.vec3], defects: wp.array[int]) -> int:
    """Write the corners of a polygon around the patch and return their number, 0 if there is no patch.

    `defects` counts what speaks against a graph.
    """
    range_u = range_along(pair, pair.axis_u)
    range_v = range_along(pair, pair.axis_v)
    if not (range_u[0] < range_u[1] and range_v[0] < range_v[1]):
        return 0
    polygon[0] = wp.vec3(range_u[0], range_v[0], 0.0)
    polygon[1] = wp.vec3(range_u[1], range_v[0], 0.0)
    polygon[2] = wp.vec3(range_u[1], range_v[1], 0.0)
    polygon[3] = wp.vec3(range_u[0], range_v[1], 0.0)
    count = int(4)
    center = find_center(pair, hulls, polygon, count, defects)
    count = int(center.count)
    if count == 0:
        return 0
    inside = center.position
    middle = center.middle
    for _cut in range(CORNER_CUTS):
        unused = int(-1)
        for index in range(count):
            if polygon[index][2] == 0.0 and unused < 0:
                unused = index
        if unused < 0:
            break
        corner = wp.vec2(polygon[unused][0], polygon[unused][1])
        polygon[unused] = wp.vec3(corner[0], corner[1], 1.0)
        rim = find_rim(pair, hulls, inside, middle, corner)
        if rim[0] < CORNER_FRACTION:
            position = inside + rim[0] * (corner - inside)
            crossing = find_crossing(pair, hulls, position[0], position[1], rim[2])
            if crossing.is_invalid:
                defects[0] = defects[0] + 1
            # The pressure ends at this point, give or take a little that must not be cut off.
            offset = wp.abs(crossing.overlap) - wp.dot(crossing.slope, position)
            count = cut_polygon(polygon, count, crossing.slope[0], crossing.slope[1], offset)
    return count


@wp.func
def misses_deep_point(
    pair: PatchPair, hulls: HullData, polygon: wp.array[wp.vec3], count: int, deep: wp.vec4
) -> bool:
    """Return whether a point that is deep in both shapes is outside of the polygon or of any graph."""
    point = wp.vec3(deep[0], deep[1], deep[2])
    u = wp.dot(point, pair.axis_u)
    v = wp.dot(point, pair.axis_v)
    crossing = find_crossing(pair, hulls, u, v, wp.dot(point, pair.normal))
    result = crossing.overlap < DEFECT_DEPTH * deep[3]
    result = result or wp.dot(crossing.across, pair.normal) < DEFECT_COSINE * wp.length(crossing.across)
    for index in range(count):
        first = polygon[index]
        last = polygon[(index + 1) % count]
        side = (last[0] - first[0]) * (v - first[1]) - (last[1] - first[1]) * (u - first[0])
        length = wp.length(wp.vec2(last[0] - first[0], last[1] - first[1]))
        result = result or side < -DEFECT_DISTANCE * pair.extent * length
    return result


@wp.func
def add_to_bins(
    pair: PatchPair,
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
    sector: int,
    crossing: LineCrossing,
    area: float,
) -> wp.vec3:
    """Add the pressure on an area across the lines [m²] to a bin; return the force [N].

    Args:
        pair: The shapes.
        force: Force on the second shape [N], shape [SECTOR_COUNT].
        moment: Sum of position times magnitude of force [N·m], shape [SECTOR_COUNT].
        weight: Sum of the magnitudes of force [N], and stiffness [N/m], shape [SECTOR_COUNT].
        sector: Which bin.
        crossing: Where the area meets the surface.
        area: Area across the lines.
    """
    normal = wp.normalize(crossing.across)
    surface = area / wp.max(wp.dot(normal, pair.normal), STEEPEST)
    size = crossing.overlap * surface / (pair.compliance0 + pair.compliance1)
    stiffness = surface * effective_stiffness(pair, crossing.gradient0, crossing.gradient1, normal)
    force[sector] = force[sector] + size * normal
    moment[sector] = moment[sector] + size * crossing.point
    weight[sector] = weight[sector] + wp.vec2(size, stiffness)
    return size * normal


@wp.func
def integrate_polygon(
    pair: PatchPair,
    hulls: HullData,
    polygon: wp.array[wp.vec3],
    count: int,
    deep: float,
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
    out: wp.array[wp.vec3],
    defects: wp.array[int],
) -> wp.vec3:
    """Add the pressure on the patch to the bins along rays from the centroid; return the force [N].

    `deep` is a depth [m] that some point has in both shapes, and that the overlap must reach somewhere. The
    gradients of both shapes, weighted by force, are added to the two entries of `out`, and to `defects` the
    number of points that speak against a graph.
    """
    centroid = find_center(pair, hulls, polygon, count, defects)
    count = int(centroid.count)
    total = wp.vec3()
    most = float(0.0)
    if count == 0:
        return total
    center = centroid.position
    middle = centroid.middle
    doubled_area = 2.0 * polygon_centroid(polygon, count)[2]
    done = float(0.0)
    for index in range(count):
        first = wp.vec2(polygon[index][0], polygon[index][1])
        last = wp.vec2(polygon[(index + 1) % count][0], polygon[(index + 1) % count][1])
        edge = last - first
        # By area, so that a stretched patch is divided as a round one is. An even number: the ridge of a
        # wedge passes between two pieces.
        part = wp.abs((first[0] - center[0]) * edge[1] - (first[1] - center[1]) * edge[0])
        pieces = 2 * int(wp.ceil(0.5 * float(PIECE_COUNT) * part / doubled_area))
        for ray in range(2 * pieces):
            t = (float(ray // 2) + 0.5 + wp.where(ray % 2 == 0, -GAUSS, GAUSS)) / float(pieces)
            way = first + t * edge - center
            # Twice the area of the triangle that this ray stands for.
            twice = part / float(2 * pieces)
            done += twice
            sector = int(float(SECTOR_COUNT) * (done - 0.5 * twice) / doubled_area)
            sector = wp.clamp(sector, 0, SECTOR_COUNT - 1)
            rim = find_rim(pair, hulls, center, middle, center + way)
            # Where the lines along the overlap in the middle and at the rim meet.
            slope = wp.dot(middle.slope, way)
            bend = 0.5 * rim[0]
            if slope - rim[1] > 0.0:
                bend = (-rim[1] * rim[0] - middle.overlap) / (slope - rim[1])
            bend = wp.clamp(bend, BEND_MIN * rim[0], BEND_MAX * rim[0])
            for node in range(int(4)):
                start = wp.where(node < 2, 0.0, bend)
                length = wp.where(node < 2, bend, rim[0] - bend)
                s = start + length * (0.5 + wp.where(node % 2 == 0, -GAUSS, GAUSS))
                position = center + s * way
                guess = middle.height + s / rim[0] * (rim[2] - middle.height)
                crossing = find_crossing(pair, hulls, position[0], position[1], guess)
                most = wp.max(most, crossing.overlap)
                if node == 3 and rim[3] > 0.0 and crossing.overlap > DEFECT_WALL * rim[0] * wp.length(way):
                    defects[0] = defects[0] + 1
                if crossing.overlap < -DEFECT_OVERLAP * middle.overlap:
                    defects[0] = defects[0] + 1
                if crossing.overlap > 0.0:
                    if wp.dot(crossing.across, pair.normal) < DEFECT_COSINE * wp.length(crossing.across):
                        defects[0] = defects[0] + 1
                    area = twice * s * 0.5 * length
                    part_force = add_to_bins(pair, force, moment, weight, sector, crossing, area)
                    total += part_force
                    out[0] = out[0] + wp.length(part_force) * crossing.gradient0
                    out[1] = out[1] + wp.length(part_force) * crossing.gradient1
    if most < DEFECT_DEPTH * deep:
        defects[0] = defects[0] + 1
    return total


@wp.func
def clear_bins(force: wp.array[wp.vec3], moment: wp.array[wp.vec3], weight: wp.array[wp.vec2]) -> None:
    """Empty all bins."""
    for sector in range(int(SECTOR_COUNT)):
        force[sector] = wp.vec3(0.0, 0.0, 0.0)
        moment[sector] = wp.vec3(0.0, 0.0, 0.0)
        weight[sector] = wp.vec2(0.0, 0.0)


@wp.func
def find_patch(
    pair: PatchPair,
    hulls: HullData,
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
) -> float:
    """Write the pressure on the patch of two shapes into the bins (see `add_to_bins`).

    Args:
        pair: The shapes; a half space comes first.
        hulls: Convex hulls.
        force: Force of each bin.
        moment: Moment of each bin.
        weight: Weight and stiffness of each bin.

    Returns:
        Magnitude of the sum of the forces [N].
    """
    normal = wp.vec3(0.0, 0.0, 1.0)
    deep = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if pair.type0 != GeoType.PLANE:
        deep = find_deep_point(pair, hulls)
        if not deep[3] > 0.0:
            return 0.0
        normal = approach_direction(pair, hulls, deep)
    polygon = wp.zeros(shape=CORNER_COUNT, dtype=wp.vec3)
    out = wp.zeros(shape=2, dtype=wp.vec3)
    defects = wp.zeros(shape=1, dtype=int)
    normal = 1.0 * normal
    size = float(0.0)
    is_graph = bool(False)
    for _turn in range(DIRECTION_TURNS):
        pair = turn_lines(pair, normal)
        clear_bins(force, moment, weight)
        out[0] = wp.vec3(0.0, 0.0, 0.0)
        out[1] = wp.vec3(0.0, 0.0, 0.0)
        defects[0] = 0
        count = find_polygon(pair, hulls, polygon, defects)
        total = wp.vec3()
        if count > 0:
            if pair.type0 != GeoType.PLANE:
                if misses_deep_point(pair, hulls, polygon, count, deep):
                    defects[0] = defects[0] + 1
            known = deep[3]
            total = integrate_polygon(pair, hulls, polygon, count, known, force, moment, weight, out, defects)
        size = wp.length(total)
        if pair.type0 == GeoType.PLANE:
            is_graph = True
            break
        if size == 0.0:
            break
        between = direction_between(pair, out[0], out[1])
        if wp.dot(between, normal) >= DIRECTION_COSINE:
            is_graph = defects[0] == 0
            break
        normal = between
    if not is_graph:
        clear_bins(force, moment, weight)
        size = integrate_volume(pair, hulls, force, moment, weight)
    return size
