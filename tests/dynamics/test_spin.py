"""The drift of a body that spins against the equation that defines it, solved by nothing but substitution."""

import numpy as np
import pytest
import warp as wp

from pluriverse.dynamics.spin import CHANGE_MAX, PART_COUNT_MAX, TURN_MAX, spin_functions

STEP = 0.005


@pytest.fixture(scope="module")
def kernel():
    drift = spin_functions(wp.float64).drift

    @wp.kernel(enable_backward=False, module="unique")
    def drift_body(
        inverse: wp.array[wp.mat33d],
        momentum: wp.array[wp.vec3d],
        dt: wp.float64,
        rotation: wp.array[wp.quatd],
    ):
        body, _ = wp.tid()
        rotation[body] = drift(inverse[body], momentum[body], dt)

    return drift_body


def random_bodies(rng, count):
    """Return principal inertias of rigid bodies, from balls to rods and discs, and their axes."""
    masses = 10.0 ** rng.uniform(
        -5.0, 0.0, size=(count, 3)
    )  # along three axes, so that no triangle is broken
    principal = masses.sum(axis=1, keepdims=True) - masses
    axes = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    return np.einsum("bij,bj,bkj->bik", axes, principal, axes)


def matrices(rotation):
    """Return the rotation matrices of unit quaternions xyzw."""
    x, y, z, w = rotation.T
    cross = np.zeros((len(rotation), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -z, y, -x
    cross -= cross.transpose(0, 2, 1)
    return np.eye(3) + 2.0 * w[:, None, None] * cross + 2.0 * cross @ cross


@pytest.mark.parametrize("angle", [1e-9, 1e-3, 0.03, 0.9 * float(TURN_MAX)])
def test_a_part_of_a_drift_is_a_step_of_the_midpoint_rule(kernel, angle):
    """Theta = h R(theta / 2) I^-1 R(theta / 2)^T L, for bodies of any inertia at any axis of rotation."""
    rng = np.random.default_rng(3)
    count = 400
    inertia = random_bodies(rng, count)
    inverse = np.linalg.inv(inertia)
    omega = rng.normal(size=(count, 3))
    omega *= angle / STEP / np.linalg.norm(omega, axis=1, keepdims=True)
    momentum = np.einsum("bij,bj->bi", inertia, omega)
    rotation = wp.zeros(count, dtype=wp.quatd, device="cpu")
    wp.launch(
        kernel,
        dim=(count, 1),
        inputs=[
            wp.array(inverse, dtype=wp.mat33d, device="cpu"),
            wp.array(momentum, dtype=wp.vec3d, device="cpu"),
            STEP,
        ],
        outputs=[rotation],
        device="cpu",
    )
    turned = rotation.numpy()
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0, rtol=0.0, atol=4 * 2.0**-52)
    sine = np.linalg.norm(turned[:, :3], axis=1)
    theta = 2.0 * np.arctan2(sine, turned[:, 3])[:, None] * turned[:, :3] / sine[:, None]
    size = np.linalg.norm(theta, axis=1)
    half = np.concatenate(
        [np.sin(size / 4)[:, None] * theta / size[:, None], np.cos(size / 4)[:, None]], axis=1
    )
    half_way = matrices(half)
    velocity = np.einsum("bij,bjk,blk,bl->bi", half_way, inverse, half_way, momentum)
    error = np.linalg.norm(STEP * velocity - theta, axis=1) / size
    # The last change is at most that large, and less is left behind it, hardly anything in most bodies.
    assert error.max() <= float(CHANGE_MAX)
    assert np.median(error) <= 1e-9


def test_a_fast_drift_is_made_of_parts(kernel):
    """A ball turns by h L / I about L, however fast, as far as the largest number of parts reaches."""
    angle = 0.5 * float(TURN_MAX) * int(PART_COUNT_MAX)
    rotation = wp.zeros(1, dtype=wp.quatd, device="cpu")
    wp.launch(
        kernel,
        dim=(1, 1),
        inputs=[
            wp.array([0.5 * np.eye(3)], dtype=wp.mat33d, device="cpu"),
            wp.array([[0.0, 0.0, 2.0 * angle / STEP]], dtype=wp.vec3d, device="cpu"),
            STEP,
        ],
        outputs=[rotation],
        device="cpu",
    )
    expected = np.array([0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)])
    np.testing.assert_allclose(rotation.numpy()[0], expected, rtol=0.0, atol=64 * 2.0**-50)
