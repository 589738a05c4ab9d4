"""The `<contact>` of a URDF link: materials of its colliders, an extension of Bullet that others read too."""

import contextlib
import dataclasses
from typing import Any

# Elements whose value is a field of the builder's shape configuration: friction coefficients [-], those of
# turning [m], the coefficient of restitution [-], and stiffness [N/m].
CONTACT_FIELDS = {
    "lateral_friction": "mu",
    "spinning_friction": "mu_torsional",
    "rolling_friction": "mu_rolling",
    "restitution": "restitution",
    "stiffness": "ke",
    "damping": "tau",
}


@dataclasses.dataclass(frozen=True)
class UnreadContact:
    """An element of a `<contact>` without a counterpart."""

    consequence: str
    neutral: float | None
    """The value at which it changes nothing in Bullet, None if there is none."""


UNREAD_CONTACT = {
    "contact_cfm": UnreadContact("contacts are as soft as their stiffness says", 0.0),
    "contact_erp": UnreadContact("contacts are as soft as their stiffness says", None),
    "inertia_scaling": UnreadContact("the inertia is that of <inertial>", 1.0),
}
"""Elements that set what Bullet's solver alone has, or that change the mass properties."""


def contact_material(link: Any) -> dict[str, float]:
    """Return what the checked `<contact>` of a `<link>` says of its colliders' material, by field.

    A damping [N·s/m] belongs to a stiffness: their ratio is the dissipation `tau` [s].
    """
    values: dict[str, float] = {}
    for contact in link.findall("contact"):
        for element in contact:
            if element.tag in CONTACT_FIELDS:
                values[CONTACT_FIELDS[element.tag]] = float(element.get("value"))
    damping = values.pop("tau", None)
    if values.get("ke") == 0.0:
        del values["ke"]
    if damping is not None and "ke" in values:
        values["tau"] = damping / values["ke"]
    return values


def changes_nothing(element: Any) -> bool:
    """Return whether an element of `UNREAD_CONTACT` has the value that Bullet has without it."""
    with contextlib.suppress(ValueError):
        return float(element.get("value", "nan")) == UNREAD_CONTACT[element.tag].neutral
    return False
