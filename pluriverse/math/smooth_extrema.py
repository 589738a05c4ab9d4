"""Smooth minima and maxima of numbers, in kernels: differentiable where `min` and `max` have a corner."""

import warp as wp

# Square of the width over which the corner of the "leaky" ones is rounded off [square of the numbers' unit].
LEAK = wp.constant(1.0e-5)


@wp.func
def boltzmann(a: float, b: float, alpha: float) -> float:
    """Return the mean of two numbers, weighted with exp(alpha a) and exp(alpha b).

    It is their mean for alpha = 0 and tends to the larger one as alpha grows.
    """
    # Relative to the larger exponent, which neither overflows nor lets both weights vanish.
    peak = wp.max(alpha * a, alpha * b)
    weight_a = wp.exp(alpha * a - peak)
    weight_b = wp.exp(alpha * b - peak)
    return (weight_a * a + weight_b * b) / (weight_a + weight_b)


@wp.func
def smooth_max(a: float, b: float, eps: float) -> float:
    """Return (a + b + sqrt((a - b)² + eps)) / 2, which is sqrt(eps) / 2 above both where they are equal."""
    gap = a - b
    return 0.5 * (a + b + wp.sqrt(gap * gap + eps))


@wp.func
def smooth_min(a: float, b: float, eps: float) -> float:
    """Return (a + b - sqrt((a - b)² + eps)) / 2, which is sqrt(eps) / 2 below both where they are equal."""
    gap = a - b
    return 0.5 * (a + b - wp.sqrt(gap * gap + eps))


@wp.func
def leaky_max(a: float, b: float) -> float:
    """Return `smooth_max` of two numbers for eps = 1e-5."""
    return smooth_max(a, b, LEAK)


@wp.func
def leaky_min(a: float, b: float) -> float:
    """Return `smooth_min` of two numbers for eps = 1e-5."""
    return smooth_min(a, b, LEAK)


@wp.func
def vec_leaky_max(a: wp.vec3, b: wp.vec3) -> wp.vec3:
    """Return `leaky_max` of each component."""
    return wp.vec3(leaky_max(a[0], b[0]), leaky_max(a[1], b[1]), leaky_max(a[2], b[2]))


@wp.func
def vec_leaky_min(a: wp.vec3, b: wp.vec3) -> wp.vec3:
    """Return `leaky_min` of each component."""
    return wp.vec3(leaky_min(a[0], b[0]), leaky_min(a[1], b[1]), leaky_min(a[2], b[2]))
