"""Ball drives: position drives of ball joints, whose targets are rotation vectors.

Reads   joint_q, joint_target_pos, stiffness
Writes  joint_target_vel of the ball joints, at which the drive exerts stiffness times the rotation left

The model's own drive of these joints is one of velocity, whose damping holds the implicit part of the
stiffness (`pluriverse.gymapi.drives`): together they are a drive that is stable at any stiffness.
"""

import warp as wp

from pluriverse.gymapi.enums import DofDriveMode
from pluriverse.gymapi.state_tensors import ball_quat, quat_of_rotation_vector, rotation_vector
from pluriverse.gymapi.tables import DofTable


@wp.kernel(enable_backward=False, module="pluriverse.gymapi.ball_drives")
def drive_ball(
    rows: wp.array[int],  # [slot] first degree of freedom of a ball joint
    dofs: DofTable,
    joint_target_kd: wp.array[float],  # [dof] N s/m, N m s/rad
    joint_q: wp.array[float],  # [coord] m, rad
    joint_target_pos: wp.array[float],  # [dof] m, rad
    joint_target_vel: wp.array[float],  # [dof] m/s, rad/s
):
    """Write the velocity targets of the position drive of one ball joint."""
    thread, _ = wp.tid()
    row = rows[thread]
    if dofs.drive_mode[row] != DofDriveMode.DOF_MODE_POS:
        return
    target = wp.vec3()
    for k in range(3):
        target[k] = joint_target_pos[dofs.dof[row + k]]
    error = rotation_vector(
        quat_of_rotation_vector(target) * wp.quat_inverse(ball_quat(joint_q, dofs.coord[row]))
    )
    for k in range(3):
        dof = dofs.dof[row + k]
        velocity = float(0.0)
        if joint_target_kd[dof] > 0.0:
            velocity = dofs.stiffness[row + k] * error[k] / joint_target_kd[dof]
        joint_target_vel[dof] = velocity
