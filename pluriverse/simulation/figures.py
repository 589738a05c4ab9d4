"""Figures: the content of a report, counted since it was last cleared."""

import numpy as np
import warp as wp

from pluriverse.simulation.report import SimulationReport
from pluriverse.simulation.statistics import Statistics
from pluriverse.solvers import SolverBase


class Figures:
    """The figures of a simulation so far.

    Args:
        solver: Solver, with its counters per world.
        statistics: Sums over all steps.
    """

    def __init__(self, solver: SolverBase, statistics: Statistics) -> None:
        self._solver = solver
        self._statistics = statistics
        self.clear(0)

    def clear(self, step_count: int) -> None:
        """Restart after `step_count` solver steps."""
        self._statistics.clear()
        self._step_start = step_count
        self._unconverged_start = _total(self._solver.unconverged_step_count)
        self._readmitted_start = _total(self._solver.readmitted_step_count)
        self._approximated_start = _total(self._solver.approximated_step_count)
        self._truncated_start = _total(self._solver.truncated_step_count)
        self.wall_time = 0.0
        """Time spent in steps [s]."""

    def report(self, step_count: int, dt: float, world_count: int) -> SimulationReport:
        """Return the figures after so many solver steps of `dt` [s] in so many worlds."""
        statistics, solver = self._statistics, self._solver
        step_count -= self._step_start
        world_step_count = max(step_count * world_count, 1)
        return SimulationReport(
            world_count=world_count,
            step_count=step_count,
            simulated_time=step_count * dt,
            wall_time=self.wall_time,
            contact_count_mean=float(statistics.contact_total.numpy().sum()) / world_step_count,
            contact_count_peak=int(statistics.contact_peak.numpy().max(initial=0)),
            iteration_count_mean=float(statistics.iteration_total.numpy().sum()) / world_step_count,
            iteration_count_peak=int(statistics.iteration_peak.numpy().max(initial=0)),
            unconverged_step_count=_total(solver.unconverged_step_count) - self._unconverged_start,
            readmitted_step_count=_total(solver.readmitted_step_count) - self._readmitted_start,
            approximated_step_count=_total(solver.approximated_step_count) - self._approximated_start,
            truncated_step_count=_total(solver.truncated_step_count) - self._truncated_start,
            frozen_worlds=tuple(np.flatnonzero(solver.world_frozen.numpy()).tolist()),
        )


def _total(counts: wp.array[int]) -> int:
    return int(counts.numpy().sum(dtype=np.int64))
