"""Loops over the contacts of a world in native code: velocities, cost and impulses, and along a direction.

The mathematics is that of `cone.py`, operation by operation, for eight contacts at a time
(`contact_lanes.py`). Sums are those of one contact after the other, so all results are, too. Warp's own loops
take longer: most of their instructions find entries of arrays, since a contact has some twenty of them.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import vec3_type
from pluriverse.solvers.sap.cone import FRICTIONLESS
from pluriverse.solvers.sap.contact_lanes import contact_lanes
from pluriverse.solvers.sap.workspace import sap_struct

# All arrays of contacts are interleaved (`SapWorkspace`). Where the last are less than eight, one of them
# is taken several times.
_SLOTS = """
    const long long stride = sap.contact_velocity.strides[0];
    char* velocities = (char*)sap.contact_velocity.data;
    const V none = V(0);
    const lane zero = lane(none), one = lane(V(1)), two = lane(V(2)), half = lane(V(0.5));
    auto load_terms = [&](const int slot, const int count, V** terms, lane* term) {
        for (int l = 0; l < LANES; ++l) terms[l] = (V*)(velocities + stride * (slot + (l < count ? l : 0)));
        load(terms, TERM_COUNT, term);
    };
    auto count_of = [&](const int slot) { return end - slot < LANES ? end - slot : LANES; };
"""

_EVALUATE = (
    _SLOTS
    + """
    V cost = none;
    for (int slot = first; slot < end; slot += LANES) {
        const int count = count_of(slot);
        V* terms[LANES];
        lane term[TERM_COUNT];
        load_terms(slot, count, terms, term);
        const lane rn = term[NORMAL], rt = term[TANGENTIAL], mu = term[FRICTION];
        const lane bound = term[BOUND], soft = term[SOFT];
        const lane y0 = -term[VELOCITY] / rt, y1 = -term[VELOCITY + 1] / rt;
        const lane y2 = (term[BIAS] - term[VELOCITY + 2]) / rn;
        const lane above = y2 < zero ? zero : y2;  // NaN stays
        const lane y_r = root(y0 * y0 + y1 * y1 + soft * soft);
        const lane mu_hat = mu * rt / rn;
        const auto sticks = y_r <= mu * y2;
        const auto slides = y2 > -mu_hat * y_r;
        const lane normal = (y2 + mu_hat * y_r) / (one + mu * mu_hat);
        const lane tangent = mu * normal / y_r;
        // result: the impulse and the cost
        lane result[4];
        result[0] = sticks ? y0 : (slides ? tangent * y0 : zero);
        result[1] = sticks ? y1 : (slides ? tangent * y1 : zero);
        result[2] = sticks ? y2 : (slides ? normal : zero);
        lane tangential = result[0] * result[0] + result[1] * result[1];
        const auto smooth = mu <= lane(V(FRICTIONLESS));
        const auto bounded = bound >= zero;
        if (any(bounded)) {
            const lane limit = mu * bound;
            const lane reach = limit / y_r;
            const lane share = reach < one ? reach : one;
            const lane x0 = share * y0, x1 = share * y1;
            const lane beyond = two * limit * y_r - (limit * limit + soft * soft);
            tangential = bounded ? (y_r > limit ? beyond : x0 * x0 + x1 * x1) : tangential;
            result[0] = bounded ? x0 : result[0];
            result[1] = bounded ? x1 : result[1];
            result[2] = bounded ? above : result[2];
        }
        if (any(smooth)) {
            tangential = smooth ? zero : tangential;
            result[0] = smooth ? zero : result[0];
            result[1] = smooth ? zero : result[1];
            result[2] = smooth ? above : result[2];
        }
        result[3] = half * (rt * tangential + rn * result[2] * result[2]);
        const V* found = (const V*)result;
        for (int l = 0; l < count; ++l) {
            if (!(terms[l][NORMAL] > none)) continue;
            for (int k = 0; k < 3; ++k) terms[l][IMPULSE + k] = found[LANES * k + l];
            cost += found[LANES * 3 + l];
        }
    }
    return cost;
"""
)

_PROBE = (
    _SLOTS
    + """
    V value = none, slope = none, curvature = none;
    const lane a = lane(alpha);
    for (int slot = first; slot < end; slot += LANES) {
        const int count = count_of(slot);
        V* terms[LANES];
        lane term[TERM_COUNT];
        load_terms(slot, count, terms, term);
        const lane rn = term[NORMAL], rt = term[TANGENTIAL], mu = term[FRICTION];
        const lane bound = term[BOUND], soft = term[SOFT];
        const lane r0 = term[SLOPE], r1 = term[SLOPE + 1], r2 = term[SLOPE + 2];
        const lane y0 = -(term[VELOCITY] + a * r0) / rt, y1 = -(term[VELOCITY + 1] + a * r1) / rt;
        const lane y2 = (term[BIAS] - (term[VELOCITY + 2] + a * r2)) / rn;
        const lane square = y0 * y0 + y1 * y1;
        const lane y_r = root(square + soft * soft);
        const lane across = y0 * r0 + y1 * r1;
        const lane rate2 = r0 * r0 + r1 * r1;
        const lane mu_hat = mu * rt / rn;
        const lane speed = across / y_r;
        const auto sticks = y_r <= mu * y2;
        const auto slides = y2 > -mu_hat * y_r;
        const lane f = one / (one + mu * mu_hat);
        const lane normal = (y2 + mu_hat * y_r) * f;
        const lane tangent = mu * normal / y_r;
        const lane turning = mu / rt * f * (y2 + mu_hat * y_r) / y_r;
        const lane fast = mu / rt * mu_hat * f;
        const lane stuck_value = half * (rt * square + rn * y2 * y2);
        const lane stuck_bend = rate2 / rt + r2 * r2 / rn;
        const lane slid_value = half * (rt * tangent * tangent * square + rn * normal * normal);
        const lane slid_bend = turning * (rate2 - speed * speed) + fast * speed * speed
            + f / rn * r2 * (two * mu * speed + r2);
        // result: cost, slope, curvature
        lane result[3];
        result[0] = sticks ? stuck_value : (slides ? slid_value : zero);
        result[1] = sticks ? -(across + y2 * r2) : (slides ? -(tangent * across + normal * r2) : zero);
        result[2] = sticks ? stuck_bend : (slides ? slid_bend : zero);
        const auto pushes = y2 > zero;
        const auto smooth = mu <= lane(V(FRICTIONLESS));
        const auto bounded = bound >= zero;
        if (any(bounded)) {
            const lane limit = mu * bound;
            const auto slips = y_r > limit;
            const lane share = limit / y_r;
            const lane beyond = rt * (limit * y_r - half * (limit * limit + soft * soft));
            lane more = slips ? beyond : half * rt * square;
            lane fall = slips ? -share * across : -across;
            lane bend = slips ? share / rt * (rate2 - speed * speed) : rate2 / rt;
            more = pushes ? more + half * rn * y2 * y2 : more;
            fall = pushes ? fall - y2 * r2 : fall;
            bend = pushes ? bend + r2 * r2 / rn : bend;
            result[0] = bounded ? more : result[0];
            result[1] = bounded ? fall : result[1];
            result[2] = bounded ? bend : result[2];
        }
        if (any(smooth)) {
            const lane above = y2 < zero ? zero : y2;  // NaN stays
            const lane bend = pushes ? r2 * r2 / rn : zero;
            result[0] = smooth ? half * rn * above * above : result[0];
            result[1] = smooth ? -above * r2 : result[1];
            result[2] = smooth ? bend : result[2];
        }
        const V* found = (const V*)result;
        for (int l = 0; l < count; ++l) {
            if (!(terms[l][NORMAL] > none)) continue;
            value += found[l];
            slope += found[LANES + l];
            curvature += found[2 * LANES + l];
        }
    }
    return wp::vec_t<3, V>(value, slope, curvature);
"""
)

_MEASURE = """
    const long long stride = sap.contact_frame.strides[0];
    const V* rates = (const V*)(sap.node_rate.data + node0);
    auto record = [&](const auto& array, const int slot) {
        return (const char*)array.data + stride * slot;
    };
    lane index;
    for (int l = 0; l < LANES; ++l) ((V*)&index)[l] = V(l);
    for (int slot = first; slot < end; slot += LANES) {
        const int count = end - slot < LANES ? end - slot : LANES;
        const V* places[LANES];
        // Velocities of both bodies, 0 of one that does not move. Contacts of two bodies follow each other.
        lane w0[6], w1[6];
        int last0 = -1, last1 = -1;
        for (int k = 0; k < 6; ++k) w0[k] = w1[k] = lane(V(0));
        auto spread = [&](const int node, const int l, lane* w) {
            const auto behind = index >= lane(V(l));
            for (int k = 0; k < 6; ++k) w[k] = behind ? lane(node < 0 ? V(0) : rates[6 * node + k]) : w[k];
        };
        for (int l = 0; l < LANES; ++l) {
            const int at = slot + (l < count ? l : 0);
            places[l] = (const V*)record(sap.contact_frame, at);
            if (l >= count) continue;
            const int node_a = *(const int*)record(sap.contact_node0, at);
            const int node_b = *(const int*)record(sap.contact_node1, at);
            if (node_a != last0) spread(node_a, l, w0);
            if (node_b != last1) spread(node_b, l, w1);
            last0 = node_a;
            last1 = node_b;
        }
        lane place[PLACE_COUNT];
        load(places, PLACE_COUNT, place);
        auto point = [](const lane* w, const lane* r, lane* v) {
            v[0] = w[3] + (w[1] * r[2] - w[2] * r[1]);
            v[1] = w[4] + (w[2] * r[0] - w[0] * r[2]);
            v[2] = w[5] + (w[0] * r[1] - w[1] * r[0]);
        };
        lane v[3], v_a[3], result[3];
        point(w1, place + ARM1, v);
        point(w0, place + ARM0, v_a);
        for (int k = 0; k < 3; ++k) v[k] -= v_a[k];
        // The transposed frame times the velocity.
        const lane* f = place + FRAME;
        for (int c = 0; c < 3; ++c) result[c] = v[0] * f[c] + v[1] * f[3 + c] + v[2] * f[6 + c];
        const V* found = (const V*)result;
        for (int l = 0; l < count; ++l) {
            V* to = (V*)((char*)rate.data + (long long)rate.strides[0] * (slot + l));
            for (int k = 0; k < 3; ++k) to[k] = found[LANES * k + l];
            if (along_chords == 0) continue;
            const V* chord = (const V*)record(sap.contact_chord, slot + l);
            for (int k = 0; k < 2; ++k) to[k] += chord[k];
        }
    }
"""

_ADVANCE = """
    const long long stride = sap.contact_velocity.strides[0];
    char* velocities = (char*)sap.contact_velocity.data;
    const char* slopes = (const char*)sap.contact_slope.data;
    for (long long slot = stride * first; slot < stride * end; slot += stride) {
        V* velocity = (V*)(velocities + slot);
        const V* rate = (const V*)(slopes + slot);
        for (int k = 0; k < 3; ++k) velocity[k] += alpha * rate[k];
    }
"""

_NEXT = """
    const long long stride = sap.contact_dof0.strides[0];
    int slot = first;
    auto record = [&](const auto& array) { return (const char*)array.data + stride * slot; };
    for (; slot < end; ++slot) {
        const int a = *(const int*)record(sap.contact_dof0), b = *(const int*)record(sap.contact_dof1);
        if (a < 0 || b < 0 || (a == last_a && b == last_b)) continue;
        const V normal = ((const V*)record(sap.contact_impulse))[2];
        if (normal != V(0) || *(const V*)record(sap.contact_bound) > V(0)) break;
    }
    return slot;
"""


@made_once
def contact_loop_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the loops over the slots from `first` to before `end` of a world.

    - `evaluate_slots(sap, first, end)`: write the impulses; return the cost.
    - `probe_slots(sap, first, end, alpha)`: cost, slope and curvature at a step along the direction.
    - `advance_slots(sap, first, end, alpha)`: make that step.
    - `measure_slots(sap, first, end, node0, along_chords, rate)`: write the velocity of the second body
      against the first, in the contact frame, at the body velocities `node_rate` from `node0` on; that of the
      chord (`contact_chord.py`) if `along_chords` is not 0.
    - `next_pair(sap, first, end, last_a, last_b)`: the first contact that acts between two bodies that move,
      by their last degrees of freedom other ones than `last_a` and `last_b`; `end` if there is none.
    """
    SapData, vec3 = sap_struct(real, linear), vec3_type(real)
    types = f"using V = {CTYPE[real]};"
    lanes = contact_lanes(real) + f"constexpr double FRICTIONLESS = {FRICTIONLESS};"

    @wp.func_native(lanes + _EVALUATE)
    def evaluate_slots(sap: wp.ref[SapData], first: int, end: int) -> real: ...

    @wp.func_native(lanes + _PROBE)
    def probe_slots(sap: wp.ref[SapData], first: int, end: int, alpha: real) -> vec3: ...

    @wp.func_native(types + _ADVANCE)
    def advance_slots(sap: wp.ref[SapData], first: int, end: int, alpha: real): ...

    @wp.func_native(lanes + _MEASURE)
    def measure_slots(
        sap: wp.ref[SapData],
        first: int,
        end: int,
        node0: int,
        along_chords: int,
        rate: wp.array(dtype=vec3),
    ): ...

    @wp.func_native(types + _NEXT)
    def next_pair(sap: wp.ref[SapData], first: int, end: int, last_a: int, last_b: int) -> int: ...

    return SimpleNamespace(
        measure_slots=measure_slots,
        next_pair=next_pair,
        evaluate_slots=evaluate_slots,
        probe_slots=probe_slots,
        advance_slots=advance_slots,
    )
