"""Column: where a line across the plane of a patch meets the surface on which both pressures are equal."""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import direction_of
from pluriverse.collision.hydroelastic.patch_pair import STEEPEST, PatchPair, levels_of
from pluriverse.types import GeoType

# Steps of Newton's method for one column, and its tolerance relative to the size of the smaller shape.
COLUMN_STEPS = wp.constant(16)
COLUMN_TOLERANCE = wp.constant(1.0e-7)
# Steps for the place of a column closest to the patch beside which it passes, and the difference of depths
# there that is none, relative to the size.
BESIDE_STEPS = wp.constant(20)
BESIDE_TOLERANCE = wp.constant(1.0e-4)


@wp.struct
class Column:
    """Where a column meets the surface of equal pressure."""

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
    """Whether the column goes through the overlap and yet does not meet the surface: that is no graph."""
    misses_shape: bool
    """Whether the column passes beside the surface, so that only `overlap` and `slope` mean something."""


@wp.func
def missed_column(pair: PatchPair, hulls: HullData, base: wp.vec3, weight0: float, weight1: float) -> Column:
    """Return how far a column passes beside the patch, as an overlap that is negative.

    Beside the overlap of the shapes that is the largest value on the column of the lesser depth. Inside of it
    one pressure is the lower one all along, and what counts is their difference.
    """
    low = -3.0 * pair.extent
    high = 3.0 * pair.extent
    column = Column()
    column.misses_shape = True
    column.across = pair.normal
    first = wp.vec4()
    second = wp.vec4()
    for _step in range(BESIDE_STEPS):
        column.height = 0.5 * (low + high)
        column.point = base + column.height * pair.normal
        both_levels = levels_of(pair, hulls, column.point)
        first = both_levels.first
        second = both_levels.second
        rise = wp.dot(direction_of(first), pair.normal)
        if second[3] > first[3]:
            rise = wp.dot(direction_of(second), pair.normal)
        if rise == 0.0:
            break
        if rise > 0.0:
            high = column.height
        else:
            low = column.height
    gradient = direction_of(first)
    column.overlap = -wp.max(first[3], second[3])
    if column.overlap > 0.0:
        error = weight0 * first[3] - weight1 * second[3]
        column.overlap = -wp.abs(error)
        column.is_invalid = True
        gradient = wp.sign(error) * (weight0 * direction_of(first) - weight1 * direction_of(second))
    else:
        # Of the two gradients that part which does not change along the column.
        rise0 = wp.dot(direction_of(first), pair.normal)
        rise1 = wp.dot(direction_of(second), pair.normal)
        if rise0 * rise1 < 0.0 and wp.abs(first[3] - second[3]) < BESIDE_TOLERANCE * pair.extent:
            gradient = (rise0 * direction_of(second) - rise1 * direction_of(first)) / (rise0 - rise1)
        elif second[3] > first[3]:
            gradient = direction_of(second)
    column.slope = wp.vec2(-wp.dot(gradient, pair.axis_u), -wp.dot(gradient, pair.axis_v))
    return column


@wp.func
def find_column(pair: PatchPair, hulls: HullData, u: float, v: float, guess: float) -> Column:
    """Return where a column meets the surface on which the pressures are equal.

    Outside the overlap the surface goes on with negative pressure, as long as the column leads out of the
    first shape and into the second there; else see `missed_column`.
    """
    total = pair.compliance0 + pair.compliance1
    weight0 = pair.compliance1 / total
    weight1 = pair.compliance0 / total
    base = u * pair.axis_u + v * pair.axis_v
    low = -3.0 * pair.extent
    high = 3.0 * pair.extent
    height = wp.clamp(guess, low, high)
    tolerance = COLUMN_TOLERANCE * pair.extent
    first = wp.vec4()
    second = wp.vec4()
    across = wp.vec3()
    is_met = bool(False)
    for _step in range(COLUMN_STEPS):
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
    column = Column()
    column.height = height
    column.point = base + height * pair.normal
    column.overlap = -(first[3] + second[3])
    column.across = across
    column.gradient0 = direction_of(first)
    column.gradient1 = direction_of(second)
    leads = wp.dot(column.gradient0, pair.normal) >= 0.0 and wp.dot(column.gradient1, pair.normal) <= 0.0
    # On a half space the surface is its plane, wherever the column comes from.
    if not is_met or (column.overlap <= 0.0 and not leads and pair.type0 != GeoType.PLANE):
        return missed_column(pair, hulls, base, weight0, weight1)
    both = column.gradient0 + column.gradient1
    rise = wp.dot(across, pair.normal)
    # The height changes so that both pressures stay equal.
    along = float(0.0)
    if rise > 1.0e-3:
        along = wp.dot(both, pair.normal) / rise
    column.slope = wp.vec2(
        along * wp.dot(across, pair.axis_u) - wp.dot(both, pair.axis_u),
        along * wp.dot(across, pair.axis_v) - wp.dot(both, pair.axis_v),
    )
    return column
