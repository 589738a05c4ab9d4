"""Shared readers of prims of the `mjc:` schema of USD."""

from typing import Any

import numpy as np

LIMITED = {"false": 0, "true": 1, "auto": 2}
"""Values of tokens that say whether there is a limit."""


def targets_of(prim: Any, name: str) -> list[str]:
    """Return the paths that a relationship names."""
    relation = prim.GetRelationship(name)
    return [str(target) for target in relation.GetTargets()] if relation else []


def authored(prim: Any, name: str) -> Any:
    """Return the authored value of an attribute, or None."""
    attribute = prim.GetAttribute(name)
    return attribute.Get() if attribute and attribute.HasAuthoredValue() else None


def articulation_of(builder: Any, body: int) -> int:
    """Return the articulation that a body belongs to, -1 for none."""
    joints = np.flatnonzero(builder.joint_child == body)
    return int(builder.joint_articulation[joints[0]]) if body >= 0 and len(joints) else -1
