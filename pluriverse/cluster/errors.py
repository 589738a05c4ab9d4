"""Errors of worlds that are stepped by many processes."""


class ClusterError(RuntimeError):
    """Workers cannot be had, do not fit the driver, or were lost more than once over the same work."""


class WorkerTaskError(ClusterError):
    """Work failed on a worker for a reason of its own, which doing it again would not change."""
