"""Free motion stage: the velocity after a step without contacts, limits and drives.

Reads   joint_f, body_f, gravity; model properties; the workspace of the kinematics stage
Writes  workspace: dof_force, mass_row, factor_row, dof_velocity_free; tree_spin, dof_kick

    v* = v0 + dt A^-1 (tau - c - D v0),    A = M + armature + dt D

The damping force is implicit: v* satisfies (M + armature) (v* - v0) = dt (tau - c - D v*). Kinematic roots
have the velocity that they are given instead (`prescribed.py`). Where integration keeps momenta, bodies that
spin have another gyroscopic force (`spin.py`), and c of other trees is bounded and kept apart (`balance.py`).
"""

import warp as wp

from pluriverse.dynamics.bias import eval_bias
from pluriverse.dynamics.factorization import factorize_mass_matrix, solve_free_velocity
from pluriverse.dynamics.integration import PositionIntegration
from pluriverse.dynamics.kick import solve_free_velocities
from pluriverse.dynamics.mass_matrix import assemble_mass_matrix
from pluriverse.dynamics.prescribed import prescribe_roots
from pluriverse.dynamics.spin import replace_gyroscopic_forces
from pluriverse.dynamics.workspace import Workspace, check_workspace
from pluriverse.model import Control, Model, State
from pluriverse.model.arguments import check_control, check_state
from pluriverse.model.world_list import check_worlds


def eval_free_motion(
    model: Model,
    worlds: wp.array,
    state: State,
    control: Control,
    workspace: Workspace,
    dt: float,
    *,
    mode: PositionIntegration = PositionIntegration.MIDPOINT,
) -> None:
    """Compute the free-motion velocity and the factors of A for a step `dt` [s], after `eval_kinematics`.

    `mode` is how the step will be integrated.
    """
    worlds = check_worlds(model, worlds, what="eval_free_motion")
    check_state(model, state, "eval_free_motion: state")
    check_control(model, control, "eval_free_motion: control")
    check_workspace(model, workspace, "eval_free_motion")
    assemble_mass_matrix(model, worlds, workspace, dt)
    eval_bias(model, worlds, state, control, workspace)
    if model.has_kinematic_bodies:
        prescribe_roots(model, worlds, state, control, workspace, dt)
    if mode is PositionIntegration.SEMI_IMPLICIT:
        replace_gyroscopic_forces(model, worlds, workspace, dt)
    factorize_mass_matrix(model, worlds, workspace)
    if mode is PositionIntegration.SEMI_IMPLICIT:
        solve_free_velocities(model, worlds, workspace, dt)
    else:
        solve_free_velocity(model, worlds, workspace, dt)
