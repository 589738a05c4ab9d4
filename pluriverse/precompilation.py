"""Precompilation: with an empty kernel cache, the first kernels are compiled while Python still reads files.

All kernels of a simulation are compiled at once, when its model is complete and it is known which ones there
are. Until then the compiler would be idle, so a thread begins with those that all simulations need. The
command line has it begin even before Python imports the rest of the package. What no step needs, but what
comes between steps, it compiles when the first steps have been made.
"""

import contextlib
import importlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import warp as wp

from pluriverse.kernel_progress import install
from pluriverse.launch import load_kernels_of

# A module that needs no other of the package. With it the headers are precompiled, which takes over a second.
_NEEDED_FIRST = "launch_list"
# Modules whose kernels do not depend on the model, in the order in which a simulation launches them.
_NEEDED = (
    *("model.drive_targets", "collision.shape_update", "simulation.statistics", "collision.broad_phase"),
    *("simulation.carry_over", "collision.idle_contacts"),
)
# The same, of kernels that are launched between steps, if at all: 1.6 s of processor time.
_NEEDED_LATER = (
    *("solvers.reset", "solvers.unfreeze", "model.indices", "model.world_list", "simulation.world_copy"),
    *("dynamics.body_acceleration", "collision.contact_kinematics", "dynamics.joint_selection"),
    *("dynamics.loops", "model.requested_copy"),
)
# Pause [s] between two modules, in which a thread that has to launch something gets the lock of launches.
YIELD_TIME = 2e-3
# Pause [s] between two looks whether the process ends, while imports or the first steps are waited for.
WAIT_TIME = 0.05
_lock = threading.Lock()
_has_begun = False
_thread: threading.Thread | None = None
_has_imported = threading.Event()
_has_stepped = threading.Event()


def begin_precompiling(device: wp.Device, *, is_importing: bool = False) -> None:
    """Begin to compile, in a thread, what every simulation on a CPU needs, unless this was done before.

    Nothing is done where it is in the kernel cache, or on a machine with one core. Where a program ended with
    its first steps, the cache lacks what is compiled after them, which again comes after the first steps.

    Args:
        device: Device of the simulations to come.
        is_importing: Whether the caller goes on to import the package. Then the thread imports nothing of it
            before a second call, without this: of two threads that import modules that import each other,
            Python lets one see modules that are not complete.
    """
    global _has_begun, _thread
    if not is_importing:
        _has_imported.set()
    with _lock:
        if _has_begun or not device.is_cpu or (os.cpu_count() or 1) < 2:
            return
        _has_begun = True
    module = wp.get_module(f"pluriverse.{_NEEDED_FIRST}")
    cache = Path(wp.config.kernel_cache_dir or "")  # set, since there is a device
    is_cached = (cache / module.get_module_identifier(block_dim=1)).exists()
    names = () if is_cached else (_NEEDED_FIRST, *_NEEDED)
    if names or not _was_compiled_later(cache):
        _thread = threading.Thread(target=_precompile, args=(device, names), name="pluriverse precompilation")
        _thread.start()


def modules_compiled_later() -> list[str]:
    """Return the modules of Warp that will be compiled after the first steps."""
    if _thread is None or not _thread.is_alive():
        return []
    return [f"pluriverse.{name}" for name in _NEEDED_LATER]


def go_on_precompiling() -> None:
    """Say that steps have been made, so that nobody waits for a first one any more."""
    if not _has_stepped.is_set():
        _has_imported.set()
        _has_stepped.set()


def _was_compiled_later(cache: Path) -> bool:
    """Return whether the cache has what is compiled after the first steps, be it of another version."""
    folders = [folder.name for folder in cache.iterdir()] if cache.exists() else []
    return all(
        any(folder.startswith(f"wp_pluriverse.{name}_") for folder in folders) for name in _NEEDED_LATER
    )


def _precompile(device: wp.Device, names: Sequence[str]) -> None:
    progress = install()
    with contextlib.nullcontext() if progress is None else progress.loading():
        for name in names:
            if not threading.main_thread().is_alive():
                return  # the process ends, and would wait
            if name != _NEEDED_FIRST and not _happens(_has_imported):
                return
            _load(name, device)
    if not (_happens(_has_imported) and _happens(_has_stepped)):
        return
    for name in _NEEDED_LATER:
        if not threading.main_thread().is_alive():
            return
        _load(name, device)


def _happens(event: threading.Event) -> bool:
    """Wait for an event; return False where the process ends without it."""
    while not event.wait(WAIT_TIME):
        if not threading.main_thread().is_alive():
            return False
    return True


def _load(name: str, device: wp.Device) -> None:
    importlib.import_module(f"pluriverse.{name}")
    load_kernels_of(f"pluriverse.{name}", device)
    time.sleep(YIELD_TIME)
