"""Requested copy: copy arrays that states hold on request, of some worlds.

Reads   the arrays on request of a state
Writes  the same of another state; all other worlds stay untouched

A step writes these arrays and reads none of them, so they are copied apart from the motion, and where nobody
asked for them nothing is launched.
"""

from collections.abc import Sequence
from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel, same_memory
from pluriverse.model import State
from pluriverse.model.schema import REQUESTED_ARRAYS, STATE_ARRAYS
from pluriverse.model.world_bounds import BOUNDED_ENTITIES


@wp.kernel(enable_backward=False, module="pluriverse.model.requested_copy")
def copy_requested_rows(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    bound: wp.array[int],  # [world + 1] first row of each world
    source: wp.array2d[float],  # [row, number]; empty: zeros
    target: wp.array2d[float],  # [row, number]
):
    """Copy the rows that an array has for one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= bound.shape[0] - 1:
        return  # an index on the device that names no world
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    for row in range(bound[world], bound[world + 1]):
        for column in range(target.shape[1]):
            number = float(0.0)
            if source.shape[0] > 0:
                number = source[row, column]
            target[row, column] = number


def copy_requested(
    worlds: wp.array[int],
    mask: wp.array[bool] | None,
    bounds: Sequence[wp.array[int]],
    source: State | None,
    target: State,
) -> None:
    """Copy the arrays on request that `target` has, of some worlds; zeros where `source` has none.

    Only launches.

    Args:
        worlds: The worlds, shape [slot].
        mask: Which of them, shape [world]; all if empty or None.
        bounds: Those of `world_bounds`.
        source: State to read; None for zeros.
        target: State to write.
    """
    for name in REQUESTED_ARRAYS:
        to = getattr(target, name)
        if to is None or to.size == 0:
            continue
        given = None if source is None else getattr(source, name)
        bound = bounds[BOUNDED_ENTITIES.index(STATE_ARRAYS[name].entity)]
        launch_kernel(
            copy_requested_rows,
            dim=worlds.size,
            inputs=[worlds, mask, bound, None if given is None else _as_rows(given)],
            outputs=[_as_rows(to)],
            device=to.device,
        )


def _as_rows(array: Any) -> wp.array:
    """Return an array of vectors as [row, number], in the same memory."""
    width = wp.types.type_size(array.dtype)
    return same_memory(array, wp.float32, (array.size, width))
