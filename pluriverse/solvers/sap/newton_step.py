"""Steps of Newton's method: a direction, from the space of contacts or over all joints, and how far to go.

Reads   the point, its gradient, and what joints and contacts are linearized to
Writes  direction and contact slopes, factors, and what the next step is to be (`progress.py`)
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import vec3_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.active_trees import active_dofs_function
from pluriverse.solvers.sap.contact_space import contact_space_functions
from pluriverse.solvers.sap.hessian import hessian_functions
from pluriverse.solvers.sap.line_search import line_search_functions, line_struct
from pluriverse.solvers.sap.next_problem import next_problem_functions
from pluriverse.solvers.sap.objective import objective_functions
from pluriverse.solvers.sap.options import newton_options_struct
from pluriverse.solvers.sap.progress import CHECKING, ITERATING, SOLVING, progress_struct
from pluriverse.solvers.sap.tree_contacts import tree_contact_functions
from pluriverse.solvers.sap.workspace import sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions

# The Hessian was not positive definite to rounding, or held NaN.
FACTORIZATION_FAILED = wp.constant(-6)


@made_once
def newton_step_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool, moments: bool
) -> SimpleNamespace:
    """Return `find_step` for the given precisions."""
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    Options, Line, Progress = newton_options_struct(real), line_struct(real), progress_struct(real)
    objective = objective_functions(real, linear, dynamics_real, equality, moments)
    multiply_by_mass = objective.multiply_by_mass
    motion = world_motion_functions(real, linear, dynamics_real, equality, moments)
    measure_velocity, measure_direction = motion.measure_velocity, motion.measure_direction
    hessian = hessian_functions(real, linear, dynamics_real, equality, moments)
    find_coupling, assemble = hessian.find_coupling, hessian.assemble
    factorize_and_solve = hessian.factorize_and_solve
    list_tree_contacts = tree_contact_functions(real, linear, dynamics_real).list_tree_contacts
    find_direction = contact_space_functions(real, linear, dynamics_real, equality).find_direction
    search_line = line_search_functions(real, linear, equality, moments).search_line
    begin_convex = next_problem_functions(real, linear, dynamics_real, equality, moments).begin_convex
    numbers = number_functions(real)
    numbers_add, numbers_linear = numbers.numbers_add, numbers.numbers_linear
    direction_products = numbers.direction_products
    active_dofs = active_dofs_function(real, linear)
    numbers_clear = packed_rows(real).numbers_clear
    vec3 = vec3_type(real)
    holds_states = linear is real and not moments

    @wp.func(inline=True)
    def find_in_space(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ) -> int:
        """Find a direction in the space of contacts; return whether it is exact there."""
        at.has_factors = 0
        at.keeps_factors = 0
        found = find_direction(
            topology,
            dynamics,
            sap,
            world,
            at.region,
            at.space_dof_count,
            at.space_contact_count,
            at.space_work_count,
            options.diag_shift,
            options.optimality_rel_tol,
            at.coulomb,
            int(at.iterations + at.solves == 0),
            int(at.phase == SOLVING and at.solves > 0),
            int(at.phase == SOLVING and at.solves == 0),
            options.dt,
        )
        at.settled = wp.max(at.settled, int(found == 2))
        at.few_contacts = int(found != 0)
        return found

    @wp.func(inline=True)
    def assemble_world(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ):
        """Write the Hessian, with listed contacts beside it where they couple few trees."""
        at.coupled_count = 0
        at.tree_contact_count = 0
        if wp.static(not moments):
            if at.is_plain != 0 and at.fits_space != 0:
                at.tree_contact_count = list_tree_contacts(
                    topology, sap, world, at.region * at.space_contact_count, at.space_contact_count
                )
        if at.tree_contact_count == 0:
            at.coupled_count = find_coupling(topology, sap, world)
        assemble(
            topology,
            dynamics,
            sap,
            world,
            at.coupled_count,
            at.tree_contact_count,
            at.region,
            options.diag_shift,
        )

    @wp.func(inline=True)
    def find_over_joints(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ) -> int:
        """Find Newton's direction over all joints; return 0 if the Hessian is not positive definite."""
        if at.keeps_factors == 0:
            assemble_world(topology, options, dynamics, sap, world, at)
        numbers_clear(sap.direction, at.dof0, at.dof_count)
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            numbers_add(sap.gradient, begin, size, real(-1.0), sap.direction)
        ok = factorize_and_solve(
            topology,
            dynamics,
            sap,
            world,
            at.coupled_count,
            at.tree_contact_count,
            at.region,
            at.space_dof_count,
            at.space_contact_count,
            at.space_work_count,
            at.coupled_work_count,
            at.keeps_factors,
        )
        at.has_factors = ok
        measure_direction(topology, dynamics, sap, world)
        return ok

    @wp.func(inline=True)
    def add_momenta(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, share: real, at: wp.ref[Progress]
    ):
        """Add the momenta of a share of the direction to A (v - v*)."""
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            numbers_add(sap.direction_momentum, begin, size, share, sap.residual)

    @wp.func(inline=True)
    def direction_slopes(
        topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, at: wp.ref[Progress]
    ) -> vec3:
        """Return the products of gradient, A (v - v*) and A dv with the direction dv."""
        sums = vec3()
        for tree in range(sap.part_tree[world], sap.part_tree_end[world]):
            begin, size = active_dofs(topology, sap, world, tree)
            sums = direction_products(
                sap.gradient, sap.residual, sap.direction_momentum, sap.direction, sums, begin, size
            )
        return sums

    @wp.func(inline=True)
    def step_held(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ):
        """Make the whole step with held states of contacts: a line search has no cost to compare with."""
        at.holds = 0
        at.iterations += 1
        at.alpha = real(0.0)
        numbers_add(sap.direction, at.dof0, at.dof_count, real(1.0), sap.velocity)
        add_momenta(topology, sap, world, real(1.0), at)
        measure_velocity(topology, dynamics, sap, world)

    @wp.func(inline=True)
    def find_length(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        sap: wp.ref[SapData],
        world: int,
        is_exact: int,
        ok: int,
        at: wp.ref[Progress],
    ):
        """Find how far to go along the direction, all of it where factors are kept."""
        at.alpha = real(1.0)
        fault = real(0.0)
        if at.keeps_factors == 0:
            line = Line()
            line.cost = at.cost
            products = direction_slopes(topology, sap, world, at)
            line.slope = products[0]
            line.energy = at.energy
            line.energy_slope = products[1]
            line.energy_curvature = products[2]
            found = search_line(topology, sap, world, options, line, is_exact, at.coulomb)
            at.alpha = found[0]
            at.trials += int(found[1])
            fault = found[2]
        if fault == real(0.0):
            add_momenta(topology, sap, world, at.alpha, at)
            at.step = at.alpha
            at.iterations += 1
        elif is_exact != 0:
            at.few_contacts = 0  # rounding, which another direction may not have
            at.stagnates = 1
        else:
            # No step was found, and the next iteration would fail in the same way.
            at.failure = int(fault)
            if ok == 0:
                at.failure = FACTORIZATION_FAILED
            at.running = 0

    @wp.func(inline=stages_inline())
    def find_step(
        topology: wp.ref[Topology],
        options: wp.ref[Options],
        start: int,
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ):
        """Find the next step, or what the world is to do in its place."""
        is_exact = int(0)
        if wp.static(not moments):
            if at.few_contacts != 0:
                is_exact = find_in_space(topology, options, dynamics, sap, world, at)
        if at.phase == SOLVING and is_exact == 0 and at.solves > 0:
            at.starts = 1
            return
        if at.coulomb != 0 and (at.few_contacts == 0 or at.iterations >= at.coulomb_end):
            # Of several trees, groups of those that touch are told apart first: what rests is to stay there.
            if at.tree_count == 1 and at.iterations + at.solves == 0:
                at.closes = int(at.begins_old != 0 and at.fits_space != 0)
            begin_convex(sap, world, wp.where(at.iterations > 0, 1, start), at)
            return  # the gradient is another one now
        if at.phase == SOLVING:
            at.phase = ITERATING
            if is_exact != 0:
                numbers_linear(
                    sap.dof_impulse,
                    sap.dof_curvature,
                    real(0.0),
                    sap.direction,
                    at.dof0,
                    at.dof_count,
                    sap.impulse,
                )
                at.phase = CHECKING
                at.step = real(1.0)
                at.solves += 1
            return
        ok = int(1)
        if is_exact == 0:
            ok = find_over_joints(topology, options, dynamics, sap, world, at)
        multiply_by_mass(topology, dynamics, sap, world, sap.direction, sap.direction_momentum)
        if wp.static(holds_states):
            if at.holds != 0:
                step_held(topology, dynamics, sap, world, at)
                return
        find_length(topology, options, sap, world, is_exact, ok, at)

    return SimpleNamespace(find_step=find_step)
