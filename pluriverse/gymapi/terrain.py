"""Terrain: height fields as grounds."""

from typing import Any

import numpy as np

from pluriverse.geometry import Heightfield
from pluriverse.gymapi.enums import UpAxis
from pluriverse.gymapi.scene import Ground, Sim
from pluriverse.model import poses

# Turns local z to world y; local y then points against world z.
_Y_UP = np.array([0.0, 0.0, 0.0, -(2.0**-0.5), 0.0, 0.0, 2.0**-0.5])


def add_heightfield_shape(sim: Sim, builder: Any, ground: Ground, config: Any) -> None:
    """Add the height field of a ground to a world, at its pose in the sim."""
    assert ground.heights is not None
    pose, rows = ground.pose, ground.heights
    if int(sim.params.up_axis) == UpAxis.UP_AXIS_Y:
        pose, rows = poses.compose(pose, _Y_UP), rows[:, ::-1]
    if ground.heightfield is None:
        hx, hy = (0.5 * extent for extent in ground.size)
        ground.heightfield = Heightfield(rows.T, rows.shape[1], rows.shape[0], hx, hy)
    builder.add_shape_heightfield(xform=pose, heightfield=ground.heightfield, cfg=config, label="terrain")
