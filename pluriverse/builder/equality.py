"""Equality constraints: closed loops, welds and couplings of joints."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pluriverse.builder.custom_attributes import check_custom_values, put_custom_values
from pluriverse.builder.inputs import (
    AxisLike,
    Transform,
    Vector,
    as_axis,
    as_transform,
    as_vector,
)
from pluriverse.builder.tables import BuilderTables
from pluriverse.builder.world_scope import check_body
from pluriverse.model.schema import MODEL_ARRAYS
from pluriverse.types import Entity, EqType, JointType

# Number of coefficients of a joint constraint: constant to fourth power.
POLYNOMIAL_SIZE = MODEL_ARRAYS["equality_constraint_polycoef"].width


def add_equality_constraint(
    builder: BuilderTables,
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
    """Add an equality constraint of any type; the methods below take only the arguments of one type.

    Args:
        constraint_type: Type of the constraint.
        body1: First body, -1 for the world.
        body2: Second body, -1 for the world.
        anchor: Constrained point [m]: in the first body, for a weld in the second.
        torquescale: Stiffness of the rotational part of a weld or hinge, relative to near rigid; 0 leaves
            rotation free.
        relpose: Constrained pose of the second body in the first; None for the pose at the initial joint
            coordinates.
        joint1: Joint that follows.
        joint2: Joint that leads, -1 for none.
        polycoef: Up to five coefficients of the polynomial, constant first.
        label: Name; `equality_constraint_INDEX` if None.
        enabled: Whether it acts; may be changed in the model at any time.
        axis: Axis of a hinge, in the first body.
        joint1_axis: Axis of `joint1` that follows, by its index among the axes of the joint: 0, 1, ..., the
            linear ones of a D6 joint first. Optional if the joint has only one axis.
        joint2_axis: Axis of `joint2` that leads, likewise.
        custom_attributes: Custom attributes of the constraint, by key.

    Returns:
        Index of the constraint.

    Raises:
        ValueError: If a value is out of range, or does not belong to the type.
        IndexError: If there is no such body or joint.
    """
    index = builder.equality_constraint_count
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
    row: dict[str, Any] = {"type": int(kind), "enabled": bool(enabled), "world": builder.current_world}
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
        row["joint1"], row["joint1_axis"] = _check_axis(builder, joint1, joint1_axis, f"{name}: joint1")
        if joint2 != -1:
            row["joint2"], row["joint2_axis"] = _check_axis(builder, joint2, joint2_axis, f"{name}: joint2")
            if (row["joint1"], row["joint1_axis"]) == (row["joint2"], row["joint2_axis"]):
                raise ValueError(
                    f"{name}: joint1 and joint2 are both {builder.joint_name(joint1)}. Couple two joints, "
                    "or leave joint2 out to fix one at polycoef[0]."
                )
        row["polycoef"] = _as_polynomial(polycoef, name)
    else:
        check_body(builder, body1, f"{name}: body1")
        check_body(builder, body2, f"{name}: body2")
        if body1 == body2:
            raise ValueError(
                f"{name}: body1 and body2 are both {builder.body_name(body1)}. Constrain two "
                "bodies, or one body and the world (-1)."
            )
        row["body1"], row["body2"] = body1, body2
        row["anchor"] = np.zeros(3) if anchor is None else as_vector(anchor, f"{name}: anchor")
        if relpose is not None:
            row["relpose"] = as_transform(relpose, f"{name}: relpose")
        row["torquescale"] = _as_torquescale(torquescale, name)
        if axis is not None:
            row["axis"] = as_axis(axis, f"{name}: axis")
    custom = check_custom_values(builder, custom_attributes, {Entity.EQUALITY_CONSTRAINT: 1}, name)
    builder.tables[Entity.EQUALITY_CONSTRAINT].append(
        **{f"equality_constraint_{column}": value for column, value in row.items()}
    )
    builder.equality_constraint_label.append(label)
    put_custom_values(builder, custom, {Entity.EQUALITY_CONSTRAINT: index})
    return index


def add_equality_constraint_connect(
    builder: BuilderTables,
    body1: int = -1,
    body2: int = -1,
    anchor: Vector | None = None,
    label: str | None = None,
    enabled: bool = True,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Keep a point of one body at a point of another, as a ball joint does.

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
    return add_equality_constraint(
        builder,
        EqType.CONNECT,
        body1=body1,
        body2=body2,
        anchor=anchor,
        label=label,
        enabled=enabled,
        custom_attributes=custom_attributes,
    )


def add_equality_constraint_weld(
    builder: BuilderTables,
    body1: int = -1,
    body2: int = -1,
    anchor: Vector | None = None,
    torquescale: float | None = None,
    relpose: Transform | None = None,
    label: str | None = None,
    enabled: bool = True,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Keep one body at a pose in another.

    Args:
        body1: First body, -1 for the world.
        body2: Second body, -1 for the world.
        anchor: Constrained point of the second body [m]; its origin if None.
        torquescale: Stiffness of the rotational part, relative to near rigid; 1 if None, 0 leaves rotation
            free.
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
    return add_equality_constraint(
        builder,
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
    builder: BuilderTables,
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
        joint2: Joint that leads; -1 fixes `joint1` at c0.
        polycoef: Up to five coefficients, constant first; (0, 1) if None.
        label: Name; `equality_constraint_INDEX` if None.
        enabled: Whether it acts.
        custom_attributes: Custom attributes of the constraint, by key.
        joint1_axis: Axis of `joint1`, by its index among the axes of the joint; optional if there is only
            one.
        joint2_axis: Axis of `joint2`, likewise.

    Returns:
        Index of the constraint.

    Raises:
        ValueError: If a value is out of range, or a joint has no such coordinate.
        IndexError: If there is no such joint.
    """
    return add_equality_constraint(
        builder,
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
    builder: BuilderTables,
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

    It is stored as an equality constraint of type JOINT.

    Args:
        joint0: Joint that follows.
        joint1: Joint that leads.
        coef0: Offset [rad or m].
        coef1: Ratio.
        enabled: Whether it acts.
        label: Name; `equality_constraint_INDEX` if None.
        custom_attributes: Custom attributes of the constraint, by key.
        joint0_axis: Axis of `joint0`, by its index among the axes of the joint; optional if there is only
            one.
        joint1_axis: Axis of `joint1`, likewise.

    Returns:
        Index of the equality constraint.

    Raises:
        ValueError: If a value is out of range, or a joint has no such coordinate.
        IndexError: If there is no such joint.
    """
    if joint1 == -1:
        raise ValueError(
            "add_constraint_mimic: joint1 is -1, but it must be the joint to be mimicked. To fix a "
            "joint at a value use add_equality_constraint_joint(joint1, polycoef=[value])."
        )
    return add_equality_constraint_joint(
        builder,
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
    builder: BuilderTables, joint: int, reference_joint: int | None, *, coeffs: Sequence[float] = (0.0, 1.0)
) -> None:
    """Let one joint mimic another, q = coeffs[0] + coeffs[1] q_reference, replacing any previous mimic.

    It is stored as an equality constraint of type JOINT, labelled `JOINT_mimic` after the joint's label.

    Args:
        joint: Joint that follows.
        reference_joint: Joint that leads; None to let `joint` move on its own again.
        coeffs: Offset [rad or m] and ratio.

    Raises:
        ValueError: If a value is out of range, or a joint has more than one coordinate.
        IndexError: If there is no such joint.
    """
    joint, _axis = _check_axis(builder, joint, None, "set_joint_mimic: joint")
    label = f"{builder.joint_label[joint]}_mimic"
    mine = [
        int(index)
        for index in np.flatnonzero(builder.equality_constraint_joint1 == joint)
        if builder.equality_constraint_label[index] == label
    ]
    if len(np.shape(coeffs)) != 1 or len(coeffs) != 2:
        raise ValueError(
            f"set_joint_mimic: coeffs is {coeffs}, but it must be two numbers, offset and ratio."
        )
    if reference_joint is None:
        builder.column("equality_constraint_enabled")[mine] = False
    elif not mine:
        add_constraint_mimic(builder, joint, reference_joint, coeffs[0], coeffs[1], label=label)
    else:
        leader, axis = _check_axis(builder, reference_joint, None, "set_joint_mimic: reference_joint")
        if leader == joint:
            raise ValueError(f"set_joint_mimic: {builder.joint_name(joint)} cannot mimic itself.")
        builder.column("equality_constraint_joint2")[mine] = leader
        builder.column("equality_constraint_joint2_axis")[mine] = axis
        builder.column("equality_constraint_polycoef")[mine] = _as_polynomial(
            coeffs, f"set_joint_mimic: '{label}'"
        )
        builder.column("equality_constraint_enabled")[mine] = True


def _check_axis(builder: BuilderTables, joint: Any, axis: Any, what: str) -> tuple[int, int]:
    """Return a joint of the current world and one of its single-coordinate axes."""
    if not isinstance(joint, int | np.integer) or not 0 <= joint < builder.joint_count:
        raise IndexError(
            f"{what}: joint {joint!r} does not exist; there are {builder.joint_count} joints. Use an index "
            "that add_joint_*() returned."
        )
    joint = int(joint)
    kind = JointType(builder.joint_type[joint])
    if kind not in (JointType.REVOLUTE, JointType.PRISMATIC, JointType.D6):
        raise ValueError(
            f"{what}: {builder.joint_name(joint)} is {kind.name}, but only joints whose axes have a "
            "coordinate each (revolute, prismatic, D6) can be coupled. Constrain the bodies instead, by "
            "connect or weld."
        )
    count = int(builder.joint_dof_dim[joint].sum())
    if axis is None and count > 1:
        raise ValueError(
            f"{what}: {builder.joint_name(joint)} has {count} axes. Say which one by "
            f"{what.split()[-1]}_axis=, 0 to {count - 1}."
        )
    axis = 0 if axis is None else axis
    if not isinstance(axis, int | np.integer) or not 0 <= axis < count:
        raise IndexError(
            f"{what}_axis is {axis!r}, but {builder.joint_name(joint)} has the axes 0 to {count - 1}."
        )
    if builder.joint_world[joint] != builder.current_world:
        raise ValueError(
            f"{what}: {builder.joint_name(joint)} is in world {builder.joint_world[joint]}, but the "
            f"constraint is being added to world {builder.current_world}. Add it between the same "
            "begin_world() and end_world() as its joints."
        )
    return joint, int(axis)


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
            f"{name}: torquescale is {value}, but it must be a finite number >= 0 (0 leaves rotation free)."
        )
    return scale
