"""Launch list: launches that are made ready once, and that one kernel then makes in a row.

Warp replays a launch that was recorded on a CPU by looking its kernel up by name and putting its arguments
together anew, pointer by pointer. For the 22 kernels of a step of `SolverSAP`, whose arguments describe up to
some hundred arrays, that takes 36 µs: more than the step of a small robot. A list keeps the address of every
kernel and its arguments as the kernel takes them, so that a launch costs a call.
"""

import contextlib
import ctypes
import functools
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import warp as wp

from pluriverse.scratch import Borrowing

# How a compiled kernel is called, bounds and arguments by address, is not part of Warp's interface. These
# versions were tried; with others launches are recorded by Warp itself.
_KNOWN_VERSIONS = ("1.19.",)


# Calls the kernels of the list `entry` of `count` entries.
_CALLS = """
int32_t index = 0;
while (index < count) {
    const uint64_t* e = entry + 3 * index;
    ++index;
    if (e[0] != 0) ((kernel_t)e[0])((void*)e[1], (void*)e[2]);
    else if (e[1] == 0 || *(const volatile int32_t*)e[1] == 0) index = (int32_t)e[2];
}
"""


@wp.func_native(f"""
#if !defined(__CUDA_ARCH__)
typedef void (*kernel_t)(void*, void*);
const uint64_t* entry = entries.data;
{_CALLS}
#endif
""")
def call_entries(entries: wp.array(dtype=wp.uint64), count: int):
    """Call the kernels of a list, and follow its jumps (`LaunchList`)."""
    ...


@wp.kernel(enable_backward=False, module="pluriverse.launch_list")
def make_launches(
    entries: wp.array[wp.uint64],  # [entry, 3] see `LaunchList`, flat
    count: int,
):
    """Make the launches of a list, on a CPU."""
    call_entries(entries, count)


# Of `share_launches`: what a thread does, and where the numbers of the desk are, far enough from each other
# for caches. The gate is `OPEN` while a round is open, plus the number of threads inside.
ATTEND, BEGIN, GO_ON, CLOSE = range(4)
GATE, STOP, PLAN, CHUNK_COUNT, LEFT, DESK_SIZE = 0, 16, 32, 33, 48, 64
# Of a plan: numbers of a chunk, and of each of its runs behind all chunks: a list, its size, and the number
# of units of the chunk up to the end of the run.
STATE, UNIT_COUNT, SLICE, FIRST_RUN, CHUNK_SIZE, RUN_SIZE = 0, 1, 2, 3, 16, 3
# What `LEFT` tells the calling thread: all units are made, or some are left to make, or others make the last.
NOTHING_LEFT, SOME_LEFT, OTHERS_AT_WORK = range(3)
# Times that a thread looks for work before it gives up, of 16 pauses each: some 150 us in all, about twice
# what it takes to wake a thread that sleeps.
PATIENCE = 300


@wp.func_native(f"""
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
typedef void (*kernel_t)(void*, void*);
constexpr int64_t OPEN = int64_t(1) << 32;
int64_t* const gate = desk.data;
int64_t* const stop = gate + {STOP};
const auto load = [](const int64_t* number) {{ return __atomic_load_n(number, __ATOMIC_ACQUIRE); }};
const auto swap = [](int64_t* number, int64_t before, int64_t after) {{
    return __atomic_compare_exchange_n(number, &before, after, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}};
const auto pause = []() {{ for (int32_t k = 0; k < 16; ++k) __builtin_ia32_pause(); }};
int64_t left = {OTHERS_AT_WORK}, made = 0;
if (role == {BEGIN}) {{
    int64_t* const plan = (int64_t*)gate[{PLAN}];
    for (int64_t c = 0; c < gate[{CHUNK_COUNT}]; ++c) plan[{CHUNK_SIZE} * c + {STATE}] = 0;
    *stop = 0;
    __atomic_store_n(gate, OPEN, __ATOMIC_RELEASE);
}}
// All was made, but another thread was still inside when the round was closed.
if (role == {GO_ON} && !(load(gate) & OPEN)) left = {NOTHING_LEFT};
for (int32_t idle = 0; idle < {PATIENCE} && role != {CLOSE} && left != {NOTHING_LEFT}; ++idle) {{
    const int64_t seen = load(gate);
    if (!(seen & OPEN) || !swap(gate, seen, seen + 1)) {{
        pause();
        continue;
    }}
    // Of the chunks that nobody steps, the one that has come least far.
    int64_t* const plan = (int64_t*)gate[{PLAN}];
    int64_t* chunk = nullptr;
    int64_t state = 0;
    bool is_left = false;
    for (int64_t c = 0; c < gate[{CHUNK_COUNT}]; ++c) {{
        int64_t* const other = plan + {CHUNK_SIZE} * c;
        const int64_t now = load(other + {STATE});  // units made, times two, plus 1 while somebody makes more
        if (now / 2 >= other[{UNIT_COUNT}]) continue;
        is_left = true;
        if (!(now & 1) && (chunk == nullptr || now < state)) {{
            chunk = other;
            state = now;
        }}
    }}
    const bool is_taken = chunk != nullptr && !load(stop) && swap(chunk + {STATE}, state, state | 1);
    if (is_taken) {{
        int64_t unit = state / 2, end = unit + chunk[{SLICE}];
        if (end > chunk[{UNIT_COUNT}]) end = chunk[{UNIT_COUNT}];
        const int64_t* run = plan + chunk[{FIRST_RUN}];
        for (; unit < end && made < limit && !load(stop); ++unit, ++made) {{
            while (unit >= run[2]) run += {RUN_SIZE};
            const uint64_t* entry = (const uint64_t*)run[0];
            const int32_t count = (int32_t)run[1];
            {_CALLS}
        }}
        __atomic_store_n(chunk + {STATE}, 2 * unit, __ATOMIC_RELEASE);
        idle = -1;
    }}
    __atomic_fetch_sub(gate, int64_t(1), __ATOMIC_ACQ_REL);
    if (role != {ATTEND} && !is_left) {{
        left = {NOTHING_LEFT};
        break;
    }}
    if (made >= limit) {{
        left = {SOME_LEFT};
        break;
    }}
    if (!is_taken) pause();
}}
if (role == {CLOSE} || left == {NOTHING_LEFT}) {{
    __atomic_fetch_and(gate, ~OPEN, __ATOMIC_ACQ_REL);
    for (int32_t idle = 0; idle < {PATIENCE} && load(gate) != 0; ++idle) pause();
    left = load(gate) == 0 ? {NOTHING_LEFT} : {OTHERS_AT_WORK};
}}
if (role != {ATTEND}) gate[{LEFT}] = left;
#endif
""")
def take_part(desk: wp.array(dtype=wp.int64), role: int, limit: int):
    """Make units of the plan on the desk, at most `limit`, until none is to be had (`SharedReplay`)."""
    ...


@wp.kernel(enable_backward=False, module="pluriverse.launch_list")
def share_launches(
    desk: wp.array[wp.int64],  # [number]
    role: int,
    limit: int,
):
    """Take part in making the launches of lists, with other threads, on a CPU."""
    take_part(desk, role, limit)


@functools.cache
def _packed_type(types: tuple[type, ...]) -> type[ctypes.Structure]:
    """Return the structure that a kernel takes its arguments in."""
    fields = [(f"argument_{index}", kind) for index, kind in enumerate(types)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


@functools.cache
def array_offsets(kind: type[ctypes.Structure]) -> tuple[int, ...]:
    """Return where the addresses of arrays are in a structure [bytes], also inside of structures in it."""
    from warp._src.types import array_t  # Warp has no public name for it

    result: list[int] = []
    for name, field_type, *_ in kind._fields_:
        offset = getattr(kind, name).offset
        if field_type is array_t:
            result.append(offset + array_t.data.offset)
        elif issubclass(field_type, ctypes.Structure):
            result += (offset + inner for inner in array_offsets(field_type))
    return tuple(result)


class LaunchList:
    """Launches on a CPU, in the order in which they are to be made.

    An entry has three numbers: the addresses of a kernel, of its bounds and of its arguments; or 0, the
    address of a condition, and the entry to go on with if that is 0. Without a condition it always is.

    Args:
        borrowing: Arrays that the launches are to find elsewhere; None for no such arrays.
    """

    def __init__(self, borrowing: Borrowing | None = None) -> None:
        self._borrowing = borrowing
        self._entries: list[tuple[int, int, int]] = []
        self._kept: list[Any] = []
        self.array: Any = None
        """The entries, flat; None until `inputs` was called."""

    def append(self, command: Any) -> None:
        """Add a launch, as `wp.launch` returns it with `record_cmd`; None for one of no threads."""
        if command is None:
            return
        bounds, *arguments = command.params
        packed = _packed_type(tuple(map(type, arguments)))(*arguments)  # copies, which alone are changed
        if self._borrowing is not None:
            offsets = np.array(array_offsets(type(packed)), dtype=np.int64) // ctypes.sizeof(ctypes.c_uint64)
            words = np.frombuffer(packed, dtype=np.int64, count=ctypes.sizeof(packed) // 8)
            words[offsets] = self._borrowing.move(words[offsets])
        kernel = ctypes.cast(command.hooks.forward, ctypes.c_void_p).value or 0
        self._entries.append((kernel, ctypes.addressof(bounds), ctypes.addressof(packed)))
        self._kept += [command, packed]

    @contextlib.contextmanager
    def repeating(self, condition: wp.array[int]) -> Iterator[None]:
        """Let what is added meanwhile be made as long as an integer, of shape [1], is not 0."""
        test = len(self._entries)
        self._entries.append((0, 0, 0))
        yield
        self._entries.append((0, 0, test))
        self._entries[test] = (0, condition.ptr or 0, len(self._entries))
        self._kept.append(condition)

    def inputs(self) -> list[Any]:
        """Return what `make_launches` takes. The list has to live as long as a recording of that launch."""
        self.array = wp.array(
            np.array(self._entries, dtype=np.uint64).reshape(-1), dtype=wp.uint64, device="cpu"
        )
        return [self.array, len(self)]

    def __len__(self) -> int:
        return len(self._entries)

    def first_call(self) -> Callable[[], None]:
        """Return a function that makes the first launch, and leaves the interpreter's lock to others.

        The list has to live as long as that function.
        """
        kernel, bounds, arguments = self._entries[0]
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(kernel)
        return functools.partial(call, bounds, arguments)


def can_be_shared() -> bool:
    """Return whether threads can share launches without the interpreter's lock: where this was tried."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def is_supported(device: wp.Device) -> bool:
    """Return whether launches on a device can be put into lists."""
    return device.is_cpu and wp.__version__.startswith(_KNOWN_VERSIONS)
