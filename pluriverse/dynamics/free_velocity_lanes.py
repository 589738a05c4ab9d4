"""Free velocity in lanes: factors of the mass matrix, and what forces do to a tree, for eight worlds at once.

Reads   rows of the mass matrix, forces, velocities and armature of a tree
Writes  its factors in place of the rows, dof_velocity_free, dof_kick

All of these are in the memory of a call of `tree_motion_lanes.py`. The operations are those of
`factorization.py` and `kick.py`, in the same order.
"""

import numpy as np

from pluriverse.dynamics.kick import CALM_RATIO, PRODUCT_LIMIT
from pluriverse.math.dense import LANE_FACTORIZE, LANE_SOLVE_PAIR

_LIMITS = f"""
    // Kernels round constants to single precision.
    const T calm_ratio = T(S({np.float32(CALM_RATIO)}f)), product_limit = T(S({np.float32(PRODUCT_LIMIT)}f));
"""

_SOLVE = """
    // `factorization.py`, in place.
    auto factorize = [&](int begin, int end) {
        const auto& depth = topology.dof_depth;
        const auto& row = topology.dof_row;
        const int first = first_dof;
        T* rows = tree_rows - dof_row[begin];
        int ok = 1;
FACTORIZE
        (void)ok;
    };
    auto solve_pair = [&](int begin, int end) {
        const auto& depth = topology.dof_depth;
        const auto& row = topology.dof_row;
        const int first = first_dof;
        const int* up = dof_parent;
        const T* rows = tree_rows - dof_row[begin];
        typedef T V;
        V* b = dof_velocity_free - begin;
        V* c = dof_kick - begin;
SOLVE_PAIR
    };
    // `kick.py`. Returns in which lanes the tree drifts.
    auto solve_velocity = [&](int begin, int end, bool is_balanced, const T& bodies_energy) {
        const int count = end - begin;
        auto kicked = T(0) != T(0);
        for (int e = 0; e < count; ++e) {
            const T part = is_balanced ? dof_product[e] : T(0);
            kicked |= part != T(0);
            dof_velocity_free[e] = T(dt) * (dof_force[e] + part);
            dof_kick[e] = T(dt) * part;
        }
        solve_pair(begin, end);
        T armature_square = T(0), products = T(0);
        for (int e = 0; e < count; ++e) {
            armature_square += armature[dof_public[begin + e]] * dof_velocity[e] * dof_velocity[e];
            products += dof_kick[e] * dof_product[e];
        }
        const T energy = bodies_energy + T(0.5) * armature_square;
        products *= T(0.5) * T(dt);
        const T limit = product_limit * product_limit * energy;
        T share = products > limit ? __builtin_elementwise_sqrt(limit / products) : T(1);
        share = kicked ? share : T(0);
        for (int e = 0; e < count; ++e) {
            const T unsolved = T(dt) * (is_balanced ? dof_product[e] : T(0));
            const T part = share * (kicked ? dof_kick[e] : unsolved);
            dof_kick[e] = part;
            dof_velocity_free[e] = dof_velocity[e] + dof_velocity_free[e] - part;
        }
        return kicked & (products > calm_ratio * energy);
    };
"""

FREE_VELOCITY_IN_LANES = _LIMITS
FREE_VELOCITY_IN_LANES += _SOLVE.replace("FACTORIZE", LANE_FACTORIZE).replace("SOLVE_PAIR", LANE_SOLVE_PAIR)
"""`factorize` and `solve_velocity` of the degrees of freedom of a tree, from `begin` to `end`."""
