"""World ranges: which entities of a model each world has."""

from typing import TYPE_CHECKING

import numpy as np

from pluriverse.types import Entity

if TYPE_CHECKING:
    from pluriverse.model.model import Model

# Array of `Topology` with the first entity of each world, and attribute of `Template` with their number.
_OF_TEMPLATE = {
    Entity.BODY: ("world_body", "body_count"),
    Entity.JOINT: ("world_joint", "node_count"),
    Entity.JOINT_COORD: ("world_coord", "coord_count"),
    Entity.JOINT_DOF: ("world_dof", "dof_count"),
    Entity.SHAPE: ("world_shape", "shape_count"),
}


def entity_count(model: "Model", entity: Entity) -> int:
    """Return how many entities of a kind a model has."""
    return int(getattr(model, f"{entity.key}_count"))


def world_ranges(model: "Model", entity: Entity) -> tuple[np.ndarray, np.ndarray]:
    """Return the first entity of each world and how many there are, shape [world], on the host.

    What all worlds share is in none. In a model authored without worlds everything is in its one world.
    """
    if entity is Entity.WORLD:
        return np.arange(model.world_count), np.ones(model.world_count, dtype=np.int64)
    if entity in _OF_TEMPLATE:
        first, count = _OF_TEMPLATE[entity]
        counts = np.array([getattr(template, count) for template in model.templates], dtype=np.int64)
        return getattr(model.topology, first).numpy().astype(np.int64), counts[model.world_template]
    start = getattr(model, f"{entity.key}_world_start").numpy().astype(np.int64)
    if model.world_count == 1 and start[0] == start[1]:
        return np.zeros(1, dtype=np.int64), np.array([entity_count(model, entity)])
    return start[: model.world_count], np.diff(start[: model.world_count + 1])
