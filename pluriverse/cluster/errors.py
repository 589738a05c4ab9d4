"""Errors of worlds that are stepped by many processes."""

MEMORY_REMEDY = "It may need more memory: give it fewer worlds, with more workers on more nodes."


class ClusterError(RuntimeError):
    """Workers are unavailable, do not match the driver, or were lost more than once over the same work."""


class WorkerTaskError(ClusterError):
    """Work failed on a worker for its own reason, which a retry would not change."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether work failed for lack of memory, which another worker may have.

    Warp and PyTorch raise `RuntimeError` then, so their words decide.
    """
    text = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError)
        and any(words in text for words in ("failed to allocate", "can't allocate memory", "out of memory"))
    )
