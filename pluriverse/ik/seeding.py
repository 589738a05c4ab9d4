"""Seeding: what stands between a tape and a Jacobian, one residual at a time."""

import warp as wp

from pluriverse.launch import launch_kernel

_MODULE = "pluriverse.ik.seeding"


@wp.kernel(enable_backward=False, module=_MODULE)
def seed_row(
    residual: int,
    gradient: wp.array2d[float],  # [row, residual] out
):
    """Set the gradient of one residual of a row to 1."""
    row, _ = wp.tid()
    gradient[row, residual] = 1.0


@wp.kernel(enable_backward=False, module=_MODULE)
def store_row(
    residual: int,
    gradient: wp.array2d[float],  # [row, dof]
    jacobian: wp.array3d[float],  # [row, residual, dof] out
):
    """Copy the gradient of one residual of a row to its place in the Jacobian."""
    row, _ = wp.tid()
    for dof in range(jacobian.shape[2]):
        jacobian[row, residual, dof] = gradient[row, dof]


def seed_rows(residual: int, gradient: wp.array) -> None:
    """Set the gradient of one residual of all rows to 1, in an array of shape [row, residual]."""
    launch_kernel(
        seed_row, dim=gradient.shape[0], inputs=[residual], outputs=[gradient], device=gradient.device
    )


def store_rows(residual: int, gradient: wp.array, jacobian: wp.array) -> None:
    """Copy gradients of shape [row, dof] to the place of one residual in Jacobians of all rows."""
    launch_kernel(
        store_row,
        dim=gradient.shape[0],
        inputs=[residual, gradient],
        outputs=[jacobian],
        device=gradient.device,
    )
