"""Contacts with rolling and torsional friction in the dense problem, as an oracle for `torsional_friction`.

The projection on the elliptic cone is found by a bracketed root of its distance condition, and the Hessian
from the bordered system of its optimality conditions; the package does either in another way.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from tests.oracles.multibody_dense import DenseWorld
from tests.oracles.sap_dense import ContactLaw, DenseProblem, contact_frame


class PatchLaw:
    """A contact's projection of its unconstrained impulse (t1, t2, n, r1, r2, s) onto the elliptic cone."""

    def __init__(self, law: ContactLaw, rolling: float, torsional: float, weight_angular: float):
        self.phi0, self.weight = law.phi0, law.weight
        r_a = law.sigma * weight_angular
        self.r = np.array([law.r_t, law.r_t, law.r_n, r_a, r_a, r_a])
        self.mu = np.array([law.mu, law.mu, 0.0, rolling, rolling, torsional])
        self.v_hat = np.append(law.v_hat, np.zeros(3))
        self.tangents = np.flatnonzero(self.mu > 1e-12)

    def _project(self, v_c: np.ndarray) -> tuple[np.ndarray, float | None]:
        """The impulse, and on the cone the multiplier of 1/2 (sum (gamma_i / mu_i)^2 - gamma_n^2) <= 0."""
        y = (self.v_hat - v_c) / self.r
        i = self.tangents
        impulse = np.zeros(6)
        if y[2] >= 0.0 and np.linalg.norm(y[i] / self.mu[i]) <= y[2]:
            impulse[i], impulse[2] = y[i], y[2]
            return impulse, None
        if np.linalg.norm(self.mu[i] * self.r[i] * y[i]) <= -self.r[2] * y[2]:
            return impulse, None

        def tangent(kappa: float) -> np.ndarray:
            return y[i] * self.r[i] / (self.r[i] + kappa / self.mu[i] ** 2)

        def excess(kappa: float) -> float:
            return np.linalg.norm(tangent(kappa) / self.mu[i]) * (self.r[2] - kappa) - self.r[2] * y[2]

        high = self.r[2]
        while y[2] < 0.0 and excess(high) > 0.0:
            high *= 2.0
        kappa = brentq(excess, 0.0, high, xtol=1e-300, rtol=8.9e-16, maxiter=1000)
        impulse[i] = tangent(kappa)
        impulse[2] = np.linalg.norm(impulse[i] / self.mu[i])
        return impulse, kappa

    def impulse(self, v_c: np.ndarray) -> np.ndarray:
        return self._project(v_c)[0]

    def cost(self, v_c: np.ndarray) -> float:
        impulse = self.impulse(v_c)
        return 0.5 * float(impulse @ (self.r * impulse))

    def hessian(self, v_c: np.ndarray) -> np.ndarray:
        impulse, kappa = self._project(v_c)
        used = np.append(self.tangents, 2)
        hessian = np.zeros((6, 6))
        if not impulse.any():
            return hessian
        if kappa is None:
            hessian[used, used] = 1.0 / self.r[used]
            return hessian
        curvature = np.append(1.0 / self.mu[self.tangents] ** 2, -1.0)
        bordered = np.zeros((len(used) + 1, len(used) + 1))
        bordered[:-1, :-1] = np.diag(self.r[used] + kappa * curvature)
        bordered[-1, :-1] = bordered[:-1, -1] = curvature * impulse[used]
        hessian[np.ix_(used, used)] = np.linalg.inv(bordered)[:-1, :-1]
        return hessian


def add_moments(problem: DenseProblem, dense: DenseWorld, contacts) -> None:
    """Replace the contacts of a problem by those that resist turning too, with the model's coefficients."""
    model = dense.model
    first = int(contacts.rigid_contact_start.numpy()[dense.world])
    rolling = model.shape_material_mu_rolling.numpy().astype(float)
    torsional = model.shape_material_mu_torsional.numpy().astype(float)
    for place, law in enumerate(problem.contacts):
        slot = first + place
        shapes = [int(getattr(contacts, f"rigid_contact_shape{side}").numpy()[slot]) for side in (0, 1)]
        bodies = [int(model.shape_body.numpy()[shape]) for shape in shapes]
        weight = 0.0
        turning = np.zeros_like(problem.jacobians[place])
        for body, sign in zip(bodies, (-1.0, 1.0), strict=True):
            jacobian = dense.motion[body].jacobian
            if body >= 0 and jacobian.any():
                inertia = model.body_inertia.numpy()[body].astype(float)
                weight += np.trace(np.linalg.inv(inertia)) / 3.0
                turning += sign * jacobian[:3]
        frame = contact_frame(_normal(contacts, slot))
        pair = [_harmonic(values[shapes]) for values in (rolling, torsional)]
        problem.contacts[place] = PatchLaw(law, *pair, weight)
        problem.jacobians[place] = np.vstack([problem.jacobians[place], frame.T @ turning])


def _normal(contacts, slot: int) -> np.ndarray:
    normal = contacts.rigid_contact_normal.numpy()[slot].astype(float)
    return normal / np.linalg.norm(normal)


def _harmonic(values: np.ndarray) -> float:
    return 2.0 * values.prod() / values.sum() if values.sum() > 0.0 else 0.0
