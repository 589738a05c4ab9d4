"""Recording: the step of a chunk of worlds as a graph, replayed without Python.

A launch from Python costs microseconds, a kernel inside a replayed graph a tenth of one. Two states take
turns, so a step is recorded once from the first to the second and once back. Many steps in a row replay a
graph that holds a block of them.
"""

from collections.abc import Callable

import warp as wp

from pluriverse.launch import RECORDING

# World-steps in one replay, where many steps are asked for. At some microseconds for the smallest world, a
# replay then lasts longer than a thread needs to take the interpreter's lock and come back for the next one.
BLOCK_WORLD_STEP_COUNT = 64
# Recording costs some 0.2 ms a step, which should not show in the time to the first step.
BLOCK_STEP_COUNT_MAX = 16


class ChunkRecording:
    """The step of some worlds, recorded.

    Args:
        worlds: The worlds.
        step: Launches one step of dt: `step(source, target, worlds)` from state number `source` to state
            `target`.
        decimation: Solver steps in one step of the simulation.
        device: Device that the step runs on.
    """

    def __init__(
        self,
        worlds: wp.array[int],
        step: Callable[[int, int, wp.array[int]], None],
        decimation: int,
        device: wp.Device,
    ) -> None:
        self.worlds = worlds
        self._step = step
        self._decimation = decimation
        self._device = device
        self._swaps = decimation % 2 == 1
        self._single: dict[int, wp.Graph] = {}
        self._block: wp.Graph | None = None
        # From the first state to itself, whatever the decimation: an even number of steps.
        wanted = -(-BLOCK_WORLD_STEP_COUNT // (max(worlds.size, 1) * decimation))
        self._block_count = 2 * max(1, min(wanted, BLOCK_STEP_COUNT_MAX // decimation) // 2)

    def graphs(self, source: int, count: int) -> list[wp.Graph]:
        """Return the graphs that make `count` steps, beginning at state number `source`."""
        graphs = []
        if source == 1 and count > 0:
            graphs.append(self._single_graph(1))
            source, count = 0, count - 1
        block_count, rest = divmod(count, self._block_count)
        if block_count > 0:
            graphs += [self._block_graph()] * block_count
        for _ in range(rest):
            graphs.append(self._single_graph(source))
            source = 1 - source if self._swaps else source
        return graphs

    def _single_graph(self, source: int) -> wp.Graph:
        if source not in self._single:
            self._single[source] = self._record(source, self._decimation)
        return self._single[source]

    def _block_graph(self) -> wp.Graph:
        if self._block is None:
            self._block = self._record(0, self._block_count * self._decimation)
        return self._block

    def _record(self, source: int, step_count: int) -> wp.Graph:
        # The modules are loaded already; to force it here would load those of a whole program.
        with RECORDING, wp.ScopedCapture(device=self._device, force_module_load=False) as capture:
            for _ in range(step_count):
                self._step(source, 1 - source, self.worlds)
                source = 1 - source
        return capture.graph
