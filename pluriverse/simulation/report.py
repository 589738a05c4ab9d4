"""Report: the figures of a simulation so far."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SimulationReport:
    """The figures of a simulation since it began, or since `Simulation.clear_report`."""

    world_count: int
    """Number of worlds."""
    step_count: int
    """Solver steps that each world has made."""
    simulated_time: float
    """Simulated time of each world [s]."""
    wall_time: float
    """Time spent in `Simulation.step` [s], without recording and compiling."""
    contact_count_mean: float
    """Contacts of a world in a step, mean over worlds and steps."""
    contact_count_peak: int
    """Largest number of contacts of a world in a step."""
    iteration_count_mean: float
    """Iterations of the solver for a world in a step, mean over worlds and steps."""
    iteration_count_peak: int
    """Largest number of solver iterations for a world in a step."""
    unconverged_step_count: int
    """Steps that ended without convergence, summed over worlds."""
    approximated_step_count: int
    """Steps in which contacts that slide met Coulomb's law approximately, summed over worlds: of `SolverSAP`,
    in worlds of many contacts, or where no solution of the law was found. Some contact that pushes opened by
    1 mm/s more than the law allows, or less."""
    truncated_step_count: int
    """Steps that lost contacts for lack of slots, summed over worlds."""
    readmitted_step_count: int
    """Steps that were solved again because an omitted contact could have acted, summed over worlds. This
    costs time and does not change the result."""
    frozen_worlds: tuple[int, ...]
    """Worlds that are frozen now."""

    @property
    def world_steps_per_second(self) -> float:
        """Solver steps of all worlds together, per second of wall time [1/s]."""
        return self.world_count * self.step_count / self.wall_time if self.wall_time > 0.0 else 0.0

    @property
    def real_time_ratio(self) -> float:
        """Simulated seconds of all worlds together, per second of wall time."""
        return self.world_count * self.simulated_time / self.wall_time if self.wall_time > 0.0 else 0.0
