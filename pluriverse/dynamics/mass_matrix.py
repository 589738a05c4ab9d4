"""Mass matrix stage: A = M(q) + armature + dt * damping in packed rows, by composite rigid bodies.

Reads   joint_armature, joint_damping; workspace: groups, node_com, group_com, group_inertia, dof_motion
Writes  workspace: node_composite, mass_row

M[k, a] = S_a . (I_k S_k) for every dof a between dof k and the root, with the inertia I_k of all that dof k
carries ([Featherstone2008] section 6.2). All spatial vectors of a tree are about one point, so nothing is
transformed on the way: composite inertias are plain sums.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.rigid_groups import is_welded, rigid_groups_struct
from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.dense import packed_rows
from pluriverse.math.precision import precision_name, vec6_type
from pluriverse.math.spatial import spatial_functions, vec10_type
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.model import Model, Topology
from pluriverse.types import JointType


@made_once
def mass_functions(real: Any) -> SimpleNamespace:
    """Return `assemble_world_rows`, the stage for one world, for scalars of type `real`."""
    vec6 = vec6_type(real)
    vec10 = vec10_type(real)
    mat33 = wp.types.matrix(shape=(3, 3), dtype=real)
    vec3 = wp.types.vector(length=3, dtype=real)
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    functions = spatial_functions(real)
    inertia_about_reference = functions.inertia_about_reference
    inertia_times_motion = functions.inertia_times_motion
    row_project = packed_rows(real).row_project

    @wp.func
    def write_free_rows(
        data: data_struct,
        first_entry: int,
        composite: vec10,
        com: vec3,
        public_dof: int,
        joint_armature: wp.array[float],
        joint_damping: wp.array[float],
        dt: real,
    ):
        """Write the six rows of a free root, whose motion subspace is the identity.

        Armature and damping belong to the public velocity (v_com, omega), v_com = v_origin + omega x com,
        so they enter as T^T diag T with the map T from the internal velocity to the public one.
        """
        extra = vec6()
        for k in range(6):
            extra[k] = real(joint_armature[public_dof + k]) + dt * real(joint_damping[public_dof + k])
        coupling = mat33()
        angular = mat33()
        if extra[0] != real(0.0) or extra[1] != real(0.0) or extra[2] != real(0.0):
            arm = wp.skew(com)  # omega x com = -arm omega
            linear = wp.diag(vec3(extra[0], extra[1], extra[2]))
            coupling = arm * linear
            angular = wp.transpose(arm) * linear * arm
        h = wp.skew(vec3(composite[1], composite[2], composite[3]))
        inertia = mat33(
            composite[4],
            composite[5],
            composite[6],
            composite[5],
            composite[7],
            composite[8],
            composite[6],
            composite[8],
            composite[9],
        )
        for i in range(3):
            for j in range(i + 1):
                value = inertia[i, j] + angular[i, j]
                if i == j:
                    value += extra[3 + i]
                data.mass_row[first_entry + (i * (i + 1)) // 2 + j] = value
        for i in range(3):
            entry = first_entry + ((i + 3) * (i + 4)) // 2
            for j in range(3):
                data.mass_row[entry + j] = h[j, i] + coupling[j, i]
            for j in range(i + 1):
                value = real(0.0)
                if i == j:
                    value = composite[0] + extra[i]
                data.mass_row[entry + 3 + j] = value

    @wp.func(inline=stage_hint())
    def assemble_world_rows(
        world: int,
        topology: wp.ref[Topology],
        groups: wp.ref[groups_struct],
        joint_armature: wp.array[float],
        joint_damping: wp.array[float],
        dt: real,
        data: wp.ref[data_struct],
    ):
        """Compute what the mass matrix stage writes of one world."""
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        first_dof = topology.template_dof[template]
        first_tree = topology.template_tree[template]
        node_base = topology.world_joint[world]
        dof_base = topology.world_dof[world]
        row_base = topology.world_row[world]

        for local_node in range(node_count):
            if is_welded(topology, first_node + local_node):
                continue
            node = node_base + local_node
            data.node_composite[node] = inertia_about_reference(
                groups.carriers[node].mass, data.group_com[node], data.group_inertia[node]
            )

        for reverse_node in range(node_count):
            local_node = node_count - 1 - reverse_node
            index = first_node + local_node
            node = node_base + local_node
            dof_count = topology.node_dof_count[index]
            if dof_count == 0:
                continue
            composite = data.node_composite[node]
            carrier = topology.node_carrier[index]
            if carrier >= 0:
                data.node_composite[node_base + carrier] = (
                    data.node_composite[node_base + carrier] + composite
                )
            node_dof = topology.node_dof[index]
            public_dof = dof_base + topology.node_qd[index]
            if topology.node_type[index] == JointType.FREE:
                write_free_rows(
                    data,
                    row_base + topology.dof_row[first_dof + node_dof],
                    composite,
                    data.node_com[node],
                    public_dof,
                    joint_armature,
                    joint_damping,
                    dt,
                )
                continue
            # A free root's motion subspace is the identity: the wrench itself is its part of the row.
            tree = first_tree + topology.node_tree[index]
            root_dof = topology.tree_dof[tree]
            stop = int(0)
            free_root = topology.node_type[first_node + topology.tree_node[tree]] == JointType.FREE
            if free_root:
                stop = root_dof + 6
            for k in range(dof_count):
                dof = node_dof + k
                wrench = inertia_times_motion(composite, data.dof_motion[dof_base + dof])
                first_entry = row_base + topology.dof_row[first_dof + dof]
                depth = topology.dof_depth[first_dof + dof]
                row_project(
                    wrench,
                    data.dof_motion,
                    dof_base,
                    topology.dof_parent,
                    first_dof,
                    dof,
                    stop,
                    free_root,
                    data.mass_row,
                    first_entry,
                    depth,
                )
                own = data.mass_row[first_entry + depth] + real(joint_armature[public_dof + k])
                data.mass_row[first_entry + depth] = own + dt * real(joint_damping[public_dof + k])

    return SimpleNamespace(assemble_world_rows=assemble_world_rows)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    assemble_world_rows = mass_functions(real).assemble_world_rows

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.mass_matrix.{precision_name(real)}")
    def assemble_mass_rows(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        groups: groups_struct,
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        joint_damping: wp.array[float],  # [dof] N s/m or N m s
        dt: real,  # s
        # workspace
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world >= 0:
            assemble_world_rows(world, topology, groups, joint_armature, joint_damping, dt, data)

    return SimpleNamespace(assemble_mass_rows=assemble_mass_rows)


def assemble_mass_matrix(model: Model, worlds: wp.array, workspace: Workspace, dt: float) -> None:
    """Compute `workspace.mass_row` for a step of `dt` [s], after `eval_kinematics` (module docstring)."""
    launch_kernel(
        _kernels(workspace.real).assemble_mass_rows,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            workspace.groups.data,
            model.joint_armature,
            model.joint_damping,
            workspace.real(dt),
            workspace.data,
        ],
        device=model.device,
    )
