"""Inverse kinematics of joints: joint coordinates and velocities from body poses and velocities.

Reads   body_q, body_qd; joint frames and axes, body_com
Writes  joint_q, joint_qd

Each joint is solved by itself. A displacement that its type does not allow, such as a gap in a hinge, has no
coordinate and is dropped.
"""

from types import SimpleNamespace

import warp as wp

from pluriverse.dynamics.articulation_query import check_mask
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import mat33_type, quat_type, vec3_type
from pluriverse.model import Model, State, Topology
from pluriverse.model.arguments import check_array, check_indices, check_model, check_state
from pluriverse.model.topology import FREE_BELOW
from pluriverse.model.world_list import check_worlds
from pluriverse.types import BodyFlags, JointType

# Newton steps for the angles of a D6 joint whose axes are not perpendicular. They converge quadratically: an
# error of some tenths is at rounding after five or six; the rest is for axes far from right angles.
ANGLE_STEP_COUNT = 20
# Error [rad] at which the search for the angles stops: some roundings of float64.
ANGLE_ERROR = 1e-14


@made_once
def _kernels() -> SimpleNamespace:
    real = wp.float64
    vec3, mat33, quat = vec3_type(real), mat33_type(real), quat_type(real)
    functions = conversion_functions(real)
    widen_vec3 = functions.widen_vec3
    widen_axis = functions.widen_axis
    widen_rotation = functions.widen_rotation
    write_vec3 = functions.write_vec3
    write_rotation = functions.write_rotation

    @wp.func
    def angle_about(axis: vec3, rotation: quat) -> real:
        """Return the angle [rad] in (-pi, pi] of a rotation about an axis."""
        along = axis[0] * rotation[0] + axis[1] * rotation[1] + axis[2] * rotation[2]
        w = rotation[3]
        if w < real(0.0):
            along = -along
            w = -w
        return real(2.0) * wp.atan2(along, w)

    @wp.func
    def solve_axes(a: vec3, b: vec3, c: vec3, count: int, target: vec3) -> vec3:
        """Return the coefficients of up to three axes that give a vector, or its least-squares fit."""
        result = vec3()
        if count == 1:
            result[0] = wp.dot(a, target)
        elif count == 2:
            cosine = wp.dot(a, b)
            scale = real(1.0) / (real(1.0) - cosine * cosine)
            along_a = wp.dot(a, target)
            along_b = wp.dot(b, target)
            result[0] = scale * (along_a - cosine * along_b)
            result[1] = scale * (along_b - cosine * along_a)
        elif count == 3:
            axes = mat33(a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2])
            result = wp.inverse(axes) * target
        return result

    @wp.func
    def rotate_axes(a: vec3, b: vec3, c: vec3, angles: vec3):
        """Return the second and third axis after the earlier rotations, and the total rotation."""
        first = wp.quat_from_axis_angle(a, angles[0])
        second = first * wp.quat_from_axis_angle(b, angles[1])
        return (
            wp.quat_rotate(first, b),
            wp.quat_rotate(second, c),
            second * wp.quat_from_axis_angle(c, angles[2]),
        )

    @wp.func
    def wrap(angle: real) -> real:
        """Return an angle in (-pi, pi]."""
        return wp.atan2(wp.sin(angle), wp.cos(angle))

    @wp.func
    def successive_angles(a: vec3, b: vec3, c: vec3, count: int, rotation: quat) -> vec3:
        """Return the angles of turn = R(a, x) R(b, y) R(c, z), z being 0 if there are two axes.

        Perpendicular axes have them in closed form, by the axes that the turn moves; others are found from
        there by Newton's method.
        """
        side = real(1.0)
        if wp.dot(wp.cross(a, b), c) < real(0.0):
            side = real(-1.0)
        moved_a = wp.quat_rotate(rotation, a)
        moved_b = wp.quat_rotate(rotation, b)
        moved_c = wp.quat_rotate(rotation, c)
        sine = wp.clamp(side * wp.dot(a, moved_c), real(-1.0), real(1.0))
        angles = vec3(
            wp.atan2(-side * wp.dot(b, moved_c), wp.dot(c, moved_c)),
            wp.asin(sine),
            wp.atan2(-side * wp.dot(a, moved_b), wp.dot(a, moved_a)),
        )
        if count == 2:
            angles[2] = real(0.0)
        for _step in range(ANGLE_STEP_COUNT):
            second, third, reached = rotate_axes(a, b, c, angles)
            rest = rotation * wp.quat_inverse(reached)
            scale = real(2.0)
            if rest[3] < real(0.0):
                scale = real(-2.0)
            error = scale * vec3(rest[0], rest[1], rest[2])
            if wp.dot(error, error) < real(ANGLE_ERROR * ANGLE_ERROR):
                break
            angles += solve_axes(a, second, third, count, error)
        return vec3(wrap(angles[0]), wrap(angles[1]), wrap(angles[2]))

    @wp.kernel(enable_backward=False, module="pluriverse.dynamics.inverse_kinematics")
    def compute_joint_state(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        joint_parent: wp.array[int],  # [joint]
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        joint_articulation: wp.array[int],  # [joint]
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        body_flags: wp.array[int],  # [body]
        # what to write
        body_flag_filter: int,  # BodyFlags
        mask: wp.array[bool],  # [articulation]; empty: all joints
        joint_mask: wp.array[bool],  # [joint]; empty: all joints
        # state
        body_q: wp.array[wp.transform],  # [body] m, xyzw
        body_qd: wp.array[wp.spatial_vector],  # [body] m/s of the centre of mass, rad/s
        # joint state
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        joint_base = topology.world_joint[world]
        for local_node in range(topology.template_node[template + 1] - first_node):
            index = first_node + local_node
            joint = joint_base + topology.node_joint[index]
            if mask.shape[0] > 0:
                if joint_articulation[joint] < 0:
                    continue
                if not mask[joint_articulation[joint]]:
                    continue
            if joint_mask.shape[0] > 0:
                if not joint_mask[joint]:
                    continue
            joint_type = topology.node_type[index]
            body = topology.world_body[world] + topology.node_body[index]
            if body_flags[body] & body_flag_filter == 0:
                continue
            coord = topology.world_coord[world] + topology.node_coord[index]
            dof = topology.world_dof[world] + topology.node_qd[index]

            # Joint frames on both sides, and how the child's moves as seen from the parent's.
            frame_p = widen_vec3(wp.transform_get_translation(joint_X_p[joint]))
            frame_r = widen_rotation(wp.transform_get_rotation(joint_X_p[joint]))
            child_r = widen_rotation(wp.transform_get_rotation(body_q[body]))
            child_p = widen_vec3(wp.transform_get_translation(body_q[body]))
            child_arm = wp.quat_rotate(child_r, widen_vec3(wp.transform_get_translation(joint_X_c[joint])))
            point = child_p + child_arm
            omega = widen_vec3(wp.spatial_bottom(body_qd[body]))
            com_arm = wp.quat_rotate(child_r, widen_vec3(body_com[body]))
            velocity = widen_vec3(wp.spatial_top(body_qd[body])) + wp.cross(omega, child_arm - com_arm)
            parent = joint_parent[joint]
            if parent >= 0:
                parent_r = widen_rotation(wp.transform_get_rotation(body_q[parent]))
                parent_p = widen_vec3(wp.transform_get_translation(body_q[parent]))
                parent_omega = widen_vec3(wp.spatial_bottom(body_qd[parent]))
                parent_com = parent_p + wp.quat_rotate(parent_r, widen_vec3(body_com[parent]))
                frame_p = parent_p + wp.quat_rotate(parent_r, frame_p)
                frame_r = parent_r * frame_r
                velocity -= widen_vec3(wp.spatial_top(body_qd[parent]))
                velocity -= wp.cross(parent_omega, point - parent_com)
                omega -= parent_omega
            shift = wp.quat_rotate_inv(frame_r, point - frame_p)
            shift_rate = wp.quat_rotate_inv(frame_r, velocity)
            rotation = wp.quat_inverse(frame_r) * (
                child_r * widen_rotation(wp.transform_get_rotation(joint_X_c[joint]))
            )
            angular_rate = wp.quat_rotate_inv(frame_r, omega)

            if joint_type == JointType.REVOLUTE:
                axis = widen_axis(joint_axis[dof])
                joint_q[coord] = float(angle_about(axis, rotation))
                joint_qd[dof] = float(wp.dot(axis, angular_rate))
            elif joint_type == JointType.PRISMATIC:
                axis = widen_axis(joint_axis[dof])
                joint_q[coord] = float(wp.dot(axis, shift))
                joint_qd[dof] = float(wp.dot(axis, shift_rate))
            elif joint_type == JointType.BALL:
                write_rotation(joint_q, coord, rotation)
                write_vec3(joint_qd, dof, angular_rate)
            elif joint_type == FREE_BELOW:
                write_vec3(joint_q, coord, shift)
                write_rotation(joint_q, coord + 3, rotation)
                com_rate = velocity + wp.cross(omega, com_arm - child_arm)
                write_vec3(joint_qd, dof, wp.quat_rotate_inv(frame_r, com_rate))
                write_vec3(joint_qd, dof + 3, angular_rate)
            elif joint_type == JointType.FREE:
                write_vec3(joint_q, coord, shift)
                write_rotation(joint_q, coord + 3, rotation)
                for k in range(6):
                    joint_qd[dof + k] = body_qd[body][k]
            elif joint_type == JointType.D6:
                linear_count = topology.node_linear_count[index]
                angular_count = topology.node_dof_count[index] - linear_count
                a = vec3()
                b = vec3()
                c = vec3()
                if linear_count > 0:
                    a = widen_axis(joint_axis[dof])
                if linear_count > 1:
                    b = widen_axis(joint_axis[dof + 1])
                if linear_count > 2:
                    c = widen_axis(joint_axis[dof + 2])
                distances = solve_axes(a, b, c, linear_count, shift)
                rates = solve_axes(a, b, c, linear_count, shift_rate)
                for k in range(linear_count):
                    joint_q[coord + k] = float(distances[k])
                    joint_qd[dof + k] = float(rates[k])
                if angular_count > 0:
                    first = dof + linear_count
                    angles = vec3()
                    a = widen_axis(joint_axis[first])
                    if angular_count == 1:
                        angles[0] = angle_about(a, rotation)
                    else:
                        b = widen_axis(joint_axis[first + 1])
                        c = wp.normalize(wp.cross(a, b))
                        if angular_count > 2:
                            c = widen_axis(joint_axis[first + 2])
                        angles = successive_angles(a, b, c, angular_count, rotation)
                        second, third, _reached = rotate_axes(a, b, c, angles)
                        b = second
                        c = third
                    rates = solve_axes(a, b, c, angular_count, angular_rate)
                    for k in range(angular_count):
                        joint_q[coord + linear_count + k] = float(angles[k])
                        joint_qd[first + k] = float(rates[k])

    return SimpleNamespace(compute_joint_state=compute_joint_state)


def eval_ik(
    model: Model,
    state: State,
    joint_q: wp.array,
    joint_qd: wp.array,
    mask: wp.array | None = None,
    indices: wp.array | None = None,
    body_flag_filter: int = BodyFlags.ALL,
    *,
    worlds: wp.array | None = None,
) -> None:
    """Write joint coordinates and velocities that agree with the body poses and velocities of a state.

    Angles are in (-π, π]; of the two sets of angles of a D6 joint with three angular axes, the one with the
    smaller middle angle is taken. Quaternions may come out with the other sign.

    Args:
        model: Model of the joints.
        state: State whose `body_q` and `body_qd` are read.
        joint_q: Array to write coordinates to, shape [coord].
        joint_qd: Array to write velocities to, in the public convention, shape [dof].
        mask: Articulations whose joints are written, shape [articulation]. All if None.
        indices: Indices of articulations in place of a mask, int32, on the model's device. Entries that name
            no articulation have no effect; a solver of the model reports them.
        body_flag_filter: `BodyFlags` of the bodies whose joints are written: those that move them.
        worlds: Worlds concerned, int32; all if None.

    Raises:
        TypeError: If the mask is not made of truth values.
        ValueError: If both `mask` and `indices` are given, or an array has the wrong shape or device.
    """
    check_model(model, "eval_ik")
    if mask is not None and indices is not None:
        raise ValueError("eval_ik: both mask and indices were given; pass the articulations one way only.")
    check_state(model, state, "eval_ik: state")
    check_array(model, joint_q, (model.joint_coord_count,), wp.float32, "eval_ik: joint_q")
    check_array(model, joint_qd, (model.joint_dof_count,), wp.float32, "eval_ik: joint_qd")
    if indices is not None:
        check_indices(model, indices, "eval_ik: indices")
        mask = wp.zeros(model.articulation_count, dtype=wp.bool, device=model.device)
        launch_kernel(
            _mark_articulation, dim=indices.size, inputs=[indices], outputs=[mask], device=model.device
        )
    selected = check_worlds(model, worlds, what="eval_ik")
    compute_joint_states(
        model,
        state,
        selected,
        joint_q,
        joint_qd,
        mask=check_mask(model, mask, "eval_ik"),
        body_flag_filter=int(body_flag_filter),
    )


def compute_joint_states(
    model: Model,
    state: State,
    worlds: wp.array,
    joint_q: wp.array,
    joint_qd: wp.array,
    *,
    mask: wp.array | None = None,
    joint_mask: wp.array | None = None,
    body_flag_filter: int = int(BodyFlags.ALL),
) -> None:
    """Write coordinates and velocities of chosen joints of some worlds; see `eval_ik`.

    Args:
        model: Model of the joints.
        state: State whose `body_q` and `body_qd` are read.
        worlds: Worlds concerned.
        joint_q: Array to write coordinates to.
        joint_qd: Array to write velocities to.
        mask: Articulations, empty or None for all.
        joint_mask: Joints, None for all.
        body_flag_filter: `BodyFlags` of the bodies that they move.
    """
    launch_kernel(
        _kernels().compute_joint_state,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.structure.joint_parent,
            model.joint_X_p,
            model.joint_X_c,
            model.joint_axis,
            model.structure.joint_articulation,
            model.body_com,
            model.structure.body_flags,
            body_flag_filter,
            mask,
            joint_mask,
            state.body_q,
            state.body_qd,
        ],
        outputs=[joint_q, joint_qd],
        device=model.device,
    )


@wp.kernel(enable_backward=False, module="pluriverse.dynamics.inverse_kinematics_selection")
def _mark_articulation(
    indices: wp.array[int],  # [entry] articulation
    mask: wp.array[bool],  # [articulation]
):
    """Select the articulation of one entry; entries that name none are ignored."""
    thread, _ = wp.tid()
    articulation = indices[thread]
    if articulation >= 0 and articulation < mask.shape[0]:
        mask[articulation] = True
