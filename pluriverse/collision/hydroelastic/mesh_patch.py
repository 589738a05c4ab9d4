"""Pressure patch of shapes that need not be convex: the surface of equal pressure, gathered over cells.

The patch is where e = w0 l0 - w1 l1 is zero, with l the levels (minus the depths) of the shapes and w each
other's part of the compliance, so far as it is inside both. It may be bent, and have holes or several parts.
The box around the overlap shrinks to the patch, and is divided into cells. A cell near the patch has of it

    area = volume * |grad e| * hat(e / width) / width,

where `width` is by how much e changes across the cell and `hat` falls from 1 to 0 at one width: the areas of
a plane add up to its own, however it passes through the cells. The pressure is that at the closest point of
the patch, so that shallow overlaps are as exact as deep ones. On a half space the patch is its plane, and has
one layer of cells.
"""

import warp as wp

from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import direction_of
from pluriverse.collision.hydroelastic.mesh_field import level_of_first, level_of_second
from pluriverse.collision.hydroelastic.patch_pair import (
    SECTOR_COUNT,
    PatchPair,
    effective_stiffness,
    range_along,
)
from pluriverse.collision.surface.mesh_data import MeshData
from pluriverse.types import GeoType

# Rounds in which the box around the patch shrinks, and cells along each of its axes meanwhile; on a plane,
# too.
SHRINK_ROUNDS = wp.constant(4)
SHRINK_CELLS = wp.constant(8)
SHRINK_CELLS_PLANE = wp.constant(16)
# Part of its diagonal to which a box has to shrink for another round.
SMALLER = wp.constant(0.9)
# Cells along the longest axis for the middle and direction of a patch, and for its force; on a plane, too.
COARSE_CELLS = wp.constant(12)
FINE_CELLS = wp.constant(36)
FINE_CELLS_PLANE = wp.constant(64)
# Blocks of so many cells along each axis that hold nothing are skipped.
BLOCK_CELLS = wp.constant(4)
# A level changes by this factor of the way at most: a little more than the way, between nodes of a grid.
STEEPER = wp.constant(1.25)
# Rounding of a level, relative to the size of the patch.
ROUNDING = wp.constant(1.0e-5)
# Steepness of e below which the pressures do not tell where the patch is.
FLAT = wp.constant(0.05)


@wp.struct
class PatchBox:
    """Box around a patch along the axes of the first shape, relative to the middle of the second."""

    low: wp.vec3
    """Lower corner [m]."""
    high: wp.vec3
    """Upper corner [m]."""
    is_empty: bool
    """Whether there is no patch."""


@wp.struct
class PatchSum:
    """What all cells add up to."""

    force: wp.vec3
    """Force on the second shape [N]."""
    moment: wp.vec3
    """Sum of position times magnitude of force [N·m]."""
    weight: float
    """Sum of the magnitudes of force [N]."""


@wp.func
def cell_counts(extent: wp.vec3, cells: int, is_plane: bool) -> wp.vec3i:
    """Return how many cells a box has along its axes, the longest `cells`, so that they are about cubes."""
    longest = wp.max(extent[0], wp.max(extent[1], extent[2]))
    count = wp.vec3i(1, 1, 1)
    for axis in range(3):
        count[axis] = wp.clamp(int(wp.ceil(float(cells) * extent[axis] / longest)), 1, cells)
    if is_plane:
        count[2] = 1
    return count


@wp.func
def cell_index(low: wp.vec3, cell: wp.vec3, count: wp.vec3i, index: int) -> wp.vec3:
    """Return the middle of a cell [m]."""
    i = index % count[0]
    j = (index // count[0]) % count[1]
    k = index // (count[0] * count[1])
    return low + wp.cw_mul(cell, wp.vec3(float(i) + 0.5, float(j) + 0.5, float(k) + 0.5))


@wp.func
def may_hold(
    pair: wp.ref[PatchPair],
    hulls: wp.ref[HullData],
    meshes: wp.ref[MeshData],
    point: wp.vec3,
    radius: float,
) -> bool:
    """Return whether a part of the patch may lie within some radius of a point."""
    first = level_of_first(pair, hulls, meshes, point)
    if not first[3] < radius:
        return False
    total = pair.compliance0 + pair.compliance1
    if pair.compliance0 == 0.0 and not wp.abs(first[3]) < radius:
        # The patch is the surface of a rigid shape.
        return False
    second = level_of_second(pair, hulls, meshes, point)
    error = (pair.compliance1 * first[3] - pair.compliance0 * second[3]) / total
    return second[3] < radius and wp.abs(error) < radius


@wp.func
def shrink_box(pair: wp.ref[PatchPair], hulls: wp.ref[HullData], meshes: wp.ref[MeshData]) -> PatchBox:
    """Return the box around the patch."""
    is_plane = pair.type0 == GeoType.PLANE
    box = PatchBox()
    for axis in range(3):
        unit = wp.vec3(0.0, 0.0, 0.0)
        unit[axis] = 1.0
        both = range_along(pair, unit)
        box.low[axis] = both[0]
        box.high[axis] = both[1]
        box.is_empty = box.is_empty or not (both[0] < both[1])
    cells = SHRINK_CELLS
    if is_plane:
        # One layer, in the plane.
        box.low[2] = -pair.position[2] + pair.margin0
        box.high[2] = box.low[2]
        cells = SHRINK_CELLS_PLANE
    for _round in range(SHRINK_ROUNDS):
        if not box.is_empty:
            count = cell_counts(box.high - box.low, cells, is_plane)
            cell = wp.cw_div(box.high - box.low, wp.vec3(float(count[0]), float(count[1]), float(count[2])))
            radius = 0.5 * STEEPER * wp.length(cell)
            lower = 1.0 * box.high
            upper = 1.0 * box.low
            is_empty = bool(True)
            for index in range(count[0] * count[1] * count[2]):
                center = cell_index(box.low, cell, count, index)
                if may_hold(pair, hulls, meshes, center, radius):
                    lower = wp.min(lower, center - 0.5 * cell)
                    upper = wp.max(upper, center + 0.5 * cell)
                    is_empty = False
            is_smaller = wp.length(upper - lower) < SMALLER * wp.length(box.high - box.low)
            box.is_empty = is_empty
            box.low = lower
            box.high = upper
            if not is_smaller:
                break
    return box


@wp.func
def hat(x: float) -> float:
    """Return 1 at zero, falling to 0 at a distance of one."""
    return wp.max(1.0 - wp.abs(x), 0.0)


@wp.func
def integrate_box(
    pair: wp.ref[PatchPair],
    hulls: wp.ref[HullData],
    meshes: wp.ref[MeshData],
    box: PatchBox,
    cells: int,
    is_binned: bool,
    middle: wp.vec3,
    axis_u: wp.vec3,
    axis_v: wp.vec3,
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
) -> PatchSum:
    """Add up the pressure on the patch, and put it into the bins of sectors around the middle if asked to.

    Args:
        pair: The shapes; the hull of a mesh is its surface.
        hulls: Convex hulls.
        meshes: The meshes.
        box: Box around the patch.
        cells: Cells along its longest axis.
        is_binned: Whether the bins are filled.
        middle: Middle of the patch [m].
        axis_u: First axis across the direction of the patch.
        axis_v: Second axis.
        force: Force on the second shape [N], shape [SECTOR_COUNT].
        moment: Sum of position times magnitude of force [N·m], shape [SECTOR_COUNT].
        weight: Sum of the magnitudes of force [N], and stiffness [N/m], shape [SECTOR_COUNT].
    """
    is_plane = pair.type0 == GeoType.PLANE
    total = pair.compliance0 + pair.compliance1
    weight0 = pair.compliance1 / total
    weight1 = pair.compliance0 / total
    count = cell_counts(box.high - box.low, cells, is_plane)
    extent = box.high - box.low
    longest = wp.max(extent[0], wp.max(extent[1], extent[2]))
    cell = wp.cw_div(extent, wp.vec3(float(count[0]), float(count[1]), float(count[2])))
    low = 1.0 * box.low
    if not is_plane:
        # Cubes, and two more on each side: what is next to the patch has its share of it.
        edge = longest / float(cells)
        cell = wp.vec3(edge, edge, edge)
        middle_box = 0.5 * (box.low + box.high)
        count = wp.vec3i(count[0] + 4, count[1] + 4, count[2] + 4)
        low = middle_box - 0.5 * edge * wp.vec3(float(count[0]), float(count[1]), float(count[2]))
    volume = cell[0] * cell[1]
    if not is_plane:
        volume = volume * cell[2]
    blocks = wp.vec3i(
        (count[0] + BLOCK_CELLS - 1) // BLOCK_CELLS,
        (count[1] + BLOCK_CELLS - 1) // BLOCK_CELLS,
        (count[2] + BLOCK_CELLS - 1) // BLOCK_CELLS,
    )
    block_cell = float(BLOCK_CELLS) * cell
    # Cells count as far off as one width, sqrt(3) edges.
    width_bound = 1.8 * wp.max(cell[0], cell[1])
    radius = STEEPER * (0.5 * wp.length(block_cell) + width_bound)
    # So far outside a shape no cell counts; nor so far on either side of one that is rigid.
    reach = STEEPER * width_bound + ROUNDING * longest
    result = PatchSum()
    for block in range(blocks[0] * blocks[1] * blocks[2]):
        if may_hold(pair, hulls, meshes, cell_index(low, block_cell, blocks, block), radius):
            first_cell = wp.vec3i(
                BLOCK_CELLS * (block % blocks[0]),
                BLOCK_CELLS * ((block // blocks[0]) % blocks[1]),
                BLOCK_CELLS * (block // (blocks[0] * blocks[1])),
            )
            size = wp.vec3i(
                wp.min(count[0] - first_cell[0], BLOCK_CELLS),
                wp.min(count[1] - first_cell[1], BLOCK_CELLS),
                wp.min(count[2] - first_cell[2], BLOCK_CELLS),
            )
            corner = low + wp.cw_mul(
                cell, wp.vec3(float(first_cell[0]), float(first_cell[1]), float(first_cell[2]))
            )
            for index in range(size[0] * size[1] * size[2]):
                point = cell_index(corner, cell, size, index)
                area = float(0.0)
                for step in range(int(2)):
                    # First the cell, then the point of the patch that is closest to it.
                    first = level_of_first(pair, hulls, meshes, point)
                    second = wp.vec4()
                    if step == 0 and not is_plane:
                        # With a rigid first shape the patch is on its surface.
                        if first[3] > reach or (weight1 == 0.0 and first[3] < -reach):
                            break
                    if step == 1 or not is_plane:
                        second = level_of_second(pair, hulls, meshes, point)
                    out0 = direction_of(first)
                    out1 = direction_of(second)
                    across = weight0 * out0 - weight1 * out1
                    steepness = wp.length(across)
                    error = weight0 * first[3] - weight1 * second[3]
                    if step == 0:
                        if is_plane:
                            area = volume
                        elif steepness > FLAT:
                            width = (
                                wp.abs(across[0]) * cell[0]
                                + wp.abs(across[1]) * cell[1]
                                + wp.abs(across[2]) * cell[2]
                            )
                            way = wp.abs(error) / steepness
                            # Else the point of the patch is outside a shape, whatever the levels do.
                            if wp.max(first[3], second[3]) < STEEPER * way + ROUNDING * longest:
                                area = volume * steepness * hat(error / width) / width
                            point = point - error / (steepness * steepness) * across
                        if area == 0.0:
                            break
                    overlap = -(first[3] + second[3])
                    if step == 1 and overlap > 0.0 and steepness > FLAT:
                        normal = across / steepness
                        pressed = area * overlap / total
                        result.force += pressed * normal
                        result.moment += pressed * point
                        result.weight += pressed
                        if is_binned:
                            arm = point - middle
                            angle = wp.atan2(wp.dot(arm, axis_v), wp.dot(arm, axis_u)) / (2.0 * wp.pi)
                            sector = int(wp.floor(float(SECTOR_COUNT) * (angle + 1.0))) % SECTOR_COUNT
                            stiffness = area * effective_stiffness(pair, out0, out1, normal)
                            force[sector] = force[sector] + pressed * normal
                            moment[sector] = moment[sector] + pressed * point
                            weight[sector] = weight[sector] + wp.vec2(pressed, stiffness)
    return result


@wp.func
def find_mesh_patch(
    pair: wp.ref[PatchPair],
    hulls: wp.ref[HullData],
    meshes: wp.ref[MeshData],
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
) -> float:
    """Write the pressure on the patch into the bins, as `convex_patch.find_patch` does.

    Args:
        pair: The shapes; a half space comes first, and the hull of a mesh is its surface.
        hulls: Convex hulls.
        meshes: The meshes.
        force: Force of each bin.
        moment: Moment of each bin.
        weight: Weight and stiffness of each bin.

    Returns:
        Magnitude of the sum of the forces [N].
    """
    size = float(0.0)
    box = shrink_box(pair, hulls, meshes)
    if not box.is_empty:
        middle = wp.vec3(0.0, 0.0, 0.0)
        axis_u = wp.vec3(1.0, 0.0, 0.0)
        axis_v = wp.vec3(0.0, 1.0, 0.0)
        fine = FINE_CELLS
        if pair.type0 == GeoType.PLANE:
            fine = FINE_CELLS_PLANE
        for attempt in range(int(2)):
            cells = wp.where(attempt == 0, COARSE_CELLS, fine)
            found = integrate_box(
                pair, hulls, meshes, box, cells, attempt == 1, middle, axis_u, axis_v, force, moment, weight
            )
            size = wp.length(found.force)
            if attempt == 0 and found.weight > 0.0:
                middle = found.moment / found.weight
                normal = wp.vec3(0.0, 0.0, 1.0)
                if size > 0.0:
                    normal = found.force / size
                axis = wp.vec3(1.0, 0.0, 0.0)
                if wp.abs(normal[0]) > 0.8:
                    axis = wp.vec3(0.0, 1.0, 0.0)
                axis_u = wp.normalize(wp.cross(axis, normal))
                axis_v = wp.cross(normal, axis_u)
    return size
