"""Contacts on bodies in native code against NumPy."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.body_contacts import body_contact_functions
from pluriverse.math.precision import mat33_type, vec3_type, vec6_type

ROUNDING = {wp.float64: 1e-13, wp.float32: 2e-5}


def cross_matrix(r):
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def point_map(r):
    """Return Phi, which takes a spatial velocity to that of the point at r."""
    return np.hstack([-cross_matrix(r), np.eye(3)])


def full(blocks, entry):
    """Return the 6x6 matrix of an entry of (ww, wv, vv)."""
    ww, wv, vv = (block.numpy()[entry].astype(float) for block in blocks)
    return np.block([[ww, wv], [wv.T, vv]])


def random_blocks(rng, count, linear):
    """Return (ww, wv, vv) of symmetric 6x6 matrices, and these."""
    K = rng.normal(size=(count, 6, 6))
    K = K + K.transpose(0, 2, 1)
    parts = (K[:, :3, :3], K[:, :3, 3:], K[:, 3:, 3:])
    return [wp.array(part, dtype=mat33_type(linear), device="cpu") for part in parts], K


@pytest.mark.parametrize("linear", [wp.float64, wp.float32])
@pytest.mark.parametrize("carrier", [-1, 0])
@pytest.mark.parametrize("has_stem", [False, True])
def test_the_stiffness_of_a_body_reaches_the_rows_of_its_joints(linear, carrier, has_stem):
    """Row k gets S_a^T K S_k of the degrees of freedom a above it, and the carrier of the body gets K."""
    project = body_contact_functions(linear, wp.float64, wp.float64).project_stiffness
    mat33_linear, vec6 = mat33_type(linear), vec6_type(wp.float64)

    @wp.kernel(enable_backward=False, module="unique")
    def project_one(
        ww: wp.array(dtype=mat33_linear),
        wv: wp.array(dtype=mat33_linear),
        vv: wp.array(dtype=mat33_linear),
        node: int,
        carrier: int,
        motion: wp.array(dtype=vec6),
        base: int,
        parent: wp.array[int],
        depth: wp.array[int],
        row: wp.array[int],
        first: int,
        begin: int,
        end: int,
        stop: int,
        has_stem: bool,
        rows: wp.array[linear],
        row_base: int,
    ):
        project(
            ww,
            wv,
            vv,
            node,
            carrier,
            motion,
            base,
            parent,
            depth,
            row,
            first,
            begin,
            end,
            stop,
            has_stem,
            rows,
            row_base,
        )

    rng = np.random.default_rng(3)
    # Six dofs of a root, a hinge, another on the root, and a body of two dofs on the first hinge; one dof and
    # two row entries of something else in front.
    parent = np.array([-7, -1, 0, 1, 2, 3, 4, 5, 5, 6, 8], np.int32)
    depth = np.array([-7, 0, 1, 2, 3, 4, 5, 6, 6, 7, 8], np.int32)
    row = np.concatenate([[-7], np.concatenate([[0], np.cumsum(depth[1:] + 1)])[:-1]]).astype(np.int32)
    motion = rng.normal(size=(1 + 10, 6))
    if has_stem:
        # The motions of a stem are the unit vectors; they need not be read.
        motion[1:7] = np.eye(6)
    size = int((depth[1:] + 1).sum())
    rows = rng.normal(size=2 + size)
    blocks, K = random_blocks(rng, 2, linear)
    out = wp.array(rows, dtype=linear, device="cpu")
    tables = [wp.array(a, dtype=int, device="cpu") for a in (parent, depth, row)]
    stop = 6 if has_stem else 0
    motions = wp.array(motion, dtype=vec6, device="cpu")
    inputs = [*blocks, 1, carrier, motions, 1, *tables, 1, 8, 10, stop, has_stem, out, 2]
    wp.launch(project_one, dim=1, inputs=inputs, device="cpu")
    expected = rows.copy()
    for k in (8, 9):
        a = k
        while a >= 0:
            expected[2 + row[1 + k] + depth[1 + a]] += motion[1 + a] @ K[1] @ motion[1 + k]
            a = parent[1 + a]
    np.testing.assert_allclose(out.numpy(), expected, rtol=0, atol=100 * ROUNDING[linear])
    carried = K[0] + K[1] if carrier == 0 else K[0]
    np.testing.assert_allclose(full(blocks, 0), carried, rtol=0, atol=10 * ROUNDING[linear])


def test_columns_of_a_point_are_its_velocities():
    """Column j is the velocity of the point at unit speed of dof j, in the frame, for dofs above a body."""
    add = body_contact_functions(wp.float64, wp.float64, wp.float64).add_point_columns
    mat33, vec3, vec6 = mat33_type(wp.float64), vec3_type(wp.float64), vec6_type(wp.float64)

    @wp.kernel(enable_backward=False, module="unique")
    def add_one(
        motion: wp.array(dtype=vec6),
        parent: wp.array[int],
        last: int,
        frame: mat33,
        arm: vec3,
        sign: wp.float64,
        x: wp.array[wp.float64],
    ):
        add(motion, 2, parent, 1, last, frame, arm, sign, x, 3, 8)

    rng = np.random.default_rng(2)
    motion, arm = rng.normal(size=(2 + 5, 6)), rng.normal(size=3)
    frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    parent = np.array([-7, -1, 0, 1, 1, 3], np.int32)
    x = rng.normal(size=3 + 5 * 8)
    out = wp.array(x, dtype=wp.float64, device="cpu")
    inputs = [
        wp.array(motion, dtype=vec6, device="cpu"),
        wp.array(parent, dtype=int, device="cpu"),
        4,
        mat33(frame),
        vec3(arm),
        -2.0,
        out,
    ]
    wp.launch(add_one, dim=1, inputs=inputs, device="cpu")
    for dof in (0, 1, 3, 4):
        x[3 + 8 * dof : 6 + 8 * dof] -= 2.0 * frame.T @ point_map(arm) @ motion[2 + dof]
    np.testing.assert_allclose(out.numpy(), x, rtol=0, atol=1e-13)
