"""Prescribed roots: kinematic bodies move as state and targets prescribe, whatever forces act on them.

Reads   body_flags, joint_target_mode; joint_q, joint_qd of the old state, targets of the control; the
        workspace after the mass matrix stage
Writes  workspace: tree_prescribed, tree_drift; dof_force, mass_row and dof_motion, from which the degrees of
        freedom of kinematic roots are taken out; joint_q and joint_qd of kinematic roots in the new state

Let K be the degrees of freedom of a kinematic root and D those of the rest of its tree. The acceleration of K
is given, so the equations of D decouple:

    A_DD dv_D/dt = f_D - A_DK dv_K/dt .

The layout of the rows stays. A_DK becomes zero, A_KK an arbitrary positive number, and the motion subspace of
K zero, so that no force acts on K. K adds the same spatial velocity, `tree_drift`, to all bodies of the tree.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import Workspace, workspace_struct
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import precision_name, vec6_type
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Control, Model, State, Topology
from pluriverse.types import BodyFlags, JointTargetMode, JointType

# A_KK of a prescribed degree of freedom [kg or kg·m²]. Any positive number keeps its velocity; a small one
# keeps its momentum negligible in the convergence test.
PRESCRIBED_MASS = wp.constant(1e-12)


@made_once
def _kernels(real: Any) -> SimpleNamespace:
    vec6 = vec6_type(real)
    data_struct = workspace_struct(real)
    spatial = spatial_functions(real).spatial
    angular_part = spatial_functions(real).angular_part
    linear_part = spatial_functions(real).linear_part
    read_vec3 = conversion_functions(real).read_vec3
    module = f"pluriverse.dynamics.prescribed.{precision_name(real)}"

    @wp.func
    def is_prescribed(topology: Topology, world: int, node: int, body_flags: wp.array[int]) -> bool:
        """Return whether the root at a template-local node is prescribed."""
        index = topology.template_node[topology.world_template[world]] + node
        body = topology.world_body[world] + topology.node_body[index]
        return topology.node_dof_count[index] > 0 and (body_flags[body] & BodyFlags.KINEMATIC) != 0

    @wp.func
    def next_rate(
        mode: int,
        coord: int,  # -1 for a degree of freedom without a coordinate of its own
        dof: int,  # public
        joint_q: wp.array[float],
        joint_qd: wp.array[float],
        target_pos: wp.array[float],
        target_vel: wp.array[float],
        dt: real,
    ) -> real:
        """Return the velocity at the end of the step."""
        rate = real(joint_qd[dof])
        if mode == JointTargetMode.VELOCITY or mode == JointTargetMode.POSITION_VELOCITY:
            rate = real(target_vel[dof])
        elif mode == JointTargetMode.POSITION and coord >= 0:
            rate = (real(target_pos[dof]) - real(joint_q[coord])) / dt
        return rate

    @wp.kernel(enable_backward=False, module=module)
    def prescribe_root(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        body_flags: wp.array[int],  # [body]
        target_mode: wp.array[int],  # [dof] JointTargetMode
        # state and control
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        target_pos: wp.array[float],  # [dof] m or rad
        target_vel: wp.array[float],  # [dof] m/s or rad/s
        dt: real,  # s
        # workspace
        data: data_struct,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        first_dof = topology.template_dof[template]
        first_tree = topology.template_tree[template]
        dof_base = topology.world_dof[world]
        coord_base = topology.world_coord[world]
        tree_base = topology.world_tree[world]
        row_base = topology.world_row[world]
        for tree in range(topology.template_tree[template + 1] - first_tree):
            root = topology.tree_node[first_tree + tree]
            index = first_node + root
            data.tree_drift[tree_base + tree] = vec6()
            data.tree_prescribed[tree_base + tree] = 0
            if not is_prescribed(topology, world, root, body_flags):
                continue
            data.tree_prescribed[tree_base + tree] = 1
            root_dof = topology.node_dof[index]
            count = topology.node_dof_count[index]
            public = dof_base + topology.node_qd[index]

            # Velocity at the end of the step and acceleration on the way there, of up to six dofs.
            rate = vec6()
            acceleration = vec6()
            for k in range(count):
                coord = topology.dof_coord[first_dof + root_dof + k]
                if coord >= 0:
                    coord += coord_base
                rate[k] = next_rate(
                    target_mode[public + k], coord, public + k, joint_q, joint_qd, target_pos, target_vel, dt
                )
                acceleration[k] = (rate[k] - real(joint_qd[public + k])) / dt
            if topology.node_type[index] == JointType.FREE:
                # Public (v_com, omega) to internal [omega, v_origin], at the pose at the start of the step.
                com = data.node_com[topology.world_joint[world] + root]
                spin = linear_part(rate)  # the second half: the public order is the other way round
                alpha = linear_part(acceleration)
                spin_before = read_vec3(joint_qd, public + 3)
                origin = angular_part(acceleration) - wp.cross(alpha, com)
                origin -= wp.cross(spin_before, wp.cross(spin_before, com))
                rate = spatial(spin, angular_part(rate) - wp.cross(spin, com))
                acceleration = spatial(alpha, origin)

            drift = vec6()
            for k in range(count):
                dof = dof_base + root_dof + k
                drift += rate[k] * data.dof_motion[dof]
                data.dof_motion[dof] = vec6()
                data.dof_force[dof] = real(PRESCRIBED_MASS) * acceleration[k]
                row = row_base + topology.dof_row[first_dof + root_dof + k]
                for j in range(k):
                    data.mass_row[row + j] = real(0.0)
                data.mass_row[row + k] = real(PRESCRIBED_MASS)
            data.tree_drift[tree_base + tree] = drift
            for local in range(root_dof + count, topology.tree_dof_end[first_tree + tree]):
                row = row_base + topology.dof_row[first_dof + local]
                force = data.dof_force[dof_base + local]
                for j in range(count):
                    force -= data.mass_row[row + j] * acceleration[j]
                    data.mass_row[row + j] = real(0.0)
                data.dof_force[dof_base + local] = force

    @wp.kernel(enable_backward=False, module=module)
    def carry_root(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        body_flags: wp.array[int],  # [body]
        target_mode: wp.array[int],  # [dof] JointTargetMode
        # state in and control
        joint_q: wp.array[float],  # [coord]
        joint_qd: wp.array[float],  # [dof]
        target_pos: wp.array[float],  # [dof] m or rad
        target_vel: wp.array[float],  # [dof] m/s or rad/s
        dt: real,  # s
        # state out
        joint_q_out: wp.array[float],  # [coord]
        joint_qd_out: wp.array[float],  # [dof]
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_tree = topology.template_tree[template]
        dof_base = topology.world_dof[world]
        coord_base = topology.world_coord[world]
        for tree in range(topology.template_tree[template + 1] - first_tree):
            root = topology.tree_node[first_tree + tree]
            if not is_prescribed(topology, world, root, body_flags):
                continue
            index = topology.template_node[template] + root
            public = dof_base + topology.node_qd[index]
            first_coord = coord_base + topology.node_coord[index]
            count = topology.node_dof_count[index]
            joint_type = topology.node_type[index]
            scalar = joint_type != JointType.FREE and joint_type != JointType.BALL
            moves = int(0)
            for k in range(count):
                mode = target_mode[public + k]
                coord = int(-1)
                if scalar:
                    coord = first_coord + k
                rate = next_rate(mode, coord, public + k, joint_q, joint_qd, target_pos, target_vel, dt)
                joint_qd_out[public + k] = float(rate)
                if mode == JointTargetMode.VELOCITY or mode == JointTargetMode.POSITION_VELOCITY:
                    moves = 1
                if scalar:
                    if mode == JointTargetMode.POSITION or mode == JointTargetMode.POSITION_VELOCITY:
                        joint_q_out[coord] = target_pos[public + k]
                    elif mode != JointTargetMode.VELOCITY:
                        joint_q_out[coord] = joint_q[coord]
            if not scalar and moves == 0:
                coord_count = int(4)
                if joint_type == JointType.FREE:
                    coord_count = int(7)
                for coord in range(first_coord, first_coord + coord_count):
                    joint_q_out[coord] = joint_q[coord]

    return SimpleNamespace(prescribe_root=prescribe_root, carry_root=carry_root)


def prescribe_roots(
    model: Model, worlds: wp.array, state: State, control: Control | Model, workspace: Workspace, dt: float
) -> None:
    """Take kinematic roots out of the equations of motion, after `assemble_mass_matrix`."""
    launch_kernel(
        _kernels(workspace.real).prescribe_root,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.structure.body_flags,
            model.joint_target_mode,
            state.joint_q,
            state.joint_qd,
            control.joint_target_pos,
            control.joint_target_vel,
            workspace.real(dt),
            workspace.data,
        ],
        device=model.device,
    )


def carry_roots(
    model: Model,
    worlds: wp.array,
    state_in: State,
    state_out: State,
    control: Control | Model,
    workspace: Workspace,
    dt: float,
) -> None:
    """Write coordinates and velocities of kinematic roots, over those that `integrate` gives all joints."""
    launch_kernel(
        _kernels(workspace.real).carry_root,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.structure.body_flags,
            model.joint_target_mode,
            state_in.joint_q,
            state_in.joint_qd,
            control.joint_target_pos,
            control.joint_target_vel,
            workspace.real(dt),
        ],
        outputs=[state_out.joint_q, state_out.joint_qd],
        device=model.device,
    )
