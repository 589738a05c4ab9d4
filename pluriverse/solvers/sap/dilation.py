"""Dilation stage: take out of sliding contacts the velocity by which convex friction would part them.

Reads   contact_velocity, contact_impulse, contact_mu
Writes  contact_bias, contact_dilation, and the change of s as normal part of contact_slope

The minimum of a convex cost lies on a cone of impulses whose velocities are normal to it. So a contact that
slides at v_t opens at v_n = v_hat + mu |v_t|, not at v_hat: a box set to 2 m/s at mu = 1 leaves the ground
at 2 m/s. Coulomb's law is met where the contact is asked for v_hat - s, with s = mu |v_t| of the solution
([Acary2011]). That is a fixed point, found by solving on with the s that a solution has. Where bodies slide
on, s is that of the last step, and one solve is enough. Where they strike the ground askew, the impact of a
point mass gives the first estimate. Contacts that stick, or slide slowly, are not touched, so that worlds at
rest cost what they do with convex friction. Worlds of few contacts need none of this: see `coulomb`.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.solvers.sap.workspace import sap_struct

# How far s may be from mu |v_t| [m/s, and relative]. A contact parts at no more than this difference.
DILATION_SPEED = wp.constant(0.02)
DILATION_SHARE = wp.constant(0.05)
# Times that a world is solved again; s comes closer by mu² / (1 + mu²) or more each time, from the second on.
DILATION_ROUNDS_MAX = wp.constant(3)
# Iterations after which s stays: where dozens of bodies tumble over each other, solving again is as much work
# as the first time.
DILATION_ITERATIONS_MAX = wp.constant(30)


# The loops are native: Warp's own find each number of a contact by an index of its own.
_CONTACTS = """
    const long long stride = sap.contact_velocity.strides[0];
    const int first = sap.contact_start.data[world], end = first + sap.contact_count.data[world];
    auto number = [&](const auto& array, int slot) -> V& {
        return *(V*)((char*)array.data + stride * slot);
    };
    const V least = V(DILATION_SPEED);
"""

_BEGIN = (
    _CONTACTS
    + """
    for (int slot = first; slot < end; ++slot) {
        const V* velocity = &number(sap.contact_velocity, slot);
        const V mu = number(sap.contact_mu, slot);
        V speed = sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1]);
        // The impulse that stops v_n takes up to mu |v_n| of |v_t|.
        if (is_solution == 0) speed = wp::max(speed + mu * wp::min(velocity[2], V(0)), V(0));
        V s = mu * speed;
        if (!(s > least)) s = V(0);
        number(sap.contact_dilation, slot) = s;
        number(sap.contact_bias, slot) -= s;
    }
"""
)

_CORRECT = (
    _CONTACTS
    + """
    int corrected = 0;
    for (int slot = first; slot < end; ++slot) {
        const V* velocity = &number(sap.contact_velocity, slot);
        V* slope = &number(sap.contact_slope, slot);
        for (int k = 0; k < 3; ++k) slope[k] = V(0);
        const V normal = (&number(sap.contact_impulse, slot))[2];
        const V s = number(sap.contact_dilation, slot);
        const V v_hat = number(sap.contact_bias, slot) + s;
        if (normal <= V(0) && velocity[2] >= v_hat) continue;  // open, whatever s is
        const V mu = number(sap.contact_mu, slot);
        const V target = mu * sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1]);
        V change = target - s;
        if (wp::abs(change) <= wp::max(least, V(DILATION_SHARE) * target)) continue;
        // Where a point mass strikes, the next s would be nearer by mu^2 / (1 + mu^2) only.
        if (round == 0) change = change * (V(1) + mu * mu);
        const V next = wp::max(s + change, V(0));
        if (next == s) continue;
        number(sap.contact_dilation, slot) = next;
        number(sap.contact_bias, slot) = v_hat - next;
        slope[2] = next - s;
        corrected = 1;
    }
    return corrected;
"""
)

_END = (
    _CONTACTS
    + """
    for (int slot = first; slot < end; ++slot) {
        V& s = number(sap.contact_dilation, slot);
        if (s == V(0)) continue;
        number(sap.contact_bias, slot) += s;
        s = V(0);
    }
"""
)


@made_once
def dilation_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the functions of this stage for the given precisions.

    - `begin_dilation(sap, world, is_solution)`: take the first s from the contact velocities where the solver
      starts.
    - `correct_contacts(sap, world, round)`: update s of all contacts to that of the solution; return whether
      any changed beyond the tolerance.
    - `correct_dilation(sap, world, round)`: the same, up to `DILATION_ROUNDS_MAX` times.
    - `end_dilation(sap, world)`: remove s from the bias of all contacts.
    """
    SapData = sap_struct(real, linear)
    types = (
        f"using V = {CTYPE[real]}; "
        f"constexpr double DILATION_SPEED = {DILATION_SPEED}, DILATION_SHARE = {DILATION_SHARE};"
    )

    @wp.func_native(types + _BEGIN)
    def begin_dilation(sap: wp.ref[SapData], world: int, is_solution: int): ...

    @wp.func_native(types + _CORRECT)
    def correct_contacts(sap: wp.ref[SapData], world: int, round: int) -> int: ...

    @wp.func_native(types + _END)
    def end_dilation(sap: wp.ref[SapData], world: int): ...

    @wp.func(inline=True)
    def correct_dilation(sap: wp.ref[SapData], world: int, round: int) -> int:
        corrected = int(0)
        if round < DILATION_ROUNDS_MAX:
            corrected = correct_contacts(sap, world, round)
        return corrected

    return SimpleNamespace(
        begin_dilation=begin_dilation,
        correct_contacts=correct_contacts,
        correct_dilation=correct_dilation,
        end_dilation=end_dilation,
    )
