"""Threads that share recorded launches: each unit is made once, in order, and none is made after the end."""

import _thread
import os
import signal
import threading
import time

import numpy as np
import pytest
import warp as wp

from pluriverse.launch import launch_kernel, load_kernels_of, record
from pluriverse.launch_list import GATE, LEFT, OTHERS_AT_WORK, can_be_shared
from pluriverse.simulation.shared_replay import ReplayPlan, SharedReplay, is_shareable
from pluriverse.simulation.worker_pool import WorkerPool

pytestmark = pytest.mark.skipif(not can_be_shared(), reason="threads share launches in Python here")
MULTIPLIER = 31
OPEN = 1 << 32  # of the gate, without any thread inside


@wp.kernel(enable_backward=False)
def append_number(history: wp.array[wp.uint32], place: int, number: int):
    history[place] = history[place] * wp.uint32(31) + wp.uint32(number)


@wp.func_native("""
int32_t* const numbers = met.data;
__atomic_store_n(numbers + own, 1, __ATOMIC_RELEASE);
for (long wait = 0; wait < 400000000000l; ++wait)
    if (__atomic_load_n(numbers + other, __ATOMIC_ACQUIRE)) {
        if (own) numbers[2] += own;  // adding 0 as well could undo what the other thread has written
        return;
    }
""")
def wait_for_other(met: wp.array(dtype=int), own: int, other: int): ...


@wp.kernel(enable_backward=False)
def meet(met: wp.array[int], own: int, other: int):
    wait_for_other(met, own, other)


@wp.func_native("""
volatile int32_t* const number = count.data + place;
for (int32_t k = 0; k < 20000; ++k) *number = *number + 1;
""")
def count_slowly(count: wp.array(dtype=int), place: int): ...


@wp.kernel(enable_backward=False)
def count_up(count: wp.array[int], place: int):
    count_slowly(count, place)


def graph_of(kernel, *inputs):
    load_kernels_of(kernel.module.name, "cpu")
    load_kernels_of("pluriverse.launch_list", "cpu")
    return record(wp.get_device("cpu"), lambda: launch_kernel(kernel, dim=1, inputs=inputs, device="cpu"))


def history_after(recordings: list[list[int]]) -> list[int]:
    """Return what `append_number` leaves after these numbers, by chunk."""
    result = []
    for numbers in recordings:
        value = 0
        for number in numbers:
            value = (value * MULTIPLIER + number) % 2**32
        result.append(value)
    return result


@pytest.mark.parametrize("thread_count", [2, 5])
def test_each_unit_is_made_once_and_in_order(thread_count):
    """Chunks differ in their numbers of units; a hash of the units of each tells their order.

    Some rounds follow each other at once, some after threads have fallen asleep.
    """
    generator = np.random.default_rng(3)
    history = wp.zeros(7, dtype=wp.uint32, device="cpu")
    graphs = [[graph_of(append_number, history, chunk, number) for number in range(3)] for chunk in range(7)]
    with WorkerPool(thread_count) as pool:
        replay = SharedReplay(pool, thread_count)
        for round in range(60):
            numbers = [generator.integers(0, 3, generator.integers(1, 40)).tolist() for _ in graphs]
            recordings = [[own[number] for number in some] for own, some in zip(graphs, numbers, strict=True)]
            assert is_shareable(recordings)
            history.zero_()
            replay.run(ReplayPlan(recordings, int(generator.integers(1, 9))), thread_count)
            assert history.numpy().tolist() == history_after(numbers)
            if round % 20 == 0:
                time.sleep(0.02)


def test_threads_work_at_the_same_time():
    """Two units that wait for each other both end only on two threads, asleep before or still awake."""
    met = wp.zeros(3, dtype=int, device="cpu")
    plan = ReplayPlan([[graph_of(meet, met, 0, 1)], [graph_of(meet, met, 1, 0)]], 1)
    with WorkerPool(2) as pool:
        replay = SharedReplay(pool, 2)
        for _ in range(5):
            met.zero_()
            replay.run(plan, 2)
            assert met.numpy().tolist() == [1, 1, 1]


def test_threads_are_woken_once_the_round_is_open():
    """A thread that comes before would go again, and sleep while the calling thread makes all the work."""
    history = wp.zeros(1, dtype=wp.uint32, device="cpu")
    graph = graph_of(append_number, history, 0, 1)
    gates = []
    with WorkerPool(2) as pool:
        replay = SharedReplay(pool, 2)
        pool.post = lambda *arguments: gates.append(int(replay._numbers[GATE]))
        replay.run(ReplayPlan([[graph]], 1), 2)
    assert gates == [OPEN]


def test_a_round_ends_without_other_threads():
    """No thread comes where their functions never run."""
    history = wp.zeros(1, dtype=wp.uint32, device="cpu")
    graph = graph_of(append_number, history, 0, 1)
    with WorkerPool(2) as pool:
        replay = SharedReplay(pool, 2)
        pool.post = lambda *arguments: None
        replay.run(ReplayPlan([[graph] * 30], 4), 2)
    assert history.numpy().tolist() == history_after([[1] * 30])


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise: what runs in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_round_on_all_threads():
    """Nothing is counted any more once the exception is here, and the next round is whole."""
    counts = wp.zeros(3, dtype=int, device="cpu")
    graphs = [graph_of(count_up, counts, place) for place in range(3)]
    with WorkerPool(3) as pool:
        replay = SharedReplay(pool, 3)
        endless = ReplayPlan([[graph] * 200_000 for graph in graphs], 8)

        def press():
            while not (counts.numpy() > 0).all():  # until all threads are at work
                time.sleep(0.01)
            _thread.interrupt_main()

        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            replay.run(endless, 3)
        before = counts.numpy().copy()
        time.sleep(0.05)
        assert (counts.numpy() == before).all()
        counts.zero_()
        replay.run(ReplayPlan([[graph] * 9 for graph in graphs], 8), 3)
        assert counts.numpy().tolist() == [9 * 20000] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_makes_threads_of_its_own():
    met = wp.zeros(3, dtype=int, device="cpu")
    plan = ReplayPlan([[graph_of(meet, met, 0, 1)], [graph_of(meet, met, 1, 0)]], 1)
    with WorkerPool(2) as pool:
        replay = SharedReplay(pool, 2)
        replay.run(plan, 2)  # the other thread is awake now
        child = os.fork()
        if child == 0:
            signal.alarm(300)  # the end, should it wait for a thread that it does not have
            met.zero_()
            replay.run(plan, 2)
            os._exit(0 if met.numpy().tolist() == [1, 1, 1] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_round_ends_though_a_thread_is_inside_for_long_after_all_is_made():
    """A busy machine may leave a thread that found nothing to do where it is, when the round is closed."""
    history = wp.zeros(1, dtype=wp.uint32, device="cpu")
    plan = ReplayPlan([[graph_of(append_number, history, 0, 1)]], 1)
    with WorkerPool(2) as pool:
        replay = SharedReplay(pool, 2)
        replay.run(plan, 1)
        gate = replay._numbers[GATE : GATE + 1]
        leaves = threading.Timer(0.05, lambda: gate.__setitem__(0, 0))
        begin = replay._begin_round

        def begin_with_another_inside():
            begin()
            replay._go_on()  # makes all
            gate[0] = 1  # closed, with one thread inside
            replay._go_on()
            assert replay._numbers[LEFT] == OTHERS_AT_WORK
            leaves.start()

        replay._begin_round = begin_with_another_inside
        runner = threading.Thread(target=replay.run, args=(plan, 1), daemon=True)
        runner.start()
        runner.join(60.0)
        assert not runner.is_alive()
        leaves.join()
    assert history.numpy()[0] == MULTIPLIER + 1
