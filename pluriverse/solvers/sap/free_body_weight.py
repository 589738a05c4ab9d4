"""Weights of contacts of free bodies, eight at a time, in native code.

A free body has a mass m, a centre of mass c and an inertia about that, so its mobility is known in closed
form: of the velocity along n at the point r, 1 / m + h^T I^-1 h with h = (r - c) x n. All contacts of a block
are weighed together, with ten numbers of each body in place of its chain of joints (`contact_weight.py`).

The factors of its mass matrix A = L^T D L, angular part first, tell that a body is free: the three last
entries of D are the same, and the rows of L that belong to them are those of the cross product by c. The rest
is the factor of the inertia. What joints carry has other factors, and damping that differs by axis makes
others, too.
"""

FREE_BODY = """
    // The numbers of the body whose last degree of freedom is `dof`; whether it is free, or static.
    auto read_free_body = [&](int dof, S* body, S* com) {
        for (int k = 0; k < 8; ++k) body[k] = S(0);
        for (int k = 0; k < 3; ++k) com[k] = S(0);
        if (dof < 0) return true;
        if (dof_depth[dof] != 5) return false;
        const int owner = topology.dof_node.data[topology.template_dof.data[kind] + dof];
        if (topology.node_type.data[first_node + owner] != FREE_JOINT) return false;
        auto L = [&](int r, int c) {
            return S(dynamics.factor_row.data[row0 + dof_row[dof - 5 + r] + c]);
        };
        const bool is_isotropic = L(3, 3) == L(4, 4) && L(4, 4) == L(5, 5)
            && L(4, 3) == S(0) && L(5, 3) == S(0) && L(5, 4) == S(0);
        const bool is_cross = L(3, 0) == S(0) && L(4, 1) == S(0) && L(5, 2) == S(0)
            && L(4, 0) == -L(3, 1) && L(5, 0) == -L(3, 2) && L(5, 1) == -L(4, 2);
        if (!(is_isotropic && is_cross)) return false;
        for (int k = 0; k < 3; ++k) body[k] = L(k, k);  // 1 / D
        // Rows of the inverse transpose of the inertia's L: (1, -a, -b), (0, 1, -g), (0, 0, 1).
        body[3] = L(1, 0);
        body[4] = L(2, 0) - L(1, 0) * L(2, 1);
        body[5] = L(2, 1);
        body[6] = L(3, 3);  // 1 / m
        com[0] = L(4, 2);
        com[1] = L(5, 0);
        com[2] = L(3, 1);
        return true;
    };
    // Adds the mobility of the point `arm` of a body to `sums`: twice that across the normal, and along it.
    // Both are sums of squares: they lose no digits.
    auto add_free_body = [&](const T* body, const T* com, const T* arm, const T* normal, T* sums) {
        const T x = arm[0] - com[0], y = arm[1] - com[1], z = arm[2] - com[2];
        const T square = normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2];
        T across = S(2) * (body[6] * square), along = body[6] * square;
        auto add = [&](T share, T vx, T vy, T vz) {
            const T e = normal[1] * vz - normal[2] * vy;
            const T f = normal[2] * vx - normal[0] * vz;
            const T g = normal[0] * vy - normal[1] * vx;
            const T straight = normal[0] * vx + normal[1] * vy + normal[2] * vz;
            across += share * (e * e + f * f + g * g);
            along += share * (straight * straight);
        };
        // Each row times the arm from the centre of mass, as vectors.
        const T a = body[3], b = body[4], g = body[5];
        add(body[0], b * y - a * z, -b * x - z, y + a * x);
        add(body[1], z + g * y, -g * x, -x);
        add(body[2], -y, x, T(0));
        sums[0] += across;
        sums[1] += along;
    };
"""
