"""Mobility of points on chains of joints against dense NumPy."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.chain_mobility import CHAIN_SIZE, WORK_SIZE, chain_mobility_functions
from pluriverse.math.dense import packed_rows

STRIDE = 16
# Two bodies of one tree that share joints 0 to 2, and a body of another tree.
PARENT = np.array([-1, 0, 1, 2, 3, 2, 5, 6, 7, 8, 9, 10, -1, 12], dtype=np.int32)


@wp.kernel(enable_backward=False, module="unique")
def measure_points(
    H: wp.array[wp.float64],
    parent: wp.array[int],
    depth: wp.array[int],
    row: wp.array[int],
    motion: wp.array(dtype=wp.types.vector(length=6, dtype=wp.float64)),
    leaf0: int,
    leaf1: int,
    shared: int,
    points: wp.array[wp.vec3d],
    x: wp.array[wp.float64],
    result: wp.array[wp.vec3d],
):
    chain0 = wp.static(int(WORK_SIZE) * STRIDE)
    chain1 = chain0 + wp.static(int(CHAIN_SIZE) * STRIDE)
    wp.static(packed_rows(wp.float64).ltdl_factorize)(H, 0, parent, depth, row, 0, 0, parent.shape[0])
    count0, count1 = int(0), int(0)
    chain_velocities = wp.static(chain_mobility_functions(wp.float64, wp.float64).chain_velocities)
    if leaf0 >= 0:
        count0 = depth[leaf0] + 1
        chain_velocities(H, parent, depth, row, leaf0, motion, x, chain0, STRIDE)
    if leaf1 >= 0:
        count1 = depth[leaf1] + 1
        chain_velocities(H, parent, depth, row, leaf1, motion, x, chain1, STRIDE)
    result[0] = wp.static(chain_mobility_functions(wp.float64, wp.float64).point_mobility)(
        x, chain0, count0, chain1, count1, shared, STRIDE, points[0], points[1], points[2]
    )


@pytest.mark.parametrize(
    ("leaf0", "leaf1", "shared"), [(-1, 4, 0), (11, -1, 0), (4, 11, 3), (11, 4, 3), (2, 11, 3), (11, 13, 0)]
)
def test_mobility_of_a_pair_of_points_is_that_of_the_dense_jacobian(leaf0, leaf1, shared):
    """w_n = n^T W n and w_t = (tr W - w_n) / 2 with W = J A^-1 J^T; rounding is that of 14 columns."""
    rng = np.random.default_rng(1)
    count = len(PARENT)
    depth = np.zeros(count, dtype=np.int32)
    for k, up in enumerate(PARENT):
        depth[k] = 0 if up < 0 else depth[up] + 1
    row = np.concatenate([[0], np.cumsum(depth + 1)]).astype(np.int32)
    chains = [[] for _ in range(count)]
    for k, up in enumerate(PARENT):
        chains[k] = [*(chains[up] if up >= 0 else []), k]
    mass, rows = np.zeros((count, count)), np.zeros(row[-1])
    for k in range(count):
        for ancestor in chains[k]:
            value = 2.0 * count if ancestor == k else rng.uniform(-1.0, 1.0)
            mass[k, ancestor] = mass[ancestor, k] = rows[row[k] + depth[ancestor]] = value
    motion = rng.normal(size=(count, 6))
    points = rng.normal(size=(3, 3))
    points[2] /= np.linalg.norm(points[2])
    jacobian = np.zeros((3, count))
    for leaf, arm, sign in ((leaf0, points[0], -1.0), (leaf1, points[1], 1.0)):
        for k in chains[leaf] if leaf >= 0 else []:
            jacobian[:, k] += sign * (motion[k, 3:] + np.cross(motion[k, :3], arm))
    mobility = jacobian @ np.linalg.solve(mass, jacobian.T)
    along = points[2] @ mobility @ points[2]
    expected = [0.5 * (np.trace(mobility) - along), along, 0.0]

    result = wp.zeros(1, dtype=wp.vec3d, device="cpu")
    wp.launch(
        measure_points,
        dim=1,
        inputs=[
            wp.array(rows, dtype=wp.float64, device="cpu"),
            *(wp.array(a, dtype=int, device="cpu") for a in (PARENT, depth, row[:-1])),
            wp.array(motion, dtype=wp.types.vector(length=6, dtype=wp.float64), device="cpu"),
            leaf0,
            leaf1,
            shared,
            wp.array(points, dtype=wp.vec3d, device="cpu"),
            # What is left of an earlier chain must not matter.
            wp.full((int(WORK_SIZE) + 2 * int(CHAIN_SIZE)) * STRIDE, 7.0, dtype=wp.float64, device="cpu"),
        ],
        outputs=[result],
        device="cpu",
    )
    np.testing.assert_allclose(result.numpy()[0], expected, rtol=1e-12, atol=1e-15)
