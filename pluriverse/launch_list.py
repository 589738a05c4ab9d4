"""Launch list: launches that are made ready once, and that one kernel then makes in a row.

Warp replays a launch that was recorded on a CPU by looking its kernel up by name and putting its arguments
together anew, pointer by pointer. For the 22 kernels of a step of `SolverSAP`, whose arguments describe up to
some hundred arrays, that takes 36 µs: more than the step of a small robot. A list keeps the address of every
kernel and its arguments as the kernel takes them, so that a launch costs a call.
"""

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

# How a compiled kernel is called, bounds and arguments by address, is not part of Warp's interface. These
# versions were tried; with others launches are recorded by Warp itself.
_KNOWN_VERSIONS = ("1.19.",)


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
typedef void (*kernel_t)(void*, void*);
const uint64_t* entry = entries.data;
int32_t index = 0;
while (index < count) {
    const uint64_t* e = entry + 3 * index;
    ++index;
    if (e[0] != 0) ((kernel_t)e[0])((void*)e[1], (void*)e[2]);
    else if (e[1] == 0 || *(const volatile int32_t*)e[1] == 0) index = (int32_t)e[2];
}
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


@functools.cache
def _packed_type(types: tuple[type, ...]) -> type[ctypes.Structure]:
    """Return the structure that a kernel takes its arguments in."""
    fields = [(f"argument_{index}", kind) for index, kind in enumerate(types)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


class LaunchList:
    """Launches on a CPU, in the order in which they are to be made.

    An entry has three numbers: the addresses of a kernel, of its bounds and of its arguments; or 0, the
    address of a condition, and the entry to go on with if that is 0. Without a condition it always is.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, int]] = []
        self._kept: list[Any] = []

    def append(self, command: Any) -> None:
        """Add a launch, as `wp.launch` returns it with `record_cmd`; None for one of no threads."""
        if command is None:
            return
        bounds, *arguments = command.params
        packed = _packed_type(tuple(map(type, arguments)))(*arguments)
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
        entries: Any = wp.array(
            np.array(self._entries, dtype=np.uint64).reshape(-1), dtype=wp.uint64, device="cpu"
        )
        self._kept.append(entries)
        return [entries, len(self._entries)]


def is_supported(device: wp.Device) -> bool:
    """Return whether launches on a device can be put into lists."""
    return device.is_cpu and wp.__version__.startswith(_KNOWN_VERSIONS)
