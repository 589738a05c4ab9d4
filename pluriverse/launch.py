"""Launch: how kernels are put onto a device."""

import contextlib
import os
import threading
from collections.abc import Sequence
from typing import Any

import warp as wp

from pluriverse.kernel_progress import declared_module_count, install

# Threads of a block on a GPU: one warp. A thread steps a world, in a long kernel that takes many registers.
# Warp's 256 would put 1024 worlds onto 4 multiprocessors of a hundred; so they are spread over 32. Blocks of
# one warp still fill half of the places of a multiprocessor, more than such kernels have registers for.
# Without effect on a CPU.
BLOCK_DIM = 32
# Warp records one graph at a time on a CPU, and puts into it whatever any thread launches meanwhile. It loads
# modules without thought of other threads, too. So recordings and launches from Python hold this lock;
# replays of recorded graphs need none.
RECORDING = threading.RLock()
install()


if hasattr(os, "register_at_fork"):
    # A forked process has none of the other threads, and what one of them held would stay locked for ever.
    os.register_at_fork(
        before=RECORDING.acquire, after_in_parent=RECORDING.release, after_in_child=RECORDING.release
    )


def launch_kernel(
    kernel: Any,
    *,
    dim: int | Sequence[int],
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    device: Any = None,
    record_cmd: bool = False,
) -> Any:
    """Launch a kernel as `wp.launch` does, in blocks of `BLOCK_DIM` threads.

    All launches of the package go through here: a module is compiled anew for every size of blocks.
    """
    with RECORDING:
        return wp.launch(
            kernel,
            dim=dim,
            inputs=inputs,
            outputs=outputs,
            device=device,
            record_cmd=record_cmd,
            block_dim=BLOCK_DIM,
        )


def load_kernels(device: Any, *, max_workers: int) -> None:
    """Compile all kernels declared so far, or load them from the kernel cache, in parallel."""
    progress = install()
    total = declared_module_count()
    shown = contextlib.nullcontext() if progress is None else progress.loading(total)
    with RECORDING, shown:
        wp.load_module(
            "pluriverse", recursive=True, device=device, block_dim=BLOCK_DIM, max_workers=max_workers
        )
