"""Part: the worlds of one worker as seen by the driver, with the data to replace a lost worker.

The driver keeps the last snapshot of the worlds and the calls since then. If a worker is lost, with its
process or its node, a new one is built, restored, and sent the same calls. The results have the same bits,
since a step depends on nothing else. A second loss over the same work is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pluriverse.cluster.errors import MEMORY_REMEDY, ClusterError, WorkerTaskError, is_out_of_memory
from pluriverse.cluster.runtime import START_TIMEOUT, check_versions, losses
from pluriverse.cluster.worker import Call, Worker

# Calls after which the driver asks for a snapshot: replaying them takes no longer than about so many steps of
# the caller, and one snapshot in so many calls costs below one percent of a step of robots.
SNAPSHOT_INTERVAL = 64
# Number of attempts at a call: one, and another if the worker was lost.
ATTEMPT_COUNT_MAX = 2
# Bytes of arguments kept for a replay before a snapshot replaces them.
LOG_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True)
class Placement:
    """Resources of a node for each worker."""

    cpus: float
    """Cores."""
    gpus: float
    """GPUs."""
    threads: int | None
    """CPU threads that step its worlds."""
    device: str | None
    """Device of its worlds."""


class Part:
    """The worlds of one worker.

    Args:
        index: Index of the worker.
        worlds: Its worlds, by their indices among all.
        description: The pickled description.
        placement: What its worker gets of a node.
        snapshot_interval: Calls between two snapshots.
        worker: What runs in the process.
    """

    def __init__(
        self,
        index: int,
        worlds: range,
        description: bytes,
        placement: Placement,
        snapshot_interval: int,
        worker: type[Any] = Worker,
    ) -> None:
        self.index = index
        """Index of the worker."""
        self.worlds = worlds
        """Its worlds, by their indices among all."""
        self.restart_count = 0
        """Number of times that its worker was lost and restarted."""
        self._description = description
        self._placement = placement
        self._interval = snapshot_interval
        self._worker = worker
        self._snapshot: dict[str, Any] | None = None
        self._log: list[list[Call]] = []
        self._log_bytes = 0
        self._pending: tuple[list[Call], Any, bool] | None = None
        self._actor: Any = None

    @property
    def name(self) -> str:
        """How messages call this part."""
        return f"worker {self.index} (worlds {self.worlds.start} to {self.worlds.stop - 1})"

    @property
    def is_busy(self) -> bool:
        """Whether it was begun and its result was not taken yet."""
        return self._pending is not None

    @property
    def reference(self) -> Any:
        """Ray's reference to what it does now."""
        assert self._pending is not None
        return self._pending[1]

    def start(self) -> Any:
        """Ask for a worker, and return a reference to its versions."""
        import ray

        placement = self._placement
        remote = ray.remote(num_cpus=placement.cpus, num_gpus=placement.gpus, max_restarts=0)(self._worker)
        self._actor = remote.remote()
        return self._actor.versions.remote()

    def check_start(self, reference: Any) -> None:
        """Wait for a worker and compare its versions with those here.

        Raises:
            ClusterError: If it finds no place, dies, or runs other versions.
        """
        import ray

        try:
            found = ray.get(reference, timeout=START_TIMEOUT)
        except ray.exceptions.GetTimeoutError as error:
            placement = self._placement
            free = ray.available_resources()
            raise ClusterError(
                f"{self.name} found no place within {START_TIMEOUT:g} s: it needs {placement.cpus:g} cores "
                f"and {placement.gpus:g} GPUs, and {free.get('CPU', 0.0):g} cores and "
                f"{free.get('GPU', 0.0):g} GPUs are free in the cluster. Use fewer workers, or a "
                "cluster with more nodes."
            ) from error
        except ray.exceptions.OutOfMemoryError as error:  # Ray's memory monitor has killed it
            raise ClusterError(
                f"{self.name} could not start: {_first_line(error)} {MEMORY_REMEDY}"
            ) from error
        except ray.exceptions.RayError as error:
            raise ClusterError(
                f"{self.name} could not start: {_first_line(error)} Pluriverse must be installed, in the "
                "same version, where workers run."
            ) from error
        check_versions(found, self.name)

    def build(self) -> Any:
        """Have the worlds built, and return a reference to the end of it."""
        placement = self._placement
        return self._actor.build.remote(self._description, self.worlds, placement.device, placement.threads)

    def begin(self, calls: Sequence[Call]) -> None:
        """Ask for some calls, and return at once."""
        if self._pending is not None:
            raise ClusterError(f"{self.name} was begun already; take its result first.")
        pending = list(calls)
        takes_snapshot = len(self._log) + 1 >= self._interval or self._log_bytes > LOG_BYTES_MAX
        self._send(pending, takes_snapshot)

    def finish(self) -> list[Any]:
        """Wait for what was begun and return its results.

        Raises:
            ClusterError: If the worker is lost twice over it.
            WorkerTaskError: If it fails on the worker.
        """
        import ray

        assert self._pending is not None
        lost: BaseException | None = None
        for attempt in range(1, ATTEMPT_COUNT_MAX + 1):
            calls, reference, takes_snapshot = self._pending
            try:
                results = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                cause = error.cause if error.cause is not None else error
                if not is_out_of_memory(cause):
                    self._pending = None
                    raise WorkerTaskError(f"{self.name}: {type(cause).__name__}: {cause}") from cause
                lost = cause  # what it left behind half done is not to be gone on with
            except losses(ray) as error:
                lost = error
            else:
                self._pending = None
                self._note(calls, results.pop() if takes_snapshot else None)
                return list(results)
            if attempt == ATTEMPT_COUNT_MAX:
                break
            try:
                self._revive()
                self._send(calls, takes_snapshot)
            except ray.exceptions.RayError as again:
                lost = again
                break
        self._pending = None
        raise ClusterError(
            f"{self.name} was lost twice over the same work, {_names(calls)}: {_first_line(lost)} Give "
            "workers more memory (fewer worlds each), or look into Ray's logs for what ends them."
        ) from lost

    def take_snapshot(self) -> dict[str, Any]:
        """Return a snapshot of the worlds, which also is the one to come back to."""
        self._send([], takes_snapshot=True)
        self.finish()
        assert self._snapshot is not None
        return self._snapshot

    def kill(self) -> None:
        """End the worker."""
        import ray

        if self._actor is not None and ray.is_initialized():
            ray.kill(self._actor)
        self._actor = None

    def process_id(self) -> int:
        """Return the number of the worker's process on its machine."""
        import ray

        return int(ray.get(self._actor.process_id.remote()))

    def _send(self, calls: list[Call], takes_snapshot: bool) -> None:
        import ray

        sent = [*calls, ("snapshot", ())] if takes_snapshot else calls
        try:
            reference = self._actor.run.remote(sent)
        except ray.exceptions.RayActorError:
            self._revive()
            reference = self._actor.run.remote(sent)
        self._pending = (calls, reference, takes_snapshot)

    def _note(self, calls: list[Call], snapshot: dict[str, Any] | None) -> None:
        """Remember what was done since the last snapshot."""
        if snapshot is not None:
            self._snapshot, self._log, self._log_bytes = snapshot, [], 0
        elif any(name not in _READING for name, _ in calls):
            self._log.append(calls)
            self._log_bytes += sum(getattr(each, "nbytes", 0) for _, given in calls for each in given)

    def _revive(self) -> None:
        """Build a new worker and restore the state of the lost one."""
        import ray

        self.restart_count += 1
        self.kill()
        self.check_start(self.start())
        ray.get(self.build())
        calls = [call for each in self._log for call in each if call[0] not in _READING]
        if self._snapshot is not None:
            calls.insert(0, ("restore", (self._snapshot,)))
        if calls:
            ray.get(self._actor.run.remote(calls))


# Calls that change nothing, which a replay skips.
_READING = ("observe", "report", "snapshot", "prepare", "spaces")


def _names(calls: Sequence[Call]) -> str:
    return " and ".join(dict.fromkeys(name for name, _ in calls)) or "a snapshot"


def _first_line(error: BaseException | None) -> str:
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):  # what Ray wraps in the text of a traceback
        error = cause
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    name = type(error).__name__
    return (f"{name}: {lines[0]}" if lines else name).rstrip(".") + "."
