"""A robot as read from an asset, before it is added to a builder, for all importers.

Frames and quantities are float64 on the host, in the link frames of the asset. None stands for the default of
the builder that the robot goes to.
"""

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from pluriverse.geometry import MassProperties
from pluriverse.importers.frames import IDENTITY, Frame, make_frame, quat_from_axis_angle
from pluriverse.types import EqType, GeoType, JointTargetMode, JointType

WORLD = -1  # parent of a link attached to the world


@dataclasses.dataclass
class ShapeDescription:
    """Geometry fixed to a link."""

    label: str
    """Full label."""
    type: GeoType
    """Kind of geometry."""
    frame: Frame = IDENTITY
    """Pose in the link frame."""
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Size as in `Model.shape_scale` [m]; factors 1 for meshes."""
    mesh: Any = None
    """The `Mesh` of `MESH` and `CONVEX_MESH`, the `Heightfield` of `HFIELD`, else None."""
    collides: bool = True
    """Whether it collides."""
    is_visible: bool = True
    """Whether it is drawn."""
    is_site: bool = False
    """Whether it only marks a frame."""
    color: tuple[float, float, float] | None = None
    """Red, green and blue from 0 to 1, or None."""
    appearance: Any = None
    """Its `Appearance`, or None."""
    contype: int = 1
    """Category bits for the pair rule."""
    conaffinity: int = 1
    """Collision mask for the pair rule."""
    cfg: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of the builder's shape configuration that the asset gives."""
    custom: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Custom attributes of the shape, by key."""
    origin: Hashable = None
    """Its element in the asset, as a key of `Placement`; None if nothing refers to it."""


@dataclasses.dataclass
class DofDescription:
    """A degree of freedom of a revolute, prismatic or D6 joint."""

    axis: np.ndarray
    """Unit vector in the joint frame."""
    lower: float | None = None
    """Lower limit [rad or m], None for no limit."""
    upper: float | None = None
    """Upper limit [rad or m], None for no limit."""
    armature: float | None = None
    """Inertia added on the joint [kg·m² or kg]."""
    damping: float | None = None
    """Passive damping [N·m·s/rad or N·s/m]."""
    friction: float | None = None
    """Dry friction [N·m or N]."""
    effort_limit: float | None = None
    """Largest effort of the drive [N·m or N]."""
    velocity_limit: float | None = None
    """Largest speed [rad/s or m/s]."""
    limit_ke: float | None = None
    """Stiffness of the limits [N·m/rad or N/m]."""
    limit_kd: float | None = None
    """Damping of the limits [N·m·s/rad or N·s/m]."""
    mode: JointTargetMode | None = None
    """Mode of the drive."""
    target_ke: float | None = None
    """Stiffness of the drive [N·m/rad or N/m]."""
    target_kd: float | None = None
    """Damping of the drive [N·m·s/rad or N·s/m]."""
    target_pos: float | None = None
    """Position target [rad or m]."""
    target_vel: float | None = None
    """Velocity target [rad/s or m/s]."""
    target_lower: float | None = None
    """Least target of the drive [rad or m, of one without stiffness rad/s or m/s]."""
    target_upper: float | None = None
    """Largest target of the drive."""
    act: float | None = None
    """Effort of a drive in mode `EFFORT` [N·m or N]."""
    custom: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Custom attributes of the degree of freedom, by key."""
    origin: Hashable = None
    """Its element in the asset, as a key of `Placement`; None if nothing refers to it."""


@dataclasses.dataclass
class JointDescription:
    """The joint that connects a link to its parent."""

    label: str
    """Full label."""
    type: JointType
    """Kind of joint."""
    parent_frame: Frame = IDENTITY
    """Joint frame in the parent link (or the world)."""
    child_frame: Frame = IDENTITY
    """Joint frame in the child link."""
    dof: DofDescription | None = None
    """The degree of freedom of a revolute or prismatic joint."""
    dofs: list[DofDescription] = dataclasses.field(default_factory=list)
    """The degrees of freedom of a D6 joint, linear ones first."""
    linear_count: int = 0
    """Number of linear degrees of freedom of a D6 joint."""
    distances: tuple[float, float] = (-1.0, -1.0)
    """Least and largest distance of the points of a distance joint [m], negative for none."""
    q: list[float] = dataclasses.field(default_factory=list)
    """Initial coordinates, as in `Model.joint_q`; of a free joint, the pose of the link in the world."""
    qd: list[float] = dataclasses.field(default_factory=list)
    """Initial velocities, as in `Model.joint_qd`."""
    armature: float | None = None
    """Inertia added on every degree of freedom of a ball joint [kg·m²]."""
    damping: float | None = None
    """Passive damping of every degree of freedom of a ball or free joint [N·m·s/rad, N·s/m]."""
    friction: float | None = None
    """Dry friction of every degree of freedom of a ball or free joint [N·m, N]."""
    filter_parent: bool = True
    """Whether the links on both sides do not collide with each other."""
    is_kept: bool = False
    """Whether a fixed joint is kept when links behind fixed joints are merged."""
    custom: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Custom attributes of the joint (and of all degrees of freedom of a ball or free joint), by key."""
    origin: Hashable = None
    """Its element in the asset, as a key of `Placement`; None if nothing refers to it."""

    @property
    def dof_count(self) -> int:
        """Number of degrees of freedom."""
        return len(self.dofs) if self.type is JointType.D6 else self.type.dof_count

    def motion(self) -> Frame:
        """Return the pose of the child's joint frame in the parent's, at the initial coordinates."""
        if self.type is JointType.REVOLUTE:
            assert self.dof is not None
            half = 0.5 * self.q[0]
            return Frame(np.zeros(3), np.array([*(np.sin(half) * self.dof.axis), np.cos(half)]))
        if self.type is JointType.PRISMATIC:
            assert self.dof is not None
            return Frame(self.q[0] * self.dof.axis, IDENTITY.quat)
        if self.type is JointType.D6:
            motion = IDENTITY
            for index, (dof, q) in enumerate(zip(self.dofs, self.q, strict=True)):
                linear = index < self.linear_count
                motion = motion @ (
                    make_frame(q * dof.axis) if linear else make_frame(quat=quat_from_axis_angle(dof.axis, q))
                )
            return motion
        if self.type is JointType.BALL:
            return Frame(np.zeros(3), np.array(self.q))
        if self.type is JointType.FREE:
            return Frame(np.array(self.q[:3]), np.array(self.q[3:]))
        return IDENTITY


@dataclasses.dataclass
class LoopDescription:
    """A joint between two links that other joints already connect: it closes a loop."""

    label: str
    """Full label."""
    type: EqType
    """Type of the constraint: `CONNECT`, `WELD` or `HINGE`."""
    links: tuple[int, int]
    """Indices of the two links, or `WORLD`."""
    frames: tuple[Frame, Frame]
    """The joint frame in each of them."""
    axis: np.ndarray | None = None
    """Axis of a hinge, joint frame."""
    torquescale: float = 1.0
    """Stiffness of the rotational part of a weld, relative to near rigid."""
    enabled: bool = True
    """Whether it acts from the start."""
    custom: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Custom attributes of the constraint, by key."""
    origin: Hashable = None
    """Its element in the asset, as a key of `Placement`; None if nothing refers to it."""


@dataclasses.dataclass
class LoopJointDescription:
    """A loop joint that does more than constrain two links: it slides, drives, limits or damps."""

    links: tuple[int, int]
    """Indices of its parent link, or `WORLD`, and of its child link."""
    joint: JointDescription
    """The joint."""
    enabled: bool = True
    """Whether it acts from the start."""


@dataclasses.dataclass
class CouplingDescription:
    """A joint coordinate that follows another one, q = polynomial(q of the other), or is fixed."""

    label: str
    """Full label."""
    link: int
    """Link whose joint follows."""
    leader: int | None
    """Link whose joint leads; None for a fixed coordinate."""
    polynomial: np.ndarray
    """Coefficients, constant first, shape [5]."""
    axis: int = 0
    """Axis of the joint that follows, by its index among the axes."""
    leader_axis: int = 0
    """Axis of the joint that leads."""
    enabled: bool = True
    """Whether it acts from the start."""
    custom: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Custom attributes of the constraint, by key."""
    origin: Hashable = None
    """Its element in the asset, as a key of `Placement`; None if nothing refers to it."""


@dataclasses.dataclass
class LinkDescription:
    """A rigid body and the joint that moves it."""

    name: str
    """Name in the asset."""
    label: str
    """Full label."""
    element: str
    """Its name in messages."""
    parent: int
    """Index of the parent link, or `WORLD`."""
    joint: JointDescription
    """The joint to the parent."""
    mass_properties: MassProperties
    """Mass, centre of mass and inertia, link frame."""
    shapes: list[ShapeDescription] = dataclasses.field(default_factory=list)
    """Geometry fixed to the link."""
    is_intermediate: bool = False
    """Whether the link only connects two joints of one body of the asset."""
    is_kinematic: bool = False
    """Whether the motion of the link is prescribed."""
    is_mocap: bool = False
    """Whether the link is a mocap body, which is fixed to the world but is no scenery to its neighbours."""
    custom: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Custom attributes of the body, by key."""
    origins: dict[Hashable, Frame] = dataclasses.field(default_factory=dict)
    """Elements of the asset in it, as keys of `Placement`: its body, and bodies merged into it, with their
    frames in the link."""


@dataclasses.dataclass
class RobotDescription:
    """Links, parents before children, and shapes fixed to the world."""

    label: str
    """First component of all labels."""
    source: str
    """The file or the name of the text it was read from."""
    links: list[LinkDescription] = dataclasses.field(default_factory=list)
    """Links, every parent before its children."""
    world_shapes: list[ShapeDescription] = dataclasses.field(default_factory=list)
    """Geometry fixed to the world."""
    loops: list[LoopDescription] = dataclasses.field(default_factory=list)
    """Loop joints that only constrain two links."""
    loop_joints: list[LoopJointDescription] = dataclasses.field(default_factory=list)
    """The other joints that close loops."""
    couplings: list[CouplingDescription] = dataclasses.field(default_factory=list)
    """Joints that follow others."""
    excluded_pairs: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    """Pairs of links (or `WORLD`) whose shapes do not collide with each other."""
    excluded_shapes: list[tuple[ShapeDescription, ShapeDescription]] = dataclasses.field(default_factory=list)
    """Pairs of shapes that do not collide with each other."""
    paired_shapes: list[tuple[ShapeDescription, ShapeDescription]] = dataclasses.field(default_factory=list)
    """Pairs of shapes that collide with each other, whatever their links and bits."""
    tree_labels: dict[int, str] = dataclasses.field(default_factory=dict)
    """Labels of articulations, by the first link of each: for those at the world if the asset names them, and
    for those that start further out."""
    body_order: list[int] | None = None
    """Links in the order of their bodies; None for that of the links."""
    filter_static_parent: bool = True
    """Whether a link does not collide with a neighbour that is fixed to the world."""


@dataclasses.dataclass
class Placement:
    """Indices in the builder of the parts of an asset, by their origins."""

    bodies: dict[Hashable, int] = dataclasses.field(default_factory=dict)
    frames: dict[Hashable, Frame] = dataclasses.field(default_factory=dict)
    """Frames of the bodies of the asset in those of the builder."""
    joints: dict[Hashable, int] = dataclasses.field(default_factory=dict)
    dofs: dict[Hashable, int] = dataclasses.field(default_factory=dict)
    """First degree of freedom."""
    shapes: dict[Hashable, int] = dataclasses.field(default_factory=dict)
    constraints: dict[Hashable, int] = dataclasses.field(default_factory=dict)
    """Equality constraints."""
