"""Convex hull of points, exact or reduced to a number of vertices."""

import numpy as np

# Thickness of the points, relative to their extent, below which they count as flat. float32 vertices are off
# by 6e-8 of their distance from the origin, and Qhull needs a simplex well above its own rounding.
FLATNESS = 1e-6


# Fewest vertices that a reduced hull may be asked for: the six extreme points along the axes, and two more
# that span a solid with them where they do not.
HULL_VERTEX_COUNT_MIN = 8


def compute_convex_hull(points: np.ndarray, max_vertices: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices [vertex, 3] and outward triangles [triangle, 3] of the hull of `points`.

    A hull of more than `max_vertices` vertices is approximated from inside by the vertices found farthest
    out, each against the hull of those before it, after the extreme points along the axes (so the bounding
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
    points = np.unique(np.asarray(points, dtype=np.float64), axis=0)
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    if len(points) < 4 or _is_flat(points):
        raise ValueError(
            f"{name}: the vertices lie in a plane (bounding box {np.ptp(points, axis=0).tolist()} m), so "
            "they "
            "have no convex hull. Give the part a thickness, use a thin box, or keep it for display only."
        )
    try:
        hull = ConvexHull(points - centre)
        if len(hull.vertices) > max_vertices:
            candidates = hull.points[np.sort(hull.vertices)]
            hull = ConvexHull(candidates[_farthest_first(candidates, max_vertices)])
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


def _farthest_first(points: np.ndarray, count: int) -> np.ndarray:
    """Return `count` indices of `points`, each chosen as the farthest outside the hull of those before it."""
    from scipy.spatial import ConvexHull

    kept = list(dict.fromkeys(int(i) for i in (*points.argmin(axis=0), *points.argmax(axis=0))))
    while len(kept) < 4 or _is_flat(points[kept]):
        kept.append(_farthest_from_span(points, kept))
    hull = ConvexHull(points[kept], incremental=True)
    while len(kept) < count:
        # Above the plane of some facet is outside the hull; the highest point is a vertex of the full hull.
        heights = (points @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1)
        farthest = int(heights.argmax())
        if farthest in kept:
            break  # all points lie in the hull, up to rounding
        kept.append(farthest)
        hull.add_points(points[farthest : farthest + 1])
    hull.close()
    return np.array(kept)


def _is_flat(points: np.ndarray) -> bool:
    singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return not singular[-1] > FLATNESS * singular[0]


def _farthest_from_span(points: np.ndarray, kept: list[int]) -> int:
    """Return the point farthest from the line or plane through the points `kept`."""
    origin = points[kept].mean(axis=0)
    _, singular, axes = np.linalg.svd(points[kept] - origin, full_matrices=True)
    rank = int(np.sum(singular > FLATNESS * singular[0]))
    return int(np.linalg.norm((points - origin) @ axes[rank:].T, axis=1).argmax())
