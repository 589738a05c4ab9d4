"""Loops over the contacts of a world in native code: cost and impulses, and both along a direction.

The mathematics is that of `cone.py`, operation by operation, for eight contacts at a time
(`contact_lanes.py`). Sums are those of one contact after the other, so all results are, too. Warp's own loops
take longer: most of their instructions find entries of arrays, since a contact has some twenty of them.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

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


@functools.cache
def contact_loop_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the loops over the slots from `first` to before `end` of a world.

    - `evaluate_slots(sap, first, end)`: write the impulses; return the cost.
    - `probe_slots(sap, first, end, alpha)`: cost, slope and curvature at a step along the direction.
    - `advance_slots(sap, first, end, alpha)`: make that step.
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

    return SimpleNamespace(
        evaluate_slots=evaluate_slots, probe_slots=probe_slots, advance_slots=advance_slots
    )
