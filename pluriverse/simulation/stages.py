"""Stages: what others add to the step of a simulation, recorded and replayed with it."""

import numpy as np
import warp as wp

from pluriverse.model import State


class StepStage:
    """Launches of your own in every step; a base class. See `Simulation.add_stage`.

    Each method launches kernels for a list of worlds and does nothing else: it allocates nothing and reads
    nothing back, since it is called while a step is recorded, not while it runs. Several threads replay what
    was recorded, each for its own worlds, so a kernel touches nothing but what belongs to its worlds. Kernels
    skip entries of the list that name no world (negative ones).
    """

    is_recorded = True
    """Whether its launches are recorded with the step. A stage that runs Python code in every solver step, as
    a network of another library does, says False: then each solver step is replayed by itself, and its
    `before_step`, `before_substep` and `after_step` are called with all worlds and the public state."""

    @property
    def driven_dofs(self) -> np.ndarray:
        """Degrees of freedom that it drives in place of the model's drives, on the host; none."""
        return np.zeros(0, dtype=np.int64)

    def prepare(self) -> None:
        """Called before a step is recorded, outside of recordings, with nothing to launch yet."""

    def before_step(self, worlds: wp.array[int], state: State) -> None:
        """Launch what begins a step: with `decimation=k` once before its k solver steps.

        Args:
            worlds: World indices, shape [slot].
            state: State that the step begins from; read only.
        """

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Launch what precedes each solver step, such as an actuator that writes efforts.

        Args:
            worlds: World indices, shape [slot].
            state: State that the solver step begins from; only `body_f` of it may be written to.
        """

    def after_substep(self, worlds: wp.array[int], before: State, after: State) -> None:
        """Launch what follows each solver step. The contacts are those that it has solved.

        Args:
            worlds: World indices, shape [slot].
            before: State that the solver step began from; read only.
            after: Its result; read only.
        """

    def after_step(self, worlds: wp.array[int], state: State) -> None:
        """Launch what ends a step.

        Args:
            worlds: World indices, shape [slot].
            state: Result of the step; read only.
        """

    def after_reset(self, worlds: wp.array[int], mask: wp.array[bool], state: State) -> None:
        """Launch what follows a reset of some worlds.

        Args:
            worlds: World indices, shape [slot]; entries that name no world are to be skipped.
            mask: Which worlds are meant, shape [world]; empty if all of `worlds` are.
            state: State of the worlds now; read only.
        """

    def after_restore(self, worlds: wp.array[int], state: State) -> None:
        """Launch what follows `restore`: what was saved with the simulation has returned, the rest follows.

        Args:
            worlds: World indices, shape [slot].
            state: State of the worlds now; read only.
        """
