"""Broad phase: which candidate pairs of a world are near each other, in the order of its pairs.

Reads   bounds of the shapes, candidate pairs of the template
Writes  the near pairs of each world that does not test its candidate pairs one by one

A world may test every candidate pair when a collider comes to it (`explicit`: nothing to do here), every two
of its shapes (`nxn`), or the shapes that overlap along one axis, found by sorting (`sap`). What is near is
marked by a bit per candidate pair and then listed in the order of the pairs, so that all ways give the same
contacts, bit for bit.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision.pair_table import COLLIDER_COUNT, Collider, HostPairs, PairTable
from pluriverse.collision.shape_pair import bounds_overlap, flat_shape
from pluriverse.collision.shape_state import ShapeState
from pluriverse.launch import launch_kernel
from pluriverse.model import Model

BROAD_PHASES = ("explicit", "nxn", "sap")
"""What `broad_phase` may be."""

# Candidate pairs of a world from which sorting pays: on piles of boxes, 64 (2080 pairs) cost a twelfth more
# with it, 216 (23436 pairs) a sixth less, 512 half.
SWEEP_PAIR_COUNT = 4000

TEST_EVERY = wp.constant(0)
ALL_PAIRS = wp.constant(1)
SWEEP = wp.constant(2)
_MODES = {"explicit": 0, "nxn": 1, "sap": 2}

# Bounds are widened by this fraction for the order along an axis, so that rounding loses no pair that the
# test of bounds would find.
ORDER_ROUNDING = wp.constant(1.0e-6)
# Bits of the colliders whose pairs are near wherever they are: infinite planes have no bounds.
ALWAYS_NEAR = wp.constant(
    sum(
        1 << int(collider)
        for collider in (
            Collider.HALF_SPACE,
            Collider.MESH_PLANE,
            Collider.HYDROELASTIC_PLANE,
            Collider.HYDROELASTIC_MESH_PLANE,
        )
    )
)


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
    bit_start: wp.array[int]
    """First word of each world in `bits`, shape [world]."""
    bits: wp.array[wp.uint32]
    """A bit per candidate pair of a world: whether it is near."""


class BroadPhase:
    """Makes a table of near pairs for the worlds that do not test every candidate pair.

    Args:
        model: Model whose shapes collide.
        pairs: Candidate pairs of its templates.
        table: The same on the device.
        wanted: One of `BROAD_PHASES`, or None to choose by the number of pairs.

    Raises:
        ValueError: If there is no such broad phase.
    """

    def __init__(self, model: Model, pairs: HostPairs, table: PairTable, wanted: str | None):
        if wanted is not None and wanted not in BROAD_PHASES:
            raise ValueError(
                f"broad_phase: {wanted!r} is none of {', '.join(map(repr, BROAD_PHASES))}, or None to choose "
                "by the number of pairs of a world."
            )
        device = model.device
        template_count = len(model.templates)
        first = pairs.start[::COLLIDER_COUNT].astype(np.int64)
        pair_counts = np.diff(first)
        automatic = np.where(pair_counts >= SWEEP_PAIR_COUNT, _MODES["sap"], _MODES["explicit"])
        mode = automatic if wanted is None else np.full(template_count, _MODES[wanted])
        self.template_mode: np.ndarray = mode
        """How each template finds its near pairs, as `BROAD_PHASES` counts, shape [template]."""
        self.table = table
        self._device = device
        if not mode.any():
            return

        shapes = [_bounded_shapes(pairs, template) for template in range(template_count)]
        lookups = [
            _lookup(pairs, template, shapes[template]) if mode[template] else np.zeros(0, dtype=np.int64)
            for template in range(template_count)
        ]
        world_template = model.world_template
        swept = mode[world_template] > 0
        size = np.where(swept, [len(shapes[template]) for template in world_template], 0)
        words = np.where(swept, -(-pair_counts[world_template] // 32), 0)
        slots = np.where(swept, pair_counts[world_template], 0)

        def upload(values: Any, dtype: Any = int) -> wp.array:
            kind = np.uint32 if dtype is wp.uint32 else np.int32
            return wp.array(np.asarray(values).astype(kind), dtype=dtype, device=device)

        data = BroadPhaseData()
        data.template_mode = upload(mode)
        data.shape_start = upload(_starts([len(some) for some in shapes]))
        data.shape = upload(np.concatenate([*shapes, []]))
        data.lookup_start = upload(_starts([len(some) for some in lookups])[:-1])
        data.lookup = upload(np.concatenate([*lookups, []]))
        data.order_start = upload(_starts(size)[:-1])
        data.order = upload(np.concatenate([*(np.arange(count) for count in size), []]))
        data.axis = upload(np.zeros(model.world_count))
        data.bit_start = upload(_starts(words)[:-1])
        data.bits = wp.zeros(int(words.sum()), dtype=wp.uint32, device=device)
        self._data = data

        # The near pairs of swept world k stand behind those of the templates, in rows of their own: 2 k more
        # than one past the templates. The row after its last one says where they end.
        row_of_world = np.where(swept, template_count + 1 + 2 * (np.cumsum(swept) - 1), world_template)
        row_count = (template_count + 1 + 2 * int(swept.sum())) * COLLIDER_COUNT + 1
        starts = np.zeros(row_count, dtype=np.int32)
        starts[: len(pairs.start)] = pairs.start
        starts[row_of_world[swept] * COLLIDER_COUNT] = int(first[-1]) + _starts(slots)[:-1][swept]
        room = np.zeros(int(slots.sum()), dtype=np.int32)
        near = PairTable()
        near.world_template = upload(row_of_world)
        near.world_shape = table.world_shape
        near.pair_start = upload(starts)
        near.pair_shape0 = upload(np.concatenate([pairs.shape0, room]))
        near.pair_shape1 = upload(np.concatenate([pairs.shape1, room]))
        self._candidates = table
        self.table = near

    def find_near_pairs(self, worlds: wp.array, state: ShapeState) -> None:
        """Write the near pairs of `worlds` into `table`. Only launches."""
        if not self.template_mode.any():
            return
        launch_kernel(
            find_near_pair,
            dim=worlds.size,
            inputs=[worlds, self._candidates, state],
            outputs=[self._data, self.table],
            device=self._device,
        )


def _starts(counts: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def _always_near(collider: int) -> bool:
    """Return whether the pairs of a collider are near wherever they are: infinite planes have no bounds."""
    return bool((int(ALWAYS_NEAR) >> collider) & 1)


def _bounded_pairs(pairs: HostPairs, template: int) -> np.ndarray:
    """Return the pairs of a template whose shapes both have bounds."""
    rows = [
        np.arange(pairs.start[row], pairs.start[row + 1])
        for collider in Collider
        for row in [template * COLLIDER_COUNT + int(collider)]
        if not _always_near(collider)
    ]
    return np.concatenate(rows)


def _bounded_shapes(pairs: HostPairs, template: int) -> np.ndarray:
    rows = _bounded_pairs(pairs, template)
    return np.union1d(pairs.shape0[rows], pairs.shape1[rows])


def _lookup(pairs: HostPairs, template: int, shapes: np.ndarray) -> np.ndarray:
    """Return the pair of every two of `shapes`, from the first pair of the template, -1 for none."""
    table = np.full((len(shapes), len(shapes)), -1, dtype=np.int32)
    rows = _bounded_pairs(pairs, template)
    first, second = (np.searchsorted(shapes, some[rows]) for some in (pairs.shape0, pairs.shape1))
    table[first, second] = table[second, first] = rows - pairs.start[template * COLLIDER_COUNT]
    return table.reshape(-1)


@wp.func
def mark_if_near(
    data: BroadPhaseData,
    state: ShapeState,
    world: int,
    first_shape: int,
    first_entry: int,
    row: int,
    one: int,
    two: int,
    count: int,
) -> None:
    """Set the bit of the candidate pair of two entries if their bounds overlap."""
    shape0 = flat_shape(data.shape[first_entry + one], first_shape)
    shape1 = flat_shape(data.shape[first_entry + two], first_shape)
    if bounds_overlap(state.bounds[shape0], state.bounds[shape1]):
        pair = data.lookup[row + one * count + two]
        if pair >= 0:
            word = data.bit_start[world] + pair // 32
            data.bits[word] = data.bits[word] | (wp.uint32(1) << wp.uint32(pair % 32))


@wp.func
def lower_end(state: ShapeState, shape: int, axis: int) -> float:
    """Return a lower bound of a shape along an axis [m]."""
    bounds = state.bounds[shape]
    return (
        bounds[axis] - bounds[axis + 3] - ORDER_ROUNDING * (wp.abs(bounds[axis]) + wp.abs(bounds[axis + 3]))
    )


@wp.func
def upper_end(state: ShapeState, shape: int, axis: int) -> float:
    """Return an upper bound of a shape along an axis [m]."""
    bounds = state.bounds[shape]
    return (
        bounds[axis] + bounds[axis + 3] + ORDER_ROUNDING * (wp.abs(bounds[axis]) + wp.abs(bounds[axis + 3]))
    )


@wp.func
def longest_axis(
    data: BroadPhaseData, state: ShapeState, first_shape: int, first_entry: int, count: int
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
    data: BroadPhaseData,
    state: ShapeState,
    first_shape: int,
    first_entry: int,
    first: int,
    count: int,
    axis: int,
) -> None:
    """Sort the entries of a world by their lower ends. They hardly move in a step: insertion is quick."""
    for index in range(1, count):
        entry = data.order[first + index]
        key = lower_end(state, flat_shape(data.shape[first_entry + entry], first_shape), axis)
        place = int(index)
        while place > 0:
            other = data.order[first + place - 1]
            if lower_end(state, flat_shape(data.shape[first_entry + other], first_shape), axis) > key:
                data.order[first + place] = other
                place -= 1
            else:
                break
        data.order[first + place] = entry


@wp.kernel(enable_backward=False, module="pluriverse.collision.broad_phase")
def find_near_pair(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    candidates: PairTable,
    state: ShapeState,
    # out
    data: BroadPhaseData,
    near: PairTable,
):
    """List the candidate pairs of one world whose bounds overlap."""
    world = worlds[wp.tid()]
    if world < 0:
        return
    template = candidates.world_template[world]
    mode = data.template_mode[template]
    if mode == TEST_EVERY:
        return
    first_shape = candidates.world_shape[world]
    first_entry = data.shape_start[template]
    count = data.shape_start[template + 1] - first_entry
    row = data.lookup_start[template]
    first_pair = candidates.pair_start[template * COLLIDER_COUNT]
    end_pair = candidates.pair_start[(template + 1) * COLLIDER_COUNT]
    first_word = data.bit_start[world]
    for word in range((end_pair - first_pair + 31) // 32):
        data.bits[first_word + word] = wp.uint32(0)

    if mode == ALL_PAIRS:
        for one in range(1, count):
            for two in range(one):
                mark_if_near(data, state, world, first_shape, first_entry, row, one, two, count)
    else:
        first = data.order_start[world]
        axis = longest_axis(data, state, first_shape, first_entry, count)
        sort_entries(data, state, first_shape, first_entry, first, count, axis)
        for index in range(count):
            one = data.order[first + index]
            limit = upper_end(state, flat_shape(data.shape[first_entry + one], first_shape), axis)
            other = int(index + 1)
            while other < count:
                two = data.order[first + other]
                if lower_end(state, flat_shape(data.shape[first_entry + two], first_shape), axis) <= limit:
                    mark_if_near(data, state, world, first_shape, first_entry, row, one, two, count)
                    other += 1
                else:
                    other = count

    out_row = near.world_template[world] * COLLIDER_COUNT
    slot = near.pair_start[out_row]
    for collider in range(COLLIDER_COUNT):
        near.pair_start[out_row + collider] = slot
        begin = candidates.pair_start[template * COLLIDER_COUNT + collider]
        end = candidates.pair_start[template * COLLIDER_COUNT + collider + 1]
        is_always = ((ALWAYS_NEAR >> collider) & 1) != 0
        index = int(begin)
        while index < end:
            place = index - first_pair
            bits = data.bits[first_word + place // 32] >> wp.uint32(place % 32)
            if is_always or (bits & wp.uint32(1)) != wp.uint32(0):
                near.pair_shape0[slot] = candidates.pair_shape0[index]
                near.pair_shape1[slot] = candidates.pair_shape1[index]
                slot += 1
                index += 1
            elif bits == wp.uint32(0):
                # Nothing is near in the rest of this word.
                index += 32 - place % 32
            else:
                index += 1
    near.pair_start[out_row + COLLIDER_COUNT] = slot
