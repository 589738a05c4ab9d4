"""Public motion: how a public degree of freedom moves the bodies that it carries."""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.precision import vec3_type, vec6_type
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Topology
from pluriverse.types import JointType


@functools.cache
def public_motion_functions(real: Any) -> SimpleNamespace:
    """Return the functions for scalars of type `real`.

    The members are the `wp.func`s `public_motion`, `public_index` and `last_dof`.
    """
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    data_struct = workspace_struct(real)
    spatial = spatial_functions(real).spatial

    @wp.func
    def public_index(joint_type: int, k: int) -> int:
        """Return the index in its joint of the public dof that corresponds to internal dof `k`."""
        index = k
        if joint_type == JointType.FREE:
            index = (k + 3) % 6  # internal (omega, v_origin), public (v_com, omega)
        return index

    @wp.func
    def public_motion(data: data_struct, joint_type: int, node: int, dof: int, k: int) -> vec6:
        """Return the spatial velocity per unit of the public dof that stands for internal dof `dof`.

        `k` is the place of the internal dof in its joint. A turn of a free joint is about the centre of mass.
        """
        motion = data.dof_motion[dof]
        if joint_type == JointType.FREE:
            if k < 3:
                axis = vec3()
                axis[k] = real(1.0)
                motion = spatial(axis, wp.cross(data.node_com[node], axis))
        return motion

    @wp.func
    def last_dof(topology: Topology, first_node: int, local_node: int) -> int:
        """Return the template-local dof nearest to a node on its path from the root, -1 for none."""
        node = local_node
        while node >= 0:
            count = topology.node_dof_count[first_node + node]
            if count > 0:
                return topology.node_dof[first_node + node] + count - 1
            node = topology.node_parent[first_node + node]
        return -1

    return SimpleNamespace(public_index=public_index, public_motion=public_motion, last_dof=last_dof)
