"""Rotation objective: a frame of a link has a target orientation.

With R the orientation of the frame and R_t its target, the residual is the rotation vector e of R R_t^T, in
world axes. A turn of the frame by a small w changes it by J_l(e)^-1 w ([Sola2017] eq. 146).
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.link_objective import LinkObjective
from pluriverse.ik.link_path import next_above, node_dofs, row_dof
from pluriverse.ik.objective import require_targets
from pluriverse.ik.rows import Rows
from pluriverse.model import Topology

# Square of the sine of half the angle below which 2 atan2(s, c) / s is a two-term series. The first dropped
# term is 3 s**4 / 20 = 1.5e-9 of the value, under float32 rounding.
SINE_SQUARE_SERIES = wp.constant(1.0e-4)
# Square of the angle [rad^2] below which the coefficient of J_l^-1 is 1/12: the next term is 1.4e-6 of J.
ANGLE_SQUARE_SERIES = wp.constant(1.0e-3)
# Least sine of half the angle: J_l^-1 has a pole at a full turn, where the rotation vector has no derivative.
SINE_MIN = wp.constant(1.0e-3)


@wp.func
def rotation_error(rotation: wp.quat, target: wp.vec4, canonical: int) -> wp.vec3:
    """Return the rotation vector [rad] of R R_t^T; with `canonical` along the shorter way."""
    aim = wp.normalize(wp.quat(target[0], target[1], target[2], target[3]))
    error = rotation * wp.quat_inverse(aim)
    sine = wp.vec3(error[0], error[1], error[2])
    cosine = error[3]
    if canonical != 0 and cosine < 0.0:
        sine = -sine
        cosine = -cosine
    square = wp.dot(sine, sine)
    if square < SINE_SQUARE_SERIES and cosine > 0.0:
        return (2.0 + square / 3.0) * sine
    length = wp.sqrt(square)
    return (2.0 * wp.atan2(length, cosine) / wp.max(length, SINE_MIN * SINE_MIN)) * sine


@wp.kernel(module="pluriverse.ik.residuals")
def write_rotation_residual(
    body_q: wp.array2d[wp.transform],  # [row, body] m, xyzw
    due: wp.array[int],  # [row] 0: leave the row as it is
    problem_idx: wp.array[int],  # [row]
    link: wp.array[int],  # [problem] column in body_q
    offset: wp.quat,  # frame in the link
    target: wp.array[wp.vec4],  # [problem] xyzw
    canonical: int,
    weight: float,
    start: int,
    residuals: wp.array2d[float],  # [row, residual] out
):
    """Write the rotation error of the link in a row."""
    row, _ = wp.tid()
    if due[row] == 0:
        return
    problem = problem_idx[row]
    rotation = wp.transform_get_rotation(body_q[row, link[problem]]) * offset
    error = weight * rotation_error(rotation, target[problem], canonical)
    residuals[row, start] = error[0]
    residuals[row, start + 1] = error[1]
    residuals[row, start + 2] = error[2]


@wp.kernel(enable_backward=False, module="pluriverse.ik.link_jacobians")
def write_rotation_jacobian(
    rows: Rows,
    topology: Topology,
    body_q: wp.array2d[wp.transform],  # [row, body] m, xyzw
    joint_S_s: wp.array2d[wp.spatial_vector],  # [row, dof]
    link: wp.array[int],  # [problem] column in body_q
    link_world: wp.array[int],  # [problem]
    link_node: wp.array[int],  # [problem] template-local
    offset: wp.quat,  # frame in the link
    target: wp.array[wp.vec4],  # [problem] xyzw
    canonical: int,
    weight: float,
    start: int,
    jacobian: wp.array3d[float],  # [row, residual, dof] out
):
    """Write the rates of the rotation error of the link in a row."""
    row, _ = wp.tid()
    if rows.jacobian_due[row] == 0:
        return
    problem = rows.row_problem[row]
    world = link_world[problem]
    rotation = wp.transform_get_rotation(body_q[row, link[problem]]) * offset
    error = rotation_error(rotation, target[problem], canonical)
    # J_l^-1 w = w - e x w / 2 + c e x (e x w)
    square = wp.dot(error, error)
    coefficient = float(1.0 / 12.0)
    if square > ANGLE_SQUARE_SERIES:
        half = 0.5 * wp.sqrt(square)
        sine = wp.sin(half)
        if wp.abs(sine) < SINE_MIN:
            sine = SINE_MIN
        coefficient = (1.0 - half * wp.cos(half) / sine) / square
    for dof in range(jacobian.shape[2]):
        for k in range(3):
            jacobian[row, start + k, dof] = 0.0
    node = link_node[problem]
    while node >= 0:
        dof = row_dof(rows, topology, problem, world, node)
        for axis in range(dof, dof + node_dofs(topology, world, node)):
            turn = wp.spatial_bottom(joint_S_s[row, axis])
            side = wp.cross(error, turn)
            change = weight * (turn - 0.5 * side + coefficient * wp.cross(error, side))
            for k in range(3):
                jacobian[row, start + k, axis] = change[k]
        node = next_above(topology, world, node)


class IKObjectiveRotation(LinkObjective):
    """A frame of a link has a target orientation: the residual is a rotation vector [rad], three numbers.

    Args:
        link_index: Body of the model; with worlds that differ one for each problem, shape [problem].
        link_offset_rotation: Orientation of the frame in the link, xyzw.
        target_rotations: Target orientations in the world, xyzw, shape [problem]. A Warp array is used as it
            is: what is written to it holds from the next solve on. Any length but 0 will do.
        canonicalize_quat_err: Whether the residual is the shorter of the two turns to the target. If False,
            it may be up to a full turn, by the signs of the quaternions.
        weight: Factor of the residual.

    Raises:
        ValueError: If the weight is negative or an orientation no rotation.
    """

    residual_kernel = write_rotation_residual
    jacobian_kernel = write_rotation_jacobian
    target_name = "target_rotations"
    target_type = wp.vec4f

    def __init__(
        self,
        link_index: Any,
        link_offset_rotation: Any,
        target_rotations: Any,
        canonicalize_quat_err: bool = True,
        weight: float = 1.0,
    ) -> None:
        super().__init__(link_index, weight)
        values = np.array([float(value) for value in link_offset_rotation])
        if values.shape != (4,) or not np.isfinite(values).all() or not np.linalg.norm(values) > 0.0:
            raise ValueError(
                f"IKObjectiveRotation: link_offset_rotation is {values.tolist()}, but must be a quaternion "
                "xyzw; (0, 0, 0, 1) is the frame of the link itself."
            )
        self.link_offset_rotation = wp.quat(*(values / np.linalg.norm(values)))
        self.target_rotations = target_rotations
        self.canonicalize_quat_err = bool(canonicalize_quat_err)

    def check_targets(self, values: np.ndarray, what: str) -> None:
        """Check quaternions that are given as numbers, shape [target, 4].

        Raises:
            ValueError: If one is not finite, or has the length 0.
        """
        super().check_targets(values, what)
        duty = "be a rotation, a quaternion xyzw of any length but 0; (0, 0, 0, 1) is the frame of the world"
        require_targets(values, values.any(axis=1), what, duty)

    def _residual_inputs(self) -> list[Any]:
        return [self.link_offset_rotation, self.target_rotations, int(self.canonicalize_quat_err)]

    def _jacobian_inputs(self) -> list[Any]:
        return self._residual_inputs()

    def set_target_rotation(self, problem_idx: int, new_rotation: Any) -> None:
        """Change the target of one problem.

        Args:
            problem_idx: Problem.
            new_rotation: Target orientation in the world, xyzw.

        Raises:
            IndexError: If there is no such problem.
            ValueError: If these are not four finite numbers, or all of them 0.
            RuntimeError: If no solver has the objective yet.
        """
        self._set_target(problem_idx, new_rotation, "set_target_rotation")

    def set_target_rotations(self, new_rotations: Any) -> None:
        """Change the targets of all problems.

        Args:
            new_rotations: Target orientations in the world, xyzw, shape [problem].

        Raises:
            ValueError: If their number, type or device differs, numbers are not finite, or a
                quaternion has the length 0.
            RuntimeError: If no solver has the objective yet.
        """
        self._set_targets(new_rotations, "new_rotations")
