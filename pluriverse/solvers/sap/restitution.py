"""Restitution stage: contacts that strike faster than a threshold separate, v_n = -e v_n0 (Newton's law).

Reads   contact terms, velocities at the start of the step and of free motion, restitution of shapes
Writes  bias v_hat and regularization R_n of contacts that bounce, and of others in their world

A contact asks for the normal velocity v_hat (`contact`). One that strikes in this step asks for e |v_n0|, as
a rigid contact, whatever its stiffness. With the velocities c before the step and v after it, all contacts
together change the kinetic energy by the sum of 1/2 gamma (v + c), so it cannot grow if no contact that
pushes asks for more than -c. That holds for those that bounce since e <= 1. Contacts that part already,
c > 0, may therefore be pressed together at c, as in the rule of [Moreau1988], and are stopped in the next
step; contacts that do not strike ask for no more than zero.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.precision import kernel_module, mat33_type, vec3_type
from pluriverse.model import Contacts, Model, Topology
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions

# Largest regularization of a contact that bounces, in units of its effective inverse mass: it falls short of
# e |v_n0| by a few times this share of the change of velocity. Less would cost digits of a Hessian in fp32.
BOUNCE_REGULARIZATION = wp.constant(1e-4)
# Least ratio of the mobility along normal and friction to that along the normal alone; a division guard.
JAMMED = wp.constant(0.1)
# Rounds of bisection for the speed of a bounce: to a thousandth.
ENERGY_ROUNDS = wp.constant(10)


@wp.struct
class RestitutionInputs:
    """Arrays of contacts and model that the stage reads; see `Contacts` and `Model`."""

    shape0: wp.array[int]
    shape1: wp.array[int]
    shape_body: wp.array[int]
    shape_restitution: wp.array[float]
    body_mass: wp.array[float]
    body_inertia: wp.array[wp.mat33]


@made_once
def _kernels(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    vec3, mat33 = vec3_type(real), mat33_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    motion = world_motion_functions(real, linear, dynamics_real)
    measure_velocity, measure_direction = motion.measure_velocity, motion.measure_direction
    names = (real, linear, dynamics_real)

    @wp.func
    def body_mobility(
        inputs: RestitutionInputs, dynamics: wp.ref[DynamicsData], node: int, body: int, arm: vec3
    ) -> mat33:
        """Return 1/m - [r]x I^-1 [r]x [1/kg] of a free body at a point, in world axes."""
        rotation = mat33(dynamics.node_rotation[node])
        inverse_inertia = rotation * wp.inverse(mat33(inputs.body_inertia[body])) * wp.transpose(rotation)
        cross = wp.skew(arm - vec3(dynamics.node_com[node]))
        return wp.identity(n=3, dtype=real) / real(inputs.body_mass[body]) - cross * inverse_inertia * cross

    @wp.func
    def pair_mobility(
        topology: wp.ref[Topology],
        inputs: RestitutionInputs,
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        slot: int,
    ) -> mat33:
        """Return the sum of the mobilities of both bodies of a contact, in the contact frame [1/kg]."""
        node0 = topology.world_joint[world]
        result = mat33()
        body = inputs.shape_body[inputs.shape0[slot]]
        if sap.contact_dof0[slot] >= 0 and inputs.body_mass[body] > 0.0:
            node = node0 + sap.contact_node0[slot]
            result += body_mobility(inputs, dynamics, node, body, sap.contact_arm0[slot])
        body = inputs.shape_body[inputs.shape1[slot]]
        if sap.contact_dof1[slot] >= 0 and inputs.body_mass[body] > 0.0:
            node = node0 + sap.contact_node1[slot]
            result += body_mobility(inputs, dynamics, node, body, sap.contact_arm1[slot])
        frame = sap.contact_frame[slot]
        return wp.transpose(frame) * result * frame

    @wp.func
    def coulomb_impulse(W: mat33, free: vec3, speed: real, mu: real) -> vec3:
        """Return the impulse [N·s] that makes a single contact part at `speed`, with friction."""
        gamma = wp.inverse(W) * (vec3(real(0.0), real(0.0), speed) - free)
        tangent = wp.sqrt(gamma[0] * gamma[0] + gamma[1] * gamma[1])
        if tangent > mu * gamma[2]:
            # It slips, and friction points to where it would have to, to stop it.
            push = vec3(mu * gamma[0] / tangent, mu * gamma[1] / tangent, real(1.0))
            # Where friction drives the contact on (Painleve), bound the impulse.
            share = wp.max((W * push)[2], real(JAMMED) * W[2, 2])
            gamma = (speed - free[2]) / share * push
        return gamma

    @wp.func
    def impact_work(W: mat33, free: vec3, before: vec3, speed: real, mu: real) -> real:
        """Return the change of kinetic energy [J] by that impulse."""
        gamma = coulomb_impulse(W, free, speed, mu)
        return real(0.5) * wp.dot(gamma, before + free + W * gamma)

    @wp.func
    def bounce_bias(
        topology: wp.ref[Topology],
        inputs: RestitutionInputs,
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        slot: int,
        speed: real,
        is_convex: int,
    ) -> real:
        """Return the v_hat [m/s] with which a contact parts at `speed`, or slower if energy would grow."""
        before, mu = sap.contact_velocity[slot], sap.contact_mu[slot]
        free = before + sap.contact_slope[slot]
        if mu <= real(0.0):
            return speed
        W = pair_mobility(topology, inputs, dynamics, sap, world, slot)
        if impact_work(W, free, before, speed, mu) > real(0.0):
            # Newton's law with friction may create energy where the impact is off centre: less of a bounce.
            lower, upper = real(0.0), real(speed)
            for _round in range(ENERGY_ROUNDS):
                middle = real(0.5) * (lower + upper)
                if impact_work(W, free, before, middle, mu) > real(0.0):
                    upper = middle
                else:
                    lower = middle
            speed = real(lower)
        gamma = coulomb_impulse(W, free, speed, mu)
        if is_convex == 0:
            return speed
        # With convex friction a contact that slips parts faster than v_hat by mu times its slip
        # ([Castro2022] section IV.B); what is to be expected of that is taken off here.
        after = free + W * gamma
        slip2 = wp.min(after[0] * after[0] + after[1] * after[1], free[0] * free[0] + free[1] * free[1])
        return speed - mu * wp.sqrt(slip2)

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.solvers.sap.restitution", *names))
    def add_restitution(
        worlds: wp.array[int],
        topology: Topology,
        inputs: RestitutionInputs,
        threshold: real,  # m/s
        dt: real,
        is_convex: int,  # friction
        dynamics: DynamicsData,
        sap: SapData,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        dof0 = topology.world_dof[world]
        zero = real(0.0)
        start = sap.contact_start[world]
        end = start + sap.contact_count[world]

        elastic = int(0)
        for slot in range(start, end):
            shape0, shape1 = inputs.shape0[slot], inputs.shape1[slot]
            if inputs.shape_restitution[shape0] + inputs.shape_restitution[shape1] > 0.0:
                elastic = 1
        if elastic == 0:
            return

        # Contact velocities at the start of the step, and the direction from there to free motion.
        for tree in range(topology.template_tree[template + 1] - first_tree):
            prescribed = dynamics.tree_prescribed[topology.world_tree[world] + tree]
            for dof in range(topology.tree_dof[first_tree + tree], topology.tree_dof_end[first_tree + tree]):
                free = real(dynamics.dof_velocity_free[dof0 + dof])
                before = free
                if prescribed == 0:
                    before = real(dynamics.dof_velocity[dof0 + dof])
                sap.velocity[dof0 + dof] = before
                sap.direction[dof0 + dof] = free - before
        measure_velocity(topology, dynamics, sap, world)
        measure_direction(topology, dynamics, sap, world)

        bounces = int(0)
        for slot in range(start, end):
            e = real(
                0.5
                * (
                    inputs.shape_restitution[inputs.shape0[slot]]
                    + inputs.shape_restitution[inputs.shape1[slot]]
                )
            )
            if sap.contact_rn[slot] > zero and e > zero:
                gap = sap.contact_gap[slot]
                approach = -sap.contact_velocity[slot][2]
                free = sap.contact_velocity[slot][2] + sap.contact_slope[slot][2]
                if approach > threshold and gap + dt * free <= zero:
                    bounces = 1
                    # Overlap is resolved as quickly as without restitution, but with no more energy than
                    # there was.
                    speed = wp.min(wp.max(e * approach, sap.contact_bias[slot]), approach)
                    sap.contact_bias[slot] = bounce_bias(
                        topology, inputs, dynamics, sap, world, slot, speed, is_convex
                    )
                    sap.contact_speed_max[slot] = real(wp.inf)
                    sap.contact_work_max[slot] = real(wp.inf)
                    rigid = real(BOUNCE_REGULARIZATION) * sap.contact_weight[slot]
                    sap.contact_rn[slot] = wp.min(sap.contact_rn[slot], rigid)
                elif gap > zero and (approach > threshold or approach <= zero):
                    # Dissipation would slow an approach before there is contact, also one that an impact
                    # elsewhere begins in this step.
                    sap.contact_bias[slot] = -gap / dt
        if bounces != 0:
            for slot in range(start, end):
                parting = sap.contact_velocity[slot][2]
                if sap.contact_rn[slot] > zero and parting > zero:
                    sap.contact_bias[slot] = wp.min(sap.contact_bias[slot], -parting)

    return SimpleNamespace(add_restitution=add_restitution)


def add_restitutions(
    model: Model,
    worlds: wp.array,
    contacts: Contacts,
    dynamics: Workspace,
    sap: SapWorkspace,
    *,
    threshold: float,
    dt: float,
    is_convex: bool,
) -> None:
    """Make contacts bounce that strike faster than `threshold` [m/s] in a step of `dt` [s]."""
    inputs = RestitutionInputs()
    inputs.shape0 = contacts.rigid_contact_shape0
    inputs.shape1 = contacts.rigid_contact_shape1
    inputs.shape_body = model.structure.shape_body
    inputs.shape_restitution = model.shape_material_restitution
    inputs.body_mass = model.body_mass
    inputs.body_inertia = model.body_inertia
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real).add_restitution,
        dim=worlds.size,
        inputs=[worlds, model.topology, inputs, threshold, dt, int(is_convex), dynamics.data, sap.data],
        device=model.device,
    )
