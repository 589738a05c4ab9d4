"""Errors of worlds that are stepped by many processes."""

MEMORY_REMEDY = "It may need more memory: give it fewer worlds, with more workers on more nodes."


class ClusterError(RuntimeError):
    """Workers cannot be had, do not fit the driver, or were lost more than once over the same work."""


class WorkerTaskError(ClusterError):
    """Work failed on a worker for a reason of its own, which doing it again would not change."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether work failed since memory could not be had, which it may be elsewhere.

    Warp and PyTorch raise `RuntimeError` then, so their words decide.
    """
    text = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError)
        and any(words in text for words in ("failed to allocate", "can't allocate memory", "out of memory"))
    )
