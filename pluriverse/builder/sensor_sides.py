"""Sides of sensors: the shapes between which contacts and distances are measured; fields of contacts."""

import dataclasses
import enum
from typing import Any

import numpy as np

# Largest number of components of a sensor; each component has its own noise.
DIM_MAX = 1024


class SensorSide(enum.IntEnum):
    """The shapes of one side of a contact or a distance."""

    ANY = 0
    """All."""
    SHAPE = 1
    """One."""
    BODY = 2
    """Those of a body, or of the world."""
    SUBTREE = 3
    """Those of a body and of all its descendants."""
    ZONE = 4
    """All, where the contact lies in the zone of the sensor."""


CONTACT_FIELDS = {"found": 1, "force": 3, "torque": 3, "dist": 1, "pos": 3, "normal": 3, "tangent": 3}
"""Fields of a contact sensor in their order, with their numbers of components."""
CONTACT_REDUCTIONS = ("none", "mindist", "maxforce", "netforce")


@dataclasses.dataclass(frozen=True)
class SensorContacts:
    """What a contact sensor measures of the contacts between its sides, as MuJoCo's `<contact>` does.

    Contacts count if they touch or push; near ones do not. Each slot holds one contact; unused slots hold
    zeros:

    - `found`: total number of contacts, 0 in an empty slot;
    - `force`: on the second side [N], along normal, tangent and the third axis of the contact;
    - `torque`: about the point of the contact, zero except for `netforce` [N·m];
    - `dist`: distance of the surfaces, negative where they overlap [m];
    - `pos`, `normal`, `tangent`: point between the surfaces [m], unit normal from the first side to the
      second and the first tangent, world axes.
    """

    fields: tuple[str, ...] = ("found", "force")
    """Some of these names; the values come in the order above."""
    reduce: str = "netforce"
    """Which contacts get the slots: the first ones (`none`), the deepest (`mindist`), those with the largest
    force (`maxforce`), or one for all (`netforce`): their sum in world axes, at the force-weighted mean of
    their points, with the torque about it."""
    slots: int = 1
    """Number of slots."""
    is_subtree: bool = False
    """Whether the descendants of the body belong to the first side."""
    is_reference_subtree: bool = False
    """Whether the descendants of the reference body belong to the second side."""


def side_values(
    name: str,
    first: tuple[int | None, int | None, bool],
    second: tuple[int | None, int | None],
    *,
    shape_count: int,
    contacts: SensorContacts | None,
    is_contact: bool,
) -> dict[str, Any]:
    """Return the shapes that a sensor concerns, and what it measures of them.

    Args:
        name: Name of the sensor, for messages.
        first: Body, shape, and whether there is a zone, of the first side.
        second: Body and shape of the second side.
        shape_count: Number of shapes of the builder.
        contacts: What it measures of contacts.
        is_contact: Whether it measures contacts, or a distance.

    Raises:
        IndexError: If there is no such shape.
        ValueError: If a side is named twice, or is missing, or `contacts` do not fit.
    """
    values: dict[str, Any] = {}
    sides = []
    for prefix, (body, shape) in (("", first[:2]), ("reference_", second)):
        if body is not None and shape is not None:
            raise ValueError(f"{name}: pass {prefix}body or {prefix}shape, not both.")
        if shape is not None and not 0 <= shape < shape_count:
            raise IndexError(
                f"{name}: {prefix}shape is {shape}, but there are shapes 0 to {shape_count - 1}."
            )
        side = SensorSide.ANY
        if body is not None or shape is not None:
            side = SensorSide.SHAPE if body is None else SensorSide.BODY
        sides.append(side)
        values[f"{prefix}shape"] = -1 if shape is None else int(shape)
    if is_contact and contacts is not None:
        if contacts.is_subtree and sides[0] is SensorSide.BODY:
            sides[0] = SensorSide.SUBTREE
        if contacts.is_reference_subtree and sides[1] is SensorSide.BODY:
            sides[1] = SensorSide.SUBTREE
        if first[2]:
            sides[0] = SensorSide.ZONE
        values |= _contact_values(contacts, name)
    elif SensorSide.ANY in sides or contacts is not None:
        raise ValueError(
            f"{name}: a distance is measured between two sides: pass body or shape, and reference_body or "
            "reference_shape, and no contacts."
        )
    return values | {"side": int(sides[0]), "reference_side": int(sides[1])}


def _contact_values(contacts: SensorContacts, name: str) -> dict[str, Any]:
    words = list(CONTACT_FIELDS)
    unknown = [word for word in contacts.fields if word not in words]
    if unknown or not contacts.fields or isinstance(contacts.fields, str):
        raise ValueError(
            f"{name}: the fields are {contacts.fields!r}, but they must be a tuple of some of "
            f"{', '.join(words)}."
        )
    if contacts.reduce not in CONTACT_REDUCTIONS:
        raise ValueError(
            f"{name}: reduce is {contacts.reduce!r}, but it must be one of {', '.join(CONTACT_REDUCTIONS)}."
        )
    slots = contacts.slots
    dim = slots * sum(CONTACT_FIELDS[word] for word in set(contacts.fields))
    if not isinstance(slots, int | np.integer) or slots < 1 or dim > DIM_MAX:
        raise ValueError(
            f"{name}: slots is {slots!r}, but it must be a whole number, 1 or more, so that there are at "
            f"most {DIM_MAX} numbers."
        )
    return {
        "cutoff": 0.0,
        "fields": sum(1 << words.index(word) for word in set(contacts.fields)),
        "reduce": CONTACT_REDUCTIONS.index(contacts.reduce),
        "slots": int(slots),
        "dim": dim,
    }
