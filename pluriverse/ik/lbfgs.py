"""L-BFGS: gradients only, with the curvature that the last steps have shown.

Reads   joint_q; residuals r and Jacobian J of `Evaluation`
Writes  joint_q, cost, history

The cost is the sum of squares, its gradient 2 J^T r. The direction comes from the two-loop recursion over the
last pairs s of steps and y of changes of the gradient ([Nocedal2006] algorithm 7.4, with the scale (7.20)).
Of the lengths that a user lists, the greatest is taken that fulfils the strong Wolfe conditions ((3.7)); if
none does, the one of least cost among those that fulfil the first. Pairs of little curvature are not kept,
so that every direction leads down. Where no length leads down, the history is dropped, then the steps are
shortened; where the greatest is still too short by the second condition, as at a saddle, the next ones are
stretched.

Steps and gradients of quaternions are rotation vectors at different orientations; they are taken as if these
were the same, which costs iterations and no accuracy.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.ik.choices import IKJacobianType
from pluriverse.ik.evaluation import Evaluation
from pluriverse.ik.levenberg_marquardt import DECREASE_MIN
from pluriverse.ik.objective import IKObjective
from pluriverse.ik.optimizer import RowOptimizer, evaluation_of_batch
from pluriverse.ik.problems import read_number, read_whole_number
from pluriverse.ik.retraction import move_rows
from pluriverse.ik.rows import Rows, goes_on, sum_squares
from pluriverse.launch import launch_kernel, made_once

_MODULE = "pluriverse.ik.lbfgs"
LINE_SEARCH_ALPHAS = (1.0, 0.5, 0.2, 0.05, 0.01)
"""Lengths that are tried if none are given: from the whole step, by factors of 2 to 5."""
# Least cosine of the angle between s and y: under it their product is made of rounding.
COSINE_MIN = wp.constant(wp.float64(1e-6))
# Factors by which steps are stretched and shortened, and the shortest before a row settles.
STRETCHING = wp.constant(wp.float64(4.0))
SHORTENING = wp.constant(wp.float64(0.1))
SHORTEST = wp.constant(wp.float64(1e-9))


@made_once
def _kernels() -> SimpleNamespace:
    real = wp.float64
    zero, one, two = wp.constant(real(0.0)), wp.constant(real(1.0)), wp.constant(real(2.0))

    @wp.func
    def fill_gradient(
        row: int,
        first_dof: int,
        movable: wp.array[int],
        residuals: wp.array2d[float],
        jacobian: wp.array3d[float],
        gradient: wp.array2d[wp.float64],
    ):
        """Write 2 J^T r of a row, 0 for dofs that are held."""
        for dof in range(jacobian.shape[2]):
            total = zero
            if movable[first_dof + dof] != 0:
                for residual in range(residuals.shape[1]):
                    total += real(jacobian[row, residual, dof]) * real(residuals[row, residual])
            gradient[row, dof] = two * total

    @wp.kernel(enable_backward=False, module=_MODULE)
    def take_gradient(
        rows: Rows,
        movable: wp.array[int],  # [dof + dof of a row] 0: held
        world_dof: wp.array[int],  # [world] first flat dof
        residuals: wp.array2d[float],  # [row, residual]
        jacobian: wp.array3d[float],  # [row, residual, dof]
        gradient: wp.array2d[wp.float64],  # [row, dof] out
    ):
        row, _ = wp.tid()
        if rows.jacobian_due[row] == 0:
            return
        first_dof = world_dof[rows.problem_world[rows.row_problem[row]]]
        fill_gradient(row, first_dof, movable, residuals, jacobian, gradient)

    @wp.kernel(enable_backward=False, module=_MODULE)
    def choose_direction(
        rows: Rows,
        scale: wp.float64,  # inverse curvature at the beginning
        stretch: wp.array[wp.float64],  # [row]
        cost: wp.array[wp.float64],  # [row]
        gradient: wp.array2d[wp.float64],  # [row, dof]
        history_s: wp.array3d[wp.float64],  # [row, pair, dof]
        history_y: wp.array3d[wp.float64],  # [row, pair, dof]
        history_product: wp.array2d[wp.float64],  # [row, pair] s.y
        history_count: wp.array[int],  # [row] pairs pushed; the last ones are kept
        weight: wp.array2d[wp.float64],  # [row, pair] scratch
        step: wp.array2d[wp.float64],  # [row, dof] out: direction
        slope: wp.array[wp.float64],  # [row] out: of the cost along the direction
        rank: wp.array[int],  # [row] out
        settled: wp.array[int],  # [row] in and out
        solved: wp.array[int],  # [problem]
    ):
        row, _ = wp.tid()
        if not goes_on(rows, row, settled, solved):
            return
        dof_count = gradient.shape[1]
        length = history_s.shape[1]
        kept = wp.min(history_count[row], length)
        for dof in range(dof_count):
            step[row, dof] = -gradient[row, dof]
        factor = scale
        for back in range(kept):
            pair = (history_count[row] - 1 - back) % length
            total = zero
            for dof in range(dof_count):
                total += history_s[row, pair, dof] * step[row, dof]
            total = total / history_product[row, pair]
            weight[row, pair] = total
            for dof in range(dof_count):
                step[row, dof] = step[row, dof] - total * history_y[row, pair, dof]
        if kept > 0:
            last = (history_count[row] - 1) % length
            square = zero
            for dof in range(dof_count):
                square += history_y[row, last, dof] * history_y[row, last, dof]
            factor = history_product[row, last] / square
        for dof in range(dof_count):
            step[row, dof] = factor * stretch[row] * step[row, dof]
        for forth in range(kept):
            pair = (history_count[row] - kept + forth) % length
            total = zero
            for dof in range(dof_count):
                total += history_y[row, pair, dof] * step[row, dof]
            total = stretch[row] * weight[row, pair] - total / history_product[row, pair]
            for dof in range(dof_count):
                step[row, dof] = step[row, dof] + total * history_s[row, pair, dof]
        along = zero
        square = zero
        for dof in range(dof_count):
            along += gradient[row, dof] * step[row, dof]
            square += gradient[row, dof] * gradient[row, dof]
        if not along < zero:
            history_count[row] = 0
            along = -scale * stretch[row] * square
            for dof in range(dof_count):
                step[row, dof] = -scale * stretch[row] * gradient[row, dof]
        slope[row] = along
        rank[row] = 0
        going = int(1)
        if square == zero or (kept > 0 and -along <= DECREASE_MIN * cost[row]):
            going = 0
        settled[row] = 1 - going
        rows.place_due[row] = going
        rows.jacobian_due[row] = going

    @wp.kernel(enable_backward=False, module=_MODULE)
    def weigh_row(
        rows: Rows,
        movable: wp.array[int],  # [dof + dof of a row] 0: held
        world_dof: wp.array[int],  # [world] first flat dof
        alpha: wp.float64,
        decrease_share: wp.float64,
        slope_share: wp.float64,
        residuals: wp.array2d[float],  # [row, residual]
        jacobian: wp.array3d[float],  # [row, residual, dof]
        step: wp.array2d[wp.float64],  # [row, dof]
        slope: wp.array[wp.float64],  # [row]
        cost: wp.array[wp.float64],  # [row]
        trial: wp.array2d[float],  # [row, coord]
        trial_gradient: wp.array2d[wp.float64],  # [row, dof] scratch
        rank: wp.array[int],  # [row] in and out: 0 nothing yet, 1 leads down, 2 fulfils both conditions
        best_alpha: wp.array[wp.float64],  # [row] out
        best_cost: wp.array[wp.float64],  # [row] in and out
        best_q: wp.array2d[float],  # [row, coord] out
        best_gradient: wp.array2d[wp.float64],  # [row, dof] out
    ):
        row, _ = wp.tid()
        if rows.place_due[row] == 0:
            return
        total = sum_squares(row, residuals)
        if not total <= cost[row] + decrease_share * alpha * slope[row]:
            return
        first_dof = world_dof[rows.problem_world[rows.row_problem[row]]]
        fill_gradient(row, first_dof, movable, residuals, jacobian, trial_gradient)
        along = zero
        for dof in range(step.shape[1]):
            along += trial_gradient[row, dof] * step[row, dof]
        reached = int(1)
        if wp.abs(along) <= -slope_share * slope[row]:
            reached = 2
            rows.place_due[row] = 0
            rows.jacobian_due[row] = 0
        if reached > rank[row] or (reached == rank[row] and total < best_cost[row]):
            rank[row] = reached
            best_alpha[row] = alpha
            best_cost[row] = total
            for coord in range(trial.shape[1]):
                best_q[row, coord] = trial[row, coord]
            for dof in range(step.shape[1]):
                best_gradient[row, dof] = trial_gradient[row, dof]

    @wp.kernel(enable_backward=False, module=_MODULE)
    def take_step(
        rows: Rows,
        resolution: wp.float64,
        alpha_most: wp.float64,
        rank: wp.array[int],  # [row]
        best_alpha: wp.array[wp.float64],  # [row]
        best_cost: wp.array[wp.float64],  # [row]
        best_q: wp.array2d[float],  # [row, coord]
        best_gradient: wp.array2d[wp.float64],  # [row, dof]
        step: wp.array2d[wp.float64],  # [row, dof]
        history_s: wp.array3d[wp.float64],  # [row, pair, dof] in and out
        history_y: wp.array3d[wp.float64],  # [row, pair, dof] in and out
        history_product: wp.array2d[wp.float64],  # [row, pair] in and out
        history_count: wp.array[int],  # [row] in and out
        stretch: wp.array[wp.float64],  # [row] in and out
        gradient: wp.array2d[wp.float64],  # [row, dof] in and out
        joint_q: wp.array2d[float],  # [row, coord] in and out
        cost: wp.array[wp.float64],  # [row] in and out
        settled: wp.array[int],  # [row] in and out
        iteration_count: wp.array[int],  # [row] in and out
        solved: wp.array[int],  # [problem] out
    ):
        row, _ = wp.tid()
        if settled[row] != 0:
            return
        iteration_count[row] = iteration_count[row] + 1
        rows.place_due[row] = 0
        rows.jacobian_due[row] = 0
        if rank[row] == 0:
            if history_count[row] > 0:
                history_count[row] = 0
                stretch[row] = one
            else:
                stretch[row] = stretch[row] * SHORTENING
                if stretch[row] < SHORTEST:
                    settled[row] = 1
                    stretch[row] = one  # a later solve begins afresh
            return
        if rank[row] == 2:
            stretch[row] = one
        elif best_alpha[row] >= alpha_most:
            stretch[row] = stretch[row] * STRETCHING
        pair = history_count[row] % history_s.shape[1]
        product = zero
        s_square = zero
        y_square = zero
        for dof in range(step.shape[1]):
            s = best_alpha[row] * step[row, dof]
            y = best_gradient[row, dof] - gradient[row, dof]
            product += s * y
            s_square += s * s
            y_square += y * y
        if product > COSINE_MIN * wp.sqrt(s_square * y_square):
            for dof in range(step.shape[1]):
                history_s[row, pair, dof] = best_alpha[row] * step[row, dof]
                history_y[row, pair, dof] = best_gradient[row, dof] - gradient[row, dof]
            history_product[row, pair] = product
            history_count[row] = history_count[row] + 1
        for dof in range(step.shape[1]):
            gradient[row, dof] = best_gradient[row, dof]
        for coord in range(joint_q.shape[1]):
            joint_q[row, coord] = best_q[row, coord]
        cost[row] = best_cost[row]
        if best_cost[row] <= resolution:
            settled[row] = 1
            solved[rows.row_problem[row]] = 1

    return SimpleNamespace(
        take_gradient=take_gradient,
        choose_direction=choose_direction,
        weigh_row=weigh_row,
        take_step=take_step,
    )


class LBFGS(RowOptimizer):
    """The method on rows of an evaluation; the arguments are those of `IKOptimizerLBFGS`."""

    def __init__(
        self,
        evaluation: Evaluation,
        history_len: int = 10,
        h0_scale: float = 1.0,
        line_search_alphas: Sequence[float] | None = None,
        wolfe_c1: float = 1e-4,
        wolfe_c2: float = 0.9,
    ) -> None:
        what = evaluation.problems.what
        length = read_whole_number(history_len, 1, f"{what}: history_len")
        self._scale = read_number(h0_scale, f"{what}: h0_scale", least=0.0, open_end=True)
        alphas = LINE_SEARCH_ALPHAS if line_search_alphas is None else tuple(line_search_alphas)
        if not alphas:
            raise ValueError(f"{what}: line_search_alphas is empty, but must list the lengths to try.")
        self._alphas = sorted(
            (read_number(alpha, f"{what}: line_search_alphas", least=0.0, open_end=True) for alpha in alphas),
            reverse=True,
        )
        self._decrease_share = read_number(wolfe_c1, f"{what}: wolfe_c1", least=0.0)
        self._slope_share = read_number(wolfe_c2, f"{what}: wolfe_c2", least=0.0)
        if not self._decrease_share < self._slope_share < 1.0:
            raise ValueError(
                f"{what}: wolfe_c1 is {wolfe_c1} and wolfe_c2 is {wolfe_c2}, but they must be in the order "
                "0 <= wolfe_c1 < wolfe_c2 < 1."
            )
        super().__init__(evaluation)
        rows, dofs, device = evaluation.row_count, evaluation.problems.dof_count, evaluation.model.device

        def zeros(*shape: int, dtype: Any = wp.float64) -> wp.array:
            return wp.zeros(shape, dtype=dtype, device=device)

        self._history = (
            zeros(rows, length, dofs),
            zeros(rows, length, dofs),
            zeros(rows, length),
            zeros(rows, dtype=wp.int32),
        )
        self._weight = zeros(rows, length)
        self._stretch = wp.full(rows, 1.0, dtype=wp.float64, device=device)
        self._gradient, self._trial_gradient = zeros(rows, dofs), zeros(rows, dofs)
        self._step, self._slope = zeros(rows, dofs), zeros(rows)
        self._rank, self._trial = zeros(rows, dtype=wp.int32), evaluation.new_coords()
        self._best = (zeros(rows), zeros(rows), evaluation.new_coords(), zeros(rows, dofs))

    def reset(self) -> None:
        """Forget the history of earlier solves."""
        self._history[-1].zero_()
        self._stretch.fill_(1.0)

    def _iterate(self, iterations: int, step_size: float) -> None:
        evaluation, kernels = self.evaluation, _kernels()
        rows, model = evaluation.rows, evaluation.model
        held = [evaluation.problems.movable, model.topology.world_dof]
        values = [evaluation.residuals, evaluation.jacobian]

        def launch(kernel: Any, inputs: list[Any], outputs: list[Any]) -> None:
            launch_kernel(
                kernel, dim=evaluation.row_count, inputs=inputs, outputs=outputs, device=model.device
            )

        evaluation.differentiate(self.joint_q)
        launch(kernels.take_gradient, [rows, *held, *values], [self._gradient])
        for _ in range(iterations):
            launch(
                kernels.choose_direction,
                [rows, self._scale, self._stretch, self.cost, self._gradient, *self._history, self._weight],
                [self._step, self._slope, self._rank, self.settled, self.solved],
            )
            for alpha in self._alphas:
                move_rows(model, rows, self.joint_q, self._step, self._trial, scale=alpha)
                evaluation.place(self._trial)
                evaluation.differentiate(self._trial)
                launch(
                    kernels.weigh_row,
                    [
                        rows,
                        *held,
                        alpha,
                        self._decrease_share,
                        self._slope_share,
                        *values,
                        self._step,
                        self._slope,
                        self.cost,
                        self._trial,
                        self._trial_gradient,
                    ],
                    [self._rank, *self._best],
                )
            launch(
                kernels.take_step,
                [rows, evaluation.resolution, self._alphas[0], self._rank, *self._best, self._step],
                [
                    *self._history,
                    self._stretch,
                    self._gradient,
                    self.joint_q,
                    self.cost,
                    self.settled,
                    self.iteration_count,
                    self.solved,
                ],
            )


class IKOptimizerLBFGS(LBFGS):
    """L-BFGS on a batch of problems. `IKSolver` adds several starts per problem.

    Args:
        model: The model.
        n_batch: Number of rows solved together.
        objectives: What a solution shall fulfil.
        jacobian_mode: How derivatives are computed, an `IKJacobianType` or its value.
        history_len: Pairs of steps and changes of the gradient that are kept.
        h0_scale: Inverse curvature with which it begins.
        line_search_alphas: Lengths that the line search tries; `(1, 0.5, 0.2, 0.05, 0.01)` if None.
        wolfe_c1: Share of the expected decrease that a step must reach.
        wolfe_c2: Share of the slope that a step may leave.
        problem_idx: Problem of each row, int32, shape [row]; the row itself if None.
        joint_dof_mask: Degrees of freedom that may move, truth values of shape [joint_dof_count]; all if
            None.

    Raises:
        TypeError: If the model or an objective is none.
        ValueError: If a number is out of range, or an array has the wrong shape, type or device.
    """

    def __init__(
        self,
        model: Any,
        n_batch: int,
        objectives: Sequence[IKObjective],
        jacobian_mode: IKJacobianType | str = IKJacobianType.MIXED,
        history_len: int = 10,
        h0_scale: float = 1.0,
        line_search_alphas: Sequence[float] | None = None,
        wolfe_c1: float = 1e-4,
        wolfe_c2: float = 0.9,
        *,
        problem_idx: wp.array | None = None,
        joint_dof_mask: wp.array | None = None,
    ) -> None:
        evaluation = evaluation_of_batch(
            model, n_batch, objectives, jacobian_mode, problem_idx, joint_dof_mask, "IKOptimizerLBFGS"
        )
        super().__init__(evaluation, history_len, h0_scale, line_search_alphas, wolfe_c1, wolfe_c2)

    def step(self, joint_q_in: wp.array, joint_q_out: wp.array, iterations: int = 50) -> None:
        """Iterate from given coordinates.

        Args:
            joint_q_in: Where to start [m or rad], shape [row, coord].
            joint_q_out: Receives the result; may be `joint_q_in`.
            iterations: Number of iterations; rows that are settled take no more.

        Raises:
            TypeError: If an array is none.
            ValueError: If an array has the wrong shape, type or device, or the number is out of range.
        """
        self._step_batch(joint_q_in, joint_q_out, iterations)
