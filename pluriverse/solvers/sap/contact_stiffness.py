"""Stiffness of contacts between two bodies, summed in native code: K = J^T G J, with J of both bodies.

Reads   frame, arms, velocity and terms of the contacts (`contact.py`)
Writes  node_stiffness_ww, node_stiffness_wv, node_stiffness_vv

Contacts are taken eight at a time, in the lanes of vectors (`contact_lanes.py`). With W = R G R^T in world
axes and [r] the matrix of r x, a contact adds [r] W [r]^T, [r] W and W to the blocks of K of each body, of
which [r] W is that of moments by velocities, and [r_a] W [r_b]^T, [r_a] W, ([r_b] W)^T and W to the blocks
that couple them. Where of eight contacts none has a first body that moves, or none a second one, as under a
robot that lies on the ground, half of these are left out.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.solvers.sap.cone import FRICTIONLESS
from pluriverse.solvers.sap.contact_lanes import contact_lanes
from pluriverse.solvers.sap.workspace import RUN_SIZE, sap_struct

# The stiffness W of a contact, [r] W and [r] W [r]^T of the first and the second body, and between them.
_RECORD = f"""
    enum {{ ANGULAR0 = 0, MIXED0 = 9, LINEAR = 18, ANGULAR1 = 27, MIXED1 = 36, BETWEEN = 45 }};
    constexpr int RECORD = {RUN_SIZE};
"""

_VALUE = """
    auto at = [](const auto& array, int index) {
        return (decltype(array.data))((char*)array.data + (long long)array.strides[0] * index);
    };
"""

_MEASURE = (
    _VALUE
    + """
    T* out = work.data + work_base;
    int slots[LANES], count = 0, slot = first;
    const V* places[LANES];
    const V* terms[LANES];
    for (; slot < end && count < LANES; ++slot) {
        if (at(sap.contact_impulse, slot)->c[2] == V(0) && !(*at(sap.contact_bound, slot) > V(0))) continue;
        places[count] = (const V*)at(sap.contact_frame, slot);
        terms[count] = (const V*)at(sap.contact_velocity, slot);
        slots[count++] = slot;
    }
    if (count == 0) {
        out[RECORD - 1] = T(-1);
        return slot;
    }
    for (int l = count; l < LANES; ++l) {
        places[l] = places[0];
        terms[l] = terms[0];
    }
    lane term[TERM_COUNT], place[PLACE_COUNT];
    load(terms, TERM_COUNT, term);
    load(places, PLACE_COUNT, place);
    lane record[RECORD];
    bool moves_first = false, moves_second = false;
    for (int l = 0; l < count; ++l) {
        moves_first |= *at(sap.contact_node0, slots[l]) >= 0;
        moves_second |= *at(sap.contact_node1, slots[l]) >= 0;
    }
    // The blocks of each body are side by side, with those of velocities by forces between them.
    const int first_number = moves_first ? 0 : LINEAR / 8 * 8;
    const int end_number = moves_second ? (moves_first ? RECORD : BETWEEN + 3) : ANGULAR1 + 5;
    static_assert((BETWEEN + 3) % 8 == 0 && (ANGULAR1 + 5) % 8 == 0, "whole vectors");
    {
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    #pragma clang fp contract(fast)
    #endif
    // Products and sums become one operation here: nothing is meant to cancel to the last bit.
    const lane zero = lane(V(0)), one = lane(V(1));
    const lane rt = term[TANGENTIAL], rn = term[NORMAL], mu = term[FRICTION];
    const lane bound = term[BOUND], soft = term[SOFT];
    const lane y0 = -term[VELOCITY] / rt, y1 = -term[VELOCITY + 1] / rt;
    const lane y2 = (term[BIAS] - term[VELOCITY + 2]) / rn;
    const lane norm = root(y0 * y0 + y1 * y1 + soft * soft);
    const lane mu_hat = mu * rt / rn;
    const auto smooth = mu <= lane(V(FRICTIONLESS));
    const auto bounded = (bound >= zero) & !smooth;
    const auto convex = !(bound >= zero) & !smooth;
    const auto pushes = (y2 > zero) & (smooth | bounded);
    const auto sticks = convex & (norm <= mu * y2);
    const auto slides = convex & !(norm <= mu * y2) & (y2 > -mu_hat * norm);
    const auto slips = bounded & (norm > mu * bound);
    const auto holds = bounded & !(norm > mu * bound);
    const lane share = one / (one + mu * mu_hat);
    const lane tangential = one / rt, inverse = one / norm;
    // Stiffness along the normal, and across and along the direction of sliding in the tangents.
    lane normal = (sticks | pushes | slides) ? one / rn : zero;
    normal = slides ? normal * share : normal;
    lane across = (sticks | holds) ? tangential : zero;
    across = slips ? mu * bound * tangential * inverse : across;
    across = slides ? mu * tangential * share * (y2 + mu_hat * norm) * inverse : across;
    const auto moves = slides | slips;
    const lane t0 = moves ? y0 * inverse : zero, t1 = moves ? y1 * inverse : zero;
    const lane rest = moves ? soft * inverse : one;
    const lane g0 = slides ? mu * t0 : zero, g1 = slides ? mu * t1 : zero;
    lane G[3][3];
    // 1 - t0 t0 is t1 t1 and what the norm is rounded by, without any difference.
    G[0][0] = across * (t1 * t1 + rest * rest) + normal * g0 * g0;
    G[1][1] = across * (t0 * t0 + rest * rest) + normal * g1 * g1;
    G[0][1] = G[1][0] = normal * g0 * g1 - across * t0 * t1;
    G[0][2] = G[2][0] = normal * g0;
    G[1][2] = G[2][1] = normal * g1;
    G[2][2] = normal;

    const lane* R = place + FRAME;
    lane W[3][3];
    for (int r = 0; r < 3; ++r) {
        lane turned[3];
        for (int c = 0; c < 3; ++c)
            turned[c] = R[3 * r] * G[0][c] + R[3 * r + 1] * G[1][c] + R[3 * r + 2] * G[2][c];
        for (int c = 0; c <= r; ++c) {
            W[r][c] = turned[0] * R[3 * c] + turned[1] * R[3 * c + 1] + turned[2] * R[3 * c + 2];
            W[c][r] = W[r][c];
        }
    }
    // Rows of [r] W, and of [r] W [s]^T from those.
    auto turn = [](const lane* r, const lane (&w)[3][3], lane* to) {
        for (int c = 0; c < 3; ++c) {
            to[c] = r[1] * w[2][c] - r[2] * w[1][c];
            to[3 + c] = r[2] * w[0][c] - r[0] * w[2][c];
            to[6 + c] = r[0] * w[1][c] - r[1] * w[0][c];
        }
    };
    auto turn_rows = [](const lane* rows, const lane* s, lane* to) {
        for (int r = 0; r < 3; ++r, rows += 3, to += 3) {
            to[0] = s[1] * rows[2] - s[2] * rows[1];
            to[1] = s[2] * rows[0] - s[0] * rows[2];
            to[2] = s[0] * rows[1] - s[1] * rows[0];
        }
    };
    for (int k = first_number; k < end_number; ++k) record[k] = zero;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) record[LINEAR + 3 * r + c] = W[r][c];
    if (moves_first) {
        turn(place + ARM0, W, record + MIXED0);
        turn_rows(record + MIXED0, place + ARM0, record + ANGULAR0);
    }
    if (moves_second) {
        turn(place + ARM1, W, record + MIXED1);
        turn_rows(record + MIXED1, place + ARM1, record + ANGULAR1);
    }
    if (moves_first && moves_second) turn_rows(record + MIXED0, place + ARM1, record + BETWEEN);
    }

    // The sums of each run of contacts between the same bodies, in the order of their slots.
    #if defined(__clang__) && !defined(__CUDA_ARCH__)
    typedef T sums __attribute__((ext_vector_type(8), aligned(sizeof(T))));
    int runs = 0, begin[LANES + 1];
    for (int l = 0; l < count; ++l) {
        const bool is_new = l == 0 || *at(sap.contact_node0, slots[l]) != *at(sap.contact_node0, slots[l - 1])
            || *at(sap.contact_node1, slots[l]) != *at(sap.contact_node1, slots[l - 1]);
        if (is_new) begin[runs++] = l;
    }
    begin[runs] = count;
    for (int k = first_number; k < end_number; k += 8) {
        lane rows[8];
        transpose(record + k, rows);
        for (int r = 0; r < runs; ++r) {
            sums sum = __builtin_convertvector(rows[begin[r]], sums);
            for (int l = begin[r] + 1; l < begin[r + 1]; ++l) sum += __builtin_convertvector(rows[l], sums);
            *(sums*)(out + RECORD * r + k) = sum;
        }
    }
    for (int r = 0; r < runs; ++r) out[RECORD * r + RECORD - 1] = T(slots[begin[r]] - first);
    #else
    for (int k = first_number; k < end_number; ++k) out[k] = T(record[k]);
    out[RECORD - 1] = T(slots[0] - first);
    const int runs = 1;
    #endif
    out[RECORD * runs + RECORD - 1] = T(-1);
    return slot;
"""
)

_ADD = (
    _VALUE
    + """
    const T* sum = work.data + work_base;
    const int slot = first + (int)sum[RECORD - 1];
    const int a = *at(sap.contact_node0, slot), b = *at(sap.contact_node1, slot);
    auto add = [&](const int node, const T* ww, const T* wv) {
        if (node < 0) return;
        T* const to[3] = {
            (T*)at(sap.node_stiffness_ww, node0 + node),
            (T*)at(sap.node_stiffness_wv, node0 + node),
            (T*)at(sap.node_stiffness_vv, node0 + node)};
        const T* const from[3] = {ww, wv, sum + LINEAR};
        for (int m = 0; m < 3; ++m) {
            // All is read before any is written: the compiler does not know that these are not the same.
            T total[9];
            for (int e = 0; e < 9; ++e) total[e] = to[m][e] + from[m][e];
            for (int e = 0; e < 9; ++e) to[m][e] = total[e];
        }
    };
    add(a, sum + ANGULAR0, sum + MIXED0);
    add(b, sum + ANGULAR1, sum + MIXED1);
    wp::mat_t<6, 6, T> between;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) {
            between.data[r][c] = sum[BETWEEN + 3 * r + c];
            between.data[r][3 + c] = sum[MIXED0 + 3 * r + c];
            between.data[3 + r][c] = sum[MIXED1 + 3 * c + r];
            between.data[3 + r][3 + c] = sum[LINEAR + 3 * r + c];
        }
    return between;
"""
)


@made_once
def mat66_type(real: Any) -> Any:
    """Return the 6x6 matrix type with scalars of type `real`."""
    return wp.types.matrix(shape=(6, 6), dtype=real)


@made_once
def contact_stiffness_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the functions for the given precisions.

    - `measure_stiffness(sap, first, end, work, work_base)`: writes the sums of runs of contacts between the
      same bodies, in the order of their slots, from slot `first` on until some number of contacts is done,
      and returns the slot behind these. Each run takes `RUN_SIZE` numbers, of which the last says how far
      from `first` a slot of it is; behind the last run that is -1.
    - `add_stiffness(sap, first, node0, work, work_base)`: add such a sum to the stiffness of both bodies;
      return the part that couples them, without its sign.
    """
    SapData, mat66 = sap_struct(real, linear), mat66_type(linear)
    types = f"using T = {CTYPE[linear]};"
    limits = f"constexpr double FRICTIONLESS = {FRICTIONLESS};"

    @wp.func_native(contact_lanes(real) + types + limits + _RECORD + _MEASURE)
    def measure_stiffness(
        sap: wp.ref[SapData], first: int, end: int, work: wp.array[linear], work_base: int
    ) -> int: ...

    @wp.func_native(types + _RECORD + _ADD)
    def add_stiffness(
        sap: wp.ref[SapData], first: int, node0: int, work: wp.array[linear], work_base: int
    ) -> mat66: ...

    return SimpleNamespace(measure_stiffness=measure_stiffness, add_stiffness=add_stiffness)
