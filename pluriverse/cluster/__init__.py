"""Many processes and machines: fleets of worlds, evaluations and sweeps, on Ray.

Needs the extra `pluriverse[cluster]`; Ray is loaded on first use.
"""

from pluriverse.cluster.errors import ClusterError, WorkerTaskError
from pluriverse.cluster.evaluation import evaluate, sweep
from pluriverse.cluster.fleet import Fleet
from pluriverse.cluster.rows import Rows

__all__ = ["ClusterError", "Fleet", "Rows", "WorkerTaskError", "evaluate", "sweep"]
