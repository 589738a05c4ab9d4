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


@wp.func
def sum_squares(row: int, residuals: wp.array2d[float]) -> wp.float64:
    """Return the cost of a row: the sum of its squared residuals."""
    total = wp.float64(0.0)
    for residual in range(residuals.shape[1]):
        total += wp.float64(residuals[row, residual]) * wp.float64(residuals[row, residual])
    return total


@wp.func
def goes_on(rows: Rows, row: int, settled: wp.array[int], solved: wp.array[int]) -> bool:
    """Return whether a row takes another iteration; settle it where its problem has been solved."""
    if settled[row] != 0:
        return False
    if solved[rows.row_problem[row]] != 0:
        settled[row] = 1
        rows.place_due[row] = 0
        rows.jacobian_due[row] = 0
        return False
    return True


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
