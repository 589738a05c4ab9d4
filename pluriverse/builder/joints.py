"""Joints without configured axes (ball, fixed, free, distance), and joints of any type."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from pluriverse.builder.axis_joints import add_joint_d6, add_joint_prismatic, add_joint_revolute
from pluriverse.builder.inputs import AxisLike, as_axis
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.joint_entries import add_joint_entry
from pluriverse.builder.options import JOINT_SECTIONS, JointOptions
from pluriverse.builder.tables import BuilderTables
from pluriverse.options import with_options
from pluriverse.types import Axis, JointTargetMode, JointType

_LINEAR = (Axis.X, Axis.Y, Axis.Z)


@with_options(JointOptions, sections=JOINT_SECTIONS)
def add_joint_ball(
    builder: BuilderTables,
    parent: int,
    child: int,
    *,
    armature: float | None = None,
    damping: float | None = None,
    friction: float | None = None,
    target_kd: float | None = None,
    effort_limit: float | None = None,
    actuator_mode: JointTargetMode | int | None = None,
    **options: Unpack[JointOptions],
) -> int:
    """Add a ball joint: the child rotates about a point, without limits.

    The arguments are those of `add_joint_revolute`; they apply to each of the three axes of the joint frame.
    A ball joint has no position drive.
    """
    default = builder.default_joint_cfg
    configs = [
        JointDofConfig.create_unlimited(axis).merged(
            armature=default.armature if armature is None else armature,
            damping=default.damping if damping is None else damping,
            friction=default.friction if friction is None else friction,
            target_kd=target_kd,
            effort_limit=default.effort_limit if effort_limit is None else effort_limit,
            velocity_limit=default.velocity_limit,
            actuator_mode=JointTargetMode.AUTO if actuator_mode is None else actuator_mode,
        )
        for axis in _LINEAR
    ]
    return add_joint_entry(
        builder,
        JointType.BALL,
        parent,
        child,
        configs,
        options,
    )


@with_options(JointOptions, sections=JOINT_SECTIONS)
def add_joint_fixed(
    builder: BuilderTables,
    parent: int,
    child: int,
    **options: Unpack[JointOptions],
) -> int:
    """Fix the child to the parent. The arguments are those of `add_joint_revolute`.

    Shapes of bodies fixed together never collide with each other.
    """
    return add_joint_entry(
        builder,
        JointType.FIXED,
        parent,
        child,
        [],
        options,
    )


@with_options(JointOptions, sections=JOINT_SECTIONS)
def add_joint_free(
    builder: BuilderTables,
    child: int,
    *,
    parent: int = -1,
    **options: Unpack[JointOptions],
) -> int:
    """Add a free joint: the child moves freely and starts at the pose given to `add_link`.

    The coordinates of a free joint are the pose of the joint frame of the child in that of the parent:
    without frames and parent, the pose of the body in the world. Its velocity is that of the centre of mass
    and the angular velocity, in world axes. Below a parent body, which exerts no force on the child, the
    velocity is relative to the parent and in the axes of its joint frame.
    """
    return add_joint_entry(
        builder,
        JointType.FREE,
        parent,
        child,
        [JointDofConfig.create_unlimited(axis) for axis in _LINEAR * 2],
        options,
    )


@with_options(JointOptions)
def add_joint_distance(
    builder: BuilderTables,
    parent: int,
    child: int,
    *,
    min_distance: float = -1.0,
    max_distance: float = 1.0,
    **options: Unpack[JointOptions],
) -> int:
    """Bound the distance of two points, as a rope or a rod does.

    The points are the origins of the joint frames in parent and child. Otherwise the child moves freely:
    coordinates, velocities and initial pose are those of `add_joint_free`. `finalize` adds an equality
    constraint with the label of the joint.

    Args:
        parent: Parent body, -1 for the world.
        child: Child body.
        min_distance: Least distance [m]; negative for none.
        max_distance: Largest distance [m]; negative for none. Equal distances make a rod.

    Returns:
        Index of the joint.

    Raises:
        ValueError: If no distance > 0 is allowed, or a value is out of range.
        IndexError: If there is no such body.
    """
    configs = [JointDofConfig.create_unlimited(axis) for axis in _LINEAR * 2]
    configs[0] = configs[0].merged(limit_lower=min_distance, limit_upper=max_distance)
    return add_joint_entry(
        builder,
        JointType.DISTANCE,
        parent,
        child,
        configs,
        options,
    )


@with_options(JointOptions)
def add_joint(
    builder: BuilderTables,
    joint_type: JointType | int,
    parent: int,
    child: int,
    *,
    linear_axes: Sequence[JointDofConfig | AxisLike] | None = None,
    angular_axes: Sequence[JointDofConfig | AxisLike] | None = None,
    **options: Unpack[JointOptions],
) -> int:
    """Add a joint of any type, with the arguments of `add_joint_d6`.

    A prismatic joint takes one linear axis, a revolute joint one angular axis, a D6 joint up to three of
    each, all others none. A ball joint may be given x, y and z as angular axes: these then supply its
    armature, damping, friction, `target_kd` and effort limit.

    Returns:
        Index of the joint.

    Raises:
        ValueError: If the number of axes does not fit the type, or a value is out of range.
        IndexError: If there is no such body.
    """
    kind = JointType(joint_type)
    linear = [] if linear_axes is None else list(linear_axes)
    angular = [] if angular_axes is None else list(angular_axes)
    if kind is JointType.D6:
        return add_joint_d6(builder, parent, child, linear_axes=linear, angular_axes=angular, **options)
    has_axes = kind in (JointType.PRISMATIC, JointType.REVOLUTE) or (kind is JointType.BALL and angular)
    expected = kind.dof_dim if has_axes else (0, 0)
    if (len(linear), len(angular)) != expected:
        raise ValueError(
            f"add_joint: {len(linear)} linear and {len(angular)} angular axes were given, but a joint of "
            f"type {kind.name} takes {expected[0]} and {expected[1]}. Use JointType.D6 for other axes."
        )
    if kind is JointType.PRISMATIC:
        return add_joint_prismatic(builder, parent, child, axis=linear[0], **options)
    if kind is JointType.REVOLUTE:
        return add_joint_revolute(builder, parent, child, axis=angular[0], **options)
    if kind is JointType.BALL:
        return _add_ball_of_axes(builder, parent, child, angular, options)
    if kind is JointType.FIXED:
        return add_joint_fixed(builder, parent, child, **options)
    if kind is JointType.FREE:
        return add_joint_free(builder, child, parent=parent, **options)
    return add_joint_distance(builder, parent, child, **options)


def _add_ball_of_axes(
    builder: BuilderTables,
    parent: int,
    child: int,
    axes: Sequence[JointDofConfig | AxisLike],
    options: JointOptions,
) -> int:
    """Add a ball joint whose losses and damping drive are given per axis, or not at all."""
    configs = [axis if isinstance(axis, JointDofConfig) else JointDofConfig(axis=axis) for axis in axes]
    given = np.array([as_axis(config.axis, "add_joint: axis") for config in configs])
    if configs and not np.array_equal(given, np.eye(3)):
        raise ValueError(
            f"add_joint: the angular axes of a ball joint are {given.tolist()}, but they must be x, y "
            "and z. Rotate its frames by parent_xform and child_xform, or use JointType.D6."
        )
    for config in configs:
        if config.target_ke != 0.0:
            raise ValueError(
                f"add_joint: target_ke is {config.target_ke}, but a ball joint has no position drive. "
                "Set it to 0; target_kd drives its velocities."
            )
    modes = {config.actuator_mode for config in configs}
    joint = add_joint_ball(
        builder, parent, child, actuator_mode=modes.pop() if len(modes) == 1 else None, **options
    )
    dof = int(builder.joint_qd_start[joint])
    for offset, config in enumerate(configs):
        builder.joint_armature[dof + offset] = config.armature
        builder.joint_damping[dof + offset] = config.damping
        builder.joint_friction[dof + offset] = config.friction
        builder.joint_target_kd[dof + offset] = config.target_kd
        builder.joint_target_vel[dof + offset] = config.target_vel
        builder.joint_effort_limit[dof + offset] = config.effort_limit
    return joint
