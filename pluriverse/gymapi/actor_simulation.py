"""ActorSimulation: a simulation that sums body forces and reads contacts inside the recorded step."""

from collections.abc import Callable
from typing import Any

import warp as wp

from pluriverse.model import State
from pluriverse.simulation import Simulation


class ActorSimulation(Simulation):
    """A `Simulation` whose every solver step begins with forces and ends with readings.

    So the substeps of one `simulate` are one replay: worlds stay in the cache from substep to substep, and
    the threads that step them do the rest as well.

    Args:
        push: Launches the external forces of some worlds: `push(state before the step, worlds)`.
        read: Launches the readings of some worlds: `read(state after the step, worlds)`.
        positional: Arguments of `Simulation`.
        options: Arguments of `Simulation`.
    """

    def __init__(
        self,
        push: Callable[[State, wp.array], None],
        read: Callable[[State, wp.array], None],
        *positional: Any,
        **options: Any,
    ) -> None:
        self._push, self._read = push, read
        super().__init__(*positional, **options)

    def _report_undriven(self) -> None:
        """Do nothing: scripts of this API set targets of all degrees of freedom, whatever their mode."""

    def _launch_step(self, source: int, target: int, worlds: wp.array) -> None:
        """Launch one solver step of some worlds, with the forces before and the readings after it."""
        self._push(self._states[source], worlds)
        super()._launch_step(source, target, worlds)
        self._read(self._states[target], worlds)
