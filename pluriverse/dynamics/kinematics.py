"""Kinematics stage: pose, velocity and inertia of every body in world axes, and how each dof moves it.

Reads   joint_q, joint_qd; joint axes, body_com, rigid groups
Writes  workspace: tree_ref, node_quat, node_rotation, node_offset, node_com, group_com, group_inertia,
        node_velocity, dof_motion, dof_velocity

The pose of a body is X_WB = X_WP X_p X_J(q) X_c^-1 (parent body, parent frame, joint, child frame). Positions
are taken relative to the origin of the tree's root body, so that a robot far from the world's origin loses no
digits.

Bodies fixed to others (`rigid_groups.py`) have orientation, origin, centre of mass and velocity only.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.rigid_groups import group_functions, rigid_groups_struct
from pluriverse.dynamics.workspace import Workspace, check_workspace, workspace_struct
from pluriverse.launch import launch_kernel
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, State, Topology
from pluriverse.model.arguments import check_state
from pluriverse.model.topology import FREE_BELOW
from pluriverse.model.world_list import check_worlds
from pluriverse.types import JointType


@functools.cache
def joint_functions(real: Any) -> SimpleNamespace:
    """Return the functions on one joint for scalars of type `real`.

    The members are the `wp.func`s `child_pose`, `move_along_axis` and `child_from_joint_frame`.
    """
    vec3 = vec3_type(real)
    quat = quat_type(real)
    quat_from_axis_angle = rotation_functions(real).quat_from_axis_angle
    quat_renormalize = rotation_functions(real).quat_renormalize
    chain_rotation, is_turned = group_functions(real).chain_rotation, group_functions(real).is_turned
    read_vec3 = conversion_functions(real).read_vec3
    read_rotation = conversion_functions(real).read_rotation
    widen_axis = conversion_functions(real).widen_axis
    spatial = spatial_functions(real).spatial

    @wp.func
    def child_from_joint_frame(frame: quat, shift: vec3, child_rotation: quat, child_position: vec3):
        """Return what `child_pose` does, from where the joint takes the child's joint frame."""
        rotation = quat_renormalize(chain_rotation(frame, child_rotation))
        if child_position[0] != real(0.0) or child_position[1] != real(0.0) or child_position[2] != real(0.0):
            shift -= wp.quat_rotate(rotation, child_position)
        return rotation, shift

    @wp.func
    def child_pose(
        joint_type: int,
        joint_q: wp.array[float],  # [coord]
        coord: int,
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        public_dof: int,
        parent_rotation: quat,  # of the parent's carrier, to world; identity for the world
        frame: quat,  # joint frame in the parent's carrier
        child_rotation: quat,  # inverse of the joint frame in the child body
        child_position: vec3,  # m, joint frame in the child body
    ):
        """Place the child of any joint but a D6.

        Returns:
            Orientation of the child; its origin less that of the parent joint frame [m], world axes; the axis
            of a revolute or prismatic joint, world axes; the orientation of the parent joint frame (of other
            joints than a revolute one).
        """
        anchor = parent_rotation
        rotation = parent_rotation
        shift = vec3()
        axis = vec3()
        if joint_type == JointType.REVOLUTE:
            # From one body to the next there is one product: all else does not wait for the parent.
            own_axis = widen_axis(joint_axis[public_dof])
            joint_rotation = quat_from_axis_angle(own_axis, real(joint_q[coord]))
            if is_turned(frame):
                joint_rotation = frame * joint_rotation
            rotation = parent_rotation * joint_rotation
            axis = wp.quat_rotate(rotation, own_axis)  # the turn leaves its axis where it is
        else:
            anchor = chain_rotation(parent_rotation, frame)
            rotation = anchor
            if joint_type == JointType.PRISMATIC:
                axis = wp.quat_rotate(anchor, widen_axis(joint_axis[public_dof]))
                shift = real(joint_q[coord]) * axis
            elif joint_type == JointType.BALL:
                rotation = anchor * read_rotation(joint_q, coord)
            elif joint_type == JointType.FREE or joint_type == FREE_BELOW:
                rotation = anchor * read_rotation(joint_q, coord + 3)
                shift = wp.quat_rotate(anchor, read_vec3(joint_q, coord))
        rotation, shift = child_from_joint_frame(rotation, shift, child_rotation, child_position)
        return rotation, shift, axis, anchor

    @wp.func
    def move_along_axis(linear: bool, axis: wp.vec3, position: real, frame: quat, shift: vec3):
        """Move a frame along or about one axis of a D6 joint.

        Args:
            linear: Whether the axis is one to slide along.
            axis: The axis in the frame that the earlier axes have made of the joint frame.
            position: Position of the axis [m or rad].
            frame: Orientation of that frame.
            shift: Its origin less the parent joint frame's [m], world axes.

        Returns:
            Orientation and origin behind the axis, and the motion subspace of the axis about the origin of
            the parent joint frame.
        """
        direction = wp.quat_rotate(frame, widen_axis(axis))
        motion = spatial(direction, wp.cross(shift, direction))
        if linear:
            motion = spatial(vec3(), direction)
            shift += position * direction
        else:
            frame = quat_from_axis_angle(direction, position) * frame
        return frame, shift, motion

    return SimpleNamespace(
        child_pose=child_pose, move_along_axis=move_along_axis, child_from_joint_frame=child_from_joint_frame
    )


@functools.cache
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    mat33 = mat33_type(real)
    quat = quat_type(real)
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    child_pose = joint_functions(real).child_pose
    move_along_axis = joint_functions(real).move_along_axis
    child_from_joint_frame = joint_functions(real).child_from_joint_frame
    chain_rotation = group_functions(real).chain_rotation
    matrix_from_quat = rotation_functions(real).matrix_from_quat
    rotate_sym = rotation_functions(real).rotate_sym
    symmetric_matrix = spatial_functions(real).symmetric_matrix
    spatial = spatial_functions(real).spatial
    angular_part = spatial_functions(real).angular_part
    linear_part = spatial_functions(real).linear_part
    widen_vec3 = conversion_functions(real).widen_vec3
    read_vec3 = conversion_functions(real).read_vec3

    @wp.func
    def add_dof(data: data_struct, dof: int, motion: vec6, speed: real, omega: vec3, linear: vec3):
        """Store a dof's motion subspace and velocity; return the body's velocity with the dof's share."""
        data.dof_motion[dof] = motion
        data.dof_velocity[dof] = speed
        return omega + speed * angular_part(motion), linear + speed * linear_part(motion)

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
        data: data_struct,
    ):
        world = worlds[wp.tid()]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        coord_base = topology.world_coord[world]
        dof_base = topology.world_dof[world]
        ref = vec3()
        # The previous carrier mostly carries the next one, so its data are kept in registers.
        loaded = int(-1)
        rotation_quat = quat()
        rotation = mat33()
        offset = vec3()
        # The halves of the velocity: whole, six numbers would be kept in memory and not in registers, and
        # copied in moves that overlap, which took 40 % of the time.
        omega = vec3()
        linear = vec3()
        for local_node in range(topology.template_node[template + 1] - first_node):
            index = first_node + local_node
            node = node_base + local_node
            joint_type = topology.node_type[index]
            body = body_base + topology.node_body[index]
            carrier = topology.node_carrier[index]
            if carrier < 0:
                rotation_quat = quat(real(0.0), real(0.0), real(0.0), real(1.0))
                omega = vec3()
                linear = vec3()
            elif carrier != loaded:
                rotation_quat = data.node_quat[node_base + carrier]
                rotation = data.node_rotation[node_base + carrier]
                offset = data.node_offset[node_base + carrier]
                omega = angular_part(data.node_velocity[node_base + carrier])
                linear = linear_part(data.node_velocity[node_base + carrier])
                loaded = carrier
            dof_count = topology.node_dof_count[index]
            if carrier >= 0 and dof_count == 0:  # welded
                weld = groups.welds[node]
                data.node_rotation[node] = rotation * matrix_from_quat(weld.rotation)
                data.node_offset[node] = offset + rotation * weld.position
                data.node_com[node] = offset + rotation * weld.com
                data.node_velocity[node] = spatial(omega, linear)
                continue
            frame = groups.carriers[node]
            anchor_p = frame.position
            if carrier >= 0:
                anchor_p = offset + rotation * anchor_p
            loaded = local_node
            public_dof = dof_base + topology.node_qd[index]
            dof = dof_base + topology.node_dof[index]
            coord = coord_base + topology.node_coord[index]
            shift = vec3()
            axis = vec3()
            anchor = rotation_quat
            if joint_type == JointType.D6:
                frame_quat = chain_rotation(rotation_quat, frame.rotation)
                linear_count = topology.node_linear_count[index]
                for k in range(dof_count):
                    frame_quat, shift, motion_k = move_along_axis(
                        k < linear_count,
                        joint_axis[public_dof + k],
                        real(joint_q[coord + k]),
                        frame_quat,
                        shift,
                    )
                    data.dof_motion[dof + k] = motion_k  # about the parent joint frame until further below
                rotation_quat, shift = child_from_joint_frame(
                    frame_quat, shift, frame.child_rotation, frame.child_position
                )
            else:
                rotation_quat, shift, axis, anchor = child_pose(
                    joint_type,
                    joint_q,
                    coord,
                    joint_axis,
                    public_dof,
                    rotation_quat,
                    frame.rotation,
                    frame.child_rotation,
                    frame.child_position,
                )
            offset = anchor_p + shift
            if carrier < 0:
                ref = offset
                data.tree_ref[topology.world_tree[world] + topology.node_tree[index]] = ref
                offset = vec3()
                anchor_p = -shift  # anchor_p - ref would cancel far from the world's origin
            rotation = matrix_from_quat(rotation_quat)
            com_arm = rotation * widen_vec3(body_com[body])

            # Motion subspace about the reference point: a turn about an axis w through r is [w; r x w].
            if joint_type == JointType.REVOLUTE:
                motion = spatial(axis, wp.cross(anchor_p, axis))
                omega, linear = add_dof(data, dof, motion, real(joint_qd[public_dof]), omega, linear)
            elif joint_type == JointType.PRISMATIC:
                motion = spatial(vec3(), axis)
                omega, linear = add_dof(data, dof, motion, real(joint_qd[public_dof]), omega, linear)
            elif joint_type == JointType.BALL:
                axes = matrix_from_quat(anchor)
                for k in range(3):
                    axis_k = vec3(axes[0, k], axes[1, k], axes[2, k])
                    motion = spatial(axis_k, wp.cross(anchor_p, axis_k))
                    omega, linear = add_dof(
                        data, dof + k, motion, real(joint_qd[public_dof + k]), omega, linear
                    )
            elif joint_type == JointType.D6:
                for k in range(dof_count):
                    about_frame = data.dof_motion[dof + k]
                    moment = wp.cross(anchor_p, angular_part(about_frame))
                    motion = about_frame + spatial(vec3(), moment)
                    omega, linear = add_dof(
                        data, dof + k, motion, real(joint_qd[public_dof + k]), omega, linear
                    )
            elif joint_type == FREE_BELOW:
                # Shifts and turns, the latter about the centre of mass, along the axes of the parent frame.
                axes = matrix_from_quat(anchor)
                com = offset + com_arm
                for k in range(3):
                    axis_k = vec3(axes[0, k], axes[1, k], axes[2, k])
                    motion = spatial(vec3(), axis_k)
                    omega, linear = add_dof(
                        data, dof + k, motion, real(joint_qd[public_dof + k]), omega, linear
                    )
                for k in range(3):
                    axis_k = vec3(axes[0, k], axes[1, k], axes[2, k])
                    motion = spatial(axis_k, wp.cross(com, axis_k))
                    rate = real(joint_qd[public_dof + 3 + k])
                    omega, linear = add_dof(data, dof + 3 + k, motion, rate, omega, linear)
            elif joint_type == JointType.FREE:
                # Public (v_com, omega) to internal [omega, v_origin]; the reference point is the origin.
                omega = read_vec3(joint_qd, public_dof + 3)
                linear = read_vec3(joint_qd, public_dof) - wp.cross(omega, com_arm)
                velocity = spatial(omega, linear)
                for k in range(6):
                    unit = vec6()
                    unit[k] = real(1.0)
                    data.dof_motion[dof + k] = unit
                    data.dof_velocity[dof + k] = velocity[k]

            data.node_quat[node] = rotation_quat
            data.node_rotation[node] = rotation
            data.node_offset[node] = offset
            data.node_com[node] = offset + com_arm
            data.group_com[node] = offset + rotation * frame.com
            data.group_inertia[node] = rotate_sym(rotation, symmetric_matrix(frame.inertia))
            data.node_velocity[node] = spatial(omega, linear)

    return SimpleNamespace(compute_tree_kinematics=compute_tree_kinematics)


def eval_kinematics(model: Model, worlds: wp.array, state: State, workspace: Workspace) -> None:
    """Compute poses, velocities, world inertias and motion subspaces of `state` (module docstring)."""
    worlds = check_worlds(model, worlds, what="eval_kinematics")
    check_state(model, state, "eval_kinematics: state")
    check_workspace(model, workspace, "eval_kinematics")
    workspace.groups.update(worlds)
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
            workspace.data,
        ],
        device=model.device,
    )
