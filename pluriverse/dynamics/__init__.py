"""Rigid-body dynamics of trees: the stages of a step without contact, and forward kinematics.

A step is `eval_kinematics`, `eval_free_motion`, whatever a solver makes of the free motion, and
`integrate`. Between the stages all results are in a `Workspace`. The equations are in `docs/dynamics.md`.
"""

from pluriverse.dynamics.forward_kinematics import eval_fk as eval_fk
from pluriverse.dynamics.free_motion import eval_free_motion
from pluriverse.dynamics.integration import PositionIntegration, integrate
from pluriverse.dynamics.kinematics import eval_kinematics
from pluriverse.dynamics.workspace import Workspace

__all__ = ["PositionIntegration", "Workspace", "eval_free_motion", "eval_kinematics", "integrate"]
