"""Clock: stop `mj_step` from reading the time some twenty times a step, as MuJoCo's Python package makes it.

The timers of the worker threads' data are not accessible, but for a small robot they take 5 to 10 % of a
step.
"""

import ctypes
import threading
import weakref
from typing import Any

import mujoco

from pluriverse.solvers.mujoco.cpu.library import load_library

# MuJoCo's pointer to its clock function; while it is null, timers count calls but no time.
POINTER = "mjcb_time"

_lock = threading.RLock()  # a solver may be collected, and end its stop, while another one begins
_stops = 0  # engines that exist
_clock: int | None = None  # what the pointer was before the first of them


def clock_pointer() -> ctypes.c_void_p | None:
    """Return MuJoCo's pointer to its clock function, None if a version has none."""
    try:
        return ctypes.c_void_p.in_dll(load_library(), POINTER)
    except ValueError:
        return None


def stop_clock(owner: Any) -> None:
    """Stop MuJoCo's clock while `owner` exists, unless a clock function was set from Python.

    `mjData.timer` then counts calls, but no durations, in all of the process.
    """
    global _stops, _clock
    pointer = clock_pointer()
    if pointer is None or mujoco.get_mjcb_time() is not None:
        return
    with _lock:
        if _stops == 0:
            _clock = pointer.value
            pointer.value = None
        _stops += 1
    weakref.finalize(owner, _end_stop)


def _end_stop() -> None:
    global _stops
    pointer = clock_pointer()
    with _lock:
        _stops -= 1
        if _stops == 0 and pointer is not None and pointer.value is None:
            pointer.value = _clock
