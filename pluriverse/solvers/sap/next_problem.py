"""The next problem of a world: what is solved anew, from where it is, once a problem is solved.

Reads   the solution, impulses and velocities of contacts
Writes  contact_bias, contact_dilation and bounds of work, and what the next step is to be (`progress.py`)

- Contacts that do more work than they may are asked for less (`recovery.py`).
- With convex friction, sliding contacts are asked for less by as much as it parts them (`dilation.py`).
- A heap that is far from its solution goes on group by group (`groups.py`), each of which begins again, from
  sweeps over its impulses (`impulse_sweeps.py`), if it is far from its own.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.model import Topology
from pluriverse.solvers.sap.dilation import DILATION_ITERATIONS_MAX, dilation_functions
from pluriverse.solvers.sap.friction_bound import friction_bound_functions
from pluriverse.solvers.sap.groups import group_functions
from pluriverse.solvers.sap.held_states import held_state_functions
from pluriverse.solvers.sap.impulse_sweeps import SWEEP_SHARE, impulse_sweep_functions
from pluriverse.solvers.sap.options import newton_options_struct
from pluriverse.solvers.sap.progress import (
    COULOMB_ITERATIONS_MAX,
    ITERATING,
    SOLVES_MAX,
    SOLVING,
    progress_struct,
)
from pluriverse.solvers.sap.recovery import recovery_functions
from pluriverse.solvers.sap.workspace import sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions

# Iterations of Newton's method before groups take turns and heaps begin again from sweeps: bodies at rest
# take one, and settling piles two or three. Where the gradient is more than this share of the momenta at
# first, something strikes, slides or rolls: groups take turns at once, and those at rest are done. So they do
# where all but some light ones are solved.
TURNING_ITERATION = wp.constant(2)
FAR_SHARE = 0.2


@made_once
def next_problem_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool, moments: bool
) -> SimpleNamespace:
    """Return `pose_next`, `begin_convex` and `begin_again` for the given precisions."""
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    Options, Progress = newton_options_struct(real), progress_struct(real)
    limit_recovery = recovery_functions(real, linear).limit_recovery
    release_bounds = friction_bound_functions(real, linear).release_bounds
    dilation = dilation_functions(real, linear)
    begin_dilation, correct_dilation = dilation.begin_dilation, dilation.correct_dilation
    end_dilation = dilation.end_dilation
    shift_velocities = held_state_functions(real, linear).shift_velocities
    groups = group_functions(real, linear, dynamics_real)
    begin_groups, begin_afresh = groups.begin_groups, groups.begin_afresh
    take_start = groups.take_start
    sweep_impulses = impulse_sweep_functions(real, linear, dynamics_real).sweep_impulses
    motion = world_motion_functions(real, linear, dynamics_real, equality, moments)
    measure_velocity = motion.measure_velocity
    holds_states = linear is real and not moments

    @wp.func(inline=True)
    def pose(at: wp.ref[Progress]):
        """Go on with another problem, whose cost is not to be compared with that of the last one."""
        at.is_posed = 1
        at.alpha = real(0.0)
        at.by_optimality = 0
        at.by_cost = 0
        at.running = 1

    @wp.func(inline=True)
    def pose_next(options: wp.ref[Options], sap: wp.ref[SapData], world: int, at: wp.ref[Progress]):
        """Pose another problem where the last one is solved, but not yet the step."""
        if limit_recovery(sap, world, at.recovery_round) != 0:
            pose(at)
            at.recovery_round += 1
            at.coulomb_end = at.iterations + COULOMB_ITERATIONS_MAX
            is_direct = at.coulomb != 0 and at.solves > 0 and at.iterations == 0
            if is_direct and at.solves + SOLVES_MAX < options.iterations_max:
                at.phase = SOLVING
                at.first_solve = at.solves
                at.has_momenta = 0
        elif at.iterations < DILATION_ITERATIONS_MAX:
            if correct_dilation(sap, world, at.dilation_round) != 0:
                pose(at)
                at.dilation_round += 1
                if wp.static(holds_states):
                    if at.few_contacts == 0 and at.is_plain != 0:
                        at.holds = 1
                        shift_velocities(sap, world)

    @wp.func(inline=True)
    def begin_convex(sap: wp.ref[SapData], world: int, is_solution: int, at: wp.ref[Progress]):
        """Make friction convex, but for what `dilation` takes out of it."""
        at.coulomb = 0
        release_bounds(sap, world)
        begin_dilation(sap, world, is_solution)
        at.turning_iteration = at.iterations + TURNING_ITERATION
        at.dilation_round = 0
        at.alpha = real(0.0)
        at.phase = ITERATING

    @wp.func(inline=True)
    def begin_again(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        at: wp.ref[Progress],
    ) -> int:
        """Go on group by group, or from sweeps over the impulses of a heap; return whether it did."""
        if at.turning_iteration < 0 or at.running == 0 or at.is_posed != 0:
            return 0
        is_due = int(at.iterations >= at.turning_iteration)
        is_far = int(at.iterations == 0 and at.norm > real(FAR_SHARE) * at.scale)
        if is_due == 0 and is_far == 0 and at.is_uneven == 0:
            return 0
        at.is_uneven = 0
        if at.group_count == 0:
            if begin_groups(topology, dynamics, sap, world, at) != 0:
                return 1
        elif at.is_fresh == 0:
            if begin_afresh(topology, sap, world, at) != 0:
                end_dilation(sap, world)
                return 1
        if at.iterations == 0 and at.is_fresh == 0:
            at.is_fresh = 1
            # A single tree has had its chance (`newton_step.py`).
            if at.begins_old != 0 and at.dof_count <= at.space_dof_count and at.tree_count > 1:
                at.closes = 1
                if at.group_count > 0:
                    at.turning_iteration = TURNING_ITERATION
                    at.solves = 0
                return 1
        if is_due == 0:
            return 0
        at.turning_iteration = -1
        if at.is_plain == 0 or at.norm <= real(SWEEP_SHARE) * at.scale:
            return 0  # a pile at rest is as good as solved
        swept = sweep_impulses(topology, dynamics, sap, world)
        if swept == 0:
            return 0
        if swept < 0:
            take_start(topology, sap, world)
        measure_velocity(topology, dynamics, sap, world)
        end_dilation(sap, world)
        begin_dilation(sap, world, 1)
        at.dilation_round = 0
        at.has_momenta = 0
        at.alpha = real(0.0)
        return 1

    return SimpleNamespace(pose_next=pose_next, begin_convex=begin_convex, begin_again=begin_again)
