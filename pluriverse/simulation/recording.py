"""Recording: the step of a chunk of worlds as a graph, replayed without Python.

A launch from Python costs microseconds; a launch replayed from a list (`launch_list`) costs a function call.
One step is a graph. Many steps in a row replay a graph that holds a block of them.
"""

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import warp as wp

from pluriverse.launch import record
from pluriverse.scratch import Borrowing

# World-steps in one replay, where many steps are asked for. At some microseconds for the smallest world, a
# replay then lasts longer than a thread needs to take the interpreter's lock and come back for the next one.
BLOCK_WORLD_STEP_COUNT = 64
# Recording costs some 0.2 ms a step, which should not show in the time to the first step.
BLOCK_STEP_COUNT_MAX = 16


class ChunkRecording:
    """The step of some worlds, launched or recorded.

    Args:
        worlds: The worlds.
        launch: Method that launches solver steps in a row: `launch(worlds, step_count)`, from a substep on:
            `launch(worlds, step_count, substep)`, and part of them: `launch(worlds, step_count, 0, part)`.
            Without any, it launches what stages do before a step: `launch(worlds, 0)`.
            Its object, which holds the recordings, is referred to weakly, so that both are freed at once.
        decimation: Solver steps in one step of the simulation.
        device: Device that the step runs on.
        borrowing: Scratch of other worlds that the launches use, where they are recorded.
    """

    def __init__(
        self,
        worlds: wp.array[int],
        launch: Callable[..., None],
        decimation: int,
        device: wp.Device,
        borrowing: Borrowing | None = None,
    ) -> None:
        self.worlds = worlds
        self._borrowing = borrowing
        self._launch_method = weakref.WeakMethod(launch)
        self._decimation = decimation
        self._device = device
        self._graphs: dict[int, wp.Graph] = {}
        self._beginning_graph: wp.Graph | None = None
        self._substep_graphs: dict[int, wp.Graph] = {}
        self._part_graphs: dict[int, list[wp.Graph]] = {}
        block_count = -(-BLOCK_WORLD_STEP_COUNT // (max(worlds.size, 1) * decimation))
        self._block_count = max(1, min(block_count, BLOCK_STEP_COUNT_MAX // decimation))

    def _launch(self, *arguments: Any) -> None:
        """Launch solver steps, see `launch` of the class."""
        launch = self._launch_method()
        assert launch is not None, "the loop that holds a recording outlives it"
        launch(*arguments)

    def launch(self, count: int) -> None:
        """Launch the kernels of `count` steps, which become part of an active recording made outside."""
        for _ in range(count):
            self._launch(self.worlds, self._decimation)

    def graphs(self, count: int) -> list[wp.Graph]:
        """Return the graphs that make `count` steps."""
        block_count, rest = divmod(count, self._block_count)
        blocks = [self._graph(self._block_count)] * block_count if block_count else []
        return blocks + ([self._graph(1)] * rest if rest else [])

    def parts(self, count: int) -> list[wp.Graph]:
        """Return graphs that make one step together, each of some of its solver steps."""
        if count == 1:
            return [self._graph(1)]
        if count not in self._part_graphs:
            bounds = [self._decimation * k // count for k in range(count + 1)]
            self._part_graphs[count] = [
                self._record(functools.partial(self._launch, self.worlds, self._decimation, 0, part))
                for part in itertools.starmap(slice, itertools.pairwise(bounds))
            ]
        return self._part_graphs[count]

    def beginning_graph(self) -> wp.Graph:
        """Return the graph of what stages do before a step whose solver steps are replayed by themselves."""
        if self._beginning_graph is None:
            self._beginning_graph = self._record(lambda: self._launch(self.worlds, 0))
        return self._beginning_graph

    def substep_graph(self, substep: int) -> wp.Graph:
        """Return the graph of a single solver step, that with index `substep` in the step."""
        if substep not in self._substep_graphs:
            self._substep_graphs[substep] = self._record(lambda: self._launch(self.worlds, 1, substep))
        return self._substep_graphs[substep]

    def _graph(self, count: int) -> wp.Graph:
        """Return the graph of `count` steps in a row."""
        if count not in self._graphs:
            self._graphs[count] = self._record(lambda: self._launch(self.worlds, count * self._decimation))
        return self._graphs[count]

    def _record(self, launch: Callable[[], None]) -> wp.Graph:
        return record(self._device, launch, borrowing=self._borrowing)
