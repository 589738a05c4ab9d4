"""Whether the poses of a world are finite, for the stages that end the steps of solvers."""

import warp as wp

_SUM = """
    // Sums in eight parts. A sum with NaN or infinity in it is not finite, so entries need no test each.
    float parts[8] = {};
    auto add = [&](const auto& array, int width) {
        const char* from = (const char*)array.data + (long long)array.strides[0] * begin;
        if (array.strides[0] == width * (int)sizeof(float)) {
            const float* numbers = (const float*)from;
            const int count = end > begin ? width * (end - begin) : 0;
            int k = 0;
            for (; k + 8 <= count; k += 8)
                for (int l = 0; l < 8; ++l) parts[l] += numbers[k + l];
            for (int l = 0; k + l < count; ++l) parts[l] += numbers[k + l];
            return;
        }
        for (int body = begin; body < end; ++body, from += array.strides[0])
            for (int l = 0; l < width; ++l) parts[l] += ((const float*)from)[l];
    };
    add(body_q, 7);
    add(body_qd, 6);
    float sum = 0.0f;
    for (int l = 0; l < 8; ++l) sum += parts[l];
    return sum - sum == 0.0f;
"""


_SUM_READ = """
    // As above, of bodies one by one: seven and six numbers in blocks of four that overlap.
    float parts[4] = {};
    for (int body = 0; body < count; ++body) {
        if (!node_is_read.data[first_node + body_node.data[first_body + body]]) continue;
        const long long at = base + body;
        const float* q = (const float*)((const char*)body_q.data + body_q.strides[0] * at);
        const float* v = (const float*)((const char*)body_qd.data + body_qd.strides[0] * at);
        for (int l = 0; l < 4; ++l) parts[l] += (q[l] + q[3 + l]) + (v[l] + v[2 + l]);
    }
    const float sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    return sum - sum == 0.0f;
"""


@wp.func_native(_SUM)
def are_finite_bodies(
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    begin: int,
    end: int,
) -> bool:
    """Return whether pose and velocity of some bodies are finite."""
    ...


@wp.func_native(_SUM_READ)
def are_finite_read_bodies(
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    base: int,
    count: int,
    body_node: wp.array[int],  # [template body]
    first_body: int,
    node_is_read: wp.array[int],  # [template node]
    first_node: int,
) -> bool:
    """Return whether pose and velocity are finite of those of `count` bodies from `base` on that are read."""
    ...
