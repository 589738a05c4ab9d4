"""Rows: which problem each row of the arrays computes, and what is to be computed, for kernels."""

import warp as wp


@wp.struct
class Rows:
    """Which problem each row computes, and what is to be computed, for kernels."""

    row_problem: wp.array[int]  # [row]
    problem_world: wp.array[int]  # [problem] first world that it moves
    world_count: int  # worlds that each problem moves
    place_due: wp.array[int]  # [row] 1: bodies and residuals are to be computed
    jacobian_due: wp.array[int]  # [row] 1: the Jacobian is to be computed


def make_rows(problem_world: wp.array, world_count: int, row_problem: wp.array) -> Rows:
    """Return rows that compute the problems given, all of them due.

    Args:
        problem_world: First world that each problem moves, shape [problem].
        world_count: Number of worlds that each problem moves.
        row_problem: Problem of each row, shape [row].
    """
    rows = Rows()
    rows.row_problem = row_problem
    rows.problem_world = problem_world
    rows.world_count = world_count
    rows.place_due = wp.full(row_problem.size, 1, dtype=wp.int32, device=row_problem.device)
    rows.jacobian_due = wp.full(row_problem.size, 1, dtype=wp.int32, device=row_problem.device)
    return rows
