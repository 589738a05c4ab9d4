"""Convex hull of points, exact or reduced to a number of vertices."""

import numpy as np

from pluriverse.geometry.vertex_merge import order_by_position

# Thickness of the points, relative to their extent, below which they count as flat. float32 vertices have an
# error of 6e-8 of their distance from the origin, and Qhull needs a simplex well above its own rounding.
FLATNESS = 1e-6


# Numbers of points between which a reduced hull is built without the full one. For 642 points of a ball this
# takes 2 instead of 5 ms, with the same result. With fewer points the full hull is fast; with more, computing
# the heights over all facets is slow.
DIRECT_POINT_COUNTS = (500, 5000)
# Points from which on a reduced hull is made of those that lie farthest in so many directions, if these are
# that many times as many as its vertices. A ball of 160,000 points, all on its hull, takes 0.26 instead of
# 2.8 s and loses 0.04 % of the volume; directions are 0.16 rad apart, 64 vertices of a ball 0.5 rad.
MANY_POINTS = 50_000
DIRECTION_COUNT = 500
SUPPORT_SHARE = 4
# Directions of one product of matrices, so that it stays below 100 MB for a million points.
DIRECTION_CHUNK = 16
# Height above a hull, relative to the extent of the points, that may be rounding of points within its faces.
FACE_ROUNDING = 1e-7

# Height of a point above a hull, relative to the highest point, from which a round adds it too. On 42 robot
# links with a median of 350 hull vertices, 0.9 takes a third of the time of one point per round and loses
# 0.14 % of the volume.
ROUND_SHARE = 0.9

# Smallest number of vertices of a reduced hull: the six extreme points along the axes, and two more for the
# case that these six lie in a plane.
HULL_VERTEX_COUNT_MIN = 8


def compute_convex_hull(points: np.ndarray, max_vertices: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices [vertex, 3] and outward triangles [triangle, 3] of the hull of `points`.

    A hull of more than `max_vertices` vertices is approximated from inside by the vertices found farthest
    out against the hull of those before them, after the extreme points along the axes (so the bounding
    box stays exact).

    Raises:
        ValueError: If the points lie in a plane or `max_vertices` is below 8.
    """
    from scipy.spatial import ConvexHull, QhullError

    if max_vertices < HULL_VERTEX_COUNT_MIN:
        raise ValueError(
            f"{name}: a hull of at most {max_vertices} vertices was asked for. Ask for "
            f"{HULL_VERTEX_COUNT_MIN} or more: six of them are the extreme points along the axes."
        )
    # The points are sorted, so that the hull does not depend on their order.
    points = np.asarray(points, dtype=np.float64)[order_by_position(points)]
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    if len(points) < 4 or _is_flat(points):
        raise ValueError(
            f"{name}: the vertices lie in a plane (bounding box {np.ptp(points, axis=0).tolist()} m), so "
            "they have no convex hull. Make the part thicker, use a thin box, or keep it for display only."
        )
    candidates = points - centre
    try:
        selected = np.zeros(0, dtype=np.int64)
        if DIRECT_POINT_COUNTS[0] <= len(points) <= DIRECT_POINT_COUNTS[1]:
            rounding = FACE_ROUNDING * float(np.abs(candidates).max())
            selected = _farthest_first(candidates, max_vertices, rounding)
        elif len(points) >= MANY_POINTS:
            support = _support_points(candidates)
            if len(support) >= SUPPORT_SHARE * max_vertices:
                selected = support[_farthest_first(candidates[support], max_vertices, 0.0)]
        if len(selected) < max_vertices:  # the full hull may be small enough
            hull = ConvexHull(candidates)
            if len(hull.vertices) > max_vertices:
                candidates = hull.points[np.sort(hull.vertices)]
                selected = _farthest_first(candidates, max_vertices, 0.0)
                hull = ConvexHull(candidates[selected])
        else:
            hull = ConvexHull(candidates[selected])
    except QhullError as error:
        raise ValueError(
            f"{name}: its convex hull cannot be computed: {str(error).splitlines()[0]}"
        ) from error
    used, triangles = np.unique(hull.simplices, return_inverse=True)
    triangles = triangles.reshape(-1, 3)
    vertices = hull.points[used]
    a, b, c = vertices[triangles.T]
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return vertices + centre, triangles


def _support_points(points: np.ndarray) -> np.ndarray:
    """Return the indices of the points that lie farthest in any of many directions, or along the axes.

    The directions are a spiral of equal areas on the sphere ([Gonzalez2010]).
    """
    turn = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(DIRECTION_COUNT)
    height = 1.0 - (2.0 * np.arange(DIRECTION_COUNT) + 1.0) / DIRECTION_COUNT
    radius = np.sqrt(1.0 - height**2)
    directions = np.column_stack([radius * np.cos(turn), radius * np.sin(turn), height]).astype(np.float32)
    single = np.ascontiguousarray(points.T, dtype=np.float32)
    found = [points.argmin(axis=0), points.argmax(axis=0)]
    for first in range(0, DIRECTION_COUNT, DIRECTION_CHUNK):
        # einsum, since products of BLAS may round by the number of its threads.
        heights = np.einsum("dk,kn->dn", directions[first : first + DIRECTION_CHUNK], single)
        found.append(heights.argmax(axis=1))
    return np.unique(np.concatenate(found))


def _farthest_first(points: np.ndarray, count: int, rounding: float) -> np.ndarray:
    """Return `count` indices of `points`, chosen as the farthest outside the hull of those before them.

    They are fewer if no other point is outside by more than `rounding` [m]. A round takes the highest point
    above each facet if it is nearly as high as the highest of all.
    """
    from scipy.spatial import ConvexHull

    kept = list(dict.fromkeys(int(i) for i in (*points.argmin(axis=0), *points.argmax(axis=0))))
    while len(kept) < 4 or _is_flat(points[kept]):
        kept.append(_farthest_from_span(points, kept))
    hull = ConvexHull(points[kept], incremental=True)
    outside = np.delete(np.arange(len(points)), kept)
    while len(kept) < count and len(outside):
        # Above the plane of some facet is outside the hull; the highest point is a vertex of the full hull.
        # einsum, since BLAS would wake its threads for a product this small.
        heights = np.einsum("fk,kn->fn", hull.equations[:, :3], np.ascontiguousarray(points[outside].T))
        heights += hull.equations[:, 3:]
        top = heights.argmax(axis=1)
        height = heights[np.arange(len(top)), top]
        if not height.max() > rounding:
            break  # all points lie in the hull
        high = np.flatnonzero(height >= ROUND_SHARE * height.max())
        high = high[np.argsort(-height[high], kind="stable")]
        selected = list(dict.fromkeys(top[high].tolist()))[: count - len(kept)]
        kept += outside[selected].tolist()
        hull.add_points(points[outside[selected]])
        # A hull only grows: a point inside it stays inside.
        is_outside = (heights > 0.0).any(axis=0)
        is_outside[selected] = False
        outside = outside[is_outside]
    hull.close()
    return np.array(kept)


def thicken_plane(points: np.ndarray, share: float) -> np.ndarray | None:
    """Return coplanar points twice, shifted to both sides of their plane; None if they are not coplanar.

    Args:
        points: The points [m], shape [point, 3].
        share: Distance of the two sides, relative to the largest extent of the points.
    """
    points = np.asarray(points, dtype=np.float64)
    if len(points) < 3:
        return None
    _, singular, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    if singular[2] > FLATNESS * singular[0] or not singular[1] > FLATNESS * singular[0]:
        return None
    half = 0.5 * share * float(np.ptp(points @ axes.T, axis=0).max())
    return np.concatenate([points + half * axes[2], points - half * axes[2]])


def _is_flat(points: np.ndarray) -> bool:
    singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return not singular[-1] > FLATNESS * singular[0]


def _farthest_from_span(points: np.ndarray, kept: list[int]) -> int:
    """Return the point farthest from the line or plane through the points `kept`."""
    origin = points[kept].mean(axis=0)
    _, singular, axes = np.linalg.svd(points[kept] - origin, full_matrices=True)
    rank = int(np.sum(singular > FLATNESS * singular[0]))
    return int(np.linalg.norm((points - origin) @ axes[rank:].T, axis=1).argmax())
