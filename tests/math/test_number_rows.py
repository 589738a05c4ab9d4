"""Rows of numbers against NumPy, to the bit."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.number_rows import are_below, integers_clear, number_functions

numbers = number_functions(wp.float64)
COUNT = 11


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
