"""Waiting for what the thread of a viewer does."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Return once a condition holds; fail if it does not within some seconds.

    They are many, since kernels may be compiled meanwhile, on a busy machine.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the viewer did not do it in time"
        time.sleep(0.02)
