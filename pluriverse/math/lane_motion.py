"""Spatial vectors and rotations in lanes: `math.spatial` and `math.rotations` for eight worlds at once.

Each function makes the operations of its namesake there, in the same order, so that a lane has the same bits.
So do those of joint frames, whose namesakes are in `dynamics.joint_frames` and `dynamics.rigid_groups`.
"""

# Placed behind `math.lanes.lane_types`, whose types it uses.
LANE_MOTION = """
    auto angular_part = [](const V6& a) { return V3(a[0], a[1], a[2]); };
    auto linear_part = [](const V6& a) { return V3(a[3], a[4], a[5]); };
    auto spatial = [](const V3& a, const V3& b) {
        V6 result;
        for (int k = 0; k < 3; ++k) { result[k] = a[k]; result[3 + k] = b[k]; }
        return result;
    };
    auto cross_motion = [&](const V6& a, const V6& b) {
        const V3 omega = angular_part(a);
        const V3 linear = wp::cross(omega, linear_part(b)) + wp::cross(linear_part(a), angular_part(b));
        return spatial(wp::cross(omega, angular_part(b)), linear);
    };
    auto sym_times_vec = [](const V6& t, const V3& a) {
        return V3(
            t[0] * a[0] + t[1] * a[1] + t[2] * a[2],
            t[1] * a[0] + t[3] * a[1] + t[4] * a[2],
            t[2] * a[0] + t[4] * a[1] + t[5] * a[2]
        );
    };
    auto symmetric_matrix = [](const V6& t) {
        return M3(t[0], t[1], t[2], t[1], t[3], t[4], t[2], t[4], t[5]);
    };
    auto inertia_about_reference = [](const T& mass, const V3& com, const V6& inertia) {
        const T hx = mass * com[0], hy = mass * com[1], hz = mass * com[2];
        const T xx = hx * com[0], yy = hy * com[1], zz = hz * com[2];
        V10 result;
        result[0] = mass;
        result[1] = hx;
        result[2] = hy;
        result[3] = hz;
        result[4] = inertia[0] + yy + zz;
        result[5] = inertia[1] - hx * com[1];
        result[6] = inertia[2] - hx * com[2];
        result[7] = inertia[3] + xx + zz;
        result[8] = inertia[4] - hy * com[2];
        result[9] = inertia[5] + xx + yy;
        return result;
    };
    auto inertia_times_motion = [](const V10& i, const V6& m) {
        const T w0 = m[0], w1 = m[1], w2 = m[2], v0 = m[3], v1 = m[4], v2 = m[5];
        const T h0 = i[1], h1 = i[2], h2 = i[3];
        V6 result;
        result[0] = i[4] * w0 + i[5] * w1 + i[6] * w2 + h1 * v2 - h2 * v1;
        result[1] = i[5] * w0 + i[7] * w1 + i[8] * w2 + h2 * v0 - h0 * v2;
        result[2] = i[6] * w0 + i[8] * w1 + i[9] * w2 + h0 * v1 - h1 * v0;
        result[3] = i[0] * v0 + w1 * h2 - w2 * h1;
        result[4] = i[0] * v1 + w2 * h0 - w0 * h2;
        result[5] = i[0] * v2 + w0 * h1 - w1 * h0;
        return result;
    };
    auto quat_renormalize = [](const Q& q) {
        const T scale = T(1.5) - T(0.5) * (q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
        return Q(scale * q.x, scale * q.y, scale * q.z, scale * q.w);
    };
    auto matrix_from_quat = [](const Q& q) {
        const T x2 = q.x + q.x, y2 = q.y + q.y, z2 = q.z + q.z;
        const T xx = x2 * q.x, yy = y2 * q.y, zz = z2 * q.z;
        const T xy = x2 * q.y, xz = x2 * q.z, yz = y2 * q.z;
        const T xw = x2 * q.w, yw = y2 * q.w, zw = z2 * q.w;
        const T one = T(1);
        return M3(
            one - yy - zz, xy - zw, xz + yw, xy + zw, one - xx - zz, yz - xw, xz - yw, yz + xw, one - xx - yy
        );
    };
    // Warp rounds product and sum of matrices of real numbers once; `wp::mul` of other types does not.
    auto multiply_matrices = [](const M3& a, const M3& b) {
        M3 result;
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j) {
                T sum = T(0);
                for (int k = 0; k < 3; ++k) sum = __builtin_elementwise_fma(a.data[i][k], b.data[k][j], sum);
                result.data[i][j] = sum;
            }
        }
        return result;
    };
    auto rotate_sym = [&](const M3& rotation, const M3& tensor) {
        const M3 left = multiply_matrices(rotation, tensor);
        V3 r[3], l[3];
        for (int i = 0; i < 3; ++i) {
            r[i] = V3(rotation.data[i][0], rotation.data[i][1], rotation.data[i][2]);
            l[i] = V3(left.data[i][0], left.data[i][1], left.data[i][2]);
        }
        V6 result;
        result[0] = wp::dot(l[0], r[0]);
        result[1] = wp::dot(l[0], r[1]);
        result[2] = wp::dot(l[0], r[2]);
        result[3] = wp::dot(l[1], r[1]);
        result[4] = wp::dot(l[1], r[2]);
        result[5] = wp::dot(l[2], r[2]);
        return result;
    };
"""

# Placed behind `LANE_MOTION`, whose functions it uses.
LANE_FRAMES = """
    auto is_turned = [](const Q& a) { return (a.x != T(0)) | (a.y != T(0)) | (a.z != T(0)); };
    auto select = [](auto mask, const Q& a, const Q& b) {
        return Q(mask ? a.x : b.x, mask ? a.y : b.y, mask ? a.z : b.z, mask ? a.w : b.w);
    };
    auto chain_rotation = [&](const Q& outer, const Q& inner) {
        return select(is_turned(inner), wp::mul(outer, inner), outer);
    };
    auto quat_normalize = [](const Q& a) {
        const T scale = T(1) / __builtin_elementwise_sqrt(a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w);
        return Q(scale * a.x, scale * a.y, scale * a.z, scale * a.w);
    };
    auto quat_from_axis_angle = [](const V3& axis, const T& angle) {
        const T half = T(0.5) * angle;
        T sine, cosine;
        for (int l = 0; l < 8; ++l) {
            sine[l] = wp::sin(S(half[l]));
            cosine[l] = wp::cos(S(half[l]));
        }
        return Q(sine * axis[0], sine * axis[1], sine * axis[2], cosine);
    };
    auto widen_axis = [](const V3& axis) {
        return wp::mul(T(1.5) - T(0.5) * wp::dot(axis, axis), axis);
    };
    // Returns the motion subspace of the axis.
    auto move_along_axis = [&](bool linear, const V3& axis, const T& position, Q& frame, V3& shift) {
        const V3 direction = wp::quat_rotate(frame, widen_axis(axis));
        if (linear) {
            shift = wp::add(shift, wp::mul(position, direction));
            return spatial(V3(), direction);
        }
        const V6 motion = spatial(direction, wp::cross(shift, direction));
        frame = wp::mul(quat_from_axis_angle(direction, position), frame);
        return motion;
    };
    auto child_from_joint_frame = [&](Q& frame, V3& shift, const Q& child_rotation, const V3& position) {
        frame = quat_renormalize(chain_rotation(frame, child_rotation));
        const auto is_off = (position[0] != T(0)) | (position[1] != T(0)) | (position[2] != T(0));
        const V3 there = wp::sub(shift, wp::quat_rotate(frame, position));
        for (int k = 0; k < 3; ++k) shift[k] = is_off ? there[k] : shift[k];
    };
"""
