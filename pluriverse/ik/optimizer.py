"""What both optimizers are made of: rows of coordinates, their costs, and iterations that are replayed.

Iterations launch the same kernels every time. They are launched from Python once, recorded the second time
and replayed from then on, unless a user's own objective or recording takes part.
"""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.choices import IKJacobianType, read_choice
from pluriverse.ik.evaluation import Evaluation
from pluriverse.ik.objective import IKObjective
from pluriverse.ik.problems import Problems, read_number, read_whole_number
from pluriverse.ik.retraction import repair_rows
from pluriverse.ik.rows import Rows, sum_squares
from pluriverse.launch import is_recorded_by_others, launch_kernel, record
from pluriverse.model import Model
from pluriverse.model.arguments import check_array

_MODULE = "pluriverse.ik.optimizer"
# Recordings kept, one for each number of iterations and step size: more are forgotten again.
RECORDING_COUNT_MAX = 8


@wp.kernel(enable_backward=False, module=_MODULE)
def make_row_due(
    rows: Rows,
    solved: wp.array[int],  # [problem] out
):
    """Have everything of a row computed."""
    row, _ = wp.tid()
    solved[rows.row_problem[row]] = 0
    rows.place_due[row] = 1
    rows.jacobian_due[row] = 1


@wp.kernel(enable_backward=False, module=_MODULE)
def begin_row(
    rows: Rows,
    residuals: wp.array2d[float],  # [row, residual]
    resolution: wp.float64,
    cost: wp.array[wp.float64],  # [row] out
    settled: wp.array[int],  # [row] out
    iteration_count: wp.array[int],  # [row] out
    solved: wp.array[int],  # [problem] out
):
    """Sum the squared residuals of a row, and settle it where there is nothing to gain."""
    row, _ = wp.tid()
    total = sum_squares(row, residuals)
    cost[row] = total
    is_settled = int(0)
    if total <= resolution:
        is_settled = 1
        solved[rows.row_problem[row]] = 1
    settled[row] = is_settled
    iteration_count[row] = 0
    rows.place_due[row] = 0
    rows.jacobian_due[row] = 1 - is_settled


@wp.kernel(enable_backward=False, module=_MODULE)
def copy_cost(
    cost: wp.array[wp.float64],  # [row]
    costs: wp.array[float],  # [row] out
):
    """Copy the cost of a row to what users read."""
    row, _ = wp.tid()
    costs[row] = float(cost[row])


class RowOptimizer(abc.ABC):
    """Rows of joint coordinates that a method improves. Subclasses give `reset` and `_iterate`.

    Args:
        evaluation: What is minimized.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        device = evaluation.model.device
        self.joint_q = evaluation.new_coords()
        """Coordinates of the rows [m or rad], shape [row, coord]."""
        self.costs = wp.zeros(evaluation.row_count, dtype=float, device=device)
        """Sum of squared residuals at `joint_q`, shape [row]."""
        self.iteration_count = wp.zeros(evaluation.row_count, dtype=int, device=device)
        """Iterations that each row took in the last call, shape [row]."""
        self.cost = wp.zeros(evaluation.row_count, dtype=wp.float64, device=device)
        self.settled = wp.zeros(evaluation.row_count, dtype=int, device=device)
        self.solved = wp.zeros(evaluation.problems.count, dtype=int, device=device)
        """1 where a row of the problem is solved to rounding; its others then stop, shape [problem]."""
        self._launched: dict[tuple[int, float, tuple[float, ...]], wp.Graph | None] = {}

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget what earlier solves have left."""

    def run(self, iterations: int, step_size: float = 1.0) -> None:
        """Iterate on `joint_q`, and write costs and iteration counts.

        Args:
            iterations: Number of iterations.
            step_size: Factor of steps.

        Raises:
            ValueError: If a number is out of range.
            TypeError: If the number of iterations is not a whole one.
        """
        what = self.evaluation.problems.what
        iterations = read_whole_number(iterations, 0, f"{what}.step: iterations")
        step_size = read_number(step_size, f"{what}.step: step_size", least=0.0, open_end=True)
        device = self.evaluation.model.device
        if not self.evaluation.is_recordable or is_recorded_by_others(device):
            self._launch(iterations, step_size)
            return
        key = (iterations, step_size, self.evaluation.weights)  # what launches take as numbers
        if key not in self._launched:
            self._launch(iterations, step_size)  # loads all kernels, too
            if len(self._launched) >= RECORDING_COUNT_MAX:
                self._launched.pop(next(iter(self._launched)))
            self._launched[key] = None
            return
        graph = self._launched[key]
        if graph is None:
            graph = self._launched[key] = record(device, lambda: self._launch(iterations, step_size))
        wp.capture_launch(graph)

    def start_from(self, joint_q: wp.array) -> None:
        """Set `joint_q`. Quaternions that are 0 become the identity."""
        wp.copy(self.joint_q, joint_q)
        repair_rows(self.evaluation.model, self.evaluation.rows, self.joint_q)

    def compute_costs(self, joint_q: wp.array) -> wp.array:
        """Return the sums of squared residuals of coordinates, shape [row].

        Args:
            joint_q: Coordinates [m or rad], shape [row, coord].

        Raises:
            TypeError: If it is no array.
            ValueError: If it has the wrong shape, type or device.
        """
        self._check_coords(joint_q, "compute_costs: joint_q")
        self.start_from(joint_q)
        self._begin()
        self._write_costs()
        return self.costs

    @abc.abstractmethod
    def _iterate(self, iterations: int, step_size: float) -> None:
        """Launch the iterations on `joint_q`."""

    def _launch(self, iterations: int, step_size: float) -> None:
        self._begin()
        self._iterate(iterations, step_size)
        self._write_costs()

    def _begin(self) -> None:
        """Evaluate all rows at `joint_q`."""
        evaluation = self.evaluation
        device, count = evaluation.model.device, evaluation.row_count
        launch_kernel(make_row_due, dim=count, inputs=[evaluation.rows], outputs=[self.solved], device=device)
        evaluation.place(self.joint_q)
        launch_kernel(
            begin_row,
            dim=count,
            inputs=[evaluation.rows, evaluation.residuals, evaluation.resolution],
            outputs=[self.cost, self.settled, self.iteration_count, self.solved],
            device=device,
        )

    def _write_costs(self) -> None:
        launch_kernel(
            copy_cost,
            dim=self.costs.size,
            inputs=[self.cost],
            outputs=[self.costs],
            device=self.costs.device,
        )

    def _check_coords(self, joint_q: wp.array, what: str) -> None:
        problems = self.evaluation.problems
        shape = (self.evaluation.row_count, problems.coord_count)
        check_array(problems.model, joint_q, shape, wp.float32, f"{problems.what}.{what}")

    def _step_batch(
        self, joint_q_in: wp.array, joint_q_out: wp.array, iterations: int, step_size: float = 1.0
    ) -> None:
        """Iterate from coordinates of shape [row, coord]."""
        self._check_coords(joint_q_in, "step: joint_q_in")
        self._check_coords(joint_q_out, "step: joint_q_out")
        self.start_from(joint_q_in)
        self.run(iterations, step_size)
        wp.copy(joint_q_out, self.joint_q)


def evaluation_of_batch(
    model: Model,
    n_batch: int,
    objectives: Sequence[IKObjective],
    jacobian_mode: IKJacobianType | str,
    problem_idx: wp.array | None,
    joint_dof_mask: wp.array | None,
    what: str,
) -> Evaluation:
    """Return the evaluation of rows of a model that an optimizer is made for by itself.

    Raises:
        TypeError: If something is of another kind.
        ValueError: If a number is out of range, or an array has the wrong shape, type or device.
    """
    n_batch = read_whole_number(n_batch, 1, f"{what}: n_batch")
    mode: Any = read_choice(IKJacobianType, jacobian_mode, f"{what}: jacobian_mode")
    count = n_batch
    device = getattr(model, "device", None)
    if problem_idx is None:
        problem_idx = wp.array(np.arange(n_batch, dtype=np.int32), dtype=wp.int32, device=device)
    else:
        check_array(model, problem_idx, (n_batch,), wp.int32, f"{what}: problem_idx")
        given = problem_idx.numpy()
        if given.min() < 0:
            raise ValueError(f"{what}: problem_idx has the entry {given.min()}, but problems count from 0.")
        count = int(given.max()) + 1
    problems = Problems(model, count, mask=joint_dof_mask, what=what)
    return Evaluation(problems, objectives, problem_idx, mode)
