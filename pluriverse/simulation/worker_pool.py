"""Worker pool: threads that stay, so that a step costs a wake-up and not a start."""

import queue
import threading
from collections.abc import Callable
from typing import Self


class WorkerPool:
    """Runs one piece of work on several threads at once, the calling thread being one of them.

    Warp releases the interpreter's lock while it replays a graph, so the threads run truly in parallel.

    Args:
        thread_count: Number of threads, with the calling one.
    """

    def __init__(self, thread_count: int) -> None:
        self._inboxes: list[queue.SimpleQueue[Callable[[], None] | None]] = []
        self._outbox: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        for index in range(1, thread_count):
            inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
            # A daemon does not keep a program alive that forgot to close its simulation.
            threading.Thread(
                target=_serve, args=(inbox, self._outbox), name=f"pluriverse-{index}", daemon=True
            ).start()
            self._inboxes.append(inbox)

    def run(self, work: Callable[[], None], thread_count: int) -> None:
        """Call `work` once on each of `thread_count` threads, and return when all calls have.

        The first exception of any thread is raised here, after all of them have come to an end.
        """
        helpers = self._inboxes[: thread_count - 1]
        for inbox in helpers:
            inbox.put(work)
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (raised below)
            failure = error
        for _ in helpers:
            failure = self._outbox.get() or failure
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the threads."""
        for inbox in self._inboxes:
            inbox.put(None)
        self._inboxes.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(
    inbox: "queue.SimpleQueue[Callable[[], None] | None]", outbox: "queue.SimpleQueue[BaseException | None]"
) -> None:
    """Do what comes in, until that is None."""
    while (work := inbox.get()) is not None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (handed to the calling thread, which raises it)
            outbox.put(error)
        else:
            outbox.put(None)
