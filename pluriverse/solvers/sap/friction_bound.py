"""Friction bound stage: friction bounded by a fixed normal impulse.

Reads   contact_impulse, contact_mu
Writes  contact_bound

With a fixed normal impulse N in the bound of friction, |gamma_t| <= mu N, a contact has a convex cost, in
which its normal and its tangential impulse do not depend on each other (`cone`). Where N = gamma_n at the
minimum, Coulomb's law holds ([Haslinger1983]). `coulomb` finds such N for few contacts. Where its states
recur, N follows gamma_n from minimum to minimum until they can be found.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.solvers.sap.workspace import sap_struct

# Part of the bound below which friction sticks: what rounding leaves of one that slides.
STICKING = wp.constant(1.0 - 1e-6)
# Least and largest part of the difference from gamma_n that N is changed by.
RELAXATION_MIN, RELAXATION_MAX = wp.constant(0.05), wp.constant(4.0)


@made_once
def friction_bound_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `release_bounds` and `approach_bounds`."""
    SapData = sap_struct(real, linear)

    @wp.func
    def is_bound_idle(sap: wp.ref[SapData], slot: int, normal: real) -> bool:
        """Return whether a contact sticks both with its bound and with its normal impulse as the bound."""
        if sap.contact_bound[slot] < real(0.0):
            return False  # convex friction, which no impulse bounds
        gamma = sap.contact_impulse[slot]
        lower = real(STICKING) * sap.contact_mu[slot] * wp.min(normal, sap.contact_bound[slot])
        return gamma[0] * gamma[0] + gamma[1] * gamma[1] < lower * lower

    @wp.func_native(f"""
        const long long stride = sap.contact_bound.strides[0];
        const int first = sap.contact_start.data[world], end = first + sap.contact_count.data[world];
        for (int slot = first; slot < end; ++slot)
            *({CTYPE[real]}*)((char*)sap.contact_bound.data + stride * slot) = -1;
    """)
    def release_bounds(sap: wp.ref[SapData], world: int):
        """Switch all contacts of a world to convex friction."""
        ...

    @wp.func
    def approach_bounds(sap: wp.ref[SapData], world: int, relaxation: real) -> real:
        """Move the bounds toward the normal impulses of `contact_impulse`; return the fraction of the way.

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

    return SimpleNamespace(release_bounds=release_bounds, approach_bounds=approach_bounds)
