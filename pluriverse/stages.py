"""Stages: additions to the step of a simulation, recorded and replayed with it.

`StepStage` is public as `pluriverse.simulation.StepStage`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import warp as wp

from pluriverse.model import Contacts, Control, Model, State
from pluriverse.solvers.base import SolverBase


class StepStage:
    """Launches of your own in every step; a base class. See `Simulation.add_stage`.

    Each method only launches kernels for a list of worlds. It allocates nothing and reads nothing back, since
    it is called while a step is recorded, not while it runs. Several threads replay the recording, each for
    its own worlds, so a kernel accesses only data of its worlds. Kernels skip negative entries of the list.
    """

    is_recorded = True
    """Whether its launches are recorded with the step. It is False for a stage that runs Python code in every
    solver step, such as a network of another library. Then each solver step is replayed by itself, and
    `before_step`, `before_substep` and `after_step` are called with all worlds and the public state."""

    @property
    def is_outdated(self) -> bool:
        """Whether steps have to be recorded again, since what was recorded has changed."""
        return False

    @property
    def driven_dofs(self) -> np.ndarray:
        """Degrees of freedom that the stage drives in place of the model, on the host; none by default."""
        return np.zeros(0, dtype=np.int64)

    @property
    def drive_parameters(self) -> Mapping[str, wp.array]:
        """What the stage has in place of `DRIVE_ARRAYS` of the model, by their names there; none by default.

        Each array has an entry per degree of freedom, in the order of `driven_dofs`. A `Randomizer` draws
        these entries, and tensors show them, since those of the model are switched off.
        """
        return {}

    def drive_default(self, name: str) -> wp.array:
        """Return a new array with the values that draws of one of `drive_parameters` are relative to."""
        return wp.clone(self.drive_parameters[name])

    def mark_drives(self) -> None:
        """Mark the drives of the model that it holds off, before variants of environments write theirs."""

    def take_drives(self) -> None:
        """Take over what was written since drives were marked, and hold them off again."""

    @property
    def held_drives(self) -> Mapping[str, wp.array]:
        """Drives of the model that it holds off, by the names of their arrays; none by default.

        Each array has an entry per degree of freedom, in the order of `driven_dofs`. Snapshots have these
        values as those of the model, so that they fit simulations with and without the stage.
        """
        return {}

    def hold_drives(self) -> None:
        """Hold off the drives of the model as a snapshot has restored them; its parameters stay."""

    def drives_changed(self) -> None:
        """Take note that a stage with `driven_dofs` was added to the simulation or removed from it."""

    def set_seed(self, seed: int, *, identities: Any = None) -> None:
        """Restart the random numbers of the stage, if it draws any, from the next reset of each world on.

        Args:
            seed: Seed, 0 to 2**31 - 1.
            identities: Identity on which the numbers of each world depend, shape [world]; its index if None.

        Raises:
            ValueError: If a number is out of range, or there is not one identity per world.
        """

    def prepare(self) -> None:
        """Prepare before a step is recorded. It is called outside of recordings and launches nothing."""

    def before_step(self, worlds: wp.array[int], state: State) -> None:
        """Launch what precedes a step: with `decimation=k` once before its k solver steps.

        Args:
            worlds: World indices, shape [slot].
            state: State at the start of the step; read only.
        """

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Launch what precedes each solver step, such as an actuator that writes efforts.

        Args:
            worlds: World indices, shape [slot].
            state: State at the start of the solver step; only its `body_f` may be written to.
        """

    def after_substep(self, worlds: wp.array[int], before: State, after: State) -> None:
        """Launch what follows each solver step. The contacts are those of that step.

        Args:
            worlds: World indices, shape [slot].
            before: State at the start of the solver step; read only.
            after: Its result; read only.
        """

    def after_step(self, worlds: wp.array[int], state: State) -> None:
        """Launch what follows a step.

        Args:
            worlds: World indices, shape [slot].
            state: Result of the step; read only.
        """

    def after_reset(self, worlds: wp.array[int], mask: wp.array[bool], state: State) -> None:
        """Launch what follows a reset of some worlds.

        On a CPU resets are recorded and replayed, too, unless a stage of the simulation is not recorded.

        Args:
            worlds: World indices, shape [slot]; skip negative entries.
            mask: Selected worlds, shape [world]; empty if all of `worlds` are selected.
            state: State of the worlds now; read only.
        """

    def after_reassign(
        self, worlds: wp.array[int], mask: wp.array[bool], defaults: Mapping[str, wp.array]
    ) -> None:
        """Launch what follows when environments got other variants, before they are reset.

        Args:
            worlds: World indices, shape [slot]; skip negative entries.
            mask: Selected worlds, shape [world]; empty if all of `worlds` are selected.
            defaults: Arrays of the model that depend on variants, by name, without random changes.
        """

    def after_restore(self, worlds: wp.array[int], state: State) -> None:
        """Launch what follows `restore`: update data that were not saved with the simulation.

        Args:
            worlds: World indices, shape [slot].
            state: State of the worlds now; read only.
        """


class StagedSimulation(Protocol):
    """What a stage sees of the `Simulation` that it belongs to."""

    @property
    def model(self) -> Model:
        """The model that is simulated."""
        ...

    @property
    def solver(self) -> SolverBase:
        """The solver."""
        ...

    @property
    def stages(self) -> tuple[StepStage, ...]:
        """The stages of every step."""
        ...

    @property
    def seeding(self) -> tuple[int, Any]:
        """Seed and identities of stages that draw random numbers; see `StepStage.set_seed`."""
        ...

    @property
    def state(self) -> State:
        """The state now."""
        ...

    @property
    def control(self) -> Control:
        """Forces and drive targets for the next steps."""
        ...

    @property
    def contacts(self) -> Contacts:
        """Contacts of the last solver step."""
        ...

    @property
    def dt(self) -> float:
        """Time step of the solver [s]."""
        ...

    @property
    def decimation(self) -> int:
        """Solver steps in one step."""
        ...

    def add_stage(self, stage: StepStage) -> None:
        """Add a stage to every step."""

    def add_snapshot_array(self, name: str, array: wp.array) -> None:
        """Save and restore an array together with the simulation."""


def stage_driven_dofs(simulation: StagedSimulation) -> np.ndarray:
    """Return 1 for each degree of freedom that a stage drives in place of the model, shape [dof]."""
    result = np.zeros(simulation.model.joint_dof_count, dtype=np.int32)
    for stage in simulation.stages:
        result[stage.driven_dofs] = 1
    return result


def show_held_drives(stages: Iterable[StepStage], arrays: dict[str, wp.array]) -> dict[str, wp.array]:
    """Put the drives that stages hold off into copies of the arrays of a model, by name; return these."""
    for stage in stages:
        for name, held in stage.held_drives.items():
            values = arrays[name].numpy().copy()
            values[stage.driven_dofs] = held.numpy()
            arrays[name].assign(values)
    return arrays


def hold_restored_drives(simulation: StagedSimulation, driven_then: np.ndarray) -> None:
    """Hold off the drives that were restored, and end the efforts of stages that the simulation lacks.

    Args:
        simulation: The simulation, with the model and the control of a snapshot.
        driven_then: What `stage_driven_dofs` was when it was saved.
    """
    for stage in simulation.stages:
        stage.hold_drives()
    left = np.flatnonzero(driven_then > stage_driven_dofs(simulation))
    if left.size:
        forces = simulation.control.joint_f.numpy().copy()
        forces[left] = 0.0
        simulation.control.joint_f.assign(forces)


@contextmanager
def passing_drives_on(stages: Iterable[StepStage]) -> Iterator[None]:
    """Pass the drives that are written to the model meanwhile on to the stages that drive joints instead."""
    driving = [stage for stage in stages if stage.driven_dofs.size]
    for stage in driving:
        stage.mark_drives()
    try:
        yield
    finally:
        for stage in driving:
            stage.take_drives()
