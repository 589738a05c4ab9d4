"""Waiting for what the thread of a viewer does."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return once a condition holds; fail if it does not within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the viewer did not do it in time"
        time.sleep(0.02)
