"""Spin in lanes: the gyroscopic force of free bodies, for eight worlds at once, unless one turns too far.

Every lane makes the operations of `spin.py` in their order. A lane that has reached the end of the midpoint
rule keeps its rotation while others go on.
"""

import math

import numpy as np

from pluriverse.dynamics.spin import CHANGE_MAX, PASS_COUNT_MAX, TURN_MAX
from pluriverse.math.rotations import ANGLE_SERIES

_OVER = "".join(f"const T over_{k} = T(S({1.0 / math.factorial(k)!r}));\n" for k in range(3, 11))

# Placed behind `math.lane_motion.LANE_MOTION`. Kernels round the constants of `spin.py` to single precision.
SPIN_IN_LANES = (
    f"""
    const int pass_count_max = {PASS_COUNT_MAX};
    const S turn_max = S({np.float32(TURN_MAX)}f), change_max = S({np.float32(CHANGE_MAX)}f);
    const S series = S({ANGLE_SERIES});
    {_OVER}
    const S least_mass = S(1.0e-30f);
"""
    + """
    auto all = [](const auto& mask) { return __builtin_reduce_and(mask) != 0; };
    auto inverse_matrix = [](const M3& m) {
        const auto& a = m.data;
        const T det = wp::determinant(m);
        const T scale = T(1) / det;
        M3 result;
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j) {
                const int r = (j + 1) % 3, s = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
                const T minor = a[r][c] * a[s][d] - a[r][d] * a[s][c];
                result.data[i][j] = det != T(0) ? minor * scale : T(0);
            }
        }
        return result;
    };
    // `quat_from_rotation_vector`, of small angles. Returns whether they are small in all lanes.
    auto small_rotation = [&](const V3& rotation, Q& result) {
        const T square = T(0.25) * wp::dot(rotation, rotation);
        const T sinc = T(1) - square * (over_3 - square * (over_5 - square * (over_7 - square * over_9)));
        T cosine = over_6 - square * (over_8 - square * over_10);
        cosine = T(1) - square * (T(0.5) - square * (over_4 - square * cosine));
        const V3 imaginary = wp::mul(rotation, T(0.5) * sinc);
        result = Q(imaginary[0], imaginary[1], imaginary[2], cosine);
        return all(square < T(S(0.25) * series * series));
    };
    // `drift` in one part. Returns whether that is enough in all lanes.
    auto drift = [&](const M3& inverse, const V3& momentum, Q& result) {
        const T h = T(dt);
        V3 omega = wp::mul(inverse, momentum);
        const T rate = __builtin_elementwise_sqrt(
            omega[0] * omega[0] + omega[1] * omega[1] + omega[2] * omega[2]);
        if (!all(rate * h <= T(turn_max))) return false;
        V3 bend = wp::mul(wp::mul(inverse, wp::cross(omega, momentum)), T(0.5) * h);
        V3 theta = wp::mul(omega - bend, h);
        M3 one;
        for (int k = 0; k < 3; ++k) one.data[k][k] = T(1);
        auto goes_on = T(0) == T(0);
        for (int pass = 0; pass < pass_count_max && __builtin_reduce_or(goes_on); ++pass) {
            Q half;
            if (!small_rotation(wp::mul(theta, T(0.5)), half)) return false;
            const V3 halfway = wp::quat_rotate_inv(half, momentum);
            omega = wp::mul(inverse, halfway);
            const V3 residual = wp::mul(omega, h) - theta;
            const M3 turning = multiply_matrices(inverse, wp::skew(halfway));
            M3 slope = wp::mul(wp::sub(turning, wp::skew(omega)), T(0.5) * h);
            slope = wp::add(slope, multiply_matrices(wp::mul(slope, T(0.25)), wp::skew(theta)));
            const V3 change = wp::mul(inverse_matrix(wp::sub(one, slope)), residual);
            const V3 step = wp::quat_rotate(half, change);
            for (int k = 0; k < 3; ++k) theta[k] = goes_on ? theta[k] + step[k] : theta[k];
            const T limit = T(change_max) * T(change_max) * wp::dot(theta, theta);
            goes_on = goes_on & ~(wp::dot(change, change) <= limit);
        }
        return small_rotation(theta, result);
    };
    // That of a free body.
    auto spin_inertia = [&](const V10& composite) {
        const T mass = composite[0] > T(least_mass) ? composite[0] : T(least_mass);
        const T scale = T(1) / mass;
        const T hx = composite[1], hy = composite[2], hz = composite[3];
        const T xx = composite[4] - scale * (hy * hy + hz * hz);
        const T yy = composite[7] - scale * (hx * hx + hz * hz);
        const T zz = composite[9] - scale * (hx * hx + hy * hy);
        const T xy = composite[5] + scale * hx * hy;
        const T xz = composite[6] + scale * hx * hz;
        const T yz = composite[8] + scale * hy * hz;
        return M3(xx, xy, xz, xy, yy, yz, xz, yz, zz);
    };
    // `replace_world_forces` of a free body, from its inertia, velocity and force. Returns whether it did.
    auto replace_gyroscopic = [&](const V10& composite, const T* velocity, T* force, V3& impulse) {
        const M3 inertia = spin_inertia(composite);
        const V3 omega(velocity[0], velocity[1], velocity[2]);
        const V3 momentum = wp::mul(inertia, omega);
        const V3 product = wp::cross(omega, momentum);
        const M3 inverse = inverse_matrix(inertia);
        Q rotation;
        if (!drift(inverse, momentum, rotation)) return false;
        const V3 local = wp::mul(inverse, wp::quat_rotate_inv(rotation, momentum));
        impulse = momentum - wp::mul(inertia, wp::quat_rotate(rotation, local));
        for (int k = 0; k < 3; ++k) force[k] = force[k] + product[k] - impulse[k] / T(dt);
        return true;
    };
"""
)
