"""Block-sparse Cholesky factorization of one world's coupled trees, in native code.

The Hessian of a world has one dense diagonal block per kinematic tree and one off-diagonal block for each
pair of trees that touch. `order_blocks` eliminates the trees by minimum degree on the graph of those pairs
([George1989]) and lays out the blocks of the factor, fill included; the numeric part is a right-looking block
factorization H = L L^T. Trees that touch nothing else keep out of it: their packed rows factor without fill
(`math.dense`).

Blocks are column-major, n_row x n_col, and the block of trees i and j is kept with the tree that is
eliminated later as rows. Every inner loop runs down one column of a block, so it vectorizes. The work of a
pile of boxes grows with the number of contacts between them, not with the cube of the number of boxes.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE

_ORDER = """
    using word = unsigned long long;
    const int n = tree_count;
    const int words = (n + 63) / 64;
    word* graph = (word*)(adjacency.data + adjacency_base);
    const int* on = coupled.data + tree_base;
    const int* n_dof = size.data + size_base;
    int* sequence = order.data + tree_base;
    int* place = position.data + tree_base;
    int* loc = location.data + location_base;
    int count = 0, used = 0, left = 0;
    // Until a tree is eliminated, its place holds -1 - its degree.
    auto note_degree = [&](int b) {
        int degree = 0;
        for (int w = 0; w < words; ++w) {
            word bits = graph[b * words + w];
    #ifdef __CUDA_ARCH__
            degree += __popcll(bits);
    #else
            degree += __builtin_popcountll(bits);
    #endif
        }
        place[b] = -1 - degree;
    };
    for (int b = 0; b < n; ++b) {
        place[b] = -(1 << 30);
        if (!on[b]) continue;
        left += 1;
        note_degree(b);
    }
    while (count < left) {
        int best = 0, largest = -(1 << 30);
        for (int b = 0; b < n; ++b) {
            if (place[b] < 0 && place[b] > largest) {
                largest = place[b];
                best = b;
            }
        }
        place[best] = count;
        sequence[count++] = best;
        word* row = graph + best * words;
        loc[best * n + best] = used;
        used += n_dof[best] * n_dof[best];
        for (int i = 0; i < n; ++i) {
            if (!((row[i >> 6] >> (i & 63)) & 1ull)) continue;
            loc[i * n + best] = used;
            loc[best * n + i] = used;
            used += n_dof[i] * n_dof[best];
            word* other = graph + i * words;
            for (int w = 0; w < words; ++w) other[w] |= row[w];
            other[i >> 6] &= ~(1ull << (i & 63));
            other[best >> 6] &= ~(1ull << (best & 63));
            note_degree(i);
        }
    }
    return used;
"""

_COMMON = """
    using word = unsigned long long;
    auto lowest_bit = [](word bits) {
    #ifdef __CUDA_ARCH__
        return __ffsll((long long)bits) - 1;
    #else
        return __builtin_ctzll(bits);
    #endif
    };
    // A column of a block of six rows, as free bodies have them, in vector registers: in loops over six
    // rows the compiler mixes vectors of two lengths and moves numbers between them.
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    #define PV_SIX_ROWS
    #endif
"""

# Products and sums become one operation here: nothing is meant to cancel to the last bit.
_CONTRACT = """
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    #pragma clang fp contract(fast)
    #endif
"""

_FACTORIZE = (
    _COMMON
    + """
    const int n = tree_count;
    const int words = (n + 63) / 64;
    const word* graph = (const word*)(adjacency.data + adjacency_base);
    const int* n_dof = size.data + size_base;
    const int* sequence = order.data + tree_base;
    const int* place = position.data + tree_base;
    const int* loc = location.data + location_base;
    T* value = H.data + base;
    int ok = 1;
    #ifdef PV_SIX_ROWS
    typedef T vector4 __attribute__((ext_vector_type(4), aligned(sizeof(T))));
    typedef T vector2 __attribute__((ext_vector_type(2), aligned(sizeof(T))));
    #endif

    // D <- L with D = L L^T, m x m, and the inverses of its diagonal in their place.
    auto factorize_diagonal = [&](T* D, int m) {
"""
    + _CONTRACT
    + """
        if (m == 6) {
            // Unrolled, or the numbers would stay in memory.
            T l[6][6];
            #pragma unroll
            for (int c = 0; c < 6; ++c)
                #pragma unroll
                for (int r = c; r < 6; ++r) l[c][r] = D[6 * c + r];
            #pragma unroll
            for (int c = 0; c < 6; ++c) {
                if (!(l[c][c] > T(0))) ok = 0;
                l[c][c] = T(1) / sqrt(l[c][c]);
                #pragma unroll
                for (int r = c + 1; r < 6; ++r) l[c][r] *= l[c][c];
                #pragma unroll
                for (int e = c + 1; e < 6; ++e)
                    #pragma unroll
                    for (int r = e; r < 6; ++r) l[e][r] -= l[c][r] * l[c][e];
            }
            #pragma unroll
            for (int c = 0; c < 6; ++c)
                #pragma unroll
                for (int r = c; r < 6; ++r) D[6 * c + r] = l[c][r];
            return;
        }
        for (int c = 0; c < m; ++c) {
            T* dc = D + m * c;
            if (!(dc[c] > T(0))) ok = 0;
            const T inverse = T(1) / sqrt(dc[c]);
            for (int r = c + 1; r < m; ++r) dc[r] *= inverse;
            dc[c] = inverse;
            for (int e = c + 1; e < m; ++e) {
                const T s = dc[e];
                T* de = D + m * e;
                for (int r = e; r < m; ++r) de[r] -= dc[r] * s;
            }
        }
    };

    // X <- X L^-T with X n_i x m.
    auto solve_block = [](T* X, const T* D, int n_i, int m) {
"""
    + _CONTRACT
    + """
    #ifdef PV_SIX_ROWS
        if (n_i == 6 && m == 6) {
            vector4 a[6];
            vector2 b[6];
            #pragma unroll
            for (int c = 0; c < 6; ++c) {
                a[c] = *(const vector4*)(X + 6 * c);
                b[c] = *(const vector2*)(X + 6 * c + 4);
            }
            #pragma unroll
            for (int c = 0; c < 6; ++c) {
                a[c] *= D[7 * c];
                b[c] *= D[7 * c];
                #pragma unroll
                for (int e = c + 1; e < 6; ++e) {
                    a[e] -= a[c] * D[6 * c + e];
                    b[e] -= b[c] * D[6 * c + e];
                }
            }
            #pragma unroll
            for (int c = 0; c < 6; ++c) {
                *(vector4*)(X + 6 * c) = a[c];
                *(vector2*)(X + 6 * c + 4) = b[c];
            }
            return;
        }
    #endif
        for (int c = 0; c < m; ++c) {
            T* xc = X + n_i * c;
            const T inverse = D[m * c + c];
            for (int r = 0; r < n_i; ++r) xc[r] *= inverse;
            for (int e = c + 1; e < m; ++e) {
                const T s = D[m * c + e];
                T* xe = X + n_i * e;
                for (int r = 0; r < n_i; ++r) xe[r] -= xc[r] * s;
            }
        }
    };

    // Some columns and rows of Z <- Z - X Y^T, as many as `t` has.
    auto update_part = [](auto& t, T* Z, const T* X, const T* Y, int n_i, int n_j, int n_k) {
"""
    + _CONTRACT
    + """
        constexpr int columns = sizeof(t) / sizeof(t[0]), rows = sizeof(t[0]) / sizeof(T);
        for (int c = 0; c < columns; ++c)
            for (int r = 0; r < rows; ++r) t[c][r] = Z[n_i * c + r];
        for (int k = 0; k < n_k; ++k)
            for (int c = 0; c < columns; ++c)
                for (int r = 0; r < rows; ++r) t[c][r] -= X[n_i * k + r] * Y[n_j * k + c];
        for (int c = 0; c < columns; ++c)
            for (int r = 0; r < rows; ++r) Z[n_i * c + r] = t[c][r];
    };
    auto update_columns = [&](auto& eight, auto& two, auto& one, T* Z, const T* X, const T* Y,
                              int n_i, int n_j, int n_k) {
        int r = 0;
        for (; r + 8 <= n_i; r += 8) update_part(eight, Z + r, X + r, Y, n_i, n_j, n_k);
        for (; r + 2 <= n_i; r += 2) update_part(two, Z + r, X + r, Y, n_i, n_j, n_k);
        for (; r < n_i; ++r) update_part(one, Z + r, X + r, Y, n_i, n_j, n_k);
    };

    // Z <- Z - X Y^T with Z n_i x n_j, X n_i x n_k, Y n_j x n_k.
    auto update = [&](T* Z, const T* X, const T* Y, int n_i, int n_j, int n_k) {
"""
    + _CONTRACT
    + """
    #ifdef PV_SIX_ROWS
        if (n_i == 6 && n_j == 6 && n_k == 6) {
            vector4 a[6];
            vector2 b[6];
            for (int c = 0; c < 6; ++c) {
                a[c] = *(const vector4*)(Z + 6 * c);
                b[c] = *(const vector2*)(Z + 6 * c + 4);
            }
            for (int k = 0; k < 6; ++k) {
                const vector4 xa = *(const vector4*)(X + 6 * k);
                const vector2 xb = *(const vector2*)(X + 6 * k + 4);
                #pragma unroll
                for (int c = 0; c < 6; ++c) {
                    a[c] -= xa * Y[6 * k + c];
                    b[c] -= xb * Y[6 * k + c];
                }
            }
            for (int c = 0; c < 6; ++c) {
                *(vector4*)(Z + 6 * c) = a[c];
                *(vector2*)(Z + 6 * c + 4) = b[c];
            }
            return;
        }
    #endif
        T eight[3][8], two[3][2], one[3][1];
        T column_eight[1][8], column_two[1][2], column_one[1][1];
        int c = 0;
        for (; c + 3 <= n_j; c += 3)
            update_columns(eight, two, one, Z + n_i * c, X, Y + c, n_i, n_j, n_k);
        for (; c < n_j; ++c)
            update_columns(column_eight, column_two, column_one, Z + n_i * c, X, Y + c, n_i, n_j, n_k);
    };

    for (int p = 0; p < block_count; ++p) {
        const int b = sequence[p];
        const int m = n_dof[b];
        T* D = value + loc[b * n + b];
        factorize_diagonal(D, m);
        const word* row = graph + b * words;
        for (int w = 0; w < words; ++w)
            for (word bits = row[w]; bits; bits &= bits - 1) {
                const int i = 64 * w + lowest_bit(bits);
                const int m_i = n_dof[i];
                T* X = value + loc[i * n + b];
                solve_block(X, D, m_i, m);
                for (int v = 0; v <= w; ++v) {
                    // The pairs (i, j) with j <= i: each block of the remaining matrix is updated once.
                    word rest = row[v];
                    if (v == w) rest &= ~0ull >> (63 - (i & 63));
                    for (; rest; rest &= rest - 1) {
                        const int j = 64 * v + lowest_bit(rest);
                        const int m_j = n_dof[j];
                        const T* Y = value + loc[j * n + b];
                        T* target = value + loc[i * n + j];
                        const bool i_is_later = place[i] >= place[j];
                        update(
                            target,
                            i_is_later ? X : Y,
                            i_is_later ? Y : X,
                            i_is_later ? m_i : m_j,
                            i_is_later ? m_j : m_i,
                            m);
                    }
                }
            }
    }
    #undef PV_SIX_ROWS
    return ok;
"""
)

_SOLVE = (
    _COMMON
    + """
    const int n = tree_count;
    const int words = (n + 63) / 64;
    const word* graph = (const word*)(adjacency.data + adjacency_base);
    const int* n_dof = size.data + size_base;
    const int* dof = first_dof.data + size_base;
    const int* sequence = order.data + tree_base;
    const int* loc = location.data + location_base;
    const T* value = H.data + base;
    V* y = x.data + xbase;
    #ifdef PV_SIX_ROWS
    typedef V vector4 __attribute__((ext_vector_type(4), aligned(sizeof(V))));
    typedef V vector2 __attribute__((ext_vector_type(2), aligned(sizeof(V))));
    typedef T linear4 __attribute__((ext_vector_type(4), aligned(sizeof(T))));
    typedef T linear2 __attribute__((ext_vector_type(2), aligned(sizeof(T))));
    #endif
    auto up = [&](int b) {
"""
    + _CONTRACT
    + """
        const int m = n_dof[b];
        const T* D = value + loc[b * n + b];
        V* yb = y + dof[b];
        for (int c = 0; c < m; ++c) {
            const V s = yb[c] * V(D[m * c + c]);
            yb[c] = s;
            for (int r = c + 1; r < m; ++r) yb[r] -= V(D[m * c + r]) * s;
        }
        const word* row = graph + b * words;
        for (int w = 0; w < words; ++w)
            for (word bits = row[w]; bits; bits &= bits - 1) {
                const int i = 64 * w + lowest_bit(bits);
                const int m_i = n_dof[i];
                const T* X = value + loc[i * n + b];
                V* yi = y + dof[i];
    #ifdef PV_SIX_ROWS
                if (m == 6 && m_i == 6) {
                    vector4 head = *(const vector4*)yi;
                    vector2 tail = *(const vector2*)(yi + 4);
                    for (int c = 0; c < 6; ++c) {
                        head -= __builtin_convertvector(*(const linear4*)(X + 6 * c), vector4) * yb[c];
                        tail -= __builtin_convertvector(*(const linear2*)(X + 6 * c + 4), vector2) * yb[c];
                    }
                    *(vector4*)yi = head;
                    *(vector2*)(yi + 4) = tail;
                    continue;
                }
    #endif
                for (int c = 0; c < m; ++c)
                    for (int r = 0; r < m_i; ++r) yi[r] -= V(X[m_i * c + r]) * yb[c];
            }
    };
    auto down = [&](int b) {
"""
    + _CONTRACT
    + """
        const int m = n_dof[b];
        const T* D = value + loc[b * n + b];
        V* yb = y + dof[b];
    #ifdef PV_SIX_ROWS
        vector4 sum4[6] = {};
        vector2 sum2[6] = {};
    #endif
        const word* row = graph + b * words;
        for (int w = 0; w < words; ++w)
            for (word bits = row[w]; bits; bits &= bits - 1) {
                const int i = 64 * w + lowest_bit(bits);
                const int m_i = n_dof[i];
                const T* X = value + loc[i * n + b];
                const V* yi = y + dof[i];
    #ifdef PV_SIX_ROWS
                if (m == 6 && m_i == 6) {
                    const vector4 head = *(const vector4*)yi;
                    const vector2 tail = *(const vector2*)(yi + 4);
                    for (int c = 0; c < 6; ++c) {
                        sum4[c] += __builtin_convertvector(*(const linear4*)(X + 6 * c), vector4) * head;
                        sum2[c] += __builtin_convertvector(*(const linear2*)(X + 6 * c + 4), vector2) * tail;
                    }
                    continue;
                }
    #endif
                for (int c = 0; c < m; ++c) {
                    V s = V(0);
                    for (int r = 0; r < m_i; ++r) s += V(X[m_i * c + r]) * yi[r];
                    yb[c] -= s;
                }
            }
    #ifdef PV_SIX_ROWS
        if (m == 6)
            for (int c = 0; c < 6; ++c) {
                const vector2 pair = sum4[c].lo + sum4[c].hi + sum2[c];
                yb[c] -= pair.x + pair.y;
            }
    #endif
        for (int c = m - 1; c >= 0; --c) {
            V s = yb[c];
            for (int r = c + 1; r < m; ++r) s -= V(D[m * c + r]) * yb[r];
            yb[c] = s * V(D[m * c + c]);
        }
    };
    for (int p = 0; p < block_count; ++p) up(sequence[p]);
    for (int p = block_count - 1; p >= 0; --p) down(sequence[p]);
    #undef PV_SIX_ROWS
"""
)


@wp.func_native(_ORDER)
def order_blocks(
    tree_count: int,
    adjacency: wp.array[wp.uint64],
    adjacency_base: int,
    coupled: wp.array[int],
    tree_base: int,
    size: wp.array[int],
    size_base: int,
    order: wp.array[int],
    position: wp.array[int],
    location: wp.array[int],
    location_base: int,
) -> int:
    """Choose the elimination order of the coupled trees and lay out the factor; return the scalars it needs.

    `adjacency` holds one bit row per tree, (tree_count + 63) / 64 words each, symmetric, without diagonal; it
    is overwritten by the structure of the factor: row b then names the trees eliminated after b in its
    column.
    """
    ...


@made_once
def block_cholesky(real: Any, real_vector: Any) -> SimpleNamespace:
    """Return `block_factorize` (0 if a pivot was not positive) and `block_solve` for values of `real`."""
    types = f"using T = {CTYPE[real]}; using V = {CTYPE[real_vector]};"

    @wp.func_native(types + _FACTORIZE)
    def block_factorize(
        tree_count: int,
        block_count: int,
        adjacency: wp.array[wp.uint64],
        adjacency_base: int,
        tree_base: int,
        size: wp.array[int],
        size_base: int,
        order: wp.array[int],
        position: wp.array[int],
        location: wp.array[int],
        location_base: int,
        H: wp.array[real],
        base: int,
    ) -> int: ...

    @wp.func_native(types + _SOLVE)
    def block_solve(
        tree_count: int,
        block_count: int,
        adjacency: wp.array[wp.uint64],
        adjacency_base: int,
        tree_base: int,
        size: wp.array[int],
        first_dof: wp.array[int],
        size_base: int,
        order: wp.array[int],
        location: wp.array[int],
        location_base: int,
        H: wp.array[real],
        base: int,
        x: wp.array[real_vector],
        xbase: int,
    ): ...

    return SimpleNamespace(block_factorize=block_factorize, block_solve=block_solve)
