"""Options that several methods of a builder share, each declared once with its default and meaning."""

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from pluriverse.builder.inputs import AxisLike, Transform, Vector
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.types import JointTargetMode

JOINT_SECTIONS = """Returns:
    Index of the joint.

Raises:
    ValueError: If a value is out of range.
    IndexError: If there is no such body."""
"""What the documentation of functions that add joints ends with."""
SHAPE_SECTIONS = """Returns:
    Index of the shape.

Raises:
    IndexError: If there is no such body.
    ValueError: If a size or another value is out of range."""
"""What the documentation of functions that add shapes ends with."""


class LinkOptions(TypedDict, total=False):
    """Options of `add_link` and `add_body`."""

    xform: Transform | None
    """Pose in the world. A free joint starts there; the pose of bodies behind other joints follows from
    `joint_q`."""
    com: Vector | None
    """Centre of mass of `mass` [m], body frame; the origin if None."""
    inertia: Any | None
    """Rotational inertia of `mass` about `com` [kg·m²], body axes, 3x3."""
    mass: Annotated[float, 0.0]
    """Mass [kg]."""
    label: str | None
    """Name; `body_INDEX` if None."""
    lock_inertia: Annotated[bool, False]
    """Whether shapes add nothing to mass, com and inertia."""
    is_kinematic: Annotated[bool, False]
    """Whether state and targets prescribe the motion of the body, whatever forces act on it. Its joint must
    be attached to the world; bodies attached to it stay dynamic."""
    custom_attributes: Mapping[str, Any] | None
    """Custom attributes of the body, by key."""


class JointOptions(TypedDict, total=False):
    """Options of every joint."""

    parent_xform: Transform | None
    """Joint frame in the parent body."""
    child_xform: Transform | None
    """Joint frame in the child body."""
    label: str | None
    """Name; `joint_INDEX` if None."""
    collision_filter_parent: Annotated[bool, True]
    """Whether the shapes of parent and child do not collide."""
    enabled: Annotated[bool, True]
    """Whether it acts. If not, the child moves freely, and the joint becomes a disabled constraint (see
    `add_articulation`)."""
    custom_attributes: Mapping[str, Any] | None
    """Custom attributes by key: those of the joint, and those of its degrees of freedom, coordinates and
    constraints (one value for all, one for each, or some by index)."""


class AxisOptions(TypedDict, total=False):
    """Options of the axis of a hinge or slider; None takes `default_joint_cfg`. See `JointDofConfig`."""

    axis: AxisLike | JointDofConfig | None
    """Axis in the joint frame, or the whole configuration as a `JointDofConfig`."""
    target_pos: float | None
    """Position that the drive pulls to [m or rad]."""
    target_vel: float | None
    """Velocity that the drive pulls to [m/s or rad/s]."""
    target_q: float | None
    """Another name of `target_pos`."""
    target_qd: float | None
    """Another name of `target_vel`."""
    target_ke: float | None
    """Stiffness of the drive [N/m or N·m/rad]."""
    target_kd: float | None
    """Damping of the drive [N·s/m or N·m·s/rad]."""
    limit_lower: float | None
    """Lower limit [m or rad]."""
    limit_upper: float | None
    """Upper limit [m or rad]."""
    limit_ke: float | None
    """Stiffness of the limits [N/m or N·m/rad]; None leaves it to the solver."""
    limit_kd: float | None
    """Damping of the limits [N·s/m or N·m·s/rad]; None leaves it to the solver."""
    armature: float | None
    """Inertia of the rotor [kg or kg·m²]."""
    damping: float | None
    """Viscous damping [N·s/m or N·m·s/rad]."""
    friction: float | None
    """Dry friction [N or N·m]."""
    effort_limit: float | None
    """Largest force of the drive [N or N·m]."""
    velocity_limit: float | None
    """Rated speed [m/s or rad/s]."""
    actuator_mode: JointTargetMode | int | None
    """What the drive follows."""


class AxisJointOptions(AxisOptions, JointOptions, total=False):
    """Options of hinges and sliders."""


class ShapeOptions(TypedDict, total=False):
    """Options of every shape."""

    xform: Transform | None
    """Pose in the frame of the body."""
    cfg: ShapeConfig | None
    """Material, mass and collision behaviour; `default_shape_cfg` if None."""
    color: Vector | None
    """Red, green and blue from 0 to 1; that of the mesh if None."""
    label: str | None
    """Name; `shape_INDEX` if None."""
    custom_attributes: Mapping[str, Any] | None
    """Custom attributes of the shape, by key."""


class PrimitiveOptions(ShapeOptions, total=False):
    """Options of primitives."""

    as_site: Annotated[bool, False]
    """Whether it only marks a frame, without mass or collision."""
