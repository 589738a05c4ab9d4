"""Sweeps over the tree: body velocities from joint velocities, joint impulses from wrenches on bodies.

Together they replace the contact Jacobian J: a contact needs only the spatial velocities of its two bodies
for J v, and J^T gamma is one wrench per contact, summed on the bodies and carried to the root (as in inverse
dynamics, [Featherstone2008] section 5.3). Only bodies that carry a contact, and those above them, are
visited.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.math.precision import vec3_type, vec6_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_objective import contact_objective_functions
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.workspace import VISITED, sap_struct
from pluriverse.types import JointType


@functools.cache
def sweep_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool = False, moments: bool = False
) -> SimpleNamespace:
    """Return `term_velocities` and `joint_impulses`, with or without equalities and contact moments."""
    vec3, vec6 = vec3_type(real), vec6_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)

    contacts = contact_objective_functions(real, linear, moments)
    measure_contacts, add_contact_wrenches = contacts.measure_contacts, contacts.add_contact_wrenches
    equalities = equality_functions(real, linear)
    measure_equalities, add_equality_wrenches = (
        equalities.measure_equalities,
        equalities.add_equality_wrenches,
    )
    add_spring_impulses = spring_functions(real, linear).add_spring_impulses

    @wp.func(inline=True)
    def is_free_root(
        topology: wp.ref[Topology], sap: wp.ref[SapData], node0: int, first_node: int, node: int
    ) -> bool:
        """Return whether a node is a free root that is not prescribed: its motions are the unit vectors."""
        free = (
            topology.node_type[first_node + node] == JointType.FREE
            and topology.node_parent[first_node + node] < 0
        )
        return free and sap.node_contact[node0 + node] == VISITED

    @wp.func(inline=stages_inline())
    def term_velocities(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        dof_rate: wp.array(dtype=real),
        contact_rate: wp.array(dtype=vec3),
        contact_spin: wp.array(dtype=vec3),
        equality_rate: wp.array(dtype=vec6),
        drifting: int,  # 1: with the velocity that kinematic roots add
    ):
        """Write J x, x = `dof_rate`, of all contacts [m/s, rad/s] and equality constraints of the world."""
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        tree0 = topology.world_tree[world]
        for node in range(topology.template_node[template + 1] - first_node):
            if sap.node_contact[node0 + node] != 0:
                rate = vec6()
                parent = topology.node_parent[first_node + node]
                if parent >= 0:
                    rate = sap.node_rate[node0 + parent]
                elif drifting != 0:
                    rate = vec6(dynamics.tree_drift[tree0 + topology.node_tree[first_node + node]])
                begin = topology.node_dof[first_node + node]
                if is_free_root(topology, sap, node0, first_node, node):
                    for k in range(6):
                        rate[k] += dof_rate[dof0 + begin + k]
                else:
                    for dof in range(begin, begin + topology.node_dof_count[first_node + node]):
                        rate += dof_rate[dof0 + dof] * vec6(dynamics.dof_motion[dof0 + dof])
                sap.node_rate[node0 + node] = rate
        measure_contacts(topology, sap, world, contact_rate, contact_spin)
        if wp.static(equality):
            measure_equalities(topology, sap, world, dof_rate, equality_rate)

    @wp.func(inline=stages_inline())
    def joint_impulses(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ):
        """Write the impulses on joints: of their own terms, and J^T gamma of contacts and equalities."""
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        first = topology.template_dof[template]
        for dof in range(dof0, dof0 + topology.template_dof[template + 1] - first):
            sap.impulse[dof] = sap.dof_impulse[dof]
        for node in range(node_count):
            sap.node_wrench[node0 + node] = vec6()
        add_contact_wrenches(topology, sap, world)
        if wp.static(equality):
            add_equality_wrenches(topology, sap, world)
            add_spring_impulses(topology, sap, world)
        for i in range(node_count):
            node = node_count - 1 - i
            if sap.node_contact[node0 + node] != 0:
                wrench = sap.node_wrench[node0 + node]
                begin = topology.node_dof[first_node + node]
                if is_free_root(topology, sap, node0, first_node, node):
                    for k in range(6):
                        sap.impulse[dof0 + begin + k] = sap.impulse[dof0 + begin + k] + wrench[k]
                else:
                    for dof in range(begin, begin + topology.node_dof_count[first_node + node]):
                        sap.impulse[dof0 + dof] = sap.impulse[dof0 + dof] + wp.dot(
                            vec6(dynamics.dof_motion[dof0 + dof]), wrench
                        )
                parent = topology.node_parent[first_node + node]
                if parent >= 0:
                    sap.node_wrench[node0 + parent] = sap.node_wrench[node0 + parent] + wrench

    return SimpleNamespace(term_velocities=term_velocities, joint_impulses=joint_impulses)
