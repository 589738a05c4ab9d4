"""Farm: independent pieces of work over workers, each done once; lost pieces are repeated.

A piece depends on nothing but its arguments, so every worker gets the same rows from it.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pluriverse.cluster.errors import ClusterError, WorkerTaskError, is_out_of_memory
from pluriverse.cluster.part import ATTEMPT_COUNT_MAX
from pluriverse.cluster.runtime import START_TIMEOUT, check_versions, losses, versions
from pluriverse.cluster.table import ResultTable


class FarmWorker:
    """Does pieces of work in a process of its own."""

    def __init__(self, job: bytes) -> None:
        self._payload = job
        self._job: Any = None

    def versions(self) -> dict[str, str]:
        """Return the versions that decide the bits of a step here."""
        return versions()

    def do(self, piece: Any) -> Mapping[str, Any]:
        """Return the columns of a piece."""
        import pickle

        if self._job is None:
            import warp as wp

            wp.config.log_level = wp.LOG_ERROR
            self._job = pickle.loads(self._payload)
        return self._job.run(piece)


def run_pieces(
    ray: Any,
    job: bytes,
    pieces: Sequence[Any],
    results: ResultTable,
    *,
    workers: int,
    cpus: float,
    gpus: float,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Process all pieces without rows, and store their rows as they arrive.

    Args:
        ray: The module, connected.
        job: Pickled object whose method `run` takes a piece and returns its columns.
        pieces: The pieces.
        results: Table of the rows.
        workers: Number of workers.
        cpus: Cores of each.
        gpus: GPUs of each.
        progress: Called with the number of pieces done and of all.

    Raises:
        ClusterError: If workers find no place, or pieces were lost twice; the others are done.
        WorkerTaskError: If a piece failed for a reason of its own; the others are done.
    """
    waiting = deque((index, 1) for index in range(len(pieces)) if index not in results.done)
    problems: list[Exception] = []
    running: dict[Any, tuple[Any, int, int]] = {}
    remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_restarts=0)(FarmWorker)
    actors: list[Any] = []

    def hire() -> Any:
        actor = remote.remote(job)
        actors.append(actor)
        try:
            check_versions(ray.get(actor.versions.remote(), timeout=START_TIMEOUT), "of a worker")
        except ray.exceptions.GetTimeoutError as error:
            raise ClusterError(
                f"a worker found no place within {START_TIMEOUT:g} s: it needs {cpus:g} cores and {gpus:g} "
                f"GPUs, and the cluster has {ray.available_resources().get('CPU', 0.0):g} cores free. Use "
                "fewer workers, or more nodes."
            ) from error
        except ray.exceptions.RayActorError as error:
            raise ClusterError(
                f"a worker could not start: {error} Pluriverse must be installed, in the same version, where "
                "workers run."
            ) from error
        return actor

    def hand_out(actor: Any) -> None:
        if waiting:
            index, attempt = waiting.popleft()
            running[actor.do.remote(pieces[index])] = (actor, index, attempt)

    def lose(index: int, attempt: int, error: BaseException) -> Any:
        if attempt < ATTEMPT_COUNT_MAX:
            waiting.appendleft((index, attempt + 1))
        else:
            lost = ClusterError(
                f"piece {index} ({pieces[index]}) was lost {attempt} times: its worker ended "
                f"({type(error).__name__}). Give it more memory, with fewer worlds at a time."
            )
            lost.__cause__ = error
            problems.append(lost)
        return hire() if waiting else None

    def tell() -> None:
        if progress is not None:
            progress(len(results.done), len(pieces))

    tell()
    try:
        for _ in range(min(workers, len(waiting))):
            hand_out(hire())
        while running:
            ready, _ = ray.wait(list(running), num_returns=1)
            actor, index, attempt = running.pop(ready[0])
            try:
                results.add(index, ray.get(ready[0]))
                tell()
            except ray.exceptions.RayTaskError as error:
                cause = error.cause if error.cause is not None else error
                if is_out_of_memory(cause):
                    ray.kill(actor)  # another one begins with empty memory
                    actor = lose(index, attempt, cause)
                else:
                    problem = WorkerTaskError(
                        f"piece {index} ({pieces[index]}): {type(cause).__name__}: {cause}"
                    )
                    problem.__cause__ = cause
                    problems.append(problem)
            except losses(ray) as error:
                actor = lose(index, attempt, error)
            if actor is not None:
                hand_out(actor)
    finally:
        for actor in actors:
            ray.kill(actor)
    if problems:
        first = problems[0]
        more = f" {len(problems) - 1} other pieces failed as well." if len(problems) > 1 else ""
        raise type(first)(
            f"{first} The rows of {len(results.done)} pieces are kept.{more}"
        ) from first.__cause__
