"""Velocity limits: bound the speeds of joints after a step of MuJoCo, which has no such limit.

An impulse on each joint that exceeds its limit brings it back to the limit. The impulse acts on all joints
through the mass matrix M of the step, so it conserves momentum like any internal force,

    v' = v + M^-1 sum_i e_i p_i,   |v'_i| <= limit_i,   p_i = 0 where |v'_i| < limit_i,

solved by sweeps over the joints (projected Gauss-Seidel). Positions move as if MuJoCo had computed v' itself.
"""

import warp as wp

from pluriverse.model import Topology
from pluriverse.solvers.mujoco.cpu.native_call import read_number, write_number
from pluriverse.solvers.mujoco.engine import SPEED_SWEEPS
from pluriverse.solvers.mujoco.exchange.maps import ExchangeMaps, is_prescribed
from pluriverse.solvers.mujoco.mapping.group import JointKind

SWEEP_COUNT = wp.constant(SPEED_SWEEPS)
# Relative excess of a speed over its limit that is tolerated: the precision of the limits, single.
SPEED_ROUNDING = wp.constant(wp.float64(1e-7))


@wp.func_native("""
((void (*)(void*, void*, double*, const double*, int))function)(
    (void*)model, (void*)data, (double*)x, (const double*)y, 1);
""")
def solve_mass(function: wp.uint64, model: wp.uint64, data: wp.uint64, x: wp.uint64, y: wp.uint64):
    """Write M^-1 y into x (`mj_solveM`)."""
    ...


@wp.func_native("""
((void (*)(void*, double*, const double*, double))function)(
    (void*)model, (double*)qpos, (const double*)qvel, dt);
""")
def integrate_positions(
    function: wp.uint64, model: wp.uint64, qpos: wp.uint64, qvel: wp.uint64, dt: wp.float64
):
    """Move coordinates for a time at a velocity (`mj_integratePos`)."""
    ...


@wp.func
def limit_speeds(
    world: int,
    topology: Topology,
    maps: ExchangeMaps,
    velocity_limit: wp.array[float],  # [dof] m/s or rad/s
    body_flags: wp.array[int],  # [body]
    solve: wp.uint64,  # mj_solveM
    integrate: wp.uint64,  # mj_integratePos
    model: wp.uint64,
    data: wp.uint64,
    qpos: wp.uint64,
    qvel: wp.uint64,
    scratch: wp.uint64,  # three vectors of all degrees of freedom
    count: int,  # degrees of freedom of MuJoCo
    dt: wp.float64,
):
    """Limit the speeds of a world, and update its coordinates accordingly."""
    zero = wp.float64(0.0)
    group = maps.world_group[world]
    first = maps.group_dof[group]
    joint_first = maps.group_joint[group]
    size = wp.uint64(8 * count)
    unit, response, change = scratch, scratch + size, scratch + size + size
    for k in range(count):
        write_number(unit, 8 * k, zero)
        write_number(change, 8 * k, zero)
    limited = int(0)
    for _sweep in range(SWEEP_COUNT):
        found = int(0)
        for local in range(maps.group_dof[group + 1] - first):
            joint = joint_first + maps.dof_joint[first + local]
            if maps.joint_kind[joint] == JointKind.SCALAR and not is_prescribed(
                topology, maps, body_flags, world, joint
            ):
                address = maps.dof_qvel[first + local]
                limit = wp.float64(velocity_limit[topology.world_dof[world] + local])
                speed = read_number(qvel, 8 * address)
                if wp.abs(speed) > limit * (wp.float64(1.0) + SPEED_ROUNDING):
                    found = 1
                    write_number(unit, 8 * address, wp.float64(1.0))
                    solve_mass(solve, model, data, response, unit)
                    write_number(unit, 8 * address, zero)
                    excess = wp.clamp(speed, -limit, limit) - speed
                    impulse = excess / read_number(response, 8 * address)
                    for k in range(count):
                        step = impulse * read_number(response, 8 * k)
                        write_number(qvel, 8 * k, read_number(qvel, 8 * k) + step)
                        write_number(change, 8 * k, read_number(change, 8 * k) + step)
        if found == 0:
            break
        limited = 1
    if limited != 0:
        integrate_positions(integrate, model, qpos, change, dt)
