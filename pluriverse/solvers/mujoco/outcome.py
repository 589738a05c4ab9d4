"""Outcome stage: worlds that were not stepped keep the state they had.

Reads   body_q, body_qd of the old state
Writes  body_q, body_qd of the new state
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State, Topology


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.outcome")
def keep_world(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    topology: Topology,
    world_stepped: wp.array[int],  # [world]
    # state in
    body_q_in: wp.array[wp.transform],  # [body] m, xyzw
    body_qd_in: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    # state out
    body_q: wp.array[wp.transform],
    body_qd: wp.array[wp.spatial_vector],
):
    """Copy the bodies of a world that was not stepped."""
    world = worlds[wp.tid()]
    if world < 0:
        return
    if world_stepped[world] != 0:
        return
    template = topology.world_template[world]
    first = topology.world_body[world]
    for body in range(first, first + topology.template_body[template + 1] - topology.template_body[template]):
        body_q[body] = body_q_in[body]
        body_qd[body] = body_qd_in[body]


def keep_worlds(
    model: Model, worlds: wp.array, state_in: State, state_out: State, world_stepped: wp.array
) -> None:
    """Put the bodies of worlds that were not stepped back to `state_in`."""
    launch_kernel(
        keep_world,
        dim=worlds.size,
        inputs=[worlds, model.topology, world_stepped, state_in.body_q, state_in.body_qd],
        outputs=[state_out.body_q, state_out.body_qd],
        device=model.device,
    )
