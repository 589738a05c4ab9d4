"""Body acceleration stage: how bodies accelerated in a step.

Reads   body_qd before and after a solver step, world_frozen
Writes  body_qdd of the state after

The acceleration is the change of velocity divided by the time step. An accelerometer that samples once per
step measures this; it includes impacts within the step. Bodies of a frozen world stay where they are, so they
have none; their old state may be no number.
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State, Topology


@wp.kernel(enable_backward=False, module="pluriverse.dynamics.body_acceleration")
def divide_velocity_change(
    worlds: wp.array[int],  # [slot]
    topology: Topology,
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_qd_after: wp.array[wp.spatial_vector],  # [body]
    rate: float,  # 1 / dt [1/s]
    world_frozen: wp.array[int],  # [world]
    body_qdd: wp.array[wp.spatial_vector],  # [body] m/s^2, rad/s^2, world axes
):
    """Write the mean accelerations of the bodies of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    template = topology.world_template[world]
    first = topology.world_body[world]
    for body in range(first, first + topology.template_body[template + 1] - topology.template_body[template]):
        acceleration = wp.spatial_vector()
        if world_frozen[world] == 0:
            acceleration = (body_qd_after[body] - body_qd[body]) * rate
        body_qdd[body] = acceleration


def eval_body_accelerations(
    model: Model,
    worlds: wp.array[int],
    before: State,
    after: State,
    dt: float,
    world_frozen: wp.array[int],
) -> None:
    """Write `after.body_qdd`, where it was asked for, of a step of `dt` [s]; zero in frozen worlds."""
    if after.body_qdd is None:
        return
    launch_kernel(
        divide_velocity_change,
        dim=worlds.size,
        inputs=[worlds, model.topology, before.body_qd, after.body_qd, 1.0 / dt, world_frozen],
        outputs=[after.body_qdd],
        device=model.device,
    )
