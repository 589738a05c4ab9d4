"""Inverse kinematics: joint coordinates at which links are where they are asked to be, many problems at once.

`IKSolver` minimizes the squared residuals of objectives over the joint coordinates, from one or several
starts per problem. The equations are in `docs/ik.md`.
"""

from pluriverse.ik.choices import IKJacobianType, IKOptimizer, IKSampler
from pluriverse.ik.joint_limit import IKObjectiveJointLimit
from pluriverse.ik.lbfgs import IKOptimizerLBFGS
from pluriverse.ik.levenberg_marquardt import IKOptimizerLM
from pluriverse.ik.objective import IKObjective
from pluriverse.ik.position import IKObjectivePosition
from pluriverse.ik.rotation import IKObjectiveRotation
from pluriverse.ik.solver import IKSolver

__all__ = [
    "IKJacobianType",
    "IKObjective",
    "IKObjectiveJointLimit",
    "IKObjectivePosition",
    "IKObjectiveRotation",
    "IKOptimizer",
    "IKOptimizerLBFGS",
    "IKOptimizerLM",
    "IKSampler",
    "IKSolver",
]
