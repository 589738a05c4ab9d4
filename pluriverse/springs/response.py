"""Step response: what joints do in a solver step without further forces, for forces that are implicit.

Reads   joint state, drives, mass matrix and bias forces of articulations
Writes  mass matrices and bias forces
"""

import abc
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics import eval_inverse_dynamics, eval_mass_matrix
from pluriverse.dynamics.articulation_query import articulation_query
from pluriverse.simulation import Simulation, StepStage
from pluriverse.solvers.base import SolverBase
from pluriverse.types import JointTargetMode

# Pivot of the mass matrix [relative to its diagonal] below which a direction counts as without inertia.
PIVOT_MIN = wp.constant(wp.float64(1.0e-12))


@wp.struct
class MotionArrays:
    """Bias forces and drives of the degrees of freedom of the model; see `Model` and `Control`."""

    bias: wp.array[wp.float64]
    coord: wp.array[int]
    joint_q: wp.array[float]
    joint_qd: wp.array[float]
    mode: wp.array[int]
    ke: wp.array[float]
    kd: wp.array[float]
    damping: wp.array[float]
    limit: wp.array[float]
    target_pos: wp.array[float]
    target_vel: wp.array[float]
    act: wp.array[float]


@wp.func
def free_impulse(motion: MotionArrays, dof: int, h: wp.float64) -> wp.vec2d:
    """Return the impulse on a degree of freedom in a step without springs, and what its drive adds to M."""
    v = wp.float64(motion.joint_qd[dof])
    mode = motion.mode[dof]
    effort = wp.float64(0.0)
    gain = wp.float64(motion.damping[dof])
    if mode != JointTargetMode.NONE:
        effort = wp.float64(motion.act[dof])
    if mode == JointTargetMode.POSITION:
        ke = wp.float64(motion.ke[dof])
        kd = wp.float64(motion.kd[dof])
        gain += kd + h * ke
        way = wp.float64(motion.target_pos[dof]) - wp.float64(motion.joint_q[motion.coord[dof]])
        effort += ke * (way - h * v) - kd * v
    if mode == JointTargetMode.VELOCITY:
        gain += wp.float64(motion.kd[dof])
        effort += wp.float64(motion.kd[dof]) * (wp.float64(motion.target_vel[dof]) - v)
    limit = wp.float64(motion.limit[dof])
    if wp.abs(effort) > limit:
        effort = wp.clamp(effort, -limit, limit)
        gain = wp.float64(motion.damping[dof])
    return wp.vec2d(h * (effort - motion.bias[dof]), h * gain)


@wp.func
def factor_response(
    mass_matrix: wp.array3d[wp.float64],  # [articulation, dof, dof]
    motion: MotionArrays,
    articulation: int,
    first_dof: int,
    count: int,
    h: wp.float64,
    index: int,
    row: int,
    factor: wp.array3d[wp.float64],  # [index, dof, dof]
    rows: wp.array3d[wp.float64],  # [index, row, dof]
):
    """Write the Cholesky factor of the mass matrix with drives, and the free impulse solved with it."""
    for i in range(count):
        impulse = free_impulse(motion, first_dof + i, h)
        for j in range(i + 1):
            total = mass_matrix[articulation, i, j]
            if i == j:
                total += impulse[1]
            for k in range(j):
                total -= factor[index, i, k] * factor[index, j, k]
            if i == j:
                total = wp.sqrt(wp.max(total, PIVOT_MIN * mass_matrix[articulation, i, i]))
            else:
                total /= factor[index, j, j]
            factor[index, i, j] = total
        value = impulse[0]
        for k in range(i):
            value -= factor[index, i, k] * rows[index, row, k]
        rows[index, row, i] = value / factor[index, i, i]


@wp.func
def solve_rows(
    system: wp.array3d[wp.float64],  # [index, row, row + 1]
    index: int,
    count: int,
):
    """Solve for the last column, in its place, without pivots: for eigenvalues of 1 or more."""
    for i in range(count):
        for row in range(i + 1, count):
            ratio = system[index, row, i] / system[index, i, i]
            for j in range(i, count + 1):
                system[index, row, j] = system[index, row, j] - ratio * system[index, i, j]
    for back in range(count):
        i = count - 1 - back
        value = system[index, i, count]
        for j in range(i + 1, count):
            value -= system[index, i, j] * system[index, j, count]
        system[index, i, count] = value / system[index, i, i]


class StepResponse:
    """Mass matrices and bias forces of the articulations of a simulation, in double precision.

    Args:
        simulation: The simulation.
    """

    def __init__(self, simulation: Simulation):
        self.simulation = simulation
        """The simulation."""
        self.mass_matrix: wp.array | None = None
        """Mass matrix of each articulation, shape [articulation, dof, dof]."""
        self.bias: wp.array | None = None
        """Force that keeps each degree of freedom from accelerating [N or N·m], shape [dof]."""

    def evaluate(self, worlds: wp.array[int]) -> None:
        """Compute both for the articulations of some worlds, at the state now."""
        model, state = self.simulation.model, self.simulation.state
        if self.mass_matrix is None:
            shape = _matrix_shape(model)
            self.mass_matrix = wp.zeros((shape[0], shape[2], shape[2]), dtype=wp.float64, device=model.device)
            self._no_acceleration = wp.zeros(model.joint_dof_count, dtype=wp.float64, device=model.device)
            self.bias = wp.zeros(model.joint_dof_count, dtype=wp.float64, device=model.device)
            self._coord = wp.array(_dof_coords(model), dtype=wp.int32, device=model.device)
        eval_mass_matrix(model, state, self.mass_matrix, worlds=worlds)
        eval_inverse_dynamics(model, state, self._no_acceleration, self.bias, worlds=worlds)

    def motion(self) -> MotionArrays:
        """Return what `free_impulse` reads."""
        simulation = self.simulation
        model, state, control = simulation.model, simulation.state, simulation.control
        motion = MotionArrays()
        motion.bias, motion.coord = self.bias, self._coord
        motion.joint_q, motion.joint_qd = state.joint_q, state.joint_qd
        motion.mode, motion.ke, motion.kd = (
            model.joint_target_mode,
            model.joint_target_ke,
            model.joint_target_kd,
        )
        motion.damping, motion.limit = model.joint_damping, model.joint_effort_limit
        motion.target_pos, motion.target_vel = control.joint_target_pos, control.joint_target_vel
        motion.act = control.joint_act
        return motion


class Springs(StepStage, abc.ABC):
    """Springs of a simulation, added to every solver step; a base class.

    The matrices of all articulations are evaluated at once, so it runs between replays and not in them.

    Args:
        simulation: The simulation.
    """

    is_recorded = False

    def __init__(self, simulation: Simulation):
        self.response = StepResponse(simulation)
        """How joints move without the springs."""
        self.is_term = False
        """Whether they are terms of the solver, so that there is nothing to do between steps."""

    def attach(self, simulation: Simulation) -> None:
        """Act in another simulation of the same model."""
        self.response.simulation = simulation
        self.is_term = self.give_to(simulation.solver)
        if not self.is_term:
            self.allocate()

    @abc.abstractmethod
    def give_to(self, solver: SolverBase) -> bool:
        """Give the springs to a solver; return whether it takes them as terms."""

    @abc.abstractmethod
    def allocate(self) -> None:
        """Make the scratch of the stage."""


def jacobian_array(model: Any) -> wp.array:
    """Return an array for the Jacobians of all articulations, shape [articulation, 6 link, dof]."""
    count, links, dofs = _matrix_shape(model)
    return wp.zeros((count, 6 * links, dofs), dtype=wp.float64, device=model.device)


def _matrix_shape(model: Any) -> tuple[int, int, int]:
    """Return the numbers of articulations, and the largest ones of links and degrees of freedom."""
    query = articulation_query(model)
    return model.articulation_count, query.link_count_max, query.dof_count_max


def _dof_coords(model: Any) -> np.ndarray:
    """Return the coordinate of each degree of freedom; the first of its joint where it has none."""
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    coords = np.zeros(model.joint_dof_count, dtype=np.int32)
    for joint in range(model.joint_count):
        dofs, count = np.arange(qd_start[joint], qd_start[joint + 1]), q_start[joint + 1] - q_start[joint]
        own = count == len(dofs)
        coords[dofs] = q_start[joint] + (dofs - qd_start[joint] if own else 0)
    return coords
