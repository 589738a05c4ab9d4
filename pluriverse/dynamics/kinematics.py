"""Kinematics stage: pose, velocity and inertia of every body in world axes, and how each dof moves it.

Reads   joint_q, joint_qd; joint axes, body_com, rigid groups; workspace: tree_states
Writes  workspace: tree_ref, node_quat, node_rotation, node_offset, node_com, group_com, group_inertia,
        node_velocity, dof_motion, dof_velocity; tree_states

The pose of a body is X_WB = X_WP X_p X_J(q) X_c^-1 (parent body, parent frame, joint, child frame). Positions
are taken relative to the origin of the tree's root body, so that a robot far from the world's origin loses no
digits. Poses and velocities are kept from the end of the last step, unless someone has written to the joint
state since (`tree_states.py`). The rest follows body by body.

Bodies fixed to others (`rigid_groups.py`) have orientation, origin, centre of mass and velocity only.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.forward_kinematics import eval_tree_states
from pluriverse.dynamics.joint_frames import joint_functions
from pluriverse.dynamics.rigid_groups import group_functions, rigid_groups_struct
from pluriverse.dynamics.tree_states import tree_states_struct
from pluriverse.dynamics.workspace import Workspace, check_workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.model import Model, State, Topology
from pluriverse.model.arguments import check_state
from pluriverse.model.topology import FREE_BELOW
from pluriverse.model.world_list import check_worlds
from pluriverse.types import JointType


@made_once
def kinematics_functions(real: Any) -> SimpleNamespace:
    """Return `compute_world_kinematics`, the stage for one world, for scalars of type `real`."""
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    mat33 = mat33_type(real)
    quat = quat_type(real)
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    states_struct = tree_states_struct(real)
    move_along_axis = joint_functions(real).move_along_axis
    child_from_joint_frame = joint_functions(real).child_from_joint_frame
    chain_rotation = group_functions(real).chain_rotation
    matrix_from_quat = rotation_functions(real).matrix_from_quat
    rotate_sym = rotation_functions(real).rotate_sym
    symmetric_matrix = spatial_functions(real).symmetric_matrix
    spatial = spatial_functions(real).spatial
    angular_part = spatial_functions(real).angular_part
    widen_vec3 = conversion_functions(real).widen_vec3

    @wp.func
    def write_turns(
        joint_qd: wp.array[float], public_dof: int, dof: int, about: vec3, axes: mat33, data: data_struct
    ):
        """Write the motion subspaces of turns about three axes, the columns of a matrix, through a point."""
        for k in range(3):
            axis = vec3(axes[0, k], axes[1, k], axes[2, k])
            data.dof_motion[dof + k] = spatial(axis, wp.cross(about, axis))
            data.dof_velocity[dof + k] = real(joint_qd[public_dof + k])

    @wp.func(inline=stage_hint())
    def compute_world_kinematics(
        world: int,
        topology: wp.ref[Topology],
        joint_axis: wp.array[wp.vec3],
        body_com: wp.array[wp.vec3],
        groups: wp.ref[groups_struct],
        joint_q: wp.array[float],
        joint_qd: wp.array[float],
        states: wp.ref[states_struct],
        data: wp.ref[data_struct],
    ):
        """Compute what the kinematics stage writes of one world."""
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        coord_base = topology.world_coord[world]
        dof_base = topology.world_dof[world]
        for local_node in range(topology.template_node[template + 1] - first_node):
            index = first_node + local_node
            node = node_base + local_node
            carrier = topology.node_carrier[index]
            dof_count = topology.node_dof_count[index]
            if carrier >= 0 and dof_count == 0:  # welded
                weld = groups.welds[node]
                rotation = data.node_rotation[node_base + carrier]
                offset = data.node_offset[node_base + carrier]
                data.node_rotation[node] = rotation * matrix_from_quat(weld.rotation)
                data.node_offset[node] = offset + rotation * weld.position
                data.node_com[node] = offset + rotation * weld.com
                data.node_velocity[node] = states.node_velocity[node_base + carrier]
                continue
            if carrier < 0:
                tree = topology.world_tree[world] + topology.node_tree[index]
                data.tree_ref[tree] = states.tree_ref[tree]
            frame = groups.carriers[node]
            joint_type = topology.node_type[index]
            rotation = matrix_from_quat(states.node_quat[node])
            offset = states.node_offset[node]
            com = offset + rotation * widen_vec3(body_com[body_base + topology.node_body[index]])
            public_dof = dof_base + topology.node_qd[index]
            dof = dof_base + topology.node_dof[index]
            # The origin of the joint's frame on the body: a point that turns of the joint do not move.
            about = offset + rotation * frame.child_position

            # Motion subspace about the reference point: a turn about an axis w through r is [w; r x w].
            if joint_type == JointType.REVOLUTE:
                axis = rotation * frame.axis  # the turn leaves its axis where it is
                data.dof_motion[dof] = spatial(axis, wp.cross(about, axis))
                data.dof_velocity[dof] = real(joint_qd[public_dof])
            elif joint_type == JointType.PRISMATIC:
                data.dof_motion[dof] = spatial(vec3(), rotation * frame.axis)
                data.dof_velocity[dof] = real(joint_qd[public_dof])
            elif joint_type == JointType.FREE:
                # Public (v_com, omega) to internal [omega, v_origin]; the reference point is the origin.
                velocity = states.node_velocity[node]
                for k in range(6):
                    unit = vec6()
                    unit[k] = real(1.0)
                    data.dof_motion[dof + k] = unit
                    data.dof_velocity[dof + k] = velocity[k]
            elif dof_count > 0:
                coord = coord_base + topology.node_coord[index]
                parent_quat = quat(real(0.0), real(0.0), real(0.0), real(1.0))
                if carrier >= 0:
                    parent_quat = states.node_quat[node_base + carrier]
                frame_quat = chain_rotation(parent_quat, frame.rotation)
                if joint_type == JointType.BALL:
                    write_turns(joint_qd, public_dof, dof, about, matrix_from_quat(frame_quat), data)
                elif joint_type == FREE_BELOW:
                    # Shifts along the axes of the parent frame, and turns about the centre of mass.
                    axes = matrix_from_quat(frame_quat)
                    for k in range(3):
                        axis_k = vec3(axes[0, k], axes[1, k], axes[2, k])
                        data.dof_motion[dof + k] = spatial(vec3(), axis_k)
                        data.dof_velocity[dof + k] = real(joint_qd[public_dof + k])
                    write_turns(joint_qd, public_dof + 3, dof + 3, com, axes, data)
                else:  # D6
                    shift = vec3()
                    linear_count = topology.node_linear_count[index]
                    for k in range(dof_count):
                        frame_quat, shift, motion = move_along_axis(
                            k < linear_count,
                            joint_axis[public_dof + k],
                            real(joint_q[coord + k]),
                            frame_quat,
                            shift,
                        )
                        data.dof_motion[dof + k] = motion  # about the parent joint frame until further below
                        data.dof_velocity[dof + k] = real(joint_qd[public_dof + k])
                    frame_quat, shift = child_from_joint_frame(
                        frame_quat, shift, frame.child_rotation, frame.child_position
                    )
                    for k in range(dof_count):
                        about_frame = data.dof_motion[dof + k]
                        moment = wp.cross(offset - shift, angular_part(about_frame))
                        data.dof_motion[dof + k] = about_frame + spatial(vec3(), moment)

            data.node_rotation[node] = rotation
            data.node_com[node] = com
            data.group_com[node] = offset + rotation * frame.com
            data.group_inertia[node] = rotate_sym(rotation, symmetric_matrix(frame.inertia))

    return SimpleNamespace(compute_world_kinematics=compute_world_kinematics)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    states_struct = tree_states_struct(real)
    compute_world_kinematics = kinematics_functions(real).compute_world_kinematics

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.kinematics.{precision_name(real)}")
    def compute_tree_kinematics(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        groups: groups_struct,
        # state
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        # workspace
        states: states_struct,
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world >= 0:
            compute_world_kinematics(
                world, topology, joint_axis, body_com, groups, joint_q, joint_qd, states, data
            )

    return SimpleNamespace(compute_tree_kinematics=compute_tree_kinematics)


def eval_kinematics(model: Model, worlds: wp.array, state: State, workspace: Workspace) -> None:
    """Compute poses, velocities, world inertias and motion subspaces of `state` (module docstring)."""
    worlds = check_worlds(model, worlds, what="eval_kinematics")
    check_state(model, state, "eval_kinematics: state")
    check_workspace(model, workspace, "eval_kinematics")
    workspace.groups.update(worlds)
    eval_tree_states(model, worlds, state, workspace)
    launch_kernel(
        _kernels(workspace.real).compute_tree_kinematics,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.joint_axis,
            model.body_com,
            workspace.groups.data,
            state.joint_q,
            state.joint_qd,
            workspace.tree_states,
            workspace.data,
        ],
        device=model.device,
    )
