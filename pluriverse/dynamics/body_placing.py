"""Placing: tree states, and body poses and velocities, of worlds from their joint state.

Reads   joint_q, joint_qd; joint frames and axes, body_com, rigid groups
Writes  tree states, body_q, body_qd

On a CPU a thread takes eight entries of the list of worlds. Worlds of one template without ball
joints, and free joints below bodies, are placed together, in lanes (`body_placing_lanes.py`), all others one
by one.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.body_placing_lanes import placing_lanes
from pluriverse.dynamics.joint_frames import joint_functions
from pluriverse.dynamics.rigid_groups import (
    RigidGroups,
    group_functions,
    is_welded,
    rigid_groups_struct,
)
from pluriverse.dynamics.tree_states import tree_states_struct
from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.lanes import lane_count
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.records import record_functions
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, Topology
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import JointType


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    quat = quat_type(real)
    mat33 = mat33_type(real)
    groups_struct = rigid_groups_struct(real)
    data_struct = tree_states_struct(real)
    numbers = record_functions(float)
    numbers_kept, keep_numbers = numbers.is_kept, numbers.keep
    place_tile = placing_lanes(real).place_tile
    child_pose = joint_functions(real).child_pose
    scalar_rotation = joint_functions(real).scalar_rotation
    scalar_child_pose = joint_functions(real).scalar_child_pose
    matrix_from_quat = rotation_functions(real).matrix_from_quat
    move_along_axis = joint_functions(real).move_along_axis
    child_from_joint_frame = joint_functions(real).child_from_joint_frame
    chain_rotation, attach_welded = group_functions(real).chain_rotation, group_functions(real).attach_welded
    quat_renormalize = rotation_functions(real).quat_renormalize
    spatial = spatial_functions(real).spatial
    angular_part = spatial_functions(real).angular_part
    linear_part = spatial_functions(real).linear_part
    widen_vec3 = conversion_functions(real).widen_vec3
    widen_rotation = conversion_functions(real).widen_rotation
    read_vec3 = conversion_functions(real).read_vec3

    @wp.func
    def is_scalar(joint_type: int) -> bool:
        """Return whether a joint is a hinge or a slide."""
        return joint_type == JointType.REVOLUTE or joint_type == JointType.PRISMATIC

    @wp.func
    def is_selected(selected: wp.array[int], joint: int) -> bool:
        """Return whether the body that a joint moves is to be updated."""
        if selected.shape[0] == 0:
            return True
        return selected[joint] != 0

    @wp.func
    def follows_carrier(
        topology: wp.ref[Topology], selected: wp.array[int], first_node: int, node_base: int, local_node: int
    ) -> bool:
        """Return whether a body has its ancestor on the carrier of its group, and all between them, too."""
        ancestor = int(local_node)
        result = bool(True)
        while is_welded(topology, first_node + ancestor):
            if selected[node_base + topology.node_joint[first_node + ancestor]] == 0:
                result = False
                break
            ancestor = topology.node_parent[first_node + ancestor]
        return result

    @wp.func
    def write_body(
        body_q: wp.array[wp.transform],
        body_qd: wp.array[wp.spatial_vector],
        body: int,
        rotation: quat,
        position: vec3,  # m, of the origin
        linear: vec3,  # m/s, of the centre of mass
        omega: vec3,  # rad/s
    ):
        """Write pose and velocity of a body."""
        body_q[body] = wp.transform(
            wp.vec3(float(position[0]), float(position[1]), float(position[2])),
            wp.quat(float(rotation[0]), float(rotation[1]), float(rotation[2]), float(rotation[3])),
        )
        body_qd[body] = wp.spatial_vector(
            float(linear[0]),
            float(linear[1]),
            float(linear[2]),
            float(omega[0]),
            float(omega[1]),
            float(omega[2]),
        )

    @wp.func
    def place_world(
        world: int,
        # model
        topology: wp.ref[Topology],
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        groups: wp.ref[groups_struct],
        selected: wp.array[int],  # [joint] 0: leave its body as it is; empty: update all
        due: wp.array[int],  # [world] 0: leave it as it is, else only roots have moved; empty: update all
        unsettled: wp.array[int],  # [world] 1: write no bodies; empty: write those of all worlds
        partly: int,  # 1: write only bodies that the next step reads
        # joint state
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        # tree states
        data: wp.ref[data_struct],
        # body state; where it is not written, worlds with tree states of this joint state are skipped
        body_q: wp.array[wp.transform],  # [body] m, xyzw
        body_qd: wp.array[wp.spatial_vector],  # [body] m/s of the centre of mass, rad/s
    ):
        """Place the bodies of one world."""
        if world < 0:
            return  # an entry of a list made on the device that names no world
        if due.shape[0] > 0:
            if due[world] == 0:
                return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        coord_base = topology.world_coord[world]
        dof_base = topology.world_dof[world]
        tree_base = topology.world_tree[world]
        coord_count = data.template_coord_count[template]
        world_dof_count = topology.template_dof[template + 1] - topology.template_dof[template]
        writes = body_q.shape[0] > 0
        if unsettled.shape[0] > 0:
            if unsettled[world] != 0:
                writes = False
        if selected.shape[0] > 0:
            data.world_groups[world] = 0  # parts of two states
        else:
            if not writes and data.world_groups[world] == groups.world_made[world]:
                same = numbers_kept(joint_q, data.joint_q, coord_base, coord_count)
                if same * numbers_kept(joint_qd, data.joint_qd, dof_base, world_dof_count) != 0:
                    return
            keep_numbers(joint_q, data.joint_q, coord_base, coord_count)
            keep_numbers(joint_qd, data.joint_qd, dof_base, world_dof_count)
            data.world_groups[world] = groups.world_made[world]
        node_count = topology.template_node[template + 1] - first_node
        if selected.shape[0] == 0 and due.shape[0] == 0:
            # Sines are calls, around which the recursion would have to keep all its numbers in memory.
            for local_node in range(node_count):
                index = first_node + local_node
                joint_type = topology.node_type[index]
                if is_scalar(joint_type):
                    node = node_base + local_node
                    data.node_turn[node] = scalar_rotation(
                        joint_type,
                        real(joint_q[coord_base + topology.node_coord[index]]),
                        groups.carriers[node].axis,
                        groups.carriers[node].rest,
                    )
        ref = vec3()
        # The previous carrier mostly carries the next one, so its data are kept in registers.
        loaded = int(-1)
        rotation = quat()
        matrix = mat33()
        offset = vec3()
        omega = vec3()
        linear = vec3()
        for local_node in range(node_count):
            index = first_node + local_node
            node = node_base + local_node
            joint = node_base + topology.node_joint[index]
            body = body_base + topology.node_body[index]
            carrier = topology.node_carrier[index]
            dof_count = topology.node_dof_count[index]
            joint_type = topology.node_type[index]
            welded = carrier >= 0 and dof_count == 0
            if selected.shape[0] == 0 and carrier != loaded and carrier >= 0:
                rotation = data.node_quat[node_base + carrier]
                matrix = matrix_from_quat(rotation)
                offset = data.node_offset[node_base + carrier]
                omega = angular_part(data.node_velocity[node_base + carrier])
                linear = linear_part(data.node_velocity[node_base + carrier])
                loaded = carrier
            if selected.shape[0] == 0 and welded:
                if writes and (partly == 0 or groups.node_is_read[index] != 0):
                    weld = groups.welds[node]
                    turned = quat_renormalize(chain_rotation(rotation, weld.rotation))
                    origin = ref + (offset + matrix * weld.position)
                    of_com = linear + wp.cross(omega, offset + matrix * weld.com)
                    write_body(body_q, body_qd, body, turned, origin, of_com, omega)
                continue
            if selected.shape[0] == 0 and is_scalar(joint_type) and carrier >= 0:
                # Most joints of most robots: what follows is the same for them, with more cases.
                own = groups.carriers[node]
                dof = dof_base + topology.node_qd[index]
                anchor_p = offset + matrix * own.position
                rotation, matrix, shift, axis = scalar_child_pose(
                    joint_type,
                    real(joint_q[coord_base + topology.node_coord[index]]),
                    own.axis,
                    data.node_turn[node],
                    own.child_position,
                    rotation,
                )
                offset = anchor_p + shift
                rate = real(joint_qd[dof]) * axis
                if joint_type == JointType.REVOLUTE:
                    omega += rate
                    linear += wp.cross(anchor_p, rate)
                else:
                    linear += rate
                if writes:
                    com_offset = offset + matrix * widen_vec3(body_com[body])
                    com_velocity = linear + wp.cross(omega, com_offset)
                    write_body(body_q, body_qd, body, rotation, ref + offset, com_velocity, omega)
                data.node_quat[node] = rotation
                data.node_offset[node] = offset
                data.node_velocity[node] = spatial(omega, linear)
                loaded = local_node
                continue
            frame_rotation = quat()
            frame_position = vec3()
            child_rotation = quat()
            child_position = vec3()
            com = vec3()
            if welded:
                weld = groups.welds[node]
                frame_rotation = weld.rotation
                frame_position = weld.position
                com = weld.com
            else:
                frame = groups.carriers[node]
                frame_rotation = frame.rotation
                frame_position = frame.position
                child_rotation = frame.child_rotation
                child_position = frame.child_position
                com = widen_vec3(body_com[body])
            if selected.shape[0] > 0 and carrier >= 0:
                parent = topology.node_parent[index]
                if not follows_carrier(topology, selected, first_node, node_base, parent):
                    # The parent was left where it is, off its carrier.
                    carrier = parent
                    frame_rotation = widen_rotation(wp.transform_get_rotation(joint_X_p[joint]))
                    frame_position = widen_vec3(wp.transform_get_translation(joint_X_p[joint]))
                    if welded:
                        child = joint_X_c[joint]
                        frame_rotation, frame_position = attach_welded(
                            frame_rotation,
                            frame_position,
                            wp.quat_inverse(widen_rotation(wp.transform_get_rotation(child))),
                            widen_vec3(wp.transform_get_translation(child)),
                        )
                        com = frame_position + wp.quat_rotate(frame_rotation, widen_vec3(body_com[body]))
            if is_selected(selected, joint):
                public_dof = dof_base + topology.node_qd[index]
                anchor_p = frame_position
                if carrier < 0:
                    rotation = quat(real(0.0), real(0.0), real(0.0), real(1.0))
                    omega = vec3()
                    linear = vec3()
                else:
                    if carrier != loaded:
                        rotation = data.node_quat[node_base + carrier]
                        matrix = matrix_from_quat(rotation)
                        offset = data.node_offset[node_base + carrier]
                        omega = angular_part(data.node_velocity[node_base + carrier])
                        linear = linear_part(data.node_velocity[node_base + carrier])
                        loaded = carrier
                    anchor_p = offset + matrix * anchor_p
                if welded:
                    turned = quat_renormalize(chain_rotation(rotation, frame_rotation))
                    of_com = linear + wp.cross(omega, offset + matrix * com)
                    write_body(body_q, body_qd, body, turned, ref + anchor_p, of_com, omega)
                    data.node_quat[node] = turned
                    data.node_offset[node] = anchor_p
                    data.node_velocity[node] = spatial(omega, linear)
                    continue
                loaded = local_node
                coord = coord_base + topology.node_coord[index]
                shift = vec3()
                axis = vec3()
                anchor = rotation
                twist = vec6()  # of a D6 joint, about the origin of its parent frame
                if joint_type == JointType.D6:
                    axes = chain_rotation(rotation, frame_rotation)
                    linear_count = topology.node_linear_count[index]
                    for k in range(dof_count):
                        axes, shift, motion = move_along_axis(
                            k < linear_count,
                            joint_axis[public_dof + k],
                            real(joint_q[coord + k]),
                            axes,
                            shift,
                        )
                        twist += real(joint_qd[public_dof + k]) * motion
                    rotation, shift = child_from_joint_frame(axes, shift, child_rotation, child_position)
                    matrix = matrix_from_quat(rotation)
                elif is_scalar(joint_type):
                    rest = groups.carriers[node].rest
                    if carrier != topology.node_carrier[index]:
                        rest = quat_renormalize(chain_rotation(frame_rotation, child_rotation))
                    rotation, matrix, shift, axis = scalar_child_pose(
                        joint_type,
                        real(joint_q[coord]),
                        groups.carriers[node].axis,
                        scalar_rotation(joint_type, real(joint_q[coord]), groups.carriers[node].axis, rest),
                        child_position,
                        rotation,
                    )
                else:
                    rotation, shift, anchor = child_pose(
                        joint_type,
                        joint_q,
                        coord,
                        rotation,
                        frame_rotation,
                        child_rotation,
                        child_position,
                    )
                    matrix = matrix_from_quat(rotation)
                offset = anchor_p + shift
                if carrier < 0:
                    ref = offset
                    data.tree_ref[tree_base + topology.node_tree[index]] = ref
                    offset = vec3()
                    anchor_p = -shift  # anchor_p - ref would cancel far from the world's origin
                com_arm = matrix * com

                if joint_type == JointType.REVOLUTE:
                    rate = real(joint_qd[public_dof]) * axis
                    omega += rate
                    linear += wp.cross(anchor_p, rate)
                elif joint_type == JointType.PRISMATIC:
                    linear += real(joint_qd[public_dof]) * axis
                elif joint_type == JointType.BALL:
                    ball_rate = wp.quat_rotate(anchor, read_vec3(joint_qd, public_dof))
                    omega += ball_rate
                    linear += wp.cross(anchor_p, ball_rate)
                elif joint_type == JointType.D6:
                    omega += angular_part(twist)
                    linear += linear_part(twist) + wp.cross(anchor_p, angular_part(twist))
                elif joint_type == FREE_BELOW:
                    # Velocity of the centre of mass and angular velocity relative to the parent, in its joint
                    # frame.
                    free_rate = wp.quat_rotate(anchor, read_vec3(joint_qd, public_dof + 3))
                    omega += free_rate
                    linear += wp.quat_rotate(anchor, read_vec3(joint_qd, public_dof))
                    linear -= wp.cross(free_rate, offset + com_arm)
                elif joint_type == JointType.FREE:
                    omega = read_vec3(joint_qd, public_dof + 3)
                    linear = read_vec3(joint_qd, public_dof) - wp.cross(omega, com_arm)

                if writes:
                    of_com = linear + wp.cross(omega, offset + com_arm)
                    write_body(body_q, body_qd, body, rotation, ref + offset, of_com, omega)
            else:
                # The body stays as it is and carries selected joints further out.
                loaded = local_node
                rotation = widen_rotation(wp.transform_get_rotation(body_q[body]))
                matrix = matrix_from_quat(rotation)
                kept_position = widen_vec3(wp.transform_get_translation(body_q[body]))
                if topology.node_parent[index] < 0:
                    ref = kept_position
                offset = kept_position - ref
                omega = widen_vec3(wp.spatial_bottom(body_qd[body]))
                arm = offset + wp.quat_rotate(rotation, widen_vec3(body_com[body]))
                linear = widen_vec3(wp.spatial_top(body_qd[body])) - wp.cross(omega, arm)
            data.node_quat[node] = rotation
            data.node_offset[node] = offset
            data.node_velocity[node] = spatial(omega, linear)

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.body_placing.{precision_name(real)}")
    def compute_body_states(
        worlds: wp.array[int],  # [slot]
        stride: int,  # number of threads, see `world_thread_count`
        lanes: int,  # entries of `worlds` that are taken at once
        # model
        topology: Topology,
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        groups: groups_struct,
        selected: wp.array[int],  # [joint] 0: leave its body as it is; empty: update all
        due: wp.array[int],  # [world] 0: leave it as it is, else only roots have moved; empty: update all
        unsettled: wp.array[int],  # [world] 1: write no bodies; empty: write those of all worlds
        partly: int,  # 1: write only bodies that the next step reads
        # joint state
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        # tree states
        data: data_struct,
        # body state; where it is not written, worlds with tree states of this joint state are skipped
        body_q: wp.array[wp.transform],  # [body] m, xyzw
        body_qd: wp.array[wp.spatial_vector],  # [body] m/s of the centre of mass, rad/s
    ):
        thread, _ = wp.tid()
        for tile in range(thread, (worlds.shape[0] + lanes - 1) // lanes, stride):
            first = tile * lanes
            done = int(0)
            if lanes > 1 and selected.shape[0] == 0:
                done = place_tile(
                    worlds,
                    first,
                    topology,
                    joint_axis,
                    body_com,
                    groups,
                    due,
                    unsettled,
                    partly,
                    joint_q,
                    joint_qd,
                    data,
                    body_q,
                    body_qd,
                )
            for slot in range(first, wp.min(first + lanes, worlds.shape[0])):
                if (done >> (slot - first)) & 1 != 0:
                    continue
                place_world(
                    worlds[slot],
                    topology,
                    joint_X_p,
                    joint_X_c,
                    joint_axis,
                    body_com,
                    groups,
                    selected,
                    due,
                    unsettled,
                    partly,
                    joint_q,
                    joint_qd,
                    data,
                    body_q,
                    body_qd,
                )

    return SimpleNamespace(compute_body_states=compute_body_states)


def place_bodies(
    model: Model,
    worlds: wp.array,
    joint_q: wp.array,
    joint_qd: wp.array,
    bodies: tuple[wp.array, wp.array],
    selected: wp.array,
    due: wp.array,
    unsettled: wp.array,
    tree_states: Any,
    groups: RigidGroups,
    real: Any,
    *,
    partly: bool = False,
) -> None:
    """Place bodies from joint coordinates and velocities, of the worlds listed; entries of -1 name none.

    Args:
        model: Model of the worlds.
        worlds: The list.
        joint_q: Joint coordinates, shape [coord].
        joint_qd: Joint velocities in the public convention, shape [dof].
        bodies: `body_q` and `body_qd` to write. If both are empty, no bodies are written, and worlds are
            skipped of which the tree states are those of the joint state.
        selected: 0 for joints whose bodies are left as they are, shape [joint]; empty for none.
        due: 0 for worlds that are left as they are, shape [world]; in the others only roots may have other
            coordinates than in the last call. Empty: all worlds are placed.
        unsettled: 1 for worlds of which bodies need not be written, shape [world]; empty for none.
        tree_states: The tree states to write.
        groups: The rigid groups, up to date.
        real: Precision of the tree states.
        partly: Whether only bodies are written that the next step reads (`RigidGroups.node_is_read`).
    """
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(real).compute_body_states,
        dim=threads,
        inputs=[
            worlds,
            threads,
            lane_count(model.device),
            model.topology,
            model.joint_X_p,
            model.joint_X_c,
            model.joint_axis,
            model.body_com,
            groups.data,
            selected,
            due,
            unsettled,
            int(partly),
            joint_q,
            joint_qd,
        ],
        outputs=[tree_states, *bodies],
        device=model.device,
    )
