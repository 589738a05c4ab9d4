"""Equality constraints: closed loops, welds and couplings of joints, beyond the trees of joints."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pluriverse.builder.columns import Column, ColumnView, Table
from pluriverse.builder.equality_rows import add_equality_row, is_equality_row
from pluriverse.builder.inputs import (
    AxisLike,
    Transform,
    Vector,
    as_axis,
    as_transform,
    as_vector,
    copied_labels,
)
from pluriverse.builder.shapes import ShapeBuilder
from pluriverse.model import poses
from pluriverse.types import Entity, EqType, JointType

POLYNOMIAL_SIZE = 5
"""Number of coefficients of a joint constraint: constant to fourth power."""


def _equality_table() -> Table:
    return Table(
        {
            "type": Column(np.int32),
            "body1": Column(np.int32, (), -1),
            "body2": Column(np.int32, (), -1),
            "anchor": Column(np.float64, (3,)),
            "axis": Column(np.float64, (3,), (0.0, 0.0, 1.0)),
            "torquescale": Column(np.float64, (), 1.0),
            "relpose": Column(np.float64, (7,), math.nan),  # NaN: that of the initial coordinates
            "joint1": Column(np.int32, (), -1),
            "joint2": Column(np.int32, (), -1),
            "joint1_axis": Column(np.int32),
            "joint2_axis": Column(np.int32),
            "polycoef": Column(np.float64, (POLYNOMIAL_SIZE,)),
            "enabled": Column(np.bool_, (), True),
            "world": Column(np.int32, (), -1),
        }
    )


class EqualityBuilder(ShapeBuilder):
    """The part of a builder that adds equality constraints."""

    equality_constraint_type = ColumnView("_equality", "type", writable=False)
    """`EqType`, shape [equality constraint]."""
    equality_constraint_body1 = ColumnView("_equality", "body1", writable=False)
    """First body, -1 for the world, shape [equality constraint]."""
    equality_constraint_body2 = ColumnView("_equality", "body2", writable=False)
    """Second body, -1 for the world, shape [equality constraint]."""
    equality_constraint_anchor = ColumnView("_equality", "anchor")
    """Point that is held [m], in the first body (second of a weld), shape [equality constraint, 3]."""
    equality_constraint_axis = ColumnView("_equality", "axis")
    """Axis of a hinge, in the first body, shape [equality constraint, 3]."""
    equality_constraint_torquescale = ColumnView("_equality", "torquescale")
    """Stiffness of the rotational part of a weld or hinge, relative to near rigid, shape [equality
    constraint]."""
    equality_constraint_relpose = ColumnView("_equality", "relpose")
    """Pose of the second body in the first one to be held [m, xyzw], NaN for that of the initial coordinates,
    shape [equality constraint, 7]."""
    equality_constraint_joint1 = ColumnView("_equality", "joint1", writable=False)
    """Joint that follows, -1 for none, shape [equality constraint]."""
    equality_constraint_joint2 = ColumnView("_equality", "joint2", writable=False)
    """Joint that leads, -1 for none, shape [equality constraint]."""
    equality_constraint_joint1_axis = ColumnView("_equality", "joint1_axis", writable=False)
    """Axis of `joint1` that follows, by its place among the axes of the joint, shape [equality
    constraint]."""
    equality_constraint_joint2_axis = ColumnView("_equality", "joint2_axis", writable=False)
    """Axis of `joint2` that leads, by its place among the axes of the joint, shape [equality
    constraint]."""
    equality_constraint_polycoef = ColumnView("_equality", "polycoef")
    """Coefficients of the polynomial, constant first, shape [equality constraint, 5]."""
    equality_constraint_enabled = ColumnView("_equality", "enabled")
    """Whether the constraint acts, shape [equality constraint]."""
    equality_constraint_world = ColumnView("_equality", "world", writable=False)
    """World, -1 outside of any, shape [equality constraint]."""

    def __init__(self) -> None:
        super().__init__()
        self._equality = _equality_table()
        self.equality_constraint_label: list[str] = []
        """Name, shape [equality constraint]."""

    def add_custom_values(self, values: Mapping[str, Any] | None = None, /, **kwargs: Any) -> dict[str, int]:
        """Add a row of custom attributes; one of `mujoco:equality_constraint_*` is an equality constraint.

        See `CustomAttributeBuilder.add_custom_values`, and `equality_rows` for such constraints.
        """
        given = {**(values or {}), **kwargs}
        return add_equality_row(self, given) if is_equality_row(given) else super().add_custom_values(given)

    @property
    def equality_constraint_count(self) -> int:
        """Number of equality constraints."""
        return len(self._equality)

    def add_equality_constraint(
        self,
        constraint_type: EqType | int,
        body1: int = -1,
        body2: int = -1,
        anchor: Vector | None = None,
        torquescale: float | None = None,
        relpose: Transform | None = None,
        joint1: int = -1,
        joint2: int = -1,
        polycoef: Sequence[float] | None = None,
        label: str | None = None,
        enabled: bool = True,
        *,
        axis: AxisLike | None = None,
        joint1_axis: int | None = None,
        joint2_axis: int | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add an equality constraint of any type; the methods below take only what each type needs.

        Args:
            constraint_type: What is held.
            body1: First body, -1 for the world.
            body2: Second body, -1 for the world.
            anchor: Point to be held [m]: in the first body, for a weld in the second.
            torquescale: Stiffness of the rotational part of a weld or hinge, relative to near rigid; 0 lets
                the bodies turn.
            relpose: Pose of the second body in the first one at which the constraint holds; None for the pose
                that the initial joint coordinates give.
            joint1: Joint that follows.
            joint2: Joint that leads, -1 for none.
            polycoef: Up to five coefficients of the polynomial, constant first.
            label: Name; `equality_constraint_INDEX` if None.
            enabled: Whether it acts; may be changed in the model at any time.
            axis: Axis of a hinge, in the first body.
            joint1_axis: Axis of `joint1` that follows, by its place among the axes of the joint: 0, 1, ...,
                the linear ones of a D6 joint first. May be left out if the joint has one axis only.
            joint2_axis: Axis of `joint2` that leads, likewise.
            custom_attributes: Custom attributes of the constraint, by key.

        Returns:
            Index of the constraint.

        Raises:
            ValueError: If a value is out of range, or does not belong to the type.
            IndexError: If there is no such body or joint.
        """
        index = self.equality_constraint_count
        label = f"equality_constraint_{index}" if label is None else label
        name = f"equality constraint '{label}' (index {index})"
        if constraint_type not in tuple(EqType):
            raise ValueError(
                f"{name}: constraint_type is {constraint_type!r}, but must be one of "
                f"{', '.join(f'EqType.{kind.name}' for kind in EqType)}."
            )
        kind = EqType(constraint_type)
        if kind is EqType.DISTANCE:
            raise ValueError(
                f"{name}: constraint_type is DISTANCE, which belongs to a joint. Use add_joint_distance(), "
                "in no articulation if another joint moves the body."
            )
        row: dict[str, Any] = {"type": int(kind), "enabled": bool(enabled), "world": self.current_world}
        couples_joints = kind is EqType.JOINT
        for argument, value, allowed in (
            ("body1", body1 != -1, not couples_joints),
            ("body2", body2 != -1, not couples_joints),
            ("anchor", anchor is not None, not couples_joints),
            ("relpose", relpose is not None, not couples_joints),
            ("torquescale", torquescale is not None, kind in (EqType.WELD, EqType.HINGE)),
            ("axis", axis is not None, kind is EqType.HINGE),
            ("joint1", joint1 != -1, couples_joints),
            ("joint2", joint2 != -1, couples_joints),
            ("polycoef", polycoef is not None, couples_joints),
            ("joint1_axis", joint1_axis is not None, couples_joints),
            ("joint2_axis", joint2_axis is not None, couples_joints and joint2 != -1),
        ):
            if value and not allowed:
                raise ValueError(
                    f"{name}: {argument} does not belong to a constraint of type {kind.name}. Leave it out."
                )
        if couples_joints:
            row["joint1"], row["joint1_axis"] = self._check_axis(joint1, joint1_axis, f"{name}: joint1")
            if joint2 != -1:
                row["joint2"], row["joint2_axis"] = self._check_axis(joint2, joint2_axis, f"{name}: joint2")
                if (row["joint1"], row["joint1_axis"]) == (row["joint2"], row["joint2_axis"]):
                    raise ValueError(
                        f"{name}: joint1 and joint2 are both {self._joint_name(joint1)}. Couple two joints, "
                        "or leave joint2 out to hold one at polycoef[0]."
                    )
            row["polycoef"] = _as_polynomial(polycoef, name)
        else:
            self._check_body(body1, f"{name}: body1")
            self._check_body(body2, f"{name}: body2")
            if body1 == body2:
                raise ValueError(
                    f"{name}: body1 and body2 are both {self._body_name(body1)}. Constrain two "
                    "bodies, or one body and the world (-1)."
                )
            row["body1"], row["body2"] = body1, body2
            row["anchor"] = np.zeros(3) if anchor is None else as_vector(anchor, f"{name}: anchor")
            if relpose is not None:
                row["relpose"] = as_transform(relpose, f"{name}: relpose")
            row["torquescale"] = _as_torquescale(torquescale, name)
            if axis is not None:
                row["axis"] = as_axis(axis, f"{name}: axis")
        custom = self._check_custom(custom_attributes, {Entity.EQUALITY_CONSTRAINT: 1}, name)
        self._equality.append(**row)
        self.equality_constraint_label.append(label)
        self._put_custom(custom, {Entity.EQUALITY_CONSTRAINT: index})
        return index

    def add_equality_constraint_connect(
        self,
        body1: int = -1,
        body2: int = -1,
        anchor: Vector | None = None,
        label: str | None = None,
        enabled: bool = True,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Hold a point of one body at a point of another, as a ball joint does.

        The point of the second body is the one that coincides with the anchor at the initial coordinates.

        Args:
            body1: First body, -1 for the world.
            body2: Second body, -1 for the world.
            anchor: Point in the first body [m]; its origin if None.
            label: Name; `equality_constraint_INDEX` if None.
            enabled: Whether it acts.
            custom_attributes: Custom attributes of the constraint, by key.

        Returns:
            Index of the constraint.

        Raises:
            ValueError: If a value is out of range.
            IndexError: If there is no such body.
        """
        return self.add_equality_constraint(
            EqType.CONNECT,
            body1=body1,
            body2=body2,
            anchor=anchor,
            label=label,
            enabled=enabled,
            custom_attributes=custom_attributes,
        )

    def add_equality_constraint_weld(
        self,
        body1: int = -1,
        body2: int = -1,
        anchor: Vector | None = None,
        torquescale: float | None = None,
        relpose: Transform | None = None,
        label: str | None = None,
        enabled: bool = True,
        custom_attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Hold one body at a pose in another.

        Args:
            body1: First body, -1 for the world.
            body2: Second body, -1 for the world.
            anchor: Point of the second body at which it is held [m]; its origin if None.
            torquescale: Stiffness of the rotational part, relative to near rigid; 1 if None, 0 lets it turn.
            relpose: Pose of the second body in the first one; None for that of the initial coordinates.
            label: Name; `equality_constraint_INDEX` if None.
            enabled: Whether it acts.
            custom_attributes: Custom attributes of the constraint, by key.

        Returns:
            Index of the constraint.

        Raises:
            ValueError: If a value is out of range.
            IndexError: If there is no such body.
        """
        return self.add_equality_constraint(
            EqType.WELD,
            body1=body1,
            body2=body2,
            anchor=anchor,
            torquescale=torquescale,
            relpose=relpose,
            label=label,
            enabled=enabled,
            custom_attributes=custom_attributes,
        )

    def add_equality_constraint_joint(
        self,
        joint1: int = -1,
        joint2: int = -1,
        polycoef: Sequence[float] | None = None,
        label: str | None = None,
        enabled: bool = True,
        custom_attributes: Mapping[str, Any] | None = None,
        *,
        joint1_axis: int | None = None,
        joint2_axis: int | None = None,
    ) -> int:
        """Let one joint coordinate follow another: q1 = c0 + c1 q2 + c2 q2^2 + c3 q2^3 + c4 q2^4.

        The coordinates are those of revolute or prismatic joints, or of axes of D6 joints.

        Args:
            joint1: Joint that follows.
            joint2: Joint that leads; -1 holds `joint1` at c0.
            polycoef: Up to five coefficients, constant first; (0, 1) if None.
            label: Name; `equality_constraint_INDEX` if None.
            enabled: Whether it acts.
            custom_attributes: Custom attributes of the constraint, by key.
            joint1_axis: Axis of `joint1`, by its place among the axes of the joint; may be left out if there
                is one only.
            joint2_axis: Axis of `joint2`, likewise.

        Returns:
            Index of the constraint.

        Raises:
            ValueError: If a value is out of range, or a joint has no such coordinate.
            IndexError: If there is no such joint.
        """
        return self.add_equality_constraint(
            EqType.JOINT,
            joint1=joint1,
            joint2=joint2,
            joint1_axis=joint1_axis,
            joint2_axis=joint2_axis,
            polycoef=polycoef,
            label=label,
            enabled=enabled,
            custom_attributes=custom_attributes,
        )

    def add_constraint_mimic(
        self,
        joint0: int,
        joint1: int,
        coef0: float = 0.0,
        coef1: float = 1.0,
        enabled: bool = True,
        label: str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
        *,
        joint0_axis: int | None = None,
        joint1_axis: int | None = None,
    ) -> int:
        """Let one joint mimic another: q0 = coef0 + coef1 q1.

        It is kept as an equality constraint of type JOINT.

        Args:
            joint0: Joint that follows.
            joint1: Joint that leads.
            coef0: Offset [rad or m].
            coef1: Ratio.
            enabled: Whether it acts.
            label: Name; `equality_constraint_INDEX` if None.
            custom_attributes: Custom attributes of the constraint, by key.
            joint0_axis: Axis of `joint0`, by its place among the axes of the joint; may be left out if there
                is one only.
            joint1_axis: Axis of `joint1`, likewise.

        Returns:
            Index of the equality constraint.

        Raises:
            ValueError: If a value is out of range, or a joint has no such coordinate.
            IndexError: If there is no such joint.
        """
        if joint1 == -1:
            raise ValueError(
                "add_constraint_mimic: joint1 is -1, but it must be the joint to be mimicked. To hold a "
                "joint at a value use add_equality_constraint_joint(joint1, polycoef=[value])."
            )
        return self.add_equality_constraint_joint(
            joint0,
            joint1,
            polycoef=(coef0, coef1),
            label=label,
            enabled=enabled,
            custom_attributes=custom_attributes,
            joint1_axis=joint0_axis,
            joint2_axis=joint1_axis,
        )

    def set_joint_mimic(
        self, joint: int, reference_joint: int | None, *, coeffs: Sequence[float] = (0.0, 1.0)
    ) -> None:
        """Let one joint mimic another, q = coeffs[0] + coeffs[1] q_reference, in place of what it mimicked.

        It is kept as an equality constraint of type JOINT, called `JOINT_mimic` after the joint's label.

        Args:
            joint: Joint that follows.
            reference_joint: Joint that leads; None to let `joint` move on its own again.
            coeffs: Offset [rad or m] and ratio.

        Raises:
            ValueError: If a value is out of range, or a joint has more than one coordinate.
            IndexError: If there is no such joint.
        """
        joint, _axis = self._check_axis(joint, None, "set_joint_mimic: joint")
        label = f"{self.joint_label[joint]}_mimic"
        mine = [
            int(index)
            for index in np.flatnonzero(self.equality_constraint_joint1 == joint)
            if self.equality_constraint_label[index] == label
        ]
        if len(np.shape(coeffs)) != 1 or len(coeffs) != 2:
            raise ValueError(
                f"set_joint_mimic: coeffs is {coeffs}, but it must be two numbers, offset and ratio."
            )
        if reference_joint is None:
            self._equality.view("enabled")[mine] = False
        elif not mine:
            self.add_constraint_mimic(joint, reference_joint, coeffs[0], coeffs[1], label=label)
        else:
            leader, axis = self._check_axis(reference_joint, None, "set_joint_mimic: reference_joint")
            if leader == joint:
                raise ValueError(f"set_joint_mimic: {self._joint_name(joint)} cannot mimic itself.")
            self._equality.view("joint2")[mine] = leader
            self._equality.view("joint2_axis")[mine] = axis
            self._equality.view("polycoef")[mine] = _as_polynomial(coeffs, f"set_joint_mimic: '{label}'")
            self._equality.view("enabled")[mine] = True

    def _check_axis(self, joint: Any, axis: Any, what: str) -> tuple[int, int]:
        """Return a joint of the current world and one of its axes that has a coordinate of its own."""
        if not isinstance(joint, int | np.integer) or not 0 <= joint < self.joint_count:
            raise IndexError(
                f"{what}: joint {joint!r} does not exist; there are {self.joint_count} joints. Use an index "
                "that add_joint_*() returned."
            )
        joint = int(joint)
        kind = JointType(self.joint_type[joint])
        if kind not in (JointType.REVOLUTE, JointType.PRISMATIC, JointType.D6):
            raise ValueError(
                f"{what}: {self._joint_name(joint)} is {kind.name}, but only joints whose axes have a "
                "coordinate each (revolute, prismatic, D6) can be coupled. Constrain the bodies instead, by "
                "connect or weld."
            )
        count = int(self.joint_dof_dim[joint].sum())
        if axis is None and count > 1:
            raise ValueError(
                f"{what}: {self._joint_name(joint)} has {count} axes. Say which one by "
                f"{what.split()[-1]}_axis=, 0 to {count - 1}."
            )
        axis = 0 if axis is None else axis
        if not isinstance(axis, int | np.integer) or not 0 <= axis < count:
            raise IndexError(
                f"{what}_axis is {axis!r}, but {self._joint_name(joint)} has the axes 0 to {count - 1}."
            )
        if self.joint_world[joint] != self.current_world:
            raise ValueError(
                f"{what}: {self._joint_name(joint)} is in world {self.joint_world[joint]}, but the "
                f"constraint is being added to world {self.current_world}. Add it between the same "
                "begin_world() and end_world() as its joints."
            )
        return joint, int(axis)

    def _append_equality_copies(
        self,
        builder: "EqualityBuilder",
        offsets: np.ndarray,
        worlds: np.ndarray,
        first_body: np.ndarray,
        first_joint: np.ndarray,
        prefixes: Sequence[str | None],
    ) -> None:
        """Append one copy of all constraints of `builder` per row of `offsets`, in the given worlds."""
        size, count = builder.equality_constraint_count, len(offsets)
        if size == 0 or count == 0:
            return
        added = self._equality.extend_copies(builder._equality, count)
        for column, first in (
            ("body1", first_body),
            ("body2", first_body),
            ("joint1", first_joint),
            ("joint2", first_joint),
        ):
            rows = self._equality.view(column)[added].reshape(count, size)
            rows[...] = np.where(rows >= 0, rows + first[:, None], rows)
        self._equality.view("world")[added] = np.repeat(worlds, size)
        self.equality_constraint_label += copied_labels(builder.equality_constraint_label, prefixes)

        # What is given in the frame of the world moves with the copy.
        self._move_constraints(builder, added, offsets)

    def _add_constraints_of_joints(self, joints: np.ndarray, **columns: Any) -> np.ndarray:
        """Add constraints that stand for joints, with their labels, each as the last of its world.

        Copies of the builder keep the table that they had.

        Returns:
            Former index of each constraint, in the new order; those added are behind the others.
        """
        table = self._equality.taken(np.arange(len(self._equality)))
        added = table.extend(len(joints))
        columns["world"] = self.joint_world[joints]
        for name, values in columns.items():
            table.view(name)[added] = values
        labels = self.equality_constraint_label + [self.joint_label[joint] for joint in joints]
        order = np.argsort(table.view("world"), kind="stable")
        self._equality = table.taken(order)
        self.equality_constraint_label = [labels[index] for index in order]
        return order

    def _move_constraints(self, builder: "EqualityBuilder", added: slice, offsets: np.ndarray) -> None:
        """Move what copies of the constraints of `builder` hold to the world, by an offset per copy."""
        size, count = builder.equality_constraint_count, len(offsets)
        kind, body1 = builder.equality_constraint_type, builder.equality_constraint_body1
        of_bodies = kind != EqType.JOINT
        world_first = np.flatnonzero(of_bodies & (body1 < 0))
        world_second = np.flatnonzero(of_bodies & (builder.equality_constraint_body2 < 0))
        offset = np.broadcast_to(offsets[:, None, :], (count, size, 7))
        anchor = self._equality.view("anchor")[added].reshape(count, size, 3)
        axis = self._equality.view("axis")[added].reshape(count, size, 3)
        relpose = self._equality.view("relpose")[added].reshape(count, size, 7)
        for entries, in_world in ((world_first, kind != EqType.WELD), (world_second, kind == EqType.WELD)):
            held = entries[in_world[entries]]
            frame = offset[:, held]
            anchor[:, held] = frame[..., :3] + poses.rotate(frame[..., 3:], anchor[:, held])
        frame = offset[:, world_first]
        axis[:, world_first] = poses.rotate(frame[..., 3:], axis[:, world_first])
        relpose[:, world_first] = poses.compose(frame, relpose[:, world_first])
        relpose[:, world_second] = poses.compose(
            relpose[:, world_second], poses.inverse(offset[:, world_second])
        )


def _as_polynomial(coefficients: Sequence[float] | None, name: str) -> np.ndarray:
    """Return five coefficients."""
    given = np.asarray((0.0, 1.0) if coefficients is None else coefficients, dtype=np.float64)
    if given.ndim != 1 or not 1 <= len(given) <= POLYNOMIAL_SIZE or not np.isfinite(given).all():
        raise ValueError(
            f"{name}: polycoef is {given.tolist()}, but it must be 1 to {POLYNOMIAL_SIZE} finite numbers, "
            "the constant first."
        )
    return np.concatenate([given, np.zeros(POLYNOMIAL_SIZE - len(given))])


def _as_torquescale(value: float | None, name: str) -> float:
    scale = 1.0 if value is None else float(value)
    if not (math.isfinite(scale) and scale >= 0.0):
        raise ValueError(
            f"{name}: torquescale is {value}, but it must be a finite number >= 0 (0 lets the bodies turn)."
        )
    return scale
