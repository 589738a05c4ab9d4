"""Contacts as a term of the objective: velocities, cost and impulses, wrenches on bodies.

Reads   the terms of contacts (`contact.py`, `moment_terms.py`), body velocities of a sweep (`node_rate`)
Writes  contact_velocity, contact_slope, contact_impulse and, with moments, their angular counterparts

Every term of the objective has the same verbs: `evaluate` writes impulses and returns the cost, `probe` gives
cost, slope and curvature at a step along the direction, `advance` makes that step.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import vec3_type, vec6_type
from pluriverse.math.tree_sweeps import tree_sweep_functions
from pluriverse.model import Topology
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.cone_moments import cone_moment_functions
from pluriverse.solvers.sap.contact_loops import contact_loop_functions
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
def contact_objective_functions(real: Any, linear: Any, moments: bool = False) -> SimpleNamespace:
    """Return the verbs of contacts for the given precisions, with or without moments."""
    vec3, vec6 = vec3_type(real), vec6_type(real)
    add_point_wrenches = tree_sweep_functions(real, real).add_point_wrenches
    SapData = sap_struct(real, linear)
    cone = cone_functions(real)
    unprojected = cone.unprojected
    loops = contact_loop_functions(real, linear)
    evaluate_slots, probe_slots, advance_slots = loops.evaluate_slots, loops.probe_slots, loops.advance_slots
    measure_slots = loops.measure_slots
    turning = cone_moment_functions(real)
    project_moments, moment_cost, moment_stiffness = turning.project, turning.cost, turning.stiffness

    @wp.func(inline=True)
    def angular_part(rate: vec6) -> vec3:
        return vec3(rate[0], rate[1], rate[2])

    @wp.func(inline=True)
    def measure_contacts(
        topology: wp.ref[Topology],
        sap: wp.ref[SapData],
        world: int,
        contact_rate: wp.array(dtype=vec3),
        contact_spin: wp.array(dtype=vec3),
        along_chords: int,
    ):
        """Write the contact velocities [m/s] at the body velocities `node_rate` into `contact_rate`.

        The relative angular velocities [rad/s] go into `contact_spin`, where contacts have moments.
        """
        node0 = topology.world_joint[world]
        start = sap.contact_start[world]
        count = sap.contact_count[world]
        measure_slots(sap, start, start + count, node0, along_chords, contact_rate)
        if wp.static(moments):
            for slot in range(start, start + count):
                node_a = sap.contact_node0[slot]
                node_b = sap.contact_node1[slot]
                spin = vec3()
                if node_b >= 0:
                    spin += angular_part(sap.node_rate[node0 + node_b])
                if node_a >= 0:
                    spin -= angular_part(sap.node_rate[node0 + node_a])
                # R^T w without forming the transpose
                contact_spin[slot] = spin * sap.contact_frame[slot]

    @wp.func(inline=True)
    def evaluate_contacts(sap: wp.ref[SapData], world: int) -> real:
        """Write the impulse of every contact; return their cost."""
        start = sap.contact_start[world]
        end = start + sap.contact_count[world]
        if wp.static(not moments):
            return evaluate_slots(sap, start, end)
        cost = real(0.0)
        if wp.static(moments):
            for slot in range(start, end):
                rn = sap.contact_rn[slot]
                if rn > real(0.0):
                    rt = sap.contact_rt[slot]
                    ra = sap.contact_ra[slot]
                    bound = sap.contact_bound[slot]
                    y = unprojected(sap.contact_velocity[slot], sap.contact_bias[slot], rt, rn)
                    z = -sap.contact_spin[slot] / ra
                    gamma, tau = project_moments(
                        y,
                        z,
                        sap.contact_mu[slot],
                        sap.contact_mu_moment[slot],
                        bound,
                        rt,
                        ra,
                        rn,
                    )
                    sap.contact_impulse[slot] = gamma
                    sap.contact_moment[slot] = tau
                    cost += moment_cost(y, z, gamma, tau, bound, rt, ra, rn)
        return cost

    @wp.func(inline=True)
    def probe_contacts(sap: wp.ref[SapData], world: int, alpha: real) -> vec3:
        """Return cost, slope and curvature of all contacts at step alpha along the direction."""
        start = sap.contact_start[world]
        end = start + sap.contact_count[world]
        if wp.static(not moments):
            return probe_slots(sap, start, end, alpha)
        value, slope, curvature = real(0.0), real(0.0), real(0.0)
        if wp.static(moments):
            for slot in range(start, end):
                rn = sap.contact_rn[slot]
                if rn > real(0.0):
                    rt = sap.contact_rt[slot]
                    ra = sap.contact_ra[slot]
                    mu = sap.contact_mu[slot]
                    mu_moment = sap.contact_mu_moment[slot]
                    bound = sap.contact_bound[slot]
                    rate = sap.contact_slope[slot]
                    spin = sap.contact_spin_slope[slot]
                    y = unprojected(sap.contact_velocity[slot] + alpha * rate, sap.contact_bias[slot], rt, rn)
                    z = -(sap.contact_spin[slot] + alpha * spin) / ra
                    gamma, tau = project_moments(y, z, mu, mu_moment, bound, rt, ra, rn)
                    if gamma[2] != real(0.0) or bound > real(0.0):
                        value += moment_cost(y, z, gamma, tau, bound, rt, ra, rn)
                        slope -= wp.dot(gamma, rate) + wp.dot(tau, spin)
                        force, cross, moment = moment_stiffness(y, z, mu, mu_moment, bound, rt, ra, rn)
                        curvature += wp.dot(rate, force * rate) + wp.dot(spin, moment * spin)
                        curvature += real(2.0) * wp.dot(rate, cross * spin)
        return vec3(value, slope, curvature)

    @wp.func(inline=True)
    def advance_contacts(sap: wp.ref[SapData], world: int, alpha: real):
        """Move the contact velocities by alpha along the direction."""
        start = sap.contact_start[world]
        advance_slots(sap, start, start + sap.contact_count[world], alpha)
        if wp.static(moments):
            for slot in range(start, start + sap.contact_count[world]):
                sap.contact_spin[slot] = sap.contact_spin[slot] + alpha * sap.contact_spin_slope[slot]

    @wp.func(inline=True)
    def add_contact_wrenches(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int):
        """Add the impulses to `node_wrench` of both bodies."""
        node0 = topology.world_joint[world]
        start = sap.contact_start[world]
        count = sap.contact_count[world]
        add_point_wrenches(
            sap.contact_impulse,
            sap.contact_bound,
            sap.contact_frame,
            sap.contact_node0,
            sap.contact_node1,
            sap.contact_arm0,
            sap.contact_arm1,
            start,
            count,
            node0,
            sap.node_wrench,
        )
        if wp.static(moments):
            for slot in range(start, start + count):
                if sap.contact_impulse[slot][2] != real(0.0) or sap.contact_bound[slot] > real(0.0):
                    turning = sap.contact_frame[slot] * sap.contact_moment[slot]
                    zero = real(0.0)
                    wrench = vec6(turning[0], turning[1], turning[2], zero, zero, zero)
                    node_a = sap.contact_node0[slot]
                    node_b = sap.contact_node1[slot]
                    if node_b >= 0:
                        sap.node_wrench[node0 + node_b] = sap.node_wrench[node0 + node_b] + wrench
                    if node_a >= 0:
                        sap.node_wrench[node0 + node_a] = sap.node_wrench[node0 + node_a] - wrench

    return SimpleNamespace(
        measure_contacts=measure_contacts,
        evaluate_contacts=evaluate_contacts,
        probe_contacts=probe_contacts,
        advance_contacts=advance_contacts,
        add_contact_wrenches=add_contact_wrenches,
    )
