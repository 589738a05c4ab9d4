"""The loop: states, control, contacts and solver, recorded once and replayed on all cores.

`Simulation` is public as `pluriverse.Simulation`.
"""

from pluriverse.simulation.report import SimulationReport
from pluriverse.simulation.simulation import Simulation as Simulation
from pluriverse.simulation.snapshot import SimulationSnapshot
from pluriverse.stages import StepStage

__all__ = ["SimulationReport", "SimulationSnapshot", "StepStage"]
