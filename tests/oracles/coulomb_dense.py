"""Coulomb's law in the dense reference: convex problems with held bounds of friction, until they agree.

The bound N of a contact is the normal impulse of the solution for the bounds before ([Haslinger1983]),
taken on half way where that goes in circles.
"""

import dataclasses

import numpy as np

from tests.oracles.sap_dense import MU_FRICTIONLESS, ContactLaw, DenseProblem

ROUNDS_MAX = 200


@dataclasses.dataclass
class BoundedLaw(ContactLaw):
    """A contact whose friction is bounded by `mu * bound`; None for Coulomb's law, without a cost."""

    bound: float | None = None

    def _limit(self, y: np.ndarray) -> float:
        if self.mu <= MU_FRICTIONLESS:
            return 0.0
        return self.mu * (max(y[2], 0.0) if self.bound is None else self.bound)

    def impulse(self, v_c: np.ndarray) -> np.ndarray:
        """Impulse [N·s] in the contact frame (t1, t2, n) at contact velocity `v_c` [m/s]."""
        y = (self.v_hat - v_c) / self.r
        share = min(self._limit(y) / np.hypot(np.hypot(y[0], y[1]), self.softening), 1.0)
        return np.array([share * y[0], share * y[1], max(y[2], 0.0)])

    def cost(self, v_c: np.ndarray) -> float:
        """Potential [J] whose gradient with respect to `v_c` is minus the impulse."""
        y = (self.v_hat - v_c) / self.r
        limit, size = self._limit(y), np.hypot(np.hypot(y[0], y[1]), self.softening)
        tangential = 0.5 * (y[0] ** 2 + y[1] ** 2)
        if size > limit:
            tangential = limit * size - 0.5 * (limit**2 + self.softening**2)
        return float(self.r_t * tangential + 0.5 * self.r_n * max(y[2], 0.0) ** 2)

    def hessian(self, v_c: np.ndarray) -> np.ndarray:
        """G, minus the derivative of the impulse with respect to `v_c`, shape [3, 3]."""
        y = (self.v_hat - v_c) / self.r
        limit, size = self._limit(y), np.hypot(np.hypot(y[0], y[1]), self.softening)
        hessian = np.diag([1.0, 1.0, 0.0]) / self.r_t
        if size > limit:
            direction = y[:2] / size
            hessian[:2, :2] = limit / (self.r_t * size) * (np.eye(2) - np.outer(direction, direction))
        hessian[2, 2] = 1.0 / self.r_n if y[2] > 0.0 else 0.0
        return hessian


def with_bounds(problem: DenseProblem, bounds: np.ndarray | None) -> DenseProblem:
    """Return the problem with bounds of friction [N·s], or with Coulomb's law for None.

    Equality constraints, which come behind the contacts, stay as they are.
    """
    names = [field.name for field in dataclasses.fields(ContactLaw)]
    laws = [
        BoundedLaw(
            **{name: getattr(law, name) for name in names}, bound=None if bounds is None else bounds[index]
        )
        if isinstance(law, ContactLaw)
        else law
        for index, law in enumerate(problem.contacts)
    ]
    return dataclasses.replace(problem, contacts=laws)


def contact_impulses(problem: DenseProblem, v: np.ndarray) -> np.ndarray:
    """Return the impulses of all contacts, without those of equality constraints, shape [contact, 3]."""
    pairs = zip(problem.jacobians, problem.contacts, strict=True)
    impulses = [law.impulse(jacobian @ v) for jacobian, law in pairs if isinstance(law, ContactLaw)]
    return np.array(impulses).reshape(-1, 3)


def solve_coulomb(problem: DenseProblem, tolerance: float = 1e-10) -> np.ndarray:
    """Return velocities that obey Coulomb's law.

    Raises:
        RuntimeError: the relative change of the bounds did not fall to `tolerance`.
    """
    v = problem.minimize()
    bounds = contact_impulses(problem, v)[:, 2]
    for round in range(ROUNDS_MAX):
        held = with_bounds(problem, bounds)
        v = held.minimize(guess=v)
        impulses = contact_impulses(held, v)
        slides = np.hypot(impulses[:, 0], impulses[:, 1]) > 0.999999 * np.array(
            [law.mu for law in problem.contacts if isinstance(law, ContactLaw)]
        ) * np.minimum(bounds, impulses[:, 2])
        change = np.where(slides, impulses[:, 2] - bounds, 0.0)
        if np.abs(change).max(initial=0.0) <= tolerance * impulses[:, 2].max(initial=0.0):
            return v
        bounds = np.where(slides, bounds + (1.0 if round < 20 else 0.5) * change, impulses[:, 2])
    raise RuntimeError(f"bounds of friction still change by {np.abs(change).max():.1e} N·s")
