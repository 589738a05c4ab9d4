"""The convex contact problem of one world, dense and in float64, as an oracle for `SolverSAP`.

    l(v) = 1/2 (v - v*)^T A (v - v*) + sum contacts lc(J v) + sum dofs [ld(v) + ll(v) + lf(v)]

[Castro2022] with the drives, limits and dry friction of Drake's SAP constraints. Nothing here knows how
the package computes: the contact Jacobian is an ordinary dense matrix, the Hessian is formed as written
above and factored by LAPACK, and the line search finds the exact minimum along the direction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

MU_FRICTIONLESS = 1e-12
"""Friction coefficient at or below which a contact has no friction cone."""

BETA_JOINT = 0.1
"""Near-rigid parameter of drives and limits (dimensionless)."""

NEWTON_ITERATION_MAX = 200


# ---------------------------------------------------------------------------------------------- contacts


def near_rigid_regularization(beta: float, weight: float) -> float:
    """Smallest regularization a time step can resolve ([Castro2022] section V.B)."""
    return beta**2 / (4.0 * np.pi**2) * weight


@dataclass
class ContactLaw:
    """One contact's regularization and the projection of its unconstrained impulse onto the cone."""

    phi0: float
    stiffness: float
    tau: float
    mu: float
    weight: float
    dt: float
    beta: float = 1.0
    sigma: float = 1e-3
    softening: float = 1e-7
    """Impulse [N·s] that rounds the norm of the tangential impulse at zero."""
    weight_t: float | None = None
    """Weight [1/kg] of the tangential directions; None for that of all."""
    damps_approach: bool = True
    """Whether dissipation acts before the surfaces touch."""

    def __post_init__(self) -> None:
        compliant = 1.0 / (self.dt * self.stiffness * (self.dt + self.tau))
        self.r_n = max(near_rigid_regularization(self.beta, self.weight), compliant)
        self.r_t = self.sigma * (self.weight if self.weight_t is None else self.weight_t)
        damped = self.damps_approach or self.phi0 <= 0.0
        duration = self.dt + (self.tau if damped else 0.0)
        self.v_hat = np.array([0.0, 0.0, -self.phi0 / duration])
        self.r = np.array([self.r_t, self.r_t, self.r_n])
        self.mu_hat = self.mu * self.r_t / self.r_n
        self.factor = 1.0 / (1.0 + self.mu * self.mu_hat)

    def region(self, v_c: np.ndarray) -> str:
        """Name of the region of the cone that the impulse at contact velocity `v_c` [m/s] projects from."""
        y = (self.v_hat - v_c) / self.r
        if self.mu <= MU_FRICTIONLESS:
            return "frictionless" if y[2] > 0.0 else "none"
        y_r = np.sqrt(y[0] ** 2 + y[1] ** 2 + self.softening**2)
        if y_r <= self.mu * y[2]:
            return "stiction"
        if -self.mu_hat * y_r < y[2]:
            return "sliding"
        return "none"

    def impulse(self, v_c: np.ndarray) -> np.ndarray:
        """Impulse [N·s] in the contact frame (t1, t2, n) at contact velocity `v_c` [m/s]."""
        y = (self.v_hat - v_c) / self.r
        match self.region(v_c):
            case "frictionless":
                return np.array([0.0, 0.0, y[2]])
            case "stiction":
                return y
            case "sliding":
                y_r = np.sqrt(y[0] ** 2 + y[1] ** 2 + self.softening**2)
                gamma_n = self.factor * (y[2] + self.mu_hat * y_r)
                return np.array([*(self.mu * gamma_n * y[:2] / y_r), gamma_n])
        return np.zeros(3)

    def cost(self, v_c: np.ndarray) -> float:
        """Potential [J] whose gradient with respect to `v_c` is minus the impulse."""
        gamma = self.impulse(v_c)
        return 0.5 * float(gamma @ (self.r * gamma))

    def hessian(self, v_c: np.ndarray) -> np.ndarray:
        """G, minus the derivative of the impulse with respect to `v_c`, shape [3, 3]."""
        hessian = np.zeros((3, 3))
        match self.region(v_c):
            case "frictionless":
                hessian[2, 2] = 1.0 / self.r_n
            case "stiction":
                hessian = np.diag(1.0 / self.r)
            case "sliding":
                y = (self.v_hat - v_c) / self.r
                y_r = np.sqrt(y[0] ** 2 + y[1] ** 2 + self.softening**2)
                t_hat = y[:2] / y_r
                gamma_n = self.factor * (y[2] + self.mu_hat * y_r)
                along = np.outer(t_hat, t_hat)
                hessian[:2, :2] = (self.mu / self.r_t) * (
                    gamma_n / y_r * (np.eye(2) - along) + self.mu_hat * self.factor * along
                )
                hessian[:2, 2] = hessian[2, :2] = self.mu * self.factor / self.r_n * t_hat
                hessian[2, 2] = self.factor / self.r_n
        return hessian


def contact_frame(normal: np.ndarray) -> np.ndarray:
    """Rotation whose columns are two tangents and the unit normal, right-handed."""
    first = int(np.argmin(np.abs(normal)))
    second, third = (first + 1) % 3, (first + 2) % 3
    length = np.sqrt(1.0 - normal[first] ** 2)
    t1, t2 = np.zeros(3), np.zeros(3)
    t1[second], t1[third] = -normal[third] / length, normal[second] / length
    t2[first] = length
    t2[second], t2[third] = (
        (-normal[first] / length) * normal[second],
        (-normal[first] / length) * normal[third],
    )
    return np.column_stack([t1, t2, normal])


def weight_diag_delassus(jacobian: np.ndarray, a_diagonal: np.ndarray) -> float:
    """Contact weight [1/kg]: rms norm of J diag(A)^-1 J^T."""
    return max(float(np.linalg.norm((jacobian / np.maximum(a_diagonal, 1e-12)) @ jacobian.T)) / 3.0, 1e-12)


def weights_delassus(jacobian: np.ndarray, a: np.ndarray) -> tuple[float, float]:
    """Tangential and normal weight [1/kg]: of W = J A^-1 J^T, half a trace and an entry."""
    delassus = jacobian @ np.linalg.solve(a, jacobian.T)
    return max(0.5 * (delassus[0, 0] + delassus[1, 1]), 1e-12), max(delassus[2, 2], 1e-12)


# ------------------------------------------------------------------------------------- one-dof potentials


@dataclass
class DriveLaw:
    """PD drive of one degree of freedom with an effort limit."""

    stiffness: float
    damping: float
    target_pos: float
    target_vel: float
    feed_forward: float
    effort_limit: float
    q0: float
    a_ii: float
    dt: float

    def __post_init__(self) -> None:
        h, ke, kd = self.dt, self.stiffness, self.damping
        r_near_rigid = near_rigid_regularization(BETA_JOINT, 1.0 / self.a_ii)
        if 1.0 / (h * (h * ke + kd)) < r_near_rigid:
            # The step cannot resolve a stiffer drive; the ratio kd / ke stays as it was asked for.
            if h * ke > kd:
                ratio = kd / ke
                ke = 1.0 / (h * (h + ratio) * r_near_rigid)
                kd = ratio * ke
            else:
                ratio = ke / kd
                kd = 1.0 / (h * (1.0 + h * ratio) * r_near_rigid)
                ke = ratio * kd
        self.ke, self.kd = ke, kd
        self.gain = h * ke + kd
        self.bias = ke * (self.target_pos - self.q0) + kd * self.target_vel + self.feed_forward

    def effort(self, v: float) -> float:
        """Effort [N or N·m] that the drive exerts at the end of a step with velocity `v`."""
        return float(np.clip(self.bias - self.gain * v, -self.effort_limit, self.effort_limit))

    def impulse(self, v: float) -> float:
        return self.dt * self.effort(v)

    def cost(self, v: float) -> float:
        y, e = self.bias - self.gain * v, self.effort_limit
        quadratic = 0.5 * y * y if abs(y) <= e else e * (abs(y) - 0.5 * e)
        return self.dt / self.gain * quadratic

    def hessian(self, v: float) -> float:
        return self.dt * self.gain if abs(self.bias - self.gain * v) <= self.effort_limit else 0.0


@dataclass
class EffortLaw:
    """A force or torque that does not depend on the motion."""

    effort: float
    dt: float

    def impulse(self, v: float) -> float:
        return self.dt * self.effort

    def cost(self, v: float) -> float:
        return -self.dt * self.effort * v

    def hessian(self, v: float) -> float:
        return 0.0


@dataclass
class LimitLaw:
    """One-sided stop: `sign` +1 keeps q above a lower limit, -1 below an upper one."""

    gap: float
    sign: float
    stiffness: float
    tau: float
    a_ii: float
    dt: float
    damps_approach: bool = True

    def __post_init__(self) -> None:
        compliant = 1.0 / (self.dt * self.stiffness * (self.dt + self.tau))
        self.r = max(near_rigid_regularization(BETA_JOINT, 1.0 / self.a_ii), compliant)
        self.v_hat = -self.gap / (self.dt + self.tau)
        if self.gap > 0.0 and not self.damps_approach:
            self.v_hat = -self.gap / self.dt

    def _strength(self, v: float) -> float:
        return max(self.v_hat - self.sign * v, 0.0) / self.r

    def impulse(self, v: float) -> float:
        return self.sign * self._strength(v)

    def cost(self, v: float) -> float:
        return 0.5 * self.r * self._strength(v) ** 2

    def hessian(self, v: float) -> float:
        return 1.0 / self.r if self._strength(v) > 0.0 else 0.0


@dataclass
class FrictionLaw:
    """Dry friction of one degree of freedom, regularized like stiction of a contact."""

    effort: float
    a_ii: float
    dt: float
    sigma: float = 1e-3

    def __post_init__(self) -> None:
        self.r = self.sigma / self.a_ii
        self.limit = self.dt * self.effort

    def impulse(self, v: float) -> float:
        return float(np.clip(-v / self.r, -self.limit, self.limit))

    def cost(self, v: float) -> float:
        if abs(v) <= self.r * self.limit:
            return 0.5 * v * v / self.r
        return self.limit * abs(v) - 0.5 * self.r * self.limit**2

    def hessian(self, v: float) -> float:
        return 1.0 / self.r if abs(v) <= self.r * self.limit else 0.0


@dataclass
class SpeedLaw:
    """Near-rigid stop at a speed, in both directions."""

    limit: float
    a_ii: float

    def __post_init__(self) -> None:
        self.r = near_rigid_regularization(BETA_JOINT, 1.0 / self.a_ii)

    def impulse(self, v: float) -> float:
        return float(np.clip(v, -self.limit, self.limit) - v) / self.r

    def cost(self, v: float) -> float:
        return 0.5 * self.r * self.impulse(v) ** 2

    def hessian(self, v: float) -> float:
        return 1.0 / self.r if abs(v) > self.limit else 0.0


# ---------------------------------------------------------------------------------------------- the problem


@dataclass
class DenseProblem:
    """All terms of one world's objective."""

    a: np.ndarray
    """Dynamics matrix, shape [dof, dof]."""
    v_star: np.ndarray
    """Velocity without constraints, shape [dof]."""
    v0: np.ndarray
    """Velocity at the start of the step, shape [dof]."""
    jacobians: list[np.ndarray] = field(default_factory=list)
    """Per contact: contact-frame velocity by generalized velocity, shape [3, dof]."""
    contacts: list[ContactLaw] = field(default_factory=list)
    joint_terms: list[tuple[int, DriveLaw | EffortLaw | LimitLaw | FrictionLaw | SpeedLaw]] = field(
        default_factory=list
    )
    """Terms of single degrees of freedom: (dof, law)."""

    def cost(self, v: np.ndarray) -> float:
        dv = v - self.v_star
        cost = 0.5 * float(dv @ self.a @ dv)
        cost += sum(
            law.cost(jacobian @ v) for jacobian, law in zip(self.jacobians, self.contacts, strict=True)
        )
        return cost + sum(law.cost(v[dof]) for dof, law in self.joint_terms)

    def impulse(self, v: np.ndarray) -> np.ndarray:
        """Generalized constraint impulse J^T gamma and that of the joint terms, shape [dof]."""
        impulse = np.zeros_like(v)
        for jacobian, law in zip(self.jacobians, self.contacts, strict=True):
            impulse += jacobian.T @ law.impulse(jacobian @ v)
        for dof, law in self.joint_terms:
            impulse[dof] += law.impulse(v[dof])
        return impulse

    def gradient(self, v: np.ndarray) -> np.ndarray:
        return self.a @ (v - self.v_star) - self.impulse(v)

    def hessian(self, v: np.ndarray) -> np.ndarray:
        hessian = self.a.copy()
        for jacobian, law in zip(self.jacobians, self.contacts, strict=True):
            hessian += jacobian.T @ law.hessian(jacobian @ v) @ jacobian
        for dof, law in self.joint_terms:
            hessian[dof, dof] += law.hessian(v[dof])
        return hessian

    def contact_impulses(self, v: np.ndarray) -> np.ndarray:
        """Impulse [N·s] of each contact in its own frame, shape [contact, 3]."""
        pairs = zip(self.jacobians, self.contacts, strict=True)
        return np.array([law.impulse(jacobian @ v) for jacobian, law in pairs]).reshape(-1, 3)

    def optimality(self, v: np.ndarray) -> float:
        """Size of the gradient relative to the momenta it balances, both scaled by diag(A)^-1/2."""
        scale = 1.0 / np.sqrt(np.diag(self.a))
        momentum = max(np.linalg.norm(scale * (self.a @ v)), np.linalg.norm(scale * self.impulse(v)), 1e-300)
        return float(np.linalg.norm(scale * self.gradient(v))) / momentum

    def minimize(self, *, guess: np.ndarray | None = None, tolerance: float = 1e-12) -> np.ndarray:
        """The minimizer, by Newton's method with an exact line search.

        Raises:
            RuntimeError: the relative optimality `tolerance` was not reached.
        """
        v = (self.v_star if guess is None else guess).copy()
        best, best_optimality, best_cost = v, np.inf, np.inf
        stalled = 0
        for _ in range(NEWTON_ITERATION_MAX):
            # Far from the minimum the gradient may grow while the cost falls; at rounding neither falls.
            optimality, cost = self.optimality(v), self.cost(v)
            stalled = 0 if optimality < best_optimality or cost < best_cost else stalled + 1
            best_cost = min(cost, best_cost)
            if optimality < best_optimality:
                best, best_optimality = v, optimality
            if best_optimality <= tolerance or stalled == 3:
                break
            step = -np.linalg.solve(self.hessian(v), self.gradient(v))
            v = v + self._line_search(v, step) * step
        # Rounding in J^T gamma leaves a floor that grows with the stiffness of the contacts.
        if best_optimality > max(tolerance, 1e-10):
            raise RuntimeError(f"dense minimizer stopped at relative optimality {best_optimality:.1e}")
        return best

    def _line_search(self, v: np.ndarray, step: np.ndarray) -> float:
        """Root of the slope along `step`, by bisection safeguarded Newton."""

        def slope(alpha: float) -> float:
            return float(step @ self.gradient(v + alpha * step))

        lower, upper = 0.0, 1.0
        while slope(upper) < 0.0 and upper < 1e6:
            lower, upper = upper, 2.0 * upper
        alpha = 1.0 if lower == 0.0 else upper
        for _ in range(80):
            value = slope(alpha)
            if value < 0.0:
                lower = alpha
            else:
                upper = alpha
            if upper - lower <= 1e-15 * upper:
                break
            curvature = float(step @ self.hessian(v + alpha * step) @ step)
            proposal = alpha - value / curvature
            if proposal == alpha:
                break
            alpha = proposal if lower < proposal < upper else 0.5 * (lower + upper)
        return alpha
