"""Collider of a height field and a convex shape: the triangles under and around the shape, one by one.

A height field is solid below, and its border is that of a block: side walls go straight down from it. A wall
of a border cell is two triangles, which are made where a shape is near; their indices are negative.
"""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.hull import HullData
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel
from pluriverse.collision.surface.contact_reduction import (
    PATCH_COUNT,
    SLOT_COUNT,
    add_kept_contacts,
    candidate_vector,
)
from pluriverse.collision.surface.height_field_data import HeightFieldData, grid_point
from pluriverse.collision.surface.triangle_convex import make_triangle_collider
from pluriverse.collision.surface.triangle_pair import TrianglePair, make_triangle_pair

# Relative excess of the depth below a triangle over that straight below the surface which rounding explains.
DEPTH_ROUNDING = wp.constant(1.0e-3)

# Half extent [m] of a box around everything.
UNBOUNDED = wp.constant(1.0e30)


# Triangles of the walls that a border cell may have: those that face -y, +x, +y and -x, two each.
WALL_TRIANGLE_COUNT = wp.constant(8)


@wp.struct
class HeightFieldPairData:
    """What this collider needs besides the shapes."""

    hulls: HullData
    """Convex hulls."""
    fields: HeightFieldData
    """Height fields."""


@wp.func
def wall_triangle(cell: int, index: int) -> int:
    """Return the index of a triangle of a wall of a cell."""
    return -1 - (WALL_TRIANGLE_COUNT * cell + index)


@wp.func
def wall_normal(wall: int) -> wp.vec3:
    """Return the outward normal of a wall."""
    sign = wp.where(wall == 0 or wall == 3, -1.0, 1.0)
    return wp.where(wall % 2 == 0, wp.vec3(0.0, sign, 0.0), wp.vec3(sign, 0.0, 0.0))


@wp.func
def is_wall(wall: int, row: int, column: int, rows: int, columns: int) -> bool:
    """Return whether a cell of a field of so many grid points has a wall on that side."""
    return (
        (wall == 0 and row == 0)
        or (wall == 1 and column == columns - 2)
        or (wall == 2 and row == rows - 2)
        or (wall == 3 and column == 0)
    )


@wp.func
def corner_row(corner: int) -> int:
    """Return the row of a corner of a cell, counted from its first; wall w goes from corner w to w + 1."""
    return wp.where(corner % 4 >= 2, 1, 0)


@wp.func
def corner_column(corner: int) -> int:
    """Return the column of a corner of a cell, counted from its first."""
    return wp.where((corner + 1) % 4 >= 2, 1, 0)


@wp.func
def is_behind(
    data: HeightFieldData,
    field: int,
    row: int,
    column: int,
    pair: TrianglePair,
    normal: wp.vec3,
    point: wp.vec3,
    slope: float,
) -> bool:
    """Return whether a grid point is not above the plane across a normal by more than a slope.

    Beyond the border there is the side wall instead, which goes straight down.
    """
    result = bool(normal[2] >= -slope)
    if row >= 0 and column >= 0 and row < data.row_count[field] and column < data.column_count[field]:
        offset = (grid_point(data, field, row, column, pair.scale) - pair.position) - point
        result = wp.dot(normal, offset) <= slope * wp.length(offset)
    return result


@wp.func
def cell_of(data: HeightFieldData, field: int, triangle: int) -> tuple[int, int]:
    """Return row and column of the cell of a triangle, or of that below whose border a wall triangle is."""
    cell_columns = data.column_count[field] - 1
    cell = triangle // 2
    if triangle < 0:
        cell = (-1 - triangle) // WALL_TRIANGLE_COUNT
    row = cell // cell_columns
    return row, cell - row * cell_columns


@wp.func
def is_free_edge(
    data: HeightFieldData,
    field: int,
    triangle: int,
    edge: int,
    pair: TrianglePair,
    normal: wp.vec3,
    point: wp.vec3,
    slope: float,
) -> bool:
    """Return whether the triangle beyond an edge lies behind the plane across a normal."""
    row, column = cell_of(data, field, triangle)
    if triangle < 0:
        index = (-1 - triangle) % WALL_TRIANGLE_COUNT
        wall = index // 2
        if index % 2 == 0 or edge == 2:
            # Where two walls meet, what lies beyond the edge is the other one, which runs inwards.
            return wp.dot(normal, wall_normal(wall)) >= -slope
        # The upper edge: beyond it is the surface triangle of the cell at that border.
        inner = wp.where(wall == 0 or wall == 3, 1, 0)
        return is_behind(data, field, row + inner, column + inner, pair, normal, point, slope)
    other_row = row
    other_column = column
    if triangle % 2 == 0:
        if edge == 0:
            other_row -= 1
        elif edge == 1:
            other_row += 1
            other_column += 2
        else:
            other_row += 1
    else:
        if edge == 0:
            other_column += 1
        elif edge == 1:
            other_row += 2
            other_column += 1
        else:
            other_column -= 1
    return is_behind(data, field, other_row, other_column, pair, normal, point, slope)


@wp.func
def is_free_corner(
    data: HeightFieldData,
    field: int,
    triangle: int,
    corner: int,
    pair: TrianglePair,
    normal: wp.vec3,
    point: wp.vec3,
    slope: float,
) -> bool:
    """Return whether the neighbours of a corner lie behind the plane across a normal."""
    row, column = cell_of(data, field, triangle)
    if triangle < 0:
        # The upper corners are those that matter: the lower ones are farther down than the shape.
        index = (-1 - triangle) % WALL_TRIANGLE_COUNT
        end = index // 2 + wp.where(corner == 2 and index % 2 == 1, 0, 1)
        row += corner_row(end)
        column += corner_column(end)
    elif triangle % 2 == 0:
        row += wp.where(corner == 2, 1, 0)
        column += wp.where(corner == 0, 0, 1)
    else:
        row += wp.where(corner == 0, 0, 1)
        column += wp.where(corner == 1, 1, 0)
    return (
        is_behind(data, field, row, column - 1, pair, normal, point, slope)
        and is_behind(data, field, row, column + 1, pair, normal, point, slope)
        and is_behind(data, field, row - 1, column, pair, normal, point, slope)
        and is_behind(data, field, row + 1, column, pair, normal, point, slope)
        and is_behind(data, field, row - 1, column - 1, pair, normal, point, slope)
        and is_behind(data, field, row + 1, column + 1, pair, normal, point, slope)
    )


@wp.func
def height_over(data: HeightFieldData, field: int, scale: wp.vec3, point: wp.vec3) -> float:
    """Return how far a point, frame of the height field, is above the surface [m]; large beside it."""
    rows = data.row_count[field]
    columns = data.column_count[field]
    half = data.half[field]
    x = 0.5 * (point[0] / (scale[0] * half[0]) + 1.0) * float(columns - 1)
    y = 0.5 * (point[1] / (scale[1] * half[1]) + 1.0) * float(rows - 1)
    height = float(1.0e30)
    if x >= 0.0 and y >= 0.0 and x <= float(columns - 1) and y <= float(rows - 1):
        column = wp.min(int(x), columns - 2)
        row = wp.min(int(y), rows - 2)
        u = x - float(column)
        v = y - float(row)
        first = data.first[field] + row * columns + column
        low = data.height[first]
        far = data.height[first + columns + 1]
        ground = float(0.0)
        if u >= v:
            right = data.height[first + 1]
            ground = low + u * (right - low) + v * (far - right)
        else:
            back = data.height[first + columns]
            ground = low + v * (back - low) + u * (far - back)
        height = point[2] - scale[2] * ground
    return height


@wp.func
def depth_behind_walls(data: HeightFieldData, field: int, pair: TrianglePair, point: wp.vec3) -> float:
    """Return how far a point is behind the closest of the side walls that the shape reaches [m]."""
    half_x = pair.scale[0] * data.half[field][0]
    half_y = pair.scale[1] * data.half[field][1]
    local_point = point + pair.position
    depth = float(1.0e30)
    if pair.position[0] + pair.lower[0] < -half_x:
        depth = half_x + local_point[0]
    if pair.position[0] + pair.upper[0] > half_x:
        depth = wp.min(depth, half_x - local_point[0])
    if pair.position[1] + pair.lower[1] < -half_y:
        depth = wp.min(depth, half_y + local_point[1])
    if pair.position[1] + pair.upper[1] > half_y:
        depth = wp.min(depth, half_y - local_point[1])
    return depth


@wp.func
def is_exit_direction(
    data: HeightFieldData, field: int, pair: TrianglePair, point: wp.vec3, distance: float
) -> bool:
    """Return whether a point below a triangle is not closer to the surface straight up, or to a side wall."""
    below = -height_over(data, field, pair.scale, point + pair.position)
    below = wp.min(below, depth_behind_walls(data, field, pair, point))
    return -distance <= below * (1.0 + DEPTH_ROUNDING) + 1.0e-5 * pair.extent


collide_triangle = make_triangle_collider(HeightFieldData, is_free_edge, is_free_corner, is_exit_direction)


@wp.func
def collide_height_field(
    output: ContactOutput, model: ShapeModel, both: HeightFieldPairData, shapes: ShapePair, found: int
) -> int:
    """Add the contacts of a height field (first) and a convex shape (second)."""
    hulls = both.hulls
    data = both.fields
    field = data.mesh_field[model.shape_source_index[shapes.shape0]]
    if field < 0:
        return found
    pair = make_triangle_pair(model, hulls, shapes)
    normals = wp.zeros(shape=PATCH_COUNT, dtype=wp.vec3)
    slots = wp.zeros(shape=SLOT_COUNT, dtype=candidate_vector)
    count = int(0)

    rows = data.row_count[field]
    columns = data.column_count[field]
    half = data.half[field]
    to_column = 0.5 * float(columns - 1) / (pair.scale[0] * half[0])
    to_row = 0.5 * float(rows - 1) / (pair.scale[1] * half[1])
    middle_x = pair.position[0] + pair.scale[0] * half[0]
    middle_y = pair.position[1] + pair.scale[1] * half[1]
    first_column = int(wp.max((middle_x + pair.lower[0]) * to_column, 0.0))
    last_column = int(wp.min((middle_x + pair.upper[0]) * to_column, float(columns - 2)))
    first_row = int(wp.max((middle_y + pair.lower[1]) * to_row, 0.0))
    last_row = int(wp.min((middle_y + pair.upper[1]) * to_row, float(rows - 2)))
    # What has its middle above the ground meets no triangle from behind.
    is_above = height_over(data, field, pair.scale, pair.center + pair.position) > 0.0
    if not is_above:
        # What has sunk in is pushed up by triangles above it.
        pair.half = wp.vec3(UNBOUNDED, UNBOUNDED, UNBOUNDED)

    for row in range(first_row, last_row + 1):
        for column in range(first_column, last_column + 1):
            low = grid_point(data, field, row, column, pair.scale) - pair.position
            right = grid_point(data, field, row, column + 1, pair.scale) - pair.position
            back = grid_point(data, field, row + 1, column, pair.scale) - pair.position
            far = grid_point(data, field, row + 1, column + 1, pair.scale) - pair.position
            top = wp.max(wp.max(low[2], right[2]), wp.max(back[2], far[2]))
            if top >= pair.lower[2]:
                cell = row * (columns - 1) + column
                at_border = row == 0 or row == rows - 2 or column == 0 or column == columns - 2
                for index in range(wp.where(at_border, 2 + WALL_TRIANGLE_COUNT, 2)):
                    triangle = 2 * cell + index
                    pair.a = low
                    pair.b = right
                    pair.c = far
                    if index == 1:
                        pair.b = far
                        pair.c = back
                    sharp = int(0)
                    is_there = bool(True)
                    if index < 2:
                        sharp = int(data.sharp[data.first_triangle[field] + triangle])
                    else:
                        # A wall below the border from `first` to `last`, its corners running
                        # counterclockwise, down to where nothing of the shape is.
                        wall = (index - 2) // 2
                        triangle = wall_triangle(cell, index - 2)
                        is_there = is_wall(wall, row, column, rows, columns)
                        first = low
                        last = right
                        if wall == 1:
                            first = right
                            last = far
                        elif wall == 2:
                            first = far
                            last = back
                        elif wall == 3:
                            first = back
                            last = low
                        bottom = wp.min(wp.min(first[2], last[2]), pair.lower[2]) - pair.extent
                        pair.a = wp.vec3(first[0], first[1], bottom)
                        pair.b = wp.vec3(last[0], last[1], bottom)
                        pair.c = last
                        # Sharp are the upper edge, and the ends at the corners of the field.
                        sharp = wp.where(is_wall((wall + 1) % 4, row, column, rows, columns), 2, 0)
                        if index % 2 == 1:
                            pair.b = last
                            pair.c = first
                            sharp = wp.where(is_wall((wall + 3) % 4, row, column, rows, columns), 6, 2)
                    area = wp.cross(pair.b - pair.a, pair.c - pair.a)
                    if is_there and (not is_above or wp.dot(area, pair.center - pair.a) > 0.0):
                        count = collide_triangle(
                            data, hulls, pair, field, triangle, sharp, 1.0, normals, slots, count
                        )
    return add_kept_contacts(output, model, shapes, found, normals, slots, count)


collide_height_field_pairs = make_pair_kernel(
    "height_field", collide_height_field, data_type=HeightFieldPairData
)
