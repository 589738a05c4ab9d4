"""Equality stage: turn the equality constraints of a model into terms of the objective.

Reads   constraints of the model, joint_q of the old state, poses and motion subspaces of the dynamics
Writes  one `EqualityTerm` per constraint; node_contact and tree_active of what constraints hold

A constraint with error g and velocity v_c has the cost 1/2 (v_hat - v_c)^T R^-1 (v_hat - v_c), v_hat = -g /
(dt + tau), R = beta^2 / (4 pi^2) w with the effective inverse mass w = ||J diag(A)^-1 J^T||_F / size, as the
near-rigid contacts of [Castro2022] section V. beta = 0.1 and tau = dt, as for Drake's constraints; a distance
has tau = 2 dt.

A constraint that starts far open, or that a singular pose keeps open, would take any speed and energy that
the trees can give: a straight arm whose hand was welded a centimetre out of its reach turned at 90 rad/s
against its damping. So connections, welds and hinges are asked for no more than the speed of a fall from the
height of the error, and what the bodies' own turning opens in a step,

    |v_hat| <= sqrt(2 g |error|) + dt sum |omega| |v|,

with the points' velocities v; for rotations g over the radius of gyration sqrt(w / w_angular), and omega^2.
A mechanism at any speed leaves its constraint by half of the last term per step, and is asked for that much.
"""

import math
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once, world_thread_count
from pluriverse.math.precision import kernel_module, mat33_type, quat_type, vec3_type, vec6_type
from pluriverse.model import Model, State, Topology
from pluriverse.solvers.sap.chains import chain_functions
from pluriverse.solvers.sap.equality import BODIES, DISTANCE, DOFS, OFF
from pluriverse.solvers.sap.workspace import PRESCRIBED, VISITED, SapWorkspace, sap_struct
from pluriverse.types import EqType

# Near-rigid parameter: the period of the softest motion that violates a constraint is a tenth of a step.
NEAR_RIGID = wp.constant(0.1**2 / (4.0 * math.pi**2))
# Floor of diag(A) [kg or kg·m²]: a guard of divisions only.
DIAGONAL_MIN = wp.constant(1e-12)
# Two bodies count as unable to move against each other if w is below this fraction of what their own
# motions make of it. Rounding of single-precision positions leaves 1e-14, and a stiffness 1 / R that is so
# much larger than that of the bodies by themselves would drown the Hessian in rounding.
IMMOBILE = wp.constant(1e-10)

# Dissipation time of distances, in steps. Where positions move at the mean velocity of a step, a gap that
# closes at v = gap / (h + tau) follows gap' = (1 - b) gap - b gap_before, b = h / (2 h + 2 tau), and stays on
# its side, so that a rope does not throw back what it catches, if b <= 3 - sqrt(8): tau >= 1.92 h.
SPAN_TAU = wp.constant(2.0)
# Acceleration [m/s²] from which the largest velocity of a constraint follows: that of the Earth in any scene,
# as it only says what is fast.
PULL = 9.81
# How many times less inertia motions that hardly move what is held may have than diag(A) tells: those of a
# chain of six light links, whose hand is welded out of its reach, some ten times.
INNER = wp.constant(10.0)
# Velocity [m/s] of a bound that is absent.
NO_BOUND = wp.constant(-1e30)


@wp.struct
class EqualityInputs:
    """Arrays of model and state that the stage reads; see `Model` for units and shapes."""

    type: wp.array[int]
    body1: wp.array[int]
    body2: wp.array[int]
    anchor: wp.array[wp.vec3]
    axis: wp.array[wp.vec3]
    torquescale: wp.array[float]
    relpose: wp.array[wp.transform]
    joint1: wp.array[int]
    joint2: wp.array[int]
    joint1_axis: wp.array[int]
    joint2_axis: wp.array[int]
    polycoef: wp.array2d[float]
    enabled: wp.array[bool]
    joint_child: wp.array[int]
    joint_frame_parent: wp.array[wp.transform]
    joint_frame_child: wp.array[wp.transform]
    joint_qd_start: wp.array[int]
    joint_limit_lower: wp.array[float]
    joint_limit_upper: wp.array[float]
    joint_q: wp.array[float]
    world_frozen: wp.array[int]


@made_once
def _kernels(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    vec3, vec6, mat33, quat = vec3_type(real), vec6_type(real), mat33_type(real), quat_type(real)
    vec2 = wp.types.vector(length=2, dtype=real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    last_free_dof = chain_functions(dynamics_real).last_free_dof
    names = (real, linear, dynamics_real)

    @wp.func
    def rotation_vector(matrix: mat33) -> vec3:
        """Return axis times angle [rad] of a rotation matrix."""
        q = wp.normalize(wp.quat_from_matrix(matrix))
        axis = vec3(q[0], q[1], q[2])
        w = q[3]
        if w < real(0.0):
            axis = -axis
            w = -w
        length = wp.length(axis)
        factor = real(2.0)
        if length > real(0.0):
            factor = real(2.0) * wp.atan2(length, w) / length
        return factor * axis

    @wp.func(inline=True)
    def asked_share(rate: real, error: vec3, pull: real, swept: real) -> real:
        """Return which part of the velocity -error `rate` is to undo an error: less than 1 if it is large."""
        size = wp.length(error)
        fastest = wp.sqrt(real(2.0) * pull * size) + swept
        result = real(1.0)
        if rate * size > fastest:
            result = fastest / (rate * size)
        return result

    @wp.func(inline=True)
    def firmness(share: real, speed: real, curvature: real, dt: real) -> real:
        """Return which part of its stiffness a constraint keeps that asks for a `share` of its velocity.

        Where nothing can undo an error, bodies come near the pose of least error. At a distance x from it, in
        a velocity u, the error shrinks at K x u only, as their points go on curves of curvature K. So a stiff
        constraint that asks for `speed` makes u = speed / (K x): it throws the bodies to the other side, and
        back in the next step. With R = w K dt `speed`, u = K x speed / (K² x² + R / w) is at most x / dt, and
        they come to rest.
        """
        soft = real(INNER) * (real(1.0) - share) * curvature * dt * speed
        return real(NEAR_RIGID) / (real(NEAR_RIGID) + soft)

    @wp.func(inline=True)
    def swept_rates(rate: vec6, arm: vec3) -> vec2:
        """Return the centripetal acceleration of a point of a body, and the square of the body's spin."""
        spin = vec3(rate[0], rate[1], rate[2])
        velocity = vec3(rate[3], rate[4], rate[5]) + wp.cross(spin, arm)
        return vec2(wp.length(spin) * wp.length(velocity), wp.dot(spin, spin))

    @wp.func(inline=True)
    def node_twist(topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], world: int, node: int) -> vec6:
        """Return the spatial velocity of a body, which is that of its carrier if it is welded."""
        index = topology.template_node[topology.world_template[world]] + node
        carrier = topology.node_carrier[index]
        mover = int(node)
        if carrier >= 0 and topology.node_dof_count[index] == 0:
            mover = carrier
        return vec6(dynamics.node_velocity[topology.world_joint[world] + mover])

    @wp.func(inline=True)
    def diagonal_of_mass(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], world: int, dof: int
    ) -> real:
        """Return A_ii of a degree of freedom."""
        entry = topology.template_dof[topology.world_template[world]] + dof
        index = topology.world_row[world] + topology.dof_row[entry] + topology.dof_depth[entry]
        return wp.max(real(dynamics.mass_row[index]), real(DIAGONAL_MIN))

    @wp.func(inline=True)
    def is_prescribed(
        topology: wp.ref[Topology], dynamics: wp.ref[DynamicsData], world: int, node: int
    ) -> int:
        """Return whether the joint of a node is prescribed."""
        index = topology.template_node[topology.world_template[world]] + node
        result = int(0)
        if topology.node_parent[index] < 0:
            result = dynamics.tree_prescribed[topology.world_tree[world] + topology.node_tree[index]]
        return result

    @wp.func(inline=True)
    def hold(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        body_node: int,
    ):
        """Mark a node and its ancestors for the sweeps, and its tree as active."""
        first_node = topology.template_node[topology.world_template[world]]
        node0 = topology.world_joint[world]
        node = int(body_node)
        visit = int(VISITED)
        if node >= 0:
            tree = topology.world_tree[world] + topology.node_tree[first_node + node]
            sap.tree_active[tree] = 1
            if dynamics.tree_prescribed[tree] != 0:
                visit = PRESCRIBED
        while node >= 0:
            up = topology.node_parent[first_node + node]
            sap.node_contact[node0 + node] = wp.where(up < 0, visit, VISITED)
            node = up

    @wp.kernel(enable_backward=False, module=kernel_module("pluriverse.solvers.sap.equality_terms", *names))
    def set_equality_term(
        worlds: wp.array[int],
        stride: int,  # number of threads, see `world_thread_count`
        topology: Topology,
        inputs: EqualityInputs,
        dynamics: DynamicsData,
        sap: SapData,
        dt: real,
        pull: real,
    ):
        thread, _ = wp.tid()
        for slot in range(thread, worlds.shape[0], stride):
            world = worlds[slot]
            if world < 0:
                continue
            template = topology.world_template[world]
            first = topology.template_dof[template]
            first_node = topology.template_node[template]
            first_body = topology.template_body[template]
            node0 = topology.world_joint[world]
            dof0 = topology.world_dof[world]
            body0 = topology.world_body[world]
            tree0 = topology.world_tree[world]
            rate = real(1.0) / (real(2.0) * dt)  # 1 / (dt + tau)
            span_rate = real(1.0) / ((real(1.0) + real(SPAN_TAU)) * dt)
            for index in range(sap.equality_start[world], sap.equality_start[world + 1]):
                kind = inputs.type[index]
                sap.equality_impulse[index] = vec6()
                sap.equality_velocity[index] = vec6()
                if not inputs.enabled[index] or inputs.world_frozen[world] != 0:
                    sap.equality[index].kind = OFF
                elif kind == EqType.JOINT:
                    node1 = topology.body_node[first_body + inputs.joint_child[inputs.joint1[index]] - body0]
                    order1 = inputs.joint1_axis[index]
                    dof1 = topology.node_dof[first_node + node1] + order1
                    coord0 = topology.world_coord[world]
                    error = real(inputs.joint_q[coord0 + topology.node_coord[first_node + node1] + order1])
                    given1 = is_prescribed(topology, dynamics, world, node1)
                    w = real(0.0)
                    if given1 == 0:
                        w = real(1.0) / diagonal_of_mass(topology, dynamics, world, dof1)
                    sap.tree_active[tree0 + topology.node_tree[first_node + node1]] = 1
                    dof2 = int(-1)
                    given2 = int(0)
                    ratio, x = real(0.0), real(0.0)
                    if inputs.joint2[index] >= 0:
                        node2 = topology.body_node[
                            first_body + inputs.joint_child[inputs.joint2[index]] - body0
                        ]
                        order2 = inputs.joint2_axis[index]
                        dof2 = topology.node_dof[first_node + node2] + order2
                        given2 = is_prescribed(topology, dynamics, world, node2)
                        x = real(inputs.joint_q[coord0 + topology.node_coord[first_node + node2] + order2])
                        sap.tree_active[tree0 + topology.node_tree[first_node + node2]] = 1
                        # Horner's scheme for the polynomial and its derivative.
                        polynomial = real(inputs.polycoef[index, 4])
                        for power in range(4):
                            ratio = ratio * x + polynomial
                            polynomial = polynomial * x + real(inputs.polycoef[index, 3 - power])
                        error -= polynomial
                        if given2 == 0:
                            w += ratio * ratio / diagonal_of_mass(topology, dynamics, world, dof2)
                    else:
                        error -= real(inputs.polycoef[index, 0])
                    stiffness = real(1.0) / (real(NEAR_RIGID) * wp.max(w, real(DIAGONAL_MIN)))
                    bias = -rate * error
                    if given2 != 0:
                        # The leader is prescribed: v_1 is to be v_hat + ratio v_2.
                        bias += ratio * real(dynamics.dof_velocity_free[dof0 + dof2])
                        dof2 = -1
                    elif given1 != 0:
                        # The follower does: v_2 is to be (v_1 - v_hat) / ratio.
                        bias = (real(dynamics.dof_velocity_free[dof0 + dof1]) - bias) / ratio
                        error = -error / ratio
                        stiffness = stiffness * ratio * ratio
                        dof1 = dof2
                        dof2 = -1
                        ratio = real(0.0)
                    sap.equality[index].kind = DOFS
                    if w == real(0.0):
                        sap.equality[index].kind = OFF  # neither may change
                    sap.equality[index].dof1 = dof1
                    sap.equality[index].dof2 = dof2
                    sap.equality[index].ratio = ratio
                    sap.equality[index].error = vec6(
                        error, real(0.0), real(0.0), real(0.0), real(0.0), real(0.0)
                    )
                    sap.equality[index].bias = vec6(
                        bias, real(0.0), real(0.0), real(0.0), real(0.0), real(0.0)
                    )
                    sap.equality[index].stiffness_linear = stiffness
                    sap.equality[index].stiffness_angular = mat33()
                else:
                    node1, node2 = int(-1), int(-1)
                    if inputs.body1[index] >= 0:
                        node1 = topology.body_node[first_body + inputs.body1[index] - body0]
                    if inputs.body2[index] >= 0:
                        node2 = topology.body_node[first_body + inputs.body2[index] - body0]
                    hold(topology, dynamics, sap, world, node1)
                    hold(topology, dynamics, sap, world, node2)

                    # The points that are to coincide, each in its own body.
                    relation = inputs.relpose[index]
                    given = wp.transform_get_rotation(relation)
                    # Single precision is not quite of unit length.
                    rest_rotation = wp.quat_to_matrix(
                        wp.normalize(quat(real(given[0]), real(given[1]), real(given[2]), real(given[3])))
                    )
                    shift = vec3(wp.transform_get_translation(relation))
                    arm1 = vec3(inputs.anchor[index])
                    arm2 = wp.transpose(rest_rotation) * (arm1 - shift)
                    joint = inputs.joint1[index]
                    if kind == EqType.DISTANCE and joint >= 0:
                        arm1 = vec3(wp.transform_get_translation(inputs.joint_frame_parent[joint]))
                        arm2 = vec3(wp.transform_get_translation(inputs.joint_frame_child[joint]))
                    if kind == EqType.WELD:
                        arm2 = arm1
                        arm1 = shift + rest_rotation * arm2
                    rotation1 = wp.identity(n=3, dtype=real)
                    rotation2 = wp.identity(n=3, dtype=real)
                    origin1, origin2 = vec3(), vec3()
                    if node1 >= 0:
                        rotation1 = mat33(dynamics.node_rotation[node0 + node1])
                        origin1 = vec3(dynamics.tree_ref[tree0 + topology.node_tree[first_node + node1]])
                        arm1 = vec3(dynamics.node_offset[node0 + node1]) + rotation1 * arm1
                    if node2 >= 0:
                        rotation2 = mat33(dynamics.node_rotation[node0 + node2])
                        origin2 = vec3(dynamics.tree_ref[tree0 + topology.node_tree[first_node + node2]])
                        arm2 = vec3(dynamics.node_offset[node0 + node2]) + rotation2 * arm2
                    apart = (origin2 - origin1) + (arm2 - arm1)

                    # Directions in which the bodies must not turn against each other, as a projection.
                    projector = mat33()
                    misfit = vec3()
                    scale = real(0.0)
                    if kind == EqType.WELD:
                        projector = wp.identity(n=3, dtype=real)
                        misfit = rotation_vector(rotation2 * wp.transpose(rotation1 * rest_rotation))
                        scale = real(inputs.torquescale[index])
                    if kind == EqType.HINGE:
                        axis = wp.normalize(vec3(inputs.axis[index]))
                        axis1 = rotation1 * axis
                        sap.equality[index].axis = axis1
                        axis2 = rotation2 * (wp.transpose(rest_rotation) * axis)
                        projector = wp.identity(n=3, dtype=real) - wp.outer(axis1, axis1)
                        misfit = wp.cross(axis1, axis2)
                        scale = real(inputs.torquescale[index])

                    # w of the point and of the rotation, by the dofs above the two bodies.
                    dof1 = last_free_dof(topology, dynamics, world, node1)
                    dof2 = last_free_dof(topology, dynamics, world, node2)
                    W, W_angular = mat33(), mat33()
                    compliance, compliance_angular = real(0.0), real(0.0)
                    moved, turned = real(0.0), real(0.0)
                    a, b = int(dof1), int(dof2)
                    while a >= 0 or b >= 0:
                        dof = wp.max(a, b)
                        motion = vec6(dynamics.dof_motion[dof0 + dof])
                        omega = vec3(motion[0], motion[1], motion[2])
                        velocity = vec3(motion[3], motion[4], motion[5])
                        inverse = real(1.0) / diagonal_of_mass(topology, dynamics, world, dof)
                        point, spin = vec3(), vec3()
                        up = topology.dof_parent[first + dof]
                        above1 = a == dof
                        if b == dof:
                            rate2 = velocity + wp.cross(omega, arm2)
                            point += rate2
                            spin += omega
                            compliance += inverse * wp.dot(rate2, rate2)
                            b = up
                        if above1:
                            rate1 = velocity + wp.cross(omega, arm1)
                            point -= rate1
                            spin -= omega
                            compliance += inverse * wp.dot(rate1, rate1)
                            a = up
                        compliance_angular += inverse * wp.dot(omega, omega)
                        W += inverse * wp.outer(point, point)
                        moved += inverse * wp.dot(point, point)
                        turned += inverse * wp.dot(spin, spin)
                        spin = projector * spin
                        W_angular += inverse * wp.outer(spin, spin)
                    size = wp.max(projector[0, 0] + projector[1, 1] + projector[2, 2], real(1.0))
                    w = wp.sqrt(wp.ddot(W, W)) / real(3.0)
                    distance = wp.length(apart)
                    line = vec3(real(0.0), real(0.0), real(1.0))  # any, where the points coincide
                    if distance > real(0.0):
                        line = apart / distance
                    if kind == EqType.DISTANCE:
                        w = wp.dot(line, W * line)
                    w_angular = wp.sqrt(wp.ddot(W_angular, W_angular)) / size
                    stiffness_linear, stiffness_angular = real(0.0), real(0.0)
                    if w > real(IMMOBILE) * compliance:
                        stiffness_linear = real(1.0) / (real(NEAR_RIGID) * w)
                    if w_angular > real(IMMOBILE) * compliance_angular:
                        stiffness_angular = scale / (real(NEAR_RIGID) * w_angular)

                    rigid = stiffness_linear
                    sap.equality[index].kind = BODIES
                    sap.equality[index].node1 = node1
                    sap.equality[index].node2 = node2
                    sap.equality[index].dof1 = dof1
                    sap.equality[index].dof2 = dof2
                    sap.equality[index].arm1 = arm1
                    sap.equality[index].arm2 = arm2
                    sap.equality[index].error = vec6(
                        misfit[0], misfit[1], misfit[2], apart[0], apart[1], apart[2]
                    )
                    # Fast bodies leave a constraint by this within a step, and may be as fast in returning.
                    swept = vec2()
                    if node1 >= 0:
                        swept += swept_rates(node_twist(topology, dynamics, world, node1), arm1)
                    if node2 >= 0:
                        swept += swept_rates(node_twist(topology, dynamics, world, node2), arm2)
                    share = asked_share(rate, apart, pull, dt * swept[0])
                    share_angular = real(1.0)
                    if w > real(0.0):
                        # The same at the radius of gyration that the constraint knows of.
                        twist = pull * wp.sqrt(w_angular / w)
                        share_angular = asked_share(rate, misfit, twist, dt * swept[1])
                    linear_bias = -(share * rate) * apart
                    angular_bias = -(share_angular * rate) * misfit
                    if share < real(1.0) and moved > real(0.0):
                        curvature = wp.sqrt(turned / moved)
                        stiffness_linear *= firmness(share, wp.length(linear_bias), curvature, dt)
                    if share_angular < real(1.0):
                        stiffness_angular *= firmness(share_angular, wp.length(angular_bias), real(1.0), dt)
                    sap.equality[index].bias = vec6(
                        angular_bias[0],
                        angular_bias[1],
                        angular_bias[2],
                        linear_bias[0],
                        linear_bias[1],
                        linear_bias[2],
                    )
                    if kind == EqType.DISTANCE:
                        stiffness_linear = rigid
                        least = float(inputs.polycoef[index, 0])
                        most = float(inputs.polycoef[index, 1])
                        if joint >= 0:
                            least = float(inputs.joint_limit_lower[inputs.joint_qd_start[joint]])
                            most = float(inputs.joint_limit_upper[inputs.joint_qd_start[joint]])
                        lower, upper = real(NO_BOUND), real(NO_BOUND)
                        if least >= 0.0:
                            lower = span_rate * (real(least) - distance)
                        if most >= 0.0 and most < wp.inf:
                            upper = span_rate * (distance - real(most))
                        sap.equality[index].kind = DISTANCE
                        sap.equality[index].axis = line
                        sap.equality[index].two_sided = int(least >= 0.0 and least == most)
                        sap.equality[index].error = vec6(
                            distance, real(0.0), real(0.0), real(0.0), real(0.0), real(0.0)
                        )
                        sap.equality[index].bias = vec6(
                            lower, upper, real(0.0), real(0.0), real(0.0), real(0.0)
                        )
                    sap.equality[index].stiffness_linear = stiffness_linear
                    sap.equality[index].stiffness_angular = stiffness_angular * projector
                    sap.equality[index].turn_count = int(0)
                    if stiffness_angular > real(0.0):
                        sap.equality[index].turn_count = wp.where(kind == EqType.HINGE, 2, 3)

    return SimpleNamespace(set_equality_term=set_equality_term)


def set_equality_terms(
    model: Model,
    worlds: wp.array,
    state: State,
    dynamics: Workspace,
    sap: SapWorkspace,
    world_frozen: wp.array,
    *,
    dt: float,
    recovery_limited: bool,
) -> None:
    """Write the terms of every equality constraint of the worlds for a step of `dt` [s].

    With `recovery_limited` large errors are undone no faster than by a fall. To be called after
    `set_contact_terms`, which resets the bodies and trees that take part.
    """
    inputs = EqualityInputs()
    for name in ("type", "body1", "body2", "anchor", "axis", "torquescale", "relpose"):
        setattr(inputs, name, getattr(model.structure, f"equality_constraint_{name}"))
    for name in ("joint1", "joint2", "joint1_axis", "joint2_axis", "polycoef", "enabled"):
        setattr(inputs, name, getattr(model.structure, f"equality_constraint_{name}"))
    inputs.joint_frame_parent = model.joint_X_p
    inputs.joint_frame_child = model.joint_X_c
    for name in ("child", "qd_start", "limit_lower", "limit_upper"):
        setattr(inputs, f"joint_{name}", getattr(model.structure, f"joint_{name}"))
    inputs.joint_q = state.joint_q
    inputs.world_frozen = world_frozen
    pull = PULL if recovery_limited else math.inf
    threads = world_thread_count(worlds)
    launch_kernel(
        _kernels(sap.real, sap.linear, dynamics.real).set_equality_term,
        dim=threads,
        inputs=[worlds, threads, model.topology, inputs, dynamics.data, sap.data, dt, pull],
        device=model.device,
    )
