"""Sensing: the sensors of a model as a stage of the steps of a simulation."""

import warnings
from typing import Any

import warp as wp

from pluriverse.model import State
from pluriverse.sensors.model_sensors import ModelSensors
from pluriverse.stages import StepStage, stage_driven_dofs
from pluriverse.warnings import SensorWarning

# Sensors that a warning lists by name; it only counts the rest.
_SENSORS_NAMED = 6


class SensorStage(StepStage):
    """Measures in every step: after its last solver step, or after each solver step if there are delays.

    Args:
        simulation: The simulation.
    """

    def __init__(self, simulation: Any):
        self.sensors = ModelSensors(simulation.model)
        seed, identities = simulation.seeding
        self.set_seed(seed, identities=identities)
        self._simulation = simulation
        self._substep = 0
        self._stage_driven: Any = wp.array(
            stage_driven_dofs(simulation), dtype=wp.int32, device=simulation.model.device
        )
        self._version = self.sensors.version
        unread = self.sensors.unread_forces
        if unread:
            warnings.warn(
                SensorWarning(
                    f"force and torque sensors do not know the forces of {unread}, which this model has: on "
                    "bodies between such a constraint and the root they read what joints would carry without "
                    "it. Measure on other bodies, or read the contact forces instead."
                ),
                stacklevel=4,
            )

    def begin(self, worlds: wp.array[int]) -> None:
        """Measure the worlds in their present state; warn of what only the step that led to it could give."""
        simulation, sensors = self._simulation, self.sensors
        self.prepare()
        step_count = simulation.step_count
        sensors.measure_state(
            worlds, simulation.state, control=simulation.control, start_time=step_count * simulation.dt
        )
        unknown = sensors.forget_step() if step_count else []
        if unknown:
            named = ", ".join(repr(name) for name in unknown[:_SENSORS_NAMED])
            rest = f" and {len(unknown) - _SENSORS_NAMED} more" if len(unknown) > _SENSORS_NAMED else ""
            warnings.warn(
                SensorWarning(
                    f"Simulation.sensors: first used after {step_count} solver step(s), in which nothing was "
                    f"measured. Accelerations, forces and contacts belong to a step, so {named}{rest} read "
                    "NaN until the next one. Use simulation.sensors once before the first step."
                ),
                stacklevel=3,
            )

    @property
    def is_outdated(self) -> bool:
        """Whether noise was set since the step was recorded."""
        return self._version != self.sensors.version

    def prepare(self) -> None:
        """Allocate the history for delays, and add the arrays of the sensors to snapshots."""
        simulation, sensors = self._simulation, self.sensors
        every = 1 if sensors.samples_every_substep else simulation.decimation
        sensors.prepare(simulation.dt * every)
        for name, array in sensors.snapshot_arrays.items():
            simulation.set_snapshot_array(name, array)
        self._version = sensors.version

    def drives_changed(self) -> None:
        """Look which stages drive joints."""
        self._stage_driven.assign(stage_driven_dofs(self._simulation))

    def set_seed(self, seed: int, *, identities: Any = None) -> None:
        """Restart noise, bias and delays."""
        self.sensors.set_seed(seed, identities=identities)

    def before_step(self, worlds: wp.array[int], state: State) -> None:
        """Start counting solver steps."""
        self._substep = 0

    def after_substep(self, worlds: wp.array[int], before: State, after: State) -> None:
        """Measure after the last solver step, or after each."""
        simulation, sensors = self._simulation, self.sensors
        self._substep += 1
        every = 1 if sensors.samples_every_substep else simulation.decimation
        if self._substep % every:
            return
        solver = simulation.solver
        sensors.measure_step(
            worlds,
            before,
            after,
            simulation.control,
            simulation.contacts,
            simulation.dt,
            elapsed=simulation.dt * every,
            world_frozen=solver.world_frozen,
            steps_body_axes=solver.steps_body_axes,
            has_explicit_drives=solver.has_explicit_drives,
            stage_driven=self._stage_driven,
        )

    def after_reset(self, worlds: wp.array[int], mask: wp.array[bool], state: State) -> None:
        """Measure the worlds in their present state."""
        self.sensors.measure_state(worlds, state, mask=mask, control=self._simulation.control)
