"""Joint entries: what all joints have in common, frames, degrees of freedom, coordinates and targets."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluriverse.builder.bodies import BodyBuilder
from pluriverse.builder.custom_attributes import JOINT_CONSTRAINT_COUNT
from pluriverse.builder.inputs import (
    IDENTITY,
    AxisLike,
    Transform,
    as_axis,
    as_transform,
    number_or_not_given,
)
from pluriverse.builder.joint_config import JointDofConfig, mode_value
from pluriverse.model import poses
from pluriverse.types import FLOATING_JOINTS, Entity, JointType


class JointEntryBuilder(BodyBuilder):
    """The part of a builder that puts a joint of any type into its tables."""

    def __init__(self) -> None:
        super().__init__()
        self.default_joint_cfg = JointDofConfig()
        """What the joints take where their arguments say nothing."""

    def _dof_config(self, axis: AxisLike | JointDofConfig | None, **values: Any) -> JointDofConfig:
        for name, other in (("target_pos", "target_q"), ("target_vel", "target_qd")):
            if values.get(name) is not None and values.get(other) is not None:
                raise ValueError(
                    f"joint 'joint_{self.joint_count}': both {name} and {other} are given, but they are two "
                    "names of one target. Pass one of them."
                )
        base = axis if isinstance(axis, JointDofConfig) else self.default_joint_cfg.merged(axis=axis)
        return base.merged(**values)

    def _add_joint(
        self,
        joint_type: JointType,
        parent: int,
        child: int,
        dofs: list[JointDofConfig],
        parent_xform: Transform | None,
        child_xform: Transform | None,
        label: str | None,
        collision_filter_parent: bool,
        enabled: bool,
        custom_attributes: Mapping[str, Any] | None,
        dof_dim: tuple[int, int] | None = None,
    ) -> int:
        joint = self.joint_count
        label = f"joint_{joint}" if label is None else label
        name = f"joint '{label}' (index {joint})"
        self._check_body(parent, f"{name}: parent")
        self._check_body(child, f"{name}: child")
        if child < 0:
            raise ValueError(f"{name}: child is -1, but a joint moves a body. Pass the world as the parent.")
        if parent == child:
            raise ValueError(f"{name}: {self._body_name(child)} is both parent and child.")
        frames = [as_transform(parent_xform, f"{name}: parent_xform")]
        frames.append(as_transform(child_xform, f"{name}: child_xform"))
        rows = [_dof_row(config, f"{name}, axis {index}") for index, config in enumerate(dofs)]
        coord_count = len(rows) if joint_type is JointType.D6 else joint_type.coord_count
        counts = {
            Entity.JOINT: 1,
            Entity.JOINT_DOF: len(rows),
            Entity.JOINT_COORD: coord_count,
            Entity.JOINT_CONSTRAINT: JOINT_CONSTRAINT_COUNT - len(rows),
        }
        custom = self._check_custom(custom_attributes, counts, name)
        first = {kind: self.custom_entity_count(kind) for kind in counts}
        self._joints.append(
            type=int(joint_type),
            parent=parent,
            child=child,
            X_p=frames[0],
            X_c=frames[1],
            q_start=self.joint_coord_count,
            qd_start=self.joint_dof_count,
            dof_dim=joint_type.dof_dim if dof_dim is None else dof_dim,
            filter_parent=collision_filter_parent,
            enabled=bool(enabled),
            world=self.current_world,
        )
        self.joint_label.append(label)
        for row in rows:
            self._dofs.append(**row)
        self._put_custom(custom, first)
        if coord_count:
            coords = self._coords.extend(coord_count)
            if joint_type in FLOATING_JOINTS:
                held = IDENTITY if parent < 0 else self.body_q[parent]
                self.joint_q[coords] = _free_coordinates(held, frames[0], frames[1], self.body_q[child])
            elif joint_type is JointType.BALL:
                self.joint_q[coords] = IDENTITY[3:]
            targets = self.joint_q[coords]
            if coord_count == len(rows):
                targets = np.array([row["target_pos"] for row in rows])
            self._coords.view("target_q")[coords] = targets
            self._coords.view("target_q_seen")[coords] = targets
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
    row = {
        column: float(getattr(config, attribute))
        for column, attribute in (
            ("armature", "armature"),
            ("damping", "damping"),
            ("friction", "friction"),
            ("target_ke", "target_ke"),
            ("target_kd", "target_kd"),
            ("target_pos", "target_pos"),
            ("target_vel", "target_vel"),
            ("target_lower", "target_lower"),
            ("target_upper", "target_upper"),
            ("limit_lower", "limit_lower"),
            ("limit_upper", "limit_upper"),
            ("effort_limit", "effort_limit"),
            ("velocity_limit", "velocity_limit"),
        )
    }
    return {
        **row,
        "limit_ke": number_or_not_given(config.limit_ke),
        "limit_kd": number_or_not_given(config.limit_kd),
        "axis": as_axis(config.axis, f"{name}: axis"),
        "target_mode": mode_value(config.actuator_mode, name),
    }
