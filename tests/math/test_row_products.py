"""Product of packed rows and a vector against dense NumPy: random trees, deep ones, and NaN beside a tree."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.row_products import multiply_rows_function
from tests.math.test_dense import random_forest

# Entries in front of those of the world, none of which may be read or change.
SHIFT = 3


def make_kernel(real):
    multiply_rows = multiply_rows_function(real, wp.float64)

    @wp.kernel(enable_backward=False, module="unique")
    def multiply(
        H: wp.array[real],
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        dof_count: int,
        shift: int,
        x: wp.array[wp.float64],
        y: wp.array[wp.float64],
    ):
        multiply_rows(H, shift, parent, depth, row, 0, shift, dof_count, x, 0, y, 0)

    return multiply


def multiply(kernel, real, rows, parent, depth, row, x):
    """Return the product, which is asked for in the middle of arrays that hold NaN and other trees."""
    arrays = [
        wp.array(np.r_[np.full(SHIFT, 99), one].astype(np.int32), dtype=int, device="cpu")
        for one in (np.where(parent < 0, -1, parent + SHIFT), depth, row)
    ]
    H, given = (
        wp.array(np.r_[np.full(SHIFT, np.nan), one], dtype=kind, device="cpu")
        for one, kind in ((rows, real), (x, wp.float64))
    )
    product = wp.array(np.full(len(x) + SHIFT + 1, np.nan), dtype=wp.float64, device="cpu")
    wp.launch(kernel, dim=1, inputs=[H, *arrays, len(x), SHIFT, given, product], device="cpu")
    assert np.isnan(product.numpy()[[*range(SHIFT), -1]]).all()
    return product.numpy()[SHIFT:-1]


def chain(dof_count):
    """Return dof_parent, dof_depth, dof_row of one tree without branches, and its number of row entries."""
    depth = np.arange(dof_count)
    return depth - 1, depth, depth * (depth + 1) // 2, dof_count * (dof_count + 1) // 2


@pytest.mark.parametrize("real", [wp.float64, wp.float32])
def test_product_is_that_of_the_dense_matrix(real):
    """Random forests, chains of 16 and 17, the second of which is deeper than two vectors."""
    rng = np.random.default_rng(8)
    kernel = make_kernel(real)
    cases = [chain(16), chain(17)]
    for count in (1, 7, 18, 35, 64):
        cases += [random_forest(rng, count, stem) for stem in (1, 6, 1, 6)]
    assert any(depth.max() < 16 and np.count_nonzero(parent < 0) > 1 for parent, depth, _, _ in cases)
    for parent, depth, row, size in cases:
        rows = rng.normal(size=size).astype(np.float32).astype(float)
        dense = np.zeros((len(depth), len(depth)))
        for k in range(len(depth)):
            a = k
            while a >= 0:
                dense[k, a] = dense[a, k] = rows[row[k] + depth[a]]
                a = parent[a]
        x = rng.normal(size=len(depth))
        found = multiply(kernel, real, rows, parent, depth, row, x)
        np.testing.assert_allclose(found, dense @ x, rtol=0.0, atol=1e-14 * len(x))


def test_nan_stays_in_its_branch():
    """A number of the vector concerns what is above and below it, and so does a row."""
    parent, depth = np.array([-1, 0, 1, 0, 3, -1, 5]), np.array([0, 1, 2, 1, 2, 0, 1])
    row = np.concatenate([[0], np.cumsum(depth + 1)[:-1]])
    kernel = make_kernel(wp.float64)
    rows, x = np.ones(int((depth + 1).sum())), np.ones(7)
    x[2] = np.nan
    found = multiply(kernel, wp.float64, rows, parent, depth, row, x)
    np.testing.assert_array_equal(np.isnan(found), [True, True, True, False, False, False, False])
    x[2] = 1.0
    rows[row[4] : row[4] + 3] = np.nan
    found = multiply(kernel, wp.float64, rows, parent, depth, row, x)
    np.testing.assert_array_equal(np.isnan(found), [True, False, False, True, True, False, False])
