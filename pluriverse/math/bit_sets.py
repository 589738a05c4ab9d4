"""Sets of pairs as bits, in native code: which boxes of a world overlap, and the pairs of a set one by one.

Boxes are compared 16 at a time, in a loop that the compiler turns into vector instructions: comparing every
two of thirty boxes so takes as long as comparing a dozen pairs by index. (Of 32 at a time, most are none in
the last block, and the same box in the first.)
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.lane_records import LANE_RECORDS

LANE_COUNT = 32
"""Bits of a word."""

LOWEST_BIT = """
    #ifdef __CUDA_ARCH__
    #define PLURIVERSE_LOWEST_BIT(word) (__ffs(word) - 1)
    #else
    #define PLURIVERSE_LOWEST_BIT(word) __builtin_ctz(word)
    #endif
"""
"""Native code that declares `PLURIVERSE_LOWEST_BIT(word)`, the index of the lowest bit that is set."""

# Shapes from which boxes around sixteen are compared first. Those of one body mostly follow each other.
FEWEST_IN_BLOCKS = 128
# Boxes around others are wider by this fraction, so that rounding loses no pair that the comparison finds.
_BLOCK_ROUNDING = "1.0e-6f"

_NEXT = """
    if (begin >= end) return end;
    const unsigned* words = (const unsigned*)bits.data + first_word;
    int word = begin >> 5;
    unsigned rest = words[word] & (0xffffffffu << (begin & 31));
    while (!rest) {
        ++word;
        if (word * 32 >= end) return end;
        rest = words[word];
    }
    const int found = word * 32 + PLURIVERSE_LOWEST_BIT(rest);
    return found < end ? found : end;
"""

_MARK = """
    const float* boxes = (const float*)bounds.data;
    const float* weights = weight.data;
    const float* limits = weight_limit.data;
    const int* entries = shape.data + first_entry;
    const unsigned* wanted = (const unsigned*)candidates.data + first_candidate;
    const int* pairs = lookup.data + first_lookup;
    unsigned* words = (unsigned*)bits.data + first_word;
    const int word_count = (count + 31) / 32;
    // Lower ends, upper ends and largest excess of the first blocks.
    enum { BLOCKS = 64 };
    float around[7][BLOCKS];
    const bool has_blocks = LANES > 1 && count >= FEWEST_IN_BLOCKS;
    for (int begin = 0; begin < count; begin += LANES) {
        const int size = count - begin < LANES ? count - begin : LANES;
        float lanes[7][LANES], most = 0.0f;
        const float* rows[LANES];
        #ifndef __CUDA_ARCH__
        #pragma clang loop vectorize(disable)
        #endif
        for (int l = 0; l < LANES; ++l) {
            const int entry = entries[begin + (l < size ? l : 0)];
            const int one = entry < 0 ? -1 - entry : first_shape + entry;
            rows[l] = boxes + 6 * one;
            lanes[6][l] = has_weights ? weights[one] - limits[one] : 1.0f;
            most = lanes[6][l] > most ? lanes[6][l] : most;
        }
        records::load4(rows, lanes);
        records::load4(rows, lanes + 2, 2);
        float low[3] = {1.0e30f, 1.0e30f, 1.0e30f}, high[3] = {-1.0e30f, -1.0e30f, -1.0e30f};
        if (has_blocks) {
            for (int c = 0; c < 3; ++c) {
                for (int l = 0; l < LANES; ++l) {
                    const float middle = lanes[c][l], half = lanes[3 + c][l];
                    const float rounding = BLOCK_ROUNDING * ((middle < 0.0f ? -middle : middle) + half);
                    const float lower = middle - half - rounding, upper = middle + half + rounding;
                    low[c] = lower < low[c] ? lower : low[c];
                    high[c] = upper > high[c] ? upper : high[c];
                }
            }
            const int block = begin / LANES;
            if (block < BLOCKS) {
                for (int c = 0; c < 3; ++c) {
                    around[c][block] = low[c];
                    around[3 + c][block] = high[c];
                }
                around[6][block] = most;
            }
        }
        for (int row = 0; row < begin + size; ++row) {
            const int block = row / LANES;
            if (has_blocks && row % LANES == 0 && block < BLOCKS) {
                const bool meets = low[0] <= around[3][block] && around[0][block] <= high[0]
                    && low[1] <= around[4][block] && around[1][block] <= high[1]
                    && low[2] <= around[5][block] && around[2][block] <= high[2]
                    && around[6][block] + most > 0.0f;
                if (!meets) {
                    row += LANES - 1;
                    continue;
                }
            }
            unsigned left = (wanted[row * word_count + begin / 32] >> begin % 32) & ((1u << LANES) - 1);
            if (!left) continue;
            const int entry = entries[row];
            const int one = entry < 0 ? -1 - entry : first_shape + entry;
            const float* box = boxes + 6 * one;
            const float excess = has_weights ? weights[one] - limits[one] : 1.0f;
            if (!(excess + most > 0.0f)) continue;
            const float x = box[0], y = box[1], z = box[2], dx = box[3], dy = box[4], dz = box[5];
            int hit[LANES];
            for (int l = 0; l < LANES; ++l) {
                const float ax = x - lanes[0][l], ay = y - lanes[1][l], az = z - lanes[2][l];
                hit[l] = ((ax < 0.0f ? -ax : ax) <= dx + lanes[3][l])
                    & ((ay < 0.0f ? -ay : ay) <= dy + lanes[4][l])
                    & ((az < 0.0f ? -az : az) <= dz + lanes[5][l])
                    & (excess + lanes[6][l] > 0.0f);
            }
            for (left &= records::bits(hit); left; left &= left - 1) {
                const int pair = pairs[row * count + begin + PLURIVERSE_LOWEST_BIT(left)];
                words[pair >> 5] |= 1u << (pair & 31);
            }
        }
    }
""".replace("FEWEST_IN_BLOCKS", str(FEWEST_IN_BLOCKS)).replace("BLOCK_ROUNDING", _BLOCK_ROUNDING)
"""Where no box of a block can overlap any of another, their rows are skipped."""

_MARK_SORTED = """
    const float* boxes = (const float*)bounds.data;
    const float* weights = weight.data;
    const float* limits = weight_limit.data;
    const int* entries = shape.data + first_entry;
    const int* sorted = order.data + first_order;
    const int* pairs = lookup.data + first_lookup;
    unsigned* words = (unsigned*)bits.data + first_word;
    const int stride = (count + 31) / 32 * 32;
    float* lane = scratch.data + first_scratch;
    float* low = lane + 6 * stride;
    for (int k = 0; k < stride; ++k) {
        const int entry = entries[sorted[k < count ? k : count - 1]];
        const float* box = boxes + 6 * (entry < 0 ? -1 - entry : first_shape + entry);
        for (int c = 0; c < 6; ++c) lane[c * stride + k] = k < count || c < 3 ? box[c] : -1.0e30f;
        const float size = (box[axis] < 0.0f ? -box[axis] : box[axis])
            + (box[axis + 3] < 0.0f ? -box[axis + 3] : box[axis + 3]);
        low[k] = box[axis] - box[axis + 3] - rounding * size;
    }
    for (int k = 0; k < count; ++k) {
        const float x = lane[k], y = lane[stride + k], z = lane[2 * stride + k];
        const float dx = lane[3 * stride + k], dy = lane[4 * stride + k], dz = lane[5 * stride + k];
        const float middle = lane[axis * stride + k], half = lane[(axis + 3) * stride + k];
        const float size = (middle < 0.0f ? -middle : middle) + (half < 0.0f ? -half : half);
        const float limit = middle + half + rounding * size;
        const int row = sorted[k] * count;
        const int first = entries[sorted[k]];
        const int one = first < 0 ? -1 - first : first_shape + first;
        for (int begin = (k + 1) / 32 * 32; begin < count; begin += 32) {
            if (low[begin > k ? begin : k + 1] > limit) break;
            const float* l0 = lane + begin;
            unsigned near = 0;
            for (int l = 0; l < 32; ++l) {
                const float ax = x - l0[l], ay = y - l0[stride + l], az = z - l0[2 * stride + l];
                const unsigned hit = ((ax < 0.0f ? -ax : ax) <= dx + l0[3 * stride + l])
                    & ((ay < 0.0f ? -ay : ay) <= dy + l0[4 * stride + l])
                    & ((az < 0.0f ? -az : az) <= dz + l0[5 * stride + l]);
                near |= hit << l;
            }
            if (begin <= k) near &= 0xfffffffeu << (k - begin);
            for (; near; near &= near - 1) {
                const int other = sorted[begin + PLURIVERSE_LOWEST_BIT(near)];
                if (has_weights) {
                    const int two = entries[other] < 0 ? -1 - entries[other] : first_shape + entries[other];
                    if (!(weights[one] + weights[two] > limits[one] + limits[two])) continue;
                }
                const int pair = pairs[row + other];
                if (pair >= 0) words[pair >> 5] |= 1u << (pair & 31);
            }
        }
    }
"""
"""Sorted boxes are laid out one component after the other, so that 32 neighbours are compared at a time."""


@wp.func_native(LOWEST_BIT + _NEXT)
def next_set_bit(
    bits: wp.array[wp.uint32],
    first_word: int,
    begin: int,
    end: int,
) -> int:
    """Return the first set bit from `begin` on, or `end` if there is none before.

    Args:
        bits: Words of many sets.
        first_word: First word of this set.
        begin: First bit that counts.
        end: One past the last bit that counts.
    """
    ...


@made_once
def overlap_functions(box_type: Any) -> SimpleNamespace:
    """Return `mark_overlaps` and `mark_sorted_overlaps`.

    Args:
        box_type: Vector type of boxes: centre and half extents, six float32.
    """

    @wp.func_native(LOWEST_BIT + LANE_RECORDS + _MARK)
    def mark_overlaps(
        bounds: wp.array(dtype=box_type),
        has_weights: int,
        weight: wp.array[float],
        weight_limit: wp.array[float],
        shape: wp.array[int],
        first_entry: int,
        count: int,
        first_shape: int,
        candidates: wp.array[wp.uint32],
        first_candidate: int,
        lookup: wp.array[int],
        first_lookup: int,
        bits: wp.array[wp.uint32],
        first_word: int,
    ):
        """Set the bits of those candidate pairs whose boxes overlap. NaN and negative extents never do.

        Args:
            bounds: Boxes of all shapes [m], shape [shape].
            has_weights: Whether only pairs count whose weights exceed their limits together.
            weight: Weights, shape [shape].
            weight_limit: Their limits, shape [shape].
            shape: Shapes to compare: index from `first_shape`, or -1 - index, shape [entry].
            first_entry: First entry of the shapes of this world.
            count: How many there are, n.
            first_shape: First shape of this world.
            candidates: For each of them a bit for each later one that it may touch, in rows of n / 32 words.
            first_candidate: First word of these rows.
            lookup: Bit of the pair of every two of them, n rows of n.
            first_lookup: First entry of these rows.
            bits: Words of many sets, written.
            first_word: First word of the set of this world.
        """
        ...

    @wp.func_native(LOWEST_BIT + _MARK_SORTED)
    def mark_sorted_overlaps(
        bounds: wp.array(dtype=box_type),
        has_weights: int,
        weight: wp.array[float],
        weight_limit: wp.array[float],
        shape: wp.array[int],
        first_entry: int,
        count: int,
        first_shape: int,
        order: wp.array[int],
        first_order: int,
        axis: int,
        rounding: float,
        scratch: wp.array[float],
        first_scratch: int,
        lookup: wp.array[int],
        first_lookup: int,
        bits: wp.array[wp.uint32],
        first_word: int,
    ):
        """Do the same with shapes that are sorted along an axis, comparing those that overlap along it.

        Args:
            bounds: Boxes of all shapes [m], shape [shape].
            has_weights: Whether only pairs count whose weights exceed their limits together.
            weight: Weights, shape [shape].
            weight_limit: Their limits, shape [shape].
            shape: Shapes to compare: index from `first_shape`, or -1 - index, shape [entry].
            first_entry: First entry of the shapes of this world.
            count: How many there are, n.
            first_shape: First shape of this world.
            order: Entries of many worlds, from `first_entry`, by their lower ends along the axis.
            first_order: First of this world.
            axis: Axis, 0 to 2.
            rounding: Fraction of centre and half extent by which ends are moved out.
            scratch: Room for `sorted_scratch_size(n)` numbers from `first_scratch` on.
            first_scratch: See `scratch`.
            lookup: Bit of the pair of every two shapes, -1 for none, n rows of n.
            first_lookup: First entry of these rows.
            bits: Words of many sets, written.
            first_word: First word of the set of this world.
        """
        ...

    return SimpleNamespace(mark_overlaps=mark_overlaps, mark_sorted_overlaps=mark_sorted_overlaps)


def sorted_scratch_size(count: Any) -> Any:
    """Return how many numbers `mark_sorted_overlaps` writes for `count` shapes."""
    return 7 * (-(-count // LANE_COUNT) * LANE_COUNT)
