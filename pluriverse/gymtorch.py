"""Tensors of the actor API as PyTorch tensors that share their memory, and back."""

from typing import Any

import warp as wp

from pluriverse.gymapi.errors import GymError
from pluriverse.gymapi.tensor import Tensor

# Scripts import everything from here, and say Tensor in the signatures of TorchScript functions, where it
# must stay the one of PyTorch.
__all__ = ["unwrap_tensor", "wrap_tensor"]


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise GymError(
            "gymtorch: PyTorch is not installed. Install it (pip install torch), or use "
            "Tensor.numpy() and Tensor.array."
        ) from error
    return torch


def wrap_tensor(gym_tensor: Tensor, offsets: Any = None, counts: Any = None) -> Any:
    """Return a PyTorch tensor that shares the memory of a tensor of the API.

    It is None for states and forces of components of which the sim has none: scripts ask for that.

    Args:
        gym_tensor: What an acquire call returned.
        offsets: First entry along each axis; 0 if None.
        counts: Number of entries along each axis; all behind the offset if None.

    Raises:
        GymError: If PyTorch is not installed.
        TypeError: If it is no tensor of the API.
        ValueError: If offsets and counts do not fit its shape.
    """
    _torch()
    if not isinstance(gym_tensor, Tensor):
        raise TypeError(
            f"wrap_tensor: gym_tensor is {gym_tensor!r}, but must be what an acquire call returned."
        )
    if gym_tensor.is_absent:
        return None
    tensor = wp.to_torch(gym_tensor.array, requires_grad=False)
    if offsets is None and counts is None:
        return tensor
    shape = gym_tensor.shape
    first = [0] * len(shape) if offsets is None else [int(offset) for offset in offsets]
    size = [n - k for n, k in zip(shape, first, strict=False)] if counts is None else [int(n) for n in counts]
    fits = len(first) == len(size) == len(shape) and all(
        k >= 0 and n >= 0 and k + n <= limit for k, n, limit in zip(first, size, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"wrap_tensor: offsets {first} and counts {size} do not fit into the shape {shape}.")
    return tensor[tuple(slice(k, k + n) for k, n in zip(first, size, strict=True))]


def unwrap_tensor(torch_tensor: Any) -> Tensor:
    """Return a tensor of the API that shares the memory of a PyTorch tensor, and keeps it alive.

    Raises:
        GymError: If PyTorch is not installed, or the tensor is not contiguous.
        TypeError: If it is no PyTorch tensor, or its type is not supported.
    """
    torch = _torch()
    if not isinstance(torch_tensor, torch.Tensor):
        raise TypeError(f"unwrap_tensor: torch_tensor is {torch_tensor!r}, but must be a torch.Tensor.")
    if not torch_tensor.is_contiguous():
        raise GymError("unwrap_tensor: the tensor is not contiguous. Pass tensor.contiguous(), and keep it.")
    kinds = (torch.float32, torch.uint8, torch.int16, torch.int32, torch.int64)
    if torch_tensor.dtype not in kinds:
        raise TypeError(
            f"unwrap_tensor: the type {torch_tensor.dtype} is not supported; use float32, uint8, int16, "
            "int32 or int64."
        )
    plain = torch_tensor.detach()
    return Tensor(wp.from_torch(plain, requires_grad=False), owner=plain)
