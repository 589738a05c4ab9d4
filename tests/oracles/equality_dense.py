"""Equality constraints of a dense problem: Jacobian, error and quadratic cost of each, in float64.

Added to the pairs of Jacobian and law of a `DenseProblem`, which asks a law for cost, impulse and Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from tests.oracles.multibody_dense import DenseWorld, rotation_matrix
from tests.oracles.sap_dense import DenseProblem, near_rigid_regularization

CONNECT, WELD, JOINT, HINGE, DISTANCE = range(5)
BETA_EQUALITY = 0.1


@dataclass
class EqualityLaw:
    """Cost 1/2 (v_hat - v)^T G (v_hat - v)."""

    v_hat: np.ndarray
    stiffness: np.ndarray
    """G, shape [row, row]."""

    def impulse(self, v: np.ndarray) -> np.ndarray:
        return self.stiffness @ (self.v_hat - v)

    def cost(self, v: np.ndarray) -> float:
        return 0.5 * float((self.v_hat - v) @ self.impulse(v))

    def hessian(self, v: np.ndarray) -> np.ndarray:
        return self.stiffness


@dataclass
class DistanceLaw:
    """One-sided springs at the bounds of a distance that grows at v; one spring where they are equal."""

    distance: float
    least: float
    most: float
    stiffness: float
    dt: float

    def _parts(self, v: float) -> list[tuple[float, float]]:
        """(sign of the impulse, missing speed) of each spring that pushes."""
        parts = []
        if self.least >= 0.0:
            parts.append((1.0, (self.least - self.distance) / (3.0 * self.dt) - v))
        if self.most >= 0.0 and self.most != self.least:
            parts.append((-1.0, (self.distance - self.most) / (3.0 * self.dt) + v))
        return [(sign, lack) for sign, lack in parts if lack > 0.0 or self.least == self.most]

    def impulse(self, v: np.ndarray) -> np.ndarray:
        return np.array([sum(self.stiffness * sign * lack for sign, lack in self._parts(float(v[0])))])

    def cost(self, v: np.ndarray) -> float:
        return sum(0.5 * self.stiffness * lack**2 for _, lack in self._parts(float(v[0])))

    def hessian(self, v: np.ndarray) -> np.ndarray:
        return self.stiffness * len(self._parts(float(v[0]))) * np.eye(1)


def _stiffness(jacobian: np.ndarray, a_diagonal: np.ndarray, size: float) -> float:
    """1 / R of rows that share one effective inverse mass, the Frobenius norm of J diag(A)^-1 J^T / size."""
    delassus = (jacobian / a_diagonal) @ jacobian.T
    if np.linalg.norm(delassus) < 1e-12:
        return 0.0  # the bodies cannot move so against each other
    return 1.0 / near_rigid_regularization(BETA_EQUALITY, float(np.linalg.norm(delassus)) / size)


def add_equality(problem: DenseProblem, dense: DenseWorld, first: int, end: int) -> None:
    """Add the equality constraints [first, end) of the model to the problem of their world."""
    model, dt = dense.model, dense.dt
    column = {
        name: getattr(model, f"equality_constraint_{name}").numpy()
        for name in (
            *("type", "body1", "body2", "anchor", "axis", "torquescale", "relpose"),
            *("joint1", "joint2", "joint1_axis", "joint2_axis", "polycoef", "enabled"),
        )
    }
    diagonal = np.diag(problem.a)
    for index in range(first, end):
        if not column["enabled"][index]:
            continue
        row = {name: values[index] for name, values in column.items()}
        if row["type"] == DISTANCE:
            jacobian, law = _distance_row(dense, row, diagonal)
            problem.jacobians.append(jacobian)
            problem.contacts.append(law)
            continue
        if row["type"] == JOINT:
            jacobian, error = _joint_row(dense, row)
            stiffness = np.array([[_stiffness(jacobian, diagonal, 1.0)]])
        else:
            jacobian, error, stiffness = _body_rows(dense, row, diagonal)
        problem.jacobians.append(jacobian)
        problem.contacts.append(EqualityLaw(-error / (2.0 * dt), stiffness))


def _distance_row(dense: DenseWorld, row: dict, diagonal: np.ndarray) -> tuple[np.ndarray, DistanceLaw]:
    model, joint = dense.model, int(row["joint1"])
    motions = [dense.motion[int(row["body1"])], dense.motion[int(row["body2"])]]
    if joint >= 0:
        places = [frames.numpy()[joint, :3].astype(float) for frames in (model.joint_X_p, model.joint_X_c)]
        first = model.joint_qd_start.numpy()[joint]
        bounds = [float(limit.numpy()[first]) for limit in (model.joint_limit_lower, model.joint_limit_upper)]
    else:
        relation, anchor = row["relpose"].astype(float), row["anchor"].astype(float)
        places = [anchor, rotation_matrix(relation[3:]).T @ (anchor - relation[:3])]
        bounds = [float(value) for value in row["polycoef"][:2]]
    points = [
        motion.position + motion.rotation @ place for motion, place in zip(motions, places, strict=True)
    ]
    apart = points[1] - points[0]
    line = apart / np.linalg.norm(apart)
    relative = motions[1].point_jacobian(points[1]) - motions[0].point_jacobian(points[0])
    jacobian = (line @ relative)[None]
    stiffness = _stiffness(jacobian, diagonal, 1.0)
    return jacobian, DistanceLaw(float(np.linalg.norm(apart)), *bounds, stiffness, dense.dt)


def _joint_row(dense: DenseWorld, row: dict) -> tuple[np.ndarray, np.ndarray]:
    q_start, qd_start = dense.model.joint_q_start.numpy(), dense.model.joint_qd_start.numpy()
    jacobian = np.zeros((1, dense.dof_count))
    jacobian[0, qd_start[row["joint1"]] + row["joint1_axis"] - dense.dof_start] = 1.0
    error = dense.q[q_start[row["joint1"]] + row["joint1_axis"]]
    polynomial = np.polynomial.Polynomial(row["polycoef"].astype(float))
    if row["joint2"] >= 0:
        x = dense.q[q_start[row["joint2"]] + row["joint2_axis"]]
        jacobian[0, qd_start[row["joint2"]] + row["joint2_axis"] - dense.dof_start] = -polynomial.deriv()(x)
        error -= polynomial(x)
    else:
        error -= polynomial(0.0)
    return jacobian, np.array([error])


def _body_rows(dense: DenseWorld, row: dict, diagonal: np.ndarray) -> tuple[np.ndarray, ...]:
    motion1, motion2 = dense.motion[int(row["body1"])], dense.motion[int(row["body2"])]
    relation, anchor = row["relpose"].astype(float), row["anchor"].astype(float)
    turn = rotation_matrix(relation[3:])
    points = {1: anchor, 2: turn.T @ (anchor - relation[:3])}
    if row["type"] == WELD:
        points = {1: relation[:3] + turn @ anchor, 2: anchor}
    place1 = motion1.position + motion1.rotation @ points[1]
    place2 = motion2.position + motion2.rotation @ points[2]
    linear = motion2.point_jacobian(place2) - motion1.point_jacobian(place1)
    angular = motion2.jacobian[:3] - motion1.jacobian[:3]
    held, misfit = np.zeros((3, 3)), np.zeros(3)
    if row["type"] == WELD:
        held = np.eye(3)
        misfit = Rotation.from_matrix(motion2.rotation @ (motion1.rotation @ turn).T).as_rotvec()
    if row["type"] == HINGE:
        axis = row["axis"].astype(float)
        axis /= np.linalg.norm(axis)
        axis1, axis2 = motion1.rotation @ axis, motion2.rotation @ turn.T @ axis
        held = np.eye(3) - np.outer(axis1, axis1)
        misfit = np.cross(axis1, axis2)
    stiffness = np.zeros((6, 6))
    stiffness[3:, 3:] = _stiffness(linear, diagonal, 3.0) * np.eye(3)
    if held.any():
        scale = float(row["torquescale"]) * _stiffness(held @ angular, diagonal, np.trace(held))
        stiffness[:3, :3] = scale * held
    return np.vstack([angular, linear]), np.concatenate([misfit, place2 - place1]), stiffness
