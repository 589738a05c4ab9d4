"""Scalar precision of a kernel: the Warp vector and matrix types that belong to one scalar type.

Stages that exist in single and double precision make their kernels in a cached factory whose argument is the
scalar type, `wp.float32` or `wp.float64`; the types in this module are the ones such a factory works with.
"""

from typing import Any

import warp as wp

from pluriverse.launch import made_once


@made_once
def vec2_type(real: Any) -> Any:
    """Return the 2-vector type with scalars of type `real`."""
    return wp.types.vector(length=2, dtype=real)


@made_once
def vec3_type(real: Any) -> Any:
    """Return the 3-vector type with scalars of type `real`."""
    return wp.types.vector(length=3, dtype=real)


@made_once
def vec6_type(real: Any) -> Any:
    """Return the spatial vector type [angular; linear] with scalars of type `real`."""
    return wp.types.vector(length=6, dtype=real)


@made_once
def mat33_type(real: Any) -> Any:
    """Return the 3x3 matrix type with scalars of type `real`."""
    return wp.types.matrix(shape=(3, 3), dtype=real)


@made_once
def quat_type(real: Any) -> Any:
    """Return the quaternion type (xyzw) with scalars of type `real`."""
    return wp.types.quaternion(dtype=real)


def precision_name(real: Any) -> str:
    """Return `f32` or `f64`, as used in the names of kernel modules.

    Raises:
        ValueError: If `real` is neither `wp.float32` nor `wp.float64`.
    """
    if real is wp.float32:
        return "f32"
    if real is wp.float64:
        return "f64"
    raise ValueError(f"precision {real!r} is not supported: pass wp.float32 or wp.float64.")


def kernel_module(stage: str, *reals: Any) -> str:
    """Return the name of the module that holds the kernels of a stage for the given precisions."""
    return f"{stage}." + "_".join(precision_name(real) for real in reals)
