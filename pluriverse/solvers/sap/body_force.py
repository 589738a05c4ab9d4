"""Contact force per body: the forces of the last step summed to one wrench about the centre of mass.

Reads   rigid_contact_force, the points at which the solver applied the forces, and moments of contacts
Writes  an array of wrenches [body]
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.precision import kernel_module
from pluriverse.model import Contacts, Model, Topology
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct


@made_once
def _kernels(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    names = (real, linear, dynamics_real)

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.solvers.sap.body_force", *names))
    def sum_contact_force(
        worlds: wp.array[int],
        topology: Topology,
        contact_force: wp.array[wp.vec3],  # [slot] N, on the body of shape1
        rate: real,  # of impulses to forces [1/s]
        dynamics: DynamicsData,
        sap: SapData,
        body_force: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node0 = topology.world_joint[world]
        body0 = topology.world_body[world]
        for body in range(
            body0, body0 + topology.template_body[template + 1] - topology.template_body[template]
        ):
            body_force[body] = wp.spatial_vector()
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            force = contact_force[slot]
            moment = wp.vec3()
            if sap.contact_moment.shape[0] > 0:
                moment = wp.vec3(sap.contact_frame[slot] * sap.contact_moment[slot] * rate)
            node_a = sap.contact_node0[slot]
            node_b = sap.contact_node1[slot]
            if node_a >= 0:
                body = body0 + topology.node_body[first_node + node_a]
                arm = wp.vec3(sap.contact_arm0[slot]) - wp.vec3(dynamics.node_com[node0 + node_a])
                body_force[body] = body_force[body] - wp.spatial_vector(force, wp.cross(arm, force) + moment)
            if node_b >= 0:
                body = body0 + topology.node_body[first_node + node_b]
                arm = wp.vec3(sap.contact_arm1[slot]) - wp.vec3(dynamics.node_com[node0 + node_b])
                body_force[body] = body_force[body] + wp.spatial_vector(force, wp.cross(arm, force) + moment)

    return SimpleNamespace(sum_contact_force=sum_contact_force)


def sum_contact_forces(
    model: Model,
    worlds: wp.array,
    contacts: Contacts,
    dynamics: Workspace,
    sap: SapWorkspace,
    body_force: wp.array,
    *,
    dt: float,
) -> None:
    """Write the contact wrench on every body of the worlds in a step of `dt` [s]: force [N], torque [N·m]."""
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real).sum_contact_force,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            contacts.rigid_contact_force,
            1.0 / dt,
            dynamics.data,
            sap.data,
        ],
        outputs=[body_force],
        device=model.device,
    )
