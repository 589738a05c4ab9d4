"""SolverMuJoCo: worlds stepped by MuJoCo on a CPU, and by MuJoCo Warp on a GPU."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluriverse.mujoco_attributes.choices import SolrefMode
    from pluriverse.solvers.mujoco.caveats import MujocoCaveatWarning
    from pluriverse.solvers.mujoco.engine import EngineOptions
    from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
    from pluriverse.solvers.mujoco.options import MujocoOptions
    from pluriverse.solvers.mujoco.solver import SolverMuJoCo as SolverMuJoCo

__all__ = ["EngineOptions", "MujocoCaveatWarning", "MujocoGroup", "MujocoOptions", "SolrefMode"]

_MODULES = {
    "EngineOptions": "solvers.mujoco.engine",
    "MujocoCaveatWarning": "solvers.mujoco.caveats",
    "MujocoGroup": "solvers.mujoco.mapping.group",
    "MujocoOptions": "solvers.mujoco.options",
    "SolrefMode": "mujoco_attributes.choices",
    "SolverMuJoCo": "solvers.mujoco.solver",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: declaring the attributes of assets needs no engine, and the engines import MuJoCo.
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'pluriverse.solvers.mujoco' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"pluriverse.{module}"), name)
    globals()[name] = value
    return value
