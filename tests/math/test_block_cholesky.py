"""Block-sparse Cholesky against dense NumPy: random coupling graphs of trees of different sizes."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.block_cholesky import block_cholesky, order_blocks


@wp.kernel(enable_backward=False)
def order(
    tree_count: int,
    adjacency: wp.array[wp.uint64],
    coupled: wp.array[int],
    size: wp.array[int],
    sequence: wp.array[int],
    position: wp.array[int],
    location: wp.array[int],
    used: wp.array[int],
):
    used[0] = order_blocks(tree_count, adjacency, 0, coupled, 0, size, 0, sequence, position, location, 0)


def make_solve_kernel(real):
    blocks = block_cholesky(real, wp.float64)

    @wp.kernel(enable_backward=False, module="unique")
    def factorize_and_solve(
        tree_count: int,
        block_count: int,
        adjacency: wp.array[wp.uint64],
        size: wp.array[int],
        first_dof: wp.array[int],
        sequence: wp.array[int],
        position: wp.array[int],
        location: wp.array[int],
        value: wp.array[real],
        x: wp.array[wp.float64],
        ok: wp.array[int],
    ):
        ok[0] = blocks.block_factorize(
            tree_count, block_count, adjacency, 0, 0, size, 0, sequence, position, location, 0, value, 0
        )
        blocks.block_solve(
            tree_count,
            block_count,
            adjacency,
            0,
            0,
            size,
            first_dof,
            0,
            sequence,
            location,
            0,
            value,
            0,
            x,
            0,
        )

    return factorize_and_solve


def ints(values):
    return wp.array(np.asarray(values, dtype=np.int32).ravel(), dtype=int, device="cpu")


def solve(kernel, real, sizes, edges, rng, vector=wp.float64, work=(), shift=0.0, expected_ok=1):
    """Solve with a random matrix of the given block graph; return solution, expectation and fill.

    `work` holds further inputs of the kernel. `shift` is taken off the diagonal of the matrix.
    """
    count, dofs = len(sizes), int(sum(sizes))
    first = np.concatenate([[0], np.cumsum(sizes)])
    words = (count + 63) // 64
    graph = np.zeros((count, words), dtype=np.uint64)
    coupled = np.zeros(count, dtype=np.int32)
    dense = (1.0 - shift) * np.eye(dofs)
    for i, j in edges:
        graph[i, j // 64] |= np.uint64(1 << (j % 64))
        graph[j, i // 64] |= np.uint64(1 << (i % 64))
        coupled[[i, j]] = 1
        index = np.r_[first[i] : first[i + 1], first[j] : first[j + 1]]
        jacobian = rng.normal(size=(len(index), len(index)))
        dense[np.ix_(index, index)] += jacobian.T @ jacobian / len(index)
    adjacency = wp.array(graph.ravel(), dtype=wp.uint64, device="cpu")
    size, location = ints(sizes), ints(np.full(count * count, -1))
    sequence, position, used = ints(np.full(count, -1)), ints(np.full(count, -1)), ints([0])
    wp.launch(
        order,
        dim=1,
        inputs=[count, adjacency, ints(coupled), size, sequence, position, location, used],
        device="cpu",
    )
    where, place, fill = location.numpy().reshape(count, count), position.numpy(), int(used.numpy()[0])
    value = np.zeros(fill)
    blocks = [(i, i) for i in range(count) if coupled[i]]
    blocks += [(i, j) if place[i] > place[j] else (j, i) for i, j in edges]
    for i, j in blocks:
        block = dense[first[i] : first[i + 1], first[j] : first[j + 1]]
        value[where[i, j] : where[i, j] + block.size] = block.T.ravel()
    expected = rng.normal(size=dofs)
    x = wp.array(dense @ expected, dtype=vector, device="cpu")
    ok = ints([-1])
    inputs = [count, int(coupled.sum()), adjacency, size, ints(first[:-1]), sequence, position, location]
    values = wp.array(value, dtype=real, device="cpu")
    wp.launch(kernel, dim=1, inputs=[*inputs, values, x, ok, *work], device="cpu")
    assert ok.numpy()[0] == expected_ok
    free = np.repeat(coupled == 0, sizes)
    return x.numpy()[~free], expected[~free], fill


@pytest.mark.parametrize("real", [wp.float64, wp.float32])
def test_block_factorization_solves_like_the_dense_matrix(real):
    """Random graphs, with uncoupled trees between coupled ones and more trees than bits in a word."""
    rng = np.random.default_rng(1)
    kernel = make_solve_kernel(real)
    rounding = 2.0**-52 if real is wp.float64 else 2.0**-23
    cases = [
        ([6, 9, 35, 6, 1], [(0, 1), (1, 2), (0, 4)]),
        ([6] * 70, [(i, i + 1) for i in range(69)] + [(0, 68), (3, 66)]),
        (
            [int(n) for n in rng.integers(1, 8, size=30)],
            [(i, j) for i in range(30) for j in range(i) if rng.random() < 0.1],
        ),
    ]
    for sizes, edges in cases:
        solution, expected, _ = solve(kernel, real, sizes, edges, rng)
        # The condition number of I + J^T J sums stays below 1e3 here.
        np.testing.assert_allclose(solution, expected, rtol=0.0, atol=1e3 * len(expected) * rounding)


def test_a_chain_of_bodies_factors_without_fill():
    """Minimum degree finds the perfect elimination of a chain: one off-diagonal block per link."""
    rng = np.random.default_rng(2)
    count = 40
    _, _, fill = solve(
        make_solve_kernel(wp.float64), wp.float64, [6] * count, [(i, i + 1) for i in range(count - 1)], rng
    )
    assert fill == 36 * (2 * count - 1)
