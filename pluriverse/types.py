"""Vocabulary: the enumerations and flags that the arrays of a model are written in.

The numbers are part of the interface: they stand in the model's arrays and agree with Newton's.
"""

import enum


class Axis(enum.IntEnum):
    """Coordinate axis."""

    X = 0
    Y = 1
    Z = 2

    @property
    def vector(self) -> tuple[float, float, float]:
        """Unit vector along the axis."""
        return (float(self is Axis.X), float(self is Axis.Y), float(self is Axis.Z))

    def to_vector(self) -> tuple[float, float, float]:
        """Return the unit vector along the axis."""
        return self.vector

    @classmethod
    def from_any(cls, value: "Axis | str | int") -> "Axis":
        """Return the axis that a name, a number or an axis means.

        Args:
            value: An axis, its name ("x", "Y"), or its number, 0 to 2.

        Raises:
            ValueError: If it is something else.
        """
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        # Numbers of NumPy count as well; a truth value or 1.5 is a slip.
        if not isinstance(value, str | bool) and hasattr(value, "__index__") and int(value) in (0, 1, 2):
            return cls(int(value))
        raise ValueError(
            f"Axis: {value!r} is no axis. Give Axis.X, Axis.Y or Axis.Z, 'x', 'y' or 'z', or 0 to 2."
        )

    @classmethod
    def from_string(cls, name: str) -> "Axis":
        """Return the axis of a name, "x", "y" or "z" in either case.

        Raises:
            ValueError: If no axis has this name.
        """
        return cls.from_any(str(name))


AxisType = Axis | int | str
"""Values that `Axis.from_any` accepts."""
MAXVAL = 1.0e10
"""Newton's value for "no limit"; infinity has the same effect."""
use_coord_layout_targets = True
"""Whether `joint_target_q` is numbered like coordinates. It always is, whatever a script sets."""


class Entity(enum.Enum):
    """Entities of the entries of an array. `Model.AttributeFrequency` is another name, as in Newton."""

    ONCE = 0
    """One value for the whole model."""
    JOINT = 1
    JOINT_DOF = 2
    JOINT_COORD = 3
    JOINT_CONSTRAINT = 4
    """Degrees of freedom that joints take away, 6 less its own of each joint, joint after joint."""
    BODY = 5
    SHAPE = 6
    ARTICULATION = 7
    EQUALITY_CONSTRAINT = 8
    WORLD = 15

    @property
    def key(self) -> str:
        """The kind in small letters, as in `joint_dof`. `Model.joint_dof_count` counts them."""
        return self.name.lower()


class JointType(enum.IntEnum):
    """Type of a joint: the motion of its child body relative to its parent body."""

    PRISMATIC = 0
    """Slide along one axis: q = [distance], qd = [speed]."""
    REVOLUTE = 1
    """Turn about one axis: q = [angle], qd = [rate]."""
    BALL = 2
    """Turn about a point: q = quaternion xyzw, qd = angular velocity in the joint's parent frame."""
    FIXED = 3
    """Nothing: no coordinates."""
    FREE = 4
    """Anything: q = position, quaternion xyzw; qd = velocity of the centre of mass, angular velocity, in
    world axes, or below a parent body relative to it, in the axes of its joint frame."""
    DISTANCE = 5
    """Anything, as FREE, while two points, the origins of the joint frames, stay within a distance of each
    other."""
    D6 = 6
    """Slide along up to three axes, then turn about up to three, each of which the earlier ones carry:
    q = [distances, angles], qd = their rates."""

    @property
    def coord_count(self) -> int:
        """Number of coordinates in `joint_q`; for `D6`, which has as many as axes, 0."""
        return _JOINT_COORD_COUNT[self]

    @property
    def dof_count(self) -> int:
        """Number of degrees of freedom in `joint_qd`; for `D6`, which has as many as axes, 0."""
        return sum(_JOINT_DOF_DIM[self])

    @property
    def dof_dim(self) -> tuple[int, int]:
        """Number of linear and of angular degrees of freedom."""
        return _JOINT_DOF_DIM[self]


_JOINT_COORD_COUNT = (1, 1, 4, 0, 7, 7, 0)
_JOINT_DOF_DIM = ((1, 0), (0, 1), (0, 3), (0, 0), (3, 3), (3, 3), (0, 0))


FLOATING_JOINTS = (JointType.FREE, JointType.DISTANCE)
"""Joints whose coordinates are a pose: position, quaternion xyzw."""


class JointTargetMode(enum.IntEnum):
    """Target of the drive of a degree of freedom."""

    AUTO = -1
    """Decided in `ModelBuilder.finalize` from the gains: `POSITION_VELOCITY` if `target_ke` > 0 and
    `target_kd * target_vel` is not 0, else `POSITION` if `target_ke` > 0, else `VELOCITY` if `target_kd` > 0,
    else `NONE`. Never found in a model."""
    NONE = 0
    """No drive."""
    POSITION = 1
    """`target_pos`, with stiffness `target_ke` and damping `target_kd`."""
    VELOCITY = 2
    """`target_vel`, with gain `target_kd`."""
    POSITION_VELOCITY = 3
    """`target_pos` and `target_vel`."""
    EFFORT = 4
    """The force or torque `joint_act`."""


class EqType(enum.IntEnum):
    """Type of an equality constraint: the quantity that it fixes."""

    CONNECT = 0
    """A point of one body at a point of another."""
    WELD = 1
    """One body at a pose in another. With a joint, a part at the body that this loop joint cut it from."""
    JOINT = 2
    """The coordinate of one joint at a polynomial of that of another, or at a value."""
    HINGE = 3
    """A point and an axis of one body at those of another."""
    DISTANCE = 4
    """A point of one body within a distance of a point of another: what a distance joint holds."""


class GeoType(enum.IntEnum):
    """Geometry of a shape, in its own frame; `scale` is the shape's `shape_scale`."""

    NONE = 0
    PLANE = 1
    """z = 0 with the solid below; scale = (width along x, length along y, 0), 0 meaning infinite."""
    HFIELD = 2
    """Height field, solid below; scale = factors along x, y, z."""
    SPHERE = 3
    """scale = (radius, 0, 0)."""
    CAPSULE = 4
    """Axis z; scale = (radius, half height without the caps, 0)."""
    ELLIPSOID = 5
    """scale = semi-axes along x, y, z."""
    CYLINDER = 6
    """Axis z; scale = (radius, half height, 0)."""
    BOX = 7
    """scale = half extents along x, y, z."""
    MESH = 8
    """Triangle mesh; scale = factors along x, y, z."""
    CONE = 9
    """Axis z, apex at +z; scale = (radius of the base, half height, 0)."""
    CONVEX_MESH = 10
    """Convex hull of a triangle mesh; scale = factors along x, y, z."""


class ShapeFlags(enum.IntFlag):
    """Uses of a shape: collision, display, marking a frame."""

    VISIBLE = 1
    """Is drawn."""
    COLLIDE_SHAPES = 2
    """Collides with other shapes."""
    COLLIDE_PARTICLES = 4
    """Collides with particles."""
    SITE = 8
    """Marks a frame; has no mass and never collides."""
    HYDROELASTIC = 16
    """Is compliant, with pressure over the patch where it touches others."""


class BodyFlags(enum.IntFlag):
    """How a body moves."""

    DYNAMIC = 1
    """Under forces."""
    KINEMATIC = 2
    """Prescribed by state and targets, whatever forces act; only for bodies attached to the world."""
    ALL = 1 | 2
    """Both, to filter by; a body is one or the other."""


class StateFlags(enum.IntFlag):
    """Parts of a `State`, for `reset` of a solver."""

    NONE = 0
    JOINT_Q = 1
    JOINT_QD = 2
    BODY_Q = 4
    BODY_QD = 8
    PARTICLE_Q = 16
    """There are no particles."""
    PARTICLE_QD = 32
    """There are no particles."""
    BODY_F = 64
    PARTICLE_F = 128
    """There are no particles."""
    JOINT_F = 256
    """Forces on joints belong to `Control`, which stays as it is."""
    BODY = 4 | 8
    PARTICLE = 16 | 32
    JOINT = 1 | 2
    FORCE = 64 | 128 | 256
    ALL = 511


class ModelFlags(enum.IntFlag):
    """Groups of arrays of a model that were written to, for `notify_model_changed`."""

    JOINT_PROPERTIES = 1
    """Joint frames, axes, initial coordinates and velocities."""
    JOINT_DOF_PROPERTIES = 2
    """Gains, targets, limits, armature, damping, friction."""
    BODY_PROPERTIES = 4
    """Initial poses and velocities of bodies."""
    BODY_INERTIAL_PROPERTIES = 8
    """Masses, centres of mass, inertias."""
    SHAPE_PROPERTIES = 16
    """Poses, sizes, margins and materials of shapes."""
    MODEL_PROPERTIES = 32
    """Gravity."""
    CONSTRAINT_PROPERTIES = 64
    """Equality constraints."""
    TENDON_PROPERTIES = 128
    """Custom attributes of MuJoCo for tendons."""
    ACTUATOR_PROPERTIES = 256
    """Custom attributes of MuJoCo for actuators; drives belong to `JOINT_DOF_PROPERTIES`."""
    JOINT_DOF_FORCE_PROPERTIES = 512
    """The part of `JOINT_DOF_PROPERTIES` without armature."""
    JOINT_DOF_INERTIAL_PROPERTIES = 1024
    """Armature."""
    JOINT_REFERENCE_POSE_PROPERTIES = 2048
    """Initial coordinates."""
    ALL = 1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 | 256 | 512 | 1024 | 2048
    """Everything. Initial poses of bodies then follow from the coordinates of joints."""
