"""Edge data of a surface: normals, sharp edges and mean normals of edges, on the host.

A terrain has millions of edges. In kernels nothing is written that is not part of the result, which takes a
tenth of the time of NumPy's arrays between.

Reads   vertices and triangles of one surface, the vertices beyond its edges
Writes  normals and areas of triangles, sharp edges, mean normals of edges
"""

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel

MODULE = "pluriverse.collision.mesh_edge_data"


@wp.kernel(enable_backward=False, module=MODULE)
def measure_triangle(
    point: wp.array[wp.vec3d],  # [vertex] m
    triangle: wp.array[wp.vec3i],  # [triangle]
    # out
    normal: wp.array[wp.vec3d],  # [triangle] m^2, of twice the area
    area: wp.array[wp.float64],  # [triangle] m^2, twice
    longest: wp.array[wp.float64],  # [triangle] m^2, square of the longest edge
):
    """Measure one triangle."""
    t, _ = wp.tid()
    corner = triangle[t]
    a = point[corner[0]]
    b = point[corner[1]]
    c = point[corner[2]]
    cross = wp.cross(b - a, c - a)
    normal[t] = cross
    area[t] = wp.length(cross)
    longest[t] = wp.max(wp.length_sq(b - a), wp.max(wp.length_sq(c - b), wp.length_sq(a - c)))


@wp.kernel(enable_backward=False, module=MODULE)
def mark_sharp_edge(
    point: wp.array[wp.vec3d],  # [vertex] m
    triangle: wp.array[wp.vec3i],  # [triangle]
    normal: wp.array[wp.vec3d],  # [triangle] unit
    opposite_start: wp.array[int],  # [3 * triangle + 1]
    opposite: wp.array[int],  # [opposite] vertices of other triangles at an edge
    flat: wp.float64,  # sine down to which an edge is flat
    is_open: int,  # 1 for a sheet, whose both sides are fronts
    # out
    sharp: wp.array[wp.uint8],  # [3 * triangle]
):
    """Mark one edge of one triangle that is convex, or has no other triangle."""
    side, _ = wp.tid()
    t = side / 3
    start = opposite_start[side]
    end = opposite_start[side + 1]
    result = wp.uint8(0)
    if start == end:
        result = wp.uint8(1)
    corner = point[triangle[t][side - 3 * t]]
    for entry in range(start, end):
        offset = point[opposite[entry]] - corner
        height = wp.dot(normal[t], offset)
        if is_open == 1:
            height = -wp.abs(height)
        if height < -flat * wp.length(offset):
            result = wp.uint8(1)
    sharp[side] = result


@wp.kernel(enable_backward=False, module=MODULE)
def average_edge_normal(
    one: wp.array[int],  # [edge] first of its two sides
    other: wp.array[int],  # [edge] second
    normal: wp.array[wp.vec3d],  # [triangle] unit
    least: wp.float64,  # length of the sum of two normals below which it has no direction
    # out
    edge_normal: wp.array[wp.vec3],  # [3 * triangle]
    edge_spread: wp.array[float],  # [3 * triangle] rad
):
    """Write the mean normal at one edge of two triangles, and how far theirs are from it."""
    edge, _ = wp.tid()
    first = normal[one[edge] / 3]
    second = normal[other[edge] / 3]
    mean = first + second
    length = wp.length(mean)
    if length <= least:
        return  # folded back onto each other they have none
    mean = mean / length
    single = wp.vec3(float(mean[0]), float(mean[1]), float(mean[2]))
    edge_normal[one[edge]] = single
    edge_normal[other[edge]] = single
    edge_spread[one[edge]] = float(wp.acos(wp.clamp(wp.dot(first, mean), wp.float64(-1.0), wp.float64(1.0))))
    edge_spread[other[edge]] = float(
        wp.acos(wp.clamp(wp.dot(second, mean), wp.float64(-1.0), wp.float64(1.0)))
    )


def measure_triangles(points: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normals of twice the areas, these lengths, and the squares of the longest edges.

    Args:
        points: Vertices [m], shape [vertex, 3], float64.
        triangles: Their vertices, shape [triangle, 3].
    """
    count = len(triangles)
    normal, area, longest = np.empty((count, 3)), np.empty(count), np.empty(count)
    launch_kernel(
        measure_triangle,
        dim=count,
        inputs=[_host(points, wp.vec3d), _host(triangles, wp.vec3i)],
        outputs=[_host(normal, wp.vec3d), _host(area, wp.float64), _host(longest, wp.float64)],
        device="cpu",
    )
    return normal, area, longest


def mark_sharp_edges(
    points: np.ndarray,
    triangles: np.ndarray,
    normals: np.ndarray,
    opposite: tuple[np.ndarray, np.ndarray],
    flat: float,
    is_open: bool,
) -> np.ndarray:
    """Return whether each edge of each triangle is convex or at a boundary, shape [3 * triangle].

    Args:
        points: Vertices [m], shape [vertex, 3], float64.
        triangles: Their vertices, shape [triangle, 3].
        normals: Unit normals, shape [triangle, 3].
        opposite: First vertex beyond each edge, shape [3 * triangle + 1], and these vertices.
        flat: Sine down to which an edge is flat.
        is_open: Whether the surface is a sheet.
    """
    sharp = np.empty(3 * len(triangles), dtype=np.uint8)
    launch_kernel(
        mark_sharp_edge,
        dim=len(sharp),
        inputs=[
            _host(points, wp.vec3d),
            _host(triangles, wp.vec3i),
            _host(normals, wp.vec3d),
            _host(opposite[0], wp.int32),
            _host(opposite[1], wp.int32),
            flat,
            int(is_open),
        ],
        outputs=[_host(sharp, wp.uint8)],
        device="cpu",
    )
    return sharp.view(bool)


def average_edge_normals(
    pairs: tuple[np.ndarray, np.ndarray], normals: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean normals at edges, shape [3 * triangle, 3], and how far those of triangles are from them.

    Edges that have not two triangles get 0 and pi.

    Args:
        pairs: The two sides of each edge that has two.
        normals: Unit normals, shape [triangle, 3].
        least: Length of the sum of two normals below which it has no direction.
    """
    count = 3 * len(normals)
    normal = np.zeros((count, 3), dtype=np.float32)
    spread = np.full(count, np.pi, dtype=np.float32)
    launch_kernel(
        average_edge_normal,
        dim=len(pairs[0]),
        inputs=[_host(pairs[0], wp.int32), _host(pairs[1], wp.int32), _host(normals, wp.vec3d), least],
        outputs=[_host(normal, wp.vec3), _host(spread, wp.float32)],
        device="cpu",
    )
    return normal, spread


def _host(values: np.ndarray, dtype: type) -> wp.array:
    """Return an array of the host for kernels: its memory itself where the type fits, else a copy."""
    scalar = {wp.vec3d: np.float64, wp.float64: np.float64, wp.vec3i: np.int32, wp.int32: np.int32}
    kind = scalar.get(dtype, values.dtype)
    return wp.array(np.ascontiguousarray(values, dtype=kind), dtype=dtype, device="cpu", copy=False)
