"""A world is stopped if any entry of its poses or velocities is not a finite number."""

import numpy as np
import pytest
import warp as wp

from pluriverse.launch import launch_kernel, same_memory
from pluriverse.solvers.finite import are_finite_bodies, are_finite_read_bodies

BODY_COUNT = 5


@wp.kernel(enable_backward=False)
def check_ranges(
    body_q: wp.array[wp.transform],
    body_qd: wp.array[wp.spatial_vector],
    begin: wp.array[int],
    end: wp.array[int],
    finite: wp.array[int],
):
    thread, _ = wp.tid()
    finite[thread] = int(are_finite_bodies(body_q, body_qd, begin[thread], end[thread]))


def bodies(width, dtype, numbers, gap):
    """Return bodies with that many unused numbers behind each; NaN, so that reading them shows."""
    rows = np.full((BODY_COUNT, width + gap), np.nan, dtype=np.float32)
    rows[:, :width] = numbers
    memory = wp.array(rows, dtype=float, device="cpu")
    return same_memory(memory, dtype, (BODY_COUNT,), strides=(4 * (width + gap),))


@pytest.mark.parametrize("gap", [0, 3])
def test_every_entry_of_a_range_is_looked_at_and_no_other(gap):
    """Each entry of each body is NaN or infinite once, in both arrays, for all ranges of bodies."""
    rng = np.random.default_rng(1)
    begin, end = (rows.ravel() for rows in np.meshgrid(range(BODY_COUNT + 1), range(BODY_COUNT + 1)))
    ranges = [wp.array(row.astype(np.int32), device="cpu") for row in (begin, end)]
    finite = wp.empty(begin.size, dtype=int, device="cpu")
    for entry in range(13 * BODY_COUNT + 1):
        numbers = rng.normal(size=(BODY_COUNT, 13)).astype(np.float32)
        if entry < numbers.size:
            numbers.flat[entry] = (np.nan, np.inf, -np.inf)[entry % 3]
        arrays = [
            bodies(7, wp.transform, numbers[:, :7], gap),
            bodies(6, wp.spatial_vector, numbers[:, 7:], gap),
        ]
        launch_kernel(check_ranges, dim=begin.size, inputs=[*arrays, *ranges], outputs=[finite], device="cpu")
        expected = [np.isfinite(numbers[first:last]).all() for first, last in zip(begin, end, strict=True)]
        np.testing.assert_array_equal(finite.numpy(), expected, err_msg=f"entry {entry}")


def test_infinities_of_both_signs_do_not_cancel():
    """One in each array, at all distances from each other."""
    first, last, finite = (wp.array([value], dtype=int, device="cpu") for value in (0, BODY_COUNT, 1))
    for pose_entry in range(7 * BODY_COUNT):
        for speed_entry in range(0, 6 * BODY_COUNT, 7):
            poses, speeds = np.ones((BODY_COUNT, 7)), np.ones((BODY_COUNT, 6))
            poses.flat[pose_entry], speeds.flat[speed_entry] = np.inf, -np.inf
            arrays = [bodies(7, wp.transform, poses, 0), bodies(6, wp.spatial_vector, speeds, 0)]
            launch_kernel(check_ranges, dim=1, inputs=[*arrays, first, last], outputs=[finite], device="cpu")
            assert finite.numpy()[0] == 0


@wp.kernel(enable_backward=False)
def check_read(
    body_q: wp.array[wp.transform],
    body_qd: wp.array[wp.spatial_vector],
    body_node: wp.array[int],
    node_is_read: wp.array[int],
    finite: wp.array[int],
):
    thread, _ = wp.tid()
    finite[thread] = int(
        are_finite_read_bodies(body_q, body_qd, 1, BODY_COUNT - 1, body_node, 2, node_is_read, 3)
    )


@pytest.mark.parametrize("gap", [0, 3])
def test_only_bodies_that_are_read_are_looked_at(gap):
    """Each entry is NaN or infinite once: it counts in bodies that are read, of the world only."""
    rng = np.random.default_rng(2)
    body_node = np.array([9, 9, 2, 0, 1, 3], dtype=np.int32)  # of the last four: those of the world
    node_is_read = np.array([0, 0, 0, 1, 0, 1, 0], dtype=np.int32)
    is_read = [False, *(node_is_read[3 + body_node[2 + body]] for body in range(BODY_COUNT - 1))]
    arrays = [wp.array(values, dtype=int, device="cpu") for values in (body_node, node_is_read)]
    finite = wp.empty(1, dtype=int, device="cpu")
    for entry in range(13 * BODY_COUNT + 1):
        numbers = rng.normal(size=(BODY_COUNT, 13)).astype(np.float32)
        if entry < numbers.size:
            numbers.flat[entry] = (np.nan, np.inf, -np.inf)[entry % 3]
        rows = [
            bodies(7, wp.transform, numbers[:, :7], gap),
            bodies(6, wp.spatial_vector, numbers[:, 7:], gap),
        ]
        launch_kernel(check_read, dim=1, inputs=[*rows, *arrays], outputs=[finite], device="cpu")
        expected = entry >= numbers.size or not is_read[entry // 13]
        assert finite.numpy()[0] == expected, entry
