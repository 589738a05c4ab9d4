"""Records in lanes: rows become columns and rows again."""

import functools

import numpy as np
import pytest
import warp as wp

from pluriverse.math.lane_records import lane_records

COUNT = 40
WIDTH = 7

_TURN = """
    const float* rows[LANES];
    const double* doubles[LANES];
    float* to[LANES];
    int is_odd[LANES];
    for (int l = 0; l < LANES; ++l) {
        const int row = begin + l < count ? begin + l : begin;
        rows[l] = given.data + WIDTH * row;
        doubles[l] = wide.data + WIDTH * row;
        to[l] = back.data + WIDTH * row;
        is_odd[l] = 3 * (row & 1);
    }
    float numbers[WIDTH][LANES], rounded[WIDTH][LANES];
    records::load4(rows, numbers);
    records::load3(rows, numbers + 4, 4);
    records::load3(doubles, rounded);
    records::load4(doubles, rounded + 3, 3);
    for (int l = 0; l < LANES && begin + l < count; ++l) {
        for (int c = 0; c < WIDTH; ++c) {
            columns.data[c * count + begin + l] = numbers[c][l];
            roundings.data[c * count + begin + l] = rounded[c][l];
        }
    }
    records::store4(numbers, to);
    records::store2(numbers + 4, to, 4);
    odd.data[begin / LANES] = records::bits(is_odd);
    return LANES;
""".replace("WIDTH", str(WIDTH))


@functools.cache
def turning_kernel(lanes):
    @wp.func_native(lane_records(lanes) + _TURN)
    def turn_rows(
        given: wp.array[float],
        wide: wp.array[wp.float64],
        begin: int,
        count: int,
        columns: wp.array[float],
        roundings: wp.array[float],
        back: wp.array[float],
        odd: wp.array[int],
    ) -> int: ...

    @wp.kernel(enable_backward=False, module=f"tests.math.lane_records_{lanes}")
    def turn_all(
        rows: wp.array[float],
        wide: wp.array[wp.float64],
        count: int,
        # out
        columns: wp.array[float],
        roundings: wp.array[float],
        back: wp.array[float],
        odd: wp.array[int],
    ):
        begin = int(0)
        while begin < count:
            begin += turn_rows(rows, wide, begin, count, columns, roundings, back, odd)

    return turn_all


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("count", [1, 16, COUNT])
def test_rows_become_columns_and_rows_again(count, lanes):
    """Columns hold the bits of the rows, doubles are rounded once, and what is stored is what was loaded."""
    rng = np.random.default_rng(count)
    rows = rng.normal(size=(count, WIDTH)).astype(np.float32)
    # Bits of integers pass through, too.
    rows[0, :3] = np.array([1, -1, 7], dtype=np.int32).view(np.float32)
    wide = rng.normal(size=(count, WIDTH))
    columns, roundings = (wp.full(WIDTH * count, np.nan, dtype=float, device="cpu") for _ in range(2))
    back = wp.full(WIDTH * count, np.nan, dtype=float, device="cpu")
    odd = wp.zeros(-(-count // lanes), dtype=int, device="cpu")
    wp.launch(
        turning_kernel(lanes),
        dim=1,
        inputs=[
            wp.array(rows.reshape(-1), dtype=float, device="cpu"),
            wp.array(wide.reshape(-1), dtype=wp.float64, device="cpu"),
            count,
        ],
        outputs=[columns, roundings, back, odd],
        device="cpu",
    )
    found = columns.numpy().reshape(WIDTH, count)
    np.testing.assert_array_equal(found.view(np.int32), rows.T.view(np.int32))
    np.testing.assert_array_equal(roundings.numpy().reshape(WIDTH, count), wide.T.astype(np.float32))
    stored = back.numpy().reshape(count, WIDTH)
    np.testing.assert_array_equal(stored[:, :6].view(np.int32), rows[:, :6].view(np.int32))
    assert np.isnan(stored[:, 6]).all()
    begin = lanes * np.arange(len(odd))[:, None]
    taken = begin + np.arange(lanes)[None]
    taken = np.where(taken < count, taken, begin)
    np.testing.assert_array_equal(odd.numpy(), ((taken % 2) << np.arange(lanes)).sum(axis=1))
