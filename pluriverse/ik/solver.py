"""IK solver: the best of several starts of every problem."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.choices import IKJacobianType, IKOptimizer, IKSampler, read_choice
from pluriverse.ik.evaluation import Evaluation
from pluriverse.ik.lbfgs import LBFGS
from pluriverse.ik.levenberg_marquardt import LevenbergMarquardt
from pluriverse.ik.objective import IKObjective
from pluriverse.ik.optimizer import RowOptimizer
from pluriverse.ik.problems import Problems, read_number, read_whole_number
from pluriverse.ik.retraction import repair_rows
from pluriverse.ik.sampling import StartSampler
from pluriverse.launch import launch_kernel
from pluriverse.model import Model
from pluriverse.model.arguments import check_array

_MODULE = "pluriverse.ik.solver"


@wp.kernel(enable_backward=False, module=_MODULE)
def spread_row(
    seed_count: int,
    first: wp.array[int],  # [problem] first entry in joint_q
    count: wp.array[int],  # [problem] coordinates
    joint_q: wp.array[float],  # [entry]
    joint_q_out: wp.array2d[float],  # [row, coord] out
):
    """Copy the start of a problem to one of its rows."""
    row, _ = wp.tid()
    problem = row // seed_count
    for coord in range(count[problem]):
        joint_q_out[row, coord] = joint_q[first[problem] + coord]


@wp.kernel(enable_backward=False, module=_MODULE)
def choose_row(
    seed_count: int,
    first: wp.array[int],  # [problem] first entry in joint_q_out
    count: wp.array[int],  # [problem] coordinates
    cost: wp.array[wp.float64],  # [row]
    joint_q: wp.array2d[float],  # [row, coord]
    joint_q_out: wp.array[float],  # [entry] out
):
    """Copy the row of least cost of a problem, the first of equal ones."""
    problem, _ = wp.tid()
    best = problem * seed_count
    for row in range(best + 1, (problem + 1) * seed_count):
        # NaN of a row that failed is greater than any cost.
        if cost[row] < cost[best] or (wp.isnan(cost[best]) and not wp.isnan(cost[row])):
            best = row
    for coord in range(count[problem]):
        joint_q_out[first[problem] + coord] = joint_q[best, coord]


class IKSolver:
    """Solver of inverse kinematics for many problems at once.

    A problem asks for joint coordinates that fulfil objectives: it minimizes the sum of their squared
    residuals. Problems share the model and the objectives; targets differ. A problem moves the whole model,
    or, with `problem_worlds`, one world of it, and worlds may differ in everything.

    All memory is allocated here. `step` launches kernels only, so it can be recorded; a problem gives the
    same bits whatever other problems there are.

    Args:
        model: The model.
        n_problems: Number of problems.
        objectives: What solutions shall fulfil: a list of `IKObjective`.
        optimizer: Method, an `IKOptimizer` or its value.
        jacobian_mode: How derivatives are computed, an `IKJacobianType` or its value.
        sampler: Starts that are tried beside the given one, an `IKSampler` or its value.
        n_seeds: Number of starts per problem. The given one is always the first.
        noise_std: Standard deviation of `IKSampler.GAUSS` [m or rad].
        rng_seed: Seed of random starts.
        lambda_initial: Damping of the first iteration of Levenberg-Marquardt.
        lambda_factor: Factor by which the damping falls after a good step, and grows after a poor one.
        lambda_min: Least damping.
        lambda_max: Greatest damping.
        rho_min: Share of the expected decrease that a step must reach to be taken.
        joint_dof_mask: Degrees of freedom that may move, truth values of shape [joint_dof_count]; all if
            None.
        history_len: Pairs of steps and changes of the gradient that L-BFGS keeps.
        h0_scale: Inverse curvature with which L-BFGS begins.
        line_search_alphas: Lengths that the line search of L-BFGS tries.
        wolfe_c1: Share of the expected decrease that L-BFGS asks of a step.
        wolfe_c2: Share of the slope that L-BFGS lets a step leave.
        problem_worlds: World that each problem moves, shape [problem]. None: each moves the whole model.

    Raises:
        TypeError: If something is of another kind.
        ValueError: If a number is out of range, or an array has the wrong shape, type or device.
    """

    def __init__(
        self,
        model: Model,
        n_problems: int,
        objectives: Sequence[IKObjective],
        *,
        optimizer: IKOptimizer | str = IKOptimizer.LM,
        jacobian_mode: IKJacobianType | str = IKJacobianType.MIXED,
        sampler: IKSampler | str = IKSampler.NONE,
        n_seeds: int = 1,
        noise_std: float = 0.1,
        rng_seed: int = 12345,
        lambda_initial: float = 0.1,
        lambda_factor: float = 2.0,
        lambda_min: float = 1e-5,
        lambda_max: float = 1e10,
        rho_min: float = 1e-3,
        joint_dof_mask: wp.array | None = None,
        history_len: int = 10,
        h0_scale: float = 1.0,
        line_search_alphas: Sequence[float] | None = None,
        wolfe_c1: float = 1e-4,
        wolfe_c2: float = 0.9,
        problem_worlds: Sequence[int] | np.ndarray | wp.array | None = None,
    ) -> None:
        what = "IKSolver"
        method = read_choice(IKOptimizer, optimizer, f"{what}: optimizer")
        mode = read_choice(IKJacobianType, jacobian_mode, f"{what}: jacobian_mode")
        kind = read_choice(IKSampler, sampler, f"{what}: sampler")
        seed_count = read_whole_number(n_seeds, 1, f"{what}: n_seeds")
        if kind is IKSampler.NONE and seed_count > 1:
            raise ValueError(
                f"{what}: n_seeds is {seed_count}, but sampler is NONE, so all starts would be the same. "
                "Take sampler=IKSampler.ROBERTS, UNIFORM or GAUSS."
            )
        problems = Problems(model, n_problems, problem_worlds, joint_dof_mask, what=what)
        row_problem = np.repeat(np.arange(problems.count, dtype=np.int32), seed_count)
        evaluation = Evaluation(
            problems, objectives, wp.array(row_problem, dtype=wp.int32, device=model.device), mode
        )
        self._impl: RowOptimizer
        if method is IKOptimizer.LM:
            self._impl = LevenbergMarquardt(
                evaluation, lambda_initial, lambda_factor, lambda_min, lambda_max, rho_min
            )
        else:
            self._impl = LBFGS(evaluation, history_len, h0_scale, line_search_alphas, wolfe_c1, wolfe_c2)
        std = read_number(noise_std, f"{what}: noise_std", least=0.0)
        seed = read_whole_number(rng_seed, 0, f"{what}: rng_seed")
        self._sampler = StartSampler(evaluation, kind, seed_count, std, seed) if seed_count > 1 else None
        self._problems = problems
        self._seed_count = seed_count
        first, count = problems.coord_ranges()
        self._flat_first = wp.array(first, dtype=wp.int32, device=model.device)
        rows = np.arange(problems.count, dtype=np.int32) * problems.coord_count
        self._row_first = wp.array(rows, dtype=wp.int32, device=model.device)
        self._coord_count = wp.array(count, dtype=wp.int32, device=model.device)

    @property
    def joint_q(self) -> wp.array2d[float]:
        """Coordinates that each start has led to [m or rad], shape [n_problems * n_seeds, coord]."""
        return self._impl.joint_q

    @property
    def costs(self) -> wp.array[float]:
        """Sum of squared residuals that each start has led to, shape [n_problems * n_seeds].

        When one start of a problem has reached what rounding resolves, its other starts stop where they are.
        """
        return self._impl.costs

    @property
    def iteration_counts(self) -> wp.array[int]:
        """Iterations that each start took in the last solve, shape [n_problems * n_seeds]."""
        return self._impl.iteration_count

    def reset(self) -> None:
        """Forget what earlier solves have left: damping or history, and how many starts were drawn."""
        self._impl.reset()
        if self._sampler is not None:
            self._sampler.reset()

    def step(
        self,
        joint_q_in: wp.array,
        joint_q_out: wp.array,
        iterations: int = 50,
        step_size: float = 1.0,
    ) -> None:
        """Solve all problems.

        Args:
            joint_q_in: Where to start [m or rad], shape [problem, coord]. Quaternions that are 0 mean no
                turn. Where the problems are the worlds of the model in order, `joint_q` of a state fits too.
            joint_q_out: Receives the best coordinates of each problem; may be `joint_q_in`.
            iterations: Most iterations of each start; those that are settled take no more.
            step_size: Factor of the steps of Levenberg-Marquardt.

        Raises:
            TypeError: If an array is none, or the number of iterations not a whole one.
            ValueError: If an array has the wrong shape, type or device, or a number is out of range.
        """
        inputs = self._check(joint_q_in, "joint_q_in")
        outputs = self._check(joint_q_out, "joint_q_out")
        impl, device = self._impl, self._problems.model.device
        launch_kernel(
            spread_row,
            dim=impl.joint_q.shape[0],
            inputs=[self._seed_count, inputs, self._coord_count, joint_q_in.flatten()],
            outputs=[impl.joint_q],
            device=device,
        )
        repair_rows(self._problems.model, impl.evaluation.rows, impl.joint_q)
        if self._sampler is not None:
            self._sampler.sample(impl.joint_q)
        impl.run(iterations, step_size)
        launch_kernel(
            choose_row,
            dim=self._problems.count,
            inputs=[self._seed_count, outputs, self._coord_count, impl.cost, impl.joint_q],
            outputs=[joint_q_out.flatten()],
            device=device,
        )

    def _check(self, joint_q: Any, name: str) -> wp.array:
        """Check coordinates, and return where each problem begins in them."""
        problems = self._problems
        if isinstance(joint_q, wp.array) and joint_q.ndim == 1 and problems.is_state_order:
            shape: tuple[int, ...] = (problems.model.joint_coord_count,)
            first = self._flat_first
        else:
            shape = (problems.count, problems.coord_count)
            first = self._row_first
        check_array(problems.model, joint_q, shape, wp.float32, f"IKSolver.step: {name}")
        if not joint_q.is_contiguous:
            raise ValueError(f"IKSolver.step: {name} is not contiguous; give contiguous().")
        return first
