"""Restore stage: worlds that were not stepped, or have non-finite poses, keep their old state.

Reads   both states, which worlds were stepped
Writes  the new state of such worlds; world_frozen
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State, Topology
from pluriverse.model.schema import MOTION_ARRAYS
from pluriverse.solvers.finite import are_finite_bodies


@wp.struct
class RestoreArrays:
    """Arrays of both states and of the status; see `State` and `SolverBase`."""

    joint_q_in: wp.array[float]
    joint_qd_in: wp.array[float]
    body_q_in: wp.array[wp.transform]
    body_qd_in: wp.array[wp.spatial_vector]
    joint_q: wp.array[float]
    joint_qd: wp.array[float]
    body_q: wp.array[wp.transform]
    body_qd: wp.array[wp.spatial_vector]
    stepped: wp.array[int]
    frozen: wp.array[int]
    keeps_bodies: int  # 1: the bodies of the old state are those of an earlier one


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.exchange.restore")
def restore_world(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    topology: Topology,
    coord_count: wp.array[int],  # [template]
    arrays: RestoreArrays,
):
    """Restore a world that was not stepped, or freeze and restore one whose poses are not finite."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    template = topology.world_template[world]
    body0 = topology.world_body[world]
    body_end = body0 + topology.template_body[template + 1] - topology.template_body[template]
    if arrays.stepped[world] != 0:
        # MuJoCo's state is finite, but joint frames and centres of mass are read from the model.
        if are_finite_bodies(arrays.body_q, arrays.body_qd, body0, body_end):
            return
        arrays.frozen[world] = 1
        coord0 = topology.world_coord[world]
        for coord in range(coord0, coord0 + coord_count[template]):
            arrays.joint_q[coord] = arrays.joint_q_in[coord]
        dof0 = topology.world_dof[world]
        for dof in range(dof0, dof0 + topology.template_dof[template + 1] - topology.template_dof[template]):
            arrays.joint_qd[dof] = arrays.joint_qd_in[dof]
    if arrays.keeps_bodies != 0:
        return  # they follow from the joint state, which is the old one
    for body in range(body0, body_end):
        arrays.body_q[body] = arrays.body_q_in[body]
        arrays.body_qd[body] = arrays.body_qd_in[body]


def count_coordinates(model: Model) -> wp.array:
    """Return the number of joint coordinates of a world of each kind, shape [template]."""
    counts = [template.coord_count for template in model.templates]
    return wp.array(counts, dtype=wp.int32, device=model.device)


def restore_worlds(
    model: Model,
    worlds: wp.array,
    coord_count: wp.array,
    state_in: State,
    state_out: State,
    world_stepped: wp.array,
    world_frozen: wp.array,
    *,
    keeps_bodies: bool,
) -> None:
    """Restore worlds that were not stepped, or have non-finite poses, to `state_in`.

    With `keeps_bodies`, where those of `state_in` are outdated, bodies stay as they are. Poses that are not
    finite do so, too: then nothing is known about the bodies of this world.
    """
    arrays = RestoreArrays()
    for name in MOTION_ARRAYS:
        setattr(arrays, f"{name}_in", getattr(state_in, name))
        setattr(arrays, name, getattr(state_out, name))
    arrays.stepped, arrays.frozen = world_stepped, world_frozen
    arrays.keeps_bodies = int(keeps_bodies)
    launch_kernel(
        restore_world,
        dim=worlds.size,
        inputs=[worlds, model.topology, coord_count, arrays],
        device=model.device,
    )
