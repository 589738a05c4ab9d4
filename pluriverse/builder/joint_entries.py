"""Joint entries: what all joints share, namely frames, degrees of freedom, coordinates and targets."""

from typing import Any

import numpy as np

from pluriverse.builder.custom_attributes import (
    JOINT_CONSTRAINT_COUNT,
    check_custom_values,
    custom_entity_count,
    put_custom_values,
)
from pluriverse.builder.inputs import (
    IDENTITY,
    AxisLike,
    as_axis,
    as_transform,
    number_or_not_given,
)
from pluriverse.builder.joint_config import JointDofConfig, mode_value
from pluriverse.builder.options import JointOptions
from pluriverse.builder.tables import BuilderTables
from pluriverse.builder.world_scope import check_body
from pluriverse.model import poses
from pluriverse.types import FLOATING_JOINTS, Entity, JointType

# Columns of a degree of freedom that are copied from a `JointDofConfig`.
_DOF_NUMBERS = (
    "armature",
    "damping",
    "friction",
    "target_ke",
    "target_kd",
    "target_pos",
    "target_vel",
    "target_lower",
    "target_upper",
    "limit_lower",
    "limit_upper",
    "effort_limit",
    "velocity_limit",
)


def dof_config(
    builder: BuilderTables, axis: AxisLike | JointDofConfig | None, **values: Any
) -> JointDofConfig:
    """Return the configuration of an axis: the given one or the default, updated by values that are not None.

    Raises:
        ValueError: If a target is given under both of its names.
    """
    for name, other in (("target_pos", "target_q"), ("target_vel", "target_qd")):
        if values.get(name) is not None and values.get(other) is not None:
            raise ValueError(
                f"joint 'joint_{builder.joint_count}': both {name} and {other} are given, but they are two "
                "names of one target. Pass one of them."
            )
    base = axis if isinstance(axis, JointDofConfig) else builder.default_joint_cfg.merged(axis=axis)
    return base.merged(**values)


def add_joint_entry(
    builder: BuilderTables,
    joint_type: JointType,
    parent: int,
    child: int,
    dofs: list[JointDofConfig],
    options: JointOptions,
    dof_dim: tuple[int, int] | None = None,
) -> int:
    """Add a joint of any type, whose degrees of freedom are configured, and return its index.

    Raises:
        ValueError: If a value is out of range.
        IndexError: If there is no such body.
    """
    joint = builder.joint_count
    label = options.get("label")
    label = f"joint_{joint}" if label is None else label
    name = f"joint '{label}' (index {joint})"
    check_body(builder, parent, f"{name}: parent")
    check_body(builder, child, f"{name}: child")
    if child < 0:
        raise ValueError(f"{name}: child is -1, but a joint moves a body. Pass the world as the parent.")
    if parent == child:
        raise ValueError(f"{name}: {builder.body_name(child)} is both parent and child.")
    frames = [as_transform(options.get("parent_xform"), f"{name}: parent_xform")]
    frames.append(as_transform(options.get("child_xform"), f"{name}: child_xform"))
    rows = [_dof_row(config, f"{name}, axis {index}") for index, config in enumerate(dofs)]
    coord_count = len(rows) if joint_type is JointType.D6 else joint_type.coord_count
    counts = {
        Entity.JOINT: 1,
        Entity.JOINT_DOF: len(rows),
        Entity.JOINT_COORD: coord_count,
        Entity.JOINT_CONSTRAINT: JOINT_CONSTRAINT_COUNT - len(rows),
    }
    custom = check_custom_values(builder, options.get("custom_attributes"), counts, name)
    first = {kind: custom_entity_count(builder, kind) for kind in counts}
    builder.tables[Entity.JOINT].append(
        joint_type=int(joint_type),
        joint_parent=parent,
        joint_child=child,
        joint_X_p=frames[0],
        joint_X_c=frames[1],
        joint_q_start=builder.joint_coord_count,
        joint_qd_start=builder.joint_dof_count,
        joint_dof_dim=joint_type.dof_dim if dof_dim is None else dof_dim,
        joint_collision_filter_parent=options.get("collision_filter_parent", True),
        joint_enabled=bool(options.get("enabled", True)),
        joint_world=builder.current_world,
    )
    builder.joint_label.append(label)
    for row in rows:
        builder.tables[Entity.JOINT_DOF].append(**row)
    put_custom_values(builder, custom, first)
    if coord_count:
        coords = builder.tables[Entity.JOINT_COORD].extend(coord_count)
        if joint_type in FLOATING_JOINTS:
            parent_pose = IDENTITY if parent < 0 else builder.body_q[parent]
            builder.joint_q[coords] = _free_coordinates(
                parent_pose, frames[0], frames[1], builder.body_q[child]
            )
        elif joint_type is JointType.BALL:
            builder.joint_q[coords] = IDENTITY[3:]
        targets = builder.joint_q[coords]
        if coord_count == len(rows):
            targets = np.array([row["joint_target_pos"] for row in rows])
        builder.column("joint_target_q")[coords] = targets
        builder.column("_joint_target_q_before")[coords] = targets
    return joint


def _free_coordinates(
    parent_q: np.ndarray, parent_frame: np.ndarray, child_frame: np.ndarray, body_q: np.ndarray
) -> np.ndarray:
    """Return the coordinates of a free joint at the poses of its bodies."""
    if all(np.array_equal(pose, IDENTITY) for pose in (parent_q, parent_frame, child_frame)):
        return body_q  # to the last bit
    anchor = poses.compose(parent_q, parent_frame)
    return poses.compose(poses.inverse(anchor), poses.compose(body_q, child_frame))


def _dof_row(config: JointDofConfig, name: str) -> dict[str, Any]:
    """Return the table entry of a degree of freedom."""
    return {
        **{f"joint_{name}": float(getattr(config, name)) for name in _DOF_NUMBERS},
        "joint_limit_ke": number_or_not_given(config.limit_ke),
        "joint_limit_kd": number_or_not_given(config.limit_kd),
        "joint_axis": as_axis(config.axis, f"{name}: axis"),
        "joint_target_mode": mode_value(config.actuator_mode, name),
    }
