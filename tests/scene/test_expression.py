"""Arithmetic in scene files, against Python's."""

import ast
import math
import operator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pluriverse.scene.expression import EXPRESSION_LENGTH_MAX, evaluate_expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("1e6", 1.0e6),
        (" pi * 0.5 ", 0.5 * math.pi),
        ("-pi/2", -0.5 * math.pi),
        ("+(1 - 2) * -3", 3.0),
        ("2 * (3 + 4) / 7", 2.0),
        ("1 - 2 - 3", -4.0),
        ("--1", 1.0),
    ],
)
def test_arithmetic_has_the_value_of_its_text(text, value):
    assert evaluate_expression(text) == pytest.approx(value, rel=1e-15)


numbers = st.floats(min_value=0.001, max_value=1000.0).map(repr)
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@st.composite
def expressions(draw, depth=3):
    """Return an expression with parentheses around every operation, and its value."""
    if depth == 0 or draw(st.booleans()):
        text = draw(numbers)
        return text, float(text)
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    symbol = draw(st.sampled_from(list(OPERATORS)))
    if symbol == "/" and right[1] == 0.0:
        return left
    return f"({left[0]}{symbol}{right[0]})", OPERATORS[symbol](left[1], right[1])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no error
@given(expressions())
def test_any_expression_has_the_value_of_python_arithmetic(expression):
    text, value = expression
    if len(text) <= EXPRESSION_LENGTH_MAX and math.isfinite(value):
        assert evaluate_expression(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a number"),
        ("two", "not a number"),
        ("1 +", "not a number"),
        ("2 ** 3", "not a number"),
        ("7 // 2", "not a number"),
        ("abs(-1)", "not a number"),
        ("pi.real", "not a number"),
        ("[1][0]", "not a number"),
        ("1 if 1 else 2", "not a number"),
        ("True", "not a number"),
        ("1j", "not a number"),
        ("'1'", "not a number"),
        ("__import__('os').getcwd()", "not a number"),
        ("1 / (1 - 1)", "divides by zero"),
        ("9" * 190 + "*" + "9", None),
        ("1" * 201, "too long"),
        ("(" * 120 + "1" + ")" * 70, "not a number"),
        ("-" * 100 + "1", "nests deeper"),
    ],
)
def test_what_is_no_arithmetic_is_refused(text, message):
    """Nothing but arithmetic is computed, and nothing takes long or ends in another error."""
    if message is None:
        assert evaluate_expression(text) == pytest.approx(9e190)
        return
    with pytest.raises(ValueError, match=message):
        evaluate_expression(text)


def test_the_grammar_names_every_node_it_computes():
    """The refusal of code rests on a list of allowed nodes, so a call in any place is refused."""
    for place in ("{}", "-{}", "1+{}", "({})*2", "pi/{}"):
        text = place.format("id(1)")
        ast.parse(text, mode="eval")  # it is valid Python, so the refusal is the list's
        with pytest.raises(ValueError, match="not a number"):
            evaluate_expression(text)
