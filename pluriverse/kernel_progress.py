"""Kernel progress: one bar while kernels are compiled, in place of a line of Warp for each module.

Warp reports every module that it has loaded to its logger. The logger here shows those of this package as
one bar, whose seconds go on while a module is compiled, and hands on everything else. Nothing is shown of
modules that come from the cache, nor where Warp is told to be quiet (`wp.config.log_level`), and a logger set
by others stays. `pluriverse.config.verbose` asks for more or for nothing.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import warp as wp

from pluriverse.config import verbosity

_LOADED = re.compile(r"\s*Module pluriverse\S* .*load on device .* took ([\d.]+) ms\s*\((\w+)\)")
BAR_WIDTH = 24
# Time [s] after which loading is shown though no module was compiled yet. All of a scene are loaded from the
# cache in less, and the first one that is compiled takes longer.
PATIENCE = 1.0
LINE_WIDTH = 72  # of the longest line that is written over
TICK_TIME = 0.5  # s between updates of the bar


class KernelProgress:
    """A logger of Warp that shows the kernels of this package that are compiled as one bar.

    Args:
        base: Logger that gets everything else.
        stream: Where the bar goes; standard error if None.
    """

    def __init__(self, base: Any, stream: Any = None):
        self._base, self._stream = base, stream
        self._lock = threading.Lock()
        self._begin = time.perf_counter()
        self._loaded = self._compiled = 0
        self._compile_time = 0.0  # s, of all modules, also of those compiled at once
        self._total: int | None = None
        self._loader_count = 0
        self._is_shown = False
        self.is_muted = False
        """Whether messages of Warp other than warnings and errors are dropped."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin_in_child(self) -> None:
        """Take a lock of its own in a forked process, where no other thread loads or releases the old one."""
        self._lock, self._loader_count, self._is_shown = threading.Lock(), 0, False

    def debug(self, message: str) -> None:
        """Hand on."""
        if not self.is_muted and verbosity() is not False:
            self._base.debug(message)

    def info(self, message: str) -> None:
        """Count a module of this package, hand on everything else."""
        loaded = _LOADED.match(message)
        if loaded is None:
            if not self.is_muted and verbosity() is not False:
                self._base.info(message)
            return
        if verbosity():
            self._base.info(message)
            return
        with self._lock:
            self._loaded += 1
        if loaded[2] == "compiled":
            self.count(1e-3 * float(loaded[1]))

    def count(self, compile_time: float) -> None:
        """Count a module that was compiled in so much time [s]."""
        with self._lock:
            self._compiled += 1
            self._compile_time += compile_time
            if verbosity() is None:
                self._show()

    def warning(self, message: str, category: Any = None, stacklevel: int = 1) -> None:
        """Hand on."""
        self._base.warning(message, category, stacklevel + 1)

    def error(self, message: str) -> None:
        """Hand on."""
        self._base.error(message)

    @contextmanager
    def loading(self, total: int | None = None) -> Iterator[None]:
        """Show the progress of what is loaded inside, and end the bar then.

        Threads may do so at once; who knows the total ends the bar.
        """
        with self._lock:
            if total is not None:
                self._loaded, self._total = 0, total
            self._loader_count += 1
            if not self._is_shown and self._loader_count == 1:
                self._begin, self._compiled, self._compile_time = time.perf_counter(), 0, 0.0
        stop = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(stop,), name="pluriverse progress", daemon=True)
        ticker.start()
        try:
            yield
        finally:
            stop.set()
            ticker.join()
            with self._lock:
                self._loader_count -= 1
                if total is not None:
                    self._total = None
                if total is not None or self._loader_count == 0:
                    self._end()

    def _tick(self, stop: threading.Event) -> None:
        """Keep the bar up to date until `stop` is set."""
        while not stop.wait(TICK_TIME):
            with self._lock:
                is_late = time.perf_counter() - self._begin > PATIENCE
                if is_late and verbosity() is None and wp.config.log_level <= wp.LOG_INFO:
                    self._show()

    def _show(self) -> None:
        stream = self._stream or sys.stderr
        if not _is_redrawn(stream):
            if not self._is_shown:
                print("Pluriverse compiles kernels, which it keeps for later runs.", file=stream, flush=True)
            self._is_shown = True
            return
        seconds = time.perf_counter() - self._begin
        bar = f"{self._compiled}"
        if self._total:
            done = min(self._loaded, self._total)
            filled = BAR_WIDTH * done // self._total
            bar = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done}/{self._total}"
        print(f"\rPluriverse compiles kernels {bar}, {seconds:.0f} s ", end="", file=stream, flush=True)
        self._is_shown = True

    def _end(self) -> None:
        if not self._is_shown:
            return
        stream = self._stream or sys.stderr
        # What else is prepared meanwhile, as signed distances of meshes, is none of the compiler's time.
        seconds = min(self._compile_time, time.perf_counter() - self._begin)
        text = f"Pluriverse compiled {self._compiled} modules in {seconds:.0f} s."
        if _is_redrawn(stream):
            text = f"\r{text:<{LINE_WIDTH}}"
        if self._compiled:
            print(text, file=stream, flush=True)
        elif _is_redrawn(stream):
            print(f"\r{'':<{LINE_WIDTH}}\r", end="", file=stream, flush=True)  # a slow disk
        self._begin, self._is_shown = time.perf_counter(), False


def _is_redrawn(stream: Any) -> bool:
    """Return whether a line can be written over another one: in terminals, and in notebooks."""
    return bool(stream.isatty()) or type(stream).__module__.startswith("ipykernel")


def install() -> KernelProgress | None:
    """Make this logger that of Warp, unless another one was set; return it."""
    from warp._src.logger import LoggerBasic, get_logger

    active = get_logger()
    if isinstance(active, KernelProgress):
        return active
    if type(active) is not LoggerBasic:
        return None
    progress = KernelProgress(active)
    wp.set_logger(progress)
    return progress


def declared_modules() -> list[Any] | None:
    """Return the modules of this package that have kernels so far, as Warp's; None where Warp does not tell.

    Half of all modules hold nothing but functions for kernels of others: to compile one takes 80 ms and gives
    nothing.
    """
    modules = getattr(getattr(getattr(wp, "_src", None), "context", None), "user_modules", None)
    if modules is None:
        return None
    # A copy: another thread may import a module that has kernels.
    ours = [module for name, module in list(modules.items()) if str(name).startswith("pluriverse")]
    return [module for module in ours if len(getattr(module, "kernels", (0,)))]
