"""Distance joints: a free joint, and an equality constraint that keeps two points within a distance.

The constraint is the last of its world, has the label of the joint, and reads frames and distances from it.
"""

import copy

import numpy as np

from pluriverse.builder.worlds import WorldBuilder
from pluriverse.types import EqType, JointType


def add_distance_constraints(builder: WorldBuilder) -> WorldBuilder:
    """Return the builder, or, if it has distance joints, a copy with their constraints."""
    joints = np.flatnonzero(builder.joint_type == JointType.DISTANCE)
    if len(joints) == 0:
        return builder
    result = copy.copy(builder)
    table = builder._equality.taken(np.arange(len(builder._equality)))
    added = table.extend(len(joints))
    for name, values in {
        "type": np.full(len(joints), EqType.DISTANCE),
        "body1": builder.joint_parent[joints],
        "body2": builder.joint_child[joints],
        "joint1": joints,
        "enabled": builder.joint_enabled[joints],
        "world": builder.joint_world[joints],
    }.items():
        table.view(name)[added] = values
    labels = builder.equality_constraint_label + [builder.joint_label[joint] for joint in joints]
    order = np.argsort(table.view("world"), kind="stable")
    result._equality = table.taken(order)
    result.equality_constraint_label = [labels[index] for index in order]
    return result
