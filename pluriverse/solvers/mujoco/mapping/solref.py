"""Stiffness and damping as MuJoCo's `solref`.

A constraint with impedance d, approximate inverse mass w and violation r accelerates by -B v - K d r and has
the regularization R = (1 - d) w / d (MuJoCo's page on computation, "Parameters"). With `solref = (-k, -b)`,
K = k / dmax^2 and B = b / dmax; at rest with d = dmax its force is

    f = K d r / R = k r / ((1 - dmax) w),

so force-space gains ke and kd are k = ke w (1 - dmax) and b = kd w (1 - dmax). The positive form with
timeconst = 2 / b and dampratio = b / (2 sqrt(k)) gives the same K and B, and lets MuJoCo soften constraints
that its time step does not resolve (`refsafe`).

MuJoCo raises timeconst to at least twice its time step, and keeps dampratio. That would reduce the stiffness
of an overdamped constraint by the square of the excess damping: a stiffness of 1e7 with a dissipation time of
10 ms would become softer than MuJoCo's default. So the damping is at most critical, or that of MuJoCo's
default, b = 100 / s, if this is more: a high stiffness is then as stiff as the step resolves.

A gain that is not given (NaN) is that of MuJoCo's default solref, (0.02, 1): a stiffness k of 2500 / s^2 per
unit of mass, and critical damping, b = 2 sqrt(k). So if neither is given the solref is MuJoCo's default. The
function is `exchange.contact_mixing.mixing_functions(real).solref_of_gains`.
"""

import numpy as np

DEFAULT_STIFFNESS = 2500.0
"""Stiffness k of `DEFAULT_SOLREF` per unit of mass [1/s²]."""
DAMPING_BOUND = 100.0
"""Damping b of `DEFAULT_SOLREF` per unit of mass [1/s]: up to this value it may exceed the critical one."""
RIGID_SOLREF = (1e-6, 1.0)
"""Stands for an infinite stiffness: faster than any step, so MuJoCo softens it to what the step resolves."""
IMPEDANCE_BOUNDS = (0.0001, 0.9999)
"""Bounds that MuJoCo keeps impedances in (`mjMINIMP`, `mjMAXIMP`)."""


def softness_of_solimp(solimp: np.ndarray) -> np.ndarray:
    """Return 1 - dmax, the ratio of the stiffness k of a solref to its static stiffness per mass.

    Args:
        solimp: Impedances, shape [..., 5].
    """
    return 1.0 - np.clip(solimp[..., 1], *IMPEDANCE_BOUNDS)
