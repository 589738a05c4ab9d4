"""Compile lock: of processes that need the same module of kernels, one compiles it, and the others wait.

Two jobs that are started at once, or workers that run tests, would otherwise each compile all of them. A lock
is a hint only: Warp moves what it compiled into place when it is complete, so that to go on without the lock
costs time, but never gives another result.
"""

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import warp as wp

try:
    import fcntl
except ImportError:  # Windows, where every process compiles for itself
    fcntl = None  # type: ignore[assignment]

# Longest time [s] to wait for another process: several times what the largest module takes on a busy machine.
# The system releases the lock of a process that ends, but not that of one that is suspended.
WAIT_LIMIT = 120.0
WAIT_TIME = 0.02  # s between two looks at the lock


@contextlib.contextmanager
def holding(path: Path, wait_limit: float = WAIT_LIMIT) -> Iterator[bool]:
    """Hold the lock of a file meanwhile, which is removed at the end; yield whether it is held.

    It is not where nobody can hold it, as on some network file systems, or where another process keeps it for
    longer than `wait_limit` [s].
    """
    if fcntl is None:
        yield False
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # such as a folder that cannot be written to
        yield False
        return
    try:
        is_held = _acquire(descriptor, wait_limit)
        try:
            yield is_held
        finally:
            if is_held:
                # Those who wait hold the removed file one after another. Who comes now makes a new one.
                with contextlib.suppress(OSError):
                    path.unlink()
                # Said in so many words, since a forked process may have the file open, too.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, wait_limit: float) -> bool:
    """Wait for the lock of an open file; return whether it is held now."""
    deadline = time.monotonic() + wait_limit
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(WAIT_TIME)
        except OSError:  # a file system without locks
            return False


def install() -> None:
    """Have Warp compile a module only if no other process does, from now on."""
    module_type = getattr(getattr(getattr(wp, "_src", None), "context", None), "Module", None)
    compile_module = getattr(module_type, "_compile", None)
    if module_type is None or compile_module is None or hasattr(compile_module, "waits"):
        return  # Warp compiles in another way, or this was done before

    @functools.wraps(compile_module)
    def compile_alone(self: Any, *arguments: Any, **options: Any) -> Any:
        # A module that is compiled in order to be loaded: its device, its folder, and its file.
        path = Path(*arguments[1:3]) if len(arguments) > 2 else None
        if path is None or not wp.config.cache_kernels or path.exists():
            return compile_module(self, *arguments, **options)
        with holding(path.parent.with_name(f"{path.parent.name}.lock")):
            # Nothing is compiled where another process has done so meanwhile.
            return compile_module(self, *arguments, **options)

    compile_alone.waits = True  # type: ignore[attr-defined]
    module_type._compile = compile_alone
