"""Joint-limit objective: coordinates stay between their limits."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.objective import BuiltinObjective
from pluriverse.ik.rows import Rows
from pluriverse.launch import launch_kernel
from pluriverse.model import Model
from pluriverse.model.arguments import check_array


@wp.kernel(module="pluriverse.ik.residuals")
def write_limit_residual(
    joint_q: wp.array2d[float],  # [row, coord] m or rad
    due: wp.array[int],  # [row] 0: leave the row as it is
    problem_idx: wp.array[int],  # [row]
    dof_coord: wp.array2d[int],  # [problem, dof] column in joint_q, -1 for none
    dof_first: wp.array[int],  # [problem] flat dof of column 0
    lower: wp.array[float],  # [dof] m or rad
    upper: wp.array[float],  # [dof] m or rad
    weight: float,
    start: int,
    residuals: wp.array2d[float],  # [row, residual] out
):
    """Write how far a coordinate is beyond its limits."""
    row, dof = wp.tid()
    if due[row] == 0:
        return
    problem = problem_idx[row]
    coord = dof_coord[problem, dof]
    violation = float(0.0)
    if coord >= 0:
        position = joint_q[row, coord]
        flat = dof_first[problem] + dof
        if position < lower[flat]:
            violation = lower[flat] - position
        elif position > upper[flat]:
            violation = position - upper[flat]
    residuals[row, start + dof] = weight * violation


@wp.kernel(enable_backward=False, module="pluriverse.ik.joint_limit")
def write_limit_jacobian(
    rows: Rows,
    joint_q: wp.array2d[float],  # [row, coord] m or rad
    dof_coord: wp.array2d[int],  # [problem, dof] column in joint_q, -1 for none
    dof_first: wp.array[int],  # [problem] flat dof of column 0
    lower: wp.array[float],  # [dof] m or rad
    upper: wp.array[float],  # [dof] m or rad
    weight: float,
    start: int,
    jacobian: wp.array3d[float],  # [row, residual, dof] out
):
    """Write the slopes of the residuals of a row."""
    row, _ = wp.tid()
    if rows.jacobian_due[row] == 0:
        return
    problem = rows.row_problem[row]
    for dof in range(jacobian.shape[2]):
        for other in range(jacobian.shape[2]):
            jacobian[row, start + dof, other] = 0.0
        coord = dof_coord[problem, dof]
        if coord >= 0:
            flat = dof_first[problem] + dof
            if joint_q[row, coord] < lower[flat]:
                jacobian[row, start + dof, dof] = -weight
            elif joint_q[row, coord] > upper[flat]:
                jacobian[row, start + dof, dof] = weight


class IKObjectiveJointLimit(BuiltinObjective):
    """Coordinates stay between limits: a residual per degree of freedom, how far it is beyond them.

    Balls, free and distance joints have no limits. The objective pulls; only with a weight above those of the
    others do limits win where not all can be met.

    Args:
        joint_limit_lower: Lower limits [m or rad], shape [joint_dof_count]. A Warp array is used as it is,
            and may be longer: that of a model of many copies of the robot begins with the limits of one.
        joint_limit_upper: Upper limits [m or rad], shape [joint_dof_count].
        weight: Factor of the residuals.

    Raises:
        ValueError: If the weight is negative.
    """

    def __init__(self, joint_limit_lower: Any, joint_limit_upper: Any, weight: float = 0.1) -> None:
        super().__init__(weight)
        self.joint_limit_lower = joint_limit_lower
        self.joint_limit_upper = joint_limit_upper

    def _fit(self) -> None:
        problems = self.problems
        for name in ("joint_limit_lower", "joint_limit_upper"):
            setattr(
                self, name, _fit_limits(getattr(self, name), problems.model, f"IKObjectiveJointLimit: {name}")
            )
        self._dof_coord, self._dof_first = problems.dof_coord, problems.dof_first

    def residual_dim(self) -> int:
        """Return the number of degrees of freedom of the largest problem."""
        return self.problems.dof_count

    def compute_residuals(
        self,
        body_q: wp.array,
        joint_q: wp.array,
        model: Model,
        residuals: wp.array,
        start_idx: int,
        problem_idx: wp.array,
    ) -> None:
        """Write how far coordinates are beyond their limits, of the rows that are due, times the weight."""
        launch_kernel(
            write_limit_residual,
            dim=(body_q.shape[0], self.residual_dim()),
            inputs=[
                joint_q,
                self.rows.place_due,
                problem_idx,
                self._dof_coord,
                self._dof_first,
                self.joint_limit_lower,
                self.joint_limit_upper,
                self.weight,
                start_idx,
            ],
            outputs=[residuals],
            device=model.device,
        )

    def compute_jacobian_analytic(
        self,
        body_q: wp.array,
        joint_q: wp.array,
        model: Model,
        jacobian: wp.array,
        joint_S_s: wp.array,
        start_idx: int,
    ) -> None:
        """Write the slopes: the weight above a limit, minus it below one, and 0 between."""
        launch_kernel(
            write_limit_jacobian,
            dim=body_q.shape[0],
            inputs=[
                self.rows,
                joint_q,
                self._dof_coord,
                self._dof_first,
                self.joint_limit_lower,
                self.joint_limit_upper,
                self.weight,
                start_idx,
            ],
            outputs=[jacobian],
            device=model.device,
        )


def _fit_limits(limits: Any, model: Model, what: str) -> wp.array:
    """Return limits as an array on the device of the model, the given one if it is that."""
    if isinstance(limits, wp.array):
        # Limits of a model of many copies of the robot begin with those of the first.
        mine = limits if limits.size < model.joint_dof_count else limits[: model.joint_dof_count]
        check_array(model, mine, (model.joint_dof_count,), wp.float32, what)
        return mine
    values = np.asarray(limits, dtype=np.float32)
    if values.shape != (model.joint_dof_count,):
        raise ValueError(f"{what} has shape {values.shape}, but must have shape ({model.joint_dof_count},).")
    if np.isnan(values).any():
        raise ValueError(f"{what}[{int(np.flatnonzero(np.isnan(values))[0])}] is not a number.")
    result: wp.array = wp.array(values, dtype=wp.float32, device=model.device)
    return result
