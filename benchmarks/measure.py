"""Measuring: how many world-steps per second an engine makes, as median of repeats."""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

# Steps before the clock runs: the start is at rest by another engine's contact model, so each engine settles
# anew.
SETTLING_STEP_COUNT = 60
SETTLING_WALL_TIME = 60.0  # s, for worlds so slow that they would take minutes


def positive_count(text: str) -> int:
    """Return a number of things as `argparse` reads it from the command line.

    Raises:
        argparse.ArgumentTypeError: It is not a positive integer.
    """
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def parse_arguments(engine: str) -> argparse.Namespace:
    """Read the command line of an engine."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.engines.{engine}")
    parser.add_argument("model", type=Path, help="MJCF file written by benchmarks.scenes")
    parser.add_argument("--worlds", type=positive_count, default=1)
    parser.add_argument("--threads", type=positive_count, default=1)
    parser.add_argument("--call", choices=["many", "single"], default="many", help="steps in one call")
    parser.add_argument("--repeats", type=positive_count, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="least duration of a repeat")
    return parser.parse_args()


def measure(
    arguments: argparse.Namespace,
    step: Callable[[int], None],
    largest_speed: Callable[[], float],
    version: str,
) -> None:
    """Measure an engine and print the result.

    Args:
        arguments: What `parse_arguments` returned.
        step: Makes so many steps of all worlds.
        largest_speed: Returns the largest joint velocity now, which tells whether a scene still stands.
        version: Version of the engine.
    """
    step(2)
    begin = time.perf_counter()
    settled = 0
    while settled < SETTLING_STEP_COUNT and time.perf_counter() - begin < SETTLING_WALL_TIME:
        step(2)
        settled += 2
    duration = (time.perf_counter() - begin) / settled
    count = max(2, 2 * round(0.5 * arguments.seconds / duration))
    rates = []
    for _ in range(arguments.repeats):
        begin = time.perf_counter()
        if arguments.call == "many":
            step(count)
        else:
            for _ in range(count):
                step(1)
        rates.append(arguments.worlds * count / (time.perf_counter() - begin))
    result = {
        "world_steps_per_second": statistics.median(rates),
        "lowest": min(rates),
        "highest": max(rates),
        "step_count": count,
        "largest_speed": float(largest_speed()),
        "version": version,
    }
    print(json.dumps(result))
