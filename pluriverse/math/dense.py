"""Small dense linear algebra in native code: loops over short contiguous rows that must vectorize.

Warp's generated code reaches about a seventh of the arithmetic rate of a plain C loop on such rows, because
every element access goes through a runtime stride. These snippets, `math.block_cholesky`,
`math.contact_mobility` and `math.records` are the only native code of the package. They hold one world's
matrix in one thread.

Two storage forms are used.

*Packed rows* hold a symmetric matrix with the branch sparsity of a kinematic tree: row k has the entries H[k,
a] of the degrees of freedom a on the path from the root to k, contiguous and indexed by the depth of a; the
diagonal is last. The ancestors of an ancestor of k are ancestors of k at the same depths, so every inner loop
of the factorization H = L^T D L ([Featherstone2008] section 6.5) runs over two contiguous rows, and there is
no fill.

*Column-major blocks* hold dense n x m matrices; they are the parts of `math.block_cholesky`.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

CTYPE = {wp.float32: "float", wp.float64: "double"}
"""Names of scalar types in native code."""

_FACTORIZE = """
    T* rows = H.data + base;
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    int ok = 1;
    for (int k = end - 1; k >= begin; --k) {
        T* rk = rows + start[k];
        const int dk = deep[k];
        if (!(rk[dk] > T(0))) ok = 0;
        const T inverse = T(1) / rk[dk];
        for (int i = up[k]; i >= 0; i = up[i]) {
            const int di = deep[i];
            T* ri = rows + start[i];
            const T a = rk[di] * inverse;
            for (int d = 0; d <= di; ++d) ri[d] -= a * rk[d];
        }
        for (int d = 0; d < dk; ++d) rk[d] *= inverse;
        rk[dk] = inverse;
    }
    return ok;
"""

_ROWS = """
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    const T* rows = H.data + base;
    V* b = x.data + xbase;
"""

_SOLVE_UP = """
    for (int k = end - 1; k >= begin; --k) {
        const T* rk = rows + start[k];
        const V bk = b[k];
        int d = deep[k] - 1;
        for (int j = up[k]; j >= 0; j = up[j], --d) b[j] -= V(rk[d]) * bk;
    }
"""

_SOLVE_DOWN = """
    for (int k = begin; k < end; ++k) {
        const T* rk = rows + start[k];
        int d = deep[k];
        V s = V(rk[d]) * b[k];
        --d;
        for (int j = up[k]; j >= 0; j = up[j], --d) s -= V(rk[d]) * b[j];
        b[k] = s;
    }
"""

_SOLVE_PAIR = """
    V* c = y.data + xbase;
    for (int k = end - 1; k >= begin; --k) {
        const T* rk = rows + start[k];
        const V bk = b[k], ck = c[k];
        int d = deep[k] - 1;
        for (int j = up[k]; j >= 0; j = up[j], --d) {
            const V h = V(rk[d]);
            b[j] -= h * bk;
            c[j] -= h * ck;
        }
    }
    for (int k = begin; k < end; ++k) {
        const T* rk = rows + start[k];
        int d = deep[k];
        V s = V(rk[d]) * b[k], t = V(rk[d]) * c[k];
        --d;
        for (int j = up[k]; j >= 0; j = up[j], --d) {
            const V h = V(rk[d]);
            s -= h * b[j];
            t -= h * c[j];
        }
        b[k] = s;
        c[k] = t;
    }
"""

_MULTIPLY = """
    const T* rows = H.data + base;
    const V* b = x.data + xbase;
    V* out = y.data + ybase;
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    for (int k = begin; k < end; ++k) {
        const T* rk = rows + start[k];
        const V bk = b[k];
        int d = deep[k];
        V s = V(rk[d]) * bk;
        --d;
        for (int j = up[k]; j >= 0; j = up[j], --d) {
            const V h = V(rk[d]);
            s += h * b[j];
            out[j] += h * bk;
        }
        out[k] = s;
    }
"""

_COPY = """
    const T* from = H.data + base;
    V* to = out.data + outbase;
    for (int e = 0; e < count; ++e) to[e] = V(from[e]);
"""

_CLEAR = """
    V* to = out.data + outbase;
    for (int e = 0; e < count; ++e) to[e] = V(0);
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

_CHAIN = """
    const T* rows = H.data + base;
    V* t1 = x.data + xbase;
    V* t2 = y.data + xbase;
    V* n = z.data + xbase;
    const int* up = parent.data + first;
    const int* deep = depth.data + first;
    const int* start = row.data + first;
    for (int k = leaf; k != top; k = up[k]) {
        const T* rk = rows + start[k];
        const int dk = deep[k];
        const V a = t1[dk], b = t2[dk], c = n[dk];
        for (int d = 0; d < dk; ++d) {
            const V h = V(rk[d]);
            t1[d] -= h * a;
            t2[d] -= h * b;
            n[d] -= h * c;
        }
        const V share = V(rk[dk]);
        t1[dk] = share * (a * a + b * b);
        n[dk] = share * c * c;
    }
"""


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


@functools.cache
def packed_rows(real: Any, real_vector: Any | None = None) -> SimpleNamespace:
    """Return the functions on packed rows of `real`, with vectors of `real_vector` (default: the same type).

    All of them take the template arrays `dof_parent`, `dof_depth`, `dof_row`, the template's `first` entry in
    them, and a range `begin <= k < end` of degrees of freedom made of whole trees.

    - `ltdl_factorize(H, base, parent, depth, row, first, begin, end) -> int`: in place; L below the diagonal,
      1/D on it. Returns 0 if a pivot was not positive (the matrix is not positive definite to rounding, or
      holds NaN).
    - `ltdl_solve(H, base, parent, depth, row, first, begin, end, x, xbase)`: x <- H^-1 x, from the
      factorization. `ltdl_solve_up` and `ltdl_solve_down` are its halves, x <- L^-T x and x <- L^-1 D^-1 x.
    - `ltdl_solve_pair(H, base, parent, depth, row, first, begin, end, x, y, xbase)`: the same for two vectors
      in one pass over the rows.
    - `rows_multiply(H, base, parent, depth, row, first, begin, end, x, xbase, y, ybase)`: y <- H x.
    - `chain_mobility(H, base, parent, depth, row, first, leaf, top, x, y, z, xbase)`: for three vectors
      along the path from `leaf` up, indexed by depth, L^-T of them down from `leaf` to below `top` (-1 for
      the root), from the factorization; there x <- (x^2 + y^2) / D and z <- z^2 / D in place of the result.
      What is above is left with what the rows below have taken from it.

    And, of `real` to `real_vector`, without any structure:

    - `rows_copy(H, base, count, out, outbase)`: out <- H, entry by entry.
    - `numbers_clear(out, outbase, count)`: out <- 0.

    And from packed rows to a column-major block of one tree:

    - `rows_to_block(H, base, parent, depth, row, first, begin, end, out, outbase)`: adds the lower triangle.
    """
    real_vector = real_vector or real
    types = f"using T = {CTYPE[real]}; using V = {CTYPE[real_vector]};"

    @wp.func_native(types + _FACTORIZE)
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

    @wp.func_native(types + _ROWS + _SOLVE_UP + _SOLVE_DOWN)
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

    @wp.func_native(types + _ROWS + _SOLVE_PAIR)
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

    @wp.func_native(types + _ROWS + _SOLVE_UP)
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

    @wp.func_native(types + _ROWS + _SOLVE_DOWN)
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

    @wp.func_native(types + _MULTIPLY)
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

    @wp.func_native(types + _CHAIN)
    def chain_mobility(
        H: wp.array[real],
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        leaf: int,
        top: int,
        x: wp.array[real_vector],
        y: wp.array[real_vector],
        z: wp.array[real_vector],
        xbase: int,
    ): ...

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
        chain_mobility=chain_mobility,
        rows_copy=rows_copy,
        numbers_clear=numbers_clear,
        rows_to_block=rows_to_block,
    )
