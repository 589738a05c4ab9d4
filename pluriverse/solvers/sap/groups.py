"""Groups: bodies that touch each other, directly or by others, solved without the rest of their world.

Reads   dof_terms, node_contact, tree_active, nodes and regularizations of contacts
Writes  tree_group; for the group whose turn it is, the part that stages go over and what is active in it

Solved at once, robots and heaps of one world share one line search and one end: a body that strikes the
ground shortens the steps of all, and what has converged is factorized until the last has. Nor has the space
of contacts (`contact_space.py`) room for all of them. So bodies without contacts between them take turns, and
groups of few contacts begin anew there. Costs of different groups have no velocity in common, so nothing else
changes: a robot moves as in a world of its own.

The contacts of a group are to follow each other, so their records are moved for that time. All else stays in
its place, and is marked where it does not take part.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE, packed_rows
from pluriverse.math.precision import vec3_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.active_trees import active_dofs_function
from pluriverse.solvers.sap.equality import OFF
from pluriverse.solvers.sap.progress import ITERATING, progress_struct
from pluriverse.solvers.sap.workspace import SPACE_CONTACTS_MAX, VISITED, sap_struct

CONTACTS_MAX = wp.constant(SPACE_CONTACTS_MAX)

_WORLD = """
    const int tmpl = topology.world_template.data[world];
    const int first_node = topology.template_node.data[tmpl], first_tree = topology.template_tree.data[tmpl];
    const int tree_count = topology.template_tree.data[tmpl + 1] - first_tree;
    const int node0 = topology.world_joint.data[world], dof0 = topology.world_dof.data[world];
    const int tree0 = topology.world_tree.data[world];
    int* group_of = sap.tree_group.data + tree0;
    auto set_part = [&](const int begin, const int end, const bool has_constraints) {
        const int* equalities = sap.equality_start.data + world;
        sap.equality_end.data[world] = equalities[has_constraints];
        sap.part_tree.data[world] = begin;
        sap.part_tree_end.data[world] = end;
        const bool any = begin < end;
        sap.part_node.data[world] = any ? topology.tree_node.data[first_tree + begin] : 0;
        sap.part_node_end.data[world] = any ? topology.tree_node_end.data[first_tree + end - 1] : 0;
        sap.part_dof.data[world] = any ? topology.tree_dof.data[first_tree + begin] : 0;
        sap.part_dof_end.data[world] = any ? topology.tree_dof_end.data[first_tree + end - 1] : 0;
    };
"""

_CONTACTS = """
    const long long stride = sap.contact_frame.strides[0];
    const int slot0 = sap.contact_start.data[world], slot_end = slot0 + sap.contact_count.data[world];
    auto integer = [&](const auto& array, const int slot) -> int& {
        return *(int*)((char*)array.data + stride * slot);
    };
    // The record of a contact begins with its frame. As characters, which may be part of any number.
    auto swap_records = [&](const int a, const int b) {
        char* x = (char*)sap.contact_frame.data + stride * a;
        char* y = (char*)sap.contact_frame.data + stride * b;
        for (int k = 0; k < stride; ++k) {
            const char kept = x[k];
            x[k] = y[k];
            y[k] = kept;
        }
    };
    auto move_records = [&](const auto& target) {
        for (int slot = slot0; slot < slot_end; ++slot)
            while (integer(target, slot) != slot) swap_records(slot, integer(target, slot));
    };
"""

# Which trees touch each other, by the contacts that `acts` tells: `find` returns the first of them.
_JOIN = """
    int left = 0;
    for (int tree = 0; tree < tree_count; ++tree) {
        // What moves as it is told touches any group, and is in none.
        const bool is_told = dynamics.tree_prescribed.data[tree0 + tree];
        const bool takes_part = sap.tree_active.data[tree0 + tree] && !is_told;
        group_of[tree] = takes_part ? tree : -1;
        left += takes_part;
    }
    // Of trees that touch, the first stands for all.
    auto find = [&](int tree) {
        while (group_of[tree] != tree) tree = group_of[tree] = group_of[group_of[tree]];
        return tree;
    };
    auto tree_of = [&](const int node) { return topology.node_tree.data[first_node + node]; };
    auto join = [&](const int node_a, const int node_b) {
        const int a = find(tree_of(node_a)), b = find(tree_of(node_b));
        if (a == b) return;
        --left;
        if (a < b) group_of[b] = a;
        else group_of[a] = b;
    };
    // Constraints are listed by world: what they act on is one group.
    int constrained = -1;
    for (int e = sap.equality_start.data[world]; e < sap.equality_start.data[world + 1]; ++e) {
        const auto& term = sap.equality.data[e];
        const int dofs[2] = {term.dof1, term.dof2};
        for (const int dof : dofs) {
            if (term.kind == OFF || dof < 0) continue;
            const int node = topology.dof_node.data[topology.template_dof.data[tmpl] + dof];
            if (group_of[tree_of(node)] < 0) continue;
            if (constrained >= 0) join(node, constrained);
            constrained = node;
        }
    }
    int last_a = -1, last_b = -1;
    for (int slot = slot0; slot < slot_end && left > 1; ++slot) {
        if (integer(sap.contact_dof0, slot) < 0 || integer(sap.contact_dof1, slot) < 0) continue;
        if (!acts(slot)) continue;
        const int node_a = integer(sap.contact_node0, slot), node_b = integer(sap.contact_node1, slot);
        if (node_a == last_a && node_b == last_b) continue;
        last_a = node_a;
        last_b = node_b;
        join(node_a, node_b);
    }
"""

_FIND = (
    _WORLD
    + _CONTACTS
    + """
    auto acts = [&](const int slot) { return *(V*)((char*)sap.contact_rn.data + stride * slot) > V(0); };
"""
    + _JOIN
    + """
    if (left < 2) return 0;
    int* ends = sap.group_contact_end.data + tree0;
    int count = 0;
    for (int tree = 0; tree < tree_count; ++tree)
        if (group_of[tree] >= 0) group_of[tree] = find(tree);
    for (int tree = 0; tree < tree_count; ++tree) {
        if (group_of[tree] < 0) continue;
        if (group_of[tree] == tree) ends[tree] = count++;
    }
    for (int tree = tree_count - 1; tree >= 0; --tree)
        if (group_of[tree] >= 0) group_of[tree] = ends[group_of[tree]];

    // Contacts are sorted by group, those that cannot act behind all others.
    auto group_at = [&](const int slot) {
        if (!acts(slot)) return -1;
        if (integer(sap.contact_dof1, slot) >= 0) return group_of[tree_of(integer(sap.contact_node1, slot))];
        if (integer(sap.contact_dof0, slot) >= 0) return group_of[tree_of(integer(sap.contact_node0, slot))];
        return -1;
    };
    for (int g = 0; g < count; ++g) ends[g] = 0;
    for (int slot = slot0; slot < slot_end; ++slot) {
        const int g = group_at(slot);
        if (g >= 0) ++ends[g];
    }
    int next = slot0;
    for (int g = 0; g < count; ++g) {
        const int size = ends[g];
        ends[g] = next;
        next += size;
    }
    for (int slot = slot0; slot < slot_end; ++slot) {
        const int g = group_at(slot);
        integer(sap.contact_home, slot) = slot;
        integer(sap.contact_place, slot) = g >= 0 ? ends[g]++ : next++;
    }
    move_records(sap.contact_place);
    at.group_constrained = constrained >= 0 ? group_of[tree_of(constrained)] : -1;
    return count;
"""
)

_BALANCED = (
    _WORLD
    + _CONTACTS
    + """
    V* gradient = sap.tree_gradient.data + tree0;
    V* momentum = sap.tree_momentum.data + tree0;
    auto is_balanced = [&](const int tree) {
        return wp::sqrt(gradient[tree]) <= absolute + relative * wp::sqrt(momentum[tree]);
    };
    bool are_all = true;
    for (int tree = 0; tree < tree_count; ++tree) {
        const bool is_told = dynamics.tree_prescribed.data[tree0 + tree];
        const bool takes_part = sap.tree_active.data[tree0 + tree] && !is_told;
        are_all = are_all && (!takes_part || is_balanced(tree));
    }
    if (are_all || sap.spring_start.data[world] != sap.spring_start.data[world + 1]) return 1;
    // Where a light body carries a heavy one, its impulses are those of the heavy one.
    auto acts = [&](const int slot) {
        return ((const V*)((char*)sap.contact_impulse.data + stride * slot))[2] > V(0);
    };
"""
    + _JOIN
    + """
    for (int tree = 0; tree < tree_count; ++tree) {
        if (group_of[tree] < 0) continue;
        const int first = find(tree);
        if (first == tree) continue;
        gradient[first] += gradient[tree];
        momentum[first] += momentum[tree];
    }
    for (int tree = 0; tree < tree_count; ++tree)
        if (group_of[tree] == tree && !is_balanced(tree)) return 0;
    return 1;
"""
)

_MEMBER = """
    // What does not take part has no active trees, and marks of nodes and terms of joints below 0.
    auto set_member = [&](const int tree, const bool is_member) {
        sap.tree_active.data[tree0 + tree] = is_member;
        const int node_end = topology.tree_node_end.data[first_tree + tree];
        for (int node = topology.tree_node.data[first_tree + tree]; node < node_end; ++node) {
            int& mark = sap.node_contact.data[node0 + node];
            if (mark == VISITED || mark == -VISITED) mark = is_member ? VISITED : -VISITED;
        }
        const int dof_end = topology.tree_dof_end.data[first_tree + tree];
        for (int dof = topology.tree_dof.data[first_tree + tree]; dof < dof_end; ++dof) {
            int& terms = sap.dof_terms.data[dof0 + dof];
            if ((terms > 0) != is_member) terms = -terms;
        }
    };
"""

_ENTER = (
    _WORLD
    + _MEMBER
    + """
    const int* ends = sap.group_contact_end.data + tree0;
    const int start = group > 0 ? ends[group - 1] : first_slot;
    sap.contact_start.data[world] = start;
    sap.contact_count.data[world] = ends[group] - start;
    int begin = tree_count, end = 0;
    for (int tree = 0; tree < tree_count; ++tree) {
        const int root = node0 + topology.tree_node.data[first_tree + tree];
        const bool is_member = group_of[tree] == group;
        if (is_member || (group_of[tree] < 0 && sap.node_contact.data[root] != 0)) {
            if (begin > tree) begin = tree;
            end = tree + 1;
        }
        if (group_of[tree] >= 0) set_member(tree, is_member);
    }
    set_part(begin, end, group == constrained);
"""
)

_LEAVE = (
    _WORLD
    + _MEMBER
    + """
    sap.contact_start.data[world] = first_slot;
    sap.contact_count.data[world] = slot_count;
"""
    + _CONTACTS
    + """
    move_records(sap.contact_home);
    for (int tree = 0; tree < tree_count; ++tree)
        if (group_of[tree] >= 0) set_member(tree, true);
    set_part(0, tree_count, true);
"""
)


@made_once
def group_functions(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return the functions of this stage for the given precisions.

    - `take_world(topology, sap, world)`: let stages go over all of the world.
    - `begin_groups(topology, dynamics, sap, world, at)`: begin with the first of two or more groups; return
      whether there are as many.
    - `begin_afresh(topology, sap, world, at)`: begin a group of few contacts anew; return whether it is one.
    - `are_balanced(topology, dynamics, sap, world, absolute, relative)`: return whether the gradient of every
      group is within the tolerances of its own momenta. What is heavy or fast tells nothing of the others.
    - `take_start(topology, sap, world)`: go back to the velocities at which the iteration started.
    - `next_group(topology, sap, world, at)`: go on with the next group, or back to the world after the last.
    """
    DynamicsData = workspace_struct(dynamics_real)
    SapData, Progress = sap_struct(real, linear), progress_struct(real)
    vec3 = vec3_type(real)
    active_dofs = active_dofs_function(real, linear)
    copy_numbers = packed_rows(real).rows_copy
    types = f"using V = {CTYPE[real]}; constexpr int VISITED = {int(VISITED)}, OFF = {int(OFF)};"

    @wp.func_native(types + _WORLD + "    set_part(0, tree_count, true);\n")
    def take_world(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int): ...

    @wp.func_native(types + _FIND)
    def sort_by_group(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ) -> int: ...

    @wp.func_native(types + _BALANCED)
    def are_balanced(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        absolute: real,
        relative: real,
    ) -> int: ...

    @wp.func_native(types + _ENTER)
    def enter_group(
        topology: wp.ref[Topology],
        sap: wp.ref[SapData],
        world: int,
        group: int,
        constrained: int,
        first_slot: int,
    ): ...

    @wp.func_native(types + _LEAVE)
    def leave_groups(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, first_slot: int, slot_count: int
    ): ...

    @wp.func(inline=True)
    def begin_turn(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, at: wp.ref[Progress]):
        """Let the group go on from where the world was when groups were found."""
        enter_group(topology, sap, world, at.group, at.group_constrained, at.first_slot)
        at.dof0 = topology.world_dof[world] + sap.part_dof[world]
        at.dof_count = sap.part_dof_end[world] - sap.part_dof[world]
        at.tree0 = topology.world_tree[world] + sap.part_tree[world]
        at.first_tree = topology.template_tree[topology.world_template[world]] + sap.part_tree[world]
        at.tree_count = sap.part_tree_end[world] - sap.part_tree[world]
        at.iterations = at.group_iteration
        at.solves = at.group_solves
        at.is_fresh = 0
        at.phase = ITERATING
        at.coulomb = 0
        at.few_contacts = 0
        at.is_plain = int(sap.equality_start[world] == sap.equality_end[world])
        at.turning_iteration = at.group_iteration
        at.recovery_round = at.group_recovery
        at.dilation_round = at.group_dilation
        at.running = 1
        at.by_optimality = 0
        at.by_cost = 0
        at.is_posed = 0
        at.holds = 0
        at.has_factors = 0
        at.keeps_factors = 0
        at.stagnates = 0
        at.has_momenta = 1
        at.step = real(0.0)
        at.alpha = real(0.0)

    @wp.func(inline=True)
    def take_start(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int):
        """Go back to the velocities at which the iteration started."""
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            copy_numbers(sap.velocity_start, begin, size, sap.velocity, begin)

    @wp.func
    def begin_afresh(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, at: wp.ref[Progress]
    ) -> int:
        """Begin a group of few contacts anew, as a world of its own; return whether it is one."""
        if at.dof_count > at.space_dof_count:
            return 0
        acting = int(0)
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            acting += int(sap.contact_impulse[slot][2] > real(0.0))
        if acting > CONTACTS_MAX:
            return 0
        for slot in range(start, start + sap.contact_count[world]):
            sap.contact_impulse[slot] = vec3()
        take_start(topology, sap, world)
        at.is_fresh = 1
        at.starts = 1
        at.iterations = 0
        at.solves = 0
        at.first_solve = 0
        at.settled = 0
        at.has_momenta = 0
        return 1

    @wp.func
    def begin_groups(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ) -> int:
        if at.tree_count < 2 or sap.spring_start[world] != sap.spring_start[world + 1]:
            return 0  # springs go over all of the world
        first_slot, slot_count = sap.contact_start[world], sap.contact_count[world]
        count = sort_by_group(topology, dynamics, sap, world, at)
        if count < 2:
            return 0
        at.first_slot = first_slot
        at.slot_count = slot_count
        at.group = 0
        at.group_count = count
        at.group_iteration = at.iterations
        at.group_solves = at.solves
        at.group_recovery = at.recovery_round
        at.group_dilation = at.dilation_round
        at.groups_converged = 1
        at.groups_optimal = 1
        at.iterations_most = 0
        at.group_cost = real(0.0)
        begin_turn(topology, sap, world, at)
        return 1

    @wp.func
    def next_group(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, at: wp.ref[Progress]):
        at.groups_optimal = wp.min(at.groups_optimal, at.by_optimality)
        at.groups_converged = wp.min(at.groups_converged, wp.max(at.by_optimality, at.by_cost))
        iterations = at.iterations + at.solves
        if at.is_fresh != 0:
            iterations += at.group_iteration + at.group_solves
        at.iterations_most = wp.max(at.iterations_most, iterations)
        at.group_cost += at.cost
        at.group += 1
        if at.group < at.group_count:
            begin_turn(topology, sap, world, at)
            return
        leave_groups(topology, sap, world, at.first_slot, at.slot_count)
        at.group_count = 0
        at.dof0 = topology.world_dof[world]
        at.dof_count = sap.part_dof_end[world]
        at.iterations = at.iterations_most
        at.solves = 0
        at.by_optimality = at.groups_optimal
        at.by_cost = wp.where(at.groups_optimal != 0, 0, at.groups_converged)
        at.cost = at.group_cost

    return SimpleNamespace(
        take_world=take_world,
        take_start=take_start,
        are_balanced=are_balanced,
        begin_afresh=begin_afresh,
        begin_groups=begin_groups,
        next_group=next_group,
    )
