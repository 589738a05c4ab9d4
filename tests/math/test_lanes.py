"""Lanes: moving the numbers of eight worlds into vectors and back, and arithmetic on them."""

import functools

import numpy as np
import pytest
import warp as wp

from pluriverse.math.lanes import LANES, is_tile, lane_code

_ROUND_TRIP = """
    int from[8], to[8];
    for (int l = 0; l < 8; ++l) { from[l] = base.data[l]; to[l] = l * count; }
    T* x = PLURIVERSE_LANES(count);
    gather(source.data, from, count, x);
    for (int k = 0; k < count; ++k) x[k] = x[k] * x[k] + T(1);
    scatter(x, count, target.data, to);
"""


@functools.cache
def round_trip_kernel(real, source_type):
    @wp.func_native(lane_code(real, _ROUND_TRIP))
    def round_trip(
        source: wp.array(dtype=source_type),
        base: wp.array[int],
        count: int,
        target: wp.array(dtype=source_type),
    ): ...

    @wp.kernel(enable_backward=False, module="unique")
    def run(
        source: wp.array(dtype=source_type),
        base: wp.array[int],
        count: int,
        target: wp.array(dtype=source_type),
    ):
        _thread, _ = wp.tid()
        round_trip(source, base, count, target)

    return run


@pytest.mark.parametrize("count", [1, 3, 4, 5, 6, 7, 8, 19, 64])
@pytest.mark.parametrize("source_type", [wp.float32, wp.float64])
@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_numbers_come_into_lanes_and_back(real, source_type, count):
    """x^2 + 1 of rows that begin anywhere equals NumPy's to the bit, in whole and broken blocks of eight."""
    generator = np.random.default_rng(count)
    kinds = {wp.float32: np.float32, wp.float64: np.float64}
    base = generator.integers(0, 100, LANES).astype(np.int32)
    source = generator.normal(size=200).astype(kinds[source_type])
    target = wp.zeros(LANES * count, dtype=source_type, device="cpu")
    arrays = [wp.array(source, dtype=source_type, device="cpu"), wp.array(base, dtype=int, device="cpu")]
    kernel = round_trip_kernel(real, source_type)
    wp.launch(kernel, dim=(1, 1), inputs=[*arrays, count, target], device="cpu")
    rows = np.array([source[b : b + count] for b in base]).astype(kinds[real])
    expected = (rows * rows + kinds[real](1.0)).astype(kinds[source_type])
    np.testing.assert_array_equal(target.numpy().reshape(LANES, count), expected)


@wp.kernel(enable_backward=False, module="unique")
def _ask(worlds: wp.array[int], first: int, world_template: wp.array[int], answer: wp.array[int]):
    _thread, _ = wp.tid()
    answer[0] = int(is_tile(worlds, first, world_template))


@pytest.mark.parametrize(
    ("worlds", "first", "expected"),
    [
        (range(8), 0, True),
        ([7, 3, 1, 0, 2, 4, 5, 6], 0, True),  # in any order
        (range(7), 0, False),  # too few
        (range(12), 8, False),  # too few are left
        ([*range(7), 10], 0, False),  # one of another template
        ([0, 1, 2, -1, 4, 5, 6, 7], 0, False),  # an entry without a world
        ([-1, 1, 2, 3, 4, 5, 6, 7], 0, False),
    ],
)
def test_a_tile_is_eight_worlds_of_one_template(worlds, first, expected):
    template = wp.array([0] * 10 + [1] * 6, dtype=int, device="cpu")
    answer = wp.zeros(1, dtype=int, device="cpu")
    listed = wp.array(list(worlds), dtype=int, device="cpu")
    wp.launch(_ask, dim=(1, 1), inputs=[listed, first, template, answer], device="cpu")
    assert bool(answer.numpy()[0]) is expected
