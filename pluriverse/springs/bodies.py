"""Springs and dampers that pull bodies to poses.

Reads   Jacobian, mass matrix, bias forces and drives of articulations, joint and body states, body_com
Writes  body_f

With e the way to the target, v* the velocity at the end of a step of length h without the spring and A =
J M^-1 J^T the inverse of the inertia that the spring feels, all in the axes of the target, its force f is

    f = k e - (d + h k) (v* + h A f),

that of the spring at the end of the step. So it is stable at any stiffness, and gravity and drives make it
give way no more than a spring does. M holds the drives as M + h (kd + h ke), as an implicit step sees them.
"""

import warp as wp

from pluriverse.dynamics import eval_jacobian
from pluriverse.launch import launch_kernel
from pluriverse.math.rotation_vector import rotation_vector
from pluriverse.model import State
from pluriverse.simulation import Simulation
from pluriverse.solvers.base import SolverBase
from pluriverse.solvers.springs import BodySpringTable
from pluriverse.springs.response import (
    MotionArrays,
    Springs,
    factor_response,
    jacobian_array,
    solve_rows,
)

_MODULE = "pluriverse.springs.bodies"


@wp.kernel(enable_backward=False, module=_MODULE)
def pull_body(
    table: BodySpringTable,
    jacobian: wp.array3d[wp.float64],  # [articulation, 6 link, dof]
    mass_matrix: wp.array3d[wp.float64],  # [articulation, dof, dof]
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    motion: MotionArrays,
    dt: float,
    factor: wp.array3d[wp.float64],  # [spring, dof, dof] scratch
    rows: wp.array3d[wp.float64],  # [spring, 7, dof] scratch
    compliance: wp.array3d[wp.float64],  # [spring, 6, 7] scratch
    body_f: wp.array[wp.spatial_vector],  # [body] N, N m, world axes
):
    """Add the force of one spring to its body."""
    index, _ = wp.tid()
    axes = table.axes[index]
    if axes == 0:
        return
    body, articulation = table.body[index], table.articulation[index]
    count = table.dof_count[index]
    pose = body_q[body]
    frame = pose * table.offset[index]
    target = table.target[index]
    target_rotation = wp.transform_get_rotation(target)
    com = wp.transform_point(pose, body_com[body])
    arm = wp.transform_get_translation(frame) - com
    velocity = body_qd[body]
    omega = wp.spatial_bottom(velocity)

    h = wp.float64(dt)
    factor_response(
        mass_matrix, motion, articulation, table.first_dof[index], count, h, index, 6, factor, rows
    )

    # Rows of the Jacobian along the axes of the target, each solved with the factor.
    first = 6 * table.link[index]
    for axis in range(6):
        direction = wp.vec3()
        direction[axis % 3] = 1.0
        direction = wp.quat_rotate(target_rotation, direction)
        lever = wp.cross(arm, direction)
        for i in range(count):
            value = wp.float64(0.0)
            for k in range(3):
                angular = jacobian[articulation, first + 3 + k, i]
                if axis < 3:
                    value += wp.float64(direction[k]) * jacobian[articulation, first + k, i]
                    value += wp.float64(lever[k]) * angular
                else:
                    value += wp.float64(direction[k]) * angular
            for k in range(i):
                value -= factor[index, i, k] * rows[index, axis, k]
            rows[index, axis, i] = value / factor[index, i, i]

    point_velocity = wp.quat_rotate_inv(target_rotation, wp.spatial_top(velocity) + wp.cross(omega, arm))
    angular_velocity = wp.quat_rotate_inv(target_rotation, omega)
    way = wp.quat_rotate_inv(
        target_rotation, wp.transform_get_translation(target) - wp.transform_get_translation(frame)
    )
    rotation = target_rotation * wp.quat_inverse(wp.transform_get_rotation(frame))
    angle = wp.quat_rotate_inv(target_rotation, rotation_vector(rotation))
    k_spring = wp.float64(table.stiffness[index])
    gain = wp.float64(table.damping[index]) + h * k_spring
    for i in range(6):
        selected_i = (axes >> i) & 1
        for j in range(6):
            value = wp.float64(0.0)
            if selected_i == 1 and ((axes >> j) & 1) == 1:
                for k in range(count):
                    value += rows[index, i, k] * rows[index, j, k]
                value = value * gain * h
            if i == j:
                value += wp.float64(1.0)
            compliance[index, i, j] = value
        pull = wp.float64(0.0)
        if selected_i == 1:
            speed = wp.float64(0.0)
            for k in range(count):
                speed += rows[index, i, k] * rows[index, 6, k]
            if i < 3:
                pull = k_spring * wp.float64(way[i]) - gain * (speed + wp.float64(point_velocity[i]))
            else:
                pull = k_spring * wp.float64(angle[i - 3]) - gain * (
                    speed + wp.float64(angular_velocity[i - 3])
                )
        compliance[index, i, 6] = pull

    solve_rows(compliance, index, 6)
    force = wp.vec3()
    torque = wp.vec3()
    for k in range(3):
        force[k] = wp.float32(compliance[index, k, 6])
        torque[k] = wp.float32(compliance[index, 3 + k, 6])
    force = wp.quat_rotate(target_rotation, force)
    torque = wp.quat_rotate(target_rotation, torque) + wp.cross(arm, force)
    wp.atomic_add(body_f, body, wp.spatial_vector(force, torque))


class BodySprings(Springs):
    """Springs that pull bodies, added to every solver step.

    Args:
        simulation: The simulation.
    """

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)

    def set_springs(self, table: BodySpringTable, worlds: wp.array[int], dof_count_max: int) -> None:
        """Take these springs instead.

        Args:
            table: The springs. Numbers in it may be written to at any time.
            worlds: Worlds of their bodies.
            dof_count_max: Most degrees of freedom of an articulation that has one.
        """
        self.table = table
        self._worlds = worlds
        self._dof_count_max = dof_count_max
        self.attach(self.response.simulation)

    def give_to(self, solver: SolverBase) -> bool:
        """Give the springs to a solver; return whether it takes them as terms."""
        return solver.set_springs(bodies=self.table)

    def allocate(self) -> None:
        """Make the scratch of the stage."""
        model = self.response.simulation.model
        count, size, device = self.table.body.size, self._dof_count_max, model.device
        self._jacobian = jacobian_array(model)
        self._factor = wp.zeros((count, size, size), dtype=wp.float64, device=device)
        self._rows = wp.zeros((count, 7, size), dtype=wp.float64, device=device)
        self._compliance = wp.zeros((count, 6, 7), dtype=wp.float64, device=device)

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Add the forces of all springs, unless they are terms of the solver."""
        if self.is_term:
            return
        simulation = self.response.simulation
        model = simulation.model
        eval_jacobian(model, state, self._jacobian, worlds=self._worlds)
        self.response.evaluate(self._worlds)
        launch_kernel(
            pull_body,
            dim=self.table.body.size,
            inputs=[
                self.table,
                self._jacobian,
                self.response.mass_matrix,
                state.body_q,
                state.body_qd,
                model.body_com,
                self.response.motion(),
                simulation.dt,
                self._factor,
                self._rows,
                self._compliance,
            ],
            outputs=[state.body_f],
            device=model.device,
        )
