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

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.precision import vec3_type
from pluriverse.solvers.sap.workspace import sap_struct

# How far s may be from mu |v_t| [m/s, and relative]. A contact parts at no more than this difference.
DILATION_SPEED = wp.constant(0.02)
DILATION_SHARE = wp.constant(0.05)
# Times that a world is solved again; s comes closer by mu² / (1 + mu²) or more each time, from the second on.
DILATION_ROUNDS_MAX = wp.constant(3)
# Iterations after which s stays: where dozens of bodies tumble over each other, solving again is as much work
# as the first time.
DILATION_ITERATIONS_MAX = wp.constant(30)


@functools.cache
def dilation_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the functions of this stage for the given precisions."""
    SapData, vec3 = sap_struct(real, linear), vec3_type(real)

    @wp.func
    def begin_dilation(sap: wp.ref[SapData], world: int, is_solution: int):
        """Take the first s from the contact velocities where the solver starts."""
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            mu = sap.contact_mu[slot]
            velocity = sap.contact_velocity[slot]
            speed = wp.sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1])
            if is_solution == 0:
                # The impulse that stops v_n takes up to mu |v_n| of |v_t|.
                speed = wp.max(speed + mu * wp.min(velocity[2], real(0.0)), real(0.0))
            s = mu * speed
            if not s > real(DILATION_SPEED):
                s = real(0.0)
            sap.contact_dilation[slot] = s
            sap.contact_bias[slot] = sap.contact_bias[slot] - s

    @wp.func
    def correct_contact(sap: wp.ref[SapData], slot: int, round: int) -> int:
        """Update s of a contact to that of the solution; return whether it changed beyond the tolerance."""
        sap.contact_slope[slot] = vec3()
        velocity, normal = sap.contact_velocity[slot], sap.contact_impulse[slot][2]
        s = sap.contact_dilation[slot]
        v_hat = sap.contact_bias[slot] + s
        if normal <= real(0.0) and velocity[2] >= v_hat:
            return 0  # open, whatever s is
        mu = sap.contact_mu[slot]
        target = mu * wp.sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1])
        change = target - s
        if wp.abs(change) <= wp.max(real(DILATION_SPEED), real(DILATION_SHARE) * target):
            return 0
        if round == 0:
            # Where a point mass strikes, the next s would be nearer by mu² / (1 + mu²) only.
            change = change * (real(1.0) + mu * mu)
        corrected = wp.max(s + change, real(0.0))
        if corrected == s:
            return 0
        sap.contact_dilation[slot] = corrected
        sap.contact_bias[slot] = v_hat - corrected
        sap.contact_slope[slot] = vec3(real(0.0), real(0.0), corrected - s)
        return 1

    @wp.func
    def correct_dilation(sap: wp.ref[SapData], world: int, round: int) -> int:
        """Update s of all contacts to that of the solution; return whether any changed that much."""
        corrected = int(0)
        if round < DILATION_ROUNDS_MAX:
            start = sap.contact_start[world]
            for slot in range(start, start + sap.contact_count[world]):
                corrected = wp.max(corrected, correct_contact(sap, slot, round))
        return corrected

    @wp.func
    def end_dilation(sap: wp.ref[SapData], world: int):
        """Remove s from the bias of all contacts."""
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            sap.contact_bias[slot] = sap.contact_bias[slot] + sap.contact_dilation[slot]
            sap.contact_dilation[slot] = real(0.0)

    return SimpleNamespace(
        begin_dilation=begin_dilation,
        correct_dilation=correct_dilation,
        end_dilation=end_dilation,
    )
