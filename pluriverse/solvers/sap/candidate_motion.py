"""How shapes move at the solution of a step, and up to which distance contacts act by that.

Collision knows the velocities of the start of a step. These functions take those that the solver found, as
spatial velocities of the nodes of the trees (`rate`).
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.collision.idle_contacts import PairMotion, acting_distance, set_pair
from pluriverse.collision.shape_pair import (
    pair_speed,
    plane_height_bound,
    plane_normal,
    threshold_at_speed,
    threshold_within_gaps,
)
from pluriverse.collision.shape_state import ANY_SPEED, ShapeModel, ShapePlace, ShapeState, place_fields
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.lane_records import lane_records
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

# The loop over eight shapes has no branches, so that the compiler turns it into vector instructions.
_CHANGES = (
    lane_records(8)
    + place_fields()
    + """
    typedef decltype(rate.data[0].c[0] + 0) number;
    const auto* rates = &rate.data[0].c[0];
    const auto* offsets = &node_offset.data[0].c[0];
    const number still[6] = {};
    int exceeded = 0;
    for (; begin < end; begin += LANES) {
        int one[LANES], node[LANES], exceeds[LANES];
        float changes[LANES], twist[6][LANES], offset[3][LANES], now[6][LANES];
        float middle[4][LANES], velocity[4][LANES], spin[3][LANES];
        const float *radius = middle[3], *assumed = velocity[3];
        static_assert(radius_at == middle_at + 3 && change_at == velocity_at + 3, "order of ShapePlace");
        const number* rows[LANES];
        const float* places[LANES];
        float* to[LANES];
        // Gathering these, as the vectorizer would, takes longer.
        #ifndef __CUDA_ARCH__
        #pragma clang loop vectorize(disable)
        #endif
        for (int l = 0; l < LANES; ++l) {
            const auto& record = shape.data[begin + l < end ? begin + l : begin];
            one[l] = first_shape + record[0];
            node[l] = record[1] >= 0 ? first_node + body_node.data[first_body + record[1]] : -1;
            rows[l] = node[l] >= 0 ? rates + 6 * node[l] : still;
            places[l] = (const float*)(place.data + one[l]);
            to[l] = (float*)(motion.data + one[l]);
        }
        records::load4(rows, twist);
        records::load4(rows, twist + 2, 2);
        for (int l = 0; l < LANES; ++l) rows[l] = node[l] >= 0 ? offsets + 3 * node[l] : still;
        records::load3(rows, offset);
        records::load4(places, middle, middle_at);
        records::load4(places, velocity, velocity_at);
        records::load3(places, spin, spin_at);
        for (int l = 0; l < LANES; ++l) {
            const float sx = twist[0][l], sy = twist[1][l], sz = twist[2][l];
            const float x = offset[0][l] + middle[0][l], y = offset[1][l] + middle[1][l];
            const float z = offset[2][l] + middle[2][l];
            now[0][l] = sx;
            now[1][l] = sy;
            now[2][l] = sz;
            now[3][l] = twist[3][l] + (sy * z - sz * y);
            now[4][l] = twist[4][l] + (sz * x - sx * z);
            now[5][l] = twist[5][l] + (sx * y - sy * x);
            const float vx = now[3][l] - velocity[0][l], vy = now[4][l] - velocity[1][l];
            const float vz = now[5][l] - velocity[2][l];
            const float wx = sx - spin[0][l], wy = sy - spin[1][l], wz = sz - spin[2][l];
            float change = wp::sqrt(vx * vx + vy * vy + vz * vz)
                + wp::sqrt(wx * wx + wy * wy + wz * wz) * radius[l];
            change = change < any_speed ? change : any_speed;
            changes[l] = node[l] >= 0 ? change : 0.0f;
        }
        records::store4(now, to);
        records::store2(now + 4, to, 4);
        for (int l = 0; l < LANES; ++l) {
            if (!is_first) changes[l] = wp::max(found.data[one[l]], changes[l]);
            exceeds[l] = changes[l] > assumed[l];
        }
        for (int l = 0; l < LANES; ++l) {
            found.data[one[l]] = changes[l];
            exceeded |= exceeds[l];
        }
    }
    return exceeded;
"""
)


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


@wp.func
def plane_threshold_at_motion(
    state: wp.ref[ShapeState], motion0: wp.spatial_vector, motion1: wp.spatial_vector, plane: int, shape: int
) -> float:
    """Return the height above a plane below which a shape may touch it, given its motion [m].

    The normal is known here, so a shape that leaves the plane does not touch it.
    """
    spin, velocity = wp.length(wp.spatial_top(motion1)), wp.spatial_bottom(motion1)
    if wp.length_sq(wp.spatial_top(motion0)) + wp.length_sq(wp.spatial_bottom(motion0)) > 0.0:
        return float(ANY_SPEED)
    parting = wp.dot(plane_normal(state, plane), velocity)
    sliding = wp.length(velocity - parting * plane_normal(state, plane))
    lead = wp.max(state.place[plane].lead, state.place[shape].lead)
    friction = wp.max(state.place[plane].friction, state.place[shape].friction)
    slope = wp.sqrt(1.0 + friction * friction)
    # Of all points of the shape, and with moments: `radius` holds what a spin counts for besides.
    speed = (friction * sliding - parting) / slope + spin * state.place[shape].radius
    return threshold_at_speed(lead, wp.max(speed, 0.0), spin)


@wp.func
def is_surely_above(
    state: wp.ref[ShapeState],
    motion0: wp.spatial_vector,
    motion1: wp.spatial_vector,
    assumed: wp.array[float],
    plane: int,
    shape: int,
) -> bool:
    """Return whether its motion rules out contacts of a shape and a plane that were not looked for."""
    place0, place1 = state.place[plane], state.place[shape]
    distance = plane_height_bound(state, plane, shape)
    # Bounds overlap more often than what is within either shape may reach by itself.
    if distance > place0.threshold + place1.threshold:
        return True
    threshold = place0.margin + place1.margin
    threshold += plane_threshold_at_motion(state, motion0, motion1, plane, shape)
    if distance > threshold:
        return True
    speed = pair_speed(place0, place1) + assumed[plane] + assumed[shape]
    looked_at = place0.margin + place1.margin
    looked_at += wp.max(place0.lead, place1.lead) * speed
    return wp.min(threshold, threshold_within_gaps(place0, place1)) <= looked_at


@wp.func
def is_surely_idle(
    state: wp.ref[ShapeState],
    motion: wp.array[wp.spatial_vector],
    contacts: wp.ref[IdleContacts],
    sliding_speed: float,
    pair: wp.ref[PairMotion],
    slot: int,
) -> bool:
    """Return whether an idle contact cannot act, wherever its points lie on the shapes."""
    shape0, shape1 = contacts.shape0[slot], contacts.shape1[slot]
    if shape0 != pair.shape0 or shape1 != pair.shape1:
        place0, place1 = state.place[shape0], state.place[shape1]
        motion0, motion1 = motion[shape0], motion[shape1]
        # Points move with the middles of their shapes, and turn about them at the most of these speeds.
        spin0, spin1 = wp.spatial_top(motion0), wp.spatial_top(motion1)
        set_pair(pair, shape0, shape1, place0, place1, spin0, spin1)
        pair.velocity = wp.spatial_bottom(motion1) - wp.spatial_bottom(motion0)
        turning = wp.length(spin0) * place0.radius + wp.length(spin1) * place1.radius
        pair.slack = pair.lead * turning
    distance = contacts.separation[slot]
    acting = acting_distance(pair, contacts.normal[slot], pair.velocity, distance, sliding_speed)
    return acting + pair.slack < distance


@made_once
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
        shape: wp.array[wp.vec4i],
        begin: int,
        end: int,
        first_shape: int,
        body_node: wp.array[int],
        first_body: int,
        first_node: int,
        rate: wp.array(dtype=vec6),
        node_offset: wp.array(dtype=vec3_type(dynamics_real)),
        place: wp.array(dtype=ShapePlace),
        any_speed: float,
        is_first: int,
        found: wp.array[float],
        motion: wp.array[wp.spatial_vector],
    ) -> int:
        """Write how much shapes change their velocities at most; return whether one exceeds `change`.

        Args:
            shape: Lists of shapes, see `ShapeModel.collider_record`.
            begin: First entry of `shape` that is looked at.
            end: One past the last entry.
            first_shape: First shape of the world.
            body_node: Node of each body of a template, counted from the first.
            first_body: First entry of the template in `body_node`.
            first_node: First node of the world.
            rate: Spatial velocity of each node, spin first.
            node_offset: Origin of each node from the reference point of its tree [m].
            place: How shapes move at the start of the step.
            any_speed: Speed that stands for all that are not known [m/s].
            is_first: Whether there are no changes so far; else the larger ones are kept.
            found: Largest change of velocity of a point of the shape [m/s], shape [shape].
            motion: Written, spin [rad/s] and velocity at the middle [m/s] of each shape.
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
        motion: wp.array[wp.spatial_vector],
    ) -> int:
        """Write the largest changes so far of the velocities of the shapes of a world.

        There are none so far if `is_first` is set. How shapes move is written, too. Return whether one
        exceeds what was assumed.
        """
        template = shapes.world_template[world]
        return measure_changes(
            shapes.collider_record,
            shapes.collider_start[template],
            shapes.collider_start[template + 1],
            shapes.world_shape[world],
            topology.body_node,
            topology.template_body[template],
            topology.world_joint[world],
            rate,
            dynamics.node_offset,
            state.place,
            ANY_SPEED,
            is_first,
            found,
            motion,
        )

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
        pair = PairMotion()
        set_pair(pair, shape0, shape1, state.place[shape0], state.place[shape1], spin0, spin1)
        acting = acting_distance(pair, contacts.normal[slot], velocity, distance, sliding_speed)
        return not acting < distance

    return SimpleNamespace(
        sweep_rates=sweep_rates,
        raise_changes=raise_changes,
        does_act=does_act,
    )
