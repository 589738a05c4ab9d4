"""Evaluation: residuals, costs and Jacobians of all objectives, for rows of joint coordinates.

The Jacobian of an objective comes from its own formula or from a tape. The tape holds the kernels of
`compute_residuals`; from bodies and coordinates on, gradients are pulled back through the columns of the
dofs, which is exact.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.choices import IKJacobianType
from pluriverse.ik.kinematics import RowKinematics
from pluriverse.ik.objective import BuiltinObjective, IKObjective
from pluriverse.ik.problems import Problems
from pluriverse.ik.rows import Rows, make_rows

# What single precision resolves of a residual of order 1 m or rad: two roundings of 2**-24 in each of two
# places.
RESOLUTION = 2.0**-22


class Evaluation:
    """Objectives of problems, evaluated in rows.

    Args:
        problems: The problems.
        objectives: The objectives.
        row_problem: Problem of each row, shape [row].
        jacobian_mode: How derivatives are computed.

    Raises:
        TypeError: If something among the objectives is none.
        ValueError: If there is no objective, or one has no residuals, or one has no derivatives of the kind
            asked for.
    """

    def __init__(
        self,
        problems: Problems,
        objectives: Sequence[IKObjective],
        row_problem: wp.array,
        jacobian_mode: IKJacobianType,
    ) -> None:
        self.problems = problems
        self.model = problems.model
        self.objectives = _check_objectives(objectives, jacobian_mode, problems.what)
        self.rows: Rows = make_rows(problems.problem_world, problems.world_count, row_problem)
        # For the kernels of a tape, whose adjoints would skip rows that are not due, too.
        self._all_rows: Rows = make_rows(problems.problem_world, problems.world_count, row_problem)
        self.row_count = row_problem.size
        device = self.model.device
        for objective in self.objectives:
            objective.bind_device(device)
            if isinstance(objective, BuiltinObjective):
                objective.bind_problems(problems)
        sizes = [_residual_count(objective, problems.what) for objective in self.objectives]
        self._start = [int(start) for start in np.cumsum([0, *sizes])]
        self.residual_count = self._start[-1]
        for objective, start in zip(self.objectives, self._start, strict=False):
            objective.set_batch_layout(self.residual_count, start, self.row_count)
            objective.init_buffers(self.model, jacobian_mode)
        self._taped = [not _is_analytic(objective, jacobian_mode) for objective in self.objectives]
        self._requires_grad = any(self._taped)
        self.is_recordable = all(isinstance(objective, BuiltinObjective) for objective in self.objectives)
        self.is_recordable = self.is_recordable and not self._requires_grad
        """Whether only kernels of this package are launched, so that a solve can be replayed."""
        self._sizes = sizes
        self.kinematics = RowKinematics(
            self.model,
            self.row_count,
            joint_count=problems.joint_count,
            body_count=problems.body_count,
            dof_count=problems.dof_count,
            requires_grad=self._requires_grad,
        )
        grad = self._requires_grad
        shape = (self.row_count, self.residual_count)
        self.residuals = wp.zeros(shape, dtype=float, device=device, requires_grad=grad)
        self.jacobian = wp.zeros((*shape, problems.dof_count), dtype=float, device=device)
        dof_shape = (self.row_count, problems.dof_count if grad else 0)
        self._dq_dof = wp.zeros(dof_shape, dtype=float, device=device, requires_grad=grad)

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the objectives of this package, which may change between solves."""
        return tuple(one.weight for one in self.objectives if isinstance(one, BuiltinObjective))

    @property
    def resolution(self) -> float:
        """Cost that rounding alone makes [m^2 or rad^2, weighted]."""
        return sum(
            size * (RESOLUTION * objective.weight) ** 2
            for objective, size in zip(self.objectives, self._sizes, strict=True)
            if isinstance(objective, BuiltinObjective)
        )

    def new_coords(self) -> wp.array:
        """Return joint coordinates of all rows, shape [row, coord]."""
        return wp.zeros(
            (self.row_count, self.problems.coord_count),
            dtype=float,
            device=self.model.device,
            requires_grad=self._requires_grad,
        )

    def place(self, joint_q: wp.array) -> None:
        """Set coordinates that follow others, and compute bodies and residuals, of the rows that are due."""
        self.problems.followers.follow(self.rows, joint_q)
        self.kinematics.place(self.rows, joint_q)
        for objective, start in zip(self.objectives, self._start, strict=False):
            self._compute_residuals(objective, joint_q, start, self.rows)

    def differentiate(self, joint_q: wp.array) -> None:
        """Compute the Jacobian of the rows that are due, at coordinates that were placed."""
        tape = self._record_tape(joint_q) if self._requires_grad else None
        if not self.is_recordable:
            self.jacobian.zero_()
        for objective, start, taped in zip(self.objectives, self._start, self._taped, strict=False):
            if taped:
                assert tape is not None
                objective.compute_jacobian_autodiff(tape, self.model, self.jacobian, start, self._dq_dof)
                continue
            if isinstance(objective, BuiltinObjective):
                objective.attach(self.rows)
            objective.compute_jacobian_analytic(
                self.kinematics.body_q,
                joint_q,
                self.model,
                self.jacobian,
                self.kinematics.joint_S_s,
                start,
            )
        self.problems.followers.fold(self.rows, joint_q, self.jacobian)

    def _compute_residuals(self, objective: IKObjective, joint_q: wp.array, start: int, rows: Rows) -> None:
        """Have an objective write its residuals."""
        if isinstance(objective, BuiltinObjective):
            objective.attach(rows)
        objective.compute_residuals(
            self.kinematics.body_q, joint_q, self.model, self.residuals, start, self.rows.row_problem
        )

    def _record_tape(self, joint_q: wp.array) -> wp.Tape:
        """Return a tape of the residuals of the objectives that are differentiated by one."""
        tape: Any = wp.Tape()
        tape.residuals = self.residuals
        arrays = [self._dq_dof, self.kinematics.body_q, joint_q, self.residuals]
        tape.record_func(lambda: self.kinematics.pull_back(self.rows, joint_q, self._dq_dof.grad), arrays)
        with tape:
            for objective, start, taped in zip(self.objectives, self._start, self._taped, strict=False):
                if taped:
                    self._compute_residuals(objective, joint_q, start, self._all_rows)
        return tape


def _check_objectives(objectives: Any, mode: IKJacobianType, what: str) -> list[IKObjective]:
    """Return the objectives as a list."""
    if isinstance(objectives, IKObjective):
        raise TypeError(f"{what}: objectives is a single {type(objectives).__name__}; put it into a list.")
    result = list(objectives)
    for place, objective in enumerate(result):
        if not isinstance(objective, IKObjective):
            raise TypeError(
                f"{what}: objectives[{place}] is a {type(objective).__name__}, but must be an IKObjective."
            )
        if mode is IKJacobianType.ANALYTIC and not objective.supports_analytic():
            raise ValueError(
                f"{what}: objectives[{place}], a {type(objective).__name__}, has no analytic Jacobian. Take "
                "jacobian_mode=IKJacobianType.MIXED."
            )
    if not result:
        raise ValueError(f"{what}: objectives is empty, so there is nothing to solve for.")
    return result


def _residual_count(objective: IKObjective, what: str) -> int:
    """Return the number of residuals of an objective."""
    count = objective.residual_dim()
    if isinstance(count, bool) or not hasattr(count, "__index__") or int(count) < 1:
        raise ValueError(
            f"{what}: {type(objective).__name__}.residual_dim() is {count!r}, but must be a whole number of "
            "at least 1."
        )
    return int(count)


def _is_analytic(objective: IKObjective, mode: IKJacobianType) -> bool:
    """Return whether the Jacobian of an objective comes from its own formula."""
    return mode is IKJacobianType.ANALYTIC or (mode is IKJacobianType.MIXED and objective.supports_analytic())
