"""Carry-over stage: the end of a step of the simulation, where its result becomes the public state.

The solver moves worlds between two states. Users keep the arrays of one of them, the public state, so every
step writes its result there, at the same addresses. A second copy is kept, from which a world returns to its
last finite state after NaN was written into the public one.

Reads   world_frozen of the solver; the arrays that a step writes of the state that the solver wrote last
Writes  the same of the public state; joint_q, joint_qd, body_q, body_qd also of the copy
"""

import warp as wp

from pluriverse.launch import launch_kernel, same_memory
from pluriverse.math.dense import numbers_copy
from pluriverse.model import Model, State
from pluriverse.model.requested_copy import copy_requested
from pluriverse.model.schema import MOTION_ARRAYS
from pluriverse.model.world_bounds import world_bounds

# Worlds that a CPU thread publishes. A world of one link takes 18 ns by itself, 8.3 ns in a group of eight
# and 7.3 ns in a group of sixteen.
CPU_SLOT_COUNT = 16


@wp.struct
class MotionArrays:
    """The `MOTION_ARRAYS` of a state, as plain numbers; see `State`."""

    joint_q: wp.array[float]  # [coord]
    joint_qd: wp.array[float]  # [dof]
    body_q: wp.array[float]  # [7 body]
    body_qd: wp.array[float]  # [6 body]


@wp.struct
class WorldRange:
    """First entity of each kind in a world, and their number."""

    coord: int
    coord_count: int
    dof: int
    dof_count: int
    body: int
    body_count: int


@wp.func
def is_finite_row(values: wp.array[float], first: int, count: int) -> bool:
    """Return whether all numbers of a row are finite."""
    is_finite = bool(True)
    for entry in range(first, first + count):
        if not wp.isfinite(values[entry]):
            is_finite = False
    return is_finite


@wp.func
def is_finite_world(motion: MotionArrays, entities: WorldRange) -> bool:
    """Return whether all numbers of a world are finite."""
    return (
        is_finite_row(motion.joint_q, entities.coord, entities.coord_count)
        and is_finite_row(motion.joint_qd, entities.dof, entities.dof_count)
        and is_finite_row(motion.body_q, 7 * entities.body, 7 * entities.body_count)
        and is_finite_row(motion.body_qd, 6 * entities.body, 6 * entities.body_count)
    )


@wp.func
def copy_motion(source: MotionArrays, target: MotionArrays, second: MotionArrays, entities: WorldRange):
    """Copy the state of a world to two places."""
    numbers_copy(source.joint_q, entities.coord, entities.coord_count, target.joint_q, second.joint_q)
    numbers_copy(source.joint_qd, entities.dof, entities.dof_count, target.joint_qd, second.joint_qd)
    numbers_copy(source.body_q, 7 * entities.body, 7 * entities.body_count, target.body_q, second.body_q)
    numbers_copy(source.body_qd, 6 * entities.body, 6 * entities.body_count, target.body_qd, second.body_qd)


@wp.func
def world_range(
    body_bound: wp.array[int], coord_bound: wp.array[int], dof_bound: wp.array[int], first: int, end: int
):
    """Return the ranges of the entities of worlds `first` to `end` - 1."""
    entities = WorldRange()
    entities.coord = coord_bound[first]
    entities.coord_count = coord_bound[end] - coord_bound[first]
    entities.dof = dof_bound[first]
    entities.dof_count = dof_bound[end] - dof_bound[first]
    entities.body = body_bound[first]
    entities.body_count = body_bound[end] - body_bound[first]
    return entities


@wp.kernel(enable_backward=False, module="pluriverse.simulation.carry_over")
def carry_worlds(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    slot_count: int,  # slots of one thread
    body_bound: wp.array[int],  # [world + 1]
    coord_bound: wp.array[int],  # [world + 1]
    dof_bound: wp.array[int],  # [world + 1]
    world_frozen: wp.array[int],  # [world]
    result: MotionArrays,
    published: MotionArrays,
    sound: MotionArrays,
):
    """Publish the state of a few worlds; for a frozen world the last finite one."""
    thread, _ = wp.tid()
    first_slot = thread * slot_count
    end_slot = wp.min(first_slot + slot_count, worlds.shape[0])
    world_count = body_bound.shape[0] - 1
    # Worlds that are neighbours in memory are copied at once: finding a small world takes longer than copying
    # it.
    first = worlds[first_slot]
    is_run = bool(True)
    for slot in range(first_slot, end_slot):
        world = worlds[slot]
        is_next = world == first + slot - first_slot and world >= 0 and world < world_count
        if is_next:  # only then the index is in the array
            is_next = world_frozen[world] == 0
        is_run = is_run and is_next
    if is_run:
        end = first + end_slot - first_slot
        neighbours = world_range(body_bound, coord_bound, dof_bound, first, end)
        copy_motion(result, published, sound, neighbours)
        return
    for slot in range(first_slot, end_slot):
        world = worlds[slot]
        if world >= 0 and world < world_count:  # else an index on the device that names no world
            entities = world_range(body_bound, coord_bound, dof_bound, world, world + 1)
            if world_frozen[world] != 0 and not is_finite_world(result, entities):
                copy_motion(sound, published, sound, entities)
            else:
                copy_motion(result, published, sound, entities)


class CarryOver:
    """Makes the result of a step the public state. Only launches, so a step may be recorded.

    Args:
        model: Model that is simulated.
        public: State whose arrays users hold on to.
        sound: State that keeps a copy; users have no access to it.
        world_frozen: 1 where a world was stopped, shape [world].
    """

    def __init__(self, model: Model, public: State, sound: State, world_frozen: wp.array[int]) -> None:
        self._device = model.device
        self._bounds = world_bounds(model)
        self._public_state = public
        self._public, self._sound = _motion_arrays(public), _motion_arrays(sound)
        self._world_frozen = world_frozen

    def publish_worlds(self, worlds: wp.array[int], result: State) -> None:
        """Copy the state of worlds from `result`, which may be the public state, to the public state."""
        slot_count = CPU_SLOT_COUNT if self._device.is_cpu else 1
        launch_kernel(
            carry_worlds,
            dim=-(-worlds.size // slot_count),
            inputs=[
                worlds,
                slot_count,
                *self._bounds,
                self._world_frozen,
                _motion_arrays(result),
            ],
            outputs=[self._public, self._sound],
            device=self._device,
        )
        if result is not self._public_state:
            copy_requested(worlds, None, self._bounds, result, self._public_state)


def _motion_arrays(state: State) -> MotionArrays:
    motion = MotionArrays()
    for name in MOTION_ARRAYS:
        setattr(motion, name, _as_floats(getattr(state, name)))
    return motion


def _as_floats(array: wp.array) -> wp.array[float]:
    """Return an array with several numbers per entry as plain numbers, in the same memory."""
    width = wp.types.type_size(array.dtype)
    if width == 1:
        return array
    return same_memory(array, wp.float32, (width * array.size,))
