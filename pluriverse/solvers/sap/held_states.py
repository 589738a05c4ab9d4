"""Held states: a step of Newton's method that begins from impulses, not from velocities.

Reads   contact_slope, contact_velocity, contact_impulse and the terms of contacts
Writes  contact_velocity, contact_impulse

Contacts are stiff: velocities that are off by micrometres per second give impulses that are off by all of
the weight. Where `dilation.py` changes what contacts are asked for, the velocities that fit are not known
yet, but most contacts go on to stick, slide or stay open, with nearly the impulses that they have. So the
next step linearizes a contact at the velocity u_0 at which its law gives the impulse that it had, instead of
at its own velocity u. Its impulse at u is then gamma(u_0) - G (u - u_0), and the whole step is made: a line
search has no cost to compare with.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
def held_state_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `shift_velocities` and `extend_impulses` for the given precisions."""
    SapData = sap_struct(real, linear)
    cone = cone_functions(real)
    unprojected, stiffness = cone.unprojected, cone.stiffness

    @wp.func
    def shift_velocities(sap: wp.ref[SapData], world: int):
        """Replace u of all contacts by u_0; `contact_slope` holds u - u_0."""
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            sap.contact_velocity[slot] = sap.contact_velocity[slot] - sap.contact_slope[slot]

    @wp.func
    def extend_impulses(sap: wp.ref[SapData], world: int):
        """Replace gamma(u_0) of contacts that act by gamma(u_0) - G (u - u_0)."""
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            rn, rt = sap.contact_rn[slot], sap.contact_rt[slot]
            if rn > real(0.0) and sap.contact_impulse[slot][2] != real(0.0):
                y = unprojected(sap.contact_velocity[slot], sap.contact_bias[slot], rt, rn)
                G = stiffness(
                    y, sap.contact_mu[slot], sap.contact_bound[slot], rt, rn, sap.contact_soft[slot]
                )
                sap.contact_impulse[slot] = sap.contact_impulse[slot] - G * sap.contact_slope[slot]

    return SimpleNamespace(shift_velocities=shift_velocities, extend_impulses=extend_impulses)
