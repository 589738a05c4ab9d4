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
from pluriverse.types import JointTargetMode

_MODULE = "pluriverse.gymapi.joint_efforts"


@wp.struct
class DriveArrays:
    """Drives of the degrees of freedom of the model; see `Model` and `Control`."""

    mode: wp.array[int]
    ke: wp.array[float]
    kd: wp.array[float]
    limit: wp.array[float]
    target_pos: wp.array[float]
    target_vel: wp.array[float]
    act: wp.array[float]


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
    row = wp.tid()
    dof = dofs.dof[row]
    mode = drives.mode[dof]
    if mode == JointTargetMode.NONE:
        return
    v = joint_qd[dof]
    effort = drives.act[dof]
    if mode == JointTargetMode.POSITION:
        effort += drives.ke[dof] * (drives.target_pos[dof] - joint_q[dofs.coord[row]] - dt * v)
        effort -= drives.kd[dof] * v
    if mode == JointTargetMode.VELOCITY:
        effort += drives.kd[dof] * (drives.target_vel[dof] - v)
    limit = drives.limit[dof]
    efforts[row] = efforts[row] + weight * wp.clamp(effort, -limit, limit)


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
        model, control = runtime.model, runtime.simulation.control
        drives = DriveArrays()
        drives.mode, drives.ke, drives.kd = (
            model.joint_target_mode,
            model.joint_target_ke,
            model.joint_target_kd,
        )
        drives.limit = model.joint_effort_limit
        drives.target_pos, drives.target_vel = control.joint_target_pos, control.joint_target_vel
        drives.act = control.joint_act
        launch_kernel(
            add_joint_effort,
            dim=runtime.dofs.dof.size,
            inputs=[
                runtime.dofs,
                drives,
                self._joint_q,
                runtime.simulation.state.joint_qd,
                runtime.simulation.dt,
                1.0 / runtime.substeps,
            ],
            outputs=[self.effort],
            device=runtime.device,
        )
