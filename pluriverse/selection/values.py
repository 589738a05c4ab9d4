"""Values: arguments of a view as arrays on its device, copied only if necessary."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import array_of


def as_device_array(
    values: Any, dtype: Any, shapes: Sequence[tuple[int, ...]], device: Any, *, what: str
) -> tuple[wp.array, tuple[int, ...]]:
    """Return values as a contiguous array of one of the given shapes, and that shape.

    Args:
        values: Warp array, anything with DLPack (PyTorch, JAX, CuPy), or what NumPy understands. Numbers of
            the host are broadcast to the first shape.
        dtype: Type of an entry. Arrays may have its components as further axes.
        shapes: Shapes that are accepted, without the components.
        device: Device that the array must be on; numbers of the host are copied to it.
        what: The argument, for messages.

    Raises:
        ValueError: If the shape or the device is another one.
        TypeError: If the type of the numbers is another one.
    """
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    components = tuple(getattr(dtype, "_shape_", ()))
    accepted = [*shapes, *((*shape, *components) for shape in shapes)] if components else list(shapes)
    if not isinstance(values, wp.array):
        if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
            return _to_device(values, scalar, components, shapes, device, what)
        values = wp.from_dlpack(values)
    if values.device != device:
        raise ValueError(
            f"{what}: the array is on {values.device}, but the view's model is on {device}. Move it there "
            "first."
        )
    if values.dtype not in (dtype, scalar):
        raise TypeError(
            f"{what}: the array has entries of type {_name(values.dtype)}, but {_name(dtype)} is needed. "
            "Convert it first."
        )
    shape = tuple(values.shape)
    own = shape if values.dtype is dtype else shape[: len(shape) - len(components)]
    if own not in shapes or (values.dtype is not dtype and shape != (*own, *components)):
        raise ValueError(f"{what}: the array has shape {shape}, but must have {_alternatives(accepted)}.")
    return (values if values.is_contiguous else values.contiguous()), own


def _to_device(
    values: Any,
    scalar: Any,
    components: tuple[int, ...],
    shapes: Sequence[tuple[int, ...]],
    device: Any,
    what: str,
) -> tuple[wp.array, tuple[int, ...]]:
    """Return numbers of the host as an array of scalars on the device."""
    number_type = np.dtype(wp.dtype_to_numpy(scalar))
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"{what}: {values!r} is not made of numbers.")
    if number_type.kind in "biu" and not np.can_cast(numbers.dtype, number_type, "same_kind"):
        raise TypeError(f"{what}: the numbers are of type {numbers.dtype}, but {number_type} is needed.")
    for shape in shapes:
        if numbers.shape == (*shape, *components):
            break
    else:
        shape = shapes[0]
        try:
            numbers = np.broadcast_to(numbers, (*shape, *components))
        except ValueError:
            accepted = [(*shape, *components) for shape in shapes]
            raise ValueError(
                f"{what}: the numbers have shape {numbers.shape}, but must have {_alternatives(accepted)}, "
                "or one that broadcasts to the first of these."
            ) from None
    converted = np.ascontiguousarray(numbers, dtype=number_type)
    if number_type.kind in "iu" and not np.array_equal(converted, numbers):
        raise TypeError(f"{what}: a number does not fit into {number_type}, as which it is stored.")
    array: wp.array = array_of(converted, scalar, device)
    return array, shape


def _alternatives(shapes: Sequence[tuple[int, ...]]) -> str:
    return " or ".join(str(shape) for shape in dict.fromkeys(shapes))


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "__name__", dtype))
