"""Spatial algebra, rotations and small dense linear algebra for kernels."""

import importlib
from typing import Any

# Functions for kernels of scripts, as in Newton. Loaded on first use: Warp reads the source of each of them.
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


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
