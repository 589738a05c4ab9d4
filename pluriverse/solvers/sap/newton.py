"""Newton stage: minimize the objective of every world.

Reads   contact and joint terms (`SapWorkspace`), A, v0 and v* of the dynamics
Writes  dof_velocity_next, contact impulses, iteration counts, cost and status

    minimize over v   1/2 (v - v*)^T A (v - v*) + sum over contacts, drives, limits, dry friction of l(v)

is strictly convex ([Castro2022] section III). Newton's method with a line search finds its minimum; every
world iterates by itself inside one kernel and stops when it has converged.

Most worlds take one solve. A direction from `contact_space` ends at the minimum where the terms of joints
stay in the pieces of their costs that they have at its start. So a few whole steps along such directions are
made first (`newton_step.py`), and joints are looked at where they end (`newton_check.py`). Where contacts are
asked for less, because they do more work than they may, such steps are made anew (`next_problem.py`). What
these stages tell each other is in `progress.py`.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import kernel_module
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Model, Topology
from pluriverse.solvers.sap.constraint_rows import constraint_row_functions
from pluriverse.solvers.sap.contact_objective import contact_objective_functions
from pluriverse.solvers.sap.dilation import DILATION_ROUNDS_MAX, dilation_functions
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.friction_bound import friction_bound_functions
from pluriverse.solvers.sap.groups import group_functions
from pluriverse.solvers.sap.newton_check import newton_check_functions
from pluriverse.solvers.sap.newton_step import newton_step_functions
from pluriverse.solvers.sap.next_problem import next_problem_functions
from pluriverse.solvers.sap.objective import objective_functions
from pluriverse.solvers.sap.options import SapOptions, newton_options, newton_options_struct
from pluriverse.solvers.sap.progress import (
    CHECKING,
    COULOMB_ITERATIONS_MAX,
    ITERATING,
    SOLVES_MAX,
    SOLVING,
    START_OLD,
    START_SOLUTION,
    progress_struct,
)
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions


@made_once
def _kernels(
    real: Any, linear: Any, dynamics_real: Any, equality: bool, moments: bool = False
) -> SimpleNamespace:
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    Options, Progress = newton_options_struct(real), progress_struct(real)
    objective = objective_functions(real, linear, dynamics_real, equality, moments)
    begin_momenta, evaluate_terms = objective.begin_momenta, objective.evaluate_terms
    motion = world_motion_functions(real, linear, dynamics_real, equality, moments)
    measure_velocity = motion.measure_velocity
    check = newton_check_functions(real, linear, dynamics_real, equality, moments)
    check_joints, check_gradient = check.check_joints, check.check_gradient
    find_step = newton_step_functions(real, linear, dynamics_real, equality, moments).find_step
    problem = next_problem_functions(real, linear, dynamics_real, equality, moments)
    pose_next, begin_again = problem.pose_next, problem.begin_again
    groups = group_functions(real, linear, dynamics_real)
    next_group, take_start = groups.next_group, groups.take_start
    has_linear_laws = constraint_row_functions(real, linear, dynamics_real).has_linear_laws
    release_bounds = friction_bound_functions(real, linear).release_bounds
    end_dilation = dilation_functions(real, linear).end_dilation
    advance_contacts = contact_objective_functions(real, linear, moments).advance_contacts
    advance_equalities = equality_functions(real, linear).advance_equalities
    advance_springs = spring_functions(real, linear).advance_springs
    convert_numbers = packed_rows(dynamics_real, real).rows_copy
    convert_back = packed_rows(real, dynamics_real).rows_copy
    copy_numbers, numbers_clear = packed_rows(real).rows_copy, packed_rows(real).numbers_clear
    numbers_add = number_functions(real).numbers_add
    # Whole steps from the space of contacts, and sweeps over heaps, want one precision and no moments.
    is_uniform = linear is real and not moments
    names = (real, linear, dynamics_real)
    stage = "pluriverse.solvers.sap.newton" + ("_equality" if equality else "")
    stage += "_moments" if moments else ""

    @wp.func(inline=True)
    def begin_velocities(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        start: int,
        at: wp.ref[Progress],
    ) -> int:
        """Write the velocities at which the world starts; return how many trees take part.

        Trees without any term move freely, and roots that are prescribed keep the velocity given to them; the
        others start from the velocity of the last step.
        """
        active = int(0)
        for tree in range(at.tree_count):
            takes_part = sap.tree_active[at.tree0 + tree]
            active += takes_part
            if dynamics.tree_prescribed[at.tree0 + tree] != 0:
                takes_part = 0
            begin = topology.tree_dof[at.first_tree + tree]
            size = topology.tree_dof_end[at.first_tree + tree] - begin
            begin += at.dof0
            if takes_part == 0:
                convert_numbers(dynamics.dof_velocity_free, begin, size, sap.velocity_start, begin)
            elif start == START_OLD:
                convert_numbers(dynamics.dof_velocity, begin, size, sap.velocity_start, begin)
            elif start == START_SOLUTION:
                copy_numbers(sap.velocity, begin, size, sap.velocity_start, begin)
            else:
                convert_numbers(dynamics.dof_velocity_next, begin, size, sap.velocity_start, begin)
        convert_numbers(dynamics.dof_velocity_free, at.dof0, at.dof_count, sap.velocity_free, at.dof0)
        copy_numbers(sap.velocity_start, at.dof0, at.dof_count, sap.velocity, at.dof0)
        numbers_clear(sap.impulse, at.dof0, at.dof_count)
        return active

    @wp.func(inline=True)
    def choose_method(
        options: wp.ref[Options], sap: wp.ref[SapData], world: int, active: int, at: wp.ref[Progress]
    ):
        """Decide how the world is solved first.

        What a world may do must not depend on the worlds beside it, for which the kernel has constraints.
        """
        at.phase = ITERATING
        at.running = int(active > 0)
        at.by_optimality = int(active == 0)
        at.coulomb = options.friction_follows
        at.coulomb_end = COULOMB_ITERATIONS_MAX
        at.few_contacts = 1
        at.is_plain = 1
        at.dilation_round = DILATION_ROUNDS_MAX  # none
        at.turning_iteration = -1
        at.starts = 1
        at.alpha = real(1.0)
        if wp.static(equality):
            at.few_contacts = int(has_linear_laws(sap, world))
            if (
                sap.equality_start[world] != sap.equality_end[world]
                or sap.spring_start[world] != sap.spring_start[world + 1]
            ):
                at.is_plain = 0
        if wp.static(is_uniform):
            if at.few_contacts != 0 and options.iterations_max > SOLVES_MAX:
                at.phase = SOLVING

    @wp.func(inline=True)
    def move_on(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ):
        """Make the step that was found, and evaluate the terms where it ends."""
        if at.step != real(0.0):
            numbers_add(sap.direction, at.dof0, at.dof_count, at.step, sap.velocity)
            advance_contacts(sap, world, at.step)
            if wp.static(equality):
                advance_equalities(sap, world, at.step)
                advance_springs(sap, world, at.step)
            at.step = real(0.0)
        if at.starts != 0:
            at.starts = 0
            if at.solves > 0:
                # Where joints stick and slip in turns, Newton's method goes by the cost, from the start.
                at.phase = ITERATING
                at.few_contacts = 1
                release_bounds(sap, world)
                take_start(topology, sap, world)
            measure_velocity(topology, dynamics, sap, world)
        if at.phase == ITERATING and at.has_momenta == 0:
            at.has_momenta = 1
            begin_momenta(topology, dynamics, sap, world)
        at.term_cost = evaluate_terms(topology, sap, world, options.dt, int(at.phase != SOLVING))

    @wp.func(inline=True)
    def iterate(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        start: int,
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ):
        """Check one point, and find the step to the next."""
        at.is_posed = 0
        at.is_stopped = 0
        move_on(topology, options, dynamics, sap, world, at)
        goes_on = int(1)
        if at.phase == CHECKING:
            goes_on = check_joints(topology, options, sap, world, at)
        elif at.phase == ITERATING:
            goes_on = check_gradient(topology, options, dynamics, sap, world, at)
        if goes_on == 0:
            return
        if at.running == 0:
            pose_next(options, sap, world, at)
        if at.is_stopped != 0:
            at.running = 0
        if wp.static(is_uniform):
            if begin_again(topology, dynamics, sap, world, at) != 0:
                if at.starts != 0:
                    choose_method(options, sap, world, 1, at)
                return
        if at.running != 0 and at.is_posed == 0:
            find_step(topology, options, start, dynamics, sap, world, at)

    @wp.func(inline=True)
    def write_result(
        options: wp.ref[Options],
        start: int,
        active: int,
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ):
        if active > 0 and options.friction_follows != 0:
            end_dilation(sap, world)
        convert_back(sap.velocity, at.dof0, at.dof_count, dynamics.dof_velocity_next, at.dof0)
        iterations, trials = at.iterations + at.solves, int(at.trials)
        if start != START_OLD:
            iterations += sap.iterations[world]
            trials += sap.line_search_iterations[world]
        sap.cost[world] = at.cost
        sap.iterations[world] = iterations
        sap.line_search_iterations[world] = trials
        sap.optimality_reached[world] = at.by_optimality
        sap.cost_reached[world] = at.by_cost
        sap.converged[world] = wp.max(at.by_optimality, at.by_cost)
        sap.failure[world] = at.failure

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
        first_dof, first_tree = topology.template_dof[template], topology.template_tree[template]
        at = Progress()
        at.dof0 = topology.world_dof[world]
        at.dof_count = topology.template_dof[template + 1] - first_dof
        at.tree0 = topology.world_tree[world]
        at.first_tree = first_tree
        at.tree_count = topology.template_tree[template + 1] - first_tree
        at.begins_old = int(start == START_OLD)
        at.fits_space = int(at.dof_count <= space_dof_count)
        at.region = region
        at.space_dof_count = space_dof_count
        at.space_contact_count = space_contact_count
        at.space_work_count = space_work_count
        at.coupled_work_count = coupled_work_count
        active = begin_velocities(topology, dynamics, sap, start, at)
        choose_method(options, sap, world, active, at)
        while at.running != 0:
            iterate(topology, options, start, dynamics, sap, world, at)
            if wp.static(is_uniform):
                if at.running == 0 and at.group_count > 0:
                    next_group(topology, sap, world, at)
        write_result(options, start, active, dynamics, sap, world, at)

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
