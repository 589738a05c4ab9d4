"""Newton stage: minimize the objective of every world.

Reads   contact and joint terms (`SapWorkspace`), A, v0 and v* of the dynamics
Writes  dof_velocity_next, contact impulses, iteration counts, cost and status

    minimize over v   1/2 (v - v*)^T A (v - v*) + sum over contacts, drives, limits, dry friction of l(v)

is strictly convex ([Castro2022] section III). Newton's method with a line search finds its minimum; every
world iterates by itself inside one kernel and stops when it has converged.

Most worlds take one solve. A direction from `contact_space` ends at the minimum where the terms of joints
stay in the pieces of their costs that they have at its start. So a few whole steps along such directions are
made first. The gradient at their ends is the difference between the impulses of joints there and those that
the direction was found with, so neither A v nor the impulses of contacts on joints are needed. Where contacts
are asked for less, because they do more work than they may, such steps are made anew.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel
from pluriverse.math.dense import packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import kernel_module
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Model, Topology
from pluriverse.solvers.sap.contact_objective import contact_objective_functions
from pluriverse.solvers.sap.contact_space import TOLERANCE_DOUBLE, TOLERANCE_SINGLE, contact_space_functions
from pluriverse.solvers.sap.dilation import (
    DILATION_ITERATIONS_MAX,
    DILATION_ROUNDS_MAX,
    dilation_functions,
)
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.friction_bound import friction_bound_functions
from pluriverse.solvers.sap.held_states import held_state_functions
from pluriverse.solvers.sap.hessian import hessian_functions
from pluriverse.solvers.sap.impulse_sweeps import SWEEP_ITERATION, SWEEP_SHARE, impulse_sweep_functions
from pluriverse.solvers.sap.joint_coupling import joint_coupling_functions
from pluriverse.solvers.sap.joint_pieces import joint_piece_functions
from pluriverse.solvers.sap.kept_factors import KEPT_MARGIN, kept_factor_functions
from pluriverse.solvers.sap.line_search import line_search_functions, line_struct
from pluriverse.solvers.sap.objective import objective_functions
from pluriverse.solvers.sap.options import (
    OPTIMALITY_DEFAULT,
    SapOptions,
    newton_options,
    newton_options_struct,
)
from pluriverse.solvers.sap.recovery import recovery_functions
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.sweeps import sweep_functions
from pluriverse.solvers.sap.tree_contacts import tree_contact_functions
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions

# Where the iteration starts: from the velocities of the last step, from the solution that `SapWorkspace`
# holds of this step, or from the same as it was written to the dynamics.
START_OLD = wp.constant(0)
START_SOLUTION = wp.constant(1)
START_WRITTEN = wp.constant(2)
# Iterations with Coulomb's law in the space of contacts, for each problem that bounds of recovery make. Where
# drives reach their limits in turns, as of legs that are pushed, they may go in circles.
COULOMB_ITERATIONS_MAX = wp.constant(6)
# What the kernel is at: a direction from the space of contacts, the terms of joints at its end, or Newton's
# method with a line search.
SOLVING, CHECKING, ITERATING = wp.constant(0), wp.constant(1), wp.constant(2)
# Whole steps along such directions before the first line search, of each problem that bounds of recovery
# make.
SOLVES_MAX = wp.constant(3)
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
# The Hessian was not positive definite to rounding, or held NaN.
FACTORIZATION_FAILED = wp.constant(-6)


@functools.cache
def _kernels(
    real: Any, linear: Any, dynamics_real: Any, equality: bool, moments: bool = False
) -> SimpleNamespace:
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    Options, Line = newton_options_struct(real), line_struct(real)
    objective = objective_functions(real, linear, dynamics_real, equality, moments)
    multiply_by_mass, begin_momenta = objective.multiply_by_mass, objective.begin_momenta
    evaluate_terms, gradient_norms = objective.evaluate_terms, objective.gradient_norms
    joint_error = objective.joint_error
    linearize_joints = joint_piece_functions(real, linear).linearize_joints
    sweeps = sweep_functions(real, linear, dynamics_real, equality, moments)
    joint_impulses = sweeps.joint_impulses
    motion = world_motion_functions(real, linear, dynamics_real, equality, moments)
    measure_velocity, measure_direction = motion.measure_velocity, motion.measure_direction
    hessian = hessian_functions(real, linear, dynamics_real, equality, moments)
    find_coupling, assemble, factorize_and_solve = (
        hessian.find_coupling,
        hessian.assemble,
        hessian.factorize_and_solve,
    )
    list_tree_contacts = tree_contact_functions(real, linear, dynamics_real).list_tree_contacts
    find_direction = contact_space_functions(real, linear, dynamics_real, equality).find_direction
    only_couples_joints = joint_coupling_functions(real, linear).only_couples_joints
    search_line = line_search_functions(real, linear, equality, moments).search_line
    limit_recovery = recovery_functions(real, linear).limit_recovery
    release_bounds = friction_bound_functions(real, linear).release_bounds
    dilation = dilation_functions(real, linear)
    begin_dilation, correct_dilation = dilation.begin_dilation, dilation.correct_dilation
    end_dilation = dilation.end_dilation
    may_keep_factors = kept_factor_functions(real).may_keep_factors
    held = held_state_functions(real, linear)
    shift_velocities, extend_impulses = held.shift_velocities, held.extend_impulses
    sweep_impulses = impulse_sweep_functions(real, linear, dynamics_real).sweep_impulses
    advance_contacts = contact_objective_functions(real, linear, moments).advance_contacts
    advance_equalities = equality_functions(real, linear).advance_equalities
    advance_springs = spring_functions(real, linear).advance_springs
    convert_numbers = packed_rows(dynamics_real, real).rows_copy
    convert_back = packed_rows(real, dynamics_real).rows_copy
    copy_numbers, numbers_clear = packed_rows(real).rows_copy, packed_rows(real).numbers_clear
    numbers = number_functions(real)
    numbers_add, numbers_linear = numbers.numbers_add, numbers.numbers_linear
    numbers_subtract = numbers.numbers_subtract
    numbers_dot, numbers_work = numbers.numbers_dot, numbers.numbers_work
    space_tolerance = TOLERANCE_DOUBLE if real is wp.float64 else TOLERANCE_SINGLE
    names = (real, linear, dynamics_real)
    stage = "pluriverse.solvers.sap.newton" + ("_equality" if equality else "")
    stage += "_moments" if moments else ""

    @wp.func(inline=stages_inline())
    def minimize_world(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        start: int,
        region: int,
        space_dof_count: int,
        space_contact_count: int,
        space_work_count: int,
        coupled_work_count: int,
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
    ):
        """Minimize the objective of a world; `region` is that whose scratch it takes."""
        template = topology.world_template[world]
        first = topology.template_dof[template]
        dof_count = topology.template_dof[template + 1] - first
        first_tree = topology.template_tree[template]
        tree_count = topology.template_tree[template + 1] - first_tree
        dof0 = topology.world_dof[world]
        tree0 = topology.world_tree[world]
        half = real(0.5)

        # Trees without any term move freely, and roots that are prescribed keep the velocity given to them;
        # the others start from the velocity of the last step.
        active = int(0)
        for tree in range(tree_count):
            takes_part = sap.tree_active[tree0 + tree]
            active += takes_part
            if dynamics.tree_prescribed[tree0 + tree] != 0:
                takes_part = 0
            begin = dof0 + topology.tree_dof[first_tree + tree]
            size = topology.tree_dof_end[first_tree + tree] - topology.tree_dof[first_tree + tree]
            if takes_part == 0:
                convert_numbers(dynamics.dof_velocity_free, begin, size, sap.velocity_start, begin)
            elif start == START_OLD:
                convert_numbers(dynamics.dof_velocity, begin, size, sap.velocity_start, begin)
            elif start == START_SOLUTION:
                copy_numbers(sap.velocity, begin, size, sap.velocity_start, begin)
            else:
                convert_numbers(dynamics.dof_velocity_next, begin, size, sap.velocity_start, begin)
        convert_numbers(dynamics.dof_velocity_free, dof0, dof_count, sap.velocity_free, dof0)
        copy_numbers(sap.velocity_start, dof0, dof_count, sap.velocity, dof0)
        numbers_clear(sap.impulse, dof0, dof_count)

        cost, cost_previous = real(0.0), real(0.0)
        alpha = real(1.0)
        iteration, trials, failure, round = int(0), int(0), int(0), int(0)
        coulomb = int(options.friction_follows)  # 1: Coulomb's law in the space of contacts, else convex
        coulomb_end = int(COULOMB_ITERATIONS_MAX)  # iteration from which it is convex
        dilation_round = int(DILATION_ROUNDS_MAX)  # none
        step = real(0.0)  # along the direction, not made yet
        is_start, has_momenta, solves, settled = int(1), int(0), int(0), int(0)
        first_solve = int(0)  # of the present problem
        state = int(ITERATING)
        by_optimality, by_cost = int(0), int(0)
        stagnates = int(0)
        closes = int(0)  # 1: it may begin closer to free motion
        holds = int(0)  # 1: the next step holds the states of contacts (`held_states`)
        running = int(active > 0)
        few_contacts = int(1)  # 0: the space of contacts is of no use to this world
        has_factors, keeps_factors = int(0), int(0)
        coupled_count, tree_contact_count = int(0), int(0)
        norm = real(0.0)  # of the gradient
        scale = real(0.0)  # of momenta or impulses, the larger
        sweep_iteration = int(-1)  # at which a heap starts again from sweeps over its impulses, or -1
        # What a world may do must not depend on the worlds beside it, for which the kernel has constraints.
        is_plain = int(1)  # 0: the world has constraints or springs
        if wp.static(equality):
            few_contacts = int(only_couples_joints(sap, world))
            if (
                sap.equality_start[world] != sap.equality_start[world + 1]
                or sap.spring_start[world] != sap.spring_start[world + 1]
            ):
                is_plain = 0
        if active == 0:
            by_optimality = 1
        if wp.static(linear is real and not moments):
            if few_contacts != 0 and options.iterations_max > SOLVES_MAX:
                state = SOLVING

        while running != 0:
            again, stopped = int(0), int(0)
            energy = real(0.0)
            if step != real(0.0):
                numbers_add(sap.direction, dof0, dof_count, step, sap.velocity)
                advance_contacts(sap, world, step)
                if wp.static(equality):
                    advance_equalities(sap, world, step)
                    advance_springs(sap, world, step)
                step = real(0.0)
            if is_start != 0:
                is_start = 0
                if solves > 0:
                    # Where joints stick and slip in turns, Newton's method goes by the cost, from the start.
                    state = ITERATING
                    few_contacts = 1
                    release_bounds(sap, world)
                    copy_numbers(sap.velocity_start, dof0, dof_count, sap.velocity, dof0)
                measure_velocity(topology, dynamics, sap, world)
            if state == ITERATING and has_momenta == 0:
                has_momenta = 1
                begin_momenta(topology, dynamics, sap, world)
            term_cost = evaluate_terms(topology, sap, world, options.dt, int(state != SOLVING))
            if state == CHECKING:
                error = joint_error(topology, sap, world)
                cost = sap.cost[world] + error[2] + term_cost
                state = SOLVING
                allowed = options.optimality_abs_tol + options.optimality_rel_tol * error[1]
                if error[0] <= allowed and wp.abs(cost) < real(wp.inf):
                    state = ITERATING
                    if options.optimality_rel_tol < wp.static(real(SPACE_MARGIN * space_tolerance)):
                        continue
                    by_optimality = 1
                    running = 0
                elif solves >= first_solve + SOLVES_MAX:
                    is_start = 1
                else:
                    linearize_joints(
                        topology,
                        sap,
                        world,
                        options.dt,
                        int(solves == first_solve + 1 and (settled == 0 or first_solve > 0)),
                    )
                if is_start != 0:
                    continue
            elif state == ITERATING:
                if wp.static(linear is real and not moments):
                    if holds != 0:
                        extend_impulses(sap, world)
                joint_impulses(topology, dynamics, sap, world)
                norms = gradient_norms(topology, sap, world)
                if closes != 0:
                    closes = 0
                    if norms[0] > real(CLOSING_GRADIENT) * wp.max(norms[1], norms[2]):
                        numbers_subtract(sap.velocity_free, sap.velocity, dof0, dof_count, sap.direction)
                        step = real(CLOSING_SHARE)
                        measure_direction(topology, dynamics, sap, world)
                        has_momenta = 0
                        continue
                energy = half * numbers_work(sap.residual, sap.velocity, sap.velocity_free, dof0, dof_count)
                cost_previous = cost
                cost = energy + term_cost
                allowed = options.optimality_abs_tol + (
                    options.optimality_rel_tol * wp.max(norms[1], norms[2])
                )
                wanted = real(KEPT_MARGIN) * allowed
                if holds == 0 and norms[0] <= wp.where(keeps_factors != 0, wanted, allowed):
                    by_optimality = 1
                    running = 0
                if keeps_factors == 0 and iteration > 0 and alpha > options.cost_alpha_min and holds == 0:
                    slack = options.cost_abs_tol + options.cost_rel_tol * half * (
                        wp.abs(cost) + wp.abs(cost_previous)
                    )
                    if wp.abs(cost - cost_previous) < slack:
                        by_cost = 1
                        running = 0
                if coulomb != 0 and (
                    stagnates != 0 or iteration >= coulomb_end or iteration < int(solves > 0)
                ):
                    # Solved up to rounding, for a tolerance below the default.
                    # Convex friction would be further off, and so may be another solution.
                    if norms[0] <= real(OPTIMALITY_DEFAULT) * wp.max(norms[1], norms[2]):
                        by_cost = 1
                        few_contacts = 1
                        running = 0
                stagnates = 0
                if running == 0 or has_factors == 0 or alpha != real(1.0):
                    keeps_factors = 0
                else:
                    keeps_factors = may_keep_factors(norms[0], norm, wanted, keeps_factors)
                norm = real(norms[0])
                scale = real(wp.max(norms[1], norms[2]))
                if iteration + solves >= options.iterations_max or not norms[0] < real(wp.inf):
                    stopped = 1
            if running == 0 and limit_recovery(sap, world, round) != 0:
                # Solved, but some contact does more work than it may, so the problem is another one now. The
                # two costs are not to be compared: as after a step of no length.
                again = 1
                round += 1
                coulomb_end = iteration + COULOMB_ITERATIONS_MAX
                alpha = real(0.0)
                by_optimality, by_cost = 0, 0
                running = 1
                if coulomb != 0 and solves > 0 and iteration == 0:
                    if solves + SOLVES_MAX < options.iterations_max:
                        state = SOLVING
                        first_solve = solves
                        has_momenta = 0
            elif running == 0 and iteration < DILATION_ITERATIONS_MAX:
                if correct_dilation(sap, world, dilation_round) != 0:
                    again = 1
                    if wp.static(linear is real and not moments):
                        if few_contacts == 0 and is_plain != 0:
                            holds = 1
                            shift_velocities(sap, world)
                    dilation_round += 1
                    alpha = real(0.0)
                    by_optimality, by_cost = 0, 0
                    running = 1
            if stopped != 0:
                running = 0
            if wp.static(linear is real and not moments):
                if iteration == sweep_iteration and norm <= real(SWEEP_SHARE) * scale:
                    sweep_iteration = -1  # a pile at rest is as good as solved
                if running != 0 and again == 0 and iteration == sweep_iteration:
                    sweep_iteration = -1
                    swept = sweep_impulses(topology, dynamics, sap, world)
                    if swept != 0:
                        if swept < 0:
                            copy_numbers(sap.velocity_start, dof0, dof_count, sap.velocity, dof0)
                        measure_velocity(topology, dynamics, sap, world)
                        end_dilation(sap, world)
                        begin_dilation(sap, world, 1)
                        dilation_round = 0
                        has_momenta = 0
                        alpha = real(0.0)
                        continue

            if running != 0 and again == 0:
                ok = int(1)
                is_exact = int(0)
                if wp.static(not moments):
                    if few_contacts != 0:
                        has_factors, keeps_factors = 0, 0
                        is_exact = find_direction(
                            topology,
                            dynamics,
                            sap,
                            world,
                            region,
                            space_dof_count,
                            space_contact_count,
                            space_work_count,
                            options.diag_shift,
                            options.optimality_rel_tol,
                            coulomb,
                            int(iteration + solves == 0),
                            int(state == SOLVING and solves > 0),
                            int(state == SOLVING and solves == 0),
                            options.dt,
                        )
                        settled = wp.max(settled, int(is_exact == 2))
                        few_contacts = int(is_exact != 0)
                if state == SOLVING and is_exact == 0 and solves > 0:
                    is_start = 1
                    continue
                if coulomb != 0 and (few_contacts == 0 or iteration >= coulomb_end):
                    # From here on friction is convex, but for what `dilation` takes out of it.
                    coulomb = 0
                    release_bounds(sap, world)
                    begin_dilation(sap, world, wp.where(iteration > 0, 1, start))
                    closes = int(
                        iteration + solves == 0 and start == START_OLD and dof_count <= space_dof_count
                    )
                    sweep_iteration = wp.where(is_plain != 0, iteration + SWEEP_ITERATION, -1)
                    dilation_round = 0
                    alpha = real(0.0)
                    state = ITERATING
                    continue  # the gradient is another one now
                if state == SOLVING:
                    state = ITERATING
                    if is_exact != 0:
                        numbers_linear(
                            sap.dof_impulse,
                            sap.dof_curvature,
                            real(0.0),
                            sap.direction,
                            dof0,
                            dof_count,
                            sap.impulse,
                        )
                        state = CHECKING
                        step = real(1.0)
                        solves += 1
                    continue
                if is_exact == 0:
                    if keeps_factors == 0:
                        coupled_count = 0
                        tree_contact_count = 0
                        if wp.static(not moments):
                            if is_plain != 0 and dof_count <= space_dof_count:
                                tree_contact_count = list_tree_contacts(
                                    topology, sap, world, region * space_contact_count, space_contact_count
                                )
                        if tree_contact_count == 0:
                            coupled_count = find_coupling(topology, sap, world)
                        assemble(
                            topology,
                            dynamics,
                            sap,
                            world,
                            coupled_count,
                            tree_contact_count,
                            region,
                            options.diag_shift,
                        )
                    numbers_clear(sap.direction, dof0, dof_count)
                    for tree in range(tree_count):
                        if sap.tree_active[tree0 + tree] != 0:
                            begin = dof0 + topology.tree_dof[first_tree + tree]
                            size = topology.tree_dof_end[first_tree + tree] - (begin - dof0)
                            numbers_add(sap.gradient, begin, size, real(-1.0), sap.direction)
                    ok = factorize_and_solve(
                        topology,
                        dynamics,
                        sap,
                        world,
                        coupled_count,
                        tree_contact_count,
                        region,
                        space_dof_count,
                        space_contact_count,
                        space_work_count,
                        coupled_work_count,
                        keeps_factors,
                    )
                    has_factors = ok
                    measure_direction(topology, dynamics, sap, world)
                multiply_by_mass(topology, dynamics, world, sap.direction, sap.direction_momentum)
                if wp.static(linear is real and not moments):
                    if holds != 0:
                        holds = 0
                        iteration += 1
                        alpha = real(0.0)
                        numbers_add(sap.direction, dof0, dof_count, real(1.0), sap.velocity)
                        numbers_add(sap.direction_momentum, dof0, dof_count, real(1.0), sap.residual)
                        measure_velocity(topology, dynamics, sap, world)
                        continue
                alpha = real(1.0)
                fault = real(0.0)
                if keeps_factors == 0:
                    line = Line()
                    line.cost = cost
                    line.slope = numbers_dot(sap.gradient, sap.direction, dof0, dof_count)
                    line.energy = energy
                    line.energy_slope = numbers_dot(sap.residual, sap.direction, dof0, dof_count)
                    line.energy_curvature = numbers_dot(
                        sap.direction_momentum, sap.direction, dof0, dof_count
                    )
                    found = search_line(topology, sap, world, options, line, is_exact, coulomb)
                    alpha = found[0]
                    trials += int(found[1])
                    fault = found[2]
                if fault != real(0.0) and is_exact != 0:
                    few_contacts = 0  # rounding, which another direction may not have
                    stagnates = 1
                elif fault != real(0.0):
                    # No step was found, and the next iteration would fail in the same way.
                    failure = int(fault)
                    if ok == 0:
                        failure = FACTORIZATION_FAILED
                    running = 0
                else:
                    numbers_add(sap.direction_momentum, dof0, dof_count, alpha, sap.residual)
                    step = real(alpha)
                    iteration += 1

        if active > 0 and options.friction_follows != 0:
            end_dilation(sap, world)
        convert_back(sap.velocity, dof0, dof_count, dynamics.dof_velocity_next, dof0)
        sap.cost[world] = cost
        iteration += solves
        if start != START_OLD:
            iteration += sap.iterations[world]
            trials += sap.line_search_iterations[world]
        sap.iterations[world] = iteration
        sap.line_search_iterations[world] = trials
        sap.optimality_reached[world] = by_optimality
        sap.cost_reached[world] = by_cost
        sap.converged[world] = wp.max(by_optimality, by_cost)
        sap.failure[world] = failure

    @wp.kernel(enable_backward=False, module=kernel_module(stage, *names))
    def minimize_objective(
        worlds: wp.array[int],
        slot_count: int,  # slots of one thread
        topology: Topology,
        options: Options,
        start: int,
        shares_space: int,
        space_dof_count: int,
        space_contact_count: int,
        space_work_count: int,
        coupled_work_count: int,
        dynamics: DynamicsData,
        sap: SapData,
    ):
        """Minimize the objectives of some worlds, one after the other."""
        thread, _ = wp.tid()
        first_slot = thread * slot_count
        for slot in range(first_slot, wp.min(first_slot + slot_count, worlds.shape[0])):
            world = worlds[slot]
            # One thread steps all worlds of a launch on a CPU, one after the other: they share its scratch.
            region = int(world)
            if shares_space != 0 and worlds[0] >= 0:
                region = worlds[0]
            if world >= 0:
                minimize_world(
                    topology,
                    options,
                    start,
                    region,
                    space_dof_count,
                    space_contact_count,
                    space_work_count,
                    coupled_work_count,
                    dynamics,
                    sap,
                    world,
                )

    return SimpleNamespace(minimize_objective=minimize_objective)


def minimize_objectives(
    model: Model,
    worlds: wp.array,
    dynamics: Workspace,
    sap: SapWorkspace,
    options: SapOptions,
    *,
    dt: float,
    start: int,
) -> None:
    """Find the velocities at the end of a step of `dt` [s], beginning at `start` (`START_OLD` and so on)."""
    # Stages that are called want the structures of arrays in memory. A thread copies them there, 10 kB, when
    # it begins: on a CPU once for all worlds.
    slot_count = max(worlds.size, 1) if model.device.is_cpu else 1
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real, sap.has_equality, sap.has_moments).minimize_objective,
        dim=-(-worlds.size // slot_count),
        inputs=[
            worlds,
            slot_count,
            model.topology,
            newton_options(options, sap.real, dt),
            start,
            int(model.device.is_cpu),
            sap.space_dof_count,
            sap.space_contact_count,
            sap.space_work_count,
            sap.coupled_work_count,
            dynamics.data,
            sap.data,
        ],
        device=model.device,
    )
