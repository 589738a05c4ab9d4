"""Public motion: how a public degree of freedom moves the bodies that it carries."""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.precision import vec3_type, vec6_type
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Topology
from pluriverse.types import JointType


@made_once
def public_motion_functions(real: Any) -> SimpleNamespace:
    """Return the functions for scalars of type `real`.

    The members are the `wp.func`s `public_dof`, `public_motion` and `last_dof`.
    """
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    data_struct = workspace_struct(real)
    spatial = spatial_functions(real).spatial

    @wp.func
    def public_dof(topology: Topology, world: int, dof: int) -> int:
        """Return the public dof that stands for a template-local internal dof of a world."""
        template = topology.world_template[world]
        node = topology.template_node[template] + topology.dof_node[topology.template_dof[template] + dof]
        index = dof - topology.node_dof[node]
        if topology.node_type[node] == JointType.FREE:
            index = (index + 3) % 6  # internal (omega, v_origin), public (v_com, omega)
        return topology.world_dof[world] + topology.node_qd[node] + index

    @wp.func
    def public_motion(topology: Topology, data: data_struct, world: int, dof: int) -> vec6:
        """Return the spatial velocity per unit of the public dof that stands for an internal dof of a world.

        A turn of a free joint is about the centre of mass.
        """
        template = topology.world_template[world]
        local_node = topology.dof_node[topology.template_dof[template] + dof]
        node = topology.template_node[template] + local_node
        motion = data.dof_motion[topology.world_dof[world] + dof]
        if topology.node_type[node] == JointType.FREE:
            k = dof - topology.node_dof[node]
            if k < 3:
                axis = vec3()
                axis[k] = real(1.0)
                motion = spatial(
                    axis, wp.cross(data.node_com[topology.world_joint[world] + local_node], axis)
                )
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

    return SimpleNamespace(public_dof=public_dof, public_motion=public_motion, last_dof=last_dof)
