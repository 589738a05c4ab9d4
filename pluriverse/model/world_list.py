"""World list: world indices that a user passed on the device, made safe to launch over.

Reads   the list at the time of the launch, also when a recorded launch is replayed
Writes  a copy with -1 for invalid and repeated entries, and the number of invalid ones

The host cannot read a list on a device without waiting for it, and a recorded launch reads its contents at
replay. So a kernel checks the list before the others, which all skip -1. The package's own lists need no
check.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model.contents import ModelContents
from pluriverse.model.indices import IndexKind

# Attribute under which a list keeps its checked copy, which a recorded launch needs as long as the list.
_COPY = "_pluriverse_checked"


@wp.kernel(enable_backward=False, module="pluriverse.model.world_list")
def claim_world(
    worlds: wp.array[int],  # [slot]
    claimed: wp.array[int],  # [world] out: a slot that names it
):
    """Claim the world of one slot."""
    slot, _ = wp.tid()
    world = worlds[slot]
    if world >= 0 and world < claimed.shape[0]:
        claimed[world] = slot


@wp.kernel(enable_backward=False, module="pluriverse.model.world_list")
def check_world(
    worlds: wp.array[int],  # [slot]
    claimed: wp.array[int],  # [world]
    checked: wp.array[int],  # [slot] out
    wrong_count: wp.array[int],  # [kind of index] out
    wrong_example: wp.array[wp.int64],  # [kind of index] out
    wrong_bound: wp.array[int],  # [kind of index] out
):
    """Copy one slot, as -1 if it names no world or did not get the one it names."""
    slot, _ = wp.tid()
    world = worlds[slot]
    result = int(-1)
    if world >= 0 and world < claimed.shape[0]:
        if claimed[world] == slot:
            result = world
    else:
        wp.atomic_add(wrong_count, IndexKind.WORLD, 1)
        wrong_example[IndexKind.WORLD] = wp.int64(world)
        wrong_bound[IndexKind.WORLD] = claimed.shape[0]
    checked[slot] = result


@wp.kernel(enable_backward=False, module="pluriverse.model.world_list")
def list_selected_world(
    worlds: wp.array[int],  # [slot]
    mask: wp.array[bool],  # [world] which of them; empty: all
    selected: wp.array[int],  # [slot] out
):
    """Copy one slot, as -1 if its world is not selected."""
    slot, _ = wp.tid()
    world = worlds[slot]
    if mask.shape[0] > 0 and world >= 0:
        if not mask[world]:
            world = -1
    selected[slot] = world


def list_selected_worlds(worlds: wp.array[int], mask: wp.array[bool], selected: wp.array[int]) -> None:
    """Write a list without a mask: the worlds of a list and a mask, -1 for those that are not selected."""
    launch_kernel(
        list_selected_world, dim=worlds.size, inputs=[worlds, mask], outputs=[selected], device=worlds.device
    )


def trust_worlds(worlds: wp.array) -> wp.array:
    """Mark a list as valid by construction, so that it needs no check, and return it."""
    setattr(worlds, _COPY, worlds)
    return worlds


def is_trusted(worlds: Any) -> bool:
    """Return whether a list is valid by construction."""
    return worlds.__dict__.get(_COPY) is worlds


def check_worlds(model: ModelContents, worlds: Any, *, what: str) -> wp.array:
    """Return a list of worlds that kernels can take. Only launches, and allocates once per list.

    Args:
        model: Model that the worlds are in.
        worlds: World indices, shape [slot]; None for all.
        what: The operation, for messages.

    Raises:
        TypeError: If `worlds` is no array of 32-bit integers.
        ValueError: If it has another number of axes than one, or is on another device.
    """
    if worlds is None:
        return model.structure.worlds
    if not isinstance(worlds, wp.array) or worlds.dtype is not wp.int32:
        kind = worlds.dtype.__name__ if isinstance(worlds, wp.array) else type(worlds).__name__
        raise TypeError(
            f"{what}: worlds is of type {kind}, but must be a Warp array of int32 on {model.device}. Pass "
            "wp.array([0, 3], dtype=int), or None for all worlds."
        )
    if is_trusted(worlds):
        return worlds
    if worlds.ndim != 1 or worlds.device != model.device:
        raise ValueError(
            f"{what}: worlds has {worlds.ndim} axes and is on {worlds.device}, but must have one axis and be "
            f"on {model.device}."
        )
    checked: Any = worlds.__dict__.get(_COPY)
    claimed: Any = worlds.__dict__.get(f"{_COPY}_by")
    if checked is None or claimed.size != model.world_count:
        checked = trust_worlds(wp.empty(worlds.size, dtype=wp.int32, device=model.device))
        claimed = wp.empty(model.world_count, dtype=wp.int32, device=model.device)
        setattr(worlds, _COPY, checked)
        setattr(worlds, f"{_COPY}_by", claimed)
    if worlds.size:
        launch_kernel(claim_world, dim=worlds.size, inputs=[worlds], outputs=[claimed], device=model.device)
        errors = model.index_errors
        launch_kernel(
            check_world,
            dim=worlds.size,
            inputs=[worlds, claimed],
            outputs=[checked, errors.count, errors.example, errors.bound],
            device=model.device,
        )
    return checked


def list_worlds(indices: np.ndarray, device: Any) -> wp.array:
    """Return a list of worlds that is valid by construction."""
    return trust_worlds(wp.array(indices.astype(np.int32), dtype=wp.int32, device=device))
