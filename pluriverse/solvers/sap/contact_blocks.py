"""Terms of contacts in native code, eight contacts of a world at a time, in the lanes of vectors.

Reads   what `contact.py` says
Writes  the same, but for node_contact and tree_active of trees without contacts

What contacts of the same two shapes have in common is found for the first of them. Points are turned into
world axes, and weights found, contact by contact; the rest is computed in lanes, each of which makes the
operations of a single contact in the same order. So the terms of a contact do not depend on which others a
block holds. On a GPU a block is one contact.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.chain_mobility import chain_code
from pluriverse.model import Topology
from pluriverse.model.topology import FREE_BELOW
from pluriverse.solvers.sap.contact_chord import BODY_ARC, CHORD
from pluriverse.solvers.sap.contact_inputs import (
    ARITHMETIC_MEAN,
    CONTACT_MIDPOINT,
    DELASSUS,
    DIAG_DELASSUS,
    LEFT_OUT,
    MAXIMUM,
    MINIMUM,
    NEAR_RIGID,
    REGULARIZATION_MIN,
    SOFT_NORM,
    SOFT_NORM_RELATIVE,
    WEIGHT_MIN,
    ContactInputs,
    ContactOptions,
)
from pluriverse.solvers.sap.contact_weight import WEIGH, contact_weight_code
from pluriverse.solvers.sap.free_body_weight import FREE_BODY
from pluriverse.solvers.sap.recovery import RECOVERY_GRAVITY
from pluriverse.solvers.sap.workspace import VISITED, contact_record, sap_struct
from pluriverse.types import JointType

_WORLD = """
    auto at = [](const auto& array, long long index) {
        return (decltype(array.data))((char*)array.data + array.strides[0] * index);
    };
    const int kind = topology.world_template.data[world];
    const int first_node = topology.template_node.data[kind];
    const int first_body = topology.template_body.data[kind];
    const int first_tree = topology.template_tree.data[kind];
    const int tree_count = topology.template_tree.data[kind + 1] - first_tree;
    const int body0 = topology.world_body.data[world];
    const int body_end = body0 + topology.template_body.data[kind + 1] - first_body;
    const int node0 = topology.world_joint.data[world];
    const int tree0 = topology.world_tree.data[world];
    const int dof0 = topology.world_dof.data[world];
    const int row0 = topology.world_row.data[world];
    const int* const node_parent = topology.node_parent.data + first_node;
    const int* const node_tree = topology.node_tree.data + first_node;
    const int* const dof_parent = topology.dof_parent.data + topology.template_dof.data[kind];
    const int* const dof_depth = topology.dof_depth.data + topology.template_dof.data[kind];
    const int* const dof_row = topology.dof_row.data + topology.template_dof.data[kind];
    const S infinite = S(INFINITY);
    // Mark a node and its ancestors for the sweeps, which need them all, and its tree as active.
    auto visit = [&](int node) {
        while (node >= 0) {
            int& mark = sap.node_contact.data[node0 + node];
            const bool is_marked = mark != 0;
            mark = VISITED;
            if (is_marked) return;
            const int up = node_parent[node];
            if (up < 0) sap.tree_active.data[tree0 + node_tree[node]] = 1;
            node = up;
        }
    };
    // The last degree of freedom above a node that is not prescribed (`chains.py`), -1 for none.
    auto last_free_dof = [&](int node) {
        for (; node >= 0; node = node_parent[node]) {
            const int count = topology.node_dof_count.data[first_node + node];
            if (count == 0) continue;
            const int tree = tree0 + node_tree[node];
            if (node_parent[node] < 0 && dynamics.tree_prescribed.data[tree] != 0) continue;
            return topology.node_dof.data[first_node + node] + count - 1;
        }
        return -1;
    };
    auto is_within = [&](int shape) {
        if (shape < 0 || shape >= inputs.shape_body.shape[0]) return false;
        const int carrier = *at(inputs.shape_body, shape);
        return carrier < 0 || (carrier >= body0 && carrier < body_end);
    };
    // The mass of all trees of the world but those of prescribed motion [kg].
    auto moving_mass = [&]() {
        S mass = S(0);
        for (int tree = 0; tree < tree_count; ++tree) {
            if (dynamics.tree_prescribed.data[tree0 + tree] != 0) continue;
            const int root = node0 + topology.tree_node.data[first_tree + tree];
            mass += S(dynamics.node_composite.data[root][0]);
        }
        return mass;
    };
"""

_MATERIAL = """
    auto is_stiffness = [&](auto stiffness) { return (stiffness > S(0)) & (stiffness < infinite); };
    // The stiffness of one shape [N/m]: its own, that for a mass [kg], or the fallback.
    auto shape_stiffness = [&](T stiffness, T per_mass, T mass) {
        // Infinite is rigid, whatever there is per mass.
        const M is_per_mass = is_stiffness(per_mass) & inverse(stiffness > S(0));
        const T other = is_per_mass ? per_mass * mass : T(S(options.fallback_stiffness));
        return is_stiffness(stiffness) ? stiffness : other;
    };
    // The mass of the lighter body, of the only one if the other is static, or 1 [kg].
    auto carried_mass = [&](int body_a, int body_b) {
        const float mass_a = body_a < 0 ? 0.0f : *at(inputs.body_mass, body_a);
        const float mass_b = body_b < 0 ? 0.0f : *at(inputs.body_mass, body_b);
        S mass = infinite;
        if (mass_a > 0.0f) mass = S(mass_a);
        if (mass_b > 0.0f && S(mass_b) < mass) mass = S(mass_b);
        return mass < infinite ? mass : S(1);
    };
    auto combined_friction = [&](S mu0, S mu1) {
        if (options.friction_mode == ARITHMETIC_MEAN) return S(0.5) * (mu0 + mu1);
        if (options.friction_mode == MINIMUM) return mu0 <= mu1 ? mu0 : mu1;
        if (options.friction_mode == MAXIMUM) return mu0 >= mu1 ? mu0 : mu1;
        return mu0 + mu1 > S(0) ? S(2) * mu0 * mu1 / (mu0 + mu1) : S(0);
    };
"""

_BEGIN = """
    // A run are contacts between the same bodies, of the same materials. They have integers in common, and
    // numbers that go into lanes. A rotation, from body to world, has its last entry behind the offset.
    enum { NODE_A, NODE_B, DOF_A, DOF_B, SHARED, BODY_A, BODY_B, IS_FREE, INTEGERS };
    enum { KE0, KE1, PER_MASS0, PER_MASS1, TAU, MU, IS_GIVEN, MASS, ORIGIN_GAP, IS_WELDED = ORIGIN_GAP + 3 };
    enum { OFFSET_A = 12, ROTATION_A = 16, ROTATION_B = 24, OFFSET_B = 32, FREE_A = 40, FREE_B = 48 };
    enum { COM_A = 56, COM_B = 59, HAS_FREE = 62, FIELD = 64, NUMBERS = 72, GROUP = 8 };
    int own[INTEGERS];
    S common[NUMBERS] = {};
    S origins[2][3] = {};
    bool are_free[2];
"""

_RUN = """
    auto begin_bodies = [&](const bool* is_new) {
        for (int side = 0; side < 2; ++side) {
            if (!is_new[side]) continue;
            const int body = own[BODY_A + side];
            S* const turning = common + (side == 0 ? ROTATION_A : ROTATION_B);
            S* const offset = common + (side == 0 ? OFFSET_A : OFFSET_B);
            int node = -1;
            if (body >= 0) {
                node = topology.body_node.data[first_body + body - body0];
                const auto& origin = dynamics.tree_ref.data[tree0 + node_tree[node]];
                const F* rotation = (const F*)(dynamics.node_rotation.data + node0 + node);
                for (int k = 0; k < 8; ++k) turning[k] = S(rotation[k]);
                offset[3] = S(rotation[8]);
                for (int k = 0; k < 3; ++k) {
                    offset[k] = S(dynamics.node_offset.data[node0 + node][k]);
                    origins[side][k] = S(origin[k]);
                }
                visit(node);
            } else {
                for (int k = 0; k < 8; ++k) turning[k] = k % 4 == 0 ? S(1) : S(0);
                for (int k = 0; k < 4; ++k) offset[k] = k == 3 ? S(1) : S(0);
                for (int k = 0; k < 3; ++k) origins[side][k] = S(0);
            }
            own[NODE_A + side] = node;
            own[DOF_A + side] = last_free_dof(node);
            if (options.moves_by_chords != 0) arc_kind[side] = find_arc(node, arcs[side]);
            are_free[side] = options.weight_mode == DELASSUS
                && read_free_body(
                    own[DOF_A + side], common + (side == 0 ? FREE_A : FREE_B),
                    common + (side == 0 ? COM_A : COM_B));
        }
        for (int k = 0; k < 3; ++k) common[ORIGIN_GAP + k] = origins[1][k] - origins[0][k];
        own[SHARED] = 0;
        if (own[DOF_A] >= 0 && own[DOF_B] >= 0 && node_tree[own[NODE_A]] == node_tree[own[NODE_B]]) {
            own[SHARED] = shared_length(own[DOF_A], own[DOF_B]);
        }
        common[IS_WELDED] = own[DOF_A] == own[DOF_B] ? S(1) : S(0);
        own[IS_FREE] = own[SHARED] == 0 && are_free[0] && are_free[1];
        common[HAS_FREE] = S(own[IS_FREE]);
        common[MASS] = carried_mass(own[BODY_A], own[BODY_B]);
        if (options.moves_by_chords != 0) {
            find_field(common + ORIGIN_GAP, common + FIELD);
            common[FIELD + 6] = own[NODE_B] >= 0 ? S(1) : S(0);
        }
    };
    // Of both shapes: stiffness, the same per mass, relaxation time, and friction; NaN where none is given.
    enum { MATERIAL_NUMBERS = 4 };
    float materials[2][MATERIAL_NUMBERS];
    auto read_material = [&](int side, int shape) {
        const float now[MATERIAL_NUMBERS] = {
            *at(inputs.shape_ke, shape), *at(inputs.shape_ke_per_mass, shape), *at(inputs.shape_tau, shape),
            *at(inputs.shape_mu, shape)};
        bool is_new = false;
        for (int k = 0; k < MATERIAL_NUMBERS; ++k) {
            float& before = materials[side][k];
            is_new |= now[k] == now[k] ? now[k] != before : before == before;
            before = now[k];
        }
        return is_new;
    };
    auto begin_materials = [&]() {
        auto number = [&](int side, int k) { return S(materials[side][k]); };
        bool is_given = false;
        for (int side = 0; side < 2; ++side) {
            common[KE0 + side] = number(side, 0);
            common[PER_MASS0 + side] = number(side, 1);
            is_given |= is_stiffness(number(side, 0)) | is_stiffness(number(side, 1));
        }
        common[IS_GIVEN] = is_given ? S(1) : S(0);
        auto chosen = [&](S value, double otherwise) {
            return value >= S(0) && value < infinite ? value : S(otherwise);
        };
        common[TAU] = chosen(number(0, 2), options.fallback_tau) + chosen(number(1, 2), options.fallback_tau);
        common[MU] = combined_friction(
            chosen(number(0, 3), options.fallback_mu), chosen(number(1, 3), options.fallback_mu));
    };
"""

_READ = """
    // Numbers of the contacts of a block, in lanes. Unused lanes get those of the first.
    auto read = [&](const auto& array, int first, int used, int k) {
        T result = T(S(0));
        for (int l = 0; l < LANES; ++l) {
            numbers(result)[l] = S(((const float*)at(array, first + (l < used ? l : 0)))[k]);
        }
        return result;
    };
    // In the records of `Contacts` the numbers from the first point on follow each other.
    bool is_record = false;
    #if LANES_ARE_VECTORS
    typedef float eight_numbers __attribute__((ext_vector_type(8)));
    typedef float read_numbers __attribute__((ext_vector_type(8), aligned(sizeof(float))));
    auto follows = [&](const auto& array, int count) {
        return (const float*)array.data == (const float*)inputs.point0.data + count
            && array.strides[0] == inputs.point0.strides[0];
    };
    is_record = follows(inputs.point1, 3) && follows(inputs.normal, 6) && follows(inputs.margin0, 9)
        && follows(inputs.margin1, 10);
    #endif
    auto read_contacts = [&](int first, int used, T* point0, T* point1, T* normal, T* margins) {
        #if LANES_ARE_VECTORS
        if (is_record) {
            eight_numbers rows[LANES], columns[LANES];
            auto load = [&](const auto& array) {
                #pragma unroll
                for (int l = 0; l < LANES; ++l) {
                    rows[l] = *(const read_numbers*)at(array, first + (l < used ? l : 0));
                }
                transpose(rows, columns);
            };
            load(inputs.point0);
            for (int k = 0; k < 3; ++k) point0[k] = __builtin_convertvector(columns[k], T);
            load(inputs.point1);
            for (int k = 0; k < 3; ++k) {
                point1[k] = __builtin_convertvector(columns[k], T);
                normal[k] = __builtin_convertvector(columns[3 + k], T);
            }
            for (int k = 0; k < 2; ++k) margins[k] = __builtin_convertvector(columns[6 + k], T);
            return;
        }
        #endif
        for (int k = 0; k < 3; ++k) {
            point0[k] = read(inputs.point0, first, used, k);
            point1[k] = read(inputs.point1, first, used, k);
            normal[k] = read(inputs.normal, first, used, k);
        }
        margins[0] = read(inputs.margin0, first, used, 0);
        margins[1] = read(inputs.margin1, first, used, 0);
    };
"""

_GEOMETRY = """
    const S dt = S(options.dt), beta2 = S(options.beta) * S(options.beta) * S(NEAR_RIGID);
    const T zero = T(0), one = T(1);
    const M is_undamped = everywhere(options.approach_damping == 0);
    S lifted = S(0);  // the mass that moves, once a contact asks for it
    int last[2] = {};
    for (int done = 0; done < count; done += LANES) {
        const int first = start + done;
        const int used = count - done < LANES ? count - done : LANES;
        int integers[LANES][INTEGERS], run_of[LANES] = {}, run = -1;
        S runs[LANES][NUMBERS];
        bool is_placed[2] = {false, false};
        for (int l = 0; l < used; ++l) {
            const bool is_first = done + l == 0;
            bool has_new_body[2] = {is_first, is_first}, has_new_materials = is_first;
            for (int side = 0; side < 2; ++side) {
                const int shape = *at(side == 0 ? inputs.shape0 : inputs.shape1, first + l);
                if (shape == last[side] && !is_first) continue;
                if (!is_within(shape)) {
                    // Somebody wrote there. To leave the contact out would be a wrong simulation.
                    inputs.world_frozen.data[world] = 1;
                    return 0;
                }
                last[side] = shape;
                const int body = *at(inputs.shape_body, shape);
                has_new_body[side] |= body != own[BODY_A + side];
                own[BODY_A + side] = body;
                has_new_materials |= read_material(side, shape);
            }
            const bool has_new_bodies = has_new_body[0] || has_new_body[1];
            if (has_new_bodies) begin_bodies(has_new_body);
            if (has_new_materials) begin_materials();
            if (has_new_bodies || has_new_materials || l == 0) {
                ++run;
                for (int k = 0; k < INTEGERS; ++k) integers[run][k] = own[k];
                for (int k = 0; k < NUMBERS; ++k) runs[run][k] = common[k];
                for (int side = 0; side < 2; ++side) is_placed[side] |= own[NODE_A + side] >= 0;
            }
            run_of[l] = run;
        }
        T of_run[NUMBERS];
        auto spread = [&](int group) {
            #if LANES_ARE_VECTORS
            if (run > 0) {
                T rows[LANES];
                #pragma unroll
                for (int l = 0; l < LANES; ++l) rows[l] = *(const TU*)(runs[run_of[l]] + group);
                transpose(rows, of_run + group);
                return;
            }
            #endif
            for (int k = group; k < group + GROUP; ++k) of_run[k] = T(runs[0][k]);
        };
        spread(0);
        spread(GROUP);
        if (is_placed[0]) spread(ROTATION_A);
        if (is_placed[1]) {
            spread(ROTATION_B);
            spread(OFFSET_B);
        }
        // Positions relative to the reference points of the two trees.
        T n[3], arm0[3], arm1[3], margins[2];
        read_contacts(first, used, arm0, arm1, n, margins);
        for (int side = 0; side < 2; ++side) {
            if (!is_placed[side]) continue;
            T* const arm = side == 0 ? arm0 : arm1;
            const T p[3] = {arm[0], arm[1], arm[2]};
            const T* const turning = of_run + (side == 0 ? ROTATION_A : ROTATION_B);
            const T* const offset = of_run + (side == 0 ? OFFSET_A : OFFSET_B);
            for (int r = 0; r < 3; ++r) {
                const T last_entry = r == 2 ? offset[3] : turning[3 * r + 2];
                arm[r] = offset[r] + (turning[3 * r] * p[0] + turning[3 * r + 1] * p[1] + last_entry * p[2]);
            }
        }
        const T given = inputs.has_stiffness ? read(inputs.stiffness, first, used, 0) : zero;
        const T length = root(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        for (int k = 0; k < 3; ++k) n[k] = length > zero ? n[k] / length : zero;
        T apart[3];
        for (int k = 0; k < 3; ++k) apart[k] = of_run[ORIGIN_GAP + k] + (arm1[k] - arm0[k]);
        T phi0 = n[0] * apart[0] + n[1] * apart[1] + n[2] * apart[2] - margins[0] - margins[1];
        const M has_own = given > zero;
        const M is_given = (of_run[IS_GIVEN] > zero) | has_own;
        if (options.point_mode == CONTACT_MIDPOINT) {
            // How the two share their compression, for the mass of one body where it is per mass. The
            // pressure centre of a patch is halfway between the two points.
            const T yield0 = shape_stiffness(of_run[KE0], of_run[PER_MASS0], of_run[MASS]);
            const T yield1 = shape_stiffness(of_run[KE1], of_run[PER_MASS1], of_run[MASS]);
            const T share = has_own ? T(0.5) : yield0 / (yield0 + yield1);
            // (k0 x0 + k1 x1) / (k0 + k1), as seen from each reference point
            for (int k = 0; k < 3; ++k) {
                arm0[k] += (one - share) * apart[k];
                arm1[k] -= share * apart[k];
            }
        }
        // The frame with columns (t1, t2, n); t1 is orthogonal to the axis least aligned with n.
        auto size = [](T a) { return a < T(0) ? -a : a; };
        const M is_y = (size(n[1]) < size(n[0])) & inverse(size(n[2]) < size(n[1]));
        const M is_z = inverse(is_y) & (size(n[2]) < size(n[0]));
        const T least = is_y ? n[1] : (is_z ? n[2] : n[0]);
        const T m = root(one - least * least);
        const T r = one / m, s = -r * least;
        T placed[16];  // frame, both arms, and two integers
        T* const frame = placed;
        frame[0] = is_y ? r * n[2] : (is_z ? -r * n[1] : zero);
        frame[1] = is_y | is_z ? s * n[0] : m;
        frame[2] = n[0];
        frame[3] = is_y ? zero : (is_z ? r * n[0] : -r * n[2]);
        frame[4] = is_y ? m : s * n[1];
        frame[5] = n[1];
        frame[6] = is_y ? -r * n[0] : (is_z ? zero : r * n[1]);
        frame[7] = is_z ? m : s * n[2];
        frame[8] = n[2];
"""

_REGULARIZE = """
        const T felt = one / w;  // the mass that the contact feels
        auto yield = [&](T mass) {
            const T yield0 = shape_stiffness(of_run[KE0], of_run[PER_MASS0], mass);
            const T yield1 = shape_stiffness(of_run[KE1], of_run[PER_MASS1], mass);
            return yield0 * (yield1 / (yield0 + yield1));
        };
        T stiffness = has_own ? given : yield(felt);
        const T duration = dt + of_run[TAU];
        T rn = larger(larger(beta2 * w, one / (dt * stiffness * duration)), T(REGULARIZATION_MIN));
        // With p the depth at the end of the step, the impulse from above is then k (dt + tau) p: that of the
        // spring, and that of the damper over the part p / |v_n| of the step in which there is contact.
        T bias = -phi0 / ((phi0 > zero) & is_undamped ? T(dt) : duration);
        T speed_max = T(infinite), work_max = T(infinite);
        const M is_deep = (phi0 < zero) & (lane < used) & everywhere(options.recovery_limited != 0);
        if (any(is_deep)) {
            // The laws of `recovery.py`. A contact that gives way, with the regularization R_n, reaches the
            // part w / (w + R_n) of v_hat.
            if (!(lifted > S(0))) lifted = moving_mass();
            // Per mass of the trees at most: where w is next to zero, nothing has been compressed.
            stiffness = is_given & inverse(has_own) ? yield(smaller(felt, T(lifted))) : stiffness;
            // Not given, or more than the step resolves for the mass of all trees: no motion can have stored
            // energy in it.
            const M is_stored = is_given & inverse(beta2 * dt * stiffness * duration > lifted);
            stiffness = is_stored ? stiffness : zero;
            const T depth = -phi0, spring = w * stiffness * depth * depth;
            const T load = S(2) * S(RECOVERY_GRAVITY) * depth * w * lifted;
            const T reached = (one + rn / w) * root(load + spring);
            bias = is_deep ? smaller(bias, reached) : bias;
            const T speed = root(S(2) * S(RECOVERY_GRAVITY) * depth);
            speed_max = (is_deep & (stiffness == zero)) ? speed : speed_max;
            const T work = dt * lifted * S(RECOVERY_GRAVITY) * speed + S(0.5) * stiffness * depth * depth;
            work_max = is_deep ? work : work_max;
        }
        // Where bodies are welded together, or both to the world or to kinematic bodies, the cost is
        // constant: it would blunt the relative cost test, and its stiffness would drown the Hessian in
        // rounding.
        rn = of_run[IS_WELDED] > zero ? T(LEFT_OUT) : rn;
        const T rt = larger(S(options.sigma) * wt, T(REGULARIZATION_MIN));
        const T soft = smaller(T(SOFT_NORM), S(SOFT_NORM_RELATIVE) * dt * felt);
"""

_STORE = """
        // All arrays of contacts are interleaved (`SapWorkspace`): the data of a contact are one record.
        const long long record_size = sap.contact_rn.strides[0];
        auto record = [&](const auto& array, int l) { return (char*)array.data + record_size * (first + l); };
        // Eight numbers that follow each other there, of which `array` has the first.
        auto store = [&](const auto& array, int offset, const T* values) {
            #if LANES_ARE_VECTORS
            T rows[LANES];
            transpose(values, rows);
            #pragma unroll
            for (int l = 0; l < LANES; ++l) {
                if (l < used) *(TU*)(record(array, l) + offset * sizeof(S)) = rows[l];
            }
            #else
            for (int k = 0; k < 8; ++k) ((S*)record(array, 0))[offset + k] = values[k];
            #endif
        };
        for (int k = 0; k < 3; ++k) {
            placed[9 + k] = arm0[k];
            placed[12 + k] = arm1[k];
        }
        const T terms[15] = {
            zero, zero, zero, zero, zero, zero, zero, zero, zero, rn, rt, of_run[MU], T(-1), soft, bias};
        T solved[16];
        for (int k = 0; k < 15; ++k) solved[k] = terms[k];
        // Integers that take the place of a number go along with the others.
        placed[15] = solved[15] = zero;
        #if LANES_ARE_VECTORS
        const bool is_pair = sizeof(S) == 2 * sizeof(int);
        for (int l = 0; l < used && is_pair; ++l) {
            __builtin_memcpy(numbers(placed[15]) + l, integers[run_of[l]] + NODE_A, sizeof(S));
            __builtin_memcpy(numbers(solved[15]) + l, integers[run_of[l]] + DOF_A, sizeof(S));
        }
        #else
        const bool is_pair = false;
        #endif
        const T bounds[8] = {chord[0], chord[1], phi0, w, speed_max, zero, zero, work_max};
        for (int k = 0; k < 16; k += 8) {
            store(sap.contact_frame, k, placed + k);
            store(sap.contact_velocity, k, solved + k);
        }
        store(sap.contact_chord, 0, bounds);
        for (int l = 0; l < used && !is_pair; ++l) {
            for (int k = 0; k < 2; ++k) {
                ((int*)record(sap.contact_node0, l))[k] = integers[run_of[l]][NODE_A + k];
                ((int*)record(sap.contact_dof0, l))[k] = integers[run_of[l]][DOF_A + k];
            }
        }
    }
    return count;
"""

# What `_STORE` writes in one go: arrays that follow each other in the record of a contact, and their numbers.
_RUNS = (
    {"frame": 9, "arm0": 3, "arm1": 3, "node0": 0, "node1": 0},
    {
        "velocity": 3,
        "slope": 3,
        "impulse": 3,
        "rn": 1,
        "rt": 1,
        "mu": 1,
        "bound": 1,
        "soft": 1,
        "bias": 1,
        "dof0": 0,
        "dof1": 0,
    },
    {"chord": 2, "gap": 1, "weight": 1, "speed_max": 1, "dilation": 1, "bound_change": 1, "work_max": 1},
)
# What holds nothing before groups are found, which is later (`groups.py`): the last run may overwrite them.
_FREE = ("contact_place", "contact_home")


def _check_record(real: Any, linear: Any) -> None:
    """Assert that records of contacts are as `_STORE` writes them."""
    offsets, size = contact_record(real, linear)
    number = wp.types.type_size_in_bytes(real)
    for run in _RUNS:
        begin = behind = offsets["contact_" + next(iter(run))]
        for name, count in run.items():
            offset = offsets["contact_" + name]
            assert offset == behind, f"{name} is at {offset} and not at {behind}"
            behind += count * number or 4
        written = begin + -(-sum(run.values()) // 8) * 8 * number
        assert written <= size
        taken = (offset for name, offset in offsets.items() if name[8:] not in run and name not in _FREE)
        assert not any(behind <= offset < written for offset in taken)


@made_once
def contact_block_functions(real: Any, linear: Any, dynamics_real: Any, weight_real: Any) -> SimpleNamespace:
    """Return the function for the given precisions.

    `set_slots(world, region, topology, inputs, options, dynamics, sap, start, count)` writes the terms of the
    contacts of a world, which has `count` from the slot `start` on, and returns their number. It is 0, and
    the world frozen, where a contact names a shape that is not of this world. `region` is that of `chain`.
    """
    _check_record(real, linear)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    rest = _MATERIAL + _BEGIN + BODY_ARC + _RUN + _READ + _GEOMETRY + WEIGH + CHORD + _REGULARIZE + _STORE
    text = chain_code(dynamics_real, real) + _WORLD + contact_weight_code(weight_real) + FREE_BODY + rest
    for name, value in (
        ("CONTACT_MIDPOINT", CONTACT_MIDPOINT),
        ("ARITHMETIC_MEAN", ARITHMETIC_MEAN),
        ("MINIMUM", MINIMUM),
        ("MAXIMUM", MAXIMUM),
        ("DIAG_DELASSUS", DIAG_DELASSUS),
        ("DELASSUS", DELASSUS),
        ("LEFT_OUT", LEFT_OUT),
        ("NEAR_RIGID", NEAR_RIGID),
        ("REGULARIZATION_MIN", REGULARIZATION_MIN),
        ("SOFT_NORM_RELATIVE", SOFT_NORM_RELATIVE),
        ("SOFT_NORM", SOFT_NORM),
        ("WEIGHT_MIN", WEIGHT_MIN),
        ("RECOVERY_GRAVITY", RECOVERY_GRAVITY),
        ("VISITED", VISITED),
        ("FREE_JOINT", int(JointType.FREE)),
        ("FREE_BELOW_JOINT", int(FREE_BELOW)),
        ("D6_JOINT", int(JointType.D6)),
    ):
        text = text.replace(name, repr(value))

    @wp.func_native(text)
    def set_slots(
        world: int,
        region: int,
        topology: wp.ref[Topology],
        inputs: wp.ref[ContactInputs],
        options: wp.ref[ContactOptions],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        start: int,
        count: int,
    ) -> int: ...

    return SimpleNamespace(set_slots=set_slots)
