"""Rows of numbers against NumPy, to the bit."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.number_rows import are_below, integers_clear, number_functions

numbers = number_functions(wp.float64)
COUNT = 11
FIRST, DOF_COUNT = 3, 21


@wp.kernel(enable_backward=False, module="unique")
def combine(
    a: wp.array[wp.float64],
    b: wp.array[wp.float64],
    c: wp.array[wp.float64],
    total: wp.array[wp.float64],
    linear: wp.array[wp.float64],
    marks: wp.array[int],
):
    numbers.numbers_add(a, 1, 8, wp.float64(0.3), total)
    numbers.numbers_linear(a, b, wp.float64(0.7), c, 1, 8, linear)
    integers_clear(marks, 1, 8)


@wp.kernel(enable_backward=False, module="unique")
def judge(values: wp.array[float], limit: float, below: wp.array[bool]):
    below[0] = are_below(values, 1, values.shape[0] - 2, limit)


def test_ranges_are_combined_entry_by_entry_and_the_rest_is_left_alone():
    """Every product is rounded before it is added, as in NumPy."""
    rng = np.random.default_rng(3)
    a, b, c, start = rng.normal(size=(4, COUNT))
    arrays = [wp.array(x, dtype=wp.float64, device="cpu") for x in (a, b, c, start, start)]
    marks = wp.ones(COUNT, dtype=int, device="cpu")
    wp.launch(combine, dim=1, inputs=[*arrays, marks], device="cpu")
    inside = slice(1, 9)
    for found, values in zip(arrays[3:], (start + 0.3 * a, a - (b + 0.7) * c), strict=True):
        expected = start.copy()
        expected[inside] = values[inside]
        np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(marks.numpy(), [1, *[0] * 8, 1, 1])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 5.0, -5.0])
@pytest.mark.parametrize("place", [0, 1, 9])
def test_a_number_outside_of_the_range_of_magnitudes_is_found(value, place):
    """The first entry is outside of the range that is judged."""
    values = np.zeros(COUNT)
    values[place] = value
    for limit in (4.0, np.inf):
        below = wp.zeros(1, dtype=bool, device="cpu")
        array = wp.array(values, dtype=float, device="cpu")
        wp.launch(judge, dim=1, inputs=[array, limit, below], device="cpu")
        assert below.numpy()[0] == (place == 0 or abs(value) < limit)


@pytest.mark.parametrize("real", [wp.float64, wp.float32])
def test_kicks_and_sums_are_those_of_numpy(real):
    """Kicks are split and joined, sums and differences are formed, and other entries stay as they are."""
    loops = number_functions(real)

    @wp.kernel(enable_backward=False, module="unique")
    def compute(
        a: wp.array[real],
        b: wp.array[real],
        weight: wp.array[float],
        index: wp.array[int],
        velocity: wp.array[real],
        kick: wp.array[real],
        change: wp.array[real],
        total: wp.array[real],
        sums: wp.array[real],
        flags: wp.array[int],
    ):
        _thread, _ = wp.tid()
        flags[0] = loops.split_kick(a, b, False, real(0.5), velocity, kick, FIRST, DOF_COUNT)
        flags[1] = loops.split_kick(a, b, True, real(0.5), velocity, kick, FIRST, DOF_COUNT)
        loops.join_kick(b, real(0.25), velocity, kick, FIRST, DOF_COUNT)
        flags[2] = loops.numbers_subtract(a, b, FIRST, DOF_COUNT, change)
        flags[3] = loops.numbers_subtract(a, a, FIRST, DOF_COUNT, total)
        loops.numbers_add(a, FIRST, DOF_COUNT, real(1.0), total)
        sums[0] = loops.numbers_dot(a, b, FIRST, DOF_COUNT)
        sums[1] = loops.weighted_square(a, weight, 2, index, FIRST, FIRST, DOF_COUNT)

    rng = np.random.default_rng(1)
    size = FIRST + DOF_COUNT + 2
    kind = np.float64 if real is wp.float64 else np.float32
    a, b = rng.normal(size=(2, size)).astype(kind)
    weight = rng.uniform(size=size + 2).astype(np.float32)
    index = rng.permutation(size).astype(np.int32)
    outputs = [wp.full(size, 7.0, dtype=real, device="cpu") for _ in range(4)]
    sums, flags = wp.zeros(2, dtype=real, device="cpu"), wp.full(4, 7, dtype=int, device="cpu")
    inputs = [wp.array(one, dtype=real, device="cpu") for one in (a, b)]
    inputs += [wp.array(weight, device="cpu"), wp.array(index, device="cpu")]
    wp.launch(compute, dim=(1, 1), inputs=[*inputs, *outputs, sums, flags], device="cpu")
    assert flags.numpy().tolist() == [0, 1, 1, 0]
    part = slice(FIRST, FIRST + DOF_COUNT)
    kick = 0.25 * 0.5 * b
    expected = (b + 0.5 * (a + b) - kick, kick, a - b, a)
    rounding = np.finfo(kind).eps
    for output, wanted in zip(outputs, expected, strict=True):
        values = output.numpy()
        np.testing.assert_allclose(values[part], wanted[part], rtol=0.0, atol=32 * rounding)
        np.testing.assert_array_equal(np.delete(values, np.arange(size)[part]), 7.0)
    wanted = [a[part] @ b[part], weight[2 + index[part]] @ a[part] ** 2]
    np.testing.assert_allclose(sums.numpy(), wanted, rtol=0.0, atol=8 * DOF_COUNT * rounding)


def test_errors_gradients_and_work_are_sums_of_the_range():
    """The gradient is a difference, and weighted squares of it and of its parts are added to given sums."""

    @wp.kernel(enable_backward=False, module="unique")
    def compute(
        a: wp.array[wp.float64],
        b: wp.array[wp.float64],
        c: wp.array[wp.float64],
        weight: wp.array[wp.float64],
        out: wp.array[wp.float64],
        sums: wp.array[wp.vec3d],
        work: wp.array[wp.float64],
        flags: wp.array[int],
    ):
        sums[0] = numbers.weighted_errors(a, b, weight, FIRST, DOF_COUNT)
        start = wp.vec3d(wp.float64(1.0), wp.float64(2.0), wp.float64(3.0))
        sums[1] = numbers.weighted_gradient(a, b, c, weight, start, FIRST, DOF_COUNT, out)
        sums[2] = numbers.direction_products(a, b, c, weight, start, FIRST, DOF_COUNT)
        work[0] = numbers.numbers_work(a, b, c, FIRST, DOF_COUNT)
        flags[0] = numbers.numbers_any(a, FIRST, DOF_COUNT)
        flags[1] = numbers.numbers_any(work, 1, 1)

    rng = np.random.default_rng(2)
    size = FIRST + DOF_COUNT + 2
    a, b, c = rng.normal(size=(3, size))
    weight = rng.uniform(size=size)
    arrays = [wp.array(x, dtype=wp.float64, device="cpu") for x in (a, b, c, weight, np.full(size, 7.0))]
    sums = wp.zeros(3, dtype=wp.vec3d, device="cpu")
    work, flags = wp.zeros(2, dtype=wp.float64, device="cpu"), wp.full(2, 7, dtype=int, device="cpu")
    wp.launch(compute, dim=1, inputs=[*arrays, sums, work, flags], device="cpu")
    part = slice(FIRST, FIRST + DOF_COUNT)
    a, b, c, weight = a[part], b[part], c[part], weight[part]
    expected = np.full(size, 7.0)
    expected[part] = a - b
    np.testing.assert_array_equal(arrays[4].numpy(), expected)
    wanted = [[weight @ (a - b) ** 2, weight @ a**2, 0.0]]
    wanted += [[1.0 + weight @ (a - b) ** 2, 2.0 + weight @ (a + c) ** 2, 3.0 + weight @ b**2]]
    wanted += [[1.0 + a @ weight, 2.0 + b @ weight, 3.0 + c @ weight]]
    rounding = 2.0**-52
    np.testing.assert_allclose(sums.numpy(), wanted, rtol=8 * DOF_COUNT * rounding)
    np.testing.assert_allclose(work.numpy()[0], a @ (b - c), atol=8 * DOF_COUNT * rounding, rtol=0.0)
    assert flags.numpy().tolist() == [1, 0]
