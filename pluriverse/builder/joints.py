"""Joints and articulations: how bodies hang together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pluriverse.builder.bodies import BodyBuilder
from pluriverse.builder.custom_attributes import JOINT_CONSTRAINT_COUNT
from pluriverse.builder.inputs import IDENTITY, AxisLike, Transform, Vector, as_axis, as_transform
from pluriverse.builder.joint_config import JointDofConfig, mode_value
from pluriverse.model import poses
from pluriverse.model.attributes import AttributeFrequency
from pluriverse.types import FLOATING_JOINTS, Axis, BodyFlags, JointTargetMode, JointType

_LINEAR = (Axis.X, Axis.Y, Axis.Z)


class JointBuilder(BodyBuilder):
    """The part of a builder that adds joints and articulations."""

    def __init__(self) -> None:
        super().__init__()
        self.default_joint_cfg = JointDofConfig()
        """What the joints take where their arguments say nothing."""

    def add_body(
        self,
        *,
        xform: Transform | None = None,
        com: Vector | None = None,
        inertia: Any | None = None,
        mass: float = 0.0,
        label: str | None = None,
        lock_inertia: bool = False,
        is_kinematic: bool = False,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a body that moves freely: a link, its free joint and an articulation of the two.

        The arguments are those of `add_link`. The joint is called `LABEL_free_joint`, the articulation
        `LABEL_articulation`.

        Returns:
            Index of the body.
        """
        body = self.add_link(
            xform=xform,
            com=com,
            inertia=inertia,
            mass=mass,
            label=label,
            lock_inertia=lock_inertia,
            is_kinematic=is_kinematic,
            custom_attributes=custom_attributes,
        )
        label = self.body_label[body]
        joint = self.add_joint_free(child=body, label=f"{label}_free_joint")
        self.add_articulation([joint], label=f"{label}_articulation")
        return body

    def add_joint_revolute(
        self,
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
            limit_ke: Stiffness of the limits.
            limit_kd: Damping of the limits.
            armature: Inertia of the rotor.
            damping: Viscous damping.
            friction: Dry friction.
            effort_limit: Largest force of the drive.
            velocity_limit: Rated speed.
            actuator_mode: What the drive follows.
            label: Name; `joint_INDEX` if None.
            collision_filter_parent: Whether the shapes of parent and child do not collide.
            enabled: Whether it acts. Only a joint that closes a loop may be off.
            custom_attributes: Custom attributes by key: those of the joint, and those of its degrees of
                freedom, coordinates and constraints (one value for all, one for each, or some by place).

        Returns:
            Index of the joint.

        Raises:
            ValueError: If a value is out of range.
            IndexError: If there is no such body.
        """
        config = self._dof_config(
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
        return self._add_joint(
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
        self,
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
        config = self._dof_config(
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
        return self._add_joint(
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

    def add_joint_ball(
        self,
        parent: int,
        child: int,
        *,
        parent_xform: Transform | None = None,
        child_xform: Transform | None = None,
        armature: float | None = None,
        damping: float | None = None,
        friction: float | None = None,
        target_kd: float | None = None,
        effort_limit: float | None = None,
        actuator_mode: JointTargetMode | int | None = None,
        label: str | None = None,
        collision_filter_parent: bool = True,
        enabled: bool = True,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a ball joint: the child turns about a point, without limits.

        The arguments are those of `add_joint_revolute`; they hold for each of the three axes of the joint
        frame. A ball joint has no position drive.

        Returns:
            Index of the joint.

        Raises:
            ValueError: If a value is out of range.
            IndexError: If there is no such body.
        """
        default = self.default_joint_cfg
        configs = [
            JointDofConfig.make_unlimited(axis).merged(
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
        return self._add_joint(
            JointType.BALL,
            parent,
            child,
            configs,
            parent_xform,
            child_xform,
            label,
            collision_filter_parent,
            enabled,
            custom_attributes,
        )

    def add_joint_fixed(
        self,
        parent: int,
        child: int,
        *,
        parent_xform: Transform | None = None,
        child_xform: Transform | None = None,
        label: str | None = None,
        collision_filter_parent: bool = True,
        enabled: bool = True,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Fix the child to the parent. The arguments are those of `add_joint_revolute`.

        Shapes of bodies fixed together never collide with each other.

        Returns:
            Index of the joint.

        Raises:
            ValueError: If a value is out of range.
            IndexError: If there is no such body.
        """
        return self._add_joint(
            JointType.FIXED,
            parent,
            child,
            [],
            parent_xform,
            child_xform,
            label,
            collision_filter_parent,
            enabled,
            custom_attributes,
        )

    def add_joint_free(
        self,
        child: int,
        *,
        parent: int = -1,
        parent_xform: Transform | None = None,
        child_xform: Transform | None = None,
        label: str | None = None,
        collision_filter_parent: bool = True,
        enabled: bool = True,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Let the child move freely. It starts at the pose given to `add_link`.

        The coordinates of a free joint are the pose of the joint frame of the child in that of the parent:
        without frames and parent, the pose of the body in the world. Its velocity is that of the centre of
        mass and the angular velocity; in world axes, or below a parent body, which the child does not feel,
        relative to it and in the axes of its joint frame.

        Returns:
            Index of the joint.

        Raises:
            ValueError: If a value is out of range.
            IndexError: If there is no such body.
        """
        return self._add_joint(
            JointType.FREE,
            parent,
            child,
            [JointDofConfig.make_unlimited(axis) for axis in _LINEAR * 2],
            parent_xform,
            child_xform,
            label,
            collision_filter_parent,
            enabled,
            custom_attributes,
        )

    def add_joint_distance(
        self,
        parent: int,
        child: int,
        *,
        parent_xform: Transform | None = None,
        child_xform: Transform | None = None,
        min_distance: float = -1.0,
        max_distance: float = 1.0,
        label: str | None = None,
        collision_filter_parent: bool = True,
        enabled: bool = True,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Keep two points within a distance of each other, as a rope or a rod does.

        The points are the origins of the joint frames in parent and child. Otherwise the child moves freely:
        coordinates, velocities and initial pose are those of `add_joint_free`. `finalize` makes an equality
        constraint of the label of the joint.

        Args:
            parent: Parent body, -1 for the world.
            child: Child body.
            parent_xform: Joint frame in the parent body.
            child_xform: Joint frame in the child body.
            min_distance: Least distance [m]; negative for none.
            max_distance: Largest distance [m]; negative for none. Equal distances make a rod.
            label: Name; `joint_INDEX` if None.
            collision_filter_parent: Whether the shapes of parent and child do not collide.
            enabled: Whether it acts. Only a joint that closes a loop may be off.
            custom_attributes: Values of custom attributes of the joint.

        Returns:
            Index of the joint.

        Raises:
            ValueError: If no distance > 0 is allowed, or a value is out of range.
            IndexError: If there is no such body.
        """
        configs = [JointDofConfig.make_unlimited(axis) for axis in _LINEAR * 2]
        configs[0] = configs[0].merged(limit_lower=min_distance, limit_upper=max_distance)
        return self._add_joint(
            JointType.DISTANCE,
            parent,
            child,
            configs,
            parent_xform,
            child_xform,
            label,
            collision_filter_parent,
            enabled,
            custom_attributes=custom_attributes,
        )

    def add_joint_d6(
        self,
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
            enabled: Whether it acts. Only a joint that closes a loop may be off.
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
        name = f"joint '{f'joint_{self.joint_count}' if label is None else label}' (index {self.joint_count})"
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
        return self._add_joint(
            JointType.D6,
            parent,
            child,
            [self._dof_config(axis) for axis in (*linear, *angular)],
            parent_xform,
            child_xform,
            label,
            collision_filter_parent,
            enabled,
            custom_attributes,
            dof_dim=(len(linear), len(angular)),
        )

    def add_joint(
        self,
        joint_type: JointType | int,
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
        """Add a joint of any type, with the arguments of `add_joint_d6`.

        A prismatic joint takes one linear axis, a revolute joint one angular axis, a D6 joint up to three of
        each, all others none.

        Returns:
            Index of the joint.

        Raises:
            ValueError: If the number of axes does not fit the type, or a value is out of range.
            IndexError: If there is no such body.
        """
        kind = JointType(joint_type)
        linear = [] if linear_axes is None else list(linear_axes)
        angular = [] if angular_axes is None else list(angular_axes)
        common: dict[str, Any] = {
            "parent_xform": parent_xform,
            "child_xform": child_xform,
            "label": label,
            "collision_filter_parent": collision_filter_parent,
            "enabled": enabled,
            "custom_attributes": custom_attributes,
        }
        if kind is JointType.D6:
            return self.add_joint_d6(parent, child, linear_axes=linear, angular_axes=angular, **common)
        expected = kind.dof_dim if kind in (JointType.PRISMATIC, JointType.REVOLUTE) else (0, 0)
        if (len(linear), len(angular)) != expected:
            raise ValueError(
                f"add_joint: {len(linear)} linear and {len(angular)} angular axes were given, but a joint of "
                f"type {kind.name} takes {expected[0]} and {expected[1]}. Use JointType.D6 for other axes."
            )
        if kind is JointType.PRISMATIC:
            return self.add_joint_prismatic(parent, child, axis=linear[0], **common)
        if kind is JointType.REVOLUTE:
            return self.add_joint_revolute(parent, child, axis=angular[0], **common)
        if kind is JointType.BALL:
            return self.add_joint_ball(parent, child, **common)
        if kind is JointType.FIXED:
            return self.add_joint_fixed(parent, child, **common)
        if kind is JointType.FREE:
            return self.add_joint_free(child, parent=parent, **common)
        return self.add_joint_distance(parent, child, **common)

    def add_articulation(
        self,
        joints: Sequence[int],
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Declare that joints belong together, such as those of one robot.

        Every joint must be in one articulation.

        Args:
            joints: Joints, in any order.
            label: Name; `articulation_INDEX` if None.
            custom_attributes: Custom attributes of the articulation, by key.

        Returns:
            Index of the articulation.

        Raises:
            ValueError: If a joint is listed twice, is in another articulation already, or in another world,
                or hangs a kinematic body on another body.
            IndexError: If there is no such joint.
        """
        index = self.articulation_count
        label = f"articulation_{index}" if label is None else label
        name = f"articulation '{label}' (index {index})"
        if len(joints) == 0:
            raise ValueError(f"{name}: no joints. An articulation needs at least one.")
        seen = set()
        for joint in joints:
            if not isinstance(joint, int | np.integer) or not 0 <= joint < self.joint_count:
                raise IndexError(
                    f"{name}: joint {joint!r} does not exist; there are {self.joint_count} joints. Use "
                    "the indices that add_joint_*() returned."
                )
            if joint in seen:
                raise ValueError(f"{name}: {self._joint_name(joint)} is listed twice. List every joint once.")
            if self.joint_articulation[joint] >= 0:
                other = int(self.joint_articulation[joint])
                raise ValueError(
                    f"{name}: {self._joint_name(joint)} is in articulation "
                    f"'{self.articulation_label[other]}' (index {other}) already. A joint belongs to one "
                    "articulation."
                )
            if self.joint_world[joint] != self.current_world:
                raise ValueError(
                    f"{name}: {self._joint_name(joint)} is in world {self.joint_world[joint]}, but the "
                    f"articulation is being added to world {self.current_world}. Add it between the same "
                    "begin_world() and end_world() as its joints."
                )
            self._check_kinematic_child(int(joint))
            seen.add(joint)
        custom = self._check_custom(custom_attributes, {AttributeFrequency.ARTICULATION: 1}, name)
        self._articulations.append(world=self.current_world)
        self._put_custom(custom, {AttributeFrequency.ARTICULATION: index})
        self._joints.view("articulation")[np.asarray(joints)] = index
        self.articulation_label.append(label)
        return index

    def _check_kinematic_child(self, joint: int) -> None:
        """Raise if a joint hangs a kinematic body on another body."""
        parent, child = int(self.joint_parent[joint]), int(self.joint_child[joint])
        if parent < 0 or not self.body_flags[child] & BodyFlags.KINEMATIC:
            return
        raise ValueError(
            f"{self._joint_name(joint)}: its child {self._body_name(child)} is kinematic, but its parent is "
            f"{self._body_name(parent)}. Only a body whose joint hangs on the world can be kinematic: leave "
            "out is_kinematic=True, or pass parent=-1."
        )

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
            AttributeFrequency.JOINT: 1,
            AttributeFrequency.JOINT_DOF: len(rows),
            AttributeFrequency.JOINT_COORD: coord_count,
            AttributeFrequency.JOINT_CONSTRAINT: JOINT_CONSTRAINT_COUNT - len(rows),
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
            ("limit_lower", "limit_lower"),
            ("limit_upper", "limit_upper"),
            ("limit_ke", "limit_ke"),
            ("limit_kd", "limit_kd"),
            ("effort_limit", "effort_limit"),
            ("velocity_limit", "velocity_limit"),
        )
    }
    return {
        **row,
        "axis": as_axis(config.axis, f"{name}: axis"),
        "target_mode": mode_value(config.actuator_mode, name),
    }
