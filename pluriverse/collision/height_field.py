"""Collider of a height field and a convex shape: the triangles under and around the shape, one by one.

A height field is solid below, however deep. It has no side walls: next to its border there is nothing.
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.contact_reduction import (
    PATCH_COUNT,
    SLOT_COUNT,
    add_kept_contacts,
    candidate_vector,
)
from pluriverse.collision.height_field_data import HeightFieldData, grid_point
from pluriverse.collision.hull import HullData
from pluriverse.collision.pair_table import COLLIDER_COUNT, Collider, PairTable
from pluriverse.collision.shape_pair import ShapePair, bounds_overlap, flat_shape, make_shape_pair
from pluriverse.collision.shape_state import ShapeModel, ShapeState
from pluriverse.collision.triangle_convex import make_triangle_collider
from pluriverse.collision.triangle_pair import TrianglePair, make_triangle_pair

# Relative excess of the depth below a triangle over that straight below the surface which rounding explains.
DEPTH_ROUNDING = wp.constant(1.0e-3)

# Half extent [m] of a box around everything.
UNBOUNDED = wp.constant(1.0e30)


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

    True where there is no such grid point.
    """
    result = bool(True)
    if row >= 0 and column >= 0 and row < data.row_count[field] and column < data.column_count[field]:
        offset = (grid_point(data, field, row, column, pair.scale) - pair.position) - point
        result = wp.dot(normal, offset) <= slope * wp.length(offset)
    return result


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
    cell_columns = data.column_count[field] - 1
    cell = triangle // 2
    row = cell // cell_columns
    column = cell - row * cell_columns
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
    cell_columns = data.column_count[field] - 1
    cell = triangle // 2
    row = cell // cell_columns
    column = cell - row * cell_columns
    if triangle % 2 == 0:
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
def is_way_out(
    data: HeightFieldData, field: int, pair: TrianglePair, point: wp.vec3, distance: float
) -> bool:
    """Return whether a point below a triangle is not closer to the surface straight up."""
    below = -height_over(data, field, pair.scale, point + pair.position)
    return -distance <= below * (1.0 + DEPTH_ROUNDING) + 1.0e-5 * pair.extent


collide_triangle = make_triangle_collider(HeightFieldData, is_free_edge, is_free_corner, is_way_out)


@wp.func
def collide_height_field(
    output: ContactOutput,
    model: ShapeModel,
    hulls: HullData,
    data: HeightFieldData,
    shapes: ShapePair,
    found: int,
) -> int:
    """Add the contacts of a height field (first) and a convex shape (second)."""
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
                for place in range(int(2)):
                    triangle = 2 * cell + place
                    pair.a = low
                    pair.b = right
                    pair.c = far
                    if place == 1:
                        pair.b = far
                        pair.c = back
                    area = wp.cross(pair.b - pair.a, pair.c - pair.a)
                    if not is_above or wp.dot(area, pair.center - pair.a) > 0.0:
                        sharp = int(data.sharp[data.first_triangle[field] + triangle])
                        count = collide_triangle(
                            data, hulls, pair, field, triangle, sharp, 1.0, normals, slots, count
                        )
    return add_kept_contacts(output, model, shapes, found, normals, slots, count)


@wp.kernel(enable_backward=False, module="pluriverse.collision.height_field")
def collide_height_field_pairs(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    table: PairTable,
    collider: int,
    model: ShapeModel,
    hulls: HullData,
    data: HeightFieldData,
    state: ShapeState,
    # out
    output: ContactOutput,
):
    """Add the contacts of the height fields of one world."""
    world = worlds[wp.tid()]
    row = table.world_template[world] * COLLIDER_COUNT + collider
    first_shape = table.world_shape[world]
    found = output.found[world]
    for index in range(table.pair_start[row], table.pair_start[row + 1]):
        shape0 = flat_shape(table.pair_shape0[index], first_shape)
        shape1 = flat_shape(table.pair_shape1[index], first_shape)
        if bounds_overlap(state.bounds[shape0], state.bounds[shape1]):
            pair = make_shape_pair(state, world, shape0, shape1)
            found = collide_height_field(output, model, hulls, data, pair, found)
    output.found[world] = found
    output.count[world] = wp.min(found, output.start[world + 1] - output.start[world])


def collide_height_fields(
    hulls: HullData,
    data: HeightFieldData,
    worlds: wp.array[int],
    table: PairTable,
    model: ShapeModel,
    state: ShapeState,
    output: ContactOutput,
    device: Any,
) -> None:
    """Add the contacts of height fields with convex shapes."""
    wp.launch(
        collide_height_field_pairs,
        dim=worlds.size,
        inputs=[worlds, table, int(Collider.HEIGHT_FIELD), model, hulls, data, state],
        outputs=[output],
        device=device,
    )
