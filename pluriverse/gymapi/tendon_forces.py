"""Tendon forces: fixed tendons that couple joints of an actor by springs, dampers and limits of their length.

Reads   mass matrix, bias forces and drives of the actor, joint states
Writes  joint_f of the joints of tendons

The length of a tendon is L = sum c_i q_i + offset. With rest length L0, the way g past a limit (0 within),
and the velocities v* at the end of a step of length h without tendons, the forces f of all tendons of an
actor are those of the springs at the end of the step,

    f = -k (L - L0) - kl g - (d + h k + h kl) C (v* + h M^-1 C^T f),

where kl counts beyond the limit only, and each joint feels c_i f. So any stiffness is stable.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.step_response import PIVOT_MIN, MotionArrays, StepResponse, free_impulse
from pluriverse.gymapi.tables import integers
from pluriverse.gymapi.tendons import actor_tendons
from pluriverse.launch import launch_kernel

_MODULE = "pluriverse.gymapi.tendon_forces"


@wp.struct
class TendonTable:
    """Actors with tendons, their tendons, and the joints of these."""

    articulation: wp.array[int]
    """Articulation of each actor."""
    first_dof: wp.array[int]
    """Its first degree of freedom in the model."""
    dof_count: wp.array[int]
    """Its degrees of freedom."""
    tendon_start: wp.array[int]
    """First tendon of each actor, shape [actor + 1]."""
    entry_start: wp.array[int]
    """First joint of each tendon, shape [tendon + 1]."""
    entry_dof: wp.array[int]
    """Degree of freedom in the articulation, of each joint of a tendon."""
    entry_coord: wp.array[int]
    """Its coordinate in the model."""
    coefficient: wp.array[float]
    """Length per unit of position, of each joint of a tendon."""
    offset: wp.array[float]
    """Offset of the length of each tendon."""
    rest: wp.array[float]
    """Rest length of each tendon."""
    stiffness: wp.array[float]
    """Stiffness of each tendon."""
    damping: wp.array[float]
    """Damping of each tendon."""
    lower: wp.array[float]
    """Smallest length of each tendon."""
    upper: wp.array[float]
    """Largest length of each tendon."""
    limit_stiffness: wp.array[float]
    """Stiffness of the limits of each tendon, 0 for none."""


@wp.kernel(enable_backward=False, module=_MODULE)
def pull_joints(
    table: TendonTable,
    mass_matrix: wp.array3d[wp.float64],  # [articulation, dof, dof]
    motion: MotionArrays,
    dt: float,
    factor: wp.array3d[wp.float64],  # [actor, dof, dof] scratch
    rows: wp.array3d[wp.float64],  # [actor, tendon + 1, dof] scratch
    system: wp.array3d[wp.float64],  # [actor, tendon, tendon + 1] scratch
    joint_f: wp.array[float],  # [dof] N, N m
):
    """Write the forces of the tendons of one actor."""
    actor = wp.tid()
    articulation, first_dof, count = table.articulation[actor], table.first_dof[actor], table.dof_count[actor]
    first = table.tendon_start[actor]
    tendons = table.tendon_start[actor + 1] - first
    h = wp.float64(dt)
    # Cholesky factor of the mass matrix with drives, and the impulse without tendons, solved with it.
    for i in range(count):
        impulse = free_impulse(motion, first_dof + i, h)
        for j in range(i + 1):
            total = mass_matrix[articulation, i, j]
            if i == j:
                total += impulse[1]
            for k in range(j):
                total -= factor[actor, i, k] * factor[actor, j, k]
            if i == j:
                total = wp.sqrt(wp.max(total, PIVOT_MIN * mass_matrix[articulation, i, i]))
            else:
                total /= factor[actor, j, j]
            factor[actor, i, j] = total
        value = impulse[0]
        for k in range(i):
            value -= factor[actor, i, k] * rows[actor, tendons, k]
        rows[actor, tendons, i] = value / factor[actor, i, i]

    # Rows of C, each solved with the factor; and force and gain of each tendon by itself.
    for t in range(tendons):
        tendon = first + t
        for i in range(count):
            rows[actor, t, i] = wp.float64(0.0)
        length = wp.float64(table.offset[tendon])
        speed = wp.float64(0.0)
        for entry in range(table.entry_start[tendon], table.entry_start[tendon + 1]):
            dof = table.entry_dof[entry]
            coefficient = wp.float64(table.coefficient[entry])
            rows[actor, t, dof] = rows[actor, t, dof] + coefficient
            length += coefficient * wp.float64(motion.joint_q[table.entry_coord[entry]])
            speed += coefficient * wp.float64(motion.joint_qd[first_dof + dof])
        for i in range(count):
            value = rows[actor, t, i]
            for k in range(i):
                value -= factor[actor, i, k] * rows[actor, t, k]
            rows[actor, t, i] = value / factor[actor, i, i]
        for i in range(count):
            speed += rows[actor, t, i] * rows[actor, tendons, i]
        stiffness = wp.float64(table.stiffness[tendon])
        pull = -stiffness * (length - wp.float64(table.rest[tendon]))
        gain = wp.float64(table.damping[tendon]) + h * stiffness
        over = wp.max(length - wp.float64(table.upper[tendon]), wp.float64(0.0))
        over += wp.min(length - wp.float64(table.lower[tendon]), wp.float64(0.0))
        if over != wp.float64(0.0):
            pull -= wp.float64(table.limit_stiffness[tendon]) * over
            gain += h * wp.float64(table.limit_stiffness[tendon])
        for other in range(t + 1):
            value = wp.float64(0.0)
            for i in range(count):
                value += rows[actor, t, i] * rows[actor, other, i]
            system[actor, t, other] = h * value
        system[actor, t, tendons] = pull - gain * speed
        rows[actor, t, count] = gain
    for t in range(tendons):
        # The lower triangle holds h C M^-1 C^T: mirror it, then I + G times it.
        for other in range(t):
            system[actor, other, t] = system[actor, t, other]
    for t in range(tendons):
        gain = rows[actor, t, count]
        for other in range(tendons):
            value = gain * system[actor, t, other]
            if t == other:
                value += wp.float64(1.0)
            system[actor, t, other] = value

    # Elimination without pivots: the eigenvalues are 1 or more.
    for t in range(tendons):
        for row in range(t + 1, tendons):
            ratio = system[actor, row, t] / system[actor, t, t]
            for j in range(t, tendons + 1):
                system[actor, row, j] = system[actor, row, j] - ratio * system[actor, t, j]
    for t in range(tendons):
        for entry in range(table.entry_start[first + t], table.entry_start[first + t + 1]):
            joint_f[first_dof + table.entry_dof[entry]] = 0.0
    for back in range(tendons):
        t = tendons - 1 - back
        value = system[actor, t, tendons]
        for j in range(t + 1, tendons):
            value -= system[actor, t, j] * system[actor, j, tendons]
        value = value / system[actor, t, t]
        system[actor, t, tendons] = value
        for entry in range(table.entry_start[first + t], table.entry_start[first + t + 1]):
            dof = first_dof + table.entry_dof[entry]
            joint_f[dof] = joint_f[dof] + table.coefficient[entry] * float(value)


class TendonForces:
    """The tendons of a prepared sim.

    Args:
        runtime: The sim, with at least one actor whose tendons act.
    """

    def __init__(self, runtime: Any):
        self._runtime = runtime
        self._actors: list[Actor] = [actor for actor in runtime.sim.actors if actor.asset.tendons]
        self.is_stale = False
        """Whether properties changed since they were taken over."""
        self._response = StepResponse(runtime)
        self._allocate()
        self._update()
        runtime.before_substep.append(self._pull)

    def _allocate(self) -> None:
        actors, device = self._actors, self._runtime.device
        table = self.table = TendonTable()
        builders = [actor.asset.builder for actor in actors]
        table.articulation = integers([actor.starts["articulation"] for actor in actors], device)
        table.first_dof = integers([actor.starts["dof"] for actor in actors], device)
        table.dof_count = integers([builder.joint_dof_count for builder in builders], device)
        counts = [len(actor.asset.tendons) for actor in actors]
        table.tendon_start = integers(np.cumsum([0, *counts]), device)
        tendons = [tendon for actor in actors for tendon in actor.asset.tendons]
        table.entry_start = integers(np.cumsum([0, *(len(tendon.dofs) for tendon in tendons)]), device)
        entries = [
            (actor, actor.asset.dofs[dof])
            for actor in actors
            for tendon in actor.asset.tendons
            for dof in tendon.dofs
        ]
        table.entry_dof = integers([dof.dof for _, dof in entries], device)
        table.entry_coord = integers([actor.starts["coord"] + dof.coord for actor, dof in entries], device)
        for name in ("offset", "rest", "stiffness", "damping", "lower", "upper", "limit_stiffness"):
            setattr(table, name, wp.zeros(len(tendons), dtype=float, device=device))
        table.coefficient = wp.zeros(len(entries), dtype=float, device=device)
        size = max(builder.joint_dof_count for builder in builders)
        most = max(counts)
        self._factor = wp.zeros((len(actors), size, size), dtype=wp.float64, device=device)
        self._rows = wp.zeros((len(actors), most + 1, size + 1), dtype=wp.float64, device=device)
        self._system = wp.zeros((len(actors), most, most + 1), dtype=wp.float64, device=device)
        self._worlds = integers(sorted({actor.env.world for actor in actors}), device)

    def _update(self) -> None:
        """Take over the properties of all tendons."""
        self.is_stale = False
        tendons = [tendon for actor in self._actors for tendon in actor_tendons(actor)]
        parts = [tendon.properties for tendon in tendons]
        offsets = [
            [0.0] * len(actor.asset.tendons) if actor.tendon_offsets is None else actor.tendon_offsets
            for actor in self._actors
        ]
        table = self.table

        def put(name: str, values: list[float]) -> None:
            getattr(table, name).assign(np.array(values, dtype=np.float32))

        put("coefficient", [value for tendon in tendons for value in tendon.coefficients])
        put("offset", [value for part in offsets for value in part])
        put("rest", [part.fixed_spring_rest_length for part in parts])
        put("stiffness", [part.stiffness for part in parts])
        put("damping", [part.damping for part in parts])
        put("lower", [part.lower_limit if part.is_limited else -np.inf for part in parts])
        put("upper", [part.upper_limit if part.is_limited else np.inf for part in parts])
        put("limit_stiffness", [part.limit_stiffness if part.is_limited else 0.0 for part in parts])

    def _pull(self, dt: float) -> None:
        runtime = self._runtime
        if self.is_stale:
            self._update()
        self._response.evaluate(self._worlds)
        launch_kernel(
            pull_joints,
            dim=len(self._actors),
            inputs=[
                self.table,
                self._response.mass_matrix,
                self._response.motion(),
                dt,
                self._factor,
                self._rows,
                self._system,
            ],
            outputs=[runtime.simulation.control.joint_f],
            device=runtime.device,
        )
