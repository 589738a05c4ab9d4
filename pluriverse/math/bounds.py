"""Bounds of numbers that users give: NaN stays NaN, so that a world that gets it is frozen and named.

Warp's `clamp` makes it one of the bounds.
"""

import warp as wp


@wp.func
def bounded(value: float, lower: float, upper: float) -> float:
    """Return a number within its bounds, or NaN if it is NaN."""
    if value < lower:
        return lower
    if value > upper:
        return upper
    return value
