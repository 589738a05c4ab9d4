"""What a user of inverse kinematics chooses between, and how names are turned into it."""

import enum
from typing import Any, TypeVar

Choice = TypeVar("Choice", bound=enum.Enum)


class IKOptimizer(enum.StrEnum):
    """Method that minimizes the squared residuals."""

    LM = "lm"
    """Levenberg-Marquardt: few iterations, each of which solves a linear system."""
    LBFGS = "lbfgs"
    """L-BFGS: gradients only; for problems with very many residuals or degrees of freedom."""


class IKSampler(enum.StrEnum):
    """Starts that are tried beside the one that the user gives."""

    NONE = "none"
    """The given start only."""
    GAUSS = "gauss"
    """The given start, moved by normally distributed steps."""
    ROBERTS = "roberts"
    """Points that fill the joint ranges evenly: the additive recurrence of [Roberts2018]."""
    UNIFORM = "uniform"
    """Points drawn uniformly from the joint ranges."""


class IKJacobianType(enum.Enum):
    """How the derivatives of objectives are computed."""

    AUTODIFF = "autodiff"
    """Of every objective from the adjoints of its kernels, by a tape."""
    ANALYTIC = "analytic"
    """Of every objective by its own formula; it must have one."""
    MIXED = "mixed"
    """By its own formula where an objective has one, else by a tape."""


def read_choice(kind: type[Choice], value: Any, what: str) -> Choice:
    """Return a member of an enumeration, from the member or its value.

    Raises:
        ValueError: If it is neither.
    """
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(f"{kind.__name__}.{member.name} ({member.value!r})" for member in kind)
        raise ValueError(f"{what} is {value!r}, but must be one of {allowed}.") from None
