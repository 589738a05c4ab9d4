"""Friction bound stage: hold the normal impulse that bounds friction, until it is that of the solution.

Reads   contact_velocity, contact_bias, contact_rt, contact_rn, contact_mu
Writes  contact_bound

In a convex problem a contact that slides at v_t opens at v_n = v_hat + mu |v_t|: a box set to 2 m/s at mu = 1
leaves the ground at 2 m/s. Coulomb's law is not the derivative of any cost. But with the normal impulse N
held that bounds friction, |gamma_t| <= mu N, each iteration has a convex cost, in which normal and tangential
impulse of a contact do not depend on each other (`cone`), and where N = gamma_n at its minimum, Coulomb's law
holds. So N follows gamma_n from iteration to iteration. That converges at once where the friction of a
contact does not change its normal force, as under a box that slides, and otherwise in few iterations
([Haslinger1983]). What has not converged after many goes on with the N that it has: a convex problem again,
whose solution is counted as not converged.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.solvers.sap.cone import FRICTIONLESS
from pluriverse.solvers.sap.workspace import sap_struct

# How far N may be from gamma_n [relative]: like a thousandth of the friction coefficient.
BOUND_SHARE = wp.constant(1e-3)
# Iterations, and times that N changes in them, in which N changes with the iterate: that takes fewest
# iterations where it works. After that N changes with the minimum for the N before.
FREE_ITERATIONS = wp.constant(6)
FREE_CHANGES = wp.constant(6)
# Times that a step then obeys Coulomb's law for joints as they are, before N is held again: the first ones,
# and at intervals, since joints may then have come to where they stay. And times that N changes at all.
RELEASES = wp.constant(2)
CHANGES_MAX = wp.constant(60)
# Part of the bound below which friction sticks: what rounding leaves of one that slides.
STICKING = wp.constant(1.0 - 1e-6)
# Least and largest part of the difference from gamma_n that N is changed by.
RELAXATION_MIN, RELAXATION_MAX = wp.constant(0.05), wp.constant(4.0)


@functools.cache
def friction_bound_functions(real: Any, linear: Any, moments: bool = False) -> SimpleNamespace:
    """Return `follow_bounds`, `are_bounds_off` and `approach_bounds`, with or without moments."""
    SapData = sap_struct(real, linear)

    @wp.func
    def is_bound_idle(sap: SapData, slot: int, normal: real) -> bool:
        """Return whether a contact sticks with its bound and with a normal impulse as bound."""
        if wp.static(moments):
            return False
        gamma = sap.contact_impulse[slot]
        lower = real(STICKING) * sap.contact_mu[slot] * wp.min(normal, sap.contact_bound[slot])
        return gamma[0] * gamma[0] + gamma[1] * gamma[1] < lower * lower

    @wp.func
    def follow_bounds(sap: SapData, world: int) -> int:
        """Let bounds be the normal impulses at the contact velocities; return whether that matters."""
        matters = int(0)
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            rn, bound = sap.contact_rn[slot], sap.contact_bound[slot]
            if rn > real(0.0) and sap.contact_mu[slot] > real(FRICTIONLESS):
                velocity = sap.contact_velocity[slot]
                normal = wp.max((sap.contact_bias[slot] - velocity[2]) / rn, real(0.0))
                lower = sap.contact_rt[slot] * sap.contact_mu[slot] * wp.min(normal, bound)
                slides = velocity[0] * velocity[0] + velocity[1] * velocity[1] > lower * lower
                if wp.static(moments) or slides:
                    if wp.abs(normal - bound) > real(BOUND_SHARE) * normal:
                        sap.contact_bound[slot] = normal
                        matters = 1
                else:
                    sap.contact_bound[slot] = normal
        return matters

    @wp.func
    def are_bounds_off(sap: SapData, world: int) -> int:
        """Return whether the bound of any contact that slides is not its normal impulse."""
        off = int(0)
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            if sap.contact_rn[slot] > real(0.0) and sap.contact_mu[slot] > real(FRICTIONLESS):
                normal = sap.contact_impulse[slot][2]
                change = wp.abs(normal - sap.contact_bound[slot])
                if change > real(BOUND_SHARE) * normal and not is_bound_idle(sap, slot, normal):
                    off = 1
        return off

    @wp.func
    def approach_bounds(sap: SapData, world: int, relaxation: real) -> real:
        """Change bounds towards the normal impulses `contact_impulse` for them; return by which part.

        The part follows that of the time before, from how the differences have changed ([Irons1969]). It is
        1 if `relaxation` is 0, for the first time.
        """
        product, square = real(0.0), real(0.0)
        start = sap.contact_start[world]
        end = start + sap.contact_count[world]
        for slot in range(start, end):
            if sap.contact_rn[slot] > real(0.0):
                change = real(0.0)
                if sap.contact_bound[slot] >= real(0.0):
                    normal = sap.contact_impulse[slot][2]
                    if is_bound_idle(sap, slot, normal):
                        sap.contact_bound[slot] = normal
                    change = normal - sap.contact_bound[slot]
                before = sap.contact_bound_change[slot]
                product += before * (change - before)
                square += (change - before) * (change - before)
                sap.contact_bound_change[slot] = change
        part = real(1.0)
        if relaxation > real(0.0) and square > real(0.0):
            # Where the difference grows, its zero lies further on, in another state of the contacts.
            if product < real(0.0):
                part = wp.clamp(-relaxation * product / square, real(RELAXATION_MIN), real(RELAXATION_MAX))
        for slot in range(start, end):
            if sap.contact_rn[slot] > real(0.0):
                if sap.contact_bound[slot] >= real(0.0):
                    bound = sap.contact_bound[slot] + part * sap.contact_bound_change[slot]
                    sap.contact_bound[slot] = wp.max(bound, real(0.0))
                else:
                    sap.contact_bound[slot] = sap.contact_impulse[slot][2]
        return part

    return SimpleNamespace(
        follow_bounds=follow_bounds, are_bounds_off=are_bounds_off, approach_bounds=approach_bounds
    )
