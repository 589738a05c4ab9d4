"""Height fields on the device: heights, and which edges are sharp."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

# Sine of the angle at an edge below which it is flat: contacts then come from the faces alone.
FLAT_EDGE = 1.0e-4


@wp.struct
class HeightFieldData:
    """All height fields of a model, unscaled."""

    mesh_field: wp.array[int]
    """Height field of an entry of `Model.meshes`, -1 for meshes, shape [mesh]."""
    first: wp.array[int]
    """First grid point of each field in `height`, shape [field]."""
    first_triangle: wp.array[int]
    """First triangle of each field in `sharp`, shape [field]."""
    row_count: wp.array[int]
    """Rows of grid points, along y, shape [field]."""
    column_count: wp.array[int]
    """Columns of grid points, along x, shape [field]."""
    half: wp.array[wp.vec2]
    """Half of the extent along x and y [m], shape [field]."""
    height: wp.array[float]
    """Heights [m], row by row, shape [grid point]."""
    sharp: wp.array[wp.uint8]
    """Bits 0 to 2: edges of the triangle that are convex or at the border, shape [triangle]."""


def make_height_field_data(meshes: Sequence[Any], sources: Sequence[int], device: Any) -> HeightFieldData:
    """Return the height fields among `meshes` on the device.

    Args:
        meshes: Meshes and height fields of the model.
        sources: Which of them are height fields.
        device: Where the arrays go.
    """
    fields = [meshes[index] for index in sources]
    mesh_field = np.full(len(meshes), -1)
    mesh_field[list(sources)] = np.arange(len(fields))
    points = np.array([field.nrow * field.ncol for field in fields], dtype=np.int64)
    cells = np.array([2 * (field.nrow - 1) * (field.ncol - 1) for field in fields], dtype=np.int64)
    data = HeightFieldData()
    for name, values in (
        ("mesh_field", mesh_field),
        ("first", np.cumsum(points) - points),
        ("first_triangle", np.cumsum(cells) - cells),
        ("row_count", np.array([field.nrow for field in fields])),
        ("column_count", np.array([field.ncol for field in fields])),
    ):
        setattr(data, name, wp.array(values.astype(np.int32), dtype=int, device=device))
    half = np.array([(field.hx, field.hy) for field in fields], dtype=np.float32).reshape(-1, 2)
    data.half = wp.array(half, dtype=wp.vec2, device=device)
    heights = np.concatenate([*(field.heights.reshape(-1) for field in fields), np.zeros(0, np.float32)])
    data.height = wp.array(heights.astype(np.float32), dtype=float, device=device)
    sharp = np.concatenate([*(_sharp_edges(field) for field in fields), np.zeros(0, np.uint8)])
    data.sharp = wp.array(sharp.astype(np.uint8), dtype=wp.uint8, device=device)
    return data


def _sharp_edges(field: Any) -> np.ndarray:
    """Return the sharp edges of each triangle of a field as bits, shape [triangle].

    Triangles of a cell are (low, right, far) and (low, far, back). Whether an edge is convex does not depend
    on the scale.
    """
    rows, columns = field.nrow, field.ncol
    grid = field.vertices.astype(np.float64).reshape(rows, columns, 3)
    low, right = grid[:-1, :-1], grid[:-1, 1:]
    back, far = grid[1:, :-1], grid[1:, 1:]
    # Beyond each edge: the third corner of the neighbour, NaN at the border.
    padded = np.full((rows + 2, columns + 2, 3), np.nan)
    padded[1:-1, 1:-1] = grid

    def shifted(row: int, column: int) -> np.ndarray:
        part: np.ndarray = padded[1 + row : rows + row, 1 + column : columns + column]
        return part

    first = [shifted(-1, 0), shifted(1, 2), back]
    second = [right, shifted(2, 1), shifted(0, -1)]
    bits = np.zeros((rows - 1, columns - 1, 2), dtype=np.uint8)
    for half, (corners, beyond) in enumerate((((low, right, far), first), ((low, far, back), second))):
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
        for edge, point in enumerate(beyond):
            offset = point - corners[edge]
            sine = np.einsum("ijk,ijk->ij", normal, offset) / np.linalg.norm(offset, axis=-1)
            is_sharp = np.isnan(sine) | (sine < -FLAT_EDGE)
            bits[..., half] |= (is_sharp.astype(np.uint8) << edge).astype(np.uint8)
    return bits.reshape(-1)


@wp.func
def grid_point(data: HeightFieldData, field: int, row: int, column: int, scale: wp.vec3) -> wp.vec3:
    """Return a grid point [m], frame of the height field."""
    rows = data.row_count[field]
    columns = data.column_count[field]
    half = data.half[field]
    return wp.vec3(
        scale[0] * half[0] * (2.0 * float(column) / float(columns - 1) - 1.0),
        scale[1] * half[1] * (2.0 * float(row) / float(rows - 1) - 1.0),
        scale[2] * data.height[data.first[field] + row * columns + column],
    )
