"""Tree states: poses and velocities of bodies about the reference points of their trees, kept between steps.

A step ends with the bodies at its new joint state, and the next one begins at that joint state unless a user
has written to it. So tree states are kept together with the joint state that they follow from. The kinematics
stage compares the two bit by bit, and computes the tree states of a world anew only where they differ, or
where its rigid groups have been made anew since.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import quat_type, vec3_type, vec6_type
from pluriverse.model import Model
from pluriverse.model.topology import Template
from pluriverse.types import JointType

# What `body_placing_lanes.py` can do: kinds of joints, and how much of a world it keeps on the stack, half a
# megabyte of double precision for the joint state and as much for the nodes. Of these joints only roots have
# coordinates that are more than numbers, which `integration.py` builds on.
_PLAIN_TYPES = (
    JointType.FIXED,
    JointType.REVOLUTE,
    JointType.PRISMATIC,
    JointType.FREE,
    JointType.D6,
)
_PLAIN_NUMBERS_MAX = 8192
_PLAIN_NODES_MAX = 512


@made_once
def tree_states_struct(real: Any) -> Any:
    """Return the `wp.struct` that hands tree states to a kernel, for scalars of type `real`."""
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    quat = quat_type(real)

    @wp.struct
    class TreeStateData:
        # The reference point of a tree is the origin of its root body.
        tree_ref: wp.array(dtype=vec3)  # [tree] m
        node_quat: wp.array(dtype=quat)  # [node] body to world, xyzw; of carriers
        node_offset: wp.array(dtype=vec3)  # [node] m, origin from the reference point; of carriers
        node_velocity: wp.array(dtype=vec6)  # [node] rad/s, m/s about the reference point; of carriers
        node_turn: wp.array(dtype=quat)  # [node] orientation on the parent's carrier; of hinges and slides
        # what it was made of
        joint_q: wp.array[float]  # [coord]
        joint_qd: wp.array[float]  # [dof]
        world_groups: wp.array[int]  # [world] `RigidGroupsData.world_made`; 0: nothing is kept
        template_coord_count: wp.array[int]  # [template]
        template_plain: wp.array[int]  # [template] 1 where worlds can be placed in lanes

    return TreeStateData


def make_tree_states(model: Model, real: Any) -> Any:
    """Return the struct for all worlds of a model, with nothing kept."""
    result = tree_states_struct(real)()
    sizes = {
        "tree_ref": (model.tree_count, vec3_type(real)),
        "node_quat": (model.joint_count, quat_type(real)),
        "node_turn": (model.joint_count, quat_type(real)),
        "node_offset": (model.joint_count, vec3_type(real)),
        "node_velocity": (model.joint_count, vec6_type(real)),
        "joint_q": (model.joint_coord_count, wp.float32),
        "joint_qd": (model.joint_dof_count, wp.float32),
        "world_groups": (model.world_count, wp.int32),
    }
    for name, (size, dtype) in sizes.items():
        setattr(result, name, wp.zeros(size, dtype=dtype, device=model.device))
    counts = np.array([template.coord_count for template in model.templates], dtype=np.int32)
    result.template_coord_count = wp.array(counts, dtype=wp.int32, device=model.device)
    plain = np.array([is_plain(template) for template in model.templates], dtype=np.int32)
    result.template_plain = wp.array(plain, dtype=wp.int32, device=model.device)
    return result


def is_plain(template: Template) -> bool:
    """Return whether worlds of a template can be placed in lanes."""
    kinds_fit = np.isin(template.node_type, [int(kind) for kind in _PLAIN_TYPES]).all()
    numbers = template.coord_count + template.dof_count
    return bool(kinds_fit) and numbers <= _PLAIN_NUMBERS_MAX and template.node_count <= _PLAIN_NODES_MAX
