"""Names of entities in messages: what the entry of an array belongs to."""

from typing import TYPE_CHECKING

import numpy as np

from pluriverse.types import Entity

if TYPE_CHECKING:
    from pluriverse.model.model import Model


def labelled(kind: Entity, label: str, index: int, world: int, world_count: int) -> str:
    """Return the name of an entity for messages.

    Labels repeat from world to world, and an index counts through all of them. So where there are several
    worlds, the name says which one it is.

    Args:
        kind: Kind of entity.
        label: Label.
        index: Flat index.
        world: World, -1 for none.
        world_count: Number of worlds.
    """
    place = f", world {world}" if world >= 0 and world_count > 1 else ""
    return f"{kind.key.replace('_', ' ')} '{label}' (index {index}{place})"


def entity_name(model: "Model", kind: Entity, entry: int) -> str:
    """Return the name of an entity by its flat index.

    Degrees of freedom and coordinates have that of their joint.
    """
    if kind is Entity.WORLD:
        return f"world {entry}"
    if kind in (Entity.JOINT_DOF, Entity.JOINT_COORD):
        start = (model.joint_qd_start if kind is Entity.JOINT_DOF else model.joint_q_start).numpy()
        return entity_name(model, Entity.JOINT, int(np.searchsorted(start, entry, side="right")) - 1)
    label = getattr(model, f"{kind.key}_label")[entry]
    world = int(getattr(model, f"{kind.key}_world").numpy()[entry])
    return labelled(kind, label, int(entry), world, model.world_count)
