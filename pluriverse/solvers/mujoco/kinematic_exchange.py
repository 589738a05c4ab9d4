"""Exchange of kinematic joints: what moves as told reaches its targets, and what it carries feels it.

Reads   joint_q, joint_qd of the old state; targets and modes of drives
Writes  rows before the step; joint_q, joint_qd of the new state after it

In MuJoCo such a joint has an armature that nothing in a scene accelerates. Its velocity at the end of a step
follows from mode and targets as in `SolverSAP`; a force on the armature gives it the acceleration that leads
there, so inertial forces act on what hangs on it. Its coordinates then are what was asked for, without
rounding. A joint without a target keeps its coordinates and velocity. So do ball and free joints.
"""

import functools
from typing import Any

import warp as wp

from pluriverse.math.precision import kernel_module
from pluriverse.model import Control, Model, State, Topology
from pluriverse.solvers.mujoco.exchange_maps import NV, ExchangeMaps, ExchangeRows, rows_struct
from pluriverse.solvers.mujoco.group import JointKind
from pluriverse.solvers.mujoco.joints import KINEMATIC_ARMATURE
from pluriverse.types import BodyFlags, JointTargetMode

SCALAR = wp.constant(int(JointKind.SCALAR))
KINEMATIC = wp.constant(int(BodyFlags.KINEMATIC))
POSITION = wp.constant(int(JointTargetMode.POSITION))
VELOCITY = wp.constant(int(JointTargetMode.VELOCITY))
POSITION_VELOCITY = wp.constant(int(JointTargetMode.POSITION_VELOCITY))
ARMATURE = wp.constant(wp.float64(KINEMATIC_ARMATURE))


@wp.struct
class Targets:
    """Arrays that say where kinematic joints go; see `Model`, `State` and `Control`."""

    body_flags: wp.array[int]
    joint_target_mode: wp.array[int]
    joint_q: wp.array[float]  # of the old state
    joint_qd: wp.array[float]
    joint_target_pos: wp.array[float]
    joint_target_vel: wp.array[float]


@wp.func
def end_velocity(targets: Targets, coord: int, dof: int, dt: wp.float64) -> wp.float64:
    """Return the velocity of a degree of freedom at the end of the step."""
    mode = targets.joint_target_mode[dof]
    if mode == VELOCITY or mode == POSITION_VELOCITY:  # noqa: SIM109, Warp knows no tuples here
        return wp.float64(targets.joint_target_vel[dof])
    if mode == POSITION:
        return (wp.float64(targets.joint_target_pos[dof]) - wp.float64(targets.joint_q[coord])) / dt
    return wp.float64(targets.joint_qd[dof])


@wp.func
def moves(targets: Targets, topology: Topology, maps: ExchangeMaps, world: int, index: int) -> bool:
    """Return whether a joint of a group is kinematic in a world, with a coordinate per degree of freedom."""
    body = topology.world_body[world] + maps.joint_child[index]
    return maps.joint_kind[index] == SCALAR and targets.body_flags[body] & KINEMATIC != 0


@functools.cache
def _push_kernel(real: Any) -> wp.Kernel:
    Rows = rows_struct(real)

    @wp.kernel(
        enable_backward=False, module=kernel_module("pluriverse.solvers.mujoco.kinematic_exchange", real)
    )
    def push_kinematic(
        worlds: wp.array[int],
        topology: Topology,
        maps: ExchangeMaps,
        targets: Targets,
        dt: wp.float64,
        rows: Rows,
    ):
        world = worlds[wp.tid()]
        group = maps.world_group[world]
        first = maps.group_joint[group]
        for local in range(maps.group_joint[group + 1] - first):
            index = first + local
            if moves(targets, topology, maps, world, index):
                for k in range(maps.joint_dof_count[index]):
                    coord = topology.world_coord[world] + maps.joint_coord[index] + k
                    dof = topology.world_dof[world] + maps.joint_dof[index] + k
                    change = end_velocity(targets, coord, dof, dt) - wp.float64(targets.joint_qd[dof])
                    qvel = maps.world_start[world, NV] + maps.joint_qvel[index] + k
                    rows.qfrc_applied[qvel] = real(ARMATURE * change / dt)

    return push_kinematic


@wp.kernel(enable_backward=False)
def pull_kinematic(
    worlds: wp.array[int],
    topology: Topology,
    maps: ExchangeMaps,
    targets: Targets,
    dt: wp.float64,
    world_stepped: wp.array[int],
    joint_q: wp.array[float],
    joint_qd: wp.array[float],
):
    """Write where the kinematic joints of a world went."""
    world = worlds[wp.tid()]
    if world_stepped[world] == 0:
        return
    group = maps.world_group[world]
    first = maps.group_joint[group]
    for local in range(maps.group_joint[group + 1] - first):
        index = first + local
        if moves(targets, topology, maps, world, index):
            for k in range(maps.joint_dof_count[index]):
                coord = topology.world_coord[world] + maps.joint_coord[index] + k
                dof = topology.world_dof[world] + maps.joint_dof[index] + k
                mode = targets.joint_target_mode[dof]
                velocity = end_velocity(targets, coord, dof, dt)
                joint_qd[dof] = float(velocity)
                if mode == VELOCITY:
                    joint_q[coord] = float(wp.float64(targets.joint_q[coord]) + dt * velocity)
                if mode == POSITION or mode == POSITION_VELOCITY:  # noqa: SIM109, Warp knows no tuples here
                    joint_q[coord] = targets.joint_target_pos[dof]


def push_kinematic_joints(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    rows: ExchangeRows,
    state_in: State,
    control: Control,
    dt: float,
) -> None:
    """Write the forces that accelerate kinematic joints into the rows, after all others."""
    if not model.has_kinematic_bodies:
        return
    wp.launch(
        _push_kernel(rows.real),
        dim=worlds.size,
        inputs=[worlds, model.topology, maps, _targets(model, state_in, control), wp.float64(dt)],
        outputs=[rows.data],
        device=model.device,
    )


def pull_kinematic_joints(
    model: Model,
    worlds: wp.array,
    maps: ExchangeMaps,
    state_in: State,
    state_out: State,
    control: Control,
    world_stepped: wp.array,
    dt: float,
) -> None:
    """Write where kinematic joints went into the new state, after all others."""
    if not model.has_kinematic_bodies:
        return
    wp.launch(
        pull_kinematic,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            maps,
            _targets(model, state_in, control),
            wp.float64(dt),
            world_stepped,
        ],
        outputs=[state_out.joint_q, state_out.joint_qd],
        device=model.device,
    )


def _targets(model: Model, state: State, control: Control) -> Targets:
    targets = Targets()
    targets.body_flags, targets.joint_target_mode = model.body_flags, model.joint_target_mode
    targets.joint_q, targets.joint_qd = state.joint_q, state.joint_qd
    targets.joint_target_pos, targets.joint_target_vel = control.joint_target_pos, control.joint_target_vel
    return targets
