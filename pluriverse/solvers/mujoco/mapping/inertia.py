"""Mass and inertia of MuJoCo's bodies, for all worlds of a group at once.

MuJoCo keeps an inertia as its principal moments and the rotation of their axes.
"""

from dataclasses import dataclass

import numpy as np

from pluriverse.solvers.mujoco.mapping.frames import as_wxyz
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import StructurePlan

# Off-diagonal entries up to here, relative to the largest moment, are roundings of single precision (2**-24),
# and the axes of the body are taken for the principal ones.
DIAGONAL_ROUNDING = 2.0**-24
# Mass [kg] and moment of inertia [kg·m²] of a moving body that has none of its own: MuJoCo refuses less than
# 1e-15. Its joints carry armature or bodies with mass, or the model would have been refused.
MASS_MIN = 1e-12
INERTIA_MIN = 1e-14
# How much less than the sum of the others [relative] the largest moment of a thin body is at most: some
# roundings of double precision, for MuJoCo compares exactly.
THIN_ROUNDING = 1e-14


@dataclass
class Inertias:
    """Mass properties of one group, row by row."""

    body_mass: np.ndarray
    """Mass [kg], shape [row, nbody]."""
    body_ipos: np.ndarray
    """Centre of mass [m], shape [row, nbody, 3]."""
    body_iquat: np.ndarray
    """Rotation of the principal axes (wxyz), shape [row, nbody, 4]."""
    body_inertia: np.ndarray
    """Principal moments [kg·m²], shape [row, nbody, 3]."""
    raised: list[int]
    """Bodies (world-local) that got a mass or inertia to please MuJoCo."""


def compute_inertias(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> Inertias:
    """Return the mass properties of bodies."""
    made = [(index, body.body) for index, body in enumerate(plan.bodies) if body is not None]
    target = np.array([index for index, _ in made], dtype=np.int64)
    source = np.array([body for _, body in made], dtype=np.int64)
    count = len(worlds)
    mass = np.zeros((count, len(plan.bodies)))
    ipos = np.zeros((count, len(plan.bodies), 3))
    iquat = np.tile([1.0, 0.0, 0.0, 0.0], (count, len(plan.bodies), 1))
    moments = np.zeros((count, len(plan.bodies), 3))
    mass[:, target] = rows.take("body_mass", "body", worlds)[:, source]
    ipos[:, target] = rows.take("body_com", "body", worlds)[:, source]
    tensors = rows.take("body_inertia", "body", worlds)[:, source].reshape(count, len(source), 3, 3)
    moments[:, target], iquat[:, target] = principal_moments(tensors)
    moving = np.zeros(len(plan.bodies), dtype=bool)
    moving[list({joint.body for joint in plan.joints})] = True
    light = moving & ((mass < MASS_MIN) | (moments < INERTIA_MIN).any(axis=2)).any(axis=0)
    mass[:, light] = np.maximum(mass[:, light], MASS_MIN)
    moments[:, light] = np.maximum(moments[:, light], INERTIA_MIN)
    raised = [body.body for index, body in enumerate(plan.bodies) if body is not None and light[index]]
    return Inertias(mass, ipos, iquat, moments, raised)


def principal_moments(tensors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return moments, shape [..., 3], and the rotation (wxyz) of their axes, shape [..., 4], of tensors."""
    tensors = 0.5 * (tensors + np.swapaxes(tensors, -1, -2))
    moments = np.diagonal(tensors, axis1=-2, axis2=-1).copy()
    quat = np.zeros((*tensors.shape[:-2], 4))
    quat[..., 0] = 1.0
    largest = np.abs(tensors).max(axis=(-1, -2), initial=0.0)
    off = np.abs(tensors[..., [0, 0, 1], [1, 2, 2]]).max(axis=-1, initial=0.0)
    oblique = off > DIAGONAL_ROUNDING * largest
    if oblique.any():
        values, axes = np.linalg.eigh(tensors[oblique])
        axes *= np.sign(np.linalg.det(axes))[:, None, None]  # a rotation, not a reflection
        moments[oblique], quat[oblique] = values, as_wxyz(_quat_from_matrix(axes))
    moments = np.maximum(moments, 0.0)
    # Of a thin body one moment is the sum of the others, and rounding may put it above, which no body has.
    others = moments.sum(axis=-1, keepdims=True) - moments
    return np.minimum(moments, (1.0 - THIN_ROUNDING) * others), quat


def _quat_from_matrix(matrix: np.ndarray) -> np.ndarray:
    """Return quaternions xyzw of rotation matrices, shape [n, 3, 3]."""
    m = matrix
    trace = np.trace(m, axis1=-2, axis2=-1)
    # The squares of the components, of which the largest is divided by.
    squares = np.stack(
        [
            1.0 + 2.0 * m[:, 0, 0] - trace,
            1.0 + 2.0 * m[:, 1, 1] - trace,
            1.0 + 2.0 * m[:, 2, 2] - trace,
            1.0 + trace,
        ],
        axis=1,
    )
    xy, xz, yz = m[:, 0, 1] + m[:, 1, 0], m[:, 0, 2] + m[:, 2, 0], m[:, 1, 2] + m[:, 2, 1]
    wx, wy, wz = m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]
    outer = np.stack(
        [
            np.stack([squares[:, 0], xy, xz, wx], axis=1),
            np.stack([xy, squares[:, 1], yz, wy], axis=1),
            np.stack([xz, yz, squares[:, 2], wz], axis=1),
            np.stack([wx, wy, wz, squares[:, 3]], axis=1),
        ],
        axis=1,
    )
    best = outer[np.arange(len(m)), np.argmax(squares, axis=1)]
    return best / np.linalg.norm(best, axis=1, keepdims=True)
