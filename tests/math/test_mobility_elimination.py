"""Elimination of impulses with a linear law from a mobility, against NumPy."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.mobility_elimination import ELIMINATED_MAX, mobility_elimination_functions

elimination = mobility_elimination_functions(wp.float64)
FIRST = 2


@wp.kernel(enable_backward=False, module="unique")
def eliminate_and_restore(
    w: wp.array[wp.float64],
    m: int,
    e: int,
    compliance: wp.array[wp.vec3d],
    wanted: wp.array[wp.vec3d],
    velocity: wp.array[wp.vec3d],
    impulse: wp.array[wp.vec3d],
    left: wp.array[wp.float64],
    found: wp.array[int],
):
    found[0] = elimination.eliminate_last(w, 8, m, e, compliance, wanted, FIRST, velocity)
    for index in range(left.shape[0]):
        left[index] = w[8 + index]
    elimination.restore_last(w, 8, m, e, compliance, wanted, FIRST, velocity, impulse)


def _vectors(numbers: np.ndarray) -> wp.array:
    """Return numbers one after the other as vectors, from the vector `FIRST` on."""
    padded = np.full(3 * (FIRST + 24), np.nan)
    padded[3 * FIRST : 3 * FIRST + len(numbers)] = numbers
    return wp.array(padded.reshape(-1, 3), dtype=wp.vec3d, device="cpu")


def _solve(rng: np.random.Generator, m: int, e: int, mobility: np.ndarray):
    """Return what the functions are given, and what they leave, as arrays."""
    total = m + e
    wide, narrow = 8 * -(-total // 8), 8 * -(-m // 8)
    rows = np.zeros((total, wide))
    rows[:, :total] = mobility
    w = wp.array(np.concatenate([np.zeros(8), rows.ravel()]), dtype=wp.float64, device="cpu")
    compliance, wanted, free, impulse = rng.uniform(0.1, 1.0, (4, total))
    arrays = [_vectors(x) for x in (compliance, wanted, free, impulse)]
    left = wp.zeros(max(m * narrow, 1), dtype=wp.float64, device="cpu")
    found = wp.zeros(1, dtype=int, device="cpu")
    wp.launch(eliminate_and_restore, dim=1, inputs=[w, m, e, *arrays, left, found], device="cpu")
    velocity, impulses = (array.numpy().ravel()[3 * FIRST :][:total] for array in arrays[2:])
    return (compliance, wanted, free, impulse), (velocity, impulses, left.numpy(), found.numpy()[0])


@pytest.mark.parametrize("m", [0, 3, 15, 24])
@pytest.mark.parametrize("e", [1, 3, ELIMINATED_MAX])
def test_the_law_of_the_last_holds_whatever_the_impulses_of_the_others(m, e):
    """Velocities are u0 + W p, with u + D p = g of the last ones; what is left gives those of the others."""
    rng = np.random.default_rng(100 * m + e)
    total = m + e
    root = rng.normal(size=(total, total + 2))
    mobility = root @ root.T
    given, (velocity, impulses, left, found) = _solve(rng, m, e, mobility)
    compliance, wanted, free, first = given
    assert found == 1
    last = np.linalg.solve(
        mobility[m:, m:] + np.diag(compliance[m:]), wanted[m:] - free[m:] - mobility[m:, :m] @ first[:m]
    )
    tolerance = 1e-15 * np.linalg.cond(mobility + np.diag(compliance)) * total
    np.testing.assert_allclose(impulses[m:], last, atol=tolerance * max(np.abs(last).max(), 1.0))
    np.testing.assert_array_equal(impulses[:m], first[:m])
    expected = free + mobility @ np.concatenate([first[:m], last])
    np.testing.assert_allclose(velocity[m:], expected[m:], atol=tolerance * np.abs(expected).max())
    if m > 0:
        rows = left[: m * (8 * -(-m // 8))].reshape(m, -1)
        np.testing.assert_array_equal(rows[:, m:], 0.0)
        np.testing.assert_allclose(
            velocity[:m] + rows[:, :m] @ first[:m], expected[:m], atol=tolerance * np.abs(expected).max()
        )


def test_a_mobility_that_is_not_definite_is_reported():
    """So is one that is no number."""
    rng = np.random.default_rng(1)
    for value in (-5.0, np.nan):
        mobility = np.eye(5)
        mobility[4, 4] = value
        assert _solve(rng, 3, 2, mobility)[1][3] == 0
