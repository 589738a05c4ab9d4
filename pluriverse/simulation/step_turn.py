"""Step turn: who may step a simulation now, and with whose solver."""

import threading

from pluriverse.solvers import SolverBase
from pluriverse.warnings import SimulationError


class StepTurn:
    """Lets one call at a time step a simulation, inside its `with`.

    It is what the solver belongs to, for as long as the simulation lives, until `close`, or until another
    simulation is made with the solver. The other one begins with no world frozen.

    Args:
        solver: Solver of the simulation.
    """

    is_interrupted: bool
    """Whether a call has ended with worlds at different times."""

    def __init__(self, solver: SolverBase) -> None:
        self._solver = solver
        self._lock = threading.Lock()
        self._is_given_up = self.is_interrupted = False
        if solver.was_held:
            if isinstance(solver.holder, StepTurn):
                solver.holder.close()
            solver.unfreeze()
        solver.hold(self)

    def close(self) -> None:
        """Let go of the solver; the next step takes it back, if nobody else has taken it."""
        if self._solver.holder is self:
            self._solver.hold(None)
        self._is_given_up = True

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise SimulationError(
                "Simulation.step: another call is stepping this Simulation, in another thread or around this "
                "one. Let it return first; to step in several threads, make a Simulation for each."
            )
        if self.is_interrupted or self._is_given_up:
            try:
                self._check()
            except SimulationError:
                self._lock.release()
                raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _check(self) -> None:
        """Raise if no step may be made; take the solver back after `close`."""
        if self.is_interrupted:
            raise SimulationError(
                "Simulation.step: an earlier call was interrupted, so worlds stand at different times. "
                "Call reset() or restore() first."
            )
        if self._solver.holder not in (None, self):
            raise SimulationError(
                "Simulation.step: the solver of this Simulation was given to another one, which was made "
                "later. Step that one, or make each with a solver of its own."
            )
        self._solver.hold(self)
        self._is_given_up = False
