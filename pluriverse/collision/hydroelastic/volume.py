"""Pressure patch as an integral over the volume of the overlap, where the patch is no graph over a plane.

On the patch both pressures are equal; on the rest of the boundary of the part of the overlap where the
pressure of a shape is the lower one, that pressure is zero. So by the divergence theorem the force of the
patch is the integral of the gradient of that pressure over that part, and likewise its moment. Around the
corner of a box or the tip of a cone the overlap is a small lump, for which cells do well; the patch of flat
shapes, thin and wide, is left to `convex_patch`.
"""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import direction_of
from pluriverse.collision.hydroelastic.patch_pair import (
    SECTOR_COUNT,
    PatchPair,
    effective_stiffness,
    levels_of,
    range_along,
)

# Rounds in which the box around the overlap shrinks, and cells along each of its axes meanwhile.
SHRINK_ROUNDS = wp.constant(4)
SHRINK_CELLS = wp.constant(10)
# Cells along each axis of the box for the integral.
VOLUME_CELLS = wp.constant(16)
# Part of a cell over which it changes from outside to inside.
RAMP = wp.constant(0.5)


@wp.func
def cell_width(gradient: wp.vec3, pair: PatchPair, cell: wp.vec3) -> float:
    """Return by how much a level changes across a cell."""
    return (
        wp.abs(wp.dot(gradient, pair.axis_u)) * cell[0]
        + wp.abs(wp.dot(gradient, pair.axis_v)) * cell[1]
        + wp.abs(wp.dot(gradient, pair.normal)) * cell[2]
    )


@wp.func
def part_below(level: float, width: float) -> float:
    """Return about which part of a cell has a negative level, given the level in its middle.

    Levels have edges, at which a ramp over all of the cell would take in too much.
    """
    return wp.clamp(0.5 - level / wp.max(RAMP * width, 1.0e-30), 0.0, 1.0)


@wp.func
def place_of(pair: PatchPair, cell: wp.vec3, low: wp.vec3, index: int, count: int) -> wp.vec3:
    """Return the middle of a cell along the axes of the lines [m]."""
    i = index % count
    j = (index // count) % count
    k = index // (count * count)
    return low + wp.vec3((float(i) + 0.5) * cell[0], (float(j) + 0.5) * cell[1], (float(k) + 0.5) * cell[2])


@wp.func
def integrate_volume(
    pair: PatchPair,
    hulls: HullData,
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
) -> float:
    """Add the force of the patch to the bins of sectors around the normal; return its magnitude [N]."""
    range_u = range_along(pair, pair.axis_u)
    range_v = range_along(pair, pair.axis_v)
    range_n = range_along(pair, pair.normal)
    low = wp.vec3(range_u[0], range_v[0], range_n[0])
    high = wp.vec3(range_u[1], range_v[1], range_n[1])
    for _round in range(int(SHRINK_ROUNDS)):
        cell = (high - low) / float(SHRINK_CELLS)
        radius = 0.5 * wp.length(cell)
        lower = 1.0 * high
        upper = 1.0 * low
        for index in range(SHRINK_CELLS * SHRINK_CELLS * SHRINK_CELLS):
            position = place_of(pair, cell, low, index, SHRINK_CELLS)
            point = position[0] * pair.axis_u + position[1] * pair.axis_v + position[2] * pair.normal
            # Levels change by no more than the distance, so that other cells hold nothing.
            both = levels_of(pair, hulls, point)
            if both.first[3] < radius and both.second[3] < radius:
                lower = wp.min(lower, position - 0.5 * cell)
                upper = wp.max(upper, position + 0.5 * cell)
        if not (lower[0] < upper[0]):
            return 0.0
        low = lower
        high = upper

    total = pair.compliance0 + pair.compliance1
    weight0 = pair.compliance1 / total
    weight1 = pair.compliance0 / total
    cell = (high - low) / float(VOLUME_CELLS)
    volume = cell[0] * cell[1] * cell[2]
    middle = 0.5 * (low + high)
    is_first = pair.compliance0 >= pair.compliance1
    area_vector = wp.vec3()
    for index in range(VOLUME_CELLS * VOLUME_CELLS * VOLUME_CELLS):
        position = place_of(pair, cell, low, index, VOLUME_CELLS)
        point = position[0] * pair.axis_u + position[1] * pair.axis_v + position[2] * pair.normal
        levels = levels_of(pair, hulls, point)
        first = levels.first
        second = levels.second
        out0 = direction_of(first)
        out1 = direction_of(second)
        across = weight0 * out0 - weight1 * out1
        error = weight0 * first[3] - weight1 * second[3]
        width = wp.max(cell_width(across, pair, cell), 1.0e-30)
        # The second pressure is the lower one where the error is negative.
        share = part_below(error, width)
        piece = wp.vec3()
        inside = float(0.0)
        if is_first:
            inside = part_below(first[3], cell_width(out0, pair, cell))
            piece = ((1.0 - share) * inside * volume / pair.compliance0) * out0
        else:
            inside = part_below(second[3], cell_width(out1, pair, cell))
            piece = (-share * inside * volume / pair.compliance1) * out1
        size = wp.length(piece)
        if size > 0.0:
            stiffness = float(0.0)
            if share > 0.0 and share < 1.0:
                surface = inside * volume * wp.length(across) / (RAMP * width)
                stiffness = surface * effective_stiffness(pair, out0, out1, wp.normalize(across))
            angle = wp.atan2(position[1] - middle[1], position[0] - middle[0]) / (2.0 * wp.pi)
            sector = int(wp.floor(float(SECTOR_COUNT) * (angle + 1.0))) % SECTOR_COUNT
            force[sector] = force[sector] + piece
            moment[sector] = moment[sector] + size * point
            weight[sector] = weight[sector] + wp.vec2(size, stiffness)
            area_vector += piece
    return wp.length(area_vector)
