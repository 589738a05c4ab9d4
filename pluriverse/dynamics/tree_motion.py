"""Tree motion stage: from the joint state to the velocity without constraints, in one kernel.

Reads   joint_qd, joint_f, body_f, gravity and its compensation; model properties; workspace: groups,
        tree_states
Writes  workspace: tree_ref, node_rotation, node_offset, node_com, dof_motion, dof_velocity; node_composite of
        roots; mass_row, factor_row; dof_force, dof_product, tree_energy; tree_spin; dof_velocity_free,
        dof_kick, tree_regime

On a CPU, the kinematics stage (`kinematics.py`) and those of the free motion (`free_motion.py`) follow each
other world by world. Eight worlds of one template go through them in the lanes of vectors
(`tree_motion_lanes.py`), which takes a fraction of the time, with the same bits. What the stages exchange
among themselves then stays out of the workspace: it is as it was, or that of the stages one by one.
"""

from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from pluriverse.dynamics.bias import bias_functions
from pluriverse.dynamics.factorization import factorization_functions
from pluriverse.dynamics.forward_kinematics import eval_tree_states
from pluriverse.dynamics.free_motion import eval_free_motion
from pluriverse.dynamics.gravity_compensation import gravity_compensation
from pluriverse.dynamics.integration import PositionIntegration
from pluriverse.dynamics.kick import kick_functions
from pluriverse.dynamics.kinematics import eval_kinematics, kinematics_functions
from pluriverse.dynamics.mass_matrix import mass_functions
from pluriverse.dynamics.rigid_groups import rigid_groups_struct
from pluriverse.dynamics.spin import gyroscopic_functions
from pluriverse.dynamics.tree_motion_lanes import FORCES, VELOCITIES, is_plain, lane_trees
from pluriverse.dynamics.tree_states import tree_states_struct
from pluriverse.dynamics.workspace import Workspace, check_workspace, workspace_struct
from pluriverse.launch import kept_for, launch_kernel, made_once, world_thread_count
from pluriverse.math.lanes import LANES, is_tile
from pluriverse.math.precision import precision_name
from pluriverse.math.records import record_functions
from pluriverse.model import Control, Model, State, Topology
from pluriverse.model.arguments import check_control, check_state
from pluriverse.model.world_list import check_worlds

_plain: WeakKeyDictionary[Model, wp.array] = WeakKeyDictionary()


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    data_struct = workspace_struct(real)
    groups_struct = rigid_groups_struct(real)
    states_struct = tree_states_struct(real)
    move_trees = lane_trees(real)
    compute_world_kinematics = kinematics_functions(real).compute_world_kinematics
    assemble_world_rows = mass_functions(real).assemble_world_rows
    sum_world_forces = bias_functions(real).sum_world_forces
    replace_world_forces = gyroscopic_functions(real).replace_world_forces
    factorize_world_rows = factorization_functions(real).factorize_world_rows
    solve_world_velocity = kick_functions(real).solve_world_velocity
    is_clear = record_functions(wp.spatial_vector).is_clear
    is_uncompensated = record_functions(float).is_clear

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.tree_motion.{precision_name(real)}")
    def compute_tree_motions(
        worlds: wp.array[int],  # [slot]
        stride: int,  # number of threads, see `world_thread_count`
        # model
        topology: Topology,
        template_plain: wp.array[int],  # [template] 1: worlds can go in lanes
        gravity: wp.array[wp.vec3],  # [world] m/s^2
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        joint_armature: wp.array[float],  # [dof] kg or kg m^2
        joint_damping: wp.array[float],  # [dof] N s/m or N m s
        body_com: wp.array[wp.vec3],  # [body] m, body frame
        body_mass: wp.array[float],  # [body] kg
        gravcomp: wp.array[float],  # [body] share of the weight; empty: none
        groups: groups_struct,
        # state and control
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        body_f: wp.array[wp.spatial_vector],  # [body] N, N m about the centre of mass
        joint_f: wp.array[float],  # [dof] N or N m
        dt: real,  # s
        # workspace
        states: states_struct,
        data: data_struct,
    ):
        thread, _ = wp.tid()
        for tile in range(thread, (worlds.shape[0] + LANES - 1) // LANES, stride):
            first = tile * LANES
            in_lanes = bool(False)
            compensated = int(0)
            if is_tile(worlds, first, topology.world_template):
                template = topology.world_template[worlds[first]]
                in_lanes = template_plain[template] != 0
                body_count = topology.template_body[template + 1] - topology.template_body[template]
                for lane in range(LANES):
                    body_base = topology.world_body[worlds[first + lane]]
                    if is_clear(body_f, body_base, body_count) == 0:
                        in_lanes = False
                    if gravcomp.shape[0] > 0:
                        if is_uncompensated(gravcomp, body_base, body_count) == 0:
                            compensated += 1
                in_lanes = in_lanes and (compensated == 0 or compensated == LANES)
            parts = int(FORCES + VELOCITIES)
            while in_lanes and parts != 0:
                done = move_trees(
                    parts,
                    compensated,
                    worlds,
                    first,
                    topology,
                    gravity,
                    joint_axis,
                    body_com,
                    body_mass,
                    gravcomp,
                    joint_armature,
                    joint_damping,
                    joint_q,
                    joint_qd,
                    joint_f,
                    dt,
                    groups,
                    states,
                    data,
                )
                if done == 0:  # a body turns too far: its force comes between the two parts, world by world
                    parts = FORCES
                elif parts == FORCES:
                    for lane in range(LANES):
                        replace_world_forces(worlds[first + lane], topology, dt, data)
                    parts = VELOCITIES
                else:
                    parts = 0
            if in_lanes:
                continue
            for slot in range(first, wp.min(first + LANES, worlds.shape[0])):
                world = worlds[slot]
                if world >= 0:
                    compute_world_kinematics(
                        world, topology, joint_axis, body_com, groups, joint_q, joint_qd, states, data
                    )
                    assemble_world_rows(world, topology, groups, joint_armature, joint_damping, dt, data)
                    sum_world_forces(
                        world,
                        topology,
                        gravity,
                        groups,
                        joint_damping,
                        gravcomp,
                        body_mass,
                        joint_qd,
                        body_f,
                        joint_f,
                        data,
                    )
                    replace_world_forces(world, topology, dt, data)
                    factorize_world_rows(world, topology, data)
                    solve_world_velocity(world, topology, joint_armature, dt, data)

    return SimpleNamespace(compute_tree_motions=compute_tree_motions)


def _plain_templates(model: Model) -> wp.array:
    """Return whether worlds of each template can go in lanes."""
    plain = [is_plain(template) for template in model.templates]
    return wp.array(np.array(plain, dtype=np.int32), dtype=int, device=model.device)


def eval_tree_motion(
    model: Model,
    worlds: wp.array,
    state: State,
    control: Control,
    workspace: Workspace,
    dt: float,
    *,
    mode: PositionIntegration,
    is_follower: bool = False,
) -> None:
    """Do what `eval_kinematics` and `eval_free_motion` do for a step of `dt` [s] (module docstring).

    `mode` is how the step will be integrated, `is_follower` whether nobody could write to the model since the
    step before, so that the rigid groups are up to date.
    """
    together = model.device.is_cpu and not model.has_kinematic_bodies
    if not together or mode is not PositionIntegration.SEMI_IMPLICIT:
        eval_kinematics(model, worlds, state, workspace)
        eval_free_motion(model, worlds, state, control, workspace, dt, mode=mode)
        return
    worlds = check_worlds(model, worlds, what="eval_tree_motion")
    check_state(model, state, "eval_tree_motion: state")
    check_control(model, control, "eval_tree_motion: control")
    check_workspace(model, workspace, "eval_tree_motion")
    if not is_follower:
        workspace.groups.update(worlds)
    eval_tree_states(model, worlds, state, workspace)
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(workspace.real).compute_tree_motions,
        dim=threads,
        inputs=[
            worlds,
            threads,
            model.topology,
            kept_for(model, _plain, _plain_templates),
            model.gravity,
            model.joint_axis,
            model.joint_armature,
            model.joint_damping,
            model.body_com,
            model.body_mass,
            gravity_compensation(model),
            workspace.groups.data,
            state.joint_q,
            state.joint_qd,
            state.body_f,
            control.joint_f,
            workspace.real(dt),
            workspace.tree_states,
            workspace.data,
        ],
        device=model.device,
    )
