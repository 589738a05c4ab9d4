"""Distance joints: a free joint, and an equality constraint that bounds the distance of two points.

The constraint is the last of its world, has the label of the joint, and uses its frames and distances.
"""

import copy

import numpy as np

from pluriverse.builder.custom_merge import taken_custom_attributes
from pluriverse.builder.equality_copies import add_constraints_of_joints
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import EqType, JointType


def add_distance_constraints(builder: BuilderTables) -> BuilderTables:
    """Return the builder, or, if it has distance joints, a copy with their constraints."""
    joints = np.flatnonzero(builder.joint_type == JointType.DISTANCE)
    if len(joints) == 0:
        return builder
    result = copy.copy(builder)
    order = add_constraints_of_joints(
        result,
        joints,
        type=EqType.DISTANCE,
        body1=builder.joint_parent[joints],
        body2=builder.joint_child[joints],
        joint1=joints,
        enabled=builder.joint_enabled[joints],
    )
    if builder.custom_attributes:
        result.custom_attributes = taken_custom_attributes(builder, {"equality_constraint": order})
    return result
