"""Hessian of the objective and its factorization, H = A + J^T G J + diag(h), without a Jacobian.

A contact with stiffness G [kg] maps to a 6x6 matrix K = Phi^T W Phi per pair of bodies, W = R G R^T, where
Phi = (-[r]x, 1) takes a spatial velocity to that of the contact point. Against a static body K adds to the
body's own 6x6 matrix, and J^T G J comes out of the composite-body sweep that also gives the mass matrix
([Featherstone2008] section 6.2), with the branch sparsity of the tree.

A contact between two moving bodies adds -K_ab off the diagonal, projected on the two chains of joints. Trees
coupled in this way are factored together, block-sparse (`math.block_cholesky`), all others alone, as
packed rows. Which trees are coupled is decided in every Newton iteration, from the contacts
that carry an impulse.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.block_cholesky import block_cholesky, order_blocks
from pluriverse.math.body_contacts import body_contact_functions
from pluriverse.math.dense import packed_rows
from pluriverse.math.precision import mat33_type, vec3_type
from pluriverse.math.records import record_functions
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.math.vector_cholesky import vector_cholesky
from pluriverse.model import Topology
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.cone_moments import cone_moment_functions
from pluriverse.solvers.sap.contact_loops import contact_loop_functions
from pluriverse.solvers.sap.contact_stiffness import contact_stiffness_functions, mat66_type
from pluriverse.solvers.sap.equality import DOFS, equality_functions
from pluriverse.solvers.sap.hessian_entries import hessian_entry_functions
from pluriverse.solvers.sap.hessian_pairs import hessian_pair_functions
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.tree_contacts import tree_contact_functions
from pluriverse.solvers.sap.tree_factors import tree_factor_functions
from pluriverse.solvers.sap.workspace import RUN_SIZE, STIFFNESS_WORK_SIZE, VISITED, sap_struct
from pluriverse.types import JointType

NOTHING, CONTACT, EQUALITY = wp.constant(0), wp.constant(1), wp.constant(2)
"""What an entry of the loop over contacts and equality constraints adds to the Hessian of two bodies."""


@made_once
def pair_struct(linear: Any) -> Any:
    """Return the `wp.struct` of the stiffness between two bodies, by its four blocks of type `linear`.

    As members, the blocks stay in place; variables would be copied at the end of each branch that may change
    them.
    """
    mat33 = mat33_type(linear)

    @wp.struct
    class PairStiffness:
        ww: mat33
        wv: mat33
        vw: mat33
        vv: mat33

    return PairStiffness


@made_once
def hessian_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool = False, moments: bool = False
) -> SimpleNamespace:
    """Return `find_coupling`, `assemble`, `factorize_and_solve`, with or without equalities and moments."""
    vec3, mat33 = vec3_type(linear), mat33_type(linear)
    mat66 = mat66_type(linear)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    PairStiffness = pair_struct(linear)
    cone = cone_functions(real)
    unprojected = cone.unprojected
    moment_stiffness = cone_moment_functions(real).stiffness
    stiffness = contact_stiffness_functions(real, linear)
    measure_stiffness, add_stiffness = stiffness.measure_stiffness, stiffness.add_stiffness
    add_pair = hessian_pair_functions(real, linear, dynamics_real).add_pair
    trees = tree_factor_functions(real, linear, dynamics_real)
    write_joint_hessian, factorize_tree = trees.write_joint_hessian, trees.factorize_tree
    solve_tree_up, solve_tree_down = trees.solve_tree_up, trees.solve_tree_down
    rows_to_block, numbers_clear = packed_rows(linear).rows_to_block, packed_rows(linear).numbers_clear
    bits, flags = record_functions(wp.uint64), record_functions(int)
    are_bits_kept, keep_bits, clear_bits = bits.is_kept, bits.keep, bits.clear
    are_flags_kept, keep_flags = flags.is_kept, flags.keep
    blocks = block_cholesky(linear, real)
    block_factorize, block_solve = blocks.block_factorize, blocks.block_solve
    vector_solve = vector_cholesky(linear).vector_solve
    bodies = body_contact_functions(linear, real, dynamics_real)
    project_stiffness = bodies.project_stiffness

    equalities = equality_functions(real, linear)
    add_equality_stiffness, add_dof_stiffness = (
        equalities.add_equality_stiffness,
        equalities.add_dof_stiffness,
    )
    is_inactive, point_stiffness = equalities.is_inactive, equalities.point_stiffness

    next_pair = contact_loop_functions(real, linear).next_pair
    entries = hessian_entry_functions(real, linear)
    couple_trees, add_dof_entry = entries.couple_trees, entries.add_dof_entry
    tree_contacts = tree_contact_functions(real, linear, dynamics_real)
    joins_branches, add_tree_contacts = tree_contacts.joins_branches, tree_contacts.add_tree_contacts
    springs = spring_functions(real, linear)
    couple_springs, add_spring_stiffness = springs.couple_springs, springs.add_spring_stiffness

    @wp.func(inline=stages_inline())
    def find_coupling(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int) -> int:
        """Mark the trees that contacts with an impulse, or equality constraints, couple.

        Lays out their blocks and returns their number.
        """
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        tree_count = topology.template_tree[template + 1] - first_tree
        tree0 = topology.world_tree[world]
        words = (tree_count + 63) / 64
        bits = sap.world_adjacency[world]
        coupled_count = int(0)
        for tree in range(tree_count):
            sap.tree_coupled[tree0 + tree] = 0
        start = sap.contact_start[world]
        cleared = int(0)
        end = start + sap.contact_count[world]
        slot = next_pair(sap, start, end, -1, -1)
        while slot < end:
            if cleared == 0:
                cleared = 1
                clear_bits(sap.coupling, bits, tree_count * words)
            a = sap.contact_dof0[slot]
            b = sap.contact_dof1[slot]
            coupled_count += couple_trees(topology, sap, world, a, b)
            slot = next_pair(sap, slot + 1, end, a, b)
        if wp.static(equality):
            if cleared == 0:
                clear_bits(sap.coupling, bits, tree_count * words)
            for index in range(sap.equality_start[world], sap.equality_end[world]):
                a = sap.equality[index].dof1
                b = sap.equality[index].dof2
                if a >= 0 and b >= 0 and not is_inactive(sap, index):
                    coupled_count += couple_trees(topology, sap, world, a, b)
            coupled_count += couple_springs(topology, sap, world)
        if coupled_count > 0:
            if (
                are_bits_kept(sap.coupling, sap.coupling_ordered, bits, tree_count * words) == 0
                or are_flags_kept(sap.tree_coupled, sap.tree_ordered, tree0, tree_count) == 0
            ):
                # The order follows from these alone, and most iterations couple the trees of the last one.
                keep_bits(sap.coupling, sap.coupling_ordered, bits, tree_count * words)
                keep_flags(sap.tree_coupled, sap.tree_ordered, tree0, tree_count)
                keep_bits(sap.coupling, sap.adjacency, bits, tree_count * words)
                sap.block_used[world] = order_blocks(
                    tree_count,
                    sap.adjacency,
                    bits,
                    sap.tree_coupled,
                    tree0,
                    sap.tree_size,
                    first_tree,
                    sap.tree_order,
                    sap.tree_position,
                    sap.block_location,
                    sap.world_location[world],
                )
            numbers_clear(sap.block_value, sap.world_block[world], sap.block_used[world])
        return coupled_count

    @wp.func(inline=True)
    def add_other_terms(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ):
        """Add the stiffness of equalities, and of contacts with moments, to bodies and pairs of them."""
        node0 = topology.world_joint[world]
        zero33 = mat33()
        pair_a, pair_b = int(-1), int(-1)
        pair = PairStiffness()
        start = sap.contact_start[world]
        contact_end = start + sap.contact_count[world]
        first_slot = int(contact_end)
        if wp.static(moments):
            first_slot = int(start)
        end = int(contact_end)
        if wp.static(equality):
            first_equality = sap.equality_start[world]
            end += sap.equality_end[world] - first_equality
        # One entry behind the last lets the last pair be added where all others are: compiled once.
        for slot in range(first_slot, end + 1):
            acts = int(NOTHING)
            dof_a, dof_b = int(-1), int(-1)
            if slot < contact_end:
                if wp.static(moments):
                    if sap.contact_impulse[slot][2] != real(0.0) or sap.contact_bound[slot] > real(0.0):
                        acts = CONTACT
                        dof_a = sap.contact_dof0[slot]
                        dof_b = sap.contact_dof1[slot]
            elif wp.static(equality):
                if slot < end:
                    index = first_equality + slot - contact_end
                    if sap.equality[index].kind == DOFS:
                        add_dof_stiffness(topology, sap, world, index)
                        if sap.equality[index].dof2 >= 0:
                            entry = -linear(sap.equality[index].stiffness_linear * sap.equality[index].ratio)
                            add_dof_entry(
                                topology,
                                sap,
                                world,
                                sap.equality[index].dof1,
                                sap.equality[index].dof2,
                                entry,
                            )
                    elif not is_inactive(sap, index):
                        acts = EQUALITY
                        dof_a = sap.equality[index].dof1
                        dof_b = sap.equality[index].dof2
            couples = dof_a >= 0 and dof_b >= 0
            if slot == end or (couples and (dof_a != pair_a or dof_b != pair_b)):
                if pair_a >= 0:
                    between = mat66()
                    for i in range(3):
                        for j in range(3):
                            between[i, j] = pair.ww[i, j]
                            between[i, 3 + j] = pair.wv[i, j]
                            between[3 + i, j] = pair.vw[i, j]
                            between[3 + i, 3 + j] = pair.vv[i, j]
                    add_pair(topology, dynamics, sap, world, pair_a, pair_b, between)
                pair_a = dof_a
                pair_b = dof_b
                pair.ww = zero33
                pair.wv = zero33
                pair.vw = zero33
                pair.vv = zero33
            if wp.static(moments):
                if acts == CONTACT:
                    bound = sap.contact_bound[slot]
                    rt = sap.contact_rt[slot]
                    rn = sap.contact_rn[slot]
                    y = unprojected(sap.contact_velocity[slot], sap.contact_bias[slot], rt, rn)
                    frame = mat33(sap.contact_frame[slot])
                    ra = sap.contact_ra[slot]
                    G_force, G_cross, G_moment = moment_stiffness(
                        y,
                        -sap.contact_spin[slot] / ra,
                        sap.contact_mu[slot],
                        sap.contact_mu_moment[slot],
                        bound,
                        rt,
                        ra,
                        rn,
                    )
                    W = frame * mat33(G_force) * wp.transpose(frame)
                    # Force by spin, moment by velocity, and moment by spin.
                    W_fs = frame * mat33(G_cross) * wp.transpose(frame)
                    W_mv = wp.transpose(W_fs)
                    W_ms = frame * mat33(G_moment) * wp.transpose(frame)
                    node_a = sap.contact_node0[slot]
                    node_b = sap.contact_node1[slot]
                    cross0 = wp.skew(vec3(sap.contact_arm0[slot]))
                    cross1 = wp.skew(vec3(sap.contact_arm1[slot]))
                    left0 = cross0 * W
                    left1 = cross1 * W
                    # Moments act on the bodies as such: Phi of a spin is (1, 0).
                    left0 += W_mv
                    left1 += W_mv
                    if node_a >= 0:
                        sap.node_stiffness_ww[node0 + node_a] = (
                            sap.node_stiffness_ww[node0 + node_a] + cross0 * W_fs + W_ms
                        )
                    if node_b >= 0:
                        sap.node_stiffness_ww[node0 + node_b] = (
                            sap.node_stiffness_ww[node0 + node_b] + cross1 * W_fs + W_ms
                        )
                    if node_a >= 0:
                        sap.node_stiffness_ww[node0 + node_a] = (
                            sap.node_stiffness_ww[node0 + node_a] - left0 * cross0
                        )
                        sap.node_stiffness_wv[node0 + node_a] = sap.node_stiffness_wv[node0 + node_a] + left0
                        sap.node_stiffness_vv[node0 + node_a] = sap.node_stiffness_vv[node0 + node_a] + W
                    if node_b >= 0:
                        sap.node_stiffness_ww[node0 + node_b] = (
                            sap.node_stiffness_ww[node0 + node_b] - left1 * cross1
                        )
                        sap.node_stiffness_wv[node0 + node_b] = sap.node_stiffness_wv[node0 + node_b] + left1
                        sap.node_stiffness_vv[node0 + node_b] = sap.node_stiffness_vv[node0 + node_b] + W
                    if couples:
                        pair.ww = pair.ww - left0 * cross1
                        pair.wv = pair.wv + left0
                        pair.vw = pair.vw - W * cross1
                        pair.vv = pair.vv + W
                        pair.ww = pair.ww + cross0 * W_fs + W_ms
                        pair.vw = pair.vw + W_fs
            if wp.static(equality):
                if acts == EQUALITY:
                    index = first_equality + slot - contact_end
                    add_equality_stiffness(topology, sap, world, index)
                    if couples:
                        W = point_stiffness(sap, index)
                        cross1 = wp.skew(vec3(sap.equality[index].arm2))
                        left0 = wp.skew(vec3(sap.equality[index].arm1)) * W
                        pair.ww = pair.ww + (mat33(sap.equality[index].stiffness_angular) - left0 * cross1)
                        pair.wv = pair.wv + left0
                        pair.vw = pair.vw - W * cross1
                        pair.vv = pair.vv + W

    @wp.func(inline=stages_inline())
    def assemble(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        coupled_count: int,
        tree_contact_count: int,
        region: int,  # scratch of contacts
        diag_shift: real,
    ):
        """Write H, from the mass matrix, `dof_curvature` and the stiffness of contacts and equalities.

        Where there are listed `tree_contacts`, H is without contacts between branches of a tree.
        """
        template = topology.world_template[world]
        first = topology.template_dof[template]
        first_node = topology.template_node[template]
        first_tree = topology.template_tree[template]
        tree_count = topology.template_tree[template + 1] - first_tree
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        row0 = topology.world_row[world]
        tree0 = topology.world_tree[world]

        write_joint_hessian(topology, dynamics, sap, world, diag_shift)

        zero33 = mat33()
        node_begin, node_end = sap.part_node[world], sap.part_node_end[world]
        for node in range(node_begin, node_end):
            if sap.node_contact[node0 + node] > 0:
                sap.node_stiffness_ww[node0 + node] = zero33
                sap.node_stiffness_wv[node0 + node] = zero33
                sap.node_stiffness_vv[node0 + node] = zero33

        if wp.static(equality):
            add_spring_stiffness(topology, sap, world)

        start = sap.contact_start[world]
        contact_end = start + sap.contact_count[world]
        if wp.static(not moments):
            work = region * wp.static(STIFFNESS_WORK_SIZE)
            slot = int(start)
            while slot < contact_end:
                eight = int(slot)
                slot = measure_stiffness(sap, eight, contact_end, sap.stiffness_work, work)
                sums = int(work)
                while sap.stiffness_work[sums + wp.static(RUN_SIZE - 1)] >= linear(0.0):
                    member = eight + int(sap.stiffness_work[sums + wp.static(RUN_SIZE - 1)])
                    run = int(sums)
                    sums += wp.static(RUN_SIZE)
                    dof_a = sap.contact_dof0[member]
                    dof_b = sap.contact_dof1[member]
                    couples = dof_a >= 0 and dof_b >= 0
                    if tree_contact_count > 0 and couples:
                        if joins_branches(topology, world, dof_a, dof_b):
                            continue
                    between = add_stiffness(sap, eight, node0, sap.stiffness_work, run)
                    if couples:
                        add_pair(topology, dynamics, sap, world, dof_a, dof_b, between)
        if wp.static(moments or equality):
            add_other_terms(topology, dynamics, sap, world)

        # Composite-body sweep of the stiffness.
        for i in range(node_end - node_begin):
            node = node_end - 1 - i
            if sap.node_contact[node0 + node] == VISITED:
                begin = topology.node_dof[first_node + node]
                parent = topology.node_parent[first_node + node]
                if topology.node_type[first_node + node] == JointType.FREE and parent < 0:
                    # The motions of a free root are the unit vectors: its rows are the lower triangle of K.
                    kww = sap.node_stiffness_ww[node0 + node]
                    kwv = sap.node_stiffness_wv[node0 + node]
                    kvv = sap.node_stiffness_vv[node0 + node]
                    row = row0 + topology.dof_row[first + begin]
                    for i6 in range(3):
                        angular = row + (i6 * (i6 + 1)) / 2
                        straight = row + ((i6 + 3) * (i6 + 4)) / 2
                        for j6 in range(3):
                            if j6 <= i6:
                                sap.hessian_row[angular + j6] = sap.hessian_row[angular + j6] + kww[i6, j6]
                                index = straight + 3 + j6
                                sap.hessian_row[index] = sap.hessian_row[index] + kvv[i6, j6]
                            sap.hessian_row[straight + j6] = sap.hessian_row[straight + j6] + kwv[j6, i6]
                    continue
                # The motions of a free root are the unit vectors: the wrench itself is its part of a row.
                tree = topology.node_tree[first_node + node]
                root = topology.tree_node[first_tree + tree]
                walk_end = int(0)
                if (
                    topology.node_type[first_node + root] == JointType.FREE
                    and sap.node_contact[node0 + root] == VISITED
                ):
                    walk_end = topology.tree_dof[first_tree + tree] + 6
                project_stiffness(
                    sap.node_stiffness_ww,
                    sap.node_stiffness_wv,
                    sap.node_stiffness_vv,
                    node0 + node,
                    wp.where(parent >= 0, node0 + parent, -1),
                    dynamics.dof_motion,
                    dof0,
                    topology.dof_parent,
                    topology.dof_depth,
                    topology.dof_row,
                    first,
                    begin,
                    begin + topology.node_dof_count[first_node + node],
                    walk_end,
                    walk_end > 0,
                    sap.hessian_row,
                    row0,
                )

        if coupled_count > 0:
            # Coupled trees move on to their dense diagonal blocks.
            table = sap.world_location[world]
            for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
                if sap.tree_coupled[tree0 + tree] != 0:
                    begin = topology.tree_dof[first_tree + tree]
                    n = sap.tree_size[first_tree + tree]
                    block = sap.world_block[world] + sap.block_location[table + tree * tree_count + tree]
                    rows_to_block(
                        sap.hessian_row,
                        row0,
                        topology.dof_parent,
                        topology.dof_depth,
                        topology.dof_row,
                        first,
                        begin,
                        begin + n,
                        sap.block_value,
                        block,
                    )

    @wp.func(inline=stages_inline())
    def factorize_and_solve(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        coupled_count: int,
        tree_contact_count: int,
        region: int,  # scratch of `contact_space` and of coupled trees
        dof_capacity: int,
        contact_capacity: int,
        work_size: int,
        coupled_work_size: int,
        is_factored: int,
    ) -> int:
        """Replace `sap.direction` by H^-1 direction; return 0 if H was not positive definite to rounding.

        With `is_factored`, H is that of the last call, and its factors are where that left them.
        """
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        tree_count = topology.template_tree[template + 1] - first_tree
        dof0 = topology.world_dof[world]
        tree0 = topology.world_tree[world]
        ok = int(1)
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            is_alone = coupled_count == 0 or sap.tree_coupled[tree0 + tree] == 0
            if sap.tree_active[tree0 + tree] != 0 and is_alone:
                if is_factored == 0:
                    tree_ok = factorize_tree(topology, sap, world, tree)
                    ok = ok * tree_ok
                solve_tree_up(topology, sap, world, tree)
        if wp.static(not moments):
            if tree_contact_count > 0:
                add_tree_contacts(
                    topology,
                    dynamics,
                    sap,
                    world,
                    region,
                    dof_capacity,
                    contact_capacity,
                    work_size,
                    tree_contact_count,
                    is_factored,
                )
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            is_alone = coupled_count == 0 or sap.tree_coupled[tree0 + tree] == 0
            if sap.tree_active[tree0 + tree] != 0 and is_alone:
                solve_tree_down(topology, sap, world, tree)
        if coupled_count > 0:
            blocks_ok = int(-1)
            if wp.static(linear is real):
                blocks_ok = vector_solve(
                    tree_count,
                    coupled_count,
                    sap.adjacency,
                    sap.world_adjacency[world],
                    tree0,
                    sap.tree_size,
                    topology.tree_dof,
                    first_tree,
                    sap.tree_order,
                    sap.tree_position,
                    sap.block_location,
                    sap.world_location[world],
                    sap.block_value,
                    sap.world_block[world],
                    sap.direction,
                    dof0,
                    sap.coupled_work,
                    region * coupled_work_size,
                    is_factored != 0,
                )
            if blocks_ok < 0:
                blocks_ok = 1
                if is_factored == 0:
                    blocks_ok = block_factorize(
                        tree_count,
                        coupled_count,
                        sap.adjacency,
                        sap.world_adjacency[world],
                        tree0,
                        sap.tree_size,
                        first_tree,
                        sap.tree_order,
                        sap.tree_position,
                        sap.block_location,
                        sap.world_location[world],
                        sap.block_value,
                        sap.world_block[world],
                    )
                block_solve(
                    tree_count,
                    coupled_count,
                    sap.adjacency,
                    sap.world_adjacency[world],
                    tree0,
                    sap.tree_size,
                    topology.tree_dof,
                    first_tree,
                    sap.tree_order,
                    sap.block_location,
                    sap.world_location[world],
                    sap.block_value,
                    sap.world_block[world],
                    sap.direction,
                    dof0,
                )
            ok = ok * blocks_ok
        return ok

    return SimpleNamespace(
        find_coupling=find_coupling, assemble=assemble, factorize_and_solve=factorize_and_solve
    )
