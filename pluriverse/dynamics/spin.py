"""Spin stage: rotate single bodies such that their angular momentum is conserved.

Reads   workspace, after the mass matrix stage: dof_velocity, node_composite, dof_motion
Writes  workspace: tree_spin; dof_force, whose gyroscopic part it replaces

A tree *spins* if it is one rigid body (with all that is fixed to it) that is free, or on a ball joint of the
world. Its inertia rotates with it, I(t) = R(t) I_0 R(t)^T in fixed axes, and without torque L = I omega is
constant. Euler's equations taken explicitly, v* = v_0 - h I_0^-1 (omega_0 x I_0 omega_0), change L in every
step. Here a step is a kick and a drift, as semi-implicit Euler is for a particle:

    L_1 = L_0 + h torque,   R_1 = exp(theta) R_0 with theta = h I_half^-1 L_1,   omega_1 = I_1^-1 L_1,

with the inertia half way, I_half = exp(theta / 2) I_0 exp(-theta / 2). The drift is the implicit midpoint
rule on the rotation group ([Hairer2006] section VII.5). It conserves L exactly and, being symmetric, the
energy up to an oscillation of second order in h. A large rotation is made in several parts, so that this
holds at any speed.

The solver needs one velocity for the step, at the inertia I_0. It starts from omega_g, the value of omega
after the step without torque: the gyroscopic impulse is I_0 (omega_g - omega_0) = `-tree_spin`. The velocity
omega_s that it finds gives the momentum, L_1 = I_0 omega_s + tree_spin.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.model import Model, Topology
from pluriverse.types import JointType

# Angle of one part of a rotation [rad]. Up to this angle each pass of the midpoint rule doubles the number
# of digits, also for slender bodies.
TURN_MAX = wp.constant(0.25)
# Largest number of parts of a rotation: 16 rad per step is more than a time step resolves of any other
# motion.
PART_COUNT_MAX = wp.constant(64)
# Largest number of passes for a part, and the change [relative to the angle] of the last. What is left after
# it is of the order of its square.
PASS_COUNT_MAX = wp.constant(8)
CHANGE_MAX = wp.constant(1e-5)


@made_once
def spin_functions(real: Any) -> SimpleNamespace:
    """Return `does_spin`, `spin_inertia`, `drift` and `rotated_velocity`, for scalars of type `real`."""
    vec3 = vec3_type(real)
    mat33 = mat33_type(real)
    quat = quat_type(real)
    DynamicsData = workspace_struct(real)
    quat_from_rotation_vector = rotation_functions(real).quat_from_rotation_vector
    quat_normalize = rotation_functions(real).quat_normalize
    inertia_times_motion = spatial_functions(real).inertia_times_motion

    @wp.func
    def does_spin(topology: Topology, data: DynamicsData, world: int, tree: int) -> bool:
        """Return whether a tree, counted from the first of its template, is one body that spins."""
        template = topology.world_template[world]
        index = topology.template_tree[template] + tree
        root = topology.template_node[template] + topology.tree_node[index]
        joint_type = topology.node_type[root]
        count = topology.tree_dof_end[index] - topology.tree_dof[index]
        turns = joint_type == JointType.FREE
        if joint_type == JointType.BALL:
            turns = True
        one_body = turns and count == topology.node_dof_count[root]
        return one_body and data.tree_prescribed[topology.world_tree[world] + tree] == 0

    @wp.func
    def spin_inertia(topology: Topology, data: DynamicsData, world: int, tree: int) -> mat33:
        """Return the inertia [kg m^2] at the start of the step, in the axes of the rotational velocity.

        That of a free body is about its centre of mass, in world axes; that of a ball joint about the joint,
        in the axes of the joint on the world.
        """
        template = topology.world_template[world]
        index = topology.template_tree[template] + tree
        root = topology.tree_node[index]
        composite = data.node_composite[topology.world_joint[world] + root]
        result = mat33()
        if topology.node_type[topology.template_node[template] + root] == JointType.FREE:
            scale = real(1.0) / wp.max(composite[0], real(1.0e-30))
            hx, hy, hz = composite[1], composite[2], composite[3]
            xx = composite[4] - scale * (hy * hy + hz * hz)
            yy = composite[7] - scale * (hx * hx + hz * hz)
            zz = composite[9] - scale * (hx * hx + hy * hy)
            xy = composite[5] + scale * hx * hy
            xz = composite[6] + scale * hx * hz
            yz = composite[8] + scale * hy * hz
            result = mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)
        else:
            dof = topology.world_dof[world] + topology.tree_dof[index]
            for i in range(3):
                momentum = inertia_times_motion(composite, data.dof_motion[dof + i])
                for j in range(3):
                    result[i, j] = wp.dot(momentum, data.dof_motion[dof + j])
        return result

    @wp.func
    def drift(inverse: mat33, momentum: vec3, dt: real) -> quat:
        """Return how a body turns in `dt` at constant angular momentum, for its inertia at the start.

        Args:
            inverse: Inverse of the inertia [1/(kg m^2)].
            momentum: Angular momentum [N m s].
            dt: Time [s].
        """
        result = quat()
        turned = quat(real(0.0), real(0.0), real(0.0), real(1.0))
        rate = wp.length(inverse * momentum)
        part_count = int(1)
        if rate * dt > real(TURN_MAX):
            part_count = int(wp.ceil(wp.min(rate * dt / real(TURN_MAX), real(PART_COUNT_MAX))))
        part = dt / real(part_count)
        for _part in range(part_count):
            # In the axes of the body at the start of the part. Its velocity changes at the rate
            # -I^-1 (omega x L), so theta is known to second order.
            local = momentum
            if part_count > 1:
                local = wp.quat_rotate_inv(turned, momentum)
            omega = inverse * local
            theta = part * (omega - real(0.5) * part * (inverse * wp.cross(omega, local)))
            for _pass in range(PASS_COUNT_MAX):
                # In axes half way, which have theta in common with those at the start. There Newton's method
                # asks for (1 - A) change = residual, with A x = h / 2 (y x omega - I^-1 (y x L)) for the
                # rotation y / 2 that x adds to theta, y = x + theta x x / 4.
                half = quat_from_rotation_vector(real(0.5) * theta)
                halfway = wp.quat_rotate_inv(half, local)
                omega = inverse * halfway
                residual = part * omega - theta
                slope = real(0.5) * part * (inverse * wp.skew(halfway) - wp.skew(omega))
                slope += real(0.25) * slope * wp.skew(theta)
                change = wp.inverse(wp.identity(n=3, dtype=real) - slope) * residual
                theta += wp.quat_rotate(half, change)
                if wp.dot(change, change) <= real(CHANGE_MAX) * real(CHANGE_MAX) * wp.dot(theta, theta):
                    break
            result = quat_from_rotation_vector(theta)
            if part_count > 1:
                turned = quat_normalize(turned * result)
                result = turned
        return result

    @wp.func
    def rotated_velocity(inverse: mat33, momentum: vec3, rotation: quat) -> vec3:
        """Return the angular velocity of a rotated body from its angular momentum in fixed axes.

        `inverse` is that of the inertia before the rotation.
        """
        return wp.quat_rotate(rotation, inverse * wp.quat_rotate_inv(rotation, momentum))

    return SimpleNamespace(
        does_spin=does_spin, spin_inertia=spin_inertia, drift=drift, rotated_velocity=rotated_velocity
    )


@made_once
def gyroscopic_functions(real: Any) -> SimpleNamespace:
    """Return `replace_world_forces`, the stage for one world, for scalars of type `real`."""
    vec3 = vec3_type(real)
    data_struct = workspace_struct(real)
    spin = spin_functions(real)
    does_spin, spin_inertia = spin.does_spin, spin.spin_inertia
    drift, rotated_velocity = spin.drift, spin.rotated_velocity

    @wp.func(inline=stage_hint())
    def replace_world_forces(world: int, topology: wp.ref[Topology], dt: real, data: wp.ref[data_struct]):
        """Compute what the spin stage writes of one world."""
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        tree_base = topology.world_tree[world]
        for tree in range(topology.template_tree[template + 1] - first_tree):
            if not does_spin(topology, data, world, tree):
                continue
            dof = topology.world_dof[world] + topology.tree_dof[first_tree + tree]
            omega = vec3(data.dof_velocity[dof], data.dof_velocity[dof + 1], data.dof_velocity[dof + 2])
            inertia = spin_inertia(topology, data, world, tree)
            momentum = inertia * omega
            # The bias stage has taken off omega x I omega.
            force = wp.cross(omega, momentum)
            inverse = wp.inverse(inertia)
            rotation = drift(inverse, momentum, dt)
            impulse = momentum - inertia * rotated_velocity(inverse, momentum, rotation)
            data.tree_spin[tree_base + tree] = impulse
            for k in range(3):
                data.dof_force[dof + k] = data.dof_force[dof + k] + force[k] - impulse[k] / dt

    return SimpleNamespace(replace_world_forces=replace_world_forces)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    data_struct = workspace_struct(real)
    replace_world_forces = gyroscopic_functions(real).replace_world_forces

    @wp.kernel(enable_backward=False, module=f"pluriverse.dynamics.spin.{precision_name(real)}")
    def replace_gyroscopic_force(
        worlds: wp.array[int],  # [slot]
        topology: Topology,
        dt: real,  # s
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world >= 0:
            replace_world_forces(world, topology, dt, data)

    return SimpleNamespace(replace_gyroscopic_force=replace_gyroscopic_force)


def replace_gyroscopic_forces(model: Model, worlds: wp.array, workspace: Workspace, dt: float) -> None:
    """Let bodies that spin keep their angular momentum in a step of `dt` [s] (module docstring)."""
    launch_kernel(
        _kernels(workspace.real).replace_gyroscopic_force,
        dim=worlds.size,
        inputs=[worlds, model.topology, workspace.real(dt), workspace.data],
        device=model.device,
    )
