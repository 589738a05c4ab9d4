"""Candidate stage: whether a contact is missing that the solution would have used, and if so solve again.

Reads   velocities found by the Newton stage, changes of velocity that collision assumed, candidate pairs
Writes  changes that occur; contacts of suspect pairs; worlds to be solved again; `readmitted_step_count`

Collision leaves out contacts that cannot act if no velocity changes more than assumed
(`collision.contact_horizon`). Where that holds, a missing contact would have had no force at the solution,
so its cost has a zero gradient there. The objective is convex and has one minimum: the solution is that of
the problem with all contacts.

Where it does not hold, pairs are tested again, by bounds, with the changes and velocities that were found.
Pairs that may touch are suspect: the contacts of these alone are found, behind those of the world. Suspects
are common and cost little; few of their contacts act. Only if one does, and for the same reason if an idle
contact (`collision.idle_contacts`) does, its world finds all its contacts with the changes that occur and is
solved again, until nothing is missing; after `ROUNDS_MAX` times with all contacts within the gaps.
"""

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.collision.broad_phase import (
    BroadPhaseData,
    PairChoice,
    clear_bit,
    mark_overlapping_pairs,
)
from pluriverse.collision.idle_contacts import PairMotion
from pluriverse.collision.pair_boxes import FIRST_WITH_BOXES, drop_unaffected_pairs
from pluriverse.collision.pair_table import COLLIDER_COUNT, WITH_PLANE, PairTable
from pluriverse.collision.shape_pair import flat_shape
from pluriverse.collision.shape_state import ANY_SPEED, ShapeModel, ShapeState, raise_change
from pluriverse.dynamics.workspace import Workspace, scratch_ranges, workspace_struct
from pluriverse.launch import launch_kernel, launch_while, made_once, world_thread_count
from pluriverse.math.bit_sets import next_set_bit
from pluriverse.math.precision import kernel_module, vec6_type
from pluriverse.model import Contacts, Model, Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.scratch import Scratch, zeros_on_demand
from pluriverse.solvers.sap.candidate_motion import (
    IdleContacts,
    is_surely_above,
    is_surely_idle,
    motion_functions,
)

# Times that a world is solved again at the speeds found before it gets every contact within the gaps.
ROUNDS_MAX = wp.constant(3)
# The changes of the next round are those found and this fraction more: the solution changes by what is added.
ROUND_GAIN = wp.constant(0.1)


# Lists of worlds, besides one for each world, that may be stepped with the same solver.
LIST_COUNT_SPARE = 64


@wp.struct
class Repeats:
    """Linked list of the worlds of one launch that must be solved again."""

    head: wp.array[int]
    """The next one plus 1, 0 for none, shape [1]."""
    one: wp.array[int]
    """The one that was taken from the list, shape [1]."""
    following: wp.array[int]
    """What `head` was before a world was put in front, shape [world]."""
    round: wp.array[int]
    """How often each world was solved again in this step, shape [world]."""
    step_count: wp.array[int]
    """Steps so far in which that happened, shape [world]."""


@wp.func
def enlist(
    world: int,
    shapes: wp.ref[ShapeModel],
    found: wp.array[float],
    state: wp.ref[ShapeState],
    repeats: wp.ref[Repeats],
):
    """Add a world to the list of those to be solved again, with the changes of velocity found in it."""
    if repeats.round[world] == 0:
        repeats.step_count[world] = repeats.step_count[world] + 1
    repeats.round[world] = repeats.round[world] + 1
    template = shapes.world_template[world]
    for entry in range(shapes.collider_start[template], shapes.collider_start[template + 1]):
        shape = shapes.world_shape[world] + shapes.collider[entry]
        if shapes.shape_body[shape] >= 0:
            change = (1.0 + ROUND_GAIN) * found[shape]
            if repeats.round[world] > ROUNDS_MAX:
                change = ANY_SPEED
            state.place[shape].change = wp.max(state.place[shape].change, change)
    repeats.following[world] = wp.atomic_exch(repeats.head, 0, world + 1)


@made_once
def _kernels(dynamics_real: Any) -> SimpleNamespace:
    vec6 = vec6_type(dynamics_real)
    DynamicsData = workspace_struct(dynamics_real)
    functions = motion_functions(dynamics_real)
    sweep_rates, raise_changes = functions.sweep_rates, functions.raise_changes
    does_act = functions.does_act

    @wp.func
    def does_idle_contact_act(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        shapes: wp.ref[ShapeModel],
        state: wp.ref[ShapeState],
        contacts: wp.ref[IdleContacts],
        sliding_speed: float,
        rate: wp.array(dtype=vec6),
        motion: wp.array[wp.spatial_vector],
        world: int,
    ) -> bool:
        """Return whether an idle contact acts at the rates of the trees of its world."""
        acts = bool(False)
        pair = PairMotion()
        pair.shape0 = -1
        first = contacts.start[world] + contacts.known[world] - contacts.idle_count[world]
        for slot in range(first, contacts.start[world] + contacts.known[world]):
            if not is_surely_idle(state, motion, contacts, sliding_speed, pair, slot):
                if does_act(topology, dynamics, shapes, state, contacts, sliding_speed, rate, world, slot):
                    acts = True
        return acts

    @wp.func
    def does_added_contact_act(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        shapes: wp.ref[ShapeModel],
        state: wp.ref[ShapeState],
        contacts: wp.ref[IdleContacts],
        sliding_speed: float,
        stiffness: wp.array[float],
        has_stiffness: int,
        rate: wp.array(dtype=vec6),
        world: int,
    ) -> bool:
        """Return whether a contact that was added later acts at these rates."""
        acts = bool(False)
        start = contacts.start[world]
        for slot in range(start + contacts.known[world], start + contacts.added_found[world]):
            # A pressure patch acts as it is found.
            if has_stiffness != 0:
                acts = acts or stiffness[slot] > 0.0
            acts = acts or does_act(
                topology, dynamics, shapes, state, contacts, sliding_speed, rate, world, slot
            )
        return acts

    @wp.func
    def find_suspects_of_world(
        world: int,
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        shapes: wp.ref[ShapeModel],
        contacts: wp.ref[IdleContacts],
        sliding_speed: float,
        world_frozen: wp.array[int],
        check_free: int,
        is_first: int,
        rate: wp.array(dtype=vec6),
        motion: wp.array[wp.spatial_vector],
        found: wp.array[float],
        assumed: wp.array[float],
        state: wp.ref[ShapeState],
        broad_phase: wp.ref[BroadPhaseData],
        pairs: wp.ref[PairTable],
        repeats: wp.ref[Repeats],
    ):
        """Mark pairs of a world that its solution may bring into contact beyond the distance searched.

        If an idle contact acts, the world goes into the list of those to be solved again at once.
        """
        if is_first != 0:
            repeats.round[world] = 0
        template = shapes.world_template[world]
        first_pair = pairs.pair_start[template * COLLIDER_COUNT]
        pair_count = pairs.pair_start[(template + 1) * COLLIDER_COUNT] - first_pair
        first_word = pairs.near_start[world]
        for word in range(first_word, first_word + (pair_count + 31) // 32):
            pairs.near[word] = wp.uint32(0)
        # Whoever wrote another count there must not lead beyond the slots.
        known = stored_contact_count(contacts.start, contacts.count, world) + contacts.idle_count[world]
        known = wp.min(known, contacts.start[world + 1] - contacts.start[world])
        contacts.known[world] = known
        contacts.added_found[world] = known
        first_shape = shapes.world_shape[world]
        begin, end = shapes.collider_start[template], shapes.collider_start[template + 1]
        # Where every shape was looked at as far as its gaps, nothing can be missing.
        is_complete = bool(True)
        entry = begin
        while entry < end and is_complete:
            shape = first_shape + shapes.collider[entry]
            is_complete = shapes.shape_body[shape] < 0 or state.place[shape].change >= ANY_SPEED
            entry += 1
        if is_complete or world_frozen[world] != 0:
            return

        exceeded, missed = int(0), bool(False)
        if check_free != 0:
            sweep_rates(topology, dynamics, world, dynamics.dof_velocity_free, rate)
            exceeded = raise_changes(topology, dynamics, shapes, state, rate, world, 1, found, motion)
            missed = does_idle_contact_act(
                topology, dynamics, shapes, state, contacts, sliding_speed, rate, motion, world
            )
        sweep_rates(topology, dynamics, world, dynamics.dof_velocity_next, rate)
        exceeded += raise_changes(
            topology, dynamics, shapes, state, rate, world, 1 - check_free, found, motion
        )
        missed = missed or does_idle_contact_act(
            topology, dynamics, shapes, state, contacts, sliding_speed, rate, motion, world
        )
        if missed:
            enlist(world, shapes, found, state, repeats)
            return
        if exceeded == 0:
            return
        for entry in range(begin, end):
            shape = first_shape + shapes.collider[entry]
            assumed[shape] = state.place[shape].change
            raise_change(state, shape, found[shape])
        some = PairChoice()
        some.is_limited = 1
        some.change = found
        some.assumed = assumed
        mark_overlapping_pairs(world, state, some, broad_phase, pairs)
        if check_free != 0:
            return  # colliders look at the speeds of pairs
        # Near are pairs by norms of changes; what the solution depends on are velocities.
        first_row = template * COLLIDER_COUNT
        drop_unaffected_pairs(
            state.place,
            motion,
            assumed,
            pairs.pair_shape0,
            pairs.pair_shape1,
            pairs.pair_start[first_row + FIRST_WITH_BOXES] - first_pair,
            pair_count,
            first_pair,
            first_shape,
            1,
            pairs.near,
            first_word,
        )
        for row in range(first_row, first_row + COLLIDER_COUNT):  # not unrolled: bounds are no constants
            if ((WITH_PLANE >> (row - first_row)) & 1) == 0:
                continue
            last = pairs.pair_start[row + 1] - first_pair
            index = next_set_bit(pairs.near, first_word, pairs.pair_start[row] - first_pair, last)
            while index < last:
                plane = flat_shape(pairs.pair_shape0[first_pair + index], first_shape)
                shape = flat_shape(pairs.pair_shape1[first_pair + index], first_shape)
                if is_surely_above(state, motion[plane], motion[shape], assumed, plane, shape):
                    clear_bit(pairs.near, first_word, index)
                index = next_set_bit(pairs.near, first_word, index + 1, last)

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.solvers.sap.candidates", dynamics_real)
    )
    def find_suspect_pair(
        worlds: wp.array[int],  # [slot] the worlds of this launch
        stride: int,  # number of threads, see `world_thread_count`
        topology: Topology,
        dynamics: DynamicsData,
        shapes: ShapeModel,
        contacts: IdleContacts,
        sliding_speed: float,  # m/s, see `contact_horizon`
        world_frozen: wp.array[int],  # [world]
        check_free: int,
        is_first: int,
        # out
        rate: wp.array(dtype=vec6),  # [node]
        motion: wp.array[wp.spatial_vector],  # [shape] rad/s, m/s at the middle
        found: wp.array[float],  # [shape] change of velocity, m/s
        assumed: wp.array[float],  # [shape] what collision had assumed of it, m/s
        state: ShapeState,
        broad_phase: BroadPhaseData,
        pairs: PairTable,
        repeats: Repeats,
    ):
        """Mark the suspect pairs of some worlds, one world after the other."""
        thread, _ = wp.tid()
        for slot in range(thread, worlds.shape[0], stride):
            find_suspects_of_world(
                worlds[slot],
                topology,
                dynamics,
                shapes,
                contacts,
                sliding_speed,
                world_frozen,
                check_free,
                is_first,
                rate,
                motion,
                found,
                assumed,
                state,
                broad_phase,
                pairs,
                repeats,
            )

    @wp.func
    def check_contacts_of_world(
        world: int,
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        shapes: wp.ref[ShapeModel],
        contacts: wp.ref[IdleContacts],
        sliding_speed: float,
        stiffness: wp.array[float],
        has_stiffness: int,
        check_free: int,
        found: wp.array[float],
        rate: wp.array(dtype=vec6),
        state: wp.ref[ShapeState],
        repeats: wp.ref[Repeats],
    ):
        """Add a world to the list if its solution would have used contacts that were found later."""
        added_found = contacts.added_found[world]
        if added_found == contacts.known[world]:
            return
        # What did not fit may act.
        missed = added_found > contacts.start[world + 1] - contacts.start[world]
        if not missed:
            missed = does_added_contact_act(
                topology,
                dynamics,
                shapes,
                state,
                contacts,
                sliding_speed,
                stiffness,
                has_stiffness,
                rate,
                world,
            )
        if check_free != 0 and not missed:
            sweep_rates(topology, dynamics, world, dynamics.dof_velocity_free, rate)
            missed = does_added_contact_act(
                topology,
                dynamics,
                shapes,
                state,
                contacts,
                sliding_speed,
                stiffness,
                has_stiffness,
                rate,
                world,
            )
        if missed:
            enlist(world, shapes, found, state, repeats)

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.solvers.sap.candidates", dynamics_real)
    )
    def check_added_contact(
        worlds: wp.array[int],  # [slot] the worlds of this launch
        stride: int,  # number of threads, see `world_thread_count`
        topology: Topology,
        dynamics: DynamicsData,
        shapes: ShapeModel,
        contacts: IdleContacts,
        sliding_speed: float,  # m/s, see `contact_horizon`
        stiffness: wp.array[float],  # [slot] N/m
        has_stiffness: int,
        check_free: int,
        found: wp.array[float],  # [shape] change of velocity, m/s
        # out
        rate: wp.array(dtype=vec6),  # [node]
        state: ShapeState,
        repeats: Repeats,
    ):
        """Add worlds to the list whose solution would have used contacts that were found later."""
        thread, _ = wp.tid()
        for slot in range(thread, worlds.shape[0], stride):
            check_contacts_of_world(
                worlds[slot],
                topology,
                dynamics,
                shapes,
                contacts,
                sliding_speed,
                stiffness,
                has_stiffness,
                check_free,
                found,
                rate,
                state,
                repeats,
            )

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.solvers.sap.candidates", dynamics_real)
    )
    def take_world(repeats: Repeats):
        """Take the first world from the list."""
        world = repeats.head[0] - 1
        repeats.head[0] = repeats.following[world]
        repeats.one[0] = world

    return SimpleNamespace(
        find_suspect_pair=find_suspect_pair, check_added_contact=check_added_contact, take_world=take_world
    )


class CandidateCheck:
    """Solves worlds again that need contacts which collision left out.

    Args:
        model: Model that is simulated.
        dynamics: Workspace of the solver.
        world_frozen: 1 where a world is frozen, shape [world].
        step_count: Counts the steps in which a world was solved again, shape [world].
    """

    def __init__(self, model: Model, dynamics: Workspace, world_frozen: wp.array, step_count: wp.array):
        self._model, self._dynamics, self._frozen = model, dynamics, world_frozen
        self._step_count = step_count
        device = model.device
        self._rate = zeros_on_demand(model.joint_count, vec6_type(dynamics.real), device)
        self._motion = wp.zeros(model.shape_count, dtype=wp.spatial_vector, device=device)
        self._found = wp.zeros(model.shape_count, dtype=float, device=device)
        self._assumed = wp.zeros(model.shape_count, dtype=float, device=device)
        self._round = wp.zeros(model.world_count, dtype=int, device=device)
        self._following = wp.zeros(model.world_count, dtype=int, device=device)
        # Threads step their lists of worlds at the same time, so each list has a place of its own, as long
        # as it exists. All are allocated here: a recording would only record that they are set to zero.
        place_count = 2 * model.world_count + LIST_COUNT_SPARE
        self._head = wp.zeros(place_count, dtype=int, device=device)
        self._one = wp.zeros(place_count, dtype=int, device=device)
        self._free_slots = list(range(place_count))
        self._repeats: dict[int, Repeats] = {}

    def scratch(self) -> list[Scratch]:
        """Return the arrays that steps leave nothing in."""
        return [Scratch(self._rate, *scratch_ranges(self._model)["node"])]

    def repeat(
        self,
        worlds: wp.array,
        contacts: Contacts,
        solve: Callable[[wp.array], None],
        *,
        check_free: bool,
    ) -> None:
        """Solve those of `worlds` again that need it, by `solve`, after their contacts were found again.

        Args:
            worlds: Worlds that were solved.
            contacts: Contacts that they were solved with, found with a horizon.
            solve: Solves some worlds from the contacts on. It may only launch.
            check_free: Whether the solution also depends on contacts that act at the velocity of free motion.
        """
        culling = contacts.culling
        repeats = self._repeats_of(worlds)
        idle = IdleContacts()
        idle.start = contacts.rigid_contact_start
        idle.count = contacts.rigid_contact_count
        idle.idle_count = culling.stages.idle_count
        idle.known = culling.stages.known
        idle.added_found = culling.stages.added_found
        idle.shape0, idle.shape1 = contacts.rigid_contact_shape0, contacts.rigid_contact_shape1
        idle.point0, idle.point1 = contacts.rigid_contact_point0, contacts.rigid_contact_point1
        idle.normal = contacts.rigid_contact_normal
        idle.separation = culling.separation
        device = self._model.device
        kernels = _kernels(self._dynamics.real)

        stiffness = contacts.rigid_contact_stiffness

        def check(some: wp.array, *, is_first: bool) -> None:
            threads = world_thread_count(some)
            launch_kernel(
                kernels.find_suspect_pair,
                dim=threads,
                inputs=[
                    some,
                    threads,
                    self._model.topology,
                    self._dynamics.data,
                    culling.stages.shapes,
                    idle,
                    culling.horizon.sliding_speed,
                    self._frozen,
                    int(check_free),
                    int(is_first),
                ],
                outputs=[
                    self._rate,
                    self._motion,
                    self._found,
                    self._assumed,
                    culling.stages.state,
                    culling.broad_phase,
                    culling.pairs,
                    repeats,
                ],
                device=device,
            )
            culling.collide_suspects(some)
            launch_kernel(
                kernels.check_added_contact,
                dim=threads,
                inputs=[
                    some,
                    threads,
                    self._model.topology,
                    self._dynamics.data,
                    culling.stages.shapes,
                    idle,
                    culling.horizon.sliding_speed,
                    stiffness,
                    int(stiffness is not None),
                    int(check_free),
                    self._found,
                ],
                outputs=[self._rate, culling.stages.state, repeats],
                device=device,
            )

        def solve_one() -> None:
            launch_kernel(kernels.take_world, dim=1, inputs=[repeats], device=device)
            culling.collide_again(repeats.one)
            solve(repeats.one)
            check(repeats.one, is_first=False)

        check(worlds, is_first=True)
        launch_while(repeats.head, solve_one)

    def _repeats_of(self, worlds: wp.array) -> Repeats:
        """Return the slot of a list of worlds."""
        key = id(worlds)
        if key in self._repeats:
            return self._repeats[key]
        if not self._free_slots:
            raise RuntimeError(
                f"SolverSAP.step: {len(self._repeats)} lists of worlds are in use, more than there are "
                "worlds. Keep a list and pass it again."
            )
        slot = self._free_slots.pop()
        repeats = Repeats()
        repeats.head = self._head[slot : slot + 1]
        repeats.one = self._one[slot : slot + 1]
        repeats.following = self._following
        repeats.round = self._round
        repeats.step_count = self._step_count
        self._repeats[key] = repeats
        weakref.finalize(worlds, _release, self._repeats, key, self._free_slots, slot)
        return repeats


def _release(repeats: dict[int, Repeats], key: int, free_slots: list[int], slot: int) -> None:
    """Free a slot after its list of worlds has been deleted."""
    repeats.pop(key, None)
    free_slots.append(slot)
