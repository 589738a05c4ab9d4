"""Env cells: whether envs whose actors might collide can still be separate worlds.

Scripts often give all actors one collision group, and space envs apart on their grid. As long as every body
stays in the cell of its env, it cannot touch a body of another env. So each env may be a separate world,
which costs far less than one world for all envs. A body that leaves its cell is reported.

Reads   body_q
Writes  the first body that is not in its cell
"""

import warnings
from typing import Any

import numpy as np
import warp as wp

from pluriverse.geometry.shape_bounds import compute_shape_bounds
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.enums import UpAxis
from pluriverse.gymapi.errors import GymWarning
from pluriverse.gymapi.frames import body_rows
from pluriverse.gymapi.scene import Sim
from pluriverse.launch import launch_kernel

# `simulate` calls between two readings of the result on a GPU, each of which waits for all its work.
GPU_LOOK_PERIOD = 128
# Length that stands for a cell without bounds, and for a body that collides with no other [m].
UNBOUNDED = 1.0e9


def horizontal_axes(sim: Sim) -> list[int]:
    """Return the two axes of the grid of envs."""
    return [0, 2] if int(sim.params.up_axis) == UpAxis.UP_AXIS_Y else [0, 1]


def body_radius(asset: Asset) -> np.ndarray:
    """Return the extent of the shapes of each body from its origin [m], shape [body]; -inf without shapes."""
    builder = asset.builder
    sources = builder.shape_source_index
    lower, upper, shape_radius = compute_shape_bounds(
        builder.shape_type, builder.shape_scale, sources, builder.meshes
    )
    middle = 0.5 * (lower + upper)
    away = (
        np.linalg.norm(builder.shape_transform[:, :3], axis=1) + np.linalg.norm(middle, axis=1) + shape_radius
    )
    radius = np.full(asset.body_count, -np.inf)
    np.maximum.at(radius, builder.shape_body, away)
    return radius


def cell_rows(sim: Sim) -> tuple[np.ndarray, np.ndarray]:
    """Return the cell of the env of each body, and the radius of the body, in the order of the sim.

    Returns:
        Lower and upper bounds along the horizontal axes, in the frame of the env [m], shape [body, 4], and
        distances from the origins of the bodies [m], contact offsets included, shape [body].
    """
    axes = horizontal_axes(sim)
    margin = float(sim.params.physx.contact_offset)
    radii = {id(asset): body_radius(asset) for asset in {actor.asset for actor in sim.actors}}
    radius = [actor.scale * radii[id(actor.asset)] + margin for actor in sim.actors]
    cells = [
        np.tile([*actor.env.lower[axes], *actor.env.upper[axes]], (actor.asset.body_count, 1))
        for actor in sim.actors
    ]
    joined = np.concatenate(radius)
    return np.concatenate(cells), np.where(np.isfinite(joined), joined, -UNBOUNDED)


def are_apart(sim: Sim) -> bool:
    """Return whether, in the initial state, each body is in the cell of its env and no cells overlap."""
    axes = horizontal_axes(sim)
    pitch = {tuple((env.upper - env.lower)[axes].tolist()) for env in sim.envs}
    if len(pitch) != 1 or min(pitch.pop()) <= 0.0:
        return False  # the grid is not regular, or envs stand in each other
    lows = {tuple(env.lower[axes].tolist()) for env in sim.envs}
    if len(lows) != 1 or len({tuple(env.origin.tolist()) for env in sim.envs}) != len(sim.envs):
        return False
    cells, radius = cell_rows(sim)
    positions = np.concatenate([body_rows(actor)[0][:, :3] for actor in sim.actors])[:, axes]
    inside = (positions - radius[:, None] >= cells[:, :2]) & (positions + radius[:, None] <= cells[:, 2:])
    return bool(inside.all())


@wp.kernel(enable_backward=False, module="pluriverse.gymapi.env_cells")
def find_stray(
    body: wp.array[int],  # [row] body of the model
    offset: wp.array[wp.vec3],  # [row] m, origin of the env in its world
    cell: wp.array[wp.vec4],  # [row] m, lower and upper bounds along two axes of the env
    radius: wp.array[float],  # [row] m
    second_axis: int,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    # out
    stray: wp.array[int],  # [1] a row whose body is not in its cell, plus one; 0 for none
):
    """Record a body that is not in the cell of its env."""
    row, _ = wp.tid()
    position = wp.transform_get_translation(body_q[body[row]]) - offset[row]
    x = position[0]
    y = position[second_axis]
    far = radius[row]
    bounds = cell[row]
    if x - far < bounds[0] or y - far < bounds[1] or x + far > bounds[2] or y + far > bounds[3]:
        wp.atomic_max(stray, 0, row + 1)


class CellGuard:
    """Warns once when a body leaves the cell of its env.

    Args:
        sim: A prepared sim whose envs are worlds of their own although their actors might collide.
    """

    def __init__(self, sim: Sim):
        self._sim = sim
        device = sim.device
        cells, radius = cell_rows(sim)
        self._cell: Any = wp.array(cells.astype(np.float32), dtype=wp.vec4, device=device)
        self._radius: Any = wp.array(radius.astype(np.float32), dtype=float, device=device)
        self._stray: Any = wp.zeros(1, dtype=int, device=device)
        self._steps = 0
        self._has_warned = False

    def check(self, dt: float) -> None:
        """Check the positions of bodies, after a step."""
        if self._has_warned:
            return
        runtime, device = self._sim.prepared, self._sim.device
        launch_kernel(
            find_stray,
            dim=self._radius.size,
            inputs=[
                runtime.bodies.body,
                runtime.bodies.offset,
                self._cell,
                self._radius,
                horizontal_axes(self._sim)[1],
                runtime.simulation.state.body_q,
            ],
            outputs=[self._stray],
            device=device,
        )
        self._steps += 1
        if not device.is_cpu and self._steps % GPU_LOOK_PERIOD:
            return
        row = int(self._stray.numpy()[0]) - 1
        if row >= 0:
            self._warn(row)

    def _warn(self, row: int) -> None:
        self._has_warned = True
        starts = [actor.body_start for actor in self._sim.actors]
        actor = self._sim.actors[int(np.searchsorted(starts, row, side="right")) - 1]
        name = actor.asset.body_names[row - actor.body_start]
        warnings.warn(
            f"simulate: body '{name}' of {actor} left the cell that create_env() gave its env. Envs share "
            "a collision group, but each is a world of its own, so that it meets no actor of another env "
            "there. If it should, set sim_params.isolate_envs = False; if not, give each env a group of its "
            "own, or set it to True, and this warning goes.",
            GymWarning,
            stacklevel=5,
        )
