"""Assignment: shares by the largest remainder, and functions of the number of environments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluriverse.variants.assignment import assign_variants, share_out

NAMES = ("a", "b", "c")


def assigned(assignment, count, names=NAMES):
    return assign_variants("object", names, assignment, count)[0].tolist()


@pytest.mark.parametrize("weights", [(1.0, 2.0, 1.0), (0.25, 0.5, 0.25), (3.0, 6.0, 3.0)])
def test_largest_remainders_get_what_is_left_and_ties_go_to_the_first(weights):
    """Quotas of 10 are 2.5, 5 and 2.5: one of the two halves is rounded up, that of the first."""
    assert share_out(weights, 10).tolist() == [3, 5, 2]


def test_without_weights_all_get_the_same():
    assert assigned(None, 8, ("a", "b")) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert assigned({"a": 1, "b": 1}, 8, ("a", "b")) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_who_is_not_named_has_weight_one():
    assert assigned({"b": 2.0}, 12, ("a", "b")) == [0] * 4 + [1] * 8


def test_a_weight_of_zero_gets_nothing():
    assert assigned({"b": 0.0}, 5) == [0, 0, 0, 2, 2]


@given(st.lists(st.floats(0.001, 100.0), min_size=1, max_size=8), st.integers(0, 500))
def test_everyone_is_within_one_of_the_quota(weights, count):
    """The method satisfies the quota rule, and hands out everything."""
    counts = share_out(weights, count)
    quotas = np.array(weights) / np.sum(weights) * count
    assert counts.sum() == count
    assert (np.abs(counts - quotas) < 1.0 + 1e-6).all()


def test_a_function_decides_for_itself():
    values, shares = assign_variants("object", NAMES, lambda n: [w % 3 for w in range(n)], 7)
    assert values.tolist() == [0, 1, 2, 0, 1, 2, 0]
    np.testing.assert_allclose(shares, [3 / 7, 2 / 7, 2 / 7])


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (lambda n: [0] * (n - 1), r"entity 'object': assignment\(4\) returned 3 indices"),
        (
            lambda n: [0, 1, 2, 3],
            r"entity 'object'.*environment 3 the variant 3, but there are variants 0 to 2",
        ),
        (lambda n: [0, 1, -1, 0], r"entity 'object'.*environment 2 the variant -1"),
        (lambda n: [0.0, 1.0, 1.0, 0.0], "entity 'object'.*float64 numbers"),
        ({"d": 1.0}, "entity 'object'.*weight for 'd', but the variants are a, b, c"),
        ({"a": -1.0}, "entity 'object'.*weight of variant 'a' is -1.0"),
        ({"a": float("nan")}, "entity 'object'.*weight of variant 'a' is nan"),
        ({"a": 0, "b": 0, "c": 0}, "entity 'object'.*all weights are zero"),
    ],
)
def test_a_wrong_assignment_is_named(assignment, message):
    with pytest.raises(ValueError, match=message):
        assigned(assignment, 4)


def test_another_form_is_no_assignment():
    with pytest.raises(TypeError, match="entity 'object': assignment is a list"):
        assigned([0, 1], 2)
