"""Small dense linear algebra in native code: loops over short contiguous rows that must vectorize.

Warp's generated code reaches about a seventh of the arithmetic rate of a plain C loop on such rows, because
every element access goes through a runtime stride. The snippets here hold one world's matrix in one thread.
Other native code in this folder is for contacts, bodies and trees, one module each; stages of eight worlds at
once (`math.lanes`) are in modules called `*_lanes.py`, beside the stages.

Two storage forms are used.

*Packed rows* hold a symmetric matrix with the branch sparsity of a kinematic tree: row k has the entries H[k,
a] of the degrees of freedom a on the path from the root to k, contiguous and indexed by the depth of a; the
diagonal is last. The ancestors of an ancestor of k are ancestors of k at the same depths, so every inner loop
of the factorization H = L^T D L ([Featherstone2008] section 6.5) runs over two contiguous rows, and there is
no fill.

*Column-major blocks* hold dense n x m matrices; they are the parts of `math.block_cholesky`.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import vec6_type

CTYPE = {wp.float32: "float", wp.float64: "double"}
"""Names of scalar types in native code."""

_TREES = """
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    // Tree by tree. All dofs of a robot with a floating base hang on a stem of six. Its part of each row
    // are the first six entries, in loops of constant length, and its own rows stay in registers.
    for (int root = begin, next = begin; root < end; root = next) {
        int least = 6;
        for (next = root + 1; next < end && deep[next] > 0; ++next) {
            if (next >= root + 6 && deep[next] < least) least = deep[next];
        }
        const bool has_stem = next >= root + 6 && least == 6 && deep[root + 5] == 5;
        const int body = has_stem ? root + 6 : root;
"""

_REDUCE = """
    #define PLURIVERSE_REDUCE(width) { \\
            T s[width]; \\
            for (int c = 0; c < width; ++c) s[c] = ri[d + c]; \\
            for (int k = last - 1; k > i; --k) { \\
                const T* rk = rows + start[k]; \\
                const T a = rk[di] * rk[deep[k]]; \\
                for (int c = 0; c < width; ++c) s[c] -= a * rk[d + c]; \\
            } \\
            for (int c = 0; c < width; ++c) ri[d + c] = s[c]; \\
        }
"""

_IN_PLACE = """
    T* rows = H.data + base;
    int ok = 1;
    #undef PLURIVERSE_PIVOT
    #define PLURIVERSE_PIVOT(pivot) if (!(pivot > T(0))) ok = 0;
"""

_FACTORIZE = """
        int last = next;  // of the rows below row i, which follow it
        for (int i = next - 1; i >= body; --i) {
            const int di = deep[i];
            T* ri = rows + start[i];
            if (i + 1 < next && deep[i + 1] > di) {
                while (last < next && deep[last] > di) ++last;
            } else {
                last = i + 1;
            }
            // Sums of up to eight entries stay in registers. A row is then read in the blocks that it was
            // written in, or parts of them, so that loads need not wait for stores.
            int d = 0;
            for (; d + 8 <= di + 1; d += 8) PLURIVERSE_REDUCE(8)
            switch (di + 1 - d) {
                case 1: PLURIVERSE_REDUCE(1) break;
                case 2: PLURIVERSE_REDUCE(2) break;
                case 3: PLURIVERSE_REDUCE(3) break;
                case 4: PLURIVERSE_REDUCE(4) break;
                case 5: PLURIVERSE_REDUCE(5) break;
                case 6: PLURIVERSE_REDUCE(6) break;
                case 7: PLURIVERSE_REDUCE(7) break;
            }
            PLURIVERSE_PIVOT(ri[di])
            ri[di] = T(1) / ri[di];
        }
        if (has_stem) {
            T* stem = rows + start[root];
            T s[6][6];
            #pragma unroll
            for (int i = 0; i < 6; ++i)
                #pragma unroll
                for (int d = 0; d < 6; ++d) s[i][d] = d <= i ? stem[i * (i + 1) / 2 + d] : T(0);
            for (int k = next - 1; k >= body; --k) {
                const T* rk = rows + start[k];
                const T inverse = rk[deep[k]];
                #pragma unroll
                for (int i = 0; i < 6; ++i) {
                    const T a = rk[i] * inverse;
                    #pragma unroll
                    for (int d = 0; d < (i < 4 ? 4 : 6); ++d) s[i][d] -= a * rk[d];
                }
            }
            #pragma unroll
            for (int i = 5; i >= 0; --i) {
                PLURIVERSE_PIVOT(s[i][i])
                const T inverse = T(1) / s[i][i];
                #pragma unroll
                for (int j = i - 1; j >= 0; --j) {
                    const T a = s[i][j] * inverse;
                    #pragma unroll
                    for (int d = 0; d <= j; ++d) s[j][d] -= a * s[i][d];
                }
                #pragma unroll
                for (int d = 0; d < i; ++d) s[i][d] *= inverse;
                s[i][i] = inverse;
            }
            #pragma unroll
            for (int i = 0; i < 6; ++i)
                #pragma unroll
                for (int d = 0; d <= i; ++d) stem[i * (i + 1) / 2 + d] = s[i][d];
        }
        for (int k = body; k < next; ++k) {
            T* rk = rows + start[k];
            const int dk = deep[k];
            const T inverse = rk[dk];
            for (int d = 0; d < dk; ++d) rk[d] *= inverse;
        }
    }
"""

_ROWS = """
    const int* up = parent.data + first;
    const T* rows = H.data + base;
    V* b = x.data + xbase;
"""

_SOLVE_UP = """
        V s[6] = {};
        if (has_stem) for (int d = 0; d < 6; ++d) s[d] = b[root + d];
        for (int k = next - 1; k >= body; --k) {
            const T* rk = rows + start[k];
            const V bk = b[k];
            if (has_stem) for (int d = 0; d < 6; ++d) s[d] -= V(rk[d]) * bk;
            int d = deep[k] - 1;
            for (int j = up[k]; j >= body; j = up[j], --d) b[j] -= V(rk[d]) * bk;
        }
        if (has_stem) {
            const T* stem = rows + start[root];
            #pragma unroll
            for (int k = 5; k >= 0; --k) {
                #pragma unroll
                for (int d = k - 1; d >= 0; --d) s[d] -= V(stem[k * (k + 1) / 2 + d]) * s[k];
                b[root + k] = s[k];
            }
        }
"""

_SOLVE_DOWN = """
        V u[6] = {};
        if (has_stem) {
            const T* stem = rows + start[root];
            #pragma unroll
            for (int k = 0; k < 6; ++k) {
                u[k] = V(stem[k * (k + 1) / 2 + k]) * b[root + k];
                #pragma unroll
                for (int d = k - 1; d >= 0; --d) u[k] -= V(stem[k * (k + 1) / 2 + d]) * u[d];
                b[root + k] = u[k];
            }
        }
        // The parent comes last, since it is known last: what is subtracted before need not wait for it.
        int run = body;  // from here to k each is the parent of the next
        for (int k = body; k < next; ++k) {
            const T* rk = rows + start[k];
            if (up[k] != k - 1) run = k;
            const int d = deep[k] - k;  // an entry of the run is this far behind its dof
            V t = V(rk[d + k]) * b[k];
            if (has_stem) for (int e = 0; e < 6; ++e) t -= V(rk[e]) * u[e];
            for (int j = up[run], e = d + run - 1; j >= body; j = up[j], --e) t -= V(rk[e]) * b[j];
            for (int j = run; j < k; ++j) t -= V(rk[d + j]) * b[j];
            b[k] = t;
        }
"""

_SECOND = """
    V* c = y.data + xbase;
"""

_SOLVE_PAIR = """
        V s[6] = {}, t[6] = {};
        if (has_stem) for (int d = 0; d < 6; ++d) { s[d] = b[root + d]; t[d] = c[root + d]; }
        for (int k = next - 1; k >= body; --k) {
            const T* rk = rows + start[k];
            const V bk = b[k], ck = c[k];
            if (has_stem) {
                for (int d = 0; d < 6; ++d) { s[d] -= V(rk[d]) * bk; t[d] -= V(rk[d]) * ck; }
            }
            int d = deep[k] - 1;
            for (int j = up[k]; j >= body; j = up[j], --d) {
                const V h = V(rk[d]);
                b[j] -= h * bk;
                c[j] -= h * ck;
            }
        }
        if (has_stem) {
            const T* stem = rows + start[root];
            #pragma unroll
            for (int k = 5; k >= 0; --k) {
                #pragma unroll
                for (int d = k - 1; d >= 0; --d) {
                    s[d] -= V(stem[k * (k + 1) / 2 + d]) * s[k];
                    t[d] -= V(stem[k * (k + 1) / 2 + d]) * t[k];
                }
            }
            #pragma unroll
            for (int k = 0; k < 6; ++k) {
                s[k] *= V(stem[k * (k + 1) / 2 + k]);
                t[k] *= V(stem[k * (k + 1) / 2 + k]);
                #pragma unroll
                for (int d = k - 1; d >= 0; --d) {
                    s[k] -= V(stem[k * (k + 1) / 2 + d]) * s[d];
                    t[k] -= V(stem[k * (k + 1) / 2 + d]) * t[d];
                }
                b[root + k] = s[k];
                c[root + k] = t[k];
            }
        }
        int run = body;  // see `_SOLVE_DOWN`
        for (int k = body; k < next; ++k) {
            const T* rk = rows + start[k];
            if (up[k] != k - 1) run = k;
            const int d = deep[k] - k;
            V u = V(rk[d + k]) * b[k], v = V(rk[d + k]) * c[k];
            auto subtract = [&](const int e, const V bj, const V cj) {
                const V h = V(rk[e]);
                u -= h * bj;
                v -= h * cj;
            };
            if (has_stem) {
                #pragma unroll
                for (int e = 0; e < 6; ++e) subtract(e, s[e], t[e]);
            }
            for (int j = up[run], e = d + run - 1; j >= body; j = up[j], --e) subtract(e, b[j], c[j]);
            for (int j = run; j < k; ++j) subtract(d + j, b[j], c[j]);
            b[k] = u;
            c[k] = v;
        }
    }
"""

_PRODUCT = """
    V* out = y.data + ybase;
"""

_MULTIPLY = """
        V s[6] = {}, t[6] = {};
        if (has_stem) {
            const T* stem = rows + start[root];
            #pragma unroll
            for (int k = 0; k < 6; ++k) {
                s[k] = b[root + k];
                t[k] = V(stem[k * (k + 1) / 2 + k]) * s[k];
                #pragma unroll
                for (int d = k - 1; d >= 0; --d) {
                    t[k] += V(stem[k * (k + 1) / 2 + d]) * s[d];
                    t[d] += V(stem[k * (k + 1) / 2 + d]) * s[k];
                }
            }
        }
        for (int k = body; k < next; ++k) {
            const T* rk = rows + start[k];
            const V bk = b[k];
            int d = deep[k];
            V u = V(rk[d]) * bk;
            --d;
            for (int j = up[k]; j >= body; j = up[j], --d) {
                const V h = V(rk[d]);
                u += h * b[j];
                out[j] += h * bk;
            }
            if (has_stem) {
                #pragma unroll
                for (int e = 5; e >= 0; --e) { u += V(rk[e]) * s[e]; t[e] += V(rk[e]) * bk; }
            }
            out[k] = u;
        }
        if (has_stem) for (int k = 0; k < 6; ++k) out[root + k] = t[k];
    }
"""

_COPY = """
    const T* from = H.data + base;
    V* to = out.data + outbase;
    for (int e = 0; e < count; ++e) to[e] = V(from[e]);
"""

_DIAGONAL = """
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    const V* added = x.data + xbase;
    T* rows = H.data + base;
    for (int k = 0; k < count; ++k) rows[start[k] + deep[k]] += T(added[k] + shift);
"""

_POSITIVE = """
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    const T* rows = H.data + base;
    int ok = 1;
    for (int k = 0; k < count; ++k) ok &= rows[start[k] + deep[k]] > T(0);
    return ok;
"""

_CLEAR = """
    V* to = out.data + outbase;
    for (int e = 0; e < count; ++e) to[e] = V(0);
"""

_PROJECT = """
    const int* up = parent.data + first;
    T* row = out.data + start;
    T w[6];
    for (int c = 0; c < 6; ++c) w[c] = wrench[c];
    T* entry = row + depth;
    for (int j = dof; j >= stop; j = up[j]) {
        const T* s = (const T*)(motion.data + base + j);
        *entry-- = w[0] * s[0] + w[1] * s[1] + w[2] * s[2] + w[3] * s[3] + w[4] * s[4] + w[5] * s[5];
    }
    if (has_stem) for (int c = 0; c < 6; ++c) row[c] = w[c];
"""

_TO_BLOCK = """
    const T* rows = H.data + base;
    V* block = out.data + outbase;
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    const int n = end - begin;
    for (int k = begin; k < end; ++k) {
        const T* rk = rows + start[k];
        int d = deep[k];
        for (int j = k; j >= 0; j = up[j], --d) block[(j - begin) * n + k - begin] += V(rk[d]);
    }
"""

# For `math.lanes`: the same factorization and solution, with eight worlds in a `T`. In place of arrays of
# worlds they find pointers to the lanes of the first dof of the template: `rows`, and `b`, `c` with V = T.
LANE_FACTORIZE = (
    """
    #undef PLURIVERSE_PIVOT
    #define PLURIVERSE_PIVOT(pivot)
"""
    + f"{_REDUCE}{_TREES}{_FACTORIZE}"
)
LANE_SOLVE_PAIR = f"{_TREES}{_SOLVE_PAIR}"


@wp.func_native("""
    const float* from = source.data + first;
    float* to = target.data + first;
    float* also = second.data + first;
    for (int e = 0; e < count; ++e) { const float x = from[e]; to[e] = x; also[e] = x; }
""")
def numbers_copy(
    source: wp.array[float],
    first: int,
    count: int,
    target: wp.array[float],
    second: wp.array[float],
):
    """Copy a range of `source`, which may be `target`, to the same place in `target` and in `second`."""
    ...


@wp.func_native("""
    const float* from = (const float*)(wrenches.data + first);
    int found = 0;
    for (int e = 0; e < 6 * count; ++e) found |= from[e] != 0.0f;
    return found != 0;
""")
def has_wrench(wrenches: wp.array[wp.spatial_vector], first: int, count: int) -> bool:
    """Return whether any number of a range of wrenches is not zero; NaN is not."""
    ...


@made_once
def packed_rows(real: Any, real_vector: Any | None = None) -> SimpleNamespace:
    """Return the functions on packed rows of `real`, with vectors of `real_vector` (default: the same type).

    All of them take the template arrays `dof_parent`, `dof_depth`, `dof_row`, the template's `first` entry in
    them, and a range `begin <= k < end` of degrees of freedom made of whole trees. These are numbered depth
    first, as in `model.topology`: those below a degree of freedom follow it, and each tree is contiguous.

    - `ltdl_factorize(H, base, parent, depth, row, first, begin, end) -> int`: in place; L below the diagonal,
      1/D on it. Returns 0 if a pivot was not positive (the matrix is not positive definite to rounding, or
      holds NaN).
    - `ltdl_solve(H, base, parent, depth, row, first, begin, end, x, xbase)`: x <- H^-1 x, from the
      factorization. `ltdl_solve_up` and `ltdl_solve_down` are its halves, x <- L^-T x and x <- L^-1 D^-1 x.
    - `ltdl_solve_pair(H, base, parent, depth, row, first, begin, end, x, y, xbase)`: the same for two vectors
      in one pass over the rows.
    - `rows_multiply(H, base, parent, depth, row, first, begin, end, x, xbase, y, ybase)`: y <- H x.

    And on the diagonal of the first `count` rows:

    - `diagonal_add(H, base, depth, row, first, count, x, xbase, shift)`: H <- H + diag(x + shift).
    - `is_diagonal_positive(H, base, depth, row, first, count) -> int`: 1 if all of it is positive, else 0.

    And, of `real` to `real_vector`, without any structure:

    - `rows_copy(H, base, count, out, outbase)`: out <- H, entry by entry.
    - `numbers_clear(out, outbase, count)`: out <- 0.

    And of vectors of six to a packed row:

    - `row_project(wrench, motion, base, parent, first, dof, stop, has_stem, out, start, depth)`: the scalar
      products of `wrench` and the motions of `dof`, at `depth`, and of those on its way to the root from
      `stop` on; with a stem of six dofs whose motions are unit vectors, the first entries are `wrench`.

    And from packed rows to a column-major block of one tree:

    - `rows_to_block(H, base, parent, depth, row, first, begin, end, out, outbase)`: adds the lower triangle.
    """
    real_vector = real_vector or real
    types = f"using T = {CTYPE[real]}; using V = {CTYPE[real_vector]};"

    @wp.func_native(types + _REDUCE + _IN_PLACE + _TREES + _FACTORIZE + "return ok;")
    def ltdl_factorize(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
    ) -> int: ...

    @wp.func_native(types + _ROWS + _TREES + _SOLVE_UP + _SOLVE_DOWN + "}")
    def ltdl_solve(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        x: wp.array[real_vector],
        xbase: int,
    ): ...

    @wp.func_native(types + _ROWS + _SECOND + _TREES + _SOLVE_PAIR)
    def ltdl_solve_pair(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        x: wp.array[real_vector],
        y: wp.array[real_vector],
        xbase: int,
    ): ...

    @wp.func_native(types + _ROWS + _TREES + _SOLVE_UP + "}")
    def ltdl_solve_up(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        x: wp.array[real_vector],
        xbase: int,
    ): ...

    @wp.func_native(types + _ROWS + _TREES + _SOLVE_DOWN + "}")
    def ltdl_solve_down(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        x: wp.array[real_vector],
        xbase: int,
    ): ...

    @wp.func_native(types + _ROWS + _PRODUCT + _TREES + _MULTIPLY)
    def rows_multiply(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        x: wp.array[real_vector],
        xbase: int,
        y: wp.array[real_vector],
        ybase: int,
    ): ...

    @wp.func_native(types + _DIAGONAL)
    def diagonal_add(
        H: wp.array[real],
        base: int,
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        count: int,
        x: wp.array[real_vector],
        xbase: int,
        shift: real_vector,
    ): ...

    @wp.func_native(types + _POSITIVE)
    def is_diagonal_positive(
        H: wp.array[real], base: int, depth: wp.array[int], row: wp.array[int], first: int, count: int
    ) -> int: ...

    @wp.func_native(types + _COPY)
    def rows_copy(
        H: wp.array[real],
        base: int,
        count: int,
        out: wp.array[real_vector],
        outbase: int,
    ): ...

    @wp.func_native(types + _CLEAR)
    def numbers_clear(out: wp.array[real_vector], outbase: int, count: int): ...

    vec6 = vec6_type(real)

    @wp.func_native(types + _PROJECT)
    def row_project(
        wrench: vec6,
        motion: wp.array(dtype=vec6),
        base: int,
        parent: wp.array[int],
        first: int,
        dof: int,
        stop: int,
        has_stem: bool,
        out: wp.array[real],
        start: int,
        depth: int,
    ): ...

    @wp.func_native(types + _TO_BLOCK)
    def rows_to_block(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        out: wp.array[real_vector],
        outbase: int,
    ): ...

    return SimpleNamespace(
        ltdl_factorize=ltdl_factorize,
        ltdl_solve=ltdl_solve,
        ltdl_solve_pair=ltdl_solve_pair,
        ltdl_solve_up=ltdl_solve_up,
        ltdl_solve_down=ltdl_solve_down,
        rows_multiply=rows_multiply,
        diagonal_add=diagonal_add,
        is_diagonal_positive=is_diagonal_positive,
        rows_copy=rows_copy,
        numbers_clear=numbers_clear,
        row_project=row_project,
        rows_to_block=rows_to_block,
    )
