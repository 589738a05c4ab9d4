"""Split bodies: a loop joint with coordinates moves a part of its child, which is welded to the rest.

A loop of joints becomes a tree by cutting one of its joints or splitting one of its bodies
([Featherstone2008] ch. 8). Splitting the body keeps all joints: drives, limits and damping of the loop joint
work as in a tree. With n such joints a body is split into n + 1 parts of equal mass and inertia, with the
same frame and centre of mass. The body itself, with its shapes, is one of them. Each other part is the child
of a loop joint and labelled `JOINT_half` after it. A weld with the label of the joint attaches it to the
body.
"""

import copy

import numpy as np

from pluriverse.builder.custom_merge import taken_custom_attributes
from pluriverse.builder.equality_copies import add_constraints_of_joints
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import BodyFlags, Entity, EqType


def split_bodies(builder: BuilderTables, joints: np.ndarray) -> tuple[BuilderTables, np.ndarray]:
    """Return the builder, or, if there are such joints, a copy where each moves a part of its child.

    The parts are the last bodies of their worlds. The joint joins the articulation of its parent, or, if the
    parent is the world, that of its child.

    Args:
        builder: Builder of which each joint given has a child that another joint moves too.
        joints: Joints that close loops, ascending.

    Returns:
        The builder, and the child that the part of each joint was split from, shape [joint].

    Raises:
        ValueError: If a child has no mass.
    """
    if len(joints) == 0:
        return builder, joints
    count, child = builder.body_count, builder.joint_child[joints]
    _check_masses(builder, joints)
    result = copy.copy(builder)
    origin = np.concatenate([np.arange(count), child])
    bodies = builder.tables[Entity.BODY].taken(origin)
    share = 1.0 / (1.0 + np.bincount(child, minlength=count))[origin]
    bodies.view("body_mass")[:] *= share
    bodies.view("body_inertia")[:] *= share[:, None, None]
    bodies.view("body_flags")[count:] = BodyFlags.DYNAMIC
    order = np.argsort(bodies.view("body_world"), kind="stable")
    result.tables[Entity.BODY] = bodies.taken(order)
    labels = builder.body_label + [f"{builder.joint_label[joint]}_half" for joint in joints]
    result.body_label = [labels[index] for index in order]
    new_index = np.empty(len(order) + 1, dtype=np.int64)
    new_index[order], new_index[-1] = np.arange(len(order)), -1  # -1, the world, stays -1
    part = new_index[count:-1]

    result.tables[Entity.JOINT] = builder.tables[Entity.JOINT].copied()
    result.column("joint_parent")[:] = new_index[builder.joint_parent]
    result.column("joint_child")[:] = new_index[builder.joint_child]
    result.column("joint_child")[joints] = part
    result.column("joint_articulation")[joints] = _articulations(builder, joints)
    result.tables[Entity.SHAPE] = builder.tables[Entity.SHAPE].copied()
    result.column("shape_body")[:] = new_index[builder.shape_body]
    constraint_order = _weld(result, builder, joints, new_index[child], part, new_index)
    if builder.custom_attributes:
        result.custom_attributes = taken_custom_attributes(
            builder, {"body": origin[order], "equality_constraint": constraint_order}
        )
    return result, new_index[child]


def _check_masses(builder: BuilderTables, joints: np.ndarray) -> None:
    mass = builder.body_mass[builder.joint_child[joints]]
    if not (mass > 0.0).all():
        row = int(np.argmin(mass > 0.0))
        joint = int(joints[row])
        raise ValueError(
            f"{builder.joint_name(joint)} closes a loop and has coordinates, so it moves a part of "
            f"{builder.body_name(int(builder.joint_child[joint]))}, whose mass is {mass[row]} kg. Give the "
            "body a mass, or exchange parent and child of the joint."
        )


def _articulations(builder: BuilderTables, joints: np.ndarray) -> np.ndarray:
    """Return the new articulation of each joint."""
    tree = np.flatnonzero(builder.joint_articulation >= 0)
    articulation = np.full(builder.body_count + 1, -1, dtype=np.int64)  # of the joint that moves each body
    articulation[builder.joint_child[tree]] = builder.joint_articulation[tree]
    parent = builder.joint_parent[joints]
    return articulation[np.where(parent >= 0, parent, builder.joint_child[joints])]


def _weld(
    result: BuilderTables,
    builder: BuilderTables,
    joints: np.ndarray,
    body: np.ndarray,
    part: np.ndarray,
    new_index: np.ndarray,
) -> np.ndarray:
    """Weld the parts to their bodies, and sort all constraints by world; return the order."""
    constraints = builder.tables[Entity.EQUALITY_CONSTRAINT]
    result.tables[Entity.EQUALITY_CONSTRAINT] = constraints.copied()
    for name in ("body1", "body2"):
        column = result.column(f"equality_constraint_{name}")
        column[:] = new_index[column]
    return add_constraints_of_joints(
        result,
        joints,
        type=EqType.WELD,
        body1=body,
        body2=part,
        joint1=joints,
        anchor=builder.joint_X_c[joints, :3],
        relpose=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    )
