"""Carry-over stage: the end of a step of the simulation, where its result becomes the public state.

The solver moves worlds from one state to another. Users hold on to the arrays of one of them, so the result
ends there, at the same addresses after every step. A copy of it stays behind: to return a world to its last
finite state when somebody writes NaN into the public one.

Reads   world_frozen of the solver; joint_q, joint_qd, body_q, body_qd of the state that the solver wrote last
Writes  the same of the public state and of the copy
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.math.dense import numbers_copy
from pluriverse.model import Model, State
from pluriverse.simulation.world_bounds import world_bounds

_FLOATS = ((1, "joint_q"), (1, "joint_qd"), (7, "body_q"), (6, "body_qd"))


@wp.struct
class MotionArrays:
    """The arrays of a state that a step writes, as plain numbers; see `State`."""

    joint_q: wp.array[float]  # [coord]
    joint_qd: wp.array[float]  # [dof]
    body_q: wp.array[float]  # [7 body]
    body_qd: wp.array[float]  # [6 body]


@wp.struct
class WorldRange:
    """Where the entities of a world begin, and how many there are."""

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
def is_finite_world(motion: MotionArrays, place: WorldRange) -> bool:
    """Return whether all numbers of a world are finite."""
    return (
        is_finite_row(motion.joint_q, place.coord, place.coord_count)
        and is_finite_row(motion.joint_qd, place.dof, place.dof_count)
        and is_finite_row(motion.body_q, 7 * place.body, 7 * place.body_count)
        and is_finite_row(motion.body_qd, 6 * place.body, 6 * place.body_count)
    )


@wp.func
def copy_motion(source: MotionArrays, target: MotionArrays, second: MotionArrays, place: WorldRange):
    """Copy the state of a world to two places."""
    numbers_copy(source.joint_q, place.coord, place.coord_count, target.joint_q, second.joint_q)
    numbers_copy(source.joint_qd, place.dof, place.dof_count, target.joint_qd, second.joint_qd)
    numbers_copy(source.body_q, 7 * place.body, 7 * place.body_count, target.body_q, second.body_q)
    numbers_copy(source.body_qd, 6 * place.body, 6 * place.body_count, target.body_qd, second.body_qd)


@wp.kernel(enable_backward=False, module="pluriverse.simulation.carry_over")
def carry_world(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    body_bound: wp.array[int],  # [world + 1]
    coord_bound: wp.array[int],  # [world + 1]
    dof_bound: wp.array[int],  # [world + 1]
    world_frozen: wp.array[int],  # [world]
    result: MotionArrays,
    published: MotionArrays,
    sound: MotionArrays,
):
    """Publish the state of one world, or what it was when it was last finite."""
    world = worlds[wp.tid()]
    if world < 0 or world >= body_bound.shape[0] - 1:
        return  # an index on the device that names no world
    place = WorldRange()
    place.coord = coord_bound[world]
    place.coord_count = coord_bound[world + 1] - coord_bound[world]
    place.dof = dof_bound[world]
    place.dof_count = dof_bound[world + 1] - dof_bound[world]
    place.body = body_bound[world]
    place.body_count = body_bound[world + 1] - body_bound[world]
    if world_frozen[world] != 0:
        if not is_finite_world(result, place):
            copy_motion(sound, published, sound, place)
            return
    copy_motion(result, published, sound, place)


class CarryOver:
    """Makes the result of a step the public state. Only launches, so a step may be recorded.

    Args:
        model: Model that is simulated.
        public: State whose arrays users hold on to.
        sound: State that keeps a copy, never seen by users.
        world_frozen: 1 where a world was stopped, shape [world].
    """

    def __init__(self, model: Model, public: State, sound: State, world_frozen: wp.array[int]) -> None:
        self._device = model.device
        self._bounds = world_bounds(model)
        self._public, self._sound = _motion_arrays(public), _motion_arrays(sound)
        self._world_frozen = world_frozen

    def publish_worlds(self, worlds: wp.array[int], result: State) -> None:
        """Put the state of worlds in `result`, which may be the public state, into the public one."""
        launch_kernel(
            carry_world,
            dim=worlds.size,
            inputs=[
                worlds,
                *self._bounds,
                self._world_frozen,
                _motion_arrays(result),
            ],
            outputs=[self._public, self._sound],
            device=self._device,
        )


def _motion_arrays(state: State) -> MotionArrays:
    motion = MotionArrays()
    for width, name in _FLOATS:
        setattr(motion, name, _as_floats(getattr(state, name), width))
    return motion


def _as_floats(array: wp.array, width: int) -> wp.array[float]:
    """Return an array of so many numbers per entry as plain numbers, in the same memory."""
    if width == 1:
        return array
    alias: wp.array[float] = wp.array(
        ptr=array.ptr, dtype=wp.float32, shape=width * array.size, device=array.device
    )
    alias._ref = array  # keeps the memory alive
    return alias
