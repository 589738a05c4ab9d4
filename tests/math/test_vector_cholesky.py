"""Solution for few coupled trees against dense NumPy: graphs of trees of different sizes."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.vector_cholesky import vector_cholesky, vector_work_size
from tests.math.test_block_cholesky import solve


def make_vector_kernel(real):
    vector_solve = vector_cholesky(real).vector_solve

    @wp.kernel(enable_backward=False, module="unique")
    def solve_trees(
        tree_count: int,
        block_count: int,
        adjacency: wp.array[wp.uint64],
        size: wp.array[int],
        first_dof: wp.array[int],
        sequence: wp.array[int],
        position: wp.array[int],
        location: wp.array[int],
        value: wp.array[real],
        x: wp.array[real],
        ok: wp.array[int],
        work: wp.array[real],
        again: wp.array[real],
    ):
        for entry in range(again.shape[0]):
            again[entry] = x[entry]
        ok[0] = vector_solve(
            tree_count,
            block_count,
            adjacency,
            0,
            0,
            size,
            first_dof,
            0,
            sequence,
            position,
            location,
            0,
            value,
            0,
            x,
            0,
            work,
            0,
            False,
        )
        if again.shape[0] > 0:
            for entry in range(value.shape[0]):
                value[entry] = real(wp.nan)
            ok[0] = vector_solve(
                tree_count,
                block_count,
                adjacency,
                0,
                0,
                size,
                first_dof,
                0,
                sequence,
                position,
                location,
                0,
                value,
                0,
                again,
                0,
                work,
                0,
                True,
            )

    return solve_trees


def scratch(sizes, real, again=0):
    """Return scratch of the promised size, filled with NaN, and room for a second right-hand side."""
    size = vector_work_size(np.asarray(sizes))
    return [wp.array(np.full(count, np.nan), dtype=real, device="cpu") for count in (size, again)]


HAND = ([16, 6, 6, 6, 6, 6, 6], [(0, 1), (0, 3), (0, 5), (0, 6), (1, 4), (2, 3), (2, 5), (3, 5), (5, 6)])


@pytest.mark.parametrize("real", [wp.float64, wp.float32])
def test_coupled_trees_are_solved_like_the_dense_matrix(real):
    """A hand with six objects, other sizes with uncoupled trees between them, and random graphs."""
    rng = np.random.default_rng(3)
    kernel = make_vector_kernel(real)
    rounding = 2.0**-52 if real is wp.float64 else 2.0**-23
    cases = [HAND, ([6, 9, 35, 6, 1], [(0, 1), (1, 2), (0, 4)]), ([40, 6, 17], [(0, 2)])]
    for _ in range(20):
        sizes = [int(n) for n in rng.integers(1, 12, size=7)]
        edges = [(i, j) for i in range(7) for j in range(i) if rng.random() < 0.3]
        if edges and sum(sizes) <= 64 and sum((n + 7) // 8 for n in sizes) <= 12:
            cases.append((sizes, edges))
    assert len(cases) > 10
    for sizes, edges in cases:
        solution, expected, _ = solve(kernel, real, sizes, edges, rng, vector=real, work=scratch(sizes, real))
        # The condition number of I + J^T J sums stays below 1e3 here.
        np.testing.assert_allclose(solution, expected, rtol=0.0, atol=1e3 * len(expected) * rounding)


@pytest.mark.parametrize("real", [wp.float64, wp.float32])
def test_factors_are_kept_for_another_right_hand_side(real):
    """The same right-hand side once more, with NaN in place of the matrix, has the same solution."""
    rng = np.random.default_rng(6)
    kernel = make_vector_kernel(real)
    rounding = 2.0**-52 if real is wp.float64 else 2.0**-23
    for sizes, edges in [HAND, ([6, 9, 35, 6, 1], [(0, 1), (1, 2), (0, 4)]), ([40, 6, 17], [(0, 2)])]:
        work = scratch(sizes, real, again=sum(sizes))
        solution, expected, _ = solve(kernel, real, sizes, edges, rng, vector=real, work=work)
        is_coupled = np.isin(np.repeat(np.arange(len(sizes)), sizes), edges)
        for found in (solution, work[1].numpy()[is_coupled]):
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e3 * len(expected) * rounding)


def test_an_indefinite_matrix_is_reported():
    """With 40 taken off its diagonal, the matrix has a negative pivot."""
    sizes, edges = HAND
    rng = np.random.default_rng(4)
    work = scratch(sizes, wp.float64)
    solve(make_vector_kernel(wp.float64), wp.float64, sizes, edges, rng, work=work, shift=40.0, expected_ok=0)


@pytest.mark.parametrize("sizes", [[30, 35], [1] * 13])
def test_too_many_trees_are_left_alone(sizes):
    """More than 64 degrees of freedom, or 12 vectors of rows, return -1 and keep the right-hand side."""
    rng = np.random.default_rng(5)
    edges = [(i, i + 1) for i in range(len(sizes) - 1)]
    kernel = make_vector_kernel(wp.float64)
    work = scratch(sizes, wp.float64)
    solution, expected, _ = solve(kernel, wp.float64, sizes, edges, rng, work=work, expected_ok=-1)
    assert np.isnan(work[0].numpy()).all()
    assert np.abs(solution - expected).max() > 0.1
