"""Placing bodies in lanes: what `body_placing.place_world` does, for eight worlds of one template at once.

Reads   joint_q, joint_qd; joint_axis, body_com, rigid groups
Writes  body_q, body_qd, tree states

Every lane makes the operations of `place_world` in their order, so it ends with the same bits (`math.lanes`).
Eight entries of a list of worlds need not all be placed: some name no world, are of another template, are not
due or have not changed. Their lanes place the world of another lane once more.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.rigid_groups import rigid_groups_struct
from pluriverse.dynamics.rigid_groups_lanes import GROUPS_IN_LANES
from pluriverse.dynamics.tree_states import tree_states_struct
from pluriverse.launch import made_once
from pluriverse.math.lane_motion import LANE_FRAMES, LANE_MOTION
from pluriverse.math.lanes import lane_code
from pluriverse.model import Topology
from pluriverse.types import JointType

# Fewest worlds of eight that are placed together: eight at once take about the time of two.
WORLDS_MIN = 3

# Which entries of the list are placed: those of the first world's template that are due and have changed.
_CHOOSE = """
    auto same = [](const float* a, const float* b, int count) {
        return __builtin_memcmp(a, b, sizeof(float) * count) == 0;
    };
    auto copy = [](float* to, const float* from, int count) {
        __builtin_memcpy(to, from, sizeof(float) * count);
    };
    const bool has_bodies = body_q.shape[0] > 0;
    int done = 0, writes = 0, kind = -1, member[8], members = 0;
    int chief = -1;  // the world that is read for all that are like it
    bool alike = true;
    for (int l = 0; l < 8 && first + l < worlds.shape[0]; ++l) {
        const int world = worlds.data[first + l];
        if (world < 0) continue;
        if (kind < 0) {
            kind = topology.world_template.data[world];
            chief = world;
        }
        if (topology.world_template.data[world] != kind) continue;
        if (!data.template_plain.data[kind]) return 0;
        done |= 1 << l;
        if (due.shape[0] > 0 && !due.data[world]) continue;
        const bool settled = unsettled.shape[0] == 0 || !unsettled.data[world];
        if (has_bodies && settled) {
            writes = 1;
        } else if (data.world_groups.data[world] == groups.world_made.data[world]) {
            const int dofs = topology.template_dof.data[kind + 1] - topology.template_dof.data[kind];
            const int coords = data.template_coord_count.data[kind];
            const int q = topology.world_coord.data[world], qd = topology.world_dof.data[world];
            if (same(joint_q.data + q, data.joint_q.data + q, coords)
                && same(joint_qd.data + qd, data.joint_qd.data + qd, dofs)) continue;
        }
        alike = alike && is_like(world, chief);
        member[members++] = world;
    }
    if (members == 0) return done;
    if (members < WORLDS_MIN) return 0;
"""

# Where the worlds of the lanes begin, and their joint states.
_LOAD = """
    const int coords = data.template_coord_count.data[kind];
    const int dofs = topology.template_dof.data[kind + 1] - topology.template_dof.data[kind];
    const int first_node = topology.template_node.data[kind];
    const int nodes = topology.template_node.data[kind + 1] - first_node;
    int node_base[8], body_base[8], coord_base[8], dof_base[8], tree_base[8];
    for (int l = 0; l < 8; ++l) {
        const int world = member[l < members ? l : 0];
        node_base[l] = topology.world_joint.data[world];
        body_base[l] = topology.world_body.data[world];
        coord_base[l] = topology.world_coord.data[world];
        dof_base[l] = topology.world_dof.data[world];
        tree_base[l] = topology.world_tree.data[world];
        if (l >= members) continue;
        copy(data.joint_q.data + coord_base[l], joint_q.data + coord_base[l], coords);
        copy(data.joint_qd.data + dof_base[l], joint_qd.data + dof_base[l], dofs);
        data.world_groups.data[world] = groups.world_made.data[world];
    }
    T* q = PLURIVERSE_LANES(coords);
    T* qd = PLURIVERSE_LANES(dofs);
    gather(joint_q.data, coord_base, coords, q);
    gather(joint_qd.data, dof_base, dofs, qd);
"""

# The function of `joint_frames` of this name, for lanes.
_FUNCTIONS = """
    auto scalar_rotation = [&](bool hinge, const T& position, const V3& axis, const Q& rest) {
        Q result = rest;
        if (hinge) {
            result = quat_from_axis_angle(axis, position);
            result = select(is_turned(rest), wp::mul(rest, result), result);
        }
        return quat_renormalize(result);
    };
    auto vec3 = [](const T* a) { return V3(a[0], a[1], a[2]); };
    auto quat = [](const T* a) { return Q(a[0], a[1], a[2], a[3]); };
"""

# Moving what belongs to one node or body, from single precision or to it in the case of bodies.
_MOVE = """
    typedef float F __attribute__((ext_vector_type(8)));
    typedef float F4 __attribute__((ext_vector_type(4), aligned(4)));
    typedef S S4 __attribute__((ext_vector_type(4), aligned(sizeof(S))));
    typedef S S2 __attribute__((ext_vector_type(2), aligned(sizeof(S))));
    #define PLURIVERSE_PART(row, ...) __builtin_shufflevector(row, row, __VA_ARGS__)
    // Numbers of a record of the groups, `from` in that of node 0; where worlds are alike, those of one.
    auto load_group = [&](const auto* from, int record, int node, int count, T* to) {
        const int width = record / (int)sizeof(S);
        if (alike) {
            const S* one = (const S*)from + (node_base[0] + node) * width;
            for (int k = 0; k < count; ++k) to[k] = T(one[k]);
            return;
        }
        int base[8];
        for (int l = 0; l < 8; ++l) base[l] = (node_base[l] + node) * width;
        gather((const S*)from, base, count, to);
    };
    auto load_turn = [&](int node) {
        T rows[8], turn[8];
        for (int l = 0; l < 8; ++l) {
            const S4 one = *(const S4*)(data.node_turn.data + node_base[l] + node);
            rows[l] = PLURIVERSE_PART(one, 0, 1, 2, 3, -1, -1, -1, -1);
        }
        transpose(rows, turn);
        return quat(turn);
    };
    // What worlds that are alike have in common, too: `body_com`, `joint_axis`.
    auto load_vector = [&](const auto& vectors, const int* first, int offset) {
        T vector[3];
        if (alike) {
            const float* one = (const float*)(vectors.data + first[0] + offset);
            return V3(T(S(one[0])), T(S(one[1])), T(S(one[2])));
        }
        int base[8];
        for (int l = 0; l < 8; ++l) base[l] = 3 * (first[l] + offset);
        gather((const float*)vectors.data, base, 3, vector);
        return vec3(vector);
    };
    // Bodies have 7 and 6 numbers: two blocks of four that overlap.
    auto write_body = [&](int body, const Q& rotation, const V3& at, const V3& linear, const V3& omega) {
        const T pose[7] = { at[0], at[1], at[2], rotation.x, rotation.y, rotation.z, rotation.w };
        const T velocity[6] = { linear[0], linear[1], linear[2], omega[0], omega[1], omega[2] };
        F in[8], rows[8];
        for (int k = 0; k < 7; ++k) in[k] = __builtin_convertvector(pose[k], F);
        in[7] = in[6];
        transpose(in, rows);
        for (int l = 0; l < 8; ++l) {
            float* to = (float*)body_q.data + 7 * (body_base[l] + body);
            *(F4*)to = PLURIVERSE_PART(rows[l], 0, 1, 2, 3);
            *(F4*)(to + 3) = PLURIVERSE_PART(rows[l], 3, 4, 5, 6);
        }
        for (int k = 0; k < 6; ++k) in[k] = __builtin_convertvector(velocity[k], F);
        in[6] = in[7] = in[5];
        transpose(in, rows);
        for (int l = 0; l < 8; ++l) {
            float* to = (float*)body_qd.data + 6 * (body_base[l] + body);
            *(F4*)to = PLURIVERSE_PART(rows[l], 0, 1, 2, 3);
            *(F4*)(to + 2) = PLURIVERSE_PART(rows[l], 2, 3, 4, 5);
        }
    };
    auto write_node = [&](int node, const Q& turn, const V3& at, const V3& omega, const V3& linear) {
        const T pose[8] = { turn.x, turn.y, turn.z, turn.w, at[0], at[1], at[2], at[2] };
        const T velocity[8] = {
            omega[0], omega[1], omega[2], linear[0], linear[1], linear[2], linear[2], linear[2],
        };
        T rows[8];
        transpose(pose, rows);
        for (int l = 0; l < 8; ++l) {
            S* to = (S*)(data.node_offset.data + node_base[l] + node);
            *(S4*)(data.node_quat.data + node_base[l] + node) = PLURIVERSE_PART(rows[l], 0, 1, 2, 3);
            *(S2*)to = PLURIVERSE_PART(rows[l], 4, 5);
            to[2] = rows[l][6];
        }
        transpose(velocity, rows);
        for (int l = 0; l < 8; ++l) {
            S* to = (S*)(data.node_velocity.data + node_base[l] + node);
            *(S4*)to = PLURIVERSE_PART(rows[l], 0, 1, 2, 3);
            *(S2*)(to + 4) = PLURIVERSE_PART(rows[l], 4, 5);
        }
    };
    auto write_turn = [&](int node, const Q& turn) {
        T in[8] = { turn.x, turn.y, turn.z, turn.w, turn.w, turn.w, turn.w, turn.w }, rows[8];
        transpose(in, rows);
        for (int l = 0; l < 8; ++l) {
            *(S4*)(data.node_turn.data + node_base[l] + node) = PLURIVERSE_PART(rows[l], 0, 1, 2, 3);
        }
    };
"""

# Carriers that are wanted again when others have been placed since are kept in the lanes.
_KEEP = """
    struct Carrier { Q rotation; V3 offset, omega, linear; };
    Carrier* kept = (Carrier*)PLURIVERSE_LANES(nodes * (int)(sizeof(Carrier) / sizeof(T)));
    bool* is_wanted = (bool*)__builtin_alloca(nodes);
    const int* carriers = topology.node_carrier.data + first_node;
    const int* dof_counts = topology.node_dof_count.data + first_node;
    for (int node = 0, loaded = -1; node < nodes; ++node) {
        is_wanted[node] = false;
        if (carriers[node] >= 0 && carriers[node] != loaded) is_wanted[loaded = carriers[node]] = true;
        if (carriers[node] < 0 || dof_counts[node] > 0) loaded = node;
    }
"""

_PLACE = """
    V3 ref(T(0), T(0), T(0)), offset = ref, omega = ref, linear = ref;
    const V3 zero = ref;
    const Q identity(T(0), T(0), T(0), T(1));
    Q rotation = identity;
    M3 matrix = matrix_from_quat(rotation);
    int loaded = -1;
    for (int node = 0; node < nodes; ++node) {
        const int index = first_node + node;
        const int body = topology.node_body.data[index];
        const int carrier = carriers[node];
        const int type = topology.node_type.data[index];
        if (carrier >= 0 && carrier != loaded) {
            const Carrier& one = kept[carrier];
            rotation = one.rotation;
            offset = one.offset;
            omega = one.omega;
            linear = one.linear;
            matrix = matrix_from_quat(rotation);
            loaded = carrier;
        }
        if (carrier >= 0 && dof_counts[node] == 0) {  // welded
            if (!writes || (partly && !groups.node_is_read.data[index])) continue;
            T weld[10];  // orientation, position, centre of mass
            load_group(&groups.welds.data->rotation, sizeof(*groups.welds.data), node, 10, weld);
            const V3 origin = wp::add(ref, wp::add(offset, wp::mul(matrix, vec3(weld + 4))));
            const V3 com = wp::add(offset, wp::mul(matrix, vec3(weld + 7)));
            write_body(body, quat_renormalize(chain_rotation(rotation, quat(weld))), origin,
                       wp::add(linear, wp::cross(omega, com)), omega);
            continue;
        }
        const bool hinge = type == REVOLUTE, slide = type == PRISMATIC;
        const T* position = q + topology.node_coord.data[index];
        const T* velocity = qd + topology.node_qd.data[index];
        T own[21];  // frame on the carrier, frame on the body, rest, axis
        load_group(&groups.carriers.data->rotation, sizeof(*groups.carriers.data), node, 21, own);
        const V3 child_position = vec3(own + 11), own_axis = vec3(own + 18);
        V3 anchor = vec3(own + 4), shift = zero, axis = zero;
        Q turn = identity;
        V6 twist;  // of a D6 joint, about the origin of its parent frame
        if (hinge || slide) {
            if (due.shape[0] > 0 && carrier >= 0) {
                turn = load_turn(node);
            } else {
                turn = scalar_rotation(hinge, *position, own_axis, quat(own + 14));
                if (due.shape[0] == 0) write_turn(node, turn);
            }
        }
        if (carrier < 0) {
            rotation = identity;
            omega = linear = zero;
        } else {
            anchor = wp::add(offset, wp::mul(matrix, anchor));
        }
        if (hinge || slide) {
            rotation = wp::mul(rotation, turn);
            matrix = matrix_from_quat(rotation);
            axis = wp::mul(matrix, own_axis);
            shift = wp::neg(wp::mul(matrix, child_position));
            if (slide) shift = wp::add(shift, wp::mul(*position, axis));
        } else {
            rotation = chain_rotation(rotation, quat(own));
            if (type == FREE) {
                shift = wp::quat_rotate(rotation, vec3(position));
                rotation = wp::mul(rotation, quat_normalize(quat(position + 3)));
            } else if (type == D6) {
                const int linear_count = topology.node_linear_count.data[index];
                for (int k = 0; k < dof_counts[node]; ++k) {
                    const V3 along = load_vector(joint_axis, dof_base, topology.node_qd.data[index] + k);
                    const V6 motion = move_along_axis(k < linear_count, along, position[k], rotation, shift);
                    twist = twist + wp::mul(velocity[k], motion);
                }
            }
            child_from_joint_frame(rotation, shift, quat(own + 7), child_position);
            matrix = matrix_from_quat(rotation);
        }
        offset = wp::add(anchor, shift);
        if (carrier < 0) {
            ref = offset;
            for (int l = 0; l < 8; ++l) {
                S* to = (S*)(data.tree_ref.data + tree_base[l] + topology.node_tree.data[index]);
                for (int k = 0; k < 3; ++k) to[k] = ref[k][l];
            }
            offset = zero;
            anchor = wp::neg(shift);
        }
        V3 arm = zero;  // of the centre of mass
        if (writes || type == FREE) arm = wp::mul(matrix, load_vector(body_com, body_base, body));
        if (hinge) {
            const V3 rate = wp::mul(*velocity, axis);
            omega = wp::add(omega, rate);
            linear = wp::add(linear, wp::cross(anchor, rate));
        } else if (slide) {
            linear = wp::add(linear, wp::mul(*velocity, axis));
        } else if (type == D6) {
            const V3 rate = angular_part(twist);
            omega = wp::add(omega, rate);
            linear = wp::add(linear, wp::add(linear_part(twist), wp::cross(anchor, rate)));
        } else if (type == FREE) {
            omega = vec3(velocity + 3);
            linear = wp::sub(vec3(velocity), wp::cross(omega, arm));
        }
        if (writes) {
            const V3 of_com = wp::add(linear, wp::cross(omega, wp::add(offset, arm)));
            write_body(body, rotation, wp::add(ref, offset), of_com, omega);
        }
        write_node(node, rotation, offset, omega, linear);
        if (is_wanted[node]) kept[node] = Carrier{rotation, offset, omega, linear};
        loaded = node;
    }
    return done;
"""


@made_once
def placing_lanes(real: Any) -> SimpleNamespace:
    """Return the function that places worlds in lanes, for scalars of type `real`.

    `place_tile(worlds, first, ...) -> int` places worlds among eight entries of `worlds` from `first` on. It
    returns a bit for each entry, of value 1 where nothing is left to do for it. Bodies of worlds that are
    unsettled may be written along with others.
    """
    groups_struct = rigid_groups_struct(real)
    data_struct = tree_states_struct(real)
    text = LANE_MOTION + LANE_FRAMES + GROUPS_IN_LANES + _CHOOSE + _LOAD + _FUNCTIONS + _MOVE + _KEEP + _PLACE
    for name, value in (
        ("WORLDS_MIN", WORLDS_MIN),
        ("REVOLUTE", int(JointType.REVOLUTE)),
        ("PRISMATIC", int(JointType.PRISMATIC)),
        ("FREE", int(JointType.FREE)),
        ("D6", int(JointType.D6)),
    ):
        text = text.replace(name, str(value))

    @wp.func_native(lane_code(real, text) + "return 0;")
    def place_tile(
        worlds: wp.array[int],
        first: int,
        topology: wp.ref[Topology],
        joint_axis: wp.array[wp.vec3],
        body_com: wp.array[wp.vec3],
        groups: wp.ref[groups_struct],
        due: wp.array[int],
        unsettled: wp.array[int],
        partly: int,
        joint_q: wp.array[float],
        joint_qd: wp.array[float],
        data: wp.ref[data_struct],
        body_q: wp.array[wp.transform],
        body_qd: wp.array[wp.spatial_vector],
    ) -> int: ...

    return SimpleNamespace(place_tile=place_tile)
