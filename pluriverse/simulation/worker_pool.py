"""Worker pool: threads that stay, so that a step costs a wake-up and not a start."""

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Self


class _Task:
    """One call of a function on one thread."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.done = threading.Event()
        self.failure: BaseException | None = None


_Inbox = queue.SimpleQueue[_Task | None]


class WorkerPool:
    """Runs one piece of work on several threads at once, the calling thread being one of them.

    Warp releases the interpreter's lock while it replays a graph, so the threads run truly in parallel.

    Args:
        thread_count: Number of threads, with the calling one.
    """

    def __init__(self, thread_count: int) -> None:
        self._inboxes: list[_Inbox] = [queue.SimpleQueue() for _ in range(1, thread_count)]
        for index, inbox in enumerate(self._inboxes, start=1):
            # A daemon does not keep a program alive that forgot to close its simulation.
            threading.Thread(target=_serve, args=(inbox,), name=f"pluriverse-{index}", daemon=True).start()
        self._finalizer = weakref.finalize(self, _end, self._inboxes)

    def run(self, work: Callable[[], None], thread_count: int) -> None:
        """Call `work` once on each of `thread_count` threads, and return when all calls have.

        The first exception of any thread is raised here, after all of them have come to an end.
        """
        tasks = [_Task(work) for _ in self._inboxes[: thread_count - 1]]
        for inbox, task in zip(self._inboxes, tasks, strict=False):
            inbox.put(task)
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (raised below)
            failure = error
        for task in tasks:
            while not task.done.is_set():
                try:
                    task.done.wait()
                except KeyboardInterrupt as error:
                    failure = error  # raised below: the other threads still work on the same arrays
            failure = failure or task.failure
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the threads."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(inbox: _Inbox) -> None:
    """Do what comes in, until that is None."""
    while (task := inbox.get()) is not None:
        try:
            task.work()
        except BaseException as error:  # noqa: BLE001  (handed to the calling thread, which raises it)
            task.failure = error
        task.done.set()
        del task  # or the last one would live as long as the thread


def _end(inboxes: list[_Inbox]) -> None:
    """Let all threads come to an end."""
    for inbox in inboxes:
        inbox.put(None)
    inboxes.clear()
