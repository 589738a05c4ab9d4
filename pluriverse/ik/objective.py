"""Objectives: what a solution shall fulfil, as residuals whose squares are minimized."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.choices import IKJacobianType
from pluriverse.ik.problems import Problems
from pluriverse.ik.rows import Rows
from pluriverse.ik.seeding import seed_rows, store_rows
from pluriverse.model import Model


class IKObjective:
    """Base class of objectives of inverse kinematics: some residuals of every problem.

    A subclass gives `residual_dim` and `compute_residuals`. Its derivatives then come from the adjoints of
    the kernels that `compute_residuals` launches, or from `compute_jacobian_analytic` where it gives that
    too.

    What belongs to problems, such as targets, stands in arrays on the device, one entry per problem. It is
    found by `problem_idx`, since a problem may be computed in several rows.
    """

    def __init__(self) -> None:
        self.device: Any = None
        """Device of the model, as soon as a solver has the objective."""
        self.n_batch = 0
        """Number of rows."""
        self.total_residuals = 0
        """Number of residuals of all objectives in a row."""
        self.residual_offset = 0
        """Number of residuals before those of this objective."""

    def bind_device(self, device: Any) -> None:
        """Take the device of the model. Called by solvers."""
        self.device = device

    def set_batch_layout(self, total_residuals: int, residual_offset: int, n_batch: int) -> None:
        """Take where the residuals of this objective are. Called by solvers.

        Args:
            total_residuals: Number of residuals of all objectives in a row.
            residual_offset: Number of residuals before those of this objective.
            n_batch: Number of rows.
        """
        self.total_residuals, self.residual_offset, self.n_batch = total_residuals, residual_offset, n_batch

    def init_buffers(self, model: Model, jacobian_mode: IKJacobianType) -> None:
        """Allocate what the objective needs. Called by solvers, after `set_batch_layout`.

        Args:
            model: The model.
            jacobian_mode: How Jacobians are computed.
        """

    def residual_dim(self) -> int:
        """Return the number of residuals.

        Raises:
            NotImplementedError: If a subclass does not give it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must give residual_dim(), the number of its residuals."
        )

    def compute_residuals(
        self,
        body_q: wp.array,
        joint_q: wp.array,
        model: Model,
        residuals: wp.array,
        start_idx: int,
        problem_idx: wp.array,
    ) -> None:
        """Write the residuals of this objective.

        Args:
            body_q: Poses of bodies [m, xyzw], shape [row, body].
            joint_q: Joint coordinates [m or rad], shape [row, coord].
            model: The model.
            residuals: Receives the residuals in the columns from `start_idx` on, shape [row, residual].
            start_idx: First column of this objective.
            problem_idx: Problem of each row, shape [row].

        Raises:
            NotImplementedError: If a subclass does not give it.
        """
        raise NotImplementedError(f"{type(self).__name__} must give compute_residuals().")

    def supports_analytic(self) -> bool:
        """Return whether `compute_jacobian_analytic` is given."""
        return type(self).compute_jacobian_analytic is not IKObjective.compute_jacobian_analytic

    def compute_jacobian_analytic(
        self,
        body_q: wp.array,
        joint_q: wp.array,
        model: Model,
        jacobian: wp.array,
        joint_S_s: wp.array,
        start_idx: int,
    ) -> None:
        """Write the Jacobian of this objective by its own formula.

        Args:
            body_q: Poses of bodies [m, xyzw], shape [row, body].
            joint_q: Joint coordinates [m or rad], shape [row, coord].
            model: The model.
            jacobian: Receives the derivatives in the rows from `start_idx` on, shape [row, residual, dof];
                zero before.
            joint_S_s: What each dof moves: velocity of the point at the world's origin, angular velocity, in
                world axes, shape [row, dof].
            start_idx: First residual of this objective.

        Raises:
            NotImplementedError: If a subclass does not give it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no compute_jacobian_analytic(). Take IKJacobianType.MIXED or "
            "AUTODIFF."
        )

    def compute_jacobian_autodiff(
        self, tape: wp.Tape, model: Model, jacobian: wp.array, start_idx: int, dq_dof: wp.array
    ) -> None:
        """Write the Jacobian of this objective by the adjoints of its kernels, one residual after the other.

        Args:
            tape: Tape on which `compute_residuals` was recorded. `tape.gradients[dq_dof]` is the gradient to
                the degrees of freedom after `tape.backward`. `tape.residuals` is the array that was written.
            model: The model.
            jacobian: Receives the derivatives in the rows from `start_idx` on, shape [row, residual, dof].
            start_idx: First residual of this objective.
            dq_dof: Step in the degrees of freedom about which derivatives are taken, shape [row, dof].
        """
        residuals: wp.array = tape.residuals  # type: ignore[attr-defined]
        for residual in range(start_idx, start_idx + self.residual_dim()):
            tape.zero()
            seed_rows(residual, residuals.grad)
            tape.backward()
            store_rows(residual, tape.gradients[dq_dof], jacobian)
        tape.zero()


class BuiltinObjective(IKObjective):
    """Base of the objectives of this package, which know rows and worlds and skip what is not due."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self._rows: Rows | None = None
        self._problems: Problems | None = None

    @property
    def weight(self) -> float:
        """Factor of the residuals."""
        return self._weight

    @weight.setter
    def weight(self, weight: float) -> None:
        self._weight = check_weight(weight, type(self).__name__)

    def attach(self, rows: Rows) -> None:
        """Take the rows of the next calls; one objective may belong to several solvers."""
        self._rows = rows

    def bind_problems(self, problems: Problems) -> None:
        """Take the problems.

        Raises:
            ValueError: If the objective does not fit them, or belongs to others.
        """
        mine = self._problems
        if mine is not None and not (
            mine.model is problems.model
            and mine.count == problems.count
            and mine.whole_model == problems.whole_model
            and np.array_equal(mine.worlds, problems.worlds)
        ):
            raise ValueError(
                f"{problems.what}: this {type(self).__name__} belongs to a solver of another model or other "
                "problems. Make one for each."
            )
        self._problems = problems
        self._fit()

    def check_targets(self, values: np.ndarray, what: str) -> None:
        """Check targets that are given as numbers, shape [target, number].

        Raises:
            ValueError: If one is none.
        """
        require_targets(values, np.isfinite(values).all(axis=1), what, "be finite")

    def _fit(self) -> None:
        """Check targets against the problems, and move them to the device of the model."""

    @property
    def problems(self) -> Problems:
        """The problems.

        Raises:
            RuntimeError: If no solver has the objective yet.
        """
        if self._problems is None:
            raise RuntimeError(
                f"{type(self).__name__} belongs to no solver yet: pass it to IKSolver(objectives=)."
            )
        return self._problems

    @property
    def rows(self) -> Rows:
        """The rows of the solver that calls."""
        assert self._rows is not None
        return self._rows


def check_weight(weight: Any, what: str) -> float:
    """Return a weight.

    Raises:
        ValueError: If it is negative or not finite.
    """
    value = float(weight)
    if not (np.isfinite(value) and value >= 0.0):
        raise ValueError(f"{what}: weight is {weight}, but must be finite and at least 0.")
    return value


def require_targets(values: np.ndarray, are_right: np.ndarray, what: str, duty: str) -> None:
    """Raise if a target is wrong; the message says that it must do its duty.

    Raises:
        ValueError: If so.
    """
    if not are_right.all():
        index = int(np.flatnonzero(~are_right)[0])
        raise ValueError(f"{what}[{index}] is {values[index].tolist()}, but must {duty}.")


def fit_targets(targets: Any, dtype: Any, objective: BuiltinObjective, name: str) -> wp.array:
    """Return targets as an array of shape [problem] on the device of the model, the given one if it is that.

    Args:
        targets: Warp array of vectors of the same size, or rows of numbers.
        dtype: Type of the entries.
        objective: Objective that they belong to.
        name: Name of the argument, for messages.

    Raises:
        ValueError: If shape, type or device differ, or, where they are given as numbers, one is not finite.
    """
    problems = objective.problems
    what = f"{type(objective).__name__}: {name}"
    size = dtype._length_
    if isinstance(targets, wp.array):
        width = getattr(targets.dtype, "_length_", 1)
        if (
            targets.ndim != 1
            or width != size
            or getattr(targets.dtype, "_wp_scalar_type_", targets.dtype) is not wp.float32
        ):
            raise ValueError(
                f"{what} is an array of {targets.dtype.__name__} of shape {targets.shape}, but must be an "
                f"array of {dtype.__name__} of shape ({problems.count},)."
            )
        if targets.device != problems.model.device:
            raise ValueError(f"{what} is on {targets.device}, but the model is on {problems.model.device}.")
        result: wp.array = targets if targets.dtype is dtype else targets.view(dtype)
    else:
        values = np.asarray(targets, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != size:
            raise ValueError(
                f"{what} has shape {values.shape}, but must have shape ({problems.count}, {size})."
            )
        objective.check_targets(values, what)
        result = wp.array(values, dtype=dtype, device=problems.model.device)
    if len(result) != problems.count:
        raise ValueError(f"{what} has {len(result)} entries, but there are {problems.count} problems.")
    return result


def check_problem(problem_idx: Any, objective: BuiltinObjective, what: str) -> int:
    """Return the index of a problem.

    Raises:
        IndexError: If there is no such problem.
    """
    count = objective.problems.count
    if not hasattr(problem_idx, "__index__") or not 0 <= int(problem_idx) < count:
        raise IndexError(
            f"{what}: problem_idx is {problem_idx!r}, but there are the problems 0 to {count - 1}."
        )
    return int(problem_idx)
