"""The shortest connection of two convex shapes, or the minimum translation out of an overlap, by supports."""

from typing import Any

import warp as wp

from pluriverse.collision.convex.epa import make_penetration
from pluriverse.collision.convex.gjk import APART, NEAR, make_closest_points


@wp.struct
class ShortestWay:
    """Closest or deepest points of two cores, in the frame of their pair."""

    is_near: bool
    """Whether they are close enough to matter; else only the normal is set."""
    normal: wp.vec3d
    """Unit normal from the first to the second core; of cores that do not matter, one that separates them."""
    point0: wp.vec3d
    """Point of the first core [m]."""
    point1: wp.vec3d
    """Point of the second core [m]."""


def make_shortest_way(
    pair_type: Any,
    hulls_type: Any,
    support_first: Any,
    support_second: Any,
    refine: Any = None,
    *,
    inline: bool | None = None,
) -> Any:
    """Return the Warp function that finds it; arguments as in `gjk.make_closest_points`."""
    find_closest_points = make_closest_points(
        pair_type, hulls_type, support_first, support_second, refine, inline=inline
    )
    find_penetration = make_penetration(
        pair_type, hulls_type, support_first, support_second, refine, inline=inline
    )

    @wp.func
    def find_shortest_way(
        pair: wp.ref[pair_type],
        hulls: hulls_type,
        start: wp.vec3d,
        max_distance: wp.float64,
        size: wp.float64,
    ) -> ShortestWay:
        """Return the closest points of two cores, or their deepest points if they overlap.

        Args:
            pair: The shapes.
            hulls: Convex hulls.
            start: Guess of the connection, from the first to the second core [m].
            max_distance: Distance of the cores [m] beyond which they do not matter.
            size: Size of the pair [m], for tolerances.
        """
        way = ShortestWay()
        w = wp.zeros(shape=4, dtype=wp.vec3d)
        a = wp.zeros(shape=4, dtype=wp.vec3d)
        b = wp.zeros(shape=4, dtype=wp.vec3d)
        weight = wp.zeros(shape=4, dtype=wp.float64)
        found = find_closest_points(pair, hulls, start, max_distance, size, w, a, b, weight)
        if found[0] == APART:
            way.normal = wp.normalize(w[0])
            return way
        if found[0] == NEAR:
            way.is_near = True
            for index in range(found[1]):
                way.point0 += weight[index] * a[index]
                way.point1 += weight[index] * b[index]
            way.normal = wp.normalize(way.point1 - way.point0)
        else:
            exit_direction = find_penetration(pair, hulls, size, w, a, b, found[1])
            way.is_near = exit_direction.is_found
            way.normal = exit_direction.normal
            way.point0 = exit_direction.point0
            way.point1 = exit_direction.point1
        return way

    return find_shortest_way
