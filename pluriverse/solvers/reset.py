"""Reset stage: put worlds of a state back to how the model begins.

Reads   joint_q, joint_qd, body_q, body_qd of the model
Writes  the same of a state, and its body_f; with body_qd also the arrays on request, which become zero
"""

from collections.abc import Sequence

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State
from pluriverse.model.requested_copy import copy_requested
from pluriverse.model.world_selection import WorldSelection
from pluriverse.types import StateFlags


@wp.kernel(enable_backward=False, module="pluriverse.solvers.reset")
def reset_world(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    flags: int,  # StateFlags
    # model
    body_bound: wp.array[int],  # [world + 1]
    coord_bound: wp.array[int],  # [world + 1]
    dof_bound: wp.array[int],  # [world + 1]
    joint_q: wp.array[float],  # [coord] m, rad
    joint_qd: wp.array[float],  # [dof] m/s, rad/s
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    # state out
    joint_q_out: wp.array[float],  # [coord] m, rad
    joint_qd_out: wp.array[float],  # [dof] m/s, rad/s
    body_q_out: wp.array[wp.transform],  # [body] m, xyzw
    body_qd_out: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_f_out: wp.array[wp.spatial_vector],  # [body] N, N·m, world axes
):
    """Reset the chosen parts of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= body_bound.shape[0] - 1:
        return  # an index on the device that names no world
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    if flags & StateFlags.JOINT_Q != 0:
        for coord in range(coord_bound[world], coord_bound[world + 1]):
            joint_q_out[coord] = joint_q[coord]
    if flags & StateFlags.JOINT_QD != 0:
        for dof in range(dof_bound[world], dof_bound[world + 1]):
            joint_qd_out[dof] = joint_qd[dof]
    for body in range(body_bound[world], body_bound[world + 1]):
        if flags & StateFlags.BODY_Q != 0:
            body_q_out[body] = body_q[body]
        if flags & StateFlags.BODY_QD != 0:
            body_qd_out[body] = body_qd[body]
        if flags & StateFlags.BODY_F != 0:
            body_f_out[body] = wp.spatial_vector()


def reset_worlds(
    model: Model,
    selection: WorldSelection,
    bounds: Sequence[wp.array[int]],
    state: State,
    flags: StateFlags,
) -> None:
    """Reset the selected parts of the selected worlds; `bounds` are those of `world_bounds`."""
    launch_kernel(
        reset_world,
        dim=selection.worlds.size,
        inputs=[
            selection.worlds,
            selection.mask,
            int(flags),
            *bounds,
            model.joint_q,
            model.joint_qd,
            model.body_q,
            model.body_qd,
        ],
        outputs=[state.joint_q, state.joint_qd, state.body_q, state.body_qd, state.body_f],
        device=model.device,
    )
    if flags & StateFlags.BODY_QD:  # accelerations led to the old velocities
        copy_requested(selection.worlds, selection.mask, bounds, None, state)
