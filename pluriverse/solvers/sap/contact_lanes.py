"""Contacts in lanes: native code that computes eight contacts of one world at once.

The laws of contacts branch, but each branch is short, so eight contacts take all of them and each keeps the
numbers of its own. A lane makes the operations of the code for one contact in the same order. Numbers of a
contact are contiguous (`SapWorkspace`), so eight of them are loaded as whole vectors and transposed.

A GPU has a lane a thread: there the same text computes one contact at a time.
"""

from typing import Any

from pluriverse.math.dense import CTYPE
from pluriverse.math.lanes import TRANSPOSE

_LANES = (
    """
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    constexpr int LANES = 8;
    typedef V lane __attribute__((ext_vector_type(8)));
    typedef V numbers __attribute__((ext_vector_type(8), aligned(sizeof(V))));
"""
    + TRANSPOSE
    + """
    auto root = [](lane a) { return __builtin_elementwise_sqrt(a); };
    auto any = [](auto mask) { return __builtin_reduce_or(mask) != 0; };
    // Eight or more consecutive numbers of each contact: the last eight may overlap those before.
    auto load = [&](const V* const* from, const int count, lane* to) {
        for (int done = 0; done < count; done += 8) {
            const int k = done + 8 <= count ? done : count - 8;
            lane rows[8];
            #pragma unroll
            for (int l = 0; l < 8; ++l) rows[l] = *(const numbers*)(from[l] + k);
            transpose(rows, to + k);
        }
    };
    #else
    constexpr int LANES = 1;
    typedef V lane;
    auto root = [](lane a) { return sqrt(a); };
    auto any = [](bool mask) { return mask; };
    auto load = [](const V* const* from, const int count, lane* to) {
        for (int k = 0; k < count; ++k) to[k] = from[0][k];
    };
    #endif
    // Numbers of a contact from its frame on, and from its velocity on, as `ITERATED_FIELDS` orders them. The
    // last are no numbers, but integers: so whole cache lines are loaded.
    enum { FRAME = 0, ARM0 = 9, ARM1 = 12, PLACE_COUNT = 16 };
    enum {
        VELOCITY = 0,
        SLOPE = 3,
        IMPULSE = 6,
        NORMAL = 9,  // R_n, R_t and so on
        TANGENTIAL = 10,
        FRICTION = 11,
        BOUND = 12,
        SOFT = 13,
        BIAS = 14,
        TERM_COUNT = 16
    };
"""
)


def contact_lanes(real: Any) -> str:
    """Return the beginning of a snippet over contacts in lanes, with scalars of type `real`.

    - `V`: a scalar; `lane`: one for each of `LANES` contacts.
    - `root(a)`: square root; `any(mask)`: whether a comparison holds in some lane.
    - `load(from, count, to)`: `to[k]` gets number k from the address of each contact, of eight or more.
    - `FRAME` and so on: which number of a contact is what.
    """
    return f"using V = {CTYPE[real]};" + _LANES
