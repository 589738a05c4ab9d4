"""Pieces of the laws of driven joints, found before the contacts of a step are, and again with them.

Reads   the terms of joints, velocity and velocity_free, factors and L^-T g of trees in `contact_space`
Writes  dof_impulse, dof_curvature, dof_pieces, hessian_row and direction of a tree that changed

A drive at its limit may turn a light joint around within a step, after which it is no longer at its limit,
and friction acts the other way. A whole step that assumes the pieces at its start has to be made again then,
with all contacts: three of four steps of an arm with random targets took two or three. So a tree is moved by
itself first, without contacts and constraints, until its joints end in the pieces that they were moved with.
That takes one more solve with its factors, and other factors for each change.

Trees whose root is driven are moved, which are arms and fingers. Robots that stand on the ground are moved
by contacts above all, and keep the pieces of their velocities. So do joints that contacts or constraints act
on directly, a finger and what it presses on, and those that stick. Where contacts act on any joint of a tree,
only drives that begin at their limits settle: an arm that rests on something took five solves otherwise.

Once contacts are solved, all joints of such a world are looked at, and the contacts solved again from the
impulses that they have. That takes new factors and a new mobility, but not the terms of all joints and
contacts at the end of a whole step. An arm that held a fallen cube stuck and slid in turns, joint by joint,
and took three whole steps in most of its steps.
"""

import enum
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE, packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.model import Topology
from pluriverse.solvers.sap.equality import OFF
from pluriverse.solvers.sap.joint_pieces import PIECES
from pluriverse.solvers.sap.tree_factors import tree_factor_functions
from pluriverse.solvers.sap.workspace import DRIVE, DRY_FRICTION, sap_struct

# Moves of a tree; the pieces that the last one ended in are not looked at again.
MOVES_MAX = wp.constant(4)
# Solves with all contacts that pieces may take, each with those that the one before ended in.
SETTLING_SOLVES_MAX = wp.constant(5)
# Added to `dof_pieces` of joints that contacts or constraints act on directly.
HELD = wp.constant(PIECES)


class Settling(enum.IntEnum):
    """What joints settle with."""

    ALONE = 0  # nothing acts on their tree
    TOUCHED = 1  # contacts act on it, whose impulses are not known
    SOLVED = 2  # contacts whose impulses were found


_LAWS = (
    f"constexpr int DRIVE = {DRIVE}, DRY = {DRY_FRICTION}, HELD = {PIECES};"
    f"constexpr int TOUCHED = {Settling.TOUCHED:d}, SOLVED = {Settling.SOLVED:d};"
    + """
    auto piece_of = [](const V y, const V most) { return (y > most ? 1 : 0) - (y < -most ? 1 : 0); };
    auto value_of = [](const int piece, const V y, const V most) {
        return piece == 0 ? y : V(piece) * most;
    };
"""
)

_BEGIN = """
    for (int d = first; d < first + count; ++d) {
        const int has = terms.data[d] > 0 ? terms.data[d] : 0;
        if (!(has & (DRIVE | DRY))) continue;
        const V v = velocity.data[d];
        int drive = 0, friction = 0;
        if (has & DRIVE) {
            const V y = dt * (drive_offset.data[d] - drive_gain.data[d] * v);
            drive = piece_of(y, dt * drive_limit.data[d]);
        }
        if (has & DRY) friction = piece_of(-v / friction_regularization.data[d], friction_impulse.data[d]);
        dof_pieces.data[d] = drive + 1 + 3 * (friction + 1);
    }
"""

# As in `joint_pieces`, but for laws that are told by their values at the start of the step.
_SETTLE = """
    int changes = 0;
    for (int d = first; d < first + count; ++d) {
        const int has = terms.data[d] > 0 ? terms.data[d] : 0;
        if (!(has & (DRIVE | DRY)) || (settling != SOLVED && dof_pieces.data[d] >= HELD)) continue;
        const V start = velocity.data[d], end = origin.data[d] + change.data[d];
        bool is_pushed = settling != TOUCHED;
        if (!is_pushed && (has & DRIVE)) {
            const V y = dt * (drive_offset.data[d] - drive_gain.data[d] * start);
            is_pushed = piece_of(y, dt * drive_limit.data[d]) != 0;
        }
        if (!is_pushed) continue;
        const int drive = dof_pieces.data[d] % 3 - 1, friction = dof_pieces.data[d] / 3 % 3 - 1;
        const V mobility = scale.data[d];
        int next = drive, next_dry = friction;
        if (has & DRIVE) {
            const V stiffness = dt * drive_gain.data[d], most = dt * drive_limit.data[d];
            const V offset = dt * drive_offset.data[d];
            const V y = offset - stiffness * end, p = value_of(drive, y, most);
            next = piece_of(p + (y - p) / (mobility * stiffness + V(1)), most);
            if (next != drive) {
                const V begun = offset - stiffness * start;
                dof_impulse.data[d] += value_of(next, begun, most) - value_of(drive, begun, most);
                dof_curvature.data[d] += V((next == 0) - (drive == 0)) * stiffness;
            }
        }
        if (has & DRY) {
            const V stiffness = V(1) / friction_regularization.data[d], most = friction_impulse.data[d];
            const V begun = -stiffness * start, y = -stiffness * end, p = value_of(friction, y, most);
            if (settling == SOLVED || piece_of(begun, most) != 0) {
                next_dry = piece_of(p + (y - p) / (mobility * stiffness + V(1)), most);
            }
            if (next_dry != friction) {
                dof_impulse.data[d] += value_of(next_dry, begun, most) - value_of(friction, begun, most);
                dof_curvature.data[d] += V((next_dry == 0) - (friction == 0)) * stiffness;
            }
        }
        if (next == drive && next_dry == friction) continue;
        dof_pieces.data[d] = next + 1 + 3 * (next_dry + 1);
        ++changes;
    }
    return changes;
"""


@made_once
def joint_settling_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool = False
) -> SimpleNamespace:
    """Return `begin_settling` and `settle_tree`, whose loops are `begin_dofs` and `settle_dofs`."""
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    rows = packed_rows(linear, real)
    diagonal_add, ltdl_solve_down = rows.diagonal_add, rows.ltdl_solve_down
    rows_copy = packed_rows(dynamics_real, linear).rows_copy
    copy_numbers = packed_rows(real).rows_copy
    numbers_linear = number_functions(real).numbers_linear
    trees = tree_factor_functions(real, linear, dynamics_real)
    factorize_tree, solve_tree_up = trees.factorize_tree, trees.solve_tree_up
    types = f"using V = {CTYPE[real]};"

    @wp.func_native(types + _LAWS + _BEGIN)
    def begin_dofs(
        terms: wp.array[int],
        velocity: wp.array[real],
        drive_offset: wp.array[real],
        drive_gain: wp.array[real],
        drive_limit: wp.array[real],
        friction_regularization: wp.array[real],
        friction_impulse: wp.array[real],
        dt: real,
        first: int,
        count: int,
        dof_pieces: wp.array[int],
    ): ...

    @wp.func_native(types + _LAWS + _SETTLE)
    def settle_dofs(
        terms: wp.array[int],
        velocity: wp.array[real],
        origin: wp.array[real],
        change: wp.array[real],
        scale: wp.array[real],
        drive_offset: wp.array[real],
        drive_gain: wp.array[real],
        drive_limit: wp.array[real],
        friction_regularization: wp.array[real],
        friction_impulse: wp.array[real],
        dt: real,
        settling: int,
        first: int,
        count: int,
        dof_impulse: wp.array[real],
        dof_curvature: wp.array[real],
        dof_pieces: wp.array[int],
    ) -> int: ...

    @wp.func(inline=True)
    def hold(sap: wp.ref[SapData], dof: int):
        """Keep the pieces of a joint that something acts on directly."""
        if sap.dof_pieces[dof] < HELD:
            sap.dof_pieces[dof] = sap.dof_pieces[dof] + HELD

    @wp.func(inline=True)
    def begin_settling(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, contact0: int, count: int, dt: real
    ) -> int:
        """Write the pieces at the velocities if any tree settles, with the listed contacts; return if so."""
        first_tree = topology.template_tree[topology.world_template[world]]
        dof0 = topology.world_dof[world]
        settles = int(0)
        for tree in range(first_tree + sap.part_tree[world], first_tree + sap.part_tree_end[world]):
            # Terms of other groups are negative.
            settles |= wp.max(sap.dof_terms[dof0 + topology.tree_dof[tree]], 0) & DRIVE
        if settles != 0:
            begin_dofs(
                sap.dof_terms,
                sap.velocity,
                sap.drive_offset,
                sap.drive_gain,
                sap.drive_limit,
                sap.friction_regularization,
                sap.friction_impulse,
                dt,
                dof0 + sap.part_dof[world],
                sap.part_dof_end[world] - sap.part_dof[world],
                sap.dof_pieces,
            )
            for c in range(contact0, contact0 + count):
                slot = sap.space_slot[c]
                if sap.contact_dof0[slot] >= 0:
                    hold(sap, dof0 + sap.contact_dof0[slot])
                if sap.contact_dof1[slot] >= 0:
                    hold(sap, dof0 + sap.contact_dof1[slot])
            if wp.static(equality):
                for index in range(sap.equality_start[world], sap.equality_end[world]):
                    if sap.equality[index].kind == OFF:
                        continue
                    if sap.equality[index].dof1 >= 0:
                        hold(sap, dof0 + sap.equality[index].dof1)
                    if sap.equality[index].dof2 >= 0:
                        hold(sap, dof0 + sap.equality[index].dof2)
                for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
                    for entry in range(sap.spring_entry_start[spring], sap.spring_entry_start[spring + 1]):
                        hold(sap, dof0 + sap.spring_dof[entry])
        return int(settles != 0)

    @wp.func(inline=True)
    def settle_tree(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        tree: int,
        contact0: int,
        contact_count: int,
        diag_shift: real,
        dt: real,
    ) -> int:
        """Replace pieces, factors and L^-T g of a tree; return 0 if its rows were not positive definite."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        row_tree = topology.template_tree[template] + tree
        begin = topology.tree_dof[row_tree]
        count = topology.tree_dof_end[row_tree] - begin
        dof0 = topology.world_dof[world]
        row0 = topology.world_row[world]
        if sap.dof_terms[dof0 + begin] & DRIVE == 0:
            return 1
        last = first + begin + count - 1
        row = topology.dof_row[first + begin]
        row_size = topology.dof_row[last] + topology.dof_depth[last] + 1 - row
        settling = int(Settling.ALONE)
        for c in range(contact0, contact0 + contact_count):
            slot = sap.space_slot[c]
            dof_a, dof_b = sap.contact_dof0[slot] - begin, sap.contact_dof1[slot] - begin
            if (dof_a >= 0 and dof_a < count) or (dof_b >= 0 and dof_b < count):
                settling = int(Settling.TOUCHED)
        move = int(0)
        while move < MOVES_MAX:
            move += 1
            copy_numbers(sap.direction, dof0 + begin, count, sap.gradient, dof0 + begin)
            ltdl_solve_down(
                sap.hessian_row,
                row0,
                topology.dof_parent,
                topology.dof_depth,
                topology.dof_row,
                first,
                begin,
                begin + count,
                sap.gradient,
                dof0,
            )
            changes = settle_dofs(
                sap.dof_terms,
                sap.velocity,
                sap.velocity_free,
                sap.gradient,
                sap.dof_scale,
                sap.drive_offset,
                sap.drive_gain,
                sap.drive_limit,
                sap.friction_regularization,
                sap.friction_impulse,
                dt,
                settling,
                dof0 + begin,
                count,
                sap.dof_impulse,
                sap.dof_curvature,
                sap.dof_pieces,
            )
            if changes == 0:
                move = MOVES_MAX
            else:
                rows_copy(dynamics.mass_row, row0 + row, row_size, sap.hessian_row, row0 + row)
                diagonal_add(
                    sap.hessian_row,
                    row0,
                    topology.dof_depth,
                    topology.dof_row,
                    first + begin,
                    count,
                    sap.dof_curvature,
                    dof0 + begin,
                    diag_shift,
                )
                if factorize_tree(topology, sap, world, tree) == 0:
                    return 0
                numbers_linear(
                    sap.dof_impulse,
                    sap.dof_curvature,
                    diag_shift,
                    sap.direction_momentum,
                    dof0 + begin,
                    count,
                    sap.direction,
                )
                solve_tree_up(topology, sap, world, tree)
        return 1

    @wp.func(inline=True)
    def settle_joints(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, dt: real) -> int:
        """Replace pieces that `direction` does not end in; return the number of those replaced."""
        dof0 = topology.world_dof[world]
        return settle_dofs(
            sap.dof_terms,
            sap.velocity,
            sap.velocity,
            sap.direction,
            sap.dof_scale,
            sap.drive_offset,
            sap.drive_gain,
            sap.drive_limit,
            sap.friction_regularization,
            sap.friction_impulse,
            dt,
            int(Settling.SOLVED),
            dof0 + sap.part_dof[world],
            sap.part_dof_end[world] - sap.part_dof[world],
            sap.dof_impulse,
            sap.dof_curvature,
            sap.dof_pieces,
        )

    return SimpleNamespace(
        begin_settling=begin_settling,
        settle_tree=settle_tree,
        settle_joints=settle_joints,
        begin_dofs=begin_dofs,
        settle_dofs=settle_dofs,
    )
