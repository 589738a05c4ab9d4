"""First entities of each world, for kernels that copy whole worlds."""

import numpy as np
import warp as wp

from pluriverse.model import Model
from pluriverse.types import Entity

BOUNDED_ENTITIES = (Entity.BODY, Entity.JOINT_COORD, Entity.JOINT_DOF)
"""What `world_bounds` returns the bounds of, in this order."""


def world_bounds(model: Model) -> list[wp.array[int]]:
    """Return where bodies, coordinates and degrees of freedom of each world begin, shape [world + 1] each."""
    return [
        wp.array(bounds_of(start.numpy(), count, model.world_count), dtype=wp.int32, device=model.device)
        for entity in BOUNDED_ENTITIES
        for start, count in [(getattr(model, f"{entity.key}_world_start"), model.get_frequency_count(entity))]
    ]


def bounds_of(start: np.ndarray, count: int, world_count: int) -> np.ndarray:
    """Return where each world begins and the last one ends, shape [world + 1]."""
    if world_count == 1 and start[0] == start[1]:  # nothing was put into a world, so everything is in the one
        return np.array([0, count], dtype=np.int32)
    return start[: world_count + 1].astype(np.int32)
