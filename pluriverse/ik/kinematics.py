"""Kinematics of rows: poses of all bodies, and how each degree of freedom moves them.

Reads   joint_q of the rows; joint frames and axes of the model
Writes  body_q, joint_S_s (placing); gradients of the dofs from those of body_q and joint_q (pulling back)

The column of a dof in `joint_S_s` is the velocity of all that it moves: that of the point which is at the
world's origin [m/s], then the angular velocity [rad/s], both in world axes. A body point x has the velocity
v + w x x.

Dofs of ball joints turn about the axes of the parent joint frame. Those of free and distance joints move the
origin of the child joint frame along these axes, then turn about it.
"""

from types import SimpleNamespace

import warp as wp

from pluriverse.dynamics.joint_frames import joint_functions
from pluriverse.ik.rows import Rows
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import quat_type, vec3_type
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, Topology
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import JointType

_MODULE = "pluriverse.ik.kinematics"


@made_once
def _kernels() -> SimpleNamespace:
    real = wp.float64
    vec3, quat = vec3_type(real), quat_type(real)
    child_pose, move_along_axis = joint_functions(real).child_pose, joint_functions(real).move_along_axis
    child_from_joint_frame = joint_functions(real).child_from_joint_frame
    angular_part, linear_part = spatial_functions(real).angular_part, spatial_functions(real).linear_part
    widen_vec3 = conversion_functions(real).widen_vec3
    widen_rotation = conversion_functions(real).widen_rotation
    read_vec3 = conversion_functions(real).read_vec3

    @wp.func
    def column(linear: vec3, angular: vec3) -> wp.spatial_vector:
        """Return a column of `joint_S_s`."""
        return wp.spatial_vector(
            float(linear[0]),
            float(linear[1]),
            float(linear[2]),
            float(angular[0]),
            float(angular[1]),
            float(angular[2]),
        )

    @wp.kernel(enable_backward=False, module=_MODULE)
    def place_row(
        rows: Rows,
        # model
        topology: Topology,
        joint_X_p: wp.array[wp.transform],  # [joint] m, xyzw
        joint_X_c: wp.array[wp.transform],  # [joint] m, xyzw
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        # rows
        joint_q: wp.array[float],  # [row * coord]
        coord_count: int,
        node_rotation: wp.array2d[quat],  # [row, node] scratch
        node_position: wp.array2d[vec3],  # [row, node] m, scratch
        body_q: wp.array2d[wp.transform],  # [row, body] out: m, xyzw
        joint_S_s: wp.array2d[wp.spatial_vector],  # [row, dof] out
    ):
        row, _ = wp.tid()
        if rows.place_due[row] == 0:
            return
        first_world = rows.problem_world[rows.row_problem[row]]
        for world in range(first_world, first_world + rows.world_count):
            template = topology.world_template[world]
            first_node = topology.template_node[template]
            joint_base = topology.world_joint[world]
            flat_dof = topology.world_dof[world]
            node_base = joint_base - topology.world_joint[first_world]
            body_base = topology.world_body[world] - topology.world_body[first_world]
            dof_base = flat_dof - topology.world_dof[first_world]
            coord_base = topology.world_coord[world] - topology.world_coord[first_world] + row * coord_count
            for local_node in range(topology.template_node[template + 1] - first_node):
                index = first_node + local_node
                joint = joint_base + topology.node_joint[index]
                joint_type = topology.node_type[index]
                parent = topology.node_parent[index]
                coord = coord_base + topology.node_coord[index]
                public_dof = topology.node_qd[index]
                dof = dof_base + public_dof
                rotation = quat(real(0.0), real(0.0), real(0.0), real(1.0))
                position = vec3()
                if parent >= 0:
                    rotation = node_rotation[row, node_base + parent]
                    position = node_position[row, node_base + parent]
                frame = widen_rotation(wp.transform_get_rotation(joint_X_p[joint]))
                place = position + wp.quat_rotate(
                    rotation, widen_vec3(wp.transform_get_translation(joint_X_p[joint]))
                )
                child_rotation = wp.quat_inverse(widen_rotation(wp.transform_get_rotation(joint_X_c[joint])))
                child_position = widen_vec3(wp.transform_get_translation(joint_X_c[joint]))
                shift = vec3()
                is_scalar = joint_type == JointType.REVOLUTE or joint_type == JointType.PRISMATIC
                if is_scalar or joint_type == JointType.D6:
                    axes = rotation * frame
                    for k in range(topology.node_dof_count[index]):
                        axes, shift, motion = move_along_axis(
                            k < topology.node_linear_count[index],
                            joint_axis[flat_dof + public_dof + k],
                            real(joint_q[coord + k]),
                            axes,
                            shift,
                        )
                        turn = angular_part(motion)
                        joint_S_s[row, dof + k] = column(linear_part(motion) + wp.cross(place, turn), turn)
                    rotation, shift = child_from_joint_frame(axes, shift, child_rotation, child_position)
                else:
                    rotation, shift, anchor = child_pose(
                        joint_type, joint_q, coord, rotation, frame, child_rotation, child_position
                    )
                    is_free = joint_type == JointType.FREE or joint_type == FREE_BELOW
                    if joint_type == JointType.BALL or is_free:
                        turns = dof
                        centre = place
                        if is_free:
                            turns = dof + 3
                            centre = place + wp.quat_rotate(anchor, read_vec3(joint_q, coord))
                        for k in range(3):
                            unit = vec3()
                            unit[k] = real(1.0)
                            direction = wp.quat_rotate(anchor, unit)
                            if is_free:
                                joint_S_s[row, dof + k] = column(direction, vec3())
                            joint_S_s[row, turns + k] = column(wp.cross(centre, direction), direction)
                position = place + shift
                node_rotation[row, node_base + local_node] = rotation
                node_position[row, node_base + local_node] = position
                body_q[row, body_base + topology.node_body[index]] = wp.transform(
                    wp.vec3(float(position[0]), float(position[1]), float(position[2])),
                    wp.quat(float(rotation[0]), float(rotation[1]), float(rotation[2]), float(rotation[3])),
                )

    return SimpleNamespace(place_row=place_row)


@wp.func
def torque_of_quaternion(rotation: wp.quat, gradient: wp.quat) -> wp.vec3:
    """Return the gradient to a turn w, which changes a quaternion q by (w, 0) q / 2 ([Sola2017] eq. 201)."""
    q = wp.vec3(rotation[0], rotation[1], rotation[2])
    g = wp.vec3(gradient[0], gradient[1], gradient[2])
    return 0.5 * (rotation[3] * g + wp.cross(q, g) - gradient[3] * q)


@wp.kernel(enable_backward=False, module="pluriverse.ik.pull_back")
def pull_back_row(
    rows: Rows,
    topology: Topology,
    # rows
    joint_q: wp.array2d[float],  # [row, coord]
    body_q: wp.array2d[wp.transform],  # [row, body] m, xyzw
    joint_S_s: wp.array2d[wp.spatial_vector],  # [row, dof]
    joint_q_gradient: wp.array2d[float],  # [row, coord]
    body_q_gradient: wp.array2d[wp.transform],  # [row, body]
    node_wrench: wp.array2d[wp.spatial_vector],  # [row, node] scratch: force, moment about the world's origin
    dof_gradient: wp.array2d[float],  # [row, dof] out
):
    """Turn gradients to bodies and coordinates of a row into gradients to its dofs."""
    row, _ = wp.tid()
    first_world = rows.problem_world[rows.row_problem[row]]
    for world in range(first_world, first_world + rows.world_count):
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        node_base = topology.world_joint[world] - topology.world_joint[first_world]
        body_base = topology.world_body[world] - topology.world_body[first_world]
        dof_base = topology.world_dof[world] - topology.world_dof[first_world]
        coord_base = topology.world_coord[world] - topology.world_coord[first_world]
        for local_node in range(node_count):
            body = body_base + topology.node_body[first_node + local_node]
            gradient = body_q_gradient[row, body]
            force = wp.transform_get_translation(gradient)
            moment = torque_of_quaternion(
                wp.transform_get_rotation(body_q[row, body]), wp.transform_get_rotation(gradient)
            )
            moment += wp.cross(wp.transform_get_translation(body_q[row, body]), force)
            node_wrench[row, node_base + local_node] = wp.spatial_vector(force, moment)
        for back in range(node_count):
            local_node = node_count - 1 - back
            index = first_node + local_node
            wrench = node_wrench[row, node_base + local_node]
            parent = topology.node_parent[index]
            if parent >= 0:
                node_wrench[row, node_base + parent] = node_wrench[row, node_base + parent] + wrench
            joint_type = topology.node_type[index]
            dof = dof_base + topology.node_qd[index]
            coord = coord_base + topology.node_coord[index]
            dof_count = topology.node_dof_count[index]
            for k in range(dof_count):
                dof_gradient[row, dof + k] = wp.dot(joint_S_s[row, dof + k], wrench)
            is_free = joint_type == JointType.FREE or joint_type == FREE_BELOW
            scalar_count = dof_count
            if joint_type == JointType.BALL:
                scalar_count = 0
            elif is_free:
                scalar_count = 3
            for k in range(scalar_count):
                dof_gradient[row, dof + k] = dof_gradient[row, dof + k] + joint_q_gradient[row, coord + k]
            if scalar_count < dof_count:
                first = coord + scalar_count
                turn = torque_of_quaternion(
                    wp.normalize(
                        wp.quat(
                            joint_q[row, first],
                            joint_q[row, first + 1],
                            joint_q[row, first + 2],
                            joint_q[row, first + 3],
                        )
                    ),
                    wp.quat(
                        joint_q_gradient[row, first],
                        joint_q_gradient[row, first + 1],
                        joint_q_gradient[row, first + 2],
                        joint_q_gradient[row, first + 3],
                    ),
                )
                for k in range(3):
                    dof = dof_base + topology.node_qd[index] + scalar_count + k
                    dof_gradient[row, dof] = dof_gradient[row, dof] + turn[k]


class RowKinematics:
    """Bodies of rows, and what moves them.

    Args:
        model: The model.
        row_count: Number of rows.
        joint_count: Columns for joints.
        body_count: Columns for bodies.
        dof_count: Columns for degrees of freedom.
        requires_grad: Whether gradients are to be pulled back.
    """

    def __init__(
        self,
        model: Model,
        row_count: int,
        *,
        joint_count: int,
        body_count: int,
        dof_count: int,
        requires_grad: bool,
    ) -> None:
        device, real = model.device, wp.float64
        self._model = model
        self.body_q = wp.zeros(
            (row_count, body_count), dtype=wp.transform, device=device, requires_grad=requires_grad
        )
        self.joint_S_s = wp.zeros((row_count, dof_count), dtype=wp.spatial_vector, device=device)
        self._node_rotation = wp.zeros((row_count, joint_count), dtype=quat_type(real), device=device)
        self._node_position = wp.zeros((row_count, joint_count), dtype=vec3_type(real), device=device)
        count = joint_count if requires_grad else 0
        self._node_wrench = wp.zeros((row_count, count), dtype=wp.spatial_vector, device=device)

    def place(self, rows: Rows, joint_q: wp.array) -> None:
        """Write `body_q` and `joint_S_s` of the rows that are due, from `joint_q` of shape [row, coord]."""
        model = self._model
        launch_kernel(
            _kernels().place_row,
            dim=joint_q.shape[0],
            inputs=[
                rows,
                model.topology,
                model.joint_X_p,
                model.joint_X_c,
                model.joint_axis,
                joint_q.flatten(),
                joint_q.shape[1],
            ],
            outputs=[self._node_rotation, self._node_position, self.body_q, self.joint_S_s],
            device=model.device,
        )

    def pull_back(self, rows: Rows, joint_q: wp.array, dof_gradient: wp.array) -> None:
        """Write gradients to dofs, shape [row, dof], from those of `body_q` and `joint_q`."""
        launch_kernel(
            pull_back_row,
            dim=joint_q.shape[0],
            inputs=[
                rows,
                self._model.topology,
                joint_q,
                self.body_q,
                self.joint_S_s,
                joint_q.grad,
                self.body_q.grad,
            ],
            outputs=[self._node_wrench, dof_gradient],
            device=self._model.device,
        )
