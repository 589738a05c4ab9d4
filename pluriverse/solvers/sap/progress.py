"""How far Newton's method has got with one world: what its stages tell each other.

A world is solved in phases, each by several stages that are called in turns:

- `SOLVING`: find a direction in the space of contacts that leads to the minimum, if joints stay in the
  pieces of their costs (`newton_step.py`).
- `CHECKING`: look at the joints at its end (`newton_check.py`), and solve again where they left their pieces.
- `ITERATING`: Newton's method with a line search.

Where a problem is solved, the bounds of recovery or the dilation of sliding contacts may pose another one
(`next_problem.py`).
"""

from typing import Any

import warp as wp

from pluriverse.launch import made_once

SOLVING, CHECKING, ITERATING = wp.constant(0), wp.constant(1), wp.constant(2)

# Where the iteration starts: from the velocities of the last step, from the solution that `SapWorkspace`
# holds of this step, or from the same as it was written to the dynamics.
START_OLD, START_SOLUTION, START_WRITTEN = wp.constant(0), wp.constant(1), wp.constant(2)

# Iterations with Coulomb's law in the space of contacts, for each problem that bounds of recovery make. Where
# drives reach their limits in turns, as of legs that are pushed, they may go in circles.
COULOMB_ITERATIONS_MAX = wp.constant(6)
# Whole steps along directions from the space of contacts before the first line search, of each problem that
# bounds of recovery make.
SOLVES_MAX = wp.constant(3)


@made_once
def progress_struct(real: Any) -> Any:
    """Return the `wp.struct` of the progress of a world, precision `real`. Flags are 0 or 1."""

    @wp.struct
    class Progress:
        phase: int
        running: int  # 0: the world is done
        # Entries of the part that is solved.
        dof0: int
        dof_count: int
        tree0: int
        first_tree: int  # of its template
        tree_count: int

        # Scratch: the world whose places it takes, and how large they are.
        region: int
        space_dof_count: int
        space_contact_count: int
        space_work_count: int
        coupled_work_count: int

        fits_space: int  # the world has few enough joints for the space of contacts

        # The group whose turn it is (`groups.py`), and the world when groups were found.
        group: int
        group_count: int  # 0: the world is solved at once
        first_slot: int
        slot_count: int
        group_constrained: int  # that on which constraints act, or -1
        group_iteration: int
        group_solves: int
        group_recovery: int
        group_dilation: int
        is_fresh: int  # the part has begun again, from the start of the step, or has had its chance to
        # Of the groups that had their turns.
        groups_optimal: int
        groups_converged: int
        iterations_most: int
        group_cost: real  # [J]

        # The problem.
        is_plain: int  # the world has neither constraints nor springs
        coulomb: int  # Coulomb's law in the space of contacts; else friction is convex, but for its dilation
        coulomb_end: int  # iteration from which friction is convex
        few_contacts: int  # 0: the space of contacts is of no use to this world
        recovery_round: int
        dilation_round: int
        turning_iteration: int  # from which groups take turns and heaps begin again from sweeps, or -1
        is_posed: int  # another problem was posed: its gradient is to be evaluated
        is_uneven: int  # the world is as good as solved, but some of its groups are not

        # The point.
        begins_old: int  # the iteration began at the velocities of the last step
        starts: int  # velocities of terms are to be measured
        closes: int  # it may begin closer to free motion
        has_momenta: int  # `residual` holds A (v - v*)
        cost: real  # [J]
        cost_before: real  # of the last point [J]
        energy: real  # the part of masses [J]
        term_cost: real  # the part of contacts and joints [J]
        norm: real  # of the gradient
        scale: real  # of momenta or impulses, the larger

        # The step.
        step: real  # share of the direction that is still to be made
        alpha: real  # share that was made last; 0: the cost before is that of another problem
        iterations: int
        trials: int  # of line searches
        solves: int  # whole steps in the phase `SOLVING`
        first_solve: int  # what `solves` was when the present problem was posed
        settled: int  # joints were settled while a direction was found
        holds: int  # the step holds the states of contacts (`held_states.py`)
        has_factors: int  # those of the last step can be taken again
        keeps_factors: int  # the next step takes them, whole
        coupled_count: int  # blocks of the Hessian that couple trees
        tree_contact_count: int  # contacts of the Hessian of a few coupled trees

        # The end.
        stagnates: int  # the last direction led nowhere but for rounding
        is_stopped: int  # iterations ran out, or numbers are not finite
        by_optimality: int
        by_cost: int
        failure: int  # of a line search, or FACTORIZATION_FAILED

    return Progress
