"""First entities of each world, for kernels that copy whole worlds."""

import numpy as np
import warp as wp

from pluriverse.model import Model


def world_bounds(model: Model) -> list[wp.array[int]]:
    """Return where bodies, coordinates and degrees of freedom of each world begin, shape [world + 1] each."""
    return [
        wp.array(bounds_of(start.numpy(), count, model.world_count), dtype=wp.int32, device=model.device)
        for start, count in (
            (model.body_world_start, model.body_count),
            (model.joint_coord_world_start, model.joint_coord_count),
            (model.joint_dof_world_start, model.joint_dof_count),
        )
    ]


def bounds_of(start: np.ndarray, count: int, world_count: int) -> np.ndarray:
    """Return where each world begins and the last one ends, shape [world + 1]."""
    if world_count == 1 and start[0] == start[1]:  # nothing was put into a world, so everything is in the one
        return np.array([0, count], dtype=np.int32)
    return start[: world_count + 1].astype(np.int32)
