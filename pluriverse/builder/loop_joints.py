"""Loop joints: a second joint to a body, in no articulation, closes a loop as an equality constraint.

Joints form trees, each body being moved by one of them. What the joint of an articulation leaves open between
two bodies, a joint beside it holds: a ball joint as a connect constraint, a fixed one as a weld, a revolute
one as a hinge, a distance joint as a rope. It is none of the model's joints then, and has no coordinate.
"""

import copy
import warnings

import numpy as np

from pluriverse.builder.custom_merge import given_entities, taken_custom_attributes
from pluriverse.builder.worlds import WorldBuilder
from pluriverse.model import poses
from pluriverse.types import EqType, JointType

_CONSTRAINT = {
    JointType.BALL: EqType.CONNECT,
    JointType.DISTANCE: EqType.DISTANCE,
    JointType.FIXED: EqType.WELD,
    JointType.REVOLUTE: EqType.HINGE,
}
# Limits of a revolute joint from here on [rad] count as none; that of the builder's default is 1e10.
LIMIT_NONE = 1e9


def replace_loop_joints(builder: WorldBuilder) -> WorldBuilder:
    """Return the builder, or, if it has loop joints, a copy that has equality constraints instead.

    Raises:
        NotImplementedError: If a loop joint is of a type that no constraint stands for.
        ValueError: If a loop joint has a drive, limits or losses, or a constraint follows its coordinate.
    """
    loose = builder.joint_articulation < 0
    held = np.bincount(builder.joint_child[~loose], minlength=builder.body_count) == 1
    loops = np.flatnonzero(loose & held[builder.joint_child])
    if len(loops) == 0:
        return builder
    _check(builder, loops)
    result = copy.copy(builder)
    order = _add_constraints(result, builder, loops)
    _add_filters(result, builder, loops)
    _remove_joints(result, builder, loops)
    _move_custom_attributes(result, builder, loops, order)
    return result


def _check(builder: WorldBuilder, loops: np.ndarray) -> None:
    """Check that constraints can stand for the joints."""
    for joint in loops.tolist():
        name, kind = builder._joint_name(joint), JointType(builder.joint_type[joint])
        closes = (
            f"{name} closes a loop: {builder._body_name(int(builder.joint_child[joint]))} has a joint already"
        )
        if kind not in _CONSTRAINT:
            raise NotImplementedError(
                f"{closes}. Only ball, fixed, revolute and distance joints can, but this one is {kind.name}. "
                "Put it into the articulation, and let a ball, fixed or revolute joint of the loop close it."
            )
        dofs = slice(
            int(builder.joint_qd_start[joint]),
            int(builder.joint_qd_start[joint] + builder.joint_dof_dim[joint].sum()),
        )
        for what in ("X_p", "X_c"):
            frame = getattr(builder, f"joint_{what}")[joint]
            if not np.isfinite(frame).all():
                raise ValueError(f"{name}: joint_{what} is {frame.tolist()}, but all numbers must be finite.")
        lossy = [
            attribute
            for attribute in ("target_ke", "target_kd", "damping", "friction", "f", "act")
            if (getattr(builder, f"joint_{attribute}")[dofs] != 0.0).any()
        ]
        if kind is JointType.REVOLUTE and not (
            builder.joint_limit_lower[dofs][0] <= -LIMIT_NONE
            and builder.joint_limit_upper[dofs][0] >= LIMIT_NONE
        ):
            lossy.append("limit_lower, joint_limit_upper")
        if lossy:
            raise ValueError(
                f"{closes}, so it has no coordinate, but joint_{lossy[0]} is given. Leave it out, or let "
                "another joint of the loop close it and put this one into the articulation."
            )
    named = np.concatenate([builder.equality_constraint_joint1, builder.equality_constraint_joint2])
    used = np.intersect1d(named, loops)
    if len(used):
        raise ValueError(
            f"{builder._joint_name(int(used[0]))} closes a loop, so it has no coordinate, but an equality "
            "constraint couples it. Couple joints of articulations."
        )


def _add_constraints(result: WorldBuilder, builder: WorldBuilder, loops: np.ndarray) -> np.ndarray:
    """Append the constraints of loop joints, and sort all constraints by world; return the order."""
    table = builder._equality.taken(np.arange(len(builder._equality)))
    added = table.extend(len(loops))
    kind = np.array([_CONSTRAINT[JointType(value)] for value in builder.joint_type[loops]])
    frame1, frame2 = builder.joint_X_p[loops], builder.joint_X_c[loops]
    axis = np.tile([0.0, 0.0, 1.0], (len(loops), 1))
    polycoef = np.zeros((len(loops), 5))
    rope = kind == EqType.DISTANCE
    first = builder.joint_qd_start[loops[rope]]
    polycoef[rope, 0], polycoef[rope, 1] = builder.joint_limit_lower[first], builder.joint_limit_upper[first]
    hinge = kind == EqType.HINGE
    axis[hinge] = poses.rotate(frame1[hinge, 3:], builder.joint_axis[builder.joint_qd_start[loops[hinge]]])
    for name, values in {
        "type": kind,
        "body1": builder.joint_parent[loops],
        "body2": builder.joint_child[loops],
        "anchor": np.where((kind == EqType.WELD)[:, None], frame2[:, :3], frame1[:, :3]),
        "axis": axis,
        "relpose": poses.compose(frame1, poses.inverse(frame2)),
        "polycoef": polycoef,
        "enabled": builder.joint_enabled[loops],
        "world": builder.joint_world[loops],
    }.items():
        table.view(name)[added] = values
    labels = builder.equality_constraint_label + [builder.joint_label[joint] for joint in loops]
    order = np.argsort(table.view("world"), kind="stable")
    result._equality = table.taken(order)
    result.equality_constraint_label = [labels[index] for index in order]
    return order


def _add_filters(result: WorldBuilder, builder: WorldBuilder, loops: np.ndarray) -> None:
    """Filter the shapes of the two bodies of each loop joint against each other, as for other joints."""
    by_body = np.argsort(builder.shape_body, kind="stable")
    carrier = builder.shape_body[by_body]
    pairs = []
    for joint in loops[builder.joint_collision_filter_parent[loops] & (builder.joint_parent[loops] >= 0)]:
        shapes = [
            by_body[slice(*np.searchsorted(carrier, [body, body + 1]))]
            for body in (builder.joint_parent[joint], builder.joint_child[joint])
        ]
        shapes = [part[builder.shape_collision_filter_parent[part]] for part in shapes]
        pairs.append(np.stack(np.meshgrid(*shapes), axis=-1).reshape(-1, 2))
    table = builder._filters.taken(np.arange(len(builder._filters)))
    rows = np.concatenate([np.zeros((0, 2), dtype=np.int32), *pairs])
    added = table.extend(len(rows))  # before the view, which it outdates
    table.view("shape")[added] = rows
    result._filters = table


def _remove_joints(result: WorldBuilder, builder: WorldBuilder, loops: np.ndarray) -> None:
    """Take loop joints out of the tables, and their places out of all indices."""
    keep = np.ones(builder.joint_count, dtype=bool)
    keep[loops] = False
    dof_count = builder.joint_dof_dim.sum(axis=1)
    coord_count = np.diff(np.append(builder.joint_q_start, builder.joint_coord_count))
    result._joints = builder._joints.taken(keep)
    result._dofs = builder._dofs.taken(np.repeat(keep, dof_count))
    result._coords = builder._coords.taken(np.repeat(keep, coord_count))
    result._joints.view("q_start")[:] = np.cumsum(coord_count[keep]) - coord_count[keep]
    result._joints.view("qd_start")[:] = np.cumsum(dof_count[keep]) - dof_count[keep]
    result.joint_label = [label for label, kept in zip(builder.joint_label, keep, strict=True) if kept]
    place = np.append(np.cumsum(keep) - 1, -1)  # -1, no joint, stays -1
    for name in ("joint1", "joint2"):
        rows = result._equality.view(name)
        rows[:] = place[rows]


def _move_custom_attributes(
    result: WorldBuilder, builder: WorldBuilder, loops: np.ndarray, order: np.ndarray
) -> None:
    """Let the custom attributes follow the joints that stay and the constraints, which are in `order`."""
    if not builder.custom_attributes:
        return
    for key, joint in given_entities(builder, "joint", loops)[:1]:
        warnings.warn(
            f"{builder._joint_name(joint)} closes a loop, so it is an equality constraint of the model and "
            f"none of its joints: the value of custom attribute '{key}' is left out.",
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
