"""PyTorch helpers for scripts: rotations as quaternions x, y, z, w, with any number of leading axes."""

from typing import Any

import torch

__all__ = [
    "get_axis_params",
    "normalize",
    "quat_apply",
    "quat_conjugate",
    "quat_from_angle_axis",
    "quat_from_euler_xyz",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "quat_unit",
    "tensor_clamp",
    "to_torch",
    "torch_rand_float",
]


def to_torch(
    x: Any, dtype: torch.dtype = torch.float, device: Any = "cpu", requires_grad: bool = False
) -> torch.Tensor:
    """Return a new tensor of values."""
    return torch.tensor(x, dtype=dtype, device=device, requires_grad=requires_grad)


def normalize(x: torch.Tensor, eps: float = 1e-9) -> torch.Tensor:
    """Return vectors of length 1; zero stays zero."""
    return x / x.norm(p=2, dim=-1).clamp(min=eps, max=None).unsqueeze(-1)


def quat_unit(a: torch.Tensor) -> torch.Tensor:
    """Return quaternions of length 1."""
    return normalize(a)


def quat_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the rotations by `b`, then by `a`."""
    v, w, p, s = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = w * p + s * v + torch.linalg.cross(v, p)
    return torch.cat([vector, w * s - (v * p).sum(-1, keepdim=True)], dim=-1)


def quat_conjugate(a: torch.Tensor) -> torch.Tensor:
    """Return the opposite rotations."""
    return torch.cat([-a[..., :3], a[..., 3:]], dim=-1)


def quat_apply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return vectors `b` turned by `a`."""
    turn = 2.0 * torch.linalg.cross(a[..., :3], b)
    return b + a[..., 3:] * turn + torch.linalg.cross(a[..., :3], turn)


def quat_rotate(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors `v` turned by `q`."""
    return quat_apply(q, v)


def quat_rotate_inverse(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors `v` turned back by `q`."""
    return quat_apply(quat_conjugate(q), v)


def quat_from_angle_axis(angle: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    """Return the rotations by angles [rad] about axes."""
    half = (0.5 * angle).unsqueeze(-1)
    return torch.cat([normalize(axis) * half.sin(), half.cos().expand_as(axis[..., :1])], dim=-1)


def quat_from_euler_xyz(roll: torch.Tensor, pitch: torch.Tensor, yaw: torch.Tensor) -> torch.Tensor:
    """Return the rotations by `roll` about x, `pitch` about y, then `yaw` about z [rad], fixed axes."""
    turns = []
    for axis, angle in enumerate((roll, pitch, yaw)):
        unit = torch.zeros((*angle.shape, 3), dtype=angle.dtype, device=angle.device)
        unit[..., axis] = 1.0
        turns.append(quat_from_angle_axis(angle, unit))
    return quat_mul(turns[2], quat_mul(turns[1], turns[0]))


def tensor_clamp(t: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Return values held between bounds."""
    return torch.max(torch.min(t, high), low)


def torch_rand_float(lower: float, upper: float, shape: Any, device: Any) -> torch.Tensor:
    """Return uniform random numbers between bounds."""
    return (upper - lower) * torch.rand(*shape, device=device) + lower


def get_axis_params(
    value: float, axis_idx: int, x_value: float = 0.0, dtype: Any = float, n_dims: int = 3
) -> Any:
    """Return `value` along one axis, `x_value` along the first."""
    result = [0.0] * n_dims
    result[0] = x_value
    result[axis_idx] = value
    return [dtype(part) for part in result]
