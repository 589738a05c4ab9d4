"""Spatial algebra, rotations and small dense linear algebra for kernels."""

import importlib
from typing import Any

__all__ = [
    "boltzmann",
    "leaky_max",
    "leaky_min",
    "normalize_with_norm",
    "orthonormal_basis",
    "quat_between_axes",
    "quat_between_vectors_robust",
    "quat_decompose",
    "quat_velocity",
    "safe_div",
    "smooth_max",
    "smooth_min",
    "transform_twist",
    "transform_wrench",
    "vec_abs",
    "vec_allclose",
    "vec_inside_limits",
    "vec_leaky_max",
    "vec_leaky_min",
    "vec_max",
    "vec_min",
    "velocity_at_point",
]

# Loaded on first use: Warp reads the source of every function that it is given.
_MODULES = {
    "body_motion": (
        "quat_between_axes",
        "quat_between_vectors_robust",
        "quat_decompose",
        "quat_velocity",
        "transform_twist",
        "transform_wrench",
        "velocity_at_point",
    ),
    "smooth_extrema": (
        "boltzmann",
        "leaky_max",
        "leaky_min",
        "smooth_max",
        "smooth_min",
        "vec_leaky_max",
        "vec_leaky_min",
    ),
    "vectors": (
        "normalize_with_norm",
        "orthonormal_basis",
        "safe_div",
        "vec_abs",
        "vec_allclose",
        "vec_inside_limits",
        "vec_max",
        "vec_min",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pluriverse.math' has no attribute {name!r}")
    return getattr(importlib.import_module(f"pluriverse.math.{_HOME[name]}"), name)
