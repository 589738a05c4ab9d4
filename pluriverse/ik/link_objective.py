"""Objectives of a link: three residuals that compare a part of its pose with a target."""

import abc
from typing import Any, ClassVar

import numpy as np
import warp as wp

from pluriverse.ik.objective import BuiltinObjective, check_problem, fit_targets
from pluriverse.launch import launch_kernel
from pluriverse.model import Model


class LinkObjective(BuiltinObjective, abc.ABC):
    """Three residuals of a link in each problem. Subclasses give the kernels and what these read of the link.

    Args:
        link_index: Body of the model; with worlds that differ one for each problem, shape [problem].
        weight: Factor of the residuals.

    Raises:
        ValueError: If the weight is negative.
    """

    residual_kernel: ClassVar[wp.Kernel]
    """Writes the residuals of a row."""
    jacobian_kernel: ClassVar[wp.Kernel]
    """Writes the derivatives of a row."""
    target_name: ClassVar[str]
    """Attribute that has the targets."""
    target_type: ClassVar[Any]
    """Type of a target."""

    def __init__(self, link_index: Any, weight: float) -> None:
        super().__init__(weight)
        self.link_index = link_index

    @abc.abstractmethod
    def _residual_inputs(self) -> list[Any]:
        """Return what the residuals are made of, besides the pose of the link."""

    @abc.abstractmethod
    def _jacobian_inputs(self) -> list[Any]:
        """Return what the derivatives are made of, besides the pose of the link."""

    def _fit(self) -> None:
        targets = getattr(self, self.target_name)
        setattr(self, self.target_name, fit_targets(targets, self.target_type, self, self.target_name))
        self._link, self._link_world, self._link_node = self.problems.find_links(
            self.link_index, type(self).__name__
        )

    def _set_target(self, problem_idx: int, target: Any, what: str) -> None:
        """Change the target of one problem; `what` is the method that was called."""
        problem = check_problem(problem_idx, self, what)
        kind = self.target_type
        values = np.asarray(target, dtype=np.float32)
        if values.shape != (kind._length_,):
            raise ValueError(
                f"{type(self).__name__}.{what}: the target has shape {values.shape}, but must have "
                f"{kind._length_} numbers."
            )
        self.check_targets(values[None], f"{type(self).__name__}.{what}: target")
        getattr(self, self.target_name)[problem : problem + 1].fill_(kind(*values.tolist()))

    def _set_targets(self, targets: Any, name: str) -> None:
        """Change the targets of all problems; `name` is that of the argument."""
        wp.copy(getattr(self, self.target_name), fit_targets(targets, self.target_type, self, name))

    def residual_dim(self) -> int:
        """Return 3."""
        return 3

    def compute_residuals(
        self,
        body_q: wp.array,
        joint_q: wp.array,
        model: Model,
        residuals: wp.array,
        start_idx: int,
        problem_idx: wp.array,
    ) -> None:
        """Write the errors of the rows that are due, times the weight."""
        launch_kernel(
            self.residual_kernel,
            dim=body_q.shape[0],
            inputs=[
                body_q,
                self.rows.place_due,
                problem_idx,
                self._link,
                *self._residual_inputs(),
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
        """Write the rates of the errors at unit velocities of the dofs, times the weight."""
        launch_kernel(
            self.jacobian_kernel,
            dim=body_q.shape[0],
            inputs=[
                self.rows,
                model.topology,
                body_q,
                joint_S_s,
                self._link,
                self._link_world,
                self._link_node,
                *self._jacobian_inputs(),
                self.weight,
                start_idx,
            ],
            outputs=[jacobian],
            device=model.device,
        )
