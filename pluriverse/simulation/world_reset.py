"""World reset: put chosen worlds back to a state, with the stages that follow, recorded once and replayed.

Reads   the state of a model, or another one
Writes  the state of the simulation, its last sound state, world_frozen, and what stages write after a reset

Ten or more launches from Python take 0.15 ms and more, as long as tens of world-steps. So a CPU replays
recordings. Each of them reads a list of its own, of a fixed size, into which the chosen worlds are written.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import is_recorded_by_others, record
from pluriverse.model import Model, State
from pluriverse.model.indices import INDEX_TYPES, MASK_TYPES, device_array
from pluriverse.model.world_list import is_trusted, trust_worlds
from pluriverse.model.world_selection import WorldSelection, find_worlds, resolve_worlds, select_worlds
from pluriverse.simulation.step_loop import StepLoop
from pluriverse.simulation.world_copy import WorldCopy
from pluriverse.solvers import SolverBase

_WHAT = "Simulation.reset"
# Worlds that the shortest list holds; every other one is twice as long as the one before it. So at most half
# of the slots of a list are empty, apart from those of the shortest.
LIST_SIZE_MIN = 8
# Worlds that the longest list holds. More are launched from Python: launches then take a small part of the
# time, and empty slots may take as long.
LIST_SIZE_MAX = 1024


class _ResetRecording:
    """The reset of the worlds on a list of a fixed size.

    Args:
        model: The model.
        size: Slots of the list.
    """

    def __init__(self, model: Model, size: int) -> None:
        self._device = model.device
        worlds: Any = trust_worlds(wp.empty(size, dtype=wp.int32, device=model.device))
        everywhere: wp.array[bool] = wp.zeros(0, dtype=wp.bool, device=model.device)
        # Whatever is recorded, no world is unfrozen before the replay.
        self.selection = WorldSelection(worlds, everywhere, np.zeros(0, dtype=np.int64))
        self._slots = worlds.numpy()  # shares the memory
        self.graph: wp.Graph | None = None

    def write(self, worlds: np.ndarray) -> None:
        """Write worlds to the list."""
        self._slots[: worlds.size] = worlds
        self._slots[worlds.size :] = -1


class WorldReset:
    """Resets chosen worlds of a simulation.

    Args:
        solver: The solver.
        state: The public state.
        loop: The loop, with the stages and the last sound state. As long as its recorded steps are valid,
            recorded resets are.
        record: Whether resets are recorded and replayed.
    """

    def __init__(self, solver: SolverBase, state: State, loop: StepLoop, *, record: bool) -> None:
        self._model = solver.model
        self._solver = solver
        self._targets = (state, loop.last_sound)
        self._loop = loop
        self._record = record and self._model.device.is_cpu
        self._world_copy = WorldCopy(self._model)
        self._recordings: dict[int, _ResetRecording | None] = {}
        self._version: object = None

    def reset(self, worlds: Any, source: State | None) -> None:
        """Reset worlds to their part of `source`, or of the model if None; see `Simulation.reset`."""
        if source is None and self._can_replay() and not isinstance(worlds, WorldSelection):
            given = device_array(worlds)
            if given is not None:
                found = self._read(given)
                if found is not None and self._replay(found, None):
                    return
                worlds = given
            else:
                found = find_worlds(self._model, worlds, what=_WHAT)
                if self._replay(found, found):
                    return
                worlds = select_worlds(self._model, found)
        self._launch(resolve_worlds(self._model, worlds, what=_WHAT), source or self._model)

    def launch_stages(self, selection: WorldSelection) -> None:
        """Launch the stages for worlds whose state was replaced."""
        for stage in self._loop.stages:
            stage.after_reset(selection.worlds, selection.mask, self._targets[0])

    def _launch(self, selection: WorldSelection, source: State | Model) -> None:
        for target in self._targets:
            self._world_copy.copy_worlds(selection, source, target)
        self._solver.unfreeze(selection)
        self.launch_stages(selection)

    def _can_replay(self) -> bool:
        """Return whether recordings may be used; those that the steps have outlived are dropped."""
        version = self._loop.version if self._record else None
        if version is None or not all(stage.is_recorded for stage in self._loop.stages):
            return False
        if version is not self._version:
            self._recordings.clear()
            self._version = version
        return not is_recorded_by_others(self._model.device)

    def _read(self, given: wp.array) -> np.ndarray | None:
        """Return the worlds that an array names; None if they are many, or something is wrong with them."""
        count = self._model.world_count
        if given.device != self._model.device:
            return None
        if given.dtype in MASK_TYPES and given.shape == (count,):
            mask = given.numpy()
            return np.flatnonzero(mask) if np.count_nonzero(mask) <= LIST_SIZE_MAX else None
        if given.dtype not in INDEX_TYPES or given.ndim != 1 or given.size > LIST_SIZE_MAX:
            return None
        found = given.numpy()
        if is_trusted(given):
            found = found[found >= 0]
        ordered = np.unique(found)
        is_sound = ordered.size == found.size
        if ordered.size:
            is_sound = is_sound and ordered[0] >= 0 and ordered[-1] < count
        return ordered if is_sound else None

    def _replay(self, worlds: np.ndarray, on_host: np.ndarray | None) -> bool:
        """Reset worlds by means of a list, from the second use of its size on; return whether it was done.

        Args:
            worlds: The worlds.
            on_host: The worlds, if the host knew them; see `WorldSelection.indices`.
        """
        size = max(LIST_SIZE_MIN, 1 << max(int(worlds.size) - 1, 0).bit_length())
        if size > LIST_SIZE_MAX:
            return False
        if size not in self._recordings:
            self._recordings[size] = None
            return False
        recording = self._recordings[size]
        if recording is None:
            recording = self._recordings[size] = _ResetRecording(self._model, size)
        recording.write(worlds)
        selection = recording.selection
        if recording.graph is None:
            # Launched first, which loads kernels, and lets stages allocate what they keep for a list.
            self._launch(selection, self._model)
            recording.graph = record(self._model.device, lambda: self._launch(selection, self._model))
        else:
            wp.capture_launch(recording.graph)
        self._solver.report_again(on_host)
        return True
