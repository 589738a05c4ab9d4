"""Contact stage: turn the contacts that collision found into terms of the objective.

Reads   contacts, body poses and motion subspaces of the dynamics, materials and masses of the model
Writes  per contact: bodies, frame, lever arms, phi0, regularization R and bias v_hat; node_contact,
        tree_active; the part that stages go over, which is all of a world (`groups.py`)

Regularization is that of [Castro2022] section V: dissipation and compliance give R_n, stiction R_t = sigma w.

The weight w of a contact, its inverse effective mass (`contact_weight.py`), bounds R_n from below and sets
R_t.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.number_rows import integers_clear
from pluriverse.math.precision import kernel_module
from pluriverse.model import Contacts, Model, Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.solvers.sap.contact_blocks import contact_block_functions
from pluriverse.solvers.sap.contact_inputs import LEFT_OUT, ContactInputs, ContactOptions
from pluriverse.solvers.sap.groups import group_functions
from pluriverse.solvers.sap.workspace import PRESCRIBED, SapWorkspace, sap_struct


@made_once
def _kernels(real: Any, linear: Any, dynamics_real: Any, weight_real: Any) -> SimpleNamespace:
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    names = (real, linear, dynamics_real, weight_real)
    take_world = group_functions(real, linear, dynamics_real).take_world
    set_slots = contact_block_functions(*names).set_slots

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.solvers.sap.contact", *names))
    def set_contact_terms(
        worlds: wp.array[int],
        stride: int,  # number of threads, see `world_thread_count`
        topology: Topology,
        inputs: ContactInputs,
        options: ContactOptions,
        dynamics: DynamicsData,
        sap: SapData,
    ):
        thread, _ = wp.tid()
        for index in range(thread, worlds.shape[0], stride):
            world = worlds[index]
            if world < 0:
                continue
            template = topology.world_template[world]
            first_node = topology.template_node[template]
            node_count = topology.template_node[template + 1] - first_node
            node0 = topology.world_joint[world]
            tree0 = topology.world_tree[world]
            dof0 = topology.world_dof[world]
            # One thread steps all worlds of a launch on a CPU, one after the other: they share its scratch.
            region = int(world)
            if inputs.shares_chains != 0 and worlds[0] >= 0:
                region = worlds[0]

            take_world(topology, sap, world)
            integers_clear(sap.node_contact, node0, node_count)
            # A tree takes part if any of its terms is present.
            first_tree = topology.template_tree[template]
            tree_count = topology.template_tree[template + 1] - first_tree
            for tree in range(tree_count):
                active = int(0)
                for dof in range(
                    topology.tree_dof[first_tree + tree], topology.tree_dof_end[first_tree + tree]
                ):
                    if sap.dof_terms[dof0 + dof] != 0:
                        active = 1
                        break
                sap.tree_active[tree0 + tree] = active

            start = sap.contact_start[world]
            count = stored_contact_count(inputs.slot_start, inputs.contact_count, world)
            if inputs.world_frozen[world] != 0:
                count = 0
            count = set_slots(world, region, topology, inputs, options, dynamics, sap, start, count)

            sap.contact_count[world] = count
            for _surplus in range(count - options.capacity):
                shallowest = start
                for slot in range(start, start + count):
                    taken = sap.contact_rn[slot] > real(0.0)
                    if taken and not (
                        sap.contact_rn[shallowest] > real(0.0)
                        and sap.contact_gap[shallowest] >= sap.contact_gap[slot]
                    ):
                        shallowest = slot
                sap.contact_rn[shallowest] = real(LEFT_OUT)

            for tree in range(tree_count):
                root = node0 + topology.tree_node[first_tree + tree]
                if dynamics.tree_prescribed[tree0 + tree] != 0 and sap.node_contact[root] != 0:
                    sap.node_contact[root] = PRESCRIBED
                if inputs.world_frozen[world] != 0:
                    sap.tree_active[tree0 + tree] = 0

    return SimpleNamespace(set_contact_terms=set_contact_terms)


def set_contact_terms(
    model: Model,
    worlds: wp.array,
    contacts: Contacts,
    dynamics: Workspace,
    sap: SapWorkspace,
    world_frozen: wp.array,
    *,
    options: ContactOptions,
    weight_real: Any,
) -> None:
    """Write the terms of every contact of the worlds; `options.dt` is the step [s]."""
    inputs = ContactInputs()
    inputs.slot_start = contacts.slot_start
    inputs.contact_count = contacts.rigid_contact_count
    inputs.shape0 = contacts.rigid_contact_shape0
    inputs.shape1 = contacts.rigid_contact_shape1
    inputs.point0 = contacts.rigid_contact_point0
    inputs.point1 = contacts.rigid_contact_point1
    inputs.normal = contacts.rigid_contact_normal
    inputs.margin0 = contacts.rigid_contact_margin0
    inputs.margin1 = contacts.rigid_contact_margin1
    inputs.has_stiffness = contacts.rigid_contact_stiffness is not None
    if contacts.rigid_contact_stiffness is not None:
        inputs.stiffness = contacts.rigid_contact_stiffness
    inputs.shape_body = model.structure.shape_body
    inputs.shape_ke = model.shape_material_ke
    inputs.shape_ke_per_mass = model.shape_material_ke_per_mass
    inputs.shape_tau = model.shape_material_tau
    inputs.shape_mu = model.shape_material_mu
    inputs.body_mass = model.body_mass
    inputs.body_inertia = model.body_inertia
    inputs.world_frozen = world_frozen
    inputs.chain_capacity = sap.chain_capacity
    inputs.shares_chains = int(model.device.is_cpu)
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real, weight_real).set_contact_terms,
        dim=threads,
        inputs=[worlds, threads, model.topology, inputs, options, dynamics.data, sap.data],
        device=model.device,
    )
