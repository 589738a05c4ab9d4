"""Mobility of a few contacts against dense NumPy."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.contact_mobility import contact_mobility_functions
from tests.math.test_dense import random_forest

mobility = contact_mobility_functions(wp.float64, wp.float64)
ROUNDING = 2.0**-52
# Entries in front of those of the world, none of which may change.
SHIFT = 5


@wp.kernel(enable_backward=False, module="unique")
def find_mobility(
    H: wp.array[wp.float64],
    parent: wp.array[int],
    depth: wp.array[int],
    row: wp.array[int],
    dof_count: int,
    m: int,
    shift: int,
    x: wp.array[wp.float64],
    rate: wp.array[wp.float64],
    y: wp.array[wp.float64],
    w: wp.array[wp.float64],
    along: wp.array[wp.vec3d],
    u: wp.array[wp.vec3d],
    again: wp.array[wp.vec3d],
):
    mobility.add_velocities(x, shift, dof_count, m, rate, shift, along, shift)
    mobility.contact_mobility(
        H, 0, parent, depth, row, 0, 0, dof_count, x, shift, m, y, shift, w, shift, u, shift
    )
    mobility.add_responses(H, 0, depth, row, 0, dof_count, x, shift, m, y, shift, again, shift)


@wp.kernel(enable_backward=False, module="unique")
def spread_impulse(
    dof_count: int,
    m: int,
    shift: int,
    x: wp.array[wp.float64],
    p: wp.array[wp.vec3d],
    y: wp.array[wp.float64],
):
    mobility.spread_impulse(x, shift, dof_count, m, p, shift, y, shift)


def ancestors(parent, dof):
    """Return the degrees of freedom on the way from one to its root; -1 stands for none."""
    path = []
    while dof >= 0:
        path.append(dof)
        dof = parent[dof]
    return path


def array(values, dtype):
    return wp.array(values, dtype=dtype, device="cpu")


@pytest.mark.parametrize("dof_count", [1, 18, 70])
@pytest.mark.parametrize("contact_count", [1, 4, 5, 16])
def test_mobility_of_contacts_is_that_of_the_dense_matrices(dof_count, contact_count):
    """J x, X, W = J H^-1 J^T and J H^-1 g of contacts between random bodies of random trees."""
    rng = np.random.default_rng(dof_count + contact_count)
    parent, depth, row, size = random_forest(rng, dof_count, 6)
    lower, diagonal = np.eye(dof_count), rng.uniform(1.0, 2.0, dof_count)
    rows = np.zeros(size)
    for k in range(dof_count):
        for a in ancestors(parent, k)[1:]:
            lower[k, a] = rows[row[k] + depth[a]] = rng.uniform(-0.3, 0.3)
        rows[row[k] + depth[k]] = 1.0 / diagonal[k]
    m = 3 * contact_count
    jacobian = np.zeros((m, dof_count))
    for c, leaf in np.ndenumerate(rng.integers(-1, dof_count, (contact_count, 2))):
        for k in ancestors(parent, leaf):
            jacobian[3 * c[0] : 3 * c[0] + 3, k] += rng.normal(size=3)
    stride = -(-m // 8) * 8
    rate, y = rng.normal(size=(2, dof_count + SHIFT))
    columns = np.zeros((dof_count, stride))
    columns[:, :m] = jacobian.T
    basis = array(np.r_[np.full(SHIFT, 7.0), columns.ravel(), 7.0], wp.float64)
    w = array(np.full(SHIFT + m * stride + 1, 7.0), wp.float64)
    start = rng.normal(size=(contact_count + SHIFT + 1, 3))
    along, u, again = (array(start, wp.vec3d) for _ in range(3))
    indices = [array(one, int) for one in (parent, depth, row)]
    inputs = [array(rows, wp.float64), *indices, dof_count, m, SHIFT, basis, array(rate, wp.float64)]
    inputs += [array(y, wp.float64), w, along, u, again]
    wp.launch(find_mobility, dim=1, inputs=inputs, device="cpu")

    half = np.linalg.solve(lower.T, jacobian.T)
    expected = np.zeros((m, stride))
    expected[:, :m] = half.T @ (half / diagonal[:, None])
    found = w.numpy()
    scale = np.abs(expected).max() + 1.0
    tolerance = 100 * dof_count * ROUNDING * scale
    np.testing.assert_allclose(found[SHIFT:-1].reshape(m, stride), expected, rtol=0.0, atol=tolerance)
    padded = np.zeros((dof_count, stride))
    padded[:, :m] = half
    np.testing.assert_allclose(basis.numpy()[SHIFT:-1].reshape(dof_count, stride), padded, atol=tolerance)
    response = half.T @ (y[SHIFT:] / diagonal)
    for array_of, change in ((along, jacobian @ rate[SHIFT:]), (u, response), (again, response)):
        wanted = start.copy()
        wanted[SHIFT:-1] += change.reshape(-1, 3)
        np.testing.assert_allclose(array_of.numpy(), wanted, rtol=0.0, atol=tolerance)
    for one in (found, basis.numpy()):
        np.testing.assert_array_equal(one[[*range(SHIFT), -1]], 7.0)


@pytest.mark.parametrize("contact_count", [1, 4, 5, 16])
def test_impulses_are_spread_over_the_degrees_of_freedom(contact_count):
    """What was there, plus X p, whatever impulses lie behind those of the world."""
    rng = np.random.default_rng(contact_count)
    dof_count, m = 18, 3 * contact_count
    stride = -(-m // 8) * 8
    columns = np.zeros((dof_count, stride))
    columns[:, :m] = rng.normal(size=(dof_count, m))
    impulse = rng.normal(size=(contact_count + 2 * SHIFT, 3))
    impulse[SHIFT + contact_count :] = np.nan
    start = rng.normal(size=dof_count + SHIFT + 1)
    x, y = array(np.r_[np.full(SHIFT, 7.0), columns.ravel()], wp.float64), array(start, wp.float64)
    inputs = [dof_count, m, SHIFT, x, array(impulse, wp.vec3d), y]
    wp.launch(spread_impulse, dim=1, inputs=inputs, device="cpu")
    expected = start.copy()
    expected[SHIFT:-1] += columns[:, :m] @ impulse[SHIFT : SHIFT + contact_count].ravel()
    np.testing.assert_allclose(y.numpy(), expected, rtol=0.0, atol=100 * m * ROUNDING)
