"""Height field: a surface given by heights on a regular grid."""

import functools
import hashlib
from typing import Any

import numpy as np

from pluriverse.geometry.mesh_normals import compute_corner_normals


class Heightfield:
    """Terrain: heights over a rectangle, solid below and with vertical sides.

    Rows run along y and columns along x: `data[row, column]` is the height at
    x = -hx + 2 hx column / (ncol - 1), y = -hy + 2 hy row / (nrow - 1). Each cell is two triangles, divided
    from its corner of lowest x and y to the opposite one.

    Args:
        data: Heights, shape [nrow, ncol], of any scale.
        nrow: Number of rows, 2 or more.
        ncol: Number of columns, 2 or more.
        hx: Half of the extent along x [m].
        hy: Half of the extent along y [m].
        min_z: Height of the lowest point of the data [m]; given together with `max_z`. Without the two, the
            data are heights [m].
        max_z: Height of the highest point of the data [m]. Constant data lie at `min_z`.

    Raises:
        ValueError: If sizes do not agree, are not positive, or a height is not finite.
    """

    is_convex_hull = False
    """Whether this is the convex hull of a mesh; never."""

    def __init__(
        self,
        data: Any,
        nrow: int,
        ncol: int,
        hx: float = 1.0,
        hy: float = 1.0,
        min_z: float | None = None,
        max_z: float | None = None,
    ):
        heights = _checked_heights(data, nrow, ncol)
        for name, value in (("hx", hx), ("hy", hy)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"height field: {name} is {value} m, but it must be finite and > 0.")
        low, high = float(heights.min()), float(heights.max())
        self.nrow = int(nrow)
        """Number of rows, along y."""
        self.ncol = int(ncol)
        """Number of columns, along x."""
        self.hx = float(hx)
        """Half of the extent along x [m]."""
        self.hy = float(hy)
        """Half of the extent along y [m]."""
        if (min_z is None) != (max_z is None):
            raise ValueError(
                f"height field: min_z is {min_z} and max_z {max_z}. Give both, or neither if the data are "
                "heights in metres."
            )
        self.min_z = low if min_z is None else float(min_z)
        """Height of the lowest point of the data [m]."""
        self.max_z = high if max_z is None else float(max_z)
        """Height of the highest point of the data [m]."""
        if not (np.isfinite([self.min_z, self.max_z]).all() and self.min_z <= self.max_z):
            raise ValueError(
                f"height field: min_z is {min_z} m and max_z {max_z} m, but they must be finite and in order."
            )
        span = high - low
        normalized = (heights - low) / span if span > 0.0 else np.zeros_like(heights)
        self.data: np.ndarray = normalized.astype(np.float32)
        """Heights from 0 (`min_z`) to 1 (`max_z`), shape [nrow, ncol], float32, read-only."""
        self.data.flags.writeable = False
        self.name = "height field"
        """Name of the height field in messages."""
        self.color: tuple[float, float, float] | None = None
        """Red, green and blue from 0 to 1, or None."""
        metres = heights if min_z is None else self.min_z + normalized * (self.max_z - self.min_z)
        self.heights: np.ndarray = metres.astype(np.float32)
        """Heights [m], shape [nrow, ncol], float32, read-only."""
        self.heights.flags.writeable = False

    @functools.cached_property
    def content_key(self) -> bytes:
        """Digest of extent and heights: equal for height fields of equal content."""
        digest = hashlib.blake2b(b"height field", digest_size=16)
        digest.update(np.array([self.nrow, self.ncol, self.hx, self.hy], dtype=np.float64).tobytes())
        digest.update(self.heights.tobytes())
        return digest.digest()

    @functools.cached_property
    def vertices(self) -> np.ndarray:
        """Grid points [m], row by row, shape [nrow * ncol, 3], float32."""
        x = np.linspace(-self.hx, self.hx, self.ncol)
        y = np.linspace(-self.hy, self.hy, self.nrow)
        grid_x, grid_y = np.meshgrid(x, y)
        return np.stack([grid_x, grid_y, self.heights], axis=-1).reshape(-1, 3).astype(np.float32)

    @functools.cached_property
    def triangles(self) -> np.ndarray:
        """Vertex indices, counterclockwise seen from above, two per cell, shape [triangle, 3], int32."""
        corner = np.arange(self.nrow * self.ncol).reshape(self.nrow, self.ncol)
        low, right = corner[:-1, :-1], corner[:-1, 1:]
        back, far = corner[1:, :-1], corner[1:, 1:]
        cells = np.stack([low, right, far, low, far, back], axis=-1)
        return cells.reshape(-1, 3).astype(np.int32)

    @functools.cached_property
    def corner_normals(self) -> np.ndarray:
        """Unit normals to draw the corners of triangles with, smooth but for edges: [triangle, 3, 3]."""
        return compute_corner_normals(self.vertices, self.triangles)

    def highest_near(self, x: float = 0.0, y: float = 0.0, *, radius: float = 0.5) -> float:
        """Return the greatest height of the grid points around a position [m], to place a robot there.

        Args:
            x: Position along x [m].
            y: Position along y [m].
            radius: Radius around it [m].

        Raises:
            ValueError: If there is no grid point within the radius.
        """
        vertices = self.vertices
        near = np.hypot(vertices[:, 0] - x, vertices[:, 1] - y) <= radius
        if not near.any():
            raise ValueError(
                f"height field: no grid point lies within {radius} m of ({x}, {y}); the field reaches to "
                f"({self.hx}, {self.hy}) m and has {self.ncol} columns and {self.nrow} rows. Choose another "
                "place or a larger radius."
            )
        return float(vertices[near, 2].max())

    @property
    def indices(self) -> np.ndarray:
        """Vertex indices, three per triangle, shape [3 * triangle], int32."""
        return self.triangles.reshape(-1)

    @classmethod
    def create_from_mesh(cls, mesh: Any, *, resolution: float = 0.1) -> "Heightfield":
        """Return the upper surface of a mesh as a height field over its bounding box.

        Args:
            mesh: A `Mesh`.
            resolution: Distance of grid points [m], at most.

        Raises:
            ValueError: If the resolution is not positive, or the mesh leaves part of its rectangle uncovered.
        """
        if not 0.0 < resolution < np.inf:
            raise ValueError(f"height field: resolution is {resolution} m, but it must be finite and > 0.")
        lower, upper = (corner.astype(np.float64) for corner in mesh.aabb)
        extent = upper - lower
        if not (extent[:2] > 0.0).all():
            raise ValueError(
                f"{mesh.name}: a mesh of extent {extent.tolist()} m covers no area of the ground."
            )
        ncol, nrow = (max(2, int(np.ceil(length / resolution)) + 1) for length in extent[:2])
        heights = _upper_surface(mesh, lower, upper, nrow, ncol)
        missing = np.isnan(heights)
        if missing.any():
            row, column = np.argwhere(missing)[0]
            raise ValueError(
                f"{mesh.name}: nothing lies over {int(missing.sum())} of {heights.size} grid points, the "
                f"first at row {row}, column {column}. Cut the mesh to the rectangle that it covers, or use "
                "it as a mesh."
            )
        return cls(heights, nrow, ncol, 0.5 * extent[0], 0.5 * extent[1])

    def __repr__(self) -> str:
        return (
            f"Heightfield({self.nrow} x {self.ncol}, {2 * self.hx:g} m x {2 * self.hy:g} m, "
            f"{self.min_z:g} m to {self.max_z:g} m)"
        )


def _checked_heights(data: Any, nrow: int, ncol: int) -> np.ndarray:
    heights = np.asarray(data, dtype=np.float64)
    if nrow < 2 or ncol < 2 or heights.shape not in ((nrow, ncol), (nrow * ncol,)):
        raise ValueError(
            f"height field: the data have shape {heights.shape}, nrow is {nrow} and ncol {ncol}, but the "
            "data must have shape [nrow, ncol] with two rows and columns or more."
        )
    heights = heights.reshape(nrow, ncol)
    bad = ~(np.abs(heights) <= np.finfo(np.float32).max)  # NaN too
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"height field: the height at row {row}, column {column} is {heights[row, column]}; fill in all "
            f"{int(bad.sum())} heights that are not finite in single precision."
        )
    return heights


def _upper_surface(mesh: Any, lower: np.ndarray, upper: np.ndarray, nrow: int, ncol: int) -> np.ndarray:
    """Return the greatest height of a mesh at each point of a grid [m], NaN where there is nothing."""
    heights = np.full((nrow, ncol), np.nan)
    step = (upper[:2] - lower[:2]) / [ncol - 1, nrow - 1]
    points = mesh.vertices.astype(np.float64)
    # Grid points on the boundary of the mesh belong to it, up to this fraction of a triangle.
    tolerance = 1e-6
    for a, b, c in points[mesh.triangles]:
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if area == 0.0:
            continue
        corners = np.array([a, b, c])
        first = np.ceil((corners[:, :2].min(axis=0) - lower[:2]) / step - tolerance).astype(int)
        last = np.floor((corners[:, :2].max(axis=0) - lower[:2]) / step + tolerance).astype(int)
        columns = np.arange(max(first[0], 0), min(last[0], ncol - 1) + 1)
        rows = np.arange(max(first[1], 0), min(last[1], nrow - 1) + 1)
        if not len(rows) or not len(columns):
            continue
        x, y = np.meshgrid(lower[0] + columns * step[0], lower[1] + rows * step[1])
        u = ((x - a[0]) * (c[1] - a[1]) - (y - a[1]) * (c[0] - a[0])) / area
        v = ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / area
        inside = (u >= -tolerance) & (v >= -tolerance) & (u + v <= 1.0 + tolerance)
        z = np.where(inside, a[2] + u * (b[2] - a[2]) + v * (c[2] - a[2]), np.nan)
        region = np.ix_(rows, columns)
        heights[region] = np.fmax(heights[region], z)
    return heights
