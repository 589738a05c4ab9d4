"""Springs on sums of joint coordinates, with dampers and limits: tendons whose length is such a sum.

Reads   mass matrix, bias forces and drives of articulations, joint states
Writes  joint_f of the joints of the tendons

The length of a tendon is L = sum c_i q_i + offset. With rest length L0, constant force f0, the way g past a
limit (0 within), and the velocities v* at the end of a step of length h without tendons, the forces f of all
tendons of an articulation are those of the springs at the end of the step,

    f = f0 - k (L - L0) - kl g - (d + h k + h kl) C (v* + h M^-1 C^T f),

where kl counts beyond the limit only, and each joint feels c_i f. So any stiffness is stable.
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import State
from pluriverse.simulation import Simulation
from pluriverse.solvers.base import SolverBase
from pluriverse.solvers.springs import TendonTable
from pluriverse.springs.response import MotionArrays, Springs, factor_response, solve_rows

_MODULE = "pluriverse.springs.coordinates"


@wp.kernel(enable_backward=False, module=_MODULE)
def pull_joints(
    table: TendonTable,
    mass_matrix: wp.array3d[wp.float64],  # [articulation, dof, dof]
    motion: MotionArrays,
    dt: float,
    factor: wp.array3d[wp.float64],  # [owner, dof, dof] scratch
    rows: wp.array3d[wp.float64],  # [owner, tendon + 1, dof] scratch
    system: wp.array3d[wp.float64],  # [owner, tendon, tendon + 1] scratch
    joint_f: wp.array[float],  # [dof] N, N m
):
    """Write the forces of the tendons of one articulation."""
    owner, _ = wp.tid()
    articulation, first_dof, count = table.articulation[owner], table.first_dof[owner], table.dof_count[owner]
    first = table.tendon_start[owner]
    tendons = table.tendon_start[owner + 1] - first
    h = wp.float64(dt)
    factor_response(mass_matrix, motion, articulation, first_dof, count, h, owner, tendons, factor, rows)

    # Rows of C, each solved with the factor; and force and gain of each tendon by itself.
    for t in range(tendons):
        tendon = first + t
        for i in range(count):
            rows[owner, t, i] = wp.float64(0.0)
        length = wp.float64(table.offset[tendon])
        speed = wp.float64(0.0)
        for entry in range(table.entry_start[tendon], table.entry_start[tendon + 1]):
            dof = table.entry_dof[entry]
            coefficient = wp.float64(table.coefficient[entry])
            rows[owner, t, dof] = rows[owner, t, dof] + coefficient
            length += coefficient * wp.float64(motion.joint_q[table.entry_coord[entry]])
            speed += coefficient * wp.float64(motion.joint_qd[first_dof + dof])
        for i in range(count):
            value = rows[owner, t, i]
            for k in range(i):
                value -= factor[owner, i, k] * rows[owner, t, k]
            rows[owner, t, i] = value / factor[owner, i, i]
        for i in range(count):
            speed += rows[owner, t, i] * rows[owner, tendons, i]
        stiffness = wp.float64(table.stiffness[tendon])
        pull = wp.float64(table.force[tendon]) - stiffness * (length - wp.float64(table.rest[tendon]))
        gain = wp.float64(table.damping[tendon]) + h * stiffness
        over = wp.max(length - wp.float64(table.upper[tendon]), wp.float64(0.0))
        over += wp.min(length - wp.float64(table.lower[tendon]), wp.float64(0.0))
        if over != wp.float64(0.0):
            pull -= wp.float64(table.limit_stiffness[tendon]) * over
            gain += h * wp.float64(table.limit_stiffness[tendon])
        for other in range(t + 1):
            value = wp.float64(0.0)
            for i in range(count):
                value += rows[owner, t, i] * rows[owner, other, i]
            system[owner, t, other] = h * value
        system[owner, t, tendons] = pull - gain * speed
        rows[owner, t, count] = gain
    for t in range(tendons):
        # The lower triangle holds h C M^-1 C^T: mirror it, then I + G times it.
        for other in range(t):
            system[owner, other, t] = system[owner, t, other]
    for t in range(tendons):
        gain = rows[owner, t, count]
        for other in range(tendons):
            value = gain * system[owner, t, other]
            if t == other:
                value += wp.float64(1.0)
            system[owner, t, other] = value

    solve_rows(system, owner, tendons)
    for t in range(tendons):
        for entry in range(table.entry_start[first + t], table.entry_start[first + t + 1]):
            joint_f[first_dof + table.entry_dof[entry]] = 0.0
    for back in range(tendons):
        t = tendons - 1 - back
        value = system[owner, t, tendons]
        for entry in range(table.entry_start[first + t], table.entry_start[first + t + 1]):
            dof = first_dof + table.entry_dof[entry]
            joint_f[dof] = joint_f[dof] + table.coefficient[entry] * float(value)


class CoordinateSprings(Springs):
    """Tendons of some articulations, added to every solver step.

    Args:
        simulation: The simulation.
        table: The tendons. Numbers in it may be written to at any time.
        worlds: Worlds of the articulations.
        dof_count_max: Most degrees of freedom of an articulation.
        tendon_count_max: Most tendons of one.
    """

    def __init__(
        self,
        simulation: Simulation,
        table: TendonTable,
        worlds: wp.array[int],
        dof_count_max: int,
        tendon_count_max: int,
    ) -> None:
        super().__init__(simulation)
        self.table = table
        """The tendons."""
        self._worlds = worlds
        self._sizes = (table.articulation.size, dof_count_max, tendon_count_max)
        self.attach(simulation)

    def give_to(self, solver: SolverBase) -> bool:
        """Give the tendons to a solver; return whether it takes them as terms."""
        return solver.set_springs(tendons=self.table)

    def allocate(self) -> None:
        """Make the scratch of the stage."""
        count, size, tendons = self._sizes
        device = self.table.articulation.device
        self._factor = wp.zeros((count, size, size), dtype=wp.float64, device=device)
        self._rows = wp.zeros((count, tendons + 1, size + 1), dtype=wp.float64, device=device)
        self._system = wp.zeros((count, tendons, tendons + 1), dtype=wp.float64, device=device)

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Write the forces of all tendons, unless they are terms of the solver."""
        if self.is_term:
            return
        simulation = self.response.simulation
        self.response.evaluate(self._worlds)
        launch_kernel(
            pull_joints,
            dim=self.table.articulation.size,
            inputs=[
                self.table,
                self.response.mass_matrix,
                self.response.motion(),
                simulation.dt,
                self._factor,
                self._rows,
                self._system,
            ],
            outputs=[simulation.control.joint_f],
            device=simulation.model.device,
        )
