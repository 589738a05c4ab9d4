"""Sets of pairs as bits, in native code: which boxes of a world overlap, and the pairs of a set one by one.

Boxes are compared 16 at a time, in a loop that the compiler turns into vector instructions: comparing every
two of thirty boxes so takes as long as comparing a dozen pairs by index. (Of 32 at a time, most are none in
the last block, and the same box in the first.)
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

LANE_COUNT = 32
"""Bits of a word."""

_COUNT_ZEROS = """
    #ifdef __CUDA_ARCH__
    #define PLURIVERSE_LOWEST_BIT(word) (__ffs(word) - 1)
    #else
    #define PLURIVERSE_LOWEST_BIT(word) __builtin_ctz(word)
    #endif
"""

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
    for (int begin = 0; begin < count; begin += 16) {
        const int size = count - begin < 16 ? count - begin : 16;
        float lanes[7][16], most = 0.0f;
        for (int l = 0; l < 16; ++l) {
            const int entry = entries[begin + (l < size ? l : 0)];
            const int one = entry < 0 ? -1 - entry : first_shape + entry;
            for (int c = 0; c < 6; ++c) lanes[c][l] = boxes[6 * one + c];
            lanes[6][l] = has_weights ? weights[one] - limits[one] : 1.0f;
            most = lanes[6][l] > most ? lanes[6][l] : most;
        }
        for (int row = 0; row < begin + size; ++row) {
            unsigned left = (wanted[row * word_count + begin / 32] >> begin % 32) & 0xffffu;
            if (!left) continue;
            const int entry = entries[row];
            const int one = entry < 0 ? -1 - entry : first_shape + entry;
            const float* box = boxes + 6 * one;
            const float excess = has_weights ? weights[one] - limits[one] : 1.0f;
            if (!(excess + most > 0.0f)) continue;
            const float x = box[0], y = box[1], z = box[2], dx = box[3], dy = box[4], dz = box[5];
            unsigned near = 0;
            for (int l = 0; l < 16; ++l) {
                const float ax = x - lanes[0][l], ay = y - lanes[1][l], az = z - lanes[2][l];
                const unsigned hit = ((ax < 0.0f ? -ax : ax) <= dx + lanes[3][l])
                    & ((ay < 0.0f ? -ay : ay) <= dy + lanes[4][l])
                    & ((az < 0.0f ? -az : az) <= dz + lanes[5][l])
                    & (excess + lanes[6][l] > 0.0f);
                near |= hit << l;
            }
            for (left &= near; left; left &= left - 1) {
                const int pair = pairs[row * count + begin + PLURIVERSE_LOWEST_BIT(left)];
                words[pair >> 5] |= 1u << (pair & 31);
            }
        }
    }
"""


@wp.func_native(_COUNT_ZEROS + _NEXT)
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


@functools.cache
def overlap_functions(box_type: Any) -> SimpleNamespace:
    """Return `mark_overlaps` for boxes of a vector type: centre and half extents, six float32."""

    @wp.func_native(_COUNT_ZEROS + _MARK)
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

    return SimpleNamespace(mark_overlaps=mark_overlaps)
