"""Random numbers by counting: a block cipher of (what, where, when), so that no number depends on another.

`philox` is Philox4x32-10 of [Salmon2011]: ten rounds that scramble a counter of four words under a key of
two. A draw is named by its counter (the environment, its episode, the entity, the draw) and its key (the
seed, the stream). So a world draws the same numbers whatever other worlds there are, in whatever order.
"""

import warp as wp

# Multipliers and key increments of [Salmon2011] table 2 and section 3.2 (Weyl sequence of the golden ratio
# and the square root of 3).
MULTIPLIER_0 = wp.constant(wp.uint64(0xD2511F53))
MULTIPLIER_1 = wp.constant(wp.uint64(0xCD9E8D57))
WEYL_0 = wp.constant(wp.uint32(0x9E3779B9))
WEYL_1 = wp.constant(wp.uint32(0xBB67AE85))
ROUND_COUNT = wp.constant(10)
# Spacing of uniform numbers: 24 bits, all that a float32 between 0 and 1 holds evenly.
UNIFORM_STEP = wp.constant(wp.float32(2.0**-24))
OPEN_UNIFORM_STEP = wp.constant(wp.float64(2.0**-32))


@wp.struct
class RandomBlock:
    """Four independent words of 32 random bits."""

    word0: wp.uint32
    word1: wp.uint32
    word2: wp.uint32
    word3: wp.uint32


@wp.func
def philox(
    counter0: wp.uint32,
    counter1: wp.uint32,
    counter2: wp.uint32,
    counter3: wp.uint32,
    key0: wp.uint32,
    key1: wp.uint32,
) -> RandomBlock:
    """Return Philox4x32-10 of a counter under a key ([Salmon2011] section 3.2)."""
    c0 = wp.uint32(counter0)
    c1 = wp.uint32(counter1)
    c2 = wp.uint32(counter2)
    c3 = wp.uint32(counter3)
    k0 = wp.uint32(key0)
    k1 = wp.uint32(key1)
    half = wp.uint64(32)
    for _round in range(ROUND_COUNT):
        product0 = MULTIPLIER_0 * wp.uint64(c0)
        product1 = MULTIPLIER_1 * wp.uint64(c2)
        next0 = wp.uint32(product1 >> half) ^ c1 ^ k0
        next2 = wp.uint32(product0 >> half) ^ c3 ^ k1
        c1 = wp.uint32(product1)
        c3 = wp.uint32(product0)
        c0 = next0
        c2 = next2
        k0 = k0 + WEYL_0
        k1 = k1 + WEYL_1
    block = RandomBlock()
    block.word0 = c0
    block.word1 = c1
    block.word2 = c2
    block.word3 = c3
    return block


@wp.func
def uniform_of(word: wp.uint32) -> wp.float32:
    """Return a number in [0, 1) from 32 random bits."""
    return wp.float32(word >> wp.uint32(8)) * UNIFORM_STEP


@wp.func
def open_uniform_of(word: wp.uint32) -> wp.float64:
    """Return a number strictly between 0 and 1 from 32 random bits, the same distance from both ends."""
    return (wp.float64(word) + wp.float64(0.5)) * OPEN_UNIFORM_STEP
