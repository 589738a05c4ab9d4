"""Stiffness and damping as MuJoCo's `solref`.

A constraint with impedance d, approximate inverse mass w and violation r accelerates by -B v - K d r and has
the regularization R = (1 - d) w / d (MuJoCo's page on computation, "Parameters"). With `solref = (-k, -b)`,
K = k / dmax^2 and B = b / dmax; held still at d = dmax it pushes with

    f = K d r / R = k r / ((1 - dmax) w),

so force-space gains ke and kd are k = ke w (1 - dmax) and b = kd w (1 - dmax). The positive form with
timeconst = 2 / b and dampratio = b / (2 sqrt(k)) gives the same K and B, and lets MuJoCo soften what its time
step does not resolve (`refsafe`).
"""

import enum

import numpy as np

DEFAULT_SOLREF = (0.02, 1.0)
"""MuJoCo's own (timeconst [s], dampratio)."""
DEFAULT_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's own impedance: at no violation, at full violation, width [m or rad], midpoint, power."""


class SolrefMode(enum.IntEnum):
    """What decides the `solref` of a joint limit or a shape."""

    FORCE_SPACE = 0
    """Stiffness and damping of the model, as forces."""
    RAW = 1
    """The authored `solref`, as it is."""
    MJCF_DEFAULT = 2
    """MuJoCo's default, until stiffness or damping of the model are others than by default."""


def solref_of_gains(stiffness: np.ndarray, damping: np.ndarray, factor: np.ndarray | float) -> np.ndarray:
    """Return (timeconst, dampratio) of gains times `factor`, MuJoCo's default where one is not positive."""
    sound = (stiffness > 0.0) & (damping > 0.0) & (np.asarray(factor) > 0.0)
    k = np.where(sound, stiffness * factor, 1.0)
    b = np.where(sound, damping * factor, 1.0)
    solref = np.stack([2.0 / b, b / (2.0 * np.sqrt(k))], axis=-1)
    return np.where(sound[..., None], solref, np.array(DEFAULT_SOLREF))
