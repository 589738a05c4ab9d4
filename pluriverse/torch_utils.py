"""PyTorch helpers for scripts: rotations as quaternions x, y, z, w, with any number of leading axes.

Functions of TorchScript may call all that take tensors only. `torch` and `np` are exported too: scripts that
import everything from here use them without an import of their own.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

__all__ = [
    "copysign",
    "get_axis_params",
    "get_basis_vector",
    "get_euler_xyz",
    "normalize",
    "normalize_angle",
    "np",
    "quat_apply",
    "quat_conjugate",
    "quat_from_angle_axis",
    "quat_from_euler_xyz",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "quat_unit",
    "scale",
    "tensor_clamp",
    "tf_apply",
    "tf_combine",
    "tf_inverse",
    "tf_vector",
    "to_torch",
    "torch",
    "torch_rand_float",
    "torch_random_dir_2",
    "unscale",
    "unscale_np",
]


def to_torch(
    x: Any, dtype: torch.dtype = torch.float, device: Any = None, requires_grad: bool = False
) -> torch.Tensor:
    """Return a new tensor of values, by default on the first GPU, or the CPU if there is none."""
    if device is None:
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    return torch.tensor(x, dtype=dtype, device=device, requires_grad=requires_grad)


def normalize(x: torch.Tensor, eps: float = 1e-9) -> torch.Tensor:
    """Return vectors of length 1; zero stays zero."""
    return x / x.norm(p=2, dim=-1).clamp(min=eps, max=None).unsqueeze(-1)


def quat_unit(a: torch.Tensor) -> torch.Tensor:
    """Return quaternions of length 1."""
    return normalize(a)


def quat_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the rotations by `b`, then by `a`.

    Of as many quaternions on either side the result has the shape of `a`; other shapes broadcast.
    """
    if a.numel() == b.numel():
        b = b.reshape(a.shape)
    v, w, p, s = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    v, p = torch.broadcast_tensors(v, p)
    vector = w * p + s * v + torch.cross(v, p, dim=-1)
    return torch.cat([vector, w * s - (v * p).sum(-1, keepdim=True)], dim=-1)


def quat_conjugate(a: torch.Tensor) -> torch.Tensor:
    """Return the opposite rotations."""
    return torch.cat([-a[..., :3], a[..., 3:]], dim=-1)


def quat_apply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return vectors `b` turned by `a`.

    As many quaternions as vectors are taken one by one, whatever the axes, and the result has the shape of
    `b`; other shapes broadcast.
    """
    shape = b.shape
    is_flat = a.numel() * 3 == b.numel() * 4
    if is_flat:
        a, b = a.reshape(-1, 4), b.reshape(-1, 3)
    axis, vector = torch.broadcast_tensors(a[..., :3], b)
    twice_cross = 2.0 * torch.cross(axis, vector, dim=-1)
    turned = vector + a[..., 3:] * twice_cross + torch.cross(axis, twice_cross, dim=-1)
    return turned.reshape(shape) if is_flat else turned


def quat_rotate(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors `v` turned by `q`, as `quat_apply` does."""
    return quat_apply(q, v)


def quat_rotate_inverse(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors `v` turned back by `q`."""
    return quat_apply(quat_conjugate(q), v)


def quat_from_angle_axis(angle: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    """Return the rotations by angles [rad] about axes, of any length."""
    half = (0.5 * angle).unsqueeze(-1)
    vector = normalize(axis) * half.sin()
    return quat_unit(torch.cat([vector, half.cos().expand_as(vector[..., :1])], dim=-1))


def quat_from_euler_xyz(roll: torch.Tensor, pitch: torch.Tensor, yaw: torch.Tensor) -> torch.Tensor:
    """Return the rotations by `roll` about x, `pitch` about y, then `yaw` about z [rad], fixed axes."""
    cr, sr = torch.cos(0.5 * roll), torch.sin(0.5 * roll)
    cp, sp = torch.cos(0.5 * pitch), torch.sin(0.5 * pitch)
    cy, sy = torch.cos(0.5 * yaw), torch.sin(0.5 * yaw)
    return torch.stack(
        [
            cy * cp * sr - sy * sp * cr,
            cy * sp * cr + sy * cp * sr,
            sy * cp * cr - cy * sp * sr,
            cy * cp * cr + sy * sp * sr,
        ],
        dim=-1,
    )


def get_euler_xyz(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return roll, pitch and yaw [rad] in 0 to 2 pi, as `quat_from_euler_xyz` takes them."""
    x, y, z, w = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    roll = torch.atan2(2.0 * (w * x + y * z), w * w - x * x - y * y + z * z)
    # Rounding takes the sine of a pitch of a quarter turn beyond 1.
    pitch = torch.asin(torch.clamp(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)
    return roll % (2.0 * math.pi), pitch % (2.0 * math.pi), yaw % (2.0 * math.pi)


def normalize_angle(x: torch.Tensor) -> torch.Tensor:
    """Return angles [rad] in -pi to pi."""
    return torch.atan2(torch.sin(x), torch.cos(x))


def tf_inverse(q: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rotation and translation of the inverses of poses."""
    back = quat_conjugate(q)
    return back, -quat_apply(back, t)


def tf_apply(q: torch.Tensor, t: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return points `v` moved by poses."""
    return quat_apply(q, v) + t


def tf_vector(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return directions `v` turned by poses."""
    return quat_apply(q, v)


def tf_combine(
    q1: torch.Tensor, t1: torch.Tensor, q2: torch.Tensor, t2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rotation and translation of the second poses, seen through the first ones."""
    return quat_mul(q1, q2), quat_apply(q1, t2) + t1


def get_basis_vector(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return vectors of a frame turned by `q`."""
    return quat_rotate(q, v)


def copysign(a: float, b: torch.Tensor) -> torch.Tensor:
    """Return numbers of the size of `a` with the signs of `b`; zero where `b` is zero."""
    return abs(a) * torch.sign(b)


def scale(x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Return what lies between bounds as `x` does between -1 and 1."""
    return 0.5 * (x + 1.0) * (upper - lower) + lower


def unscale(x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Return what lies between -1 and 1 as `x` does between bounds."""
    return (2.0 * x - upper - lower) / (upper - lower)


def unscale_np(x: Any, lower: Any, upper: Any) -> Any:
    """Return what lies between -1 and 1 as `x` does between bounds, all NumPy arrays or numbers."""
    return (2.0 * x - upper - lower) / (upper - lower)


def tensor_clamp(t: torch.Tensor, min_t: torch.Tensor, max_t: torch.Tensor) -> torch.Tensor:
    """Return values held between bounds."""
    return torch.max(torch.min(t, max_t), min_t)


def torch_rand_float(lower: float, upper: float, shape: tuple[int, int], device: str) -> torch.Tensor:
    """Return uniform random numbers between bounds."""
    return (upper - lower) * torch.rand(shape, device=device) + lower


def torch_random_dir_2(shape: tuple[int, int], device: str) -> torch.Tensor:
    """Return random directions in a plane, one for each number of a shape whose last axis is 1."""
    angle = torch_rand_float(-math.pi, math.pi, shape, device).squeeze(-1)
    return torch.stack([torch.cos(angle), torch.sin(angle)], dim=-1)


def get_axis_params(
    value: float, axis_idx: int, x_value: float = 0.0, dtype: Any = float, n_dims: int = 3
) -> Sequence[Any]:
    """Return `value` along one axis, `x_value` along the first, as a list."""
    result = np.zeros(n_dims)
    result[0] = x_value
    result[axis_idx] = value
    return [dtype(part) for part in result.tolist()]
