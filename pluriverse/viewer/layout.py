"""Layout: where each shown world is drawn, side by side."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.model import Model

# Worlds shown by default: enough to see a mix, few enough for any browser.
SHOWN_WORLD_COUNT = 16
# Gap between worlds, relative to the largest of them, and its minimum [m].
SPACING_FACTOR = 1.15
SPACING_MIN = 0.4


def shown_environments(environments: np.ndarray, requested: Any, what: str) -> np.ndarray:
    """Return the environments (worlds, where there are no variants) to show.

    Args:
        environments: All environments.
        requested: A list of environments, a single one, or None for a default, spread over all if there
            are many.
        what: The caller, for messages.

    Raises:
        IndexError: If there is no such world.
        ValueError: If none is named.
    """
    if requested is None:
        count = min(SHOWN_WORLD_COUNT, len(environments))
        return environments[np.unique(np.linspace(0, len(environments) - 1, count).round().astype(np.int64))]
    selected = np.atleast_1d(np.asarray(requested))
    if selected.size == 0 or not np.issubdtype(selected.dtype, np.integer):
        raise ValueError(f"{what}: worlds are {requested!r}, but must be indices of worlds, at least one.")
    bad = selected[~np.isin(selected, environments)]
    if bad.size:
        raise IndexError(
            f"{what}: world {int(bad[0])} does not exist; there are worlds {_listed(environments)}."
        )
    return np.unique(selected.astype(np.int64))


def _listed(worlds: np.ndarray) -> str:
    if len(worlds) == worlds[-1] - worlds[0] + 1:
        return f"{worlds[0]} to {worlds[-1]}"
    shown = ", ".join(str(world) for world in worlds[:12].tolist())
    return shown + (", ..." if len(worlds) > 12 else "")


def world_of(model: Model, kind: str) -> np.ndarray:
    """Return the world of each body, joint or shape; -1 for global ones.

    In a model authored without worlds, all bodies and joints are in world 0.
    """
    world: np.ndarray = getattr(model, f"{kind}_world").numpy()
    if model.world_count > 1 or (world >= 0).any() or kind == "shape":
        return world
    return np.zeros_like(world)


def grid_offsets(
    model: Model, body_q: np.ndarray, worlds: Sequence[int] | np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the drawing offset of each world, and the distance between neighbours.

    Worlds that are already spaced apart (`replicate(spacing=)`) are moved to the same grid.

    Args:
        model: Model that has the worlds.
        body_q: Poses of all bodies [m, xyzw], shape [body, 7].
        worlds: The worlds.

    Returns:
        Offsets [m], shape [world, 3], and the distance [m].
    """
    start = model.body_world_start.numpy()
    level = [axis for axis in range(3) if axis != int(model.up_axis)]
    positions = np.asarray(body_q).reshape(-1, 7)[:, :3]
    centres, extents = np.zeros((len(worlds), 3)), np.zeros(len(worlds))
    for index, world in enumerate(np.asarray(worlds).tolist()):
        own = positions[start[world] : start[world + 1]] if model.world_count > 1 else positions
        own = own[np.isfinite(own).all(axis=1)]
        if len(own):
            # The first body is the base: a thrown object must not displace the robot.
            centres[index, level] = own[0, level]
            away = np.abs(own[:, level] - own[0, level])
            extents[index] = float(np.quantile(away, 0.9)) if len(own) > 1 else 0.0
    if len(worlds) == 1:
        return np.zeros((1, 3)), 0.0
    distance = max(SPACING_MIN, SPACING_FACTOR * (2.0 * float(extents.max()) + SPACING_MIN))
    side = math.ceil(math.sqrt(len(worlds)))
    places = np.arange(len(worlds))
    grid = np.zeros((len(worlds), 3))
    grid[:, level[0]] = distance * (places // side)
    grid[:, level[1]] = distance * (places % side)
    grid -= 0.5 * (grid.min(axis=0) + grid.max(axis=0))
    return grid - centres, distance
