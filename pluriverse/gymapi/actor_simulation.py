"""ActorSimulation: a simulation that sums body forces and reads contacts inside the recorded step."""

from collections.abc import Callable
from typing import Any

import warp as wp

from pluriverse.model import State
from pluriverse.simulation import Simulation, StepStage


class ActorStage(StepStage):
    """What actors add to every solver step: external forces before it, readings after it.

    So the substeps of one `simulate` are one replay: worlds stay in the cache from substep to substep, and
    the threads that step them do the rest as well.

    Args:
        push: Launches the external forces of some worlds: `push(state before the step, worlds)`.
        read: Launches the readings of some worlds: `read(state after the step, worlds)`.
    """

    def __init__(
        self, push: Callable[[State, wp.array], None], read: Callable[[State, wp.array], None]
    ) -> None:
        self._push, self._read = push, read

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Launch the external forces."""
        self._push(state, worlds)

    def after_substep(self, worlds: wp.array[int], before: State, after: State) -> None:
        """Launch the readings."""
        self._read(after, worlds)


class ActorSimulation(Simulation):
    """A `Simulation` with an `ActorStage`.

    Args:
        stage: The stage.
        positional: Arguments of `Simulation`.
        options: Arguments of `Simulation`.
    """

    def __init__(self, stage: ActorStage, *positional: Any, **options: Any) -> None:
        super().__init__(*positional, **options)
        self.add_stage(stage)

    def _report_undriven(self) -> None:
        """Do nothing: scripts of this API set targets of all degrees of freedom, whatever their mode."""
