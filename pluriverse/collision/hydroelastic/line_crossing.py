"""Where a line across the plane of a patch meets the surface on which both pressures are equal."""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import direction_of
from pluriverse.collision.hydroelastic.patch_pair import STEEPEST, PatchPair, levels_of
from pluriverse.types import GeoType

# Steps of Newton's method for one line, and its tolerance relative to the size of the smaller shape.
CROSSING_STEPS = wp.constant(16)
CROSSING_TOLERANCE = wp.constant(1.0e-7)
# Steps for the place of a line that misses the patch where it is closest to it, and the difference of depths
# there that is none, relative to the size.
MISS_STEPS = wp.constant(20)
MISS_TOLERANCE = wp.constant(1.0e-4)


@wp.struct
class LineCrossing:
    """Where a line meets the surface of equal pressure."""

    height: float
    """Height along n [m]."""
    point: wp.vec3
    """Point of the surface [m]."""
    overlap: float
    """Depth in the one plus depth in the other shape [m], negative outside; the pressure is proportional."""
    slope: wp.vec2
    """Change of `overlap` along u and v on the surface."""
    across: wp.vec3
    """Normal of the surface, of any length, out of the first shape."""
    gradient0: wp.vec3
    """Gradient of the level of the first shape."""
    gradient1: wp.vec3
    """Gradient of the level of the second shape."""
    is_invalid: bool
    """Whether the line goes through the overlap and yet does not meet the surface: that is no graph."""
    misses_shape: bool
    """Whether the line misses the surface, so that only `overlap` and `slope` mean something."""


@wp.func
def missed_crossing(
    pair: PatchPair, hulls: HullData, base: wp.vec3, weight0: float, weight1: float
) -> LineCrossing:
    """Return by how much a line misses the patch, as an overlap that is negative.

    Outside the overlap of the shapes that is the largest value on the line of the lesser depth. Inside of it
    one pressure is the lower one all along, and what counts is their difference.
    """
    low = -3.0 * pair.extent
    high = 3.0 * pair.extent
    crossing = LineCrossing()
    crossing.misses_shape = True
    crossing.across = pair.normal
    first = wp.vec4()
    second = wp.vec4()
    for _step in range(MISS_STEPS):
        crossing.height = 0.5 * (low + high)
        crossing.point = base + crossing.height * pair.normal
        both_levels = levels_of(pair, hulls, crossing.point)
        first = both_levels.first
        second = both_levels.second
        rise = wp.dot(direction_of(first), pair.normal)
        if second[3] > first[3]:
            rise = wp.dot(direction_of(second), pair.normal)
        if rise == 0.0:
            break
        if rise > 0.0:
            high = crossing.height
        else:
            low = crossing.height
    gradient = direction_of(first)
    crossing.overlap = -wp.max(first[3], second[3])
    if crossing.overlap > 0.0:
        error = weight0 * first[3] - weight1 * second[3]
        crossing.overlap = -wp.abs(error)
        crossing.is_invalid = True
        gradient = wp.sign(error) * (weight0 * direction_of(first) - weight1 * direction_of(second))
    else:
        # Of the two gradients that part which does not change along the line.
        rise0 = wp.dot(direction_of(first), pair.normal)
        rise1 = wp.dot(direction_of(second), pair.normal)
        if rise0 * rise1 < 0.0 and wp.abs(first[3] - second[3]) < MISS_TOLERANCE * pair.extent:
            gradient = (rise0 * direction_of(second) - rise1 * direction_of(first)) / (rise0 - rise1)
        elif second[3] > first[3]:
            gradient = direction_of(second)
    crossing.slope = wp.vec2(-wp.dot(gradient, pair.axis_u), -wp.dot(gradient, pair.axis_v))
    return crossing


@wp.func
def find_crossing(pair: PatchPair, hulls: HullData, u: float, v: float, guess: float) -> LineCrossing:
    """Return where a line meets the surface on which the pressures are equal.

    Outside the overlap the surface goes on with negative pressure, as long as the line leads out of the
    first shape and into the second there; else see `missed_crossing`.
    """
    total = pair.compliance0 + pair.compliance1
    weight0 = pair.compliance1 / total
    weight1 = pair.compliance0 / total
    base = u * pair.axis_u + v * pair.axis_v
    low = -3.0 * pair.extent
    high = 3.0 * pair.extent
    height = wp.clamp(guess, low, high)
    tolerance = CROSSING_TOLERANCE * pair.extent
    first = wp.vec4()
    second = wp.vec4()
    across = wp.vec3()
    is_met = bool(False)
    for _step in range(CROSSING_STEPS):
        point = base + height * pair.normal
        both_levels = levels_of(pair, hulls, point)
        first = both_levels.first
        second = both_levels.second
        error = weight0 * first[3] - weight1 * second[3]
        across = weight0 * direction_of(first) - weight1 * direction_of(second)
        rise = wp.dot(across, pair.normal)
        if wp.abs(error) <= tolerance * wp.max(rise, STEEPEST):
            is_met = True
            break
        if error > 0.0:
            high = height
        else:
            low = height
        step = 0.5 * (low + high) - height
        if rise > 1.0e-3:
            if height - error / rise > low and height - error / rise < high:
                step = -error / rise
        height += step
    crossing = LineCrossing()
    crossing.height = height
    crossing.point = base + height * pair.normal
    crossing.overlap = -(first[3] + second[3])
    crossing.across = across
    crossing.gradient0 = direction_of(first)
    crossing.gradient1 = direction_of(second)
    leads = wp.dot(crossing.gradient0, pair.normal) >= 0.0 and wp.dot(crossing.gradient1, pair.normal) <= 0.0
    # On a half space the surface is its plane, wherever the line comes from.
    if not is_met or (crossing.overlap <= 0.0 and not leads and pair.type0 != GeoType.PLANE):
        return missed_crossing(pair, hulls, base, weight0, weight1)
    both = crossing.gradient0 + crossing.gradient1
    rise = wp.dot(across, pair.normal)
    # The height changes so that both pressures stay equal.
    along = float(0.0)
    if rise > 1.0e-3:
        along = wp.dot(both, pair.normal) / rise
    crossing.slope = wp.vec2(
        along * wp.dot(across, pair.axis_u) - wp.dot(both, pair.axis_u),
        along * wp.dot(across, pair.axis_v) - wp.dot(both, pair.axis_v),
    )
    return crossing
