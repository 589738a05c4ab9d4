"""Attractor forces: springs and dampers that pull bodies to poses.

Reads   Jacobian, mass matrix, bias forces and drives of the actor, joint and body states, body_com
Writes  body_f

With e the way to the target, v* the velocity at the end of a step of length h without the attractor and A =
J M^-1 J^T the inverse of the inertia that the attractor feels, all in the axes of the target, its force f is

    f = k e - (d + h k) (v* + h A f),

that of the spring at the end of the step. So it is stable at any stiffness, and gravity and drives make it
give way no more than a spring does. M holds the drives as M + h (kd + h ke), as an implicit step sees them.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics import eval_jacobian
from pluriverse.gymapi.scene import Attractor
from pluriverse.gymapi.state_tensors import rotation_vector
from pluriverse.gymapi.step_response import (
    PIVOT_MIN,
    MotionArrays,
    StepResponse,
    free_impulse,
    jacobian_array,
)
from pluriverse.gymapi.tables import integers
from pluriverse.launch import launch_kernel

_MODULE = "pluriverse.gymapi.attractor_forces"


@wp.struct
class AttractorTable:
    """Of each attractor."""

    body: wp.array[int]
    """Body of the model."""
    articulation: wp.array[int]
    """Its articulation."""
    link: wp.array[int]
    """Place of the joint of the body in the articulation."""
    dof_count: wp.array[int]
    """Degrees of freedom of the articulation."""
    axes: wp.array[int]
    """`AttractorAxes`."""
    stiffness: wp.array[float]
    """N/m and N·m/rad."""
    damping: wp.array[float]
    """N·s/m and N·m·s/rad."""
    first_dof: wp.array[int]
    """First degree of freedom of the articulation in the model."""
    offset: wp.array[wp.transform]
    """Pose of the attractor in the body [m, xyzw]."""
    target: wp.array[wp.transform]
    """Pose that it is pulled to, in the world [m, xyzw]."""


@wp.kernel(enable_backward=False, module=_MODULE)
def pull_body(
    table: AttractorTable,
    jacobian: wp.array3d[wp.float64],  # [articulation, 6 link, dof]
    mass_matrix: wp.array3d[wp.float64],  # [articulation, dof, dof]
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    motion: MotionArrays,
    dt: float,
    factor: wp.array3d[wp.float64],  # [attractor, dof, dof] scratch
    rows: wp.array3d[wp.float64],  # [attractor, 7, dof] scratch
    compliance: wp.array3d[wp.float64],  # [attractor, 6, 7] scratch
    body_f: wp.array[wp.spatial_vector],  # [body] N, N m, world axes
):
    """Add the force of one attractor to its body."""
    index = wp.tid()
    axes = table.axes[index]
    if axes == 0:
        return
    body, articulation = table.body[index], table.articulation[index]
    count = table.dof_count[index]
    pose = body_q[body]
    frame = pose * table.offset[index]
    target = table.target[index]
    turn = wp.transform_get_rotation(target)
    com = wp.transform_point(pose, body_com[body])
    arm = wp.transform_get_translation(frame) - com
    velocity = body_qd[body]
    omega = wp.spatial_bottom(velocity)

    h = wp.float64(dt)
    # Cholesky factor of the mass matrix with drives, and the impulse without attractor, solved with it.
    for i in range(count):
        impulse = free_impulse(motion, table.first_dof[index] + i, h)
        for j in range(i + 1):
            total = mass_matrix[articulation, i, j]
            if i == j:
                total += impulse[1]
            for k in range(j):
                total -= factor[index, i, k] * factor[index, j, k]
            if i == j:
                total = wp.sqrt(wp.max(total, PIVOT_MIN * mass_matrix[articulation, i, i]))
            else:
                total /= factor[index, j, j]
            factor[index, i, j] = total
        value = impulse[0]
        for k in range(i):
            value -= factor[index, i, k] * rows[index, 6, k]
        rows[index, 6, i] = value / factor[index, i, i]

    # Rows of the Jacobian along the axes of the target, each solved with the factor.
    first = 6 * table.link[index]
    for axis in range(6):
        direction = wp.vec3()
        direction[axis % 3] = 1.0
        direction = wp.quat_rotate(turn, direction)
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

    point_velocity = wp.quat_rotate_inv(turn, wp.spatial_top(velocity) + wp.cross(omega, arm))
    turn_velocity = wp.quat_rotate_inv(turn, omega)
    way = wp.quat_rotate_inv(turn, wp.transform_get_translation(target) - wp.transform_get_translation(frame))
    rotation = turn * wp.quat_inverse(wp.transform_get_rotation(frame))
    angle = wp.quat_rotate_inv(turn, rotation_vector(rotation))
    k_spring = wp.float64(table.stiffness[index])
    gain = wp.float64(table.damping[index]) + h * k_spring
    for i in range(6):
        chosen_i = (axes >> i) & 1
        for j in range(6):
            value = wp.float64(0.0)
            if chosen_i == 1 and ((axes >> j) & 1) == 1:
                for k in range(count):
                    value += rows[index, i, k] * rows[index, j, k]
                value = value * gain * h
            if i == j:
                value += wp.float64(1.0)
            compliance[index, i, j] = value
        pull = wp.float64(0.0)
        if chosen_i == 1:
            speed = wp.float64(0.0)
            for k in range(count):
                speed += rows[index, i, k] * rows[index, 6, k]
            if i < 3:
                pull = k_spring * wp.float64(way[i]) - gain * (speed + wp.float64(point_velocity[i]))
            else:
                pull = k_spring * wp.float64(angle[i - 3]) - gain * (speed + wp.float64(turn_velocity[i - 3]))
        compliance[index, i, 6] = pull

    # Elimination: the matrix is symmetric and its eigenvalues are 1 or more.
    for i in range(6):
        for row in range(i + 1, 6):
            ratio = compliance[index, row, i] / compliance[index, i, i]
            for j in range(i, 7):
                compliance[index, row, j] = compliance[index, row, j] - ratio * compliance[index, i, j]
    for back in range(6):
        i = 5 - back
        value = compliance[index, i, 6]
        for j in range(i + 1, 6):
            value -= compliance[index, i, j] * compliance[index, j, 6]
        compliance[index, i, 6] = value / compliance[index, i, i]

    force = wp.vec3()
    torque = wp.vec3()
    for k in range(3):
        force[k] = wp.float32(compliance[index, k, 6])
        torque[k] = wp.float32(compliance[index, 3 + k, 6])
    force = wp.quat_rotate(turn, force)
    torque = wp.quat_rotate(turn, torque) + wp.cross(arm, force)
    wp.atomic_add(body_f, body, wp.spatial_vector(force, torque))


class AttractorForces:
    """The attractors of a prepared sim.

    Args:
        runtime: The sim, with at least one attractor.
    """

    def __init__(self, runtime: Any):
        self._runtime = runtime
        self.size = -1
        self.is_stale = False
        """Whether properties changed since they were taken over."""
        self._jacobian: wp.array | None = None
        self._response = StepResponse(runtime)
        self.update()
        runtime.before_substep.append(self._pull)

    def update(self) -> None:
        """Take over the properties of all attractors."""
        attractors: list[Attractor] = self._runtime.sim.attractors
        self.is_stale = False
        if len(attractors) != self.size:
            self._allocate(attractors)
        table = self.table
        table.axes.assign(np.array([int(part.properties.axes) for part in attractors], dtype=np.int32))
        table.stiffness.assign(np.array([part.properties.stiffness for part in attractors], dtype=np.float32))
        table.damping.assign(np.array([part.properties.damping for part in attractors], dtype=np.float32))
        offset = np.array([part.properties.offset._numbers() for part in attractors], dtype=np.float32)
        target = np.array([part.properties.target._numbers() for part in attractors], dtype=np.float32)
        target[:, :3] += np.array([part.actor.env.offset for part in attractors], dtype=np.float32)
        table.offset.assign(offset)
        table.target.assign(target)

    def _allocate(self, attractors: list[Attractor]) -> None:
        self.size = count = len(attractors)
        device = self._runtime.device
        table = self.table = AttractorTable()
        joint = [_joint_of_body(part) for part in attractors]
        table.body = integers([part.actor.starts["body"] + part.body for part in attractors], device)
        table.articulation = integers([part.actor.starts["articulation"] for part in attractors], device)
        table.link = integers(joint, device)
        table.dof_count = integers([part.actor.asset.builder.joint_dof_count for part in attractors], device)
        table.first_dof = integers([part.actor.starts["dof"] for part in attractors], device)
        table.axes = wp.zeros(count, dtype=int, device=device)
        table.stiffness = wp.zeros(count, dtype=float, device=device)
        table.damping = wp.zeros(count, dtype=float, device=device)
        table.offset = wp.zeros(count, dtype=wp.transform, device=device)
        table.target = wp.zeros(count, dtype=wp.transform, device=device)
        size = max(part.actor.asset.builder.joint_dof_count for part in attractors)
        self._factor = wp.zeros((count, size, size), dtype=wp.float64, device=device)
        self._rows = wp.zeros((count, 7, size), dtype=wp.float64, device=device)
        self._compliance = wp.zeros((count, 6, 7), dtype=wp.float64, device=device)
        worlds = sorted({part.actor.env.world for part in attractors})
        self._worlds = integers(worlds, device)

    def _pull(self, dt: float) -> None:
        runtime = self._runtime
        if self.is_stale:
            self.update()
        model, state = runtime.model, runtime.simulation.state
        if self._jacobian is None:
            self._jacobian = jacobian_array(model)
        eval_jacobian(model, state, self._jacobian, worlds=self._worlds)
        self._response.evaluate(self._worlds)
        launch_kernel(
            pull_body,
            dim=self.size,
            inputs=[
                self.table,
                self._jacobian,
                self._response.mass_matrix,
                state.body_q,
                state.body_qd,
                model.body_com,
                self._response.motion(),
                dt,
                self._factor,
                self._rows,
                self._compliance,
            ],
            outputs=[state.body_f],
            device=runtime.device,
        )


def _joint_of_body(attractor: Attractor) -> int:
    """Return the joint that moves the body, in the builder of its asset: its place in the articulation."""
    return int(attractor.actor.asset.joint_of_body[attractor.body])
