"""Scene: what scripts assemble, as objects of the host: sim, envs, actors, grounds.

Until the sim is prepared, an actor keeps what differs from its asset in rows of its own, named like the
arrays of the model; afterwards the arrays of model, state and control have everything.
"""

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pluriverse.gymapi.asset import Asset, AssetDof, AssetJoint
from pluriverse.gymapi.lights import Lights
from pluriverse.gymapi.structures import AttractorProperties, SimParams
from pluriverse.gymapi.values import Transform, Vec3

if TYPE_CHECKING:
    from pluriverse.gymapi.attractor_forces import AttractorForces
    from pluriverse.gymapi.cameras import CameraSet
    from pluriverse.gymapi.contact_readings import ContactReadings
    from pluriverse.gymapi.joint_efforts import JointEfforts
    from pluriverse.gymapi.matrices import ArticulationMatrices
    from pluriverse.gymapi.runtime import Runtime
    from pluriverse.gymapi.sensor_readings import SensorReadings
    from pluriverse.gymapi.tendon_forces import TendonForces
    from pluriverse.gymapi.tensor_set import TensorSet


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
    source: Any = None
    """Mesh or height field, made once for all worlds."""
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
        """Properties of the degrees of freedom, shared with the asset until they are set."""
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
        self.tendons: list[Any] | None = None
        """Tendons of its own once one is changed or read."""
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
        self.cameras: list[Any] = []
        """`CameraRecord` of each camera handle."""
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
        self.cameras: list[Any] = []
        """Cameras of all envs."""
        self.textures: dict[int, Any] = {}
        """`Texture` of each handle."""
        self.freed_textures: set[int] = set()
        """Handles that must not be used any more."""
        self.lights = Lights()
        """What shines on pictures."""
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
        """`pluriverse.gymapi.runtime.Runtime` once the sim is prepared."""
        self.prepared_by = "prepare_sim"
        """Call that prepared it."""
        self.step_time = 0.0
        """Wall-clock time of the last `simulate` [s]."""
        self.efforts_pending = False
        """Whether efforts were applied before the sim was prepared."""
        # What is made of the runtime when it is needed.
        self.tensors: TensorSet | None = None
        self.body_cache: TensorSet | None = None
        self.matrices: ArticulationMatrices | None = None
        self.contact_readings: ContactReadings | None = None
        self.sensor_readings: SensorReadings | None = None
        self.joint_efforts: JointEfforts | None = None
        self.attractor_forces: AttractorForces | None = None
        self.tendon_forces: TendonForces | None = None
        self.are_envs_apart = False
        """Whether envs are worlds of their own only because each stays in its cell."""
        self.camera_set: CameraSet | None = None
        """`pluriverse.gymapi.cameras.CameraSet` once a picture was asked for."""
        self.viewers: list[Any] = []
        """Viewers that were created for it."""

    @property
    def prepared(self) -> "Runtime":
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
    """Return the parent frame of the root joint that puts the root body, at position zero, at a pose."""
    from pluriverse.model import poses

    child = asset.builder.joint_X_c[asset.root_joint]
    if np.array_equal(child, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)):
        return np.asarray(pose, dtype=np.float32)
    return poses.compose(np.asarray(pose, dtype=np.float64), child).astype(np.float32)
