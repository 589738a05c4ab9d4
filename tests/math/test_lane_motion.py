"""Spatial vectors and rotations in lanes have the bits of the Warp functions of the same names."""

import numpy as np
import pytest
import warp as wp

from pluriverse.math.lane_motion import LANE_MOTION
from pluriverse.math.lanes import LANES, lane_code
from pluriverse.math.precision import quat_type, vec3_type, vec6_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions

# Numbers that a world brings, and results it gets, in this order.
INPUTS = 32
RESULTS = 6 + 3 + 10 + 6 + 4 + 9 + 6 + 3

_LANES = """
    int at[8], to[8];
    for (int l = 0; l < 8; ++l) { at[l] = 32 * l; to[l] = 47 * l; }
    T x[32], y[47];
    gather(source.data, at, 32, x);
    V6 a, b, inertia;
    for (int k = 0; k < 6; ++k) { a[k] = x[k]; b[k] = x[6 + k]; inertia[k] = x[12 + k]; }
    const V3 com(x[18], x[19], x[20]);
    const Q q(x[22], x[23], x[24], x[25]);
    int n = 0;
    auto put = [&](const T& value) { y[n++] = value; };
    const V6 crossed = cross_motion(a, b);
    for (int k = 0; k < 6; ++k) put(crossed[k]);
    const V3 product = sym_times_vec(inertia, linear_part(a));
    for (int k = 0; k < 3; ++k) put(product[k]);
    const V10 composite = inertia_about_reference(x[21], com, inertia);
    for (int k = 0; k < 10; ++k) put(composite[k]);
    const V6 momentum = inertia_times_motion(composite, spatial(angular_part(a), linear_part(b)));
    for (int k = 0; k < 6; ++k) put(momentum[k]);
    const Q turned = quat_renormalize(q);
    put(turned.x); put(turned.y); put(turned.z); put(turned.w);
    const M3 matrix = matrix_from_quat(turned);
    for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) put(matrix.data[i][j]);
    const V6 rotated = rotate_sym(matrix, symmetric_matrix(inertia));
    for (int k = 0; k < 6; ++k) put(rotated[k]);
    const V3 arm = wp::mul(matrix, com);
    for (int k = 0; k < 3; ++k) put(arm[k]);
    scatter(y, 47, target.data, to);
"""


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_lanes_have_the_bits_of_the_functions_for_one_world(real):
    vec3, vec6, quat = vec3_type(real), vec6_type(real), quat_type(real)
    spatial_of, rotations = spatial_functions(real), rotation_functions(real)
    spatial, cross_motion, sym_times_vec = (
        spatial_of.spatial,
        spatial_of.cross_motion,
        spatial_of.sym_times_vec,
    )
    angular_part, linear_part = spatial_of.angular_part, spatial_of.linear_part
    inertia_about_reference = spatial_of.inertia_about_reference
    inertia_times_motion, symmetric_matrix = spatial_of.inertia_times_motion, spatial_of.symmetric_matrix
    quat_renormalize, matrix_from_quat = rotations.quat_renormalize, rotations.matrix_from_quat
    rotate_sym = rotations.rotate_sym

    @wp.func_native(lane_code(real, LANE_MOTION + _LANES))
    def compute_lanes(source: wp.array(dtype=real), target: wp.array(dtype=real)): ...

    @wp.kernel(enable_backward=False, module="unique")
    def in_lanes(source: wp.array(dtype=real), target: wp.array(dtype=real)):
        _thread, _ = wp.tid()
        compute_lanes(source, target)

    @wp.kernel(enable_backward=False, module="unique")
    def one_by_one(source: wp.array(dtype=real), target: wp.array(dtype=real)):
        world, _ = wp.tid()
        x = 32 * world
        y = 47 * world
        a = vec6()
        b = vec6()
        inertia = vec6()
        for k in range(6):
            a[k] = source[x + k]
            b[k] = source[x + 6 + k]
            inertia[k] = source[x + 12 + k]
        com = vec3(source[x + 18], source[x + 19], source[x + 20])
        q = quat(source[x + 22], source[x + 23], source[x + 24], source[x + 25])
        crossed = cross_motion(a, b)
        product = sym_times_vec(inertia, linear_part(a))
        composite = inertia_about_reference(source[x + 21], com, inertia)
        momentum = inertia_times_motion(composite, spatial(angular_part(a), linear_part(b)))
        turned = quat_renormalize(q)
        matrix = matrix_from_quat(turned)
        rotated = rotate_sym(matrix, symmetric_matrix(inertia))
        arm = matrix * com
        for k in range(6):
            target[y + k] = crossed[k]
            target[y + 19 + k] = momentum[k]
            target[y + 38 + k] = rotated[k]
        for k in range(3):
            target[y + 6 + k] = product[k]
            target[y + 44 + k] = arm[k]
            for j in range(3):
                target[y + 29 + 3 * k + j] = matrix[k, j]
        for k in range(10):
            target[y + 9 + k] = composite[k]
        for k in range(4):
            target[y + 25 + k] = turned[k]

    numbers = np.random.default_rng(5).normal(size=LANES * INPUTS)
    source = wp.array(numbers, dtype=real, device="cpu")
    lanes, ones = (wp.zeros(LANES * RESULTS, dtype=real, device="cpu") for _ in range(2))
    wp.launch(in_lanes, dim=(1, 1), inputs=[source, lanes], device="cpu")
    wp.launch(one_by_one, dim=(LANES, 1), inputs=[source, ones], device="cpu")
    assert np.isfinite(ones.numpy()).all()
    assert (ones.numpy() != 0.0).all()
    np.testing.assert_array_equal(lanes.numpy(), ones.numpy())
