"""Sets of pairs as bits: boxes that overlap, and the set bits one by one."""

import numpy as np
import pytest
import warp as wp

from pluriverse.collision.shape_state import bounds_vector
from pluriverse.math.bit_sets import LANE_COUNT, next_set_bit, overlap_functions

mark_overlaps = overlap_functions(bounds_vector).mark_overlaps


@wp.kernel(enable_backward=False, module="tests.math.bit_sets")
def mark_all(
    bounds: wp.array[bounds_vector],  # [shape] m
    has_weights: int,
    weight: wp.array[float],  # [shape]
    weight_limit: wp.array[float],  # [shape]
    shape: wp.array[int],  # [entry]
    candidates: wp.array[wp.uint32],
    lookup: wp.array[int],
    # out
    bits: wp.array[wp.uint32],
):
    count = shape.shape[0]
    mark_overlaps(
        bounds, has_weights, weight, weight_limit, shape, 0, count, 2, candidates, 0, lookup, 0, bits, 1
    )


@wp.kernel(enable_backward=False, module="tests.math.bit_sets")
def list_bits(
    bits: wp.array[wp.uint32],
    begin: int,
    end: int,
    # out
    found: wp.array[int],  # [bit] the set bits in order, -1 behind them
):
    count = int(0)
    index = next_set_bit(bits, 1, begin, end)
    while index < end:
        found[count] = index
        count += 1
        index = next_set_bit(bits, 1, index + 1, end)


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 70, 300, 1100])
def test_the_marked_pairs_are_those_whose_boxes_overlap(count, has_weights):
    """Each candidate pair is compared with NumPy, for full and for partly filled blocks of boxes.

    Where they are many, boxes of other blocks are elsewhere, most of them far away and some just touching.
    """
    rng = np.random.default_rng(count)
    # Two shapes that the worlds share come first; the others begin at index 2.
    boxes = rng.uniform(0.0, 1.0, (count + 2, 6)).astype(np.float32)
    boxes[:, 3:] *= 0.3
    if count > 70:
        cluster = np.arange(count + 2) // 20
        boxes[:, :3] += 0.7 * rng.integers(0, 4, (cluster[-1] + 1, 3))[cluster].astype(np.float32)
        # Two far from the origin that touch but for rounding, in different blocks.
        boxes[10, :], boxes[200, :] = (7.3, 9.1, 8.7, 0.1, 0.2, 0.3), (7.5, 9.1, 8.7, 0.1, 0.2, 0.3)
    boxes[count // 2, 3:] = -1e30  # switched off
    boxes[-1, 0] = np.nan
    names = np.concatenate([[-2], np.arange(count - 1)]).astype(np.int32)
    shapes = np.where(names < 0, -1 - names, names + 2)
    pairs = np.argwhere(np.triu(rng.random((count, count)) < 0.6, 1))
    rng.shuffle(pairs)
    lookup = np.full((count, count), -1, dtype=np.int32)
    lookup[pairs[:, 0], pairs[:, 1]] = lookup[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    words = np.zeros((count, -(-count // LANE_COUNT)), dtype=np.uint32)
    for one, two in pairs:
        words[one, two // LANE_COUNT] |= np.uint32(1) << np.uint32(two % LANE_COUNT)
    weight, limit = rng.integers(0, 8, (2, count + 2)).astype(np.float32)
    bits = wp.zeros(2 + len(pairs) // LANE_COUNT, dtype=wp.uint32, device="cpu")
    wp.launch(
        mark_all,
        dim=1,
        inputs=[
            wp.array(boxes, dtype=bounds_vector, device="cpu"),
            int(has_weights),
            wp.array(weight if has_weights else [], dtype=float, device="cpu"),
            wp.array(limit if has_weights else [], dtype=float, device="cpu"),
            wp.array(names, dtype=int, device="cpu"),
            wp.array(words.reshape(-1), dtype=wp.uint32, device="cpu"),
            wp.array(lookup.reshape(-1), dtype=int, device="cpu"),
        ],
        outputs=[bits],
        device="cpu",
    )
    a, b = boxes[shapes[pairs[:, 0]]], boxes[shapes[pairs[:, 1]]]
    overlaps = (np.abs(a[:, :3] - b[:, :3]) <= a[:, 3:] + b[:, 3:]).all(axis=1)
    if has_weights:
        excess = (weight - limit)[shapes]
        overlaps &= excess[pairs[:, 0]] + excess[pairs[:, 1]] > 0.0
    expected = np.flatnonzero(overlaps)
    for begin, end in ((0, len(pairs)), (3, len(pairs) // 2), (len(pairs), len(pairs))):
        found = wp.full(len(pairs) + 1, value=-1, dtype=int, device="cpu")
        wp.launch(list_bits, dim=1, inputs=[bits, begin, end], outputs=[found], device="cpu")
        within = expected[(expected >= begin) & (expected < end)]
        np.testing.assert_array_equal(found.numpy()[: len(within)], within)
        assert (found.numpy()[len(within) :] == -1).all()
    assert bits.numpy()[0] == 0
