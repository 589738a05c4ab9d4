"""Checks of Newton's method: whether a point of the iteration is the minimum.

Reads   the point, its terms and their impulses
Writes  impulses and curvatures of joints, gradient, and what the next step is to be (`progress.py`)
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.model import Topology
from pluriverse.solvers.sap.active_trees import active_dofs_function
from pluriverse.solvers.sap.contact_space import TOLERANCE_DOUBLE, TOLERANCE_SINGLE
from pluriverse.solvers.sap.groups import group_functions
from pluriverse.solvers.sap.held_states import held_state_functions
from pluriverse.solvers.sap.joint_pieces import joint_piece_functions
from pluriverse.solvers.sap.kept_factors import KEPT_MARGIN, kept_factor_functions
from pluriverse.solvers.sap.objective import objective_functions
from pluriverse.solvers.sap.options import OPTIMALITY_DEFAULT, newton_options_struct
from pluriverse.solvers.sap.progress import ITERATING, SOLVES_MAX, SOLVING, progress_struct
from pluriverse.solvers.sap.sweeps import sweep_functions
from pluriverse.solvers.sap.workspace import sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions

# How many times as accurate impulses from the space of contacts are to be, to be taken without a gradient.
# For tolerances below that, whole steps are made as well, and their gradient is evaluated: Coulomb's law may
# have several solutions, and which one is found is not to depend on the tolerance.
SPACE_MARGIN = 10.0
# Newton's method over all joints begins this share of the way from the last velocities to those of free
# motion, where the gradient at the first is more than so much of the momenta. At the last velocities rounding
# opens half of the contacts on which something slides, and the first directions then ran into them one after
# the other. The share closes what is about to carry, and little else: of 37 contacts of a limp G1 that
# slides, 8 in place of 22 begin in a state other than the last. What rests begins well: hands that hold
# objects took twice the iterations from there. Nor do heaps of 64 boxes gain, which have too many joints.
CLOSING_SHARE, CLOSING_GRADIENT = 0.003, 0.2

# Where the gradient of a world is within its tolerance, that of a group may be so many times as large beside
# its own momenta. Of twenty objects in a bin each has a quarter of the momenta of all, and without the slack
# one that creeps would cost all of them another iteration.
GROUP_SLACK = 10.0


@made_once
def newton_check_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool, moments: bool
) -> SimpleNamespace:
    """Return `check_joints` and `check_gradient` for the given precisions.

    Both return whether the iteration goes on from this point; 0 if the point is to be another one.
    """
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    Options, Progress = newton_options_struct(real), progress_struct(real)
    objective = objective_functions(real, linear, dynamics_real, equality, moments)
    gradient_norms, joint_error = objective.gradient_norms, objective.joint_error
    linearize_joints = joint_piece_functions(real, linear).linearize_joints
    joint_impulses = sweep_functions(real, linear, dynamics_real, equality, moments).joint_impulses
    motion = world_motion_functions(real, linear, dynamics_real, equality, moments)
    measure_direction = motion.measure_direction
    may_keep_factors = kept_factor_functions(real).may_keep_factors
    extend_impulses = held_state_functions(real, linear).extend_impulses
    are_balanced = group_functions(real, linear, dynamics_real).are_balanced
    active_dofs = active_dofs_function(real, linear)
    numbers_clear = packed_rows(real).numbers_clear
    numbers = number_functions(real)
    numbers_subtract, numbers_work = numbers.numbers_subtract, numbers.numbers_work
    space_tolerance = TOLERANCE_DOUBLE if real is wp.float64 else TOLERANCE_SINGLE
    holds_states = linear is real and not moments

    @wp.func(inline=True)
    def check_joints(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ) -> int:
        """Look at joints at the end of a whole step from the space of contacts.

        The gradient there is the difference between the impulses of joints and those that the direction was
        found with, so neither A v nor the impulses of contacts on joints are needed.
        """
        error, work = joint_error(topology, sap, world, options.optimality_rel_tol)
        at.cost = sap.cost[world] + work + at.term_cost
        goes_on = int(1)
        if error <= options.optimality_abs_tol and wp.abs(at.cost) < real(wp.inf):
            at.phase = ITERATING
            if options.optimality_rel_tol < wp.static(real(SPACE_MARGIN * space_tolerance)):
                goes_on = 0
            else:
                at.by_optimality = 1
                at.running = 0
        elif at.solves >= at.first_solve + SOLVES_MAX:
            at.phase = SOLVING
            at.starts = 1
            goes_on = 0
        else:
            at.phase = SOLVING
            is_first = int(at.solves == at.first_solve + 1 and (at.settled == 0 or at.first_solve > 0))
            linearize_joints(topology, sap, world, options.dt, is_first)
        return goes_on

    @wp.func(inline=True)
    def begin_closer(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ):
        """Take the first step towards free motion."""
        numbers_clear(sap.direction, at.dof0, at.dof_count)
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            numbers_subtract(sap.velocity_free, sap.velocity, begin, size, sap.direction)
        at.step = real(CLOSING_SHARE)
        measure_direction(topology, dynamics, sap, world)
        at.has_momenta = 0

    @wp.func(inline=True)
    def check_gradient(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ) -> int:
        """Evaluate gradient and cost."""
        if wp.static(holds_states):
            if at.holds != 0:
                extend_impulses(sap, world)
        joint_impulses(topology, dynamics, sap, world)
        norms = gradient_norms(topology, sap, world)
        size = wp.max(norms[1], norms[2])
        if at.closes != 0:
            at.closes = 0
            if norms[0] > real(CLOSING_GRADIENT) * size:
                begin_closer(topology, dynamics, sap, world, at)
                return 0
        work = real(0.0)
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, count = active_dofs(topology, sap, world, tree)
            work += numbers_work(sap.residual, sap.velocity, sap.velocity_free, begin, count)
        at.energy = real(0.5) * work
        at.cost_before = at.cost
        at.cost = at.energy + at.term_cost
        allowed = options.optimality_abs_tol + options.optimality_rel_tol * size
        wanted = real(KEPT_MARGIN) * allowed
        if at.holds == 0 and norms[0] <= wp.where(at.keeps_factors != 0, wanted, allowed):
            at.by_optimality = 1
            if at.tree_count > 1 and at.group_count == 0:
                at.by_optimality = are_balanced(
                    topology,
                    dynamics,
                    sap,
                    world,
                    options.optimality_abs_tol,
                    real(GROUP_SLACK) * options.optimality_rel_tol,
                )
            at.running = 1 - at.by_optimality
            at.is_uneven = at.running
        made_step = at.iterations > 0 and at.alpha > options.cost_alpha_min
        if at.keeps_factors == 0 and made_step and at.holds == 0:
            slack = options.cost_abs_tol + options.cost_rel_tol * real(0.5) * (
                wp.abs(at.cost) + wp.abs(at.cost_before)
            )
            if wp.abs(at.cost - at.cost_before) < slack:
                at.by_cost = 1
                at.running = 0
        if at.coulomb != 0 and (
            at.stagnates != 0 or at.iterations >= at.coulomb_end or at.iterations < int(at.solves > 0)
        ):
            # Solved up to rounding, for a tolerance below the default.
            # Convex friction would be further off, and so may be another solution.
            if norms[0] <= real(OPTIMALITY_DEFAULT) * size:
                at.by_cost = 1
                at.few_contacts = 1
                at.running = 0
        at.stagnates = 0
        if at.running == 0 or at.has_factors == 0 or at.alpha != real(1.0):
            at.keeps_factors = 0
        else:
            at.keeps_factors = may_keep_factors(norms[0], at.norm, wanted, at.keeps_factors)
        at.norm = norms[0]
        at.scale = size
        if at.iterations + at.solves >= options.iterations_max or not norms[0] < real(wp.inf):
            at.is_stopped = 1
        return 1

    return SimpleNamespace(check_joints=check_joints, check_gradient=check_gradient)
