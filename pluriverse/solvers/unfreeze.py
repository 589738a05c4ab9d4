"""Unfreeze stage: let frozen worlds take part again.

Writes  world_frozen of the solver
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model.world_selection import WorldSelection


@wp.kernel(enable_backward=False, module="pluriverse.solvers.unfreeze")
def unfreeze_world(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    world_frozen: wp.array[int],  # [world]
):
    """Unfreeze one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= world_frozen.shape[0]:
        return  # an index on the device that names no world
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    world_frozen[world] = 0


def unfreeze_worlds(selection: WorldSelection, world_frozen: wp.array[int]) -> None:
    """Set `world_frozen` to 0 for the worlds chosen."""
    launch_kernel(
        unfreeze_world,
        dim=selection.worlds.size,
        inputs=[selection.worlds, selection.mask],
        outputs=[world_frozen],
        device=world_frozen.device,
    )
