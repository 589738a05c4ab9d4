"""Names of entities in messages: what the entry of an array belongs to."""

from typing import TYPE_CHECKING

import numpy as np

from pluriverse.types import Entity

if TYPE_CHECKING:
    from pluriverse.model.model import Model


def entity_name(model: "Model", kind: Entity, entry: int) -> str:
    """Return the name of an entity by its flat index.

    Degrees of freedom and coordinates have that of their joint.
    """
    if kind is Entity.WORLD:
        return f"world {entry}"
    if kind in (Entity.JOINT_DOF, Entity.JOINT_COORD):
        start = (model.joint_qd_start if kind is Entity.JOINT_DOF else model.joint_q_start).numpy()
        joint = int(np.searchsorted(start, entry, side="right")) - 1
        return f"joint '{model.joint_label[joint]}' (index {joint})"
    label = {
        Entity.BODY: model.body_label,
        Entity.JOINT: model.joint_label,
        Entity.SHAPE: model.shape_label,
        Entity.EQUALITY_CONSTRAINT: model.equality_constraint_label,
    }[kind][entry]
    return f"{kind.key.replace('_', ' ')} '{label}' (index {entry})"
