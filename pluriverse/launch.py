"""Launch: how kernels are put onto a device."""

import contextlib
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, MutableMapping, Sequence
from typing import Any, ParamSpec, TypeVar

import warp as wp

from pluriverse.compile_lock import install as install_lock
from pluriverse.function_arguments import install as install_short_search
from pluriverse.kernel_progress import declared_modules, install
from pluriverse.kernel_source import install as install_simplification
from pluriverse.launch_list import LaunchList, is_supported, make_launches
from pluriverse.overload_search import install as install_memory
from pluriverse.precompiled_headers import share_headers
from pluriverse.scratch import Borrowing

Kept = TypeVar("Kept")
Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")
# Threads of a block on a GPU: one warp. A thread steps a world, in a long kernel that takes many registers.
# Warp's 256 would put 1024 worlds onto 4 multiprocessors of a hundred; so they are spread over 32. Blocks of
# one warp still fill half of the places of a multiprocessor, more than such kernels have registers for.
# Without effect on a CPU.
BLOCK_DIM = 32
# Warp records one graph at a time on a CPU, and puts into it whatever any thread launches meanwhile. It loads
# modules without thought of other threads, too. So recordings and launches from Python hold this lock;
# replays of recorded graphs need none.
RECORDING = threading.RLock()
# Nor does Warp think of them when kernels are declared, or when it is used for the first time. That is a lock
# of its own: modules that are imported declare kernels, and who holds `RECORDING` may wait for an import. Who
# holds this one neither launches nor imports.
_DECLARING = threading.RLock()
# Modules that take longest to compile: 8, 4, 4, 2, 2, 2, 1 and 1 s of 32 to 36. Begun last, one of them would
# keep one core busy when the others have nothing left to do. One whose source Warp writes in less time goes
# ahead of them, since Warp writes one source at a time.
_COMPILED_FIRST = (
    "pluriverse.dynamics.body_placing",
    "pluriverse.solvers.sap.newton",
    "pluriverse.collision.convex",
    "pluriverse.dynamics.tree_motion",
    "pluriverse.solvers.sap.candidates",
    "pluriverse.collision.box_box",
    "pluriverse.solvers.sap.contact.",
    "pluriverse.dynamics.integration",
)
# Names of the modules whose kernels were launched so far, be it for no worlds.
_launched: set[str] = set()
# The list that launches go into while `record` makes one; whoever reads or writes it holds RECORDING.
_list: LaunchList | None = None
install()
install_lock()
install_simplification()
install_memory()
install_short_search()


def _initialize_once() -> None:
    """Have Warp initialize itself in one of the threads that need it first, while the others wait.

    Otherwise each makes a runtime and devices of its own, and a device of one is none of the other's.
    """
    context = getattr(getattr(wp, "_src", None), "context", None)
    initialize = getattr(context, "init", None)
    if context is None or initialize is None or getattr(context, "runtime", None) is not None:
        return  # Warp is initialized in another way, or already

    @functools.wraps(initialize)
    def initialize_alone() -> None:
        with _DECLARING:
            initialize()
            context.init = wp.init = initialize  # most calls of Warp come here, and need no lock any more

    context.init = wp.init = initialize_alone


_initialize_once()


def _acquire_locks() -> None:
    RECORDING.acquire()
    _DECLARING.acquire()


def _release_locks() -> None:
    _DECLARING.release()
    RECORDING.release()


if hasattr(os, "register_at_fork"):
    # A forked process has none of the other threads, and what one of them held would stay locked for ever.
    os.register_at_fork(before=_acquire_locks, after_in_parent=_release_locks, after_in_child=_release_locks)


def made_once(make: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """Decorate a function that declares kernels, or functions and types for them: keep what it makes.

    `functools.cache` lets two threads that come first make one kernel each, and of two equal kernels Warp
    prepares one. The other fails at every launch, for as long as the process lives. What was made is found
    without a lock.
    """
    made = functools.cache(make)

    @functools.wraps(make)
    def make_alone(*arguments: Arguments.args, **options: Arguments.kwargs) -> Made:
        with _DECLARING:
            return made(*arguments, **options)  # type: ignore[arg-type]

    return functools.cache(make_alone)  # type: ignore[return-value]


def uninterrupted(stage: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """Decorate a function whose launches pass data on in arrays that are kept for a model.

    No other thread launches anything in between, such as the same for another state of the model. On a CPU
    nobody waits longer for it, since kernels that are launched from Python run one after the other anyway.
    """

    @functools.wraps(stage)
    def launch_together(*arguments: Arguments.args, **options: Arguments.kwargs) -> Made:
        with RECORDING:
            return stage(*arguments, **options)

    return launch_together


def fill_struct(kind: Any, *holders: Any) -> Any:
    """Return a Warp struct whose fields are the arrays of those names, of the first object that has each.

    Raises:
        AttributeError: If none has one.
    """
    result = kind()
    for name in kind.vars:
        holder = next((one for one in holders[:-1] if hasattr(one, name)), holders[-1])
        setattr(result, name, getattr(holder, name))
    return result


def same_memory(
    array: wp.array,
    dtype: Any,
    shape: tuple[int, ...],
    *,
    strides: tuple[int, ...] | None = None,
    byte_offset: int = 0,
) -> Any:
    """Return (part of) the memory of an array as an array of another type, shape or strides [B]."""
    alias: Any = wp.array(
        ptr=array.ptr + byte_offset if array.ptr else None,
        dtype=dtype,
        shape=shape,
        strides=strides,
        device=array.device,
    )
    alias._ref = array  # keeps the memory alive
    return alias


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
        if kernel.module.name not in _launched:
            _launched.add(kernel.module.name)
            share_headers()  # before the kernel is compiled, if it has to be
        listed = _list is not None and not record_cmd
        command = wp.launch(
            kernel,
            dim=dim,
            inputs=inputs,
            outputs=outputs,
            device=device,
            record_cmd=record_cmd or listed,
            block_dim=BLOCK_DIM,
        )
        if not listed:
            return command
        assert _list is not None
        _list.append(command)
        return None


def world_thread_count(worlds: wp.array[int]) -> int:
    """Return how many threads a kernel is launched for whose threads step through a list of worlds.

    On a GPU that is a thread for each world. On a CPU, which runs threads one after another, it is a single
    one: every thread begins by reading the addresses of all arrays, some 200 cycles, as long as a collider
    takes for a world without near pairs.
    """
    return min(int(worlds.size), 1) if wp.get_device(worlds.device).is_cpu else int(worlds.size)


def launch_while(condition: wp.array[int], body: Callable[[], None]) -> None:
    """Launch what `body` launches as long as an integer on the device, of shape [1], is not 0."""
    with RECORDING:
        if _list is None:
            wp.capture_while(condition, body)
        else:
            with _list.repeating(condition):
                body()


def record(device: wp.Device, launch: Callable[[], None], *, borrowing: Borrowing | None = None) -> wp.Graph:
    """Return a graph of what `launch` launches, to be replayed by `wp.capture_launch`.

    All kernels have to be loaded. On a CPU `launch` may be called twice: where it does more than launch
    kernels of this package, Warp records it all by itself, and nothing is borrowed.
    """
    global _list
    with RECORDING:
        if is_supported(device):
            launches = LaunchList(borrowing)
            with wp.ScopedCapture(device=device, force_module_load=False) as others:
                _list = launches
                try:
                    launch()
                finally:
                    _list = None
            if _operation_count(others.graph) == 0:
                inputs = launches.inputs()
                with wp.ScopedCapture(device=device, force_module_load=False) as capture:
                    launch_kernel(make_launches, dim=1, inputs=inputs, device=device)
                capture.graph.launches = launches  # for as long as the graph
                return capture.graph
        with wp.ScopedCapture(device=device, force_module_load=False) as capture:
            launch()
        return capture.graph


def is_recorded_by_others(device: wp.Device) -> bool:
    """Return whether launches now become part of a user's recording."""
    if not device.is_capturing:
        return False
    with RECORDING:  # another thread of this package may be recording, which takes in nothing else
        return bool(device.is_capturing)


@contextlib.contextmanager
def outside_recordings(device: wp.Device) -> Iterator[None]:
    """Exclude what follows from a recording that the user has started.

    Raises:
        RuntimeError: If this version of Warp cannot interrupt a recording.
    """
    with RECORDING:
        if not device.is_capturing:
            yield
            return
        pause, resume = _interruption()
        graph = pause(device)
        try:
            yield
        finally:
            resume(graph, device)


def kept_for(model: Any, made: MutableMapping[Any, Kept], make: Callable[[Any], Kept]) -> Kept:
    """Return what a stage keeps for a model; it is made on the first call, outside of recordings.

    Args:
        model: The model.
        made: What was made so far, by model.
        make: Makes it for a model.
    """
    found = made.get(model)
    if found is None:
        with outside_recordings(model.device):
            found = made.get(model)  # another thread may have made it meanwhile
            if found is None:
                # What is kept for a model refers to it weakly. Otherwise it would keep the model, and itself.
                found = made[model] = make(weakref.proxy(model))
    return found


def array_of(values: Any, dtype: Any, device: Any) -> wp.array:
    """Return an array of values of the host, copied now, and never again where a recording is replayed."""
    with outside_recordings(wp.get_device(device)):
        return wp.array(values, dtype=dtype, device=device)


def _interruption() -> tuple[Callable[..., wp.Graph], Callable[..., None]]:
    """Return Warp's internal functions that interrupt a recording."""
    try:
        from warp._src.context import capture_pause, capture_resume
    except ImportError as error:
        raise RuntimeError(
            f"a recording is under way, in which no memory can be prepared, and Warp {wp.__version__} cannot "
            "interrupt it. Call prepare() of the simulation or the solver before you record."
        ) from error
    return capture_pause, capture_resume


def _operation_count(graph: wp.Graph) -> int:
    """Return how much Warp has recorded in a graph on a CPU."""
    from warp._src import context  # Warp has no public name for it

    runtime: Any = context.runtime
    return runtime.core.wp_apic_get_operation_count(graph.apic_state)


def load_kernels(device: Any, *, max_workers: int, later: Collection[str] = ()) -> None:
    """Compile all kernels declared so far, or load them from the kernel cache, in parallel.

    Args:
        device: Where the kernels will run.
        max_workers: Number of threads that compile.
        later: Names of modules that somebody else will load, unless kernels of them were launched already.
    """
    progress = install()
    modules = declared_modules()
    if modules is not None:
        modules = [module for module in modules if module.name not in later or module.name in _launched]
    total = None if modules is None else len(modules)
    shown = contextlib.nullcontext() if progress is None else progress.loading(total)
    with RECORDING, shown:
        share_headers()
        if modules is None:
            wp.load_module(
                "pluriverse", recursive=True, device=device, block_dim=BLOCK_DIM, max_workers=max_workers
            )
        else:
            modules.sort(key=_compile_rank)
            wp.force_load(device=device, modules=modules, block_dim=BLOCK_DIM, max_workers=max_workers)


def load_kernels_of(name: str, device: Any) -> None:
    """Compile the kernels of a module of Warp, or load them from the kernel cache.

    While they are compiled other threads can launch kernels.
    """
    module = wp.get_module(name)
    share_headers()
    _compile(module, device)
    with RECORDING:
        wp.force_load(device=device, modules=[module], block_dim=BLOCK_DIM, max_workers=0)


def _compile(module: Any, device: Any) -> None:
    """Compile a module for a CPU into the kernel cache, if it is not there and if Warp does as expected.

    What fails here fails once more where the module is loaded, with a message.
    """
    device = wp.get_device(device)
    if not device.is_cpu or not wp.config.cache_kernels:
        return
    begin = time.perf_counter()
    with contextlib.suppress(Exception):
        folder = os.path.join(wp.config.kernel_cache_dir or "", module.get_module_identifier(block_dim=1))
        file = module._get_compile_output_name(device, block_dim=1)
        is_compiled = module._compile(device, folder, file, None, options=module.resolved_options[1])
        progress = install()
        if is_compiled and progress is not None:
            progress.count(time.perf_counter() - begin)


def _compile_rank(module: Any) -> int:
    """Return the place of a module in the order in which modules are compiled."""
    ranks = [rank for rank, name in enumerate(_COMPILED_FIRST) if module.name.startswith(name)]
    return ranks[0] if ranks else len(_COMPILED_FIRST)
