"""Tendons: properties of the fixed tendons of assets and actors, checked, and whether they act."""

import numpy as np

from pluriverse.gymapi.asset import Asset, FixedTendon
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.structures import TendonProperties

_NOT_NEGATIVE = ("stiffness", "damping", "limit_stiffness")
# Two names of the same limit.
_TWINS = (("lower_limit", "fixed_lower_limit"), ("upper_limit", "fixed_upper_limit"))


def actor_tendons(actor: Actor) -> list[FixedTendon]:
    """Return the tendons of an actor, copies of those of its asset."""
    if actor.tendons is None:
        actor.tendons = [
            FixedTendon(tendon.properties.copy(), list(tendon.dofs), list(tendon.coefficients))
            for tendon in actor.asset.tendons
        ]
    return actor.tendons


def keep_tendons(asset: Asset) -> None:
    """Keep the tendons of existing actors when those of the asset change."""
    for actor in asset.sim.actors:
        if actor.asset is asset:
            actor_tendons(actor)


def put_tendon_properties(
    tendons: list[FixedTendon], properties: list[TendonProperties], call: str, whose: str
) -> None:
    """Give tendons other properties. Of two names of a limit the one that was changed counts.

    Raises:
        TypeError: If an entry is no `TendonProperties`.
        ValueError: If a value is not allowed.
    """
    parts = []
    for index, (tendon, given) in enumerate(zip(tendons, properties, strict=True)):
        if not isinstance(given, TendonProperties):
            raise TypeError(f"{call}: entry {index} is {given!r}, but must be a gymapi.TendonProperties.")
        part = given.copy()
        for name, twin in _TWINS:
            if getattr(part, twin) != getattr(tendon.properties, twin):
                setattr(part, name, getattr(part, twin))
            setattr(part, twin, getattr(part, name))
        what = f"tendon {index} ('{tendon.properties.name}') of {whose}"
        for name in _NOT_NEGATIVE:
            value = getattr(part, name)
            if not (value >= 0.0 and np.isfinite(value)):
                raise ValueError(f"{call}: {name} of {what} is {value}, but must be finite and >= 0.")
        if part.is_limited and not part.lower_limit <= part.upper_limit:
            raise ValueError(
                f"{call}: the limits of {what} are {part.lower_limit} and {part.upper_limit}, but the lower "
                "one must not exceed the upper one."
            )
        parts.append(part)
    for tendon, part in zip(tendons, parts, strict=True):
        tendon.properties = part


def tendons_act(actor: Actor) -> bool:
    """Return whether a tendon of an actor exerts a force at some state."""
    tendons = actor.asset.tendons if actor.tendons is None else actor.tendons
    return any(
        part.stiffness != 0.0 or part.damping != 0.0 or (part.is_limited and part.limit_stiffness != 0.0)
        for part in (tendon.properties for tendon in tendons)
    )
