"""Mass matrix of articulations, dense, in public degrees of freedom.

Reads   joint_armature; the workspace of the mass matrix stage
Writes  H, so that joint_qd @ H @ joint_qd / 2 is the kinetic energy of an articulation

H[k, a] = S_a . (I_k S_k) as in the mass matrix stage, with the motions S of public degrees of freedom.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.articulation_query import check_mask, eval_query, output_array
from pluriverse.dynamics.mass_matrix import assemble_mass_matrix
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
    public_dof, public_motion = public.public_dof, public.public_motion
    inertia_times_motion = spatial_functions(real).inertia_times_motion

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.dynamics.articulation_mass_matrix", out_real)
    )
    def fill_mass_matrices(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        joint_articulation: wp.array[int],  # [joint]
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        dof_index: wp.array[int],  # [dof] row and column
        mask: wp.array[bool],  # [articulation]; empty: all
        # workspace
        data: data_struct,
        H: wp.array3d[out_real],  # [articulation, dof, dof]
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        first_dof = topology.template_dof[template]
        joint_base = topology.world_joint[world]
        for dof in range(topology.template_dof[template + 1] - first_dof):
            node = topology.dof_node[first_dof + dof]
            articulation = joint_articulation[joint_base + topology.node_joint[first_node + node]]
            if articulation < 0:
                continue
            if mask.shape[0] > 0:
                if not mask[articulation]:
                    continue
            flat_dof = public_dof(topology, world, dof)
            row = dof_index[flat_dof]
            motion = public_motion(topology, data, world, dof)
            wrench = inertia_times_motion(data.node_composite[joint_base + node], motion)
            other = dof
            while other >= 0:
                other_node = topology.dof_node[first_dof + other]
                other_joint = joint_base + topology.node_joint[first_node + other_node]
                if joint_articulation[other_joint] == articulation:
                    column = dof_index[public_dof(topology, world, other)]
                    value = wp.dot(wrench, public_motion(topology, data, world, other))
                    if other == dof:
                        value += real(joint_armature[flat_dof])
                    H[articulation, row, column] = out_real(value)
                    H[articulation, column, row] = out_real(value)
                other = topology.dof_parent[first_dof + other]

    return SimpleNamespace(fill_mass_matrices=fill_mass_matrices)


@uninterrupted
def eval_mass_matrix(
    model: Model,
    state: State,
    H: wp.array | None = None,
    mask: wp.array | None = None,
    *,
    J: wp.array | None = None,
    body_I_s: wp.array | None = None,
    joint_S_s: wp.array | None = None,
    worlds: wp.array | None = None,
) -> wp.array:
    """Return the mass matrix of each articulation, with armature, at the joint coordinates of a state.

    Rows and columns are the degrees of freedom in the order of the articulation's joints. For the `joint_qd`
    of an articulation, joint_qd @ H @ joint_qd / 2 is its kinetic energy [J], with that of the armature.
    Bodies of other articulations that it carries count as its load. All entries beyond the size of an
    articulation, and of articulations not asked for, are zero.

    Args:
        model: Model of the articulations.
        state: State whose `joint_q` is read (not `body_q`).
        H: Array to write to, float32 or float64, shape [articulation, most dofs, most dofs]; None for a new
            one in float32. With an array given, the call can be recorded.
        mask: Which articulations, shape [articulation]; all if None.
        J: Not needed, as the following: scratch that Newton's function works in.
        body_I_s: Not needed.
        joint_S_s: Not needed.
        worlds: Worlds concerned, int32; all if None.

    Raises:
        TypeError: If the mask is not made of truth values.
        ValueError: If an array has the wrong shape, type or device.
    """
    check_model(model, "eval_mass_matrix")
    selected = check_mask(model, mask, "eval_mass_matrix")
    query, worlds = eval_query(model, state, worlds)
    assemble_mass_matrix(model, worlds, query.workspace, 0.0)
    shape = (model.articulation_count, query.dof_count_max, query.dof_count_max)
    H = output_array(H, shape, model, "eval_mass_matrix", types=(wp.float32, wp.float64))
    H.zero_()
    launch_kernel(
        _kernels(H.dtype).fill_mass_matrices,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.structure.joint_articulation,
            model.joint_armature,
            query.dof_index,
            selected,
            query.workspace.data,
        ],
        outputs=[H],
        device=model.device,
    )
    return H
