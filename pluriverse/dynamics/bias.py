"""Bias stage: all forces on the joints at zero joint acceleration, by recursive Newton-Euler sweeps.

Reads   joint_f, body_f, gravity and its compensation, body_mass, joint_damping; the workspace of the
        kinematics stage, node_composite
Writes  workspace: node_acceleration, node_wrench, node_load, dof_force, dof_product, tree_energy

    dof_force = joint_f + sum_b J_b^T (body_f + gravity) - c(q, v) - D v

with the velocity-product forces c (Coriolis, centrifugal, gyroscopic; [Featherstone2008] section 5.3) and the
joint damping D. Both come in along the tree, c by itself, since integration needs it. What gravity does to
all that a joint carries follows from the composite inertia of the mass matrix stage; `body_f`, and weights
that are compensated (`gravity_compensation.py`), are summed in worlds that have any.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.gravity_compensation import gravity_compensation
from pluriverse.dynamics.rigid_groups import rigid_groups_struct
from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import precision_name, vec3_type, vec6_type
from pluriverse.math.records import record_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.model import Control, Model, State, Topology
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import JointType


@made_once
def bias_functions(real: Any) -> SimpleNamespace:
    """Return `sum_world_forces`, the stage for one world, for scalars of type `real`."""
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    functions = spatial_functions(real)
    spatial = functions.spatial
    angular_part = functions.angular_part
    linear_part = functions.linear_part
    sym_times_vec = functions.sym_times_vec
    cross_motion = functions.cross_motion
    widen_vec3 = conversion_functions(real).widen_vec3
    is_clear = record_functions(wp.spatial_vector).is_clear
    is_uncompensated = record_functions(float).is_clear

    @wp.func
    def sum_loads(
        topology: Topology,
        body_f: wp.array[wp.spatial_vector],
        gravcomp: wp.array[float],
        body_mass: wp.array[float],
        fall: vec3,
        first_node: int,
        node_count: int,
        node_base: int,
        body_base: int,
        data: data_struct,
    ):
        """Write into `node_load` what `body_f` and compensation do to each body and all that it carries."""
        for local_node in range(node_count):
            index = first_node + local_node
            node = node_base + local_node
            body = body_base + topology.node_body[index]
            external = body_f[body]  # force, torque about the centre of mass
            pull = widen_vec3(wp.spatial_top(external))
            if gravcomp.shape[0] > 0:
                pull -= real(gravcomp[body]) * real(body_mass[body]) * fall
            twist = widen_vec3(wp.spatial_bottom(external)) + wp.cross(data.node_com[node], pull)
            data.node_load[node] = spatial(twist, pull)
        for reverse_node in range(node_count):
            local_node = node_count - 1 - reverse_node
            carrier = topology.node_carrier[first_node + local_node]
            if carrier >= 0:
                parent = node_base + carrier
                data.node_load[parent] = data.node_load[parent] + data.node_load[node_base + local_node]

    @wp.func
    def required_wrench(
        mass: real,
        com: vec3,
        com_velocity: vec3,
        inertia: vec6,
        momentum: vec3,
        velocity: vec6,
        acceleration: vec6,
    ) -> vec6:
        """Return the wrench about the reference point that an acceleration needs, by Newton and Euler.

        `momentum` is the angular momentum about the centre of mass.
        """
        omega = angular_part(velocity)
        alpha = angular_part(acceleration)
        # A spatial acceleration lacks the w x v of the material point that it is read at.
        com_acceleration = linear_part(acceleration) + wp.cross(alpha, com) + wp.cross(omega, com_velocity)
        force = mass * com_acceleration
        torque = sym_times_vec(inertia, alpha) + wp.cross(omega, momentum)
        return spatial(torque + wp.cross(com, force), force)

    @wp.func
    def axes_acceleration(data: data_struct, dof: int, dof_count: int) -> vec6:
        """Return what the axes of a D6 joint add to the acceleration, each moving with the earlier ones."""
        acceleration = vec6()
        carried = vec6()
        for k in range(dof, dof + dof_count):
            share = data.dof_velocity[k] * data.dof_motion[k]
            acceleration += cross_motion(carried, share)
            carried += share
        return acceleration

    @wp.func
    def shifted_turns(data: data_struct, dof: int) -> vec6:
        """Return what a free joint below a body adds: its turns are about a point that its shifts move."""
        velocity = vec3()
        omega = vec3()
        for k in range(3):
            velocity += data.dof_velocity[dof + k] * linear_part(data.dof_motion[dof + k])
            omega += data.dof_velocity[dof + 3 + k] * angular_part(data.dof_motion[dof + 3 + k])
        return spatial(vec3(), wp.cross(velocity, omega))

    @wp.func
    def joint_force(
        joint_f: wp.array[float], joint_damping: wp.array[float], joint_qd: wp.array[float], dof: int
    ) -> real:
        """Return the applied force less the damping force at the old velocity, public dof."""
        return real(joint_f[dof]) - real(joint_damping[dof]) * real(joint_qd[dof])

    @wp.func(inline=stage_hint())
    def sum_world_forces(
        world: int,
        topology: wp.ref[Topology],
        gravity: wp.array[wp.vec3],
        groups: wp.ref[groups_struct],
        joint_damping: wp.array[float],
        gravcomp: wp.array[float],
        body_mass: wp.array[float],
        joint_qd: wp.array[float],
        body_f: wp.array[wp.spatial_vector],
        joint_f: wp.array[float],
        data: wp.ref[data_struct],
    ):
        """Compute what the bias stage writes of one world."""
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        dof_base = topology.world_dof[world]
        tree_base = topology.world_tree[world]
        fall = widen_vec3(gravity[world])
        energy = real(0.0)
        body_count = topology.template_body[template + 1] - topology.template_body[template]
        loaded = is_clear(body_f, body_base, body_count) == 0
        if gravcomp.shape[0] > 0 and not loaded:
            loaded = is_uncompensated(gravcomp, body_base, body_count) == 0
        if loaded:
            sum_loads(
                topology,
                body_f,
                gravcomp,
                body_mass,
                fall,
                first_node,
                node_count,
                node_base,
                body_base,
                data,
            )

        # From the roots outward: accelerations, and the wrench that each body alone needs.
        for local_node in range(node_count):
            index = first_node + local_node
            node = node_base + local_node
            carrier = topology.node_carrier[index]
            if carrier >= 0 and topology.node_dof_count[index] == 0:
                continue  # welded
            joint_type = topology.node_type[index]
            velocity = data.node_velocity[node]
            acceleration = vec6()
            if carrier >= 0:
                # The joint adds S qd to the parent's velocity, and S moves with the parent: dS/dt = V_p x S.
                parent = node_base + carrier
                acceleration = data.node_acceleration[parent] + cross_motion(
                    data.node_velocity[parent], velocity
                )
            else:
                energy = real(0.0)
                if joint_type == JointType.FREE:
                    # dv_origin/dt = 0 is that of a material point, w x v more than the spatial acceleration.
                    acceleration = spatial(vec3(), -wp.cross(angular_part(velocity), linear_part(velocity)))
            if joint_type == JointType.D6:
                acceleration += axes_acceleration(
                    data, dof_base + topology.node_dof[index], topology.node_dof_count[index]
                )
            if joint_type == FREE_BELOW:
                acceleration += shifted_turns(data, dof_base + topology.node_dof[index])
            data.node_acceleration[node] = acceleration
            mass = groups.carriers[node].mass
            com = data.group_com[node]
            inertia = data.group_inertia[node]
            omega = angular_part(velocity)
            com_velocity = linear_part(velocity) + wp.cross(omega, com)
            momentum = sym_times_vec(inertia, omega)
            data.node_wrench[node] = required_wrench(
                mass, com, com_velocity, inertia, momentum, velocity, acceleration
            )
            energy += real(0.5) * (mass * wp.dot(com_velocity, com_velocity) + wp.dot(momentum, omega))
            data.tree_energy[tree_base + topology.node_tree[index]] = energy  # the last body's is that of all

        # Back to the roots: what the joints carry.
        for reverse_node in range(node_count):
            local_node = node_count - 1 - reverse_node
            index = first_node + local_node
            node = node_base + local_node
            dof_count = topology.node_dof_count[index]
            carrier = topology.node_carrier[index]
            if carrier >= 0 and dof_count == 0:
                continue
            wrench = data.node_wrench[node]
            if carrier >= 0:
                parent = node_base + carrier
                data.node_wrench[parent] = data.node_wrench[parent] + wrench
            if dof_count > 0:
                composite = data.node_composite[node]
                moment = wp.cross(vec3(composite[1], composite[2], composite[3]), fall)
                load = spatial(moment, composite[0] * fall)
                if loaded:
                    load += data.node_load[node]
                dof = dof_base + topology.node_dof[index]
                public_dof = dof_base + topology.node_qd[index]
                if topology.node_type[index] == JointType.FREE:
                    # Public force (f, torque about com) to internal [torque about origin; f].
                    applied = vec6()
                    for k in range(6):
                        applied[k] = joint_force(joint_f, joint_damping, joint_qd, public_dof + k)
                    force = angular_part(applied)  # the first half: the public order is the other way round
                    torque = linear_part(applied) + wp.cross(data.node_com[node], force)
                    total = spatial(torque, force) + load - wrench
                    for k in range(6):
                        data.dof_force[dof + k] = total[k]
                        data.dof_product[dof + k] = wrench[k]
                else:
                    for k in range(dof_count):
                        applied_force = joint_force(joint_f, joint_damping, joint_qd, public_dof + k)
                        motion = data.dof_motion[dof + k]
                        product = wp.dot(motion, wrench)
                        data.dof_force[dof + k] = applied_force + wp.dot(motion, load) - product
                        data.dof_product[dof + k] = product

    return SimpleNamespace(sum_world_forces=sum_world_forces)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    sum_world_forces = bias_functions(real).sum_world_forces

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.bias.{precision_name(real)}")
    def sum_forces(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        gravity: wp.array[wp.vec3],  # [world] m/s^2
        groups: groups_struct,
        joint_damping: wp.array[float],  # [dof] N s/m or N m s
        gravcomp: wp.array[float],  # [body] share of the weight; empty: none
        body_mass: wp.array[float],  # [body] kg
        # state and control
        joint_qd: wp.array[float],  # [dof]
        body_f: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
        joint_f: wp.array[float],  # [dof] N or N m
        # workspace
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world >= 0:
            sum_world_forces(
                world,
                topology,
                gravity,
                groups,
                joint_damping,
                gravcomp,
                body_mass,
                joint_qd,
                body_f,
                joint_f,
                data,
            )

    return SimpleNamespace(sum_forces=sum_forces)


def eval_bias(model: Model, worlds: wp.array, state: State, control: Control, workspace: Workspace) -> None:
    """Compute the generalized force `workspace.dof_force` (module docstring), after `assemble_mass_matrix`.

    `workspace.node_acceleration` and `dof_product` need `eval_kinematics` only.
    """
    launch_kernel(
        _kernels(workspace.real).sum_forces,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.gravity,
            workspace.groups.data,
            model.joint_damping,
            gravity_compensation(model),
            model.body_mass,
            state.joint_qd,
            state.body_f,
            control.joint_f,
            workspace.data,
        ],
        device=model.device,
    )
