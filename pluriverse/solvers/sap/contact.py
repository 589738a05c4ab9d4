"""Contact stage: turn the contacts that collision found into terms of the objective.

Reads   contacts, body poses and motion subspaces of the dynamics, materials and masses of the model
Writes  per contact: bodies, frame, lever arms, phi0, regularization R and bias v_hat; node_contact,
        tree_active

Regularization is that of [Castro2022] section V: dissipation and compliance give R_n, stiction R_t = sigma w.

The weight w of a contact, its inverse effective mass (`contact_weight.py`), bounds R_n from below and sets
R_t.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel
from pluriverse.math.number_rows import integers_clear
from pluriverse.math.precision import kernel_module, mat33_type, vec3_type
from pluriverse.model import Contacts, Model, Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.solvers.sap.chains import chain_functions
from pluriverse.solvers.sap.contact_weight import contact_weight_functions
from pluriverse.solvers.sap.recovery import recovery_functions
from pluriverse.solvers.sap.workspace import PRESCRIBED, VISITED, SapWorkspace, sap_struct

BODY_INERTIA = wp.constant(0)
DIAG_DELASSUS = wp.constant(1)
DELASSUS = wp.constant(2)
WITNESS_POINT = wp.constant(0)
CONTACT_MIDPOINT = wp.constant(1)
HARMONIC_MEAN = wp.constant(0)
ARITHMETIC_MEAN = wp.constant(1)
MINIMUM = wp.constant(2)
MAXIMUM = wp.constant(3)

# Floor of the contact weight w and of R [1/kg]: guards of divisions only.
WEIGHT_MIN = wp.constant(1e-12)
REGULARIZATION_MIN = wp.constant(1e-30)
# The norm of the tangential impulse is rounded at 1e-7 N·s, as in Drake, but never above this fraction of the
# impulse that carries the weight of the contact's effective mass for one step: small parts must be able to
# stick, too.
SOFT_NORM = wp.constant(1e-7)
SOFT_NORM_RELATIVE = wp.constant(1e-6 * 9.81)
NEAR_RIGID = wp.constant(1.0 / (4.0 * math.pi**2))
# Value of contact_rn that marks a contact that takes no part: between bodies that cannot move against each
# other, or beyond `max_rigid_contact`.
LEFT_OUT = wp.constant(-1.0)


@wp.func
def is_shape_within(shape_body: wp.array[int], shape: int, body: int, body_end: int) -> bool:
    """Return whether the shape exists and is static or on a body in `[body, body_end)`."""
    if shape < 0 or shape >= shape_body.shape[0]:
        return False
    carrier = shape_body[shape]
    return carrier < 0 or (carrier >= body and carrier < body_end)


@wp.struct
class ContactInputs:
    """Arrays of contacts and model that the stage reads; see `Contacts` and `Model` for units and shapes."""

    contact_count: wp.array[int]
    shape0: wp.array[int]
    shape1: wp.array[int]
    point0: wp.array[wp.vec3]
    point1: wp.array[wp.vec3]
    normal: wp.array[wp.vec3]
    margin0: wp.array[float]
    margin1: wp.array[float]
    stiffness: wp.array[float]
    has_stiffness: bool
    shape_body: wp.array[int]
    shape_ke: wp.array[float]
    shape_ke_per_mass: wp.array[float]
    shape_tau: wp.array[float]
    shape_mu: wp.array[float]
    body_mass: wp.array[float]
    body_inertia: wp.array[wp.mat33]
    world_frozen: wp.array[int]
    chain_capacity: int  # degrees of freedom of a chain of joints at most
    shares_chains: int  # whether all worlds of a launch use the scratch of the first


@wp.struct
class ContactOptions:
    """Scalars of the regularization; negative fallbacks mean "none given"."""

    beta: wp.float64
    sigma: wp.float64
    fallback_stiffness: wp.float64
    fallback_tau: wp.float64
    fallback_mu: wp.float64
    friction_mode: int
    weight_mode: int
    point_mode: int
    capacity: int
    approach_damping: int
    recovery_limited: int
    dt: wp.float64


@functools.cache
def _kernels(real: Any, linear: Any, dynamics_real: Any, weight_real: Any) -> SimpleNamespace:
    vec3, mat33 = vec3_type(real), mat33_type(real)
    weight3, weight33 = vec3_type(weight_real), mat33_type(weight_real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    names = (real, linear, dynamics_real, weight_real)
    last_free_dof = chain_functions(dynamics_real).last_free_dof
    weighing = contact_weight_functions(real, linear, dynamics_real, weight_real)
    mobility, delassus_weight = weighing.mobility, weighing.delassus_weight
    find_chain, exact_weights = weighing.find_chain, weighing.exact_weights
    recovery = recovery_functions(real, linear, dynamics_real)
    moving_mass, recovery_bias, recovery_speed, recovery_work = (
        recovery.moving_mass,
        recovery.recovery_bias,
        recovery.recovery_speed,
        recovery.recovery_work,
    )

    @wp.func
    def contact_frame(n: vec3) -> mat33:
        """Return the frame with columns (t1, t2, n); t1 is orthogonal to the axis least aligned with n."""
        x, y, z = n[0], n[1], n[2]
        if wp.abs(n[1]) < wp.abs(x) and not wp.abs(n[2]) < wp.abs(n[1]):
            m = wp.sqrt(real(1.0) - y * y)
            r = real(1.0) / m
            return mat33(r * z, -r * y * x, x, real(0.0), m, y, -r * x, -r * y * z, z)
        if wp.abs(n[2]) < wp.abs(x):
            m = wp.sqrt(real(1.0) - z * z)
            r = real(1.0) / m
            return mat33(-r * y, -r * z * x, x, r * x, -r * z * y, y, real(0.0), m, z)
        m = wp.sqrt(real(1.0) - x * x)
        r = real(1.0) / m
        return mat33(real(0.0), m, x, -r * z, -r * x * y, y, r * y, -r * x * z, z)

    @wp.func
    def is_stiffness(stiffness: real) -> bool:
        """Return whether a stiffness is given and finite."""
        return stiffness > real(0.0) and stiffness < real(wp.inf)

    @wp.func
    def shape_stiffness(stiffness: real, per_mass: real, mass: real, fallback: real) -> real:
        """Return the stiffness of one shape [N/m]: its own, that for a mass [kg], or the fallback."""
        if is_stiffness(stiffness):
            return stiffness
        # Infinite is rigid, whatever there is per mass.
        if is_stiffness(per_mass) and not stiffness > real(0.0):
            return per_mass * mass
        return fallback

    @wp.func
    def carried_mass(body_mass: wp.array[float], body_a: int, body_b: int) -> real:
        """Return the mass of the lighter body, of the only one if the other is static, or 1 [kg]."""
        mass = real(wp.inf)
        if body_a >= 0 and body_mass[body_a] > 0.0:
            mass = real(body_mass[body_a])
        if body_b >= 0 and body_mass[body_b] > 0.0:
            mass = wp.min(mass, real(body_mass[body_b]))
        if not mass < real(wp.inf):
            mass = real(1.0)
        return mass

    @wp.func(inline=True)
    def visit(topology: wp.ref[Topology], sap: wp.ref[SapData], world: int, body_node: int):
        """Mark a node and its ancestors for the sweeps, which need them all, and its tree as active."""
        first_node = topology.template_node[topology.world_template[world]]
        node0 = topology.world_joint[world]
        node = int(body_node)
        while node >= 0:
            up = topology.node_parent[first_node + node]
            if sap.node_contact[node0 + node] != 0:
                up = int(-1)
            elif up < 0:
                sap.tree_active[topology.world_tree[world] + topology.node_tree[first_node + node]] = 1
            sap.node_contact[node0 + node] = VISITED
            node = up

    @wp.func(inline=True)
    def shared_length(topology: wp.ref[Topology], first: int, dof_a: int, dof_b: int) -> int:
        """Return how many degrees of freedom move two bodies alike; -1 stands for a body that none moves."""
        a, b = int(dof_a), int(dof_b)
        # Children have larger indices than parents.
        while a != b:
            if a > b:
                a = topology.dof_parent[first + a]
            else:
                b = topology.dof_parent[first + b]
        length = int(0)
        if a >= 0:
            length = topology.dof_depth[first + a] + 1
        return length

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.solvers.sap.contact", *names))
    def set_contact_terms(
        worlds: wp.array[int],
        topology: Topology,
        inputs: ContactInputs,
        options: ContactOptions,
        dynamics: DynamicsData,
        sap: SapData,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        first_body = topology.template_body[template]
        body0 = topology.world_body[world]
        node0 = topology.world_joint[world]
        tree0 = topology.world_tree[world]
        first = topology.template_dof[template]
        dof0 = topology.world_dof[world]
        zero, one = real(0.0), real(1.0)
        dt = real(options.dt)
        # One thread steps all worlds of a launch on a CPU, one after the other: they share its scratch.
        region = int(world)
        if inputs.shares_chains != 0 and worlds[0] >= 0:
            region = worlds[0]
        stride = inputs.chain_capacity
        lifted = real(0.0)  # the mass that moves, once a contact asks for it
        beta2 = real(options.beta) * real(options.beta) * real(NEAR_RIGID)

        integers_clear(sap.node_contact, node0, node_count)
        # A tree takes part if any of its terms is present.
        first_tree = topology.template_tree[template]
        tree_count = topology.template_tree[template + 1] - first_tree
        for tree in range(tree_count):
            active = int(0)
            for dof in range(topology.tree_dof[first_tree + tree], topology.tree_dof_end[first_tree + tree]):
                if sap.dof_terms[dof0 + dof] != 0:
                    active = 1
                    break
            sap.tree_active[tree0 + tree] = active

        start = sap.contact_start[world]
        count = stored_contact_count(sap.contact_start, inputs.contact_count, world)
        if inputs.world_frozen[world] != 0:
            count = 0
        # What contacts of the same two shapes have in common is found for the first of them, and so are the
        # chains of joints of the same two bodies.
        last0, last1 = int(-1), int(-1)
        body_a, body_b, node_a, node_b, dof_a, dof_b = int(-1), int(-1), int(-1), int(-1), int(-1), int(-1)
        chain_a, chain_b, shared = int(-1), int(-1), int(0)
        origin_gap = vec3()
        k0, k1, per_mass0, per_mass1 = real(0.0), real(0.0), real(0.0), real(0.0)
        tau, mu, pair_share = real(0.0), real(0.0), real(0.0)
        fallback = real(options.fallback_stiffness)
        pair_is_given = int(0)
        for slot in range(start, start + count):
            shape0 = inputs.shape0[slot]
            shape1 = inputs.shape1[slot]
            if shape0 != last0 or shape1 != last1:
                body_end = body0 + topology.template_body[template + 1] - first_body
                if not (
                    is_shape_within(inputs.shape_body, shape0, body0, body_end)
                    and is_shape_within(inputs.shape_body, shape1, body0, body_end)
                ):
                    # Somebody wrote there. To leave the contact out would be a wrong simulation.
                    inputs.world_frozen[world] = 1
                    count = 0
                    break
                last0 = shape0
                last1 = shape1
                body_a = inputs.shape_body[shape0]
                body_b = inputs.shape_body[shape1]
                node_a = int(-1)
                node_b = int(-1)
                origin_gap = vec3()
                if body_a >= 0:
                    node_a = topology.body_node[first_body + body_a - body0]
                    origin_gap -= vec3(dynamics.tree_ref[tree0 + topology.node_tree[first_node + node_a]])
                if body_b >= 0:
                    node_b = topology.body_node[first_body + body_b - body0]
                    origin_gap += vec3(dynamics.tree_ref[tree0 + topology.node_tree[first_node + node_b]])
                visit(topology, sap, world, node_a)
                visit(topology, sap, world, node_b)
                dof_a = last_free_dof(topology, dynamics, world, node_a)
                dof_b = last_free_dof(topology, dynamics, world, node_b)
                if options.weight_mode == DELASSUS:
                    if dof_a >= 0 and dof_a != chain_a:
                        find_chain(topology, dynamics, sap, world, dof_a, region, 0, stride)
                        chain_a = dof_a
                    if dof_b >= 0 and dof_b != chain_b:
                        find_chain(topology, dynamics, sap, world, dof_b, region, 1, stride)
                        chain_b = dof_b
                    shared = int(0)
                    if dof_a >= 0 and dof_b >= 0:
                        if topology.node_tree[first_node + node_a] == topology.node_tree[first_node + node_b]:
                            shared = shared_length(topology, first, dof_a, dof_b)

                # Material of the pair.
                k0 = real(inputs.shape_ke[shape0])
                k1 = real(inputs.shape_ke[shape1])
                per_mass0 = real(inputs.shape_ke_per_mass[shape0])
                per_mass1 = real(inputs.shape_ke_per_mass[shape1])
                pair_is_given = int(0)
                if is_stiffness(k0) or is_stiffness(k1) or is_stiffness(per_mass0) or is_stiffness(per_mass1):
                    pair_is_given = 1
                tau0, tau1 = real(inputs.shape_tau[shape0]), real(inputs.shape_tau[shape1])
                if not (tau0 >= zero and tau0 < real(wp.inf)):
                    tau0 = real(options.fallback_tau)
                if not (tau1 >= zero and tau1 < real(wp.inf)):
                    tau1 = real(options.fallback_tau)
                tau = tau0 + tau1
                mu0, mu1 = real(inputs.shape_mu[shape0]), real(inputs.shape_mu[shape1])
                if not (mu0 >= zero and mu0 < real(wp.inf)):
                    mu0 = real(options.fallback_mu)
                if not (mu1 >= zero and mu1 < real(wp.inf)):
                    mu1 = real(options.fallback_mu)
                mu = real(0.0)
                if options.friction_mode == ARITHMETIC_MEAN:
                    mu = real(0.5) * (mu0 + mu1)
                elif options.friction_mode == MINIMUM:
                    mu = wp.min(mu0, mu1)
                elif options.friction_mode == MAXIMUM:
                    mu = wp.max(mu0, mu1)
                elif mu0 + mu1 > zero:
                    mu = real(2.0) * mu0 * mu1 / (mu0 + mu1)
                # How the two share their compression, for the mass of one body where it is per mass.
                mass = carried_mass(inputs.body_mass, body_a, body_b)
                yield0 = shape_stiffness(k0, per_mass0, mass, fallback)
                yield1 = shape_stiffness(k1, per_mass1, mass, fallback)
                pair_share = yield0 / (yield0 + yield1)

            # Positions relative to the reference points of the two trees.
            n = wp.normalize(vec3(inputs.normal[slot]))
            arm0 = vec3(inputs.point0[slot])
            arm1 = vec3(inputs.point1[slot])
            if node_a >= 0:
                arm0 = (
                    vec3(dynamics.node_offset[node0 + node_a])
                    + mat33(dynamics.node_rotation[node0 + node_a]) * arm0
                )
            if node_b >= 0:
                arm1 = (
                    vec3(dynamics.node_offset[node0 + node_b])
                    + mat33(dynamics.node_rotation[node0 + node_b]) * arm1
                )
            apart = origin_gap + (arm1 - arm0)
            phi0 = wp.dot(n, apart) - real(inputs.margin0[slot]) - real(inputs.margin1[slot])

            is_given = int(pair_is_given)
            share = real(pair_share)
            own = real(0.0)
            if inputs.has_stiffness:
                own = real(inputs.stiffness[slot])
                if own > zero:
                    is_given = 1
                    # The pressure centre of a patch is halfway between the two points.
                    share = real(0.5)
            if options.point_mode == CONTACT_MIDPOINT:
                # (k0 x0 + k1 x1) / (k0 + k1), as seen from each reference point
                arm0 += (one - share) * apart
                arm1 -= share * apart
            frame = contact_frame(n)

            weight = weight_real(0.0)
            weight_tangential = weight_real(-1.0)
            if options.weight_mode == DELASSUS:
                weights = exact_weights(
                    topology, sap, first, dof_a, dof_b, shared, arm0, arm1, n, region, stride
                )
                weight_tangential = weight_real(weights[0])
                weight = weight_real(weights[1])
            elif options.weight_mode == DIAG_DELASSUS:
                weight = delassus_weight(
                    topology,
                    dynamics,
                    world,
                    dof_a,
                    dof_b,
                    weight3(arm0),
                    weight3(arm1),
                    wp.transpose(weight33(frame)),
                )
            else:
                if dof_a >= 0 and inputs.body_mass[body_a] > 0.0:
                    arm = weight3(arm0) - weight3(dynamics.node_com[node0 + node_a])
                    arm = arm * weight33(dynamics.node_rotation[node0 + node_a])  # R^T r: to body axes
                    weight += mobility(inputs.body_mass[body_a], inputs.body_inertia[body_a], arm)
                if dof_b >= 0 and inputs.body_mass[body_b] > 0.0:
                    arm = weight3(arm1) - weight3(dynamics.node_com[node0 + node_b])
                    arm = arm * weight33(dynamics.node_rotation[node0 + node_b])  # R^T r: to body axes
                    weight += mobility(inputs.body_mass[body_b], inputs.body_inertia[body_b], arm)
                weight = weight / weight_real(3.0)
            w = wp.max(real(weight), real(WEIGHT_MIN))
            wt = w
            if weight_tangential >= weight_real(0.0):
                wt = wp.max(real(weight_tangential), real(WEIGHT_MIN))
            felt = one / w  # the mass that the contact feels

            stiffness = own
            if not own > zero:
                yield0 = shape_stiffness(k0, per_mass0, felt, fallback)
                yield1 = shape_stiffness(k1, per_mass1, felt, fallback)
                stiffness = yield0 * (yield1 / (yield0 + yield1))

            duration = dt + tau
            rn = wp.max(wp.max(beta2 * w, one / (dt * stiffness * duration)), real(REGULARIZATION_MIN))
            bias = -phi0 / duration
            if phi0 > zero and options.approach_damping == 0:
                # With p the depth at the end of the step, the impulse is then k (dt + tau) p: that of the
                # spring, and that of the damper over the part p / |v_n| of the step in which there is
                # contact.
                bias = -phi0 / dt
            speed_max = real(wp.inf)
            work_max = real(wp.inf)
            if options.recovery_limited != 0 and phi0 < zero:
                if not lifted > zero:
                    lifted = moving_mass(topology, dynamics, world)
                if is_given != 0 and not own > zero:
                    # Per mass of the trees at most: where w is next to zero, nothing has been compressed.
                    yield0 = shape_stiffness(k0, per_mass0, wp.min(felt, lifted), fallback)
                    yield1 = shape_stiffness(k1, per_mass1, wp.min(felt, lifted), fallback)
                    stiffness = yield0 * (yield1 / (yield0 + yield1))
                if is_given == 0 or beta2 * dt * stiffness * duration > lifted:
                    # Not given, or more than the step resolves for the mass of all trees: no motion can
                    # have stored energy in it.
                    stiffness = real(0.0)
                bias = wp.min(bias, recovery_bias(-phi0, w, rn, lifted, stiffness))
                if stiffness == zero:
                    speed_max = recovery_speed(-phi0)
                work_max = recovery_work(-phi0, lifted, stiffness, dt)
            if dof_a == dof_b:
                # The bodies are welded together, or both to the world or to kinematic bodies. The cost is
                # constant: it would blunt the relative cost test, and its stiffness would drown the
                # Hessian in rounding.
                rn = real(LEFT_OUT)
            sap.contact_node0[slot] = node_a
            sap.contact_node1[slot] = node_b
            sap.contact_dof0[slot] = dof_a
            sap.contact_dof1[slot] = dof_b
            sap.contact_frame[slot] = frame
            sap.contact_arm0[slot] = arm0
            sap.contact_arm1[slot] = arm1
            sap.contact_gap[slot] = phi0
            sap.contact_weight[slot] = w
            sap.contact_bias[slot] = bias
            sap.contact_rt[slot] = wp.max(real(options.sigma) * wt, real(REGULARIZATION_MIN))
            sap.contact_rn[slot] = rn
            sap.contact_mu[slot] = mu
            sap.contact_soft[slot] = wp.min(real(SOFT_NORM), real(SOFT_NORM_RELATIVE) * dt * felt)
            sap.contact_speed_max[slot] = speed_max
            sap.contact_work_max[slot] = work_max
            sap.contact_impulse[slot] = vec3()
            sap.contact_dilation[slot] = zero
            sap.contact_bound[slot] = real(-1.0)

        sap.contact_count[world] = count
        for _surplus in range(count - options.capacity):
            shallowest = start
            for slot in range(start, start + count):
                taken = sap.contact_rn[slot] > zero
                if taken and not (
                    sap.contact_rn[shallowest] > zero and sap.contact_gap[shallowest] >= sap.contact_gap[slot]
                ):
                    shallowest = slot
            sap.contact_rn[shallowest] = real(LEFT_OUT)

        for tree in range(tree_count):
            root = node0 + topology.tree_node[first_tree + tree]
            if dynamics.tree_prescribed[tree0 + tree] != 0 and sap.node_contact[root] != 0:
                sap.node_contact[root] = PRESCRIBED
            if inputs.world_frozen[world] != 0:
                sap.tree_active[tree0 + tree] = 0

    return SimpleNamespace(set_contact_terms=set_contact_terms)


def set_contact_terms(
    model: Model,
    worlds: wp.array,
    contacts: Contacts,
    dynamics: Workspace,
    sap: SapWorkspace,
    world_frozen: wp.array,
    *,
    options: ContactOptions,
    weight_real: Any,
) -> None:
    """Write the terms of every contact of the worlds; `options.dt` is the step [s]."""
    inputs = ContactInputs()
    inputs.contact_count = contacts.rigid_contact_count
    inputs.shape0 = contacts.rigid_contact_shape0
    inputs.shape1 = contacts.rigid_contact_shape1
    inputs.point0 = contacts.rigid_contact_point0
    inputs.point1 = contacts.rigid_contact_point1
    inputs.normal = contacts.rigid_contact_normal
    inputs.margin0 = contacts.rigid_contact_margin0
    inputs.margin1 = contacts.rigid_contact_margin1
    inputs.has_stiffness = contacts.rigid_contact_stiffness is not None
    if contacts.rigid_contact_stiffness is not None:
        inputs.stiffness = contacts.rigid_contact_stiffness
    inputs.shape_body = model.structure.shape_body
    inputs.shape_ke = model.shape_material_ke
    inputs.shape_ke_per_mass = model.shape_material_ke_per_mass
    inputs.shape_tau = model.shape_material_tau
    inputs.shape_mu = model.shape_material_mu
    inputs.body_mass = model.body_mass
    inputs.body_inertia = model.body_inertia
    inputs.world_frozen = world_frozen
    inputs.chain_capacity = sap.chain_capacity
    inputs.shares_chains = int(model.device.is_cpu)
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real, weight_real).set_contact_terms,
        dim=worlds.size,
        inputs=[worlds, model.topology, inputs, options, dynamics.data, sap.data],
        device=model.device,
    )
