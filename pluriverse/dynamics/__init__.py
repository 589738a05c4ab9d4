"""Rigid-body dynamics of trees: the stages of a step without contact, and forward kinematics.

A step is `eval_kinematics`, `eval_free_motion`, the solver's correction of the free motion, and
`integrate`. The stages exchange their results in a `Workspace`. The equations are in `docs/dynamics.md`.
"""

from pluriverse.dynamics.articulation_jacobian import eval_jacobian as eval_jacobian
from pluriverse.dynamics.articulation_mass_matrix import eval_mass_matrix as eval_mass_matrix
from pluriverse.dynamics.forward_kinematics import eval_fk as eval_fk
from pluriverse.dynamics.free_motion import eval_free_motion
from pluriverse.dynamics.integration import PositionIntegration, integrate
from pluriverse.dynamics.inverse_dynamics import eval_inverse_dynamics as eval_inverse_dynamics
from pluriverse.dynamics.inverse_kinematics import eval_ik as eval_ik
from pluriverse.dynamics.kinematics import eval_kinematics
from pluriverse.dynamics.loops import eval_loops as eval_loops
from pluriverse.dynamics.manipulator_equation import (
    eval_inverse_dynamics_force as eval_inverse_dynamics_force,
)
from pluriverse.dynamics.manipulator_equation import (
    eval_inverse_dynamics_passive as eval_inverse_dynamics_passive,
)
from pluriverse.dynamics.momenta import Momenta
from pluriverse.dynamics.momenta import eval_momenta as eval_momenta
from pluriverse.dynamics.momenta import eval_world_momenta as eval_world_momenta
from pluriverse.dynamics.workspace import Workspace

__all__ = ["Momenta", "PositionIntegration", "Workspace", "eval_free_motion", "eval_kinematics", "integrate"]
