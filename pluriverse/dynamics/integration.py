"""Integration stage: advance the joint coordinates by one step at the new velocity.

Reads   joint_q of the old state; workspace: dof_velocity, dof_velocity_next, node_rotation, tree_spin,
        dof_kick
Writes  joint_q, joint_qd, body_q, body_qd of the new state; overwrites workspace tree_states (with node_quat
        and node_offset), dof_kick, dof_product

A free joint's coordinates move with the body origin, whatever its joint frames are; its public velocity is
that of the centre of mass, so it is taken back there with the new orientation.
"""

import enum
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.balance import (
    CALM,
    DRIFTING,
    classify_tree_motions,
    conserve_momenta,
)
from pluriverse.dynamics.forward_kinematics import eval_body_state
from pluriverse.dynamics.free_body_lanes import free_body_lanes
from pluriverse.dynamics.integration_lanes import integration_lanes
from pluriverse.dynamics.prescribed import carry_roots
from pluriverse.dynamics.rigid_groups import group_functions
from pluriverse.dynamics.spin import spin_functions
from pluriverse.dynamics.workspace import Workspace, check_workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.lanes import is_tile, lane_count
from pluriverse.math.precision import precision_name, quat_type, vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.model import Control, Model, State, Topology
from pluriverse.model.arguments import check_control, check_state
from pluriverse.model.topology import FREE_BELOW
from pluriverse.model.world_list import check_worlds
from pluriverse.types import JointType


class PositionIntegration(enum.Enum):
    """Which velocity moves the coordinates, and how rotations are advanced."""

    MIDPOINT = "midpoint"  # mean of old and new velocity, exponential map of the rotation; second order
    SEMI_IMPLICIT = "semi_implicit"  # new velocity; a swing keeps its amplitude, a spin its angular momentum
    SAP_EULER = "sap_euler"  # new velocity, first-order quaternion step; what Drake's discrete solver does


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    quat = quat_type(real)
    data_struct = workspace_struct(real)
    quat_from_rotation_vector = rotation_functions(real).quat_from_rotation_vector
    quat_normalize = rotation_functions(real).quat_normalize
    widen_vec3 = conversion_functions(real).widen_vec3
    widen_rotation = conversion_functions(real).widen_rotation
    read_vec3 = conversion_functions(real).read_vec3
    read_quat = conversion_functions(real).read_quat
    read_rotation = conversion_functions(real).read_rotation
    is_turned = group_functions(real).is_turned
    write_vec3 = conversion_functions(real).write_vec3
    write_rotation = conversion_functions(real).write_rotation
    spin = spin_functions(real)
    does_spin, spin_inertia, drift = spin.does_spin, spin.spin_inertia, spin.drift
    rotated_velocity = spin.rotated_velocity
    advance_scalars = integration_lanes(real, (CALM, DRIFTING)).advance_scalars

    advance_free_bodies = free_body_lanes(real).advance_free_bodies

    @wp.func
    def rotation_over_step(omega: vec3, dt: real, exponential: int) -> quat:
        """Return the quaternion, up to its norm, by which a step multiplies a rotation from the left."""
        if exponential != 0:
            return quat_from_rotation_vector(dt * omega)
        half = real(0.5) * dt * omega  # q + dt (omega, 0) q / 2
        return quat(half[0], half[1], half[2], real(1.0))

    @wp.func
    def dof_vec3(values: wp.array[real], first: int) -> vec3:
        """Return three consecutive entries of a workspace array."""
        return vec3(values[first], values[first + 1], values[first + 2])

    @wp.func
    def advance_joint(
        world: int,
        local_node: int,
        lanes: int,
        topology: wp.ref[Topology],
        joint_X_p: wp.array[wp.transform],
        joint_X_c: wp.array[wp.transform],
        body_com: wp.array[wp.vec3],
        joint_q: wp.array[float],
        data: wp.ref[data_struct],
        dt: real,
        old_share: real,
        drift_share: real,
        exponential: int,
        keeps_momentum: int,
        joint_q_out: wp.array[float],
        joint_qd_out: wp.array[float],
    ):
        """Advance one joint of a world; in lanes only if its coordinates are more than numbers."""
        index = topology.template_node[topology.world_template[world]] + local_node
        node_base = topology.world_joint[world]
        coord_base = topology.world_coord[world]
        dof_base = topology.world_dof[world]
        new_share = real(1.0) - old_share
        rate = real(1.0) / dt
        dof_count = topology.node_dof_count[index]
        if dof_count == 0:
            return
        joint_type = topology.node_type[index]
        coord = coord_base + topology.node_coord[index]
        dof = dof_base + topology.node_dof[index]
        public_dof = dof_base + topology.node_qd[index]
        tree = topology.node_tree[index]
        kick_share = real(0.0)
        regime = data.tree_regime[topology.world_tree[world] + tree]
        if regime == CALM or regime == DRIFTING:  # noqa: SIM109
            kick_share = drift_share
        spins = False
        if keeps_momentum != 0 and (joint_type == JointType.FREE or joint_type == JointType.BALL):
            spins = does_spin(topology, data, world, tree)
        if joint_type == JointType.FREE:
            joint = node_base + topology.node_joint[index]
            omega_next = dof_vec3(data.dof_velocity_next, dof)
            velocity_next = dof_vec3(data.dof_velocity_next, dof + 3)
            omega = old_share * dof_vec3(data.dof_velocity, dof) + new_share * omega_next
            velocity = old_share * dof_vec3(data.dof_velocity, dof + 3) + new_share * velocity_next
            omega += kick_share * dof_vec3(data.dof_kick, dof)
            velocity += kick_share * dof_vec3(data.dof_kick, dof + 3)
            rotation = data.node_quat[node_base + local_node]
            step = quat()
            if not spins:
                step = rotation_over_step(omega, dt, exponential)
            if spins:
                omega = dof_vec3(data.dof_velocity, dof)
                composite = data.node_composite[node_base + local_node]
                centre = real(1.0) / composite[0] * vec3(composite[1], composite[2], composite[3])
                # The velocity of the origin includes the rotation about the centre of mass.
                of_centre = velocity_next + wp.cross(omega_next, centre)
                of_centre += dt * wp.cross(omega, wp.cross(omega, centre))
                inertia = spin_inertia(topology, data, world, tree)
                momentum = inertia * omega_next + data.tree_spin[topology.world_tree[world] + tree]
                inverse = wp.inverse(inertia)
                step = drift(inverse, momentum, dt)
                omega_next = rotated_velocity(inverse, momentum, step)
                centre_next = wp.quat_rotate(step, centre)
                velocity_next = of_centre - wp.cross(omega_next, centre_next)
                velocity = of_centre + rate * (centre - centre_next)
            rotation_next = quat_normalize(step * rotation)

            # Joint coordinates: X_J = X_p^-1 X_WB X_c, in increments so that nothing cancels.
            anchor = widen_rotation(wp.transform_get_rotation(joint_X_p[joint]))
            arm = widen_vec3(wp.transform_get_translation(joint_X_c[joint]))
            shift = dt * velocity
            if arm[0] != real(0.0) or arm[1] != real(0.0) or arm[2] != real(0.0):
                shift += wp.quat_rotate(rotation_next, arm) - wp.quat_rotate(rotation, arm)
            joint_step = step
            if is_turned(anchor):
                shift = wp.quat_rotate_inv(anchor, shift)
                joint_axis = wp.quat_rotate_inv(anchor, vec3(step[0], step[1], step[2]))
                joint_step = quat(joint_axis[0], joint_axis[1], joint_axis[2], step[3])
            write_vec3(joint_q_out, coord, read_vec3(joint_q, coord) + shift)
            joint_rotation = joint_step * read_quat(joint_q, coord + 3)
            write_rotation(joint_q_out, coord + 3, quat_normalize(joint_rotation))

            body = topology.world_body[world] + topology.node_body[index]
            com = wp.quat_rotate(rotation_next, widen_vec3(body_com[body]))
            write_vec3(joint_qd_out, public_dof, velocity_next + wp.cross(omega_next, com))
            write_vec3(joint_qd_out, public_dof + 3, omega_next)
        elif joint_type == FREE_BELOW:
            joint = node_base + topology.node_joint[index]
            body = topology.world_body[world] + topology.node_body[index]
            velocity_next = dof_vec3(data.dof_velocity_next, dof)
            omega_next = dof_vec3(data.dof_velocity_next, dof + 3)
            velocity = old_share * dof_vec3(data.dof_velocity, dof) + new_share * velocity_next
            omega = old_share * dof_vec3(data.dof_velocity, dof + 3) + new_share * omega_next
            velocity += kick_share * dof_vec3(data.dof_kick, dof)
            omega += kick_share * dof_vec3(data.dof_kick, dof + 3)
            rotation = read_rotation(joint_q, coord + 3)
            rotation_next = quat_normalize(rotation_over_step(omega, dt, exponential) * rotation)
            # The velocity is that of the centre of mass, the position that of the child's joint frame.
            child_frame = joint_X_c[joint]
            arm = widen_vec3(body_com[body]) - widen_vec3(wp.transform_get_translation(child_frame))
            arm = wp.quat_rotate_inv(widen_rotation(wp.transform_get_rotation(child_frame)), arm)
            shift = dt * velocity + wp.quat_rotate(rotation, arm) - wp.quat_rotate(rotation_next, arm)
            write_vec3(joint_q_out, coord, read_vec3(joint_q, coord) + shift)
            write_rotation(joint_q_out, coord + 3, rotation_next)
            write_vec3(joint_qd_out, public_dof, velocity_next)
            write_vec3(joint_qd_out, public_dof + 3, omega_next)
        elif joint_type == JointType.BALL:
            omega_next = dof_vec3(data.dof_velocity_next, dof)
            omega = old_share * dof_vec3(data.dof_velocity, dof) + new_share * omega_next
            omega += kick_share * dof_vec3(data.dof_kick, dof)
            step = rotation_over_step(omega, dt, exponential)
            if spins:
                inertia = spin_inertia(topology, data, world, tree)
                momentum = inertia * omega_next + data.tree_spin[topology.world_tree[world] + tree]
                inverse = wp.inverse(inertia)
                step = drift(inverse, momentum, dt)
                omega_next = rotated_velocity(inverse, momentum, step)
            rotation_next = step * read_quat(joint_q, coord)
            write_rotation(joint_q_out, coord, quat_normalize(rotation_next))
            write_vec3(joint_qd_out, public_dof, omega_next)
        elif lanes == 1:
            for k in range(dof_count):
                speed_next = data.dof_velocity_next[dof + k]
                speed = old_share * data.dof_velocity[dof + k] + new_share * speed_next
                speed += kick_share * data.dof_kick[dof + k]
                joint_q_out[coord + k] = float(real(joint_q[coord + k]) + dt * speed)
                joint_qd_out[public_dof + k] = float(speed_next)

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.integration.{precision_name(real)}")
    def advance_joints(
        worlds: wp.array[int],  # [slot]
        stride: int,  # number of threads, see `world_thread_count`
        lanes: int,  # entries of `worlds` taken at once; with more than one, scalar joints go in lanes
        template_plain: wp.array[int],  # [template] 1: of all joints, only roots are not scalar
        # model
        topology: Topology,
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        # state in
        joint_q: wp.array[float],  # [coord]
        data: data_struct,
        dt: real,  # s
        old_share: real,  # of the old velocity in the velocity of the coordinates
        drift_share: real,  # of `dof_kick` in it, where constraints do not hold the tree
        exponential: int,  # 1: exponential map, 0: first order
        keeps_momentum: int,  # 1: bodies that spin move by their momenta
        # state out
        joint_q_out: wp.array[float],  # [coord]
        joint_qd_out: wp.array[float],  # [dof]
    ):
        thread, _ = wp.tid()
        for tile in range(thread, (worlds.shape[0] + lanes - 1) // lanes, stride):
            first = tile * lanes
            lone_done = int(0)
            if lanes > 1 and keeps_momentum != 0:
                if is_tile(worlds, first, topology.world_template):
                    if template_plain[topology.world_template[worlds[first]]] != 0:
                        lone_done = advance_free_bodies(
                            worlds,
                            first,
                            topology,
                            joint_X_p,
                            joint_X_c,
                            body_com,
                            joint_q,
                            data,
                            dt,
                            joint_q_out,
                            joint_qd_out,
                        )
            for slot in range(first, wp.min(first + lanes, worlds.shape[0])):
                world = worlds[slot]
                if world < 0:
                    continue
                template = topology.world_template[world]
                first_tree = topology.template_tree[template]
                roots_only = False
                count = topology.template_node[template + 1] - topology.template_node[template]
                if lanes > 1:
                    advance_scalars(
                        world,
                        topology,
                        joint_q,
                        data,
                        dt,
                        old_share,
                        drift_share,
                        joint_q_out,
                        joint_qd_out,
                    )
                    roots_only = template_plain[template] != 0
                if roots_only:
                    count = topology.template_tree[template + 1] - first_tree
                for k in range(count):
                    local_node = int(k)
                    if roots_only:
                        tree = first_tree + k
                        local_node = topology.tree_node[tree]
                        if lone_done != 0 and topology.tree_dof_end[tree] - topology.tree_dof[tree] == 6:
                            if (
                                topology.node_type[topology.template_node[template] + local_node]
                                == JointType.FREE
                            ):
                                continue
                    advance_joint(
                        world,
                        local_node,
                        lanes,
                        topology,
                        joint_X_p,
                        joint_X_c,
                        body_com,
                        joint_q,
                        data,
                        dt,
                        old_share,
                        drift_share,
                        exponential,
                        keeps_momentum,
                        joint_q_out,
                        joint_qd_out,
                    )

    return SimpleNamespace(advance_joints=advance_joints)


def integrate(
    model: Model,
    worlds: wp.array,
    state_in: State,
    state_out: State,
    workspace: Workspace,
    dt: float,
    *,
    mode: PositionIntegration = PositionIntegration.MIDPOINT,
    control: Control | None = None,
    partly: bool = False,
) -> None:
    """Advance the coordinates by `dt` [s] and refresh the body poses and velocities of `state_out`.

    Needs `eval_kinematics(state_in)`, with `SEMI_IMPLICIT` `eval_free_motion(..., mode=mode)` too, and
    `workspace.dof_velocity_next`. `state_out` may be `state_in`, unless
    the model has kinematic bodies, which follow the targets of `control` (those of the model if None). With
    `partly`, only bodies that the next step reads are written.
    """
    worlds = check_worlds(model, worlds, what="integrate")
    check_state(model, state_in, "integrate: state_in")
    check_state(model, state_out, "integrate: state_out")
    check_workspace(model, workspace, "integrate")
    if control is not None:
        check_control(model, control, "integrate: control")
    old_share = 0.5 if mode is PositionIntegration.MIDPOINT else 0.0
    exponential = mode is not PositionIntegration.SAP_EULER
    if mode is PositionIntegration.SEMI_IMPLICIT:
        classify_tree_motions(model, worlds, workspace, dt)
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(workspace.real).advance_joints,
        dim=threads,
        inputs=[
            worlds,
            threads,
            lane_count(model.device),
            workspace.tree_states.template_plain,
            model.topology,
            model.joint_X_p,
            model.joint_X_c,
            model.body_com,
            state_in.joint_q,
            workspace.data,
            workspace.real(dt),
            workspace.real(old_share),
            workspace.real(0.5 if mode is PositionIntegration.SEMI_IMPLICIT else 0.0),
            int(exponential),
            int(mode is PositionIntegration.SEMI_IMPLICIT),
        ],
        outputs=[state_out.joint_q, state_out.joint_qd],
        device=model.device,
    )
    if model.has_kinematic_bodies:
        targets = model if control is None else control
        carry_roots(model, worlds, state_in, state_out, targets, workspace, dt)
    if mode is not PositionIntegration.SEMI_IMPLICIT:
        eval_body_state(model, worlds, state_out, workspace, partly=partly)
        return
    eval_body_state(model, worlds, state_out, workspace, unsettled=workspace.world_due, partly=partly)
    conserve_momenta(model, worlds, state_out, workspace, dt)
    eval_body_state(model, worlds, state_out, workspace, due=workspace.world_due, partly=partly)
