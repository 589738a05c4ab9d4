"""World copy: copy the state of some worlds to other states; all other worlds stay untouched.

Reads   joint_q, joint_qd, body_q, body_qd, body_f, arrays on request and custom attributes of the source
Writes  the same of the targets
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel, made_once, same_memory
from pluriverse.model import Model, State
from pluriverse.model.attributes import AttributeAssignment, AttributeSpec
from pluriverse.model.requested_copy import copy_requested
from pluriverse.model.world_bounds import bounds_of, world_bounds
from pluriverse.model.world_selection import WorldSelection
from pluriverse.types import Entity


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
    joint_q_out: wp.array[float],  # [coord] m, rad
    joint_qd_out: wp.array[float],  # [dof] m/s, rad/s
    body_q_out: wp.array[wp.transform],  # [body] m, xyzw
    body_qd_out: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_f_out: wp.array[wp.spatial_vector],  # [body] N, N m, world axes
):
    """Copy the state of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= body_bound.shape[0] - 1:
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


@made_once
def _custom_kernels() -> SimpleNamespace:
    @wp.kernel(enable_backward=False, module="pluriverse.simulation.world_copy_custom")
    def copy_world_rows(
        worlds: wp.array[int],  # [slot] the worlds of this launch
        mask: wp.array[bool],  # [world] which of them; empty: all
        start: wp.array[int],  # [world + 1] where the rows of each world begin in `row`
        row: wp.array[int],  # [entry]
        source: wp.array2d[wp.uint8],  # [row, byte]
        target: wp.array2d[wp.uint8],  # [row, byte]
    ):
        """Copy the rows that an array has for one world."""
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0 or world >= start.shape[0] - 1:
            return  # an index on the device that names no world
        if mask.shape[0] > 0:
            if not mask[world]:
                return
        for index in range(start[world], start[world + 1]):
            for byte in range(source.shape[1]):
                target[row[index], byte] = source[row[index], byte]

    return SimpleNamespace(copy_world_rows=copy_world_rows)


class WorldCopy:
    """Copies the state of single worlds of a model. Only launches: a copy may be recorded.

    Args:
        model: The model.
    """

    def __init__(self, model: Model) -> None:
        self._device = model.device
        self._no_force = wp.empty(0, dtype=wp.spatial_vectorf, device=model.device)
        self._bounds = world_bounds(model)
        self._custom_rows = {
            spec.key: [wp.array(part.astype(np.int32), dtype=wp.int32, device=model.device) for part in rows]
            for spec in model.attribute_specs.values()
            if spec.assignment is AttributeAssignment.STATE
            and (rows := _rows_by_world(model, spec)) is not None
        }

    def copy_worlds(self, selection: WorldSelection, source: State | Model, target: State) -> None:
        """Copy worlds from `source` to `target`.

        Worlds taken from a model start without external forces and, like a new state, with zeros in the
        arrays on request.
        """
        joint_state = (source.joint_q, source.joint_qd, source.body_q, source.body_qd)
        state = source if isinstance(source, State) else None
        force = self._no_force if state is None else state.body_f
        launch_kernel(
            copy_world,
            dim=selection.worlds.size,
            inputs=[selection.worlds, selection.mask, *self._bounds, *joint_state, force],
            outputs=[target.joint_q, target.joint_qd, target.body_q, target.body_qd, target.body_f],
            device=self._device,
        )
        copy_requested(selection.worlds, selection.mask, self._bounds, state, target)
        for key, (start, row) in self._custom_rows.items():
            launch_kernel(
                _custom_kernels().copy_world_rows,
                dim=selection.worlds.size,
                inputs=[selection.worlds, selection.mask, start, row, _as_bytes(source.custom_arrays[key])],
                outputs=[_as_bytes(target.custom_arrays[key])],
                device=self._device,
            )


def _rows_by_world(model: Model, spec: AttributeSpec) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the first row of each world and the rows of a custom attribute; None if it has no worlds."""
    if spec.frequency is Entity.ONCE:
        return None
    if spec.frequency is Entity.WORLD:
        return np.arange(model.world_count + 1), np.arange(model.world_count)
    if isinstance(spec.frequency, str):
        world = model.custom_frequency_world[spec.frequency]
        if model.world_count == 1 and not (world >= 0).any():
            world = np.zeros_like(world)  # nothing was put into a world, so everything is in the one
        rows = np.argsort(world, kind="stable")[np.count_nonzero(world < 0) :]
        counts = np.bincount(world[world >= 0], minlength=model.world_count)
        return np.concatenate([[0], np.cumsum(counts)]), rows
    count = model.get_frequency_count(spec.frequency)
    start = getattr(model, f"{spec.frequency.key}_world_start").numpy()
    return bounds_of(start, count, model.world_count), np.arange(count)


def _as_bytes(array: Any) -> wp.array:
    """Return an array as [row, byte], in the same memory."""
    size = array.shape[0]
    width = array.capacity // size if size else 0
    return same_memory(array, wp.uint8, (size, width))
