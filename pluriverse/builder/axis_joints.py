"""Joints with axes: hinges, sliders, and D6 joints of up to three axes of each kind."""

from collections.abc import Sequence
from typing import Any, Unpack, cast

from pluriverse.builder.inputs import AxisLike
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.joint_entries import add_joint_entry, dof_config
from pluriverse.builder.options import JOINT_SECTIONS, AxisJointOptions, AxisOptions, JointOptions
from pluriverse.builder.tables import BuilderTables
from pluriverse.options import with_options
from pluriverse.types import JointType


@with_options(AxisJointOptions, sections=JOINT_SECTIONS)
def add_joint_revolute(
    builder: BuilderTables, parent: int, child: int, **options: Unpack[AxisJointOptions]
) -> int:
    """Add a hinge: the child rotates about `axis`.

    Args:
        parent: Parent body, -1 for the world.
        child: Child body.
    """
    return _add_axis_joint(builder, JointType.REVOLUTE, parent, child, options)


@with_options(AxisJointOptions, sections=JOINT_SECTIONS)
def add_joint_prismatic(
    builder: BuilderTables, parent: int, child: int, **options: Unpack[AxisJointOptions]
) -> int:
    """Add a slider: the child moves along `axis`.

    Args:
        parent: Parent body, -1 for the world.
        child: Child body.
    """
    return _add_axis_joint(builder, JointType.PRISMATIC, parent, child, options)


def _add_axis_joint(
    builder: BuilderTables, joint_type: JointType, parent: int, child: int, options: AxisJointOptions
) -> int:
    values = cast(dict[str, Any], options)
    of_axis = {name: value for name, value in values.items() if name in AxisOptions.__annotations__}
    config = dof_config(builder, of_axis.pop("axis", None), **of_axis)
    return add_joint_entry(builder, joint_type, parent, child, [config], options)


@with_options(JointOptions)
def add_joint_d6(
    builder: BuilderTables,
    parent: int,
    child: int,
    *,
    linear_axes: Sequence[JointDofConfig | AxisLike] | None = None,
    angular_axes: Sequence[JointDofConfig | AxisLike] | None = None,
    **options: Unpack[JointOptions],
) -> int:
    """Add a joint of several axes: the child slides along the linear, then rotates about the angular ones.

    The linear axes are fixed in the joint frame of the parent. The angular ones are successive: the
    second is carried by the first, the third by both, all three pass through the displaced origin of the
    child's joint frame. Coordinates and degrees of freedom are those of the linear axes, then of the angular
    ones.

    Args:
        parent: Parent body, -1 for the world.
        child: Child body.
        linear_axes: Up to three axes to slide along, in the joint frame, each as an axis or as a
            `JointDofConfig`. A bare axis takes everything else from `default_joint_cfg`.
        angular_axes: Up to three axes to rotate about, in order from the parent.

    Returns:
        Index of the joint.

    Raises:
        ValueError: If there is no axis, more than three of a kind, or a value is out of range.
        IndexError: If there is no such body.
    """
    linear = [] if linear_axes is None else list(linear_axes)
    angular = [] if angular_axes is None else list(angular_axes)
    label = options.get("label")
    label = f"joint_{builder.joint_count}" if label is None else label
    name = f"joint '{label}' (index {builder.joint_count})"
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
        options,
        dof_dim=(len(linear), len(angular)),
    )
