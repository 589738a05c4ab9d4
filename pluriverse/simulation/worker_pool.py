"""Worker pool: persistent threads, so that a step costs a wake-up and not a start."""

import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Self


class _Task:
    """One call of a function on one thread."""

    def __init__(self, work: Callable[[threading.Event], None], stop: threading.Event) -> None:
        self.work = work
        self.stop = stop
        self.done = threading.Event()
        self.failure: BaseException | None = None


# For work on one thread, which only its own exception stops.
_NEVER = threading.Event()
_Inbox = queue.SimpleQueue[_Task | None]


class WorkerPool:
    """Runs one piece of work on several threads at once, including the calling thread.

    Warp releases the interpreter's lock while it replays a graph, so the threads run truly in parallel. A
    forked process has none of these threads, and makes its own when it needs them.

    Args:
        thread_count: Number of threads, with the calling one.
    """

    def __init__(self, thread_count: int) -> None:
        self._process = os.getpid()
        self._inboxes: list[_Inbox] = []
        self._finalizer = weakref.finalize(self, _end, self._inboxes)
        self._start(thread_count)

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the one that made the pool."""
        return os.getpid() != self._process

    def _start(self, thread_count: int) -> None:
        self._inboxes[:] = [queue.SimpleQueue() for _ in range(1, thread_count)]
        self._threads_process = os.getpid()
        for index, inbox in enumerate(self._inboxes, start=1):
            # Daemon threads do not keep a program alive that does not close its simulation.
            threading.Thread(target=_serve, args=(inbox,), name=f"pluriverse-{index}", daemon=True).start()

    def run(self, work: Callable[[threading.Event], None], thread_count: int) -> None:
        """Call `work` once on each of `thread_count` threads, and return when all calls have.

        The first exception of any thread, including Ctrl-C, is raised here after all threads have finished.
        The event passed to `work` is set at the first exception; `work` should then return soon.
        """
        if thread_count == 1:
            work(_NEVER)
            return
        self._restart_after_fork()
        stop = threading.Event()
        tasks: list[_Task] = []
        failure: BaseException | None = None
        try:
            for inbox in self._inboxes[: thread_count - 1]:
                tasks.append(_Task(work, stop))
                inbox.put(tasks[-1])
            work(stop)
        except BaseException as error:  # noqa: BLE001  (raised below)
            stop.set()
            failure = error
        for task, inbox in zip(tasks, self._inboxes, strict=False):
            if task is tasks[-1] and failure is not None:
                inbox.put(task)  # Ctrl-C may have come before it was put; a task is done once
            while not task.done.is_set():
                try:
                    task.done.wait()
                except KeyboardInterrupt as error:
                    stop.set()
                    failure = error  # raised below: the other threads still work on the same arrays
            failure = failure or task.failure
        if failure is not None:
            raise failure

    def post(self, index: int, function: Callable[[int], None], argument: int) -> None:
        """Let thread number `index`, not counting the calling one, call a function some time; wait for none.

        The function must not raise.
        """
        self._restart_after_fork()
        self._inboxes[index].put(_Task(lambda stop: function(argument), _NEVER))

    def _restart_after_fork(self) -> None:
        if os.getpid() != self._threads_process:
            self._start(len(self._inboxes) + 1)

    def close(self) -> None:
        """End the threads."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(inbox: _Inbox) -> None:
    """Run the tasks of a queue until one is None."""
    while (task := inbox.get()) is not None:
        if task.done.is_set():
            continue
        try:
            task.work(task.stop)
        except BaseException as error:  # noqa: BLE001  (handed to the calling thread, which raises it)
            task.stop.set()
            task.failure = error
        task.done.set()
        del task  # or the last one would live as long as the thread


def _end(inboxes: list[_Inbox]) -> None:
    """End all threads."""
    for inbox in inboxes:
        inbox.put(None)
    inboxes.clear()
