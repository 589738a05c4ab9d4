"""Reading what an environment does, whichever world it is in."""

import numpy as np

from pluriverse.variants import VariantSimulation


def environment_state(simulation: VariantSimulation, environment: int) -> np.ndarray:
    """Return the coordinates of an environment, whichever world it is in."""
    start = simulation.model.joint_coord_world_start.numpy()
    world = int(simulation.environment_world.numpy()[environment])
    return simulation.state.joint_q.numpy()[start[world] : start[world + 1]]
