"""Cholesky solution for a few coupled trees, with rows in whole vectors, in native code.

The blocks and their order of elimination are those of `math.block_cholesky`, which is for piles of many
bodies. A hand that holds objects has few trees, whose sizes differ. There most of the time of a block went
into the ends of columns, one number at a time, and into roots and divisions that waited for each other. Here
the rows of each tree begin a new vector of eight numbers, padded with zeros, so all that is done to a column
is done to whole vectors, those of the tree and of the trees that it touches. The factors are those of
H = L D L^T, which need a division a column and no root, and the right-hand side is eliminated with them.
They stay in the scratch, for other right-hand sides.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE

COLUMNS_MAX = 64
"""Most degrees of freedom of the coupled trees of a world."""
VECTORS_MAX = 12
"""Most vectors of eight rows of them."""


def vector_work_size(sizes: np.ndarray) -> int:
    """Return how many numbers of scratch trees of these sizes take at most, all of them or some."""
    columns = min(int(sizes.sum()), COLUMNS_MAX)
    vectors = min(int(((sizes + 7) // 8).sum()), VECTORS_MAX)
    return (2 * 8 * (vectors | 1) + 1) * columns


_SOLVE = """
#if defined(__clang__) && !defined(__CUDA_ARCH__)
    using word = unsigned long long;
    typedef T vector8 __attribute__((ext_vector_type(8), aligned(sizeof(T))));
    typedef T sums __attribute__((ext_vector_type(8)));  // in registers
    typedef T vector4 __attribute__((ext_vector_type(4), aligned(sizeof(T))));
    typedef T vector2 __attribute__((ext_vector_type(2), aligned(sizeof(T))));
    struct Tree {
        int block, size, column, vector;
    };
    const int n = tree_count;
    const int words = (n + 63) / 64;
    const word* graph = (const word*)(adjacency.data + adjacency_base);
    const int* n_dof = size.data + size_base;
    const int* dof = first_dof.data + size_base;
    const int* place = position.data + tree_base;
    const int* loc = location.data + location_base;
    const T* value = H.data + base;
    T* y = x.data + xbase;
    if (block_count > VECTORS) return -1;
    Tree trees[VECTORS];
    int columns = 0, vectors = 0;
    for (int p = 0; p < block_count; ++p) {
        const int block = order.data[tree_base + p];
        trees[p] = {block, n_dof[block], columns, vectors};
        columns += n_dof[block];
        vectors += (n_dof[block] + 7) / 8;
        if (columns > COLUMNS || vectors > VECTORS) return -1;
    }
    // An odd number of vectors a column, or columns would share few sets of the cache.
    const int ld = vectors | 1;
    vector8* C = (vector8*)(work.data + work_base);  // L D
    vector8* L = C + ld * columns;
    T* inverse = (T*)(L + ld * columns);  // of D
    T rhs[8 * VECTORS] = {};  // then the solution
    vector8* b = (vector8*)rhs;
    for (int p = 0; p < block_count; ++p)
        for (int r = 0; r < trees[p].size; ++r) rhs[8 * trees[p].vector + r] = y[dof[trees[p].block] + r];
    const vector8 lanes = {T(0), T(1), T(2), T(3), T(4), T(5), T(6), T(7)};

    // Trees that are eliminated after each and change with it, in order.
    int later[VECTORS][VECTORS], later_count[VECTORS];
    for (int p = 0; p < block_count; ++p) {
        int count = 0;
        const word* row = graph + trees[p].block * words;
        for (int w = 0; w < words; ++w)
            for (word bits = row[w]; bits; bits &= bits - 1) {
                const int q = place[64 * w + __builtin_ctzll(bits)];
                int e = count++;
                for (; e > 0 && later[p][e - 1] > q; --e) later[p][e] = later[p][e - 1];
                later[p][e] = q;
            }
        later_count[p] = count;
    }

    // Columns of the tree p in the rows of the tree q.
    auto load = [&](const int p, const int q) {
        const int rows = trees[q].size, m = trees[p].size;
        const T* from = value + loc[trees[q].block * n + trees[p].block];
        vector8* to = C + ld * trees[p].column + trees[q].vector;
        for (int c = 0; c < m; ++c, from += rows, to += ld) {
            int v = 0;
            for (; 8 * v + 8 <= rows; ++v) to[v] = *(const vector8*)(from + 8 * v);
            const T* rest = from + 8 * v;
            const int left = rows - 8 * v;
            if (left == 6) {
                vector8 end = {};
                end.lo = *(const vector4*)rest;
                end.hi.lo = *(const vector2*)(rest + 4);
                to[v] = end;
            } else if (left > 0) {
                T* out = (T*)(to + v);
                for (int r = 0; r < left; ++r) out[r] = rest[r];
                for (int r = left; r < 8; ++r) out[r] = T(0);
            }
        }
    };

    for (int p = 0; p < block_count && !is_factored; ++p) {
        load(p, p);
        for (int e = 0; e < later_count[p]; ++e) load(p, later[p][e]);
    }

    int ok = 1;
    // Products and sums become one operation here: nothing is meant to cancel to the last bit.
    // Some vectors of column c of a tree, as many as `sum` has: subtracts what the columns before it add, and
    // eliminates them from the right-hand side.
    auto eliminate = [&](auto& sum, const int* rows, const Tree& tree, const int c, const bool has_pivot) {
        #pragma clang fp contract(fast)
        constexpr int some = sizeof(sum) / sizeof(sum[0]);
        const int column = tree.column + c;
        vector8* to = C + ld * column;
        for (int e = 0; e < some; ++e) sum[e] = to[rows[e]];
        const vector8* before = L + ld * tree.column;
        const T* factor = (const T*)(C + ld * tree.column + tree.vector) + c;
        for (int k = 0; k < c; ++k, before += ld, factor += 8 * ld)
            for (int e = 0; e < some; ++e) sum[e] -= before[rows[e]] * *factor;
        for (int e = 0; e < some; ++e) to[rows[e]] = sum[e];
        if (has_pivot) {
            const T pivot = *factor;
            if (!(pivot > T(0))) ok = 0;
            inverse[column] = T(1) / pivot;
        }
        const T share = inverse[column], known = rhs[8 * tree.vector + c];
        for (int e = 0; e < some; ++e) {
            vector8 l = sum[e] * share;
            if (e == 0 && has_pivot) l = lanes > T(c & 7) ? l : vector8(T(0));
            (L + ld * column)[rows[e]] = l;
            b[rows[e]] -= l * known;
        }
    };
    // The same for all columns of a tree of six, which stay in registers with its right-hand side.
    auto eliminate_six = [&](auto& sum, const int* rows, const Tree& tree) {
        #pragma clang fp contract(fast)
        constexpr int some = sizeof(sum) / sizeof(sum[0]) / 7;
        vector8* c0 = C + ld * tree.column;
        vector8* l0 = L + ld * tree.column;
        #pragma unroll
        for (int e = 0; e < some; ++e) {
            #pragma unroll
            for (int c = 0; c < 6; ++c) sum[some * c + e] = c0[ld * c + rows[e]];
            sum[some * 6 + e] = b[rows[e]];
        }
        #pragma unroll
        for (int c = 0; c < 6; ++c) {
            const T pivot = sum[some * c][c];
            if (!(pivot > T(0))) ok = 0;
            const T share = T(1) / pivot;
            inverse[tree.column + c] = share;
            #pragma unroll
            for (int e = 0; e < some; ++e) {
                sums l = sum[some * c + e] * share;
                if (e == 0) l = lanes > T(c) ? l : sums(T(0));
                l0[ld * c + rows[e]] = l;
                if (e > 0) c0[ld * c + rows[e]] = sum[some * c + e];
                #pragma unroll
                for (int d = c + 1; d < 6; ++d) sum[some * d + e] -= l * sum[some * c][d];
                sum[some * 6 + e] -= l * sum[some * 6][c];
            }
        }
        #pragma unroll
        for (int e = 0; e < some; ++e) b[rows[e]] = sum[some * 6 + e];
    };
    // Some columns of a later tree in one vector of rows, as many as `sum` has.
    auto update = [&](auto& sum, vector8* to, const vector8* l, const T* factor, const int m) {
        #pragma clang fp contract(fast)
        constexpr int some = sizeof(sum) / sizeof(sum[0]);
        for (int e = 0; e < some; ++e) sum[e] = to[ld * e];
        for (int k = 0; k < m; ++k, l += ld, factor += 8 * ld) {
            const vector8 rows = *l;
            for (int e = 0; e < some; ++e) sum[e] -= rows * factor[e];
        }
        for (int e = 0; e < some; ++e) to[ld * e] = sum[e];
    };

    for (int p = 0; p < block_count; ++p) {
        const Tree tree = trees[p];
        int rows[VECTORS];
        const int own = (tree.size + 7) / 8;
        int count = 0;
        for (; count < own; ++count) rows[count] = tree.vector + count;
        for (int e = 0; e < later_count[p]; ++e) {
            const Tree other = trees[later[p][e]];
            for (int v = 0; v < (other.size + 7) / 8; ++v) rows[count++] = other.vector + v;
        }
        if (is_factored) {
            #pragma clang fp contract(fast)
            for (int c = 0; c < tree.size; ++c) {
                const vector8* l = L + ld * (tree.column + c);
                const T known = rhs[8 * tree.vector + c];
                for (int e = c / 8; e < count; ++e) b[rows[e]] -= l[rows[e]] * known;
            }
            continue;
        }
        sums four[4], three[3], two[2], one[1];
        sums six_four[28], six_three[21], six_two[14], six_one[7];
        const bool is_six = tree.size == 6 && count <= 4;
        if (is_six) {
            if (count == 4) eliminate_six(six_four, rows, tree);
            else if (count == 3) eliminate_six(six_three, rows, tree);
            else if (count == 2) eliminate_six(six_two, rows, tree);
            else eliminate_six(six_one, rows, tree);
        }
        for (int c = 0; c < tree.size && !is_six; ++c) {
            const int first = c / 8;
            for (int e = first; e < count; e += 4) {
                const int left = count - e;
                if (left >= 4) eliminate(four, rows + e, tree, c, e == first);
                else if (left == 3) eliminate(three, rows + e, tree, c, e == first);
                else if (left == 2) eliminate(two, rows + e, tree, c, e == first);
                else eliminate(one, rows + e, tree, c, e == first);
            }
        }
        sums eight[8], six[6];
        for (int j = 0; j < later_count[p]; ++j) {
            const Tree column = trees[later[p][j]];
            const T* factors = (const T*)(C + ld * tree.column + column.vector);
            for (int i = j; i < later_count[p]; ++i) {
                const Tree row = trees[later[p][i]];
                for (int v = 0; v < (row.size + 7) / 8; ++v) {
                    const vector8* l = L + ld * tree.column + row.vector + v;
                    vector8* to = C + ld * column.column + row.vector + v;
                    // Of the diagonal block, only vectors that reach the diagonal.
                    int end = column.size;
                    if (i == j && end > 8 * v + 8) end = 8 * v + 8;
                    int e = 0;
                    for (; e + 8 <= end; e += 8) update(eight, to + ld * e, l, factors + e, tree.size);
                    if (e + 6 <= end) {
                        update(six, to + ld * e, l, factors + e, tree.size);
                        e += 6;
                    }
                    for (; e + 2 <= end; e += 2) update(two, to + ld * e, l, factors + e, tree.size);
                    if (e < end) update(one, to + ld * e, l, factors + e, tree.size);
                }
            }
        }
    }

    for (int p = block_count - 1; p >= 0; --p) {
        const Tree tree = trees[p];
        T* z = rhs + 8 * tree.vector;
        const vector8* l = L + ld * tree.column;
        for (int c = 0; c < tree.size; ++c) {
            vector8 sum = {};
            for (int e = 0; e < later_count[p]; ++e) {
                const Tree other = trees[later[p][e]];
                for (int v = other.vector; v < other.vector + (other.size + 7) / 8; ++v)
                    sum += l[ld * c + v] * b[v];
            }
            const vector4 half = sum.lo + sum.hi;
            const vector2 pair = half.lo + half.hi;
            z[c] = z[c] * inverse[tree.column + c] - (pair.x + pair.y);
        }
        T* to = y + dof[tree.block];
        if (tree.size == 6) {
            #pragma clang fp contract(fast)
            T s[6];
            #pragma unroll
            for (int c = 5; c >= 0; --c) {
                const T* column = (const T*)(l + ld * c + tree.vector);
                s[c] = z[c];
                #pragma unroll
                for (int r = 5; r > c; --r) s[c] -= column[r] * s[r];
                to[c] = s[c];
            }
            b[tree.vector] = vector8{s[0], s[1], s[2], s[3], s[4], s[5], T(0), T(0)};
            continue;
        }
        for (int c = tree.size - 2; c >= 0; --c) {
            const T* column = (const T*)(l + ld * c + tree.vector);
            T s = z[c];
            for (int r = tree.size - 1; r > c; --r) s -= column[r] * z[r];
            z[c] = s;
        }
        for (int c = 0; c < tree.size; ++c) to[c] = z[c];
    }
    return ok;
#else
    return -1;
#endif
"""


@made_once
def vector_cholesky(real: Any) -> SimpleNamespace:
    """Return `vector_solve` for values of `real`.

    It replaces x by H^-1 x on the coupled trees. Returns 1, or 0 if a pivot was not positive, or -1 with
    nothing done where the trees are too many or too large, or on a GPU. With `is_factored` it takes the
    factors that the last call with the same trees left in `work`, and does not read H.
    """
    types = f"using T = {CTYPE[real]}; constexpr int COLUMNS = {COLUMNS_MAX}, VECTORS = {VECTORS_MAX};"

    @wp.func_native(types + _SOLVE)
    def vector_solve(
        tree_count: int,
        block_count: int,
        adjacency: wp.array[wp.uint64],
        adjacency_base: int,
        tree_base: int,
        size: wp.array[int],
        first_dof: wp.array[int],
        size_base: int,
        order: wp.array[int],
        position: wp.array[int],
        location: wp.array[int],
        location_base: int,
        H: wp.array[real],
        base: int,
        x: wp.array[real],
        xbase: int,
        work: wp.array[real],
        work_base: int,
        is_factored: bool,
    ) -> int: ...

    return SimpleNamespace(vector_solve=vector_solve)
