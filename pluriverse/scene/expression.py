"""Arithmetic in scene files: numbers, `pi`, + - * /, parentheses and signs.

An expression is parsed into a syntax tree and only the node types named here are computed. Nothing is
ever evaluated as code.
"""

import ast
import math
import re
from collections.abc import Callable

# Far above what a person writes, far below what makes the parser or the recursion below slow.
EXPRESSION_LENGTH_MAX = 200
EXPRESSION_DEPTH_MAX = 50

_BINARY: dict[type, Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_NAMES = {"pi": math.pi}
_GRAMMAR = "an expression may hold numbers, pi, + - * /, parentheses and signs"
_NO_UNITS = "leave the unit out: all values are in metres, kilograms, seconds and radians"
_WITH_UNIT = re.compile(r"[-+\d.eE*/ ]*\d\s*[a-zA-Zµ°][a-zA-Z°²³/·]*\s*")


def evaluate_expression(text: str) -> float:
    """Return the value of an arithmetic expression such as `pi * 0.5`.

    Raises:
        ValueError: The text is no such expression, divides by zero, or overflows.
    """
    if len(text) > EXPRESSION_LENGTH_MAX:
        raise ValueError(
            f"an expression of {len(text)} characters is too long; {EXPRESSION_LENGTH_MAX} are allowed"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(_not_a_number(text)) from error
    try:
        return _value(tree.body, text, EXPRESSION_DEPTH_MAX)
    except ZeroDivisionError as error:
        raise ValueError(f"{text!r} divides by zero") from error
    except OverflowError as error:
        raise ValueError(f"{text!r} is too large for a floating-point number") from error


def _value(node: ast.expr, text: str, depth: int) -> float:
    if depth == 0:
        raise ValueError(f"{text!r} nests deeper than {EXPRESSION_DEPTH_MAX} levels")
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text, depth - 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text, depth - 1)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
            return _BINARY[type(operator)](_value(left, text, depth - 1), _value(right, text, depth - 1))
    raise ValueError(_not_a_number(text))


def _not_a_number(text: str) -> str:
    return f"{text!r} is not a number; {_NO_UNITS if _WITH_UNIT.fullmatch(text) else _GRAMMAR}"
