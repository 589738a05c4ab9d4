"""MuJoCo's `solref` of contacts, in MJCF and USD documents, as stiffness and dissipation."""

from collections.abc import Sequence


def gains_of_solref(solref: Sequence[float], still: float = 0.95) -> dict[str, float]:
    """Return the fields of `ShapeConfig` for a `solref`, none if contacts have no stiffness.

    A time constant t and a damping ratio d make k = 1 / (t d)² and b = 2 / t, per unit of mass; two negative
    numbers are -k and -b themselves. A contact at rest has the impedance `still` (dmax of `solimp`), which
    gives a stiffness of k / (1 - dmax) per unit of mass (MuJoCo's page on computation, "Parameters").
    """
    first, second = (float(number) for number in solref)
    if first > 0.0:
        stiffness, damping = 1.0 / (first * second) ** 2 if second > 0.0 else 0.0, 2.0 / first
    else:
        stiffness, damping = -first, -second
    if not stiffness > 0.0:
        return {}
    softness = 1.0 - min(max(still, 0.0001), 0.9999)  # the bounds that MuJoCo keeps impedances in
    return {"ke_per_mass": stiffness / softness, "tau": max(damping, 0.0) / stiffness}
