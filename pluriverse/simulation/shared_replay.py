"""Shared replay: threads share recorded steps among themselves, without the interpreter's lock.

A thread that goes back to Python for each part of the work waits for the lock each time, and a thread that
sleeps takes 60 us to wake. Here the calling thread puts a plan on a desk in memory, opens a round, and takes
part in it by one call of native code (`launch_list.share_launches`). The others do the same in a loop. After
a round they stay awake for a moment, and find the next round without being woken. Then they sleep in Python,
so that native code never waits for long, and a fork, an exception or the end of the program finds nothing
held. A round ends even if no other thread comes.

A plan has chunks, and a chunk has units, which are made in order by one thread at a time, slice by slice.
"""

import os
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.launch_list import (
    ATTEND,
    BEGIN,
    CHUNK_COUNT,
    CHUNK_SIZE,
    CLOSE,
    DESK_SIZE,
    FIRST_RUN,
    GATE,
    GO_ON,
    LEFT,
    OTHERS_AT_WORK,
    PLAN,
    RUN_SIZE,
    SLICE,
    STOP,
    UNIT_COUNT,
    LaunchList,
    can_be_shared,
    share_launches,
)
from pluriverse.simulation.worker_pool import WorkerPool

# Units after which the calling thread looks whether Ctrl-C was pressed. One takes up to some milliseconds.
UNITS_PER_CALL = 8
UNLIMITED = 2**31 - 1
# Time [s] for which the calling thread sleeps, again and again, while others make the last units.
NAP = 50e-6


class ReplayPlan:
    """The graphs that make a step of each chunk, as native code reads them.

    Args:
        recordings: Graphs of each chunk, in order.
        slice_count: Slices in which a chunk is replayed.
    """

    def __init__(self, recordings: Sequence[Sequence[wp.Graph]], slice_count: int) -> None:
        self.recordings = recordings  # the numbers below have the addresses of their lists
        rows = np.zeros((len(recordings), CHUNK_SIZE), dtype=np.int64)
        runs: list[tuple[int, int, int]] = []
        for row, graphs in zip(rows, recordings, strict=True):
            row[FIRST_RUN] = rows.size + RUN_SIZE * len(runs)
            row[UNIT_COUNT] = len(graphs)
            row[SLICE] = max(1, len(graphs) // slice_count)
            end = 0
            for graph, same in groupby(graphs):
                end += sum(1 for _ in same)
                launches = cast(Any, graph).launches
                runs.append((launches.array.ptr, len(launches), end))
        self._numbers = np.concatenate([rows.reshape(-1), np.array(runs, dtype=np.int64).reshape(-1)])
        self.chunk_count = len(recordings)
        self.address = self._numbers.ctypes.data


def is_shareable(recordings: Sequence[Sequence[wp.Graph]]) -> bool:
    """Return whether native code can replay graphs: all are lists of launches, and the platform is known."""
    return can_be_shared() and all(
        getattr(graph, "launches", None) is not None for graphs in recordings for graph in graphs
    )


class SharedReplay:
    """Replays plans on several threads at once, including the calling one.

    Args:
        pool: The threads.
        thread_count: Number of them, with the calling one.
    """

    def __init__(self, pool: WorkerPool, thread_count: int) -> None:
        self._pool = pool
        self._thread_count = thread_count
        self._begin()

    def _begin(self) -> None:
        """Begin with no thread awake, as after a fork."""
        self._process = os.getpid()
        self._awake = [False] * self._thread_count
        self._round = 0
        desk = wp.zeros(DESK_SIZE, dtype=wp.int64, device="cpu")
        self._numbers = desk.numpy()
        parts = ((ATTEND, UNLIMITED), (BEGIN, 0), (GO_ON, UNITS_PER_CALL), (CLOSE, 0))
        self._lists = [_native_part(desk, role, limit) for role, limit in parts]
        calls = [launches.first_call() for launches in self._lists]
        self._attend_once, self._begin_round, self._go_on, self._close_round = calls

    def run(self, plan: ReplayPlan, thread_count: int) -> None:
        """Replay a plan on so many threads, and return when all of it is done.

        Raises:
            KeyboardInterrupt: On Ctrl-C. No thread works on the plan any more, of which a part is done.
        """
        if os.getpid() != self._process:
            self._begin()
        numbers = self._numbers
        if numbers[GATE] != 0:
            self._close()  # a second Ctrl-C had come before the last round was closed
        numbers[PLAN] = plan.address
        numbers[CHUNK_COUNT] = plan.chunk_count
        self._round += 1  # before looking who is awake, as `_attend` does it the other way round
        try:
            # Threads are woken once the round is open: one that came before could have gone again.
            self._begin_round()
            for index in range(thread_count - 1):
                if not self._awake[index]:
                    self._awake[index] = True
                    self._pool.post(index, self._attend, index)
            while numbers[LEFT]:
                if numbers[LEFT] == OTHERS_AT_WORK:
                    time.sleep(NAP)
                self._go_on()
        except BaseException:
            numbers[STOP] = 1
            self._close()
            raise

    def _close(self) -> None:
        """End the round: return when no thread is in it any more."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._close_round()
                if not self._numbers[LEFT]:
                    break
                time.sleep(NAP)
            except KeyboardInterrupt as error:
                interrupt = error  # raised below: the others still work on the arrays
        if interrupt is not None:
            raise interrupt

    def _attend(self, index: int) -> None:
        """Take part in rounds, until none has come for a while."""
        while True:
            seen = self._round
            self._attend_once()
            self._awake[index] = False
            if self._round == seen:
                return
            self._awake[index] = True


def _native_part(desk: wp.array, role: int, limit: int) -> LaunchList:
    """Return a list of one launch, which takes part in rounds at a desk."""
    part = LaunchList()
    inputs = [desk, role, limit]
    part.append(launch_kernel(share_launches, dim=1, inputs=inputs, device="cpu", record_cmd=True))
    return part
