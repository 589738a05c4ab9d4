"""Joints with axes: hinges, sliders, and D6 joints of up to three axes of each kind."""

from collections.abc import Mapping, Sequence
from typing import Any

from pluriverse.builder.inputs import AxisLike, Transform
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.joint_entries import add_joint_entry, dof_config
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import JointTargetMode, JointType


def add_joint_revolute(
    builder: BuilderTables,
    parent: int,
    child: int,
    *,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    axis: AxisLike | JointDofConfig | None = None,
    target_pos: float | None = None,
    target_vel: float | None = None,
    target_q: float | None = None,
    target_qd: float | None = None,
    target_ke: float | None = None,
    target_kd: float | None = None,
    limit_lower: float | None = None,
    limit_upper: float | None = None,
    limit_ke: float | None = None,
    limit_kd: float | None = None,
    armature: float | None = None,
    damping: float | None = None,
    friction: float | None = None,
    effort_limit: float | None = None,
    velocity_limit: float | None = None,
    actuator_mode: JointTargetMode | int | None = None,
    label: str | None = None,
    collision_filter_parent: bool = True,
    enabled: bool = True,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add a hinge: the child turns about `axis`.

    Args:
        parent: Parent body, -1 for the world.
        child: Child body.
        parent_xform: Joint frame in the parent body.
        child_xform: Joint frame in the child body.
        axis: Axis in the joint frame, or the whole configuration as a `JointDofConfig`.
        target_pos: See `JointDofConfig`, as the arguments that follow; None takes `default_joint_cfg`.
        target_vel: Velocity target.
        target_q: Another name of `target_pos`.
        target_qd: Another name of `target_vel`.
        target_ke: Stiffness of the drive.
        target_kd: Damping of the drive.
        limit_lower: Lower limit.
        limit_upper: Upper limit.
        limit_ke: Stiffness of the limits; left to the solver where nobody gives any.
        limit_kd: Damping of the limits; the same.
        armature: Inertia of the rotor.
        damping: Viscous damping.
        friction: Dry friction.
        effort_limit: Largest force of the drive.
        velocity_limit: Rated speed.
        actuator_mode: What the drive follows.
        label: Name; `joint_INDEX` if None.
        collision_filter_parent: Whether the shapes of parent and child do not collide.
        enabled: Whether it acts. If not, the child moves freely, and the joint is a constraint that is
            off (see `add_articulation`).
        custom_attributes: Custom attributes by key: those of the joint, and those of its degrees of
            freedom, coordinates and constraints (one value for all, one for each, or some by place).

    Returns:
        Index of the joint.

    Raises:
        ValueError: If a value is out of range.
        IndexError: If there is no such body.
    """
    config = dof_config(
        builder,
        axis,
        target_pos=target_pos,
        target_vel=target_vel,
        target_q=target_q,
        target_qd=target_qd,
        target_ke=target_ke,
        target_kd=target_kd,
        limit_lower=limit_lower,
        limit_upper=limit_upper,
        limit_ke=limit_ke,
        limit_kd=limit_kd,
        armature=armature,
        damping=damping,
        friction=friction,
        effort_limit=effort_limit,
        velocity_limit=velocity_limit,
        actuator_mode=actuator_mode,
    )
    return add_joint_entry(
        builder,
        JointType.REVOLUTE,
        parent,
        child,
        [config],
        parent_xform,
        child_xform,
        label,
        collision_filter_parent,
        enabled,
        custom_attributes,
    )


def add_joint_prismatic(
    builder: BuilderTables,
    parent: int,
    child: int,
    *,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    axis: AxisLike | JointDofConfig | None = None,
    target_pos: float | None = None,
    target_vel: float | None = None,
    target_q: float | None = None,
    target_qd: float | None = None,
    target_ke: float | None = None,
    target_kd: float | None = None,
    limit_lower: float | None = None,
    limit_upper: float | None = None,
    limit_ke: float | None = None,
    limit_kd: float | None = None,
    armature: float | None = None,
    damping: float | None = None,
    friction: float | None = None,
    effort_limit: float | None = None,
    velocity_limit: float | None = None,
    actuator_mode: JointTargetMode | int | None = None,
    label: str | None = None,
    collision_filter_parent: bool = True,
    enabled: bool = True,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add a slider: the child moves along `axis`. The arguments are those of `add_joint_revolute`.

    Returns:
        Index of the joint.

    Raises:
        ValueError: If a value is out of range.
        IndexError: If there is no such body.
    """
    config = dof_config(
        builder,
        axis,
        target_pos=target_pos,
        target_vel=target_vel,
        target_q=target_q,
        target_qd=target_qd,
        target_ke=target_ke,
        target_kd=target_kd,
        limit_lower=limit_lower,
        limit_upper=limit_upper,
        limit_ke=limit_ke,
        limit_kd=limit_kd,
        armature=armature,
        damping=damping,
        friction=friction,
        effort_limit=effort_limit,
        velocity_limit=velocity_limit,
        actuator_mode=actuator_mode,
    )
    return add_joint_entry(
        builder,
        JointType.PRISMATIC,
        parent,
        child,
        [config],
        parent_xform,
        child_xform,
        label,
        collision_filter_parent,
        enabled,
        custom_attributes,
    )


def add_joint_d6(
    builder: BuilderTables,
    parent: int,
    child: int,
    *,
    linear_axes: Sequence[JointDofConfig | AxisLike] | None = None,
    angular_axes: Sequence[JointDofConfig | AxisLike] | None = None,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    label: str | None = None,
    collision_filter_parent: bool = True,
    enabled: bool = True,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add a joint of several axes: the child slides along the linear, then turns about the angular ones.

    The linear axes are fixed in the joint frame of the parent. The angular ones are successive: the
    second is carried by the first, the third by both, all three through the point that the child slid
    to. Coordinates and degrees of freedom are those of the linear axes, then of the angular ones.

    Args:
        parent: Parent body, -1 for the world.
        child: Child body.
        linear_axes: Up to three axes to slide along, in the joint frame, each as an axis or as a
            `JointDofConfig`. An axis alone takes everything else from `default_joint_cfg`.
        angular_axes: Up to three axes to turn about, in the order in which they follow the parent.
        parent_xform: Joint frame in the parent body.
        child_xform: Joint frame in the child body.
        label: Name; `joint_INDEX` if None.
        collision_filter_parent: Whether the shapes of parent and child do not collide.
        enabled: Whether it acts. If not, the child moves freely, and the joint is a constraint that is
            off (see `add_articulation`).
        custom_attributes: Custom attributes by key: those of the joint, and those of its degrees of
            freedom, coordinates and constraints (one value for all, one for each, or some by place).

    Returns:
        Index of the joint.

    Raises:
        ValueError: If there is no axis, more than three of a kind, or a value is out of range.
        IndexError: If there is no such body.
    """
    linear = [] if linear_axes is None else list(linear_axes)
    angular = [] if angular_axes is None else list(angular_axes)
    name = (
        f"joint '{f'joint_{builder.joint_count}' if label is None else label}' (index {builder.joint_count})"
    )
    for axes, which in ((linear, "linear_axes"), (angular, "angular_axes")):
        if len(axes) > 3:
            raise ValueError(
                f"{name}: {which} has {len(axes)} entries, but there are only three directions. Leave "
                "out those that the others span."
            )
    if not linear and not angular:
        raise ValueError(
            f"{name}: a D6 joint without axes cannot move. Give linear_axes or angular_axes, or use "
            "add_joint_fixed()."
        )
    return add_joint_entry(
        builder,
        JointType.D6,
        parent,
        child,
        [dof_config(builder, axis) for axis in (*linear, *angular)],
        parent_xform,
        child_xform,
        label,
        collision_filter_parent,
        enabled,
        custom_attributes,
        dof_dim=(len(linear), len(angular)),
    )
