"""Ground stage: heights of feet and bases above the ground below them.

Reads   base_positions and foot_positions; shapes of the model but those of the robots; body_q
Writes  base_heights and foot_heights

Heights above endless planes follow from their equations. For all other shapes rays are cast down from
slightly above a foot: contacts are compliant, and feet sink in by some millimetres.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State
from pluriverse.render import SeenGeometry
from pluriverse.render.raycast.scene import RayScene, SceneArrays
from pluriverse.render.raycast.trace import Excluded, trace_world
from pluriverse.render.raycast.tree import make_shared_trees, make_world_trees
from pluriverse.tensors.read import RobotReadings
from pluriverse.tensors.table import RobotTable
from pluriverse.types import ShapeFlags

# Depth to which ground is searched [m], also the value without ground: a finite number suits policies.
GROUND_DISTANCE = wp.constant(100.0)
# Start of rays above a foot [m]: more than feet sink in, less than the clearance under an obstacle.
RISE = wp.constant(0.1)
# Vertical part of a plane's normal from which on it is ground, not a wall.
_LEVEL = wp.constant(1.0e-3)


@wp.struct
class GroundPlanes:
    """Endless planes, in groups as of `RayScene`."""

    start: wp.array[int]  # [group + 1]
    shape: wp.array[int]  # [plane]


@wp.func
def height_over_planes(
    scene: RayScene,
    planes: GroundPlanes,
    group: int,
    body_q: wp.array[wp.transform],
    point: wp.vec3,
    least: float,
) -> float:
    """Return the height of a point over the endless planes of a group [m], or `least` if that is less."""
    height = least
    for entry in range(planes.start[group], planes.start[group + 1]):
        shape = planes.shape[entry]
        if (scene.shape_flags[shape] & ShapeFlags.COLLIDE_SHAPES) != 0 and scene.shape_enabled[shape]:
            pose = scene.shape_transform[shape]
            if scene.shape_body[shape] >= 0:
                pose = body_q[scene.shape_body[shape]] * pose
            normal = wp.quat_rotate(wp.transform_get_rotation(pose), wp.vec3(0.0, 0.0, 1.0))
            if normal[2] > _LEVEL:
                away = wp.dot(normal, point - wp.transform_get_translation(pose))
                height = wp.min(height, away / normal[2])
    return height


@wp.func
def height_over_shapes(
    scene: RayScene, body_root: wp.array[int], world: int, point: wp.vec3, rise: float, least: float
) -> float:
    """Return the height of a point over what a ray from `rise` [m] above it meets [m], or `least`."""
    excluded = Excluded()
    excluded.body = -1
    excluded.root = -1
    start = point + wp.vec3(0.0, 0.0, rise)
    hit = trace_world(scene, world, start, wp.vec3(0.0, 0.0, -1.0), GROUND_DISTANCE, excluded, body_root)
    height = least
    if hit.shape >= 0:
        height = wp.min(height, hit.distance - rise)
    return height


@wp.kernel(enable_backward=False, module="pluriverse.tensors.ground_planes")
def measure_over_planes(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    table: RobotTable,
    scene: RayScene,
    planes: GroundPlanes,
    body_q: wp.array[wp.transform],  # [body]
    robots: RobotReadings,
    # out
    base_heights: wp.array[float],  # [row] m
    foot_heights: wp.array2d[float],  # [row, foot] m
):
    """Measure the heights of the robots of one world over endless planes."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= table.world_row.shape[0] - 1:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    shared = planes.start.shape[0] - 2
    for row in range(table.world_row[world], table.world_row[world + 1]):
        point = robots.base_positions[row]
        height = height_over_planes(scene, planes, world, body_q, point, GROUND_DISTANCE)
        base_heights[row] = height_over_planes(scene, planes, shared, body_q, point, height)
        for foot in range(table.foot_start[row + 1] - table.foot_start[row]):
            point = robots.foot_positions[row, foot]
            height = height_over_planes(scene, planes, world, body_q, point, GROUND_DISTANCE)
            foot_heights[row, foot] = height_over_planes(scene, planes, shared, body_q, point, height)


@wp.kernel(enable_backward=False, module="pluriverse.tensors.ground_rays")
def measure_over_shapes(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    table: RobotTable,
    scene: RayScene,
    body_root: wp.array[int],  # [body]
    robots: RobotReadings,
    # in and out
    base_heights: wp.array[float],  # [row] m
    foot_heights: wp.array2d[float],  # [row, foot] m
):
    """Lower the heights of the robots of one world to those over the shapes below them."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= table.world_row.shape[0] - 1:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    for row in range(table.world_row[world], table.world_row[world + 1]):
        # A base that is the world itself may be inside the ground.
        rise = wp.where(table.base_body[row] >= 0, 0.0, RISE)
        point = robots.base_positions[row]
        base_heights[row] = height_over_shapes(scene, body_root, world, point, rise, base_heights[row])
        for foot in range(table.foot_start[row + 1] - table.foot_start[row]):
            point = robots.foot_positions[row, foot]
            least = foot_heights[row, foot]
            foot_heights[row, foot] = height_over_shapes(scene, body_root, world, point, RISE, least)


class Ground:
    """The ground below robots: all colliding shapes except their own.

    Args:
        model: Model.
        robot_bodies: Bodies of the robots, whose shapes do not count as ground.
    """

    def __init__(self, model: Model, robot_bodies: np.ndarray) -> None:
        self._model = model
        bodies = model.shape_body.numpy()
        hidden = np.isin(bodies, robot_bodies) & (bodies >= 0)
        hidden |= (model.shape_flags.numpy() & int(ShapeFlags.COLLIDE_SHAPES)) == 0
        self._arrays = SceneArrays(model, SeenGeometry.COLLISION, hidden=hidden)
        scene, device = self._arrays.scene, model.device
        self._planes = GroundPlanes()
        self._planes.start, self._planes.shape = scene.plane_start, scene.plane_shape
        # Rays pass through endless planes, so that a height over these does not depend on other worlds.
        scene.plane_start = wp.zeros_like(scene.plane_start)
        self._has_shapes = self._arrays.entry_count_max > 0
        # Rays pass through no tree of bodies: the robots' shapes are hidden.
        self._no_roots: wp.array[int] = wp.zeros(0, dtype=wp.int32, device=device)

    def prepare(self) -> None:
        """Place the global ground; not during a recording."""
        if self._has_shapes:
            make_shared_trees(self._arrays, self._model.body_q)

    def measure(
        self,
        worlds: wp.array[int],
        mask: wp.array[bool],
        table: Any,
        state: State,
        readings: Any,
        base_heights: Any,
        foot_heights: Any,
    ) -> None:
        """Measure the heights of the robots of worlds; launches only."""
        scene, device = self._arrays.scene, self._model.device
        launch_kernel(
            measure_over_planes,
            dim=worlds.size,
            inputs=[worlds, mask, table, scene, self._planes, state.body_q, readings],
            outputs=[base_heights, foot_heights],
            device=device,
        )
        if self._has_shapes:
            make_world_trees(worlds, mask, self._arrays, state.body_q)
            launch_kernel(
                measure_over_shapes,
                dim=worlds.size,
                inputs=[worlds, mask, table, scene, self._no_roots, readings],
                outputs=[base_heights, foot_heights],
                device=device,
            )
