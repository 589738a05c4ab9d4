"""Garbage collection: paused while much is made that stays.

Python looks for unreachable cycles of objects whenever it has made so many more than it has freed. Where
kernels are declared and translated nearly all stay: their syntax trees, by the hundred thousand. Going
through these takes a third to a half of the time from a scene to its first step with a filled kernel cache.
"""

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

# New objects of a pause from which they count as old: kernels that are declared make 40,000 and more, a
# simulation whose kernels are there some thousands. Whatever else is new counts as old with them, so programs
# that make simulation after simulation would hardly look for their own garbage again.
MANY_OBJECTS = 20_000

_lock = threading.Lock()
# How many pauses there are at the moment, and whether the first of them switched the collection off.
_pause_count = 0
_was_enabled = False


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Collect no garbage meanwhile. Threads may ask for this at once: the last one to end resumes."""
    global _pause_count, _was_enabled
    with _lock:
        if _pause_count == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pause_count += 1
    try:
        yield
    finally:
        with _lock:
            _pause_count = max(_pause_count - 1, 0)
            if _pause_count == 0 and _was_enabled:
                _count_as_old()
                gc.enable()


def _count_as_old() -> None:
    """Let what there is be looked at with what has been there for long, not at once as if it were new."""
    if gc.get_count()[0] < MANY_OBJECTS:
        return
    if gc.get_freeze_count() == 0:  # otherwise the user has frozen objects, which are to stay so
        gc.freeze()
        gc.unfreeze()


def _resume_in_child() -> None:
    """Collect again in a forked process, which has none of the threads that would do so."""
    global _lock, _pause_count
    _lock = threading.Lock()
    if _pause_count > 0 and _was_enabled:
        gc.enable()
    _pause_count = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
