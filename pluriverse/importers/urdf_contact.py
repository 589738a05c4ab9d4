"""The `<contact>` of a URDF link: materials of its colliders, an extension of Bullet that others read too."""

from typing import Any

# Elements whose value is a field of the builder's shape configuration: friction coefficients [-], those of
# turning [m], and stiffness [N/m].
CONTACT_FIELDS = {
    "lateral_friction": "mu",
    "spinning_friction": "mu_torsional",
    "rolling_friction": "mu_rolling",
    "stiffness": "ke",
    "damping": "tau",
}


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


def unread_contact_elements(link: Any) -> list[Any]:
    """Return the elements of a `<contact>` that are not read: those of one solver."""
    return [
        element
        for contact in link.findall("contact")
        for element in contact
        if isinstance(element.tag, str) and element.tag not in CONTACT_FIELDS
    ]
