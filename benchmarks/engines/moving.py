"""Moving robots in a process of its own: what an engine's program does for `benchmarks.motion`.

The program gets an MJCF file, beside which is a file of starts and targets, and the number of worlds. It
reads requests from its standard input and answers each on its standard output, both as lines of JSON, so that
it can take turns with others.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.measure import positive_count
from benchmarks.motion_scenes import MovingScene


class Moving(Protocol):
    """Worlds of a scene in an engine."""

    version: str
    """Version of the engine."""

    def restart(self) -> None:
        """Put all worlds back to their starts."""

    def advance(self, targets: np.ndarray) -> None:
        """Make a control step with the targets of all worlds, shape [world, actuator]."""

    def clear(self) -> None:
        """Let the figures begin anew."""

    def observe(self) -> None:
        """Take figures of the last step, off the clock."""

    def quality(self) -> dict[str, str]:
        """Return how it goes, as cells of the table."""


def serve(make: Callable[[MovingScene, int], Moving]) -> None:
    """Build the worlds and answer requests until there are no more.

    Args:
        make: Returns so many worlds of a scene.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="MJCF file written by benchmarks.motion")
    parser.add_argument("--worlds", type=positive_count, required=True)
    arguments = parser.parse_args()
    # Engines write to the standard output; the answers have it for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Line by line, so that the last line of a program that ends is the reason, not what it wrote before.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    scene = MovingScene.load(arguments.model)
    moving = make(scene, arguments.worlds)
    control_step = 0

    def answer(reply: dict[str, object]) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    answer({"version": moving.version})
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, object] = {}
        match request["do"]:
            case "restart":
                moving.restart()
            case "clear":
                moving.clear()
            case "advance":
                begin, begin_work = time.perf_counter(), time.process_time()
                for _ in range(request["count"]):
                    moving.advance(scene.targets[control_step % len(scene.targets)])
                    control_step += 1
                reply["wall"] = time.perf_counter() - begin
                reply["work"] = time.process_time() - begin_work
                moving.observe()
            case "quality":
                reply["cells"] = moving.quality()
            case other:
                raise ValueError(f"request {other!r} is none of restart, clear, advance, quality")
        answer(reply)
