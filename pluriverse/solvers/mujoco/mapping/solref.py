"""Stiffness and damping as MuJoCo's `solref`.

A constraint with impedance d, approximate inverse mass w and violation r accelerates by -B v - K d r and has
the regularization R = (1 - d) w / d (MuJoCo's page on computation, "Parameters"). With `solref = (-k, -b)`,
K = k / dmax^2 and B = b / dmax; held still at d = dmax it pushes with

    f = K d r / R = k r / ((1 - dmax) w),

so force-space gains ke and kd are k = ke w (1 - dmax) and b = kd w (1 - dmax). The positive form with
timeconst = 2 / b and dampratio = b / (2 sqrt(k)) gives the same K and B, and lets MuJoCo soften what its time
step does not resolve (`refsafe`).

MuJoCo raises timeconst to twice its time step where it is less, and leaves dampratio alone: of an
overdamped constraint that would take the stiffness, by the square of what the damping is too large by. A
stiffness of 1e7 with a dissipation time of 10 ms would become softer than MuJoCo's default. So the damping is
at most critical, or that of MuJoCo's default, b = 100 / s, if this is more: then a high stiffness is as stiff
as the step resolves.

A gain that is not given (NaN) is that of MuJoCo's own solref, (0.02, 1): a stiffness k of 2500 / s^2 per
unit of mass, and critical damping, b = 2 sqrt(k). So without either the solref is MuJoCo's own. The function
is `exchange.contact_mixing.mixing_functions(real).solref_of_gains`.
"""

import enum

DEFAULT_SOLREF = (0.02, 1.0)
"""MuJoCo's own (timeconst [s], dampratio)."""
DEFAULT_STIFFNESS = 2500.0
"""Stiffness k of `DEFAULT_SOLREF` per unit of mass [1/s²]."""
DAMPING_BOUND = 100.0
"""Damping b of `DEFAULT_SOLREF` per unit of mass [1/s]: up to here it may be more than critical."""
RIGID_SOLREF = (1e-6, 1.0)
"""What stands for an infinite stiffness: faster than any step, so MuJoCo softens it to what that resolves."""
DEFAULT_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's own impedance: at no violation, at full violation, width [m or rad], midpoint, power."""
STILL_FACTOR = 1.0 - DEFAULT_SOLIMP[1]
"""Stiffness k of a solref per stiffness per mass with which it holds still, 1 - dmax."""


class SolrefMode(enum.IntEnum):
    """What decides the `solref` of a joint limit or a shape."""

    FORCE_SPACE = 0
    """Stiffness and damping of the model, as forces; MuJoCo's default where they are not given (NaN)."""
    RAW = 1
    """The authored `solref`, as it is."""
    MJCF_DEFAULT = 2
    """MuJoCo's default, until stiffness or damping of the model are given, which are then forces of a limit,
    and those for a mass of 1 kg of a shape."""
