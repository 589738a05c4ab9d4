"""Joint efforts: what drives and efforts exert on each degree of freedom, as a mean over substeps.

Reads   joint_q before and joint_qd after a solver step, targets, gains, efforts
Writes  efforts

The drive of a step is implicit: stiffness (target - q - dt v) + damping (target velocity - v) + effort, with
v the velocity at the end of the step, held within the largest effort. Losses and limits are no part of it.
"""

import warp as wp

from pluriverse.gymapi.runtime import Runtime
from pluriverse.gymapi.tables import DofTable
from pluriverse.launch import launch_kernel
from pluriverse.model.drive_effort import DriveArrays, drive_arrays, drive_effort
from pluriverse.types import JointTargetMode

_MODULE = "pluriverse.gymapi.joint_efforts"


@wp.kernel(enable_backward=False, module=_MODULE)
def add_joint_effort(
    dofs: DofTable,
    drives: DriveArrays,
    joint_q: wp.array[float],  # [coord] before the step
    joint_qd: wp.array[float],  # [dof] after it
    dt: float,
    weight: float,
    efforts: wp.array[float],  # [row] N or N m
):
    """Add the effort of one degree of freedom in one step."""
    row, _ = wp.tid()
    dof = dofs.dof[row]
    if drives.mode[dof] == JointTargetMode.NONE:
        return
    v = joint_qd[dof]
    effort = drive_effort(drives, dof, joint_q[dofs.coord[row]] + dt * v, v)
    efforts[row] = efforts[row] + weight * effort


class JointEfforts:
    """Efforts of the last `simulate`.

    Args:
        runtime: The prepared sim.
    """

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self.effort = wp.zeros(runtime.dofs.dof.size, dtype=float, device=runtime.device)
        """Effort on each degree of freedom [N or N·m], shape [dof]."""
        self._joint_q = wp.clone(runtime.simulation.state.joint_q)
        runtime.before_substep.append(self._remember)
        runtime.after_substep.append(self._collect)

    def _remember(self, dt: float) -> None:
        wp.copy(self._joint_q, self._runtime.simulation.state.joint_q)

    def _collect(self, number: int) -> None:
        runtime = self._runtime
        if number == 0:
            self.effort.zero_()
        launch_kernel(
            add_joint_effort,
            dim=runtime.dofs.dof.size,
            inputs=[
                runtime.dofs,
                drive_arrays(runtime.model, runtime.simulation.control),
                self._joint_q,
                runtime.simulation.state.joint_qd,
                runtime.simulation.dt,
                1.0 / runtime.substeps,
            ],
            outputs=[self.effort],
            device=runtime.device,
        )
