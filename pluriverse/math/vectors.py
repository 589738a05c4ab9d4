"""Vectors in kernels, component by component, and their directions."""

from typing import Any

import warp as wp


@wp.func
def vec_abs(a: wp.vec3) -> wp.vec3:
    """Return the absolute value of each component."""
    return wp.vec3(wp.abs(a[0]), wp.abs(a[1]), wp.abs(a[2]))


@wp.func
def vec_max(a: wp.vec3, b: wp.vec3) -> wp.vec3:
    """Return the larger one of each pair of components."""
    return wp.vec3(wp.max(a[0], b[0]), wp.max(a[1], b[1]), wp.max(a[2], b[2]))


@wp.func
def vec_min(a: wp.vec3, b: wp.vec3) -> wp.vec3:
    """Return the smaller one of each pair of components."""
    return wp.vec3(wp.min(a[0], b[0]), wp.min(a[1], b[1]), wp.min(a[2], b[2]))


@wp.func
def vec_allclose(a: Any, b: Any, rtol: float = 1.0e-5, atol: float = 1.0e-8) -> bool:
    """Return whether |a - b| <= atol + rtol |b| holds for each component; never for NaN."""
    for component in range(wp.static(len(a))):
        if not wp.abs(a[component] - b[component]) <= atol + rtol * wp.abs(b[component]):
            return False
    return True


@wp.func
def vec_inside_limits(a: Any, lower: Any, upper: Any) -> bool:
    """Return whether each component is within its limits, these included; never for NaN."""
    for component in range(wp.static(len(a))):
        if not (a[component] >= lower[component] and a[component] <= upper[component]):
            return False
    return True


@wp.func
def safe_div(x: Any, y: Any, eps: float = 1.0e-15) -> Any:
    """Return x / y, or x / eps where y is zero."""
    divisor = y
    if y == type(y)(0.0):
        divisor = type(y)(eps)
    return x / divisor


@wp.func
def normalize_with_norm(x: Any):
    """Return the direction of a vector and its length; a vector of length zero as it is, and zero."""
    norm = wp.length(x)
    if norm == type(norm)(0.0):
        return x, type(norm)(0.0)
    return x / norm, norm


@wp.func
def orthonormal_basis(n: wp.vec3):
    """Return two unit vectors that are perpendicular to a unit vector and to each other.

    With n they are a right-handed frame (b1, b2, n).
    """
    # The axis that is farthest from n, so that the product is never short.
    size = vec_abs(n)
    axis = wp.vec3(1.0, 0.0, 0.0)
    if size[0] > size[1] or size[0] > size[2]:
        if size[1] <= size[2]:
            axis = wp.vec3(0.0, 1.0, 0.0)
        else:
            axis = wp.vec3(0.0, 0.0, 1.0)
    b1 = wp.normalize(wp.cross(axis, n))
    return b1, wp.cross(n, b1)
