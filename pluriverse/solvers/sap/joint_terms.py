"""Terms of the objective that concern one degree of freedom: PD drives, limits, dry friction.

Reads   joint_q of the old state, control, gains and limits of the model, A, v0 and v* of the dynamics
Writes  dof_terms, dof_scale and the coefficients of the terms (`SapWorkspace`)

A speed limit is one-sided as a joint limit, gamma = max(|v| - limit, 0) / R against the motion, near rigid.
The other terms follow the discrete constraints of Drake's SAP driver; the solver page states them all.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.bounds import bounded
from pluriverse.math.lanes import lane_count
from pluriverse.math.precision import kernel_module
from pluriverse.model import Control, Model, State, Topology
from pluriverse.solvers.sap.joint_term_inputs import (
    EFFORT_UNLIMITED,
    INVERSE_MASS_MIN,
    LIMIT_RECOVERY_TIME,
    NEAR_RIGID,
    SPEED_UNLIMITED,
    JointTermInputs,
)
from pluriverse.solvers.sap.joint_terms_lanes import joint_term_lanes
from pluriverse.solvers.sap.workspace import (
    DRIVE,
    DRY_FRICTION,
    LIMIT_LOWER,
    LIMIT_UPPER,
    SPEED_LIMIT,
    SapWorkspace,
    sap_struct,
)
from pluriverse.types import JointTargetMode


@wp.func
def is_number(x: Any) -> bool:
    """Return whether x is not NaN; `wp.isnan` is a call on a CPU, for which all registers are stored."""
    return x == x


@made_once
def _kernels(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    names = (real, linear, dynamics_real)
    set_terms_in_lanes = joint_term_lanes(*names).set_terms_in_lanes

    @wp.func
    def set_terms(
        world: int,
        topology: wp.ref[Topology],
        inputs: wp.ref[JointTermInputs],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        contact_sigma: real,
        approach_damping: int,
        dt64: wp.float64,
    ):
        """Set the terms of a world."""
        template = topology.world_template[world]
        first_dof = topology.template_dof[template]
        dof0 = topology.world_dof[world]
        coord0 = topology.world_coord[world]
        row0 = topology.world_row[world]
        dt = real(dt64)
        zero, one = real(0.0), real(1.0)
        for local in range(topology.template_dof[template + 1] - first_dof):
            dof = dof0 + local
            coord = topology.dof_coord[first_dof + local]
            public = dof0 + topology.dof_public[first_dof + local]
            scalar = coord >= 0
            mode = inputs.target_mode[public]
            torque = real(inputs.friction[public])
            has_limit = scalar and not (inputs.limit_ke[public] <= 0.0)
            speed_limit = real(SPEED_UNLIMITED)
            if inputs.enforce_velocity_limit != 0 and scalar:
                speed_limit = real(inputs.velocity_limit[public])
            terms = int(0)
            complete = is_number(torque)
            diagonal = real(
                dynamics.mass_row[
                    row0 + topology.dof_row[first_dof + local] + topology.dof_depth[first_dof + local]
                ]
            )
            scale = one / diagonal
            sap.dof_scale[dof] = scale
            if mode != 0 or has_limit or torque > zero or speed_limit < real(SPEED_UNLIMITED):
                inverse_mass = wp.max(scale, real(INVERSE_MASS_MIN))
                near_rigid = real(NEAR_RIGID) * inverse_mass
                q = real(0.0)
                if scalar:
                    q = real(inputs.joint_q[coord0 + coord])
                if mode != 0:
                    ke = real(0.0)
                    kd = real(0.0)
                    target_velocity = real(0.0)
                    if mode != JointTargetMode.EFFORT:
                        kd = real(inputs.target_kd[public])
                        if scalar and mode != JointTargetMode.VELOCITY:
                            ke = real(inputs.target_ke[public])
                        if mode != JointTargetMode.POSITION:
                            target_velocity = real(inputs.target_vel[public])
                        if mode == JointTargetMode.VELOCITY:
                            target_velocity = real(
                                bounded(
                                    inputs.target_vel[public],
                                    inputs.target_lower[public],
                                    inputs.target_upper[public],
                                )
                            )
                    if ke > zero or kd > zero:
                        if one < near_rigid * (dt * (dt * ke + kd)):
                            # Stiffer than the step resolves: keep the ratio of the gains, lower both.
                            if dt * ke > kd:
                                tau = kd / ke
                                ke = one / (dt * (dt + tau) * near_rigid)
                                kd = tau * ke
                            else:
                                rate = ke / kd
                                kd = one / (dt * (one + dt * rate) * near_rigid)
                                ke = rate * kd
                    complete = complete and is_number(ke + kd)
                    complete = complete and is_number(inputs.effort_limit[public])
                    offset = kd * target_velocity + real(inputs.act[public])
                    if ke > zero:
                        target = bounded(
                            inputs.target_pos[public],
                            inputs.target_lower[public],
                            inputs.target_upper[public],
                        )
                        offset += ke * (real(target) - q)
                    gain = dt * ke + kd
                    limit = real(inputs.effort_limit[public])
                    if not limit < real(EFFORT_UNLIMITED):
                        limit = real(EFFORT_UNLIMITED)
                    if gain > zero or offset != zero:
                        terms += DRIVE
                        sap.drive_offset[dof] = offset
                        sap.drive_gain[dof] = gain
                        sap.drive_limit[dof] = limit
                if has_limit:
                    least, most = inputs.limit_lower[public], inputs.limit_upper[public]
                    complete = complete and is_number(least) and is_number(most)
                    speed = wp.max(
                        wp.abs(real(dynamics.dof_velocity[dof])),
                        wp.abs(real(dynamics.dof_velocity_free[dof])),
                    )
                    window = real(2.0) * dt * speed
                    lower = q - real(least)
                    upper = real(most) - q
                    if lower <= window or upper <= window:
                        ke = real(inputs.limit_ke[public])
                        kd = wp.max(real(inputs.limit_kd[public]), zero)
                        is_soft = is_number(inputs.limit_ke[public])
                        if not is_soft:
                            ke = one / (dt * dt * near_rigid)
                        if is_number(inputs.limit_kd[public]):
                            tau = kd / ke
                        elif is_soft:
                            tau = real(2.0) * wp.sqrt(diagonal / ke)  # critical damping
                        else:
                            tau = real(LIMIT_RECOVERY_TIME)
                        sap.limit_regularization[dof] = wp.max(near_rigid, one / (dt * ke * (dt + tau)))
                        if lower <= window:
                            terms += LIMIT_LOWER
                            sap.limit_lower_bias[dof] = -lower / (dt + tau)
                            if lower > zero and approach_damping == 0:
                                sap.limit_lower_bias[dof] = -lower / dt
                        if upper <= window:
                            terms += LIMIT_UPPER
                            sap.limit_upper_bias[dof] = -upper / (dt + tau)
                            if upper > zero and approach_damping == 0:
                                sap.limit_upper_bias[dof] = -upper / dt
                if torque > zero:
                    terms += DRY_FRICTION
                    sap.friction_regularization[dof] = contact_sigma * inverse_mass
                    sap.friction_impulse[dof] = dt * torque
                if speed_limit < real(SPEED_UNLIMITED):
                    terms += SPEED_LIMIT
                    sap.speed_limit[dof] = speed_limit
                    sap.speed_regularization[dof] = near_rigid
            if not (complete and is_number(speed_limit)):
                # No comparison above holds with NaN, which would switch the term off: let the cost be NaN, by
                # which the world is frozen.
                terms = DRIVE
                sap.drive_offset[dof] = real(wp.nan)
                sap.drive_gain[dof] = one
                sap.drive_limit[dof] = real(EFFORT_UNLIMITED)
            sap.dof_terms[dof] = terms

    @wp.func
    def clear_prescribed(
        world: int, topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], sap: wp.ref[SapData]
    ):
        """Take all terms from roots that are prescribed: nothing acts on them."""
        template = topology.world_template[world]
        dof0 = topology.world_dof[world]
        first_tree = topology.template_tree[template]
        for tree in range(topology.template_tree[template + 1] - first_tree):
            if dynamics.tree_prescribed[topology.world_tree[world] + tree] != 0:
                root = topology.template_node[template] + topology.tree_node[first_tree + tree]
                begin = dof0 + topology.node_dof[root]
                for dof in range(begin, begin + topology.node_dof_count[root]):
                    sap.dof_terms[dof] = 0

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.solvers.sap.joint_terms", *names))
    def set_joint_terms(
        worlds: wp.array[int],
        stride: int,  # number of threads, see `world_thread_count`
        lanes: int,  # lanes of a vector; with more than one, terms are set in lanes
        topology: Topology,
        inputs: JointTermInputs,
        dynamics: DynamicsData,
        sap: SapData,
        contact_sigma: real,
        approach_damping: int,
        dt64: wp.float64,
    ):
        thread, _ = wp.tid()
        for slot in range(thread, worlds.shape[0], stride):
            world = worlds[slot]
            if world < 0:
                continue
            if lanes > 1:
                set_terms_in_lanes(
                    world, topology, inputs, dynamics, sap, contact_sigma, approach_damping, dt64
                )
            else:
                set_terms(world, topology, inputs, dynamics, sap, contact_sigma, approach_damping, dt64)
            clear_prescribed(world, topology, dynamics, sap)

    return SimpleNamespace(set_joint_terms=set_joint_terms)


def set_joint_terms(
    model: Model,
    worlds: wp.array,
    state_in: State,
    control: Control,
    dynamics: Workspace,
    sap: SapWorkspace,
    *,
    contact_sigma: float,
    approach_damping: bool,
    enforce_velocity_limit: bool,
    dt: float,
) -> None:
    """Write the terms of every degree of freedom of the worlds for a step of `dt` [s]."""
    inputs = JointTermInputs()
    inputs.joint_q = state_in.joint_q
    inputs.target_pos = control.joint_target_pos
    inputs.target_vel = control.joint_target_vel
    inputs.act = control.joint_act
    inputs.target_mode = model.joint_target_mode
    inputs.target_lower = model.joint_target_lower
    inputs.target_upper = model.joint_target_upper
    inputs.target_ke = model.joint_target_ke
    inputs.target_kd = model.joint_target_kd
    inputs.effort_limit = model.joint_effort_limit
    inputs.limit_lower = model.joint_limit_lower
    inputs.limit_upper = model.joint_limit_upper
    inputs.limit_ke = model.joint_limit_ke
    inputs.limit_kd = model.joint_limit_kd
    inputs.friction = model.joint_friction
    inputs.velocity_limit = model.joint_velocity_limit
    inputs.enforce_velocity_limit = int(enforce_velocity_limit)
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real).set_joint_terms,
        dim=threads,
        inputs=[
            worlds,
            threads,
            lane_count(model.device),
            model.topology,
            inputs,
            dynamics.data,
            sap.data,
            contact_sigma,
            int(approach_damping),
            dt,
        ],
        device=model.device,
    )
