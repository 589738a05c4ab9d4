"""Lanes: native code that computes eight worlds of one template at once, in the lanes of vector instructions.

Worlds of one template run through a stage without data-dependent branches in step: the same joints in the
same order, with other numbers. So a scalar of the formulas becomes a vector of one number per world, and one
instruction computes eight worlds. Every lane makes the operations of the code for one world in the same
order. So a world has the same bits in a lane, in any lane, and alone.

A snippet begins with `lane_types(real)`. It then has the type `T` of a scalar, types of Warp's templates
over it, and functions that move data between the arrays, where a world's numbers are contiguous, and memory
in which the lanes of each number are. Eight rows of eight numbers are transposed in registers: that takes
about a quarter of a nanosecond per number and world. Runs of less than eight take longer per number.

Only CPUs run such code: on a GPU each thread is a lane already.
"""

from typing import Any

import warp as wp

from pluriverse.math.dense import CTYPE

LANES = 8
"""Number of worlds in a tile, the lanes of a vector."""

TRANSPOSE = """
    // Lane l of b[k] becomes lane k of a[l].
    auto transpose = [](const auto* a, auto* b) {
        __typeof__(a[0] + a[0]) p[8], q[8];
        #pragma unroll
        for (int i = 0; i < 8; i += 2) {
            p[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
            p[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
        }
        #pragma unroll
        for (int i = 0; i < 8; i += 4) {
            #pragma unroll
            for (int j = i; j < i + 2; ++j) {
                q[j] = __builtin_shufflevector(p[j], p[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
                q[j + 2] = __builtin_shufflevector(p[j], p[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
            }
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            b[j] = __builtin_shufflevector(q[j], q[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
            b[j + 4] = __builtin_shufflevector(q[j], q[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        }
    };
"""
"""`transpose(a, b)`: eight vectors of eight numbers."""

_TYPES = (
    """
    typedef REAL S;
    typedef S T __attribute__((ext_vector_type(8)));
    using V3 = wp::vec_t<3, T>;
    using V6 = wp::vec_t<6, T>;
    using V10 = wp::vec_t<10, T>;
    using M3 = wp::mat_t<3, 3, T>;
    using Q = wp::quat_t<T>;
"""
    + TRANSPOSE
    + """
    // to[k] gets from[base[l] + k] in lane l. The numbers may be of the other precision.
    auto gather = [&](const auto* from, const int* base, int count, T* to) {
        typedef __typeof__(from[0] + 0) E;
        typedef E EV __attribute__((ext_vector_type(8), aligned(sizeof(E))));
        // The last block of eight may overlap the one before it.
        for (int done = 0; done < count && count >= 8; done += 8) {
            const int k = done + 8 <= count ? done : count - 8;
            T rows[8];
            #pragma unroll
            for (int l = 0; l < 8; ++l) {
                rows[l] = __builtin_convertvector(*(const EV*)(from + base[l] + k), T);
            }
            transpose(rows, to + k);
        }
        typedef E EH __attribute__((ext_vector_type(4), aligned(sizeof(E))));
        typedef S H __attribute__((ext_vector_type(4)));
        for (int done = 0; done < count && count >= 4 && count < 8; done += 4) {
            const int k = done + 4 <= count ? done : count - 4;
            T rows[8], columns[8];
            #pragma unroll
            for (int l = 0; l < 8; ++l) {
                const H one = __builtin_convertvector(*(const EH*)(from + base[l] + k), H);
                rows[l] = __builtin_shufflevector(one, one, 0, 1, 2, 3, -1, -1, -1, -1);
            }
            transpose(rows, columns);
            #pragma unroll
            for (int c = 0; c < 4; ++c) to[k + c] = columns[c];
        }
        for (int k = 0; k < count && count < 4; ++k) {
            #pragma unroll
            for (int l = 0; l < 8; ++l) to[k][l] = S(from[base[l] + k]);
        }
    };
    // The way back: lane l of from[k] goes to to[base[l] + k].
    auto scatter = [&](const T* from, int count, auto* to, const int* base) {
        typedef __typeof__(to[0] + 0) E;
        typedef E EV __attribute__((ext_vector_type(8), aligned(sizeof(E))));
        for (int done = 0; done < count && count >= 8; done += 8) {
            const int k = done + 8 <= count ? done : count - 8;
            T rows[8];
            transpose(from + k, rows);
            #pragma unroll
            for (int l = 0; l < 8; ++l) *(EV*)(to + base[l] + k) = __builtin_convertvector(rows[l], EV);
        }
        typedef S H __attribute__((ext_vector_type(4)));
        typedef E EH __attribute__((ext_vector_type(4), aligned(sizeof(E))));
        for (int done = 0; done < count && count >= 4 && count < 8; done += 4) {
            const int k = done + 4 <= count ? done : count - 4;
            T columns[8], rows[8];
            #pragma unroll
            for (int c = 0; c < 8; ++c) columns[c] = from[k + (c < 4 ? c : 3)];
            transpose(columns, rows);
            #pragma unroll
            for (int l = 0; l < 8; ++l) {
                const H one = __builtin_shufflevector(rows[l], rows[l], 0, 1, 2, 3);
                *(EH*)(to + base[l] + k) = __builtin_convertvector(one, EH);
            }
        }
        for (int k = 0; k < count && count < 4; ++k) {
            #pragma unroll
            for (int l = 0; l < 8; ++l) to[base[l] + k] = E(from[k][l]);
        }
    };
    // Memory of this call, for so many scalars.
    #define PLURIVERSE_LANES(count) ((T*)__builtin_alloca_with_align(sizeof(T) * (count), 8 * sizeof(T)))
"""
)

_BLOCK = (
    """
    typedef REAL S;
    #if defined(__CUDA_ARCH__) || !defined(__clang__)
    enum { LANES = 1 };
    typedef S T;
    typedef bool M;
    typedef int I;
    const I lane = 0;
    auto any = [](M a) { return a; };
    auto inverse = [](M a) { return !a; };
    auto root = [](T a) { return sqrt(a); };
    auto add_lanes = [](const T* rows) { return rows[0]; };
    auto transpose = [](const T* rows, T* columns) { columns[0] = rows[0]; };
    #else
    enum { LANES = 8 };
    typedef S T __attribute__((ext_vector_type(8)));
    typedef __typeof__(T(0) < T(0)) M;
    typedef M I;
    const I lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
    auto any = [](M a) { return __builtin_reduce_or(a) != 0; };
    auto inverse = [](M a) { return ~a; };
    auto root = [](T a) { return __builtin_elementwise_sqrt(a); };
"""
    + TRANSPOSE
    + """    // Lane l of the result is the sum of the lanes of rows[l], from the first one on.
    auto add_lanes = [transpose](const T* rows) {
        T columns[8];
        transpose(rows, columns);
        T sum = columns[0];
        #pragma unroll
        for (int i = 1; i < 8; ++i) sum += columns[i];
        return sum;
    };
    #endif
    auto larger = [](T a, T b) { return (a >= b) ? a : ((b == b) ? b : a); };
    auto smaller = [](T a, T b) { return (a <= b) ? a : ((b == b) ? b : a); };
    auto everywhere = [](bool a) { return M(a ? -1 : 0); };
    auto numbers = [](T& a) { return (S*)&a; };
"""
)


def block_types(real: Any) -> str:
    """Return the beginning of a snippet over up to eight entries of one world, with scalars of type `real`.

    On a CPU an entry is a lane of a vector; a GPU goes from entry to entry.

    - `LANES`: how many entries there are at a time. `T`: a number of type `S` of each; `M`: whether, of each;
      `I`: an integer of each; `lane`: the number of the lane.
    - `any(mask)`; `inverse(mask)`; `everywhere(flag)`: in each lane; `numbers(a)`: the lanes as an array.
    - `root`, `larger`, `smaller`: functions of math.h as Warp has them; of a number and NaN, the number.
    - `add_lanes(rows)`: lane l gets the sum of the lanes of `rows[l]`; `transpose(rows, columns)`.
    """
    return _BLOCK.replace("REAL", CTYPE[real])


def lane_types(real: Any) -> str:
    """Return the beginning of a snippet over eight worlds with scalars of type `real` (module docstring).

    - `T`: a scalar of each world; `V3`, `V6`, `V10`, `M3`, `Q`: Warp's vectors, matrix, quaternion of them.
    - `gather(from, base, count, to)`: `to[k]`, of type T, gets `from[base[l] + k]` in lane l.
    - `scatter(from, count, to, base)`: lane l of `from[k]` goes to `to[base[l] + k]`.
    - `PLURIVERSE_LANES(count)`: memory for so many T, freed when the snippet returns.

    The arrays hold numbers of single or double precision.
    """
    return _TYPES.replace("REAL", CTYPE[real])


def lane_code(real: Any, text: str) -> str:
    """Return a snippet over eight worlds: `text` with the types of `lane_types`, and nothing on a GPU."""
    return f"#if !defined(__CUDA_ARCH__)\n{lane_types(real)}{text}\n#endif\n"


def lane_count(device: wp.Device) -> int:
    """Return how many entries of a list of worlds a thread takes: those of a tile on a CPU, one on a GPU."""
    return LANES if device.is_cpu else 1


@wp.func
def is_tile(worlds: wp.array[int], first: int, world_template: wp.array[int]) -> bool:
    """Return whether eight entries of a list from `first` on are worlds of one template."""
    if first + LANES > worlds.shape[0]:
        return False
    if worlds[first] < 0:
        return False
    template = world_template[worlds[first]]
    for lane in range(1, LANES):
        world = worlds[first + lane]
        if world < 0:
            return False
        if world_template[world] != template:
            return False
    return True
