"""Acceleration stage: accelerations of bodies in a step, and wrenches through their joints.

Reads   joint_q, joint_qd, body_q, body_qd before and after a solver step; contact wrenches, body_f; the
        workspace of the kinematics and the bias stage at the state before
Writes  body_acceleration, body_transmitted

The joints' accelerations are the changes of their velocities in the step, (v' - v) / dt. At the configuration
before the step they give the accelerations of bodies, minus gravity, and by the Newton-Euler equations the
wrench that each joint transmits ([Featherstone2008] section 5.3):

    f_b = sum over b and the bodies it carries of (I a + v x* I v - contact - body_f)
"""

from types import SimpleNamespace

import warp as wp

from pluriverse.dynamics.bias import eval_bias
from pluriverse.dynamics.kinematics import eval_kinematics
from pluriverse.dynamics.rigid_groups import is_welded
from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, State, Topology
from pluriverse.types import JointType

_REAL = wp.float64
_MODULE = "pluriverse.sensors.accelerations"


@made_once
def _kernels() -> SimpleNamespace:
    data_struct = workspace_struct(_REAL)
    functions = spatial_functions(_REAL)
    spatial = functions.spatial
    angular_part = functions.angular_part
    linear_part = functions.linear_part
    sym_times_vec = functions.sym_times_vec
    rotate_sym = rotation_functions(_REAL).rotate_sym

    @wp.func
    def read_rate(before: wp.array[float], after: wp.array[float], dof: int, rate: wp.float64) -> wp.float64:
        """Return the rate of change of one velocity."""
        return (wp.float64(after[dof]) - wp.float64(before[dof])) * rate

    @wp.func
    def read_vector(values: wp.array[float], first: int) -> wp.vec3d:
        """Return three consecutive entries."""
        return wp.vec3d(
            wp.float64(values[first]), wp.float64(values[first + 1]), wp.float64(values[first + 2])
        )

    @wp.func
    def read_quat(values: wp.array[float], first: int) -> wp.quatd:
        """Return a quaternion of four consecutive entries."""
        return wp.normalize(
            wp.quatd(
                wp.float64(values[first]),
                wp.float64(values[first + 1]),
                wp.float64(values[first + 2]),
                wp.float64(values[first + 3]),
            )
        )

    @wp.func
    def turned_rate(
        before: wp.vec3d,
        after: wp.vec3d,
        rotation_before: wp.quatd,
        rotation_after: wp.quatd,
        rate: wp.float64,
    ) -> wp.vec3d:
        """Return the rate of change of an angular velocity whose components along moving axes are stepped."""
        change = wp.quat_rotate_inv(rotation_after, after) - wp.quat_rotate_inv(rotation_before, before)
        return wp.quat_rotate(rotation_before, change * rate)

    @wp.func
    def rotation_of(pose: wp.transform) -> wp.quatd:
        """Return an orientation in double precision."""
        q = wp.transform_get_rotation(pose)
        return wp.normalize(wp.quatd(wp.float64(q[0]), wp.float64(q[1]), wp.float64(q[2]), wp.float64(q[3])))

    @wp.kernel(enable_backward=False, module=_MODULE)
    def accelerate_world(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        body_mass: wp.array[float],  # [body] kg
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        body_inertia: wp.array[wp.mat33],  # [body] kg m^2, about the centre of mass, body axes
        gravity: wp.array[wp.vec3],  # [world] m/s^2
        # states
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        body_q: wp.array[wp.transform],  # [body]
        body_f: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
        joint_q_after: wp.array[float],  # [coord]
        joint_qd_after: wp.array[float],  # [dof]
        body_q_after: wp.array[wp.transform],  # [body]
        contact_wrench: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
        rate: wp.float64,  # 1 / dt [1/s]; 0 for bodies that are taken not to accelerate
        steps_body_axes: int,  # 1 where angular velocities are stepped along the axes of the child
        world_frozen: wp.array[int],  # [world]
        # workspace
        data: data_struct,
        extra: wp.array[wp.spatial_vectord],  # [node] rad/s^2, m/s^2, what joint accelerations add
        # out
        body_acceleration: wp.array[wp.spatial_vector],  # [body] m/s^2 of the centre of mass, rad/s^2
        body_transmitted: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        if world_frozen[world] != 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        dof_base = topology.world_dof[world]
        coord_base = topology.world_coord[world]

        for local_node in range(node_count):
            index = first_node + local_node
            node = node_base + local_node
            body = body_base + topology.node_body[index]
            joint_type = topology.node_type[index]
            dof = dof_base + topology.node_dof[index]
            public_dof = dof_base + topology.node_qd[index]
            coord = coord_base + topology.node_coord[index]
            velocity = data.node_velocity[node]
            omega = angular_part(velocity)
            added = wp.spatial_vectord()
            if topology.node_parent[index] >= 0:
                added = extra[node_base + topology.node_parent[index]]
            if joint_type == JointType.FREE:
                spin_before = read_vector(joint_qd, public_dof + 3)
                spin_after = read_vector(joint_qd_after, public_dof + 3)
                com_before = read_vector(joint_qd, public_dof)
                com_after = read_vector(joint_qd_after, public_dof)
                arm = data.node_com[node]
                alpha = (spin_after - spin_before) * rate
                origin = (com_after - com_before) * rate - wp.cross(alpha, arm)
                origin -= wp.cross(omega, wp.cross(omega, arm))
                if steps_body_axes != 0:
                    rotation = rotation_of(body_q[body])
                    rotation_after = rotation_of(body_q_after[body])
                    com = wp.vec3d(body_com[body])
                    alpha = turned_rate(spin_before, spin_after, rotation, rotation_after, rate)
                    origin_after = com_after - wp.cross(spin_after, wp.quat_rotate(rotation_after, com))
                    origin_before = com_before - wp.cross(spin_before, wp.quat_rotate(rotation, com))
                    origin = (origin_after - origin_before) * rate
                if rate == wp.float64(0.0):
                    alpha = wp.vec3d()
                    # The bias already contains the terms of a material point without acceleration.
                    origin = wp.vec3d()
                motion = spatial(alpha, origin)
                for k in range(6):
                    added[k] = added[k] + motion[k]
            elif joint_type == JointType.BALL:
                alpha = (read_vector(joint_qd_after, public_dof) - read_vector(joint_qd, public_dof)) * rate
                if steps_body_axes != 0:
                    alpha = turned_rate(
                        read_vector(joint_qd, public_dof),
                        read_vector(joint_qd_after, public_dof),
                        read_quat(joint_q, coord),
                        read_quat(joint_q_after, coord),
                        rate,
                    )
                for k in range(3):
                    motion = alpha[k] * data.dof_motion[dof + k]
                    for entry in range(6):
                        added[entry] = added[entry] + motion[entry]
            else:
                for k in range(topology.node_dof_count[index]):
                    motion = (
                        read_rate(joint_qd, joint_qd_after, public_dof + k, rate) * data.dof_motion[dof + k]
                    )
                    for entry in range(6):
                        added[entry] = added[entry] + motion[entry]
            extra[node] = added

            # Total acceleration of the centre of mass as a material point, minus gravity.
            carrier = node
            if is_welded(topology, index):
                carrier = node_base + topology.node_carrier[index]
            total = data.node_acceleration[carrier]
            for entry in range(6):
                total[entry] = total[entry] + added[entry]
            com_arm = data.node_com[node]
            alpha_all = angular_part(total)
            com_velocity = linear_part(velocity) + wp.cross(omega, com_arm)
            com_acceleration = linear_part(total) + wp.cross(alpha_all, com_arm)
            com_acceleration += wp.cross(omega, com_velocity) - wp.vec3d(gravity[world])
            body_acceleration[body] = wp.spatial_vector(wp.vec3(com_acceleration), wp.vec3(alpha_all))

            # The wrench that the body alone needs of its joint, about the reference point.
            given = contact_wrench[body] + body_f[body]
            force = wp.float64(body_mass[body]) * com_acceleration - wp.vec3d(wp.spatial_top(given))
            inertia = rotate_sym(data.node_rotation[node], wp.mat33d(body_inertia[body]))
            torque = sym_times_vec(inertia, alpha_all)
            torque += wp.cross(omega, sym_times_vec(inertia, omega))
            torque -= wp.vec3d(wp.spatial_bottom(given))
            data.node_wrench[node] = spatial(torque + wp.cross(com_arm, force), force)

        for reverse_node in range(node_count):
            local_node = node_count - 1 - reverse_node
            index = first_node + local_node
            node = node_base + local_node
            wrench = data.node_wrench[node]
            if topology.node_parent[index] >= 0:
                parent = node_base + topology.node_parent[index]
                data.node_wrench[parent] = data.node_wrench[parent] + wrench
            body = body_base + topology.node_body[index]
            force = linear_part(wrench)
            torque = angular_part(wrench) - wp.cross(data.node_com[node], force)
            body_transmitted[body] = wp.spatial_vector(wp.vec3(force), wp.vec3(torque))

    return SimpleNamespace(accelerate_world=accelerate_world)


class BodyAccelerations:
    """Accelerations of bodies and wrenches through joints, kept for all worlds of a model.

    Args:
        model: Model of the bodies.
    """

    acceleration: wp.array[wp.spatial_vectorf]
    """Acceleration of the centre of mass minus gravity [m/s²], then angular acceleration [rad/s²], world
    axes, shape [body]."""
    carried: wp.array[wp.spatial_vectorf]
    """Force [N] that the joint of a body transmits to it and its descendants, then torque about the body's
    centre of mass [N·m], world axes, shape [body]."""

    def __init__(self, model: Model):
        self._model = model
        self._workspace = Workspace(model, _REAL)
        self._no_control = model.control()
        self._no_control.clear()
        self._no_control.joint_f.zero_()
        count, device = model.body_count, model.device
        self._extra = wp.zeros(model.joint_count, dtype=wp.spatial_vectord, device=device)
        self.acceleration = wp.zeros(count, dtype=wp.spatial_vectorf, device=device)
        self.carried = wp.zeros(count, dtype=wp.spatial_vectorf, device=device)

    def launch(
        self,
        worlds: wp.array[int],
        before: State,
        after: State,
        contact_wrench: wp.array,
        world_frozen: wp.array[int],
        *,
        rate: float,
        steps_body_axes: bool,
    ) -> None:
        """Write both for the step between two states; `rate` is 1 / dt [1/s], or 0 for a state at rest."""
        model = self._model
        eval_kinematics(model, worlds, before, self._workspace)
        eval_bias(model, worlds, before, self._no_control, self._workspace)
        launch_kernel(
            _kernels().accelerate_world,
            dim=worlds.size,
            inputs=[
                worlds,
                model.topology,
                model.body_mass,
                model.body_com,
                model.body_inertia,
                model.gravity,
                before.joint_q,
                before.joint_qd,
                before.body_q,
                before.body_f,
                after.joint_q,
                after.joint_qd,
                after.body_q,
                contact_wrench,
                wp.float64(rate),
                int(steps_body_axes),
                world_frozen,
                self._workspace.data,
                self._extra,
            ],
            outputs=[self.acceleration, self.carried],
            device=model.device,
        )
