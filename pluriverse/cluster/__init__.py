"""Many processes and machines: fleets of worlds and environments, evaluations and sweeps, on Ray.

Needs the extra `pluriverse[cluster]`; Ray is loaded on first use. `FleetVectorEnv` needs `learn` too.
"""

from typing import TYPE_CHECKING, Any

from pluriverse.cluster.errors import ClusterError, WorkerTaskError
from pluriverse.cluster.evaluation import evaluate, sweep
from pluriverse.cluster.fleet import Fleet
from pluriverse.cluster.rows import Rows

if TYPE_CHECKING:
    from pluriverse.cluster.vector_env import FleetVectorEnv, Transition

__all__ = [
    "ClusterError",
    "Fleet",
    "FleetVectorEnv",
    "Rows",
    "Transition",
    "WorkerTaskError",
    "evaluate",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in ("FleetVectorEnv", "Transition"):
        raise AttributeError(f"module 'pluriverse.cluster' has no attribute {name!r}")
    try:
        from pluriverse.cluster import vector_env
    except ModuleNotFoundError as error:
        raise ImportError(
            f"pluriverse.cluster.{name} needs {error.name}: pip install 'pluriverse[learn,cluster]'"
        ) from error
    return getattr(vector_env, name)
