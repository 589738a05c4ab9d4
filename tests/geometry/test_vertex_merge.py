"""Vertices at equal positions become one."""

import numpy as np

from pluriverse.geometry.vertex_merge import merge_vertices


def test_equal_rows_become_one_in_the_order_of_their_first_occurrence():
    """Every vertex finds its own position again, and no position is listed twice."""
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(500, 3)).astype(np.float32)
    vertices = corners[rng.integers(0, 500, size=3000)]
    distinct, merged = merge_vertices(vertices)
    np.testing.assert_array_equal(distinct[merged], vertices)
    assert len(np.unique(distinct, axis=0)) == len(distinct)
    first = [int(np.flatnonzero(merged == row)[0]) for row in range(len(distinct))]
    assert first == sorted(first)


def test_zero_and_minus_zero_are_one_position():
    """The sign of a zero makes no other point."""
    distinct, merged = merge_vertices(np.array([[0.0, 1.0, -0.0], [-0.0, 1.0, 0.0]], dtype=np.float32))
    assert len(distinct) == 1
    assert merged.tolist() == [0, 0]


def test_positions_closer_than_single_precision_stay_apart():
    """Two doubles that round to one float32 have one hash and are two positions all the same."""
    vertices = np.array([[1.0, 0.0, 0.0], [1.0 + 1e-12, 0.0, 0.0], [1.0, 0.0, 0.0]])
    distinct, merged = merge_vertices(vertices)
    assert len(distinct) == 2
    np.testing.assert_array_equal(distinct[merged], vertices)
