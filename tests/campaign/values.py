"""Wrong values by what stands in their place: each is wrong for sure, so no call may take one quietly."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

Draw = Callable[[np.random.Generator], Any]


class Stranger:
    """An object that is nothing of ours."""

    def __repr__(self) -> str:
        return "Stranger()"


def one_of(*values: Any) -> Draw:
    """Return a generator of one of some values; those that can be called are made anew."""

    def draw(rng: np.random.Generator) -> Any:
        value = values[int(rng.integers(len(values)))]
        return value() if callable(value) else value

    return draw


def either(*draws: Draw) -> Draw:
    """Return a generator that takes one of others."""
    return lambda rng: draws[int(rng.integers(len(draws)))](rng)


NAN, INF = float("nan"), float("inf")
NO_NUMBER = one_of("x", "", None, Stranger, [], {}, [1.0, 2.0], 1j, b"1", set())
NO_OBJECT = one_of(None, "x", 3, 1.5, Stranger, [], {}, lambda: np.zeros(3), lambda: wp.zeros(2, dtype=float))
NO_VALUES = one_of("x", Stranger, {}, b"x")
COUNT = either(
    one_of(-1, 0, 1.5, NAN, -(2**40), [1], lambda: np.float64(2.0), lambda: np.array([1, 2])), NO_NUMBER
)
STEP_COUNT = either(one_of(-1, 1.5, NAN, -(2**70), lambda: np.array([1, 2])), NO_NUMBER)
DT = either(one_of(0.0, -1e-3, NAN, INF, -INF, 0), NO_NUMBER)
NOT_NEGATIVE = one_of(-1.0, NAN, INF, 1e300, -1e-3, -1e300)
FINITE = one_of(NAN, INF, -INF, 1e300)
WORLDS = one_of(
    [-1], [99], [2**40], [1.5], ["a"], "x", {0}, Stranger, 1.5, [True] * 7, [[True, False]], [NAN], -1, 10**6,
    lambda: np.zeros(5, dtype=bool), lambda: wp.zeros(2, dtype=float), lambda: wp.zeros((2, 2), dtype=int),
    lambda: wp.ones(9, dtype=wp.bool),
)  # fmt: skip
INDEX = one_of(*(lambda number=number: wp.array([number], dtype=int) for number in (-1, 10**6, 2**31 - 1)))
INDICES = either(INDEX, one_of(lambda: wp.array([0, 3, -(2**31)], dtype=int)))
DEVICE_WORLDS = either(
    INDICES,
    one_of([0], 0, "x", Stranger, lambda: np.array([0]), lambda: wp.zeros(2, dtype=float),
           lambda: wp.zeros((1, 2), dtype=int), lambda: wp.ones(4, dtype=wp.bool)),
)  # fmt: skip
FLAGS = one_of(-1, 1 << 20, 2**40, "x", None, 1.5, Stranger, [1])
NAME = one_of("nothing*", "", "[", 3, None, Stranger, "joint q", "joint_q\0", [], b"joint_q", "__class__")
POSE = one_of(
    ((0.0, 0.0, NAN), (0.0, 0.0, 0.0, 1.0)), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)), "pose", 3, (1.0, 2.0),
    ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 9.0)), ((1e39, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)), Stranger,
)  # fmt: skip
FILE = one_of("/nowhere/at/all.npz", "", "a\0b", 3.5, Stranger, "/", b"\xff\0", [])


def shaped(*right: tuple[int, ...]) -> Draw:
    """Return a generator of arrays and the like that have none of the right shapes, nor sizes."""

    def draw(rng: np.random.Generator) -> Any:
        if rng.random() < 0.3:
            return NO_VALUES(rng) if rng.random() < 0.5 else [[1.0], [2.0, 3.0]]
        while True:
            shape = tuple(int(size) for size in rng.integers(0, 9, int(rng.integers(1, 5))))
            if shape not in right and math.prod(shape) not in {math.prod(one) for one in right}:
                return np.zeros(shape, dtype=rng.choice([np.float32, np.float64, np.int32]))

    return draw


def damaged(text: str) -> Draw:
    """Return a generator of a text with parts cut, doubled, or replaced: wrong, or right all the same."""

    def draw(rng: np.random.Generator) -> str:
        result = text
        for _ in range(int(rng.integers(1, 5))):
            begin, end = sorted(int(place) for place in rng.integers(0, len(result) + 1, 2))
            begin = max(begin, end - 40)
            junk = str(
                rng.choice(["", "nan", "1e400", "-1", "<", ">", '"', "\0", "\u202e", "9" * 30, "inf inf inf"])
            )
            result = result[:begin] + junk + result[end if rng.random() < 0.7 else begin :]
        return result

    return draw


def damaged_file(path: Path) -> Draw:
    """Return a generator of copies of a file that are cut short or have other bytes."""

    def draw(rng: np.random.Generator) -> Path:
        data = bytearray(path.read_bytes())
        for _ in range(int(rng.integers(1, 9))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        if rng.random() < 0.4:
            del data[int(rng.integers(len(data))) :]
        copy = path.with_name("damaged" + path.suffix)
        copy.write_bytes(data)
        return copy

    return draw
