"""RayCaster: place the shapes of a model, and cast rays into its worlds."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State
from pluriverse.model.world_selection import resolve_worlds
from pluriverse.render.raycast.scene import RayScene, SceneArrays
from pluriverse.render.raycast.trace import Excluded, hit_normal, trace_world
from pluriverse.render.raycast.tree import make_shared_trees, make_world_trees
from pluriverse.render.visual import SeenGeometry


@wp.kernel(enable_backward=False, module="pluriverse.render.raycast.cast")
def cast_ray(
    scene: RayScene,
    body_root: wp.array[int],  # [body]
    ray_world: wp.array[int],  # [ray]
    ray_origin: wp.array[wp.vec3],  # [ray] m, world axes
    ray_direction: wp.array[wp.vec3],  # [ray] any length but 0
    max_distance: float,  # m
    # out
    distance: wp.array[float],  # [ray] m, infinite where nothing is hit
    shape: wp.array[int],  # [ray] -1 where nothing is hit
    normal: wp.array[wp.vec3],  # [ray] world axes, 0 where nothing is hit
):
    """Cast one ray into one world."""
    ray, _ = wp.tid()
    world = ray_world[ray]
    origin = ray_origin[ray]
    direction = wp.normalize(ray_direction[ray])
    distance[ray] = wp.inf
    shape[ray] = -1
    normal[ray] = wp.vec3(0.0, 0.0, 0.0)
    if world < 0 or world >= scene.node_start.shape[0] - 2:
        return
    excluded = Excluded()
    excluded.body = -1
    excluded.root = -1
    hit = trace_world(scene, world, origin, direction, max_distance, excluded, body_root)
    if hit.shape >= 0:
        distance[ray] = hit.distance
        shape[ray] = hit.shape
        normal[ray] = hit_normal(scene, hit, origin, direction)


class RayCaster:
    """The shapes of all worlds of a model, ready to be hit by rays.

    Rays in a world hit its own shapes and the global ones. Intersections are exact for primitives, with the
    triangles for meshes and height fields, and with the hull's triangles for convex shapes. `update` places
    the shapes; they stay until the next update.

    Args:
        model: Model whose shapes are hit.
        geometry: Which of its shapes are hit.
    """

    def __init__(self, model: Model, *, geometry: SeenGeometry = SeenGeometry.COLLISION):
        self.model = model
        """Model whose shapes are hit."""
        self.geometry = SeenGeometry(geometry)
        """Which of its shapes are hit."""
        self.arrays = SceneArrays(model, self.geometry)
        """The arrays that kernels read."""
        self.body_root = wp.array(body_roots(model), dtype=wp.int32, device=model.device)
        """Root body of the tree of each body, shape [body]."""
        self.update(model.state())

    def update(self, state: State, worlds: Any = None) -> None:
        """Place the shapes of worlds (default: all), and the global ones, as in a state.

        Nothing is allocated or read back if the worlds are on the device, so the call can be recorded. The
        model's arrays of shapes are read at their current values: poses, sizes, meshes, flags.

        Raises:
            IndexError: If there is no such world.
        """
        selection = resolve_worlds(self.model, worlds, what="RayCaster.update")
        make_shared_trees(self.arrays, state.body_q)
        make_world_trees(selection.worlds, selection.mask, self.arrays, state.body_q)

    def cast(
        self, worlds: Any, origins: Any, directions: Any, *, max_distance: float = np.inf
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cast rays, and return their hits on the host.

        Args:
            worlds: World of each ray, shape [ray]; one number for all rays.
            origins: Where rays begin [m], shape [ray, 3]; one point for all rays.
            directions: Their directions; any length but 0, shape [ray, 3].
            max_distance: Their largest length [m].

        Returns:
            Distances [m], infinite where nothing is hit, shape [ray]; shapes, -1 for none, shape [ray]; unit
            normals in world axes, facing the ray, shape [ray, 3].

        Raises:
            IndexError: If there is no such world.
            ValueError: If the shapes do not fit together, a direction is zero or not finite, or the distance
                is below 0.
        """
        if not (isinstance(max_distance, float | int | np.number) and max_distance >= 0.0):
            raise ValueError(
                f"RayCaster.cast: max_distance is {max_distance!r} m, but it must be a number of at least 0."
            )
        directions = np.asarray(directions, dtype=np.float32).reshape(-1, 3)
        count = len(directions)
        try:
            origins = np.broadcast_to(np.asarray(origins, dtype=np.float32), (count, 3))
            world_of_ray = np.broadcast_to(np.asarray(worlds), (count,)).astype(np.int64)
        except ValueError as error:
            raise ValueError(
                f"RayCaster.cast: {count} directions, but worlds have shape {np.shape(worlds)} and origins "
                f"{np.shape(origins)}. Give one of each per ray, or one for all."
            ) from error
        lengths = np.linalg.norm(directions, axis=1)
        bad = ~(np.isfinite(lengths) & (lengths > 0.0) & np.isfinite(origins).all(axis=1))
        if bad.any():
            ray = int(bad.argmax())
            raise ValueError(
                f"RayCaster.cast: ray {ray} begins at {origins[ray].tolist()} and goes along "
                f"{directions[ray].tolist()}, but it needs a finite origin and a direction other than 0."
            )
        unknown = world_of_ray[(world_of_ray < 0) | (world_of_ray >= self.model.world_count)]
        if len(unknown):
            raise IndexError(
                f"RayCaster.cast: world {int(unknown[0])} "
                f"does not exist; the model has worlds 0 to {self.model.world_count - 1}."
            )
        device = self.model.device
        distance = wp.empty(count, dtype=wp.float32, device=device)
        shape = wp.empty(count, dtype=wp.int32, device=device)
        normal = wp.empty(count, dtype=wp.vec3, device=device)
        self.launch(
            wp.array(world_of_ray.astype(np.int32), dtype=wp.int32, device=device),
            wp.array(np.ascontiguousarray(origins), dtype=wp.vec3, device=device),
            wp.array(directions, dtype=wp.vec3, device=device),
            distance,
            shape,
            normal,
            max_distance=max_distance,
        )
        return distance.numpy(), shape.numpy(), normal.numpy().reshape(-1, 3)

    def launch(
        self,
        worlds: wp.array[int],
        origins: wp.array[wp.vec3],
        directions: wp.array[wp.vec3],
        distance: wp.array[float],
        shape: wp.array[int],
        normal: wp.array[wp.vec3],
        *,
        max_distance: float = np.inf,
    ) -> None:
        """Cast rays from arrays into arrays on the device, as `cast` does; it can be recorded.

        Rays into worlds that do not exist hit nothing.
        """
        launch_kernel(
            cast_ray,
            dim=worlds.size,
            inputs=[
                self.arrays.scene,
                self.body_root,
                worlds,
                origins,
                directions,
                min(float(max_distance), 1.0e29),
            ],
            outputs=[distance, shape, normal],
            device=self.model.device,
        )


def body_roots(model: Model) -> np.ndarray:
    """Return the root body of the tree of each body, shape [body]."""
    parent = np.full(model.body_count, -1, dtype=np.int64)
    child = model.joint_child.numpy()
    parent[child] = model.joint_parent.numpy()
    root = np.arange(model.body_count, dtype=np.int64)
    while True:  # doubles the steps each time
        above = np.where(parent[root] >= 0, parent[root], root)
        if (above == root).all():
            return root.astype(np.int32)
        root = above
