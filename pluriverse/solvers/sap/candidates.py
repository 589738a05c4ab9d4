"""Candidate stage: whether a contact is missing that the solution would have used, and if so solve again.

Reads   velocities found by the Newton stage, changes of velocity that collision assumed, candidate pairs
Writes  changes that occur; worlds to be solved again; `readmitted_step_count`

Contacts that are idle (`collision.idle_contacts`) are looked at first, by the velocities that were found.
Besides, collision leaves out contacts that cannot act if no velocity changes more than assumed
(`collision.contact_horizon`). Where that holds, a missing contact would have had no force at the solution,
so its cost has a zero gradient there. The objective is convex and has one minimum: the solution is that of
the problem with all contacts. Where it does not hold, pairs are tested again with the changes that were
found. If one of them may touch by them, its world finds its contacts with these and is solved again, until
nothing is missing; after `ROUNDS_MAX` times with all contacts within the gaps.
"""

import functools
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.collision.idle_contacts import acting_distance, usual_change
from pluriverse.collision.pair_table import COLLIDER_COUNT, WITH_PLANE, PairTable
from pluriverse.collision.segment import closest_segment_points
from pluriverse.collision.shape_pair import (
    distance_bound,
    flat_shape,
    middles_apart,
    plane_height_bound,
    plane_normal,
    reach_at_change,
    reach_at_speed,
    relative_speed,
)
from pluriverse.collision.shape_state import ANY_SPEED, CAPSULE, SPHERE, ShapeModel, ShapeState
from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, launch_while
from pluriverse.math.precision import kernel_module, vec6_type
from pluriverse.model import Contacts, Model, Topology

# Times that a world is solved again at the speeds found before it gets every contact within the gaps.
ROUNDS_MAX = wp.constant(3)
# The changes of the next round are those found and this fraction more: the solution changes by what is added.
ROUND_GAIN = wp.constant(0.1)


# Lists of worlds, besides one for each world, that may be stepped with the same solver.
LIST_COUNT_SPARE = 64


@wp.struct
class Repeats:
    """Worlds of one launch that have to be solved again, a linked list."""

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


@wp.struct
class IdleContacts:
    """Contacts that the solver was not given; see `Contacts` and `ContactOutput`."""

    start: wp.array[int]
    count: wp.array[int]
    idle_count: wp.array[int]
    shape0: wp.array[int]
    shape1: wp.array[int]
    point0: wp.array[wp.vec3]
    point1: wp.array[wp.vec3]
    normal: wp.array[wp.vec3]
    separation: wp.array[float]


@functools.cache
def _kernels(dynamics_real: Any) -> SimpleNamespace:
    vec6 = vec6_type(dynamics_real)
    DynamicsData = workspace_struct(dynamics_real)

    @wp.func
    def shape_change(
        dynamics: DynamicsData,
        state: ShapeState,
        rate: wp.array(dtype=vec6),
        shape: int,
        node: int,
    ) -> float:
        """Return the largest change of velocity of a point of a shape, to the rates of its tree [m/s]."""
        twist = rate[node]
        spin = wp.vec3(float(twist[0]), float(twist[1]), float(twist[2]))
        velocity = wp.vec3(float(twist[3]), float(twist[4]), float(twist[5]))
        arm = wp.vec3(dynamics.node_offset[node]) + state.middle[shape]
        change = velocity + wp.cross(spin, arm) - state.velocity[shape]
        return wp.length(change) + wp.length(spin - state.spin[shape]) * state.radius[shape]

    @wp.func
    def sweep_rates(
        topology: Topology,
        dynamics: DynamicsData,
        world: int,
        dof_rate: wp.array(dtype=dynamics_real),
        rate: wp.array(dtype=vec6),
    ):
        """Write the spatial velocity of every node of a world at the rates of its degrees of freedom."""
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        tree0 = topology.world_tree[world]
        for node in range(topology.template_node[template + 1] - first_node):
            twist = vec6()
            parent = topology.node_parent[first_node + node]
            if parent >= 0:
                twist = rate[node0 + parent]
            else:
                twist = dynamics.tree_drift[tree0 + topology.node_tree[first_node + node]]
            begin = topology.node_dof[first_node + node]
            for dof in range(begin, begin + topology.node_dof_count[first_node + node]):
                twist += dof_rate[dof0 + dof] * dynamics.dof_motion[dof0 + dof]
            rate[node0 + node] = twist

    @wp.func
    def raise_changes(
        topology: Topology,
        dynamics: DynamicsData,
        shapes: ShapeModel,
        state: ShapeState,
        rate: wp.array(dtype=vec6),
        world: int,
        is_first: int,
        found: wp.array[float],
    ) -> int:
        """Write the largest changes so far into `found`; return whether one exceeds what was assumed.

        There are none so far if `is_first` is set.
        """
        template = shapes.world_template[world]
        first_shape = shapes.world_shape[world]
        first_node = topology.world_joint[world]
        # `body_node` counts bodies of the template.
        to_template = topology.template_body[template] - topology.world_body[world]
        exceeded = int(0)
        for entry in range(shapes.collider_start[template], shapes.collider_start[template + 1]):
            shape = first_shape + shapes.collider[entry]
            body = shapes.shape_body[shape]
            change = float(0.0)
            if body >= 0:
                node = first_node + topology.body_node[to_template + body]
                change = shape_change(dynamics, state, rate, shape, node)
                if not change < ANY_SPEED:
                    change = ANY_SPEED
            if is_first == 0:
                change = wp.max(found[shape], change)
            found[shape] = change
            if change > state.change[shape]:
                exceeded = 1
        return exceeded

    @wp.func
    def shape_motion(
        topology: Topology,
        dynamics: DynamicsData,
        shapes: ShapeModel,
        state: ShapeState,
        rate: wp.array(dtype=vec6),
        world: int,
        shape: int,
    ) -> wp.spatial_vector:
        """Return the spin of a shape and its velocity at its middle, at the rates of its tree."""
        result = wp.spatial_vector()
        body = shapes.shape_body[shape]
        if body >= 0:
            template = topology.world_template[world]
            node = topology.body_node[topology.template_body[template] + body - topology.world_body[world]]
            node += topology.world_joint[world]
            twist = rate[node]
            spin = wp.vec3(float(twist[0]), float(twist[1]), float(twist[2]))
            velocity = wp.vec3(float(twist[3]), float(twist[4]), float(twist[5]))
            arm = wp.vec3(dynamics.node_offset[node]) + state.middle[shape]
            result = wp.spatial_vector(spin, velocity + wp.cross(spin, arm))
        return result

    @wp.func
    def reach_at_rates(
        topology: Topology,
        dynamics: DynamicsData,
        shapes: ShapeModel,
        state: ShapeState,
        rate: wp.array(dtype=vec6),
        world: int,
        shape0: int,
        shape1: int,
    ) -> float:
        """Return the distance up to which contacts of a pair may act at the rates of its trees [m]."""
        motion0 = shape_motion(topology, dynamics, shapes, state, rate, world, shape0)
        motion1 = shape_motion(topology, dynamics, shapes, state, rate, world, shape1)
        spin0, spin1 = wp.spatial_top(motion0), wp.spatial_top(motion1)
        speed = relative_speed(
            middles_apart(state, shape0, shape1),
            wp.spatial_bottom(motion0),
            spin0,
            state.radius[shape0],
            wp.spatial_bottom(motion1),
            spin1,
            state.radius[shape1],
        )
        lead = wp.max(state.lead[shape0], state.lead[shape1])
        return reach_at_speed(lead, speed, wp.max(wp.length(spin0), wp.length(spin1)))

    @wp.func
    def is_round(shape_type: int) -> bool:
        """Return whether a shape is a sphere or capsule."""
        result = shape_type == SPHERE
        return result or shape_type == CAPSULE

    @wp.func
    def round_axis(state: ShapeState, shape_type: int, shape: int) -> wp.vec3:
        """Return the vector from the middle of a sphere or capsule to the end of its axis [m], world axes."""
        axis = wp.vec3()
        if shape_type == CAPSULE:
            rotation = state.rotation[shape]
            axis = state.size[shape][1] * wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])
        return axis

    @wp.func
    def shape_distance_bound(shapes: ShapeModel, state: ShapeState, shape0: int, shape1: int) -> float:
        """Return a lower bound of the distance of two shapes, of spheres and capsules the distance [m]."""
        type0, type1 = shapes.shape_type[shape0], shapes.shape_type[shape1]
        distance = distance_bound(state, shape0, shape1)
        if is_round(type0) and is_round(type1):
            half0, half1 = round_axis(state, type0, shape0), round_axis(state, type1, shape1)
            apart = middles_apart(state, shape0, shape1)
            place = closest_segment_points(half0, apart, half1)
            offset = apart + (place[1] * half1 - place[0] * half0)
            distance = wp.length(offset) - state.size[shape0][0] - state.size[shape1][0]
        return distance

    @wp.func
    def plane_reach_at_rates(
        topology: Topology,
        dynamics: DynamicsData,
        shapes: ShapeModel,
        state: ShapeState,
        rate: wp.array(dtype=vec6),
        world: int,
        plane: int,
        shape: int,
    ) -> float:
        """Return the height over a plane up to which a shape may touch it at the rates of its trees [m].

        The normal is known here, so a shape that leaves the plane does not touch it.
        """
        motion0 = shape_motion(topology, dynamics, shapes, state, rate, world, plane)
        motion1 = shape_motion(topology, dynamics, shapes, state, rate, world, shape)
        spin = wp.length(wp.spatial_top(motion1))
        if wp.length_sq(motion0) > 0.0:
            return float(ANY_SPEED)
        velocity = wp.spatial_bottom(motion1)
        parting = wp.dot(plane_normal(state, plane), velocity)
        sliding = wp.length(velocity - parting * plane_normal(state, plane))
        lead = wp.max(state.lead[plane], state.lead[shape])
        friction = wp.max(state.friction[plane], state.friction[shape])
        slope = wp.sqrt(1.0 + friction * friction)
        # Of all points of the shape, and with moments: `radius` holds what a spin counts for besides.
        speed = (friction * sliding - parting) / slope + spin * state.radius[shape]
        return reach_at_speed(lead, wp.max(speed, 0.0), spin)

    @wp.func
    def is_pair_missed(
        state: ShapeState, found: wp.array[float], shape0: int, shape1: int, is_plane: bool
    ) -> bool:
        """Return whether a pair may touch by the changes found, but was not looked at that far."""
        # Shapes that do not move have no change and no entry in `found`.
        change = found[shape0] + found[shape1]
        if change <= state.change[shape0] + state.change[shape1]:
            return False
        margins = state.margin[shape0] + state.margin[shape1]
        within_gaps = state.gap_reach[shape0] + state.gap_reach[shape1]
        reach = wp.min(margins + reach_at_change(state, shape0, shape1, change), within_gaps)
        if is_plane:
            return plane_height_bound(state, shape0, shape1) <= reach
        return distance_bound(state, shape0, shape1) <= reach

    @wp.func
    def is_surely_idle(
        state: ShapeState, contacts: IdleContacts, found: wp.array[float], usual: float, slot: int
    ) -> bool:
        """Return whether the velocities of an idle contact changed by less than it was found idle for."""
        shape0, shape1 = contacts.shape0[slot], contacts.shape1[slot]
        change0, change1 = found[shape0], found[shape1]
        # A change of spin is at most that of a point over the radius; by it the points of the contact part.
        distance = wp.max(contacts.separation[slot], 0.0)
        change = change0 * (1.0 + distance / state.radius[shape0])
        change += change1 * (1.0 + distance / state.radius[shape1])
        return change <= wp.min(state.change[shape0] + state.change[shape1], usual)

    @wp.func
    def twist_of(topology: Topology, rate: wp.array(dtype=vec6), world: int, body: int) -> wp.spatial_vector:
        """Return the spatial velocity of a body, spin first, zero for the world."""
        result = wp.spatial_vector()
        if body >= 0:
            template = topology.world_template[world]
            node = topology.body_node[topology.template_body[template] + body - topology.world_body[world]]
            twist = rate[topology.world_joint[world] + node]
            for axis in range(6):
                result[axis] = float(twist[axis])
        return result

    @wp.func
    def point_arm(
        topology: Topology, dynamics: DynamicsData, world: int, body: int, point: wp.vec3
    ) -> wp.vec3:
        """Return a point of a body from the reference point of its tree [m], world axes."""
        arm = point
        if body >= 0:
            template = topology.world_template[world]
            node = topology.body_node[topology.template_body[template] + body - topology.world_body[world]]
            node += topology.world_joint[world]
            arm = wp.vec3(dynamics.node_offset[node]) + wp.mat33(dynamics.node_rotation[node]) * point
        return arm

    @wp.func
    def does_act(
        topology: Topology,
        dynamics: DynamicsData,
        shapes: ShapeModel,
        state: ShapeState,
        contacts: IdleContacts,
        rate: wp.array(dtype=vec6),
        world: int,
        slot: int,
    ) -> bool:
        """Return whether an idle contact acts at the rates of its trees."""
        shape0, shape1 = contacts.shape0[slot], contacts.shape1[slot]
        body0, body1 = shapes.shape_body[shape0], shapes.shape_body[shape1]
        twist0, twist1 = twist_of(topology, rate, world, body0), twist_of(topology, rate, world, body1)
        arm0 = point_arm(topology, dynamics, world, body0, contacts.point0[slot])
        arm1 = point_arm(topology, dynamics, world, body1, contacts.point1[slot])
        spin0, spin1 = wp.spatial_top(twist0), wp.spatial_top(twist1)
        velocity = wp.spatial_bottom(twist1) + wp.cross(spin1, arm1)
        velocity -= wp.spatial_bottom(twist0) + wp.cross(spin0, arm0)
        distance = contacts.separation[slot]
        acting = acting_distance(
            state, shape0, shape1, contacts.normal[slot], velocity, spin0, spin1, distance
        )
        return not acting < distance

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.solvers.sap.candidates", dynamics_real)
    )
    def find_missed_candidate(
        worlds: wp.array[int],  # [slot] the worlds of this launch
        topology: Topology,
        dynamics: DynamicsData,
        pairs: PairTable,
        shapes: ShapeModel,
        contacts: IdleContacts,
        world_frozen: wp.array[int],  # [world]
        check_free: int,
        is_first: int,
        usual: float,  # m/s, change of velocity for which contacts were found idle
        # out
        rate: wp.array(dtype=vec6),  # [node]
        found: wp.array[float],  # [shape] change of velocity, m/s
        state: ShapeState,
        repeats: Repeats,
    ):
        """Put a world into the list if contacts may be missing that its solution would have used."""
        world = worlds[wp.tid()]
        if is_first != 0:
            repeats.round[world] = 0
        template = shapes.world_template[world]
        first_shape = shapes.world_shape[world]
        begin, end = shapes.collider_start[template], shapes.collider_start[template + 1]
        if begin == end or world_frozen[world] != 0:
            return
        sweep_rates(topology, dynamics, world, dynamics.dof_velocity_next, rate)
        exceeded = raise_changes(topology, dynamics, shapes, state, rate, world, 1, found)
        if check_free != 0:
            sweep_rates(topology, dynamics, world, dynamics.dof_velocity_free, rate)
            exceeded += raise_changes(topology, dynamics, shapes, state, rate, world, 0, found)
        missed = int(0)
        # `rate` has the velocities of free motion now, if those matter: both have to leave a contact idle.
        first_idle = contacts.start[world] + contacts.count[world]
        end_idle = first_idle + contacts.idle_count[world]
        for slot in range(first_idle, end_idle):
            if not is_surely_idle(state, contacts, found, usual, slot):
                if does_act(topology, dynamics, shapes, state, contacts, rate, world, slot):
                    missed = 1
        if check_free != 0:
            sweep_rates(topology, dynamics, world, dynamics.dof_velocity_next, rate)
            for slot in range(first_idle, end_idle):
                if not is_surely_idle(state, contacts, found, usual, slot):
                    if does_act(topology, dynamics, shapes, state, contacts, rate, world, slot):
                        missed = 1
        if exceeded == 0 and missed == 0:
            return

        for collider in range(COLLIDER_COUNT):
            is_plane = ((WITH_PLANE >> collider) & 1) != 0
            row = template * COLLIDER_COUNT + collider
            for index in range(pairs.pair_start[row], pairs.pair_start[row + 1]):
                shape0 = flat_shape(pairs.pair_shape0[index], first_shape)
                shape1 = flat_shape(pairs.pair_shape1[index], first_shape)
                if is_pair_missed(state, found, shape0, shape1, is_plane):
                    # By norms of changes; what the solution depends on are velocities.
                    reach = float(0.0)
                    distance = float(0.0)
                    if check_free == 0:
                        reach = state.margin[shape0] + state.margin[shape1]
                        if is_plane:
                            distance = plane_height_bound(state, shape0, shape1)
                            reach += plane_reach_at_rates(
                                topology, dynamics, shapes, state, rate, world, shape0, shape1
                            )
                        else:
                            distance = shape_distance_bound(shapes, state, shape0, shape1)
                            reach += reach_at_rates(
                                topology, dynamics, shapes, state, rate, world, shape0, shape1
                            )
                    if not distance > reach:
                        missed = 1
        if missed == 0:
            return
        if repeats.round[world] == 0:
            repeats.step_count[world] = repeats.step_count[world] + 1
        repeats.round[world] = repeats.round[world] + 1
        for entry in range(begin, end):
            shape = first_shape + shapes.collider[entry]
            if shapes.shape_body[shape] >= 0:
                change = (1.0 + ROUND_GAIN) * found[shape]
                if repeats.round[world] > ROUNDS_MAX:
                    change = ANY_SPEED
                state.change[shape] = wp.max(state.change[shape], change)
        repeats.following[world] = wp.atomic_exch(repeats.head, 0, world + 1)

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.solvers.sap.candidates", dynamics_real)
    )
    def take_world(repeats: Repeats):
        """Take the first world from the list."""
        world = repeats.head[0] - 1
        repeats.head[0] = repeats.following[world]
        repeats.one[0] = world

    return SimpleNamespace(find_missed_candidate=find_missed_candidate, take_world=take_world)


class CandidateCheck:
    """Solves worlds again that turn out to need contacts which collision left out.

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
        self._rate = wp.zeros(model.joint_count, dtype=vec6_type(dynamics.real), device=device)
        self._found = wp.zeros(model.shape_count, dtype=float, device=device)
        self._round = wp.zeros(model.world_count, dtype=int, device=device)
        self._following = wp.zeros(model.world_count, dtype=int, device=device)
        # Threads step their lists of worlds at the same time, so each list has a place of its own, as long
        # as it exists. All are allocated here: a recording would only record that they are set to zero.
        place_count = 2 * model.world_count + LIST_COUNT_SPARE
        self._head = wp.zeros(place_count, dtype=int, device=device)
        self._one = wp.zeros(place_count, dtype=int, device=device)
        self._places = list(range(place_count))
        self._repeats: dict[int, Repeats] = {}

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
        idle.shape0, idle.shape1 = contacts.rigid_contact_shape0, contacts.rigid_contact_shape1
        idle.point0, idle.point1 = contacts.rigid_contact_point0, contacts.rigid_contact_point1
        idle.normal = contacts.rigid_contact_normal
        idle.separation = culling.separation
        device = self._model.device
        kernels = _kernels(self._dynamics.real)

        def check(some: wp.array, *, is_first: bool) -> None:
            launch_kernel(
                kernels.find_missed_candidate,
                dim=some.size,
                inputs=[
                    some,
                    self._model.topology,
                    self._dynamics.data,
                    culling.pairs,
                    culling.stages.shapes,
                    idle,
                    self._frozen,
                    int(check_free),
                    int(is_first),
                    usual_change(culling.horizon.dt) if is_first else float(ANY_SPEED),
                ],
                outputs=[self._rate, self._found, culling.stages.state, repeats],
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
        """Return the place of a list of worlds."""
        key = id(worlds)
        if key in self._repeats:
            return self._repeats[key]
        if not self._places:
            raise RuntimeError(
                f"SolverSAP.step: {len(self._repeats)} lists of worlds are in use, more than there are "
                "worlds. Keep a list and pass it again."
            )
        place = self._places.pop()
        repeats = Repeats()
        repeats.head = self._head[place : place + 1]
        repeats.one = self._one[place : place + 1]
        repeats.following = self._following
        repeats.round = self._round
        repeats.step_count = self._step_count
        self._repeats[key] = repeats
        weakref.finalize(worlds, _release, self._repeats, key, self._places, place)
        return repeats


def _release(repeats: dict[int, Repeats], key: int, places: list[int], place: int) -> None:
    """Give a place back, after its list of worlds is gone."""
    repeats.pop(key, None)
    places.append(place)
