"""Springs in the Newton iteration: velocities, impulses, cost and Hessian, by degrees of freedom.

A spring acts on one length whose rate is s = c^T v, with a coefficient c for each degree of freedom that it
concerns: of a tendon those of its joints, of a spring on a body the components of the velocity of a point.
Its impulse is that of its force at the end of the step, gamma = p - g s (`spring_terms.py`), so that its
cost -p s + 1/2 g s^2 is quadratic and adds g c c^T to the Hessian.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import vec3_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.hessian_entries import hessian_entry_functions
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
def spring_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return the verbs of springs."""
    vec3 = vec3_type(real)
    entries = hessian_entry_functions(real, linear)
    couple_trees, add_dof_entry = entries.couple_trees, entries.add_dof_entry
    SapData = sap_struct(real, linear)

    @wp.func(inline=True)
    def measure_springs(
        topology: wp.ref[Topology],
        sap: wp.ref[SapData],
        world: int,
        dof_rate: wp.array(dtype=real),
        spring_rate: wp.array(dtype=real),
    ):
        """Write c^T x of every spring, x = `dof_rate`."""
        dof0 = topology.world_dof[world]
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            rate = real(0.0)
            for entry in range(sap.spring_entry_start[spring], sap.spring_entry_start[spring + 1]):
                rate += sap.spring_coefficient[entry] * dof_rate[dof0 + sap.spring_dof[entry]]
            spring_rate[spring] = rate

    @wp.func(inline=True)
    def evaluate_springs(sap: wp.ref[SapData], world: int) -> real:
        """Return the cost of all springs at `sap.spring_velocity`."""
        cost = real(0.0)
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            s = sap.spring_velocity[spring]
            cost += s * (real(0.5) * sap.spring_gain[spring] * s - sap.spring_impulse[spring])
        return cost

    @wp.func(inline=True)
    def add_spring_impulses(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int):
        """Add c gamma of every spring to `sap.impulse`."""
        dof0 = topology.world_dof[world]
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            gamma = sap.spring_impulse[spring] - sap.spring_gain[spring] * sap.spring_velocity[spring]
            for entry in range(sap.spring_entry_start[spring], sap.spring_entry_start[spring + 1]):
                dof = dof0 + sap.spring_dof[entry]
                sap.impulse[dof] = sap.impulse[dof] + sap.spring_coefficient[entry] * gamma

    @wp.func(inline=True)
    def probe_springs(sap: wp.ref[SapData], world: int, alpha: real) -> vec3:
        """Return cost, slope and curvature of all springs at step alpha along the direction."""
        value, slope, curvature = real(0.0), real(0.0), real(0.0)
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            rate, gain = sap.spring_slope[spring], sap.spring_gain[spring]
            s = sap.spring_velocity[spring] + alpha * rate
            value += s * (real(0.5) * gain * s - sap.spring_impulse[spring])
            slope += rate * (gain * s - sap.spring_impulse[spring])
            curvature += gain * rate * rate
        return vec3(value, slope, curvature)

    @wp.func(inline=True)
    def advance_springs(sap: wp.ref[SapData], world: int, alpha: real):
        """Move `sap.spring_velocity` by alpha along the direction."""
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            sap.spring_velocity[spring] = sap.spring_velocity[spring] + alpha * sap.spring_slope[spring]

    @wp.func(inline=True)
    def couple_springs(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int) -> int:
        """Mark the trees that springs couple; return how many were not marked before."""
        added = int(0)
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            if sap.spring_couples[spring] != 0 and sap.spring_gain[spring] > real(0.0):
                begin = sap.spring_entry_start[spring]
                for entry in range(begin + 1, sap.spring_entry_start[spring + 1]):
                    for other in range(begin, entry):
                        added += couple_trees(
                            topology, sap, world, sap.spring_dof[entry], sap.spring_dof[other]
                        )
        return added

    @wp.func(inline=True)
    def add_spring_stiffness(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int):
        """Add g c c^T of every spring."""
        first = topology.template_dof[topology.world_template[world]]
        for spring in range(sap.spring_start[world], sap.spring_start[world + 1]):
            gain = linear(sap.spring_gain[spring])
            if gain > linear(0.0):
                begin = sap.spring_entry_start[spring]
                for entry in range(begin, sap.spring_entry_start[spring + 1]):
                    dof = sap.spring_dof[entry]
                    force = gain * linear(sap.spring_coefficient[entry])
                    diagonal = force * linear(sap.spring_coefficient[entry])
                    for other in range(begin, entry):
                        value = force * linear(sap.spring_coefficient[other])
                        if sap.spring_dof[other] == dof:
                            diagonal += linear(2.0) * value
                        elif value != linear(0.0):
                            add_dof_entry(topology, sap, world, dof, sap.spring_dof[other], value)
                    row = topology.world_row[world] + topology.dof_row[first + dof]
                    row += topology.dof_depth[first + dof]
                    sap.hessian_row[row] = sap.hessian_row[row] + diagonal

    return SimpleNamespace(
        measure_springs=measure_springs,
        evaluate_springs=evaluate_springs,
        add_spring_impulses=add_spring_impulses,
        probe_springs=probe_springs,
        advance_springs=advance_springs,
        couple_springs=couple_springs,
        add_spring_stiffness=add_spring_stiffness,
    )
