"""Weight of a contact: the inverse of the mass that it feels, which bounds its regularization.

The weight w [1/kg] bounds R_n from below and sets R_t. `body_weight` takes it from both bodies on their own,
`diagonal_weight` from J diag(A)^-1 J^T as Drake does, and `find_chains` with `measure_point` from
W = J A^-1 J^T itself, by the factors of A (`math.chain_mobility`): once for each body the square of the
length of its chain of joints, and a few operations per joint for each of its contacts. Where both bodies are
free or static, `free_body_weight.py` has it in closed form.
"""

from typing import Any

from pluriverse.math.chain_mobility import CHAIN_SIZE, WORK_SIZE
from pluriverse.math.dense import CTYPE
from pluriverse.solvers.sap.workspace import CHAIN_REGION

# Floor of diag(A) and of principal inertias [kg or kg·m²]: a guard of divisions only.
DIAGONAL_MIN = 1e-12

_WEIGHTS = """
    typedef WEIGHT_TYPE W;
    typedef wp::vec_t<3, W> W3;
    typedef wp::mat_t<3, 3, W> W33;
    auto at_least = [](W a, W least) { return a >= least || !(least == least) ? a : least; };
    // The sum over three orthonormal axes c of 1/m + (r x c)^T diag(I)^-1 (r x c), in body axes. It does not
    // depend on the axes: it is 3/m + trace([r]x^T diag(I)^-1 [r]x).
    auto body_weight = [&](int body, int node, int dof, W3 arm) {
        const float mass = body < 0 ? 0.0f : *at(inputs.body_mass, body);
        if (dof < 0 || !(mass > 0.0f)) return W(0);
        const auto& inertia = *at(inputs.body_inertia, body);
        const auto& com = dynamics.node_com.data[node0 + node];
        const auto& rotation = dynamics.node_rotation.data[node0 + node];
        W3 from_com;
        W33 R;
        for (int r = 0; r < 3; ++r) {
            from_com[r] = arm[r] - W(com[r]);
            for (int c = 0; c < 3; ++c) R.data[r][c] = W(rotation.data[r][c]);
        }
        const W3 r = wp::mul(from_com, R);  // R^T r: to body axes
        const W ix = W(1) / at_least(W(inertia.data[0][0]), W(DIAGONAL_MIN));
        const W iy = W(1) / at_least(W(inertia.data[1][1]), W(DIAGONAL_MIN));
        const W iz = W(1) / at_least(W(inertia.data[2][2]), W(DIAGONAL_MIN));
        const W xx = r[0] * r[0], yy = r[1] * r[1], zz = r[2] * r[2];
        return W(3) / W(mass) + ix * (yy + zz) + iy * (xx + zz) + iz * (xx + yy);
    };
    // ||J diag(A)^-1 J^T||_F / 3 of a contact.
    auto diagonal_weight = [&](int dof_a, int dof_b, W3 arm0, W3 arm1, W33 frame_transposed) {
        // The velocity of the point, in the contact frame, per unit of a degree of freedom's velocity.
        auto column_of = [&](int dof, W3 arm) {
            const auto& motion = dynamics.dof_motion.data[dof0 + dof];
            const W3 omega{W(motion[0]), W(motion[1]), W(motion[2])};
            const W3 linear{W(motion[3]), W(motion[4]), W(motion[5])};
            return wp::mul(frame_transposed, wp::add(linear, wp::cross(omega, arm)));
        };
        W33 sum;
        int a = dof_a, b = dof_b;
        while (a >= 0 || b >= 0) {
            // Children have larger indices than parents: the larger one cannot be above the other.
            const int dof = a > b ? a : b;
            W3 column;
            if (b == dof) column = wp::add(column, column_of(dof, arm1));
            if (a == dof) column = wp::sub(column, column_of(dof, arm0));
            if (b == dof) b = dof_parent[dof];
            if (a == dof) a = dof_parent[dof];
            const W diagonal = W(dynamics.mass_row.data[row0 + dof_row[dof] + dof_depth[dof]]);
            sum = wp::add(sum, wp::div(wp::outer(column, column), at_least(diagonal, W(DIAGONAL_MIN))));
        }
        return W(sqrt(wp::ddot(sum, sum))) / W(3);
    };
    // How many degrees of freedom move two bodies alike; -1 stands for a body that none moves.
    auto shared_length = [&](int a, int b) {
        // Children have larger indices than parents.
        while (a != b) {
            if (a > b) {
                a = dof_parent[a];
            } else {
                b = dof_parent[b];
            }
        }
        return a >= 0 ? dof_depth[a] + 1 : 0;
    };
    // The chains of the two bodies that were asked for last are kept.
    const int stride = inputs.chain_capacity;
    S* const work = sap.chain.data + (long long)region * CHAIN_REGION * stride;
    S* const chains[2] = {work + WORK_SIZE * stride, work + (WORK_SIZE + CHAIN_SIZE) * stride};
    int chain_dofs[2] = {-1, -1};
    auto keep_chain = [&](int side, int dof) {
        if (dof < 0 || dof == chain_dofs[side]) return;
        chain_dofs[side] = dof;
        find_chain(
            dynamics.factor_row.data + row0, (const F*)(dynamics.dof_motion.data + dof0), dof_parent,
            dof_depth, dof_row, dof, work, chains[side], stride);
    };
"""

WEIGH = """
        T w = zero, wt = T(-1);
        if (options.weight_mode == DELASSUS) {
            T across[LANES] = {}, along[LANES] = {};
            bool has_free = false, has_chains = false;
            for (int l = 0; l < used; ++l) {
                if (integers[run_of[l]][IS_FREE] != 0) {
                    has_free = true;
                    continue;
                }
                has_chains = true;
                const int dof_a = integers[run_of[l]][DOF_A], dof_b = integers[run_of[l]][DOF_B];
                keep_chain(0, dof_a);
                keep_chain(1, dof_b);
                measure_point(
                    chains[0], dof_a < 0 ? 0 : dof_depth[dof_a] + 1,
                    chains[1], dof_b < 0 ? 0 : dof_depth[dof_b] + 1, integers[run_of[l]][SHARED], stride,
                    numbers(arm0[0])[l], numbers(arm0[1])[l], numbers(arm0[2])[l],
                    numbers(arm1[0])[l], numbers(arm1[1])[l], numbers(arm1[2])[l],
                    numbers(n[0])[l], numbers(n[1])[l], numbers(n[2])[l], across[l], along[l]);
            }
            if (has_chains) {
                wt = S(0.5) * add_lanes(across);
                w = add_lanes(along);
            }
            if (has_free) {
                spread(FREE_A);
                spread(FREE_B);
                spread(COM_A);
                T sums[2] = {zero, zero};
                for (int side = 0; side < 2; ++side) {
                    if (!is_placed[side]) continue;
                    add_free_body(
                        of_run + (side == 0 ? FREE_A : FREE_B), of_run + (side == 0 ? COM_A : COM_B),
                        side == 0 ? arm0 : arm1, n, sums);
                }
                const M is_free = of_run[HAS_FREE] > zero;
                wt = is_free ? S(0.5) * sums[0] : wt;
                w = is_free ? sums[1] : w;
            }
            for (int l = 0; l < LANES && sizeof(W) < sizeof(S); ++l) {
                numbers(wt)[l] = S(W(numbers(wt)[l]));
                numbers(w)[l] = S(W(numbers(w)[l]));
            }
        } else {
            for (int l = 0; l < used; ++l) {
                W3 at_a, at_b;
                W33 transposed;
                for (int k = 0; k < 3; ++k) {
                    at_a[k] = W(numbers(arm0[k])[l]);
                    at_b[k] = W(numbers(arm1[k])[l]);
                    for (int c = 0; c < 3; ++c) transposed.data[c][k] = W(numbers(frame[3 * k + c])[l]);
                }
                const auto& of = integers[run_of[l]];
                W weight;
                if (options.weight_mode == DIAG_DELASSUS) {
                    weight = diagonal_weight(of[DOF_A], of[DOF_B], at_a, at_b, transposed);
                } else {
                    weight = (body_weight(of[BODY_A], of[NODE_A], of[DOF_A], at_a)
                        + body_weight(of[BODY_B], of[NODE_B], of[DOF_B], at_b)) / W(3);
                }
                numbers(w)[l] = S(weight);
            }
        }
        w = larger(w, T(WEIGHT_MIN));
        wt = wt >= zero ? larger(wt, T(WEIGHT_MIN)) : w;
"""
"""The weights of the contacts of a block, of `contact_blocks.py`, in native code that follows the above."""


def contact_weight_code(weight_real: Any) -> str:
    """Return text that declares the functions above, in native code that follows `chain_code`.

    It reads `inputs`, `dynamics` and `sap`, and what `contact_blocks.py` declares for a world.
    """
    text = _WEIGHTS.replace("WEIGHT_TYPE", CTYPE[weight_real])
    for name, value in (
        ("DIAGONAL_MIN", DIAGONAL_MIN),
        ("CHAIN_REGION", int(CHAIN_REGION)),
        ("WORK_SIZE", int(WORK_SIZE)),
        ("CHAIN_SIZE", int(CHAIN_SIZE)),
    ):
        text = text.replace(name, repr(value))
    return text
