"""Integration stage: advance the joint coordinates by one step at the new velocity.

Reads   joint_q of the old state; workspace: dof_velocity, dof_velocity_next, node_rotation
Writes  joint_q, joint_qd, body_q, body_qd of the new state; overwrites workspace node_quat, node_offset

A free joint's coordinates move with the body origin, whatever its joint frames are; its public velocity is that of the
centre of mass, so it is taken back there with the new orientation.
"""

import enum
import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.forward_kinematics import eval_body_state
from pluriverse.dynamics.kinematics import BALL, FREE
from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.math.precision import precision_name, quat_type, vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.model import Model, State, Topology


class PositionIntegration(enum.Enum):
    """Which velocity moves the coordinates, and how rotations are advanced."""

    MIDPOINT = "midpoint"  # mean of old and new velocity, exponential map of the rotation; second order
    SAP_EULER = "sap_euler"  # new velocity, first-order quaternion step; what Drake's discrete solver does


@functools.cache
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    quat = quat_type(real)
    data_struct = workspace_struct(real)
    quat_from_rotation_vector = rotation_functions(real).quat_from_rotation_vector
    unit_quat = rotation_functions(real).unit_quat

    @wp.func
    def turn(rotation: quat, omega: vec3, dt: real, exponential: int) -> quat:
        """Return `rotation` after `dt` [s] at `omega` [rad/s], both in the frame that `rotation` maps to."""
        if exponential != 0:
            return wp.normalize(quat_from_rotation_vector(dt * omega) * rotation)
        half = real(0.5) * dt * omega
        return wp.normalize(rotation + quat(half[0], half[1], half[2], real(0.0)) * rotation)

    @wp.func
    def read_vec3(values: wp.array(dtype=real), first: int) -> vec3:
        """Return three consecutive entries."""
        return vec3(values[first], values[first + 1], values[first + 2])

    @wp.func
    def read_quat(joint_q: wp.array(dtype=float), first: int) -> quat:
        """Return the normalized quaternion in four consecutive coordinates."""
        return wp.normalize(
            quat(
                real(joint_q[first]),
                real(joint_q[first + 1]),
                real(joint_q[first + 2]),
                real(joint_q[first + 3]),
            )
        )

    @wp.func
    def write_vec3(values: wp.array(dtype=float), first: int, value: vec3):
        """Store three consecutive entries in single precision."""
        for k in range(3):
            values[first + k] = float(value[k])

    @wp.func
    def write_quat(joint_q: wp.array(dtype=float), first: int, value: quat):
        """Store four consecutive coordinates in single precision."""
        for k in range(4):
            joint_q[first + k] = float(value[k])

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.integration.{precision_name(real)}")
    def advance_joints(
        worlds: wp.array(dtype=int),  # [slot]
        # model
        topology: Topology,
        joint_X_p: wp.array(dtype=wp.transform),  # [joint] m, parent body frame
        joint_X_c: wp.array(dtype=wp.transform),  # [joint] m, child body frame
        body_com: wp.array(dtype=wp.vec3),  # [body] m, body frame
        # state in
        joint_q: wp.array(dtype=float),  # [coord]
        data: data_struct,
        dt: real,  # s
        old_share: real,  # of the old velocity in the velocity of the coordinates
        exponential: int,  # 1: exponential map, 0: first order
        # state out
        joint_q_out: wp.array(dtype=float),  # [coord]
        joint_qd_out: wp.array(dtype=float),  # [dof]
    ):
        world = worlds[wp.tid()]
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_base = topology.world_joint[world]
        coord_base = topology.world_coord[world]
        dof_base = topology.world_dof[world]
        new_share = real(1.0) - old_share
        for local_node in range(topology.template_node[template + 1] - first_node):
            index = first_node + local_node
            dof_count = topology.node_dof_count[index]
            if dof_count == 0:
                continue
            joint_type = topology.node_type[index]
            coord = coord_base + topology.node_coord[index]
            dof = dof_base + topology.node_dof[index]
            public_dof = dof_base + topology.node_qd[index]
            if joint_type == FREE:
                joint = node_base + topology.node_joint[index]
                omega_next = read_vec3(data.dof_velocity_next, dof)
                velocity_next = read_vec3(data.dof_velocity_next, dof + 3)
                omega = old_share * read_vec3(data.dof_velocity, dof) + new_share * omega_next
                velocity = old_share * read_vec3(data.dof_velocity, dof + 3) + new_share * velocity_next
                rotation = data.node_quat[node_base + local_node]
                rotation_next = turn(rotation, omega, dt, exponential)

                # Joint coordinates: X_J = X_p^-1 X_WB X_c, in increments so that nothing cancels.
                parent_r = wp.transform_get_rotation(joint_X_p[joint])
                child_p = wp.transform_get_translation(joint_X_c[joint])
                anchor = unit_quat(parent_r)
                arm = vec3(real(child_p[0]), real(child_p[1]), real(child_p[2]))
                shift = dt * velocity + wp.quat_rotate(rotation_next, arm) - wp.quat_rotate(rotation, arm)
                position = vec3(real(joint_q[coord]), real(joint_q[coord + 1]), real(joint_q[coord + 2]))
                write_vec3(joint_q_out, coord, position + wp.quat_rotate_inv(anchor, shift))
                joint_omega = wp.quat_rotate_inv(anchor, omega)
                write_quat(
                    joint_q_out, coord + 3, turn(read_quat(joint_q, coord + 3), joint_omega, dt, exponential)
                )

                local_com = body_com[topology.world_body[world] + topology.node_body[index]]
                com = wp.quat_rotate(
                    rotation_next, vec3(real(local_com[0]), real(local_com[1]), real(local_com[2]))
                )
                write_vec3(joint_qd_out, public_dof, velocity_next + wp.cross(omega_next, com))
                write_vec3(joint_qd_out, public_dof + 3, omega_next)
            elif joint_type == BALL:
                omega_next = read_vec3(data.dof_velocity_next, dof)
                omega = old_share * read_vec3(data.dof_velocity, dof) + new_share * omega_next
                write_quat(joint_q_out, coord, turn(read_quat(joint_q, coord), omega, dt, exponential))
                write_vec3(joint_qd_out, public_dof, omega_next)
            else:
                for k in range(dof_count):
                    speed_next = data.dof_velocity_next[dof + k]
                    rate = old_share * data.dof_velocity[dof + k] + new_share * speed_next
                    joint_q_out[coord + k] = float(real(joint_q[coord + k]) + dt * rate)
                    joint_qd_out[public_dof + k] = float(speed_next)

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
) -> None:
    """Advance the coordinates by `dt` [s] and refresh the body poses and velocities of `state_out`.

    Needs `eval_kinematics(state_in)` and `workspace.dof_velocity_next`. `state_out` may be `state_in`.
    """
    midpoint = mode is PositionIntegration.MIDPOINT
    wp.launch(
        _kernels(workspace.real).advance_joints,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.joint_X_p,
            model.joint_X_c,
            model.body_com,
            state_in.joint_q,
            workspace.data,
            workspace.real(dt),
            workspace.real(0.5 if midpoint else 0.0),
            int(midpoint),
        ],
        outputs=[state_out.joint_q, state_out.joint_qd],
        device=model.device,
    )
    eval_body_state(model, worlds, state_out, workspace)
