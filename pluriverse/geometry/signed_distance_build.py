"""Construction of a signed distance grid: the distance of its nodes from the triangles, exactly.

Reads   vertices and triangles of a mesh
Writes  distances at the corners of blocks, which blocks have tiles, and distances at the nodes of those
"""

import sys
from typing import Any

import numpy as np
import warp as wp

from pluriverse.config import verbosity
from pluriverse.geometry.signed_distance_grid import BLOCK, TILE, TILE_SIZE
from pluriverse.launch import launch_kernel

# Relative amount by which the maximum distance of a query exceeds the distance that is surely found.
REACH_ROUNDING = wp.constant(1.0e-3)
# Ratio of diagonal and edge of a cube: a little more than sqrt(3).
DIAGONAL = wp.constant(1.7321)
# Maximum distance of a query without limit [m].
ANY_DISTANCE = wp.constant(1.0e10)


# Nodes from which on a line says what takes so long: 10 to 20 s on a slow processor.
ANNOUNCED_NODE_COUNT = 1_000_000


@wp.func
def query_distance(mesh: wp.uint64, point: wp.vec3, max_distance: float) -> float:
    """Return the distance of a point from a mesh, `max_distance` if that is less."""
    closest = wp.mesh_query_point_no_sign(mesh, point, max_distance)
    distance = max_distance
    if closest.result:
        on_surface = wp.mesh_eval_position(mesh, closest.face, closest.u, closest.v)
        distance = wp.length(point - on_surface)
    return distance


@wp.func
def query_sign(mesh: wp.uint64, point: wp.vec3, distance: float, cell: float) -> float:
    """Return -1 for a point with a winding number above one half, else 1."""
    max_distance = distance * (1.0 + REACH_ROUNDING) + REACH_ROUNDING * cell
    closest = wp.mesh_query_point_sign_winding_number(mesh, point, max_distance)
    return wp.where(closest.result and closest.sign < 0.0, -1.0, 1.0)


@wp.kernel(enable_backward=False, module="pluriverse.geometry.signed_distance_build")
def measure_row(
    mesh: wp.uint64,
    start: wp.array[wp.vec3],  # [row] m, first node
    spacing: float,  # m, along x
    is_closed: bool,
    # out
    value: wp.array2d[float],  # [row, node] m
):
    """Write the signed distances of one row of nodes along x.

    A distance changes by no more than the way, which bounds each search by the result of the one before.
    Where two neighbours are farther from the surface together than from each other, nothing lies between
    them, and they are on the same side of a surface without holes.
    """
    row, _ = wp.tid()
    last = float(ANY_DISTANCE)
    side = float(1.0)
    for node in range(value.shape[1]):
        point = start[row] + wp.vec3(float(node) * spacing, 0.0, 0.0)
        max_distance = (last + spacing) * (1.0 + REACH_ROUNDING)
        distance = query_distance(mesh, point, max_distance)
        if not is_closed or distance + last <= spacing * (1.0 + REACH_ROUNDING) or node == 0:
            side = query_sign(mesh, point, distance, spacing)
        value[row, node] = side * distance
        last = distance


@wp.kernel(enable_backward=False, module="pluriverse.geometry.signed_distance_build")
def mark_block(
    mesh: wp.uint64,
    center: wp.array[wp.vec3],  # [block] m
    half: float,  # m, half of an edge
    inside_band: float,  # m
    outside_band: float,  # m
    is_outside: wp.array[bool],  # [block] whether a corner is
    # out
    has_tile: wp.array[bool],  # [block]
):
    """Mark one block if it has points near the surface.

    A block that the surface does not cross is on one side of it, that of each of its corners.
    """
    block, _ = wp.tid()
    band = wp.where(is_outside[block], outside_band, inside_band)
    max_distance = DIAGONAL * half + band
    near = query_distance(mesh, center[block], max_distance) < max_distance
    if near:
        # Of small triangles the boxes tell more than the distance from the middle.
        ball = wp.vec3(half + band, half + band, half + band)
        query = wp.mesh_query_aabb(mesh, center[block] - ball, center[block] + ball)
        face = int(0)
        near = wp.mesh_query_next(query, face)
    has_tile[block] = near


def measure_nodes(
    vertices: np.ndarray,
    triangles: np.ndarray,
    name: str,
    *,
    is_closed: bool,
    lower: np.ndarray,
    cell: float,
    block_count: np.ndarray,
    narrow_band: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coarse nodes, the tile of each block and the tiles, as `SignedDistance` has them.

    Args:
        vertices: Positions [m], shape [vertex, 3].
        triangles: Vertices, counterclockwise seen from outside, shape [triangle, 3].
        name: What messages call the mesh.
        is_closed: Whether the surface has no boundary.
        lower: Lower corner of the box [m].
        cell: Edge of a cell [m].
        block_count: Blocks along x, y and z.
        narrow_band: Distances [m], inside and outside, between which blocks have tiles.
    """
    mesh = wp.Mesh(
        points=wp.array(vertices.astype(np.float32), dtype=wp.vec3, device="cpu"),
        indices=wp.array(triangles.reshape(-1).astype(np.int32), dtype=int, device="cpu"),
        support_winding_number=True,
    )
    nx, ny, nz = (int(count) for count in block_count)
    edge = cell * int(BLOCK)
    z, y = np.meshgrid(np.arange(nz + 1), np.arange(ny + 1), indexing="ij")
    starts = lower + edge * np.stack([np.zeros(z.size), y.reshape(-1), z.reshape(-1)], axis=1)
    coarse = _measure_rows(mesh, starts, edge, nx + 1, is_closed).reshape(nz + 1, ny + 1, nx + 1)

    z, y, x = np.meshgrid(np.arange(nz), np.arange(ny), np.arange(nx), indexing="ij")
    corners = lower + edge * np.stack([x.reshape(-1), y.reshape(-1), z.reshape(-1)], axis=1)
    is_outside = coarse[:-1, :-1, :-1].reshape(-1) > 0.0
    marked = wp.empty(len(corners), dtype=bool, device="cpu")
    launch_kernel(
        mark_block,
        dim=len(corners),
        inputs=[
            mesh.id,
            _points(corners + 0.5 * edge),
            0.5 * edge,
            -narrow_band[0],
            narrow_band[1],
            wp.array(is_outside, dtype=bool, device="cpu"),
        ],
        outputs=[marked],
        device="cpu",
    )
    has_tile = marked.numpy()
    block_tile = np.where(has_tile, np.cumsum(has_tile) - 1, -1).reshape(nz, ny, nx)

    size = int(TILE)
    z, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    offsets = cell * np.stack([np.zeros(z.size), y.reshape(-1), z.reshape(-1)], axis=1)
    node_count = int(has_tile.sum()) * int(TILE_SIZE)
    if node_count > ANNOUNCED_NODE_COUNT and verbosity() is not False:
        print(
            f"Signed distance of {name}: {node_count / 1e6:.0f} million nodes, {cell:.2g} m apart; they are "
            "kept for the next time. A lower sdf_max_resolution (in URDF <sdf resolution=>) takes less.",
            file=sys.stderr,
            flush=True,
        )
    starts = (corners[has_tile][:, None] + offsets).reshape(-1, 3)
    tiles = _measure_rows(mesh, starts, cell, size, is_closed).reshape(-1, int(TILE_SIZE))
    return coarse, block_tile.astype(np.int32), tiles


def _measure_rows(
    mesh: wp.Mesh, starts: np.ndarray, spacing: float, node_count: int, is_closed: bool
) -> np.ndarray:
    """Return the distances of rows of nodes along x [m], shape [row, node]."""
    values = wp.empty((len(starts), node_count), dtype=float, device="cpu")
    launch_kernel(
        measure_row,
        dim=len(starts),
        inputs=[mesh.id, _points(starts), spacing, is_closed],
        outputs=[values],
        device="cpu",
    )
    return values.numpy()


def _points(points: np.ndarray) -> Any:
    return wp.array(np.ascontiguousarray(points, dtype=np.float32), dtype=wp.vec3, device="cpu")
