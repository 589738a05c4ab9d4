"""Velocity limits in MuJoCo Warp: bound the speeds of joints after a step, as `cpu.velocity_limit` does.

Reads   rows; mass matrices of MuJoCo Warp's data; joint_velocity_limit
Writes  qvel and qpos of the rows

The mass matrix is in compressed rows: row i has the degrees of freedom above i on its branch, i itself last.
It is factored without fill, M = L^T D L ([Featherstone2008] ch. 6), and only where a joint is too fast.
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.engine import SPEED_SWEEPS
from pluriverse.solvers.mujoco.exchange.maps import NQ, NV, ExchangeMaps, is_prescribed, rows_struct
from pluriverse.solvers.mujoco.mapping.group import JointKind

SWEEP_COUNT = wp.constant(SPEED_SWEEPS)
# Relative excess of a speed over its limit that is tolerated: a few single-precision roundings.
SPEED_ROUNDING = wp.constant(1e-6)
# Angle [rad] below which a rotation is ignored: its square is lost in rounding.
ANGLE_MIN = wp.constant(1e-12)

Rows = rows_struct(wp.float32)


@wp.struct
class MassRows:
    """The mass matrices of a group, and memory to solve with them."""

    dof_count: int
    nonzero_count: wp.array[int]  # [dof] entries of a row
    start: wp.array[int]  # [dof] first entry of a row
    column: wp.array[int]  # [entry] degree of freedom
    mass: wp.array2d[float]  # [row of the group, entry]
    factor: wp.array2d[float]  # [row of the group, entry]
    response: wp.array2d[float]  # [row of the group, dof] velocities for a unit impulse
    change: wp.array2d[float]  # [row of the group, dof] change of velocities


@wp.func
def factor_mass(masses: MassRows, row: int):
    """Factor the mass matrix of a world: L and, on the diagonal, D."""
    for entry in range(masses.factor.shape[1]):
        masses.factor[row, entry] = masses.mass[row, entry]
    for index in range(masses.dof_count):
        dof = masses.dof_count - 1 - index
        start = masses.start[dof]
        above = masses.nonzero_count[dof] - 1
        pivot = masses.factor[row, start + above]
        for step in range(above):
            place = above - 1 - step
            ratio = masses.factor[row, start + place] / pivot
            target = masses.start[masses.column[start + place]]
            for k in range(place + 1):
                value = masses.factor[row, target + k] - ratio * masses.factor[row, start + k]
                masses.factor[row, target + k] = value
            masses.factor[row, start + place] = ratio


@wp.func
def solve_unit(masses: MassRows, row: int, dof: int):
    """Compute the velocities that a unit impulse on a degree of freedom leaves."""
    for k in range(masses.dof_count):
        masses.response[row, k] = 0.0
    masses.response[row, dof] = 1.0
    for index in range(masses.dof_count):
        i = masses.dof_count - 1 - index
        value = masses.response[row, i]
        if value != 0.0:
            start = masses.start[i]
            for k in range(masses.nonzero_count[i] - 1):
                j = masses.column[start + k]
                masses.response[row, j] = masses.response[row, j] - masses.factor[row, start + k] * value
    for i in range(masses.dof_count):
        start = masses.start[i]
        above = masses.nonzero_count[i] - 1
        value = float(masses.response[row, i] / masses.factor[row, start + above])
        for k in range(above):
            value = value - masses.factor[row, start + k] * masses.response[row, masses.column[start + k]]
        masses.response[row, i] = value


@wp.func
def turn(qpos: wp.array[float], place: int, rotation: wp.vec3):
    """Rotate a MuJoCo quaternion, scalar part first, by a rotation vector in body axes."""
    angle = wp.length(rotation)
    if angle > ANGLE_MIN:
        old = wp.quat(qpos[place + 1], qpos[place + 2], qpos[place + 3], qpos[place])
        new = wp.normalize(old * wp.quat_from_axis_angle(rotation / angle, angle))
        qpos[place] = new[3]
        for k in range(3):
            qpos[place + 1 + k] = new[k]


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.velocity_limit")
def limit_row_speed(
    group_worlds: wp.array[int],  # [row]
    topology: Topology,
    maps: ExchangeMaps,
    velocity_limit: wp.array[float],  # [dof] m/s or rad/s
    body_flags: wp.array[int],  # [body]
    masses: MassRows,
    dt: float,
    rows: Rows,
):
    """Limit the speeds of one world, and update its coordinates accordingly."""
    row, _ = wp.tid()
    world = group_worlds[row]
    group = maps.world_group[world]
    qpos0 = maps.world_start[world, NQ]
    qvel0 = maps.world_start[world, NV]
    first = maps.group_dof[group]
    joint_first = maps.group_joint[group]
    limited = int(0)
    for _sweep in range(SWEEP_COUNT):
        found = int(0)
        for local in range(maps.group_dof[group + 1] - first):
            joint = joint_first + maps.dof_joint[first + local]
            if maps.joint_kind[joint] == JointKind.SCALAR and not is_prescribed(
                topology, maps, body_flags, world, joint
            ):
                place = maps.dof_qvel[first + local]
                limit = velocity_limit[topology.world_dof[world] + local]
                speed = rows.qvel[qvel0 + place]
                if wp.abs(speed) > limit * (1.0 + SPEED_ROUNDING):
                    if limited == 0:
                        factor_mass(masses, row)
                        for k in range(masses.dof_count):
                            masses.change[row, k] = 0.0
                    limited = 1
                    found = 1
                    solve_unit(masses, row, place)
                    impulse = (wp.clamp(speed, -limit, limit) - speed) / masses.response[row, place]
                    for k in range(masses.dof_count):
                        step = impulse * masses.response[row, k]
                        rows.qvel[qvel0 + k] = rows.qvel[qvel0 + k] + step
                        masses.change[row, k] = masses.change[row, k] + step
        if found == 0:
            break
    if limited == 0:
        return
    for local in range(maps.group_joint[group + 1] - joint_first):
        index = joint_first + local
        kind = maps.joint_kind[index]
        qpos = qpos0 + maps.joint_qpos[index]
        dof = maps.joint_qvel[index]
        if kind == JointKind.SCALAR:
            for k in range(maps.joint_dof_count[index]):
                rows.qpos[qpos + k] = rows.qpos[qpos + k] + dt * masses.change[row, dof + k]
        elif kind == JointKind.BALL:
            spin = wp.vec3(masses.change[row, dof], masses.change[row, dof + 1], masses.change[row, dof + 2])
            turn(rows.qpos, qpos, dt * spin)
        elif kind == JointKind.FREE or kind == JointKind.FLOAT:
            for k in range(3):
                rows.qpos[qpos + k] = rows.qpos[qpos + k] + dt * masses.change[row, dof + k]
            spin = wp.vec3(
                masses.change[row, dof + 3], masses.change[row, dof + 4], masses.change[row, dof + 5]
            )
            turn(rows.qpos, qpos + 3, dt * spin)


def make_mass_rows(model: Any, data: Any) -> MassRows:
    """Return the mass matrices of MuJoCo Warp's model and data, with memory to solve with them."""
    masses = MassRows()
    masses.dof_count = model.nv
    masses.nonzero_count, masses.start = model.M_rownnz, model.M_rowadr
    masses.column, masses.mass = model.M_colind, data.M
    masses.factor = wp.zeros_like(data.M)
    shape = (data.M.shape[0], max(int(model.nv), 1))
    masses.response, masses.change = (wp.zeros(shape, dtype=float, device=data.M.device) for _ in range(2))
    return masses


def limit_row_speeds(
    worlds: wp.array,
    topology: Topology,
    maps: ExchangeMaps,
    velocity_limit: wp.array,
    body_flags: wp.array,
    masses: MassRows,
    dt: float,
    rows: Any,
) -> None:
    """Limit the speeds of all worlds of a group, after a step of `dt` [s]."""
    launch_kernel(
        limit_row_speed,
        dim=worlds.size,
        inputs=[worlds, topology, maps, velocity_limit, body_flags, masses, dt],
        outputs=[rows],
        device=worlds.device,
    )
