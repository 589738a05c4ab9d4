"""Balance stage: velocity products change neither the momentum nor the kinetic energy of a tree.

Reads   mass properties, armature, damping; the workspace of the free-motion stage, dof_velocity_next
        the new joint state and, in the workspace, the poses and velocities that belong to it
Writes  joint_q, joint_qd of the new state; workspace: dof_product, dof_response, tree_regime

A step is a kick by all forces and a drift without any, as in `spin.py`. The solver finds w, the velocity at
the end of the step for the inertia at its start, with the velocity-product force c taken explicitly. The kick
alone gives

    v_k = w + u,   u = h A^-1 c .

Without forces a tree conserves its kinetic energy T and, if its root is free, its momenta p and L. Explicit
velocity products do not conserve them: a freely rotating chain of links gains energy without bound, at a rate
of omega^2 h. So the coordinates move with w + u / 2, the mean velocity of the drift, to q_1. There the tree
gets the momenta and the energy of v_k at q_0:

- The whole tree is shifted and rotated: its centre of mass has moved by h p / m, and it has rotated with the
  mean angular velocity, that of L at the mean of the old and the new inertia.
- A rigid velocity of the whole tree is added, so that M(q_1) w has p and L. This is the smallest change in
  the norm of M.
- The motion of the joints at p = L = 0 is scaled to the rest of the kinetic energy.

If L alone would need more than T at q_1, L is shortened; this happens only where the step does not resolve
the motion. The velocity that c adds in a step is bounded, too (`kick.py`): where |u|_M is half of |v|_M, the
step no longer resolves the motion. `spin.py` handles trees of one body. Trees with kinematic roots
are left out, as these roots do work.

A drift has no forces. Contacts, drives or limits that hold a tree against its velocity products act all the
time: what they hold moves with w, their result. With w + u / 2 a foot would slide on the ground and a held
joint would turn. So a tree drifts only while the response of constraints, w - v*, is small compared with u.
Drives and limits hold the joints of a tree in the air, but change neither p nor L: its joints move with w and
keep their velocities, and the tree as a whole still gets the momenta.

A drift from w + u / 2 lets fast modes grow, at the cost of slow ones, where forces such as weight act beside
the products: a rope of 30 links of 5 cm was 0.5 m off after half a second at 2 ms. With w, and the energy of
v_k, it is 3 to 7 mm off, and 24 to 33 with w alone. A double pendulum loses a fifth of its energy in 20 s at
2.5 ms with w, a hundredth with w + u / 2. So trees of many joints that hang on the world *swing*: they move
with w and keep the energy.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.rigid_groups import rigid_groups_struct
from pluriverse.dynamics.tree_states import tree_states_struct
from pluriverse.dynamics.tree_sums import tree_sum_functions
from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.dense import packed_rows
from pluriverse.math.lanes import is_tile, lane_count
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions, vec10_type
from pluriverse.model import Model, State, Topology
from pluriverse.types import JointType

# |w - v*|_A / |u|_A from which a tree is held. Constraints that take up the products make it 1 or more; the
# dry friction of gears in a robot that tumbles at some rad/s makes it a tenth.
CONSTRAINED_RATIO = wp.constant(0.5)
# Values of `tree_regime`: products are negligible, the tree drifts, constraints hold it, or hold its joints,
# or it swings.
CALM, DRIFTING, CONSTRAINED, JOINTS_CONSTRAINED, SWINGING = (wp.constant(value) for value in range(5))
# Degrees of freedom beyond which a tree that hangs on the world swings.
SWINGING_DOFS = wp.constant(12)
# Share of the joints in the kinetic energy below which it is lost in rounding.
JOINT_SHARE_MIN = wp.constant(1e-9)
# Worlds of a tile that are to be balanced, from which on all eight are summed in lanes. That takes as long as
# about two of them one by one.
TILE_DUE_MIN = wp.constant(3)
# Largest factor by which a step speeds up the motion of the joints.
SCALE_MAX = wp.constant(1.5)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    vec10 = vec10_type(real)
    mat33 = mat33_type(real)
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    states_struct = tree_states_struct(real)
    spatial_of = spatial_functions(real)
    spatial, angular_part, linear_part = spatial_of.spatial, spatial_of.angular_part, spatial_of.linear_part
    quat = quat_type(real)
    matrix_from_quat = rotation_functions(real).matrix_from_quat
    quat_from_rotation_vector = rotation_functions(real).quat_from_rotation_vector
    quat_normalize = rotation_functions(real).quat_normalize
    widen_vec3 = conversion_functions(real).widen_vec3
    widen_rotation = conversion_functions(real).widen_rotation
    write_vec3 = conversion_functions(real).write_vec3
    read_vec3 = conversion_functions(real).read_vec3
    read_rotation = conversion_functions(real).read_rotation
    write_rotation = conversion_functions(real).write_rotation
    rows_multiply = packed_rows(real).rows_multiply
    numbers = number_functions(real)
    numbers_add, numbers_subtract = numbers.numbers_add, numbers.numbers_subtract
    numbers_dot, weighted_square = numbers.numbers_dot, numbers.weighted_square
    sum_tree, sum_tile = tree_sum_functions(real).sum_tree, tree_sum_functions(real).sum_tile
    module = f"pluriverse.dynamics.balance.{precision_name(real)}"

    @wp.func
    def inertia_at_centre(total: vec10) -> mat33:
        """Return the rotational inertia of a composite about its centre of mass."""
        scale = real(1.0) / total[0]
        hx, hy, hz = total[1], total[2], total[3]
        xx = total[4] - scale * (hy * hy + hz * hz)
        yy = total[7] - scale * (hx * hx + hz * hz)
        zz = total[9] - scale * (hx * hx + hy * hy)
        xy = total[5] + scale * hx * hy
        xz = total[6] + scale * hx * hz
        yz = total[8] + scale * hy * hz
        return mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)

    @wp.func
    def rigid_velocity(total: vec10, inverse: mat33, momentum: vec6) -> vec6:
        """Return the velocity of a composite as one rigid body; `inverse` is that of its inertia."""
        centre = vec3(total[1], total[2], total[3]) / total[0]
        linear = linear_part(momentum)
        omega = inverse * (angular_part(momentum) - wp.cross(centre, linear))
        return spatial(omega, linear / total[0] - wp.cross(omega, centre))

    @wp.kernel(enable_backward=False, module=module)
    def classify_tree_motions(
        worlds: wp.array[int],  # [slot]
        stride: int,  # number of threads, see `world_thread_count`
        topology: Topology,
        dt: real,  # s
        data: data_struct,
        world_due: wp.array[int],  # [world] 1: the joint state is to be balanced
    ):
        thread, _ = wp.tid()
        for slot in range(thread, worlds.shape[0], stride):
            world = worlds[slot]
            if world < 0:
                continue
            template = topology.world_template[world]
            first_dof = topology.template_dof[template]
            first_tree = topology.template_tree[template]
            first_node = topology.template_node[template]
            tree_base = topology.world_tree[world]
            dof_base = topology.world_dof[world]
            due = int(0)
            for tree in range(topology.template_tree[template + 1] - first_tree):
                if data.tree_regime[tree_base + tree] == CALM:
                    continue
                begin = topology.tree_dof[first_tree + tree]
                end = topology.tree_dof_end[first_tree + tree]
                first = dof_base + begin
                constrained = numbers_subtract(
                    data.dof_velocity_next, data.dof_velocity_free, first, end - begin, data.dof_response
                )
                if constrained == 0:
                    due = 1
                    continue
                products = dt * numbers_dot(data.dof_kick, data.dof_product, first, end - begin)
                rows_multiply(
                    data.mass_row,
                    topology.world_row[world],
                    topology.dof_parent,
                    topology.dof_depth,
                    topology.dof_row,
                    first_dof,
                    begin,
                    end,
                    data.dof_response,
                    dof_base,
                    data.dof_product,
                    dof_base,
                )
                response = numbers_dot(data.dof_response, data.dof_product, first, end - begin)
                limit = real(CONSTRAINED_RATIO) * real(CONSTRAINED_RATIO) * products
                if response > limit:
                    outside = response
                    root = topology.tree_node[first_tree + tree]
                    if topology.node_type[first_node + root] == JointType.FREE:
                        # Only forces from outside the tree act on its root.
                        composite = data.node_composite[topology.world_joint[world] + root]
                        wrench = vec6()
                        for k in range(6):
                            wrench[k] = data.dof_product[dof_base + begin + k]
                        inverse = wp.inverse(inertia_at_centre(composite))
                        outside = wp.dot(wrench, rigid_velocity(composite, inverse, wrench))
                    if outside > limit:
                        data.tree_regime[tree_base + tree] = CONSTRAINED
                        continue
                    data.tree_regime[tree_base + tree] = JOINTS_CONSTRAINED
                due = 1
            world_due[world] = due

    @wp.func
    def is_corrected(regime: int) -> bool:
        """Return whether the joint state of a tree is corrected."""
        if regime == DRIFTING:
            return True
        return regime == JOINTS_CONSTRAINED or regime == SWINGING  # kernels have no `in`

    @wp.func
    def conserve_momentum(
        world: int,
        # model
        topology: Topology,
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        joint_damping: wp.array[float],  # [dof] N s/m or N m s
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        dt: real,  # s
        data: data_struct,
        states: states_struct,  # at the end of the step
        # state out
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
    ):
        """Give the trees of a world momenta and energy of the kick, from their sums at the end."""
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        first_node = topology.template_node[template]
        first_dof = topology.template_dof[template]
        tree_base = topology.world_tree[world]
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        dof_base = topology.world_dof[world]
        for tree in range(topology.template_tree[template + 1] - first_tree):
            regime = data.tree_regime[tree_base + tree]
            if not is_corrected(regime):
                continue
            root = topology.tree_node[first_tree + tree]
            free = topology.node_type[first_node + root] == JointType.FREE
            begin = topology.tree_dof[first_tree + tree]
            end = topology.tree_dof_end[first_tree + tree]

            # Momenta and energy of v_k at the start, from A v_k, less the parts that are not the bodies'.
            moved = vec3()
            kick_share = wp.where(regime == DRIFTING, real(0.5), real(0.0))
            if free:
                for k in range(3):
                    dof = dof_base + begin + 3 + k
                    moved[k] = dt * (data.dof_velocity_next[dof] + kick_share * data.dof_kick[dof])
            numbers_add(data.dof_velocity_next, dof_base + begin, end - begin, real(1.0), data.dof_kick)
            rows_multiply(
                data.mass_row,
                topology.world_row[world],
                topology.dof_parent,
                topology.dof_depth,
                topology.dof_row,
                first_dof,
                begin,
                end,
                data.dof_kick,
                dof_base,
                data.dof_product,
                dof_base,
            )
            energy = numbers_dot(data.dof_product, data.dof_kick, dof_base + begin, end - begin)
            above = begin
            if free:
                above = begin + 6
            energy -= dt * weighted_square(
                data.dof_kick,
                joint_damping,
                dof_base,
                topology.dof_public,
                first_dof + above,
                dof_base + above,
                end - above,
            )
            energy *= real(0.5)
            before = data.node_composite[node_base + root]  # about the origin of the root body at the start
            momentum = vec6()
            if free:
                public = dof_base + topology.node_qd[first_node + root]
                com = data.node_com[node_base + root]
                origin = vec6()
                extra = vec6()  # of the public velocity, as in `mass_matrix.py`
                for k in range(6):
                    momentum[k] = data.dof_product[dof_base + begin + k]
                    origin[k] = data.dof_kick[dof_base + begin + k]
                    extra[k] = real(joint_armature[public + k]) + dt * real(joint_damping[public + k])
                omega = angular_part(origin)
                of_com = linear_part(origin) + wp.cross(omega, com)
                force = wp.cw_mul(
                    angular_part(extra), of_com
                )  # the first half is that of the linear velocity
                torque = wp.cw_mul(linear_part(extra), omega)
                energy -= real(0.5) * (wp.dot(force, of_com) + wp.dot(torque, omega))
                momentum -= spatial(torque + wp.cross(com, force), force)

            # All about the origin of the root body at the end.
            after = data.next_composite[tree_base + tree]
            momentum_next = data.next_momentum[tree_base + tree]
            energy_next = data.next_energy[tree_base + tree]

            target = vec6()
            rigid = vec6()
            rigid_next = vec6()
            step = quat(real(0.0), real(0.0), real(0.0), real(1.0))
            if free:
                linear = linear_part(momentum)
                centre = vec3(before[1], before[2], before[3]) / before[0]
                centre_next = vec3(after[1], after[2], after[3]) / after[0]
                spin = angular_part(momentum) - wp.cross(centre, linear)
                spin_next = angular_part(momentum_next) - wp.cross(centre_next, linear_part(momentum_next))
                inertia_next = inertia_at_centre(after)
                mean = real(0.5) * (inertia_at_centre(before) + inertia_next)
                # What the mean of v_k at q_0, which has the momentum, and w at q_1 is short of it.
                rotation_vector = real(0.5) * dt * (wp.inverse(mean) * (spin - spin_next))
                step = quat_from_rotation_vector(rotation_vector)
                # From here on, axes are those before this rotation. The centre of mass has moved straight.
                shift = centre + dt / before[0] * linear - wp.quat_rotate(step, centre_next)
                spin = wp.quat_rotate_inv(step, spin)
                linear = wp.quat_rotate_inv(step, linear)
                inverse = wp.inverse(inertia_next)
                # Where the step does not resolve the motion, L may need more than the energy.
                room = energy - real(0.5) * wp.dot(linear, linear) / before[0]
                turning = real(0.5) * wp.dot(spin, inverse * spin)
                if regime == DRIFTING and turning > room:
                    spin = wp.sqrt(wp.max(room, real(0.0)) / turning) * spin
                # The momentum about the new origin.
                target = spatial(spin + wp.cross(centre_next, linear), linear)
                rigid = rigid_velocity(after, inverse, momentum_next)
                rigid_next = rigid_velocity(after, inverse, target)
                energy -= real(0.5) * wp.dot(target, rigid_next)
                energy_next -= real(0.5) * wp.dot(momentum_next, rigid)

                joint = node_base + topology.node_joint[first_node + root]
                coord = topology.world_coord[world] + topology.node_coord[first_node + root]
                anchor = widen_rotation(wp.transform_get_rotation(joint_X_p[joint]))
                rotation_quat = data.node_quat[node_base + root]
                arm = wp.quat_rotate(
                    rotation_quat, widen_vec3(wp.transform_get_translation(joint_X_c[joint]))
                )
                correction = shift - moved + wp.quat_rotate(step, arm) - arm
                correction = wp.quat_rotate_inv(anchor, correction)
                write_vec3(joint_q, coord, read_vec3(joint_q, coord) + correction)
                axis = wp.quat_rotate_inv(anchor, vec3(step[0], step[1], step[2]))
                joint_step = quat(axis[0], axis[1], axis[2], step[3])
                joint_rotation = joint_step * read_rotation(joint_q, coord + 3)
                write_rotation(joint_q, coord + 3, quat_normalize(joint_rotation))

            scale = real(1.0)
            kinetic = wp.abs(energy) + real(0.5) * wp.dot(target, rigid_next)
            keeps_energy = regime == DRIFTING or regime == SWINGING  # kernels have no `in`
            if keeps_energy and energy_next > real(JOINT_SHARE_MIN) * kinetic:
                scale = wp.min(wp.sqrt(wp.max(energy, real(0.0)) / energy_next), real(SCALE_MAX))
            if free:
                velocity = states.node_velocity[node_base + root]
                velocity = rigid_next + scale * (velocity - rigid)
                rotation = matrix_from_quat(data.node_quat[node_base + root])
                arm = rotation * widen_vec3(body_com[body_base + topology.node_body[first_node + root]])
                omega = angular_part(velocity)
                of_centre = linear_part(velocity) + wp.cross(omega, arm)
                public_dof = dof_base + topology.node_qd[first_node + root]
                write_vec3(joint_qd, public_dof, wp.quat_rotate(step, of_centre))
                write_vec3(joint_qd, public_dof + 3, wp.quat_rotate(step, omega))
            for dof in range(first_dof + above, first_dof + end):
                public_dof = dof_base + topology.dof_public[dof]
                joint_qd[public_dof] = float(scale * real(joint_qd[public_dof]))

    @wp.func
    def is_due(worlds: wp.array[int], world_due: wp.array[int], slot: int) -> bool:
        """Return whether an entry of a list, which may have ended, is a world that is to be balanced."""
        if slot >= worlds.shape[0]:
            return False
        if worlds[slot] < 0:
            return False
        return world_due[worlds[slot]] != 0

    @wp.kernel(enable_backward=False, module=module)
    def conserve_momenta(
        worlds: wp.array[int],  # [slot]
        stride: int,  # number of threads, see `world_thread_count`
        lanes: int,  # entries that are taken at once
        # model
        topology: Topology,
        joint_X_p: wp.array[wp.transform],  # [joint] m, parent body frame
        joint_X_c: wp.array[wp.transform],  # [joint] m, child body frame
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        joint_damping: wp.array[float],  # [dof] N s/m or N m s
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        groups: groups_struct,
        dt: real,  # s
        data: data_struct,
        states: states_struct,  # at the end of the step
        world_due: wp.array[int],  # [world] 0: the joint state stays as it is
        # state out
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
    ):
        thread, _ = wp.tid()
        for tile in range(thread, (worlds.shape[0] + lanes - 1) // lanes, stride):
            first = lanes * tile
            due_count = int(0)
            for slot in range(first, first + lanes):
                if is_due(worlds, world_due, slot):
                    due_count += 1
            if due_count == 0:
                continue
            in_lanes = bool(False)
            if due_count >= TILE_DUE_MIN:
                if is_tile(worlds, first, topology.world_template):
                    # Larger ones would need too much of the stack.
                    in_lanes = states.template_plain[topology.world_template[worlds[first]]] != 0
            if in_lanes:
                sum_tile(worlds, first, topology, groups, joint_armature, data, states)
            for slot in range(first, first + lanes):
                if not is_due(worlds, world_due, slot):
                    continue
                world = worlds[slot]
                if not in_lanes:
                    template = topology.world_template[world]
                    for tree in range(
                        topology.template_tree[template + 1] - topology.template_tree[template]
                    ):
                        if is_corrected(data.tree_regime[topology.world_tree[world] + tree]):
                            sum_tree(topology, groups, joint_armature, data, states, world, tree)
                conserve_momentum(
                    world,
                    topology,
                    joint_X_p,
                    joint_X_c,
                    joint_armature,
                    joint_damping,
                    body_com,
                    dt,
                    data,
                    states,
                    joint_q,
                    joint_qd,
                )

    return SimpleNamespace(
        classify_tree_motions=classify_tree_motions,
        conserve_momenta=conserve_momenta,
    )


def classify_tree_motions(model: Model, worlds: wp.array, workspace: Workspace, dt: float) -> None:
    """Mark in `tree_regime` the trees that constraints hold, by `dof_velocity_next`.

    `workspace.world_due` then says which worlds `conserve_momenta` will change.
    """
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(workspace.real).classify_tree_motions,
        dim=threads,
        inputs=[worlds, threads, model.topology, workspace.real(dt), workspace.data],
        outputs=[workspace.world_due],
        device=model.device,
    )


def conserve_momenta(model: Model, worlds: wp.array, state: State, workspace: Workspace, dt: float) -> None:
    """Give the new joint state the momenta and the energy of the kick, after `eval_body_state`.

    Only worlds in `workspace.world_due` are changed.
    """
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(workspace.real).conserve_momenta,
        dim=threads,
        inputs=[
            worlds,
            threads,
            lane_count(model.device),
            model.topology,
            model.joint_X_p,
            model.joint_X_c,
            model.joint_armature,
            model.joint_damping,
            model.body_com,
            workspace.groups.data,
            workspace.real(dt),
            workspace.data,
            workspace.tree_states,
            workspace.world_due,
        ],
        outputs=[state.joint_q, state.joint_qd],
        device=model.device,
    )
