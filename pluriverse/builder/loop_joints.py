"""Loop joints: a second joint to a body that is in no articulation closes a loop.

Joints form trees, in which one joint moves each body. A further joint to a body closes a loop. If it only
constrains, an equality constraint replaces it: a connect constraint for a ball joint, a weld for a fixed one,
a hinge for a revolute one, a distance constraint for a distance joint. It is then not among the model's
joints, and has no coordinate. A joint that needs its coordinates, because it has a drive, limits or damping
or because it slides, stays a joint: it moves a part of the body, which is split for that
(`pluriverse.builder.split_bodies`).
"""

import copy
import warnings
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pluriverse.builder.custom_merge import given_entities, taken_custom_attributes
from pluriverse.builder.equality_copies import add_constraints_of_joints
from pluriverse.builder.split_bodies import split_bodies
from pluriverse.builder.tables import BuilderTables
from pluriverse.model import poses
from pluriverse.types import FLOATING_JOINTS, Entity, EqType, JointTargetMode, JointType

Builder = TypeVar("Builder", bound=BuilderTables)

_CONSTRAINT = {
    JointType.BALL: EqType.CONNECT,
    JointType.DISTANCE: EqType.DISTANCE,
    JointType.FIXED: EqType.WELD,
    JointType.REVOLUTE: EqType.HINGE,
}
# Joint limits from this value on [m or rad] count as none; the builder's default is 1e10.
LIMIT_NONE = 1e9
_FORCES = ("target_ke", "target_kd", "damping", "friction", "f", "act")
_UNDRIVEN = (JointTargetMode.AUTO, JointTargetMode.NONE)


@dataclass
class CutJoints:
    """The loop joints that stay joints, each of which moves a part of a body."""

    joint: np.ndarray
    """The joints, shape [cut]."""
    body: np.ndarray
    """Body that the part was split from, shape [cut]."""


def replace_loop_joints(builder: BuilderTables) -> tuple[BuilderTables, CutJoints]:
    """Return the builder, or, if it has loop joints, a copy with trees and constraints instead.

    Raises:
        ValueError: If a joint frame is not finite, a loop joint constrains nothing, a body to be split has no
            mass, or a constraint couples a disabled joint.
    """
    loops = _find_loops(builder)
    if len(loops) == 0:
        return builder, CutJoints(loops, loops)
    _check(builder, loops)
    moving = _needs_coordinates(builder)[loops]
    off = moving & ~builder.joint_enabled[loops]
    holding, cut = loops[~moving], loops[moving & ~off]
    _check_off(builder, loops[off])
    split, body = split_bodies(builder, cut)
    removed = loops[~moving | off]
    result = _replace(builder, split, holding, loops[~off], removed)
    return result, CutJoints(cut - np.searchsorted(removed, cut), body)


def replace_holding_joints(builder: Builder) -> Builder:
    """Return the builder, or, if it has loop joints that only constrain, a copy with constraints instead.

    Callers that use a builder's joints as those of the resulting model call this first.

    Raises:
        ValueError: If a joint frame is not finite, or a loop joint constrains nothing.
    """
    loops = _find_loops(builder)
    holding = loops[~_needs_coordinates(builder)[loops]]
    if len(holding) == 0:
        return builder
    _check(builder, holding)
    return _replace(builder, builder, holding, holding, holding)


def _find_loops(builder: BuilderTables) -> np.ndarray:
    """Return the loop joints: those in no articulation whose child is moved by another joint."""
    loose = builder.joint_articulation < 0
    is_held_once = np.bincount(builder.joint_child[~loose], minlength=builder.body_count) == 1
    return np.flatnonzero(loose & is_held_once[builder.joint_child])


def _replace(
    builder: BuilderTables,
    split: Builder,
    holding: np.ndarray,
    filtered: np.ndarray,
    removed: np.ndarray,
) -> Builder:
    """Return a copy of `split`, which is the builder or what `split_bodies` made of it, without some joints.

    Args:
        builder: Builder.
        split: Builder with parts.
        holding: Joints that become constraints.
        filtered: Joints whose bodies do not collide.
        removed: Joints that are removed.
    """
    result = copy.copy(split)
    order = _add_constraints(result, split, holding)
    _add_filters(result, builder, filtered)
    _remove_joints(result, split, removed)
    _move_custom_attributes(result, split, removed, order)
    return result


def _check(builder: BuilderTables, loops: np.ndarray) -> None:
    """Check that the joints can close loops."""
    for what in ("X_p", "X_c"):
        frames = getattr(builder, f"joint_{what}")[loops]
        finite = np.isfinite(frames).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(
                f"{builder.joint_name(int(loops[row]))}: joint_{what} is {frames[row].tolist()}, but all "
                "numbers must be finite."
            )
    for joint in loops[np.isin(builder.joint_type[loops], FLOATING_JOINTS)].tolist():
        name, kind = builder.joint_name(joint), JointType(builder.joint_type[joint])
        closes = (
            f"{name} closes a loop: {builder.body_name(int(builder.joint_child[joint]))} has a joint already"
        )
        if kind is JointType.FREE:
            raise ValueError(f"{closes}. A FREE joint constrains nothing, so leave it out.")
        dofs = _dofs_of(builder, joint)
        acting = [name for name in _FORCES if (getattr(builder, f"joint_{name}")[dofs] != 0.0).any()]
        if acting:
            raise ValueError(
                f"{closes}. A {kind.name} joint has no coordinates there, but joint_{acting[0]} is given. "
                "Leave it out, or use a D6 joint with the axes that it acts on."
            )


def _dofs_of(builder: BuilderTables, joint: int) -> slice:
    first = int(builder.joint_qd_start[joint])
    return slice(first, first + int(builder.joint_dof_dim[joint].sum()))


def _needs_coordinates(builder: BuilderTables) -> np.ndarray:
    """Return which joints do more than constrain two bodies, or cannot be expressed by a constraint."""
    acts = ~np.isin(builder.joint_target_mode, _UNDRIVEN)
    acts |= (builder.joint_limit_lower > -LIMIT_NONE) | (builder.joint_limit_upper < LIMIT_NONE)
    for name in _FORCES:
        acts |= getattr(builder, f"joint_{name}") != 0.0
    owner = np.repeat(np.arange(builder.joint_count), builder.joint_dof_dim.sum(axis=1))
    result = np.bincount(owner[acts], minlength=builder.joint_count) > 0
    result[builder.joint_type == JointType.DISTANCE] = False  # its limits are the distances
    coupled = np.concatenate([builder.equality_constraint_joint1, builder.equality_constraint_joint2])
    result[coupled[coupled >= 0]] = True
    return result | np.isin(builder.joint_type, (JointType.PRISMATIC, JointType.D6))


def _check_off(builder: BuilderTables, joints: np.ndarray) -> None:
    """Warn of disabled joints that cannot become constraints: nothing could be enabled later."""
    coupled = np.concatenate([builder.equality_constraint_joint1, builder.equality_constraint_joint2])
    used = np.intersect1d(coupled, joints)
    if len(used):
        raise ValueError(
            f"{builder.joint_name(int(used[0]))} closes a loop and is disabled (joint_enabled false), but an "
            "equality constraint couples it. Enable the joint, or leave both out."
        )
    if len(joints):
        warnings.warn(
            f"{builder.joint_name(int(joints[0]))} closes a loop and is disabled (joint_enabled false), as "
            f"{len(joints)} in all that would move a part of a body: they are not in the model. Ball, "
            "fixed and revolute joints without drive, limits and losses become constraints that can be "
            "enabled.",
            stacklevel=4,
        )


def _add_constraints(result: BuilderTables, builder: BuilderTables, loops: np.ndarray) -> np.ndarray:
    """Append the constraints of loop joints, and sort all constraints by world; return the order."""
    kind = np.array([_CONSTRAINT[JointType(value)] for value in builder.joint_type[loops]])
    frame1, frame2 = builder.joint_X_p[loops], builder.joint_X_c[loops]
    axis = np.tile([0.0, 0.0, 1.0], (len(loops), 1))
    polycoef = np.zeros((len(loops), 5))
    is_distance = kind == EqType.DISTANCE
    first = builder.joint_qd_start[loops[is_distance]]
    polycoef[is_distance, 0], polycoef[is_distance, 1] = (
        builder.joint_limit_lower[first],
        builder.joint_limit_upper[first],
    )
    hinge = kind == EqType.HINGE
    axis[hinge] = poses.rotate(frame1[hinge, 3:], builder.joint_axis[builder.joint_qd_start[loops[hinge]]])
    return add_constraints_of_joints(
        result,
        loops,
        type=kind,
        body1=builder.joint_parent[loops],
        body2=builder.joint_child[loops],
        anchor=np.where((kind == EqType.WELD)[:, None], frame2[:, :3], frame1[:, :3]),
        axis=axis,
        relpose=poses.compose(frame1, poses.inverse(frame2)),
        polycoef=polycoef,
        enabled=builder.joint_enabled[loops],
    )


def _add_filters(result: BuilderTables, builder: BuilderTables, loops: np.ndarray) -> None:
    """Filter the shapes of the two bodies of each loop joint against each other, as for other joints."""
    shapes = np.flatnonzero(builder.shape_collision_filter_parent)
    shapes = shapes[np.argsort(builder.shape_body[shapes], kind="stable")]
    joints = loops[builder.joint_collision_filter_parent[loops] & (builder.joint_parent[loops] >= 0)]
    bodies = np.stack([builder.joint_parent[joints], builder.joint_child[joints]])
    carrier = builder.shape_body[shapes]
    first = np.searchsorted(carrier, bodies)
    count = np.searchsorted(carrier, bodies, side="right") - first
    # Each shape of the parent with each of the child: the pairs of a joint are numbered in rows.
    size = count[0] * count[1]
    joint = np.repeat(np.arange(len(joints)), size)
    number = np.arange(len(joint)) - np.repeat(np.cumsum(size) - size, size)
    offset = np.stack(np.divmod(number, np.maximum(count[1], 1)[joint]))
    rows = shapes[first[:, joint] + offset].T
    table = builder.shape_filters.copied()
    added = table.extend(len(rows))  # before the view, which it outdates
    table.view("shape")[added] = rows
    result.shape_filters = table


def _remove_joints(result: BuilderTables, builder: BuilderTables, loops: np.ndarray) -> None:
    """Remove loop joints from the tables, and correct all indices."""
    keep = np.ones(builder.joint_count, dtype=bool)
    keep[loops] = False
    dof_count = builder.joint_dof_dim.sum(axis=1)
    coord_count = np.diff(np.append(builder.joint_q_start, builder.joint_coord_count))
    for entity, kept in (
        (Entity.JOINT, keep),
        (Entity.JOINT_DOF, np.repeat(keep, dof_count)),
        (Entity.JOINT_COORD, np.repeat(keep, coord_count)),
    ):
        result.tables[entity] = builder.tables[entity].taken(kept)
    result.column("joint_q_start")[:] = np.cumsum(coord_count[keep]) - coord_count[keep]
    result.column("joint_qd_start")[:] = np.cumsum(dof_count[keep]) - dof_count[keep]
    result.joint_label = [label for label, kept in zip(builder.joint_label, keep, strict=True) if kept]
    new_index = np.append(np.cumsum(keep) - 1, -1)  # -1, no joint, stays -1
    for name in ("joint1", "joint2"):
        rows = result.column(f"equality_constraint_{name}")
        rows[:] = new_index[rows]


def _move_custom_attributes(
    result: BuilderTables, builder: BuilderTables, loops: np.ndarray, order: np.ndarray
) -> None:
    """Reorder custom attributes with the remaining joints and with the constraints, which are in `order`."""
    if not builder.custom_attributes:
        return
    for key, joint in given_entities(builder, "joint", loops)[:1]:
        warnings.warn(
            f"{builder.joint_name(joint)} closes a loop, so it becomes an equality constraint of a model, "
            f"not a joint: the value of custom attribute '{key}' is ignored.",
            stacklevel=4,
        )
    keep = np.ones(builder.joint_count, dtype=bool)
    keep[loops] = False
    dof_count = builder.joint_dof_dim.sum(axis=1)
    coord_count = np.diff(np.append(builder.joint_q_start, builder.joint_coord_count))
    result.custom_attributes = taken_custom_attributes(
        builder,
        {
            "joint": np.flatnonzero(keep),
            "joint_dof": np.flatnonzero(np.repeat(keep, dof_count)),
            "joint_coord": np.flatnonzero(np.repeat(keep, coord_count)),
            "joint_constraint": np.flatnonzero(np.repeat(keep, 6 - dof_count)),
            "equality_constraint": order,
        },
    )
