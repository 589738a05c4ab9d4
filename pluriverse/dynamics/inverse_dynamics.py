"""Inverse dynamics: the joint forces that give desired joint accelerations.

Reads   joint_qdd; joint_q, joint_qd, body_f; the workspace of kinematics, bias and mass matrix stage
Writes  joint_f; overwrites workspace dof_velocity_free, dof_velocity_next

    joint_f = (M + armature) dv/dt + c(q, v) + D v - sum_b J_b^T (body_f + gravity)
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.articulation_query import eval_query, output_array
from pluriverse.dynamics.bias import eval_bias
from pluriverse.dynamics.mass_matrix import assemble_mass_matrix
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import launch_kernel, made_once, uninterrupted
from pluriverse.math.precision import kernel_module, vec3_type
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, State, Topology
from pluriverse.model.arguments import check_model
from pluriverse.types import JointType


@made_once
def _kernels(out_real: Any) -> SimpleNamespace:
    real = wp.float64
    vec3 = vec3_type(real)
    data_struct = workspace_struct(real)
    angular_part = spatial_functions(real).angular_part

    @wp.func
    def read_vector(values: wp.array[out_real], first: int) -> vec3:
        """Return three consecutive entries."""
        return vec3(real(values[first]), real(values[first + 1]), real(values[first + 2]))

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.dynamics.inverse_dynamics", out_real))
    def require_forces(
        worlds: wp.array[int],  # [slot]
        topology: Topology,
        joint_qdd: wp.array[out_real],  # [dof] m/s^2 or rad/s^2, public
        data: data_struct,
        joint_f: wp.array[out_real],  # [dof] N or N m, public
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        first_dof = topology.template_dof[template]
        node_count = topology.template_node[template + 1] - first_node
        dof_count = topology.template_dof[template + 1] - first_dof
        node_base = topology.world_joint[world]
        dof_base = topology.world_dof[world]
        row_base = topology.world_row[world]

        # Public accelerations to internal ones.
        for local_node in range(node_count):
            index = first_node + local_node
            dof = dof_base + topology.node_dof[index]
            public_dof = dof_base + topology.node_qd[index]
            if topology.node_type[index] == JointType.FREE:
                com = data.node_com[node_base + local_node]
                omega = angular_part(data.node_velocity[node_base + local_node])
                alpha = read_vector(joint_qdd, public_dof + 3)
                # dv_origin/dt = dv_com/dt - alpha x com - omega x (omega x com)
                origin = read_vector(joint_qdd, public_dof) - wp.cross(alpha, com)
                origin -= wp.cross(omega, wp.cross(omega, com))
                for k in range(3):
                    data.dof_velocity_free[dof + k] = alpha[k]
                    data.dof_velocity_free[dof + 3 + k] = origin[k]
            else:
                for k in range(topology.node_dof_count[index]):
                    data.dof_velocity_free[dof + k] = real(joint_qdd[public_dof + k])

        # A dv/dt less the known forces, both triangles of the packed rows at once.
        for dof in range(dof_count):
            data.dof_velocity_next[dof_base + dof] = -data.dof_force[dof_base + dof]
        for dof in range(dof_count):
            entry = row_base + topology.dof_row[first_dof + dof] + topology.dof_depth[first_dof + dof]
            acceleration = data.dof_velocity_free[dof_base + dof]
            total = data.mass_row[entry] * acceleration
            ancestor = topology.dof_parent[first_dof + dof]
            while ancestor >= 0:
                entry -= 1
                coupling = data.mass_row[entry]
                total += coupling * data.dof_velocity_free[dof_base + ancestor]
                before = data.dof_velocity_next[dof_base + ancestor]
                data.dof_velocity_next[dof_base + ancestor] = before + coupling * acceleration
                ancestor = topology.dof_parent[first_dof + ancestor]
            data.dof_velocity_next[dof_base + dof] = data.dof_velocity_next[dof_base + dof] + total

        # Internal forces to public ones.
        for local_node in range(node_count):
            index = first_node + local_node
            dof = dof_base + topology.node_dof[index]
            public_dof = dof_base + topology.node_qd[index]
            if topology.node_type[index] == JointType.FREE:
                torque = vec3()
                force = vec3()
                for k in range(3):
                    torque[k] = data.dof_velocity_next[dof + k]
                    force[k] = data.dof_velocity_next[dof + 3 + k]
                torque -= wp.cross(data.node_com[node_base + local_node], force)
                for k in range(3):
                    joint_f[public_dof + k] = out_real(force[k])
                    joint_f[public_dof + 3 + k] = out_real(torque[k])
            else:
                for k in range(topology.node_dof_count[index]):
                    joint_f[public_dof + k] = out_real(data.dof_velocity_next[dof + k])

    return SimpleNamespace(require_forces=require_forces)


@uninterrupted
def eval_inverse_dynamics(
    model: Model,
    state: State,
    joint_qdd: wp.array,
    joint_f: wp.array | None = None,
    *,
    worlds: wp.array | None = None,
) -> wp.array:
    """Return the generalized forces that give desired accelerations, without contacts, drives and limits.

    `Control.joint_f` with these values makes the joints accelerate so, against gravity, the state's `body_f`,
    velocity products, armature and joint damping. With zero accelerations they hold the bodies up.

    Args:
        model: Model of the joints.
        state: State whose `joint_q`, `joint_qd` and `body_f` are read.
        joint_qdd: Rates of change of `joint_qd` [m/s² or rad/s²], float32 or float64, shape [dof].
        joint_f: Array to write to, of the type of `joint_qdd`, shape [dof]; None for a new one. With one
            given, the call can be recorded.
        worlds: Worlds concerned, int32; all if None. Others keep their forces.

    Raises:
        TypeError: If `model` is no Model.
        ValueError: If an array has the wrong shape, type or device.
    """
    check_model(model, "eval_inverse_dynamics")
    shape, what = (model.joint_dof_count,), "eval_inverse_dynamics"
    output_array(joint_qdd, shape, model, f"{what}: joint_qdd", types=(wp.float32, wp.float64))
    joint_f = output_array(joint_f, shape, model, what, types=(joint_qdd.dtype,))
    query, worlds = eval_query(model, state, worlds)
    assemble_mass_matrix(model, worlds, query.workspace, 0.0)
    eval_bias(model, worlds, state, query.no_control, query.workspace)
    launch_kernel(
        _kernels(joint_qdd.dtype).require_forces,
        dim=worlds.size,
        inputs=[worlds, model.topology, joint_qdd, query.workspace.data],
        outputs=[joint_f],
        device=model.device,
    )
    return joint_f
