"""Signed distance of a triangle mesh on a grid: the depth of a point inside, and the direction out.

The distance of each node is that of its closest triangle, exactly; its sign is that of the winding number, so
that small holes and overlapping parts do no harm. Between nodes the distance is interpolated. Fields are kept
on disk under a digest of the mesh and the options.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry.mesh_cache import cache_folder, read_arrays, write_arrays

# Version of the files in the cache; another one is not read.
CACHE_FORMAT = 1
# Number of triangles, or of cells along the longest side, from which on a grid is kept on disk. A smaller one
# takes a tenth of a second.
CACHED_TRIANGLE_COUNT = 1000
CACHED_RESOLUTION = 100
# Cells along the longest side of the box around a mesh, unless the caller says otherwise.
SDF_MAX_RESOLUTION = 64
# Largest resolution of a grid. Tiles of a surface take 4 kB for each 64 cells of its area.
RESOLUTION_LIMIT = 1024
# Cells along each axis of a block.
BLOCK_SIZE = 8
# Share of all directions from its deepest point in which a surface with holes must lie. For a half sphere, it
# is one half.
ENCLOSED = 0.75
# Width of the default padding and of the default narrow band, in cells.
PADDING_CELLS = 2.0
BAND_CELLS = 2.0


class SignedDistance:
    """Distances from the surface of a mesh on a grid of two levels; made by `Mesh.signed_distance`.

    The box around the mesh is divided into blocks of 8 x 8 x 8 cells. The corners of all blocks are nodes;
    blocks near the surface have a tile with a node at each corner of each cell. Between nodes the distance
    is interpolated linearly along each axis: it is off by less than the edge of a cell near the surface, and
    much less where the surface is smooth.
    """

    def __init__(
        self, lower: np.ndarray, cell: float, coarse: np.ndarray, block_tile: np.ndarray, tiles: np.ndarray
    ):
        self.lower = lower
        """Lower corner of the box [m], mesh axes."""
        self.cell = float(cell)
        """Edge of a cell [m]."""
        self.coarse = coarse
        """Distances at the corners of blocks [m], negative inside, shape [z, y, x], float32."""
        self.block_tile = block_tile
        """Tile of each block, -1 for none, shape [z, y, x]."""
        self.tiles = tiles
        """Distances at the nodes of tiles [m], x fastest, shape [tile, 729], float32."""

    @property
    def upper(self) -> np.ndarray:
        """Upper corner of the box [m], mesh axes."""
        return self.lower + self.cell * BLOCK_SIZE * np.array(self.block_tile.shape[::-1])

    @property
    def depth(self) -> float:
        """Depth of the node that is deepest inside [m]; 0 if none is inside."""
        lowest = min(float(self.coarse.min()), float(self.tiles.min()) if self.tiles.size else 0.0)
        return max(-lowest, 0.0)

    def deepest_node(self) -> np.ndarray:
        """Return the position of the node with the least value [m], mesh axes."""
        if not self.tiles.size or self.coarse.min() <= self.tiles.min():
            node = np.unravel_index(int(self.coarse.argmin()), self.coarse.shape)
            cells = BLOCK_SIZE * np.array(node[::-1])
        else:
            tile, node = np.divmod(int(self.tiles.argmin()), self.tiles.shape[1])
            size = BLOCK_SIZE + 1
            block = np.argwhere(self.block_tile == tile)[0, ::-1]
            cells = BLOCK_SIZE * block + np.array([node % size, node // size % size, node // size**2])
        return self.lower + self.cell * cells

    @property
    def byte_count(self) -> int:
        """Size of the arrays on a device [byte]."""
        return self.coarse.nbytes + self.block_tile.nbytes + self.tiles.nbytes

    def sample(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return distances [m] and their gradients at points [point, 3] in mesh axes."""
        from pluriverse.geometry.signed_distance_grid import make_distance_data, sample_points

        points = np.asarray(points, dtype=np.float32)
        values, gradients, _, _ = sample_points(make_distance_data([self], "cpu"), points)
        return values, gradients


def check_options(
    name: str,
    *,
    max_resolution: int | None = None,
    target_voxel_size: float | None = None,
    narrow_band_range: tuple[float, float] | None = None,
    padding: float | None = None,
) -> None:
    """Check the options of a grid.

    Raises:
        ValueError: If one is out of range; `name` says whose it is.
    """
    _resolution(name, max_resolution)
    _length("sdf_target_voxel_size", name, target_voxel_size, 0.0)
    _length("sdf_padding", name, padding, 0.0)
    if narrow_band_range is not None:
        _band(name, narrow_band_range)


def compute_signed_distance(
    vertices: np.ndarray,
    triangles: np.ndarray,
    name: str,
    *,
    is_closed: bool,
    max_resolution: int | None = None,
    target_voxel_size: float | None = None,
    narrow_band_range: tuple[float, float] | None = None,
    padding: float | None = None,
    cache_dir: str | Path | None = None,
) -> SignedDistance:
    """Return the signed distance grid of a mesh; see `Mesh.signed_distance`.

    Raises:
        ValueError: If an option is out of range, or the mesh encloses nothing.
    """
    lower, upper = vertices.min(axis=0).astype(np.float64), vertices.max(axis=0).astype(np.float64)
    extent = float((upper - lower).max())
    if not extent > 0.0:
        raise ValueError(f"{name}: all vertices are in one place, so there is no distance to compute.")
    cell = _cell_size(name, extent, max_resolution, target_voxel_size)
    pad = _length("sdf_padding", name, padding, PADDING_CELLS * cell)
    band = (-BAND_CELLS * cell, BAND_CELLS * cell)
    if narrow_band_range is not None:
        band = _band(name, narrow_band_range)
    block_count = np.maximum(np.ceil((upper - lower + 2.0 * pad) / (BLOCK_SIZE * cell) - 1e-6), 1).astype(int)
    # The mesh is in the middle of the box.
    lower = (0.5 * (lower + upper - block_count * BLOCK_SIZE * cell)).astype(np.float32)

    options = [lower.tolist(), cell, block_count.tolist(), list(band), is_closed]
    path = None
    if len(triangles) >= CACHED_TRIANGLE_COUNT or extent > CACHED_RESOLUTION * cell:
        path = cache_folder(cache_dir) / f"{_cache_key(vertices, triangles, options)}.npz"
    arrays = None if path is None else read_arrays(path)
    if arrays is None or not {"coarse", "block_tile", "tiles"} <= arrays.keys():
        # Kernels are parsed when the module that declares them loads.
        from pluriverse.geometry.signed_distance_build import measure_nodes

        points = vertices.astype(np.float64) - vertices.mean(axis=0)
        a, b, c = points[triangles.T]
        is_inverted = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() < 0.0
        coarse, block_tile, tiles = measure_nodes(
            vertices,
            triangles[:, ::-1] if is_inverted else triangles,
            name,
            is_closed=is_closed,
            lower=lower.astype(np.float64),
            cell=cell,
            block_count=block_count,
            narrow_band=band,
        )
        arrays = {"coarse": coarse, "block_tile": block_tile, "tiles": tiles}
        if path is not None:
            write_arrays(path, arrays, f"the signed distance of {name}", compress=False)
    grid = SignedDistance(lower, cell, arrays["coarse"], arrays["block_tile"], arrays["tiles"])
    if not is_closed and not _encloses(vertices, triangles, grid.deepest_node()):
        raise ValueError(
            f"{name}: the surface has holes so large that it encloses nothing: no point is clearly inside. "
            "Close the mesh, or let it collide as a sheet."
        )
    return grid


def _encloses(vertices: np.ndarray, triangles: np.ndarray, point: np.ndarray) -> bool:
    """Return whether a surface is seen from a point in most directions, from its inside or its outside."""
    a, b, c = (vertices.astype(np.float64) - point)[triangles.T]
    length_a, length_b, length_c = (np.linalg.norm(corner, axis=1) for corner in (a, b, c))
    # The solid angle of each triangle ([VanOosterom1983]).
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    denominator = length_a * length_b * length_c + np.einsum("ij,ij->i", a, b) * length_c
    denominator += np.einsum("ij,ij->i", b, c) * length_a + np.einsum("ij,ij->i", c, a) * length_b
    return bool(abs(2.0 * np.arctan2(volume, denominator).sum()) > 4.0 * np.pi * ENCLOSED)


def _cell_size(name: str, extent: float, max_resolution: int | None, voxel_size: float | None) -> float:
    """Return the edge of a cell [m]."""
    resolution = _resolution(name, max_resolution)
    cell = extent / float(resolution)
    if voxel_size is not None:
        cell = _length("sdf_target_voxel_size", name, voxel_size, 0.0)
    if not extent <= RESOLUTION_LIMIT * cell:
        raise ValueError(
            f"{name}: a cell of {cell:g} m would divide its {extent:g} m into "
            f"{extent / max(cell, 1e-30):.0f} cells, but at most {RESOLUTION_LIMIT} are possible. Raise "
            "sdf_target_voxel_size or lower sdf_max_resolution."
        )
    return cell


def _band(name: str, band: Any) -> tuple[float, float]:
    """Return the narrow band [m]."""
    if len(band) != 2 or not (-np.inf < band[0] <= 0.0 <= band[1] < np.inf):
        raise ValueError(
            f"{name}: sdf_narrow_band_range is {tuple(band)} m, but a finite distance inside (<= 0) and one "
            "outside (>= 0) are needed."
        )
    return float(band[0]), float(band[1])


def _resolution(name: str, max_resolution: int | None) -> int:
    """Return the number of cells along the longest side."""
    resolution = SDF_MAX_RESOLUTION if max_resolution is None else max_resolution
    is_integer = isinstance(resolution, int | np.integer) and not isinstance(resolution, bool)
    if not is_integer or not BLOCK_SIZE <= resolution <= RESOLUTION_LIMIT:
        raise ValueError(
            f"{name}: sdf_max_resolution is {max_resolution}, but it must be a whole number of cells from "
            f"{BLOCK_SIZE} to {RESOLUTION_LIMIT}."
        )
    return int(resolution)


def _length(option: str, name: str, value: float | None, default: float) -> float:
    if value is None:
        return default
    if not 0.0 < value < np.inf:
        raise ValueError(f"{name}: {option} is {value} m, but it must be a finite length > 0.")
    return float(value)


def _cache_key(vertices: np.ndarray, triangles: np.ndarray, options: list[Any]) -> str:
    digest = hashlib.blake2b(np.ascontiguousarray(vertices).tobytes(), digest_size=20)
    digest.update(np.ascontiguousarray(triangles).tobytes())
    digest.update(json.dumps([CACHE_FORMAT, "signed distance", options]).encode())
    return digest.hexdigest()
