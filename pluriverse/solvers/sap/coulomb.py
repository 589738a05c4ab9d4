"""Coulomb's law for a few contacts: Newton's method for their impulses.

Reads   mobility W and velocities u0 without impulses, of `contact_space`; contact terms
Writes  space_impulse, space_velocity

A contact with the impulse p and the velocity u = u0 + W p is open, sticks or slides, as decided by

    z_n = p_n - r_n (u_n - v_hat + R_n p_n),    z_t = p_t - r_t (u_t + R_t p_t),

open where z_n <= 0, and sticking where |z_t| <= mu z_n ([Alart1991]). Each of these states is a linear law
of p and u, but for the direction in which a contact slides, which is linearized. So each iteration solves
a small system for the impulses of contacts in their last states ([Curnier1988]), and the method ends when
no state changes. The choice of positive r_n and r_t does not change the solution. With the inverse
mobility of each contact the states are found within a few iterations from no impulses at all, whether
contacts are near rigid or not.

Where states recur, a contact sticks and opens in turns, say, half of a step is made, from the middle of which
the contact slides. Otherwise a limp ANYmal took bounds of friction in one step of ten: 39 instead of 14 µs.

Most contacts keep to their states after the first iteration or two, while the others find the directions in
which they slide. So those that stick are eliminated from the system of all contacts once, and again only
when one of them slips or opens. Contacts that did are left to the small system of the others from then on.

Without impulses z says which contacts close, but not how they slide: where a robot keeps sliding, most begin
by sticking, and alternate for six iterations. So the first iteration takes the states at the start of the
step: contacts that slide then slide in that direction, the others stick.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.contact_balance import contact_balance_functions
from pluriverse.math.precision import vec3_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.solvers.sap.options import OPTIMALITY_DEFAULT
from pluriverse.solvers.sap.workspace import sap_struct

# Iterations; where states recur in spite of shorter steps, more do not help.
ITERATIONS_MAX = wp.constant(20)
# States recur where, after so many iterations, the squared error is more than this share of what it was two
# iterations ago, and more than this much of the impulses. Then so much of the step is made.
RECURRING_ITERATIONS = wp.constant(4)
RECURRING_SHARE, RECURRING_ERROR = wp.constant(0.25), wp.constant(1e-6)
RECURRING_STEP = wp.constant(0.5)
# How far impulses may be from what their states say [relative].
TOLERANCE_DOUBLE, TOLERANCE_SINGLE = 1e-9, 1e-5
# Factor by which the square of a small error has to fall to be worth a further iteration.
PROGRESS = wp.constant(0.1)
# A contact begins as one that slides where its speed is this many times that at which it creeps.
SLIDING_CREEPS = wp.constant(100.0)
# Contacts that `hold_contacts` has eliminated, and those that did not stick after that.
HELD, LEFT = wp.constant(1), wp.constant(2)
# Share of a turning contact below which its friction is a force of a given direction.
TURNING_MIN = wp.constant(1e-9)


@functools.cache
def coulomb_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `find_coulomb_impulses` for the given precisions."""
    vec3 = vec3_type(real)
    SapData = sap_struct(real, linear)
    balance = contact_balance_functions(real)
    hold_contacts, balance_contacts = balance.hold_contacts, balance.balance_contacts
    tolerance = real(TOLERANCE_DOUBLE if real is wp.float64 else TOLERANCE_SINGLE)

    @wp.func(inline=True)
    def set_law(sap: wp.ref[SapData], c: int, wn: real, wt: real, is_start: int) -> real:
        """Write the linear law of a contact's state; return the squared error of its impulse.

        With `is_start`, it slides or sticks as it does before the step.
        """
        zero, one = real(0.0), real(1.0)
        slot = sap.space_slot[c]
        rt, rn, mu, bias = (
            sap.contact_rt[slot],
            sap.contact_rn[slot],
            sap.contact_mu[slot],
            sap.contact_bias[slot],
        )
        soft = sap.contact_soft[slot]
        p, u = sap.space_impulse[c], sap.space_velocity[c]
        normal = p[2] - (u[2] - bias + rn * p[2]) / (wn + rn)
        compliance = vec3(-one, -one, -one)
        error = wp.dot(p, p)
        if normal > zero:
            share = one / (wt + rt)
            z0 = p[0] - share * (u[0] + rt * p[0])
            z1 = p[1] - share * (u[1] + rt * p[1])
            size = wp.sqrt(z0 * z0 + z1 * z1 + soft * soft)
            compliance[2] = rn
            difference = vec3(z0 - p[0], z1 - p[1], normal - p[2])
            t0, t1 = z0 / size, z1 / size
            turning = mu * normal / size
            slides = size > mu * normal
            if is_start != 0:
                velocity = sap.contact_velocity[slot]
                speed = wp.sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1])
                slides = speed > real(SLIDING_CREEPS) * rt * mu * normal
                if slides:
                    t0, t1 = -velocity[0] / speed, -velocity[1] / speed
                    turning = zero
            if not slides:
                compliance[0] = rt
                compliance[1] = rt
            else:
                # Friction follows the normal impulse along t, and turns by q.
                difference[0] = turning * z0 - p[0]
                difference[1] = turning * z1 - p[1]
                sap.space_slide[c] = vec3(t0, t1, mu)
                if turning > real(TURNING_MIN):
                    compliance[0] = rt + (one - turning) / (turning * share)
            error = wp.dot(difference, difference)
            sap.space_wanted[c] = vec3(zero, zero, bias)
        sap.space_compliance[c] = compliance
        return error

    @wp.func(inline=True)
    def choose_held(sap: wp.ref[SapData], region: int, count: int) -> int:
        """Choose the contacts to eliminate, those that stick and have not left before; return their number.

        Writes `space_order`, in which they come first.
        """
        held = int(0)
        for c in range(count):
            if sap.space_compliance[region + c][1] >= real(0.0):
                if sap.space_held[region + c] != LEFT:
                    sap.space_held[region + c] = HELD
                    sap.space_order[region + held] = c
                    held += 1
            elif sap.space_held[region + c] == HELD:
                sap.space_held[region + c] = LEFT
        place = int(held)
        for c in range(count):
            if sap.space_held[region + c] != HELD:
                sap.space_order[region + place] = c
                place += 1
        return held

    @wp.func(inline=stages_inline())
    def find_coulomb_impulses(
        sap: wp.ref[SapData], region: int, count: int, w: int, work: int, optimality: real, is_start: int
    ) -> int:
        """Find impulses that obey Coulomb's law, starting from the present ones; return 1 on success.

        Where `optimality`, the relative tolerance of the gradient, is tighter than the default, so is that of
        the impulses, if rounding permits: velocities ask for impulses that are off by (W + R) / R of it.
        With `is_start` there are none, and contacts begin as before the step.
        """
        m = 3 * count
        stride = (m + 7) / 8 * 8
        wanted = tolerance * wp.min(optimality / real(OPTIMALITY_DEFAULT), real(1.0))
        least = real(wp.inf)
        last, earlier = real(wp.inf), real(wp.inf)  # squared errors, relative
        found = int(0)
        iteration = int(0)
        searching = int(1)
        held = int(-1)
        for c in range(region, region + count):
            sap.space_held[c] = 0
        while searching != 0:
            error, norm = real(0.0), real(0.0)
            has_left = int(held < 0)
            for c in range(count):
                entry = w + 3 * c * (stride + 1)
                wt = real(0.5) * (sap.space_mobility[entry] + sap.space_mobility[entry + stride + 1])
                wn = sap.space_mobility[entry + 2 * (stride + 1)]
                error += set_law(sap, region + c, wn, wt, is_start * int(iteration == 0))
                norm += wp.dot(sap.space_impulse[region + c], sap.space_impulse[region + c])
                if sap.space_held[region + c] == HELD and sap.space_compliance[region + c][1] < real(0.0):
                    has_left = 1
            found = int(error <= tolerance * tolerance * norm)
            is_best = found != 0 and (error <= wanted * wanted * norm or error >= real(PROGRESS) * least)
            if is_best or iteration >= ITERATIONS_MAX or not error < real(wp.inf):
                searching = 0
            else:
                least = wp.min(error, least)
                relative = error / norm
                recurs = int(
                    iteration >= RECURRING_ITERATIONS
                    and relative > real(RECURRING_SHARE) * earlier
                    and relative > real(RECURRING_ERROR)
                )
                earlier = last
                last = relative
                if recurs != 0:
                    for c in range(region, region + count):
                        sap.space_impulse_step[c] = sap.space_impulse[c]
                        sap.space_velocity_step[c] = sap.space_velocity[c]
                iteration += 1
                if has_left != 0:
                    held = choose_held(sap, region, count)
                    searching = hold_contacts(
                        sap.space_mobility,
                        w,
                        m,
                        3 * held,
                        sap.space_free,
                        sap.space_compliance,
                        sap.space_wanted,
                        sap.space_order,
                        region,
                        sap.space_work,
                        work,
                    )
                if searching != 0:
                    searching = balance_contacts(
                        m,
                        3 * held,
                        sap.space_slide,
                        sap.space_compliance,
                        sap.space_wanted,
                        sap.space_order,
                        region,
                        sap.space_work,
                        work,
                        sap.space_impulse,
                        sap.space_velocity,
                    )
                if recurs != 0:
                    share = real(RECURRING_STEP)
                    for c in range(region, region + count):
                        p, u = sap.space_impulse_step[c], sap.space_velocity_step[c]
                        sap.space_impulse[c] = p + share * (sap.space_impulse[c] - p)
                        sap.space_velocity[c] = u + share * (sap.space_velocity[c] - u)
        return found

    return SimpleNamespace(find_coulomb_impulses=find_coulomb_impulses)
