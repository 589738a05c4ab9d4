"""Position objective: a point of a link is at a target."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.link_objective import LinkObjective
from pluriverse.ik.link_path import next_above, node_dofs, row_dof
from pluriverse.ik.rows import Rows
from pluriverse.model import Topology


@wp.kernel(module="pluriverse.ik.residuals")
def write_position_residual(
    body_q: wp.array2d[wp.transform],  # [row, body] m, xyzw
    due: wp.array[int],  # [row] 0: leave the row as it is
    problem_idx: wp.array[int],  # [row]
    link: wp.array[int],  # [problem] column in body_q
    offset: wp.vec3,  # m, link frame
    target: wp.array[wp.vec3],  # [problem] m
    weight: float,
    start: int,
    residuals: wp.array2d[float],  # [row, residual] out
):
    """Write the position error of the link in a row."""
    row, _ = wp.tid()
    if due[row] == 0:
        return
    problem = problem_idx[row]
    error = weight * (wp.transform_point(body_q[row, link[problem]], offset) - target[problem])
    residuals[row, start] = error[0]
    residuals[row, start + 1] = error[1]
    residuals[row, start + 2] = error[2]


@wp.kernel(enable_backward=False, module="pluriverse.ik.link_jacobians")
def write_position_jacobian(
    rows: Rows,
    topology: Topology,
    body_q: wp.array2d[wp.transform],  # [row, body] m, xyzw
    joint_S_s: wp.array2d[wp.spatial_vector],  # [row, dof]
    link: wp.array[int],  # [problem] column in body_q
    link_world: wp.array[int],  # [problem]
    link_node: wp.array[int],  # [problem] template-local
    offset: wp.vec3,  # m, link frame
    weight: float,
    start: int,
    jacobian: wp.array3d[float],  # [row, residual, dof] out
):
    """Write the velocities of the point of the link in a row."""
    row, _ = wp.tid()
    if rows.jacobian_due[row] == 0:
        return
    problem = rows.row_problem[row]
    world = link_world[problem]
    point = wp.transform_point(body_q[row, link[problem]], offset)
    for dof in range(jacobian.shape[2]):
        for k in range(3):
            jacobian[row, start + k, dof] = 0.0
    node = link_node[problem]
    while node >= 0:
        dof = row_dof(rows, topology, problem, world, node)
        for axis in range(dof, dof + node_dofs(topology, world, node)):
            motion = joint_S_s[row, axis]
            velocity = weight * (wp.spatial_top(motion) + wp.cross(wp.spatial_bottom(motion), point))
            for k in range(3):
                jacobian[row, start + k, axis] = velocity[k]
        node = next_above(topology, world, node)


class IKObjectivePosition(LinkObjective):
    """A point of a link is at a target: the residual is its position less that of the target, three numbers.

    Args:
        link_index: Body of the model; with worlds that differ one for each problem, shape [problem].
        link_offset: Point in the frame of the link [m].
        target_positions: Targets in world axes [m], shape [problem]. A Warp array is used as it is: what is
            written to it holds from the next solve on.
        weight: Factor of the residual.

    Raises:
        ValueError: If the weight is negative or the point not finite.
    """

    residual_kernel = write_position_residual
    jacobian_kernel = write_position_jacobian
    target_name = "target_positions"
    target_type = wp.vec3f

    def __init__(self, link_index: Any, link_offset: Any, target_positions: Any, weight: float = 1.0) -> None:
        super().__init__(link_index, weight)
        self.link_offset = wp.vec3(*(float(value) for value in link_offset))
        if not np.isfinite(np.array(self.link_offset)).all():
            raise ValueError(f"IKObjectivePosition: link_offset is {self.link_offset}, but must be finite.")
        self.target_positions = target_positions

    def _residual_inputs(self) -> list[Any]:
        return [self.link_offset, self.target_positions]

    def _jacobian_inputs(self) -> list[Any]:
        return [self.link_offset]

    def set_target_position(self, problem_idx: int, new_position: Any) -> None:
        """Change the target of one problem.

        Args:
            problem_idx: Problem.
            new_position: Target in world axes [m].

        Raises:
            IndexError: If there is no such problem.
            ValueError: If these are not three finite numbers.
            RuntimeError: If no solver has the objective yet.
        """
        self._set_target(problem_idx, new_position, "set_target_position")

    def set_target_positions(self, new_positions: Any) -> None:
        """Change the targets of all problems.

        Args:
            new_positions: Targets in world axes [m], shape [problem].

        Raises:
            ValueError: If their number, type or device differs, or numbers are not finite.
            RuntimeError: If no solver has the objective yet.
        """
        self._set_targets(new_positions, "new_positions")
