"""Tree motion in lanes: the stages between the joint state and the free velocity, for eight worlds at once.

Reads   joint_q, joint_qd, joint_f, gravity and its compensation, joint_axis, joint_armature, joint_damping,
        body_com, body_mass; workspace: groups, tree_states
Writes  workspace: what later stages of a step read (`tree_motion.py`)

A pass outward over the nodes of a tree does what `kinematics.py` does, and the outward parts of
`mass_matrix.py` and `bias.py`; a pass inward does what is left of these two; then follow `factorization.py`
and `kick.py`. All make the operations of those modules in the same order, so a world has the same bits in a
lane. Between the passes numbers stay in the memory of the call, tree by tree, and only those that others
read are put back into arrays.

There are no free joints below bodies, no bodies that spin about a ball joint, no `body_f` and no kinematic
roots here. Weights are compensated in all lanes or in none.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.balance import CALM, DRIFTING, SWINGING, SWINGING_DOFS
from pluriverse.dynamics.free_velocity_lanes import FREE_VELOCITY_IN_LANES
from pluriverse.dynamics.rigid_groups import rigid_groups_struct
from pluriverse.dynamics.rigid_groups_lanes import GROUPS_IN_LANES
from pluriverse.dynamics.spin_lanes import SPIN_IN_LANES
from pluriverse.dynamics.tree_states import tree_states_struct
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.lane_motion import LANE_FRAMES, LANE_MOTION
from pluriverse.math.lanes import LANES, lane_code
from pluriverse.model import Template, Topology
from pluriverse.types import JointType

FORCES, VELOCITIES = wp.constant(1), wp.constant(2)
"""Parts of `move_trees`, whose values add up: all up to forces and the mass matrix, and what follows."""

# Numbers of a `CarrierFrame`, the first that is read, and how many are: `child_rotation` and what follows it.
_FRAME_WIDTH, _FRAME_SKIP = 31, 7
_AXES_MAX = 6  # of a D6 joint: three to slide along and three to turn about
# Scalars in the memory of a call: per node and per dof of the largest tree, per dof and per body of the
# world; and how many there may be. On the stack of a thread they take 1 MiB.
_NODE_SIZE, _DOF_SIZE, _WORLD_DOF_SIZE, _WORLD_BODY_SIZE = 53, 11, 4, 5
_SIZE_MAX = 2**20 // (8 * LANES)
_PLAIN_TYPES = (
    JointType.FIXED,
    JointType.REVOLUTE,
    JointType.PRISMATIC,
    JointType.FREE,
    JointType.BALL,
    JointType.D6,
)

_MEMORY = """
    const int kind = topology.world_template.data[worlds.data[slot]];
    const int first_node = topology.template_node.data[kind];
    const int first_dof = topology.template_dof.data[kind];
    const int first_tree = topology.template_tree.data[kind];
    const int tree_count = topology.template_tree.data[kind + 1] - first_tree;
    const int world_dofs = topology.template_dof.data[kind + 1] - first_dof;
    const int world_bodies = topology.template_body.data[kind + 1] - topology.template_body.data[kind];
    const int* node_body = topology.node_body.data + first_node;
    const int* node_carrier = topology.node_carrier.data + first_node;
    const int* node_type = topology.node_type.data + first_node;
    const int* node_qd = topology.node_qd.data + first_node;
    const int* node_dof = topology.node_dof.data + first_node;
    const int* node_dof_count = topology.node_dof_count.data + first_node;
    const int* dof_parent = topology.dof_parent.data + first_dof;
    const int* dof_depth = topology.dof_depth.data + first_dof;
    const int* dof_row = topology.dof_row.data + first_dof;
    const int* dof_public = topology.dof_public.data + first_dof;
    int world[8], world_node[8], world_body[8], world_coord[8], world_dof[8], world_row[8], world_tree[8];
    for (int l = 0; l < 8; ++l) {
        const int w = worlds.data[slot + l];
        world[l] = w;
        world_node[l] = topology.world_joint.data[w];
        world_body[l] = topology.world_body.data[w];
        world_coord[l] = topology.world_coord.data[w];
        world_dof[l] = topology.world_dof.data[w];
        world_row[l] = topology.world_row.data[w];
        world_tree[l] = topology.world_tree.data[w];
    }
    // Records of so many numbers, from a place in each world on. Called, not copied: there are many.
    auto load = [&](const S* from, const int* first, int offset, int width, int count, void* to)
        __attribute__((noinline)) {
        int base[8];
        for (int l = 0; l < 8; ++l) base[l] = (first[l] + offset) * width;
        gather(from, base, width * count, (T*)to);
    };
    auto load_single = [&](const void* from, const int* first, int width, int count, void* to)
        __attribute__((noinline)) {
        int base[8];
        for (int l = 0; l < 8; ++l) base[l] = first[l] * width;
        gather((const float*)from, base, width * count, (T*)to);
    };
    auto store = [&](const void* from, int width, int count, void* to, const int* first, int offset)
        __attribute__((noinline)) {
        int base[8];
        for (int l = 0; l < 8; ++l) base[l] = (first[l] + offset) * width;
        scatter((const T*)from, width * count, (S*)to, base);
    };
    // Numbers of a record, which are the same in all lanes where the groups of the worlds are alike.
    bool alike = true;
    auto load_alike = [&](const auto* from, const int* first, int record, int width, int count, T* to) {
        int base[8];
        for (int l = 0; l < 8; ++l) base[l] = (first[l] + record) * width;
        if (alike) {
            for (int k = 0; k < count; ++k) to[k] = T(S(from[base[0] + k]));
        } else {
            gather(from, base, count, to);
        }
    };
    // Rows of a tree are contiguous, as are its nodes and its dofs.
    auto row_end = [&](int dof) { return dof_row[dof] + dof_depth[dof] + 1; };
    int nodes_max = 0, dofs_max = 0, rows_max = 0;
    for (int tree = first_tree; tree < first_tree + tree_count; ++tree) {
        const int begin = topology.tree_dof.data[tree], end = topology.tree_dof_end.data[tree];
        const int nodes = topology.tree_node_end.data[tree] - topology.tree_node.data[tree];
        const int rows = end > begin ? row_end(end - 1) - dof_row[begin] : 0;
        if (nodes > nodes_max) nodes_max = nodes;
        if (end - begin > dofs_max) dofs_max = end - begin;
        if (rows > rows_max) rows_max = rows;
    }
    // [node of the tree]
    Q* node_quat = (Q*)PLURIVERSE_LANES(4 * nodes_max);
    V3* node_offset = (V3*)PLURIVERSE_LANES(3 * nodes_max);
    V6* node_velocity = (V6*)PLURIVERSE_LANES(6 * nodes_max);
    M3* node_rotation = (M3*)PLURIVERSE_LANES(9 * nodes_max);
    V3* node_com = (V3*)PLURIVERSE_LANES(3 * nodes_max);
    V10* node_composite = (V10*)PLURIVERSE_LANES(10 * nodes_max);
    V6* node_acceleration = (V6*)PLURIVERSE_LANES(6 * nodes_max);
    V6* node_wrench = (V6*)PLURIVERSE_LANES(6 * nodes_max);
    V6* node_load = (V6*)PLURIVERSE_LANES(is_compensated ? 6 * nodes_max : 0);
    // [dof of the tree]
    V6* dof_motion = (V6*)PLURIVERSE_LANES(6 * dofs_max);
    T* dof_velocity = PLURIVERSE_LANES(dofs_max);
    T* dof_force = PLURIVERSE_LANES(dofs_max);
    T* dof_product = PLURIVERSE_LANES(dofs_max);
    T* dof_velocity_free = PLURIVERSE_LANES(dofs_max);
    T* dof_kick = PLURIVERSE_LANES(dofs_max);
    T* tree_rows = PLURIVERSE_LANES(rows_max);
    // [public dof of the world], [body of the world]
    T* armature = PLURIVERSE_LANES(world_dofs);
    T* damping = PLURIVERSE_LANES(world_dofs);
    T* rate = PLURIVERSE_LANES(world_dofs);
    T* applied = PLURIVERSE_LANES(world_dofs);
    V3* body_centre = (V3*)PLURIVERSE_LANES(3 * world_bodies);
    T* compensation = PLURIVERSE_LANES(is_compensated ? world_bodies : 0);
    T* masses = PLURIVERSE_LANES(is_compensated ? world_bodies : 0);
    V3 fall;
    load_single(joint_armature.data, world_dof, 1, world_dofs, armature);
    if (parts & FORCES) {
        load_single(joint_damping.data, world_dof, 1, world_dofs, damping);
        load_single(joint_qd.data, world_dof, 1, world_dofs, rate);
        load_single(joint_f.data, world_dof, 1, world_dofs, applied);
        for (int l = 1; l < 8; ++l) alike = alike && is_like(world[l], world[0]);
        load_alike((const float*)body_com.data, world_body, 0, 3, 3 * world_bodies, (T*)body_centre);
        load_single(gravity.data, world, 3, 1, &fall);
        if (is_compensated) {
            load_single(gravcomp.data, world_body, 1, world_bodies, compensation);
            load_single(body_mass.data, world_body, 1, world_bodies, masses);
        }
    }
"""

_OUTWARD = """
    // `kinematics.py`, and the outward parts of `mass_matrix.py` and `bias.py`. Returns the kinetic energy.
    const int* is_read = groups.node_is_read.data + first_node;
    auto is_carrier = [&](int index) { return node_carrier[index] < 0 || node_dof_count[index] > 0; };
    // Calls `move(node, count)` for each run of nodes of a tree of which `holds(index)`.
    auto for_runs = [&](int tree_node, int node_count, auto holds, auto move) {
        for (int node = 0, end = 0; node < node_count; node = end) {
            const bool has = holds(tree_node + node);
            for (end = node + 1; end < node_count && holds(tree_node + end) == has; ) ++end;
            if (has) move(node, end - node);
        }
    };
    // The motion subspaces of a ball or D6 joint.
    auto write_axes = [&](int index, int parent, const T* frame, const V3& about, const V3& offset, int dof) {
        T joint_frame[4];
        load_alike((const S*)groups.carriers.data, world_node, index, FRAME_WIDTH, 4, joint_frame);
        Q turn = parent < 0 ? Q(T(0), T(0), T(0), T(1)) : node_quat[parent];
        turn = chain_rotation(turn, Q(joint_frame[0], joint_frame[1], joint_frame[2], joint_frame[3]));
        const int axis_count = node_dof_count[index], public_dof = node_qd[index];
        for (int k = 0; k < axis_count; ++k) dof_velocity[dof + k] = rate[public_dof + k];
        if (node_type[index] == BALL) {
            const M3 axes = matrix_from_quat(turn);
            for (int k = 0; k < 3; ++k) {
                const V3 axis(axes.data[0][k], axes.data[1][k], axes.data[2][k]);
                dof_motion[dof + k] = spatial(axis, wp::cross(about, axis));
            }
            return;
        }
        T axes[3 * AXES_MAX], position[AXES_MAX];
        load_alike((const float*)joint_axis.data, world_dof, public_dof, 3, 3 * axis_count, axes);
        int base[8];
        for (int l = 0; l < 8; ++l) base[l] = world_coord[l] + topology.node_coord.data[first_node + index];
        gather(joint_q.data, base, axis_count, position);
        const int linear_count = topology.node_linear_count.data[first_node + index];
        V3 shift;
        for (int k = 0; k < axis_count; ++k) {
            const V3 axis(axes[3 * k], axes[3 * k + 1], axes[3 * k + 2]);
            dof_motion[dof + k] = move_along_axis(k < linear_count, axis, position[k], turn, shift);
        }
        const Q child_rotation(frame[0], frame[1], frame[2], frame[3]);
        child_from_joint_frame(turn, shift, child_rotation, V3(frame[4], frame[5], frame[6]));
        for (int k = 0; k < axis_count; ++k) {
            V6& motion = dof_motion[dof + k];
            motion = motion + spatial(V3(), wp::cross(offset - shift, angular_part(motion)));
        }
    };
    // What the axes of a D6 joint add to the acceleration, each moving with the earlier ones.
    auto axes_acceleration = [&](int dof, int count) {
        V6 sum, carried;
        for (int k = dof; k < dof + count; ++k) {
            const V6 share = wp::mul(dof_velocity[k], dof_motion[k]);
            sum = sum + cross_motion(carried, share);
            carried = carried + share;
        }
        return sum;
    };
    bool has_welded = false;
    auto go_outward = [&](int tree_node, int node_count, int tree_dof) {
        T energy = T(0);
        has_welded = false;
        // What compensation does to a body, from zero on as in a world with `body_f`.
        auto lift = [&](int node) {
            const int body = node_body[tree_node + node];
            const V3 pull = V3() - (compensation[body] * masses[body]) * fall;
            node_load[node] = spatial(V3() + wp::cross(node_com[node], pull), pull);
        };
        for_runs(tree_node, node_count, is_carrier, [&](int node, int count) {
            const int at = tree_node + node;
            load((const S*)states.node_quat.data, world_node, at, 4, count, node_quat + node);
            load((const S*)states.node_offset.data, world_node, at, 3, count, node_offset + node);
            load((const S*)states.node_velocity.data, world_node, at, 6, count, node_velocity + node);
        });
        for (int node = 0; node < node_count; ++node) {
            const int index = tree_node + node;
            const int parent = node_carrier[index] - tree_node;
            const bool is_root = node_carrier[index] < 0;
            if (!is_carrier(index)) {
                if (!is_read[index] && !is_compensated) continue;
                has_welded = true;
                T weld[10];  // WeldFrame
                load_alike((const S*)groups.welds.data, world_node, index, 10, 10, weld);
                const Q turn(weld[0], weld[1], weld[2], weld[3]);
                const M3& rotation = node_rotation[parent];
                const V3 position(weld[4], weld[5], weld[6]), com(weld[7], weld[8], weld[9]);
                node_rotation[node] = multiply_matrices(rotation, matrix_from_quat(turn));
                node_offset[node] = node_offset[parent] + wp::mul(rotation, position);
                node_com[node] = node_offset[parent] + wp::mul(rotation, com);
                if (is_compensated) lift(node);
                continue;
            }
            T frame[FRAME_WIDTH - FRAME_SKIP];  // CarrierFrame
            const S* carriers = (const S*)groups.carriers.data + FRAME_SKIP;
            load_alike(carriers, world_node, index, FRAME_WIDTH, FRAME_WIDTH - FRAME_SKIP, frame);
            const V3 child_position(frame[4], frame[5], frame[6]);
            const V3 own_axis(frame[11], frame[12], frame[13]);
            const T mass = frame[14];
            const V3 centre(frame[15], frame[16], frame[17]);
            const V6& own_inertia = *(const V6*)(frame + 18);

            const M3 rotation = matrix_from_quat(node_quat[node]);
            const V3 offset = node_offset[node];
            node_rotation[node] = rotation;
            node_com[node] = offset + wp::mul(rotation, body_centre[node_body[index]]);
            if (is_compensated) lift(node);
            const int dof = node_dof[index] - tree_dof;
            const V3 about = offset + wp::mul(rotation, child_position);
            if (node_type[index] == REVOLUTE) {
                const V3 axis = wp::mul(rotation, own_axis);
                dof_motion[dof] = spatial(axis, wp::cross(about, axis));
                dof_velocity[dof] = rate[node_qd[index]];
            } else if (node_type[index] == PRISMATIC) {
                dof_motion[dof] = spatial(V3(), wp::mul(rotation, own_axis));
                dof_velocity[dof] = rate[node_qd[index]];
            } else if (node_type[index] == FREE) {
                for (int k = 0; k < 6; ++k) {
                    dof_motion[dof + k] = V6();
                    dof_motion[dof + k][k] = T(1);
                    dof_velocity[dof + k] = node_velocity[node][k];
                }
            } else if (node_dof_count[index] > 0) {
                write_axes(index, is_root ? -1 : parent, frame, about, offset, dof);
            }

            const V3 com = offset + wp::mul(rotation, centre);
            const V6 inertia = rotate_sym(rotation, symmetric_matrix(own_inertia));
            node_composite[node] = inertia_about_reference(mass, com, inertia);

            const V6& velocity = node_velocity[node];
            const V3 omega = angular_part(velocity);
            V6 acceleration;
            if (!is_root) {
                acceleration = node_acceleration[parent] + cross_motion(node_velocity[parent], velocity);
            } else if (node_type[index] == FREE) {
                acceleration = spatial(V3(), -wp::cross(omega, linear_part(velocity)));
            }
            if (node_type[index] == D6) {
                acceleration = acceleration + axes_acceleration(dof, node_dof_count[index]);
            }
            node_acceleration[node] = acceleration;
            const V3 com_velocity = linear_part(velocity) + wp::cross(omega, com);
            const V3 momentum = sym_times_vec(inertia, omega);
            const V3 alpha = angular_part(acceleration);
            const V3 com_acceleration =
                linear_part(acceleration) + wp::cross(alpha, com) + wp::cross(omega, com_velocity);
            const V3 force = mass * com_acceleration;
            const V3 torque = sym_times_vec(inertia, alpha) + wp::cross(omega, momentum);
            node_wrench[node] = spatial(torque + wp::cross(com, force), force);
            energy += T(0.5) * (mass * wp::dot(com_velocity, com_velocity) + wp::dot(momentum, omega));
        }
        return energy;
    };
"""

_FREE_ROWS = """
    // `write_free_rows` of `mass_matrix.py`.
    auto write_free_rows = [&](T* rows, const V10& composite, const V3& com, int public_dof) {
        T extra[6];
        for (int k = 0; k < 6; ++k) extra[k] = armature[public_dof + k] + T(dt) * damping[public_dof + k];
        M3 coupling, angular;
        const auto arms = (extra[0] != T(0)) | (extra[1] != T(0)) | (extra[2] != T(0));
        if (__builtin_reduce_or(arms)) {
            const M3 arm = wp::skew(com);
            const M3 linear = wp::diag(V3(extra[0], extra[1], extra[2]));
            const M3 arm_linear = multiply_matrices(arm, linear);
            const M3 arm_linear_arm = multiply_matrices(multiply_matrices(wp::transpose(arm), linear), arm);
            for (int i = 0; i < 3; ++i) {
                for (int j = 0; j < 3; ++j) {
                    coupling.data[i][j] = arms ? arm_linear.data[i][j] : T(0);
                    angular.data[i][j] = arms ? arm_linear_arm.data[i][j] : T(0);
                }
            }
        }
        const M3 h = wp::skew(V3(composite[1], composite[2], composite[3]));
        const int entry_of[3][3] = {{4, 5, 6}, {5, 7, 8}, {6, 8, 9}};
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j <= i; ++j) {
                T value = composite[entry_of[i][j]] + angular.data[i][j];
                if (i == j) value += extra[3 + i];
                rows[i * (i + 1) / 2 + j] = value;
            }
        }
        for (int i = 0; i < 3; ++i) {
            T* row = rows + (i + 3) * (i + 4) / 2;
            for (int j = 0; j < 3; ++j) row[j] = h.data[j][i] + coupling.data[j][i];
            for (int j = 0; j <= i; ++j) row[3 + j] = i == j ? composite[0] + extra[i] : T(0);
        }
    };
"""

_INWARD = """
    // The inward parts of `mass_matrix.py` and `bias.py`.
    auto go_inward = [&](int tree_node, int node_count, int tree_dof, int tree_row) {
        const bool free_root = node_type[tree_node] == FREE;
        const int stop = free_root ? tree_dof + 6 : 0;
        for (int node = node_count - 1; node >= 0; --node) {
            const int index = tree_node + node;
            const int dof_count = node_dof_count[index];
            if (is_compensated && node_carrier[index] >= 0) {
                V6& carried = node_load[node_carrier[index] - tree_node];
                carried = carried + node_load[node];
            }
            if (dof_count == 0) continue;
            const V10 composite = node_composite[node];
            const V6 wrench = node_wrench[node];
            if (node_carrier[index] >= 0) {
                const int parent = node_carrier[index] - tree_node;
                node_composite[parent] = node_composite[parent] + composite;
                node_wrench[parent] = node_wrench[parent] + wrench;
            }
            const V3 moment = wp::cross(V3(composite[1], composite[2], composite[3]), fall);
            V6 load = spatial(moment, composite[0] * fall);
            if (is_compensated) load = load + node_load[node];
            const int dof = node_dof[index], public_dof = node_qd[index];
            T* row = tree_rows + dof_row[dof] - tree_row;
            if (free_root && node == 0) {
                write_free_rows(row, composite, node_com[node], public_dof);
                T given[6];
                for (int k = 0; k < 6; ++k) {
                    given[k] = applied[public_dof + k] - damping[public_dof + k] * rate[public_dof + k];
                }
                const V3 force(given[0], given[1], given[2]);
                const V3 torque = V3(given[3], given[4], given[5]) + wp::cross(node_com[node], force);
                const V6 total = spatial(torque, force) + load - wrench;
                for (int k = 0; k < 6; ++k) {
                    dof_force[k] = total[k];
                    dof_product[k] = wrench[k];
                }
                continue;
            }
            for (int k = 0; k < dof_count; ++k) {
                const int own_dof = dof + k;
                const V6 motion = dof_motion[own_dof - tree_dof];
                const V6 carried = inertia_times_motion(composite, motion);
                T* own_row = tree_rows + dof_row[own_dof] - tree_row;
                T* entry = own_row + dof_depth[own_dof];
                for (int j = own_dof; j >= stop; j = dof_parent[j]) {
                    const V6& s = dof_motion[j - tree_dof];
                    *entry-- = carried[0] * s[0] + carried[1] * s[1] + carried[2] * s[2]
                        + carried[3] * s[3] + carried[4] * s[4] + carried[5] * s[5];
                }
                if (free_root) for (int i = 0; i < 6; ++i) own_row[i] = carried[i];
                T& own = own_row[dof_depth[own_dof]];
                own = own + armature[public_dof + k] + T(dt) * damping[public_dof + k];
                const T given = applied[public_dof + k] - damping[public_dof + k] * rate[public_dof + k];
                const T product = wp::dot(motion, wrench);
                dof_force[own_dof - tree_dof] = given + wp::dot(motion, load) - product;
                dof_product[own_dof - tree_dof] = product;
            }
        }
    };
"""

_TREES = """
    for (int tree = 0; tree < tree_count; ++tree) {
        const int tree_node = topology.tree_node.data[first_tree + tree];
        const int node_count = topology.tree_node_end.data[first_tree + tree] - tree_node;
        const int tree_dof = topology.tree_dof.data[first_tree + tree];
        const int tree_dof_end = topology.tree_dof_end.data[first_tree + tree];
        const int dof_count = tree_dof_end - tree_dof;
        const int tree_row = dof_count > 0 ? dof_row[tree_dof] : 0;
        const int row_count = dof_count > 0 ? row_end(tree_dof_end - 1) - tree_row : 0;
        // A tree of one free body spins (`spin.py`).
        const bool spins = node_type[tree_node] == FREE && dof_count == node_dof_count[tree_node];
        T energy;
        if (parts & FORCES) {
            energy = go_outward(tree_node, node_count, tree_dof);
            go_inward(tree_node, node_count, tree_dof, tree_row);
            if (spins && (parts & VELOCITIES)) {
                V3 impulse;
                if (!replace_gyroscopic(node_composite[0], dof_velocity, dof_force, impulse)) return 0;
                store(&impulse, 3, 1, data.tree_spin.data, world_tree, tree);
            }
            for (int l = 0; l < 8; ++l) {
                const int at = world_tree[l] + tree;
                data.tree_ref.data[at] = states.tree_ref.data[at];
            }
            auto is_written = [&](int index) { return is_read[index] != 0; };
            for_runs(tree_node, node_count, is_written, [&](int node, int count) {
                const int at = tree_node + node;
                if (has_welded) {  // those of carriers are what they were
                    store(node_offset + node, 3, count, data.node_offset.data, world_node, at);
                }
                store(node_rotation + node, 9, count, data.node_rotation.data, world_node, at);
                store(node_com + node, 3, count, data.node_com.data, world_node, at);
            });
            store(node_composite, 10, 1, data.node_composite.data, world_node, tree_node);
            store(&energy, 1, 1, data.tree_energy.data, world_tree, tree);
            if (dof_count == 0) {
                for (int l = 0; l < 8; ++l) data.tree_regime.data[world_tree[l] + tree] = CALM;
                continue;
            }
            store(dof_motion, 6, dof_count, data.dof_motion.data, world_dof, tree_dof);
            store(dof_velocity, 1, dof_count, data.dof_velocity.data, world_dof, tree_dof);
            store(dof_force, 1, dof_count, data.dof_force.data, world_dof, tree_dof);
            store(dof_product, 1, dof_count, data.dof_product.data, world_dof, tree_dof);
            store(tree_rows, 1, row_count, data.mass_row.data, world_row, tree_row);
        } else {
            if (dof_count == 0) continue;
            load(data.tree_energy.data, world_tree, tree, 1, 1, &energy);
            load(data.dof_velocity.data, world_dof, tree_dof, 1, dof_count, dof_velocity);
            load(data.dof_force.data, world_dof, tree_dof, 1, dof_count, dof_force);
            load(data.dof_product.data, world_dof, tree_dof, 1, dof_count, dof_product);
            load(data.mass_row.data, world_row, tree_row, 1, row_count, tree_rows);
        }
        if (!(parts & VELOCITIES)) continue;
        factorize(tree_dof, tree_dof_end);
        const auto drifts = solve_velocity(tree_dof, tree_dof_end, !spins, energy);
        store(tree_rows, 1, row_count, data.factor_row.data, world_row, tree_row);
        store(dof_velocity_free, 1, dof_count, data.dof_velocity_free.data, world_dof, tree_dof);
        store(dof_kick, 1, dof_count, data.dof_kick.data, world_dof, tree_dof);
        const int regime = dof_count > SWINGING_DOFS && node_type[tree_node] != FREE ? SWINGING : DRIFTING;
        for (int l = 0; l < 8; ++l) data.tree_regime.data[world_tree[l] + tree] = drifts[l] ? regime : CALM;
    }
    return 1;
"""


_CONSTANTS = f"""
    enum {{ FORCES = {FORCES}, VELOCITIES = {VELOCITIES}, CALM = {CALM}, DRIFTING = {DRIFTING} }};
    enum {{ SWINGING = {SWINGING}, SWINGING_DOFS = {SWINGING_DOFS} }};
    enum {{ PRISMATIC = {JointType.PRISMATIC:d}, REVOLUTE = {JointType.REVOLUTE:d} }};
    enum {{ FREE = {JointType.FREE:d}, BALL = {JointType.BALL:d}, D6 = {JointType.D6:d} }};
    enum {{ AXES_MAX = {_AXES_MAX} }};
    enum {{ FRAME_WIDTH = {_FRAME_WIDTH}, FRAME_SKIP = {_FRAME_SKIP} }};
"""


@made_once
def lane_trees(real: Any) -> Any:
    """Return the function that computes the motion of trees for eight worlds, for scalars of type `real`.

    - `move_trees(parts, is_compensated, worlds, slot, ...)`: of the eight entries of `worlds` from `slot` on,
      which are a tile. `is_compensated` says whether weights are, in all of them. `parts` are `FORCES`,
      `VELOCITIES`, or the sum of both; only the sum sees to bodies that spin. Returns 0 if one of them turns
      too far for lanes, having begun, else 1.
    """
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    states_struct = tree_states_struct(real)
    text = (
        LANE_MOTION
        + LANE_FRAMES
        + GROUPS_IN_LANES
        + SPIN_IN_LANES
        + _CONSTANTS
        + _MEMORY
        + _OUTWARD
        + _FREE_ROWS
        + _INWARD
        + FREE_VELOCITY_IN_LANES
        + _TREES
    )

    @wp.func_native(lane_code(real, text))
    def move_trees(
        parts: int,
        is_compensated: int,
        worlds: wp.array[int],
        slot: int,
        topology: Topology,
        gravity: wp.array[wp.vec3],
        joint_axis: wp.array[wp.vec3],
        body_com: wp.array[wp.vec3],
        body_mass: wp.array[float],
        gravcomp: wp.array[float],
        joint_armature: wp.array[float],
        joint_damping: wp.array[float],
        joint_q: wp.array[float],
        joint_qd: wp.array[float],
        joint_f: wp.array[float],
        dt: real,
        groups: groups_struct,
        states: states_struct,
        data: data_struct,
    ) -> int: ...

    return move_trees


def is_plain(template: Template) -> bool:
    """Return whether `move_trees` can be used for worlds of a template (module docstring)."""
    if template.node_count == 0 or not np.isin(template.node_type, _PLAIN_TYPES).all():
        return False
    tree_dof_count = template.tree_dof_end - template.tree_dof
    if ((template.node_type[template.tree_node] == JointType.BALL) & (tree_dof_count == 3)).any():
        return False
    node_counts = template.tree_node_end - template.tree_node
    row_counts = np.bincount(
        template.node_tree[template.dof_node], weights=template.dof_depth + 1, minlength=template.tree_count
    )
    size = _NODE_SIZE * node_counts.max() + row_counts.max()
    size += _DOF_SIZE * tree_dof_count.max()
    size += _WORLD_DOF_SIZE * template.dof_count + _WORLD_BODY_SIZE * template.body_count
    return bool(size <= _SIZE_MAX)
