"""Loops: update the parts that loop joints cut from bodies, and the coordinates of these joints.

Reads   body_q, body_qd of whole bodies; joint frames and axes, body_com
Writes  body_q, body_qd of parts; joint_q, joint_qd of loop joints

A loop joint with coordinates moves a part of its child, which a weld holds to the rest. The coordinates of
the other joints of a loop determine both poses, so the coordinates of the loop joint are computed from them.
"""

import weakref

import numpy as np
import warp as wp

from pluriverse.dynamics.inverse_kinematics import compute_joint_states
from pluriverse.launch import kept_for, launch_kernel
from pluriverse.model import Model, State
from pluriverse.model.arguments import check_model, check_state
from pluriverse.model.world_list import check_worlds


class LoopTable:
    """The parts of cut bodies by world, kept once per model.

    Args:
        model: Model with such bodies, or without.
    """

    world_start: wp.array[int]
    """First part of each world, shape [world + 1]."""
    body: wp.array[int]
    """Body that each part was cut from, shape [part]."""
    part: wp.array[int]
    """Body that is the part, shape [part]."""
    joint_mask: wp.array[bool]
    """Whether a joint moves a part, shape [joint]."""

    def __init__(self, model: Model) -> None:
        split_from = model.body_split_from.numpy()
        part = np.flatnonzero(split_from != np.arange(model.body_count))
        # Without authored worlds all is in the one world, which the arrays call -1.
        world = np.maximum(model.body_world.numpy()[part], 0)
        counts = np.bincount(world, minlength=model.world_count)
        moved = np.isin(model.joint_child.numpy(), part)

        def integers(values: np.ndarray) -> wp.array:
            return wp.array(values.astype(np.int32), dtype=wp.int32, device=model.device)

        self.world_start = integers(np.concatenate([[0], np.cumsum(counts)]))
        self.body = integers(split_from[part])
        self.part = integers(part)
        self.joint_mask = wp.array(moved, dtype=wp.bool, device=model.device)


_tables: weakref.WeakKeyDictionary[Model, LoopTable] = weakref.WeakKeyDictionary()


@wp.kernel(enable_backward=False, module="pluriverse.dynamics.loops")
def copy_part_state(
    worlds: wp.array[int],  # [slot]
    # model
    world_start: wp.array[int],  # [world + 1]
    body: wp.array[int],  # [part]
    part: wp.array[int],  # [part]
    # state, in place
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s
):
    """Give the parts in one world the poses and velocities of their bodies."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    for index in range(world_start[world], world_start[world + 1]):
        # Frame and centre of mass of a part are those of its body.
        body_q[part[index]] = body_q[body[index]]
        body_qd[part[index]] = body_qd[body[index]]


def eval_loops(model: Model, state: State, *, worlds: wp.array | None = None) -> None:
    """Write coordinates and velocities of loop joints that agree with the bodies of a state.

    To be called after `eval_fk`, where coordinates of other joints were written. Angles are in (-π, π].
    Without loop joints that have coordinates nothing is written. The first call for a model allocates, so it
    cannot be recorded.

    Args:
        model: Model of the joints.
        state: State whose body poses agree with all other joints.
        worlds: Worlds concerned, int32; all if None.
    """
    check_model(model, "eval_loops")
    check_state(model, state, "eval_loops: state")
    selected = check_worlds(model, worlds, what="eval_loops")
    table = kept_for(model, _tables, LoopTable)
    if table.part.size == 0:
        return
    launch_kernel(
        copy_part_state,
        dim=selected.size,
        inputs=[selected, table.world_start, table.body, table.part],
        outputs=[state.body_q, state.body_qd],
        device=model.device,
    )
    compute_joint_states(model, state, selected, state.joint_q, state.joint_qd, joint_mask=table.joint_mask)
