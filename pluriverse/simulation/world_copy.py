"""World copy: put the state of some worlds into another state, all other worlds untouched.

Reads   joint_q, joint_qd, body_q, body_qd, body_f of the source
Writes  the same of the target
"""

import numpy as np
import warp as wp

from pluriverse.model import Model, State


@wp.kernel(enable_backward=False, module="pluriverse.simulation.world_copy")
def copy_world(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    # model
    body_bound: wp.array[int],  # [world + 1]
    coord_bound: wp.array[int],  # [world + 1]
    dof_bound: wp.array[int],  # [world + 1]
    # state in
    joint_q: wp.array[float],  # [coord] m, rad
    joint_qd: wp.array[float],  # [dof] m/s, rad/s
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_f: wp.array[wp.spatial_vector],  # [body] N, N·m, world axes
    # state out
    joint_q_out: wp.array[float],
    joint_qd_out: wp.array[float],
    body_q_out: wp.array[wp.transform],
    body_qd_out: wp.array[wp.spatial_vector],
    body_f_out: wp.array[wp.spatial_vector],
):
    """Copy the state of one world."""
    world = worlds[wp.tid()]
    for coord in range(coord_bound[world], coord_bound[world + 1]):
        joint_q_out[coord] = joint_q[coord]
    for dof in range(dof_bound[world], dof_bound[world + 1]):
        joint_qd_out[dof] = joint_qd[dof]
    for body in range(body_bound[world], body_bound[world + 1]):
        body_q_out[body] = body_q[body]
        body_qd_out[body] = body_qd[body]
        body_f_out[body] = body_f[body]


class WorldCopy:
    """Copies the state of single worlds of a model.

    Args:
        model: The model.
    """

    def __init__(self, model: Model) -> None:
        self._device = model.device
        self._bounds = [
            wp.array(_bounds(start.numpy(), count, model.world_count), dtype=wp.int32, device=model.device)
            for start, count in (
                (model.body_world_start, model.body_count),
                (model.joint_coord_world_start, model.joint_coord_count),
                (model.joint_dof_world_start, model.joint_dof_count),
            )
        ]

    def copy_worlds(self, worlds: wp.array[int], source: State, target: State) -> None:
        """Copy the worlds from `source` to `target`."""
        names = ("joint_q", "joint_qd", "body_q", "body_qd", "body_f")
        wp.launch(
            copy_world,
            dim=worlds.size,
            inputs=[worlds, *self._bounds, *(getattr(source, name) for name in names)],
            outputs=[getattr(target, name) for name in names],
            device=self._device,
        )


def _bounds(start: np.ndarray, count: int, world_count: int) -> np.ndarray:
    """Return where each world begins and the last one ends, shape [world + 1]."""
    if world_count == 1 and start[0] == start[1]:  # nothing was put into a world, so everything is in the one
        return np.array([0, count], dtype=np.int32)
    return start[: world_count + 1].astype(np.int32)
