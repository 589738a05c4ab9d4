"""Broad phase: which candidate pairs of a world are near each other, as a bit for each of them.

Reads   bounds and motion of the shapes, candidate pairs of the template
Writes  `PairTable.near`, which the colliders follow in the order of the pairs

The bounds of every candidate pair may be compared (`explicit`), those of every two shapes, many at a time
(`nxn`; where shapes are many, boxes around sixteen in a row come first), or of the shapes that overlap along
one axis, found by sorting (`sap`). Pairs whose bounds overlap are then looked at by how the two shapes move
relative to each other. All ways mark the same pairs, so that contacts are the same, bit for bit.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision.pair_boxes import FIRST_WITH_BOXES, LEAST_PAIRS, drop_distant_pairs
from pluriverse.collision.pair_table import (
    COLLIDER_COUNT,
    PLANE_COLLIDERS,
    WITH_PLANE,
    Collider,
    HostPairs,
    PairTable,
    named_shapes,
)
from pluriverse.collision.shape_pair import bounds_overlap, flat_shape
from pluriverse.collision.shape_state import ShapePlace, ShapeState, bounds_vector
from pluriverse.launch import launch_kernel, world_thread_count
from pluriverse.math.bit_sets import LANE_COUNT, overlap_functions, sorted_scratch_size
from pluriverse.math.lane_records import LANE_RECORDS
from pluriverse.model import Model

BROAD_PHASES = ("explicit", "nxn", "sap")
"""What `broad_phase` may be."""

# Candidate pairs of a world from which sorting pays: on piles of boxes, 64 (2080 pairs) cost a twelfth more
# with it, 216 (23436 pairs) a sixth less, 512 half.
SWEEP_PAIR_COUNT = 4000
# Bodies with so many shapes in the mean are not sorted: boxes around sixteen shapes in a row are small then,
# and tell most bodies apart. Sorting would find overlaps within each body, which has no pairs with itself.
SHAPES_PER_BODY = 8
# Every two of n shapes are compared where n^2 is at most this many times the candidate pairs: comparing 32 by
# vector instructions takes as long as one pair by its index.
LANES_PER_PAIR = 32

TEST_EVERY = wp.constant(0)
ALL_PAIRS = wp.constant(1)
SWEEP = wp.constant(2)
_MODES = {"explicit": 0, "nxn": 1, "sap": 2}

# Bounds are widened by this fraction for the order along an axis, so that rounding loses no pair that the
# test of bounds would find.
ORDER_ROUNDING = wp.constant(1.0e-6)

_overlaps = overlap_functions(bounds_vector)
mark_overlaps, mark_sorted_overlaps = _overlaps.mark_overlaps, _overlaps.mark_sorted_overlaps


@wp.struct
class BroadPhaseData:
    """Shapes to compare, and where the result goes."""

    template_mode: wp.array[int]
    """`TEST_EVERY`, `ALL_PAIRS` or `SWEEP`, shape [template]."""
    shape_start: wp.array[int]
    """First entry of each template in `shape`, shape [template + 1]."""
    shape: wp.array[int]
    """Shapes with bounds that have a candidate pair, as pairs name them, shape [entry]."""
    lookup_start: wp.array[int]
    """First entry of each template in `lookup`, shape [template]."""
    lookup: wp.array[int]
    """Candidate pair of two entries of a template, counted from its first pair, -1 for none, row by row."""
    order_start: wp.array[int]
    """First entry of each world in `order`, -1 if it needs none, shape [world]."""
    order: wp.array[int]
    """Entries of a world as last sorted along its axis."""
    axis: wp.array[int]
    """Axis along which the entries of a world are sorted, shape [world]."""
    scratch_start: wp.array[int]
    """First number of each world in `scratch`, shape [world]."""
    scratch: wp.array[float]
    """Bounds of the entries of a world in their order, one component after the other."""
    candidate_start: wp.array[int]
    """First word of each template in `candidates`, shape [template]."""
    candidates: wp.array[wp.uint32]
    """For each entry of a template a bit for each later one that it has a candidate pair with, row by row."""


@wp.struct
class PairChoice:
    """Which of the candidate pairs are looked at: all, or those of shapes that changed their velocities."""

    is_limited: int
    """Whether only those pairs are looked at whose changes exceed what was assumed."""
    change: wp.array[float]
    """Largest change of velocity of a point of the shape [m/s], shape [shape]."""
    assumed: wp.array[float]
    """What was assumed of it [m/s], shape [shape]."""


class BroadPhase:
    """Finds the near pairs of worlds.

    Args:
        model: Model whose shapes collide.
        pairs: Candidate pairs of its templates.
        table: The same on the device.
        requested: One of `BROAD_PHASES`, or None to choose by the number of pairs and shapes.

    Raises:
        ValueError: If there is no such broad phase.
    """

    def __init__(self, model: Model, pairs: HostPairs, table: PairTable, requested: str | None):
        if requested is not None and requested not in BROAD_PHASES:
            raise ValueError(
                f"broad_phase: {requested!r} is none of {', '.join(map(repr, BROAD_PHASES))}, or None to "
                "choose by the number of pairs of a world."
            )
        device = model.device
        template_count = len(model.templates)
        first = pairs.start[::COLLIDER_COUNT].astype(np.int64)
        pair_counts = np.diff(first)
        shapes = [_bounded_shapes(pairs, template) for template in range(template_count)]
        shape_counts = np.array([len(some) for some in shapes], dtype=np.int64)
        dense = shape_counts**2 <= LANES_PER_PAIR * pair_counts
        if device.is_cuda:  # no vector instructions
            dense[:] = False
        bodies, world_shape = model.shape_body.numpy(), model.topology.world_shape.numpy()
        first_shapes = [int(world_shape[some.worlds[0]]) for some in model.templates]
        body_counts = np.array(
            [
                len(np.unique(bodies[_flat(some, first)]))
                for some, first in zip(shapes, first_shapes, strict=True)
            ]
        )
        clustered = dense & (shape_counts >= SHAPES_PER_BODY * body_counts)
        automatic = np.where(dense, _MODES["nxn"], _MODES["explicit"])
        swept = (pair_counts >= SWEEP_PAIR_COUNT) & ~clustered
        automatic = np.where(swept, _MODES["sap"], automatic)
        mode = automatic if requested is None else np.full(template_count, _MODES[requested])
        self.template_mode: np.ndarray = mode
        """How each template finds its near pairs, as `BROAD_PHASES` counts, shape [template]."""
        self.table = table
        """Candidate pairs and which of them are near."""
        self._device = device
        lookups = [
            _lookup(pairs, template, shapes[template]) if mode[template] else np.zeros((0, 0), dtype=np.int32)
            for template in range(template_count)
        ]
        candidates = [
            _candidate_words(lookup if mode[template] == _MODES["nxn"] else lookup[:0, :0])
            for template, lookup in enumerate(lookups)
        ]
        swept = mode[model.world_template] == _MODES["sap"]
        size = np.where(swept, shape_counts[model.world_template], 0)

        def to_device(values: Any, dtype: Any = int) -> wp.array:
            kind = np.uint32 if dtype is wp.uint32 else np.int32
            return wp.array(np.asarray(values).astype(kind, copy=False), dtype=dtype, device=device)

        def join(parts: list[np.ndarray]) -> np.ndarray:
            return np.concatenate([np.zeros(0, dtype=np.int32), *parts])

        data = BroadPhaseData()
        data.template_mode = to_device(mode)
        data.shape_start = to_device(_starts(shape_counts))
        data.shape = to_device(join(shapes))
        data.lookup_start = to_device(_starts([some.size for some in lookups])[:-1])
        data.lookup = to_device(join([some.reshape(-1) for some in lookups]))
        data.candidate_start = to_device(_starts([some.size for some in candidates])[:-1])
        data.candidates = to_device(join(candidates), wp.uint32)
        data.order_start = to_device(_starts(size)[:-1])
        data.order = to_device(join([np.arange(count, dtype=np.int32) for count in size]))
        room = sorted_scratch_size(size)
        data.scratch_start = to_device(_starts(room)[:-1])
        data.scratch = wp.empty(int(room.sum()), dtype=float, device=device)
        data.axis = to_device(np.zeros(model.world_count))
        self.data = data
        """What kernels need for it."""

    def find_near_pairs(self, worlds: wp.array, state: ShapeState) -> None:
        """Write which candidate pairs of `worlds` are near. Only launches."""
        threads = world_thread_count(worlds)
        launch_kernel(
            find_near_pair,
            dim=threads,
            inputs=[worlds, threads, state],
            outputs=[self.data, self.table],
            device=self._device,
        )


def _flat(shapes: np.ndarray, first_shape: int) -> np.ndarray:
    """Return the flat indices of shapes of a world as pairs name them."""
    return np.where(shapes < 0, -1 - shapes, shapes + first_shape)


def _starts(counts: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def _bounded_rows(pairs: HostPairs, template: int) -> list[slice]:
    """Return where the pairs of a template are whose shapes both have bounds."""
    rows = [template * COLLIDER_COUNT + int(one) for one in Collider if one not in PLANE_COLLIDERS]
    return [slice(pairs.start[row], pairs.start[row + 1]) for row in rows]


def _bounded_shapes(pairs: HostPairs, template: int) -> np.ndarray:
    return named_shapes([(pairs.shape0[rows], pairs.shape1[rows]) for rows in _bounded_rows(pairs, template)])


def _lookup(pairs: HostPairs, template: int, shapes: np.ndarray) -> np.ndarray:
    """Return the pair of every two of `shapes`, from the first pair of the template, -1 for none."""
    table = np.full((len(shapes), len(shapes)), -1, dtype=np.int32)
    if len(shapes) == 0:
        return table
    low = int(shapes[0])
    local_index = np.zeros(int(shapes[-1]) - low + 1, dtype=np.int32)
    local_index[shapes - low] = np.arange(len(shapes), dtype=np.int32)
    begin = int(pairs.start[template * COLLIDER_COUNT])
    for rows in _bounded_rows(pairs, template):
        first, second = local_index[pairs.shape0[rows] - low], local_index[pairs.shape1[rows] - low]
        number = np.arange(rows.start - begin, rows.stop - begin, dtype=np.int32)
        table[first, second] = number
        table[second, first] = number
    return table


def _candidate_words(lookup: np.ndarray) -> np.ndarray:
    """Return for each of n shapes a bit for each later one that it has a pair with, rows of n / 32 words."""
    count = len(lookup)
    bits = np.zeros((count, -(-count // LANE_COUNT) * LANE_COUNT), dtype=np.uint8)
    bits[:, :count] = np.triu(lookup >= 0, 1)
    return np.packbits(bits, axis=1, bitorder="little").reshape(-1).view("<u4").astype(np.int64)


@wp.func
def set_bit(bits: wp.array[wp.uint32], first_word: int, index: int) -> None:
    """Put a pair into a set."""
    word = first_word + index // 32
    bits[word] = bits[word] | (wp.uint32(1) << wp.uint32(index % 32))


@wp.func
def clear_bit(bits: wp.array[wp.uint32], first_word: int, index: int) -> None:
    """Take a pair out of a set."""
    word = first_word + index // 32
    bits[word] = bits[word] & ~(wp.uint32(1) << wp.uint32(index % 32))


@wp.func
def lower_end(state: wp.ref[ShapeState], shape: int, axis: int) -> float:
    """Return a lower bound of a shape along an axis [m]."""
    bounds = state.bounds[shape]
    return (
        bounds[axis] - bounds[axis + 3] - ORDER_ROUNDING * (wp.abs(bounds[axis]) + wp.abs(bounds[axis + 3]))
    )


@wp.func
def longest_axis(
    data: wp.ref[BroadPhaseData], state: wp.ref[ShapeState], first_shape: int, first_entry: int, count: int
) -> int:
    """Return the axis along which the middles of the shapes spread most."""
    total = wp.vec3(0.0, 0.0, 0.0)
    squares = wp.vec3(0.0, 0.0, 0.0)
    used = float(0.0)
    origin = wp.vec3(0.0, 0.0, 0.0)
    for entry in range(count):
        bounds = state.bounds[flat_shape(data.shape[first_entry + entry], first_shape)]
        if bounds[3] >= 0.0:
            middle = wp.vec3(bounds[0], bounds[1], bounds[2])
            if used == 0.0:
                origin = middle
            offset = middle - origin
            total += offset
            squares += wp.cw_mul(offset, offset)
            used += 1.0
    spread = squares - wp.cw_mul(total, total) / wp.max(used, 1.0)
    axis = int(0)
    if spread[1] > spread[0]:
        axis = 1
    if spread[2] > spread[axis]:
        axis = 2
    return axis


@wp.func
def sort_entries(
    data: wp.ref[BroadPhaseData],
    state: wp.ref[ShapeState],
    first_shape: int,
    first_entry: int,
    first: int,
    count: int,
    axis: int,
    first_key: int,
) -> None:
    """Sort the entries of a world by their lower ends. They hardly move in a step: insertion is quick.

    The ends are kept in `scratch` from `first_key` on.
    """
    for index in range(count):
        entry = data.order[first + index]
        key = lower_end(state, flat_shape(data.shape[first_entry + entry], first_shape), axis)
        position = int(index)
        while position > 0:
            other_key = data.scratch[first_key + position - 1]
            if other_key > key:
                data.order[first + position] = data.order[first + position - 1]
                data.scratch[first_key + position] = other_key
                position -= 1
            else:
                break
        data.order[first + position] = entry
        data.scratch[first_key + position] = key


@wp.func
def may_matter(some: wp.ref[PairChoice], shape0: int, shape1: int) -> bool:
    """Return whether a pair is among those that are looked at."""
    if some.is_limited == 0:
        return True
    return some.change[shape0] + some.change[shape1] > some.assumed[shape0] + some.assumed[shape1]


@wp.func
def sweep_entries(
    data: wp.ref[BroadPhaseData],
    state: wp.ref[ShapeState],
    some: wp.ref[PairChoice],
    table: wp.ref[PairTable],
    world: int,
    template: int,
    first_shape: int,
) -> None:
    """Mark the candidate pairs of a world whose bounds overlap, sorted along the axis of largest spread."""
    first_entry = data.shape_start[template]
    count = data.shape_start[template + 1] - first_entry
    first = data.order_start[world]
    axis = longest_axis(data, state, first_shape, first_entry, count)
    sort_entries(data, state, first_shape, first_entry, first, count, axis, data.scratch_start[world])
    mark_sorted_overlaps(
        state.bounds,
        some.is_limited,
        some.change,
        some.assumed,
        data.shape,
        first_entry,
        count,
        first_shape,
        data.order,
        first,
        axis,
        ORDER_ROUNDING,
        data.scratch,
        data.scratch_start[world],
        data.lookup,
        data.lookup_start[template],
        table.near,
        table.near_start[world],
    )


_MARK_PLANES = """
    unsigned* words = (unsigned*)near.data + first_word;
    const float* boxes = (const float*)bounds.data;
    int first = begin, last = begin;
    for (; first < end; first = first + LANES < last ? first + LANES : last) {
        const int name = pair_shape0.data[first];
        if (first == last)
            while (last < end && pair_shape0.data[last] == name) ++last;
        const int one = name < 0 ? -1 - name : first_shape + name;
        const auto& plane = place.data[one];
        const float x = plane.rotation.data[0][2], y = plane.rotation.data[1][2];
        const float z = plane.rotation.data[2][2], threshold = plane.threshold;
        const float px = plane.origin.c[0] + plane.offset.c[0], py = plane.origin.c[1] + plane.offset.c[1];
        const float pz = plane.origin.c[2] + plane.offset.c[2];
        const int size = last - first < LANES ? last - first : LANES;
        int two[LANES];
        unsigned hit[LANES];
        const float* rows[LANES];
        float box[6][LANES];
        #ifndef __CUDA_ARCH__
        #pragma clang loop vectorize(disable)
        #endif
        for (int l = 0; l < LANES; ++l) {
            const int other = pair_shape1.data[first + (l < size ? l : 0)];
            two[l] = other < 0 ? -1 - other : first_shape + other;
            rows[l] = boxes + 6 * two[l];
        }
        records::load4(rows, box);
        records::load4(rows, box + 2, 2);
        for (int l = 0; l < LANES; ++l) {
            const float height = x * (box[0][l] - px) + y * (box[1][l] - py) + z * (box[2][l] - pz);
            const float extent = wp::abs(x) * box[3][l] + wp::abs(y) * box[4][l] + wp::abs(z) * box[5][l];
            // The bounds of the shape contain its own margin and gap, or what it may move.
            hit[l] = height - extent <= threshold;
        }
        if (is_limited) {
            const float own = change.data[one], own_assumed = assumed.data[one];
            for (int l = 0; l < LANES; ++l) {
                hit[l] &= own + change.data[two[l]] > own_assumed + assumed.data[two[l]];
            }
        }
        unsigned hits = 0;
        for (int l = 0; l < size; ++l) hits |= hit[l] << l;
        const int bit = first - first_pair;
        words[bit >> 5] |= hits << (bit & 31);
        const int room = 32 - (bit & 31);
        if (room < LANES && hits >> room) words[(bit >> 5) + 1] |= hits >> room;
    }
"""
"""Sixteen pairs at a time, without branches, so that the compiler uses vector instructions."""


@wp.func_native(LANE_RECORDS + _MARK_PLANES)
def mark_near_planes(
    bounds: wp.array(dtype=bounds_vector),
    place: wp.array(dtype=ShapePlace),
    is_limited: int,
    change: wp.array[float],
    assumed: wp.array[float],
    pair_shape0: wp.array[int],
    pair_shape1: wp.array[int],
    begin: int,
    end: int,
    first_pair: int,
    first_shape: int,
    near: wp.array[wp.uint32],
    first_word: int,
):
    """Set the bits of pairs whose second shape reaches into the half space below a plane, the first one.

    Args:
        bounds: Boxes of all shapes [m], shape [shape].
        place: Where they are, shape [shape].
        is_limited: Whether only pairs count whose changes exceed what was assumed.
        change: See `PairChoice`.
        assumed: See `PairChoice`.
        pair_shape0: Planes, as pairs name shapes, shape [pair].
        pair_shape1: Other shapes, shape [pair].
        begin: First pair that is tested.
        end: One past the last.
        first_pair: Pair of the first bit.
        first_shape: First shape of the world.
        near: Words of many sets, written.
        first_word: First word of the set of this world.
    """
    ...


@wp.func
def mark_overlapping_pairs(
    world: int,
    state: wp.ref[ShapeState],
    some: wp.ref[PairChoice],
    data: wp.ref[BroadPhaseData],
    table: wp.ref[PairTable],
):
    """Mark the candidate pairs of a world whose bounds overlap, as far as they are chosen, and no others."""
    template = table.world_template[world]
    mode = data.template_mode[template]
    first_shape = table.world_shape[world]
    first_pair = table.pair_start[template * COLLIDER_COUNT]
    end_pair = table.pair_start[(template + 1) * COLLIDER_COUNT]
    first_word = table.near_start[world]
    for word in range(first_word, first_word + (end_pair - first_pair + 31) // 32):
        table.near[word] = wp.uint32(0)

    if mode == ALL_PAIRS:
        first_entry = data.shape_start[template]
        mark_overlaps(
            state.bounds,
            some.is_limited,
            some.change,
            some.assumed,
            data.shape,
            first_entry,
            data.shape_start[template + 1] - first_entry,
            first_shape,
            data.candidates,
            data.candidate_start[template],
            data.lookup,
            data.lookup_start[template],
            table.near,
            first_word,
        )
    elif mode == SWEEP:
        sweep_entries(data, state, some, table, world, template, first_shape)

    # Bounds that are not constants: the loop would be unrolled else, and its code compiled for each collider.
    first_row = template * COLLIDER_COUNT
    for row in range(first_row, first_row + COLLIDER_COUNT):
        begin = table.pair_start[row]
        end = table.pair_start[row + 1]
        if ((WITH_PLANE >> (row - first_row)) & 1) != 0:
            mark_near_planes(
                state.bounds,
                state.place,
                some.is_limited,
                some.change,
                some.assumed,
                table.pair_shape0,
                table.pair_shape1,
                begin,
                end,
                first_pair,
                first_shape,
                table.near,
                first_word,
            )
        elif mode == TEST_EVERY:
            for pair in range(begin, end):
                shape0 = flat_shape(table.pair_shape0[pair], first_shape)
                shape1 = flat_shape(table.pair_shape1[pair], first_shape)
                if may_matter(some, shape0, shape1):
                    if bounds_overlap(state.bounds[shape0], state.bounds[shape1]):
                        set_bit(table.near, first_word, pair - first_pair)


@wp.func
def find_near_pairs_of_world(
    world: int, state: wp.ref[ShapeState], data: wp.ref[BroadPhaseData], table: wp.ref[PairTable]
):
    """Mark the candidate pairs of one world that are near."""
    every = PairChoice()
    mark_overlapping_pairs(world, state, every, data, table)
    row = table.world_template[world] * COLLIDER_COUNT
    first_pair = table.pair_start[row]
    drop_distant_pairs(
        state.place,
        table.pair_shape0,
        table.pair_shape1,
        table.pair_start[row + FIRST_WITH_BOXES] - first_pair,
        table.pair_start[row + COLLIDER_COUNT] - first_pair,
        first_pair,
        table.world_shape[world],
        LEAST_PAIRS,
        table.near,
        table.near_start[world],
    )


@wp.kernel(enable_backward=False, module="pluriverse.collision.broad_phase")
def find_near_pair(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    stride: int,  # number of threads, see `world_thread_count`
    state: ShapeState,
    # out
    data: BroadPhaseData,
    table: PairTable,
):
    """Mark the candidate pairs of some worlds that are near, one world after the other."""
    thread, _ = wp.tid()
    for slot in range(thread, worlds.shape[0], stride):
        if worlds[slot] >= 0:
            find_near_pairs_of_world(worlds[slot], state, data, table)
