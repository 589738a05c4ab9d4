"""Jacobian of articulations: how joint velocities move the links.

Reads   the workspace of the kinematics stage
Writes  J, so that J @ joint_qd of an articulation is body_qd of its links, as far as its own joints move them
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.articulation_query import check_mask, eval_query, output_array
from pluriverse.dynamics.public_motion import public_motion_functions
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import launch_kernel, made_once, uninterrupted
from pluriverse.math.precision import kernel_module
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, State, Topology
from pluriverse.model.arguments import check_model


@made_once
def _kernels(out_real: Any) -> SimpleNamespace:
    real = wp.float64
    data_struct = workspace_struct(real)
    public = public_motion_functions(real)
    public_dof, public_motion, last_dof = public.public_dof, public.public_motion, public.last_dof
    angular_part = spatial_functions(real).angular_part
    linear_part = spatial_functions(real).linear_part

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.dynamics.articulation_jacobian", out_real)
    )
    def fill_jacobians(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        joint_articulation: wp.array[int],  # [joint]
        joint_index: wp.array[int],  # [joint] row / 6
        dof_index: wp.array[int],  # [dof] column
        mask: wp.array[bool],  # [articulation]; empty: all
        # workspace
        data: data_struct,
        J: wp.array3d[out_real],  # [articulation, 6 link, dof]
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        first_dof = topology.template_dof[template]
        joint_base = topology.world_joint[world]
        for local_node in range(topology.template_node[template + 1] - first_node):
            joint = joint_base + topology.node_joint[first_node + local_node]
            articulation = joint_articulation[joint]
            if articulation < 0:
                continue
            if mask.shape[0] > 0:
                if not mask[articulation]:
                    continue
            row = 6 * joint_index[joint]
            com = data.node_com[joint_base + local_node]
            dof = last_dof(topology, first_node, local_node)
            while dof >= 0:
                node = topology.dof_node[first_dof + dof]
                if joint_articulation[joint_base + topology.node_joint[first_node + node]] == articulation:
                    column = dof_index[public_dof(topology, world, dof)]
                    motion = public_motion(topology, data, world, dof)
                    angular = angular_part(motion)
                    linear = linear_part(motion) + wp.cross(angular, com)
                    for c in range(3):
                        J[articulation, row + c, column] = out_real(linear[c])
                        J[articulation, row + 3 + c, column] = out_real(angular[c])
                dof = topology.dof_parent[first_dof + dof]

    return SimpleNamespace(fill_jacobians=fill_jacobians)


@uninterrupted
def eval_jacobian(
    model: Model,
    state: State,
    J: wp.array | None = None,
    mask: wp.array | None = None,
    *,
    joint_S_s: wp.array | None = None,
    worlds: wp.array | None = None,
) -> wp.array:
    """Return the Jacobian of each articulation at the joint coordinates of a state.

    Rows 6 i to 6 i + 5 are the velocity of the centre of mass and the angular velocity of link i, in world
    axes, columns the degrees of freedom: both in the order of the articulation's joints. For the `joint_qd`
    of an articulation, J @ joint_qd is the `body_qd` of its links, less what a body that carries the
    articulation adds. All entries beyond the size of an articulation, and of those not asked for, are zero.

    Args:
        model: Model of the articulations.
        state: State whose `joint_q` is read (not `body_q`).
        J: Array to write to, float32 or float64, shape [articulation, 6 * most links, most dofs]; None for a
            new one in float32. With an array given, the call can be recorded.
        mask: Which articulations, shape [articulation]; all if None.
        joint_S_s: Not needed: scratch that Newton's function works in.
        worlds: Worlds concerned, int32; all if None.

    Raises:
        TypeError: If the mask is not made of truth values.
        ValueError: If an array has the wrong shape, type or device.
    """
    check_model(model, "eval_jacobian")
    selected = check_mask(model, mask, "eval_jacobian")
    query, worlds = eval_query(model, state, worlds)
    shape = (model.articulation_count, 6 * query.link_count_max, query.dof_count_max)
    J = output_array(J, shape, model, "eval_jacobian", types=(wp.float32, wp.float64))
    J.zero_()
    launch_kernel(
        _kernels(J.dtype).fill_jacobians,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.structure.joint_articulation,
            query.joint_index,
            query.dof_index,
            selected,
            query.workspace.data,
        ],
        outputs=[J],
        device=model.device,
    )
    return J
