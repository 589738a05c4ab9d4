"""Kinematics stage: pose, velocity and inertia of every body in world axes, and how each dof moves it.

Reads   joint_q, joint_qd; joint frames and axes, body_com, body_inertia
Writes  workspace: tree_ref, node_quat, node_rotation, node_offset, node_position, node_com, node_inertia,
        node_velocity, dof_motion, dof_velocity

The pose of a body is X_WB = X_WP X_p X_J(q) X_c^-1 (parent body, parent frame, joint, child frame). Positions are
taken relative to the origin of the tree's root body, so that a robot far from the world's origin loses no digits.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, State, Topology
from pluriverse.types import JointType

PRISMATIC = wp.constant(int(JointType.PRISMATIC))
REVOLUTE = wp.constant(int(JointType.REVOLUTE))
BALL = wp.constant(int(JointType.BALL))
FREE = wp.constant(int(JointType.FREE))


@functools.cache
def joint_functions(real: Any) -> SimpleNamespace:
    """Return the functions on one joint for scalars of type `real`.

    The members are the `wp.func`s `joint_rotation`, `child_from_anchor` and `place_child`.
    """
    vec3 = vec3_type(real)
    quat = quat_type(real)
    rotations = rotation_functions(real)
    quat_from_axis_angle = rotations.quat_from_axis_angle
    quat_renormalize = rotations.quat_renormalize
    unit_quat = rotations.unit_quat

    @wp.func
    def joint_coordinate_quat(joint_q: wp.array(dtype=float), coord: int) -> quat:
        """Return the quaternion of a ball or free joint, normalized: users may write any length."""
        return wp.normalize(
            quat(
                real(joint_q[coord]),
                real(joint_q[coord + 1]),
                real(joint_q[coord + 2]),
                real(joint_q[coord + 3]),
            )
        )

    @wp.func
    def place_child(
        joint_type: int,
        coord: int,
        joint_q: wp.array(dtype=float),  # [coord]
        anchor: quat,  # parent joint frame to world
        axis: vec3,  # of a revolute or prismatic joint, world axes
        child_frame: wp.transform,  # child joint frame in the child body
    ):
        """Return orientation of the child body, and its origin relative to the parent joint frame, world axes."""
        rotation = anchor
        shift = vec3()
        if joint_type == REVOLUTE:
            rotation = quat_from_axis_angle(axis, real(joint_q[coord])) * anchor
        elif joint_type == PRISMATIC:
            shift = real(joint_q[coord]) * axis
        elif joint_type == BALL:
            rotation = anchor * joint_coordinate_quat(joint_q, coord)
        elif joint_type == FREE:
            rotation = anchor * joint_coordinate_quat(joint_q, coord + 3)
            shift = wp.quat_rotate(
                anchor, vec3(real(joint_q[coord]), real(joint_q[coord + 1]), real(joint_q[coord + 2]))
            )
        child_p = wp.transform_get_translation(child_frame)
        child_r = wp.transform_get_rotation(child_frame)
        if child_r[3] != 1.0:  # most child frames are not turned
            rotation = rotation * wp.quat_inverse(unit_quat(child_r))
        rotation = quat_renormalize(rotation)
        if child_p[0] != 0.0 or child_p[1] != 0.0 or child_p[2] != 0.0:
            shift -= wp.quat_rotate(rotation, vec3(real(child_p[0]), real(child_p[1]), real(child_p[2])))
        return rotation, shift

    return SimpleNamespace(place_child=place_child)


@functools.cache
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    mat33 = mat33_type(real)
    quat = quat_type(real)
    data_struct = workspace_struct(real)
    place_child = joint_functions(real).place_child
    unit_quat = rotation_functions(real).unit_quat
    unit_axis = rotation_functions(real).unit_axis
    rotate_sym = rotation_functions(real).rotate_sym
    spatial = spatial_functions(real).spatial
    angular_part = spatial_functions(real).angular_part

    @wp.func
    def hold_dof(data: data_struct, dof: int, motion: vec6, velocity: real, body_velocity: vec6) -> vec6:
        """Store a dof's motion subspace and velocity; return the body's velocity with the dof's share."""
        data.dof_motion[dof] = motion
        data.dof_velocity[dof] = velocity
        return body_velocity + velocity * motion

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.kinematics.{precision_name(real)}")
    def place_nodes(
        worlds: wp.array(dtype=int),  # [slot]
        # model
        topology: Topology,
        joint_X_p: wp.array(dtype=wp.transform),  # [joint] m, parent body frame
        joint_X_c: wp.array(dtype=wp.transform),  # [joint] m, child body frame
        joint_axis: wp.array(dtype=wp.vec3),  # [dof] unit, joint frame
        body_com: wp.array(dtype=wp.vec3),  # [body] m, body frame
        body_inertia: wp.array(dtype=wp.mat33),  # [body] kg m^2, about the centre of mass, body axes
        # state
        joint_q: wp.array(dtype=float),  # [coord]
        joint_qd: wp.array(dtype=float),  # [dof]
        # workspace
        data: data_struct,
    ):
        world = worlds[wp.tid()]
        template = topology.world_template[world]
        node_base = topology.world_joint[world]
        first_node = topology.template_node[template]
        first_dof = topology.template_dof[template]
        first_tree = topology.template_tree[template]
        body_base = topology.world_body[world]
        coord_base = topology.world_coord[world]
        dof_base = topology.world_dof[world]
        tree_base = topology.world_tree[world]
        ref = vec3()
        for local_node in range(topology.template_node[template + 1] - first_node):
            index = first_node + local_node
            node = node_base + local_node
            joint_type = topology.node_type[index]
            joint = node_base + topology.node_joint[index]
            body = body_base + topology.node_body[index]
            coord = coord_base + topology.node_coord[index]
            public_dof = dof_base + topology.node_qd[index]
            dof = dof_base + topology.node_dof[index]
            local_parent = topology.node_parent[index]

            parent_frame = joint_X_p[joint]
            parent_p = wp.transform_get_translation(parent_frame)
            parent_r = wp.transform_get_rotation(parent_frame)
            anchor_p = vec3(real(parent_p[0]), real(parent_p[1]), real(parent_p[2]))
            anchor = unit_quat(parent_r)
            velocity = vec6()
            if local_parent >= 0:
                parent = node_base + local_parent
                parent_quat = data.node_quat[parent]
                anchor = parent_quat * anchor
                anchor_p = data.node_offset[parent] + data.node_rotation[parent] * anchor_p
                velocity = data.node_velocity[parent]
            axis = vec3()
            if joint_type == REVOLUTE or joint_type == PRISMATIC:
                local_axis = joint_axis[public_dof]
                axis = wp.quat_rotate(anchor, unit_axis(local_axis))

            rotation_quat, shift = place_child(joint_type, coord, joint_q, anchor, axis, joint_X_c[joint])
            offset = anchor_p + shift
            if local_parent < 0:
                ref = offset
                data.tree_ref[tree_base + topology.node_tree[index]] = ref
                offset = vec3()
                anchor_p = -shift  # not anchor_p - ref, which cancels far from the world's origin
            rotation = wp.quat_to_matrix(rotation_quat)
            local_com = body_com[body]
            com_arm = rotation * vec3(real(local_com[0]), real(local_com[1]), real(local_com[2]))

            # Motion subspace about the reference point: a turn about an axis w through r is [w; r x w].
            if joint_type == REVOLUTE:
                velocity = hold_dof(
                    data, dof, spatial(axis, wp.cross(anchor_p, axis)), real(joint_qd[public_dof]), velocity
                )
            elif joint_type == PRISMATIC:
                velocity = hold_dof(data, dof, spatial(vec3(), axis), real(joint_qd[public_dof]), velocity)
            elif joint_type == BALL:
                frame = wp.quat_to_matrix(anchor)
                for k in range(3):
                    axis = vec3(frame[0, k], frame[1, k], frame[2, k])
                    motion = spatial(axis, wp.cross(anchor_p, axis))
                    velocity = hold_dof(data, dof + k, motion, real(joint_qd[public_dof + k]), velocity)
            elif joint_type == FREE:
                # Public (v_com, omega) to internal [omega, v_origin]; the reference point is the origin.
                omega = vec3(
                    real(joint_qd[public_dof + 3]),
                    real(joint_qd[public_dof + 4]),
                    real(joint_qd[public_dof + 5]),
                )
                v_com = vec3(
                    real(joint_qd[public_dof]), real(joint_qd[public_dof + 1]), real(joint_qd[public_dof + 2])
                )
                velocity = spatial(omega, v_com - wp.cross(omega, com_arm))
                for k in range(6):
                    motion = vec6()
                    motion[k] = real(1.0)
                    data.dof_motion[dof + k] = motion
                    data.dof_velocity[dof + k] = velocity[k]

            inertia = body_inertia[body]
            data.node_quat[node] = rotation_quat
            data.node_rotation[node] = rotation
            data.node_offset[node] = offset
            data.node_position[node] = ref + offset
            data.node_com[node] = offset + com_arm
            data.node_inertia[node] = rotate_sym(rotation, mat33(inertia))
            data.node_velocity[node] = velocity

    return SimpleNamespace(place_nodes=place_nodes)


def eval_kinematics(model: Model, worlds: wp.array, state: State, workspace: Workspace) -> None:
    """Compute poses, velocities, world inertias and motion subspaces of `state` (module docstring)."""
    wp.launch(
        _kernels(workspace.real).place_nodes,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.joint_X_p,
            model.joint_X_c,
            model.joint_axis,
            model.body_com,
            model.body_inertia,
            state.joint_q,
            state.joint_qd,
            workspace.data,
        ],
        device=model.device,
    )
