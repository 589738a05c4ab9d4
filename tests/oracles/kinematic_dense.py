"""Kinematic roots in a dense problem: their velocities are data, and only the others are unknown.

With the accelerations of the prescribed degrees of freedom K given, those of the others follow from their
own rows of the equations of motion, A_DD dv_D = dt f_D - A_DK dv_K. A term of the objective that K moves,
too, sees its velocity as a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse import BodyFlags
from tests.oracles.multibody_dense import (
    DISTANCE,
    FREE,
    POSITION,
    POSITION_VELOCITY,
    VELOCITY,
    DenseWorld,
)
from tests.oracles.sap_dense import DenseProblem

INFINITE_MASS = 1e30
"""Diagonal of A from which terms take their effective masses; of a prescribed dof."""


@dataclass
class ShiftedLaw:
    """A law of the velocity J v + shift."""

    law: Any
    shift: np.ndarray

    def impulse(self, v: np.ndarray) -> np.ndarray:
        return self.law.impulse(v + self.shift)

    def cost(self, v: np.ndarray) -> float:
        return self.law.cost(v + self.shift)

    def hessian(self, v: np.ndarray) -> np.ndarray:
        return self.law.hessian(v + self.shift)


def prescribed_motion(dense: DenseWorld, control) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which dofs are prescribed, their velocities at the end of the step, and how much these change by."""
    model, dt = dense.model, dense.dt
    prescribed = np.zeros(dense.dof_count, dtype=bool)
    velocity, change = dense.v0.copy(), np.zeros(dense.dof_count)
    mode = model.joint_target_mode.numpy()
    target_pos, target_vel = control.joint_target_pos.numpy(), control.joint_target_vel.numpy()
    flags, children = model.body_flags.numpy(), model.joint_child.numpy()
    for joint in dense.joints:
        child = int(children[joint])
        if not flags[child] & BodyFlags.KINEMATIC:
            continue
        start, end = (int(value) for value in model.joint_qd_start.numpy()[joint : joint + 2])
        coord = int(model.joint_q_start.numpy()[joint])
        scalar = model.joint_q_start.numpy()[joint + 1] - coord == end - start
        rate = dense.qd[start:end].copy()
        for dof in range(start, end):
            if mode[dof] in (VELOCITY, POSITION_VELOCITY):
                rate[dof - start] = target_vel[dof]
            elif mode[dof] == POSITION and scalar:
                rate[dof - start] = (float(target_pos[dof]) - dense.q[coord + dof - start]) / dt
        step = rate - dense.qd[start:end]
        dofs = slice(start - dense.dof_start, end - dense.dof_start)
        prescribed[dofs] = True
        velocity[dofs], change[dofs] = rate, step
        if model.joint_type.numpy()[joint] in (FREE, DISTANCE):
            motion = dense.motion[child]
            com = motion.rotation @ model.body_com.numpy()[child].astype(float)
            omega = motion.omega
            velocity[dofs] = [*rate[3:], *(rate[:3] - np.cross(rate[3:], com))]
            turning = np.cross(step[3:], com) + dt * np.cross(omega, np.cross(omega, com))
            change[dofs] = [*step[3:], *(step[:3] - turning)]
    return prescribed, velocity, change


def prescribe(problem: DenseProblem, dense: DenseWorld, control) -> np.ndarray:
    """Give the prescribed dofs their motion before terms are added; return which these are."""
    prescribed, velocity, change = prescribed_motion(dense, control)
    others = ~prescribed
    impulse = dense.a @ (dense.v_star - dense.v0)
    impulse -= dense.a[:, prescribed] @ change[prescribed]
    inner = np.ix_(others, others)
    problem.v_star = velocity.copy()
    problem.v_star[others] = dense.v0[others] + np.linalg.solve(dense.a[inner], impulse[others])
    problem.v0 = np.where(prescribed, velocity, dense.v0)
    a = np.diag(np.where(prescribed, INFINITE_MASS, 0.0))
    a[inner] = dense.a[inner]
    problem.a = a
    return prescribed


def take_out(problem: DenseProblem, prescribed: np.ndarray) -> None:
    """Make the motion of prescribed dofs constants of the terms, once all terms are there."""
    velocity = problem.v_star[prescribed]
    shifts = [jacobian[:, prescribed] @ velocity for jacobian in problem.jacobians]
    problem.contacts = [ShiftedLaw(law, shift) for law, shift in zip(problem.contacts, shifts, strict=True)]
    problem.jacobians = [np.where(prescribed, 0.0, jacobian) for jacobian in problem.jacobians]
    problem.joint_terms = [(dof, law) for dof, law in problem.joint_terms if not prescribed[dof]]
    problem.a[prescribed, prescribed] = 1.0
    problem.v_star[prescribed] = 0.0
