"""Loops over the contacts of a world in native code: cost and impulses, and both along a direction.

The mathematics is that of `cone.py`, operation by operation. Warp's own loops take longer:
most of their instructions find entries of arrays, since a contact has some twenty of them.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.dense import CTYPE
from pluriverse.math.precision import vec3_type
from pluriverse.solvers.sap.cone import FRICTIONLESS
from pluriverse.solvers.sap.workspace import sap_struct

# All arrays of contacts are interleaved (`SapWorkspace`), so an offset in bytes is the same in each.
_SLOTS = """
    const long long stride = sap.contact_rn.strides[0];
    const long long begin = stride * first, behind = stride * end;
    auto real_at = [](const char* array, long long offset) { return *(const V*)(array + offset); };
    const char* velocities = (const char*)sap.contact_velocity.data;
    const char* slopes = (const char*)sap.contact_slope.data;
    const char* biases = (const char*)sap.contact_bias.data;
    const char* bounds = (const char*)sap.contact_bound.data;
    const char* frictions = (const char*)sap.contact_mu.data;
    const char* softs = (const char*)sap.contact_soft.data;
    const char* tangentials = (const char*)sap.contact_rt.data;
    const char* normals = (const char*)sap.contact_rn.data;
    char* impulses = (char*)sap.contact_impulse.data;
    const V zero = V(0), one = V(1), two = V(2), half = V(0.5);
"""

_EVALUATE = (
    _SLOTS
    + """
    V cost = zero;
    for (long long slot = begin; slot < behind; slot += stride) {
        const V rn = real_at(normals, slot);
        if (!(rn > zero)) continue;
        const V rt = real_at(tangentials, slot), mu = real_at(frictions, slot);
        const V bound = real_at(bounds, slot), soft = real_at(softs, slot);
        const V* velocity = (const V*)(velocities + slot);
        V* gamma = (V*)(impulses + slot);
        const V y0 = -velocity[0] / rt, y1 = -velocity[1] / rt;
        const V y2 = (real_at(biases, slot) - velocity[2]) / rn;
        const V above = y2 < zero ? zero : y2;  // NaN stays
        if (mu <= V(FRICTIONLESS)) {
            gamma[0] = zero;
            gamma[1] = zero;
            gamma[2] = above;
            cost += half * (rt * zero + rn * above * above);
            continue;
        }
        const V y_r = sqrt(y0 * y0 + y1 * y1 + soft * soft);
        if (bound >= zero) {
            const V limit = mu * bound;
            const V reach = limit / y_r;
            const V share = reach < one ? reach : one;
            const V x0 = share * y0, x1 = share * y1;
            V tangential = x0 * x0 + x1 * x1;
            if (y_r > limit) tangential = two * limit * y_r - (limit * limit + soft * soft);
            gamma[0] = x0;
            gamma[1] = x1;
            gamma[2] = above;
            cost += half * (rt * tangential + rn * above * above);
            continue;
        }
        V x0 = zero, x1 = zero, x2 = zero;
        if (y_r <= mu * y2) {
            x0 = y0;
            x1 = y1;
            x2 = y2;
        } else {
            const V mu_hat = mu * rt / rn;
            if (y2 > -mu_hat * y_r) {
                x2 = (y2 + mu_hat * y_r) / (one + mu * mu_hat);
                const V tangent = mu * x2 / y_r;
                x0 = tangent * y0;
                x1 = tangent * y1;
            }
        }
        gamma[0] = x0;
        gamma[1] = x1;
        gamma[2] = x2;
        cost += half * (rt * (x0 * x0 + x1 * x1) + rn * x2 * x2);
    }
    return cost;
"""
)

_PROBE = (
    _SLOTS
    + """
    V value = zero, slope = zero, curvature = zero;
    for (long long slot = begin; slot < behind; slot += stride) {
        const V rn = real_at(normals, slot);
        if (!(rn > zero)) continue;
        const V rt = real_at(tangentials, slot), mu = real_at(frictions, slot);
        const V bound = real_at(bounds, slot), soft = real_at(softs, slot);
        const V* velocity = (const V*)(velocities + slot);
        const V* rate = (const V*)(slopes + slot);
        const V y2 = (real_at(biases, slot) - (velocity[2] + alpha * rate[2])) / rn;
        if (mu <= V(FRICTIONLESS)) {
            const V above = y2 < zero ? zero : y2;  // NaN stays
            value += half * rn * above * above;
            slope += -above * rate[2];
            if (y2 > zero) curvature += rate[2] * rate[2] / rn;
            continue;
        }
        const V y0 = -(velocity[0] + alpha * rate[0]) / rt, y1 = -(velocity[1] + alpha * rate[1]) / rt;
        const V square = y0 * y0 + y1 * y1;
        const V y_r = sqrt(square + soft * soft);
        const V across = y0 * rate[0] + y1 * rate[1];
        const V rate2 = rate[0] * rate[0] + rate[1] * rate[1];
        if (bound >= zero) {
            V more = half * rt * square, fall = -across, bend = rate2 / rt;
            if (y_r > mu * bound) {
                const V limit = mu * bound;
                const V share = limit / y_r;
                const V speed = across / y_r;
                more = rt * (limit * y_r - half * (limit * limit + soft * soft));
                fall = -share * across;
                bend = share / rt * (rate2 - speed * speed);
            }
            if (y2 > zero) {
                more += half * rn * y2 * y2;
                fall -= y2 * rate[2];
                bend += rate[2] * rate[2] / rn;
            }
            value += more;
            slope += fall;
            curvature += bend;
            continue;
        }
        if (y_r <= mu * y2) {
            value += half * (rt * square + rn * y2 * y2);
            slope += -(across + y2 * rate[2]);
            curvature += rate2 / rt + rate[2] * rate[2] / rn;
            continue;
        }
        const V mu_hat = mu * rt / rn;
        if (!(y2 > -mu_hat * y_r)) continue;
        const V f = one / (one + mu * mu_hat);
        const V normal = (y2 + mu_hat * y_r) * f;
        const V tangent = mu * normal / y_r;
        const V speed = across / y_r;
        const V turning = mu / rt * f * (y2 + mu_hat * y_r) / y_r;
        const V fast = mu / rt * mu_hat * f;
        value += half * (rt * tangent * tangent * square + rn * normal * normal);
        slope += -(tangent * across + normal * rate[2]);
        curvature += turning * (rate2 - speed * speed) + fast * speed * speed
            + f / rn * rate[2] * (two * mu * speed + rate[2]);
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
    types = f"using V = {CTYPE[real]}; constexpr double FRICTIONLESS = {FRICTIONLESS};"

    @wp.func_native(types + _EVALUATE)
    def evaluate_slots(sap: wp.ref[SapData], first: int, end: int) -> real: ...

    @wp.func_native(types + _PROBE)
    def probe_slots(sap: wp.ref[SapData], first: int, end: int, alpha: real) -> vec3: ...

    @wp.func_native(types + _ADVANCE)
    def advance_slots(sap: wp.ref[SapData], first: int, end: int, alpha: real): ...

    return SimpleNamespace(
        evaluate_slots=evaluate_slots, probe_slots=probe_slots, advance_slots=advance_slots
    )
