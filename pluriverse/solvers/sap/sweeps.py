"""Sweeps over the tree: body velocities from joint velocities, joint impulses from wrenches on bodies.

Together they replace the contact Jacobian J: a contact needs only the spatial velocities of its two bodies
for J v, and J^T gamma is one wrench per contact, summed on the bodies and carried to the root (as in inverse
dynamics, [Featherstone2008] section 5.3). Only bodies that carry a contact, and those above them, are
visited.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.precision import vec3_type, vec6_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.math.tree_sweeps import tree_sweep_functions
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_objective import contact_objective_functions
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.workspace import VISITED, sap_struct


@made_once
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
    tree_sweeps = tree_sweep_functions(dynamics_real, real)
    sweep_velocities, sweep_wrenches = tree_sweeps.sweep_velocities, tree_sweeps.sweep_wrenches
    vectors_clear = tree_sweeps.vectors_clear
    copy_numbers = packed_rows(real).rows_copy

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
        drifting: int,  # 1: with what does not depend on x: the velocity of kinematic roots, and of chords
    ):
        """Write J x, x = `dof_rate`, of all contacts [m/s, rad/s] and equality constraints of the world."""
        template = topology.world_template[world]
        sweep_velocities(
            sap.node_contact,
            VISITED,
            topology.node_parent,
            topology.node_dof,
            topology.node_dof_count,
            topology.node_type,
            topology.node_tree,
            topology.template_node[template],
            sap.part_node[world],
            sap.part_node_end[world],
            topology.world_joint[world],
            dynamics.dof_motion,
            topology.world_dof[world],
            dynamics.tree_drift,
            topology.world_tree[world],
            drifting,
            dof_rate,
            sap.node_rate,
        )
        measure_contacts(topology, sap, world, contact_rate, contact_spin, drifting)
        if wp.static(equality):
            measure_equalities(topology, sap, world, dof_rate, equality_rate)

    @wp.func(inline=stages_inline())
    def joint_impulses(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ):
        """Write the impulses on joints: of their own terms, and J^T gamma of contacts and equalities."""
        template = topology.world_template[world]
        node0 = topology.world_joint[world]
        dof0 = topology.world_dof[world]
        first_node, end_node = sap.part_node[world], sap.part_node_end[world]
        first_dof = dof0 + sap.part_dof[world]
        copy_numbers(
            sap.dof_impulse, first_dof, dof0 + sap.part_dof_end[world] - first_dof, sap.impulse, first_dof
        )
        vectors_clear(sap.node_wrench, node0 + first_node, end_node - first_node)
        add_contact_wrenches(topology, sap, world)
        if wp.static(equality):
            add_equality_wrenches(topology, sap, world)
            add_spring_impulses(topology, sap, world)
        sweep_wrenches(
            sap.node_contact,
            VISITED,
            topology.node_parent,
            topology.node_dof,
            topology.node_dof_count,
            topology.node_type,
            topology.template_node[template],
            first_node,
            end_node,
            node0,
            dynamics.dof_motion,
            dof0,
            sap.node_wrench,
            sap.impulse,
        )

    return SimpleNamespace(term_velocities=term_velocities, joint_impulses=joint_impulses)
