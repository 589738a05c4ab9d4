"""Levenberg-Marquardt: damped least squares whose damping follows the success of its steps.

Reads   joint_q; residuals r and Jacobian J of `Evaluation`
Writes  joint_q, cost, damping

A step solves (J^T J + lambda I) p = -J^T r ([Levenberg1944], [Marquardt1963], [Nocedal2006] section 10.3;
with a constant lambda the damped least squares of [Wampler1986], [Nakamura1986]). The sum of squares should
fall by -2 p.g - p.H p then, with g = J^T r, H = J^T J. A step that reaches a share `rho_min` of this is
taken. Under a quarter of it lambda grows by `lambda_factor`, over three quarters it falls ([Nocedal2006]
algorithm 4.1): a step may be taken and yet be too long, as where a target is out of reach.

Where lambda falls, it becomes at most the cost. Where a target can be reached, this makes the last
iterations quadratic, also in singular poses ([Yamashita2001], [Sugihara2011]); a constant factor would need
an iteration for each factor of the distance.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.choices import IKJacobianType
from pluriverse.ik.evaluation import Evaluation
from pluriverse.ik.objective import IKObjective
from pluriverse.ik.optimizer import RowOptimizer, evaluation_of_batch
from pluriverse.ik.problems import read_number
from pluriverse.ik.retraction import move_rows
from pluriverse.ik.rows import Rows, goes_on, sum_squares
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.dense import packed_rows

# Relative decrease of the cost under which a row is settled. Single precision resolves 2**-24 of a cost; at a
# minimum that is not 0 the coordinates are then still off by the root of it, so 2**-30.
DECREASE_MIN = wp.constant(wp.float64(2.0**-30))
# Shares of the expected decrease under which the damping grows, and over which it falls.
POOR_SHARE = wp.constant(wp.float64(0.25))
GOOD_SHARE = wp.constant(wp.float64(0.75))


@wp.struct
class Damping:
    """What a user chooses of the damping."""

    initial: wp.float64
    factor: wp.float64
    least: wp.float64
    most: wp.float64
    ratio_min: wp.float64
    """Share of the expected decrease under which a step is not taken."""
    resolution: wp.float64
    """Cost that rounding alone makes."""


@made_once
def _kernels() -> SimpleNamespace:
    real = wp.float64
    ltdl_factorize, ltdl_solve = packed_rows(real).ltdl_factorize, packed_rows(real).ltdl_solve
    zero, two = wp.constant(real(0.0)), wp.constant(real(2.0))

    @wp.kernel(enable_backward=False, module="pluriverse.ik.levenberg_marquardt")
    def propose_row(
        rows: Rows,
        movable: wp.array[int],  # [dof + dof of a row] 0: held
        world_dof: wp.array[int],  # [world] first flat dof
        chain_parent: wp.array[int],  # [dof of a row]
        chain_depth: wp.array[int],  # [dof of a row]
        chain_row: wp.array[int],  # [dof of a row]
        residuals: wp.array2d[float],  # [row, residual]
        jacobian: wp.array3d[float],  # [row, residual, dof]
        cost: wp.array[wp.float64],  # [row]
        damping: wp.array[wp.float64],  # [row]
        step_size: wp.float64,
        normal: wp.array[wp.float64],  # [row * dof * (dof + 1) / 2] scratch: lower triangle of H
        step: wp.array[wp.float64],  # [row * dof] out: m or rad
        expected: wp.array[wp.float64],  # [row] out: decrease of the cost by the model
        settled: wp.array[int],  # [row] in and out
        solved: wp.array[int],  # [problem]
    ):
        row, _ = wp.tid()
        if not goes_on(rows, row, settled, solved):
            return
        dof_count = jacobian.shape[2]
        first_dof = world_dof[rows.problem_world[rows.row_problem[row]]]
        first = row * dof_count
        base = row * (dof_count * (dof_count + 1) // 2)
        for entry in range(dof_count * (dof_count + 1) // 2):
            normal[base + entry] = zero
        for dof in range(dof_count):
            step[first + dof] = zero
        for residual in range(residuals.shape[1]):
            value = real(residuals[row, residual])
            for dof in range(dof_count):
                slope = real(jacobian[row, residual, dof])
                if slope == zero:
                    continue
                if movable[first_dof + dof] == 0:
                    continue
                step[first + dof] = step[first + dof] - slope * value
                entry = base + chain_row[dof]
                for other in range(dof + 1):
                    normal[entry + other] = normal[entry + other] + slope * real(
                        jacobian[row, residual, other]
                    )
        largest = zero
        for dof in range(dof_count):
            largest = wp.max(largest, wp.abs(step[first + dof]))
            entry = base + chain_row[dof]
            for other in range(dof):
                if movable[first_dof + other] == 0:
                    normal[entry + other] = zero
            normal[entry + dof] = normal[entry + dof] + damping[row]
        if largest == zero:
            settled[row] = 1
            rows.jacobian_due[row] = 0
            return
        ltdl_factorize(normal, base, chain_parent, chain_depth, chain_row, 0, 0, dof_count)
        ltdl_solve(normal, base, chain_parent, chain_depth, chain_row, 0, 0, dof_count, step, first)
        descent = zero  # -p.g
        square = zero  # p.H p
        for residual in range(residuals.shape[1]):
            change = zero
            for dof in range(dof_count):
                change += real(jacobian[row, residual, dof]) * step[first + dof]
            descent -= real(residuals[row, residual]) * change
            square += change * change
        decrease = step_size * (two * descent - step_size * square)
        expected[row] = decrease
        rows.place_due[row] = 1
        if decrease <= DECREASE_MIN * cost[row]:
            settled[row] = 1
            rows.place_due[row] = 0
            rows.jacobian_due[row] = 0

    @wp.kernel(enable_backward=False, module="pluriverse.ik.levenberg_marquardt")
    def judge_row(
        rows: Rows,
        options: Damping,
        residuals: wp.array2d[float],  # [row, residual] after the step
        expected: wp.array[wp.float64],  # [row]
        joint_q_trial: wp.array2d[float],  # [row, coord]
        joint_q: wp.array2d[float],  # [row, coord] in and out
        cost: wp.array[wp.float64],  # [row] in and out
        damping: wp.array[wp.float64],  # [row] in and out
        settled: wp.array[int],  # [row] in and out
        iteration_count: wp.array[int],  # [row] in and out
        solved: wp.array[int],  # [problem] out
    ):
        row, _ = wp.tid()
        if settled[row] != 0:
            return
        iteration_count[row] = iteration_count[row] + 1
        total = sum_squares(row, residuals)
        # Written this way round so that NaN is not taken.
        decrease = cost[row] - total
        if decrease > options.ratio_min * expected[row]:
            for coord in range(joint_q.shape[1]):
                joint_q[row, coord] = joint_q_trial[row, coord]
            cost[row] = total
            if decrease > GOOD_SHARE * expected[row]:
                damping[row] = wp.max(wp.min(damping[row] / options.factor, total), options.least)
            elif decrease < POOR_SHARE * expected[row]:
                damping[row] = wp.min(damping[row] * options.factor, options.most)
            rows.place_due[row] = 0
            if total <= options.resolution:
                settled[row] = 1
                solved[rows.row_problem[row]] = 1
                rows.jacobian_due[row] = 0
        else:
            # What stands in the rows belongs to the step that was not taken.
            if damping[row] >= options.most:
                settled[row] = 1
                rows.jacobian_due[row] = 0
            damping[row] = wp.min(damping[row] * options.factor, options.most)
            rows.place_due[row] = 1

    return SimpleNamespace(propose_row=propose_row, judge_row=judge_row)


class LevenbergMarquardt(RowOptimizer):
    """The method on rows of an evaluation; the arguments are those of `IKOptimizerLM`."""

    def __init__(
        self,
        evaluation: Evaluation,
        lambda_initial: float = 0.1,
        lambda_factor: float = 2.0,
        lambda_min: float = 1e-5,
        lambda_max: float = 1e10,
        rho_min: float = 1e-3,
    ) -> None:
        what = evaluation.problems.what
        options = Damping()
        options.least = read_number(lambda_min, f"{what}: lambda_min", least=0.0, open_end=True)
        options.most = read_number(lambda_max, f"{what}: lambda_max", least=options.least)
        options.initial = read_number(lambda_initial, f"{what}: lambda_initial", least=0.0)
        options.initial = min(max(options.initial, options.least), options.most)
        options.factor = read_number(lambda_factor, f"{what}: lambda_factor", least=1.0, open_end=True)
        options.ratio_min = read_number(rho_min, f"{what}: rho_min", least=0.0)
        if not options.ratio_min < 1.0:
            raise ValueError(
                f"{what}: rho_min is {rho_min}, but must be less than 1, or no step is ever taken."
            )
        super().__init__(evaluation)
        self._options = options
        device, real = evaluation.model.device, wp.float64
        rows, dofs = evaluation.row_count, evaluation.problems.dof_count
        depth = np.arange(dofs, dtype=np.int32)
        # A dense matrix is the packed rows of a chain: every dof has all before it above it.
        self._chain = [
            wp.array(values, dtype=wp.int32, device=device)
            for values in (depth - 1, depth, depth * (depth + 1) // 2)
        ]
        self._damping = wp.full(rows, options.initial, dtype=real, device=device)
        self._expected = wp.zeros(rows, dtype=real, device=device)
        self._normal = wp.zeros(rows * (dofs * (dofs + 1) // 2), dtype=real, device=device)
        self._step = wp.zeros((rows, dofs), dtype=real, device=device)
        self._trial = evaluation.new_coords()

    def reset(self) -> None:
        """Forget the damping of earlier solves."""
        self._damping.fill_(self._options.initial)

    def _iterate(self, iterations: int, step_size: float) -> None:
        evaluation, problems = self.evaluation, self.evaluation.problems
        rows, model, kernels = evaluation.rows, evaluation.model, _kernels()
        self._options.resolution = evaluation.resolution
        for iteration in range(iterations):
            if iteration:
                evaluation.place(self.joint_q)  # where a step was not taken
            evaluation.differentiate(self.joint_q)
            launch_kernel(
                kernels.propose_row,
                dim=evaluation.row_count,
                inputs=[
                    rows,
                    problems.movable,
                    model.topology.world_dof,
                    *self._chain,
                    evaluation.residuals,
                    evaluation.jacobian,
                    self.cost,
                    self._damping,
                    step_size,
                    self._normal,
                ],
                outputs=[self._step.flatten(), self._expected, self.settled, self.solved],
                device=model.device,
            )
            move_rows(model, rows, self.joint_q, self._step, self._trial)
            evaluation.place(self._trial)
            launch_kernel(
                kernels.judge_row,
                dim=evaluation.row_count,
                inputs=[rows, self._options, evaluation.residuals, self._expected, self._trial],
                outputs=[
                    self.joint_q,
                    self.cost,
                    self._damping,
                    self.settled,
                    self.iteration_count,
                    self.solved,
                ],
                device=model.device,
            )


class IKOptimizerLM(LevenbergMarquardt):
    """Levenberg-Marquardt on a batch of problems. `IKSolver` adds several starts per problem.

    Args:
        model: The model.
        n_batch: Number of rows solved together.
        objectives: What a solution shall fulfil.
        lambda_initial: Damping of the first iteration.
        jacobian_mode: How derivatives are computed, an `IKJacobianType` or its value.
        lambda_factor: Factor by which the damping falls after a good step, and grows after a poor one.
        lambda_min: Least damping.
        lambda_max: Greatest damping.
        rho_min: Share of the expected decrease that a step must reach to be taken.
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
        lambda_initial: float = 0.1,
        jacobian_mode: IKJacobianType | str = IKJacobianType.MIXED,
        lambda_factor: float = 2.0,
        lambda_min: float = 1e-5,
        lambda_max: float = 1e10,
        rho_min: float = 1e-3,
        *,
        problem_idx: wp.array | None = None,
        joint_dof_mask: wp.array | None = None,
    ) -> None:
        evaluation = evaluation_of_batch(
            model, n_batch, objectives, jacobian_mode, problem_idx, joint_dof_mask, "IKOptimizerLM"
        )
        super().__init__(evaluation, lambda_initial, lambda_factor, lambda_min, lambda_max, rho_min)

    def step(
        self, joint_q_in: wp.array, joint_q_out: wp.array, iterations: int = 10, step_size: float = 1.0
    ) -> None:
        """Iterate from given coordinates.

        Args:
            joint_q_in: Where to start [m or rad], shape [row, coord].
            joint_q_out: Receives the result; may be `joint_q_in`.
            iterations: Number of iterations; rows that are settled take no more.
            step_size: Factor of every step.

        Raises:
            TypeError: If an array is none.
            ValueError: If an array has the wrong shape, type or device, or a number is out of range.
        """
        self._step_batch(joint_q_in, joint_q_out, iterations, step_size)
