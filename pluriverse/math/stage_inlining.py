"""Stage inlining: whether the large stages of one kernel are copied into it or called.

Compilers take more than twice the time for a kernel of twice the size. On a CPU, ten stages of Newton's
method that are called, not copied, let it compile in a third of the time (9 instead of 26 s on a busy core),
with equal bits, and steps as fast within a percent. On a GPU a call makes each thread copy the descriptions
of all arrays that it passes on, several kilobytes, from the parameters of the kernel to its own memory.
"""

import functools

import warp as wp


@functools.cache
def stages_inline() -> bool:
    """Return what `wp.func` is given as `inline` for a large stage: True where there is a GPU."""
    return bool(wp.is_cuda_available())


@functools.cache
def stage_hint() -> bool | None:
    """Return `inline` for a large stage called on a CPU: None, as the compiler likes, with a GPU."""
    return None if wp.is_cuda_available() else False
