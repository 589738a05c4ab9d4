"""Threads that stay: each does its part, failures come out, and none is left behind."""

import gc
import threading
import time

import pytest

from pluriverse.simulation.worker_pool import WorkerPool


def pluriverse_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("pluriverse-")}


def test_work_is_done_once_on_each_thread_at_the_same_time():
    """Four calls can only pass a barrier of four if they run at once, on threads of their own."""
    barrier = threading.Barrier(4, timeout=300.0)
    seen = []

    def work(stop: threading.Event) -> None:
        barrier.wait()
        seen.append(threading.get_ident())

    with WorkerPool(4) as pool:
        for _ in range(3):
            pool.run(work, 4)
    assert len(seen) == 12
    assert len(set(seen)) == 4


def test_fewer_threads_than_the_pool_has_do_the_work():
    seen = []
    with WorkerPool(4) as pool:
        pool.run(lambda stop: seen.append(threading.get_ident()), 2)
        pool.run(lambda stop: seen.append(threading.get_ident()), 1)
    assert len(seen) == 3


@pytest.mark.parametrize("culprit", ["caller", "helper"])
def test_failure_of_any_thread_is_raised_after_all_have_ended(culprit):
    """The exception comes to the caller, the other thread ends its work, and the pool goes on."""
    ended = []
    caller = threading.get_ident()

    def work(stop: threading.Event) -> None:
        if (threading.get_ident() == caller) == (culprit == "caller"):
            raise ArithmeticError("broken")
        assert stop.wait(300.0), "the failure of one thread asks the others to stop"
        time.sleep(0.05)
        ended.append(True)

    with WorkerPool(2) as pool:
        with pytest.raises(ArithmeticError, match="broken"):
            pool.run(work, 2)
        assert ended == [True]
        pool.run(lambda stop: ended.append(True), 2)
    assert len(ended) == 3


def test_threads_of_a_forgotten_pool_end():
    before = pluriverse_threads()
    pool = WorkerPool(3)
    pool.run(lambda stop: None, 3)
    started = pluriverse_threads() - before
    assert len(started) == 2
    del pool
    gc.collect()
    for thread in started:
        thread.join(timeout=300.0)
        assert not thread.is_alive()
