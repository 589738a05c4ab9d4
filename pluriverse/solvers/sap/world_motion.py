"""Velocities of contacts, equality constraints and springs, of a world and along its direction.

Reads   velocity or direction, kinematics of the step
Writes  contact_velocity, contact_spin, equality_velocity, spring_velocity; the same along the direction
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.model import Topology
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.sweeps import sweep_functions
from pluriverse.solvers.sap.workspace import sap_struct


@made_once
def world_motion_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool = False, moments: bool = False
) -> SimpleNamespace:
    """Return `measure_velocity`, `measure_slopes` and `measure_direction` for these precisions and terms."""
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    term_velocities = sweep_functions(real, linear, dynamics_real, equality, moments).term_velocities
    measure_springs = spring_functions(real, linear).measure_springs

    @wp.func(inline=True)
    def measure_velocity(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ):
        """Write the velocities of all terms at `velocity`."""
        term_velocities(
            topology,
            dynamics,
            sap,
            world,
            sap.velocity,
            sap.contact_velocity,
            sap.contact_spin,
            sap.equality_velocity,
            1,
        )
        if wp.static(equality):
            measure_springs(topology, sap, world, sap.velocity, sap.spring_velocity)

    @wp.func(inline=True)
    def measure_slopes(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        dof_rate: wp.array(dtype=real),
    ):
        """Write the velocities of contacts and equality constraints along a change of joint velocities."""
        term_velocities(
            topology,
            dynamics,
            sap,
            world,
            dof_rate,
            sap.contact_slope,
            sap.contact_spin_slope,
            sap.equality_slope,
            0,
        )

    @wp.func(inline=True)
    def measure_direction(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData], world: int
    ):
        """Write the velocities of all terms along `direction`."""
        measure_slopes(topology, dynamics, sap, world, sap.direction)
        if wp.static(equality):
            measure_springs(topology, sap, world, sap.direction, sap.spring_slope)

    return SimpleNamespace(
        measure_velocity=measure_velocity,
        measure_slopes=measure_slopes,
        measure_direction=measure_direction,
    )
