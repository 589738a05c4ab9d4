"""RaySensor: distances along patterns of rays that bodies carry: height scans, lidars, range finders."""

import enum
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.inputs import Transform, as_transform
from pluriverse.model import Model, State
from pluriverse.render import RayCaster, SeenGeometry
from pluriverse.render.raycast.sensing import RayMount, sense_rays
from pluriverse.selection.patterns import Patterns, match_labels
from pluriverse.sensors.base import Sensor


class RayAlignment(enum.IntEnum):
    """Which axes the rays of a sensor follow."""

    BODY = 0
    """Those of the body."""
    YAW = 1
    """Only the rotation of the body about z: a height scan of a leaning robot still looks straight down."""
    WORLD = 2
    """Those of the world."""


class RayVisibility(enum.IntEnum):
    """Which shapes the rays of a sensor meet."""

    ALL = 0
    """All of its world."""
    NOT_BODY = 1
    """All but those of the body that carries it."""
    NOT_ROBOT = 2
    """All except those of its own robot: of all bodies in the same tree."""


class RaySensor(Sensor):
    """Sensors of one ray pattern on bodies of all worlds of a model.

    Rays hit the shapes of their own world and global ones. Results are in arrays that keep their memory from
    update to update, in the order of `sensor_world`.

    Args:
        model: The model.
        rays: Origins [m] and directions in the axes of the sensor, shape [ray, 3], as `grid_pattern` and
            `lidar_pattern` return them.
        bodies: Labels or patterns of the bodies that carry a sensor each.
        xform: Pose of the sensor in its body, in the axes of `alignment`.
        alignment: Axes of the rays.
        visibility: Which shapes the rays hit.
        geometry: Whether they hit collision or visual shapes.
        max_distance: Their largest length [m].
        threads: Threads on a CPU; as many as cores if None.

    Raises:
        KeyError: If there is no such body.
        ValueError: If the rays are none, or a value is out of range.
    """

    sensor_world: np.ndarray
    """World of each sensor, on the host, shape [sensor]."""
    sensor_body: np.ndarray
    """Body that carries each sensor, on the host, shape [sensor]."""
    distance: Any
    """Distances [m], infinite for nothing, a Warp array of shape [sensor, ray]."""
    point: Any
    """End points of the rays [m], world axes, a Warp array of vectors of shape [sensor, ray]."""
    normal: Any
    """Unit normals of what is hit, world axes, 0 for nothing, a Warp array of shape [sensor, ray]."""
    shape: Any
    """Shapes that are hit, -1 for none, a Warp array of shape [sensor, ray]."""

    def __init__(
        self,
        model: Model,
        rays: tuple[Any, Any],
        *,
        bodies: Patterns,
        xform: Transform | None = None,
        alignment: RayAlignment = RayAlignment.BODY,
        visibility: RayVisibility = RayVisibility.NOT_ROBOT,
        geometry: SeenGeometry | str = SeenGeometry.COLLISION,
        max_distance: float = 100.0,
        threads: int | None = None,
    ):
        super().__init__(RayCaster(model, geometry=SeenGeometry(geometry)), threads)
        origins, directions = (np.asarray(part, dtype=np.float64).reshape(-1, 3) for part in rays)
        lengths = np.linalg.norm(directions, axis=1)
        if len(directions) == 0 or len(origins) != len(directions):
            raise ValueError(
                f"RaySensor: rays have {len(origins)} origins and {len(directions)} directions, but as many "
                "of one as of the other are needed, and one or more."
            )
        if not (np.isfinite(origins).all() and np.isfinite(lengths).all() and lengths.min() > 0.0):
            raise ValueError("RaySensor: rays must have finite origins, and directions other than 0.")
        if not 0.0 < max_distance <= np.inf:
            raise ValueError(f"RaySensor: max_distance is {max_distance}, but it must be > 0 (m).")
        found = match_labels(
            model.body_label, np.arange(model.body_count), bodies, what="RaySensor: bodies", kind="body"
        )
        rows = np.flatnonzero(found)
        if not rows.size:
            raise KeyError("RaySensor: bodies is an empty list. Name bodies that carry a sensor.")
        world = np.maximum(model.body_world.numpy()[rows].astype(np.int64), 0)
        order = np.argsort(world, kind="stable")
        self.sensor_body, self.sensor_world = rows[order], world[order]
        device, count = model.device, len(rows)
        counts = np.bincount(world, minlength=model.world_count)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._start: Any = wp.array(starts, dtype=wp.int32, device=device)
        self._count_max = int(counts.max(initial=0))
        mount = self._mount = RayMount()
        mount.body = wp.array(self.sensor_body.astype(np.int32), dtype=wp.int32, device=device)
        pose = np.tile(as_transform(xform, "RaySensor: xform"), (count, 1)).astype(np.float32)
        mount.xform = wp.array(pose, dtype=wp.transform, device=device)
        mount.alignment, mount.excluded = int(RayAlignment(alignment)), int(RayVisibility(visibility))
        units = (directions / lengths[:, None]).astype(np.float32)
        self._rays: Any = (
            wp.array(origins.astype(np.float32), dtype=wp.vec3, device=device),
            wp.array(units, dtype=wp.vec3, device=device),
        )
        self._max_distance = min(float(max_distance), 1.0e29)
        shape = (count, len(directions))
        self.distance = wp.zeros(shape, dtype=wp.float32, device=device)
        self.point = wp.zeros(shape, dtype=wp.vec3, device=device)
        self.normal = wp.zeros(shape, dtype=wp.vec3, device=device)
        self.shape = wp.zeros(shape, dtype=wp.int32, device=device)

    def _ray_count(self) -> int:
        return int(self.distance.size)

    def _sense(self, state: State, worlds: wp.array[int]) -> None:
        sense_rays(
            worlds,
            self._start,
            self._count_max,
            self._caster,
            self._mount,
            state.body_q,
            self._rays,
            self._max_distance,
            (self.distance, self.point, self.normal, self.shape),
        )
