"""Packed-row factorization against dense NumPy."""

import itertools

import numpy as np
import pytest
import warp as wp

from pluriverse.math.dense import packed_rows


def random_forest(rng, dof_count, stem):
    """Return dof_parent, dof_depth, dof_row of a random forest, and its number of row entries.

    Dofs are numbered depth first. The trees whose roots follow each other by `stem` or more begin with that
    many dofs in a row.
    """
    parent, depth = [-1], [0]
    for k in range(1, dof_count):
        path = [k - 1]
        while path[-1] >= 0:
            path.append(parent[path[-1]])
        root = path[-2]
        on_stem = k - root < stem
        below = [a for a in path if a >= root + stem - 1]
        # Every third time the tree ends, if it has all of its stem.
        new_root = not below or rng.integers(3) == 0
        parent.append(k - 1 if on_stem else -1 if new_root else int(rng.choice(below)))
        depth.append(0 if parent[k] < 0 else depth[parent[k]] + 1)
    row = np.concatenate([[0], np.cumsum(np.array(depth) + 1)]).astype(np.int32)
    return np.array(parent, np.int32), np.array(depth, np.int32), row[:-1], int(row[-1])


def make_kernel(real):
    rows = packed_rows(real, wp.float64)

    @wp.kernel(enable_backward=False, module="unique")
    def multiply_factorize_solve(
        H: wp.array[real],
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        dof_count: int,
        x: wp.array[wp.float64],
        y: wp.array[wp.float64],
        one: wp.array[wp.float64],
        other: wp.array[wp.float64],
        ok: wp.array[int],
    ):
        rows.rows_multiply(H, 0, parent, depth, row, 0, 0, dof_count, x, 0, y, 0)
        for k in range(dof_count):
            x[k] = y[k]
            one[k] = y[k]
            other[k] = wp.float64(-2.0) * y[k]
        ok[0] = rows.ltdl_factorize(H, 0, parent, depth, row, 0, 0, dof_count)
        rows.ltdl_solve(H, 0, parent, depth, row, 0, 0, dof_count, x, 0)
        rows.ltdl_solve_pair(H, 0, parent, depth, row, 0, 0, dof_count, one, other, 0)

    return multiply_factorize_solve


def run(kernel, real, rows, parent, depth, row, x):
    arrays = [wp.array(a, dtype=int, device="cpu") for a in (parent, depth, row)]
    H = wp.array(rows, dtype=real, device="cpu")
    solution = wp.array(x, dtype=wp.float64, device="cpu")
    product, one, other = (
        wp.array(np.full_like(x, np.nan), dtype=wp.float64, device="cpu") for _ in range(3)
    )
    ok = wp.array([-1], dtype=int, device="cpu")
    wp.launch(kernel, dim=1, inputs=[H, *arrays, len(x), solution, product, one, other, ok], device="cpu")
    # Two vectors at once are solved for as one by one, to the bit; a factor of two does not round.
    np.testing.assert_array_equal(one.numpy(), solution.numpy())
    np.testing.assert_array_equal(other.numpy(), -2.0 * solution.numpy())
    return product.numpy(), solution.numpy(), int(ok.numpy()[0])


@pytest.mark.parametrize("real", [wp.float64, wp.float32])
def test_packed_rows_multiply_and_solve_like_the_dense_matrix(real):
    """Y = H x and H^-1 y on packed rows equal the dense product and solution, on random forests."""
    rng = np.random.default_rng(0)
    kernel = make_kernel(real)
    rounding = 2.0**-52 if real is wp.float64 else 2.0**-23
    for dof_count, stem in itertools.product((1, 2, 7, 35), (1, 6, 12)):
        parent, depth, row, size = random_forest(rng, dof_count, stem)
        rows = np.zeros(size)
        dense = np.zeros((dof_count, dof_count))
        for k in range(dof_count):
            ancestor = k
            while ancestor >= 0:
                # Diagonal dominance makes any sign pattern positive definite.
                value = 2.0 * dof_count if ancestor == k else rng.uniform(-1.0, 1.0)
                rows[row[k] + depth[ancestor]] = dense[k, ancestor] = dense[ancestor, k] = value
                ancestor = parent[ancestor]
        x = rng.normal(size=dof_count)
        product, solution, ok = run(kernel, real, rows, parent, depth, row, x)
        assert ok == 1
        # Errors of n terms, each rounded once, times the condition number (< 3 by dominance).
        np.testing.assert_allclose(product, dense @ x, rtol=0.0, atol=10 * dof_count**2 * rounding)
        np.testing.assert_allclose(solution, x, rtol=0.0, atol=10 * dof_count * rounding)


def test_factorization_reports_a_matrix_that_is_not_positive_definite():
    """A negative pivot is reported, not hidden."""
    kernel = make_kernel(wp.float64)
    zero = np.zeros(1, dtype=np.int32)
    parent, depth, row = np.array([-1], dtype=np.int32), zero, zero
    _, _, ok = run(kernel, wp.float64, np.array([-1.0]), parent, depth, row, np.array([1.0]))
    assert ok == 0
    _, _, ok = run(kernel, wp.float64, np.array([np.nan]), parent, depth, row, np.array([1.0]))
    assert ok == 0


def test_the_diagonal_of_packed_rows_is_added_to_and_judged():
    """Only the last entry of each of the given rows changes; all of them have to be positive, NaN is not."""
    packed = packed_rows(wp.float64)

    @wp.kernel(enable_backward=False, module="unique")
    def add_and_judge(
        H: wp.array[wp.float64],
        depth: wp.array[int],
        row: wp.array[int],
        count: int,
        x: wp.array[wp.float64],
        ok: wp.array[int],
    ):
        packed.diagonal_add(H, 1, depth, row, 0, count, x, 2, wp.float64(0.25))
        ok[0] = packed.is_diagonal_positive(H, 1, depth, row, 0, count)

    rng = np.random.default_rng(1)
    _, depth, row, size = random_forest(rng, 9, 6)
    for value in (1.0, -1.0, np.nan):
        rows, x = np.ones(size + 1), rng.uniform(size=11)
        x[10] = value - 1.25
        added = wp.array(x, dtype=wp.float64, device="cpu")
        indices = [wp.array(numbers, dtype=int, device="cpu") for numbers in (depth, row)]
        ok = wp.array([-1], dtype=int, device="cpu")
        for count in (8, 9):
            H = wp.array(rows, dtype=wp.float64, device="cpu")
            wp.launch(add_and_judge, dim=1, inputs=[H, *indices, count, added, ok], device="cpu")
            expected = rows.copy()
            expected[1 + (row + depth)[:count]] += x[2 : 2 + count] + 0.25
            np.testing.assert_array_equal(H.numpy(), expected)
            assert ok.numpy()[0] == (count == 8 or value > 0.0)
