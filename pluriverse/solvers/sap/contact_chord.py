"""Chords: the velocities along surfaces by which points of contact move within a step.

Points of turning bodies move on arcs, and positions along the velocity at the start of the arc. An object
that sticks to something that turns would so slide outward by r w^2 h^2 / 2 in each step, whatever the
friction. What two points move by against each other is, to second order,

    h (J v + h/2 b),

with their relative acceleration b where joint velocities stay as they are, which is how coordinates move in
a step (`integration.py`). So contacts stick and slide at the velocity of the chord, J v + h/2 b, along the
surface. Across it the gap that collision measures says all.

b is seen from one of the bodies, i: the centre C of the other one accelerates by

    a_C - a_i(C) - 2 w_i x (v_C - v_i(C))

against the point of body i there, and its rotation by alpha - alpha_i - w_i x w. The field of such a motion
is that of a rigid body, so contacts of the same two bodies never ask for velocities that these cannot have.
A ball or a wheel that rolls on a plane has no acceleration, also where it spins at the same time, though its
points do: the point of contact stays below its centre. What holds is i: the world or a kinematic body, or
else what has a joint, or else the first one.
"""

# Of a body about the reference point of its tree: spatial acceleration and velocity, and its centre of mass.
BODY_ARC = """
    enum { ARC_MOTION = 6, ARC_CENTRE = 12, ARC_NUMBERS = 15 };
    enum { HELD, JOINTED, FREE_BODY_ARC };
    S arcs[2][ARC_NUMBERS];
    int arc_kind[2];
    auto cross = [](const S* x, const S* y, S* z) {
        z[0] = x[1] * y[2] - x[2] * y[1];
        z[1] = x[2] * y[0] - x[0] * y[2];
        z[2] = x[0] * y[1] - x[1] * y[0];
    };
    auto find_arc = [&](int node, S* arc) -> int {
        for (int k = 0; k < ARC_NUMBERS; ++k) arc[k] = S(0);
        if (node < 0) return HELD;
        const int* const carrier = topology.node_carrier.data + first_node;
        const int* const dof_count = topology.node_dof_count.data + first_node;
        const int* const type = topology.node_type.data + first_node;
        auto copy_motion = [&](int index, S* to) {
            const F* from = (const F*)(dynamics.node_velocity.data + node0 + index);
            for (int k = 0; k < 6; ++k) to[k] = S(from[k]);
        };
        // Adds the cross product of two spatial velocities.
        auto add_crossed = [&](const S* v, const S* m) {
            S angular[3], linear[3], moved[3];
            cross(v, m, angular);
            cross(v, m + 3, linear);
            cross(v + 3, m, moved);
            for (int k = 0; k < 3; ++k) {
                arc[k] += angular[k];
                arc[3 + k] += linear[k] + moved[k];
            }
        };
        const bool is_welded = carrier[node] >= 0 && dof_count[node] == 0;
        int root = is_welded ? carrier[node] : node;
        S* const own = arc + ARC_MOTION;
        copy_motion(root, own);
        S velocity[6];
        for (int k = 0; k < 6; ++k) velocity[k] = own[k];
        for (int index = root; index >= 0; index = carrier[index]) {
            root = index;
            const int dof = dof0 + topology.node_dof.data[first_node + index];
            auto share_of = [&](int k, S* share) {
                const F* motion = (const F*)(dynamics.dof_motion.data + dof + k);
                for (int c = 0; c < 6; ++c) share[c] = S(dynamics.dof_velocity.data[dof + k]) * S(motion[c]);
            };
            S share[6];
            if (carrier[index] >= 0) {
                // A joint adds S qd to the velocity V_p of what carries it, and S moves with that: it adds
                // V_p x S qd = V_p x V to the acceleration.
                S above[6];
                copy_motion(carrier[index], above);
                add_crossed(above, velocity);
                for (int k = 0; k < 6; ++k) velocity[k] = above[k];
            }
            if (type[index] == D6_JOINT) {
                S carried[6] = {};  // each axis moves with the earlier ones
                for (int k = 0; k < dof_count[index]; ++k) {
                    share_of(k, share);
                    add_crossed(carried, share);
                    for (int c = 0; c < 6; ++c) carried[c] += share[c];
                }
            } else if (type[index] == FREE_BELOW_JOINT) {
                S shift[3] = {}, turn[3] = {}, added[3];  // turns are about a point that shifts move
                for (int k = 0; k < 6; ++k) {
                    share_of(k, share);
                    for (int c = 0; c < 3; ++c) (k < 3 ? shift : turn)[c] += share[k < 3 ? 3 + c : c];
                }
                cross(shift, turn, added);
                for (int k = 0; k < 3; ++k) arc[3 + k] += added[k];
            }
        }
        for (int k = 0; k < 3; ++k) arc[ARC_CENTRE + k] = S(dynamics.node_com.data[node0 + node][k]);
        const int tree = node_tree[root];
        const bool is_prescribed = dynamics.tree_prescribed.data[tree0 + tree] != 0;
        const int size =
            topology.tree_dof_end.data[first_tree + tree] - topology.tree_dof.data[first_tree + tree];
        bool is_alone = false;
        if (type[root] == FREE_JOINT) {
            // The origin moves straight: that is an acceleration of w x v less than the spatial one.
            S turned[3], spun[3], centre[3];
            copy_motion(root, velocity);
            cross(velocity, velocity + 3, turned);
            for (int k = 0; k < 3; ++k) arc[3 + k] -= turned[k];
            is_alone = size == 6 && !is_prescribed;
            if (is_alone) {
                // The centre of mass of a body on its own does (`spin.py`), and in J v is the velocity that
                // the origin gets by the end of the step.
                for (int k = 0; k < 3; ++k) centre[k] = S(dynamics.node_com.data[node0 + root][k]);
                cross(velocity, centre, spun);
                cross(velocity, spun, turned);
                for (int k = 0; k < 3; ++k) arc[3 + k] += turned[k];
            }
        }
        return is_prescribed ? HELD : (is_alone ? FREE_BODY_ARC : JOINTED);
    };
    // The field of the relative acceleration of the second body, which at x from the reference point of its
    // tree is field[0..2] + field[3..5] x x; from that of the first one if the second is static.
    auto find_field = [&](const S* gap, S* field) {
        const int seen = arc_kind[0] > arc_kind[1] ? 0 : 1;
        const S* const arc = arcs[seen];
        const S* const from = arcs[1 - seen];
        const S sign = seen == 1 ? S(1) : S(-1);
        const S* const centre = arc + ARC_CENTRE;
        const S* const spin = arc + ARC_MOTION;
        const S* const turning = from + ARC_MOTION;
        S to_centre[3], twice[3], x[3], y[3], rate[3], bent[3];
        for (int k = 0; k < 3; ++k) to_centre[k] = sign * gap[k] + centre[k];
        // Velocity and acceleration of the centre, and of the point of the other body there.
        cross(spin, centre, x);
        cross(turning, to_centre, y);
        S velocity[3], moved[3];
        for (int k = 0; k < 3; ++k) {
            velocity[k] = spin[3 + k] + x[k];
            moved[k] = turning[3 + k] + y[k];
            rate[k] = velocity[k] - moved[k];
            twice[k] = S(2) * turning[k];
        }
        cross(arc, centre, x);
        cross(from, to_centre, y);
        for (int k = 0; k < 3; ++k) bent[k] = arc[3 + k] + x[k] - (from[3 + k] + y[k]);
        cross(spin, velocity, x);
        cross(turning, moved, y);
        for (int k = 0; k < 3; ++k) bent[k] += x[k] - y[k];
        cross(twice, rate, x);
        cross(turning, spin, y);
        S* const turn = field + 3;
        for (int k = 0; k < 3; ++k) {
            bent[k] -= x[k];
            turn[k] = arc[k] - from[k] - y[k];
        }
        // From the centre to the reference point that arms are from.
        const bool is_second = own[NODE_B] >= 0;
        for (int k = 0; k < 3; ++k) y[k] = is_second == (seen == 1) ? -centre[k] : -to_centre[k];
        cross(turn, y, x);
        for (int k = 0; k < 3; ++k) {
            field[k] = sign * (bent[k] + x[k]);
            turn[k] = sign * turn[k];
        }
    };
"""

# In lanes: `chord` gets what is added to J v.
CHORD = """
        T chord[2] = {zero, zero};
        if (options.moves_by_chords != 0) {
            spread(FIELD);
            const T* const field = of_run + FIELD;
            T bent[3];
            for (int k = 0; k < 3; ++k) {
                const int i = (k + 1) % 3, j = (k + 2) % 3;
                const T turned0 = field[3 + i] * arm0[j] - field[3 + j] * arm0[i];
                const T turned1 = field[3 + i] * arm1[j] - field[3 + j] * arm1[i];
                bent[k] = field[k] + (field[6] > zero ? turned1 : turned0);
            }
            for (int c = 0; c < 2; ++c) {
                const T along = bent[0] * frame[c] + bent[1] * frame[3 + c] + bent[2] * frame[6 + c];
                chord[c] = S(0.5) * dt * along;
            }
        }
"""
