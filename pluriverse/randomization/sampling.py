"""Sampling: a number of a distribution as the quantile of one uniform number.

This is inverse transform sampling ([Devroye1986] section II.2): one draw per number, and exact for truncated
distributions too.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.math.counter_random import open_uniform_of, philox
from pluriverse.randomization import distributions
from pluriverse.randomization.distributions import Distribution

UNIFORM = wp.constant(distributions.UNIFORM)
LOG_UNIFORM = wp.constant(distributions.LOG_UNIFORM)
GAUSSIAN = wp.constant(distributions.GAUSSIAN)
CHOICE = wp.constant(distributions.CHOICE)

# Second word of the key of property draws, which keeps them distinct from draws of variants.
PROPERTY_STREAM = wp.constant(wp.uint32(0x70726F70))
ROOT_TWO = wp.constant(wp.float64(1.4142135623730951))


@wp.struct
class Sampler:
    """A distribution, for kernels."""

    parameters: wp.array2d[wp.float64]
    """Kind and four numbers, see `Distribution.parameters`, then the bounds, shape [component, 7]."""
    values: wp.array[wp.float64]
    """Values of a choice."""
    cumulative: wp.array[wp.float64]
    """Probabilities of a choice, summed up."""


def make_sampler(distribution: Distribution, count: int, device: Any) -> Sampler:
    """Return a distribution of `count` components on a device."""
    sampler = Sampler()
    values, cumulative = distribution.choices()
    rows = np.zeros((count, 7))
    rows[:, :5] = distribution.parameters(count)
    rows[:, 5], rows[:, 6] = distribution.support()
    sampler.parameters = wp.array(rows, dtype=wp.float64, ndim=2, device=device)
    sampler.values = wp.array(values, dtype=wp.float64, device=device)
    sampler.cumulative = wp.array(cumulative, dtype=wp.float64, device=device)
    return sampler


@wp.func
def quantile(sampler: Sampler, component: int, u: wp.float64) -> wp.float64:
    """Return the quantile `u` of a distribution."""
    kind = int(sampler.parameters[component, 0])
    first = sampler.parameters[component, 1]
    second = sampler.parameters[component, 2]
    result = first
    if kind == UNIFORM:
        result = first + u * (second - first)
    elif kind == LOG_UNIFORM:
        result = wp.exp(first + u * (second - first))
    elif kind == GAUSSIAN:
        below = sampler.parameters[component, 3]
        above = sampler.parameters[component, 4]
        p = below + u * (above - below)
        result = first - second * ROOT_TWO * wp.erfcinv(wp.float64(2.0) * p)
    elif kind == CHOICE:
        index = int(0)
        while index < sampler.values.shape[0] - 1 and u >= sampler.cumulative[index]:
            index += 1
        result = sampler.values[index]
    # Rounding may slightly exceed the bounds, beyond which a mass may be negative.
    return wp.clamp(result, sampler.parameters[component, 5], sampler.parameters[component, 6])


@wp.func
def draw(
    sampler: Sampler, component: int, environment: int, episode: int, counter: int, term: int, seed: int
) -> wp.float64:
    """Return the random number of a seed for one purpose of one environment in one episode.

    Args:
        sampler: The distribution.
        component: Component of it.
        environment: Index of the environment.
        episode: Number of earlier draws.
        counter: Purpose of the number in the environment; different purposes have different values.
        term: Index of what is randomized.
        seed: Seed of all draws.
    """
    block = philox(
        wp.uint32(environment),
        wp.uint32(episode),
        wp.uint32(counter),
        wp.uint32(term),
        wp.uint32(seed),
        PROPERTY_STREAM,
    )
    return quantile(sampler, component, open_uniform_of(block.word0))
