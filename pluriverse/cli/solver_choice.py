"""The solver of a command."""

import enum
from typing import Any


class SolverChoice(enum.StrEnum):
    """Solvers by their names on the command line."""

    SAP = "sap"
    MUJOCO = "mujoco"


def make_solver(choice: SolverChoice, scene: Any) -> Any:
    """Return the solver for a loaded scene; that of SAP takes the options of the scene."""
    if choice is SolverChoice.SAP:
        return scene.solver()
    from pluriverse.solvers.mujoco import SolverMuJoCo

    return SolverMuJoCo(scene.model)
