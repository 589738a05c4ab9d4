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

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

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

_BLOCK_UPDATE = """
    // T <- T - X Y^T with T n_i x n_j, X n_i x n_k, Y n_j x n_k, all column-major. Free bodies have six
    // dofs, and a trip count that the compiler knows is worth a factor of three.
    auto update = [](T* target, const T* x, const T* y, int n_i, int n_j, int n_k) {
        if (n_i == 6 && n_j == 6 && n_k == 6) {
            for (int c = 0; c < 6; ++c) {
                T t[6];
                for (int r = 0; r < 6; ++r) t[r] = target[6 * c + r];
                for (int k = 0; k < 6; ++k)
                    for (int r = 0; r < 6; ++r) t[r] -= x[6 * k + r] * y[6 * k + c];
                for (int r = 0; r < 6; ++r) target[6 * c + r] = t[r];
            }
            return;
        }
        for (int c = 0; c < n_j; ++c) {
            T* tc = target + n_i * c;
            int r = 0;
            for (; r + 8 <= n_i; r += 8) {
                T t[8];
                for (int e = 0; e < 8; ++e) t[e] = tc[r + e];
                for (int k = 0; k < n_k; ++k)
                    for (int e = 0; e < 8; ++e) t[e] -= x[n_i * k + r + e] * y[n_j * k + c];
                for (int e = 0; e < 8; ++e) tc[r + e] = t[e];
            }
            for (; r + 2 <= n_i; r += 2) {
                T t[2];
                for (int e = 0; e < 2; ++e) t[e] = tc[r + e];
                for (int k = 0; k < n_k; ++k)
                    for (int e = 0; e < 2; ++e) t[e] -= x[n_i * k + r + e] * y[n_j * k + c];
                for (int e = 0; e < 2; ++e) tc[r + e] = t[e];
            }
            for (; r < n_i; ++r) {
                T t = tc[r];
                for (int k = 0; k < n_k; ++k) t -= x[n_i * k + r] * y[n_j * k + c];
                tc[r] = t;
            }
        }
    };
"""

_FACTORIZE = (
    """
    using word = unsigned long long;
    const int n = tree_count;
    const int words = (n + 63) / 64;
    const word* graph = (const word*)(adjacency.data + adjacency_base);
    const int* n_dof = size.data + size_base;
    const int* sequence = order.data + tree_base;
    const int* place = position.data + tree_base;
    const int* loc = location.data + location_base;
    T* value = H.data + base;
    int ok = 1;
"""
    + _BLOCK_UPDATE
    + """
    for (int p = 0; p < block_count; ++p) {
        const int b = sequence[p];
        const int m = n_dof[b];
        T* D = value + loc[b * n + b];
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
        const word* row = graph + b * words;
        for (int w = 0; w < words; ++w)
            for (word bits = row[w]; bits; bits &= bits - 1) {
    #ifdef __CUDA_ARCH__
                const int i = 64 * w + __ffsll((long long)bits) - 1;
    #else
                const int i = 64 * w + __builtin_ctzll(bits);
    #endif
                const int m_i = n_dof[i];
                T* X = value + loc[i * n + b];
                for (int c = 0; c < m; ++c) {
                    T* xc = X + m_i * c;
                    const T inverse = D[m * c + c];
                    for (int r = 0; r < m_i; ++r) xc[r] *= inverse;
                    for (int e = c + 1; e < m; ++e) {
                        const T s = D[m * c + e];
                        T* xe = X + m_i * e;
                        for (int r = 0; r < m_i; ++r) xe[r] -= xc[r] * s;
                    }
                }
                for (int v = 0; v <= w; ++v) {
                    // The pairs (i, j) with j <= i: each block of the remaining matrix is updated once.
                    word rest = row[v];
                    if (v == w) rest &= ~0ull >> (63 - (i & 63));
                    for (; rest; rest &= rest - 1) {
    #ifdef __CUDA_ARCH__
                        const int j = 64 * v + __ffsll((long long)rest) - 1;
    #else
                        const int j = 64 * v + __builtin_ctzll(rest);
    #endif
                        const int m_j = n_dof[j];
                        const T* Y = value + loc[j * n + b];
                        T* target = value + loc[i * n + j];
                        if (place[i] >= place[j]) update(target, X, Y, m_i, m_j, m);
                        else update(target, Y, X, m_j, m_i, m);
                    }
                }
            }
    }
    return ok;
"""
)

_SOLVE = """
    using word = unsigned long long;
    const int n = tree_count;
    const int words = (n + 63) / 64;
    const word* graph = (const word*)(adjacency.data + adjacency_base);
    const int* n_dof = size.data + size_base;
    const int* dof = first_dof.data + size_base;
    const int* sequence = order.data + tree_base;
    const int* loc = location.data + location_base;
    const T* value = H.data + base;
    V* y = x.data + xbase;
    for (int p = 0; p < block_count; ++p) {
        const int b = sequence[p];
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
    #ifdef __CUDA_ARCH__
                const int i = 64 * w + __ffsll((long long)bits) - 1;
    #else
                const int i = 64 * w + __builtin_ctzll(bits);
    #endif
                const T* X = value + loc[i * n + b];
                V* yi = y + dof[i];
                for (int c = 0; c < m; ++c)
                    for (int r = 0; r < n_dof[i]; ++r) yi[r] -= V(X[n_dof[i] * c + r]) * yb[c];
            }
    }
    for (int p = block_count - 1; p >= 0; --p) {
        const int b = sequence[p];
        const int m = n_dof[b];
        const T* D = value + loc[b * n + b];
        V* yb = y + dof[b];
        const word* row = graph + b * words;
        for (int w = 0; w < words; ++w)
            for (word bits = row[w]; bits; bits &= bits - 1) {
    #ifdef __CUDA_ARCH__
                const int i = 64 * w + __ffsll((long long)bits) - 1;
    #else
                const int i = 64 * w + __builtin_ctzll(bits);
    #endif
                const T* X = value + loc[i * n + b];
                const V* yi = y + dof[i];
                for (int c = 0; c < m; ++c) {
                    V s = V(0);
                    for (int r = 0; r < n_dof[i]; ++r) s += V(X[n_dof[i] * c + r]) * yi[r];
                    yb[c] -= s;
                }
            }
        for (int c = m - 1; c >= 0; --c) {
            V s = yb[c];
            for (int r = c + 1; r < m; ++r) s -= V(D[m * c + r]) * yb[r];
            yb[c] = s * V(D[m * c + c]);
        }
    }
"""


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


@functools.cache
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
