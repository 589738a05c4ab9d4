"""Points on the circular edge of a cylinder or cone that make it stand and roll as a round body should."""

import warp as wp

# Tilt [rad] below which the four rim points of a standing body turn towards its own axes. A body at rest has
# a tilt of rounding noise only (1e-7 to 1e-5), whose direction is random: points that followed it would swirl
# around the rim. Above this tilt the first point is the lowest one, exactly.
RIM_TILT = wp.constant(5.0e-4)


@wp.func
def rim_direction(tilt: wp.vec2) -> wp.vec2:
    """Return the unit direction from the axis towards the first of four rim points.

    Args:
        tilt: Component of the wanted direction across the axis; its length is the sine of the angle between
            the axis and the wanted direction.
    """
    sine = wp.length(tilt)
    axis = wp.vec2(wp.where(tilt[0] < 0.0, -1.0, 1.0), 0.0)
    if wp.abs(tilt[1]) > wp.abs(tilt[0]):
        axis = wp.vec2(0.0, wp.where(tilt[1] < 0.0, -1.0, 1.0))
    direction = axis
    if sine >= RIM_TILT:
        direction = tilt / sine
    elif sine > 1.0e-3 * RIM_TILT:
        # The four points repeat after a quarter turn, so the nearest axis is at most 45 degrees away, and the
        # blend of the two directions cannot vanish.
        weight = sine / RIM_TILT
        direction = wp.normalize((weight / sine) * tilt + (1.0 - weight) * axis)
    return direction
