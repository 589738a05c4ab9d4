"""Distributions: what is drawn, on the host.

A parameter is one number, or one per component of the drawn quantity (the axes of a vector).
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfc

Parameter = float | Sequence[float]

# Kinds, as kernels know them.
CONSTANT, UNIFORM, LOG_UNIFORM, GAUSSIAN, CHOICE = range(5)

# Least probability mass of a truncated normal distribution. Below it, the quantiles lie in an exponential
# tail that the inverse error function does not resolve.
KEPT_PROBABILITY_MIN = 1e-6


@dataclass(frozen=True)
class Distribution(abc.ABC):
    """A distribution of numbers, or of vectors of independent ones."""

    def component_count(self) -> int | None:
        """Return how many components the parameters have; None if one number stands for all.

        Raises:
            ValueError: If parameters have different numbers of them.
        """
        sizes = {np.size(value) for value in vars(self).values() if np.ndim(value) == 1}
        if len(sizes) > 1:
            raise ValueError(f"{self}: the parameters have {sorted(sizes)} components; give all the same.")
        return sizes.pop() if sizes else None

    @abc.abstractmethod
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest value, per component."""

    @abc.abstractmethod
    def parameters(self, count: int) -> np.ndarray:
        """Return kind and four numbers per component, for kernels, shape [component, 5]."""

    def choices(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values and cumulative probabilities of a choice; empty for others."""
        return np.zeros(0), np.zeros(0)

    def _check(self, sound: bool, message: str) -> None:
        if not sound:
            raise ValueError(f"{self}: {message}")


def _rows(kind: int, count: int, *values: Any) -> np.ndarray:
    rows = np.zeros((count, 5))
    rows[:, 0] = kind
    for column, value in enumerate(values):
        rows[:, 1 + column] = value
    return rows


@dataclass(frozen=True)
class Constant(Distribution):
    """Always the same."""

    value: Parameter

    def __post_init__(self) -> None:
        self._check(bool(np.isfinite(self.value).all()), "the value must be finite.")

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the value, twice."""
        return np.asarray(self.value, dtype=float), np.asarray(self.value, dtype=float)

    def parameters(self, count: int) -> np.ndarray:
        """Return kind and value."""
        return _rows(CONSTANT, count, self.value)


@dataclass(frozen=True)
class Uniform(Distribution):
    """Anything between two bounds, alike."""

    low: Parameter
    high: Parameter

    def __post_init__(self) -> None:
        self.component_count()
        low, high = np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)
        self._check(
            bool(np.isfinite(low).all() and np.isfinite(high).all() and np.all(low <= high)),
            "the bounds must be finite, low <= high.",
        )

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds."""
        return np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)

    def parameters(self, count: int) -> np.ndarray:
        """Return kind and bounds."""
        return _rows(UNIFORM, count, self.low, self.high)


@dataclass(frozen=True)
class LogUniform(Distribution):
    """Log-uniform between two positive bounds: as likely in 1..2 as in 2..4."""

    low: Parameter
    high: Parameter

    def __post_init__(self) -> None:
        self.component_count()
        low, high = np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)
        self._check(
            bool(np.isfinite(high).all() and np.all(low > 0.0) and np.all(low <= high)),
            "the bounds must be finite, 0 < low <= high.",
        )

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds."""
        return np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)

    def parameters(self, count: int) -> np.ndarray:
        """Return kind and the logarithms of the bounds."""
        return _rows(LOG_UNIFORM, count, np.log(self.low), np.log(self.high))


@dataclass(frozen=True)
class Gaussian(Distribution):
    """Normal with a mean and a standard deviation, truncated to between two bounds."""

    mean: Parameter
    std: Parameter
    low: Parameter = -np.inf
    high: Parameter = np.inf

    def __post_init__(self) -> None:
        self.component_count()
        mean, std = np.asarray(self.mean, dtype=float), np.asarray(self.std, dtype=float)
        low, high = np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)
        self._check(
            bool(np.isfinite(mean).all() and np.isfinite(std).all() and np.all(std > 0.0)),
            "the mean must be finite and the standard deviation > 0; use Constant for none.",
        )
        self._check(bool(np.all(low < high)), "the bounds must be low < high.")
        below, above = self._tails(mean, std, low, high)
        self._check(
            bool(np.all(above - below >= KEPT_PROBABILITY_MIN)),
            f"less than {KEPT_PROBABILITY_MIN:g} of it lies between the bounds; use Uniform there.",
        )

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds."""
        return np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)

    def parameters(self, count: int) -> np.ndarray:
        """Return kind, mean, standard deviation, and the probabilities below the two bounds."""
        arrays = [np.asarray(value, dtype=float) for value in (self.mean, self.std, self.low, self.high)]
        below, above = self._tails(*arrays)
        return _rows(GAUSSIAN, count, self.mean, self.std, below, above)

    @staticmethod
    def _tails(mean: Any, std: Any, low: Any, high: Any) -> tuple[Any, Any]:
        root2 = np.sqrt(2.0)
        return 0.5 * erfc((mean - low) / (root2 * std)), 0.5 * erfc((mean - high) / (root2 * std))


@dataclass(frozen=True)
class Choice(Distribution):
    """One of some values, by weight."""

    values: Sequence[float]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._check(
            np.ndim(self.values) == 1 and len(self.values) > 0 and bool(np.isfinite(self.values).all()),
            "the values must be a list of finite numbers, at least one.",
        )
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=float)
            sound = weights.shape == (len(self.values),) and np.isfinite(weights).all()
            self._check(
                bool(sound and (weights >= 0.0).all() and weights.sum() > 0.0),
                "the weights must be finite numbers >= 0, one per value, not all zero.",
            )

    def component_count(self) -> int | None:
        """Return None: the values are those of every component."""
        return None

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest value."""
        return np.asarray(min(self.values), dtype=float), np.asarray(max(self.values), dtype=float)

    def parameters(self, count: int) -> np.ndarray:
        """Return the kind."""
        return _rows(CHOICE, count)

    def choices(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values and cumulative probabilities."""
        weights = np.ones(len(self.values)) if self.weights is None else np.asarray(self.weights, dtype=float)
        cumulative = np.cumsum(weights) / weights.sum()
        cumulative[np.flatnonzero(weights > 0.0)[-1] :] = 1.0
        return np.asarray(self.values, dtype=float), cumulative
