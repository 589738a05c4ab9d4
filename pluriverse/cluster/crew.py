"""Crew: the parts of a fleet, started and called together."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from pluriverse.cluster.errors import MEMORY_REMEDY, ClusterError, is_out_of_memory
from pluriverse.cluster.part import Part
from pluriverse.cluster.worker import Call


def start_parts(ray: Any, parts: Sequence[Part]) -> None:
    """Start all workers; the first one compiles what the others then find.

    Raises:
        ClusterError: If a worker finds no place, runs other versions, or cannot build its worlds.
    """
    started = [(part, part.start()) for part in parts]
    for part, reference in started:
        part.check_start(reference)
    for part, reference in [(part, part.build()) for part in parts]:
        try:
            ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause if error.cause is not None else error
            remedy = f" {MEMORY_REMEDY}" if is_out_of_memory(cause) else ""
            raise ClusterError(
                f"{part.name} could not build its worlds: {type(cause).__name__}: {cause}{remedy}"
            ) from cause
        except ray.exceptions.RayError as error:
            raise ClusterError(
                f"{part.name} was lost while it built its worlds: {error} {MEMORY_REMEDY}"
            ) from error
    ask_parts(parts[:1], [[("prepare", ())]])
    ask_parts(parts[1:], [[("prepare", ())]] * len(parts[1:]))


def ask_parts(parts: Sequence[Part], calls: Sequence[Sequence[Call]]) -> list[list[Any]]:
    """Run the calls of each part, and return the results when all have finished.

    Raises:
        ClusterError: The first error there is, when all have ended.
    """
    begun = []
    for part, calls_of_part in zip(parts, calls, strict=True):
        if calls_of_part:
            part.begin(calls_of_part)
            begun.append(part)
    results: dict[int, list[Any]] = {}
    failure: Exception | None = None
    for part in begun:  # all of them, so that none stays begun where one fails
        try:
            results[part.index] = part.finish()
        except ClusterError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return [results.get(part.index, []) for part in parts]


def parts_as_they_end(ray: Any, parts: Sequence[Part]) -> Iterator[tuple[Part, list[Any]]]:
    """Yield each part that was begun with its results as soon as there are any; it may be begun again.

    Raises:
        ClusterError: If a worker is lost twice over the same work, or raises.
    """
    try:
        while busy := [part for part in parts if part.is_busy]:
            ray.wait([part.reference for part in busy], num_returns=1)
            ready, _ = ray.wait([part.reference for part in busy], num_returns=len(busy), timeout=0.0)
            for part in [part for part in busy if part.reference in ready]:
                yield part, part.finish()
    finally:
        # If the caller stops iterating, or an error occurs, no part may still be running.
        for part in parts:
            if part.is_busy:
                with contextlib.suppress(ClusterError):
                    part.finish()
