"""Directions that told near shapes apart in an earlier step, tried before anything else is computed.

Links of a robot that move together stay near each other, and never touch. What separates two of them in one
step does so in the next ([Bergen1999]). One support point of each shape shows it, where the search for the
shortest connection takes several of each, and simplices of them.

A direction only proves that there are no contacts. So contacts depend on the poses alone, to the bit,
whatever was kept: a direction of before a reset proves something, or it proves nothing.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision.components import to_double
from pluriverse.collision.convex.separation import ROUNDING
from pluriverse.collision.convex.support import ConvexPair, core_radius, support_first, support_second
from pluriverse.collision.hull import HullData
from pluriverse.collision.shape_pair import ShapePair

# Directions that a world keeps at most: several times as many as pairs are near in a robot of hulls, so that
# few share a place. A power of two.
KEPT_MAX = 128


@wp.struct
class KeptDirection:
    """A direction that separated a pair. Its sixteen bytes are loaded together."""

    direction: wp.vec3
    """From the first to the second shape of the pair, unit vector in the axes of the first."""
    pair: int
    """Candidate pair of the world plus 1, 0 for none."""


@wp.struct
class KeptDirections:
    """Places for directions, each for many pairs of a world."""

    start: wp.array[int]
    """First place of each world, whose number is a power of two, or zero, shape [world + 1]."""
    place: wp.array[KeptDirection]
    """What is kept, shape [place]."""


def make_kept_directions(pair_counts: np.ndarray, device: Any) -> KeptDirections:
    """Return empty places for worlds with so many candidate pairs, shape [world]."""
    counts = np.minimum(1 << np.ceil(np.log2(np.maximum(pair_counts, 1))).astype(np.int64), KEPT_MAX)
    starts = np.concatenate([[0], np.cumsum(np.where(pair_counts > 0, counts, 0))])
    kept = KeptDirections()
    kept.start = wp.array(starts.astype(np.int32), dtype=int, device=device)
    kept.place = wp.zeros(int(starts[-1]), dtype=KeptDirection, device=device)
    return kept


@wp.func
def place_of(kept: wp.ref[KeptDirections], pair: wp.ref[ShapePair]) -> int:
    """Return the place of a pair, which it shares with others."""
    first = kept.start[pair.world]
    return first + (pair.index & (kept.start[pair.world + 1] - first - 1))


@wp.func
def keep_direction(kept: wp.ref[KeptDirections], pair: wp.ref[ShapePair], direction: wp.vec3) -> None:
    """Keep a direction that separates a pair, axes of its first shape."""
    place = place_of(kept, pair)
    kept.place[place].direction = direction
    kept.place[place].pair = pair.index + 1


@wp.func
def does_kept_separate(
    kept: wp.ref[KeptDirections], hulls: wp.ref[HullData], pair: wp.ref[ShapePair], shapes: wp.ref[ConvexPair]
) -> bool:
    """Return whether the direction kept of a pair proves that it is farther apart than its threshold."""
    one = kept.place[place_of(kept, pair)]
    if one.pair != pair.index + 1:
        return False
    direction = to_double(one.direction)
    height = wp.dot(
        direction, support_second(shapes, hulls, -direction) - support_first(shapes, hulls, direction)
    )
    enough = pair.threshold + ROUNDING * (pair.extent + pair.threshold)
    enough += core_radius(shapes.type0, shapes.size0) + core_radius(shapes.type1, shapes.size1)
    return height > wp.float64(enough) * wp.length(direction)
