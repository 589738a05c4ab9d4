"""Ray on this machine, also where the machine is busy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

Started = TypeVar("Started")

# What Ray leaves to its processes, and that none of them is ended for the memory that other programs take.
PATIENCE = {
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_gcs_server_port_wait_time_s": "600",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_worker_niceness": "0",  # or tests beside these leave them a thirtieth of a core
}
ATTEMPT_COUNT = 5


def started(start: Callable[[], Started]) -> Started:
    """Return what starts a node of Ray.

    A node ends where its agents, which are programs in Python, take over 15 s to start, and nothing changes
    that time. The next attempt finds their files in memory.
    """
    for _ in range(ATTEMPT_COUNT - 1):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return start()


@contextmanager
def patience() -> Iterator[None]:
    """Let clusters that begin here leave minutes to their processes, and end them."""
    import ray

    from pluriverse.cluster import farm, part

    if ray.is_initialized():  # by a test of another room, with fewer places
        ray.shutdown()
    with pytest.MonkeyPatch.context() as patch:
        # Workers start when they are asked for, not one for each of the CPUs at once.
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        for name, value in PATIENCE.items():
            patch.setenv(name, value)
        for module in (farm, part):
            patch.setattr(module, "START_TIMEOUT", 600.0)
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def cluster_of_this_process(worker_count: int) -> Iterator[None]:
    """Start the cluster that a fleet of so many workers would start here, and end it."""
    from pluriverse.cluster.runtime import connect

    with patience():
        started(lambda: connect(None, worker_count, 1.0))
        yield
