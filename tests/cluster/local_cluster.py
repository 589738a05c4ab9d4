"""Ray on this machine, also where the machine is busy."""

from collections.abc import Callable
from typing import TypeVar

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
