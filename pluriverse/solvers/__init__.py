"""Solvers: everything that moves a state by a time step."""

import importlib
from typing import Any

from pluriverse.newton_names import missing
from pluriverse.solvers.base import SolverBase

__all__ = ["SolverBase"]

# Also found here, as in Newton; loaded on first use.
_MODULES = {"SolverMuJoCo": "pluriverse.solvers.mujoco", "SolverSAP": "pluriverse.solvers.sap"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise missing("solvers", name, kind="module")
    return getattr(importlib.import_module(_MODULES[name]), name)
