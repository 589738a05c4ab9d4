"""World copy: put the state of some worlds into other states, all other worlds untouched.

Reads   joint_q, joint_qd, body_q, body_qd, body_f of the source
Writes  the same of the targets
"""

import numpy as np
import warp as wp

from pluriverse.model import Model, State
from pluriverse.model.world_choice import WorldChoice


@wp.kernel(enable_backward=False, module="pluriverse.simulation.world_copy")
def copy_world(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    # model
    body_bound: wp.array[int],  # [world + 1]
    coord_bound: wp.array[int],  # [world + 1]
    dof_bound: wp.array[int],  # [world + 1]
    # state in
    joint_q: wp.array[float],  # [coord] m, rad
    joint_qd: wp.array[float],  # [dof] m/s, rad/s
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_f: wp.array[wp.spatial_vector],  # [body] N, N·m, world axes; empty: zero
    # state out
    joint_q_out: wp.array[float],
    joint_qd_out: wp.array[float],
    body_q_out: wp.array[wp.transform],
    body_qd_out: wp.array[wp.spatial_vector],
    body_f_out: wp.array[wp.spatial_vector],
):
    """Copy the state of one world."""
    world = worlds[wp.tid()]
    if world < 0 or world + 1 >= body_bound.shape[0]:
        return  # an index on the device that names no world
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    for coord in range(coord_bound[world], coord_bound[world + 1]):
        joint_q_out[coord] = joint_q[coord]
    for dof in range(dof_bound[world], dof_bound[world + 1]):
        joint_qd_out[dof] = joint_qd[dof]
    for body in range(body_bound[world], body_bound[world + 1]):
        body_q_out[body] = body_q[body]
        body_qd_out[body] = body_qd[body]
        force = wp.spatial_vector()
        if body_f.shape[0] > 0:
            force = body_f[body]
        body_f_out[body] = force


class WorldCopy:
    """Copies the state of single worlds of a model. Only launches: a copy may be recorded.

    Args:
        model: The model.
    """

    def __init__(self, model: Model) -> None:
        self._device = model.device
        self._no_force = wp.empty(0, dtype=wp.spatial_vectorf, device=model.device)
        self._bounds = [
            wp.array(_bounds(start.numpy(), count, model.world_count), dtype=wp.int32, device=model.device)
            for start, count in (
                (model.body_world_start, model.body_count),
                (model.joint_coord_world_start, model.joint_coord_count),
                (model.joint_dof_world_start, model.joint_dof_count),
            )
        ]

    def copy_worlds(self, choice: WorldChoice, source: State | Model, target: State) -> None:
        """Copy worlds from `source` to `target`; those of a model begin without external forces."""
        joint_state = (source.joint_q, source.joint_qd, source.body_q, source.body_qd)
        force = source.body_f if isinstance(source, State) else self._no_force
        wp.launch(
            copy_world,
            dim=choice.worlds.size,
            inputs=[choice.worlds, choice.mask, *self._bounds, *joint_state, force],
            outputs=[target.joint_q, target.joint_qd, target.body_q, target.body_qd, target.body_f],
            device=self._device,
        )


def _bounds(start: np.ndarray, count: int, world_count: int) -> np.ndarray:
    """Return where each world begins and the last one ends, shape [world + 1]."""
    if world_count == 1 and start[0] == start[1]:  # nothing was put into a world, so everything is in the one
        return np.array([0, count], dtype=np.int32)
    return start[: world_count + 1].astype(np.int32)
