"""Scene: the objects on the host that scripts assemble: sim, envs, actors, grounds.

Until the sim is prepared, an actor keeps what differs from its asset in rows of its own, named like the
arrays of the model; afterwards the arrays of model, state and control have everything.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import warp as wp

from pluriverse.geometry import Heightfield, Mesh, Texture
from pluriverse.gymapi.asset import Asset, AssetDof, AssetJoint, FixedTendon
from pluriverse.gymapi.enums import ImageType
from pluriverse.gymapi.lights import Lights
from pluriverse.gymapi.runtime import Runtime
from pluriverse.gymapi.structures import AttractorProperties, CameraProperties, SimParams
from pluriverse.gymapi.values import Transform, Vec3
from pluriverse.model import poses

Part = TypeVar("Part")

_LAYOUTS: dict[ImageType, tuple[Any, tuple[int, ...]]] = {
    ImageType.IMAGE_COLOR: (wp.uint8, (4,)),
    ImageType.IMAGE_DEPTH: (wp.float32, ()),
    ImageType.IMAGE_SEGMENTATION: (wp.int32, ()),
    ImageType.IMAGE_OPTICAL_FLOW: (wp.int16, (2,)),
}
"""Type and shape of a pixel of each kind of image."""


class ShapeWatcher(Protocol):
    """Interface of a display of the shapes of a sim, notified when they change."""

    def paint(self, actor: "Actor", body: int) -> None:
        """Show a body with the colours and textures that it has now."""

    def rescale(self, actor: "Actor") -> None:
        """Show an actor at the scale that it has now."""

    def segment(self, actor: "Actor", body: int) -> None:
        """Show a body with the segmentation id that it has now."""


class RenderedBatch(Protocol):
    """Interface of a renderer of cameras."""

    is_outdated: bool
    """Whether the requested images differ from those that are rendered."""
    is_moved: bool
    """Whether calls moved cameras."""
    render_count: int
    """Number of renderings."""

    def render(self) -> None:
        """Render all requested images."""


class SimViewer(Protocol):
    """A viewer of a sim."""

    def close(self) -> None:
        """Close its window, if it has one."""

    def keep_pace(self) -> None:
        """Wait until as much time has passed as was simulated, if its window is open."""


@dataclasses.dataclass
class Ground:
    """A static shape that collides with everything."""

    kind: str
    """plane, heightfield or mesh."""
    pose: np.ndarray
    """Pose in the sim [m, xyzw]."""
    friction: float
    restitution: float
    heights: np.ndarray | None = None
    """Heights [m] of a height field, shape [row, column], over local x and y."""
    size: tuple[float, float] = (0.0, 0.0)
    """Extents of a height field along local x and y [m]."""
    vertices: np.ndarray | None = None
    triangles: np.ndarray | None = None
    mesh: Mesh | None = None
    """Mesh of a ground of that kind, made once for all worlds."""
    heightfield: Heightfield | None = None
    """The same of a height field."""
    segmentation_id: int = 0
    """Label in segmentation images."""


@dataclasses.dataclass
class Aggregate:
    """A group of actors of an env."""

    max_bodies: int
    max_shapes: int
    self_collisions: bool
    actors: list["Actor"] = dataclasses.field(default_factory=list)


class Actor:
    """One instance of an asset in an env, with its own properties and state.

    This is the record behind an actor handle. `pluriverse.gymapi.ActorView` is the object to work with.
    """

    def __init__(
        self,
        env: "Env",
        asset: Asset,
        name: str,
        *,
        pose: np.ndarray,
        group: int,
        filter: int,
        segmentation_id: int,
    ):
        sim = env.sim
        self.env = env
        self.asset = asset
        self.name = name
        self.group = group
        self.filter = filter
        self.segmentation_id = segmentation_id
        self.handle = len(env.actors)
        self.index = sim.actor_count
        """Index in the sim."""
        self.body_start = sim.body_count
        """First body in the sim, and so on for the other components."""
        self.joint_start = sim.joint_count
        self.dof_start = sim.dof_count
        self.shape_start = sim.shape_count
        self.sensor_start = sim.sensor_count
        self.scale = 1.0
        self.dof_properties = asset.dof_properties
        """Properties of the degrees of freedom; those of the asset until they are set."""
        self.body_flags: np.ndarray | None = None
        """`RigidBodyFlags` where they differ from the asset's."""
        self.shape_filter: np.ndarray | None = None
        """Filter bits of the shapes where they differ from those that `filter` gives."""
        if filter == -1 and asset.filter_bits.any():
            self.shape_filter = asset.filter_bits
        self.shape_offsets = asset.offsets
        """Contact and rest offsets of the shapes [m], shape [shape, 2]; NaN for those of the sim."""
        self.shape_thickness = asset.thickness
        """Thickness of the shapes [m], shape [shape]."""
        self.tendon_offsets: list[float] | None = None
        self.dof_force_sensors = False
        self.tendons: list[FixedTendon] | None = None
        """Tendons of the actor, copied from the asset when one is changed or read."""
        self.colors: dict[tuple[int, int], Vec3] = {}
        """Colours that calls gave bodies, by body and bit of `MeshType`."""
        self.textures: dict[tuple[int, int], int] = {}
        """Handles of textures, likewise."""
        self.segmentation_ids: dict[int, int] = {}
        self.rows: dict[str, np.ndarray] = {}
        """Rows that differ from those of the asset; only until the sim is prepared."""
        self.starts: dict[str, int] = {}
        """First entry of each kind in the arrays of the model, once the sim is prepared."""
        if asset.is_free:
            coord = int(asset.builder.joint_q_start[asset.root_joint])
            rows = asset.builder.joint_q.astype(np.float32)
            rows[coord : coord + 7] = pose
            self.rows["joint_q"] = rows
        else:
            rows = asset.builder.joint_X_p.astype(np.float32)
            rows[asset.root_joint] = fixed_root_frame(asset, pose)
            self.rows["joint_X_p"] = rows
        self.rows.update(asset.overrides)

    @property
    def env_body_start(self) -> int:
        """First body of the actor in its env."""
        return self.body_start - self.env.body_start

    @property
    def env_joint_start(self) -> int:
        """First joint of the actor in its env."""
        return self.joint_start - self.env.joint_start

    @property
    def env_dof_start(self) -> int:
        """First degree of freedom of the actor in its env."""
        return self.dof_start - self.env.dof_start

    def filter_bits(self) -> np.ndarray:
        """Return the filter bits of the shapes."""
        if self.shape_filter is not None:
            return self.shape_filter
        return np.full(self.asset.shape_count, max(self.filter, 0), dtype=np.int64)

    def __str__(self) -> str:
        return f"actor {self.handle} ('{self.name}') of env {self.env.index}"


class Env:
    """An ordered list of actors with a frame of its own.

    Args:
        sim: Sim that it belongs to.
        origin: Its origin in the sim [m].
        lower: Lower corner of the cell that `create_env` was given, in its frame [m].
        upper: Upper corner.
    """

    def __init__(self, sim: "Sim", origin: np.ndarray, lower: np.ndarray, upper: np.ndarray):
        self.sim = sim
        self.index = len(sim.envs)
        self.origin = origin
        self.lower, self.upper = lower, upper
        self.actors: list[Actor] = []
        self.body_start = sim.body_count
        self.joint_start = sim.joint_count
        self.dof_start = sim.dof_count
        self.aggregate: Aggregate | None = None
        self.aggregates: list[Aggregate] = []
        self.attractors: list[Attractor] = []
        self.cameras: list[CameraRecord] = []
        """The camera of each handle."""
        self.world = -1
        """World of the model, once the sim is prepared."""
        self.offset = np.zeros(3)
        """Origin of the env less that of its world [m]."""
        self.is_destroyed = False

    @property
    def body_count(self) -> int:
        """Number of bodies."""
        return sum(actor.asset.body_count for actor in self.actors)

    @property
    def joint_count(self) -> int:
        """Number of joints."""
        return sum(len(actor.asset.joints) for actor in self.actors)

    @property
    def dof_count(self) -> int:
        """Number of degrees of freedom."""
        return sum(actor.asset.dof_count for actor in self.actors)

    def actor_of_body(self, handle: int) -> tuple[Actor, int] | None:
        """Return the actor that a body handle belongs to, and the body in it."""
        for actor in self.actors:
            body = handle - actor.env_body_start
            if 0 <= body < actor.asset.body_count:
                return actor, body
        return None

    def dof_of_handle(self, handle: int) -> tuple[Actor, int, AssetDof] | None:
        """Return the actor, index and description of a degree of freedom."""
        for actor in self.actors:
            dof = handle - actor.env_dof_start
            if 0 <= dof < actor.asset.dof_count:
                return actor, dof, actor.asset.dofs[dof]
        return None

    def joint_of_handle(self, handle: int) -> tuple[Actor, int, AssetJoint] | None:
        """Return the actor, index and description of a joint."""
        for actor in self.actors:
            joint = handle - actor.env_joint_start
            if 0 <= joint < len(actor.asset.joints):
                return actor, joint, actor.asset.joints[joint]
        return None

    def __repr__(self) -> str:
        return f"Env({self.index}, {len(self.actors)} actors)"


@dataclasses.dataclass
class Attractor:
    """A spring and damper on a body."""

    actor: Actor
    body: int
    properties: AttractorProperties
    index: int
    """Index in the sim."""


@dataclasses.dataclass(eq=False)
class CameraRecord:
    """A camera sensor of an env."""

    env: Env
    handle: int
    properties: CameraProperties
    body: tuple[Actor, int] | None = None
    """Actor and body that carry it, or None."""
    follows_rotation: bool = True
    """Whether it rotates with that body."""
    pose: np.ndarray = dataclasses.field(default_factory=lambda: np.array([0.0] * 6 + [1.0]))
    """Pose in the env, or relative to the body [m, xyzw]: it looks along x."""
    is_destroyed: bool = False
    batch: RenderedBatch | None = None
    """Its renderer, once there is one."""
    images: dict[ImageType, Any] = dataclasses.field(default_factory=dict)
    """Memory of each requested kind of image."""

    def image(self, kind: ImageType, device: Any) -> Any:
        """Return the memory of an image, which is rendered from now on."""
        if kind not in self.images:
            dtype, pixel = _LAYOUTS[kind]
            shape = (int(self.properties.height), int(self.properties.width), *pixel)
            self.images[kind] = wp.zeros(shape, dtype=dtype, device=device)
            if self.batch is not None:
                self.batch.is_outdated = True
        return self.images[kind]


class Sim:
    """A simulation: envs, grounds, parameters, and once it is prepared the model and its loop.

    Args:
        params: Parameters; copied.
        device: Warp device.
    """

    def __init__(self, params: SimParams, device: Any):
        self.params = params.copy()
        self.device = device
        self.envs: list[Env] = []
        self.actors: list[Actor] = []
        self.assets: list[Asset] = []
        self.grounds: list[Ground] = []
        self.attractors: list[Attractor] = []
        self.cameras: list[CameraRecord] = []
        """Cameras of all envs."""
        self.textures: dict[int, Texture] = {}
        """The texture of each handle."""
        self.freed_textures: set[int] = set()
        """Handles that must not be used any more."""
        self.lights = Lights()
        """Lights of pictures."""
        self.body_count = 0
        self.joint_count = 0
        self.dof_count = 0
        self.shape_count = 0
        self.sensor_count = 0
        self.frame_count = 0
        self.time = 0.0
        self.begin_time = time.monotonic()
        self.is_destroyed = False
        self.runtime: Runtime | None = None
        """The model and its loop, once the sim is prepared."""
        self.prepared_by = "prepare_sim"
        """Call that prepared it."""
        self.step_time = 0.0
        """Wall-clock time of the last `simulate` [s]."""
        self.efforts_pending = False
        """Whether efforts were applied before the sim was prepared."""
        self.has_tendon_forces = False
        """Whether tendons act in its steps."""
        self.tendons_changed = False
        """Whether properties of tendons changed since they were last copied to the forces."""
        self.has_attractor_forces = False
        """Whether attractors act in its steps."""
        self.attractors_changed = False
        """The same of attractors."""
        self.are_envs_apart = False
        """Whether envs are worlds of their own only because each stays in its cell."""
        self.viewers: list[SimViewer] = []
        """Viewers that were created for it."""
        self.shape_watchers: list[ShapeWatcher] = []
        """Displays of its shapes."""
        self._parts: dict[Any, Any] = {}

    @property
    def prepared(self) -> Runtime:
        """The runtime of a sim that was prepared."""
        assert self.runtime is not None
        return self.runtime

    @property
    def is_prepared(self) -> bool:
        """Whether the model was made."""
        return self.runtime is not None

    @property
    def actor_count(self) -> int:
        """Number of actors."""
        return len(self.actors)

    def add_actor(self, actor: Actor) -> None:
        """Add an actor to its env and count its components."""
        asset = actor.asset
        actor.env.actors.append(actor)
        self.actors.append(actor)
        self.body_count += asset.body_count
        self.joint_count += len(asset.joints)
        self.dof_count += asset.dof_count
        self.shape_count += asset.shape_count
        self.sensor_count += len(asset.force_sensors)
        asset.actor_count += 1

    def part(self, kind: Callable[..., Part]) -> Part | None:
        """Return the part of the sim of a class, None if it does not exist yet."""
        return self._parts.get(kind)

    def add_part(self, part: Part) -> Part:
        """Store an object made for the sim, for `part`, and return it."""
        self._parts[type(part)] = part
        return part

    def __repr__(self) -> str:
        return f"Sim({len(self.envs)} envs, {self.actor_count} actors, on {self.device})"


def pose_row(transform: Transform) -> np.ndarray:
    """Return a transform as position and unit quaternion, float32, shape [7]."""
    row = np.array(transform._numbers(), dtype=np.float32)
    return unit_poses(row[None])[0]


# Error of the square of a quaternion's length up to which it is taken bit for bit: float32 rounding.
UNIT_ROUNDING = 1.0e-6


def unit_poses(rows: np.ndarray) -> np.ndarray:
    """Return poses with unit quaternions: unit ones stay bit for bit, zero becomes the identity."""
    rows = np.array(rows, dtype=np.float32)
    square = np.sum(rows[:, 3:].astype(np.float64) ** 2, axis=1)
    off = np.abs(square - 1.0) > UNIT_ROUNDING
    if off.any():
        quats = rows[off, 3:]
        quats[square[off] < 1.0e-12] = (0.0, 0.0, 0.0, 1.0)
        rows[off, 3:] = quats / np.linalg.norm(quats, axis=1, keepdims=True)
    return rows


def fixed_root_frame(asset: Asset, pose: np.ndarray) -> np.ndarray:
    """Return the parent frame of the root joint for which position zero gives the root body a pose."""
    child = asset.builder.joint_X_c[asset.root_joint]
    if np.array_equal(child, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)):
        return np.asarray(pose, dtype=np.float32)
    return poses.compose(np.asarray(pose, dtype=np.float64), child).astype(np.float32)
