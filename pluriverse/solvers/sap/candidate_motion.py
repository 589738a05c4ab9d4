"""How shapes move at the solution of a step, and up to which distance contacts act by that.

Collision knows the velocities of the start of a step. These functions take those that the solver found, as
spatial velocities of the nodes of the trees (`rate`).
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.collision.idle_contacts import acting_distance
from pluriverse.collision.round_distance import is_round, round_distance
from pluriverse.collision.shape_pair import (
    distance_bound,
    middles_apart,
    pair_speed,
    plane_height_bound,
    plane_normal,
    relative_speed,
    threshold_at_speed,
    threshold_within_gaps,
)
from pluriverse.collision.shape_state import ANY_SPEED, ShapeModel, ShapePlace, ShapeState
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.precision import vec3_type, vec6_type
from pluriverse.model import Topology

_RATES = """
    for (int node = begin; node < end; ++node) {
        const int above = parent.data[node];
        auto twist = above >= 0 ? rate.data[node0 + above] : drift.data[tree0 + tree.data[node]];
        const int first = dof0 + dof.data[node], last = first + dof_count.data[node];
        for (int d = first; d < last; ++d) {
            const auto speed = dof_rate.data[d];
            const auto* along = motion.data[d].c;
            for (int c = 0; c < 6; ++c) twist.c[c] += speed * along[c];
        }
        rate.data[node0 + node - begin] = twist;
    }
"""

# The loop over 16 shapes has no branches, so that the compiler turns it into vector instructions.
_CHANGES = """
    #ifdef __CUDA_ARCH__
    enum { LANES = 1 };
    #else
    enum { LANES = 16 };
    #endif
    const auto* rates = &rate.data[0].c[0];
    const auto* offsets = &node_offset.data[0].c[0];
    const auto& first = place.data[0];
    const float *middle = first.middle.c, *velocity = first.velocity.c, *spin = first.spin.c;
    const float *radius = &first.radius, *assumed = &first.change;
    const int size = sizeof(first) / sizeof(float);
    int exceeded = 0;
    for (; begin < end; begin += LANES) {
        int one[LANES], node[LANES], exceeds[LANES];
        float changes[LANES];
        for (int l = 0; l < LANES; ++l) {
            one[l] = first_shape + shape.data[begin + l < end ? begin + l : begin];
            const int body = shape_body.data[one[l]];
            node[l] = body >= 0 ? first_node + body_node.data[to_template + body] : -1;
        }
        for (int l = 0; l < LANES; ++l) {
            const bool moves = node[l] >= 0;
            const int at = one[l] * size, twist = node[l] * 6, offset = node[l] * 3;
            const float sx = moves ? (float)rates[twist] : 0.0f, sy = moves ? (float)rates[twist + 1] : 0.0f;
            const float sz = moves ? (float)rates[twist + 2] : 0.0f;
            const float x = (moves ? (float)offsets[offset] : 0.0f) + middle[at];
            const float y = (moves ? (float)offsets[offset + 1] : 0.0f) + middle[at + 1];
            const float z = (moves ? (float)offsets[offset + 2] : 0.0f) + middle[at + 2];
            const float vx = (moves ? (float)rates[twist + 3] : 0.0f) + (sy * z - sz * y) - velocity[at];
            const float vy = (moves ? (float)rates[twist + 4] : 0.0f) + (sz * x - sx * z) - velocity[at + 1];
            const float vz = (moves ? (float)rates[twist + 5] : 0.0f) + (sx * y - sy * x) - velocity[at + 2];
            const float wx = sx - spin[at], wy = sy - spin[at + 1], wz = sz - spin[at + 2];
            float change = wp::sqrt(vx * vx + vy * vy + vz * vz)
                + wp::sqrt(wx * wx + wy * wy + wz * wz) * radius[at];
            change = change < any_speed ? change : any_speed;
            change = moves ? change : 0.0f;
            if (!is_first) change = wp::max(found.data[one[l]], change);
            changes[l] = change;
            exceeds[l] = change > assumed[at];
        }
        for (int l = 0; l < LANES; ++l) {
            found.data[one[l]] = changes[l];
            exceeded |= exceeds[l];
        }
    }
    return exceeded;
"""


@wp.struct
class IdleContacts:
    """Contacts of a world: those the solver used, followed by those it left out; see `ContactOutput`."""

    start: wp.array[int]
    count: wp.array[int]
    """Contacts that the solver had, shape [world]."""
    idle_count: wp.array[int]
    """Idle contacts behind these, shape [world]."""
    known: wp.array[int]
    """Contacts with the idle ones, written when others are looked for, shape [world]."""
    added_found: wp.array[int]
    """The same with those found later, which come behind, shape [world]."""
    shape0: wp.array[int]
    shape1: wp.array[int]
    point0: wp.array[wp.vec3]
    point1: wp.array[wp.vec3]
    normal: wp.array[wp.vec3]
    separation: wp.array[float]


@wp.struct
class ShapeMotion:
    """How a shape moves."""

    spin: wp.vec3
    """Angular velocity [rad/s], world axes."""
    velocity: wp.vec3
    """Velocity at its middle [m/s], world axes."""


@wp.func
def threshold_at_motion(
    place0: wp.ref[ShapePlace], place1: wp.ref[ShapePlace], motion0: ShapeMotion, motion1: ShapeMotion
) -> float:
    """Return the distance below which contacts of a pair may act, given the motion of its shapes [m]."""
    speed = relative_speed(
        middles_apart(place0, place1),
        motion0.velocity,
        motion0.spin,
        place0.radius,
        motion1.velocity,
        motion1.spin,
        place1.radius,
    )
    lead = wp.max(place0.lead, place1.lead)
    return threshold_at_speed(lead, speed, wp.max(wp.length(motion0.spin), wp.length(motion1.spin)))


@wp.func
def plane_threshold_at_motion(
    state: wp.ref[ShapeState], motion0: ShapeMotion, motion1: ShapeMotion, plane: int, shape: int
) -> float:
    """Return the height above a plane below which a shape may touch it, given its motion [m].

    The normal is known here, so a shape that leaves the plane does not touch it.
    """
    spin = wp.length(motion1.spin)
    if wp.length_sq(motion0.spin) + wp.length_sq(motion0.velocity) > 0.0:
        return float(ANY_SPEED)
    parting = wp.dot(plane_normal(state, plane), motion1.velocity)
    sliding = wp.length(motion1.velocity - parting * plane_normal(state, plane))
    lead = wp.max(state.place[plane].lead, state.place[shape].lead)
    friction = wp.max(state.place[plane].friction, state.place[shape].friction)
    slope = wp.sqrt(1.0 + friction * friction)
    # Of all points of the shape, and with moments: `radius` holds what a spin counts for besides.
    speed = (friction * sliding - parting) / slope + spin * state.place[shape].radius
    return threshold_at_speed(lead, wp.max(speed, 0.0), spin)


@wp.func
def pair_distance_bound(
    shapes: wp.ref[ShapeModel], state: wp.ref[ShapeState], shape0: int, shape1: int, is_plane: bool
) -> float:
    """Return a lower bound of the distance of a pair [m]; exact for spheres and capsules."""
    distance = float(0.0)
    if is_plane:
        distance = plane_height_bound(state, shape0, shape1)
    elif is_round(shapes.shape_type[shape0]) and is_round(shapes.shape_type[shape1]):
        distance = round_distance(shapes, shape0, shape1, state.place[shape0], state.place[shape1])
    else:
        distance = distance_bound(state, shape0, shape1)
    return distance


@wp.func
def is_surely_apart(
    state: wp.ref[ShapeState],
    motion0: ShapeMotion,
    motion1: ShapeMotion,
    assumed: wp.array[float],
    shape0: int,
    shape1: int,
    is_plane: bool,
    distance: float,
) -> bool:
    """Return whether the motion of its shapes rules out contacts of a pair that were not looked for."""
    place0, place1 = state.place[shape0], state.place[shape1]
    threshold = place0.margin + place1.margin
    if is_plane:
        threshold += plane_threshold_at_motion(state, motion0, motion1, shape0, shape1)
    else:
        threshold += threshold_at_motion(place0, place1, motion0, motion1)
    if distance > threshold:
        return True
    # Links that change their velocities together are seldom faster relative to each other than was assumed.
    # (As bodies by themselves: that bounds told two shapes apart says no more.)
    speed = pair_speed(place0, place1) + assumed[shape0] + assumed[shape1]
    looked_at = place0.margin + place1.margin
    looked_at += wp.max(place0.lead, place1.lead) * speed
    return wp.min(threshold, threshold_within_gaps(place0, place1)) <= looked_at


@wp.func
def is_surely_idle(
    state: wp.ref[ShapeState],
    motion0: ShapeMotion,
    motion1: ShapeMotion,
    contacts: wp.ref[IdleContacts],
    sliding_speed: float,
    slot: int,
) -> bool:
    """Return whether an idle contact cannot act, wherever its points lie on the shapes."""
    shape0, shape1 = contacts.shape0[slot], contacts.shape1[slot]
    place0, place1 = state.place[shape0], state.place[shape1]
    distance = contacts.separation[slot]
    # Points move with the middles of their shapes, and turn about them at the most of these speeds.
    turning = wp.length(motion0.spin) * place0.radius + wp.length(motion1.spin) * place1.radius
    velocity = motion1.velocity - motion0.velocity
    acting = acting_distance(
        place0,
        place1,
        contacts.normal[slot],
        velocity,
        motion0.spin,
        motion1.spin,
        distance,
        sliding_speed,
    )
    lead = wp.max(place0.lead, place1.lead)
    return acting + lead * turning < distance


@functools.cache
def motion_functions(dynamics_real: Any) -> SimpleNamespace:
    """Return the functions of this module for rates in a precision."""
    vec6 = vec6_type(dynamics_real)
    DynamicsData = workspace_struct(dynamics_real)

    @wp.func_native(_RATES)
    def add_rates(
        begin: int,
        end: int,
        parent: wp.array[int],
        tree: wp.array[int],
        dof: wp.array[int],
        dof_count: wp.array[int],
        node0: int,
        dof0: int,
        tree0: int,
        drift: wp.array(dtype=vec6),
        motion: wp.array(dtype=vec6),
        dof_rate: wp.array(dtype=dynamics_real),
        rate: wp.array(dtype=vec6),
    ):
        """Add up the rates along the trees of a world.

        Args:
            begin: First node of the template, those before their children.
            end: One past the last node.
            parent: Parent of each node of a template, counted from the first, -1 for none.
            tree: Tree of each node.
            dof: First degree of freedom of each node.
            dof_count: How many it has.
            node0: First node of the world.
            dof0: First degree of freedom of the world.
            tree0: First tree of the world.
            drift: Spatial velocity of the base of each tree.
            motion: Spatial velocity of each degree of freedom at rate 1.
            dof_rate: Rate of each degree of freedom.
            rate: Written, spatial velocity of each node.
        """
        ...

    @wp.func
    def sweep_rates(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        world: int,
        dof_rate: wp.array(dtype=dynamics_real),
        rate: wp.array(dtype=vec6),
    ):
        """Write the spatial velocity of every node of a world at the rates of its degrees of freedom."""
        template = topology.world_template[world]
        add_rates(
            topology.template_node[template],
            topology.template_node[template + 1],
            topology.node_parent,
            topology.node_tree,
            topology.node_dof,
            topology.node_dof_count,
            topology.world_joint[world],
            topology.world_dof[world],
            topology.world_tree[world],
            dynamics.tree_drift,
            dynamics.dof_motion,
            dof_rate,
            rate,
        )

    @wp.func_native(_CHANGES)
    def measure_changes(
        shape: wp.array[int],
        begin: int,
        end: int,
        first_shape: int,
        shape_body: wp.array[int],
        body_node: wp.array[int],
        to_template: int,
        first_node: int,
        rate: wp.array(dtype=vec6),
        node_offset: wp.array(dtype=vec3_type(dynamics_real)),
        place: wp.array(dtype=ShapePlace),
        any_speed: float,
        is_first: int,
        found: wp.array[float],
    ) -> int:
        """Write how much shapes change their velocities at most; return whether one exceeds `change`.

        Args:
            shape: Lists of shapes, counted from `first_shape`.
            begin: First entry of `shape` that is looked at.
            end: One past the last entry.
            first_shape: First shape of the world.
            shape_body: Body of each shape, -1 for none.
            body_node: Node of each body of a template, counted from that of its first.
            to_template: What makes the index of a body one of `body_node`.
            first_node: First node of the world.
            rate: Spatial velocity of each node, spin first.
            node_offset: Origin of each node from the reference point of its tree [m].
            place: How shapes move at the start of the step.
            any_speed: Speed that stands for all that are not known [m/s].
            is_first: Whether there are no changes so far; else the larger ones are kept.
            found: Largest change of velocity of a point of the shape [m/s], shape [shape].
        """
        ...

    @wp.func
    def raise_changes(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        shapes: wp.ref[ShapeModel],
        state: wp.ref[ShapeState],
        rate: wp.array(dtype=vec6),
        world: int,
        is_first: int,
        found: wp.array[float],
    ) -> int:
        """Write the largest changes so far of the velocities of the shapes of a world.

        There are none so far if `is_first` is set. Return whether one exceeds what was assumed.
        """
        template = shapes.world_template[world]
        return measure_changes(
            shapes.collider,
            shapes.collider_start[template],
            shapes.collider_start[template + 1],
            shapes.world_shape[world],
            shapes.shape_body,
            topology.body_node,
            topology.template_body[template] - topology.world_body[world],
            topology.world_joint[world],
            rate,
            dynamics.node_offset,
            state.place,
            ANY_SPEED,
            is_first,
            found,
        )

    @wp.func
    def motion_of(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        shapes: wp.ref[ShapeModel],
        state: wp.ref[ShapeState],
        rate: wp.array(dtype=vec6),
        world: int,
        shape: int,
    ) -> ShapeMotion:
        """Return how a shape moves at the rates of the nodes."""
        now = ShapeMotion()
        body = shapes.shape_body[shape]
        if body >= 0:
            template = topology.world_template[world]
            node = topology.body_node[topology.template_body[template] + body - topology.world_body[world]]
            node += topology.world_joint[world]
            twist = rate[node]
            now.spin = wp.vec3(float(twist[0]), float(twist[1]), float(twist[2]))
            now.velocity = wp.vec3(float(twist[3]), float(twist[4]), float(twist[5]))
            now.velocity += wp.cross(
                now.spin, wp.vec3(dynamics.node_offset[node]) + state.place[shape].middle
            )
        return now

    @wp.func
    def twist_of(
        topology: wp.ref[Topology], rate: wp.array(dtype=vec6), world: int, body: int
    ) -> wp.spatial_vector:
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
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], world: int, body: int, point: wp.vec3
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
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        shapes: wp.ref[ShapeModel],
        state: wp.ref[ShapeState],
        contacts: wp.ref[IdleContacts],
        sliding_speed: float,
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
        place0, place1 = state.place[shape0], state.place[shape1]
        acting = acting_distance(
            place0, place1, contacts.normal[slot], velocity, spin0, spin1, distance, sliding_speed
        )
        return not acting < distance

    return SimpleNamespace(
        sweep_rates=sweep_rates,
        raise_changes=raise_changes,
        motion_of=motion_of,
        does_act=does_act,
    )
