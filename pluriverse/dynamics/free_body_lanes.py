"""Free bodies in lanes: what `integration.py` does to trees of one free body, for eight worlds at once.

Reads   joint_q of the old state; joint_X_p, joint_X_c, body_com; workspace: dof_velocity, dof_velocity_next,
        node_quat, node_composite, tree_spin, tree_prescribed
Writes  joint_q, joint_qd of the new state

Every lane makes the operations of `advance_joint` in their order, so it ends with the same bits.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.spin_lanes import SPIN_IN_LANES
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.lane_motion import LANE_MOTION
from pluriverse.math.lanes import lane_code
from pluriverse.model import Topology
from pluriverse.types import JointType

_TILE = """
    const int kind = topology.world_template.data[worlds.data[first]];
    const int first_node = topology.template_node.data[kind];
    const int first_tree = topology.template_tree.data[kind];
    const int tree_count = topology.template_tree.data[kind + 1] - first_tree;
    auto is_lone = [&](int tree) {
        const int root = first_node + topology.tree_node.data[tree];
        return topology.node_type.data[root] == FREE
            && topology.tree_dof_end.data[tree] - topology.tree_dof.data[tree] == 6;
    };
    int body_count = 0;
    for (int tree = first_tree; tree < first_tree + tree_count; ++tree) body_count += is_lone(tree);
    if (body_count == 0) return 0;
    int node_base[8], body_base[8], coord_base[8], dof_base[8], tree_base[8], at[8];
    for (int l = 0; l < 8; ++l) {
        const int world = worlds.data[first + l];
        node_base[l] = topology.world_joint.data[world];
        body_base[l] = topology.world_body.data[world];
        coord_base[l] = topology.world_coord.data[world];
        dof_base[l] = topology.world_dof.data[world];
        tree_base[l] = topology.world_tree.data[world];
    }
    // `count` numbers of each world, `width` for each entity.
    auto fetch = [&](const auto* from, const int* base, int entity, int width, int count, void* to) {
        for (int l = 0; l < 8; ++l) at[l] = (base[l] + entity) * width;
        gather(from, at, count, (T*)to);
    };
    auto put = [&](const T* from, int count, float* to, const int* base, int entry) {
        for (int l = 0; l < 8; ++l) at[l] = base[l] + entry;
        scatter(from, count, to, at);
    };
    auto select = [](auto mask, const V3& a, const V3& b) {
        return V3(mask ? a[0] : b[0], mask ? a[1] : b[1], mask ? a[2] : b[2]);
    };
    auto is_set = [](const V3& a) { return (a[0] != T(0)) | (a[1] != T(0)) | (a[2] != T(0)); };
    auto quat_normalize = [](const Q& a) {
        const T scale = T(1) / __builtin_elementwise_sqrt(a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w);
        return Q(scale * a.x, scale * a.y, scale * a.z, scale * a.w);
    };
"""

# How each body turns. Nothing is written before it is known that none turns too far: the new state may be the
# old one.
_TURN = """
    struct Turn { Q step; V3 omega; };
    Turn* turns = (Turn*)PLURIVERSE_LANES(body_count * (int)(sizeof(Turn) / sizeof(T)));
    int body_index = 0;
    for (int tree = first_tree; tree < first_tree + tree_count; ++tree) {
        if (!is_lone(tree)) continue;
        const int own = tree - first_tree;
        for (int l = 0; l < 8; ++l) if (data.tree_prescribed.data[tree_base[l] + own] != 0) return 0;
        V10 composite;
        V3 omega, impulse;
        const int root = topology.tree_node.data[tree], dof = topology.tree_dof.data[tree];
        fetch((const S*)data.node_composite.data, node_base, root, 10, 10, &composite);
        fetch(data.dof_velocity_next.data, dof_base, dof, 1, 3, &omega);
        fetch((const S*)data.tree_spin.data, tree_base, own, 3, 3, &impulse);
        const M3 inertia = spin_inertia(composite);
        const V3 momentum = wp::add(wp::mul(inertia, omega), impulse);
        const M3 inverse = inverse_matrix(inertia);
        Turn& turn = turns[body_index++];
        if (!drift(inverse, momentum, turn.step)) return 0;
        turn.omega = wp::quat_rotate(
            turn.step, wp::mul(inverse, wp::quat_rotate_inv(turn.step, momentum)));
    }
"""

_ADVANCE = """
    const T rate = T(S(1) / dt);
    body_index = 0;
    for (int tree = first_tree; tree < first_tree + tree_count; ++tree) {
        if (!is_lone(tree)) continue;
        const Turn& turn = turns[body_index++];
        const Q& step = turn.step;
        const int root = topology.tree_node.data[tree], dof = topology.tree_dof.data[tree];
        const int joint = topology.node_joint.data[first_node + root];
        const int body = topology.node_body.data[first_node + root];
        const int coord = topology.node_coord.data[first_node + root];
        T mass[4], velocity_old[3], next[6], turned[4], parent[7], arm_at[3], com_at[3], q[7];
        fetch((const S*)data.node_composite.data, node_base, root, 10, 4, mass);
        fetch(data.dof_velocity.data, dof_base, dof, 1, 3, velocity_old);
        fetch(data.dof_velocity_next.data, dof_base, dof, 1, 6, next);
        fetch((const S*)data.node_quat.data, node_base, root, 4, 4, turned);
        fetch((const float*)joint_X_p.data, node_base, joint, 7, 7, parent);
        fetch((const float*)joint_X_c.data, node_base, joint, 7, 3, arm_at);
        fetch((const float*)body_com.data, body_base, body, 3, 3, com_at);
        fetch(joint_q.data, coord_base, coord, 1, 7, q);

        const V3 omega(velocity_old[0], velocity_old[1], velocity_old[2]);
        const V3 omega_next(next[0], next[1], next[2]), linear_next(next[3], next[4], next[5]);
        const Q rotation(turned[0], turned[1], turned[2], turned[3]);
        const V3 centre = wp::mul(V3(mass[1], mass[2], mass[3]), T(1) / mass[0]);
        // The velocity of the origin includes the rotation about the centre of mass.
        V3 of_centre = wp::add(linear_next, wp::cross(omega_next, centre));
        of_centre = wp::add(of_centre, wp::mul(wp::cross(omega, wp::cross(omega, centre)), T(dt)));
        const V3 centre_next = wp::quat_rotate(step, centre);
        const V3 velocity_next = wp::sub(of_centre, wp::cross(turn.omega, centre_next));
        const V3 velocity = wp::add(of_centre, wp::mul(wp::sub(centre, centre_next), rate));
        const Q rotation_next = quat_normalize(wp::mul(step, rotation));

        const Q anchor = quat_renormalize(Q(parent[3], parent[4], parent[5], parent[6]));
        const V3 arm(arm_at[0], arm_at[1], arm_at[2]);
        V3 shift = wp::mul(velocity, T(dt));
        const V3 turning = wp::sub(wp::quat_rotate(rotation_next, arm), wp::quat_rotate(rotation, arm));
        shift = select(is_set(arm), wp::add(shift, turning), shift);
        const auto is_turned = is_set(V3(anchor.x, anchor.y, anchor.z));
        shift = select(is_turned, wp::quat_rotate_inv(anchor, shift), shift);
        V3 axis(step.x, step.y, step.z);
        axis = select(is_turned, wp::quat_rotate_inv(anchor, axis), axis);
        const Q joint_step(axis[0], axis[1], axis[2], step.w);
        const Q joint_rotation = quat_normalize(wp::mul(joint_step, Q(q[3], q[4], q[5], q[6])));
        const T q_next[7] = {
            q[0] + shift[0], q[1] + shift[1], q[2] + shift[2],
            joint_rotation.x, joint_rotation.y, joint_rotation.z, joint_rotation.w,
        };
        put(q_next, 7, joint_q_out.data, coord_base, coord);
        const V3 com = wp::quat_rotate(rotation_next, V3(com_at[0], com_at[1], com_at[2]));
        const V3 of_com = wp::add(velocity_next, wp::cross(turn.omega, com));
        const T qd_next[6] = { of_com[0], of_com[1], of_com[2], turn.omega[0], turn.omega[1], turn.omega[2] };
        put(qd_next, 6, joint_qd_out.data, dof_base, topology.node_qd.data[first_node + root]);
    }
    return 1;
"""


@made_once
def free_body_lanes(real: Any) -> SimpleNamespace:
    """Return the function that advances free bodies, for scalars of type `real`.

    `advance_free_bodies(worlds, first, topology, joint_X_p, joint_X_c, body_com, joint_q, data, dt,
    joint_q_out, joint_qd_out) -> int` advances all trees of one free body, at constant angular momentum, of
    the eight entries of `worlds` from `first` on, which are a tile. Returns 0, having written nothing, if
    there is none, one of them turns too far for lanes, or the motion of one is prescribed. On a GPU it always
    does.
    """
    data_struct = workspace_struct(real)
    text = LANE_MOTION + SPIN_IN_LANES + _TILE + _TURN + _ADVANCE
    text = text.replace("FREE", str(int(JointType.FREE)))

    @wp.func_native(lane_code(real, text) + "return 0;")
    def advance_free_bodies(
        worlds: wp.array[int],
        first: int,
        topology: wp.ref[Topology],
        joint_X_p: wp.array[wp.transform],
        joint_X_c: wp.array[wp.transform],
        body_com: wp.array[wp.vec3],
        joint_q: wp.array[float],
        data: wp.ref[data_struct],
        dt: real,
        joint_q_out: wp.array[float],
        joint_qd_out: wp.array[float],
    ) -> int: ...

    return SimpleNamespace(advance_free_bodies=advance_free_bodies)
