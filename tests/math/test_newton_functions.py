"""Functions of `pluriverse.math` that scripts call in their kernels, against SciPy and closed forms."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse import math as pvm

TURNS = Rotation.random(64, rng=np.random.default_rng(3)).as_quat().astype(np.float32)
ROUNDING = 2.0e-6  # a few roundings of single precision of numbers around 3


@wp.kernel
def _rotate(
    q: wp.array[wp.quat],
    twist: wp.array[wp.spatial_vector],
    decomposed: wp.array[wp.vec3],
    velocity: wp.array[wp.vec3],
    moved: wp.array[wp.spatial_vector],
    wrench: wp.array[wp.spatial_vector],
    point: wp.array[wp.vec3],
    between: wp.array[wp.vec3],
):
    i = wp.tid()
    decomposed[i] = pvm.quat_decompose(q[i])
    velocity[i] = pvm.quat_velocity(q[i], wp.quat(0.0, 0.0, 0.0, -1.0), 0.5)
    pose = wp.transform(wp.vec3(1.0, 2.0, 3.0), q[i])
    moved[i] = pvm.transform_twist(pose, twist[i])
    wrench[i] = pvm.transform_wrench(pose, twist[i])
    point[i] = pvm.velocity_at_point(twist[i], wp.vec3(1.0, 0.0, 0.0))
    start = wp.quat_rotate(q[i], wp.vec3(1.0, 0.0, 0.0))
    end = wp.quat_rotate(q[i], wp.vec3(-1.0, 0.0, 0.0))
    if i % 2 == 0:
        end = wp.vec3(0.0, 0.0, 1.0)
    between[i] = wp.quat_rotate(pvm.quat_between_vectors_robust(start, end), start) - end


@wp.kernel
def _compare(
    a: wp.array[wp.vec3],
    b: wp.array[wp.vec3],
    numbers: wp.array2d[float],
    vectors: wp.array2d[wp.vec3],
):
    i = wp.tid()
    x, y = a[i], b[i]
    numbers[i, 0] = pvm.boltzmann(x[0], y[0], 200.0)
    numbers[i, 1] = pvm.smooth_max(x[0], y[0], 0.1)
    numbers[i, 2] = pvm.smooth_min(x[0], y[0], 0.1)
    numbers[i, 3] = pvm.leaky_max(x[0], y[0])
    numbers[i, 4] = pvm.leaky_min(x[0], y[0])
    numbers[i, 5] = pvm.safe_div(x[0], 0.0, 0.5)
    numbers[i, 6] = pvm.safe_div(x[0], y[0])
    numbers[i, 7] = float(pvm.vec_inside_limits(x, -pvm.vec_abs(x), pvm.vec_abs(x)))
    numbers[i, 8] = float(pvm.vec_inside_limits(x, x + wp.vec3(0.0, 0.0, 0.1), x + x))
    numbers[i, 9] = float(pvm.vec_allclose(x, x * 1.000001))
    numbers[i, 10] = float(pvm.vec_allclose(x, x + wp.vec3(0.0, 0.0, 0.1)))
    vectors[i, 0] = pvm.vec_max(x, y)
    vectors[i, 1] = pvm.vec_min(x, y)
    vectors[i, 2] = pvm.vec_leaky_max(x, y)
    vectors[i, 3] = pvm.vec_leaky_min(x, y)
    unit, norm = pvm.normalize_with_norm(x)
    numbers[i, 11] = norm
    vectors[i, 4] = unit
    first, second = pvm.orthonormal_basis(unit)
    vectors[i, 5] = first
    vectors[i, 6] = second
    nothing, zero = pvm.normalize_with_norm(wp.vec3(0.0, 0.0, 0.0))
    numbers[i, 12] = zero + wp.length(nothing)


def test_rotations_and_motions_agree_with_scipy():
    """Each function on 64 random rotations; opposite directions are rotated onto each other too."""
    twist = np.random.default_rng(4).uniform(-1.0, 1.0, (64, 6)).astype(np.float32)
    out = [wp.full(64, np.nan, dtype=wp.vec3, device="cpu") for _ in range(4)]
    wide = [wp.full(64, np.nan, dtype=wp.spatial_vector, device="cpu") for _ in range(2)]
    wp.launch(
        _rotate,
        dim=64,
        inputs=[
            wp.array(TURNS, dtype=wp.quat, device="cpu"),
            wp.array(twist, dtype=wp.spatial_vector, device="cpu"),
            out[0],
            out[1],
            *wide,
            out[2],
            out[3],
        ],
        device="cpu",
    )
    turn = Rotation.from_quat(TURNS)
    again = Rotation.from_euler("XYZ", out[0].numpy())
    assert (
        np.abs((turn.inv() * again).magnitude()).max() < 1.0e-4
    )  # the root of rounding next to the end of y
    np.testing.assert_allclose(out[1].numpy(), turn.as_rotvec() / 0.5, atol=1.0e-4)
    linear, angular = turn.apply(twist[:, :3]), turn.apply(twist[:, 3:])
    place = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        wide[0].numpy(), np.hstack([linear + np.cross(place, angular), angular]), atol=10 * ROUNDING
    )
    np.testing.assert_allclose(
        wide[1].numpy(), np.hstack([linear, angular + np.cross(place, linear)]), atol=10 * ROUNDING
    )
    at_point = twist[:, :3] + np.cross(twist[:, 3:], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(out[2].numpy(), at_point, atol=ROUNDING)
    np.testing.assert_allclose(out[3].numpy(), 0.0, atol=10 * ROUNDING)


def test_power_is_the_same_in_every_frame():
    """A twist and a wrench, both moved, have the power that they had."""
    twist = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]] * 64, dtype=np.float32)
    wide = [wp.zeros(64, dtype=wp.spatial_vector, device="cpu") for _ in range(2)]
    rest = [wp.zeros(64, dtype=wp.vec3, device="cpu") for _ in range(4)]
    wp.launch(
        _rotate,
        dim=64,
        inputs=[
            wp.array(TURNS, dtype=wp.quat, device="cpu"),
            wp.array(twist, dtype=wp.spatial_vector, device="cpu"),
            *rest[:2],
            *wide,
            *rest[2:],
        ],
        device="cpu",
    )
    moved, wrench = (array.numpy() for array in wide)
    np.testing.assert_allclose((moved * wrench).sum(axis=1), (twist * twist).sum(axis=1), atol=2.0e-5)


def test_components_bounds_and_smooth_extrema():
    rng = np.random.default_rng(5)
    a, b = (rng.uniform(0.2, 2.0, (32, 3)).astype(np.float32) * [1.0, -1.0, 1.0] for _ in range(2))
    numbers = wp.full((32, 13), np.nan, dtype=float, device="cpu")
    vectors = wp.full((32, 7), wp.vec3(np.nan), dtype=wp.vec3, device="cpu")
    arrays = [wp.array(value.astype(np.float32), dtype=wp.vec3, device="cpu") for value in (a, b)]
    wp.launch(_compare, dim=32, inputs=[*arrays, numbers, vectors], device="cpu")
    found, vector = numbers.numpy(), vectors.numpy()
    x, y = a[:, 0], b[:, 0]
    larger, smaller = np.maximum(x, y), np.minimum(x, y)
    assert (np.abs(found[:, 0] - larger) <= np.abs(x - y) * np.exp(-200.0 * np.abs(x - y)) + ROUNDING).all()
    root = np.sqrt((x - y) ** 2 + 0.1)
    np.testing.assert_allclose(
        found[:, 1:3], 0.5 * np.stack([x + y + root, x + y - root], axis=1), atol=ROUNDING
    )
    np.testing.assert_allclose(found[:, 3:5], np.stack([larger, smaller], axis=1), atol=1.6e-3)
    np.testing.assert_allclose(found[:, 5:7], np.stack([x / 0.5, x / y], axis=1), rtol=1.0e-6)
    np.testing.assert_array_equal(found[:, 7:11], [[1.0, 0.0, 1.0, 0.0]] * 32)
    np.testing.assert_allclose(found[:, 11], np.linalg.norm(a, axis=1), rtol=1.0e-6)
    np.testing.assert_array_equal(found[:, 12], 0.0)
    np.testing.assert_allclose(vector[:, 0], np.maximum(a, b), rtol=1.0e-6)
    np.testing.assert_allclose(vector[:, 1], np.minimum(a, b), rtol=1.0e-6)
    np.testing.assert_allclose(vector[:, 2:4], vector[:, 0:2], atol=1.6e-3)
    frame = np.stack([vector[:, 5], vector[:, 6], vector[:, 4]], axis=2)
    np.testing.assert_allclose(np.linalg.det(frame), 1.0, atol=ROUNDING)
    np.testing.assert_allclose(
        frame.transpose(0, 2, 1) @ frame, np.tile(np.eye(3), (32, 1, 1)), atol=ROUNDING
    )


@pytest.mark.parametrize("axes", [("x", "y"), ("y", "x"), ("z", "x"), (2, 1), ("x", "y", "z"), ("y", "y")])
def test_a_rotation_between_axes_takes_the_first_to_the_last(axes):
    turn = Rotation.from_quat(list(pvm.quat_between_axes(*axes)))
    first, last = (pv.Axis.from_any(axis).to_vector() for axis in (axes[0], axes[-1]))
    np.testing.assert_allclose(turn.apply(first), last, atol=ROUNDING)
    with pytest.raises(ValueError, match="is no axis"):
        pvm.quat_between_axes("x", "up")
