"""Tensor: what the tensor calls give and take, a description of an array on the device."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.enums import TensorDataType
from pluriverse.gymapi.errors import GymError
from pluriverse.launch import same_memory
from pluriverse.model.indices import INDEX_TYPES, narrow_indices

_TYPES: dict[Any, TensorDataType] = {
    wp.float32: TensorDataType.DTYPE_FLOAT32,
    wp.int32: TensorDataType.DTYPE_UINT32,
    wp.uint32: TensorDataType.DTYPE_UINT32,
    wp.int64: TensorDataType.DTYPE_UINT64,
    wp.uint64: TensorDataType.DTYPE_UINT64,
    wp.uint8: TensorDataType.DTYPE_UINT8,
    wp.int16: TensorDataType.DTYPE_INT16,
}


class Tensor:
    """Description of an array; it keeps the array alive.

    Args:
        array: Contiguous Warp array of numbers.
        owner: What else the memory belongs to.
        is_absent: Whether the sim has none of what it would hold.
    """

    def __init__(self, array: Any, owner: Any = None, *, is_absent: bool = False):
        if not array.is_contiguous:
            raise GymError("Tensor: the array is not contiguous. Pass tensor.contiguous().")
        if array.dtype not in _TYPES:
            raise TypeError(
                f"Tensor: the type {array.dtype.__name__} is not supported; use float32, uint8, int16, int32 "
                "or int64."
            )
        self.array = array
        """The array, for Warp."""
        self._owner = owner
        self.is_absent = is_absent
        """Whether the sim has none of what it would hold; `gymtorch.wrap_tensor` makes None of it."""

    @property
    def device(self) -> int:
        """Number of the GPU, -1 for the CPU."""
        device: Any = self.array.device
        return int(device.ordinal) if device.is_cuda else -1

    @property
    def dtype(self) -> TensorDataType:
        """Type of the entries."""
        return _TYPES[self.array.dtype]

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(int(size) for size in self.array.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return int(self.array.ndim)

    @property
    def data_ptr(self) -> int:
        """Address of the first entry."""
        return int(self.array.ptr or 0)

    @property
    def data_address(self) -> int:
        """Address of the first entry."""
        return self.data_ptr

    @property
    def own_data(self) -> bool:
        """Whether the memory belongs to the sim."""
        return self._owner is None

    def numpy(self) -> np.ndarray:
        """Return the array for NumPy: the memory itself on a CPU, a copy on a GPU."""
        return self.array.numpy()

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape}, dtype={self.dtype.name}, device={self.array.device})"


def _check_indices(indices: np.ndarray, call: str, what: str) -> None:
    """Raise if indices on the host have more than 32 bits.

    Raises:
        IndexError: If one has.
    """
    limits = np.iinfo(np.int32)
    bad = indices[(indices < limits.min) | (indices > limits.max)]
    if bad.size:
        raise IndexError(f"{call}: {what} holds {int(bad.flat[0])}, which is no index of anything.")


def as_array(value: Any, dtype: Any, device: Any, call: str, what: str) -> wp.array:
    """Return a flat array of a type on the device of a sim, of what a caller passes; shared where possible.

    Raises:
        IndexError: If an index on the host has more than 32 bits; on a GPU it names nothing then.
        TypeError: If it is no array.
        ValueError: If it is on another device.
    """
    array: Any
    if isinstance(value, Tensor):
        array = value.array
    elif isinstance(value, wp.array):
        array = value
    elif hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        source = value.detach() if hasattr(value, "detach") else value
        array = wp.from_dlpack(source.contiguous() if hasattr(source, "contiguous") else source)
    elif isinstance(value, np.ndarray | list | tuple):
        host = np.ascontiguousarray(value)
        dtype_of_copy = np.int32 if dtype is wp.int32 else np.float32
        if dtype is wp.int32 and host.dtype.kind not in "iu" and host.size:
            raise TypeError(f"{call}: {what} has type {host.dtype}, but must be whole numbers.")
        if dtype is wp.int32:
            _check_indices(host, call, what)
        host = host.astype(dtype_of_copy, copy=False)
        array = wp.array(host.reshape(-1), dtype=dtype, device=device, copy=not device.is_cpu)
    else:
        raise TypeError(
            f"{call}: {what} is {value!r}, but must be a tensor: what gymtorch.unwrap_tensor() or an acquire "
            "call returns, or an array of PyTorch, Warp or NumPy."
        )
    if array.device != device:
        raise ValueError(
            f"{call}: {what} is on {array.device}, but the sim is on {device}. Create it there, or copy it."
        )
    if not array.is_contiguous:
        array = array.contiguous()
    if array.dtype is not dtype:
        if dtype is wp.int32 and array.dtype is wp.int16:
            return wp.array(array.numpy().astype(np.int32).reshape(-1), dtype=wp.int32, device=device)
        if dtype is wp.int32 and array.dtype in INDEX_TYPES:
            if device.is_cpu:
                _check_indices(array.numpy(), call, what)
            return narrow_indices(array.flatten())
        if getattr(array.dtype, "_wp_scalar_type_", None) is not dtype:
            name = getattr(array.dtype, "__name__", array.dtype)
            raise TypeError(
                f"{call}: {what} has type {name}, but must have {dtype.__name__}. Convert it, for example "
                f"with tensor.{'int' if dtype is wp.int32 else 'float'}()."
            )
        # Vectors of the type, as plain numbers.
        count = array.size * int(getattr(array.dtype, "_length_", 1))
        array = same_memory(array, dtype, (count,))
    return array.flatten() if array.ndim != 1 else array


def acquired(array: Any) -> Tensor:
    """Return what an acquire call hands out: an array of a row per component, absent where there are none."""
    return Tensor(array, is_absent=array.shape[0] == 0)
