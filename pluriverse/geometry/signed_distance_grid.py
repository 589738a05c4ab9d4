"""Signed distance grids on a device, and the Warp function that interpolates them.

A grid has two levels. Its box is divided into blocks of 8 x 8 x 8 cells. The corners of all blocks are nodes
of the coarse level; blocks near the surface have a tile, which holds all 9 x 9 x 9 nodes of the fine level.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel

# Cells of a block along each axis, nodes of a tile along each axis, and all nodes of a tile.
BLOCK = wp.constant(8)
TILE = wp.constant(9)
TILE_SIZE = wp.constant(729)


@wp.struct
class SignedDistanceData:
    """The grids of any number of meshes, unscaled."""

    lower: wp.array[wp.vec3]
    """Lower corner of the box [m], mesh axes, shape [grid]."""
    cell: wp.array[float]
    """Edge of a fine cell [m], shape [grid]."""
    block_count: wp.array[wp.vec3i]
    """Blocks along each axis, shape [grid]."""
    node_start: wp.array[int]
    """First coarse node in `value`, x fastest, shape [grid]."""
    block_start: wp.array[int]
    """First block in `tile_start`, x fastest, shape [grid]."""
    tile_start: wp.array[int]
    """First node of the tile in `value`, x fastest, -1 for none, shape [block]."""
    value: wp.array[float]
    """Distance to the surface [m], negative inside, shape [node]."""


@wp.struct
class DistanceSample:
    """An interpolated distance."""

    value: float
    """Distance to the surface [m], negative inside."""
    gradient: wp.vec3
    """Derivative of `value` by the point, mesh axes; of about unit length, and outwards."""
    lower: float
    """Lower bound of the exact distance [m]."""
    upper: float
    """What it is not above [m]."""


@wp.struct
class GridCell:
    """The cell of a grid that is closest to a point."""

    local: wp.vec3
    """Closest point of the cell, in parts of its edges."""
    way: wp.vec3
    """From there to the point [m], zero inside the box of the grid."""
    spacing: float
    """Edge of the cell [m]."""
    low: wp.vec4
    """Values at the lower corners in z [m], x fastest."""
    high: wp.vec4
    """Values at the upper corners in z [m], x fastest."""


@wp.func
def find_grid_cell(data: wp.ref[SignedDistanceData], grid: int, point: wp.vec3) -> GridCell:
    """Return the cell of a grid that is closest to a point [m] in the axes of the unscaled mesh."""
    cell = data.cell[grid]
    count = data.block_count[grid]
    cell_position = (point - data.lower[grid]) / cell
    size = float(BLOCK) * wp.vec3(float(count[0]), float(count[1]), float(count[2]))
    inside = wp.min(wp.max(cell_position, wp.vec3(0.0, 0.0, 0.0)), size)
    x = wp.min(int(inside[0]) // BLOCK, count[0] - 1)
    y = wp.min(int(inside[1]) // BLOCK, count[1] - 1)
    z = wp.min(int(inside[2]) // BLOCK, count[2] - 1)
    spacing = cell
    local = inside - float(BLOCK) * wp.vec3(float(x), float(y), float(z))
    row = TILE
    layer = TILE * TILE
    node = data.tile_start[data.block_start[grid] + (z * count[1] + y) * count[0] + x]
    if node >= 0:
        x = wp.min(int(local[0]), BLOCK - 1)
        y = wp.min(int(local[1]), BLOCK - 1)
        z = wp.min(int(local[2]), BLOCK - 1)
        local = local - wp.vec3(float(x), float(y), float(z))
    else:
        spacing = cell * float(BLOCK)
        local = local / float(BLOCK)
        row = count[0] + 1
        layer = row * (count[1] + 1)
        node = data.node_start[grid]
    node = node + z * layer + y * row + x
    result = GridCell()
    result.local = local
    result.way = cell * (cell_position - inside)
    result.spacing = spacing
    result.low = wp.vec4(
        data.value[node], data.value[node + 1], data.value[node + row], data.value[node + row + 1]
    )
    node = node + layer
    result.high = wp.vec4(
        data.value[node], data.value[node + 1], data.value[node + row], data.value[node + row + 1]
    )
    return result


@wp.func
def interpolate_grid_cell(cell: GridCell) -> wp.vec4:
    """Return gradient (x, y, z) and value [m] at the point of a cell that is closest to the one sought."""
    tx, ty, tz = cell.local[0], cell.local[1], cell.local[2]
    v000, v100, v010, v110 = cell.low[0], cell.low[1], cell.low[2], cell.low[3]
    v001, v101, v011, v111 = cell.high[0], cell.high[1], cell.high[2], cell.high[3]
    v00 = v000 + tx * (v100 - v000)
    v10 = v010 + tx * (v110 - v010)
    v01 = v001 + tx * (v101 - v001)
    v11 = v011 + tx * (v111 - v011)
    v0 = v00 + ty * (v10 - v00)
    v1 = v01 + ty * (v11 - v01)
    along_x0 = (v100 - v000) + ty * ((v110 - v010) - (v100 - v000))
    along_x1 = (v101 - v001) + ty * ((v111 - v011) - (v101 - v001))
    along_y0 = v10 - v00
    along_y1 = v11 - v01
    value = v0 + tz * (v1 - v0)
    gradient = wp.vec3(
        along_x0 + tz * (along_x1 - along_x0), along_y0 + tz * (along_y1 - along_y0), v1 - v0
    ) / float(cell.spacing)
    return wp.vec4(gradient[0], gradient[1], gradient[2], value)


@wp.func
def extend_beyond_grid(inside: wp.vec4, way: wp.vec3) -> wp.vec4:
    """Return gradient and value [m] at the end of a way [m] out of the box of a grid, from those inside."""
    result = inside
    length = wp.length(way)
    if length > 0.0:
        # Across the sides of the box that the point is beyond, the way alone changes.
        for axis in range(3):
            if way[axis] != 0.0:
                result[axis] = way[axis] / length
        result[3] = inside[3] + length
    return result


@wp.func
def interpolate_signed_distance(data: wp.ref[SignedDistanceData], grid: int, point: wp.vec3) -> wp.vec4:
    """Return gradient (x, y, z) and value [m] of `sample_signed_distance`, without its bounds."""
    cell = find_grid_cell(data, grid, point)
    return extend_beyond_grid(interpolate_grid_cell(cell), cell.way)


@wp.func
def sample_signed_distance(data: wp.ref[SignedDistanceData], grid: int, point: wp.vec3) -> DistanceSample:
    """Return the distance from a surface and its gradient at any point, by trilinear interpolation.

    Outside the box the value is that of the closest point of the box plus the way there, which the distance
    does not exceed.

    Args:
        data: The grids.
        grid: The grid.
        point: Point [m] in the axes of the unscaled mesh.
    """
    cell = find_grid_cell(data, grid, point)
    spacing = cell.spacing
    tx, ty, tz = cell.local[0], cell.local[1], cell.local[2]
    v000, v100, v010, v110 = cell.low[0], cell.low[1], cell.low[2], cell.low[3]
    v001, v101, v011, v111 = cell.high[0], cell.high[1], cell.high[2], cell.high[3]
    # A distance changes by no more than the way, here that from each corner of the cell.
    xx0 = tx * tx
    yy0 = ty * ty
    zz0 = tz * tz
    xx1 = (1.0 - tx) * (1.0 - tx)
    yy1 = (1.0 - ty) * (1.0 - ty)
    zz1 = (1.0 - tz) * (1.0 - tz)
    r000 = spacing * wp.sqrt(xx0 + yy0 + zz0)
    r100 = spacing * wp.sqrt(xx1 + yy0 + zz0)
    r010 = spacing * wp.sqrt(xx0 + yy1 + zz0)
    r110 = spacing * wp.sqrt(xx1 + yy1 + zz0)
    r001 = spacing * wp.sqrt(xx0 + yy0 + zz1)
    r101 = spacing * wp.sqrt(xx1 + yy0 + zz1)
    r011 = spacing * wp.sqrt(xx0 + yy1 + zz1)
    r111 = spacing * wp.sqrt(xx1 + yy1 + zz1)
    lower = wp.max(
        wp.max(wp.max(v000 - r000, v100 - r100), wp.max(v010 - r010, v110 - r110)),
        wp.max(wp.max(v001 - r001, v101 - r101), wp.max(v011 - r011, v111 - r111)),
    )
    upper = wp.min(
        wp.min(wp.min(v000 + r000, v100 + r100), wp.min(v010 + r010, v110 + r110)),
        wp.min(wp.min(v001 + r001, v101 + r101), wp.min(v011 + r011, v111 + r111)),
    )
    length = wp.length(cell.way)
    if length > 0.0:
        # The way to the box and on from there bends outwards, so it is at least the hypotenuse.
        lower = wp.max(lower, 0.0)
        lower = wp.sqrt(lower * lower + length * length)
        upper = upper + length
    both = extend_beyond_grid(interpolate_grid_cell(cell), cell.way)
    sample = DistanceSample()
    sample.value = both[3]
    sample.gradient = wp.vec3(both[0], both[1], both[2])
    sample.lower = lower
    sample.upper = upper
    return sample


def make_distance_data(grids: Sequence[Any], device: Any) -> SignedDistanceData:
    """Return grids (`SignedDistance`) on a device, numbered as they come."""
    data = SignedDistanceData()
    node_start, block_start, tile_start, values = [], [], [], []
    node_count = block_count = 0
    for grid in grids:
        node_start.append(node_count)
        block_start.append(block_count)
        first_tile = node_count + grid.coarse.size
        start = np.where(grid.block_tile >= 0, first_tile + grid.block_tile * int(TILE_SIZE), -1)
        tile_start.append(start.reshape(-1))
        values += [grid.coarse.reshape(-1), grid.tiles.reshape(-1)]
        node_count = first_tile + grid.tiles.size
        block_count += grid.block_tile.size
    if node_count > np.iinfo(np.int32).max:
        raise ValueError(
            f"the signed distance grids of {len(grids)} meshes have {node_count} nodes in all, but at most "
            f"{np.iinfo(np.int32).max} can be numbered. Lower sdf_max_resolution."
        )
    lower = np.array([grid.lower for grid in grids], dtype=np.float32).reshape(-1, 3)
    data.lower = wp.array(lower, dtype=wp.vec3, device=device)
    cells = np.array([grid.cell for grid in grids], dtype=np.float32)
    data.cell = wp.array(cells, dtype=float, device=device)
    counts = np.array([grid.block_tile.shape[::-1] for grid in grids], dtype=np.int32).reshape(-1, 3)
    data.block_count = wp.array(counts, dtype=wp.vec3i, device=device)
    starts = {"node_start": [node_start], "block_start": [block_start], "tile_start": tile_start}
    for name, rows in starts.items():
        joined = np.concatenate([*rows, []]).astype(np.int32)
        setattr(data, name, wp.array(joined, dtype=int, device=device))
    joined = np.concatenate([*values, []]).astype(np.float32)
    data.value = wp.array(joined, dtype=float, device=device)
    return data


@wp.kernel(enable_backward=False, module="pluriverse.geometry.signed_distance_grid")
def sample_point(
    data: SignedDistanceData,
    point: wp.array[wp.vec3],  # [point] m
    # out
    value: wp.array[float],  # [point] m
    gradient: wp.array[wp.vec3],  # [point]
    lower: wp.array[float],  # [point] m
    upper: wp.array[float],  # [point] m
):
    """Write the distance of one point from the surface of the first grid."""
    index, _ = wp.tid()
    sample = sample_signed_distance(data, 0, point[index])
    value[index] = sample.value
    gradient[index] = sample.gradient
    lower[index] = sample.lower
    upper[index] = sample.upper


def sample_points(data: SignedDistanceData, points: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return distances [m] of points [m] by the first grid, gradients, lower and upper bounds [m]."""
    device = data.value.device
    values, lower, upper = (wp.empty(len(points), dtype=float, device=device) for _ in range(3))
    gradients = wp.empty(len(points), dtype=wp.vec3, device=device)
    launch_kernel(
        sample_point,
        dim=len(points),
        inputs=[data, wp.array(points, dtype=wp.vec3, device=device)],
        outputs=[values, gradients, lower, upper],
        device=device,
    )
    return values.numpy(), gradients.numpy(), lower.numpy(), upper.numpy()
