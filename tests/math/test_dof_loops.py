"""Native loops over degrees of freedom against NumPy."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.dof_loops import dof_loops

FIRST, COUNT = 3, 21


@pytest.mark.parametrize("real", [wp.float64, wp.float32])
def test_kicks_and_sums_are_those_of_numpy(real):
    """Kicks are split and joined, sums and differences are formed, and other entries stay as they are."""
    loops = dof_loops(real)

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
        flags[0] = loops.split_kick(a, b, False, real(0.5), velocity, kick, FIRST, COUNT)
        flags[1] = loops.split_kick(a, b, True, real(0.5), velocity, kick, FIRST, COUNT)
        loops.join_kick(b, real(0.25), velocity, kick, FIRST, COUNT)
        flags[2] = loops.difference(a, b, change, FIRST, COUNT)
        flags[3] = loops.difference(a, a, total, FIRST, COUNT)
        loops.add_numbers(total, a, FIRST, COUNT)
        sums[0] = loops.scalar_product(a, b, FIRST, COUNT)
        sums[1] = loops.weighted_square(a, weight, 2, index, FIRST, FIRST, COUNT)

    rng = np.random.default_rng(1)
    size = FIRST + COUNT + 2
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
    part = slice(FIRST, FIRST + COUNT)
    kick = 0.25 * 0.5 * b
    expected = (b + 0.5 * (a + b) - kick, kick, a - b, a)
    rounding = np.finfo(kind).eps
    for output, wanted in zip(outputs, expected, strict=True):
        values = output.numpy()
        np.testing.assert_allclose(values[part], wanted[part], rtol=0.0, atol=32 * rounding)
        np.testing.assert_array_equal(np.delete(values, np.arange(size)[part]), 7.0)
    wanted = [a[part] @ b[part], weight[2 + index[part]] @ a[part] ** 2]
    np.testing.assert_allclose(sums.numpy(), wanted, rtol=0.0, atol=8 * COUNT * rounding)
